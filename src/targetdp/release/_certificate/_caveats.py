"""What must be said beside a guarantee: a function of facts that a certificate states.

Whoever verifies a certificate derives its conditions again from the same facts, so that none can be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from targetdp._core import exact, up
from targetdp.guarantee import Guarantee
from targetdp.normalization import CONDITIONS
from targetdp.release._certificate._agreed import (
    WithoutPromise,
    agreed_in_all,
    agreed_left_out,
    learned_from_agreed,
    no_promise,
)
from targetdp.release._decision._asked import AskedDecision
from targetdp.release._request import TunedOn
from targetdp.table import AnyKind, Constant, first_names

_DISTANCES = (
    "Distances are measured between rows as they entered the mechanism: columns scaled as stated, then rows "
    "clipped to the unit ball."
)
_NUMBERS = (
    "That the table was accepted tells that its ids are all different, its values numbers, and no column "
    "constant."
)
_AS_THEY_ARE = (
    "The promise is for any two rows, however far apart: nothing was scaled or clipped. Columns were taken "
    "as they are; whoever has no score, such as for a missing value without a declared constant, "
    "gets the fixed answer no, drawn as any other.",
    "That the table was accepted tells that its ids are all different, and that what stands in columns of "
    "numbers is a number, or missing.",
)
"""Of decisions under classic differential privacy, in place of what scaled rows need."""
ALWAYS = (
    "One row per person. A person with m rows has group privacy m: (m·ε, δ·(e^(mε) − 1)/(e^ε − 1)).",
    "Nothing is promised about who is in the table: ids and the number of rows are public.",
    "Nothing done to the values before (choosing columns, filling gaps, combining columns) was learned from "
    "these same rows.",
    "AES-256 is not broken, the operating system's generator is sound, nobody read the process's memory, and "
    "the time that the release took was not measured.",
)
DELTA = (
    "δ bounds by how much probabilities may differ beyond the factor e^ε. It is no chance that a row goes "
    "out as it is: noise is added to every row, and what the rarest draws tell beyond ε grows gradually."
)
"""What δ means for noise that is added: said wherever δ is printed with a release."""
_LARGE_DELTA = (
    "δ is above 1 in the number of rows, on the data holder's word: so large a δ by itself excludes little; "
    "what the noise does is told by ε at smaller δ."
)
_GAPS = "Missing values were replaced by constants that were declared, not learned: {constants}."
_KINDS = (
    "Values that are no plain numbers became numbers by maps that the data holder has declared, the same for "
    "every table and on record here ({names}): how far apart two people are in such a column is what its map "
    "says. {accepted}"
)
_ACCEPTED = "That the table was accepted tells that its values there are of the declared kind."
_NOT_DECLARED = (
    "Whoever has a value that is not of the declared kind has no score, and gets the fixed answer no, also "
    "where missing values have a constant."
)
_PUBLIC = (
    "Columns that the data holder has declared public were passed on as they were and are NOT protected: "
    "{names}."
)
_PSEUDONYMS = (
    "Ids are keyed hashes: whoever has the key, or can ask for a person's pseudonym, knows who is who."
)
_SPARK = (
    "Each row's noise was keyed by a 96-bit tag of its id: two given people share a tag with probability "
    "2⁻⁹⁶, and then the difference of their rows would show. δ does not include that."
)
_SCORES = (
    "Released {sums} of the protected columns ({names}), with weights that the data holder normalized; "
    "whoever chose them chose what is told."
)
_DECISIONS = (
    "Released {is_one} about each person ({names}), a function of her own row and of a cut that is made of "
    "the request and of answers that are in this release. Each answer is drawn: it may be wrong, as often as "
    "the guarantee needs. Whoever chose the question chose what is told, and a second question, or the same "
    "one again, is paid for again."
)
_MODELS = (
    "Models of others (SHA-256 {models}) were run one row at a time, in a process without keys, files or "
    "network. A row without an answer is a no, drawn as any other; when the release was published depended "
    "on the number of rows alone."
)
_LEARNED = (
    "{what} learned, as was declared, from release {release}: people who are in both are charged for both."
)
_LEFT_OUT = "People of {releases} were left out: nothing of their rows was looked at here."
_TUNED = {
    None: "How B was chosen is not stated: a choice made by looking at these people's data is a disclosure.",
    "public": "B was chosen on public data, as whoever asked says.",
    "synthetic": "B was chosen on synthetic data, as whoever asked says.",
    "this-data": (
        "B was chosen by looking at results on these people's data: that choice is a disclosure that the "
        "guarantee does not cover."
    ),
}


@dataclass(frozen=True)
class Facts:
    """What conditions depend on."""

    scales: str
    public: tuple[str, ...]
    columns: int
    """Columns of the table that features are made of."""
    gaps: Mapping[str, Constant]
    pseudonyms: bool
    tuned_on: TunedOn | None
    engine: str
    kinds: Mapping[str, AnyKind] = field(default_factory=dict)
    scores: tuple[str, ...] = ()
    decisions: tuple[AskedDecision, ...] = ()
    learned_from: str | None = None
    left_out: tuple[str, ...] = ()
    stated: "AllReleases | None" = None
    large_delta: bool = False
    """Whether δ is above 1 in the number of rows."""
    rows: int = 0
    agreed: tuple[WithoutPromise, ...] = ()
    """People who agreed, to whom nothing is promised."""


def conditions_of(facts: Facts) -> tuple[str, ...]:
    """Everything that must be said, the most important first."""
    count, names = len(facts.scores), ", ".join(facts.scores)
    sums = "is one weighted sum" if count == 1 else f"are {count} weighted sums"
    decided = ", ".join(one.name for one in facts.decisions)
    is_one = "is one decision" if len(facts.decisions) == 1 else f"are {len(facts.decisions)} decisions"
    models = ", ".join(dict.fromkeys(one.model for one in facts.decisions if one.model is not None))
    learned = "The weights were" if facts.scores else "What people are judged by was"
    from_agreed = learned_from_agreed(learned, facts.learned_from, facts.agreed)
    left_out, agreed_out = agreed_left_out(facts.left_out, facts.agreed)
    releases = f"release{'s' if len(left_out) > 1 else ''} {', '.join(left_out)}"
    said_if = (
        (facts.scores, _SCORES.format(sums=sums, names=names)),
        (facts.decisions, _DECISIONS.format(is_one=is_one, names=decided)),
        (models, _MODELS.format(models=models)),
        (from_agreed, from_agreed or ""),
        (
            facts.learned_from and not from_agreed,
            _LEARNED.format(what=learned, release=facts.learned_from),
        ),
        (left_out, _LEFT_OUT.format(releases=releases)),
        (agreed_out, agreed_out),
        (facts.large_delta, _LARGE_DELTA),
        (
            facts.kinds,
            _KINDS.format(
                names=first_names(facts.kinds),
                accepted=_NOT_DECLARED if facts.scales == "none" else _ACCEPTED,
            ),
        ),
        (facts.public, _PUBLIC.format(names=", ".join(facts.public))),
        (facts.gaps, _GAPS.format(constants=_constants(facts))),
        (facts.pseudonyms, _PSEUDONYMS),
        (facts.engine == "spark" and not facts.decisions, _SPARK),
    )
    said = [text for holds, text in said_if if holds]
    together = () if facts.stated is None else (statement(*facts.stated),)
    space = _AS_THEY_ARE if facts.scales == "none" else (*CONDITIONS[facts.scales], _DISTANCES, _NUMBERS)
    without = no_promise(facts.agreed, facts.rows)
    return (*without, *space, *ALWAYS, *said, _TUNED[facts.tuned_on], *together)


class AllReleases(NamedTuple):
    """What holds of all releases of a desk together.

    ``near`` is at the limit's distance, ``classic`` at distance 2. ``limits`` have been in force, and
    ``forgot`` says that entries of the ledger were lost, or may have been. ``agreed`` people were handed over
    as they are.
    """

    near: Guarantee
    classic: Guarantee
    limits: int = 1
    forgot: bool = False
    agreed: int = 0


def statement(
    near: Guarantee, classic: Guarantee, limits: int = 1, forgot: bool = False, agreed: int = 0
) -> str:
    """What a desk promises of all its releases together: everywhere in these words."""
    changed = f" {limits} limits were in force, whose δ add up: each was set without looking at releases."
    lost = (
        " Entries of its ledger were lost, or may have been: releases that left no certificate are NOT among "
        "these."
    )
    return (
        f"No two rows within distance {exact(near.B)} of each other in every release's own space are told "
        f"apart beyond (ε = {up(near.epsilon, 6)}, δ = {up(near.delta)}) by all releases of this desk "
        "together, and no two rows at all (they are at distance 2 at most) beyond "
        f"(ε = {up(classic.epsilon, 6)}, δ = {up(classic.delta)}). A release's own space is its columns, "
        "scaled and clipped: each further set of columns leaves fewer pairs of rows that are within "
        f"{exact(near.B)} in all of them."
        f"{changed if limits > 1 else ''}{lost if forgot else ''}{agreed_in_all(agreed)}"
    )


def format_guarantee(guarantee: Guarantee) -> str:
    """A guarantee in a sentence; neither ε nor δ is rounded down."""
    return f"(B = {exact(guarantee.B)}, ε = {up(guarantee.epsilon, 6)}, δ = {up(guarantee.delta)})"


def _constants(facts: Facts) -> str:
    values = set(facts.gaps.values())
    if len(values) == 1 and len(facts.gaps) == facts.columns:
        return f"{_shown(values.pop())} in every column"
    return ", ".join(f"{name} = {_shown(value)}" for name, value in facts.gaps.items())


def _shown(value: Constant) -> str:
    return f"“{value}”" if isinstance(value, str) else f"{value:g}"
