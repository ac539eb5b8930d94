"""Rows into the unit ball, the conditions that the way there imposes, and that mechanisms pass them on."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from targetdp import (
    ColumnScales,
    GaussianNoise,
    Guarantee,
    Mondrian,
    Normalized,
    Partitioned,
    PrivateProjection,
    Privatized,
    SphericalLaplace,
    Staircase,
    data_scales,
    declared_scales,
    normalize,
    private_scales,
    sequential,
)
from targetdp._core import Floats
from targetdp.mechanisms import Mechanism, Scores
from targetdp.mechanisms._base import SIMULATION
from targetdp.noise import row_growth
from targetdp.normalization import RowRule, clip_rows
from targetdp.normalization._ball import ROW_CONDITIONS, shrink_rows, unit_rows
from targetdp.normalization._scales import Source

steady = settings(derandomize=True, deadline=None, max_examples=400)

FEW_ULP = 2.0**-50
RULES: list[RowRule] = ["clip", "unit", "largest"]
SOURCES: list[Source] = ["declared", "private", "data"]
LARGEST = 1.7976931348623157e308
SMALLEST = 5e-324


def lengths(X: Floats) -> Floats:
    """Lengths of rows, exact to a unit in the last place, by another way than the code's."""
    return np.array([math.hypot(*row) for row in X.tolist()])


def scales_of(source: Source, columns: int) -> ColumnScales:
    spent = Guarantee(2, 0.5, 2.0**-90) if source == "private" else None
    return ColumnScales(np.zeros(columns), np.ones(columns), source, spent)


def some_rows(n: int = 200, d: int = 4, *, size: float = 1.0, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(scale=size, size=(n, d))


# clip_rows: no distance grows


@st.composite
def pairs(draw: st.DrawFn) -> Floats:
    """Two rows of up to 8 columns at any size, the second often close to the first."""
    d = draw(st.integers(1, 8))
    size = 10.0 ** draw(st.floats(-12, 12))
    values = st.floats(-1, 1, allow_subnormal=False)
    first, second = draw(arrays(np.float64, (2, d), elements=values))
    closeness = draw(st.sampled_from([1.0, 1e-3, 1e-9]))
    return np.stack([first * size, (first + closeness * (second - first)) * size])


@steady
@given(pairs())
def test_clipping_never_grows_a_distance(pair: Floats) -> None:
    """Up to the rounding that every calibration pays for (the second term of `row_growth`)."""
    before, after = math.dist(*pair), math.dist(*clip_rows(pair))
    assert after <= before * (1 + 1e-12) + row_growth(pair.shape[1], 0.0)
    if before > 1e-2:
        assert after <= before * (1 + 1e-12)


def test_clipping_never_grows_a_distance_on_many_random_pairs() -> None:
    rng = np.random.default_rng(1)
    for d in (1, 2, 3, 10, 100):
        x = rng.normal(size=(20_000, d)) * 10 ** rng.uniform(-2, 2, size=(20_000, 1)) / math.sqrt(d)
        z = x + rng.normal(size=x.shape) * 10 ** rng.uniform(-3, 2, size=(20_000, 1)) / math.sqrt(d)
        before = np.linalg.norm(x - z, axis=1)
        after = np.linalg.norm(clip_rows(x) - clip_rows(z), axis=1)
        assert (after <= before * (1 + 1e-12)).all()
        assert (after < before * 0.9).any(), "no pair was clipped"


@pytest.mark.parametrize("d", [1, 2, 3, 10, 300])
def test_at_the_surface_distances_grow_by_rounding_only(d: int) -> None:
    """The worst place: neighbors in floating point, of which one is clipped and the other is not."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3000, d))
    x = x / np.linalg.norm(x, axis=1)[:, None] * (1 + rng.integers(-4, 5, size=(3000, 1)) * 2.0**-52)
    z = np.nextafter(x, x + rng.choice([-1.0, 1.0], size=x.shape))
    growth = np.linalg.norm(clip_rows(x) - clip_rows(z), axis=1) - np.linalg.norm(x - z, axis=1)
    assert growth.max() <= row_growth(d, 0.0)


# clip_rows: where rows end up


@steady
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 8)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_clipped_rows_of_any_floats_lie_in_the_ball_and_others_stay(X: Floats) -> None:
    before, out = X.copy(), clip_rows(X)
    assert np.isfinite(out).all()
    assert (lengths(out) <= 1 + FEW_ULP).all()
    inside = lengths(X) <= 1 - FEW_ULP
    assert out[inside].tobytes() == X[inside].tobytes()
    assert (lengths(out[~inside]) >= 1 - 2 * FEW_ULP).all()
    assert X.tobytes() == before.tobytes()


@pytest.mark.parametrize("d", [1, 30, 1000, 16_384])
def test_wide_rows_leave_the_ball_by_less_than_is_paid_for(d: int) -> None:
    X = some_rows(20, d, size=3.0)
    assert (lengths(clip_rows(X)) - 1 <= row_growth(d, 0.0) / 2).all()


@pytest.mark.parametrize("value", [1e300, -1e300, LARGEST, 1e155, 1e140, 1.0])
@pytest.mark.parametrize("d", [1, 2, 50])
def test_huge_rows_keep_their_direction(value: float, d: int) -> None:
    """Even where the length itself is beyond the largest float."""
    X = np.full((1, d), value)
    for rule in (clip_rows, unit_rows, shrink_rows):
        assert np.allclose(rule(X), math.copysign(1 / math.sqrt(d), value), rtol=1e-14, atol=0)


def test_a_huge_row_among_small_ones_leaves_them_alone() -> None:
    X = np.array([[0.1, 0.2], [LARGEST, -LARGEST], [0.0, 0.0], [3.0, 4.0], [SMALLEST, 0.0]])
    out = clip_rows(X)
    assert out[[0, 2, 4]].tobytes() == X[[0, 2, 4]].tobytes()
    assert out[3] == pytest.approx([0.6, 0.8], rel=1e-15)
    assert out[1] == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)], rel=1e-15)


@pytest.mark.parametrize("value", [SMALLEST, 1e-310, 1e-200, 0.0])
def test_tiny_rows_are_left_alone(value: float) -> None:
    X = np.full((2, 3), value)
    assert clip_rows(X).tobytes() == X.tobytes()


# unit_rows and shrink_rows


@steady
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 8)),
        elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    )
)
def test_unit_rows_all_have_length_one_but_zero(X: Floats) -> None:
    out = unit_rows(X)
    zero = ~X.any(axis=1)
    assert not out[zero].any()
    assert np.abs(lengths(out[~zero]) - 1).max(initial=0) <= FEW_ULP
    assert (np.sign(out) * np.sign(X) >= 0).all()


def test_unit_rows_keep_the_direction_of_tiny_rows() -> None:
    assert unit_rows(np.array([[3e-310, 4e-310]]))[0] == pytest.approx([0.6, 0.8], rel=1e-9)
    assert unit_rows(np.array([[SMALLEST, 0.0]])).tolist() == [[1.0, 0.0]]
    assert unit_rows(np.array([[3e-200, 4e-200]]))[0] == pytest.approx([0.6, 0.8], rel=1e-15)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-3, 1.0, 1e3, 1e300, 1.7e308])
def test_shrunk_rows_keep_their_proportions(size: float) -> None:
    """The longest row has length 1, also where it was shorter before."""
    shape = np.array([[0.3, 0.4], [0.6, 0.8], [0.0, 0.0], [-0.1, 0.2]])
    out = shrink_rows(shape * size)
    tolerance = max(1e-15, SMALLEST / size)  # what denormal numbers can hold
    assert out == pytest.approx(shape, rel=20 * tolerance, abs=0)
    assert lengths(out).max() <= 1 + FEW_ULP


def test_shrinking_nothing_gives_a_copy() -> None:
    X = np.zeros((3, 2))
    out = shrink_rows(X)
    assert not out.any()
    assert not np.shares_memory(out, X)


@pytest.mark.parametrize("rule", [clip_rows, unit_rows, shrink_rows])
def test_row_rules_never_change_or_return_their_input(rule: Callable[[Floats], Floats]) -> None:
    for size in (1e-3, 1.0, 1e3, 1e308):
        X = np.clip(some_rows(size=1.0), -1, 1) * size
        before = X.tobytes()
        X.setflags(write=False)
        out = rule(X)
        assert X.tobytes() == before
        assert not np.shares_memory(out, X)
        assert out.flags.writeable


# normalize


@pytest.mark.parametrize("rows", RULES)
@pytest.mark.parametrize("source", SOURCES)
def test_conditions_are_those_of_the_scales_and_of_the_row_rule(source: Source, rows: RowRule) -> None:
    scales = scales_of(source, 4)
    result = normalize(some_rows(), scales, rows)
    assert result.conditions == scales.conditions + ROW_CONDITIONS[rows]
    assert len(result.conditions) == 1 + (rows != "clip")
    assert result.spent == scales.spent
    assert result.scales is scales
    assert result.rows == rows
    words = " ".join(result.conditions)
    assert ("paid for" in words) == (source != "declared")
    assert ("same column scales" in words) == (source == "data")
    assert ("released scales" in words) == (source == "private")
    assert ("between directions" in words) == (rows == "unit")
    assert ("same largest length" in words) == (rows == "largest")


def test_rows_are_clipped_unless_told_otherwise() -> None:
    X = some_rows()
    assert normalize(X, scales_of("declared", 4)).rows == "clip"
    assert np.array_equal(normalize(X, scales_of("declared", 4)).X, clip_rows(X))
    assert np.array_equal(normalize(X, scales_of("declared", 4), "unit").X, unit_rows(X))
    assert np.array_equal(normalize(X, scales_of("declared", 4), "largest").X, shrink_rows(X))


def test_columns_are_centered_and_scaled_by_hand() -> None:
    scales = declared_scales([10.0, -1.0], [2.0, 4.0])
    result = normalize([[10.0, -1.0], [11.0, 0.0], [16.0, 15.0]], scales)
    assert result.X.tolist() == [[0.0, 0.0], [0.5, 0.25], [0.6, 0.8]]


def test_all_three_real_scales_work_together_with_normalize() -> None:
    X = some_rows(20_000, 2, seed=3)
    for scales in (
        declared_scales([0, 0], [1, 1]),
        data_scales(X),
        private_scales(X, epsilon=1.0, rng=np.random.default_rng(0)),
    ):
        result = normalize(X, scales)
        assert result.X.shape == X.shape
        assert (lengths(result.X) <= 1 + FEW_ULP).all()
        assert result.conditions == scales.conditions
        assert result.spent == scales.spent


LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.int16),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "a list of lists": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("rows", RULES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_result_and_is_not_changed(layout: str, rows: RowRule) -> None:
    whole = np.random.default_rng(4).integers(-9, 10, size=(50, 3)).astype(np.float64)
    X = LAYOUTS[layout](whole)
    if isinstance(X, np.ndarray):
        X.setflags(write=False)
    scales = declared_scales([1.0, 0.0, -1.0], [4.0, 8.0, 16.0])
    out = normalize(X, scales, rows).X
    assert np.array_equal(out, normalize(whole, scales, rows).X)
    assert out.dtype == np.float64
    assert out.flags.c_contiguous
    assert np.array_equal(np.asarray(X), whole)


@pytest.mark.parametrize("rows", RULES)
def test_the_result_never_shares_memory_with_the_input(rows: RowRule) -> None:
    X = some_rows(size=0.1)
    before = X.tobytes()
    result = normalize(X, scales_of("declared", 4), rows)
    assert not np.shares_memory(result.X, X)
    assert X.tobytes() == before


@pytest.mark.parametrize("rows", RULES)
@pytest.mark.parametrize(
    ("X", "center", "scale"),
    [
        ([[1e308], [0.0]], [0.0], [1e-5]),
        ([[1e308], [0.0]], [-1e308], [1.0]),
        ([[1.0], [0.0]], [0.0], [SMALLEST]),
    ],
)
def test_what_overflows_lands_on_the_sphere(X: Any, center: Any, scale: Any, rows: RowRule) -> None:
    """Refusing it would tell a row from one that is clipped to the same point."""
    result = normalize(X, declared_scales(center, scale), rows).X
    assert np.isfinite(result).all()
    assert result[0].tolist() == [1.0]


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_another_number_of_columns_is_refused(columns: int) -> None:
    with pytest.raises(ValueError, match=rf"^X has 4 columns: exactly {columns} are needed"):
        normalize(some_rows(), scales_of("declared", columns))


def test_the_confidential_table_is_not_in_the_repr() -> None:
    secret = normalize([[0.123456, 0.0]], scales_of("declared", 2))
    private = GaussianNoise(B=1, epsilon=1, delta=1e-5).privatize(secret, np.random.default_rng(0))
    assert "0.123456" not in repr(secret)
    assert "X=" not in repr(private)
    assert "conditions=" in repr(private)


# What mechanisms do with a normalized table

SHARES: dict[str, Any] = {"B": 0.5, "epsilon1": 1, "epsilon2": 0.5, "delta1": 1e-5, "delta2": 1e-6}
GAUSSIAN = GaussianNoise(B=0.5, epsilon=1, delta=1e-5)
MECHANISMS: dict[str, Mechanism] = {
    "gaussian": GAUSSIAN,
    "laplace": SphericalLaplace(B=0.25, epsilon=2, delta=1e-5),
    "laplace, pure": SphericalLaplace(B=2, epsilon=2),
    "staircase": Staircase(B=0.5, epsilon=1),
    "projection": PrivateProjection(**SHARES, k=50),
    "projection, exact": PrivateProjection(**SHARES, k=50, calibration="exact"),
    "projection, rank 1": PrivateProjection(**SHARES, k=50, rank=1),
    "Mondrian": Mondrian(3),
    "Mondrian, means": Mondrian(3, value="mean"),
    "partitioned": Partitioned(GAUSSIAN, parts=4),
    "partitioned, own delta": Partitioned(GAUSSIAN, parts=4, rows=40),
    "scores": Scores(np.eye(3) + 0.1, GAUSSIAN),
}


def columns_for(mechanism: Mechanism) -> int:
    return 1 if isinstance(mechanism, Staircase) else 3


def test_every_mechanism_is_tried() -> None:
    def leaves(kind: type) -> set[type]:
        every: list[type] = kind.__subclasses__()
        below = [part for part in every if part.__module__.startswith("targetdp.")]
        return set().union(*map(leaves, below)) if below else {kind}

    known = leaves(Mechanism)  # without what other tests derive from them
    assert {type(mechanism) for mechanism in MECHANISMS.values()} == known


@pytest.mark.parametrize("rows", RULES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_normalized_table_gives_a_private_one_with_everything_to_be_said(
    name: str, source: Source, rows: RowRule
) -> None:
    mechanism = MECHANISMS[name]
    d = columns_for(mechanism)
    table = normalize(some_rows(40, d), scales_of(source, d), rows)
    simulated = mechanism.privatize(table, np.random.default_rng(5))
    assert np.array_equal(simulated.X, mechanism.privatize(table.X, np.random.default_rng(5)))
    assert simulated.guarantee is None  # whatever can be drawn again promises nothing, and says so
    result = mechanism.privatize(table)
    assert isinstance(result, Privatized)
    assert simulated.conditions == (*result.conditions, SIMULATION)
    assert (result.conditions == table.conditions) == (mechanism.guarantee is not None)
    if mechanism.guarantee is None:
        assert isinstance(mechanism, Mondrian)
        assert result.guarantee is None
        assert result.conditions[0].startswith("No guarantee holds")
    elif source == "private":
        assert table.spent is not None
        assert result.guarantee == sequential(table.spent, mechanism.guarantee)
        assert result.guarantee.epsilon == pytest.approx(mechanism.guarantee.epsilon + 0.5)
        assert result.guarantee.B == mechanism.guarantee.B
    else:
        assert result.guarantee == mechanism.guarantee


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_array_gives_an_array(name: str) -> None:
    mechanism = MECHANISMS[name]
    X = some_rows(40, columns_for(mechanism), size=5.0)
    before = X.tobytes()
    out = mechanism.privatize(X, np.random.default_rng(5))
    assert type(out) is np.ndarray
    assert out.dtype == np.float64
    assert out.shape == X.shape
    assert np.isfinite(out).all()
    assert not np.shares_memory(out, X)
    assert X.tobytes() == before


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_clip_rows_themselves(name: str) -> None:
    """No guarantee rests on the caller having clipped, nor on who made a `Normalized`."""
    mechanism = MECHANISMS[name]
    d = columns_for(mechanism)
    X = some_rows(40, d, size=5.0)
    clipped = mechanism.privatize(clip_rows(X), np.random.default_rng(6))
    assert np.array_equal(mechanism.privatize(X, np.random.default_rng(6)), clipped)
    forged = Normalized(X=X, scales=scales_of("declared", d), rows="clip")
    assert np.array_equal(mechanism.privatize(forged, np.random.default_rng(6)).X, clipped)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_needs_no_generator_and_is_never_repeated(name: str) -> None:
    mechanism = MECHANISMS[name]
    d = columns_for(mechanism)
    table = normalize(some_rows(40, d), scales_of("private", d))
    first, second = mechanism.privatize(table), mechanism.privatize(table)
    assert first.guarantee == second.guarantee
    assert np.array_equal(first.X, second.X) == isinstance(mechanism, Mondrian)


def test_simulated_scales_never_lead_to_a_guarantee() -> None:
    X = some_rows(4000, 2)
    scales = private_scales(X, epsilon=1.0, rng=np.random.default_rng(1))
    assert (scales.source, scales.spent) == ("simulated", None)
    result = MECHANISMS["gaussian"].privatize(normalize(X, scales))
    assert result.guarantee is None
    assert "no guarantee holds" in " ".join(result.conditions)
