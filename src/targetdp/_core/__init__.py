"""What every room uses: checks of arguments, rounding to the safe side, progress, compiled kernels, doors."""

from targetdp._core._doors import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
