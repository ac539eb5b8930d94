"""Example populations: invented people in the shape of the paper's Table S1, and two public tables."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
