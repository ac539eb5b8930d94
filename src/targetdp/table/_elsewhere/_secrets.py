"""Secrets of databases and stores: refused in addresses, where others see them, and kept out of messages."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa

from targetdp.table._dialect import TableError
from targetdp.table._paths import NoTableError

_IN_FRONT = re.compile(r"(://|^\w[\w+.-]+:)[^@]*:[^@]*@")
"""A name and a password before a host. Whatever may be one is refused."""
_NAMES = re.compile(r"password|secret|token|access_key|(^|_)sas(_|$)|signature")
_CELLS = re.compile(
    r"""\b(DETAIL|CONTEXT|HINT|LINE \d+)\b.*|'.*'|".*"|(?<![\w.])[-+]?\.?\d[\w.+-]*|\bvalue:? \S+"""
)
"""Where a database that meets a cell it cannot read may say what the cell holds: quotes, numbers, details."""
_LATER = re.compile(
    r"(?i)connection refused|could(n't| not) (connect|translate host)|is the server running|timed? ?out|"
    r"starting up|shutting down|server closed the connection|too many (clients|connections)|"
    r"remaining connection slots|database is locked|could not set lock|network_connection"
)
"""What a server says that is down or full, and a file that somebody writes to."""
_HELD = (
    "PGPASSWORD", "PGSSLPASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY",
    "AZURE_CLIENT_SECRET",
)  # fmt: skip
"""Where the environment holds what no message may repeat."""


def scheme_of(address: str) -> str:
    """The first word of an address: ``s3``."""
    return address.partition(":")[0].lower()


def refuse_secrets(address: str) -> None:
    """Refuse an address that holds a password, without repeating it.

    Args:
        address: Of a database or a store.

    Raises:
        ValueError: It holds one, or what may be one.

    Example:
        >>> refuse_secrets("postgresql://ann@db.example/operator")
        >>> refuse_secrets("postgresql://ann:pass@db.example/operator")
        Traceback (most recent call last):
        ValueError: the address (postgresql://…) holds a password or key, which others could see: leave it ...
    """
    names = (unquote(pair.partition("=")[0]).lower() for pair in re.split("[?&]", address)[1:])
    if _IN_FRONT.search(address) or any(map(_NAMES.search, names)):
        raise ValueError(
            f"the address ({scheme_of(address)}://…) holds a password or key, which others could see: leave "
            "it out, and give it in the environment (PGPASSWORD, AWS_SECRET_ACCESS_KEY) or in the file that "
            "the database or store reads (PGPASSFILE, PGSERVICEFILE, ~/.aws/credentials)"
        )


def without_secrets(error: BaseException) -> str:
    r"""What an error says, in one line, without what the environment holds as a password or key.

    Args:
        error: Of a driver, which may repeat what it was given.

    Returns:
        Its text.

    Example:
        >>> without_secrets(OSError("cannot connect with password=xyz to\nhost=db"))
        'cannot connect with password=… to host=db'
    """
    text = " ".join(str(error).split())
    for name in _HELD:
        if secret := os.environ.get(name):
            text = text.replace(secret, "…")
    return re.sub(r"(?i)(\w*(?:password|secret|token)\w*)\s*=\s*('[^']*'|[^\s&]+)", r"\1=…", text)


@contextmanager
def explained(what: str, *kinds: type[Exception], among_rows: bool = False) -> Iterator[None]:
    """Turn a driver's errors into ones that say what failed, and no secret.

    Args:
        what: What cannot be done: ``"input s3://… cannot be read"``.
        kinds: The driver's own errors, besides those of pyarrow.
        among_rows: Whether rows are being read, so that an error may hold what somebody's cell holds.

    Returns:
        A context manager.

    Raises:
        TableError: In place of any of these.
        NoTableError: The same, where the server is down or a lock is held: later it may be there.
        OSError: This disk is full, which is no matter of the driver.

    Example:
        >>> with explained("input s3://… cannot be read"):
        ...     raise OSError("no route, secret_key=xyz")
        Traceback (most recent call last):
        targetdp.table._dialect.TableError: input s3://… cannot be read: no route, secret_key=…
    """
    try:
        yield
    except TableError:
        raise
    except (pa.ArrowException, OSError, *kinds) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        said = without_secrets(error)
        kind = NoTableError if _LATER.search(said) else TableError
        raise kind(f"{what}: {_CELLS.sub('…', said) if among_rows else said}") from None
