"""Where random bits come from: the only difference between a release and a simulation."""

import os
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from targetdp import check
from targetdp.typing import Words

_ZEROS = bytes(1 << 17)


class WordStream(Protocol):
    """A source of uniform, independent 64-bit words."""

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""


class SecretWords:
    """The AES-256-CTR keystream under a key that the operating system drew for this object alone.

    Guarantees: no one without the key can tell the words from uniform ones (as long as AES-256 holds),
    and no two objects share a stream. An object serves only the process and the thread that made it:
    a forked worker or another thread that tries is refused, so a stream can never be drawn twice.
    Does not guarantee: anything against an adversary who reads this process's memory.
    Edges: there is no seed, and it cannot be copied or pickled.
    """

    def __init__(self) -> None:
        self._keystream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
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
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with fresh words."""
        out[:] = self._bits.random_raw(out.size)


def word_stream(rng: np.random.Generator | None) -> WordStream:
    """Secret words for a release (None), a generator's words for a simulation."""
    rng = check.generator(rng)
    return SecretWords() if rng is None else SimulatedWords(rng)
