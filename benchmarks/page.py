"""The same tables as a Markdown page."""

from collections.abc import Sequence

from rich.table import Table

HEAD = """# Benchmarks

Written by `make bench`; do not edit. Ratios of two sides measured in one run, best of several rounds;
numbers in brackets are the range over single rounds. All times are CPU time of one thread, BLAS at one
thread, unless a table says otherwise.
"""

BARS = "Bars"
"""Title of the table that judges all ratios."""


def page(machine: str, tables: Sequence[Table]) -> str:
    """One page with all tables."""
    return "\n".join([HEAD, machine, *(_table(table) for table in tables)])


def merged(old: str, machine: str, tables: Sequence[Table]) -> str:
    """The page with some tables measured again: those take the place of older ones, and their bars too."""
    _, *blocks = old.split("\n## ")
    known = {block.split("\n", 1)[0]: f"\n## {block}".rstrip("\n") for block in blocks}
    for table in tables:
        title = str(table.title)
        again = _table(table)
        known[title] = _with_rows_of(known[title], again) if title == BARS and title in known else again
    return "\n".join([HEAD, machine, *known.values()])


def _with_rows_of(old: str, new: str) -> str:
    """A table whose rows of the same name are replaced, and others added at the end."""
    fresh = {line.split("|")[1]: line for line in new.splitlines() if line.startswith("| ")}
    lines = [
        fresh.pop(line.split("|")[1], line) if line.startswith("| ") else line for line in old.splitlines()
    ]
    last = max(i for i, line in enumerate(lines) if line.startswith("| "))
    return "\n".join([*lines[: last + 1], *fresh.values(), *lines[last + 1 :]])


def _table(table: Table) -> str:
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    headings = [str(column.header) for column in table.columns]
    marks = ["---:" if column.justify == "right" else "---" for column in table.columns]
    lines = [f"\n## {table.title}\n", _row(headings), _row(marks)]
    lines += [_row(cells) for cells in zip(*columns, strict=True)]
    if table.caption:
        lines.append(f"\n{table.caption}")
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
