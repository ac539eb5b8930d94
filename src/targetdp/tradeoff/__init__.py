"""The trade-off between a program and the privacy of its people: a grid of releases, tried many times."""
