"""The terms of a release: which noise, which guarantee, on which conditions, at which price."""

from dataclasses import dataclass

from targetdp._core import check
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms import (
    LEAST_NOISE,
    Mondrian,
    NoiseLaw,
    NoiseMechanism,
    Partitioned,
    Scores,
    delta_per_part,
    least_noise,
    noise_mechanisms,
)
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._caveats import NO_GUARANTEE, Facts, conditions_of
from targetdp.release._certificate._charge import Charge, SampleRelease, SampleSpending, spending_of
from targetdp.release._settings import MONDRIAN, Settings

# Two releases, the second made with weights that were learned from the first: who spends what.
#
# Weights are a function of the first release, so they cost nothing (Lemma 1). Somebody who is in one of the
# two releases only spends what that one costs. Somebody who is in both spends both (Lemma 2): the second
# may depend on what the first gave out, as long as its loss was fixed beforehand, and it is the same for
# all weights.


@dataclass(frozen=True)
class ReleaseTerms:
    """What will be done and what may be said of it.

    ``law`` is the noise for one row after the other; None for k-anonymity, which looks at all rows at once.
    ``guarantee`` includes what was paid for the column scales; it is None where there is none.
    """

    name: str
    law: NoiseLaw | None
    mondrian: Mondrian | None
    guarantee: Guarantee | None
    conditions: tuple[str, ...]
    charge: Charge
    why: str
    partitions: int | None = None
    """The paper's random parts, where they have set δ."""
    sample_spending: SampleSpending | None = None
    """Who spends what, where weights were learned from an earlier release."""


def make_terms(
    settings: Settings, scales: ColumnScales, rows: int, first: SampleRelease | None = None
) -> ReleaseTerms:
    """Work out the terms. They depend on the settings, the scales and the number of rows only.

    ``first`` is the release that the weights of scores were learned from, if it is known.
    """
    d = check.dimensions(len(settings.features), "number of features")
    if scales.source == "simulated":
        raise ValueError("scales were simulated: a release needs scales that are declared, or drawn for good")
    _must_be_the_samples(settings, scales, first)
    if settings.mechanism == MONDRIAN:
        if settings.group_size is None:
            raise ValueError("group_size must be given for mondrian")
        if rows < settings.group_size:
            raise ValueError(f"group_size = {settings.group_size} is more than the {rows} rows of the table")
        return ReleaseTerms(
            name=MONDRIAN, law=None, mondrian=Mondrian(settings.group_size), guarantee=None,
            conditions=conditions_of(_facts(settings, scales, False)),
            charge=Charge(unbounded=NO_GUARANTEE),
            why=f"mondrian, groups of {settings.group_size} or more: no guarantee",
        )  # fmt: skip
    name, mechanism, why = _mechanism(settings, rows)
    law = mechanism.law(d)
    own = mechanism.guarantee
    _must_keep(law, own)
    guarantee = own if scales.spent is None else sequential(scales.spent, own)
    unbounded = None if scales.may_be_published else scales.conditions[0]
    charge = Charge(law=law, scales=scales.spent, unbounded=unbounded)
    # Mechanisms without δ keep their own, whatever the parts.
    set_delta = settings.partitions is not None and own.delta == default_delta(rows, settings.partitions)
    partitions = settings.partitions if set_delta else None
    spending = None
    if first is not None:
        spending = spending_of(
            first, guarantee, charge, scored=settings.score_sample, some_have_left=settings.some_have_left,
            same=first.has_scales(settings.features, scales),
        )  # fmt: skip
    conditions = conditions_of(_facts(settings, scales, True, partitions, spending))
    return ReleaseTerms(name, law, None, guarantee, conditions, charge, why, partitions, spending)


def _must_be_the_samples(settings: Settings, scales: ColumnScales, first: SampleRelease | None) -> None:
    """Scales that are said to be the sample's are, and it has paid for them, or they were declared for it."""
    if scales.source not in {"sample", "sample-declared"}:
        return
    same = first is not None and first.has_scales(settings.features, scales)
    if scales.source == "sample":
        known = first is not None and first.charge.scales is not None and first.estimated_there
        what = "the sample has paid for"
    else:
        known, what = first is not None and first.source == "declared", "were declared for the sample"
    if not (same and known):
        raise ValueError(f"scales are not those that {what}: give the sample, and scales = 'sample'")


def default_delta(rows: int, partitions: int | None) -> float:
    """1/(rows + 1), or the paper's δ of one of its random parts."""
    return delta_per_part(rows, partitions or 1)


def _mechanism(settings: Settings, rows: int) -> tuple[str, NoiseMechanism, str]:
    if settings.B is None or settings.epsilon is None:
        raise ValueError("B and epsilon must be given")
    delta = default_delta(rows, settings.partitions) if settings.delta is None else settings.delta
    asked = Guarantee(settings.B, settings.epsilon, delta)
    if settings.mechanism == LEAST_NOISE:
        choice = least_noise(asked, len(settings.released))
        name, mechanism, why = choice.name, choice.mechanism, choice.why
    else:
        name, mechanism = settings.mechanism, noise_mechanisms()[settings.mechanism](asked)
        why = f"{name} was asked for"
    if settings.partitions is not None:
        if settings.partitions > rows:
            raise ValueError(f"partitions = {settings.partitions} is more than the {rows} rows of the table")
        mechanism = Partitioned(mechanism, parts=settings.partitions)
    if settings.asked is not None:
        mechanism = Scores(settings.asked.in_order_of(settings.features), mechanism)
    return name, mechanism, why


def _must_keep(law: NoiseLaw, guarantee: Guarantee) -> None:
    """No release before its noise was checked against its claim, by the way that verifying takes."""
    if law.privacy_loss(guarantee.B).delta(guarantee.epsilon) > guarantee.delta:
        raise RuntimeError(f"{law.family} noise does not keep {guarantee}: please report this")


def _facts(
    settings: Settings,
    scales: ColumnScales,
    has_guarantee: bool,
    partitions: int | None = None,
    spending: SampleSpending | None = None,
) -> Facts:
    return Facts(
        scales=scales.source, has_guarantee=has_guarantee, keeps_order=settings.keep_order,
        kept=settings.keep, features=len(settings.features), imputed=settings.constants(),
        pseudonyms=settings.pseudonymize is not None, partitions=partitions, tuned_on=settings.tuned_on,
        engine=settings.engine, has_ledger=settings.ledger is not None, part=settings.part,
        scores=() if settings.asked is None else settings.asked.scores, no_sample=settings.no_sample,
        sample_spending=spending,
    )  # fmt: skip
