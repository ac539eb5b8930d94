"""Decisions: scores of rows, their cells on both sides of a cut, and the chances of a bit."""
