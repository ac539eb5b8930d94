"""The ledger of releases: signed, hash-linked entries in SQLite, and what they add up to."""

from targetdp.release.ledger.book import Ledger, check_first
from targetdp.release.ledger.chain import LedgerDamaged
from targetdp.release.ledger.entries import Head
from targetdp.release.ledger.history import ReleaseRow
from targetdp.release.ledger.spending import LimitExceeded, Spending

__all__ = ["Head", "Ledger", "LedgerDamaged", "LimitExceeded", "ReleaseRow", "Spending", "check_first"]
