"""The certificate of a release: what was done, what it guarantees, on which conditions; signed.

It holds nothing that the release itself does not reveal: no statistic of the data that was not paid for.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from targetdp._core import __version__
from targetdp._files import canonical
from targetdp.accounting import PrivacyLoss, compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseLaw, law_of
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._agreed import WithoutPromise
from targetdp.release._certificate._caveats import Facts
from targetdp.release._certificate._charge import Charge
from targetdp.release._certificate._parts import (
    MOST_SUCCESSIONS,
    Asked,
    AtDistance,
    CertificatePart,
    Classic,
    DeskRecord,
    Finite,
    LedgerMark,
    MechanismRecord,
    Output,
    Scale,
    Scales,
    Signature,
    Stated,
    Together,
)
from targetdp.release._decision._asked import AskedDecision
from targetdp.release._decision._bits import Cuts
from targetdp.release._policy import ReleaseKind
from targetdp.release._prepare import Prepared
from targetdp.release._request import TunedOn
from targetdp.release._terms import ReleaseTerms, facts_of, is_large
from targetdp.release._trust._keys import SigningKey, Succession
from targetdp.table import AnyKind, Encoding

SUFFIX = ".certificate.json"
PAGE_SUFFIX = ".certificate.md"
DISTANCES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Where the true ε is stated; B itself is added."""


class Certificate(CertificatePart):
    """What a data holder hands over with a private table."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp certificate")

    format: Literal["targetdp certificate 2"] = "targetdp certificate 2"
    release: str
    library: str
    time: str
    desk: DeskRecord
    request: Asked
    guarantee: Stated
    conditions: tuple[str, ...]
    distances: tuple[AtDistance, ...]
    classic: Classic
    mechanism: MechanismRecord
    scales: Scales
    rows: Annotated[int, Field(ge=1)]
    id: str
    features: tuple[str, ...]
    scores: tuple[str, ...] = Field(
        description="the columns that were released in place of the features, if they are scores"
    )
    decisions: tuple[AskedDecision, ...] = Field(
        description="what was decided about each person, in the words of the request"
    )
    cuts: tuple[tuple[int, ...], ...] = Field(
        description="for each decision the cut of each batch, in steps of 2⁻⁵⁰; verify finds them again"
    )
    learned_from: str | None
    left_out: tuple[str, ...]
    public: dict[str, str] = Field(description="columns that were passed on, and why they are public")
    kinds: dict[str, AnyKind] = Field(
        default_factory=dict, description="columns that are no plain numbers, and how they became features"
    )
    gaps: dict[str, Finite | str]
    pseudonyms: bool
    tuned_on: TunedOn | None
    engine: str
    output: Output
    ledger: LedgerMark
    together: Together
    agreed: tuple[WithoutPromise, ...] = Field(default=(), description="to whom nothing is promised")
    signature: Signature | None = None

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns in the released table that come from protected ones."""
        return self.scores or tuple(one.name for one in self.decisions) or self.features

    @property
    def kind(self) -> ReleaseKind:
        """What was released."""
        return "scores" if self.scores else "decisions" if self.decisions else "rows"

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the released table."""
        return (self.id, *self.released, *self.public)

    @property
    def encoding(self) -> Encoding:
        """How columns of the table became features."""
        return Encoding(self.kinds, self.gaps)

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that features were made of."""
        return self.encoding.sources(self.features)

    def facts(self) -> Facts:
        """What its conditions depend on."""
        return Facts(
            scales=self.scales.source, public=tuple(self.public), columns=len(self.sources),
            gaps=self.gaps, kinds=self.kinds, pseudonyms=self.pseudonyms,
            tuned_on=self.tuned_on, engine=self.engine,
            scores=self.scores, decisions=self.decisions, learned_from=self.learned_from,
            left_out=self.left_out,
            stated=self.together.value(), large_delta=is_large(self.guarantee.delta, self.rows),
            rows=self.rows, agreed=self.agreed,
        )  # fmt: skip

    def charge(self) -> Charge:
        """What the release costs."""
        spent = self.scales.spent
        return Charge(law_of(self.mechanism.law), None if spent is None else spent.value())

    def text(self) -> str:
        """The certificate as JSON."""
        return json.dumps(self._plain(), indent=2, ensure_ascii=False) + "\n"

    def message(self) -> bytes:
        """What is signed: everything but the signature's value, in one canonical form."""
        return canonical(self._plain({"signature": {"value"}})).encode()

    def _plain(self, exclude: dict[str, set[str]] | None = None) -> dict[str, Any]:
        """All of it; where nobody agreed it is what it was before anybody could, so that older ones hold."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude=exclude)
        for part in (found, found["together"]):
            if not part["agreed"]:
                del part["agreed"]
        if not found["kinds"]:
            del found["kinds"]
        return found

    def signed(self, key: SigningKey, succession: Sequence[Succession] = ()) -> "Certificate":
        """The certificate with the data holder's signature.

        Args:
            key: Her key.
            succession: By which steps it follows from earlier ones. It is signed, too: nobody takes steps of
                another certificate, or leaves some out.
        """
        steps = tuple(succession)[-MOST_SUCCESSIONS:]
        draft = self.model_copy(update={"signature": Signature(key=key.public, succession=steps, value="")})
        signature = Signature(key=key.public, succession=steps, value=key.sign(draft.message()))
        return self.model_copy(update={"signature": signature})

    def _repr_html_(self) -> str:
        from targetdp.release._certificate._page import page_html  # noqa: PLC0415 (only a notebook needs it)

        return page_html(self)


def make_certificate(
    release: str,
    prepared: Prepared,
    terms: ReleaseTerms,
    scales: ColumnScales | None,
    rows: int,
    cuts: Cuts,
    output: Output,
    mark: LedgerMark,
) -> Certificate:
    """Everything that may be said of a release, derived from what was really done."""
    if prepared.stated is None:
        raise RuntimeError("a release without a limit: please report this")
    law, g, request = terms.law, terms.guarantee, prepared.request
    facts = facts_of(prepared, is_large(terms.guarantee.delta, rows), rows, terms.agreed)
    values, spent = {}, None
    if scales is not None:
        both = zip(scales.center.tolist(), scales.scale.tolist(), strict=True)
        values, spent = dict(zip(prepared.features, both, strict=True)), scales.spent
    noise = law.noisy
    return Certificate(
        release=release,
        library=__version__,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        desk=DeskRecord(
            id=prepared.desk.id, name=prepared.policy.name, policy=prepared.policy_version,
            policy_sha256=prepared.policy.sha256,
        ),
        request=Asked(
            sha256=request.sha256, signer=prepared.signer, asked_by=request.asked_by,
            program=request.program, why=request.why, page=request.page,
        ),
        guarantee=stated(g),
        conditions=terms.conditions,
        distances=at_distances(terms.charge, g),
        classic=classic(terms.charge, g),
        mechanism=MechanismRecord(
            name=terms.name, law=law.record(),
            deviation_per_column=None if noise is None else noise.deviation_per_column,
            noise_length=None if noise is None else noise_length(noise),
        ),
        scales=Scales(
            source=prepared.scales_source,
            reason=prepared.scales_reason,
            spent=None if spent is None else stated(spent),
            values={name: Scale(center=center, scale=scale) for name, (center, scale) in values.items()},
            estimated=prepared.estimated,
            releases=tuple(dict.fromkeys(prepared.scales_of.values())),
        ),
        rows=rows,
        id=prepared.names.column,
        features=prepared.features,
        scores=facts.scores,
        decisions=facts.decisions,
        cuts=cuts,
        learned_from=facts.learned_from,
        left_out=facts.left_out,
        public=prepared.public,
        kinds=dict(facts.kinds),
        gaps=dict(facts.gaps),
        pseudonyms=facts.pseudonyms,
        tuned_on=facts.tuned_on,
        engine=facts.engine,
        output=output,
        ledger=mark,
        together=Together(
            near=stated(prepared.stated.near), classic=stated(prepared.stated.classic),
            limits=prepared.stated.limits, forgot=prepared.stated.forgot,
            agreed=prepared.stated.agreed,
        ),
        agreed=terms.agreed,
    )  # fmt: skip


def stated(guarantee: Guarantee) -> Stated:
    """A guarantee as plain data."""
    return Stated(**asdict(guarantee))


def noise_length(law: NoiseLaw) -> float:
    """Root mean square length of the noise on a row, or on its scores."""
    return law.deviation_per_column * math.sqrt(law.added.dimensions)


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
    """All losses of a release together."""
    return compose(*charge.losses(distance))
