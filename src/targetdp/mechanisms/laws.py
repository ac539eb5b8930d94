"""Every law of noise by its family, and the way back from a record to a law."""

from collections.abc import Mapping
from typing import Any

from targetdp import check
from targetdp.mechanisms.law import (
    GaussianLaw,
    NoiseLaw,
    ProjectionLaw,
    SphericalLaplaceLaw,
    StaircaseLaw,
)
from targetdp.mechanisms.linear import LinearLaw

LAWS: dict[str, type[NoiseLaw]] = {
    law.family: law for law in (GaussianLaw, SphericalLaplaceLaw, StaircaseLaw, ProjectionLaw, LinearLaw)
}
"""A new one is one entry here."""


def law_of(record: Mapping[str, Any]) -> NoiseLaw:
    """The law that `NoiseLaw.record` wrote; whatever is missing, unknown or out of range is refused."""
    fields = dict(record)
    family = check.choice("family", fields.pop("family", None), LAWS)
    if LAWS[family] is LinearLaw and isinstance(fields.get("noise"), Mapping):
        if fields["noise"].get("family") == LinearLaw.family:
            raise ValueError("noise is itself a linear map: no release has that")
        fields["noise"] = law_of(fields["noise"])
    try:
        return LAWS[family](**fields)
    except TypeError as error:
        raise ValueError(f"the record of {family} noise is not complete: {error}") from error
