"""Attacks: what an adversary can still learn from a release, each a function from data to a `Protection`."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
