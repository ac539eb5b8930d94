"""What is wrong with columns of a table, in words: what it is, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from targetdp._files import toml_key
from targetdp.table._source import is_text

MOST_LINES = 12
"""So many columns with one kind of problem have a line each; more of them are counted in one line."""

_NAMED = 3
"""Columns that a line about many of them names."""

NUMBERS_AS_TEXT = "numbers stored as text"
"""The type of text that is all numbers."""

ProblemKind = Literal[
    "id", "spelling", "text", "date", "type", "words", "infinite", "gaps", "constant",
    "unknown", "unknown date", "misfit",
]  # fmt: skip

_LEAVE_OUT = "leave {it} out of [columns] release"
_CONVERT = "convert {it} to numbers first"
_POLICY: dict[ProblemKind, str] = {
    "id": "give every row an id, or drop these rows",
    "spelling": "correct them, or say in [id.spelling] how they become one spelling",
    "text": f'[kinds.{{key}}] kind = "category", levels = ["…"], distance = 0.5; or {_LEAVE_OUT}',
    "date": f'[kinds.{{key}}] kind = "date", days_from = "2026-01-01", days = 28; or {_LEAVE_OUT}',
    "type": f"{_CONVERT}, or {_LEAVE_OUT}",
    "words": f"correct these cells, or {_LEAVE_OUT}",
    "infinite": "correct or drop these rows",
    "gaps": "[gaps] {key} = 0",
    "constant": _LEAVE_OUT,
    "unknown": 'add them to [kinds.{key}], or name a level for others: other = "other"',
    "unknown date": "correct them, or say in [kinds.{key}] how dates are written: format",
    "misfit": "declare another kind: [kinds.{key}]",
}
_PLAIN = _POLICY | {
    "text": _CONVERT,
    "date": _CONVERT,
    "type": _CONVERT,
    "words": "correct these cells",
    "gaps": "fill the gaps in the table, or drop these rows",
    "constant": "leave {it} out",
    "unknown": "correct them",
    "unknown date": "correct them",
    "misfit": _CONVERT,
}
_NOUNS: dict[ProblemKind, str] = {
    "id": "rows without an id", "spelling": "odd ids", "text": "text", "date": "dates",
    "type": "no numbers", "gaps": "gaps", "words": "cells that are no numbers",
    "infinite": "infinite values", "constant": "one value only", "unknown": "values that are not declared",
    "unknown date": "values that are no dates", "misfit": "other types than are declared",
}  # fmt: skip


@dataclass(frozen=True)
class ColumnProblem:
    """Why a column cannot be released as it is, and what to do about it.

    Args:
        column: The column's name.
        what: What is wrong: ``"text"``, ``"812 gaps"``; never a person's value.
        remedy: What to do: a line of policy.toml, where one helps.
        kind: What sort of problem it is.

    Example:
        >>> problem_with("topups", "gaps", "812 gaps")
        ColumnProblem(column='topups', what='812 gaps', remedy='[gaps] topups = 0', kind='gaps')
    """

    column: str
    what: str
    remedy: str
    kind: ProblemKind


def problem_with(column: str, kind: ProblemKind, what: str, *, policy: bool = True) -> ColumnProblem:
    """A problem of one column with the remedy of its kind.

    Args:
        column: The column's name.
        kind: What sort of problem it is.
        what: What is wrong, in a few words.
        policy: Whether policy.toml can help; if not, the remedy is one for the table alone.

    Returns:
        The problem.

    Example:
        >>> problem_with("topups", "gaps", "812 gaps", policy=False).remedy
        'fill the gaps in the table, or drop these rows'
    """
    remedies = _POLICY if policy else _PLAIN
    return ColumnProblem(column, what, remedies[kind].format(it="it", key=toml_key(column)), kind)


def problem_lines(problems: Sequence[ColumnProblem], *, policy: bool = True) -> tuple[str, ...]:
    """Problems as lines of a message, in three aligned columns.

    Args:
        problems: Any number of them.
        policy: Whether policy.toml can help those who read this.

    Returns:
        A line for each problem; a kind that more than 12 columns have is one line with their number, the
        first names, and what helps all of them.

    Example:
        >>> print(*problem_lines([problem_with("topups", "gaps", "812 gaps")]))
          topups  812 gaps  [gaps] topups = 0
    """
    rows = []
    for kind in dict.fromkeys(problem.kind for problem in problems):
        alike = [problem for problem in problems if problem.kind == kind]
        if len(alike) <= MOST_LINES:
            rows += [(_shown(problem.column), problem.what, problem.remedy) for problem in alike]
            continue
        first = ", ".join(_shown(problem.column) for problem in alike[:_NAMED])
        remedy = (_POLICY if policy else _PLAIN)[kind].format(it="them", key="all" if kind == "gaps" else "…")
        rows.append((f"{len(alike):,} columns", f"{_NOUNS[kind]}: {first}, …", remedy))
    names, whats = (max((len(row[place]) for row in rows), default=0) for place in (0, 1))
    return tuple(f"  {name:<{names}}  {what:<{whats}}  {remedy}" for name, what, remedy in rows)


def type_name(kind: pa.DataType) -> str:
    """The type of a column, as a person would say it.

    Args:
        kind: Arrow's type.

    Returns:
        A few words.

    Example:
        >>> type_name(pa.int8()), type_name(pa.timestamp("s"))
        ('whole number', 'date and time')
    """
    types = pa.types
    names = {
        "yes-or-no": types.is_boolean(kind),
        "whole number": types.is_integer(kind),
        "number": types.is_floating(kind) or types.is_decimal(kind),
        "text": is_text(kind),
        "date": types.is_date(kind),
        "date and time": types.is_timestamp(kind),
        "time": types.is_time(kind),
        "duration": types.is_duration(kind),
        "list": types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind),
        "record": types.is_nested(kind),
        "empty": types.is_null(kind),
    }
    return next((name for name, fits in names.items() if fits), str(kind))


def type_problem(name: str) -> ProblemKind:
    """What sort of problem a type that is no number is.

    Args:
        name: The type, as `type_name` says it.

    Returns:
        The kind of problem.

    Example:
        >>> type_problem("date and time"), type_problem("list")
        ('date', 'type')
    """
    if name == "text":
        return "text"
    return "date" if name.startswith("date") else "type"


def _shown(name: str) -> str:
    """A name in a line: as it is, unless it would break the line."""
    return name if name.isprintable() and name == name.strip() and name else repr(name)
