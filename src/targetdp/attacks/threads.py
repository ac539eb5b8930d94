"""One long piece of work on all processors: kernels release the interpreter's lock."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from targetdp.progress import Progress


def in_threads(
    work: Callable[[int, int], None], rows: int, piece: int, progress: Progress, weight: int = 1
) -> None:
    """Do ``work(begin, end)`` for stretches of ``piece`` rows until all are done; the first error is raised.

    Progress hears of each stretch, ``weight`` times its rows, in the calling thread.
    """
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
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
