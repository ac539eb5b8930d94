"""Names of groups that look alike: pointed out wherever groups are read, and never made one."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_NAMES = 6
"""That look alike are shown in a sentence."""


@dataclass(frozen=True)
class AlikeGroups:
    """Groups of one column whose names look alike; each stays a group of its own.

    Args:
        column: The group column.
        rows: How many rows of the table have each name, as it stands there.

    Example:
        >>> AlikeGroups("sex", {"F": 20, "F ": 3}).words.partition(" look")[0]
        "group column 'sex': 'F' (20 rows) and 'F ' (3 rows)"
    """

    column: str
    rows: Mapping[str, int]

    @property
    def words(self) -> str:
        """What is said of them; names are in quotes, for a space at an end would not be seen."""
        named = [f"{name!r} ({rows:,} row{'s' * (rows != 1)})" for name, rows in self.rows.items()]
        more = [f"{len(named) - _MOST_NAMES:,} more"] if len(named) > _MOST_NAMES else []
        *others, last = [*named[:_MOST_NAMES], *more]
        return (
            f"group column {self.column!r}: {', '.join(others)} and {last} look alike and are counted as "
            "different groups; if they mean the same, give them one name in the table"
        )

    def record(self) -> dict[str, Any]:
        """Plain data."""
        names, rows = list(self.rows), list(self.rows.values())
        return {"column": self.column, "names": names, "rows": rows, "words": self.words}


def alike_groups(column: str, rows: Mapping[str, int]) -> list[AlikeGroups]:
    """Which of a column's groups look alike, given how many rows each has."""
    return [AlikeGroups(column, {name: rows[name] for name in names}) for names in alike_names(sorted(rows))]


def alike_names(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Names that look as if they meant the same: spaces, case and abbreviations apart.

    Args:
        names: Different names of groups.

    Returns:
        Sets of two names or more that are equal but for case, spaces and the way accents are written, or of
        which one may be short for another: all of its letters begin the other's first word.

    Example:
        >>> alike_names(["F", "F ", "Femme", "H", "North", "North East", "1", "10"])
        [('F', 'F ', 'Femme')]
    """
    spellings: dict[str, list[str]] = {}
    for name in names:
        plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        spellings.setdefault(plain.rstrip(".") or plain, []).append(name)
    first: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for plain in sorted(spellings):  # what is short for a name stands before it
        ends = range(1, len(plain.partition(" ")[0]))
        short = (first[plain[:i]] for i in ends if plain[:i] in first and plain[: i + 1].isalpha())
        first[plain] = next(short, plain)
        alike.setdefault(first[plain], []).extend(spellings[plain])
    return [tuple(together) for together in alike.values() if len(together) > 1]
