"""Compiled kernels and threads: heavy arithmetic on all processors."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

from targetdp._core._types import Floats, Progress

# How this project compiles its kernels: one decorator, so that every kernel has the same options.
#
# Kernels release the interpreter's lock (batches may run in threads), are cached on disk (a second
# process starts at once), and never use fast-math: the exact-rounding argument of the noise kernels
# rests on IEEE arithmetic as written.

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function over arrays and numbers to machine code at its first call.

    Args:
        function: Plain loops and arithmetic that numba understands.

    Returns:
        The compiled function, which takes and returns the same.

    Example:
        >>> callable(kernel(row_product))
        True
    """
    compiled = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    return cast("Callable[Parameters, Result]", compiled)


_MOST: ContextVar[int | None] = ContextVar("most threads", default=None)


def processors() -> int:
    """How many threads one piece of work may use: all processors, unless somebody shares them out.

    NUMBA_NUM_THREADS says how many are ours (joblib sets it for the processes that it starts), and `at_most`
    limits the work of one caller.

    Returns:
        A number of threads, at least 1.

    Example:
        >>> processors() >= 1
        True
    """
    given = int(os.environ.get("NUMBA_NUM_THREADS") or os.cpu_count() or 1)
    return max(1, min(given, _MOST.get() or given))


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit the threads of all work that this thread begins inside the block.

    Args:
        threads: The largest number of threads.

    Returns:
        A context manager.

    Example:
        >>> with at_most(1):
        ...     processors()
        1
    """
    token = _MOST.set(threads)
    try:
        yield
    finally:
        _MOST.reset(token)


def in_threads(
    work: Callable[[int, int], None], rows: int, piece: int, progress: Progress, weight: int = 1
) -> None:
    """Do ``work(begin, end)`` for stretches of rows until all are done; the first error is raised.

    Args:
        work: What is done with the rows from ``begin`` to before ``end``; it runs in several threads.
        rows: How many rows there are.
        piece: How many rows make a stretch; the last may have fewer.
        progress: Hears of each finished stretch, in the calling thread.
        weight: What one row counts for progress.

    Example:
        >>> from targetdp._core import Silent
        >>> squares = np.arange(5.0)
        >>> def work(begin, end):
        ...     squares[begin:end] **= 2
        >>> in_threads(work, 5, 2, Silent())
        >>> squares
        array([ 0.,  1.,  4.,  9., 16.])
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


# Rows times a matrix, each row by itself.
#
# A library's matrix product rounds a row differently by its place among the others, and so its last digits
# would tell of the order of the table. Here a row's product depends on that row and the matrix only.


def row_product(rows: Floats, matrix: Floats) -> Floats:
    """Multiply rows by a matrix, with every sum taken in the order of the columns.

    Args:
        rows: n rows of d columns.
        matrix: d rows of as many columns as the result has.

    Returns:
        ``rows @ matrix``, each row computed as if it were alone.

    Example:
        >>> row_product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
        array([[11.]])
    """
    out = np.zeros((len(rows), matrix.shape[1]))
    _product(np.ascontiguousarray(rows), np.ascontiguousarray(matrix), out)
    return out


@kernel
def _product(rows: Floats, matrix: Floats, out: Floats) -> None:
    if matrix.shape[1] == 1:  # the same sums, without a loop over one column
        for i in range(rows.shape[0]):
            total = 0.0
            for k in range(rows.shape[1]):
                total += rows[i, k] * matrix[k, 0]
            out[i, 0] = total
        return
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            factor = rows[i, k]
            for j in range(matrix.shape[1]):
                out[i, j] += factor * matrix[k, j]
