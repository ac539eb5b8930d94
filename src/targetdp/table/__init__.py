"""Tables: reading and writing them in batches, and ids in the order of their bytes."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
