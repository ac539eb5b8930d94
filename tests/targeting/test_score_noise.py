"""Noise on one score on a grid: its law, what it makes of scores, and the way back."""

import numpy as np
import pytest

from targetdp import GaussianNoise, Guarantee, SphericalLaplace, Staircase, least_noise
from targetdp.mechanisms import NoiseMechanism, Scores
from targetdp.targeting._denoise import ScoreNoise

MECHANISMS = [
    Staircase(B=0.25, epsilon=4.0),
    Staircase(B=2.0, epsilon=1.0),
    SphericalLaplace(B=0.25, epsilon=2.0),
    GaussianNoise(B=0.05, epsilon=4.0, delta=1e-5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_kernel_is_the_law(mechanism: NoiseMechanism) -> None:
    noise = ScoreNoise.of(mechanism.law(1))
    reach = len(noise.kernel) // 2
    steps = np.arange(-reach, reach + 1) * noise.step
    assert noise.kernel.sum() == pytest.approx(1)
    assert noise.kernel @ steps == pytest.approx(0, abs=1e-9)
    variance = float(noise.kernel @ steps**2)
    # A grid adds a twelfth of its step squared; a staircase's edges lie between grid points.
    assert variance == pytest.approx(noise.variance, rel=0.03)
    assert noise.variance == pytest.approx(mechanism.noise_sd(1) ** 2)
    assert len(noise.released) == len(noise.values) + 2 * reach


def test_a_release_of_one_score_has_the_noise_of_its_score() -> None:
    quiet = Staircase(B=0.25, epsilon=4.0)
    one, other = ScoreNoise.of(Scores(np.ones(5), quiet).law(5)), ScoreNoise.of(quiet.law(1))
    np.testing.assert_array_equal(one.kernel, other.kernel)
    with pytest.raises(ValueError, match="2 dimensions"):
        ScoreNoise.of(SphericalLaplace(B=0.25, epsilon=4.0).law(2))
    with pytest.raises(TypeError, match="NoiseLaw"):
        ScoreNoise.of(quiet)  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_spreading_out_is_adding_noise(mechanism: NoiseMechanism) -> None:
    """A histogram of 200,000 released scores: no bin of 20 steps is off by more than 5 deviations."""
    noise, rng = ScoreNoise.of(mechanism.law(1)), np.random.default_rng(1)
    scores = rng.choice(noise.values, p=noise.bell(0.1, 0.04), size=200_000)
    released = mechanism.privatize(scores[:, None], rng)[:, 0]
    expected = noise.spread_out(noise.bell(0.1, 0.04))
    seen = np.bincount(noise.places(released), minlength=len(expected)) / len(released)
    width = 20
    whole = len(expected) // width * width
    a, b = (x[:whole].reshape(-1, width).sum(axis=1) for x in (seen, expected))
    inner = slice(1, -1)  # what is beyond the grid counts as at its end
    assert np.all(np.abs(a - b)[inner] < 5 * np.sqrt(b * (1 - b) / len(released))[inner] + 2e-3)


def test_a_distribution_is_found_again_under_noise() -> None:
    """Two peaks that a normal distribution does not have, under noise of half their distance."""
    rng = np.random.default_rng(2)
    scores = np.where(rng.random(50_000) < 0.3, -0.4, 0.3) + 0.05 * rng.standard_normal(50_000)
    noise = ScoreNoise.of(least_noise(Guarantee(1.0, 4.0), 1).mechanism.law(1))
    released = least_noise(Guarantee(1.0, 4.0), 1).mechanism.privatize(scores[:, None], rng)[:, 0]
    start = noise.bell(float(released.mean()), 0.1)
    found = noise.distribution(released, start)
    assert found.sum() == pytest.approx(1)
    assert found[noise.values < -0.05].sum() == pytest.approx(0.3, abs=0.02)
    assert start[np.abs(noise.values) < 0.1].sum() > 0.15
    assert found[np.abs(noise.values) < 0.1].sum() < 0.03
    deviation = np.sqrt(found @ noise.values**2 - (found @ noise.values) ** 2)
    assert deviation == pytest.approx(scores.std(), rel=0.03)
    assert deviation < 0.95 * released.std()


def test_few_people_stay_near_what_was_believed_before() -> None:
    noise = ScoreNoise.of(Staircase(B=0.25, epsilon=4.0).law(1))
    start = noise.bell(0.0, 0.04)
    one = noise.distribution(np.array([0.9]), start)
    assert one @ noise.values == pytest.approx(0.9 / 21, abs=0.01)
    many = noise.distribution(np.full(10_000, 0.9), start)
    assert many @ noise.values > 0.8


def test_weights_count_people_as_often() -> None:
    noise = ScoreNoise.of(Staircase(B=0.25, epsilon=4.0).law(1))
    start, rng = noise.bell(0.0, 0.04), np.random.default_rng(3)
    scores, counts = rng.normal(0, 0.3, 200), rng.integers(1, 4, 200)
    one = noise.distribution(scores, start, counts.astype(float))
    other = noise.distribution(np.repeat(scores, counts), start)
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_score_that_is_too_high_to_be_true_says_little() -> None:
    """Staircase noise at B = 2: beyond the ball's reach a score was moved by a jump, from anywhere."""
    noise = ScoreNoise.of(Staircase(B=2.0, epsilon=4.0).law(1))
    chances = noise.bell(0.0, 0.05)
    found = noise.expected(np.array([0.0, 0.4, 0.9, 2.0]), chances, noise.values)
    assert found[0] == pytest.approx(0, abs=0.02)
    assert found[1] == pytest.approx(0.175, abs=0.02)
    # A linear reading would take the last two for the highest of all.
    assert abs(found[3]) < 0.05
    assert found[2] < 0.5 * 0.9


def test_hardly_any_noise_leaves_scores_as_they_are() -> None:
    noise = ScoreNoise.of(GaussianNoise(B=1e-6, epsilon=10.0, delta=1e-3).law(1))
    scores = np.array([-0.7, 0.0123, 0.5])
    chances = noise.distribution(scores, noise.bell(0.0, 0.1))
    np.testing.assert_allclose(noise.expected(scores, chances, noise.values), scores, atol=2e-3)


@pytest.mark.parametrize(
    "mechanism",
    [
        SphericalLaplace(B=0.25, epsilon=4.0),
        GaussianNoise(B=0.25, epsilon=4.0, delta=1e-5),
        Staircase(B=0.25, epsilon=4.0),
    ],
    ids=str,
)
def test_noise_on_rows_along_a_direction(mechanism: NoiseMechanism) -> None:
    """A histogram of what 200,000 rows of noise are along a direction: no bin is off by 5 deviations.

    Normal noise of the same variance would not pass for spherical Laplace noise.
    """
    d = 1 if isinstance(mechanism, Staircase) else 3
    w = np.array([1.0, -2.0, 0.5])[:d] / np.linalg.norm([1.0, -2.0, 0.5][:d])
    law, variance = mechanism.law(d), float(w @ mechanism.noise_covariance(d) @ w)
    along = mechanism.privatize(np.zeros((200_000, d)), np.random.default_rng(2)) @ w

    def worst(noise: ScoreNoise) -> float:
        width, spread = 4, noise.spread_out(np.eye(1, len(noise.values), len(noise.values) // 2)[0])
        seen = np.bincount(noise.places(along), minlength=len(spread)) / len(along)
        whole = len(spread) // width * width
        a, b = (x[:whole].reshape(-1, width).sum(axis=1) for x in (seen, spread))
        return float(np.max(np.abs(a - b) / np.sqrt(b / len(along) + 1e-9)))

    assert worst(ScoreNoise.along(law, variance, 0.02)) < 5
    if isinstance(mechanism, SphericalLaplace):
        assert worst(ScoreNoise.normal(variance, 0.02)) > 20
        assert worst(ScoreNoise.along(law, 1.2 * variance, 0.02)) > 20
    assert ScoreNoise.along(None, variance, 0.02).deviation == pytest.approx(np.sqrt(variance))


def test_many_distributions_at_once_are_as_one_by_one() -> None:
    noise, rng = ScoreNoise.normal(0.15**2, 0.02), np.random.default_rng(4)
    start, scores = noise.bell(0.0, 0.09), [0.3 * rng.normal(size=n) for n in (40, 900)]
    counts = np.array([np.bincount(noise.places(s), minlength=len(noise.released)) for s in scores])
    together = noise.distributions(counts.astype(float), np.stack([start, start]))
    for one, s in zip(together, scores, strict=True):
        np.testing.assert_allclose(one, noise.distribution(s, start), atol=1e-7)
    assert np.abs(together[0] - together[1]).max() > 1e-4
