"""Spherical Laplace noise in d dimensions: its exact privacy curve.

Noise with density ∝ exp(−‖z‖/b). In units of b, two rows at distance λ are told apart by the loss
L = ‖z − u‖ − ‖z‖ with ‖u‖ = λ, z drawn around the true row: radius ρ ~ Gamma(d), and cosine c with
(1 + c)/2 ~ Beta((d − 1)/2, (d − 1)/2). L never exceeds λ, which is metric privacy. Since swapping the
two rows mirrors the picture, P(other row: L > ε) = P(L < −ε), and

    δ(ε) = P(L > ε) − e^ε · P(L < −ε).

Given ρ, both events are thresholds on c, so each probability is a one-dimensional integral over ρ of
an incomplete beta function.

The mean of L has a closed form. In prolate spheroidal coordinates with the two rows as foci, ‖z‖ + ‖z − u‖ =
λξ and L = λη, density and volume separate, and the integrals over ξ and η are Bessel functions K and I.
With h = d/2 and a = λ/2,

    E[L] = λ·a·(I_h(a)·K_h(a) + I_{h+1}(a)·K_{h−1}(a)).
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, gammaincinv, gammaln, k0e, k1e

from targetdp._core import Floats, check
from targetdp.accounting._loss import PrivacyLoss, last_true

_FLOAT_ERROR = 1e-10
"""Relative error allowed for in each of the two integrals that are subtracted."""

_FAR = 1e8
"""From this shift on it stands for the mean loss itself, which is smaller by about d."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class SphericalLaplaceLoss(PrivacyLoss):
    """Spherical Laplace noise against a shift.

    Args:
        shift: The distance between two rows, in units of the noise's scale b.
        dimensions: How many columns the noise is on.

    Example:
        >>> SphericalLaplaceLoss(2.0, 3).largest()
        2.0
    """

    shift: float
    dimensions: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", check.number("shift", self.shift, at_least=0))
        object.__setattr__(self, "dimensions", check.dimensions(self.dimensions))

    def delta(self, epsilon: float) -> float:
        """See `PrivacyLoss.delta`."""
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: Floats) -> Floats:
        """See `PrivacyLoss.deltas`."""
        return spherical_laplace_delta(self.shift, epsilons, self.dimensions)

    def reach(self) -> float:
        """See `PrivacyLoss.reach`."""
        return self.shift

    def largest(self) -> float:
        """See `PrivacyLoss.largest`: metric privacy."""
        return self.shift

    def expected(self) -> float:
        """See `PrivacyLoss.expected`: the same in both directions, which mirror each other."""
        return spherical_laplace_mean(self.shift, self.dimensions)

    def distribution(self, interval: float) -> Any:
        """See `PrivacyLoss.distribution`: dots of the exact curve, connected pessimistically.

        The curve at negative ε follows from symmetry: δ(−ε) = 1 − e^−ε + e^−ε·δ(ε).
        """
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: PLC0415

        last = int(np.ceil(self.shift / interval))
        epsilons = interval * np.arange(last + 1, dtype=np.float64)
        right = spherical_laplace_delta(self.shift, epsilons, self.dimensions)
        left = -np.expm1(-epsilons[:0:-1]) + np.exp(-epsilons[:0:-1]) * right[:0:-1]
        deltas = np.concatenate([left, right])
        # Rounding must not make the curve rise; lifting its left part keeps it an upper bound.
        deltas = np.maximum.accumulate(deltas[::-1])[::-1]
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, -last, last, np.minimum(deltas, 1.0)
        )
        return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def spherical_laplace_delta(shift: float, epsilons: Floats, dimensions: int) -> Floats:
    """δ(ε) for each ε ≥ 0, rounded to the safe side."""
    out = np.zeros(len(epsilons))
    inside = epsilons < shift
    if not inside.any():
        return out
    epsilon = epsilons[inside, None]
    if dimensions == 1:
        out[inside] = -np.expm1((epsilon[:, 0] - shift) / 2) * (1 + _FLOAT_ERROR)
        return out
    above, below = _tails(shift, epsilon, dimensions)
    out[inside] = np.clip(above - below + _FLOAT_ERROR * (above + below), 0.0, 1.0)
    return out


def spherical_laplace_mean(shift: float, dimensions: int) -> float:
    """E[L] = (λ²/2)·(1 + κ·ρ)/(d + a·(κ + ρ)), rounded up, with κ = K_{h−1}(a)/K_h(a), ρ = I_{h+1}(a)/I_h(a).

    This is the closed form above after I_h·K_{h−1} + I_{h−1}·K_h = 1/a and I_{h−1} = I_{h+1} + (2h/a)·I_h:
    only sums, products and quotients of positive numbers, so relative errors hardly add up, and nothing
    leaves the range of floats where the Bessel functions themselves do.
    """
    if shift <= 0:
        return 0.0
    if shift >= _FAR:
        return shift
    a = max(shift / 2, sys.float_info.min)
    kappa, rho = _k_ratio(a, dimensions), _i_ratio(a, dimensions)
    mean = shift * shift / 2 * (1 + kappa * rho) / (dimensions + a * (kappa + rho))
    # A mean below the range of floats counts as the smallest of them.
    return float(min(shift, mean * (1 + _FLOAT_ERROR) + sys.float_info.min))


def _k_ratio(a: float, d: int) -> float:
    """K_{d/2−1}(a)/K_{d/2}(a), by the recurrence in the order, upwards, where its errors shrink."""
    order, ratio = (0.5, 1.0) if d % 2 else (1.0, float(k0e(a) / k1e(a)))
    while order < d / 2:
        ratio = a / (a * ratio + 2 * order)
        order += 1
    return ratio


def _i_ratio(a: float, d: int) -> float:
    """I_{d/2+1}(a)/I_{d/2}(a) to 10⁻¹⁴, by its continued fraction, from below and from above.

    A ratio lies between 0 and 1; each step down in the order turns bounds around and brings them closer.
    """
    steps = 16
    while True:
        low, high = 0.0, 1.0
        for order in range(d + 2 * steps, d, -2):  # twice the order
            low, high = a / (order + a * high), a / (order + a * low)
        if high - low <= 1e-14 * high:
            return high
        steps *= 2


def _tails(shift: float, epsilon: Floats, d: int) -> tuple[Floats, Floats]:
    """P(L > ε), from above, and e^ε·P(L < −ε), from below, for a column of ε."""
    # Radii below and above these bounds hold less than 10⁻³³ of the mass: counted in full below.
    low, high = float(gammaincinv(d, 1e-40)), d + 14 * np.sqrt(d) + 60
    half = (d - 1) / 2

    nearest = (shift - epsilon) / 2  # closer than this, every direction has L > ε
    start = np.maximum(nearest, low)
    rho, weight = _radii(start, np.maximum(high, start + 60), d)
    share = betainc(half, half, _unit((shift - epsilon) * (shift + epsilon + 2 * rho) / (4 * rho * shift)))
    above = (weight * np.exp((d - 1) * np.log(rho) - rho - gammaln(d)) * share).sum(axis=1)
    above += gammainc(d, start[:, 0]) + gammaincc(d, np.maximum(high, start[:, 0] + 60))

    farthest = (shift + epsilon) / 2  # closer than this, no direction has L < −ε
    start = np.maximum(farthest, low)
    rho, weight = _radii(start, np.maximum(high, start + 60 + 14 * np.sqrt(d)), d)
    share = betainc(half, half, _unit((shift - epsilon) * (rho - farthest) / (2 * rho * shift)))
    with np.errstate(divide="ignore"):  # a share below the range of floats counts as none, which is safe
        log_share = np.log(share)
    log_density = epsilon + (d - 1) * np.log(rho) - rho - gammaln(d)
    below = (weight * np.exp(np.minimum(0.0, log_density + log_share))).sum(axis=1)
    return above, below


def _radii(start: Floats, stop: Floats, d: int) -> tuple[Floats, Floats]:
    """Quadrature nodes and weights for ρ in [start, stop], one row for each start.

    ρ = start + s²: the square removes the root-like start of the integrand and gives the gamma density a
    width of about one in s, whatever d is; panels of at most half a unit follow it. In few dimensions the
    start itself matters, on the scale of √start, which may be tiny: panels shrink towards it.
    """
    length = np.sqrt(stop - start)
    panels = int(np.ceil(2 * length.max()))
    edges = np.arange(panels + 1) / panels
    if d < 8:
        edges = np.concatenate([[0.0], 0.25 ** np.arange(14, 0, -1) / panels, edges[1:]])
    widths = np.diff(edges)
    s = (edges[:-1, None] + np.outer(widths, (_NODES + 1) / 2)).ravel()
    w = np.outer(widths / 2, _WEIGHTS).ravel()
    return start + (s * length) ** 2, 2 * s * length * length * w


def _unit(x: Floats) -> Floats:
    return np.clip(x, 0.0, 1.0)


@lru_cache(maxsize=1024)
def largest_shift(epsilon: float, delta: float, dimensions: int) -> float:
    """The largest shift, in units of the noise's scale, that spherical Laplace noise hides up to (ε, δ).

    Args:
        epsilon: ε, above 0.
        delta: δ; with 0 the shift is ε itself.
        dimensions: How many columns the noise is on.

    Returns:
        The shift; the noise's scale is the distance that it must hide, divided by it.

    Example:
        >>> largest_shift(1.0, 0.0, 10)
        1.0
    """
    if delta <= 0:
        return epsilon
    high = 2 * epsilon + 1
    while SphericalLaplaceLoss(high, dimensions).delta(epsilon) <= delta:
        high *= 2
    return last_true(
        lambda shift: SphericalLaplaceLoss(shift, dimensions).delta(epsilon) <= delta, epsilon, high
    )
