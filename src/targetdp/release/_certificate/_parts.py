"""What a certificate is made of: plain data, each part of a closed shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from targetdp.guarantee import Guarantee
from targetdp.mechanisms import law_of
from targetdp.normalization import ReleaseSource
from targetdp.release._certificate._charge import Charge, SampleRelease
from targetdp.release._ledger._entries import Head

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Chance = Annotated[float, Field(ge=0, le=1)]
_Sha = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class CertificatePart(BaseModel):
    """Frozen, and of no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    epsilon: _Finite | None
    best_guess: Annotated[float, Field(ge=0.5, le=1)] = Field(
        description="probability that the best guess between two equally likely rows is right, at most"
    )


class Classic(CertificatePart):
    """The classic differential privacy (B = 2) that the release has; null where there is none."""

    switch_lemma: Stated | None
    exact: Stated | None


NO_CLASSIC = Classic(switch_lemma=None, exact=None)
"""Where there is no guarantee, or one that holds given the scales only."""


class MechanismRecord(CertificatePart):
    """The mechanism and, for noise, its law: numbers from which the guarantee can be derived again."""

    name: str
    law: dict[str, Any] | None
    deviation_per_column: _Finite | None
    noise_length: _Finite | None = Field(description="typical length on a row; rows have length at most 1")
    group_size: int | None
    partitions: int | None


class Scale(CertificatePart):
    """What was subtracted from a column and what it was divided by."""

    center: _Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Scales(CertificatePart):
    """Where column scales came from; their values only if they are public or were paid for."""

    source: ReleaseSource
    spent: Stated | None
    values: dict[str, Scale] | None
    estimated_here: bool = Field(
        False, description="whether this release estimated private scales itself, from its own rows alone"
    )


class File(CertificatePart):
    """A file of the release."""

    name: str
    size: int
    sha256: _Sha


class Output(CertificatePart):
    """What was released. ``sha256`` is the file's own, or that of the list of parts or of the frame."""

    format: Literal["parquet", "csv", "frame"]
    files: tuple[File, ...]
    sha256: _Sha


class LedgerMark(CertificatePart):
    """Where the ledger stood when this release was reserved in it."""

    population: str
    part: str | None
    ledger_id: str
    number: int
    hash: _Sha
    override: str | None

    def head(self) -> Head:
        """The ledger's head."""
        return Head(self.ledger_id, self.number, self.hash)


class Sample(CertificatePart):
    """The release that the weights of scores were learned from, and what holds for the people in it.

    ``law`` and ``spent`` (for its scales) are its own, so that ``inside`` can be derived again.
    """

    release: str
    sha256: _Sha
    rows: Annotated[int, Field(ge=1)]
    guarantee: Stated
    law: dict[str, Any]
    spent: Stated | None
    scored: bool = Field(description="whether its people are in this release, too")
    some_have_left: bool
    same_scales: bool = Field(description="whether both releases scale the same columns alike")
    inside: Stated = Field(description="what holds for its people, by both releases together")
    scales: ReleaseSource | None = Field(None, description="where its own column scales came from")

    def first(self) -> SampleRelease:
        """The earlier release."""
        spent = None if self.spent is None else self.spent.value()
        charge = Charge(law=law_of(self.law), scales=spent)
        return SampleRelease(
            self.release, self.sha256, self.rows, self.guarantee.value(), charge, source=self.scales
        )


class Signature(CertificatePart):
    """Ed25519 over everything else in the certificate."""

    key: str
    value: str


# What one release costs, in a form from which the cost at any distance can be derived again.
