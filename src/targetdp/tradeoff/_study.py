"""What a sweep is about: rows in the unit ball, and the program that is run on them."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from targetdp._core import Floats, check
from targetdp.attacks import HOLDOUT
from targetdp.normalization import ColumnScales, RowRule
from targetdp.programs import Folds, Program, Resamples, Result, Source

EVERYBODY = ""
"""The setting of a program's figure about everybody; a group is ``column=group``."""

_OUTSIDE = 1e-9
"""How much longer than 1 a row may be by rounding."""


@dataclass(frozen=True, eq=False)
class Study:
    """A program, and the normalized rows of its people in the same order.

    Args:
        name: What files call the program.
        source: Where the rows come from: ``"public"``, ``"synthetic"`` or ``"confidential"``, whose figures
            are for the data holder only.
        features: Names of the columns of X.
        X: Rows in the unit ball, one for each person.
        program: What decides about these people.
        folds: Who is predicted together in the program's cross-validation.
        holdout: How many people are kept out of a release to measure attribute inference; 0 for the paper's
            500, or a quarter of a small table.
        scales: What brought the columns to one size, if known: with them a distance can be told in the
            columns' own units.
        unit: That of the program's figures: a currency, or whoever is counted ("people", "households").
        rows: The rule that brought the rows into the unit ball: a release clips them, so that others come
            without a guarantee.
        title: What pages and tables call the program; by default its kind and name.
        currency: Of sums of money; the unit, where the program is for money.

    Raises:
        TypeError: ``program`` or ``folds`` is of another kind.
        ValueError: Names, people or scales do not fit the table, or it has fewer than 8 people.

    Example:
        >>> from targetdp.programs import Aid, Folds
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
        >>> study = Study("small", "synthetic", ("calls", "texts"), X, Aid(X[:, 0], 0.3), Folds(40))
        >>> study.people, study.dimensions, study.holdout
        (40, 2, 10)
    """

    name: str
    source: Source
    features: tuple[str, ...]
    X: Floats = field(repr=False)
    program: Program = field(repr=False)
    folds: Folds
    holdout: int = 0
    scales: ColumnScales | None = field(default=None, repr=False)
    unit: str = "people"
    rows: RowRule = "clip"
    title: str = ""
    currency: str | None = None

    def __post_init__(self) -> None:
        X = check.table(self.X)
        n, d = X.shape
        check.instance("program", self.program, Program)
        check.instance("folds", self.folds, Folds)
        check.choice("rows", self.rows, get_args(RowRule))
        check.choice("source", self.source, get_args(Source))
        if len(self.features) != d or len(set(self.features)) < d:
            raise ValueError(
                f"features has {len(self.features)} names: give {d} different ones, one per column"
            )
        for name, count in (("program", self.program.people.count), ("folds", self.folds.people)):
            if count != n:
                raise ValueError(f"{name} has {count:,} people: X has {n:,}, and they must be the same")
        least = check.integer(
            "people", n, at_least=8, remedy="a trade-off needs people to hold out and to fit"
        )
        if self.scales is not None and len(self.scales.center) != d:
            raise ValueError(f"scales has {len(self.scales.center)} columns: X has {d}")
        longest = float(np.sqrt(np.einsum("ij,ij->i", X, X).max()))
        if longest > 1 + _OUTSIDE:
            raise ValueError(
                f"X has a row of length {longest:.6g}: sweeps are of rows in the unit ball; use normalize"
            )
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "title", self.title or _title(self.program.kind, self.name))
        if self.program.objective.is_money and self.unit != "people":
            object.__setattr__(self, "currency", self.unit)
        object.__setattr__(self, "holdout", self.holdout or min(HOLDOUT, least // 4))
        check.integer("holdout", self.holdout, at_least=1, at_most=n - 2)

    @property
    def people(self) -> int:
        """How many people the table has."""
        return len(self.X)

    @property
    def dimensions(self) -> int:
        """How many columns are released."""
        return int(self.X.shape[1])

    @property
    def objective(self) -> dict[str, str]:
        """The metric that the program is for, and which of its values is best."""
        objective = self.program.objective
        return {"metric": objective.metric, "best": objective.best}

    @property
    def counted(self) -> str:
        """What a row of the table is, in the plural."""
        return "people" if self.program.objective.is_money else self.unit

    @property
    def comparison_only(self) -> str | None:
        """Why no release can be like this sweep, if none can: its figures are for comparisons."""
        if self.rows != "clip":
            return (
                f"rows = {self.rows!r}, and only clipped rows are released, so that nothing has a guarantee"
            )
        return self.program.comparison_only

    @property
    def for_the_data_holder_only(self) -> bool:
        """Whether everything made from these rows is a statistic of people who did not agree to it."""
        return self.source == "confidential"

    def run(self, X: Floats, rng: np.random.Generator) -> Result:
        """The program on a table of features, original or private."""
        return self.program.evaluate(X, self.folds, rng)

    @cached_property
    def resamples(self) -> Resamples:
        """Other samples of the same people, the same for every cell: how figures would vary with them."""
        return Resamples.of(self.program.people, seed=0)

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """What figures of the program are about: everybody, then each group."""
        groups = self.program.people.groups
        named = zip(groups.columns, groups.labels, strict=True)
        return (EVERYBODY, *(f"{column}={label}" for column, labels in named for label in labels))

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: resamples are drawn there anew, which is quicker."""
        return {name: value for name, value in vars(self).items() if name != "resamples"}

    def scales_record(self) -> dict[str, Any] | None:
        """The scales as plain data; the values only where they may be published.

        From a confidential table's exact means everybody's row but one gives the last one away.
        """
        if self.scales is None:
            return None
        known: dict[str, Any] = {"source": self.scales.source}
        own = self.scales.source == "data" and not self.for_the_data_holder_only
        if own or self.scales.may_be_published:
            known |= {"center": self.scales.center.tolist(), "scale": self.scales.scale.tolist()}
        return known

    def digest(self) -> dict[str, str]:
        """Hashes of all that decides a sweep's figures: the rows, and the program with its outcomes."""
        return {
            "table": _digest((self.features, self.X)),
            "program": _digest((self.program, self.folds.k, self.folds.seed, self.folds.given, self.holdout)),
        }


def _title(kind: str, name: str) -> str:
    """What to call a program that has no title: aid_2024 of kind aid is Aid 2024, togo is Aid: togo."""
    words = re.sub(r"[\s_-]+", " ", name).strip()
    title = words if kind in words.lower().split() else f"{kind}: {words}"
    return title[:1].upper() + title[1:]


def _digest(value: Any) -> str:
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()


def _feed(state: Any, value: Any) -> None:
    """Types, names and exact contents, each with its length, so that no two values look alike."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        _feed(state, (str(value.dtype), value.shape))
        state.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _feed(state, type(value).__qualname__)
        _feed(state, {one.name: getattr(value, one.name) for one in fields(value) if one.init})
    elif isinstance(value, Mapping):
        _feed(state, len(value))
        for key, part in value.items():
            _feed(state, (str(key), part))
    elif isinstance(value, list | tuple | np.ndarray):
        texts = len(value) > 0 and all(type(part) is str for part in value)  # people's groups: many
        for part in [json.dumps(list(value))] if texts else [len(value), *value]:
            _feed(state, part)
    else:
        text = f"{type(value).__name__}:{value!r}".encode()
        state.update(len(text).to_bytes(8, "big") + text)


# The mark of figures that were made from confidential rows; whatever is made from them carries it on.

MARK, SOURCE, FINGERPRINT = "for_the_data_holder_only", "source", "fingerprint"
"""What `run.json` calls the mark, where the rows came from, and the hash of all that decides the figures."""

FIRST_LOOK = "first_look"
"""What `run.json` calls the reasons why a sweep is a quick look only."""


def mark_of(source: str) -> dict[str, Any]:
    """The mark that figures carry, as plain data.

    Args:
        source: Where the rows came from.

    Returns:
        The source, and whether what is made from it is for the data holder only.

    Example:
        >>> mark_of("public")
        {'source': 'public', 'for_the_data_holder_only': False}
    """
    return {SOURCE: source, MARK: source == "confidential"}


def metadata(source: str, fingerprint: str) -> dict[str, str]:
    """What the schema of every Parquet file of a sweep carries."""
    return {
        f"targetdp.{SOURCE}": source,
        f"targetdp.{MARK}": json.dumps(mark_of(source)[MARK]),
        f"targetdp.{FINGERPRINT}": fingerprint,
    }


def fingerprint_of(made_of: Mapping[str, Any]) -> str:
    """The hash of all that decides a sweep's figures, where they come from included."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def must_agree(run: Mapping[str, Any], carried: Mapping[bytes, bytes], folder: Path) -> None:
    """Refuse figures if `run.json` and the file they are in tell another source, mark or sweep.

    Does not guarantee: anything against somebody who writes a whole folder anew.
    """
    source = run["made_of"].get(SOURCE)
    stated = {SOURCE: run[SOURCE], MARK: run[MARK]}
    wanted = metadata(str(source), run[FINGERPRINT])
    differs = [
        name.partition(".")[2]
        for name, value in wanted.items() if carried.get(name.encode()) != value.encode()
    ]  # fmt: skip
    if stated != mark_of(str(source)) or fingerprint_of(run["made_of"]) != run[FINGERPRINT]:
        differs.append("what run.json itself says")
    if differs:
        raise ValueError(
            f"{folder}: run.json and the figures beside it do not agree ({', '.join(differs)}): it was "
            "changed by hand, or files of two sweeps were mixed; run the sweep again in a new folder"
        )
