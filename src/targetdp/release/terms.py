"""The terms of a release: which noise, which guarantee, on which conditions, at which price."""

from dataclasses import dataclass

from targetdp import check
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms import Mondrian, NoiseMechanism, Partitioned, least_noise
from targetdp.mechanisms.choice import REGISTER
from targetdp.mechanisms.law import NoiseLaw
from targetdp.mechanisms.partition import delta_per_part
from targetdp.release.charge import Charge
from targetdp.release.settings import LEAST_NOISE, MONDRIAN, Settings
from targetdp.scales import ColumnScales

ALWAYS = (
    "Distances are measured between rows as they entered the mechanism: columns scaled as stated, then rows "
    "clipped to the unit ball.",
    "One row per person. A person with m rows has group privacy m: (m·ε, δ·(e^(mε) − 1)/(e^ε − 1)).",
    "Nothing is promised about who is in the table: ids and the number of rows are public.",
    "Nothing done to the values before (choosing columns, filling gaps, combining columns) was learned from "
    "these same rows.",
    "That the table was accepted tells that its ids are all different, its values numbers, and no column "
    "constant.",
    "AES-256 is not broken, the operating system's generator is sound, nobody read the process's memory, and "
    "the time that the release took was not measured.",
)

_KEPT_ORDER = "Rows are in the order of the input: the guarantee does not cover what that order tells."
_IMPUTED = "Missing values were replaced by constants that were declared, not learned: {constants}."
_TUNED = {
    None: "How B was chosen is not stated: a choice made by looking at these people's data is a disclosure.",
    "public": "B was chosen on public data.",
    "synthetic": "B was chosen on synthetic data.",
    "this-data": (
        "B was chosen by looking at results on these people's data: that choice is a disclosure that the "
        "guarantee does not cover."
    ),
}
_KEPT = "Columns passed on as they were are NOT protected: {names}."
_PSEUDONYMS = (
    "Ids are keyed hashes: whoever has the key, or can ask for a person's pseudonym, knows who is who."
)
_PART = "This part ({part}) shares no person with any other named part of the population; that was declared."
_RANDOM_PARTS = (
    "δ was set for {parts} random parts of the table, 1/(⌈rows/{parts}⌉ + 1), as in the paper: about {parts} "
    "times larger than 1/(rows + 1)."
)
NO_GUARANTEE = (
    "k-anonymity gives no differential privacy guarantee: nothing bounds what is learned about a person."
)


@dataclass(frozen=True)
class Terms:
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


def make_terms(settings: Settings, scales: ColumnScales, rows: int) -> Terms:
    """Work out the terms. They depend on the settings, the scales and the number of rows only."""
    d = check.dimensions(len(settings.features), "number of features")
    conditions = _conditions(settings, scales)
    if settings.mechanism == MONDRIAN:
        if settings.group_size is None:
            raise ValueError("group_size must be given for mondrian")
        if rows < settings.group_size:
            raise ValueError(f"group_size = {settings.group_size} is more than the {rows} rows of the table")
        return Terms(
            name=MONDRIAN, law=None, mondrian=Mondrian(settings.group_size), guarantee=None,
            conditions=(NO_GUARANTEE, *conditions), charge=Charge(unbounded=NO_GUARANTEE),
            why=f"mondrian, groups of {settings.group_size} or more: no guarantee",
        )  # fmt: skip
    name, mechanism, why = _mechanism(settings, rows, d)
    law = mechanism.law(d)
    own = mechanism.guarantee
    _must_keep(law, own)
    guarantee = own if scales.spent is None else sequential(scales.spent, own)
    unbounded = None if scales.may_be_published else scales.conditions[0]
    charge = Charge(law=law, scales=scales.spent, unbounded=unbounded)
    return Terms(name, law, None, guarantee, conditions, charge, why)


def default_delta(rows: int, partitions: int | None) -> float:
    """1/(rows + 1), or the paper's δ of one of its random parts."""
    return delta_per_part(rows, partitions or 1)


def _mechanism(settings: Settings, rows: int, d: int) -> tuple[str, NoiseMechanism, str]:
    if settings.B is None or settings.epsilon is None:
        raise ValueError("B and epsilon must be given")
    delta = default_delta(rows, settings.partitions) if settings.delta is None else settings.delta
    asked = Guarantee(settings.B, settings.epsilon, delta)
    if settings.mechanism == LEAST_NOISE:
        choice = least_noise(asked, d)
        name, mechanism, why = choice.name, choice.mechanism, choice.why
    else:
        name, mechanism = settings.mechanism, REGISTER[settings.mechanism](asked)
        why = f"{name} was asked for"
    if settings.partitions is not None:
        mechanism = Partitioned(mechanism, parts=settings.partitions)
    return name, mechanism, why


def _must_keep(law: NoiseLaw, guarantee: Guarantee) -> None:
    """No release before its noise was checked against its claim, by the way that verifying takes."""
    if law.privacy_loss(guarantee.B).delta(guarantee.epsilon) > guarantee.delta:
        raise RuntimeError(f"{law.family} noise does not keep {guarantee}: please report this")


def _conditions(settings: Settings, scales: ColumnScales) -> tuple[str, ...]:
    found = [*scales.conditions, *ALWAYS]
    if settings.keep_order:
        found.append(_KEPT_ORDER)
    if settings.keep:
        found.append(_KEPT.format(names=", ".join(settings.keep)))
    if settings.impute is not None:
        named = ", ".join(f"{name} = {value:g}" for name, value in settings.constants().items())
        every = "" if isinstance(settings.impute, dict) else f"{settings.impute:g} in every column"
        found.append(_IMPUTED.format(constants=every or named))
    if settings.pseudonymize is not None:
        found.append(_PSEUDONYMS)
    if settings.part is not None:
        found.append(_PART.format(part=settings.part))
    if settings.partitions is not None:
        found.append(_RANDOM_PARTS.format(parts=settings.partitions))
    if settings.mechanism != MONDRIAN:
        found.append(_TUNED[settings.tuned_on])
    return tuple(found)
