"""What is expected of scores comes true, in as many cases as is said."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from support.targeting import crowd, noisy
from targetdp import Guarantee, least_noise
from targetdp._core import Floats
from targetdp.mechanisms import Scores
from targetdp.normalization import clip_rows
from targetdp.programs import Aid, Lending, loans_at_rates
from targetdp.targeting import chances_of_scores, expect, learn
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._expect import Difference, Expectation
from targetdp.targeting._learn import LearnedWeights

SAMPLES, MISSED = 60, 9
"""Of 60 intervals at 95%, more than 9 are missed with probability 0.0007; if they held in 70%, 9 or fewer
with probability 0.006 (binomial)."""
QUOTA = 0.3
COARSE = 0.02
"""Steps of the grid: twice those of the command, and quick."""


def program_of(y: Floats, X: Floats, *, lending: bool, seed: int = 0) -> Aid | Lending:
    if not lending:
        return Aid(np.exp(2 + 3 * y), QUOTA, population=1_000_000)
    repaid = np.random.default_rng(seed).random(len(X)) < expit(0.4 + X @ [9.0, -6.0, 4.0, 0.0])
    loans = loans_at_rates(np.full(len(X), 10.0), revenue=0.3, interest=0.02)
    return Lending(repaid.astype(float), loans, population=1_000_000)


def once(
    seed: int, promise: Guarantee, *, lending: bool, people: int = 600
) -> tuple[Aid | Lending, LearnedWeights, ScoreNoise]:
    rng = np.random.default_rng(seed)
    ours = crowd(people, seed=seed)
    labelled = program_of(ours.y, ours.X, lending=lending, seed=seed)
    loud, sigma = noisy(promise)
    noise = ScoreNoise.of(least_noise(promise, 1).mechanism.law(1), COARSE)
    task = "classification" if lending else "regression"
    Z = loud.privatize(ours.X, rng)
    learned = learn(Z, labelled.outcomes, sigma, noise.variance, task=task)  # type: ignore[arg-type]
    return labelled, learned, noise


@cache
def others(lending: bool) -> tuple[Floats, Aid | Lending]:
    """Many people like those of the samples."""
    theirs = crowd(40_000, seed=10**6)
    return theirs.X, program_of(theirs.y, theirs.X, lending=lending, seed=10**6)


def truth(learned: LearnedWeights, promise: Guarantee, *, lending: bool) -> dict[str, float]:
    """What these weights achieve among other people; loans are given above the best cut."""
    X, program = others(lending)
    quiet = least_noise(promise, 1).mechanism
    scores = Scores(learned.w, quiet).privatize(X, np.random.default_rng(5))[:, 0]
    if isinstance(program, Aid):
        return program.judge(scores, np.random.default_rng(0)).metrics
    order = np.argsort(scores)
    good = program.low_risk[order]
    right = np.cumsum(~good) + good.sum() - np.cumsum(good)
    level = scores[order][int(np.argmax(right))]
    return program.judge(expit(np.clip(5 * (scores - level), -30, 30))).metrics


@pytest.mark.parametrize(("B", "wide"), [(0.25, 0.16), (1.0, 0.2)])
@pytest.mark.parametrize("lending", [False, True])
def test_the_interval_holds_as_often_as_it_says(B: float, wide: float, lending: bool) -> None:
    promise = Guarantee(B, 4.0)
    missed, gaps, widths = 0, [], []
    for seed in range(SAMPLES):
        labelled, learned, noise = once(seed, promise, lending=lending)
        law = noisy(promise)[0].law(4)
        found = expect(labelled, learned, noise, np.random.default_rng(seed), law=law, redrawn=40)["accuracy"]
        true = truth(learned, promise, lending=lending)["accuracy"]
        gaps.append(found.value - true)
        widths.append(found.high - found.low)
        missed += not found.low <= true <= found.high
    assert missed <= MISSED
    assert abs(np.mean(gaps)) < 0.025
    assert np.mean(widths) < wide


def in_the_middle(people: int, rng: np.random.Generator, *, lending: bool) -> tuple[Floats, Floats]:
    """People for whom a score along a line is of little use: the poor are in the middle of a column."""
    X = clip_rows(0.4 * rng.normal(size=(people, 6)))
    if lending:
        odds = 6 * np.abs(X[:, 0]) + 2 * X[:, 0] - 1.5
        return X, (rng.random(people) < expit(odds)).astype(float)
    return X, np.exp(2 * np.abs(X[:, 0]) + 0.5 * X[:, 0] + 0.2 * rng.normal(size=people))


@pytest.mark.parametrize("lending", [False, True])
def test_where_the_poor_are_in_the_middle_the_interval_holds_and_it_is_told(lending: bool) -> None:
    """Two normal distributions alone promise 7 points of accuracy too many here, in every sample."""
    promise, rng, samples = Guarantee(0.5, 4.0, 1e-6), np.random.default_rng(5), 12
    loud, quiet = least_noise(promise, 6).mechanism, least_noise(promise, 1).mechanism
    noise = ScoreNoise.of(quiet.law(1), COARSE)
    missed = odd = 0
    for seed in range(samples):
        X, y = in_the_middle(1_000, rng, lending=lending)
        sigma = loud.noise_covariance(6)
        Z = loud.privatize(X, rng)
        learned = learn(Z, y, sigma, noise.variance, task="classification" if lending else "regression")
        found = expect(_program(y), learned, noise, np.random.default_rng(seed), law=loud.law(6), redrawn=60)
        X, y = in_the_middle(20_000, rng, lending=lending)
        scores = Scores(learned.w, quiet).privatize(X, rng)[:, 0]
        if lending:
            scores = chances_of_scores(scores, noise, learned)
        true = _program(y).judge(scores, rng)["accuracy"]
        missed += not found["accuracy"].low <= true <= found["accuracy"].high
        odd += found.difference is not None and found.difference.is_odd
    assert missed <= 1
    if not lending:
        assert odd >= samples - 1


def _program(y: Floats) -> Aid | Lending:
    if set(np.unique(y)) <= {0.0, 1.0}:
        return Lending(y, loans_at_rates(np.full(len(y), 10.0), revenue=0.3, interest=0.02))
    return Aid(y, 0.2)


def test_ordinary_people_are_not_told_to_be_odd() -> None:
    odd = 0
    for seed in range(20):
        labelled, learned, noise = once(seed, Guarantee(0.25, 4.0), lending=False)
        found = expect(labelled, learned, noise, np.random.default_rng(seed), redrawn=0)
        odd += found.difference is not None and found.difference.is_odd
    assert odd <= 1


def test_the_farther_the_pictures_are_apart_the_more_is_counted() -> None:
    def apart(far: float) -> Difference:
        return Difference(0.7 + far, 0.7, 0.01)

    assert [apart(far).disbelief for far in (0.0, 0.009, -0.009)] == [0.0, 0.0, 0.0]
    assert apart(0.02).disbelief == pytest.approx(0.75)
    assert apart(-0.1).disbelief == pytest.approx(0.99)
    assert [apart(far).is_odd for far in (0.024, 0.026, -0.026)] == [False, True, True]
    assert not Difference(0.709, 0.7, 0.0).is_odd  # less than a point


def told(lending: bool, epsilon: float = 4.0, confidence: float = 0.95) -> Expectation:
    labelled, learned, noise = once(3, Guarantee(0.25, epsilon), lending=lending, people=3_000)
    return expect(labelled, learned, noise, np.random.default_rng(1), confidence=confidence, redrawn=50)


@pytest.mark.parametrize("lending", [False, True])
def test_figures_agree_with_each_other_and_with_the_program(lending: bool) -> None:
    found = told(lending)
    _, learned, _ = once(3, Guarantee(0.25, 4.0), lending=lending, people=3_000)
    true = truth(learned, Guarantee(0.25, 4.0), lending=lending)
    value = {name: one.value for name, one in found.figures.items()}
    if lending:
        wrong = value["wrong_approvals"] + value["wrong_refusals"]
        assert value["accuracy"] == pytest.approx(1 - wrong / 1_000_000)
        assert value["profit"] == pytest.approx(true["profit"], abs=0.15 * abs(true["profit"]) + 50_000)
    else:
        assert value["exclusion_errors"] == pytest.approx(1_000_000 * QUOTA * (1 - value["recall"]), rel=0.01)
        assert value["accuracy"] == pytest.approx(1 - 2 * QUOTA * (1 - value["recall"]), abs=0.005)
        assert value["exclusion_errors"] == pytest.approx(true["exclusion_errors"], rel=0.1)
    assert value["accuracy"] == pytest.approx(true["accuracy"], abs=0.03)


@pytest.mark.parametrize("lending", [False, True])
def test_more_confidence_is_wider_and_more_noise_is_worse(lending: bool) -> None:
    usual, sure = told(lending), told(lending, confidence=0.99)
    width = [one["accuracy"].high - one["accuracy"].low for one in (usual, sure)]
    assert width[0] < width[1]
    assert told(lending, epsilon=0.5)["accuracy"].value < usual["accuracy"].value - 0.01
    # A point wider in accuracy than samples drawn again alone, on either side.
    labelled, learned, noise = once(3, Guarantee(0.25, 4.0), lending=lending, people=3_000)
    alone = expect(labelled, learned, noise, np.random.default_rng(1), redrawn=0)["accuracy"]
    assert (alone.value - alone.low, alone.high - alone.value) == pytest.approx((0.01, 0.01))


def test_people_must_be_the_same() -> None:
    labelled, learned, noise = once(3, Guarantee(0.25, 4.0), lending=False)
    other, _, _ = once(3, Guarantee(0.25, 4.0), lending=False, people=500)
    with pytest.raises(ValueError, match="600 people"):
        expect(other, learned, noise, np.random.default_rng(0))
    with pytest.raises(ValueError, match="confidence"):
        expect(labelled, learned, noise, np.random.default_rng(0), confidence=1.0)
