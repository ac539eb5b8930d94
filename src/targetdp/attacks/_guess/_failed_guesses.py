"""Failed guesses: what is known and what is guessed, when a guess fails, and the score that follows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targetdp._core import Floats, Integers, check
from targetdp.attacks._protection import Setting, ratio_interval, share_interval

# Which columns an adversary knows, and which are then the secrets.
#
# One draw for a number h of known columns: the columns are put in random order, as on a circle, and each
# window of d-h neighbors on it is missing once, one window after the other, until every column has been
# missing. So ⌈d/(d-h)⌉ searches make every column a secret, where one search for each would need d.
# If the last window reaches around to columns that were secrets already, they do not count again.
# The order is uniform, and what a column's own place says about the others is symmetric in them, so each
# secret's known columns are a uniform h-subset of the other columns.


@dataclass(frozen=True)
class Window:
    """The ``known`` columns, in ascending order, and the ``secrets`` that they are used to guess."""

    known: tuple[int, ...]
    secrets: tuple[int, ...]


def known_counts(values: Sequence[int] | None, columns: int) -> tuple[int, ...]:
    """The numbers of known columns: what the caller asks for, or the paper's 1, ⌈d/2⌉ and d-1."""
    if columns < 2:
        raise ValueError(
            f"X has {columns} column: attribute inference needs at least 2, one that the adversary knows "
            "and one that is guessed"
        )
    if values is None:
        return tuple(sorted({1, -(-columns // 2), columns - 1}))
    given = check.several("known", values, "give numbers of known columns, such as [1, 5]")
    counts = [check.integer(f"known[{i}]", h, at_least=1, at_most=columns - 1) for i, h in enumerate(given)]
    if not counts or len(set(counts)) < len(counts):
        raise ValueError(f"known = {given!r} is not a list of distinct numbers: give each of them once")
    return tuple(counts)


def one_draw(columns: int, h: int, rng: np.random.Generator) -> Iterator[Window]:
    """The windows of one draw: each column is a secret in exactly one of them."""
    missing = columns - h
    circle = rng.permutation(columns)
    for begin in range(0, columns, missing):
        window = circle[np.arange(begin, begin + missing) % columns]
        known = np.setdiff1d(circle, window)
        yield Window(tuple(known.tolist()), tuple(window[: columns - begin].tolist()))


def plan_searches(columns: int, h: int, draws: int, rng: np.random.Generator) -> list[Window]:
    """The windows of several draws, those with the same known columns joined: one search serves them all.

    A column that is the secret for the same known columns in several draws is listed as often. With all
    columns known but one there is nothing to draw: one draw stands for all.
    """
    secrets: dict[tuple[int, ...], list[int]] = {}
    for _ in range(1 if h == columns - 1 else draws):
        for window in one_draw(columns, h, rng):
            secrets.setdefault(window.known, []).extend(window.secrets)
    return [Window(known, tuple(columns)) for known, columns in secrets.items()]


@dataclass(frozen=True)
class GuessingPlan:
    """Whose values are guessed, and from which known columns.

    ``sample`` has the rows of those who are attacked, ``windows`` the searches for each number of known
    columns, and ``names`` what the columns are called.
    """

    sample: Integers
    windows: Mapping[int, list[Window]]
    names: list[str]
    draws: int

    @classmethod
    def of(
        cls, shape: tuple[int, ...], known: Any, draws: Any, people: Any, columns: Any,
        rng: np.random.Generator,
    ) -> "GuessingPlan":  # fmt: skip
        """A plan for a table of this shape, from what a caller asks for."""
        n, d = shape
        counts, names = known_counts(known, d), column_names(columns, d)
        draws = check.integer("draws", draws, at_least=1)
        sample = np.arange(n)
        if people is not None:
            people = check.integer("people", people, at_least=1, at_most=n)
            sample = np.sort(rng.choice(n, people, replace=False))
        return cls(sample, {h: plan_searches(d, h, draws, rng) for h in counts}, names, draws)

    def draws_of(self, h: int) -> int:
        """Over how many draws failures were added up: with all columns known but one there is one draw."""
        return 1 if h == len(self.names) - 1 else self.draws


def column_names(columns: Sequence[str] | None, d: int) -> list[str]:
    """Names for the settings: the caller's, or numbers."""
    if columns is None:
        return [f"column {j}" for j in range(d)]
    names = [] if isinstance(columns, str) or not hasattr(columns, "__iter__") else list(columns)
    if len(names) != d or not all(isinstance(name, str) for name in names) or len(set(names)) < d:
        raise ValueError(f"columns = {columns!r} does not name the {d} columns: give {d} different names")
    return names


# When a guess of a number counts as right: our rule, and Anonymeter's for comparisons.


def near(guess: Floats, actual: Floats, tolerance: float, zero_tolerance: float) -> NDArray[np.bool_]:
    """Whether guesses are right: |guess - actual| ≤ tolerance·|actual|; for an actual 0, ≤ zero_tolerance.

    Args:
        guess: Guesses.
        actual: The true values.
        tolerance: Relative error up to which a guess is right.
        zero_tolerance: Absolute error up to which a guess at 0 is right.

    Returns:
        A mark for each guess.

    Example:
        >>> near(np.array([1.04, 1.06, 0.1]), np.array([1.0, 1.0, 0.0]), 0.05, 0.2).tolist()
        [True, False, True]
    """
    return np.asarray(
        np.abs(guess - actual) <= np.where(actual == 0, zero_tolerance, tolerance * np.abs(actual))
    )


def near_by_anonymeter(guess: Floats, actual: Floats, tolerance: float) -> NDArray[np.bool_]:
    """|guess - actual| / (guess + 10⁻¹²) ≤ tolerance, as Anonymeter 1.0 and 1.1 have it.

    The guess is divided by with its sign: every negative guess counts as right, whatever the actual value.

    Args:
        guess: Guesses.
        actual: The true values.
        tolerance: Relative error up to which a guess is right.

    Returns:
        A mark for each guess.

    Example:
        >>> near_by_anonymeter(np.array([1.04, -7.0]), np.array([1.0, 1.0]), 0.05).tolist()
        [True, True]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.abs(guess - actual) / (guess + 1e-12) <= tolerance)


def zero_tolerances(table: Floats, tolerance: float) -> Floats:
    """For each column ``tolerance`` times the median size of its values that are not 0.

    Args:
        table: Original rows.
        tolerance: Relative error up to which a guess is right.

    Returns:
        The absolute error up to which a guess at 0 is right, by column.

    Edges: 0 for a column of zeros: there a guess must be exact.

    Example:
        >>> zero_tolerances(np.array([[0.0, 2.0], [4.0, 0.0]]), 0.5).tolist()
        [2.0, 1.0]
    """
    sizes = np.abs(table)
    return np.array([tolerance * float(np.median(size[size > 0])) if size.any() else 0.0 for size in sizes.T])


@dataclass(frozen=True)
class Rule:
    """When a guess is right; ``zero_tolerances`` is None for Anonymeter's rule, which has none."""

    tolerance: float
    zero_tolerances: Floats | None

    def right(self, guess: Floats, actual: Floats, column: int) -> NDArray[np.bool_]:
        """For each person whether the guess at a column is right."""
        if self.zero_tolerances is None:
            return near_by_anonymeter(guess, actual, self.tolerance)
        return near(guess, actual, self.tolerance, float(self.zero_tolerances[column]))

    def commonest(self, table: Floats) -> Floats:
        """For each column the one guess that is right for most rows, by our rule.

        Each value is guessed from a stretch around it; the guess is the middle of where most of them overlap.
        """
        at_zero = np.zeros(1) if self.zero_tolerances is None else self.zero_tolerances
        # A little shorter than they are: where two stretches only touch, rounding would decide.
        reach = np.where(table == 0, at_zero, self.tolerance * np.abs(table)) * (1 - 1e-9)
        guesses = np.empty(table.shape[1])
        ends = zip(np.sort(table - reach, axis=0).T, np.sort(table + reach, axis=0).T, strict=True)
        for j, (begin, end) in enumerate(ends):
            ended = np.searchsorted(end, begin, "left")
            best = int((np.searchsorted(begin, begin, "right") - ended).argmax())
            guesses[j] = (begin[best] + end[ended[best]]) / 2
        return guesses

    def zeros(self, actual: Floats, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Columns with values of exactly 0: how many, and how near a guess must be there."""
        if self.zero_tolerances is None:
            return {}
        numbers = (actual == 0).sum(axis=0).tolist()
        return {
            name: {"values": number, "tolerance": float(tolerance)}
            for name, number, tolerance in zip(names, numbers, self.zero_tolerances, strict=True)
            if number
        }


def rule_of(
    original: Floats, tolerance: Any, zero_tolerance: Any = None, compatibility: str | None = None
) -> Rule:
    """The rule that a caller asks for, checked."""
    tolerance = check.number("tolerance", tolerance, at_least=0)
    if zero_tolerance is not None:
        zero_tolerance = check.number("zero_tolerance", zero_tolerance, at_least=0)
    if compatibility is None:
        if zero_tolerance is None:
            return Rule(tolerance, zero_tolerances(original, tolerance))
        return Rule(tolerance, np.full(original.shape[1], zero_tolerance))
    check.choice("compatibility", compatibility, ("anonymeter",))
    if zero_tolerance is not None:
        raise ValueError(
            f"zero_tolerance = {zero_tolerance!r} has no place in Anonymeter's rule: leave one of them out"
        )
    return Rule(tolerance, None)


def relative(failed: float, people: int, failed_outside: float, outside: int, error_rate: float) -> Setting:
    """The share of failed guesses relative to people outside; without any of those, the share itself.

    Edges: where no guess fails on either side, the ratio counts as 1; where none fails outside only, it is
    infinite.
    """
    if not outside:
        return Setting(failed / people, share_interval(failed, people, error_rate))
    interval = ratio_interval(failed, people, failed_outside, outside, error_rate)
    if failed_outside > 0:
        return Setting((failed / people) / (failed_outside / outside), interval)
    return Setting(math.inf if failed > 0 else 1.0, interval)


def notes_on(
    failed: Mapping[str, float], failed_outside: Mapping[str, float] | None, zeros: Mapping[str, Any]
) -> Iterator[str]:
    """What a reader should know of a score, by each setting's share of failed guesses in and outside."""
    if failed_outside is None:
        yield (
            "There is no holdout: the score is the share of failed guesses itself, which is never above the "
            "relative score, and counts what anyone could have guessed against the release."
        )
    if zeros:
        total = sum(int(zero["values"]) for zero in zeros.values())
        yield (
            f"{total} attacked values are exactly 0, where a relative tolerance has no meaning: guesses of "
            f"them count within an absolute tolerance, given under zeros ({', '.join(zeros)})."
        )
    outside = failed_outside or {}
    opened = [setting for setting, q in outside.items() if failed[setting] == q == 0]
    if opened:
        yield (
            f"No guess failed, in the release or outside it, for {'; '.join(opened)}: these values are open "
            "to everyone, and being in the release adds nothing (the ratio counts as 1)."
        )
    endless = [setting for setting, q in outside.items() if failed[setting] > 0 == q]
    if endless:
        yield f"No guess failed outside the release for {'; '.join(endless)}: the ratio is infinite."


def sampled_note(attacked: int, people: int) -> list[str]:
    """What to say if not everybody was attacked."""
    if attacked == people:
        return []
    return [f"{attacked:,} of {people:,} people were attacked, drawn at random."]
