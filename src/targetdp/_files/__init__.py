"""Files on disk: reading TOML, and the one writer."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
