"""Targeted differential privacy: use personal data to decide who gets help, without giving people away.

The few names that users need are imported on first use, so that ``import targetdp`` is quick.
"""

from targetdp._core import __version__ as __version__
from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
