"""Column scales: declared, from the data, and private ones with their sensitivity, noise and audit."""

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import optimize, stats

from targetdp import ColumnScales, Guarantee, data_scales, declared_scales, private_scales
from targetdp._core import Floats, check
from targetdp.attacks import Audit
from targetdp.attacks._audit import lower_bound
from targetdp.noise import _sampler as noise
from targetdp.normalization import _scales as scales

PAID = Guarantee(2, 1.0, 2.0**-90)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ColumnScales and declared_scales


def test_declared_scales_cost_nothing_and_say_that_they_are_public() -> None:
    result = declared_scales([1, 2], (3.0, np.float32(4)))
    assert result.center.tolist() == [1.0, 2.0]
    assert result.scale.tolist() == [3.0, 4.0]
    assert result.source == "declared"
    assert result.spent is None
    (condition,) = result.conditions
    assert "declared public" in condition


def test_scales_are_frozen_copies() -> None:
    center, scale = np.zeros(2), np.ones(2)
    result = declared_scales(center, scale)
    center[0] = scale[0] = 9.0
    assert result.center.tolist() == [0.0, 0.0]
    assert result.scale.tolist() == [1.0, 1.0]
    for values in (result.center, result.scale):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.source = "private"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("center", "scale", "message"),
    [
        ([0.0, math.nan], [1, 1], r"^center\[1\] = nan is not finite$"),
        ([math.inf, 0], [1, 1], r"^center\[0\] = inf is not finite$"),
        ([0, 0], [1, 0], r"^scale\[1\] = 0.0 is not finite and above 0$"),
        ([0, 0], [-1, 1], r"^scale\[0\] = -1.0 is not finite and above 0$"),
        ([0, 0], [1, math.inf], r"^scale\[1\] = inf is not"),
        ([0, 0], [1], r"^scale has shape \(1,\).*each of the 2 columns"),
        ([0], [1, 1], r"^scale has shape \(2,\).*each of the 1 columns"),
        ([], [], r"^center has shape \(0,\)"),
        (0.0, 1.0, r"^center has shape \(\)"),
        (np.array(0.0), 1.0, r"^center has shape \(\)"),
        ([[0.0]], [[1.0]], r"^center has shape \(1, 1\)"),
        ([[0.0], [0.0, 1.0]], [1, 1], r"^center is not a regular array"),
        ("ab", [1, 1], r"^center has shape \(\) and dtype <U2"),
        (["a", "b"], [1, 1], r"^center has shape \(2,\) and dtype <U1"),
        (None, [1], r"^center has shape \(\) and dtype object"),
        ([True], [1], r"^center has shape \(1,\) and dtype bool"),
        ([0], [1j], r"^scale has shape \(1,\) and dtype complex"),
    ],
)
def test_bad_scales_are_refused(center: Any, scale: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared_scales(center, scale)
    with pytest.raises(ValueError, match=message):
        ColumnScales(center, scale, "data")


@pytest.mark.parametrize("source", ["public", "", None, 1, ["declared"]])
def test_an_unknown_source_is_refused(source: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"^source = .* is not one of confidential, data, declared, earlier, private, simulated$",
    ):
        ColumnScales(np.zeros(1), np.ones(1), source)


@pytest.mark.parametrize(
    ("source", "spent"), [("declared", PAID), ("data", PAID), ("private", None), ("private", 1.0)]
)
def test_what_was_paid_belongs_to_private_scales_only(source: Any, spent: Any) -> None:
    with pytest.raises(ValueError, match=r"^spent = .* does not belong to source = "):
        ColumnScales(np.zeros(1), np.ones(1), source, spent)


# data_scales


def test_data_scales_are_mean_and_deviation() -> None:
    X = rng().normal([1.0, -2.0, 1e6], [1.0, 1e-6, 1e3], size=(500, 3))
    before = X.tobytes()
    result = data_scales(X)
    assert result.center == pytest.approx(X.mean(axis=0), rel=1e-14)
    assert result.scale == pytest.approx(X.std(axis=0), rel=1e-14)
    assert result.source == "data"
    assert result.spent is None
    (condition,) = result.conditions
    assert "only between tables that have the same column scales" in condition
    assert X.tobytes() == before


@pytest.mark.parametrize("value", [0.0, 0.1, -0.1, 1e300, 1e-300, 1 / 3])
@pytest.mark.parametrize("n", [1, 10, 997])
def test_a_constant_column_keeps_its_unit(value: float, n: int) -> None:
    """Though rounding gives 997 times 1/3 a deviation above zero."""
    X = np.column_stack([np.full(n, value), np.arange(float(n))])
    if value > 1e150:
        X = X[:, :1] / 1e200  # its square must not overflow
    assert data_scales(X).scale[0] == 1.0


def test_a_nearly_constant_column_does_not_count_as_constant() -> None:
    X = np.array([[1.0], [1.0 + 1e-9]])
    assert data_scales(X).scale[0] == pytest.approx(5e-10, rel=1e-6)


@pytest.mark.parametrize("value", [1e308, 1.7e308, 1e200])
def test_values_too_large_for_a_deviation_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"^column 0 of X has values too large for a mean and a deviation"):
        data_scales([[value], [-value], [value]])


# Private scales: how far one row moves the sums


def moved(u: Any, w: Any) -> Any:
    """How far (u, u²) is from (w, w²), squared."""
    return (u - w) ** 2 + (u**2 - w**2) ** 2


def minus_moved(pair: Floats) -> float:
    return -float(moved(pair[0], pair[1]))


def test_one_value_moves_its_two_sums_by_at_most_2() -> None:
    """The claim (u − w)² + (u² − w²)² ≤ 4 on [−1, 1]², by grid and by search, and that 4 is reached."""
    grid = np.linspace(-1, 1, 2001)
    values = moved(grid[:, None], grid[None, :])
    assert values.max() == 4.0
    assert {tuple(sorted((grid[i], grid[j]))) for i, j in np.argwhere(values > 4 - 1e-9)} == {(-1.0, 1.0)}
    best = optimize.differential_evolution(minus_moved, optimize.Bounds([-1, -1], [1, 1]), rng=0, tol=1e-12)
    assert -best.fun == pytest.approx(4.0, rel=1e-9)
    for start in rng(1).uniform(-1, 1, size=(30, 2)):
        local = optimize.minimize(minus_moved, start, bounds=[(-1, 1)] * 2)
        assert -local.fun <= 4.0 * (1 + 1e-12)


class Drawn(NamedTuple):
    """What `private_scales` handed to the sampler."""

    sums: Floats
    scale: float
    grid: float


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """Record what goes into the sampler, and draw as always."""
    record: list[Drawn] = []
    sampler = noise.add_spherical_laplace

    def spy(signal: Floats, scale: float, grid: float, words: Any, *, bound: float) -> Floats:
        record.append(Drawn(signal.copy(), scale, grid))
        return sampler(signal, scale, grid, words, bound=bound)

    monkeypatch.setattr(scales, "add_spherical_laplace", spy)
    return record


@pytest.mark.parametrize("d", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 20.0])
def test_the_noise_has_the_scale_of_the_sensitivity(drawn: list[Drawn], d: int, epsilon: float) -> None:
    """2√d/ε, plus the rounding to fixed point, to floats and to the grid, which are paid for."""
    n = 100_000 // d
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private_scales(rng().normal(size=(n, d)), lower=-np.ones(d), upper=np.ones(d), epsilon=epsilon)
    ((sums, scale, grid),) = drawn
    assert sums.shape == (1, 2 * d)
    rounding = math.sqrt(2 * d) * (2.0**-30 + math.ulp(float(n)) + grid)
    assert scale * epsilon >= 2 * math.sqrt(d) + rounding
    assert scale * epsilon <= (2 * math.sqrt(d) + 2 * rounding) * (1 + 1e-8)
    assert scale * epsilon <= 2 * math.sqrt(d) * (1 + 1e-3)
    assert math.frexp(grid)[0] == 0.5, "the grid must be a power of two"


def test_neighbors_move_the_sums_by_no_more_than_is_hidden(drawn: list[Drawn]) -> None:
    """One row replaced by any other, at worst from all-lower to all-upper."""
    n, d, epsilon = 300, 3, 10.0
    low, high = np.array([-1.0, 0.0, 5.0]), np.array([1.0, 10.0, 5.5])
    X = rng(2).uniform(low, high, size=(n, d))
    pairs = [(low, high), *zip(rng(3).uniform(low, high, (50, d)), rng(4).uniform(low, high, (50, d)))]  # noqa: B905
    largest = 0.0
    for first, second in pairs:
        for row in (first, second):
            X[0] = row
            private_scales(X, lower=low, upper=high, epsilon=epsilon, rng=rng())
        largest = max(largest, float(np.linalg.norm(drawn[-1].sums - drawn[-2].sums)))
        assert np.linalg.norm(drawn[-1].sums - drawn[-2].sums) <= drawn[-1].scale * epsilon
    assert largest == pytest.approx(2 * math.sqrt(d), rel=1e-6)


def test_sums_are_exact_and_do_not_depend_on_the_order_of_rows(drawn: list[Drawn]) -> None:
    n, d = 5000, 3
    X = rng(5).uniform(-1, 1, size=(n, d)) * 10.0 ** rng(6).uniform(-9, 0, size=(n, d))
    for seed in range(20):
        permuted = X[rng(seed).permutation(n)]
        private_scales(permuted, lower=-np.ones(d), upper=np.ones(d), epsilon=1.0, rng=rng())
    assert len({call.sums.tobytes() for call in drawn}) == 1
    plain = {np.sum(X[rng(seed).permutation(n)], axis=0).tobytes() for seed in range(20)}
    assert len(plain) > 1, "plain sums do not depend on the order either: the test proves nothing"
    expected = [math.fsum(column) for column in np.hstack([X, X * X]).T]
    assert np.abs(drawn[0].sums[0] - expected).max() <= n * 2.0**-31


def test_the_release_does_not_depend_on_the_order_of_rows() -> None:
    X = rng(7).normal(size=(3000, 2))
    first, second = (
        private_scales(table, lower=[-3, -3], upper=[3, 3], epsilon=1.0, rng=rng(8)) for table in (X, X[::-1])
    )
    assert first.center.tobytes() == second.center.tobytes()
    assert first.scale.tobytes() == second.scale.tobytes()


# Private scales: the noise as released


def released_noise(runs: int, n: int, d: int, epsilon: float, seed: int) -> Floats:
    """The noise on the 2d sums, recomputed from what was released."""
    low, high = np.full(d, -3.0), np.full(d, 5.0)
    X = rng(seed).uniform(-1, 3, size=(n, d))  # u in [−1/2, 1/2]: no released value is clipped
    u = (X - 1.0) / 4.0
    generator = rng(seed + 1)
    added = np.empty((runs, 2 * d))
    for run in range(runs):
        result = private_scales(X, lower=low, upper=high, epsilon=epsilon, rng=generator)
        mean = (result.center - 1.0) / 4.0
        square = (result.scale / 4.0) ** 2 + mean**2
        added[run] = n * np.concatenate([mean, square]) - np.concatenate([u.sum(axis=0), (u * u).sum(axis=0)])
    return added


def test_released_noise_is_spherical_laplace_of_the_claimed_scale() -> None:
    """Lengths of noise of scale b in D dimensions are b·Gamma(D).

    False alarm: each |z| > 4.9 has probability 10⁻⁶, the two tests of distribution 10⁻⁶ each. Power: with
    4,000 runs in 4 dimensions, 10% are 12 standard errors.
    """
    runs, d, epsilon = 4000, 2, 10.0
    added = released_noise(runs, 2000, d, epsilon, seed=10)
    size = 2 * d
    radius = np.linalg.norm(added, axis=1)

    def z(scale: float) -> float:
        return float((radius.mean() / (scale * size) - 1) * math.sqrt(size * runs))

    claimed = 2 * math.sqrt(d) / epsilon
    assert abs(z(claimed)) < 4.9
    assert abs(z(0.9 * claimed)) > 4.9
    assert abs(z(1.1 * claimed)) > 4.9
    law = stats.gamma(size, scale=claimed).cdf
    assert stats.kstest(radius, law).pvalue > 1e-6
    assert stats.kstest(radius / 0.9, law).pvalue < 1e-6
    assert stats.kstest(radius / 1.1, law).pvalue < 1e-6
    # Every direction is equally likely: centered, equal variances, no correlation.
    deviation = claimed * math.sqrt(size + 1)
    assert np.abs(added.mean(axis=0)).max() < 4.9 * deviation / math.sqrt(runs)
    directions = added / radius[:, None]
    assert stats.kstest(np.abs(directions[:, 0]) ** 2, stats.beta(0.5, 1.5).cdf).pvalue > 1e-6
    error = np.abs(directions.T @ directions / runs - np.eye(size) / size)
    assert error.max() < 4.9 * math.sqrt(0.125 / runs)  # E c⁴ = 3/24, so no entry has a larger variance


# Private scales: an adversary


def audit(d: int, epsilon: float, runs: int) -> Audit:
    """Everyone in the middle; one row is all-lower or all-upper. The score is the sum of released means."""
    n = math.ceil(60 * d / epsilon) * 4
    low, high = np.full(d, -2.0), np.full(d, 6.0)
    scores = []
    for row, seed in ((high, 20), (low, 21)):
        X = np.full((n, d), 2.0)
        X[0] = row
        generator = rng(seed)
        scores.append(
            [
                private_scales(X, lower=low, upper=high, epsilon=epsilon, rng=generator).center.sum()
                for _ in range(runs)
            ]
        )
    return lower_bound(np.array(scores[0]), np.array(scores[1]), delta=2.0**-90, confidence=0.999)


@pytest.mark.parametrize(("d", "epsilon", "share"), [(1, 1.0, 0.4), (3, 3.0, 0.25)])
def test_an_audit_does_not_refute_the_claim(d: int, epsilon: float, share: float) -> None:
    """False alarm: at most 1 in 1,000 by the audit's own confidence. It proves a share of ε: it has power."""
    found = audit(d, epsilon, runs=5000)
    assert not found.refutes(epsilon)
    assert found.refutes(share * epsilon), "the audit has no power"


def test_an_audit_catches_too_little_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = noise.add_spherical_laplace
    monkeypatch.setattr(
        scales,
        "add_spherical_laplace",
        lambda signal, scale, grid, words, bound: sampler(signal, scale / 3, grid, words, bound=bound),
    )
    assert audit(1, 1.0, runs=2000).refutes(1.0)


# Private scales: thresholds that depend on public numbers only

TABLES: dict[str, Callable[[int, int], Floats]] = {
    "zeros": lambda n, d: np.zeros((n, d)),
    "spread": lambda n, d: rng(30).normal(size=(n, d)),
    "outside": lambda n, d: np.full((n, d), 1e9),
    "one far row": lambda n, d: np.vstack([np.full((1, d), -1e300), np.zeros((n - 1, d))]),
}


def deviation(n: int, d: int, epsilon: float) -> float:
    """Deviation of the noise on a mean, as a share of the half-range, to six digits."""
    return 2 * math.sqrt(d) / epsilon * math.sqrt(2 * d + 1) / n


def rows_for(share: float, d: int, epsilon: float) -> int:
    return round(deviation(1, d, epsilon) / share)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_thresholds_depend_on_public_numbers_only(table: str, d: int, epsilon: float) -> None:
    """Refused above 25% of a half-range, warned of above 2%, silent below; same words for every table."""

    def run(share: float, half_range: float) -> ColumnScales:
        X = TABLES[table](rows_for(share, d, epsilon), d)
        bound = np.full(d, half_range)
        return private_scales(X, lower=-bound, upper=bound, epsilon=epsilon, rng=rng())

    for half_range in (1e-6, 1.0, 1e6):
        n = rows_for(0.27, d, epsilon)
        share = deviation(n, d, epsilon)
        with pytest.raises(ValueError, match=r"noise of 2[67]\.\d% of its column's half-range") as refused:
            run(0.27, half_range)
        assert str(refused.value) == (
            f"epsilon = {epsilon:g} for the scales of {d} columns and {n} rows gives every mean a noise of "
            f"{share:.1%} of its column's half-range: use fewer columns, a larger epsilon "
            f"(about {epsilon * share / 0.02:.2g}) or declared scales"
        )
        with pytest.warns(UserWarning, match=r"half-range: use fewer columns") as caught:
            run(0.22, half_range)
        assert len(caught) == 1
        assert caught[0].filename == __file__, "the warning must point at the caller"
        with pytest.warns(UserWarning, match=r"noise of 2\.[12]% of its"):
            run(0.0215, half_range)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(0.0195, half_range)


def test_the_advised_epsilon_is_enough() -> None:
    X, bound = np.zeros((100, 2)), np.ones(2)
    with pytest.warns(UserWarning, match=r"larger epsilon \(about ") as caught:
        private_scales(X, lower=-bound, upper=bound, epsilon=1.0, rng=rng())
    advised = float(str(caught[0].message).split("about ")[1].split(")")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private_scales(X, lower=-bound, upper=bound, epsilon=advised * 1.05, rng=rng())


# Private scales: what is refused and what is clipped

GOOD: dict[str, Any] = {"lower": [0.0, 0.0], "upper": [1.0, 2.0], "epsilon": 1.0}
ROWS = np.full((1000, 2), 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": [2.0, 0.0]}, r"^upper\[0\] = 1.0 is not above lower\[0\] = 2.0 "),
        (
            {"upper": [1.0, 0.0]},
            r"^upper\[1\] = 0.0 is not above lower\[1\] = 0.0 .*: give bounds lower < upper$",
        ),
        ({"upper": [1.0, 5e-324]}, r"^upper\[1\] = 5e-324 is not above lower\[1\] = 0.0 by at least 2e-290"),
        ({"lower": [-5e-324, 0], "upper": [5e-324, 1]}, r"^upper\[0\] = 5e-324 is not above"),
        ({"lower": [math.nan, 0.0]}, r"^lower\[0\] = nan is not finite"),
        ({"upper": [1.0, math.inf]}, r"^upper\[1\] = inf is not finite"),
        ({"lower": [0.0]}, r"^lower has shape \(1,\).*each of the 2 columns"),
        ({"upper": [1.0, 1.0, 1.0]}, r"^upper has shape \(3,\).*each of the 2 columns"),
        ({"lower": 0.0}, r"^lower has shape \(\)"),
        ({"upper": "ab"}, r"^upper has shape \(\)"),
        ({"upper": None}, r"^upper has shape \(\)"),
        ({"epsilon": 0.0}, r"^epsilon = 0.0 is outside \[0.0001, 100\]"),
        ({"epsilon": -1.0}, r"^epsilon = -1.0 is outside \[0.0001, 100\]"),
        ({"epsilon": 101}, r"^epsilon = 101.0 is outside \[0.0001, 100\]"),
        ({"epsilon": math.nan}, r"^epsilon = nan is outside"),
        ({"epsilon": "1"}, r"^epsilon = '1' is not a number"),
        ({"rng": 0}, r"^rng = 0 is not a numpy Generator: pass np.random.default_rng"),
        ({"rng": np.random.RandomState(0)}, r"^rng = RandomState.* cannot be seeded"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        private_scales(ROWS, **{**GOOD, **change})


def test_more_columns_than_the_noise_covers_are_refused() -> None:
    """2d sums are released, and the sampler's tail is bounded for up to 16,384 of them."""
    d = check.MAX_COLUMNS // 2 + 1
    with pytest.raises(ValueError, match=rf"^X has {d} columns: private scales take at most {d - 1}"):
        private_scales(np.zeros((2, d)), lower=-np.ones(d), upper=np.ones(d), epsilon=1.0)


def test_values_outside_the_bounds_are_clipped() -> None:
    X = rng(40).normal(size=(5000, 3)) * 10.0 ** rng(41).integers(-2, 300, size=(5000, 3))
    X[0] = [1.7e308, -1.7e308, 1e308]
    before = X.tobytes()
    low, high = np.array([-1.0, 0.0, -1e308]), np.array([1.0, 0.5, -0.9e308])
    arguments: dict[str, Any] = {"lower": low, "upper": high, "epsilon": 2.0}
    first = private_scales(X, **arguments, rng=rng(42))
    second = private_scales(np.clip(X, low, high), **arguments, rng=rng(42))
    assert first.center.tobytes() == second.center.tobytes()
    assert first.scale.tobytes() == second.scale.tobytes()
    assert X.tobytes() == before


@pytest.mark.parametrize("epsilon", [0.5, 1, 100])
def test_what_was_spent_is_classic_differential_privacy(epsilon: float) -> None:
    result = private_scales(ROWS, **{**GOOD, "epsilon": epsilon})
    assert result.spent == Guarantee(2, epsilon, 2.0**-90)
    assert result.source == "private"
    (condition,) = result.conditions
    assert "paid for" in condition
    assert not result.center.flags.writeable
    assert not result.scale.flags.writeable


def test_a_simulation_repeats_and_a_release_does_not() -> None:
    same = [private_scales(ROWS, **GOOD, rng=rng(1)).center.tobytes() for _ in range(2)]
    assert same[0] == same[1]
    assert private_scales(ROWS, **GOOD, rng=rng(2)).center.tobytes() != same[0]
    assert len({private_scales(ROWS, **GOOD).center.tobytes() for _ in range(5)}) == 5


def test_every_layout_gives_the_same_scales() -> None:
    whole = rng(43).integers(0, 10, size=(2000, 2)).astype(np.float64)
    arguments: dict[str, Any] = {"lower": [0, 0], "upper": [10, 10], "epsilon": 1}
    expected = private_scales(whole, **arguments, rng=rng(1)).center
    for X in (whole.astype(np.int8), whole.astype(np.float32), np.asfortranarray(whole), whole.tolist()):
        assert np.array_equal(private_scales(X, **arguments, rng=rng(1)).center, expected)


# Private scales: what they are good for


def test_scales_of_a_large_table_are_accurate() -> None:
    """The noise has 1.5·10⁻⁴ of a half-range; 10 deviations have a chance below 10⁻⁶ (Gamma tail)."""
    n, d = 100_000, 5
    center, spread = np.array([0.0, 10.0, -5.0, 1e6, 1e-6]), np.array([1.0, 2.0, 0.5, 1e5, 1e-7])
    X = rng(50).normal(center, spread, size=(n, d))
    low, high = center - 5 * spread, center + 5 * spread
    result = private_scales(X, lower=low, upper=high, epsilon=1.0, rng=rng(51))
    error = 10 * deviation(n, d, 1.0) * 5 * spread
    assert (np.abs(result.center - X.mean(axis=0)) < error).all()
    assert result.scale == pytest.approx(X.std(axis=0), rel=0.05)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, -7.0])
def test_scales_of_a_constant_column_stay_within_bounds_and_above_the_noise(value: float) -> None:
    """A variance that is not told from zero is never divided by."""
    n = 5000
    for seed in range(50):
        result = private_scales(np.full((n, 1), value), lower=[0], upper=[1], epsilon=1.0, rng=rng(seed))
        assert 0.0 <= result.center[0] <= 1.0
        assert 2 * deviation(n, 1, 1.0) * 0.5 * (1 - 1e-5) <= result.scale[0] <= 0.5


def test_one_row_and_one_column_are_enough_with_a_large_epsilon() -> None:
    with pytest.warns(UserWarning, match="1 columns and 1 rows"):
        result = private_scales([[0.5]], lower=[0], upper=[1], epsilon=100, rng=rng())
    assert result.center == pytest.approx([0.5], abs=0.5)
