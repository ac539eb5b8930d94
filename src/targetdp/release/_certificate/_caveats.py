"""What must be said beside a guarantee: a function of facts that a certificate states.

Whoever verifies a certificate derives its conditions again from the same facts, so that none can be left out.
"""

from dataclasses import dataclass

from targetdp._core import up
from targetdp.guarantee import Guarantee
from targetdp.normalization import CONDITIONS
from targetdp.release._certificate._charge import SampleSpending

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
NO_GUARANTEE = (
    "k-anonymity gives no differential privacy guarantee: nothing bounds what is learned about a person."
)
NO_LEDGER = (
    "Made without a ledger: nothing here says what else was released about these people, and all releases "
    "about a person add up."
)
LEDGER = (
    "Other releases about these people add up with this one: the data holder's ledger says to how much. Its "
    "sum holds for settings that were not chosen by looking at earlier releases."
)
_ORDER = "Rows are in the order of the input: the guarantee does not cover what that order tells."
_IMPUTED = "Missing values were replaced by constants that were declared, not learned: {constants}."
_KEPT = "Columns passed on as they were are NOT protected: {names}."
_PSEUDONYMS = (
    "Ids are keyed hashes: whoever has the key, or can ask for a person's pseudonym, knows who is who."
)
_PART = "This part ({part}) shares no person with any other named part of the population; that was declared."
_RANDOM_PARTS = (
    "δ was set for {parts} random parts of the table, 1/(⌈rows/{parts}⌉ + 1), as in the paper: about {parts} "
    "times larger than 1/(rows + 1)."
)
_SPARK = (
    "Each row's noise was keyed by a 96-bit tag of its id: two given people share a tag with probability "
    "2⁻⁹⁶, and then the difference of their rows would show. δ does not include that."
)
_SCORES = (
    "Released {sums} of the protected columns ({names}), with weights that the data holder normalized; "
    "whoever chose them chose what is told."
)
_NO_ORIGIN = (
    "It is not stated from which release, if any, the weights were learned: for people in it, both add up."
)
_NO_SAMPLE = (
    "Nobody in the table is in the release that the weights were learned from, if any; that was declared."
)
_LEFT_OUT = (
    "People of release {release} (the sample, {rows:,} rows), from which the weights were learned, as was "
    "declared, are left out, so that nobody is in both of these two. Outside the sample: {outside}. Inside "
    "it: {inside}, by that release and on its own conditions."
)
_HAVE_LEFT = "People of the sample who are not in the table have left; that was declared."
_SCORED = (
    "People of release {release} (the sample, {rows:,} rows), from which the weights were learned, as was "
    "declared, are scored, too. Outside the sample: {outside}. Inside it both releases add up to {inside}, "
    "by {how}, for rows that are within B of each other in each of the two releases, on the conditions of "
    "both; that holds for a B, ε and δ that were not chosen by looking at the first."
)
_SAMPLE_SCALES = {
    "data": (
        "What is stated for people inside the sample is conditional: its column scales were its own means "
        "and deviations, which no one paid for, so it holds only between samples that have the same column "
        "scales."
    ),
    "confidential": (
        "What is stated for people inside the sample is conditional: its column scales were learned from "
        "other data about the same people, which no one paid for, so it holds only given these scales. The "
        "weights were learned under them, and may carry something about people outside the sample, if those "
        "data were about them, too: what is stated for them does not cover that."
    ),
}
"""By where the sample's column scales came from, if no one paid for them."""
_HOW = {True: "the exact curves of both noises", False: "Lemma 2"}
"""By whether both releases are known to scale the same columns alike."""
_TUNED = {
    None: "How B was chosen is not stated: a choice made by looking at these people's data is a disclosure.",
    "public": "B was chosen on public data.",
    "synthetic": "B was chosen on synthetic data.",
    "this-data": (
        "B was chosen by looking at results on these people's data: that choice is a disclosure that the "
        "guarantee does not cover."
    ),
}


@dataclass(frozen=True)
class Facts:
    """What conditions depend on. ``partitions`` counts only where it has set δ."""

    scales: str
    has_guarantee: bool
    keeps_order: bool
    kept: tuple[str, ...]
    features: int
    imputed: dict[str, float]
    pseudonyms: bool
    partitions: int | None
    tuned_on: str | None
    engine: str
    has_ledger: bool
    part: str | None
    scores: tuple[str, ...] = ()
    no_sample: bool = False
    sample_spending: SampleSpending | None = None


def conditions_of(facts: Facts) -> tuple[str, ...]:
    """Everything that must be said, the most important first."""
    found = [*CONDITIONS[facts.scales], *ALWAYS]
    if not facts.has_guarantee:
        found.insert(0, NO_GUARANTEE)
    if facts.scores:
        found += _scores(facts)
    said_if = (
        (facts.keeps_order, _ORDER),
        (facts.kept, _KEPT.format(names=", ".join(facts.kept))),
        (facts.imputed, _IMPUTED.format(constants=_constants(facts))),
        (facts.pseudonyms, _PSEUDONYMS),
        (facts.part is not None, _PART.format(part=facts.part)),
        (facts.partitions is not None, _RANDOM_PARTS.format(parts=facts.partitions)),
        (facts.engine == "spark", _SPARK),
        (facts.has_guarantee, _TUNED[facts.tuned_on]),
    )
    found += [text for holds, text in said_if if holds]
    found.append(LEDGER if facts.has_ledger else NO_LEDGER)
    return tuple(found)


def _scores(facts: Facts) -> list[str]:
    """What scores are, and who of the people is in the release that their weights were learned from."""
    count, names = len(facts.scores), ", ".join(facts.scores)
    sums = "is one weighted sum" if count == 1 else f"are {count} weighted sums"
    found = [_SCORES.format(sums=sums, names=names)]
    spending = facts.sample_spending
    if spending is None:
        return [*found, _NO_SAMPLE if facts.no_sample else _NO_ORIGIN]
    found.append(
        (_SCORED if spending.scored else _LEFT_OUT).format(
            release=spending.first.release, rows=spending.first.rows, outside=told(spending.outside),
            inside=told(spending.inside), how=_HOW[spending.same_scales],
        )
    )  # fmt: skip
    if spending.first.source in _SAMPLE_SCALES:
        found.append(_SAMPLE_SCALES[spending.first.source])
    return [*found, _HAVE_LEFT] if spending.some_have_left else found


def told(guarantee: Guarantee) -> str:
    """A guarantee in a sentence; neither ε nor δ is rounded down."""
    return f"(B = {guarantee.B:.12g}, ε = {up(guarantee.epsilon, 6)}, δ = {up(guarantee.delta)})"


def _constants(facts: Facts) -> str:
    values = set(facts.imputed.values())
    if len(values) == 1 and len(facts.imputed) == facts.features:
        return f"{values.pop():g} in every column"
    return ", ".join(f"{name} = {value:g}" for name, value in facts.imputed.items())
