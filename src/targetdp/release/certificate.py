"""The certificate of a release: what was done, what it guarantees, on which conditions; signed.

It holds nothing that the release itself does not reveal: no statistic of the data that was not paid for.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from targetdp.accounting import PrivacyLoss, compose
from targetdp.guarantee import Guarantee
from targetdp.release.caveats import Facts
from targetdp.release.charge import Charge
from targetdp.release.keys import SigningKey
from targetdp.release.ledger.entries import Head
from targetdp.release.settings import Settings, TunedOn
from targetdp.release.terms import Terms
from targetdp.scales import ColumnScales
from targetdp.table.sink import Written

SUFFIX = ".certificate.json"
PAGE_SUFFIX = ".certificate.md"
DISTANCES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Where the true ε is stated; B itself is added."""

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Chance = Annotated[float, Field(ge=0, le=1)]
_Sha = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stated(_Part):
    """A guarantee as plain data."""

    B: Annotated[float, Field(gt=0, le=2)]
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: _Chance

    def value(self) -> Guarantee:
        """The guarantee itself."""
        return Guarantee(self.B, self.epsilon, self.delta)


class AtDistance(_Part):
    """What holds for two people at a distance. ε is null where no finite ε holds at the stated δ."""

    distance: Annotated[float, Field(gt=0, le=2)]
    epsilon: _Finite | None
    best_guess: Annotated[float, Field(ge=0.5, le=1)] = Field(
        description="probability that the best guess between two equally likely rows is right, at most"
    )


class Classic(_Part):
    """The classic differential privacy (B = 2) that the release has; null where there is none."""

    switch_lemma: Stated | None
    exact: Stated | None


NO_CLASSIC = Classic(switch_lemma=None, exact=None)
"""Where there is no guarantee, or one that holds given the scales only."""


class Mechanism(_Part):
    """The mechanism and, for noise, its law: numbers from which the guarantee can be derived again."""

    name: str
    law: dict[str, Any] | None
    deviation_per_column: _Finite | None
    noise_length: _Finite | None = Field(description="typical length on a row; rows have length at most 1")
    group_size: int | None
    partitions: int | None


class Scale(_Part):
    """What was subtracted from a column and what it was divided by."""

    center: _Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Scales(_Part):
    """Where column scales came from; their values only if they are public or were paid for."""

    source: Literal["declared", "private", "confidential", "data"]
    spent: Stated | None
    values: dict[str, Scale] | None


class File(_Part):
    """A file of the release."""

    name: str
    size: int
    sha256: _Sha


class Output(_Part):
    """What was released. ``sha256`` is the file's own, or that of the list of parts or of the frame."""

    format: Literal["parquet", "csv", "frame"]
    files: tuple[File, ...]
    sha256: _Sha


class LedgerMark(_Part):
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


class Signature(_Part):
    """Ed25519 over everything else in the certificate."""

    key: str
    value: str


class Certificate(_Part):
    """What a data holder hands over with a private table."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp certificate")

    format: Literal["targetdp certificate 1"] = "targetdp certificate 1"
    release: str
    library: str
    time: str
    guarantee: Stated | None
    conditions: tuple[str, ...]
    distances: tuple[AtDistance, ...]
    classic: Classic
    mechanism: Mechanism
    scales: Scales
    rows: Annotated[int, Field(ge=1)]
    id: str
    features: tuple[str, ...]
    not_protected: tuple[str, ...]
    order: Literal["sorted by id", "as given"]
    pseudonyms: bool
    imputed: dict[str, float]
    made_for: Literal["cider"] | None
    tuned_on: TunedOn | None
    engine: Literal["local", "spark"]
    output: Output
    ledger: LedgerMark | None
    signature: Signature | None = None

    def facts(self) -> Facts:
        """What its conditions depend on."""
        return Facts(
            scales=self.scales.source, has_guarantee=self.guarantee is not None,
            keeps_order=self.order == "as given", kept=self.not_protected, features=len(self.features),
            imputed=self.imputed, pseudonyms=self.pseudonyms, partitions=self.mechanism.partitions,
            tuned_on=self.tuned_on, engine=self.engine, has_ledger=self.ledger is not None,
            part=None if self.ledger is None else self.ledger.part,
        )  # fmt: skip

    def text(self) -> str:
        """The certificate as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"

    def message(self) -> bytes:
        """What is signed: everything but the signature, in one canonical form."""
        rest = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()

    def signed(self, key: SigningKey) -> "Certificate":
        """The certificate with the data holder's signature."""
        signature = Signature(key=key.public, value=key.sign(self.message()))
        return self.model_copy(update={"signature": signature})


def make_certificate(
    release: str,
    settings: Settings,
    terms: Terms,
    scales: ColumnScales,
    rows: int,
    output: Output,
    mark: LedgerMark | None,
    library: str,
) -> Certificate:
    """Everything that may be said of a release, derived from what was really done."""
    law, g = terms.law, terms.guarantee
    values = {
        name: Scale(center=float(c), scale=float(s))
        for name, c, s in zip(settings.features, scales.center, scales.scale, strict=True)
    }
    return Certificate(
        release=release,
        library=library,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        guarantee=None if g is None else stated(g),
        conditions=terms.conditions,
        distances=() if g is None else at_distances(terms.charge, g),
        classic=NO_CLASSIC if g is None or not scales.may_be_published else classic(terms.charge, g),
        mechanism=Mechanism(
            name=terms.name,
            law=None if law is None else law.record(),
            deviation_per_column=None if law is None else law.deviation_per_column,
            noise_length=None if law is None else noise_length(law.deviation_per_column, law.dimensions),
            group_size=settings.group_size,
            partitions=terms.partitions,
        ),
        scales=Scales.model_validate(
            {
                "source": scales.source,
                "spent": None if scales.spent is None else asdict(scales.spent),
                "values": values if scales.may_be_published else None,
            }
        ),
        rows=rows,
        id=settings.id,
        features=settings.features,
        not_protected=settings.keep,
        order="as given" if settings.keep_order else "sorted by id",
        pseudonyms=settings.pseudonymize is not None,
        imputed=settings.constants(),
        made_for=settings.made_for,
        tuned_on=settings.tuned_on,
        engine=settings.engine,
        output=output,
        ledger=mark,
    )


def stated(guarantee: Guarantee) -> Stated:
    """A guarantee as plain data."""
    return Stated(**asdict(guarantee))


def noise_length(deviation: float, dimensions: int) -> float:
    """Root mean square length of the noise on a row."""
    return deviation * math.sqrt(dimensions)


def at_distances(charge: Charge, guarantee: Guarantee) -> tuple[AtDistance, ...]:
    """The true ε at the stated δ, and the best guess, at several distances; B among them."""
    found = []
    for r in sorted({*DISTANCES, guarantee.B}):
        loss = _loss(charge, r)
        epsilon = loss.epsilon(guarantee.delta)
        found.append(
            AtDistance(
                distance=r,
                epsilon=epsilon if math.isfinite(epsilon) else None,
                best_guess=min(1.0, (1 + loss.delta(0.0)) / 2),
            )
        )
    return tuple(found)


def classic(charge: Charge, guarantee: Guarantee) -> Classic:
    """Classic differential privacy, by the switch lemma and exactly; none where δ would reach 1."""
    switched = guarantee.classic()
    epsilon = _loss(charge, 2.0).epsilon(guarantee.delta)
    exact = Stated(B=2, epsilon=epsilon, delta=guarantee.delta) if 0 < epsilon < math.inf else None
    return Classic(switch_lemma=None if switched.is_vacuous else stated(switched), exact=exact)


def output_of(kind: Literal["parquet", "csv"], files: Sequence[Written], name: str | None) -> Output:
    """What was written: one file that will have a name, or (None) parts, hashed by their list."""
    listed = tuple(File(name=name or f.name, size=f.size, sha256=f.sha256) for f in files)
    return Output(format=kind, files=listed, sha256=listed[0].sha256 if name else list_hash(listed))


def list_hash(files: Sequence[File]) -> str:
    """SHA-256 of the lines "hash  name" of all parts."""
    return hashlib.sha256("".join(f"{f.sha256}  {f.name}\n" for f in files).encode()).hexdigest()


def _loss(charge: Charge, distance: float) -> PrivacyLoss:
    """All losses of a release together, given its scales where they are a condition."""
    bounded = Charge(law=charge.law, stated=charge.stated, scales=charge.scales)
    return compose(*bounded.losses(distance))
