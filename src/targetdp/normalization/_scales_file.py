"""Files that say what each column is scaled by: written by `targetdp scales`, read by a release."""

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from targetdp._files import explain, read_toml, toml_value
from targetdp.normalization._scales import Bounds, ColumnScales, confidential_scales, declared_scales

Origin = Literal["public", "confidential"]
_File = TypeVar("_File", bound=BaseModel)
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Column(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    center: _Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ScalesFile(BaseModel):
    """A center and a scale for each feature, and whose data they were learned from."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp scales")
    source: Origin = Field(
        description="public: learned from no one in the table; confidential: from the same people"
    )
    features: dict[str, _Column] = Field(min_length=1)


class _Range(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    lower: _Finite
    upper: _Finite


class BoundsFile(BaseModel):
    """Public bounds for each feature: from the nature of the quantity, not from the table."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp bounds")
    features: dict[str, _Range] = Field(min_length=1)


def read_scales(path: Path, features: Sequence[str]) -> ColumnScales:
    """The scales of the named features, in their order."""
    file = _read(path, ScalesFile, "scales file")
    _has_all(path, file.features, features)
    make = declared_scales if file.source == "public" else confidential_scales
    return make(
        np.array([file.features[name].center for name in features]),
        np.array([file.features[name].scale for name in features]),
    )


def read_bounds(path: Path, features: Sequence[str]) -> Bounds:
    """The bounds of the named features, in their order."""
    file = _read(path, BoundsFile, "bounds file")
    _has_all(path, file.features, features)
    for name in features:
        if not file.features[name].lower < file.features[name].upper:
            raise ValueError(
                f"bounds file {path}: {name} has lower = {file.features[name].lower!r} and "
                f"upper = {file.features[name].upper!r}: give bounds lower < upper"
            )
    return Bounds(
        np.array([file.features[name].lower for name in features]),
        np.array([file.features[name].upper for name in features]),
    )


def scales_text(scales: ColumnScales, features: Sequence[str], origin: Origin) -> str:
    """A scales file, as TOML."""
    head = {
        "public": "# Learned from no one in the table that will be released.",
        "confidential": "# CONFIDENTIAL: learned from the same people. Do not publish this file.",
    }[origin]
    lines = [head, f'source = "{origin}"', "", "[features]"]
    lines += [
        f"{toml_value(name)} = {{ center = {float(center)!r}, scale = {float(scale)!r} }}"
        for name, center, scale in zip(features, scales.center, scales.scale, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _read(path: Path, model: type[_File], kind: str) -> _File:
    """A file of a kind, or a ValueError that says what is wrong with it."""
    try:
        return model.model_validate(read_toml(path, kind))
    except ValidationError as error:
        raise ValueError(f"{kind} {path}: {explain(error)}") from error


def _has_all(path: Path, known: Container[str], features: Sequence[str]) -> None:
    missing = [name for name in features if name not in known]
    if missing:
        raise ValueError(f"{path} says nothing of {', '.join(missing)}: add them, or drop these features")
