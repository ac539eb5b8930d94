"""Programs: what a table is used for, and what a release in its place costs people."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
