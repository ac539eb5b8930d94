"""The same secret keys in every run: what a test sees today, it sees on any machine and any day.

A release draws its noise under fresh keys, so that a test which looks at noisy numbers would fail one day in
a hundred or a thousand, and on whose machine, nobody could choose. Here a key follows from who asks (a test,
or a fixture) and how often it asked before: never the same twice, whatever runs beside or before it.
Processes that a test forks or starts draw real keys, and so does everything with TARGETDP_REAL_KEYS=1. Of a
table in many batches the keys are steady, but which thread, and so which key, gets a batch is a race.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

REAL = "TARGETDP_REAL_KEYS"


class SteadyKeys:
    """Keys that follow from ``whose`` they are and their number."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._whose = "nobody"
        self._count = 0
        self._lock = threading.Lock()

    def draw(self) -> bytes:
        """In place of `targetdp.noise._random_words.fresh_key`."""
        if os.getpid() != self._process or os.environ.get(REAL):
            return os.urandom(32)
        with self._lock:
            self._count += 1
            return sha256(f"{self._whose}\n{self._count}".encode()).digest()

    @contextmanager
    def of(self, whose: str) -> Iterator[None]:
        """Keys of this name, from the first one."""
        with self._lock:
            before = self._whose, self._count
            self._whose, self._count = whose, 0
        try:
            yield
        finally:
            with self._lock:
                self._whose, self._count = before
