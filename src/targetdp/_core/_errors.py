"""What an error says of the same call made again: that it may succeed later, or that it will not."""


class NotYetError(ValueError):
    """It cannot be done now: an input is not there yet, or another run is at work. Later it may be.

    Example:
        >>> raise NotYetError("another run is writing out.parquet: wait for it")
        Traceback (most recent call last):
        targetdp._core._errors.NotYetError: another run is writing out.parquet: wait for it
    """


class NothingLeftError(ValueError):
    """Too little is left of a limit or a plan, and waiting brings none of it back.

    Example:
        >>> issubclass(NothingLeftError, NotYetError)
        False
    """
