"""Progress of long work, reported without knowing who watches."""

from typing import Protocol


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
