"""The other constant behind ε: a chi draw on a lattice of 2⁻⁴⁰ moves a row's density less than claimed.

Given a row's chi T, its coordinates are exact normals; T itself comes from a normal z that was rounded by
at most 2⁻⁴¹ before Marsaglia and Tsang's map and acceptance test. To first order that changes the log
density of noise of length ρ (in units of its scale) by at most

    2⁻⁴¹ · E[ |d ln A/dz| + |ρ²/T² − d|·|d ln T/dz| given ρ ],

and T given ρ has density ∝ exp(−T²/2 − ρ²/(2T²)), because the powers of T cancel.
"""

import math

import numpy as np
import pytest

from targetdp.noise import _sampler as noise

POINTS = 20_001
"""Of the quadrature below: ten times as many change it by less than 0.1%."""


def acceptance_slope_and_scale_slope(
    T: np.ndarray[tuple[int], np.dtype[np.float64]], degrees: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    shape = degrees / 2 - 1 / 3
    c = 1 / math.sqrt(9 * shape)
    root = (T * T / (2 * shape)) ** (1 / 3)
    z = (root - 1) / c
    acceptance = z + shape * (3 * c / root - 3 * c * root**2)
    return np.abs(acceptance), 1.5 * c / root


def claimed(d: int, shift: float) -> float:
    """What is stated for the chi draw alone, for neighbors so many scales apart."""
    whole = noise.spherical_laplace_imperfection(d, shift).log_error
    return whole - noise.gaussian_imperfection(d, 0.0).log_error


def moved(d: int, rho: float) -> float:
    """The expectation above, by quadrature over T; in its cube root, since slopes grow as T^−⅔ at zero."""
    peak = math.sqrt(rho)
    root = np.linspace(max(1e-7, peak - 9) ** (1 / 3), (peak + 9) ** (1 / 3), POINTS)
    T = root**3
    weight = root**2 * np.exp(-((T - rho / T) ** 2) / 2)  # the exponent up to a constant
    acceptance, scale = acceptance_slope_and_scale_slope(T, d + 1)
    change = acceptance + np.abs(rho**2 / T**2 - d) * scale
    return float((weight * change).sum() / weight.sum())


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 1000, 16_384])
def test_rounding_a_chi_draw_moves_log_densities_less_than_claimed(d: int) -> None:
    own_reach = d + 14 * math.sqrt(d) + 100
    near = max(moved(d, rho) for rho in [0.0, 1e-6, 1e-3, *np.linspace(0.01, own_reach, 30)])
    # Float error of the acceptance test's logarithm: a few 2⁻⁵² of the shape.
    assert near * 2.0**-41 + d * 2.0**-50 < claimed(d, 0.0)
    for shift in (10.0, 1e3, 1e5, 1e7):  # an outcome likely for one row, seen from the other
        far = max(moved(d, rho) for rho in np.linspace(max(0.0, shift - own_reach), shift + own_reach, 9))
        assert far * 2.0**-41 + (d + shift) * 2.0**-50 < claimed(d, shift)


@pytest.mark.parametrize("degrees", [2, 3, 4, 11, 101, 16_385])
def test_the_quick_acceptance_never_accepts_too_much(degrees: int) -> None:
    """The squeeze 1 − 0.0331·z⁴ stays below the acceptance probability."""
    shape = degrees / 2 - 1 / 3
    c = 1 / math.sqrt(9 * shape)
    z = np.linspace(max(-2.35, -1 / c + 1e-9), 2.35, 100_001)
    v = (1 + c * z) ** 3
    log_acceptance = z * z / 2 + shape * (1 - v + np.log(v))
    squeeze = 1 - 0.0331 * z**4
    ok = squeeze > 0
    assert (np.exp(log_acceptance[ok]) >= squeeze[ok] - 1e-12).all()


def test_radii_beyond_the_covered_range_are_as_rare_as_claimed() -> None:
    from scipy.stats import gamma, norm

    for d in (1, 2, 10, 100, 1000, 16_384):
        beyond = gamma(d).logsf(d + 14 * math.sqrt(d) + 100)
        normals = math.log(2 * d) + norm.logsf(12)
        assert np.logaddexp(beyond, normals) < math.log(noise.gaussian_imperfection(d).tail)
