"""Scores that move no more than rows do: slopes and values against fractions, and what is refused."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.mechanisms import AdditiveScore, LinearScore, RowScore, score_of, score_rounding

UNIT = 2.0**-53


def exact_value(x: float, knots: tuple[float, ...], values: tuple[float, ...]) -> Fraction:
    at, heights = [Fraction(t) for t in knots], [Fraction(v) for v in values]
    if Fraction(x) <= at[0]:
        return heights[0]
    for (a, b), (c, d) in zip(pairwise(at), pairwise(heights), strict=True):
        if Fraction(x) <= b:
            return c + (d - c) * (Fraction(x) - a) / (b - a)
    return heights[-1]


def exact_score(score: RowScore, row: Floats) -> Fraction:
    if isinstance(score, LinearScore):
        return sum((Fraction(w) * Fraction(x) for w, x in zip(score.weights, row, strict=True)), Fraction(0))
    assert isinstance(score, AdditiveScore)
    parts = zip(row, score.knots, score.values, strict=True)
    return sum((exact_value(float(x), knots, values) for x, knots, values in parts), Fraction(0))


def random_score(rng: np.random.Generator, columns: int) -> AdditiveScore:
    knots = [np.unique(rng.uniform(-1, 1, size=rng.integers(1, 9))).tolist() for _ in range(columns)]
    knots[0] = [-0.5, 0.25]
    return AdditiveScore.of(knots, [rng.normal(size=len(at)).tolist() for at in knots])


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
def test_values_are_off_by_less_than_is_allowed_for(columns: int) -> None:
    """Half of what two rows may be off by, and rows that are in the ball need no clipping."""
    rng, worst = np.random.default_rng(columns), 0.0
    for _ in range(10):
        for score in (random_score(rng, columns), LinearScore.of(rng.normal(size=columns), B=0.1)):
            rows = rng.normal(size=(60, columns))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, size=(60, 1))
            found = score.of_rows(rows)
            errors = [abs(Fraction(f) - exact_score(score, row)) for f, row in zip(found, rows, strict=True)]
            worst = max(worst, float(max(errors)))
            assert max(errors) <= (columns + 10 * math.sqrt(columns) + 1) * UNIT <= score.rounding / 2
    assert worst > UNIT / 4, "they are rounded indeed"


def test_what_is_allowed_for_is_more_than_the_sum_of_all_errors() -> None:
    """(3d + 20√d + 8)·u and 16u for a rounded distance, for every number of columns that a table may have."""
    for d in (*range(1, 400), 1000, 4096, 16_384):
        assert (3 * d + 20 * math.sqrt(d) + 8 + 16) * UNIT <= score_rounding(d, 1)


@pytest.mark.parametrize("columns", [1, 3, 20])
def test_no_two_scores_are_farther_apart_than_their_rows(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for _ in range(10):
        score = random_score(rng, columns)
        own, other = rng.uniform(-1, 1, size=(2, 100, columns)) / math.sqrt(columns)
        for a, b in zip(own, other, strict=True):
            squared = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True))
            assert (exact_score(score, a) - exact_score(score, b)) ** 2 <= squared
        assert sum(Fraction(slope) ** 2 for slope in score.slopes) <= 1
        assert sum(slope**2 for slope in score.slopes) > 1 - 1e-9, (
            "and the norm is 1, so that nothing is lost"
        )


def test_slopes_are_rounded_up() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        score = random_score(rng, 2)
        for slope, knots, values in zip(score.slopes, score.knots, score.values, strict=True):
            rises = zip(pairwise(knots), pairwise(values), strict=True)
            exact = max(
                (abs(Fraction(d) - Fraction(c)) / (Fraction(b) - Fraction(a)) for (a, b), (c, d) in rises),
                default=Fraction(0),
            )
            assert Fraction(slope) >= exact
            assert slope == 0 or Fraction(math.nextafter(slope, 0)) < exact


def test_a_slope_of_one_is_taken_and_the_next_float_is_not() -> None:
    assert AdditiveScore(((-1.0, 0.0, 1.0),), ((-1.0, 0.0, 1.0),)).slopes == (1.0,)
    with pytest.raises(ValueError, match="too large"):
        AdditiveScore(((-1.0, 0.0, 1.0),), ((-1.0, 0.0, math.nextafter(1.0, 2)),))
    # Here a division of floats gives 1.0, and the slope is above it.
    knots, values = ((0.0, 0.1, 0.3),), ((0.0, 0.1, math.nextafter(0.3, 1)),)
    assert (values[0][2] - values[0][1]) / (knots[0][2] - knots[0][1]) >= 1.0
    with pytest.raises(ValueError, match="too large"):
        AdditiveScore(knots, values)
    assert LinearScore((1.0, 0.0)).columns == 2
    with pytest.raises(ValueError, match="norm above 1"):
        LinearScore((1.0, 2.0**-60))  # whose squares add up to 1.0 in floats


def test_any_values_are_shifted_and_divided_and_order_people_as_before() -> None:
    rng = np.random.default_rng(5)
    knots, values = [[-0.8, 0.0, 0.6], [-0.5, 0.5]], [[7.0, 3.0, 90.0], [1e3, -1e3]]
    score = AdditiveScore.of(knots, values)
    rows = rng.uniform(-0.7, 0.7, size=(500, 2))
    raw = np.interp(rows[:, 0], knots[0], values[0]) + np.interp(rows[:, 1], knots[1], values[1])
    found = score.of_rows(rows)
    assert (np.argsort(found) == np.argsort(raw)).all()
    assert score.of_rows(np.zeros((1, 2)))[0] == pytest.approx(0, abs=1e-12)
    assert np.abs(score.of_rows(rows / np.linalg.norm(rows, axis=1, keepdims=True))).max() <= 1
    for scale in (1e-300, 1e-9, 1e9, 1e200):
        again = AdditiveScore.of(knots, [[scale * v for v in column] for column in values])
        assert again.of_rows(rows) == pytest.approx(found, rel=1e-9, abs=1e-12)


def test_a_column_with_one_knot_does_not_count() -> None:
    score = AdditiveScore(((0.3,), (-1.0, 0.0)), ((0.0,), (-0.5, 0.0)))
    assert score.of_rows(np.array([[0.1, -0.5], [0.9, -0.5]])).tolist() == [-0.25, -0.25]


def test_a_row_is_scored_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(6)
    for score in (random_score(rng, 7), LinearScore.of(rng.normal(size=7), B=0.25)):
        rows = rng.uniform(-0.3, 0.3, size=(300, 7))
        alone = [score.of_rows(rows[i : i + 1])[0] for i in range(300)]
        assert score.of_rows(rows).tolist() == alone
        assert score.of_rows(rows[::-1])[::-1].tolist() == alone


@pytest.mark.parametrize("score", [LinearScore((0.5, 0.5)), random_score(np.random.default_rng(1), 3)])
def test_a_record_reads_back(score: RowScore) -> None:
    assert score_of(score.record()) == score


@pytest.mark.parametrize(
    ("knots", "values", "says"),
    [
        ([], [], "knots"), ("ab", [[1.0]], "knots"), (None, None, "knots"), ([[0.0]], [["a"]], "values"),
        ([[0.0, 0.5]], [[0.0]], "a value for each knot"), ([[0.0]], [[0.0], [0.0]], "a value for each knot"),
        ([[0.5, 0.0]], [[0.0, 0.1]], "must rise"), ([[0.0, 0.0]], [[0.0, 0.1]], "must rise"),
        ([[-1.5, 0.0]], [[0.0, 0.0]], "must rise"), ([[0.0, 1.5]], [[0.0, 0.1]], "must rise"),
        ([[0.0, math.nan]], [[0.0, 0.1]], "knots"), ([[0.0, 0.5]], [[0.0, math.inf]], "values"),
        ([[]], [[]], "knots"), ([[0.1] * 2000], [[0.1] * 2000], "1024"), ([5], [[0.0]], "knots"),
        ([[0.0, 1e-310]], [[0.0, 1e300]], "spread the knots"),
    ],
)  # fmt: skip
def test_what_is_no_function_is_refused(knots: Any, values: Any, says: str) -> None:
    for make in (AdditiveScore, AdditiveScore.of):
        with pytest.raises((ValueError, TypeError), match=says):
            make(knots, values)


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0 at 0"):
        AdditiveScore(((-1.0, 1.0),), ((0.1, 0.2),))
    with pytest.raises(ValueError, match="depend on some column"):
        AdditiveScore.of([[0.0, 1.0]], [[3.0, 3.0]])
    with pytest.raises(ValueError, match="weights, or knots and values"):
        score_of({"weight": [1.0]})
    with pytest.raises(ValueError, match="column"):
        LinearScore((1.0,)).of_rows(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="column"):
        AdditiveScore(((0.0,),), ((0.0,),)).of_rows(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="2 scores"):
        LinearScore.of(np.eye(2), B=0.25)
