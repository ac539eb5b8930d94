"""What a data holder asks for: the settings of one release, from flags, a release file or Python."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from targetdp import check
from targetdp.mechanisms.choice import REGISTER

LEAST_NOISE = "least-noise"
MONDRIAN = "mondrian"
MECHANISMS = (LEAST_NOISE, *REGISTER, MONDRIAN)
CIDER_RESERVED = ("label", "weight")


def _number(value: Any, info: ValidationInfo) -> float | None:
    """Numbers are checked where all numbers are; pydantic would take an array of text for one."""
    if value is None:
        return None
    try:
        return check.number(info.field_name or "value", value)
    except TypeError as error:
        raise ValueError(str(error)) from error


_Number = Annotated[float, BeforeValidator(_number)]
_Whole = Annotated[int, Field(strict=True)]
_Truth = Annotated[bool, Field(strict=True)]

TunedOn = Literal["public", "synthetic", "this-data"]


class Settings(BaseModel):
    """One release. A release file (TOML) has the same names; flags override it."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, title="targetdp release")

    id: str = Field(min_length=1, description="the column that identifies a person; one row per person")
    features: tuple[str, ...] = Field(min_length=1, description="the columns to privatize and release")
    B: _Number | None = Field(
        None, gt=0, le=2, description="people within this distance are hidden from each other"
    )
    epsilon: _Number | None = Field(None, gt=0, description="ε of the guarantee")
    delta: _Number | None = Field(None, ge=0, lt=1, description="δ of the guarantee; default 1/(rows + 1)")
    mechanism: str = Field(LEAST_NOISE, description=f"one of {', '.join(MECHANISMS)}")
    group_size: _Whole | None = Field(None, ge=2, description=f"rows that look alike, for {MONDRIAN} only")
    partitions: _Whole | None = Field(
        None, ge=1, description="the paper's random parts: δ becomes 1/(⌈rows/parts⌉ + 1)"
    )
    scales: str = Field(
        min_length=1, description="a scales file, or 'private' (bounds, scales_epsilon), or 'data'"
    )
    bounds: Path | None = Field(None, description="file of public bounds, for private scales")
    scales_epsilon: _Number | None = Field(None, gt=0, description="ε paid for private scales")
    keep: tuple[str, ...] = Field((), description="columns passed on as they are: not protected")
    keep_order: _Truth = Field(False, description="keep the order of rows, which may publish ranks")
    impute: _Number | dict[str, _Number] | None = Field(
        None, description="declared constants for missing values: one for all features, or by name"
    )
    pseudonymize: Path | None = Field(None, description="key file for keyed hashes in place of ids")
    tuned_on: TunedOn | None = Field(None, description="which data B was chosen on")
    ledger: Path | None = Field(None, description="the ledger that the release is charged to")
    population: str | None = Field(None, min_length=1, description="whose budget is charged")
    part: str | None = Field(
        None, min_length=1, description="name of a part that shares no person with other named parts"
    )
    override: str | None = Field(None, min_length=1, description="why the limit may be broken, on record")
    key: Path | None = Field(None, description="the data holder's signing key")
    engine: Literal["local", "spark"] = Field("local", description="where the work is done")
    made_for: Literal["cider"] | None = Field(
        None, alias="for", description="shape the output for another tool, as post-processing"
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """What one field says must fit the others."""
        _must(self.mechanism in MECHANISMS, f"mechanism = {self.mechanism!r} is not one of {MECHANISMS}")
        if self.mechanism == MONDRIAN:
            _must(self.group_size is not None, "mechanism = 'mondrian' needs group_size, 2 or more")
            given = [n for n in ("B", "epsilon", "delta", "partitions") if getattr(self, n) is not None]
            _must(not given, f"mechanism = 'mondrian' has no guarantee: leave out {', '.join(given)}")
            _must(self.engine == "local", "mechanism = 'mondrian' needs the local engine")
        else:
            missing = [name for name in ("B", "epsilon") if getattr(self, name) is None]
            _must(not missing, f"{' and '.join(missing)} must be given: {self.mechanism} is calibrated to it")
            _must(self.group_size is None, "group_size is for mechanism = 'mondrian' only: leave it out")
        _must(
            self.partitions is None or self.delta is None,
            "partitions sets δ from the number of rows: leave out delta, or partitions",
        )
        private = self.scales == "private"
        _must(
            private == (self.bounds is not None) == (self.scales_epsilon is not None),
            "bounds and scales_epsilon belong to scales = 'private': give both with it, or neither",
        )
        _must(
            (self.ledger is None) == (self.population is None),
            "ledger and population belong together: give both, or neither",
        )
        for name in ("part", "override"):
            _must(getattr(self, name) is None or self.ledger is not None, f"{name} needs a ledger")
        self._columns_agree()
        return self

    def _columns_agree(self) -> None:
        names = [self.id, *self.features, *self.keep]
        twice = sorted({name for name in names if names.count(name) > 1})
        _must(not twice, f"column {twice[0] if twice else ''!r} is named twice among id, features and keep")
        if isinstance(self.impute, dict):
            unknown = sorted(set(self.impute) - set(self.features))
            _must(not unknown, f"impute names {unknown}, which are not among the features")
        if self.made_for == "cider":
            reserved = sorted(set(names) & set(CIDER_RESERVED))
            _must(
                not reserved, f"Cider keeps the names {', '.join(CIDER_RESERVED)} for itself: drop {reserved}"
            )
            _must(
                not self.keep_order,
                "Cider's table is written in order of ids: leave out keep_order",
            )
            _must(not self.keep, "Cider takes an id and features only: leave out keep")

    def constants(self) -> dict[str, float]:
        """What stands in for a missing value of each feature."""
        if self.impute is None:
            return {}
        if isinstance(self.impute, dict):
            return dict(self.impute)
        return dict.fromkeys(self.features, self.impute)


def make_settings(given: Mapping[str, Any]) -> Settings:
    """Settings from plain data, or a ValueError that names every field that is wrong."""
    try:
        return Settings.model_validate(dict(given))
    except ValidationError as error:
        raise ValueError(explain(error)) from error


def read_release_file(path: Path) -> dict[str, Any]:
    """The settings of a release file, as plain data; paths in it are relative to the file."""
    given = read_toml(path, "release file")
    for name in ("bounds", "pseudonymize", "ledger", "key"):
        if isinstance(given.get(name), str):
            given[name] = path.parent / given[name]
    scales = given.get("scales")
    if isinstance(scales, str) and scales not in {"private", "data"}:
        given["scales"] = str(path.parent / scales)
    return given


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """A TOML file, or a ValueError that says what kind of file could not be read, and why."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{kind} {path} cannot be read: {error}") from error


def explain(error: ValidationError) -> str:
    """One line for people from what pydantic found."""
    found = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        value = problem.get("input")
        if not place or message.startswith(place):
            found.append(message)
        else:
            found.append(
                f"{place}: {message}" if problem["type"] == "missing" else f"{place} = {value!r}: {message}"
            )
    return "; ".join(found)


def _must(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
