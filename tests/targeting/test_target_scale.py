"""The log rule: it looks at the target only, and people keep their order."""

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.targeting._denoise import AS_GIVEN, TargetScale, scale_of


def consumption(seed: int = 0) -> Floats:
    return np.exp(np.random.default_rng(seed).normal(7.0, 0.7, size=800))


def test_consumption_is_learned_as_its_logarithm() -> None:
    y = consumption()
    assert scale_of(y) == TargetScale("log")
    np.testing.assert_array_equal(scale_of(y).of(y), np.log(y))


def test_a_target_that_is_not_skewed_stays_as_it_is() -> None:
    y = np.random.default_rng(1).normal(20.0, 3.0, size=800)
    assert (y > 0).all()
    assert scale_of(y) is AS_GIVEN
    np.testing.assert_array_equal(AS_GIVEN.of(y), y)


def test_a_target_that_is_skewed_to_the_left_stays_as_it_is() -> None:
    y = 5_000 - consumption()
    y = y[y > 0]
    assert scale_of(y) is AS_GIVEN


@pytest.mark.parametrize("shift", [0.0, -500.0])
def test_zeros_and_debts_have_a_scale_of_their_own(shift: float) -> None:
    y = consumption() + shift
    y[:40] = 0.0
    found = scale_of(y)
    assert found.name == "signed log"
    assert found.unit == pytest.approx(np.median(np.abs(y[y != 0])))
    bent = found.of(y)
    assert np.isfinite(bent).all()
    # Whoever is poorest on one scale is so on the other.
    np.testing.assert_array_equal(np.argsort(bent, kind="stable"), np.argsort(y, kind="stable"))


def test_two_values_are_no_consumption() -> None:
    assert scale_of(np.array([1.0, 1.0, 1.0, 50.0])) is AS_GIVEN
    assert scale_of(np.zeros(5)) is AS_GIVEN


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_do_not_matter(size: float) -> None:
    y = consumption() * size
    assert scale_of(y) == TargetScale("log")
    y[:3] = 0.0
    assert scale_of(y).name == "signed log"
