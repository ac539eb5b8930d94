"""Bringing the rows below a rank to the front, without sorting."""

from typing import Any

from numpy.typing import NDArray

from targetdp.compiled import kernel
from targetdp.typing import Integers


@kernel
def select(key: NDArray[Any], order: Integers, left: int, right: int, place: int) -> None:
    """Reorder rows from ``left`` to ``right`` so that no key before ``place`` is above any from it on.

    ``key`` is by row, ``order`` names rows (Hoare's quickselect). Ties are shared out evenly.
    """
    while left < right:
        a, b, c = key[order[left]], key[order[(left + right) // 2]], key[order[right]]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while key[order[i]] < pivot:
                i += 1
            while key[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if place <= j:
            right = j
        elif place >= i:
            left = i
        else:
            return
