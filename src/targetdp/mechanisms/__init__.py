"""Mechanisms: one file each. A noise mechanism also has a line in `choice.REGISTER`."""

from targetdp.mechanisms.base import Mechanism, NoiseMechanism
from targetdp.mechanisms.choice import Choice, least_noise
from targetdp.mechanisms.gaussian import GaussianNoise
from targetdp.mechanisms.laplace import SphericalLaplace
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
