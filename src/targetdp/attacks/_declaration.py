"""What an attack says of itself: the regulators' criteria that it answers, its sentence, and how it is run.

The Article 29 Working Party's Opinion 05/2014 on anonymisation techniques (WP 216) asks three questions of
a table that is called anonymous. No single score answers one of them: each attack reaches a part of a
criterion, and says in its own file which part it does not reach. The panel, the command line and the
documentation read what attacks declare here; there is no other list of them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from targetdp._core import Progress, Silent, check, import_all
from targetdp.attacks._protection import CONFIDENCE, Protection

if TYPE_CHECKING:
    from targetdp.attacks._on_release import JoinedTables  # it needs the slow libraries that read tables

SINGLING_OUT = "singling out"
"""The first criterion of WP 216: see `QUESTIONS`."""
LINKABILITY = "linkability"
"""The second criterion of WP 216."""
INFERENCE = "inference"
"""The third criterion of WP 216."""

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

Situation = Literal["as released", "if ids were stripped", "without the pseudonyms' key"]
"""What a finding is about: the release with its ids, or what it would be to somebody who cannot use them."""
AS_RELEASED: Situation = "as released"
"""The situation of a figure that is true of the release as it is, ids and all."""
IF_STRIPPED: Situation = "if ids were stripped"
WITHOUT_KEY: Situation = "without the pseudonyms' key"

IdUse = Literal["used", "not needed", "unknown order", "unknown links"]
"""Whether an attack uses released ids, holds with and without them, or assumes that there are none."""

MOST_PEOPLE = 20_000
"""People whose values are guessed, unless the caller says otherwise: guessing compares each with all rows."""


@dataclass(frozen=True)
class Answer:
    """What an attack says about the criteria.

    Args:
        criteria: Those of `QUESTIONS` that it answers in part; none where the opinion does not ask.
        adversary: What the adversary has and knows.
        reaches: Which part of the criteria the attack answers.
        does_not_reach: Which part it leaves open.

    Example:
        >>> registered()["membership"].answers.criteria
        ()
    """

    criteria: tuple[str, ...]
    adversary: str
    reaches: str
    does_not_reach: str


class CannotRunError(ValueError):
    """Raised by an attack that needs something which this case does not have; the message says what.

    Example:
        >>> from targetdp.attacks import JoinedTables
        >>> case = Case(JoinedTables(("calls",), np.zeros((3, 1)), np.ones((3, 1))), np.random.default_rng(1))
        >>> case.require(case.tables.holdout, "Not run: it needs a holdout.")
        Traceback (most recent call last):
        targetdp.attacks._declaration.CannotRunError: Not run: it needs a holdout.
    """


_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Case:
    """A release under attack, and how hard to try: what an attack's ``on_tables`` is handed.

    Args:
        tables: The original table and its release, person by person.
        rng: The attack's own randomness.
        further: Other releases of the same people, if there are any.
        people: How many people's values to guess; None for the usual number.
        confidence: Of the intervals.
        progress: Is told how far the attack is.

    Example:
        >>> from targetdp.attacks import JoinedTables
        >>> tables = JoinedTables(("calls",), np.zeros((3, 1)), np.ones((3, 1)))
        >>> Case(tables, np.random.default_rng(1), people=2).sample_size(3)
        2
    """

    tables: "JoinedTables"
    rng: np.random.Generator = field(repr=False)
    further: "tuple[JoinedTables, ...]" = field(repr=False, default=())
    people: int | None = None
    confidence: float = CONFIDENCE
    progress: Progress = field(repr=False, default_factory=Silent)

    @staticmethod
    def require(value: _Value | None, reason: str) -> _Value:
        """A value that the attack needs, or True for a condition; without it the reason is raised."""
        if value is None or value is False:
            raise CannotRunError(reason)
        return value

    @property
    def options(self) -> dict[str, Any]:
        """What every attack with random choices takes: ``confidence``, ``rng`` and ``progress``."""
        return {"confidence": self.confidence, "rng": self.rng, "progress": self.progress}

    def sample_size(self, people: int) -> int | None:
        """How many of so many people have their values guessed; None for all of them."""
        size = self.people or MOST_PEOPLE
        return size if size < people else None


OnTables: TypeAlias = Callable[[Case], Protection]
Headline: TypeAlias = Callable[[Protection], str]


@dataclass(frozen=True)
class Attack:
    """What a file declares of its attack; see `attack` for the parts."""

    name: str
    answers: Answer
    place: int | None = None
    headline: Headline | None = None
    on_tables: OnTables | None = None
    on_one_number: str = ""
    ids: IdUse = "unknown order"
    of_variance: bool = False


_ATTACKS: dict[str, Attack] = {}
_Function = TypeVar("_Function", bound=Callable[..., Any])


def attack(
    *,
    answers: Answer,
    place: int | None = None,
    headline: Headline | None = None,
    on_tables: OnTables | None = None,
    on_one_number: str = "",
    ids: IdUse = "unknown order",
    of_variance: bool = False,
) -> Callable[[_Function], _Function]:
    """Declare an attack: the decorated function is run, explained and offered by its name from then on.

    Args:
        answers: What it says about the regulators' criteria.
        place: Where it stands among the attacks that `run_attacks` runs; its random numbers depend on it, so
            that they stay when other attacks come. None for a function that is not one of them.
        headline: Says in one sentence what a score means, with numbers that are true of it.
        on_tables: Runs the attack on a release; raises `CannotRunError` where something is missing.
        on_one_number: What is said beside the sentence where one number was released for each person.
        ids: ``"used"`` by an attack that knows whose row is whose, as everybody does where ids are released;
            ``"unknown order"`` where it has to find that out, so that its figure is headed "if ids were
            stripped"; ``"unknown links"`` where it has to find out which rows of two releases belong
            together, so that the same pseudonyms in both would tell; ``"not needed"`` where it makes no
            difference.
        of_variance: Whether the score is a share of people's variance, and not one of people or of guesses:
            then it is not compared with those.

    Returns:
        A decorator that leaves the function as it is.

    Raises:
        ValueError: Another attack has the same place, or an attack with a place lacks a headline or a way to
            be run.

    Example:
        >>> from targetdp.attacks import registered
        >>> registered()["linkage"].answers.criteria
        ('linkability', 'singling out')
    """

    def declare(function: _Function) -> _Function:
        name = function.__name__
        if place is not None and (headline is None or on_tables is None):
            raise ValueError(f"{name} has place = {place}: give headline= and on_tables= as well")
        taken = [one.name for one in _ATTACKS.values() if place is not None and one.place == place]
        if taken and taken != [name]:
            raise ValueError(f"place = {place} of {name} is taken by {taken[0]}: choose another number")
        _ATTACKS[name] = Attack(name, answers, place, headline, on_tables, on_one_number, ids, of_variance)
        return function

    return declare


def registered() -> Mapping[str, Attack]:
    """Every attack by its name: those that `run_attacks` runs in the order of their places, then the others.

    Returns:
        What each attack declares of itself.

    Example:
        >>> [name for name, one in registered().items() if one.place is not None][:2]
        ['singling_out', 'attribute_inference']
    """
    import_all("targetdp.attacks")
    ordered = sorted(_ATTACKS.values(), key=lambda one: (one.place is None, one.place or 0, one.name))
    return MappingProxyType({one.name: one for one in ordered})


def panel_names() -> tuple[str, ...]:
    """The names of the attacks that `run_attacks` runs, in their order.

    Returns:
        The names of all attacks that declare a place.

    Example:
        >>> panel_names()[0]
        'singling_out'
    """
    return tuple(name for name, one in registered().items() if one.place is not None)


_OF_SCORES = (("released row", "released score"), ("people's values", "people's scores"))
"""What is called differently where one number was released for each person; or a few."""


def meaning(name: str, protection: Protection, *, scores: bool = False) -> str:
    """What a score says, in one sentence that needs no statistics.

    What is said to be so much at most is rounded up, so that it is true, and an adversary's success is rounded
    up too; "nobody" and "everybody" are said of 0 and 1 only.

    Args:
        name: The attack.
        protection: What it handed back.
        scores: Whether scores were released, and not rows.

    Returns:
        The sentence.

    Raises:
        ValueError: No attack of this name has a sentence.
        TypeError: ``protection`` is not a `Protection`.

    Example:
        >>> from targetdp.attacks import Setting, worst
        >>> meaning("linkage", worst({"nearest row": Setting(0.714, (0.69, 0.74))}, "upper"))
        'At most 714 of 1,000 people could not be matched to their released row by someone who holds the original table (nearest row).'
    """  # noqa: E501 (the sentence is one line)
    headlines = {one.name: one.headline for one in registered().values() if one.headline is not None}
    headline = headlines[check.choice("name", name, sorted(headlines))]
    check.instance("protection", protection, Protection)
    words = headline(protection)
    for of_rows, of_scores in _OF_SCORES if scores else ():
        words = words.replace(of_rows, of_scores).replace(of_rows.capitalize(), of_scores.capitalize())
    return words


# Parts of sentences that several attacks share.


def strongest_of(p: Protection, kind: str) -> str:
    """Among how many settings the strongest decided; the only one by its name."""
    many = len(p.settings)
    return p.strongest if many == 1 else f"the strongest of {many} {kind}"


def people_spared(share: float, done: str) -> str:
    """How many people at most something could not be done to, such as ``"singled out"``.

    What an attack does, others can do too, and better: so "everybody could", but only "nobody was".
    """
    if share <= 0:
        return f"Everybody could be {done}"
    if share >= 1:
        return f"Nobody was {done}"
    for of in (100, 1_000, 10_000):  # the ends need finer units: 0.9996 is not 100 of 100
        spared = math.ceil(share * of - 1e-9)  # rounded up, or "at most" would not be true
        fine_enough = of > 100 or spared <= share * of + 1e-9
        if fine_enough and share * of >= 1 and spared < of:
            return f"At most {spared:,} of {of:,} people could not be {done}"
    if share < 0.5:
        return f"Fewer than 1 of 10,000 people could not be {done}"
    return f"Fewer than 1 of 10,000 people were {done}"


def at_most(share: float) -> str:
    """An upper bound in percent, rounded up to a tenth, but never to all."""
    safe = math.ceil(share * 1000 - 1e-9) / 10
    return f"at most {safe:g}%" if safe < 100 else "less than 100%"


def share_up(share: float) -> str:
    """In percent, rounded up to a tenth, but never to all."""
    safe = math.ceil(share * 1000 - 1e-9) / 10
    return f"{max(safe, 0.1):g}%" if safe < 100 else "more than 99.9%"


def failed_guesses(p: Protection, compared: str) -> str:
    """How often guesses at a missing value failed, ``compared`` with those that had no release to go by."""
    by = strongest_of(p, "guesses")
    if p.detail.get("p_holdout", ()) is None:  # nobody outside to compare with: the share itself
        if p.score <= 0:
            return f"Every guess at a missing value was right ({by})."
        if p.score >= 1:
            return f"Every guess at a missing value failed ({by})."
        return f"Guesses at a missing value failed for {at_most(p.score)} of people ({by})."
    if p.score <= 0:
        return f"Every guess at a missing value was right for people in the table ({by})."
    often = "at least as often" if p.score >= 1 else f"{at_most(p.score)} as often"
    return f"Guesses at a missing value failed {often} {compared} ({by})."
