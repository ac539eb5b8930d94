"""Mechanisms: one file each. A noise mechanism also has a line in `least_noise.REGISTER`."""

from targetdp.mechanisms.base import Mechanism, NoiseMechanism
from targetdp.mechanisms.gaussian import GaussianNoise
from targetdp.mechanisms.laplace import SphericalLaplace
from targetdp.mechanisms.least_noise import Choice, least_noise
from targetdp.mechanisms.mondrian import Mondrian
from targetdp.mechanisms.partition import Partitioned
from targetdp.mechanisms.projection import PrivateProjection
from targetdp.mechanisms.staircase import Staircase

__all__ = [
    "Choice",
    "GaussianNoise",
    "Mechanism",
    "Mondrian",
    "NoiseMechanism",
    "Partitioned",
    "PrivateProjection",
    "SphericalLaplace",
    "Staircase",
    "least_noise",
]
