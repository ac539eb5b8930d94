"""Types that signatures use everywhere: arrays, and whoever watches the progress of long work."""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of 64-bit floats."""
Integers: TypeAlias = NDArray[np.int64]
"""An array of 64-bit whole numbers."""
Words: TypeAlias = NDArray[np.uint64]
"""An array of 64-bit words: random bits."""


class Progress(Protocol):
    """Whoever shows how far long work is; called from one thread at a time.

    Example:
        >>> class Lines:
        ...     def phase(self, name, rows):
        ...         print(name)
        ...     def advance(self, rows):
        ...         print(rows, "more")
        >>> progress: Progress = Lines()
        >>> progress.phase("reading", 10)
        reading
    """

    def phase(self, name: str, rows: int | None) -> None:
        """Begin a new phase.

        Args:
            name: What is done now.
            rows: How many rows it has, if that is known.
        """

    def advance(self, rows: int) -> None:
        """Count rows that are done.

        Args:
            rows: How many more.
        """


class Silent:
    """Progress that nobody watches.

    Example:
        >>> Silent().advance(10)
    """

    def phase(self, name: str, rows: int | None) -> None:
        """Do nothing."""

    def advance(self, rows: int) -> None:
        """Do nothing."""
