"""The weights file: which weighted sums of the columns somebody asks for. It is never trusted."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from targetdp._core import Floats, check
from targetdp._files import MOST_PROBLEMS, explain, shown, toml_key, toml_value
from targetdp.mechanisms import MOST_SCORES, weights_matrix

LARGEST_FILE = 2 * 2**20
"""Bytes: a weight for each of the most columns that a release may have fits in half of it."""

_LONGEST_RELEASE = 200
_SCORE = re.compile("[A-Za-z][A-Za-z0-9_]{0,62}")
"""Names of scores go into what the data holder signs: they are names, and cannot be sentences."""

_MOST_DOTS, _MOST_DOTS_IN_ALL, _MOST_HEADERS = 16, 100_000, 100
"""In a line and in all lines, apart from their numbers: each may nest a name, and these take long to read."""

_OF_NUMBERS = "0123456789.,+-_eE[] \t\r"


def _number(value: Any) -> float:
    """Numbers are checked where all numbers are; pydantic would take text or a truth value for one."""
    try:
        return check.number("weight", value)
    except (TypeError, ValueError) as error:
        raise ValueError("a weight must be a finite number") from error


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(map(_number, value if isinstance(value, list | tuple) else [value]))


_Weights = Annotated[tuple[float, ...], BeforeValidator(_numbers, json_schema_input_type=float | list[float])]


class Learned(BaseModel):
    """Where weights come from, for people: whatever whoever learned them wants to say, and the release."""

    model_config = ConfigDict(extra="allow", frozen=True)
    release: str | None = Field(
        None, description="id of the release that the weights were learned from, as its certificate has it"
    )

    @field_validator("release")
    @classmethod
    def _plain(cls, release: str | None) -> str | None:
        return None if release is None else check.text("release", release, longest=_LONGEST_RELEASE)


class WeightsFile(BaseModel):
    """Names of the scores, and for each feature one weight, or one for each score."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="targetdp weights")
    scores: tuple[str, ...] = Field(min_length=1, description="names of the released columns")
    weights: dict[str, _Weights] = Field(
        min_length=1, description="by feature: one number, or one for each score"
    )
    learned: Learned | None = None

    @field_validator("scores")
    @classmethod
    def _plain_names(cls, scores: tuple[str, ...]) -> tuple[str, ...]:
        if len(scores) > MOST_SCORES:
            raise ValueError(
                f"scores names {len(scores):,} columns: at most {MOST_SCORES}, since each is paid for with "
                "noise on all of them"
            )
        return must_differ(must_be_plain(scores))


@dataclass(frozen=True, eq=False)
class Weights:
    """What a weights file asks for. ``matrix`` has a row for each score and a column for each feature.

    ``learned`` is what the file says about its origin: nothing of it is relied upon.
    """

    features: tuple[str, ...]
    scores: tuple[str, ...]
    matrix: Floats = field(repr=False)
    learned: Mapping[str, Any]

    @property
    def release(self) -> str | None:
        """The release that the weights were learned from, if the file says so."""
        return self.learned.get("release")

    def in_order_of(self, features: Sequence[str]) -> Floats:
        """The matrix for features in another order; a ValueError unless they are the same ones."""
        places = {name: place for place, name in enumerate(self.features)}
        released = set(features)
        missing = [name for name in features if name not in places]
        unknown = [name for name in self.features if name not in released]
        if missing or unknown:
            wrong = [
                f"{words} {_some(names)}"
                for words, names in (("has no weight for", missing), ("has weights for", unknown))
                if names
            ]
            raise ValueError(
                f"the weights file {' and '.join(wrong)}: it must name the features that are released, and "
                "no others; write 0 for one that does not count"
            )
        return np.ascontiguousarray(self.matrix[:, [places[name] for name in features]])

    def in_words(self, features: tuple[str, ...]) -> str:
        """What each score is made of."""
        rows = zip(self.scores, self.in_order_of(features), strict=True)
        return "; ".join(f"{name}: {in_words(features, row)}" for name, row in rows)


def read_weights(path: Path) -> Weights:
    """The weights of a file, or a ValueError that says what is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ValueError(f"weights file {path} cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise ValueError(f"weights file {path} has more than {LARGEST_FILE:,} bytes: ask for fewer scores")
    try:
        return _parsed(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"weights file {path} cannot be read: it is not UTF-8 text") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"weights file {path}: {error}") from error


def weights_text(
    features: Sequence[str],
    matrix: Any,
    *,
    scores: Sequence[str] = ("score",),
    learned: Mapping[str, Any] | None = None,
) -> str:
    """A weights file, as TOML: a row of ``matrix`` for each score; ``learned`` is plain data.

    It is read back and compared before it is handed over.
    """
    given = weights_matrix(matrix)
    if given.shape != (len(scores), len(features)):
        raise ValueError(
            f"matrix has shape {given.shape}: give a row for each of {len(scores)} scores and a column for "
            f"each of {len(features)} features"
        )
    lines = [f"scores = {toml_value(list(scores))}", "", "[weights]"]
    for name, column in zip(features, given.T.tolist(), strict=True):
        lines.append(f"{toml_key(name)} = {toml_value(column[0] if len(column) == 1 else column)}")
    if learned:
        lines += ["", "[learned]"]
        lines += [f"{toml_key(str(name))} = {toml_value(value)}" for name, value in learned.items()]
    text = "\n".join(lines) + "\n"
    again = _parsed(text)
    if again.features != tuple(features) or not np.array_equal(again.matrix, given):
        raise ValueError(f"features = {_some(features)}: each must be named once, in plain characters")
    return text


def must_be_plain(scores: tuple[str, ...]) -> tuple[str, ...]:
    """Whoever asks for scores names them, and the data holder signs it: no name may say anything more."""
    for name in scores:
        if not _SCORE.fullmatch(name):
            raise ValueError(
                f"scores = {shown(name)} is no plain name: use a letter, then up to 62 letters, digits or _, "
                "without accents"
            )
    return scores


def must_differ(scores: tuple[str, ...], others: Iterable[str] = ()) -> tuple[str, ...]:
    """No score may have another's name, also for tools that do not tell capital letters from small ones."""
    taken = {name.casefold(): name for name in others}
    for name in scores:
        if (plain := name.casefold()) in taken:
            raise ValueError(
                f"score {name!r} has the name of column {taken[plain]!r}, or one that many tools take for "
                "it: rename the score"
            )
        taken[plain] = name
    return scores


def _parsed(text: str) -> Weights:
    _must_be_flat(text)
    try:
        file = WeightsFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from error
    except ValidationError as error:
        raise ValueError(explain(error)) from error
    except ValueError as error:  # thousands of digits, which Python does not turn into a number
        raise ValueError(f"a number in it cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply: a weights file has two plain tables") from error
    features, q = tuple(file.weights), len(file.scores)
    wrong = [name for name in features if len(file.weights[name]) != q]
    if wrong:
        raise ValueError(
            f"{_some(wrong)}: {len(file.weights[wrong[0]])} weights, and there {'is' if q == 1 else 'are'} "
            f"{q} score{'s' if q > 1 else ''}; give one weight for each"
        )
    check.dimensions(len(features), "number of features")
    matrix = weights_matrix(np.array([file.weights[name] for name in features]).T)
    matrix.setflags(write=False)
    learned = {} if file.learned is None else file.learned.model_dump(exclude_none=True)
    return Weights(features, file.scores, matrix, learned)


def _must_be_flat(text: str) -> None:
    """Refuse what takes minutes to read, before it is read: a weights file is two plain tables."""
    headers = dots_in_all = 0
    for line in text.split("\n"):  # as TOML does; other ends of lines may be part of a name
        header = line.lstrip().startswith("[")
        headers += header
        name, _, value = line.rpartition("=")
        # What follows the last = and holds nothing but numbers names nothing, and so nests nothing.
        only_numbers = not header and not value.strip(_OF_NUMBERS)
        dots = (name if only_numbers else line).count(".")
        dots_in_all += dots
        if dots > _MOST_DOTS or dots_in_all > _MOST_DOTS_IN_ALL or headers > _MOST_HEADERS:
            raise ValueError("it is nested too deeply: a weights file has two plain tables")


def _some(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    listed = ", ".join(shown(name) for name in names[:MOST_PROBLEMS])
    more = len(names) - MOST_PROBLEMS
    return f"{listed} and {more:,} more" if more > 0 else listed


# What weights tell, in words: how much of a score is which column.

SINGLED_OUT = 0.9
"""Share from which on a score is hardly more than one column under another name."""
SHOWN = 8
"""Columns named for a score."""
_RANK = 1e-9
"""Directions shorter than this share of the longest are no directions of their own."""


class SingledOutError(ValueError):
    """Weights nearly give a column by itself, and the data holder has not said that this is meant."""

    def __init__(self, columns: dict[str, float], in_words: str) -> None:
        self.columns = columns
        names = ", ".join(f"{name!r} ({share:.0%})" for name, share in columns.items())
        super().__init__(
            f"the weights single out {names}: {in_words}. Whoever gets the scores learns "
            "nearly that column of everybody, with noise; if that is meant, say so (--yes, or accept_weights)"
        )


def singled_out(features: tuple[str, ...], weights: Floats) -> dict[str, float]:
    """The columns that scores nearly give by themselves, and how nearly (1: exactly).

    For one score it is the column's share of the squared weights. For several it is how much of the column
    lies in the space that the scores span: what one could work out of all of them, were there no noise.
    """
    scaled = weights / np.abs(weights).max(axis=1, keepdims=True)
    _, lengths, directions = np.linalg.svd(scaled, full_matrices=False)
    spanned = directions[lengths > _RANK * lengths[0]]
    shares = np.minimum(1.0, (spanned**2).sum(axis=0))
    return {name: float(share) for name, share in zip(features, shares, strict=True) if share > SINGLED_OUT}


def in_words(features: tuple[str, ...], weights: Floats) -> str:
    """One score: its columns by their share of the squared weights, the largest first."""
    with np.errstate(all="ignore"):  # a certificate may hold anything
        scaled = weights / np.abs(weights).max()
        shares = scaled**2 / np.sum(scaled**2)
    order = np.argsort(-shares, kind="stable")
    used = int(np.count_nonzero(weights))
    named = [j for j in order if weights[j] != 0][:SHOWN]
    parts = [
        f"{_percent(shares[j])} {features[j]} ({'raises' if weights[j] > 0 else 'lowers'} it)" for j in named
    ]
    rest = used - len(named)
    if rest:
        left = float(np.sum(shares[order[len(named) :]]))
        parts.append(f"{_percent(left)} {rest:,} other column{'s' if rest > 1 else ''}")
    if unused := len(features) - used:
        parts.append(f"nothing of {unused:,} column{'s' if unused > 1 else ''}")
    return ", ".join(parts)


def _percent(share: float) -> str:
    if share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"
