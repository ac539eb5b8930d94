"""The decision page in a real browser."""
