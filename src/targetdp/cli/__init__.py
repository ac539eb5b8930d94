"""The command line: wiring only. Data go to stdout, words and progress to stderr."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
