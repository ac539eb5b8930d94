"""Text that a spreadsheet would take for a formula, and run, when somebody opens a CSV file in it."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_BEGINS, _NUMBER = r"^[=@+\-\t\r]", r"^[+\-][0-9 .()/\-]*$"
"""How formulas begin; and numbers, such as a telephone's, which begin like that and harm nobody."""

MARK = "'"
"""Before a formula it makes text of it, in every spreadsheet that we know."""


def is_formula(text: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """For each text whether a spreadsheet would run it."""
    begins = pc.match_substring_regex(text, _BEGINS)
    return pc.and_not(begins, pc.match_substring_regex(text, _NUMBER))


def harmless(table: pa.Table) -> pa.Table:
    """The same table with a quotation mark before every formula in its text columns.

    Telephone numbers stay as they are. Numbers that are no text cannot be formulas.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(at)
            found = pc.fill_null(is_formula(column), False)
            if pc.any(found).as_py():
                marked = pc.binary_join_element_wise(
                    pa.scalar(MARK, field.type), column, pa.scalar("", field.type)
                )
                table = table.set_column(at, field, pc.if_else(found, marked, column))
    return table


def refuse_formula_ids(ids: pa.ChunkedArray | pa.Array, name: str) -> None:
    """Ids must be text as they are: a changed one is nobody's, and nobody would be found by it."""
    found = is_formula(ids)
    if pc.any(found).as_py():
        first = ids.filter(found)[0].as_py()
        raise ValueError(
            f"id column {name!r} has {pc.sum(found).as_py():,} ids that would be run as formulas where a CSV "
            f"file is opened in a spreadsheet (first: {first[:40]!r}): write Parquet, or pseudonymize. "
            "Nothing was published"
        )


def refuse_formulas(names: Sequence[str]) -> None:
    """Column names must be text as they are: a changed one would be another column."""
    found = is_formula(pa.array(names, pa.string())).to_pylist()
    wrong = [name for name, one in zip(names, found, strict=True) if one]
    if wrong:
        raise ValueError(
            f"column {wrong[0]!r} would be run as a formula where a CSV file is opened in a spreadsheet: "
            "name it otherwise, or write Parquet"
        )
