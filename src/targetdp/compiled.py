"""How this project compiles its kernels: one decorator, so that every kernel has the same options.

Kernels release the interpreter's lock (batches may run in threads), are cached on disk (a second
process starts at once), and never use fast-math: the exact-rounding argument of the noise kernels
rests on IEEE arithmetic as written.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function over arrays and numbers to machine code at its first call."""
    compiled = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    return cast("Callable[Parameters, Result]", compiled)
