"""What is asked about a row is what the request says, in whole steps, and a function of that row alone."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.decisions import CURVES, NEAR_CURVES, asks, decision, near, with_cut
from targetdp._core import Floats
from targetdp.mechanisms import STEPS, Cells, Decision, LinearScore
from targetdp.normalization import ColumnScales
from targetdp.release._decision._bits import turns_of
from targetdp.release._decision._cuts import CutRule
from targetdp.release._decision._question import Question
from targetdp.release._decision._scoring import Scoring, scoring_of
from targetdp.table import Encoding

NAN, INF = math.nan, math.inf
LAW = Decision(B=2, epsilon=4).law()
FALLING = ((-20.0, 1.0), (8.0, 0.7), (60.0, 0.0))


def question(asked: dict[str, Any], B: float = 2.0) -> Question:
    return asks(asked, B=B).questions[0]


def columns(**values: Sequence[float]) -> dict[str, Floats]:
    return {name: np.array(column, dtype=float) for name, column in values.items()}


def curve_at(knots: Sequence[float], values: Sequence[float], x: float) -> Fraction:
    """A piecewise linear function in fractions."""
    if x <= knots[0]:
        return Fraction(values[0])
    for a, b, c, d in zip(knots, knots[1:], values, values[1:], strict=False):
        if x <= b:
            share = (Fraction(x) - Fraction(a)) / (Fraction(b) - Fraction(a))
            return Fraction(c) + share * (Fraction(d) - Fraction(c))
    return Fraction(values[-1])


def exact_score(asked: Mapping[str, Any], row: Mapping[str, float]) -> Fraction:
    """What a request's numbers make of a row, in fractions."""
    if weights := asked.get("weights"):
        return sum((Fraction(w) * Fraction(row[name]) for name, w in weights.items()), Fraction(0))
    curves = asked["additive"]
    return sum(
        (curve_at(one["knots"], one["values"], row[name]) for name, one in curves.items()), Fraction(0)
    )


KINDS: dict[str, dict[str, Any]] = {
    "linear": decision(),
    "linear above": decision(yes="above", expected=FALLING),
    "additive": decision(weights=None, additive=CURVES, expected=((0.0, 0.0), (2.0, 1.0))),
    "additive above": decision(weights=None, additive=CURVES, yes="above", expected=((0.0, 1.0), (2.0, 0.0))),
}
VALUES = st.one_of(
    st.floats(-1e3, 1e3), st.sampled_from([0.0, -0.0, 10.0, 20.0, -1.0, 3.0, 5e-324, 1e300, -1e300])
)


# At B = 2: columns as they are


@pytest.mark.parametrize("kind", KINDS)
@given(row=st.fixed_dictionaries({"calls": VALUES, "texts": VALUES, "topups": VALUES}))
@settings(max_examples=150)
def test_steps_are_the_score_on_the_grid(kind: str, row: dict[str, float]) -> None:
    """From the middle of what is expected, in four times its half width, and clipped there."""
    asked = KINDS[kind]
    sign = -1 if asked.get("yes") == "above" else 1
    cuts = [Fraction(cut) for cut, _ in asked["expected"]]
    middle, size = (cuts[0] + cuts[-1]) / 2, 2 * (cuts[-1] - cuts[0])
    exact = sign * (exact_score(asked, row) - middle) / size
    found = int(question(asked).steps_of_columns(columns(**{name: [x] for name, x in row.items()}))[0])
    whole = max(Fraction(-1), min(Fraction(1), exact)) * STEPS
    # Sums of floats are off by a few of their last digits, whatever they add up to.
    terms = [abs(x) for x in row.values()] + [2.0]
    assert abs(found - whole) <= 2 + 8 * 2.0**-53 * max(terms) / float(size) * STEPS


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_on_the_grid_are_those_that_were_given(kind: str) -> None:
    asked = KINDS[kind]
    one = question(asked)
    rule = one.rule(LAW)
    assert isinstance(rule, CutRule)
    given_cuts = [cut for cut, _ in asked["expected"]]
    sign = -1 if asked.get("yes") == "above" else 1
    back = [one.in_own_units(cut) for cut in rule.expected.cuts][::sign]
    assert back == pytest.approx(given_cuts, abs=1e-12 * (given_cuts[-1] - given_cuts[0]))
    assert [float(share) for share in rule.expected.shares][::sign] == [
        share for _, share in asked["expected"]
    ]
    assert rule.wanted == Fraction(asked["share"])
    assert (rule.errors, rule.width) == (LAW.marginal_table, None)
    # A score that is a cut is at the cut, to the step.
    for cut, steps in zip(given_cuts, rule.expected.cuts[::sign], strict=True):
        assert abs(int(one.placed(np.array([cut]))[0]) - steps) <= 1


def test_a_score_beside_a_cut_is_on_its_own_side() -> None:
    one = question(decision(expected=((0.0, 0.0), (1.0, 1.0))))
    rule = one.rule(LAW)
    assert isinstance(rule, CutRule)
    low = rule.expected.cuts[0]
    below, at, above = one.placed(np.array([-1e-12, 0.0, 1e-12])).tolist()
    assert below < low == at < above


@pytest.mark.parametrize("cut", [8.0, -3.25, 0.1, 1e300, 0.0])
@pytest.mark.parametrize("yes", ["below", "above"])
def test_a_cut_that_is_known_parts_floats_exactly_and_is_itself_a_yes(cut: float, yes: str) -> None:
    one = question(with_cut(cut, weights={"calls": 1.0}, yes=yes))
    calls = [math.nextafter(cut, -INF), cut, math.nextafter(cut, INF), -INF, INF, NAN]
    steps = one.steps_of_columns(columns(calls=calls))
    assert one.rule(LAW) == 0
    below = [True, True, False, True, False, False]
    above = [False, True, True, False, True, False]
    assert (steps <= 0).tolist() == (below if yes == "below" else above)
    assert one.in_own_units(0) == cut


MISSING: dict[str, dict[str, Any]] = {
    "linear": {},
    "no weight": {"weights": {"calls": 1.0, "texts": 0.0}},
    "curves": {"weights": None, "additive": {"calls": CURVES["calls"], "texts": CURVES["calls"]}},
    "one knot": {
        "weights": None,
        "additive": {"calls": CURVES["calls"], "texts": {"knots": (1.0,), "values": (0.0,)}},
    },
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("yes", ["below", "above"])
def test_a_missing_value_is_a_no_whatever_the_cut_is(kind: str, yes: str) -> None:
    """The certificate says so: also where a column does not count."""
    expected = {"below": decision()["expected"], "above": FALLING}[yes]
    searched = question(decision(**MISSING[kind], yes=yes, expected=expected))
    known = question(with_cut(1e308 if yes == "below" else -1e308, **MISSING[kind], yes=yes))
    given_columns = columns(calls=[5.0, NAN, 5.0], texts=[5.0, 5.0, NAN])
    assert (known.steps_of_columns(given_columns) <= 0).tolist() == [True, False, False]
    steps = searched.steps_of_columns(given_columns)
    moved = turns_of(pa.array(["a", "b", "c"]), "one", 3)[1]
    assert (steps[1:] > 2 * STEPS).all(), "no cut is farther away than twice the unit"
    assert (steps[1:] + moved[1:] > 2 * STEPS).all()
    assert steps[0] <= STEPS


def test_infinite_and_huge_values_have_their_side() -> None:
    one = question(decision(weights={"calls": 1e300, "texts": -1e300}))
    calls = [1e300, -1e300, INF, -INF, INF, 1e9, 1e300]
    texts = [0.0, 0.0, 0.0, 0.0, INF, 0.0, 1e300]
    steps = one.steps_of_columns(columns(calls=calls, texts=texts)).tolist()
    assert steps[:4] == [STEPS, -STEPS, STEPS, -STEPS]
    assert steps[4] > 2 * STEPS, "∞ − ∞ is no number"
    assert steps[5] == STEPS
    assert steps[6] > 2 * STEPS, "nor is a sum that overflows on both sides"
    curves = question(decision(weights=None, additive=CURVES, expected=((0.0, 0.0), (2.0, 1.0))))
    ends = curves.steps_of_columns(columns(calls=[INF, -INF, 1e308], topups=[-INF, INF, -1e308]))
    assert (
        ends.tolist()
        == curves.steps_of_columns(columns(calls=[20.0, 0.0, 20.0], topups=[-1.0, 3.0, -1.0])).tolist()
    )


# Below B = 2: the same decision about scaled rows

NEAR: dict[str, dict[str, Any]] = {
    "linear": near(),
    "linear above": near(yes="above", expected=((-1.0, 1.0), (-0.3, 0.3), (1.0, 0.0))),
    "long weights": near(weights={"calls": 3e8, "texts": -4e8}, expected=((-1e8, 0.0), (2e8, 1.0))),
    "short weights": near(weights={"calls": 3e-9, "texts": 4e-9}, expected=((-1e-9, 0.0), (2e-9, 1.0))),
    "additive": near(weights=None, additive=NEAR_CURVES, expected=((-0.5, 0.0), (1.4, 1.0))),
    "additive above": near(
        weights=None, additive=NEAR_CURVES, yes="above", expected=((-0.5, 1.0), (1.4, 0.0))
    ),
    "far from 0": near(
        weights=None,
        additive={"calls": {"knots": (0.5, 0.75), "values": (7.0, 9.0)}},
        expected=((7.5, 0.0), (8.5, 1.0)),
    ),
}


def in_ball(people: int, names: Sequence[str], seed: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(people, len(names)))
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None])


@pytest.mark.parametrize("kind", NEAR)
def test_below_B_2_the_side_is_the_one_that_the_request_s_own_units_say(kind: str) -> None:
    asked = NEAR[kind]
    names = list(asked.get("weights") or asked["additive"])
    rows = in_ball(2000, names, 3)
    for cut, _ in asked["expected"]:
        for known in (False, True):
            given_cut = {name: value for name, value in asked.items() if name not in {"share", "expected"}}
            one = question(given_cut | {"cut": cut} if known else asked, 0.25)
            assert one.score is not None
            law = Decision(B=0.25, epsilon=4, score=one.score).law()
            assert law.cells is not None
            rule = one.rule(law)
            sign = -1 if asked.get("yes") == "above" else 1
            if known:
                steps = rule
            else:
                assert isinstance(rule, CutRule)
                places = [at for at, _ in asked["expected"]][::sign]
                steps = rule.expected.cuts[places.index(cut)]
                assert one.in_own_units(steps) == pytest.approx(
                    cut, rel=1e-12, abs=1e-12 * abs(float(one._place[1]))
                )
            assert isinstance(steps, int)
            yes = law.cells.of_steps(np.rint(one.score.of_rows(rows) * STEPS).astype(np.int64), steps) >= 0
            size = abs(one._place[1])
            for row, found in zip(rows, yes, strict=True):
                away = sign * (
                    exact_score(asked, dict(zip(names, row.tolist(), strict=True))) - Fraction(cut)
                )
                if abs(away) > size * Fraction(1, 10**12):
                    assert found == (away < 0)


@pytest.mark.parametrize("kind", NEAR)
def test_the_score_below_B_2_moves_no_more_than_rows_and_as_much_somewhere(kind: str) -> None:
    asked = NEAR[kind]
    names = list(asked.get("weights") or asked["additive"])
    score = question(asked, 0.25).score
    assert score is not None
    one, other = in_ball(5000, names, 1) * 0.99, in_ball(5000, names, 2)
    moved = np.abs(score.of_rows(one) - score.of_rows(other)) / np.linalg.norm(one - other, axis=1)
    assert moved.max() <= 1 + 1e-9
    assert moved.max() > 0.5, "a score that is shorter than it may be would be in too few cells"


@pytest.mark.parametrize("kind", NEAR)
def test_a_score_on_record_fits_the_request_or_does_not(kind: str) -> None:
    one = question(NEAR[kind], 0.25)
    assert one.score is not None
    assert one.fits(one.score, 0.25)
    for other in NEAR.values():
        score = question(other, 0.25).score
        assert score is not None
        same = score.record() == one.score.record()
        assert one.fits(score, 0.25) == same
    assert not one.fits(LinearScore((1.0,)), 0.25)


# Of one row alone


def scoring(B: float, *decisions: dict[str, Any]) -> Scoring:
    return scoring_of(asks(*decisions, B=B).questions, Encoding({}, {"texts": 2.5}))


PEOPLE = 501


def batch() -> pa.RecordBatch:
    rng = np.random.default_rng(7)
    calls, texts, topups = rng.normal(10, 8, PEOPLE), rng.normal(5, 6, PEOPLE), rng.lognormal(size=PEOPLE)
    gaps = pa.array([None if at % 9 == 0 else x for at, x in enumerate(texts.tolist())], pa.float64())
    return pa.record_batch({"calls": calls, "texts": gaps, "topups": topups})


MANY = {
    "knots": tuple(np.linspace(-50, 50, 1000).tolist()),
    "values": tuple(np.sin(np.arange(1000)).tolist()),
}
ALONE: dict[str, Scoring] = {
    "linear": scoring(2.0, decision(weights={"calls": 0.1, "texts": -0.7, "topups": 1 / 3})),
    "additive": scoring(2.0, decision(weights=None, additive=CURVES | {"texts": CURVES["calls"]})),
    "many knots": scoring(2.0, decision(weights=None, additive={"calls": MANY, "texts": CURVES["calls"]})),
    "together": scoring(
        2.0, decision(name="a"), with_cut(3.0, name="b"), decision(name="c", weights=None, additive=CURVES)
    ),
    "near": scoring(0.25, near(weights={"calls": 0.1, "texts": -0.7, "topups": 1 / 3})),
    "near additive": scoring(
        0.25, near(weights=None, additive=NEAR_CURVES | {"texts": NEAR_CURVES["calls"]})
    ),
}
SCALES = {"calls": (10.0, 8.0), "texts": (5.0, 6.0), "topups": (1.0, 2.0)}


@pytest.mark.parametrize("kind", ALONE)
def test_a_row_s_score_does_not_depend_on_its_place_or_on_other_rows(kind: str) -> None:
    how, table = ALONE[kind], batch()
    table = table.select(list(how.numbers))
    scales = None
    if not how.classic:
        center, scale = np.array([SCALES[name] for name in how.numbers]).T
        scales = ColumnScales(np.ascontiguousarray(center), np.ascontiguousarray(scale), "declared")
    whole, _ = how.steps(table, scales, {})
    assert whole.shape == (PEOPLE, len(how.questions))
    assert len(np.unique(whole[:, 0])) > 100 or kind == "many knots"
    order = np.random.default_rng(1).permutation(PEOPLE)
    permuted, _ = how.steps(table.take(pa.array(order)), scales, {})
    np.testing.assert_array_equal(permuted, whole[order])
    for start in (0, 1, 250, 500):
        for length in (1, 2, 3, 7, 100):
            part, _ = how.steps(table.slice(start, length), scales, {})
            np.testing.assert_array_equal(part, whole[start : start + length])
    # Another row beside it, whatever it is.
    extreme = pa.record_batch({name: [1e300] for name in how.numbers}, schema=table.schema)
    both = pa.Table.from_batches([table.slice(3, 1), extreme]).combine_chunks().to_batches()[0]
    np.testing.assert_array_equal(how.steps(both, scales, {})[0][0], whole[3])
    # Memory that was used before.
    room = np.full((len(how.numbers), PEOPLE), NAN)
    np.testing.assert_array_equal(how.steps(table, scales, {}, room)[0], whole)


def test_a_gap_without_a_constant_and_an_infinite_value_change_nobody_else_s_score() -> None:
    how = scoring(2.0, decision(weights={"calls": 1.0, "topups": 1.0}))
    before, _ = how.steps(batch(), None, {})
    for value in (None, NAN, INF, -INF, 1e308, 5e-324):
        calls = batch().column("calls").to_pylist()
        calls[17] = value
        changed = batch().set_column(0, "calls", pa.array(calls, pa.float64()))
        after, _ = how.steps(changed, None, {})
        assert np.flatnonzero((after != before).any(axis=1)).tolist() == [17]


def test_people_who_are_moved_apart_are_so_only_where_the_cut_is_searched() -> None:
    how = scoring(2.0, decision(name="a"), with_cut(3.0, name="b"))
    steps, _ = how.steps(batch(), None, {})
    moved = np.arange(PEOPLE, dtype=np.int64)
    apart = how.moved_apart(steps, moved) - steps
    np.testing.assert_array_equal(apart[:, 0], moved)
    assert not apart[:, 1].any()


def test_rows_within_B_are_never_two_cells_apart_on_either_side_of_a_cell() -> None:
    """Beside the ends of cells, at exact multiples of B, in floats, moved by their ids."""
    one = question(near(weights={"calls": 1.0}), 0.25)
    assert one.score is not None
    cells = Cells.hiding(0.25, one.score)
    rng = np.random.default_rng(5)
    for cut in (0, STEPS // 3, 12345):
        ends = (cut - np.arange(-8, 8) * cells.width) / STEPS
        for jump in rng.normal(scale=1e-15, size=200):
            low = np.clip(ends + jump, -1, 1)
            high = np.clip(low + 0.25, -1, 1)
            near_by = [cells.of_steps(np.rint(x * STEPS).astype(np.int64) + 777, cut) for x in (low, high)]
            assert np.abs(near_by[0] - near_by[1]).max() <= 1
