"""The same tables as a Markdown page."""

from collections.abc import Sequence

from rich.table import Table

HEAD = """# Benchmarks

Written by `make bench`; do not edit. Ratios of two sides measured in one run, best of several rounds;
numbers in brackets are the range over single rounds. All times are CPU time of one thread, BLAS at one
thread, unless a table says otherwise.
"""


def page(machine: str, tables: Sequence[Table]) -> str:
    """One page with all tables."""
    return "\n".join([HEAD, machine, *(_table(table) for table in tables)])


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
