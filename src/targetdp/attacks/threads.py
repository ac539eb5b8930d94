"""One long piece of work on all processors: kernels release the interpreter's lock."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar

from targetdp.progress import Progress

_MOST: ContextVar[int | None] = ContextVar("most threads", default=None)


def processors() -> int:
    """How many threads one piece of work may use: all processors, unless somebody shares them out.

    NUMBA_NUM_THREADS says how many are ours (joblib sets it for the processes that it starts), and `at_most`
    limits the work of one caller.
    """
    given = int(os.environ.get("NUMBA_NUM_THREADS") or os.cpu_count() or 1)
    return max(1, min(given, _MOST.get() or given))


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Work that is begun inside, in this thread, uses no more threads than that."""
    token = _MOST.set(threads)
    try:
        yield
    finally:
        _MOST.reset(token)


def in_threads(
    work: Callable[[int, int], None], rows: int, piece: int, progress: Progress, weight: int = 1
) -> None:
    """Do ``work(begin, end)`` for stretches of ``piece`` rows until all are done; the first error is raised.

    Progress hears of each stretch, ``weight`` times its rows, in the calling thread.
    """
    pool = ThreadPoolExecutor(processors())
    try:
        stretches = {
            pool.submit(work, begin, min(begin + piece, rows)): min(piece, rows - begin)
            for begin in range(0, rows, piece)
        }
        for done in as_completed(stretches):
            done.result()
            progress.advance(weight * stretches[done])
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
