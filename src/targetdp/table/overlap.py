"""Work on the next batches while the last is being written."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WORKERS = 2
"""Threads; more would only hold more batches in memory, since one writer is the bottleneck."""


def overlapped(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int = WORKERS
) -> Iterator[Result]:
    """Results in the order of the items, each worked out on a thread, a few ahead of the reader."""
    pool = ThreadPoolExecutor(workers)
    ahead: deque[Future[Result]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(work, item))
            while len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
