"""The certificate of a release: what was done, what it guarantees, on which conditions; signed.

It holds nothing that the release itself does not reveal: no statistic of the data that was not paid for.
"""

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from targetdp.accounting import PrivacyLoss, compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseLaw, law_of
from targetdp.normalization import ColumnScales, ReleaseSource
from targetdp.release._certificate._caveats import Facts
from targetdp.release._certificate._charge import Charge, SampleRelease, SampleSpending
from targetdp.release._keys import SigningKey
from targetdp.release._ledger._entries import Head
from targetdp.release._settings import EngineName, Settings, TunedOn
from targetdp.release._terms import ReleaseTerms

SUFFIX = ".certificate.json"
PAGE_SUFFIX = ".certificate.md"
DISTANCES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Where the true ε is stated; B itself is added."""
_FOR_SCORES = frozenset({"scores", "sample", "no_sample"})
_LATER = {"scales": frozenset({"estimated_here"}), "sample": frozenset({"scales"})}
"""Fields of parts that older certificates do not have."""


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


class Certificate(CertificatePart):
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
    mechanism: MechanismRecord
    scales: Scales
    rows: Annotated[int, Field(ge=1)]
    id: str
    features: tuple[str, ...]
    scores: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        None, description="the columns that were released in place of the features, if they are scores"
    )
    sample: Sample | None = None
    no_sample: bool = False
    not_protected: tuple[str, ...]
    order: Literal["sorted by id", "as given"]
    pseudonyms: bool
    imputed: dict[str, float]
    made_for: Literal["cider"] | None
    tuned_on: TunedOn | None
    engine: EngineName
    output: Output
    ledger: LedgerMark | None
    signature: Signature | None = None

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns with noise in the released table."""
        return self.features if self.scores is None else self.scores

    def sample_spending(self) -> SampleSpending | None:
        """Who spends what, as it is stated."""
        s = self.sample
        if s is None or self.guarantee is None:
            return None
        return SampleSpending(
            s.first(), s.scored, s.some_have_left, s.same_scales, self.guarantee.value(), s.inside.value()
        )

    def facts(self) -> Facts:
        """What its conditions depend on."""
        return Facts(
            scales=self.scales.source, has_guarantee=self.guarantee is not None,
            keeps_order=self.order == "as given", kept=self.not_protected, features=len(self.features),
            imputed=self.imputed, pseudonyms=self.pseudonyms, partitions=self.mechanism.partitions,
            tuned_on=self.tuned_on, engine=self.engine, has_ledger=self.ledger is not None,
            part=None if self.ledger is None else self.ledger.part, scores=self.scores or (),
            no_sample=self.no_sample, sample_spending=self.sample_spending(),
        )  # fmt: skip

    def text(self) -> str:
        """The certificate as JSON."""
        return json.dumps(self._plain(), indent=2, ensure_ascii=False) + "\n"

    def message(self) -> bytes:
        """What is signed: everything but the signature, in one canonical form."""
        rest = {name: value for name, value in self._plain().items() if name != "signature"}
        return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()

    def _plain(self) -> dict[str, Any]:
        """Every field; of those that older certificates do not have none that says nothing."""
        plain = _without_silent(self, self.model_dump(mode="json"), _FOR_SCORES)
        for name in _LATER.keys() & plain.keys():
            plain[name] = _without_silent(getattr(self, name), plain[name], _LATER[name])
        return plain

    def signed(self, key: SigningKey) -> "Certificate":
        """The certificate with the data holder's signature."""
        signature = Signature(key=key.public, value=key.sign(self.message()))
        return self.model_copy(update={"signature": signature})


def _without_silent(part: CertificatePart, plain: dict[str, Any], later: frozenset[str]) -> dict[str, Any]:
    """A part as plain data, without those of some fields that are at their defaults."""
    fields = type(part).model_fields
    return {
        name: value
        for name, value in plain.items()
        if name not in later or getattr(part, name) != fields[name].default
    }


def make_certificate(
    release: str,
    settings: Settings,
    terms: ReleaseTerms,
    scales: ColumnScales,
    rows: int,
    output: Output,
    mark: LedgerMark | None,
    library: str,
    *,
    estimated_here: bool = False,
) -> Certificate:
    """Everything that may be said of a release, derived from what was really done.

    ``estimated_here``: whether private scales are this release's own, and were not brought along.
    """
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
        mechanism=MechanismRecord(
            name=terms.name,
            law=None if law is None else law.record(),
            deviation_per_column=None if law is None else law.deviation_per_column,
            noise_length=None if law is None else noise_length(law),
            group_size=settings.group_size,
            partitions=terms.partitions,
        ),
        scales=Scales.model_validate(
            {
                "source": scales.source,
                "spent": None if scales.spent is None else asdict(scales.spent),
                "values": values if scales.may_be_published else None,
                "estimated_here": estimated_here and scales.source == "private",
            }
        ),
        rows=rows,
        id=settings.id,
        features=settings.features,
        scores=None if settings.asked is None else settings.asked.scores,
        sample=None if terms.sample_spending is None else _sample(terms.sample_spending),
        no_sample=settings.no_sample,
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


def noise_length(law: NoiseLaw) -> float:
    """Root mean square length of the noise on a row, or on its scores."""
    return law.deviation_per_column * math.sqrt(law.added.dimensions)


def _sample(spending: SampleSpending) -> Sample:
    first = spending.first
    if first.charge.law is None:
        raise ValueError("the sample's release has no noise on record")
    return Sample(
        release=first.release, sha256=first.sha256, rows=first.rows, guarantee=stated(first.guarantee),
        law=first.charge.law.record(),
        spent=None if first.charge.scales is None else stated(first.charge.scales),
        scored=spending.scored, some_have_left=spending.some_have_left, same_scales=spending.same_scales,
        inside=stated(spending.inside), scales=first.source,
    )  # fmt: skip


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
                best_guess=loss.best_guess(),
            )
        )
    return tuple(found)


def classic(charge: Charge, guarantee: Guarantee) -> Classic:
    """Classic differential privacy, by the switch lemma and exactly; none where δ would reach 1."""
    switched = guarantee.classic()
    epsilon = _loss(charge, 2.0).epsilon(guarantee.delta)
    exact = Stated(B=2, epsilon=epsilon, delta=guarantee.delta) if 0 < epsilon < math.inf else None
    return Classic(switch_lemma=None if switched.is_vacuous else stated(switched), exact=exact)


def _loss(charge: Charge, distance: float) -> PrivacyLoss:
    """All losses of a release together, given its scales where they are a condition."""
    bounded = Charge(law=charge.law, stated=charge.stated, scales=charge.scales)
    return compose(*bounded.losses(distance))
