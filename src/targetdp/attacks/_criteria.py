"""Which attack answers which criterion of the European regulators, and what a score means in plain words.

The Article 29 Working Party's Opinion 05/2014 on anonymisation techniques (WP 216) asks three questions of
a table that is called anonymous. No single score answers one of them: each attack reaches a part of a
criterion, and says here which part it does not reach.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from targetdp._core import check
from targetdp.attacks._protection import Protection

SINGLING_OUT, LINKABILITY, INFERENCE = "singling out", "linkability", "inference"

QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        SINGLING_OUT: "Can someone be picked out of the table, as the one person to whom a record belongs?",
        LINKABILITY: "Can two records about one person, or one group, be brought together, in this table or "
        "between this one and another?",
        INFERENCE: "Can a value about someone be worked out from other values, with a fair chance of being "
        "right?",
    }
)
"""The three criteria of WP 216, each as the question that it asks."""


@dataclass(frozen=True)
class Answer:
    """What an attack says about the criteria.

    ``criteria`` are those of `QUESTIONS` that it answers in part; none where the opinion does not ask.
    """

    criteria: tuple[str, ...]
    adversary: str
    reaches: str
    does_not_reach: str


ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "singling_out": Answer(
            criteria=(SINGLING_OUT,),
            adversary="Has the released table and nothing else.",
            reaches="Whether a box drawn around a released row, in any of several sizes, holds exactly one "
            "person.",
            does_not_reach="Conditions of another shape than a box, and people who are picked out with the "
            "help of something that is known about them from elsewhere.",
        ),
        "attribute_inference": Answer(
            criteria=(INFERENCE,),
            adversary="Has the released table, and knows some columns of each person exactly.",
            reaches="Whether the released row that looks most like a person gives a missing value away, "
            "more often than it would for a person who was not in the table.",
            does_not_reach="Guesses by other rules than the most similar row, guesses from several tables "
            "together, and what is true of the whole population: that can be learned about people who are "
            "not in the table.",
        ),
        "score_inference": Answer(
            criteria=(INFERENCE,),
            adversary="Knows whose score is whose, the weights, the law of the noise, some columns of each "
            "person exactly, and what people are like in general.",
            reaches="Whether guesses at a missing value from the known columns and the score (linear, among "
            "a column's few values, or of the sign where the size follows from the others) are right more "
            "often than the same guesses without any score.",
            does_not_reach="Cleverer guesses, guesses from several tables together, and what is true of the "
            "whole population: that can be learned about people who are not in the table.",
        ),
        "row_inference": Answer(
            criteria=(INFERENCE,),
            adversary="Knows whose row is whose, the law of the noise, some columns of each person exactly, "
            "and what people are like in general.",
            reaches="Whether guesses at a missing value from the known columns and the released row (linear, "
            "among a column's few values, or of the sign where the size follows from the others) are right "
            "more often than the same guesses without any row.",
            does_not_reach="Cleverer guesses, guesses from several tables together, and what is true of the "
            "whole population: that can be learned about people who are not in the table.",
        ),
        "distinguishing": Answer(
            criteria=(SINGLING_OUT, LINKABILITY, INFERENCE),
            adversary="Knows the rows of all others, the algorithm, and two candidates for the row of one "
            "person.",
            reaches="A floor under all three: whatever is singled out, linked or inferred about one person "
            "through her row, the release adds no more than this to what was known before, on average.",
            does_not_reach="A single unlucky release, which may tell more than the average; what follows "
            "from the rows of others; several rows of one person; several releases; columns that are passed "
            "on without protection; scales that were neither public nor paid for; and whether a person is in "
            "the table.",
        ),
        "linkage": Answer(
            criteria=(LINKABILITY, SINGLING_OUT),
            adversary="Has the released table and the whole original one, and lacks only who is who.",
            reaches="Whether a released row is recognized as a person's own: the hardest case of linking "
            "two tables, since no other table is as close to the release as the original is.",
            does_not_reach="Cleverer ways to match, and links of a row to a small group rather than to one "
            "person (the share that is found among the first ten says something about those).",
        ),
        "linkability": Answer(
            criteria=(LINKABILITY,),
            adversary="Has two releases, or two sets of columns, about the same people.",
            reaches="Whether a person's two rows are found to belong together.",
            does_not_reach="Links within one table, to tables that were not tried, and through ids or the "
            "order of rows, which a release must take care of by itself.",
        ),
        "membership": Answer(
            criteria=(),
            adversary="Has the released table, and the exact rows of all candidates.",
            reaches="Whether it can be told that the person is in the table at all. The opinion does not "
            "name this question, and the guarantee makes no promise about it.",
            does_not_reach="Anything about the values of people who are known to be in the table.",
        ),
        "reconstruction": Answer(
            criteria=(INFERENCE,),
            adversary="Has the released table and knows the law of the noise.",
            reaches="How close the best estimate comes to a person's true values once the noise is averaged "
            "out over what all rows have in common.",
            does_not_reach="Estimates that use other tables, or more about the population than the release "
            "itself shows.",
        ),
        "neighborhood": Answer(
            criteria=(),
            adversary="None: this is no attack. It counts, in the original table, the people within B of "
            "each.",
            reaches="What the distance B means: how many others a person is hard to tell from by the "
            "guarantee.",
            does_not_reach="Any criterion. A large crowd is no protection without the noise, and a person "
            "without a crowd is still protected from being told from any row within B.",
        ),
    }
)
"""Every attack by the name of its function. A new one is one entry here, and one in `meaning`."""


_OF_SCORES = (("released row", "released score"), ("people's values", "people's scores"))
"""What is called differently where one number was released for each person; or a few."""

ONE_NUMBER = (
    "This is not informative for one number: unless the table is small, nets of these sizes hold several "
    "people whatever the noise."
)
"""What is said beside singling out where one number was released for each person."""


def meaning(name: str, protection: Protection, *, scores: bool = False) -> str:
    """What a score says, in one sentence that needs no statistics; ``scores`` says that scores were released.

    Numbers are rounded to the side of less protection; "nobody" and "everybody" are said of 0 and 1 only.
    """
    check.choice("name", name, _MEANINGS)
    check.instance("protection", protection, Protection)
    words = _MEANINGS[name](protection)
    for of_rows, of_scores in _OF_SCORES if scores else ():
        words = words.replace(of_rows, of_scores).replace(of_rows.capitalize(), of_scores.capitalize())
    return words


def _singling_out(p: Protection) -> str:
    return f"{_people(p.score, 'singled out')} by {_strongest(p, 'net sizes')}."


def _linkage(p: Protection) -> str:
    found = _people(p.score, "matched to their released row")
    return f"{found} by someone who holds the original table ({_strongest(p, 'ways')})."


def _linkability(p: Protection) -> str:
    found = _people(p.score, "matched to their own row in the other release")
    return f"{found} ({_strongest(p, 'ways')})."


def _attribute_inference(p: Protection) -> str:
    by = _strongest(p, "guesses")
    if p.detail.get("p_holdout", ()) is None:  # nobody outside to compare with: the share itself
        if p.score <= 0:
            return f"Every guess at a missing value was right ({by})."
        failed = "all" if p.score >= 1 else _percent(p.score)
        return f"Guesses at a missing value failed for {failed} of people ({by})."
    if p.score <= 0:
        return f"Every guess at a missing value was right for people in the table ({by})."
    often = "at least as often" if p.score >= 1 else f"only {_percent(p.score)} as often"
    return f"Guesses at a missing value failed {often} for people in the table as for people outside ({by})."


def _informed_inference(p: Protection) -> str:
    if p.detail.get("p_holdout", ()) is None:
        return _attribute_inference(p)
    by = _strongest(p, "guesses")
    if p.score <= 0:
        return f"Every guess at a missing value was right for people in the table ({by})."
    often = "at least as often" if p.score >= 1 else f"only {_percent(p.score)} as often"
    return f"Guesses at a missing value failed {often} with what was released as without it ({by})."


def _membership(p: Protection) -> str:
    by = _strongest(p, "ways")
    if p.score >= 1:
        return f"Whether someone is in the table could be told no better than by guessing ({by})."
    if p.score <= 0:
        return f"Whether someone is in the table could be told with certainty ({by})."
    way = _percent_up(1 - p.score)
    return (
        f"Whether someone is in the table could be told {way} of the way from guessing to certainty ({by})."
    )


def _reconstruction(p: Protection) -> str:
    by = _strongest(p, "estimates")
    if p.score <= 0:
        return f"People's values could be estimated without error ({by})."
    if p.score >= 1:
        return (
            f"The best estimate of people's values was no better than the mean of all for everybody ({by})."
        )
    left = "left" if p.detail.get("measured", True) else "is expected to leave"
    return (
        f"The best estimate of people's values {left} {_percent(p.score)} of their differences (variance) "
        f"unexplained ({by})."
    )


def _distinguishing(p: Protection) -> str:
    loss, best = p.detail.get("expected_loss"), p.detail.get("best_guess")
    if p.score <= 0 or loss is None or not math.isfinite(loss):
        return "No limit could be derived: the release may tell any two people apart."
    told = f"Of the two people who differ the most, the release tells at most {_nats(loss)} on average"
    if best is None:
        return f"{told}."
    times = min(100, math.ceil(best * 100 - 1e-9))
    return (
        f"{told}; the best guess which of them it was is right at most {times} times in 100, a coin 50 times."
    )


_MEANINGS: Mapping[str, Callable[[Protection], str]] = MappingProxyType(
    {
        "singling_out": _singling_out,
        "attribute_inference": _attribute_inference,
        "score_inference": _informed_inference,
        "row_inference": _informed_inference,
        "distinguishing": _distinguishing,
        "linkage": _linkage,
        "linkability": _linkability,
        "membership": _membership,
        "reconstruction": _reconstruction,
    }
)


def _strongest(p: Protection, kind: str) -> str:
    """Among how many settings the strongest decided; the only one by its name."""
    many = len(p.settings)
    return p.strongest if many == 1 else f"the strongest of {many} {kind}"


def _people(share: float, done: str) -> str:
    """So many people to whom something could not be done."""
    if share <= 0:
        return f"Everybody could be {done}"
    if share >= 1:
        return f"Nobody could be {done}"
    for of in (100, 1_000, 10_000):  # the ends need finer units: 0.9996 is not 100 of 100
        if 1 / of <= share <= 1 - 1 / of:
            return f"{math.floor(share * of + 1e-9):,} of {of:,} people could not be {done}"
    if share < 0.5:
        return f"Fewer than 1 of 10,000 people could not be {done}"
    return f"Fewer than 1 of 10,000 people could be {done}"


def _percent(share: float) -> str:
    """Rounded down to a tenth of a percent, but never to nothing."""
    safe = math.floor(share * 1000 + 1e-9) / 10
    return f"{min(safe, 99.9):g}%" if safe > 0 else "less than 0.1%"


def _percent_up(share: float) -> str:
    """Rounded up to a tenth of a percent, but never to all."""
    safe = math.ceil(share * 1000 - 1e-9) / 10
    return f"{max(safe, 0.1):g}%" if safe < 100 else "more than 99.9%"


def _nats(loss: float) -> str:
    """A mean loss and the factor in the odds that it stands for, both rounded up."""
    if loss < 0.001:
        return "0.001 nats (next to nothing)"
    if loss > 10:
        return f"{math.ceil(loss):,} nats (which leaves no doubt)"
    odds = math.ceil(math.exp(loss) * 100) / 100
    return f"{math.ceil(loss * 1000) / 1000:.10g} nats (odds of {odds:.10g} to 1)"
