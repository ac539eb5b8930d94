"""Exact privacy curves: ε at any distance and δ, and their composition over releases."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
