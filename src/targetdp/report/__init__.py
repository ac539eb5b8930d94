"""What people look at: the decision page and the figures. A report draws what it is handed."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
