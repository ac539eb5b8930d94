"""Where random bits come from: the only difference between a release and a simulation."""

import hmac
import os
import threading
from typing import Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from targetdp._core import Words, check

_ZEROS = bytes(1 << 17)


def fresh_key() -> bytes:
    """A key of 256 bits from the operating system's generator: all secrets of a release begin here."""
    return os.urandom(32)


def fresh_keys(count: int) -> tuple[bytes, ...]:
    """Draw keys from the operating system's generator, each independent of the others.

    Args:
        count: How many.

    Returns:
        Keys of 32 bytes.

    Example:
        >>> [len(key) for key in fresh_keys(2)]
        [32, 32]
    """
    return tuple(fresh_key() for _ in range(count))


def derived_key(key: bytes, label: str) -> bytes:
    """Derive a key for one purpose from the secret of a release (HMAC-SHA-256).

    Args:
        key: 32 secret bytes.
        label: The purpose; different ones have independent keys.

    Returns:
        32 bytes.

    Example:
        >>> derived_key(bytes(32), "batch 0") == derived_key(bytes(32), "batch 1")
        False
    """
    return hmac.digest(key, label.encode(), "sha256")


class WordStream(Protocol):
    """A source of uniform, independent 64-bit words.

    Example:
        >>> words: WordStream = PublicWords(7)
        >>> out = np.zeros(2, dtype=np.uint64)
        >>> words.fill(out)
        >>> bool(out.all())
        True
    """

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""


class SecretWords:
    """The AES-256-CTR keystream under a key that the operating system drew for this object alone.

    Args:
        key: 32 bytes, where a release must be able to repeat its draws; by default a fresh key.

    Guarantees: no one without the key can tell the words from uniform ones (as long as AES-256 holds),
    and no two objects with fresh keys share a stream. An object serves only the process and the thread that
    made it: a forked worker or another thread that tries is refused, so a stream can never be drawn twice.
    Does not guarantee: anything against an adversary who reads this process's memory; or if one key serves
    two different sets of rows: whoever gives a key makes sure that it does not.
    Edges: it cannot be copied or pickled.

    Example:
        >>> out = np.zeros(1000, dtype=np.uint64)
        >>> SecretWords().fill(out)
        >>> len(set(out.tolist()))
        1000
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._keystream = Cipher(algorithms.AES(key or fresh_key()), modes.CTR(bytes(16))).encryptor()
        self._owner = (os.getpid(), threading.get_ident())

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""
        if self._owner != (os.getpid(), threading.get_ident()):
            raise RuntimeError(
                "a stream of secret words was used outside the process and thread that made it: "
                "make a new SecretWords in each worker"
            )
        view = out.view(np.uint8).data
        for start in range(0, len(view), len(_ZEROS)):
            chunk = view[start : start + len(_ZEROS)]
            self._keystream.update_into(memoryview(_ZEROS)[: len(chunk)], chunk)

    def __reduce__(self) -> str:
        raise TypeError("secret words cannot be copied: make a new SecretWords in each worker")


class SimulatedWords:
    """Words of a numpy generator: repeatable, for simulations only, never for a release."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""
        out[:] = self._rng.integers(0, 2**64, size=out.shape, dtype=np.uint64)


class PublicWords:
    """Words that anyone can draw again from a number: for what is random but not secret.

    The stream of numpy's PCG64 for a seed is fixed for all versions, so a published seed pins it down.

    Args:
        seed: The number, 0 or more.

    Example:
        >>> one, other = np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.uint64)
        >>> PublicWords(7).fill(one)
        >>> PublicWords(7).fill(other)
        >>> bool((one == other).all())
        True
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""
        out[:] = self._bits.random_raw(out.size)


class RowWords:
    """Words that belong to rows: AES-256 of (the row's tag, a counter) under a key that lives for one job.

    Where work may be repeated, reordered or run twice at once, a row must get the same noise each time and
    no two rows the same. So words depend on the key and the row's tag, and on nothing else.

    Args:
        key: 32 bytes that serve one release only.
        tags: `TAG_BYTES` for each row, all rows after each other.

    Raises:
        ValueError: The key or the tags have another length.

    Guarantees: for tags that are all different, what `SecretWords` guarantees, across rows.
    Does not guarantee: anything if two rows share a tag, or a key serves two releases: the difference of
    two rows would show. Whoever makes one must prove the tags unique and throw the key away.

    Example:
        >>> words = RowWords(bytes(32), b"row number 1row number 2")
        >>> len(words), words.of_rows(0, 2, width=4).shape
        (2, (2, 4))
    """

    TAG_BYTES = 12

    def __init__(self, key: bytes, tags: bytes) -> None:
        if len(key) != 32 or not tags or len(tags) % self.TAG_BYTES:
            raise ValueError(
                f"a key of {len(key)} and tags of {len(tags)} bytes: give 32, and {self.TAG_BYTES} per row"
            )
        # One block at a time is what a counter mode with a nonce for each row does.
        self._blocks = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        self._tags = np.frombuffer(tags, dtype=np.uint32).reshape(-1, self.TAG_BYTES // 4)

    def __len__(self) -> int:
        return len(self._tags)

    def of_rows(self, start: int, stop: int, width: int) -> Words:
        """The first ``width`` (even) words of each row from ``start`` to before ``stop``."""
        blocks = np.empty((stop - start, width // 2, 4), dtype=np.uint32)
        blocks[:, :, :3] = self._tags[start:stop, None, :]
        blocks[:, :, 3] = np.arange(width // 2)
        out = np.empty((stop - start) * width + 2, dtype=np.uint64)  # the library asks for a block more
        self._blocks.update_into(blocks.reshape(-1).view(np.uint8).data, out.view(np.uint8).data)
        return out[:-2].reshape(stop - start, width)


WordSource: TypeAlias = WordStream | RowWords
"""Where a sampler takes its words from: one stream for all rows, or words of each row's own."""


def word_stream(rng: np.random.Generator | None) -> WordStream:
    """Words for a release or for a simulation.

    Args:
        rng: None for a release; a generator for a simulation, which can be repeated and so is not private.

    Returns:
        Secret words, or the generator's.

    Example:
        >>> type(word_stream(None)).__name__
        'SecretWords'
    """
    rng = check.generator(rng)
    return SecretWords() if rng is None else SimulatedWords(rng)
