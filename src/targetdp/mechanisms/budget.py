"""What of a claimed (ε, δ) is left for ideal noise once the sampler's imperfection is paid."""

import math

from targetdp.accounting import Imperfection

_ROUNDING = 1e-12
"""Relative part of ε, and twice of δ, kept back: no later rounding can lift the truth over the claim."""


def ideal_budget(epsilon: float, delta: float, imperfection: Imperfection) -> tuple[float, float]:
    """(ε − 2η, e^−η·(δ − τ)): the inverse of `ImperfectLoss.delta`. A δ of zero stays zero."""
    eta, tail = imperfection.log_error, imperfection.tail
    return epsilon * (1 - _ROUNDING) - 2 * eta, max(0.0, delta - tail) * math.exp(-eta) * (1 - 2 * _ROUNDING)
