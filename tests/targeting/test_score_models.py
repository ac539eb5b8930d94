"""Two pictures of scores: each is right where it should be, and the counted one follows any shape."""

import numpy as np
import pytest

from support.targeting import crowd, noisy
from targetdp import Guarantee
from targetdp._core import Floats
from targetdp.programs import Aid, Lending, loans_at_rates
from targetdp.targeting import learn
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._learn import LearnedWeights
from targetdp.targeting._score_models import BootstrapSample, ErrorShares, counted

STEP = 0.01


def learned_from(X: Floats, y: Floats, noise: float = 1e-6) -> LearnedWeights:
    return learn(X, y, noise * np.eye(X.shape[1]), 0.001)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_seen_is_what_the_program_counts(weighted: bool) -> None:
    people = crowd(500)
    weights = np.random.default_rng(1).uniform(0.5, 2, 500) if weighted else None
    program = Aid(np.exp(people.y), 0.3, weights=weights)
    learned = learned_from(people.X, np.exp(people.y))
    found = BootstrapSample.of(program, learned).seen(ScoreNoise.normal(1e-6, 1e-3))
    assert found.accuracy == pytest.approx(program.judge(learned.scores)["accuracy"], abs=0.01)


def test_loans_that_are_seen() -> None:
    people = crowd(500)
    y = (people.y > 0).astype(float)
    program = Lending(y, loans_at_rates(np.full(500, 10.0), revenue=0.3, interest=0.02))
    learned = learn(people.X, y, 1e-6 * np.eye(4), 0.001, task="classification")
    found = BootstrapSample.of(program, learned).seen(ScoreNoise.normal(1e-6, 1e-3))
    level = learned.scores[np.argsort(learned.scores)[int((y == 0).sum())]]
    assert found.accuracy == pytest.approx(np.mean((learned.scores > level) == (y == 1)), abs=0.03)


def middle(people: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The poor are in the middle; rich people at both ends, a few more above."""
    X = np.clip(0.3 * rng.normal(size=(people, 2)), -0.7, 0.7)
    return X, np.exp(3 * np.abs(X[:, 0] + 0.05))


def test_the_counted_picture_follows_any_shape() -> None:
    rng = np.random.default_rng(3)
    X, y = middle(4_000, rng)
    first, noise = ScoreNoise.normal(0.1**2, STEP), ScoreNoise.normal(0.05**2, STEP)
    Z = X + 0.1 * rng.normal(size=X.shape)
    learned = learn(Z, y, 0.01 * np.eye(2), noise.variance)
    drawn = BootstrapSample.of(Aid(y, 0.3), learned)
    many, truth = middle(200_000, rng)
    scores = many @ learned.w + 0.05 * rng.normal(size=len(many))
    true = Aid(truth, 0.3).judge(scores)["accuracy"]
    assert counted([drawn], noise, first)[0].accuracy == pytest.approx(true, abs=0.015)
    assert drawn.smooth(noise).accuracy > true + 0.1  # two bells cannot show it


def test_of_normal_people_both_are_right() -> None:
    people, many = crowd(8_000), crowd(200_000, seed=9)
    mechanism, sigma = noisy(Guarantee(0.25, 4.0))
    loud = mechanism.privatize(people.X, np.random.default_rng(0))
    learned = learn(loud, np.exp(people.y), sigma, 0.05**2)
    noise = ScoreNoise.normal(0.05**2, STEP)
    first = ScoreNoise.along(mechanism.law(4), learned.noise_variance, STEP)
    drawn = BootstrapSample.of(Aid(np.exp(people.y), 0.3), learned)
    scores = many.X @ learned.w + 0.05 * np.random.default_rng(1).normal(size=len(many.X))
    true = Aid(np.exp(many.y), 0.3).judge(scores)["accuracy"]
    assert drawn.smooth(noise).accuracy == pytest.approx(true, abs=0.02)
    assert counted([drawn], noise, first)[0].accuracy == pytest.approx(true, abs=0.02)


def test_a_sample_drawn_again_has_a_line_of_its_own() -> None:
    """If only rich people are drawn, the poorest of these are the poor."""
    people = crowd(200)
    y = np.exp(people.y)
    learned = learned_from(people.X, y)
    counts = (y > np.median(y)) * 2.0
    drawn = BootstrapSample.of(Aid(y, 0.3), learned, counts)
    assert drawn.share == pytest.approx(0.7, abs=0.02)
    assert y[(counts > 0) & ~drawn.high].max() < y[(counts > 0) & drawn.high].min()


def test_samples_at_once_are_as_one_by_one() -> None:
    people = crowd(300)
    learned = learned_from(people.X, np.exp(people.y), 0.01)
    noise, first = ScoreNoise.normal(0.1**2, STEP), ScoreNoise.normal(0.01, STEP)
    rng = np.random.default_rng(0)
    draws = [
        BootstrapSample.of(Aid(np.exp(people.y), 0.3), learned, rng.integers(0, 3, 300).astype(float), 0.5)
        for _ in range(3)
    ]
    together = counted(draws, noise, first)
    alone = [counted([draw], noise, first)[0] for draw in draws]
    for one, other in zip(together, alone, strict=True):
        assert (one.let_in, one.left_out) == pytest.approx((other.let_in, other.left_out), abs=1e-9)
    assert len({round(one.accuracy, 6) for one in together}) == 3


def test_a_sample_in_which_all_are_alike() -> None:
    people = crowd(60)
    y = (people.y > 0).astype(float)
    program = Lending(y, loans_at_rates(np.full(60, 10.0), revenue=0.3, interest=0.02))
    learned = learn(people.X, y, 1e-6 * np.eye(4), 0.001, task="classification")
    drawn = BootstrapSample.of(program, learned, y)
    noise = ScoreNoise.normal(0.01, STEP)
    assert drawn.smooth(noise).accuracy == pytest.approx(1.0)
    assert counted([drawn], noise, noise)[0].accuracy == pytest.approx(1.0)


def test_towards() -> None:
    here, there = ErrorShares(0.1, 0.2), ErrorShares(0.3, 0.1)
    assert here.towards(there, 0.0) == here
    half = here.towards(there, 0.5)
    assert (half.let_in, half.left_out, half.accuracy) == pytest.approx((0.2, 0.15, 0.65))
