"""Files that say what each column is scaled by: written by `targetdp scales`, read by a release."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from targetdp._core import check
from targetdp._files import StrictModel, explain, read_toml, toml_value
from targetdp.normalization._scales import ColumnScales, confidential_scales, declared_scales

Origin = Literal["public", "confidential"]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Words = Annotated[
    str,
    Field(min_length=1, max_length=500),
    AfterValidator(lambda value: check.text("reason", value, longest=500)),
]
"""They are shown to the data holder, and one of them is certified."""


class _Column(StrictModel):
    center: _Finite
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ScalesFile(StrictModel):
    """A center and a scale for each feature, and whose data they were learned from.

    Args:
        source: ``"public"`` or ``"confidential"``.
        reason: Why they are public; public ones have one.
        people: Under which name the user's configuration keeps keyed tags of those whom they were learned
            from.
        other_people: Why ids that are the same in the table that is released are other people's.
        features: For each feature its ``center`` and ``scale``.

    Example:
        >>> columns = {"contacts": {"center": 40, "scale": 20}}
        >>> file = ScalesFile(source="public", reason="the census of 2022", features=columns)
        >>> file.features["contacts"].center
        40.0
    """

    model_config = ConfigDict(title="targetdp scales")
    source: Origin = Field(
        description="public: learned from no one in the table; confidential: from the same people"
    )
    reason: _Words | None = Field(
        default=None, description="why public scales are public: whose data they were learned from"
    )
    people: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = Field(
        default=None, description="where it is kept, for the data holder, whom they were learned from"
    )
    other_people: _Words | None = Field(
        default=None, description="why the same ids are other people's, if tables number their people anew"
    )
    features: dict[str, _Column] = Field(min_length=1)

    @model_validator(mode="after")
    def _says_why(self) -> "ScalesFile":
        if self.source == "public" and not self.reason:
            raise ValueError(
                'source = "public" needs a reason: whose data these scales were learned from, and why they '
                "are public"
            )
        return self


def read_scales_file(path: Path) -> ScalesFile:
    """Read a scales file: what it says, of all its features.

    Args:
        path: The file (TOML).

    Returns:
        Its content.

    Raises:
        ValueError: The file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "scales.toml"
        >>> _ = path.write_text(scales_text(declared_scales([40], [20]), ["contacts"], "public", "a census"))
        >>> read_scales_file(path).reason
        'a census'
    """
    try:
        return ScalesFile.model_validate(read_toml(path, "scales file"))
    except ValidationError as error:
        raise ValueError(f"scales file {path}: {explain(error, ScalesFile)}") from error


def read_scales(path: Path, features: Sequence[str]) -> ColumnScales:
    """Read the scales of some features from a scales file.

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
        >>> _ = path.write_text(scales_text(declared_scales([40], [20]), ["contacts"], "public", "a census"))
        >>> read_scales(path, ["contacts"]).center
        array([40.])
    """
    file = read_scales_file(path)
    missing = [name for name in features if name not in file.features]
    if missing:
        raise ValueError(f"{path} says nothing of {', '.join(missing)}: add them, or drop these features")
    columns = [file.features[name] for name in features]
    make = declared_scales if file.source == "public" else confidential_scales
    return make([column.center for column in columns], [column.scale for column in columns])


def scales_text(
    scales: ColumnScales,
    features: Sequence[str],
    origin: Origin,
    reason: str | None = None,
    people: str | None = None,
    other_people: str | None = None,
) -> str:
    """Write a scales file, as TOML.

    Args:
        scales: Center and scale of each feature.
        features: Names of the features, in the order of the scales.
        origin: Whose data they were learned from.
        reason: Why they are public; public ones need one.
        people: See `ScalesFile`.
        other_people: See `ScalesFile`.

    Returns:
        The text of the file; `read_scales` reads it.

    Example:
        >>> text = scales_text(declared_scales([40], [20]), ["contacts"], "public", "the census of 2022")
        >>> print(text.splitlines()[-1])
        "contacts" = { center = 40.0, scale = 20.0 }
    """
    head = {
        "public": "# Learned from no one in the table that will be released.",
        "confidential": "# CONFIDENTIAL: learned from the same people. Do not publish this file.",
    }[origin]
    said = {"source": origin, "reason": reason, "people": people, "other_people": other_people}
    lines = [head, *(f"{name} = {toml_value(value)}" for name, value in said.items() if value is not None)]
    lines += ["", "[features]"]
    lines += [
        f"{toml_value(name)} = {{ center = {float(center)!r}, scale = {float(scale)!r} }}"
        for name, center, scale in zip(features, scales.center, scales.scale, strict=True)
    ]
    return "\n".join(lines) + "\n"
