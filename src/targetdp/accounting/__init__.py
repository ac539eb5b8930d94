"""Exact privacy curves: ε at any distance and δ, and their composition over releases.

A *privacy loss* is what one release costs for two rows at one distance. Each kind is a frozen value
with ``delta(epsilon)`` and ``epsilon(delta)``; both err to the safe side. `compose` adds up several.
"""

from targetdp.accounting.composition import compose
from targetdp.accounting.gaussian import GaussianLoss
from targetdp.accounting.imperfect import Imperfection, ImperfectLoss
from targetdp.accounting.laplace import SphericalLaplaceLoss
from targetdp.accounting.loss import PrivacyLoss
from targetdp.accounting.staircase import StaircaseLoss
from targetdp.accounting.stated import StatedLoss

__all__ = [
    "GaussianLoss",
    "ImperfectLoss",
    "Imperfection",
    "PrivacyLoss",
    "SphericalLaplaceLoss",
    "StaircaseLoss",
    "StatedLoss",
    "compose",
]
