"""Linkability of two releases against slow twins, on edges, and at both ends of the score."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import Ridge

from targetdp import Mondrian, PrivateProjection, SphericalLaplace
from targetdp._core import Floats
from targetdp.attacks import linkability
from targetdp.attacks._linkability import _PENALTIES, LEARNED, SHARED, _ridge
from targetdp.normalization import clip_rows

NOISE = SphericalLaplace(B=0.1, epsilon=4)
UNEVEN = PrivateProjection(
    B=0.02, epsilon1=2, epsilon2=0.9, delta1=1e-3, delta2=1e-3, k=6, calibration="exact"
)


def people(n: int, d: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return clip_rows(0.2 * rng.standard_normal((n, d)) @ rng.standard_normal((d, d)))


def release(X: Floats, seed: int, noise: Any = NOISE) -> Floats:
    out: Floats = noise.privatize(X, np.random.default_rng(seed))
    return out


def slow_share(a: Floats, b: Floats, rank: int) -> float:
    """For each row of b the place of its partner among the rows of a, whatever the order of ties."""
    chances = []
    for i, row in enumerate(b):
        away = np.square(a - row).sum(axis=1)
        before, tied = (
            int((away < away[i] * (1 - 1e-12)).sum()),
            int(np.isclose(away, away[i], 1e-12, 0).sum()),
        )
        chances.append(np.mean([place <= rank for place in range(before + 1, before + tied + 1)]))
    return float(np.mean(chances))


def share(found: Any, way: str, rank: int = 1) -> float:
    return float(found.detail["shares"][way][f"rank_{rank}"]["share"])


@pytest.mark.parametrize("rank", [1, 10])
def test_without_known_noise_columns_count_in_their_own_deviations(rank: int) -> None:
    X = people(200, 3)
    a, b = release(X, 1), release(X, 2) * [1.0, 1000.0, 1e-3] + [0.0, 5.0, -3.0]  # other units do not matter
    a[:20] = a[0]
    found = linkability(a, b)
    left, right = ((t - t.mean(axis=0)) / t.std(axis=0) for t in (a, b))
    assert share(found, SHARED, rank) == pytest.approx(slow_share(left, right, rank), abs=1e-12)
    assert any("columns' deviations" in note for note in found.detail["notes"])


def test_with_known_noise_its_deviation_is_the_unit() -> None:
    X = people(300, 4)
    a, b = release(X, 1, UNEVEN), release(X, 2)
    units = np.sqrt(np.diag(UNEVEN.noise_covariance(4)) + np.diag(NOISE.noise_covariance(4)))
    found = linkability(a, b, noise_a=UNEVEN, noise_b=NOISE.law(4))
    assert share(found, SHARED) == pytest.approx(slow_share(a / units, b / units, 1), abs=1e-12)
    assert any("noise of both" in note for note in found.detail["notes"])
    one = linkability(a, b, noise_a=UNEVEN)  # one of them alone says too little
    assert share(one, SHARED) == share(linkability(a, b), SHARED)


def test_only_shared_columns_count() -> None:
    X = people(300, 4)
    a, b = release(X, 1), release(X, 2)
    found = linkability(a[:, [2, 0, 1]], b[:, [3, 2, 1]], shared=[(0, 1), (2, 2)])
    alone = linkability(a[:, [2, 1]], b[:, [2, 1]])
    assert share(found, SHARED) == share(alone, SHARED)
    assert set(found.settings) == {SHARED}


def test_known_pairs_teach_a_map_between_other_columns() -> None:
    """Two sets of columns, none shared: b is a turned, so nothing links but what the pairs teach."""
    X = people(600, 4)
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    a, b = X, X @ turn + 1e-3 * np.random.default_rng(4).standard_normal(X.shape)
    found = linkability(a, b, shared=(), seeds=100, rng=np.random.default_rng(5))
    assert set(found.settings) == {LEARNED}
    assert found.score < 0.1
    assert found.detail["people"] == 500
    assert found.detail["shares"][LEARNED]["rank_10"]["chance"] == 10 / 500
    both = linkability(a, b, seeds=100, rng=np.random.default_rng(5))
    assert both.strongest == LEARNED
    assert both.settings[SHARED].score > 0.9


def test_unequal_numbers_of_columns_can_be_learned() -> None:
    X = people(400, 5)
    found = linkability(X[:, :4], X[:, 1:3] * 2, seeds=np.arange(50))
    assert set(found.settings) == {LEARNED}
    assert found.score < 0.05
    assert found.detail["known_pairs"] == 50


def test_the_map_is_a_ridge_regression_with_errors_left_out_one_by_one() -> None:
    rng = np.random.default_rng(6)
    A, C = rng.standard_normal((12, 5)), rng.standard_normal((12, 3))
    everybody = rng.standard_normal((7, 5))
    best = (np.inf, A[:0], A[:0])
    for penalty in _PENALTIES:
        errors = []
        for i in range(12):
            rest = np.arange(12) != i
            centered = A - A.mean(axis=0)  # the penalty's unit is fixed by all pairs
            model = Ridge(alpha=penalty * 12).fit(centered[rest], C[rest])
            errors.append(C[i] - model.predict(centered[[i]])[0])
        size = float(np.square(errors).sum())
        if size < best[0]:
            whole = Ridge(alpha=penalty * 12).fit(A, C)
            best = (size, whole.predict(everybody), np.array(errors))
    predicted, errors_left_out = _ridge(A, C, everybody)
    assert np.allclose(predicted, best[1])
    assert np.allclose(errors_left_out, best[2])


def test_what_is_learned_counts_by_the_spread_around_it() -> None:
    """One column of b follows a closely and one hardly: likelihood weighs them, and their correlation."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal((300, 2))
    errors = rng.standard_normal((300, 2)) @ [[0.05, 0.4], [0.0, 1.0]]
    b = a + errors
    known = np.arange(100)
    left, right = ((t - t.mean(axis=0)) / t.std(axis=0) for t in (a, b))
    expected, off = _ridge(left[known], right[known], left)
    spread = off.T @ off / 100
    spread = (100 * spread + 2 * np.diag(np.diag(spread))) / 102
    root = np.linalg.cholesky(np.linalg.inv(spread))
    found = share(linkability(a, b, seeds=known), LEARNED)
    assert found == pytest.approx(slow_share((expected @ root)[100:], (right @ root)[100:], 1), abs=1e-12)
    assert found > slow_share(expected[100:], right[100:], 1) + 0.02


def test_known_pairs_are_not_counted() -> None:
    """Half of the people, whose pairs are known, are in the clear; the others are noise."""
    rng = np.random.default_rng(7)
    X = people(400, 3)
    a, b = X.copy(), X.copy()
    b[200:] = rng.permutation(b[200:])
    found = linkability(a, b, seeds=list(range(200)), rng=rng)
    assert found.detail["people"] == 200
    assert all(setting.score > 1 - binom.isf(1e-6, 200, 1 / 200) / 200 for setting in found.settings.values())
    assert linkability(a, b).score < 0.51


@pytest.mark.parametrize("seeds", [None, 30])
def test_a_release_linked_with_itself_protects_nobody(seeds: int | None) -> None:
    X = people(300, 4)
    found = linkability(X, X, seeds=seeds, rng=np.random.default_rng(0))
    assert found.score == 0
    assert all(setting.score == 0 for setting in found.settings.values())
    assert found.bound == "upper"


def test_pure_noise_leaves_chance_only_and_noise_leaves_more() -> None:
    X = people(1000, 4)
    noise = SphericalLaplace(B=2, epsilon=0.1)
    blind = linkability(
        release(X, 1, noise), release(X, 2, noise), noise_a=noise, noise_b=noise, seeds=200,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    most = binom.isf(1e-6, 800, 1 / 800) / 800
    assert blind.score >= 1 - most
    assert all(s.interval[0] <= 1 - 1 / 800 <= s.interval[1] for s in blind.settings.values())
    chosen = np.random.default_rng(0)
    seen = linkability(release(X, 1), release(X, 2), noise_a=NOISE, noise_b=NOISE, seeds=200, rng=chosen)
    assert all(setting.interval[1] < 1 - most for setting in seen.settings.values())


def test_equal_rows_and_constant_columns() -> None:
    X = np.column_stack([np.repeat(people(50, 2), 4, axis=0), np.full(200, 0.3)])
    found = linkability(X, X, seeds=np.arange(0, 200, 8), rng=np.random.default_rng(0))
    # 25 groups of four lost one person to the known pairs: 25 groups of three and 25 of four are left.
    assert all(setting.score == pytest.approx(1 - 50 / 175) for setting in found.settings.values())
    same = linkability(np.ones((20, 3)), np.zeros((20, 3)), seeds=4)
    assert all(setting.score == pytest.approx(1 - 1 / 16) for setting in same.settings.values())


def test_more_columns_than_known_pairs_or_people() -> None:
    X = people(8, 20)
    found = linkability(X, X, seeds=3, rng=np.random.default_rng(0))
    assert found.settings[SHARED].score == 0
    assert 0 <= found.settings[LEARNED].score <= 1
    one = linkability(X[:1], X[1:2])
    assert one.score == 0  # the only one there is


def test_the_same_seed_draws_the_same_known_pairs_and_the_record_is_plain() -> None:
    X = people(200, 3)
    a, b = release(X, 1), release(X, 2)
    one, two, other = (linkability(a, b, seeds=50, rng=np.random.default_rng(s)) for s in (1, 1, 2))
    assert one.record() == two.record()
    assert one.record() != other.record()
    assert json.loads(json.dumps(one.record()))["detail"]["known_pairs"] == 50


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"release_b": np.zeros((6, 3))},
            ValueError,
            r"nothing to link by; name pairs of columns in shared=",
        ),
        ({"shared": ()}, ValueError, "seeds="),
        ({"release_b": np.zeros((5, 2))}, ValueError, "join them by id"),
        ({"shared": [(0, 2)]}, ValueError, "a column of b"),
        ({"shared": [(2, 0)]}, ValueError, "a column of a"),
        ({"shared": [0]}, ValueError, "pairs of column positions"),
        ({"shared": [(0, 1.0)]}, TypeError, "shared"),
        ({"seeds": 1}, ValueError, "2 or more to learn from"),
        ({"seeds": 5}, ValueError, "2 or more left to match"),
        ({"seeds": [0, 0, 1]}, ValueError, "twice"),
        ({"seeds": [0, 6]}, ValueError, "seeds = 6"),
        ({"seeds": [0]}, ValueError, "number of seeds = 1"),
        ({"noise_a": Mondrian(2)}, TypeError, "noise_a"),
        ({"noise_b": NOISE.law(3)}, ValueError, "noise_b is a law for 3 columns"),
        ({"ranks": 0}, TypeError, "ranks"),
        ({"ranks": (0,)}, ValueError, "ranks = 0"),
        ({"shared": 1}, TypeError, "pairs of column positions"),
        ({"confidence": 0}, ValueError, "confidence"),
        ({"rng": "x"}, TypeError, "Generator"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change: dict[str, Any], error: type, words: str) -> None:
    given: dict[str, Any] = {"release_a": np.zeros((6, 2)), "release_b": np.zeros((6, 2))} | change
    with pytest.raises(error, match=words):
        linkability(**given)


def test_two_releases_with_other_scales_are_no_harder_to_link() -> None:
    X = people(400, 4)
    noise = SphericalLaplace(B=0.05, epsilon=4)
    a, b = release(X, 1, noise), release(X * np.array([0.2, 1.0, 0.5, 0.3]), 2, noise)
    blind = linkability(a, b, rng=np.random.default_rng(0))
    knowing = linkability(a, b, noise_a=noise, noise_b=noise, rng=np.random.default_rng(0))
    assert knowing.score <= blind.score
