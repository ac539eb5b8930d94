"""The version of the package, in one place that every room may look at."""

__version__ = "0.1.0"
