"""Pure functions of the package that tests ask the same again and again, remembered for all of a process.

What they return depends on what is asked and on nothing else. Their own tests compute everything anew.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from targetdp.accounting import SphericalLaplaceLoss


@cache
def curves() -> dict[str, Callable[..., Any]]:
    """Methods of `SphericalLaplaceLoss`: hundreds of points of its curve are behind every certificate."""
    return {
        "delta": lru_cache(maxsize=1 << 16)(SphericalLaplaceLoss.delta),
        "distribution": lru_cache(maxsize=64)(SphericalLaplaceLoss.distribution),
    }
