"""The loss of randomized response against sums over its answers, taken with 700 digits."""

import math
from collections.abc import Iterator
from itertools import product

import mpmath  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from targetdp.accounting import GaussianLoss, PrivacyFilter, PrivacyLoss, ResponseLoss, StatedLoss, compose
from targetdp.accounting import SphericalLaplaceLoss as Laplace

UNSURE = mpmath.mpf(10) ** -650
"""Relative, and absolute: of what 700 digits leave."""
LEVELS = (1e-300, 1e-12, 1e-4, 0.03, 0.25, 1.0, 4.0, 12.0, 40.0, 100.0, 700.0, 5e4, 1e11)
ANSWERS = (2, 4, 8, 16)


def chances(level: float, answers: int) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """The chances of all answers, if the first one is true and if the second one is."""
    e = mpmath.exp(mpmath.mpf(level))
    right, wrong = e / (e + answers - 1), 1 / (e + answers - 1)
    rest = [wrong] * (answers - 2)
    return [right, wrong, *rest], [wrong, right, *rest]


def exact_delta(level: float, answers: int, epsilon: float) -> mpmath.mpf:
    factor = mpmath.exp(mpmath.mpf(epsilon))
    return sum(max(mpmath.mpf(0), p - factor * q) for p, q in zip(*chances(level, answers), strict=True))


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    """Enough for 1 + 10⁻³⁰⁰, and its square."""
    with mpmath.workdps(700):
        yield


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("answers", ANSWERS)
def test_delta_and_the_best_guess_are_hardly_above_the_truth_and_never_below(
    level: float, answers: int
) -> None:
    loss = ResponseLoss(level, answers)
    for share in (0.0, 1e-9, 0.3, 0.9, 1 - 1e-9, math.nextafter(1, 0), 1.0, 1.5):
        truth = exact_delta(level, answers, share * level)
        assert (
            truth * (1 - UNSURE) - UNSURE <= loss.delta(share * level) <= float(truth) * (1 + 1e-12) + 5e-324
        )
    guess = (1 + exact_delta(level, answers, 0.0)) / 2
    assert guess <= loss.best_guess() <= guess + mpmath.mpf(2) ** -45
    assert loss.epsilon(0.0) == loss.largest() == loss.reach() == level


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("answers", ANSWERS)
def test_divergences_are_hardly_above_the_truth_and_never_below(level: float, answers: int) -> None:
    loss = ResponseLoss(level, answers)
    p, q = chances(level, answers)
    if level < 1e9:
        mean = sum(a * mpmath.log(a / b) for a, b in zip(p, q, strict=True))
        assert mean * (1 - UNSURE) - UNSURE <= loss.expected() <= float(mean) * (1 + 1e-12) + 5e-324
    for order in (1 + 2.0**-30, 1.01, 1.5, 2.0, 5.0, 30.0, 1000.0, 1e6):
        if order * level > 1e6:
            assert loss.renyi(order) <= level
            continue
        power = sum(a * (a / b) ** (mpmath.mpf(order) - 1) for a, b in zip(p, q, strict=True))
        truth = mpmath.log(power) / (mpmath.mpf(order) - 1)
        assert truth * (1 - UNSURE) - UNSURE <= loss.renyi(order) <= level
        if level > 1e-100:
            assert loss.renyi(order) <= float(truth) * (1 + 1e-8)


@pytest.mark.parametrize("level", [1e-6, 0.01, 0.25, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("answers", ANSWERS)
def test_the_closed_form_is_the_integral_of_the_curve(level: float, answers: int) -> None:
    loss = ResponseLoss(level, answers)
    for order in (1.25, 2.0, 17.0):
        assert loss.renyi(order) == pytest.approx(PrivacyLoss.renyi(loss, order), rel=1e-6)


@pytest.mark.parametrize("level", [1e-6, 0.25, 1.0, 4.0, 30.0])
def test_normal_noise_of_its_size_tells_more_at_every_epsilon(level: float) -> None:
    for answers in ANSWERS:
        loss = ResponseLoss(level, answers)
        normal = GaussianLoss(loss.gaussian())
        for epsilon in np.linspace(0, level, 41):
            assert normal.delta(float(epsilon)) >= loss.delta(float(epsilon)) * (1 - 1e-9)


@pytest.mark.parametrize("level", [0.03, 0.25, 1.0, 4.0])
def test_nothing_that_is_bounded_tells_more(level: float) -> None:
    """Distributions over three outcomes whose chances are within e^ε of each other."""
    rng, loss, seen = np.random.default_rng(1), ResponseLoss(level), 0.0
    for _ in range(400):
        ratios = np.exp(rng.choice([-level, level, 0.0, rng.uniform(-level, level)], size=3))
        q = rng.dirichlet(np.ones(3))
        if not ratios.min() < 1 < ratios.max():
            continue
        # Scale the outcomes that are likelier under the one so that both add up to 1.
        up, down = ratios > 1, ratios <= 1
        gain, fall = float(((ratios - 1) * q)[up].sum()), float(((1 - ratios) * q)[down].sum())
        q = np.where(up, q * fall, q * gain)
        q /= q.sum()
        p = ratios * q
        for epsilon in (0.0, 0.3 * level, 0.9 * level):
            found = float(np.maximum(0, p - math.exp(epsilon) * q).sum())
            assert found <= loss.delta(epsilon) * (1 + 1e-9) + 1e-15
            seen = max(seen, found / loss.delta(epsilon))
    assert seen > 0.5


@pytest.mark.parametrize(("level", "answers", "times"), [(0.1, 2, 12), (1.0, 2, 5), (4.0, 2, 3), (1.0, 4, 4)])
def test_several_are_composed_as_all_their_answers_are_counted(
    level: float, answers: int, times: int
) -> None:
    loss = compose(*[ResponseLoss(level, answers)] * times)
    p, q = ([float(c) for c in side] for side in chances(level, answers))
    shares = [(p[0], level), (q[0], -level)] + ([(1 - p[0] - q[0], 0.0)] if answers > 2 else [])
    for epsilon in (0.0, level / 2, level, 1.7 * level, (times - 0.5) * level):
        truth = 0.0
        for each in product(shares, repeat=times):
            total = sum(value for _, value in each)
            truth += math.prod(share for share, _ in each) * max(0.0, -math.expm1(min(0, epsilon - total)))
        assert truth - 1e-13 <= loss.delta(epsilon) <= truth * 1.01 + 2e-3
    assert loss.largest() == pytest.approx(times * level)
    assert loss.delta(math.nextafter(times * level, math.inf)) == 0.0


def test_it_is_composed_with_rows_and_scores() -> None:
    bit = ResponseLoss(4.0)
    for other in (GaussianLoss(0.7), Laplace(1.0, 5), StatedLoss(0.5, 1e-6), ResponseLoss(2000.0, 16)):
        both = compose(bit, other)
        for epsilon in (0.0, 1.0, 3.9, 4.5):
            assert both.delta(epsilon) >= max(bit.delta(epsilon), other.delta(epsilon)) * (1 - 1e-9)
        assert both.delta(epsilon) <= 1
    assert compose(bit, GaussianLoss(0.0)) == bit


@pytest.mark.parametrize("level", [501.0, 1e4, 1e11])
def test_a_huge_one_is_composed_without_overflow(level: float) -> None:
    total = compose(ResponseLoss(level), ResponseLoss(1.0, 4))
    assert total.delta(level / 2) == pytest.approx(1.0)
    assert total.delta(math.nextafter(level + 1, math.inf)) == 0.0


def test_a_filter_charges_it() -> None:
    loss = ResponseLoss(0.25, 4)
    assert PrivacyFilter("pure", 4.0, 1e-5).cost(loss).amount == 0.25
    assert PrivacyFilter("gaussian", 4.0, 1e-5).cost(loss).amount == loss.gaussian() ** 2
    renyi = PrivacyFilter("renyi", 4.0, 1e-5)
    assert renyi.order is not None
    assert renyi.cost(loss).amount == loss.renyi(renyi.order)
    assert renyi.cost(StatedLoss(0.25, 0.0)) == renyi.cost(ResponseLoss(0.25))


@pytest.mark.parametrize("kind", ["pure", "gaussian", "renyi"])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_as_many_as_a_filter_takes_keep_its_limit_by_exact_counting(kind: str, level: float) -> None:
    limit = PrivacyFilter(kind, 4.0, 1e-5)  # type: ignore[arg-type]
    times = int(limit.budget.amount // limit.cost(ResponseLoss(level)).amount)
    assert times >= 4 / level - 1 if kind == "pure" else times >= 6
    p = mpmath.mpf(1) / (1 + mpmath.exp(-mpmath.mpf(level)))
    found = mpmath.mpf(0)
    for right in range(times + 1):
        share = mpmath.binomial(times, right) * p**right * (1 - p) ** (times - right)
        found += share * max(mpmath.mpf(0), 1 - mpmath.exp(4.0 - (2 * right - times) * mpmath.mpf(level)))
    assert found <= 1e-5


def test_a_stated_promise_is_randomized_response() -> None:
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        assert StatedLoss(2.0, 0.0).delta(epsilon) == pytest.approx(
            ResponseLoss(2.0).delta(epsilon), rel=1e-12
        )
    assert StatedLoss(2.0, 0.0).split()[0] == ResponseLoss(2.0)
    assert ResponseLoss(0.0).best_guess() == 0.5
    assert ResponseLoss(0.0).expected() == ResponseLoss(0.0).renyi(2.0) == 0.0


@pytest.mark.parametrize(
    "bad", [{"level": -1.0}, {"level": math.nan}, {"level": math.inf}, {"answers": 1}, {"answers": 2.0}]
)
def test_what_is_no_response_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        ResponseLoss(**{"level": 1.0} | bad)  # type: ignore[arg-type]
