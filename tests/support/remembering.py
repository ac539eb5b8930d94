"""Pure functions of the package that tests ask the same again and again, remembered for all of a process.

What they return depends on what is asked and on nothing else. Their own tests compute everything anew.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cache, lru_cache
from typing import Any

from targetdp.accounting import SphericalLaplaceLoss

CHARTS = ("tradeoff_chart", "ceiling_chart", "distance_chart", "group_chart")


@cache
def curves() -> dict[str, Callable[..., Any]]:
    """Methods of `SphericalLaplaceLoss`: hundreds of points of its curve are behind every certificate."""
    return {
        "delta": lru_cache(maxsize=1 << 16)(SphericalLaplaceLoss.delta),
        "distribution": lru_cache(maxsize=64)(SphericalLaplaceLoss.distribution),
    }


@cache
def charts() -> dict[str, Callable[..., Any]]:
    """Functions of `targetdp.report._page._charts`: each chart takes altair a fifth of a second."""
    from targetdp.report._page import _charts as drawing

    return {name: _once(getattr(drawing, name)) for name in CHARTS}


def _once(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A chart for each different question, which may hold lists; a copy for each who asks."""
    drawn: dict[str, Any] = {}

    def remembered(*given: Any, **more: Any) -> Any:
        asked = repr((given, more))
        if asked not in drawn:
            drawn[asked] = draw(*given, **more)
        return deepcopy(drawn[asked])

    return remembered
