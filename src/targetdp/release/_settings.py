"""What a data holder asks for: the settings of one release, from flags, a release file or Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from targetdp._core import check, declared
from targetdp._files import explain, read_toml
from targetdp.mechanisms import LEAST_NOISE, mechanism_names
from targetdp.release._ledger._entries import LONGEST_NAME, LONGEST_REASON
from targetdp.release._weights_file import SingledOutError, Weights, must_differ, read_weights, singled_out

MONDRIAN = "mondrian"
MECHANISMS = (LEAST_NOISE, *mechanism_names(), MONDRIAN)
SCALES_WORDS = frozenset({"private", "sample", "data"})
"""What scales may be besides the name of a file."""
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

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[declared("targetdp.release._engine")]


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
        min_length=1,
        description="a scales file (targetdp scales makes one), 'private' (bounds, scales_epsilon), 'sample' "
        "(the sample's), or 'data'",
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
    weights: Path | None = Field(
        None, description="weights file: release these weighted sums of the features, not the features"
    )
    sample: Path | None = Field(
        None,
        description="the release that the weights were learned from: people in it are left out of the scores",
    )
    score_sample: _Truth = Field(False, description="score people of the sample, too: both releases add up")
    some_have_left: _Truth = Field(
        False, description="people of the sample who are not in the table have left: that is declared"
    )
    no_sample: _Truth = Field(
        False, description="nobody in the table is in the release that the weights were learned from"
    )
    accept_weights: _Truth = Field(
        False, description="the data holder has seen that the weights single out a column"
    )
    accept_missing: _Truth = Field(
        False, description="the data holder has seen that many people of the sample are not in the table"
    )
    key: Path | None = Field(None, description="the data holder's signing key")
    engine: EngineName = Field("local", description="where the work is done")
    made_for: Literal["cider"] | None = Field(
        None, alias="for", description="shape the output for another tool, as post-processing"
    )

    _asked: Weights | None = PrivateAttr(None)
    """What the weights file said when it was read, once: it may change while the release is made."""

    @property
    def asked(self) -> Weights | None:
        """What the weights file asks for, where there is one."""
        return self._asked

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns that come out with noise: the scores, or the features."""
        return self.features if self._asked is None else self._asked.scores

    @property
    def leaves_sample_out(self) -> bool:
        """Whether people of a sample are not scored."""
        return self.sample is not None and not self.score_sample

    def must_mean_weights(self) -> None:
        """Weights that single out a column need the data holder's word."""
        if self._asked is None or self.accept_weights:
            return
        columns = singled_out(self.features, self._asked.in_order_of(self.features))
        if columns:
            raise SingledOutError(columns, self._asked.in_words(self.features))

    @field_validator("population", "part", "override")
    @classmethod
    def _as_the_ledger_has_it(cls, text: str | None, info: ValidationInfo) -> str | None:
        """One name, one spelling, here and in the ledger and in the certificate."""
        longest = LONGEST_REASON if info.field_name == "override" else LONGEST_NAME
        return None if text is None else check.text(str(info.field_name), text, longest=longest)

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
        if self.partitions is not None and self.delta is not None:
            raise ValueError("partitions sets δ from the number of rows: leave out delta, or partitions")
        private = self.scales == "private"
        if not private == (self.bounds is not None) == (self.scales_epsilon is not None):
            raise ValueError(
                "bounds and scales_epsilon belong to scales = 'private': give both with it, or neither"
            )
        if self.scales == "sample" and self.sample is None:
            raise ValueError("scales = 'sample' are those of the sample: give it, or other scales")
        if (self.ledger is None) != (self.population is None):
            raise ValueError("ledger and population belong together: give both, or neither")
        for name in ("part", "override"):
            _must(getattr(self, name) is None or self.ledger is not None, f"{name} needs a ledger")
        self._columns_agree()
        self._scores_agree()
        return self

    def _scores_agree(self) -> None:
        """What belongs to scores, and the weights file itself, against the columns."""
        for name in (
            "sample", "score_sample", "some_have_left", "no_sample", "accept_weights", "accept_missing",
        ):  # fmt: skip
            _must(not getattr(self, name) or self.weights is not None, f"{name} belongs to a weights file")
        if self.weights is None:
            return
        _must(self.mechanism != MONDRIAN, "mechanism = 'mondrian' groups rows: it has no scores")
        _must(self.partitions is None, "partitions are not for scores: leave them out, or give delta")
        for name in ("score_sample", "some_have_left"):
            _must(not getattr(self, name) or self.sample is not None, f"{name} needs the sample")
        if self.score_sample and self.some_have_left:
            raise ValueError(
                "some_have_left is for a sample that is left out: everybody in the table is scored"
            )
        if self.score_sample and self.part is not None:
            raise ValueError(
                "score_sample is for people inside and outside the sample, who are not one part: leave out "
                "part, so that everybody is charged"
            )
        if self.no_sample and self.sample is not None:
            raise ValueError(
                "no_sample says that nobody in the table is in a sample: leave out sample, or no_sample"
            )
        asked = read_weights(self.weights)
        asked.in_order_of(self.features)
        must_differ(asked.scores, (self.id, *self.features, *self.keep))
        if self.made_for == "cider":
            _must_be_free_in_cider(asked.scores)
        self._asked = asked

    def _columns_agree(self) -> None:
        names = [self.id, *self.features, *self.keep]
        twice = check.twice(names)
        _must(not twice, f"column {twice[0] if twice else ''!r} is named twice among id, features and keep")
        if isinstance(self.impute, dict):
            unknown = sorted(set(self.impute) - set(self.features))
            _must(not unknown, f"impute names {unknown}, which are not among the features")
        if self.made_for == "cider":
            _must_be_free_in_cider(names)
            _must(not self.keep_order, "Cider's table is written in order of ids: leave out keep_order")
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
        raise ValueError(explain(error, Settings)) from error


def read_release_file(path: Path) -> dict[str, Any]:
    """The settings of a release file, as plain data; paths in it are relative to the file."""
    given = read_toml(path, "release file")
    for name in ("accept_weights", "accept_missing"):
        if name in given:
            raise ValueError(f"release file {path} has {name}: say it each time, of what you saw (--yes)")
    for name in ("bounds", "pseudonymize", "ledger", "key", "weights", "sample"):
        if isinstance(given.get(name), str):
            given[name] = path.parent / given[name]
    scales = given.get("scales")
    if isinstance(scales, str) and scales not in SCALES_WORDS:
        given["scales"] = str(path.parent / scales)
    return given


def _must_be_free_in_cider(names: Sequence[str]) -> None:
    reserved = sorted(set(names) & set(CIDER_RESERVED))
    _must(not reserved, f"Cider keeps the names {', '.join(CIDER_RESERVED)} for itself: drop {reserved}")


def _must(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
