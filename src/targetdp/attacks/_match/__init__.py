"""Matching rows to people: all pairs, one to one, in units of the noise."""
