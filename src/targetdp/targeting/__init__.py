"""From a labelled sample to everybody's score, and from scores to who gets help: learn, expect, allocate."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
