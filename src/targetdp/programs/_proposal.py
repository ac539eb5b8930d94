"""What of a table a program could use, guessed from names and values, as a file for a person to correct."""

import os
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from targetdp._core import check, import_all
from targetdp._files import toml_value
from targetdp.programs._base import DECLARING
from targetdp.programs._settings import GridSettings, Source, make_program_settings
from targetdp.table import Column, TableProfile, check_columns, first_named, guess_id

_GROUPS = ("sex", "gender", "region", "district", "prefecture", "urban", "rural", "age_group", "ethnicity")
_GROUP_MARK = "g_"
_MOST_GROUP_VALUES = 20
_MOST_LEVELS = 10
"""Up to so many whole numbers may be levels, whatever their name; more under the name of a code are codes."""

_CODED = {
    "code", "id", "uid", "pid", "hhid", "zip", "postal", "phone", "msisdn", "imsi", "imei", "commune",
    "district", "ward", "village", "cluster", "psu", "ea", "stratum", "strata", "tract", "block",
    "municipality", "county", "province", "prefecture", "region", "department", "canton", "parish",
    "locality", "settlement", "tower", "antenna", "branch",
}  # fmt: skip
"""Last words of names whose numbers stand for places, people or things."""

_GUESSES: dict[str, type["Guess"]] = {}


@dataclass(frozen=True)
class ProgramTerms:
    """What a table cannot tell: given by a person, or an assumption that the file says is one.

    Args:
        source: Where the rows come from.
        quota: For aid, the share of people who get it.
        population: How many people the table stands for.
        currency: Of all money; lending needs it.
        title: What pages and tables call the program.
        parts: Random parts that a release is made in.
        notes: Comments of somebody who knows more, by the name of the field that they stand beside.
        heading: Lines at the top of the file.

    Example:
        >>> ProgramTerms("public", notes={"parts": "as the paper does"}).line("parts", 6)
        'parts = 6  # as the paper does'
    """

    source: Source
    quota: float | None = None
    population: float | None = None
    currency: str | None = None
    title: str | None = None
    parts: int = 1
    notes: Mapping[str, str] = field(default_factory=dict)
    heading: str = "Everything here was proposed from names and types of columns: check each line."

    def line(self, name: str, value: Any, comment: str = "") -> str:
        """A line of a program file; a note about the field takes the place of the comment."""
        # A number that is not finite is written too: whoever reads the file says what is wrong with it.
        shown = repr(value) if isinstance(value, float) else toml_value(value)
        return _commented(f"{name} = {shown}", self.notes.get(name, comment))


class Guess(ABC):
    """What `program init` guesses for one kind of program, beside features and groups, and writes down.

    A subclass names its kind, ``class AidGuess(Guess, kind="aid")``, and is found by it.
    ``estimators`` are the one that a file begins with, and one of scikit-learn's.
    """

    kind: ClassVar[str]
    estimators: ClassVar[tuple[str, str]]

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind
        _GUESSES[kind] = cls

    @classmethod
    @abstractmethod
    def target(cls, profile: TableProfile) -> str:
        """The column to predict; a ValueError that asks for it where no column is named like one."""

    @classmethod
    @abstractmethod
    def of(
        cls,
        profile: TableProfile,
        target: str,
        taken: Collection[str | None],
        given: Mapping[str, str | None],
    ) -> Self:
        """Look for the rest; ``taken`` are columns with another part to play, ``given`` is what was said."""

    @property
    def columns(self) -> dict[str, str]:
        """Its columns, with the part that each plays: none of them is a feature."""
        return {}

    def doubtful(self, names: Collection[str]) -> dict[str, str]:  # noqa: ARG002
        """Columns that had better be no features, with the reason."""
        return {}

    @abstractmethod
    def lines(self, target: str, terms: ProgramTerms) -> list[str]:
        """Lines of a program file that stand below its target."""

    def tables(self, terms: ProgramTerms) -> list[str]:  # noqa: ARG002
        """Tables of a program file that stand at its end."""
        return []


def target_named(names: Sequence[str], columns: Sequence[Column], what: str, profile: TableProfile) -> str:
    """The first of some columns with one of these names; ``what`` it has is for the message."""
    target = first_named(names, columns)
    if target is None:
        raise ValueError(
            f"target could not be guessed: say which column has {what} (--target); {profile.shown}"
        )
    return target


@dataclass(frozen=True)
class Proposal:
    """A program that a table could serve, and what was left out of it, with the reason."""

    guess: Guess
    id: str | None
    target: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    left_out: dict[str, str]


def propose(
    profile: TableProfile,
    kind: str,
    *,
    id_column: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    **own: str | None,
) -> Proposal:
    """Choose the columns that were not given. What cannot be guessed must be given.

    Args:
        profile: The table, as `profile_table` saw it.
        kind: The kind of program.
        id_column: The column that identifies a person.
        target: The column that is predicted.
        features: The columns that a release would privatize.
        groups: The columns by which figures are given.
        own: What this kind of program asks for: ``amount``, ``revenue``, ``interest`` (a column, or a rate
            of the amount) and ``repaid`` for lending. Kinds ignore what they do not know.

    Returns:
        A proposal, for a person to correct.

    Raises:
        ValueError: A column is not there, or cannot be guessed; the message says which to give.

    Example:
        >>> columns = (Column("calls", "whole", 9, 0, 1.0, 90.0), Column("income", "number", 50, 0, 0.5, 9.0))
        >>> propose(TableProfile(50, True, columns), "aid").features
        ('calls',)
    """
    import_all("targetdp.programs", DECLARING)
    guesses = _GUESSES[check.choice("kind", kind, _GUESSES)]
    single = {"id": id_column, "target": target, "amount": own.get("amount")}
    given = {key: [name] for key, name in single.items() if name is not None}
    check_columns(profile.names(), "the table", features=features or (), groups=groups or (), **given)
    name = id_column or guess_id(profile)
    outcome = target or guesses.target(profile)
    guess = guesses.of(profile, outcome, {name, outcome, *(features or ())}, own)
    taken = {
        column: part for column, part in ((name, "the id"), (outcome, "the target")) if column is not None
    }
    taken |= guess.columns
    chosen = tuple(groups) if groups is not None else _groups(profile, set(taken))
    marked = [name for name in chosen if groups is not None or name.lower().startswith(_GROUP_MARK)]
    taken |= dict.fromkeys(marked, "a group")
    taken = guess.doubtful(profile.names()) | taken
    kept, left_out = (tuple(features), {}) if features is not None else _features(profile, taken)
    return Proposal(guess, name, outcome, kept, chosen, left_out)


def _groups(profile: TableProfile, taken: set[str]) -> tuple[str, ...]:
    """Columns that are marked as groups; if none is, those of few values that are text or named like one."""
    free = [
        column for column in profile.columns
        if column.name not in taken and column.different > 1 and "=" not in column.name
    ]  # fmt: skip
    marked = [column.name for column in free if column.name.lower().startswith(_GROUP_MARK)]
    few = [column for column in free if column.different <= _MOST_GROUP_VALUES]
    likely = [
        column.name
        for column in few
        if column.kind in {"text", "yes-or-no"} or column.name.lower() in _GROUPS
    ]
    return tuple(marked or likely)


def _features(profile: TableProfile, taken: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    kept, left_out = [], {}
    for column in profile.columns:
        if column.name in taken:
            left_out[column.name] = taken[column.name]
        elif not column.is_number:
            left_out[column.name] = "not a number: encode it to use it"
        elif _is_code(column):
            left_out[column.name] = "by its name its numbers are codes, not amounts: add it if they are not"
        elif column.missing:
            left_out[column.name] = "has missing values: declare a constant (impute) to use it"
        elif column.different < 2:
            left_out[column.name] = "the same in every row"
        else:
            kept.append(column.name)
    if not kept:
        raise ValueError(
            f"features could not be guessed: no column is left; say which (--features); {profile.shown}"
        )
    return tuple(kept), left_out


def _is_code(column: Column) -> bool:
    return column.kind == "whole" and column.different > _MOST_LEVELS and is_of_codes(column.name)


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters: net_revenue, InterestPaid and LATE FEES have two each."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_of_codes(name: str) -> bool:
    """Whether whole numbers under this name would stand for something: commune, zipcode, id_village.

    It is the last word that counts: village_size is a size, and villages_visited a number of villages.
    """
    words = words_of(name)
    if not words:
        return False
    return words[-1] in _CODED or words[-1].endswith("code") or words[0] in {"code", "id"}


# The proposal as a commented file.

_SOURCES = {
    "public": "Anyone may see these rows, and any figure made of them.",
    "synthetic": "No real person is in the table.",
    "confidential": "Figures made from these rows are for the data holder only.",
}


def program_template(
    proposal: Proposal, profile: TableProfile | None, table: Path, terms: ProgramTerms
) -> str:
    """A proposed program as a commented file, once it is known that the file would be accepted.

    Ranges of columns, which are statistics, are in it only if the table was looked at and its rows are not
    confidential.

    Args:
        proposal: What `propose` chose.
        profile: The table, as `profile_table` saw it.
        table: Where the table is, relative to the program file.
        terms: What the table cannot tell.

    Returns:
        The file's text.

    Raises:
        ValueError: A program file cannot say this; the message names the field.

    Example:
        >>> columns = (Column("calls", "whole", 9, 0, 1.0, 90.0), Column("income", "number", 50, 0, 0.5, 9.0))
        >>> profile = TableProfile(50, True, columns)
        >>> terms = ProgramTerms("synthetic", quota=0.3)
        >>> text = program_template(propose(profile, "aid"), profile, Path("people.csv"), terms)
        >>> text.splitlines()[10:12]
        ['target = "income"  # 0.5 to 9', 'quota = 0.3']
    """
    guess, target, line = proposal.guess, proposal.target, terms.line
    shown = () if profile is None or terms.source == "confidential" else profile.columns
    ranges = {column.name: _range(column) for column in shown}
    ours, other = guess.estimators
    lines = [
        "# A program for targetdp. Schema: targetdp schema program.",
        *(f"# {text}" for text in terms.heading.splitlines()),
        "",
        line("kind", guess.kind),
        '# title = "…"  # what pages and tables call it; default: its kind and this file\'s name'
        if terms.title is None
        else line("title", terms.title),
        line("table", table.as_posix(), "relative to this file"),
        line("source", terms.source, _SOURCES[terms.source]),
        "# public, synthetic or confidential: the first two only if that is true of every row.",
        "",
        '# id = "…"  # no column has a different value in every row; a release needs one'
        if proposal.id is None
        else line("id", proposal.id, "a different value in every row looked at"),
        line("target", target, ranges.get(target, "")),
        *guess.lines(target, terms),
        "# population = 4950000  # how many people the table stands for; default: its own"
        if terms.population is None
        else line("population", whole(terms.population), "how many people the table stands for"),
        line("groups", proposal.groups, "every figure is also given for each of these groups"),
        "",
        "# The columns that a release would privatize. Leave out whatever is known only after the decision.",
        "features = [",
        *(_commented(f"  {toml_value(name)},", ranges.get(name, "")) for name in proposal.features),
        "]",
        *(f"# left out: {toml_value(name)} ({reason})" for name, reason in proposal.left_out.items()),
        "# impute = { column = 0.0 }  # declared constants for missing values, not learned from the table",
        '# scales = "scales.toml"     # public scales, in place of means and deviations of the table',
        "",
        line("estimator", ours, f"or any of scikit-learn's, such as {toml_value(other)}"),
        "# estimator_settings = { n_estimators = 100 }",
        "folds = 5",
        "seed = 0",
        "simulations = 50",
        line("parts", terms.parts, "random parts: δ is 1/(⌈rows/parts⌉ + 1)"),
        *guess.tables(terms),
        "",
        "[grid]  # the paper's",
        *(f"{name} = {toml_value(values)}" for name, values in GridSettings().model_dump().items()),
    ]
    text = "\n".join(lines) + "\n"
    make_program_settings(tomllib.loads(text) | {"table": table})
    return text


def whole(number: float) -> float:
    """A whole number without its point, any other as it is."""
    return int(number) if float(number).is_integer() else number


def table_as_named(table: Path, file: Path) -> Path:
    """A table as a program file names it: relative to the file.

    Args:
        table: Where the table is.
        file: Where the program file will be.

    Returns:
        The relative path.

    Example:
        >>> table_as_named(Path("data/people.csv"), Path("programs/aid.toml")).as_posix()
        '../data/people.csv'
    """
    return Path(os.path.relpath(table.absolute(), file.absolute().parent))


def describe(profile: TableProfile) -> Iterator[str]:
    """Describe a table, for the eyes of whoever holds it.

    Args:
        profile: The table, as `profile_table` saw it.

    Returns:
        The number of rows, then one line for each column.

    Example:
        >>> list(describe(TableProfile(50, True, (Column("calls", "whole", 40, 0, 1.0, 90.0),))))
        ['50 rows', '  calls: whole number, 40 different, 1 to 90']
    """
    yield f"{profile.rows:,} rows" + ("" if profile.whole else " looked at; the table has more")
    for column in profile.columns:
        missing = f", {column.missing:,} missing" if column.missing else ""
        many = "all different" if column.different == profile.rows else f"{column.different:,} different"
        values = f", {_range(column)}" if _range(column) else ""
        yield f"  {column.name}: {column.type_name}, {many}{missing}{values}"


def _range(column: Column) -> str:
    if column.lowest is None or column.highest is None:
        return ""
    return f"{column.lowest:g} to {column.highest:g}"


def _commented(text: str, comment: str) -> str:
    return f"{text}  # {comment}" if comment else text
