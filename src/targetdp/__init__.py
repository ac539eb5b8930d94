"""Targeted differential privacy: use personal data to decide who gets help, without giving people away.

The few names that users need are imported on first use, so that ``import targetdp`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from targetdp.version import __version__

if TYPE_CHECKING:
    from targetdp.accounting import compose
    from targetdp.attacks.audit import audit
    from targetdp.attacks.distinguishing import distinguishing
    from targetdp.attacks.inference import attribute_inference, split_holdout
    from targetdp.attacks.linkability import linkability
    from targetdp.attacks.linkage import linkage
    from targetdp.attacks.membership import membership
    from targetdp.attacks.neighborhood import neighborhood
    from targetdp.attacks.protection import Protection, worst_of_means
    from targetdp.attacks.reconstruction import reconstruction
    from targetdp.attacks.singling_out import singling_out
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
    "targetdp.attacks.audit": ("audit",),
    "targetdp.attacks.distinguishing": ("distinguishing",),
    "targetdp.attacks.inference": ("attribute_inference", "split_holdout"),
    "targetdp.attacks.linkability": ("linkability",),
    "targetdp.attacks.linkage": ("linkage",),
    "targetdp.attacks.membership": ("membership",),
    "targetdp.attacks.neighborhood": ("neighborhood",),
    "targetdp.attacks.protection": ("Protection", "worst_of_means"),
    "targetdp.attacks.reconstruction": ("reconstruction",),
    "targetdp.attacks.singling_out": ("singling_out",),
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
    "Protection",
    "SimulatedPrivacy",
    "SphericalLaplace",
    "Staircase",
    "__version__",
    "accuracy_ceiling",
    "attribute_inference",
    "audit",
    "compose",
    "confidential_scales",
    "data_scales",
    "declared_scales",
    "distinguishing",
    "is_ruled_out",
    "largest_B",
    "least_noise",
    "linkability",
    "linkage",
    "membership",
    "neighborhood",
    "normalize",
    "parallel",
    "private_scales",
    "privatize_frame",
    "reconstruction",
    "sequential",
    "singling_out",
    "split_holdout",
    "worst_of_means",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'targetdp' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
