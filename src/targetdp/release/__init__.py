"""The release job: from a table of people to a private one with a certificate, charged to a ledger."""

from targetdp._core import lazy_door

__getattr__, __dir__ = lazy_door(__name__, __file__)
