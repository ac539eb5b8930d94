"""A program as a file (TOML): a table, what is decided with it, and the grid of releases to try."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union

import numpy as np
import pyarrow as pa
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from targetdp._core import Floats, check, import_all
from targetdp._files import StrictModel, explain
from targetdp.mechanisms import LEAST_NOISE, PAPER_GRID, mechanism_names
from targetdp.normalization import RowRule
from targetdp.programs._base import DECLARING, Model, Program, Task
from targetdp.programs._measures import Truths
from targetdp.programs._models._imported import model_of, usual_estimator

Source = Literal["public", "synthetic", "confidential"]
"""Where rows come from."""

MARK = (
    "For the data holder only: these figures are statistics of confidential rows, and no one paid for them "
    "with privacy."
)
"""What everything made from confidential rows carries."""

GROUP_SIZES = tuple(range(2, 11))
"""Of the paper's k-anonymity."""

_CURRENCY = r"^[^\s\\\"'<>&]{1,12}$"
"""One short word: it stands in charts, tables and sentences."""


def _currency(text: str) -> str:
    if re.match(_CURRENCY, text) is None or not text.isprintable():
        raise ValueError(
            "must be one word of 1 to 12 characters, as people write it ($, NGN, €), without spaces, quotes, "
            "backslashes, <, > or &"
        )
    return text


def _plain_words(text: str) -> str:
    if text != text.strip() or not text.isprintable():
        raise ValueError("must be words in one line, with no space at either end")
    return text


Currency = Annotated[str, AfterValidator(_currency), WithJsonSchema({"type": "string", "pattern": _CURRENCY})]
PlainWords = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_plain_words)]
_Title = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_plain_words)]
Name = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
_Names = Annotated[tuple[Name, ...], Field(strict=False)]
_Path = Annotated[Path, BeforeValidator(lambda given: Path(given) if isinstance(given, str) else given)]
_Some = Field(strict=False, min_length=1)
_Columns = Annotated[tuple[Name, ...], _Some]
_Distances = Annotated[tuple[Annotated[float, Field(gt=0, le=2)], ...], _Some]
_Epsilons = Annotated[tuple[Annotated[float, Field(gt=0)], ...], _Some]
_Shares = Annotated[tuple[Share, ...], _Some]
_Counts = Annotated[tuple[Annotated[int, Field(ge=1)], ...], _Some]
_Sizes = Annotated[tuple[Annotated[int, Field(ge=2)], ...], _Some]
_Mechanisms = Annotated[tuple[str, ...], _Some]


class ProgramSection(StrictModel):
    """A part of a file in which every name and every type must be right."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class GridSettings(ProgramSection):
    """Releases to try: every combination. The paper's grid, unless the file says otherwise."""

    B: _Distances = Field(
        default=PAPER_GRID,
        description="people within this distance are hidden from each other; 2: classic differential privacy",
    )
    epsilon1: _Epsilons = Field(default=(2.0, 3.0), description="ε₁ of the projection")
    epsilon2: _Shares = Field(default=(0.5, 0.9999), description="ε₂ of the projection; ε is their sum")
    k: _Counts = Field(default=(10_000,), description="projection dimension")
    mechanisms: _Mechanisms = Field(
        default=("projection", LEAST_NOISE, "score", "score-laplace", "decision", "decision-agreed"),
        description="technologies to compare at the same total (B, ε, δ): score (rows of a sample, then a "
        "score of everybody else), score-laplace (the same with Laplace noise on the score), decision (rows "
        "of a sample, then one drawn answer of everybody else), decision-agreed (the same by a sample that "
        "agreed to be used as it is), or "
        f"rows with noise of {LEAST_NOISE}, {', '.join(mechanism_names())}",
    )
    group_sizes: _Sizes = Field(default=GROUP_SIZES, description="k-anonymity: rows that look alike")

    @model_validator(mode="after")
    def _no_doubles(self) -> Self:
        for name in type(self).model_fields:
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} = {list(values)} names a value twice: it would be computed twice")
        return self


@dataclass(frozen=True, eq=False)
class ProgramColumns:
    """Columns of a program's table by name.

    Args:
        ids: Everybody's id, if the file names an id.
        numbers: Columns that were read as numbers.
        texts: Columns that were read as text.

    Example:
        >>> import numpy as np
        >>> ProgramColumns(None, {"income": np.array([1.0, 2.0])}, {}).numbers["income"].tolist()
        [1.0, 2.0]
    """

    ids: pa.StringArray | None
    numbers: Mapping[str, Floats]
    texts: Mapping[str, pa.StringArray]


class ProgramSettings(ProgramSection):
    """What program files of every kind say.

    A kind adds its own fields and declares itself with `settings_of`. ``task`` is what its model has to do,
    ``given`` what the chosen get, in one word. ``evaluated_with`` are fields that are needed to try the
    program on a table, and not to decide by scores; of each pair in ``together`` the first needs the other
    in any case.

    Example:
        >>> given = {"kind": "aid", "table": "people.csv", "source": "synthetic", "quota": 0.29}
        >>> settings = make_program_settings(given | {"target": "income", "features": ["calls"]})
        >>> settings.folds, settings.unit
        (5, 'people')
    """

    task: ClassVar[Task]
    given: ClassVar[str] = "yes"
    evaluated_with: ClassVar[tuple[str, ...]] = ("table", "source", "features")
    together: ClassVar[tuple[tuple[str, str], ...]] = ()

    kind: str = Field(description="what kind of program it is")
    title: _Title | None = Field(
        None, description="what pages and tables call it; default: its kind and the file's name"
    )

    table: _Path | None = Field(
        None,
        description="Parquet or CSV, relative to this file: features and outcomes together; not needed to "
        "learn and allocate",
    )
    source: Source | None = Field(
        None,
        description="where the rows come from; figures from confidential rows are for the data holder only; "
        "needed with a table",
    )
    id: Name | None = Field(None, description="the column that identifies a person; one row per person")
    features: _Columns = Field(
        (), description="the columns that a release would privatize; needed with a table"
    )
    target: Name = Field(description="the column that is predicted")
    groups: _Names = Field((), description="columns by which every figure is also given")
    clusters: Name | None = Field(
        None, description="the column of what a survey drew together: villages, households"
    )
    strata: Name | None = Field(None, description="the column of what it drew them within: regions")
    population: Annotated[float, Field(ge=1)] | None = Field(
        None, description="how many people the table stands for; default: its own"
    )
    scales: Name = Field("data", description="'data' (means and deviations of the table) or a scales file")
    rows: RowRule = Field(
        "clip",
        description="how rows come into the unit ball: clip (each that is longer than 1, as a release does), "
        "largest (all by the longest row, as the paper's authors do) or unit (each by its own length); with "
        "the last two a sweep states no guarantee and writes no request",
    )
    impute: float | dict[str, float] | None = Field(
        None, description="declared constants for missing features: one for all, or by name"
    )
    estimator: Name = Field(description="ridge, logistic or the import path of an estimator")
    estimator_settings: dict[str, bool | int | float | str] = Field({}, description="its keyword settings")
    folds: Annotated[int, Field(ge=2)] = Field(5, description="parts of the cross-validation")
    seed: Annotated[int, Field(ge=0)] = Field(0, description="of folds, noise and draws among the tied")
    simulations: Annotated[int, Field(ge=1)] = Field(50, description="of each release with noise")
    parts: Annotated[int, Field(ge=1)] = Field(
        1, description="the paper's random parts: δ becomes 1/(⌈rows/parts⌉ + 1)"
    )
    grid: GridSettings = Field(default=GridSettings(), description="releases to try")

    _allow_code: bool = PrivateAttr(False)
    """Whether any estimator may be imported: said by whoever reads the file, never by the file."""

    @field_validator("folds")
    @classmethod
    def _sensible(cls, folds: int) -> int:
        if folds > 1_000:
            raise ValueError("more than 1,000 folds: 5 or 10 are usual")
        return folds

    @model_validator(mode="after")
    def _agree(self, info: ValidationInfo) -> Self:
        self._allow_code = (info.context or {}).get("allow_code") is True
        single = [*([] if self.id is None else [self.id]), self.target, *self._not_features()]
        for names in (single, self.features, self.groups):
            twice = check.twice(names)
            if twice:
                raise ValueError(f"column {twice[0]!r} is named twice: every column has one part to play")
        known = sorted(set(single) & set(self.features))
        if known:
            raise ValueError(
                f"features names {', '.join(map(repr, known))}, which the program uses as id, outcome, "
                "weight or revenue: a feature must be known before the decision"
            )
        self._groups_are_groups()
        if isinstance(self.impute, dict) and (odd := sorted(set(self.impute) - set(self.features))):
            raise ValueError(f"impute names {', '.join(odd)}, which are not among the features")
        self.model()
        return self

    def _groups_are_groups(self) -> None:
        for name in self.groups:
            if name in {self.id, self.target}:
                raise ValueError(
                    f"groups names {name!r}, which is the id or the target: give a column that divides people"
                )
            if "=" in name:
                raise ValueError(
                    f"groups names {name!r}: figures are told by column=group, so rename the column without ="
                )

    def _not_features(self) -> list[str]:
        """Columns that are known only after the decision, or are no one's property."""
        return []

    def own_columns(self) -> tuple[list[str], list[str]]:
        """Columns that it needs beside features and groups: those read as numbers, and those read as text."""
        return [self.target], []

    @property
    def survey_columns(self) -> list[str]:
        """Columns that say how people were drawn, read as text."""
        return [name for name in (self.clusters, self.strata) if name is not None]

    def survey_design(self, columns: ProgramColumns) -> dict[str, list[str] | None]:
        """Everybody's cluster and stratum, as programs take them."""
        return {
            part: None if name is None else columns.texts[name].to_pylist()
            for part, name in (("clusters", self.clusters), ("strata", self.strata))
        }

    def program(self, columns: ProgramColumns, groups: Mapping[str, Sequence[str]]) -> Program:
        """The program of columns that were read."""
        raise NotImplementedError

    def choose(self, yes: Truths, rng: np.random.Generator) -> Truths:  # noqa: ARG002
        """Who is chosen where each has a yes or a no: everybody with a yes, unless there is a quota."""
        return yes

    def model(self) -> Model:
        """What predicts the target."""
        return model_of(self.estimator, self.estimator_settings, self.task, allow_code=self._allow_code)

    @property
    def missing(self) -> list[str]:
        """What the file does not say and trying the program on a table needs."""
        return [name for name in self.evaluated_with if not getattr(self, name)]

    def constants(self) -> dict[str, float]:
        """What stands in for a missing value of each feature."""
        if isinstance(self.impute, dict):
            return dict(self.impute)
        return {} if self.impute is None else dict.fromkeys(self.features, self.impute)

    @property
    def unit(self) -> str:
        """What the program's figures are counted in."""
        return "people"

    @property
    def money(self) -> str | None:
        """The currency of its sums of money, if it has any."""
        return None

    @property
    def mark(self) -> str | None:
        """What everything made from these rows must carry, if anything."""
        return None if self.source in {"public", "synthetic"} else MARK


_SETTINGS: dict[str, type[ProgramSettings]] = {}

_Settings = TypeVar("_Settings", bound=type[ProgramSettings])


def settings_of(program: type[Program]) -> Callable[[_Settings], _Settings]:
    """Declare what a program file of one kind says.

    Args:
        program: The kind of program, declared with `named`.

    Returns:
        A decorator for a subclass of `ProgramSettings` whose field ``kind`` is a literal of that name.

    Example:
        >>> settings_kinds()["aid"].task
        'regression'
    """

    def declare(settings: _Settings) -> _Settings:
        _SETTINGS[program.kind] = settings
        return settings

    return declare


def settings_kinds() -> Mapping[str, type[ProgramSettings]]:
    """What a program file may say, by the kind of program."""
    import_all("targetdp.programs", DECLARING)
    return dict(sorted(_SETTINGS.items()))


def program_file() -> type[BaseModel]:
    """The model of a program file of any kind, for its JSON schema.

    Returns:
        A pydantic model.

    Example:
        >>> program_file().model_json_schema()["title"]
        'targetdp program'
    """
    kinds: Any = Annotated[Union[tuple(settings_kinds().values())], Field(discriminator="kind")]  # noqa: UP007

    class ProgramFile(RootModel[kinds]):
        """A program file of any kind."""

        model_config = ConfigDict(title="targetdp program")

    return ProgramFile


def make_program_settings(
    given: Mapping[str, Any], *, allow_code: bool = False, whole: bool = True
) -> ProgramSettings:
    """Settings from plain data, or a ValueError that names every field that is wrong.

    ``whole`` settings can be tried on a table. All others only decide by scores: their table may be missing,
    and the estimator that they name is not looked at.
    """
    kinds, kind = settings_kinds(), given.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(
            f"kind = {kind!r} is not one of {', '.join(kinds)}: begin the file with one of these"
        )
    settings = kinds[kind]
    ours = {} if whole else {"estimator": usual_estimator(settings.task), "estimator_settings": {}}
    pairs = (second for first, second in settings.together if given.get(first) is not None)
    missing = [name for name in (settings.evaluated_with if whole else pairs) if given.get(name) is None]
    try:
        made = settings.model_validate({**given, **ours}, context={"allow_code": allow_code})
    except ValidationError as error:
        problems = [explain(error, settings), *([must_say(missing)] if missing else [])]
        raise ValueError("; ".join(problems)) from error
    if missing:
        raise ValueError(must_say(missing))
    return made


def must_say(missing: Sequence[str]) -> str:
    """What is said of a program that lacks what trying it on a table needs."""
    *others, last = missing
    listed = f"{', '.join(others)} and {last}" if others else last
    money = 'all money has its currency, as people write it: currency = "$", or "NGN"'
    if missing == ["currency"]:
        return f"currency must be given: {money}"
    return (
        f"{listed} must be given: a program is tried on a table that has features and outcomes of the same "
        "people; add what is missing, or have a file proposed by targetdp program init (only targetdp learn "
        "and targetdp allocate do without)" + (f"; {money}" if last == "currency" else "")
    )
