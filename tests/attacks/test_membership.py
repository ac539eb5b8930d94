"""Membership: statistics against slow twins, intervals that cover, and both ends of the score."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

from targetdp import GaussianNoise, Mondrian, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import Floats, Silent
from targetdp.attacks import _membership as attack
from targetdp.attacks import density_of, membership
from targetdp.attacks._membership import (
    EXPLAINED,
    LIKELIHOOD,
    NEAREST,
    NO_PROMISE,
    area_under_curve,
    true_positives,
)
from targetdp.mechanisms import NoiseMechanism
from targetdp.normalization import clip_rows

NOISE = SphericalLaplace(B=0.1, epsilon=4)
GAUSSIAN = GaussianNoise(B=0.1, epsilon=4, delta=1e-4)
PROJECTION = PrivateProjection(
    B=0.02, epsilon1=2, epsilon2=0.9, delta1=1e-3, delta2=1e-3, k=6, calibration="exact"
)


def people(n: int, d: int, seed: int = 0) -> Floats:
    return clip_rows(0.3 * np.random.default_rng(seed).standard_normal((n, d)))


def release(X: Floats, mechanism: NoiseMechanism = NOISE, seed: int = 1) -> Floats:
    return mechanism.privatize(X, np.random.default_rng(seed))


# The statistics


@pytest.mark.parametrize("mechanism", [NOISE, GAUSSIAN, PROJECTION, Staircase(B=0.1, epsilon=2)])
def test_statistics_are_those_of_the_slow_twin(mechanism: NoiseMechanism) -> None:
    d = 1 if isinstance(mechanism, Staircase) else 4
    X = people(150, d)
    released = release(X[:100], mechanism)
    shape = density_of(mechanism, d)
    assert shape is not None
    found = attack._statistics(X, released, shape, Silent())
    away = np.square(X[:, None, :] - released[None, :, :]).sum(axis=2)
    assert np.allclose(found[NEAREST], -away.min(axis=1), rtol=1e-12)
    white, rows = shape.whitened(X), shape.whitened(released)
    logs = shape.log_density(np.square(white[:, None, :] - rows[None, :, :]).sum(axis=2))
    assert np.allclose(found[LIKELIHOOD], logsumexp(logs, axis=1), atol=2e-9)
    chances = np.exp(logs - logsumexp(logs, axis=0))  # of each released row over all candidates
    assert chances.sum(axis=0) == pytest.approx(np.ones(100))
    assert np.allclose(np.exp(found[EXPLAINED]), chances.sum(axis=1), rtol=1e-8)


def test_what_a_person_explains_tells_more_than_distance() -> None:
    X, noise = people(1500, 5), SphericalLaplace(B=0.15, epsilon=4)
    found = membership(X[:1000], release(X[:1000], noise), X[1000:], noise)
    areas = {name: each["area_under_curve"].value for name, each in found.detail["statistics"].items()}
    assert areas[EXPLAINED] > areas[NEAREST] + 0.03
    assert found.strongest.startswith(EXPLAINED)


# The figures made of them


def groups(seed: int, shift: float, m: int = 300, n: int = 120) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(m) + shift, rng.standard_normal(n)


def test_the_area_is_scikit_learns() -> None:
    members, outsiders = groups(0, 1.0)
    for digits in (9, 1, 0):  # from no ties to many
        a, b = np.round(members, digits), np.round(outsiders, digits)
        expected = roc_auc_score(np.repeat([1, 0], [len(a), len(b)]), np.concatenate([a, b]))
        assert area_under_curve(a, b, 0.05).value == pytest.approx(expected, abs=1e-12)


def test_the_area_at_both_ends() -> None:
    a, b = np.arange(100.0) + 1000, np.arange(50.0)
    apart, other_way = area_under_curve(a, b, 0.05), area_under_curve(b, a, 0.05)
    assert (apart.value, apart.interval[1]) == (1, 1)
    assert 0.9 < apart.interval[0] < 0.99  # 50 outsiders cannot prove more
    assert other_way.interval == pytest.approx((1 - apart.interval[1], 1 - apart.interval[0]))
    alike = area_under_curve(np.zeros(30), np.zeros(40), 0.05)
    assert alike.value == 0.5
    assert alike.interval[0] < 0.5 < alike.interval[1]


def test_true_positives_are_fair_to_groups_that_are_alike() -> None:
    """Mean share at 10/40 of false alarms, over 4000 tries: 0.25, with ties or without."""
    rng = np.random.default_rng(1)
    for digits in (9, 0):
        tries = [
            true_positives(
                np.round(rng.standard_normal(60), digits), np.round(rng.standard_normal(40), digits), 0.05
            )
            for _ in range(4000)
        ]
        values = np.array([each.value for each in tries])
        assert abs(values.mean() - 0.25) < 5 * values.std() / np.sqrt(len(values))
        assert 5 * values.std() / np.sqrt(len(values)) < 0.01


def test_true_positives_count_ties_as_if_in_random_order() -> None:
    rng = np.random.default_rng(2)
    members, outsiders = rng.integers(0, 3, 50).astype(float), rng.integers(0, 3, 30).astype(float)
    exact = true_positives(members, outsiders, 0.05).value
    broken = [
        true_positives(members + 0.1 * rng.random(50), outsiders + 0.1 * rng.random(30), 0.05).value
        for _ in range(4000)
    ]
    assert abs(np.mean(broken) - exact) < 5 * np.std(broken) / np.sqrt(len(broken))


def _mixed(rng: np.random.Generator, n: int) -> Floats:
    return rng.standard_normal(n) + np.where(rng.random(n) < 0.1, 50.0, 0.0)


SHAPES: dict[str, tuple[Callable[..., Floats], float, float]] = {
    # How members look, the true area, and the true share above the outsiders' 10% threshold.
    "alike": (lambda rng, n: rng.standard_normal(n), 0.5, 0.1),
    "apart": (
        lambda rng, n: rng.standard_normal(n) + 2.5,
        norm.cdf(2.5 / 2**0.5),
        norm.cdf(2.5 - norm.isf(0.1)),
    ),
    "far apart": (
        lambda rng, n: rng.standard_normal(n) + 4,
        norm.cdf(4 / 2**0.5),
        norm.cdf(4 - norm.isf(0.1)),
    ),
    "a tenth far away": (_mixed, 0.9 * 0.5 + 0.1, 0.9 * 0.1 + 0.1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover(shape: str) -> None:
    """1000 samples at 90%: misses no oftener than luck allows, and not because nothing is ever missed."""
    draw, area, share = SHAPES[shape]
    rng = np.random.default_rng(3)
    missed = {"area": 0, "share": 0}
    for _ in range(1000):
        members, outsiders = draw(rng, 150), rng.standard_normal(100)
        low, high = area_under_curve(members, outsiders, 0.1).interval
        missed["area"] += not low <= area <= high
        low, high = true_positives(members, outsiders, 0.1).interval
        missed["share"] += not low <= share <= high
    most = binom.isf(1e-4, 1000, 0.1)
    assert missed["area"] <= most
    assert missed["share"] <= most
    if shape in {"alike", "a tenth far away"}:
        assert missed["area"] >= 50


def test_the_areas_interval_covers_where_outsiders_are_of_two_kinds() -> None:
    """Half of them above everybody and half below: the area varies more than any one-parameter family's."""
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(1000):
        outsiders = rng.choice([-50.0, 50.0], 100)
        low, high = area_under_curve(rng.standard_normal(150), outsiders, 0.1).interval
        missed += not low <= 0.5 <= high
    assert missed <= binom.isf(1e-4, 1000, 0.1)


def test_equal_people_are_not_told_apart_by_rounding() -> None:
    assert (
        len(set(attack._without_last_digits(np.array([-3.0, -3.0 * (1 + 1e-15), -3.0 * (1 - 1e-15)])))) == 1
    )
    assert len(set(attack._without_last_digits(np.array([-3.0, -3.00001])))) == 2


# The whole attack


@pytest.mark.parametrize("noise", [None, SphericalLaplace(B=1e-4, epsilon=4)])
def test_a_release_without_noise_tells_everybody(noise: NoiseMechanism | None) -> None:
    X = people(800, 4)
    found = membership(X[:500], release(X[:500], SphericalLaplace(B=1e-4, epsilon=4)), X[500:], noise)
    assert found.score == 0
    assert found.interval[1] < 0.1
    assert found.bound == "upper"
    assert len(found.settings) == (2 if noise is None else 6)


def test_pure_noise_tells_nobody() -> None:
    X = people(1500, 4)
    noise = SphericalLaplace(B=2, epsilon=0.1)
    found = membership(X[:1000], release(X[:1000], noise), X[1000:], noise, confidence=0.999)
    assert found.interval[1] == 1
    assert found.score > 0.85
    assert all(low <= 1 <= high for low, high in (s.interval for s in found.settings.values()))
    seen = membership(X[:1000], release(X[:1000]), X[1000:], NOISE, confidence=0.999)
    assert seen.interval[1] < 0.9


def test_people_who_are_all_the_same_cannot_be_told() -> None:
    X = np.full((300, 3), 0.2)
    found = membership(X, release(X), X[:130], NOISE)
    assert found.score == 1
    assert all(setting.score == pytest.approx(1) for setting in found.settings.values())


def test_more_columns_than_people_and_other_numbers_of_released_rows() -> None:
    X = people(45, 60)
    tiny = SphericalLaplace(B=1e-4, epsilon=4)
    found = membership(X[:20], release(X[:15], tiny), X[20:], tiny)
    assert found.detail["statistics"][NEAREST]["area_under_curve"].value > 0.8
    assert membership(X[:2], X[:2], X[20:]).score == 0


def test_the_same_doubt_is_shared_and_scores_are_what_the_text_says() -> None:
    X = people(500, 3)
    found = membership(X[:300], release(X[:300]), X[300:], NOISE, confidence=0.9)
    each = found.detail["statistics"][EXPLAINED]
    area, alarms = each["area_under_curve"], each["true_positives"]
    assert each["false_positives"] == 10 / 200
    one = found.settings[f"{EXPLAINED}: area under the curve"]
    assert one.score == pytest.approx(1 - (2 * area.value - 1))
    assert one.interval == pytest.approx((2 - 2 * area.interval[1], 2 - 2 * area.interval[0]))
    other = found.settings[f"{EXPLAINED}: true positives"]
    assert other.score == pytest.approx(1 - (alarms.value - 0.05) / 0.95)
    values = attack._statistics(X, release(X[:300]), density_of(NOISE, 3), Silent())[EXPLAINED]
    assert area == area_under_curve(values[:300], values[300:], 0.1 / 6)
    assert alarms == true_positives(values[:300], values[300:], 0.1 / 6)
    assert json.loads(json.dumps(found.record()))["detail"]["members"] == 300


def test_a_sample_is_drawn_where_there_are_too_many_pairs_and_it_is_said() -> None:
    X = people(900, 3)
    tiny = SphericalLaplace(B=1e-4, epsilon=4)
    released = release(X[:500], tiny)
    found = membership(X[:500], released, X[500:], tiny, most_pairs=100_000, rng=np.random.default_rng(0))
    assert (found.detail["members"], found.detail["outsiders"]) == (100, 100)
    assert any("100 of 500 members and 100 of 400 outsiders" in note for note in found.detail["notes"])
    assert found.score == 0
    whole = membership(X[:500], released, X[500:], tiny, most_pairs=450_000)
    assert (whole.detail["members"], whole.detail["outsiders"]) == (500, 400)
    assert not any("at random" in note for note in whole.detail["notes"])
    few = membership(X[:500], released, X[500:540], tiny, most_pairs=100_000)
    assert (few.detail["members"], few.detail["outsiders"]) == (160, 40)
    assert membership(X[:500], released, X[500:], most_pairs=1).detail["outsiders"] == 20


def test_what_the_holdout_cannot_resolve_is_said_and_the_promise_too() -> None:
    X = people(400, 3)
    small = membership(X[:300], X[:300], X[300:350])
    assert any("below 10/50 = 0.2" in note for note in small.detail["notes"])
    large = membership(X[:300], X[:300], X[300:])
    assert not any("resolve" in note for note in large.detail["notes"])
    assert NO_PROMISE in large.detail["notes"]
    assert "promises nothing" in NO_PROMISE


def test_progress_hears_of_every_row() -> None:
    heard: list[list[Any]] = []

    class Watch:
        def phase(self, name: str, rows: int | None) -> None:
            heard.append([name, rows, 0])

        def advance(self, rows: int) -> None:
            heard[-1][2] += rows

    X = people(300, 4)
    membership(X[:200], X[:150], X[200:], NOISE, progress=Watch())
    assert heard == [[NEAREST, 300, 300], [LIKELIHOOD, 300, 300], [EXPLAINED, 450, 450]]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"holdout": np.zeros((19, 2))}, ValueError, "at least 20 are needed"),
        ({"holdout": np.zeros((30, 3))}, ValueError, "holdout has 3 columns"),
        ({"X": np.zeros((1, 2))}, ValueError, "at least 2 members"),
        ({"X_priv": np.zeros((30, 1))}, ValueError, "X_priv has 1 columns"),
        ({"X": np.full((30, 2), 2.0), "noise": NOISE}, ValueError, "X has a row of length"),
        ({"holdout": np.full((30, 2), 2.0), "noise": NOISE}, ValueError, "holdout has a row of length"),
        ({"noise": Mondrian(2)}, TypeError, "neither a noise mechanism nor a noise law"),
        ({"most_pairs": 0}, ValueError, "most_pairs"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"rng": 1}, TypeError, "Generator"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change: dict[str, Any], error: type, words: str) -> None:
    given: dict[str, Any] = {name: np.zeros((30, 2)) for name in ("X", "X_priv", "holdout")} | change
    with pytest.raises(error, match=words):
        membership(**given)


def test_people_on_both_sides_are_noticed() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3)) / 10
    noisy = X + 0.001
    said = " ".join(membership(X, noisy, np.concatenate([X[:20], X[:80] + 0.5])).detail["notes"])
    assert "20 of 100 people in the holdout have exactly the row" in said
    clean = membership(X, noisy, X[:100] + 0.5)
    assert not any("exactly the row" in note for note in clean.detail["notes"])


def test_without_known_noise_no_column_counts_for_its_unit_alone() -> None:
    rng = np.random.default_rng(1)
    people, others = rng.standard_normal((300, 4)), rng.standard_normal((300, 4))
    released = people + 0.05 * rng.standard_normal(people.shape)
    released[:, 0] += 2 * rng.standard_normal(300)
    units = np.array([1e4, 1.0, 1.0, 1.0])
    found = membership(people * units, released * units, others * units)
    assert found.score == pytest.approx(membership(people, released, others).score, abs=1e-9)
    assert found.score < 0.8
