"""The ledger of releases: signed, hash-linked entries in SQLite, and what they add up to."""
