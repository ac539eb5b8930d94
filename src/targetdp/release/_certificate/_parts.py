"""The parts of a certificate: plain data, frozen, and of no other fields than these."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from targetdp.guarantee import Guarantee
from targetdp.normalization import ReleaseSource
from targetdp.release._certificate._caveats import AllReleases
from targetdp.release._ledger._entries import Head
from targetdp.release._trust._keys import Succession
from targetdp.table import Dialect

MOST_SUCCESSIONS = 100
"""Changes of keys that a certificate tells of, the newest."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
_Chance = Annotated[float, Field(ge=0, le=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class CertificatePart(BaseModel):
    """Frozen, and of no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class File(CertificatePart):
    """A file of the release."""

    name: str
    size: int
    sha256: Sha256


class Output(CertificatePart):
    """What was released. ``sha256`` is the file's own, or that of the list of parts or of the frame."""

    format: Literal["parquet", "csv", "frame"]
    files: tuple[File, ...]
    sha256: Sha256
    csv: Dialect | None = Field(default=None, description="how CSV files are written, if not plainly")

    @property
    def dialect(self) -> Dialect | None:
        """How its files are read, if they are CSV; None where nothing says it."""
        return self.csv or (Dialect() if self.format == "csv" else None)

    @model_serializer(mode="wrap")
    def _said(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Plain files say nothing of it: so older certificates hold."""
        found: dict[str, Any] = dump(self)
        if self.csv is None:
            del found["csv"]
        return found


class Stated(CertificatePart):
    """A guarantee as plain data."""

    B: Annotated[float, Field(gt=0, le=2)]
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: _Chance

    def value(self) -> Guarantee:
        """The guarantee itself."""
        return Guarantee(self.B, self.epsilon, self.delta)


class AtDistance(CertificatePart):
    """What holds for two people at a distance. ε is null where no finite ε holds at the stated δ."""

    distance: Annotated[float, Field(gt=0, le=2)]
    epsilon: Finite | None
    best_guess: Annotated[float, Field(ge=0.5, le=1)] = Field(
        description="probability that the best guess between two equally likely rows is right, at most"
    )


class Classic(CertificatePart):
    """The classic differential privacy (B = 2) that the release has; null where no finite ε holds."""

    switch_lemma: Stated | None
    exact: Stated | None


class MechanismRecord(CertificatePart):
    """The mechanism and the law of what it draws: numbers from which the guarantee can be derived again."""

    name: str
    law: dict[str, Any]
    deviation_per_column: Finite | None = Field(description="of the noise; null for decisions")
    noise_length: Finite | None = Field(
        description="typical length on a row; rows have length at most 1; null for decisions"
    )


class Scale(CertificatePart):
    """What was subtracted from a column and what it was divided by."""

    center: Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Scales(CertificatePart):
    """Where column scales came from, and their values: they are public, or were paid for."""

    source: ReleaseSource | Literal["none"]
    reason: str | None = Field(description="why declared ones are public, in the data holder's words")
    spent: Stated | None
    values: dict[str, Scale]
    estimated: tuple[str, ...] = Field(description="columns whose scales this release has estimated")
    releases: tuple[str, ...] = Field(description="the releases of this desk that have estimated the others")


class LedgerMark(CertificatePart):
    """Where the ledger stood when this release was reserved in it."""

    ledger_id: str
    number: int
    hash: Sha256

    def head(self) -> Head:
        """The ledger's head."""
        return Head(self.ledger_id, self.number, self.hash)


class Together(CertificatePart):
    """What holds of all releases of the desk together: a limit that was fixed beforehand."""

    near: Stated
    classic: Stated
    limits: Annotated[int, Field(ge=1)] = Field(description="how many were in force; their δ add up")
    forgot: bool = Field(description="whether entries of the ledger were lost, or may have been")
    agreed: Annotated[int, Field(ge=0, strict=True, description="people handed over as they are")] = 0

    def value(self) -> AllReleases:
        """The same with guarantees."""
        return AllReleases(self.near.value(), self.classic.value(), self.limits, self.forgot, self.agreed)


class DeskRecord(CertificatePart):
    """The desk that the release was made at, and the policy that it was made under."""

    id: str
    name: str
    policy: int = Field(description="which version of its policy, counted by the ledger")
    policy_sha256: Sha256


class Asked(CertificatePart):
    """What was asked for, and by whom: the request's own words."""

    sha256: Sha256
    signer: str | None
    asked_by: str | None
    program: str | None
    why: str | None
    page: str | None


class Signature(CertificatePart):
    """Ed25519 over everything else in the certificate, key and succession among it."""

    key: str
    succession: tuple[Succession, ...] = Field(
        default=(),
        max_length=MOST_SUCCESSIONS,
        description="by which steps the key follows from earlier ones of the desk, the oldest first",
    )
    value: str
