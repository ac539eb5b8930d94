"""From a raw table to rows in the unit ball: column scales, and the rule that shortens rows."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
