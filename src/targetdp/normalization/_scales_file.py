"""Files that say what each column is scaled by: written by `targetdp scales`, read by a release."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from targetdp._files import StrictModel, explain, read_toml, toml_value
from targetdp.normalization._scales import Bounds, ColumnScales, confidential_scales, declared_scales

Origin = Literal["public", "confidential"]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Column(StrictModel):
    center: _Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ScalesFile(StrictModel):
    """A center and a scale for each feature, and whose data they were learned from.

    Args:
        source: ``"public"`` or ``"confidential"``.
        features: For each feature its ``center`` and ``scale``.

    Example:
        >>> file = ScalesFile(source="public", features={"contacts": {"center": 40, "scale": 20}})
        >>> file.features["contacts"].center
        40.0
    """

    model_config = ConfigDict(title="targetdp scales")
    source: Origin = Field(
        description="public: learned from no one in the table; confidential: from the same people"
    )
    features: dict[str, _Column] = Field(min_length=1)


class _Range(StrictModel):
    lower: _Finite
    upper: _Finite


class BoundsFile(StrictModel):
    """Public bounds for each feature: from the nature of the quantity, not from the table.

    Args:
        features: For each feature its ``lower`` and ``upper`` bound.

    Example:
        >>> BoundsFile(features={"contacts": {"lower": 0, "upper": 200}}).features["contacts"].upper
        200.0
    """

    model_config = ConfigDict(title="targetdp bounds")
    features: dict[str, _Range] = Field(min_length=1)


_File = TypeVar("_File", ScalesFile, BoundsFile)


def read_scales(path: Path, features: Sequence[str]) -> ColumnScales:
    """Read a scales file.

    Args:
        path: The file (TOML).
        features: Names of the features, in their order.

    Returns:
        The scales of these features.

    Raises:
        ValueError: The file cannot be read, or says nothing of a feature.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "scales.toml"
        >>> _ = path.write_text(scales_text(declared_scales([40], [20]), ["contacts"], "public"))
        >>> read_scales(path, ["contacts"]).center
        array([40.])
    """
    file = _read(path, ScalesFile, "scales file", features)
    columns = [file.features[name] for name in features]
    make = declared_scales if file.source == "public" else confidential_scales
    return make([column.center for column in columns], [column.scale for column in columns])


def read_bounds(path: Path, features: Sequence[str]) -> Bounds:
    r"""Read a bounds file.

    Args:
        path: The file (TOML).
        features: Names of the features, in their order.

    Returns:
        The bounds of these features.

    Raises:
        ValueError: The file cannot be read, says nothing of a feature, or has bounds that are no range.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "bounds.toml"
        >>> _ = path.write_text("[features]\ncontacts = { lower = 0, upper = 200 }")
        >>> read_bounds(path, ["contacts"]).upper
        array([200.])
    """
    file = _read(path, BoundsFile, "bounds file", features)
    ranges = [file.features[name] for name in features]
    for name, ends in zip(features, ranges, strict=True):
        if not ends.lower < ends.upper:
            raise ValueError(
                f"bounds file {path}: {name} has lower = {ends.lower!r} and upper = {ends.upper!r}: "
                "give bounds lower < upper"
            )
    return Bounds(np.array([ends.lower for ends in ranges]), np.array([ends.upper for ends in ranges]))


def scales_text(scales: ColumnScales, features: Sequence[str], origin: Origin) -> str:
    """Write a scales file, as TOML.

    Args:
        scales: Center and scale of each feature.
        features: Names of the features, in the order of the scales.
        origin: Whose data they were learned from.

    Returns:
        The text of the file; `read_scales` reads it.

    Example:
        >>> print(scales_text(declared_scales([40], [20]), ["contacts"], "public").splitlines()[-1])
        "contacts" = { center = 40.0, scale = 20.0 }
    """
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


def _read(path: Path, model: type[_File], kind: str, features: Sequence[str]) -> _File:
    """Read a file of a kind, or say what is wrong with it or missing."""
    try:
        file = model.model_validate(read_toml(path, kind))
    except ValidationError as error:
        raise ValueError(f"{kind} {path}: {explain(error)}") from error
    missing = [name for name in features if name not in file.features]
    if missing:
        raise ValueError(f"{path} says nothing of {', '.join(missing)}: add them, or drop these features")
    return file
