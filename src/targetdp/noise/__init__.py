"""Noise that holds against a real adversary: every random number of a release is drawn here."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
