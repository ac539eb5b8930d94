"""Linkage against slow twins, on ties and edges, and its shares against what chance allows."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, multivariate_normal

from targetdp import GaussianNoise, Mondrian, Partitioned, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import Floats, Silent
from targetdp.attacks import covariance_of, density_of, linkage
from targetdp.attacks._linkage import ASSIGNED, LIKELIEST, NEAREST, SCALED, SEEN, SOFT
from targetdp.attacks._match._matchers import assign, plateau_ranks
from targetdp.attacks._match._pairs import log_sums
from targetdp.mechanisms import NoiseMechanism, StaircaseDensity
from targetdp.noise._random_words import SimulatedWords
from targetdp.normalization import clip_rows

LAPLACE = SphericalLaplace(B=0.25, epsilon=4)
GAUSSIAN = GaussianNoise(B=0.25, epsilon=4, delta=1e-4)
PROJECTION = PrivateProjection(
    B=0.02, epsilon1=2, epsilon2=0.9, delta1=1e-3, delta2=1e-3, k=6, calibration="exact"
)


def people(n: int, d: int, seed: int = 0) -> Floats:
    return clip_rows(0.3 * np.random.default_rng(seed).standard_normal((n, d)))


def release(mechanism: NoiseMechanism, X: Floats, seed: int = 1) -> Floats:
    return mechanism.privatize(X, np.random.default_rng(seed))


def share(
    X: Floats, X_priv: Floats, noise: Any = None, way: str = NEAREST, rank: int = 1, **more: Any
) -> float:
    found = linkage(X, X_priv, noise, ranks=(1, rank), rng=np.random.default_rng(2), **more)
    return float(found.detail["shares"][way][f"rank_{rank}"]["share"])


def slow_share(costs: Floats, rank: int) -> float:
    """Row i's own person is i: every place that its ties allow is tried."""
    chances = []
    for i, row in enumerate(costs):
        before, tied = int((row < row[i]).sum()), int((row == row[i]).sum())
        chances.append(np.mean([place <= rank for place in range(before + 1, before + tied + 1)]))
    return float(np.mean(chances))


def squares(X_priv: Floats, X: Floats) -> Floats:
    out = np.zeros((len(X_priv), len(X)))
    for z, x in zip(X_priv.T, X.T, strict=True):
        out += (z[:, None] - x[None, :]) ** 2
    return out


# The slow twins


@pytest.mark.parametrize("rank", [1, 3, 10])
@pytest.mark.parametrize(("n", "d", "digits"), [(300, 3, 9), (200, 2, 1), (7, 12, 2), (60, 1, 1)])
def test_nearest_rows_are_those_of_the_slow_twin(n: int, d: int, digits: int, rank: int) -> None:
    X = np.round(people(n, d), digits)
    X_priv = np.round(X + 0.1 * np.random.default_rng(3).standard_normal(X.shape), digits)
    assert share(X, X_priv, rank=rank) == pytest.approx(slow_share(squares(X_priv, X), rank), abs=1e-12)


@pytest.mark.parametrize("rank", [1, 10])
def test_likelihood_under_a_projection_is_the_normal_density_with_its_covariance(rank: int) -> None:
    """k = 6 for 4 columns: directions differ much, so that distance and likelihood disagree."""
    X = people(200, 4)
    X_priv = PROJECTION.law(4).add_to(X, SimulatedWords(np.random.default_rng(5)))
    noise = multivariate_normal(np.zeros(4), PROJECTION.noise_covariance(4))
    costs = np.array([-noise.logpdf(z - X) for z in X_priv])
    expected = slow_share(np.round(costs, 9), rank)
    assert share(X, X_priv, PROJECTION, LIKELIEST, rank) == pytest.approx(expected, abs=1e-12)
    assert share(X, X_priv, PROJECTION.law(4), LIKELIEST, rank) == pytest.approx(expected, abs=1e-12)
    assert expected > share(X, X_priv, PROJECTION, NEAREST, rank) + 0.02


def test_a_projection_onto_fewer_directions_than_columns_is_likelier_by_what_it_kept() -> None:
    narrow = PrivateProjection(
        B=0.02, epsilon1=2, epsilon2=0.9, delta1=1e-3, delta2=1e-3, k=2, calibration="exact"
    )
    X = people(100, 4)
    X_priv = narrow.law(4).add_to(X, SimulatedWords(np.random.default_rng(6)))
    U = narrow.public_projection(4).directions
    inside = multivariate_normal(np.zeros(2), U.T @ narrow.noise_covariance(4) @ U)
    costs = np.array([-inside.logpdf((z - X) @ U) for z in X_priv])
    found = share(X, X_priv, narrow, LIKELIEST)
    assert found == pytest.approx(slow_share(np.round(costs, 9), 1), abs=1e-12)


@pytest.mark.parametrize("step", [None, 0.125, 0.5])
@pytest.mark.parametrize("rank", [1, 10])
def test_under_a_staircase_everybody_on_a_step_is_tied(rank: int, step: float | None) -> None:
    mechanism = Staircase(B=0.25, epsilon=1)
    law = mechanism.law()
    X = people(150, 1)
    X = X if step is None else np.round(X / step) * step
    X_priv = release(mechanism, X)
    apart = np.abs(X_priv - X[:, 0]) / law.grid  # in whole steps of the grid, as the law says it
    down = np.where(apart < law.inner, 0, 1 + (apart - law.inner) // law.period)
    found = share(X, X_priv, mechanism, LIKELIEST, rank)
    assert found == pytest.approx(slow_share(down, rank), abs=1e-12)


@pytest.mark.parametrize("noise", [None, LAPLACE, GAUSSIAN, PROJECTION])
@pytest.mark.parametrize("equal", [False, True])
def test_the_assignment_is_the_likeliest_of_all(noise: NoiseMechanism | None, equal: bool) -> None:
    """All 720 orders of six people; equal rows make several of them the best, and each counts the same."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        X = people(6, 2, int(rng.integers(1000)))
        X_priv = X + 0.2 * rng.standard_normal(X.shape)
        if equal:
            X[1] = X[0]
            X[4] = X[3] = X[2]
            X_priv[2] = X_priv[0]
        shape = density_of(noise, 2)
        costs = squares(X_priv, X)
        if isinstance(noise, SphericalLaplace):
            costs = np.sqrt(costs)
        elif noise is PROJECTION:
            normal = multivariate_normal(np.zeros(2), PROJECTION.noise_covariance(2))
            costs = np.array([-normal.logpdf(z - X) for z in X_priv])
        orders = np.array(list(itertools.permutations(range(6))))
        totals = costs[np.arange(6), orders].sum(axis=1)
        best = orders[totals <= totals.min() + 1e-9 * (1 + abs(totals.min()))]
        chances = assign(X, X_priv, shape, rng, Silent())
        assert np.allclose(chances, (best == np.arange(6)).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("rank", [1, 10])
def test_people_on_the_edge_of_a_step_are_on_the_lower_one(rank: int) -> None:
    """All numbers are eighths, so that many are exactly on an edge."""
    rng = np.random.default_rng(6)
    x, z = rng.integers(-8, 9, 80) / 8, rng.integers(-16, 17, 80) / 8
    shape = StaircaseDensity(period=0.5, inner=0.125, level=1.0)
    apart = np.abs(z[:, None] - x)
    down = np.where(apart < 0.125, 0, 1 + (apart - 0.125) // 0.5)
    found = plateau_ranks(x, z, shape.plateau(np.abs(z - x))).share_within(rank).mean()
    assert found == pytest.approx(slow_share(down, rank), abs=1e-12)
    assert np.array_equal(shape.log_density(apart**2), -down)


def test_an_assignment_among_equals_is_no_hint() -> None:
    """Everybody on one step of the staircase: all matchings are equally likely, the true one no more so."""
    stairs = Staircase(B=2, epsilon=0.1)
    X = 1e-3 * people(300, 1)
    found = linkage(X, X, stairs, rng=np.random.default_rng(0))
    assert found.detail["shares"][LIKELIEST]["rank_1"]["share"] == pytest.approx(1 / 300)
    assert found.detail["shares"][SOFT]["rank_1"]["share"] == pytest.approx(1 / 300)
    assert found.detail["shares"][ASSIGNED]["rank_1"]["share"] <= binom.isf(1e-6, 300, 1 / 300) / 300


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_soft_matching_is_sinkhorn_twice(mechanism: NoiseMechanism) -> None:
    X = people(150, 3)
    X[7] = X[8]
    X_priv = release(mechanism, X)
    shape = density_of(mechanism, 3)
    assert shape is not None
    logs = shape.log_density(squares(X_priv, X))
    weights = np.zeros(len(X))
    for _ in range(2):
        rows = -logsumexp(logs + weights, axis=1)
        weights = -logsumexp(logs + rows[:, None], axis=0)
    expected = np.round(-(logs + weights), 7)
    for rank in (1, 10):
        assert share(X, X_priv, mechanism, SOFT, rank) == pytest.approx(slow_share(expected, rank), abs=1e-12)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, Staircase(B=0.25, epsilon=1)])
@pytest.mark.parametrize("points", [1, 5, 4099])
def test_log_sums_are_scipys(mechanism: NoiseMechanism, points: int) -> None:
    d = 1 if isinstance(mechanism, Staircase) else 3
    rng = np.random.default_rng(5)
    queries, others, weights = (
        rng.normal(size=(70, d)),
        rng.normal(size=(points, d)),
        99 * rng.normal(size=points),
    )
    shape = density_of(mechanism, d)
    assert shape is not None
    expected = logsumexp(shape.log_density(squares(queries, others)) + weights, axis=1)
    assert np.allclose(log_sums(queries, others, shape, weights, Silent()), expected, rtol=1e-13, atol=1e-12)


def test_soft_matching_helps_where_noise_is_middling() -> None:
    X = people(800, 6)
    X_priv = release(SphericalLaplace(B=0.12, epsilon=4), X)
    noise = SphericalLaplace(B=0.12, epsilon=4)
    assert share(X, X_priv, noise, SOFT) > share(X, X_priv, noise) + 0.02


# Scores at both ends


@pytest.mark.parametrize("noise", [None, LAPLACE, GAUSSIAN, PROJECTION])
def test_a_release_without_noise_protects_nobody(noise: NoiseMechanism | None) -> None:
    X = people(300, 4)
    found = linkage(X, X, noise, rng=np.random.default_rng(0))
    assert found.score == 0
    # Soft matching believes in the noise that it is told of, and shares rows out too widely without it.
    assert all(setting.score == 0 for name, setting in found.settings.items() if name != SOFT)
    assert found.bound == "upper"


def test_every_way_finds_everybody_where_noise_is_tiny() -> None:
    X, tiny = people(300, 4), SphericalLaplace(B=1e-4, epsilon=4)
    found = linkage(X, release(tiny, X), tiny, rng=np.random.default_rng(0))
    assert all(setting.score == 0 for setting in found.settings.values())


def test_equal_rows_protect_each_other() -> None:
    """100 people alone, 50 pairs and 20 groups of five: 170 of 300 are found, by every way."""
    base = people(170, 3)
    X = np.repeat(base, [1] * 100 + [2] * 50 + [5] * 20, axis=0)
    found = linkage(X, X, LAPLACE, ranks=(1, 2, 5), rng=np.random.default_rng(0))
    for name in (NEAREST, ASSIGNED, SOFT):
        assert found.settings[name].score == pytest.approx(1 - 170 / 300)
    assert found.detail["shares"][NEAREST]["rank_2"]["share"] == pytest.approx((100 + 100 + 40) / 300)
    assert found.detail["shares"][SOFT]["rank_5"]["share"] == pytest.approx(1)


def test_pure_noise_leaves_chance_only_and_noise_leaves_more() -> None:
    X = people(1000, 5)
    noise = release(SphericalLaplace(B=2, epsilon=1), np.zeros_like(X))
    found = linkage(X, noise, SphericalLaplace(B=2, epsilon=1), rng=np.random.default_rng(1))
    most = binom.isf(1e-6, 1000, 1 / 1000) / 1000
    for name in (NEAREST, ASSIGNED, SOFT):
        assert found.detail["shares"][name]["rank_1"]["share"] <= most
    assert found.score >= 1 - most
    assert found.interval[1] >= 1 - 1 / 1000 >= found.interval[0]
    assert found.detail["shares"][NEAREST]["rank_10"]["chance"] == pytest.approx(0.01)
    weak = linkage(X, release(LAPLACE, X), LAPLACE, rng=np.random.default_rng(1))
    assert weak.interval[1] < 1 - most


def test_a_release_that_is_the_same_for_all_leaves_exactly_chance() -> None:
    X = people(50, 3)
    found = linkage(X, np.zeros_like(X), rng=np.random.default_rng(0), assignment_limit=0)
    assert found.score == pytest.approx(1 - 1 / 50)  # all rows are given to the same person
    same = linkage(np.zeros((50, 3)), people(50, 3), LAPLACE, rng=np.random.default_rng(0))
    assert all(setting.score == pytest.approx(1 - 1 / 50) for setting in same.settings.values())
    assert same.detail["shares"][NEAREST]["rank_10"]["share"] == pytest.approx(10 / 50)


@pytest.mark.parametrize("d", [1, 5])
def test_one_person_is_always_found(d: int) -> None:
    found = linkage(people(1, d), people(1, d, 9), LAPLACE)
    assert found.score == 0
    assert found.detail["shares"][NEAREST]["rank_10"]["chance"] == 1


def test_the_order_of_people_does_not_matter() -> None:
    X = people(400, 3)
    X_priv = release(LAPLACE, X)
    order = np.random.default_rng(8).permutation(400)
    one, other = (
        linkage(a, b, LAPLACE, rng=np.random.default_rng(0))
        for a, b in ((X, X_priv), (X[order], X_priv[order]))
    )
    assert {k: s.score for k, s in one.settings.items()} == pytest.approx(
        {k: s.score for k, s in other.settings.items()}, abs=1e-12
    )


# What is run, and what is said


def test_noise_that_orders_as_distance_is_not_run_twice() -> None:
    X = people(50, 3)
    for mechanism in (LAPLACE, GAUSSIAN, Partitioned(LAPLACE), LAPLACE.law(3)):
        found = linkage(X, X, mechanism)
        assert set(found.settings) == {NEAREST, ASSIGNED, SOFT}
        assert any("nearest row is the most likely one" in note for note in found.detail["notes"])
    assert set(linkage(X, X).settings) == {NEAREST, SCALED, ASSIGNED}
    assert set(linkage(X, X, PROJECTION).settings) == {NEAREST, LIKELIEST, ASSIGNED, SOFT}


def test_no_column_counts_for_its_unit_alone() -> None:
    """Without known noise one column in small units must not drown the others."""
    X = people(400, 4)
    units = np.array([1e4, 1.0, 1.0, 1.0])
    released = (X + 0.02 * np.random.default_rng(0).standard_normal(X.shape)) * units
    released[:, 0] += 3e3 * np.random.default_rng(1).standard_normal(400)
    found = linkage(X * units, released, assignment_limit=0)
    assert found.strongest == SCALED
    assert found.score < 0.5 * found.settings[NEAREST].score
    assert linkage(X * units, released).settings[ASSIGNED].score < 0.5


def test_directions_that_were_not_released_do_not_count() -> None:
    X = people(500, 6)
    mechanism = PrivateProjection(
        B=0.02, epsilon1=3, epsilon2=0.9, delta1=1e-4, delta2=1e-4, k=1000, rank=2, calibration="exact"
    )
    released = mechanism.privatize(X, np.random.default_rng(0))
    found = linkage(X, released, mechanism, assignment_limit=0)
    assert found.strongest == SEEN
    assert found.score < found.settings[NEAREST].score - 0.02


def test_intervals_of_one_to_one_ways_count_couples_once() -> None:
    """Couples of equal distance are found or missed together: 200 tables of 60 people, 95%."""
    covered, truths = 0, []
    runs = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        home = rng.standard_normal((30, 1)) * 100
        X = np.repeat(home, 2, axis=0) + np.tile([[0.0], [1.0]], (30, 1))
        found = linkage(X, X + rng.standard_normal(X.shape), assignment_limit=100).settings[ASSIGNED]
        truths.append(found.score)
        runs.append(found.interval)
    truth = float(np.mean(truths))
    covered = sum(low <= truth <= high for low, high in runs)
    assert covered >= 190


@pytest.mark.parametrize("size", [1e-170, 1e200])
def test_values_without_squares_are_refused(size: float) -> None:
    X = people(20, 2)
    with pytest.raises(ValueError, match="range of floats"):
        linkage(X * size, X * size)


def test_what_takes_too_long_is_left_out_and_said() -> None:
    X = people(50, 3)
    found = linkage(X, X, LAPLACE, assignment_limit=49, matching_limit=49)
    assert set(found.settings) == {NEAREST}
    said = " ".join(found.detail["notes"])
    assert "assignment_limit is 49" in said
    assert "matching_limit is 49" in said
    assert set(linkage(X, X, LAPLACE, assignment_limit=50, matching_limit=50).settings) == {
        NEAREST,
        ASSIGNED,
        SOFT,
    }


def test_noise_without_a_law_for_each_row_is_taken_as_normal() -> None:
    truncated = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9, delta1=1e-3, delta2=1e-3, rank=2, k=50)
    X = people(50, 4)
    found = linkage(X, release(truncated, X), truncated)
    assert any("taken as normal" in note for note in found.detail["notes"])
    assert np.allclose(covariance_of(truncated, 4), truncated.noise_covariance(4))


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, PROJECTION, Staircase(B=0.25, epsilon=4)])
def test_a_law_has_its_mechanisms_covariance(mechanism: NoiseMechanism) -> None:
    d = 1 if isinstance(mechanism, Staircase) else 4
    expected = mechanism.noise_covariance(d)
    assert np.allclose(covariance_of(mechanism, d), expected, rtol=1e-12, atol=0)
    assert np.allclose(covariance_of(mechanism.law(d), d), expected, rtol=1e-12, atol=1e-18)


def test_the_record_is_plain_and_intervals_share_the_doubt() -> None:
    X = people(500, 3)
    found = linkage(X, release(LAPLACE, X), LAPLACE, confidence=0.9, rng=np.random.default_rng(0))
    assert json.loads(json.dumps(found.record()))["detail"]["people"] == 500
    alone = linkage(
        X, release(LAPLACE, X), LAPLACE, confidence=1 - 0.1 / 3, assignment_limit=0, matching_limit=0
    )
    assert found.settings[NEAREST].interval == pytest.approx(alone.settings[NEAREST].interval)
    for setting in found.settings.values():
        assert setting.interval[0] < setting.score < setting.interval[1]


def test_progress_hears_of_every_row() -> None:
    heard: list[list[Any]] = []

    class Watch:
        def phase(self, name: str, rows: int | None) -> None:
            heard.append([name, rows, 0])

        def advance(self, rows: int) -> None:
            heard[-1][2] += rows

    X = people(300, 4)
    linkage(X, X, PROJECTION, progress=Watch())
    assert [name for name, _, _ in heard] == [NEAREST, LIKELIEST, ASSIGNED, SOFT]
    assert all(rows == done for _, rows, done in heard)


def test_shares_are_within_their_intervals_as_often_as_they_say() -> None:
    """300 releases of one mechanism, at 80%: intervals miss the mean share no oftener than luck allows."""
    rng = np.random.default_rng(7)
    noise = SphericalLaplace(B=0.1, epsilon=4)
    found = []
    for _ in range(300):
        X = clip_rows(0.3 * rng.standard_normal((80, 2)))
        found.append(
            linkage(X, noise.privatize(X, rng), confidence=0.8, assignment_limit=0).settings[NEAREST]
        )
    mean = np.mean([setting.score for setting in found])
    missed = sum(not setting.interval[0] <= mean <= setting.interval[1] for setting in found)
    assert missed <= binom.isf(1e-4, 300, 0.2)
    assert missed >= 10  # intervals that never miss are too wide to say anything


# Bad input


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"X_priv": np.zeros((4, 2))}, ValueError, "join them by id"),
        ({"X_priv": np.zeros((5, 3))}, ValueError, "exactly 2"),
        ({"X": np.full((5, 2), np.nan)}, ValueError, "NaN"),
        ({"X": np.full((5, 2), 3.0), "noise": LAPLACE}, ValueError, "outside the unit ball"),
        ({"noise": Mondrian(2)}, TypeError, "neither a noise mechanism nor a noise law"),
        ({"noise": 0.3}, TypeError, "give the one that made the release"),
        ({"noise": LAPLACE.law(3)}, ValueError, "a law for 3 columns"),
        ({"noise": Staircase(B=1, epsilon=1)}, ValueError, "exactly 1 column"),
        ({"ranks": (0,)}, ValueError, "ranks = 0"),
        ({"ranks": (1.5,)}, TypeError, "ranks"),
        ({"assignment_limit": -1}, ValueError, "assignment_limit"),
        ({"matching_limit": None}, TypeError, "matching_limit"),
        ({"confidence": 1}, ValueError, "confidence"),
        ({"rng": 3}, TypeError, "Generator"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change: dict[str, Any], error: type, words: str) -> None:
    given: dict[str, Any] = {"X": np.zeros((5, 2)), "X_priv": np.zeros((5, 2))} | change
    with pytest.raises(error, match=words):
        linkage(**given)
