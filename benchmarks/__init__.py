"""Ratios, never only times: both sides in one process, in turns, best of several (`make bench`)."""
