"""Guesses at a hidden value, and when they fail."""
