"""How two processes talk through pipes: so many bytes as were agreed on, or a length and that many bytes.

Neither side trusts the other with more: a length is bounded, and what comes is data.
"""

import os
import struct

MOST_BYTES = 64 << 20
"""Of a model's file."""
MOST_ROWS = 1 << 14
"""In a chunk."""
MOST_CHUNK_BYTES = 64 << 20
MOST_TEXT = 1_000
"""Bytes of a text that a model is given, or holds: a row with a longer one has no answer."""
KINDS = {"float": "<f4", "double": "<f8", "int64": "<i8", "bool": "|b1"}
"""Kinds of tensors of numbers, and how numbers are written into a chunk."""


def send(pipe: int, message: bytes) -> None:
    """Write a message after its length.

    Raises:
        EOFError: The other side has ended.
    """
    write_all(pipe, struct.pack("<Q", len(message)))
    write_all(pipe, message)


def receive(pipe: int, most: int) -> bytes:
    """Read a message of at most so many bytes.

    Raises:
        EOFError: The other side has ended, or says that more comes than it may send.
    """
    (length,) = struct.unpack("<Q", read_exactly(pipe, 8))
    if length > most:
        raise EOFError(f"a message of {length:,} bytes is announced: at most {most:,} are read")
    return read_exactly(pipe, length)


def write_all(pipe: int, data: bytes) -> None:
    """Write every byte.

    Raises:
        EOFError: The other side has ended.
    """
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(pipe, left) :]
    except BrokenPipeError:
        raise EOFError("the other side of the pipe has ended") from None


def read_exactly(pipe: int, length: int) -> bytes:
    """Read so many bytes, and no more.

    Raises:
        EOFError: The other side has ended.
    """
    data = bytearray()
    while len(data) < length:
        part = os.read(pipe, min(length - len(data), 1 << 20))
        if not part:
            raise EOFError("the other side of the pipe has ended")
        data += part
    return bytes(data)
