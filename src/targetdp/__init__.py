"""Targeted differential privacy: use personal data to decide who gets help, without giving people away.

The few names that users need are imported on first use, so that ``import targetdp`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from targetdp.version import __version__

if TYPE_CHECKING:
    from targetdp.accounting import compose
    from targetdp.conditions import accuracy_ceiling, is_ruled_out, largest_B
    from targetdp.guarantee import Guarantee, parallel, sequential
    from targetdp.mechanisms import (
        GaussianNoise,
        Mondrian,
        Partitioned,
        PrivateProjection,
        SphericalLaplace,
        Staircase,
        least_noise,
    )
    from targetdp.normalization import Normalized, Privatized, normalize
    from targetdp.release.frame import privatize_frame
    from targetdp.scales import (
        ColumnScales,
        confidential_scales,
        data_scales,
        declared_scales,
        private_scales,
    )
    from targetdp.transformer import SimulatedPrivacy

_HOMES = {
    "targetdp.accounting": ("compose",),
    "targetdp.conditions": ("accuracy_ceiling", "is_ruled_out", "largest_B"),
    "targetdp.guarantee": ("Guarantee", "parallel", "sequential"),
    "targetdp.mechanisms": (
        "GaussianNoise",
        "Mondrian",
        "Partitioned",
        "PrivateProjection",
        "SphericalLaplace",
        "Staircase",
        "least_noise",
    ),
    "targetdp.normalization": ("Normalized", "Privatized", "normalize"),
    "targetdp.release.frame": ("privatize_frame",),
    "targetdp.scales": (
        "ColumnScales",
        "confidential_scales",
        "data_scales",
        "declared_scales",
        "private_scales",
    ),
    "targetdp.transformer": ("SimulatedPrivacy",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ColumnScales",
    "GaussianNoise",
    "Guarantee",
    "Mondrian",
    "Normalized",
    "Partitioned",
    "PrivateProjection",
    "Privatized",
    "SimulatedPrivacy",
    "SphericalLaplace",
    "Staircase",
    "__version__",
    "accuracy_ceiling",
    "compose",
    "confidential_scales",
    "data_scales",
    "declared_scales",
    "is_ruled_out",
    "largest_B",
    "least_noise",
    "normalize",
    "parallel",
    "private_scales",
    "privatize_frame",
    "sequential",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'targetdp' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
