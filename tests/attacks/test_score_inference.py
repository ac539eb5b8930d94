"""Inference by an informed adversary: against a literal twin, at known limits, and every edge."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from targetdp import GaussianNoise, Mondrian, PrivateProjection, SphericalLaplace, Staircase
from targetdp._core import Floats
from targetdp.attacks import (
    JoinedTables,
    Protection,
    density_of,
    meaning,
    near,
    row_inference,
    run_attacks,
    score_inference,
    zero_tolerances,
)
from targetdp.attacks._guess._failed_guesses import plan_searches, rule_of
from targetdp.attacks._guess._informed_guesses import (
    BY_HINDSIGHT,
    GUESSES,
    WELL_INFORMED,
    WITH_RELEASE,
    CommonValues,
    KnownColumns,
    Moments,
)
from targetdp.attacks._guess._observation import Observation
from targetdp.attacks._protection import ratio_interval
from targetdp.mechanisms import Scores
from targetdp.noise._random_words import SimulatedWords
from targetdp.normalization import clip_rows

LOUD = Staircase(B=2, epsilon=1e-3)


def some_people(rows: int, columns: int, seed: int) -> Floats:
    """Correlated and skewed, of both signs, in the unit ball."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) + rng.standard_normal((rows, 1))
    X[:, ::2] = np.exp(0.6 * X[:, ::2])
    return clip_rows((X - X.mean(axis=0)) / X.std(axis=0) / (2 * np.sqrt(columns)))


def direction(columns: int, seed: int = 0, scores: int = 1) -> Floats:
    """Weights with no column left out."""
    own = np.random.default_rng(seed).uniform(0.5, 1, (columns, columns)) * np.resize([1, -1], columns)
    return np.asarray(np.linalg.qr(own)[0].T[:scores])


# ---------------------------------------------------------------- the slow twin


def outward(mean: float, variance: float) -> float:
    """The guess g with the largest |g|·φ(g), found by search on the side of the mean."""
    if variance < 1e-14:
        return mean
    side, far = (-1.0 if mean < 0 else 1.0), abs(mean) + 3 * variance**0.5

    def missed(g: float) -> float:
        return (g - abs(mean)) ** 2 / (2 * variance) - float(np.log(g))

    found = minimize_scalar(missed, bounds=(1e-9, far), method="bounded", options={"xatol": 1e-11})
    return float(side * found.x)


def normal(at: float, mean: float, variance: float) -> float:
    """Log of the normal density, up to a constant."""
    return -((at - mean) ** 2) / (2 * max(variance, 1e-12))


def slow_guess(
    general: Floats, x: Floats, z: Any, A: Floats, S: Floats, noise: Any, known: list[int], j: int
) -> list[float]:
    """One person, by one joint normal distribution of the secret, the known columns and what is released.

    ``z`` is what is released, None if nothing is. Few values and signs are weighed one by one.
    """
    C, mean, d = np.cov(general.T, bias=True), general.mean(axis=0), len(x)
    sees = [np.eye(d)[known], np.vstack([np.eye(d)[known], A])]
    beliefs = []
    for see, given in zip(sees, (x[known], np.append(x[known], 0.0 if z is None else z)), strict=True):
        if len(see) > len(known) and z is None:
            break
        cover = np.zeros((len(see), len(see)))
        if len(see) > len(known):
            cover[len(known) :, len(known) :] = S
        slopes = np.linalg.solve(see @ C @ see.T + cover, see @ C[:, j])
        beliefs.append(
            (float(mean[j] + slopes @ (given - see @ mean)), float(C[j, j] - slopes @ see @ C[:, j]))
        )
    (m, v), last = beliefs[-1], len(known) == d - 1
    tried = [m, outward(m, v)]
    if last:  # the noise's own density takes the place of the normal one
        m, v = beliefs[0]

    def told(value: float) -> float:
        if z is None or not last:
            return 0.0
        row = x.copy()
        row[j] = value
        shape = density_of(noise, len(A))
        assert shape is not None
        return float(shape.log_density(np.atleast_1d(np.square(z - A @ row).sum()))[0])

    values, counts = np.unique(general[:, j], return_counts=True)
    often = {float(a): int(c) for a, c in zip(values, counts, strict=True) if c >= max(5, len(general) / 100)}
    weight = {
        a: np.log(c) + normal(a, m, v) - normal(a, float(mean[j]), float(C[j, j])) + told(a)
        for a, c in often.items()
    }
    tried.append(max(weight, key=lambda a: weight[a]) if len(weight) > 1 else tried[0])
    size = max(0.0, 1 - float(np.square(x[known]).sum())) ** 0.5
    clipped = (np.linalg.norm(general, axis=1) > 1 - 1e-6).mean() >= 0.01
    tried.append(
        max((size, -size), key=lambda a: normal(a, m, v) + told(a)) if last and clipped else tried[0]
    )
    return tried


def two_kinds(rows: int, kind: str) -> Floats:
    """People inside the ball; or most of them clipped; or with a column of three values."""
    X = some_people(rows, 4, 1)
    if kind == "clipped":
        return clip_rows(4 * X)
    if kind == "few values":
        X[:, 1] = 0.1 * np.sign(np.round(6 * X[:, 1])) + 0.05
    return X


@pytest.mark.parametrize("kind", ["inside", "clipped", "few values"])
@pytest.mark.parametrize(("draws", "scores"), [(1, 1), (2, 1), (1, 2)])
def test_shares_are_those_of_the_literal_attack(draws: int, scores: int, kind: str) -> None:
    people, tolerance, d = two_kinds(45, kind), 0.2, 4
    X, holdout, general = people[:25], people[25:], people[5:40]
    noise = SphericalLaplace(B=0.1, epsilon=4)
    mechanism = Scores(direction(d, scores=scores), noise)
    weights, S = np.array(mechanism.weights), mechanism.noise_covariance(d)
    released = mechanism.privatize(X, np.random.default_rng(2))
    found = score_inference(
        X, released, mechanism.weights, mechanism, holdout, draws=draws, tolerance=tolerance,
        population=general, rng=np.random.default_rng(3),
    )  # fmt: skip
    usual = rule_of(X, tolerance).commonest(general)
    rng, zero, strongest = np.random.default_rng(3), zero_tolerances(X, tolerance), set()
    for h in (1, 2, 3):
        failed, outside = np.zeros((d, 9)), np.zeros((d, 5))
        for window in plan_searches(d, h, draws, rng):
            guess = partial(slow_guess, general, A=weights, S=S, noise=noise, known=list(window.known))
            for j in window.secrets:
                for x, z in zip(X, released, strict=True):
                    tried = [*guess(x, z, j=j), *guess(x, None, j=j), float(usual[j])]
                    failed[j] += ~near(np.array(tried), np.full(9, x[j]), tolerance, float(zero[j]))
                for x in holdout:
                    tried = [*guess(x, None, j=j), float(usual[j])]
                    outside[j] += ~near(np.array(tried), np.full(5, x[j]), tolerance, float(zero[j]))
        times = 1 if h == d - 1 else draws
        for j in range(d):
            name, inside = f"h={h}, column {j}", failed[j] / times
            beyond = outside[j, inside[4:].argmin()] / times
            control = beyond + inside[4:].min()
            assert found.detail["p_release"][name] == pytest.approx(inside.min() / 25)
            assert found.detail["p_without"][name] == pytest.approx(inside[4:].min() / 25)
            assert found.detail["p_holdout"][name] == pytest.approx(beyond / 20)
            assert found.detail["p_control"][name] == pytest.approx(control / 45)
            assert found.detail["guess"][name] == GUESSES[inside.argmin()]
            assert found.settings[name].score == pytest.approx(inside.min() / 25 / (control / 45))
            intervals = [ratio_interval(p, 25, control, 45, 0.05 / (12 * 9)) for p in inside]
            assert found.settings[name].interval == pytest.approx(np.min(intervals, axis=0))
            strongest.add(found.detail["guess"][name])
    assert found.score == min(1.0, *(setting.score for setting in found.settings.values()))
    assert len(strongest) > 1
    assert {"clipped": WITH_RELEASE[3], "few values": WITH_RELEASE[2]}.get(kind, WITH_RELEASE[1]) in strongest
    assert any(p < found.detail["p_without"][name] for name, p in found.detail["p_release"].items())


def test_without_noise_a_guess_is_least_squares() -> None:
    """With the attacked people's own moments it is an ordinary regression on known columns and score."""
    X, w = some_people(300, 5, 4), direction(5)
    knowing = KnownColumns.of(Moments.of(X), (1, 3))
    guess = knowing.with_release(X, X @ w.T, Observation.of(w, None, 5))
    seen = np.column_stack([np.ones(300), X[:, [1, 3]], X @ w.T])
    for place, j in enumerate(knowing.rest):
        fitted = seen @ np.linalg.lstsq(seen, X[:, j], rcond=None)[0]
        assert guess.means[:, place] == pytest.approx(fitted, abs=1e-10)
        assert guess.variances[place] == pytest.approx(np.square(X[:, j] - fitted).mean(), abs=1e-12)


@pytest.mark.parametrize(
    "noise", [Staircase(B=0.25, epsilon=2), GaussianNoise(B=0.25, epsilon=2, delta=1e-6)]
)
def test_errors_are_as_large_as_believed(noise: Any) -> None:
    """40,000 people: half or twice the noise would be told apart."""
    X, w = some_people(40_000, 4, 5), direction(4)
    mechanism = Scores(w, noise)
    released = mechanism.privatize(X, np.random.default_rng(6))
    knowing = KnownColumns.of(Moments.of(X), (0, 2))
    believed = knowing.with_release(X, released, Observation.of(np.array(mechanism.weights), noise, 4))
    errors = np.square(believed.means - X[:, list(knowing.rest)]).mean(axis=0)
    assert errors == pytest.approx(believed.variances, rel=0.03)
    assert (errors < 0.97 * knowing.alone(X).variances).all()
    for wrong in (0.5, 2.0):
        shown = Observation(np.array(mechanism.weights), wrong**2 * mechanism.noise_covariance(4))
        other = knowing.with_release(X, released, shown)
        assert np.square(other.means - X[:, list(knowing.rest)]).mean() > errors.mean()


def test_a_projection_that_loses_directions_shows_the_others_only() -> None:
    law = PrivateProjection(
        B=1, epsilon1=3, epsilon2=0.5, delta1=1e-5, delta2=1e-5, k=3, calibration="exact"
    ).law(5)
    shown, x = Observation.of(None, law, 5), some_people(9, 5, 0)[:1]
    released = law.add_to(np.repeat(x, 20_000, axis=0), SimulatedWords(np.random.default_rng(1)))
    deviation = np.sqrt(np.diag(shown.covariance) / len(released))
    assert np.linalg.matrix_rank(shown.map) == 3
    assert (np.abs(released.mean(axis=0) - shown.map @ x[0]) < 5 * deviation).all()
    assert np.cov(released.T) == pytest.approx(shown.covariance, abs=0.05 * np.diag(shown.covariance).max())


@pytest.mark.parametrize("k", [3, 50])
def test_the_density_of_normal_noise_is_that_of_its_covariance(k: int) -> None:
    """A projection, with and without lost directions: by the (pseudo-)inverse, one row at a time."""
    law = PrivateProjection(
        B=1, epsilon1=3, epsilon2=0.5, delta1=1e-5, delta2=1e-5, k=k, calibration="exact"
    ).law(5)
    X, values = some_people(9, 5, 1), np.array([-0.4, 0.0, 0.3])
    released = law.add_to(X, SimulatedWords(np.random.default_rng(2)))
    shown = Observation.of(None, law, 5)
    found = shown.log_density(X, released, 2, values)
    inverse = np.linalg.pinv(shown.covariance, rcond=1e-9, hermitian=True)
    for i, x in enumerate(X):
        left = [released[i] - shown.map @ np.where(np.arange(5) == 2, a, x) for a in values]
        expected = np.array([-r @ inverse @ r / 2 for r in left])
        assert found[i] - found[i, 0] == pytest.approx(expected - expected[0], rel=1e-6, abs=1e-8)


# ---------------------------------------------------------------- known limits


def test_no_noise_and_all_other_columns_known_gives_the_secret_away() -> None:
    X, w = some_people(400, 6, 7), direction(6)
    found = score_inference(X[:300], X[:300] @ w[0], w, None, X[300:], known=[5])
    assert found.score == 0
    assert set(found.detail["p_release"].values()) == {0.0}
    assert min(found.detail["p_holdout"].values()) > 0.5
    assert row_inference(X[:300], X[:300], None, X[300:]).score == 0


def test_a_column_that_does_not_count_stays_as_it_is() -> None:
    """Independent columns: a score of the others, all known, says nothing of it."""
    X = clip_rows(np.random.default_rng(8).normal(0.3, 0.1, (3_000, 3)))
    w = np.array([[0.6, 0.8, 0.0]])
    found = score_inference(X, X @ w.T, w, None, known=[2])
    assert found.detail["p_release"]["h=2, column 2"] == found.detail["p_without"]["h=2, column 2"] > 0.5
    assert found.detail["p_release"]["h=2, column 0"] == 0


@pytest.mark.parametrize("attack", ["scores", "rows"])
def test_endless_noise_leaves_what_anyone_could_guess(attack: str) -> None:
    X = some_people(8_000, 4, 9)
    inside, holdout, rng = X[:4_000], X[4_000:], np.random.default_rng(0)
    if attack == "scores":
        mechanism = Scores(direction(4), LOUD)
        found = score_inference(
            inside, mechanism.privatize(inside, rng), mechanism.weights, LOUD, holdout, rng=rng
        )
    else:
        noise = SphericalLaplace(B=2, epsilon=1e-3)
        found = row_inference(inside, noise.privatize(inside, rng), noise, holdout, rng=rng)
    assert found.detail["p_release"] == pytest.approx(found.detail["p_without"], abs=2e-3)
    assert found.score > 0.95
    assert found.interval[1] == 1


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_the_attack_never_does_worse_for_having_scores(epsilon: float) -> None:
    X, noise = some_people(500, 5, 10), Staircase(B=0.25, epsilon=epsilon)
    mechanism = Scores(direction(5), noise)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = score_inference(X, mechanism.privatize(X, rng), mechanism.weights, noise, rng=rng)
        assert all(p <= found.detail["p_without"][s] for s, p in found.detail["p_release"].items())


def test_less_noise_and_more_known_columns_tell_more() -> None:
    X = some_people(3_000, 5, 11)

    def failures(epsilon: float) -> dict[str, float]:
        noise = Staircase(B=0.25, epsilon=epsilon)
        mechanism, rng = Scores(direction(5), noise), np.random.default_rng(1)
        found = score_inference(X, mechanism.privatize(X, rng), mechanism.weights, noise, rng=rng)
        return {h: float(np.mean([p for s, p in found.detail["p_release"].items() if s.startswith(h)]))
                for h in ("h=1", "h=4")}  # fmt: skip

    loud, middle, quiet = failures(2), failures(6), failures(12)
    assert loud["h=4"] > middle["h=4"] + 0.05 > quiet["h=4"] + 0.1
    assert quiet["h=1"] > quiet["h=4"] + 0.1


# ---------------------------------------------------------------- what a linear guess does not see


def test_a_clipped_row_leaves_only_the_sign() -> None:
    """The posterior of two points, person by person: a linear guess missed nearly everybody."""
    rng = np.random.default_rng(20)
    X = rng.standard_normal((1_500, 5)) + 0.5 * rng.standard_normal((1_500, 1))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    noise, w = Staircase(B=0.25, epsilon=4), direction(5)
    mechanism = Scores(w, noise)
    s, W = mechanism.privatize(X, rng), np.array(mechanism.weights)[0]
    found = score_inference(X[:1_000], s[:1_000], W, noise, X[1_000:], population=X, known=[4])
    shape = density_of(noise, 1)
    assert shape is not None
    C, mean = np.cov(X.T, bias=True), X.mean(axis=0)
    for j in range(5):
        o = [k for k in range(5) if k != j]
        slopes = np.linalg.solve(C[np.ix_(o, o)], C[o, j])
        v, missed, blind = float(C[j, j] - slopes @ C[o, j]), 0, 0
        for x, z in zip(X[:1_000], s[:1_000, 0], strict=True):
            size, m = float(np.sqrt(1 - np.square(x[o]).sum())), float(mean[j] + slopes @ (x[o] - mean[o]))
            before = [normal(a, m, v) for a in (size, -size)]
            after = [
                p + float(shape.log_density(np.array([(z - W[o] @ x[o] - W[j] * a) ** 2]))[0])
                for p, a in zip(before, (size, -size), strict=True)
            ]
            missed += (after[0] >= after[1]) != (x[j] > 0)
            blind += (before[0] >= before[1]) != (x[j] > 0)
        setting = f"h=4, column {j}"
        assert found.detail["guess"][setting] == "likelier sign"
        assert found.detail["p_release"][setting] == pytest.approx(missed / 1_000, abs=1e-12)
        assert found.detail["p_without"][setting] == pytest.approx(blind / 1_000, abs=1e-12)
    assert found.score < 0.35  # 0.9 by the linear guess


def with_a_phone(rows: int, seed: int) -> Floats:
    """A column of two values and three smooth ones, well inside the ball."""
    rng = np.random.default_rng(seed)
    y, other = rng.standard_normal((rows, 1)), rng.standard_normal((rows, 4))
    seen = y * [1, 1, 0, 1] + other
    return np.column_stack([np.where(seen[:, 0] > 0, 0.25, -0.25), 0.15 * np.tanh(seen[:, 1:])])


@pytest.mark.parametrize("B", [0.05, 0.25])
def test_a_column_of_two_values_is_one_of_them(B: float) -> None:
    """With all other columns known: frequencies, known columns and the noise's density, person by person."""
    X, noise = with_a_phone(1_500, 21), Staircase(B=B, epsilon=4)
    mechanism = Scores([0.6, 0.5, 0.3, 0.5], noise)
    s, W = mechanism.privatize(X, np.random.default_rng(22)), np.array(mechanism.weights)[0]
    found = score_inference(X[:1_000], s[:1_000], W, noise, X[1_000:], population=X)
    shape = density_of(noise, 1)
    assert shape is not None
    # Two groups of people with means of their own and a covariance in common: Fisher's discriminant.
    groups = {a: X[X[:, 0] == a][:, 1:] for a in (-0.25, 0.25)}
    within = sum((len(g) * np.cov(g.T, bias=True) for g in groups.values()), np.zeros((3, 3))) / len(X)
    missed = 0
    for x, z in zip(X[:1_000], s[:1_000, 0], strict=True):
        likely = {}
        for a, g in groups.items():
            apart, noisy = x[1:] - g.mean(axis=0), z - W[1:] @ x[1:] - W[0] * a
            likely[a] = np.log(len(g)) - apart @ np.linalg.solve(within, apart) / 2
            likely[a] += float(shape.log_density(np.array([noisy**2]))[0])
        missed += max(likely, key=lambda a: likely[a]) != x[0]
    setting = "h=3, column 0"
    assert found.detail["guess"][setting] == "likeliest of few values"
    assert found.detail["p_release"][setting] == pytest.approx(missed / 1_000, abs=1e-12)
    assert 0.2 < found.detail["p_control"][setting] < 0.35
    assert found.settings[setting].score < 0.15  # 0.5 and 0.9 by the linear guess
    assert found.settings["h=1, column 0"].score < 0.15


def test_what_is_open_to_everybody_is_not_held_against_a_release() -> None:
    """Signs and values that known columns tell are guessed by the control as well."""
    for X in (clip_rows(9 * some_people(6_000, 4, 23)), with_a_phone(6_000, 24)):
        mechanism, rng = Scores(direction(4), LOUD), np.random.default_rng(0)
        s = mechanism.privatize(X[:3_000], rng)
        found = score_inference(X[:3_000], s, mechanism.weights, LOUD, X[3_000:], population=X, rng=rng)
        assert found.detail["p_release"] == pytest.approx(found.detail["p_without"], abs=5e-3)
        assert min(found.detail["p_control"].values()) < 0.4
        assert found.score > 0.95


def test_rare_failures_are_not_left_to_the_luck_of_a_small_holdout() -> None:
    """The control counts everybody: a few people outside do not decide what a release is worth."""
    X = clip_rows(9 * some_people(2_000, 4, 25))
    mechanism = Scores(direction(4), LOUD)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        order = rng.permutation(2_000)
        inside, holdout = X[order[:1_900]], X[order[1_900:]]
        s = mechanism.privatize(inside, rng)
        found = score_inference(inside, s, mechanism.weights, LOUD, holdout, population=X, rng=rng)
        assert found.score > 0.95


def test_which_values_are_common() -> None:
    rng = np.random.default_rng(26)
    column = np.concatenate([np.zeros(70), np.full(20, 0.5), np.full(6, 0.2), rng.uniform(-1, 1, 904)])
    few = CommonValues.of(column)
    assert few is not None
    assert few.values.tolist() == [0.0, 0.5]  # six people are less than 1% of 1,000
    assert CommonValues.of(column[:96]) is not None
    assert CommonValues.of(np.concatenate([np.zeros(4), np.ones(90)])) is None  # four people are too few
    assert CommonValues.of(rng.uniform(-1, 1, 500)) is None
    assert CommonValues.of(np.zeros(500)) is None
    many = CommonValues.of(np.repeat(np.arange(20) / 20, np.arange(20) + 10))
    assert many is not None
    assert many.values == pytest.approx(np.arange(4, 20) / 20)  # the 16 commonest


# ---------------------------------------------------------------- sameness


def same(one: Protection, two: Protection) -> bool:
    return one.record() == two.record()


def test_rows_are_scores_by_the_identity() -> None:
    X, noise = some_people(200, 3, 12), SphericalLaplace(B=0.05, epsilon=4)
    Z = noise.privatize(X, np.random.default_rng(0))
    rows = row_inference(X[:150], Z[:150], noise, X[150:], rng=np.random.default_rng(1))
    scores = score_inference(X[:150], Z[:150], np.eye(3), noise, X[150:], rng=np.random.default_rng(1))
    assert same(rows, scores)
    assert rows.score < 0.9


def test_noise_may_be_given_as_mechanism_or_law_of_the_scores_or_of_the_whole() -> None:
    X, noise = some_people(100, 3, 13), Staircase(B=0.2, epsilon=4)
    mechanism = Scores(direction(3), noise)
    s = mechanism.privatize(X, np.random.default_rng(0))
    ways = (noise, noise.law(1), mechanism, mechanism.law(3))
    found = [score_inference(X, s, mechanism.weights, way, rng=np.random.default_rng(1)) for way in ways]
    assert all(same(found[0], one) for one in found[1:])
    flat = score_inference(X, s[:, 0], mechanism.weights[0], noise, rng=np.random.default_rng(1))
    assert same(found[0], flat)


def test_the_order_of_people_does_not_matter() -> None:
    X, noise = some_people(100, 3, 14), Staircase(B=0.2, epsilon=4)
    mechanism, order = Scores(direction(3), noise), np.random.default_rng(5).permutation(100)
    s = mechanism.privatize(X, np.random.default_rng(0))
    one, two = (
        score_inference(X[o], s[o], mechanism.weights, noise, X[:20], rng=np.random.default_rng(1))
        for o in (np.arange(100), order)
    )
    assert one.detail["p_release"] == two.detail["p_release"]
    assert one.detail["p_holdout"] == two.detail["p_holdout"]


def test_what_the_detail_says() -> None:
    X, noise = some_people(100, 3, 15), Staircase(B=0.2, epsilon=4)
    mechanism = Scores(direction(3), noise)
    s = mechanism.privatize(X, np.random.default_rng(0))
    found = score_inference(
        X, s, mechanism.weights, noise, columns=["a", "b", "c"], people=60, rng=np.random.default_rng(1)
    )
    assert list(found.settings) == [f"h={h}, {name}" for h in (1, 2) for name in "abc"]
    assert found.bound == "upper"
    assert found.detail["p_holdout"] is None
    assert found.detail["people"] == 60
    notes = found.detail["notes"]
    assert BY_HINDSIGHT in notes
    assert WELL_INFORMED in notes
    assert any("60 of 100 people were attacked" in note for note in notes)
    assert any("no holdout" in note for note in notes)
    assert found.settings["h=2, a"].score == found.detail["p_release"]["h=2, a"]
    json.dumps(found.record(), allow_nan=False)
    told = score_inference(X, s, mechanism.weights, noise, X[:20], population=X)
    assert WELL_INFORMED not in told.detail["notes"]
    assert any("exactly the row of somebody" in note for note in told.detail["notes"])


def test_constant_and_collinear_columns_are_no_trouble() -> None:
    X = some_people(200, 4, 16)
    X[:, 1] = 0.1
    X[:, 3] = X[:, 2]
    X = clip_rows(X)
    found = score_inference(X, X @ direction(4).T, direction(4), None, X[:50])
    assert found.detail["p_release"]["h=3, column 1"] == 0
    assert found.detail["p_release"]["h=3, column 3"] == 0
    assert found.detail["p_holdout"]["h=3, column 3"] == 0  # it follows from the others for everybody
    assert found.settings["h=3, column 3"].score == 1
    assert found.detail["p_release"]["h=3, column 0"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_commonest_value_is_right_for_most(seed: int) -> None:
    """Against every guess that could be best: where a stretch around some value begins or ends."""
    rng = np.random.default_rng(seed)
    table = np.round(rng.normal(0, 1, (60, 3)), 1 + seed % 2)
    rule = rule_of(table, 0.2)
    assert rule.zero_tolerances is not None
    for j, (guess, x) in enumerate(zip(rule.commonest(table), table.T, strict=True)):
        reach = np.where(x == 0, rule.zero_tolerances[j], 0.2 * np.abs(x)) * (1 - 1e-9)
        tried = np.concatenate([x - reach, x, x + reach])
        most = max(int(rule.right(np.full(60, g), x, j).sum()) for g in tried)
        assert rule.right(np.full(60, guess), x, j).sum() >= most > 1


@pytest.mark.parametrize("columns", [1, 2])
def test_singling_out_by_one_number_is_said_not_to_be_informative(columns: int) -> None:
    X = some_people(300, columns, 27)
    (found,) = run_attacks(JoinedTables(("a", "b")[:columns], X, X + 0.01), ["singling_out"], seed=1)
    assert ("not informative for one number" in found.meaning) == (columns == 1)
    assert found.meaning.startswith(meaning("singling_out", cast("Protection", found.protection)))


# ---------------------------------------------------------------- refused


X3 = some_people(30, 3, 18)
W3 = direction(3)
S3 = X3 @ W3.T
QUIET = Staircase(B=0.5, epsilon=4)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: score_inference(X3, S3, W3[:, :2], QUIET), "weights are for 2 columns, X has 3"),
        (lambda: score_inference(X3, S3, 2 * W3, QUIET), r"weights have norm 2, above 1"),
        (lambda: score_inference(X3, S3, 0 * W3, QUIET), r"weights\[0\] is zero"),
        (lambda: score_inference(X3, S3, [[np.nan, 1, 1]], QUIET), "weights has 1 values that are NaN"),
        (lambda: score_inference(X3, S3[:-1], W3, QUIET), "scores has 29 rows, X has 30"),
        (lambda: score_inference(X3, X3, W3, QUIET), "scores has 3 columns: exactly 1"),
        (lambda: score_inference(X3, S3, W3, QUIET.law(1), X3[:, :2]), "holdout has 2 columns"),
        (lambda: score_inference(X3, S3, W3, SphericalLaplace(B=1, epsilon=1).law(3)), "law for 3 columns"),
        (lambda: score_inference(X3, S3, W3, Scores(direction(3, 5), QUIET)), "weights are not those"),
        (lambda: score_inference(X3, S3, W3, QUIET, known=[3]), r"known\[0\] = 3 is outside"),
        (lambda: score_inference(X3, S3, W3, QUIET, people=31), "people = 31 is outside"),
        (lambda: score_inference(X3, S3, W3, QUIET, draws=0), "draws = 0 is outside"),
        (lambda: score_inference(X3, S3, W3, QUIET, columns=["a"]), "does not name the 3 columns"),
        (lambda: score_inference(X3, S3, W3, QUIET, confidence=1), "confidence = 1"),
        (lambda: score_inference(X3, S3, W3, QUIET, tolerance=-1), "tolerance = -1"),
        (lambda: score_inference(9 * X3, S3, W3, QUIET), "X has a row of length"),
        (lambda: score_inference(X3, S3, W3, QUIET, 9 * X3), "holdout has a row of length"),
        (lambda: score_inference(X3, S3, W3, QUIET, population=9 * X3), "population has a row of length"),
        (lambda: score_inference(S3, S3, [[1.0]], QUIET), "needs at least 2"),
        (lambda: row_inference(X3, X3[:-1], None), "X_priv has 29 rows"),
        (lambda: row_inference(X3, X3[:, :2], None), "X_priv has 2 columns"),
        (lambda: row_inference(X3, X3, Scores(W3, QUIET)), "noise is that of scores"),
        (
            lambda: row_inference(X3, X3, cast("Any", Mondrian(3))),
            "neither a noise mechanism nor a noise law",
        ),
    ],
)
def test_refused_with_the_reason(call: Callable[[], Protection], reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        call()
