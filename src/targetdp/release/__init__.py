"""The release job: from a table of people to a private one with a certificate, charged to a ledger."""
