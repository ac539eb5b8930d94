"""Examples of use: the tour of `make demo`."""
