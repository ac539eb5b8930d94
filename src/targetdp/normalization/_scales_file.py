"""Files that say what each column is scaled by: written by `targetdp scales`, read by a release."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from targetdp._files import StrictModel, explain, read_toml, toml_value
from targetdp.normalization._scales import ColumnScales, confidential_scales, declared_scales

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
    try:
        file = ScalesFile.model_validate(read_toml(path, "scales file"))
    except ValidationError as error:
        raise ValueError(f"scales file {path}: {explain(error)}") from error
    missing = [name for name in features if name not in file.features]
    if missing:
        raise ValueError(f"{path} says nothing of {', '.join(missing)}: add them, or drop these features")
    columns = [file.features[name] for name in features]
    make = declared_scales if file.source == "public" else confidential_scales
    return make([column.center for column in columns], [column.scale for column in columns])


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
