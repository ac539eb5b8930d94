"""Attribute inference (Methods, Privacy Attacks; Supplement, relative protection score).

An adversary knows some columns of a person's original row, looks for the released row that is nearest on
them, and takes its other values for the person's. The same is tried on people who are not in the release:
what succeeds there too was learnt about people in general, not about a person.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from targetdp._core import Floats, Integers, Progress, Silent, check
from targetdp.attacks._declaration import INFERENCE, Answer, Case, attack, failed_guesses
from targetdp.attacks._guess._failed_guesses import (
    GuessingPlan,
    Rule,
    Window,
    notes_on,
    relative,
    rule_of,
    sampled_note,
)
from targetdp.attacks._match._pairs import shared_note
from targetdp.attacks._protection import CONFIDENCE, Protection, Setting, worst
from targetdp.attacks._search._nearest_known import PreparedTables, nearest, nearest_leaving_one_out, prepare

HOLDOUT = 500
"""The paper's number of people who are kept out of the release."""


def split_holdout(
    X: Any, holdout: int = HOLDOUT, rng: np.random.Generator | None = None
) -> tuple[Integers, Integers]:
    """Choose people at random who stay out of the release.

    Privatize X[working] only, then attack with `attribute_inference(X[working], X_priv, X[holdout])`.

    Args:
        X: Table of n people.
        holdout: How many people stay out of the release; 500 in the paper.
        rng: Randomness of the choice; fresh unless given.

    Returns:
        Row numbers of the working set and of the holdout, both ascending.

    Raises:
        ValueError: ``holdout`` leaves nobody to release.

    Example:
        >>> working, holdout = split_holdout(np.zeros((700, 2)))
        >>> len(working), len(holdout)
        (200, 500)
    """
    n = len(check.table(X))
    holdout = check.integer(
        "holdout", holdout, at_least=1, at_most=n - 1, remedy="somebody must be left to release"
    )
    order = (check.generator(rng) or np.random.default_rng()).permutation(n)
    return np.sort(order[holdout:]), np.sort(order[:holdout])


BY_ANONYMETER = (
    "Anonymeter's test of success divides by the signed guess, so every negative guess counts as right: for "
    "comparisons with it only."
)
NO_LOOK_ALIKES = (
    "Not run: a score has no columns on which people could look alike; insider_inference says what it tells."
)
ONE_COLUMN = "Not run: it needs two columns, one that is known and one that is guessed."


def _headline(p: Protection) -> str:
    return failed_guesses(p, "for people in the table as for people outside")


def _on_tables(case: Case) -> Protection:
    t = case.tables
    case.require(t.rows_before_scoring is None, NO_LOOK_ALIKES)
    case.require(len(t.features) >= 2, ONE_COLUMN)
    people = case.sample_size(len(t.original))
    return attribute_inference(
        t.original, t.released, t.holdout, columns=t.features, people=people, **case.options
    )


@attack(
    place=1,
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Has the released table, and knows some columns of each person exactly.",
        reaches="Whether the released row that looks most like a person gives a missing value away, "
        "more often than it would for a person who was not in the table.",
        does_not_reach="Guesses by other rules than the most similar row, guesses from several tables "
        "together, and what is true of the whole population: that can be learned about people who are "
        "not in the table.",
    ),
    headline=_headline,
    on_tables=_on_tables,
)
def attribute_inference(
    X: Any,
    X_priv: Any,
    holdout: Any = None,
    *,
    known: Sequence[int] | None = None,
    draws: int = 1,
    tolerance: float = 0.05,
    zero_tolerance: float | None = None,
    people: int | None = None,
    columns: Sequence[str] | None = None,
    compatibility: Literal["anonymeter"] | None = None,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Attribute inference protection: how often guesses fail, relative to people outside the release.

    For each number h of known columns and each column as the secret, p is the share of people for whom the
    guess fails: it is not within ``tolerance``·|actual|, or within ``zero_tolerance`` where the actual value
    is exactly 0. The score of a setting is p(people in the release) / p(holdout); without a holdout it is p
    itself, which is never above the ratio. The score is the worst over columns and h.
    Distances are L1, with columns divided by their deviation in the release (1 for a constant); of several
    nearest rows one is taken at random (the first in a random order).

    Args:
        X: Originals of the people in the release.
        X_priv: Released rows; neither their order nor their number need be that of X.
        holdout: People who are not in the release, see `split_holdout`.
        known: Numbers h of columns that the adversary knows; by default 1, ⌈d/2⌉ and d-1.
        draws: How often the known columns are drawn at random; p is a mean over draws.
        tolerance: Relative error up to which a guess is right.
        zero_tolerance: Absolute error up to which a guess at 0 is right; by default ``tolerance`` times the
            median size of the column's other values.
        people: Attack a random sample of so many of X.
        columns: Names of the columns, for the settings.
        compatibility: With ``"anonymeter"`` columns are divided by their range over released rows and
            attacked people, for people in and outside the release apart, and Anonymeter's test of success is
            used, which counts every negative guess as right: for comparisons only.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound; ``detail`` has ``p_release`` and ``p_holdout`` by setting.

    Raises:
        ValueError: A table has fewer than two columns or values that are not finite, tables differ in their
            columns, or another argument is out of range.

    Guarantees: the guesses are those of comparing every person with every released row.
    Does not guarantee: that no cleverer adversary guesses better (an upper bound on protection). The
    intervals are about other people like these, for the columns that were drawn and this one release.
    Edges: where no guess fails on either side, nothing is learnt from being in the release: the ratio counts
    as 1, and a note says which values are open to everyone. Where none fails on the holdout only, it is
    infinite. Ratios above 1 stay in the detail; the score is capped.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> attribute_inference(X[:150], X[:150], X[150:], rng=rng).score  # released as they are
        0.0
        >>> round(attribute_inference(X[:150], X_priv[:150], X[150:], known=[2], rng=rng).score, 2)
        0.97
    """
    original = check.table(X)
    d = original.shape[1]
    released = check.table(X_priv, "X_priv", columns=d)
    outside = np.empty((0, d)) if holdout is None else check.table(holdout, "holdout", columns=d)
    confidence = check.number("confidence", confidence, above=0, below=1)
    rule = rule_of(original, tolerance, zero_tolerance, compatibility)
    rng = check.generator(rng) or np.random.default_rng()
    plan = GuessingPlan.of(original.shape, known, draws, people, columns, rng)

    inside = original[plan.sample]
    own_rows = plan.sample if len(original) == len(released) else np.full(len(inside), -1)
    if compatibility is None:
        # The first of several nearest rows is taken: in a random order that favors nobody.
        order = rng.permutation(len(released))
        released, place = released[order], np.argsort(order)
        own_rows = np.where(own_rows < 0, own_rows, place[own_rows])
    prepared = _prepared(inside, outside, released, own_rows, rule)
    actual = np.concatenate([inside, outside])
    progress = progress or Silent()
    progress.phase("attribute inference", len(actual) * sum(map(len, plan.windows.values())))
    settings: dict[str, Setting] = {}
    p_release: dict[str, float] = {}
    p_holdout: dict[str, float] = {}
    error_rate = (1 - confidence) / (d * len(plan.windows))
    for h, windows in plan.windows.items():
        failed = np.zeros((d, 2))
        for secret, rows in _nearest_rows(prepared, windows, d, progress):
            wrong = ~rule.right(released[rows, secret], actual[:, secret], secret)
            failed[secret] += wrong[: len(inside)].sum(), wrong[len(inside) :].sum()
        failed /= plan.draws_of(h)
        for name, (of_inside, of_outside) in zip(plan.names, failed.tolist(), strict=True):
            setting = f"h={h}, {name}"
            settings[setting] = relative(of_inside, len(inside), of_outside, len(outside), error_rate)
            p_release[setting] = of_inside / len(inside)
            p_holdout[setting] = of_outside / max(1, len(outside))
    zeros, of_holdout = rule.zeros(actual, plan.names), p_holdout if len(outside) else None
    return worst(
        settings,
        "upper",
        confidence=confidence,
        p_release=p_release,
        p_holdout=of_holdout,
        people=len(inside),
        holdout=len(outside),
        draws=plan.draws,
        tolerance=rule.tolerance,
        zeros=zeros,
        compatibility=compatibility,
        notes=(
            *notes_on(p_release, of_holdout, zeros),
            *([] if rule.zero_tolerances is not None else [BY_ANONYMETER]),
            *shared_note(original, outside),
            *sampled_note(len(inside), len(original)),
        ),
    )


def _prepared(
    inside: Floats, outside: Floats, released: Floats, own_rows: Integers, rule: Rule
) -> list[PreparedTables]:
    """People and release on one scale; for Anonymeter those in and outside the release on scales apart."""
    nobody = np.full(len(outside), -1)
    if rule.zero_tolerances is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = released.std(axis=0)
        # A constant's deviation may come out as a rounding error instead of 0.
        usable = (deviation > 0) & np.isfinite(deviation) & (released.max(axis=0) > released.min(axis=0))
        scale = np.where(usable, deviation, 1.0)
        everyone = np.concatenate([inside, outside])
        return [prepare(everyone, released, scale, np.concatenate([own_rows, nobody]))]
    prepared = []
    for group, first_guess in ((inside, own_rows), (outside, nobody)):
        if len(group):
            lowest = np.minimum(released.min(axis=0), group.min(axis=0))
            with np.errstate(over="ignore"):
                width = np.maximum(released.max(axis=0), group.max(axis=0)) - lowest
            scale = np.where((width > 0) & np.isfinite(width), width, 1.0)
            prepared.append(prepare(group, released, scale, first_guess))
    return prepared


def _nearest_rows(
    prepared: list[PreparedTables], windows: list[Window], d: int, progress: Progress
) -> Iterator[tuple[int, Integers]]:
    """Each secret with the nearest released row of every person, as often as it was drawn."""
    if len(windows[0].known) == d - 1 > 1:
        yield from enumerate(np.hstack([nearest_leaving_one_out(tables, progress) for tables in prepared]))
        return
    for window in windows:
        rows = np.concatenate([nearest(tables, window.known, progress) for tables in prepared])
        for secret in window.secrets:
            yield secret, rows
