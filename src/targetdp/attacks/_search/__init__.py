"""Searches that skip most rows: nearest neighbors, boxes with one person, how many are near."""
