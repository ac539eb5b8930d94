"""Counting what is wrong with a table while it is read, so that one message can say all of it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from targetdp.table._problems import (
    NUMBERS_AS_TEXT,
    ColumnProblem,
    ProblemKind,
    problem_lines,
    problem_with,
    type_name,
    type_problem,
)
from targetdp.table._spelling import read_numbers

FIRST = 3
"""How many row numbers a message names."""

NON_NUMERIC = "non-numeric"
_MISFIT = "cannot be read as "
_KINDS: dict[str, tuple[ProblemKind, str, str]] = {
    "missing": ("gaps", "1 gap", "{} gaps"),
    "infinite": ("infinite", "1 infinite value", "{} infinite values"),
    "missing or empty id": ("id", "1 row without an id", "{} rows without an id"),
    "odd id": ("spelling", "1 id in another spelling", "{} ids in another spelling"),
    "unknown": (
        "unknown",
        "1 value that is none of those declared",
        "{} values that are none of those declared",
    ),
    "unknown date": ("unknown date", "1 value that is no date", "{} values that are no dates"),
    NON_NUMERIC: ("words", "1 cell that is no number", "{} cells that are no numbers"),
}


@dataclass
class Tally:
    """What is wrong with a table, so that one message can say all of it.

    Row numbers count from 1, without a header.

    Args:
        counts: How often each (problem, column) occurs.
        first: The first rows where it does.
        columns: The columns of numbers that were read, to say how many of them have problems.

    Example:
        >>> tally = Tally()
        >>> tally.add("infinite", "contacts", [3], offset=10)
        >>> tally.first
        {('infinite', 'contacts'): [14]}
    """

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    first: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    def add(self, problem: str, column: str, places: Any, offset: int) -> None:
        """Note a problem, if it occurs.

        Args:
            problem: What is wrong: ``"missing"``, ``"infinite"``, ``"missing or empty id"``.
            column: Where.
            places: The rows of the batch, counted from 0; none if all is well.
            offset: How many rows of the table come before this batch.
        """
        if len(places):
            rows = [int(i) + offset + 1 for i in places[:FIRST]]
            self.merge(Tally({(problem, column): len(places)}, {(problem, column): rows}))

    def add_type(self, column: str, values: pa.Array, offset: int) -> None:
        """Note a column that is no number; of text, whether most of it could be read as numbers.

        Args:
            column: Its name.
            values: Its values in a batch, of which there may be none.
            offset: How many rows of the table come before this batch.
        """
        problem = type_name(values.type)
        places: Any = range(len(values))
        if problem == "text":
            numbers, wrong = read_numbers(values.cast(pa.string()))
            readable = len(numbers) - numbers.null_count
            if readable and not wrong.true_count:
                problem = NUMBERS_AS_TEXT
            elif readable > wrong.true_count:
                problem, places = NON_NUMERIC, np.flatnonzero(wrong)
        rows = [int(i) + offset + 1 for i in places[:FIRST]]
        self.merge(Tally({(problem, column): len(places)}, {(problem, column): rows}))

    def add_misfit(self, column: str, kind: str, found: str) -> None:
        """Note a column whose type cannot be of the kind that is declared for it.

        Args:
            column: Its name.
            kind: What is declared.
            found: Its type, as `type_name` says it.
        """
        self.merge(
            Tally({(f"{_MISFIT}{kind}: {found}", column): 0}, {(f"{_MISFIT}{kind}: {found}", column): []})
        )

    def merge(self, other: "Tally") -> None:
        """Add what another tally counted in other rows."""
        self.columns = self.columns or other.columns
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
            self.first[key] = sorted(self.first.get(key, []) + other.first[key])[:FIRST]

    def problems(self, *, rows_are_numbered: bool = True, policy: bool = True) -> tuple[ColumnProblem, ...]:
        """What is wrong with each column.

        Args:
            rows_are_numbered: Whether to name rows; where their order means nothing, they are not named.
            policy: Whether policy.toml can help whoever reads this.

        Returns:
            The problems, in the order of the columns, an id first.
        """
        order = {name: place for place, name in enumerate(self.columns)}
        keys = sorted(self.counts, key=lambda key: (order.get(key[1], -1), key[1], key[0]))
        texts = {column for problem, column in keys if problem == "text"}
        return tuple(
            self._problem(key, rows_are_numbered=rows_are_numbered, policy=policy)
            for key in keys if not (key[0] in {NON_NUMERIC, NUMBERS_AS_TEXT} and key[1] in texts)
        )  # fmt: skip

    def lines(self, *, rows_are_numbered: bool = True, policy: bool = True) -> tuple[str, ...]:
        """What is wrong, as lines of a message.

        Args:
            rows_are_numbered: Whether to name rows.
            policy: Whether policy.toml can help whoever reads this.

        Returns:
            How many columns have problems, then a line for each; nothing if all is well.
        """
        problems = self.problems(rows_are_numbered=rows_are_numbered, policy=policy)
        if not problems:
            return ()
        wrong = {problem.column for problem in problems}
        total = len(wrong | set(self.columns))
        columns = f"{len(wrong):,} of {total:,} columns" if total > 1 else "1 column"
        verb, them = "released" if policy else "used", "they are" if len(wrong) > 1 else "it is"
        heading = f"{columns} cannot be {verb} as {them}:"
        return (heading, *problem_lines(problems, policy=policy))

    def raise_if_any(self, *, rows_are_numbered: bool = True) -> None:
        """Raise one error for all problems, if there are any.

        Args:
            rows_are_numbered: Whether the message names rows; where their order means nothing, it does not.

        Raises:
            ValueError: At least one problem was noted.
        """
        if self.counts:
            lines = self.lines(rows_are_numbered=rows_are_numbered)
            raise ValueError("\n".join([*lines, "Nothing was published"]))

    def _problem(self, key: tuple[str, str], *, rows_are_numbered: bool, policy: bool) -> ColumnProblem:
        problem, column = key
        if problem.startswith(_MISFIT):
            return problem_with(column, "misfit", problem, policy=policy)
        if problem not in _KINDS:
            return problem_with(column, type_problem(problem), problem, policy=policy)
        kind, one, many = _KINDS[problem]
        count, rows = self.counts[key], self.first[key]
        what = one if count == 1 else many.format(f"{count:,}")
        if rows_are_numbered:
            what += f", {'first ' if count > len(rows) else ''}in row {', '.join(map(str, rows))}"
        return problem_with(column, kind, what, policy=policy)
