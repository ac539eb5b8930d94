"""What is expected of the second round comes true, in as many cases as is said."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from targetdp import Guarantee, least_noise
from targetdp.mechanisms.linear import Scores
from targetdp.programs.aid import Aid
from targetdp.programs.lending import Lending, loans_at_rates
from targetdp.programs.two_rounds.expectation import Expectation, expect
from targetdp.programs.two_rounds.learning import Weights, learn_weights
from targetdp.programs.two_rounds.offers import COARSE
from targetdp.programs.two_rounds.score_noise import ScoreNoise
from targetdp.typing import Floats
from two_rounds_support import crowd, noisy

SAMPLES, MISSED = 60, 9
"""Of 60 intervals at 95%, more than 9 are missed with probability 0.0007; if they held in 70%, 9 or fewer
with probability 0.006 (binomial)."""
QUOTA = 0.3


def program_of(y: Floats, X: Floats, *, lending: bool, seed: int = 0) -> Aid | Lending:
    if not lending:
        return Aid(np.exp(2 + 3 * y), QUOTA, population=1_000_000)
    repaid = np.random.default_rng(seed).random(len(X)) < expit(0.4 + X @ [9.0, -6.0, 4.0, 0.0])
    loans = loans_at_rates(np.full(len(X), 10.0), revenue=0.3, interest=0.02)
    return Lending(repaid.astype(float), loans, population=1_000_000)


def once(
    seed: int, promise: Guarantee, *, lending: bool, people: int = 600
) -> tuple[Aid | Lending, Weights, ScoreNoise]:
    rng = np.random.default_rng(seed)
    ours = crowd(people, seed=seed)
    labelled = program_of(ours.y, ours.X, lending=lending, seed=seed)
    loud, sigma = noisy(promise)
    noise = ScoreNoise.of(least_noise(promise, 1).mechanism.law(1), COARSE)
    kind = "lending" if lending else "aid"
    Z = loud.privatize(ours.X, rng)
    learned = learn_weights(Z, labelled.outcomes, sigma, noise.variance, kind=kind)  # type: ignore[arg-type]
    return labelled, learned, noise


@cache
def others(lending: bool) -> tuple[Floats, Aid | Lending]:
    """Many people like those of the samples."""
    theirs = crowd(40_000, seed=10**6)
    return theirs.X, program_of(theirs.y, theirs.X, lending=lending, seed=10**6)


def truth(learned: Weights, promise: Guarantee, *, lending: bool) -> dict[str, float]:
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


@pytest.mark.parametrize(("B", "wide"), [(0.25, 0.14), (1.0, 0.19)])
@pytest.mark.parametrize("lending", [False, True])
def test_the_interval_holds_as_often_as_it_says(B: float, wide: float, lending: bool) -> None:
    promise = Guarantee(B, 4.0)
    missed, gaps, widths = 0, [], []
    for seed in range(SAMPLES):
        labelled, learned, noise = once(seed, promise, lending=lending)
        found = expect(labelled, learned, noise, np.random.default_rng(seed), redrawn=80)["accuracy"]
        true = truth(learned, promise, lending=lending)["accuracy"]
        gaps.append(found.value - true)
        widths.append(found.high - found.low)
        missed += not found.low <= true <= found.high
    assert missed <= MISSED
    assert abs(np.mean(gaps)) < 0.025
    assert np.mean(widths) < wide


def told(lending: bool, epsilon: float = 4.0, **more: float) -> Expectation:
    labelled, learned, noise = once(3, Guarantee(0.25, epsilon), lending=lending, people=3_000)
    return expect(labelled, learned, noise, np.random.default_rng(1), redrawn=50, **more)


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
