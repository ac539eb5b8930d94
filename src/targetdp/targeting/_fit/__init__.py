"""Scores that are fitted to people whose rows are known: linear, additive, boosted. One file each."""
