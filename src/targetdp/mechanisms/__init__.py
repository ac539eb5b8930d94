"""Mechanisms: from rows of the unit ball to private rows, each with the law of its noise. One file each."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
