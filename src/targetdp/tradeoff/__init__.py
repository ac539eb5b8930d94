"""The trade-off between a program and the privacy of its people: a grid of releases, tried many times."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
