"""What a spreadsheet would run is text in a CSV file of ours; telephone numbers stay."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from targetdp.table import Sink, refuse_formulas
from targetdp.table._sink import harmless

RUN = [
    "=1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "+A1",
    "-A1",
    '=HYPERLINK("http://x","y")',
    "+1+cmd|' /C calc'!A0",
    "-1+1e",
]
STAYS = ["+22890123456", "-17", "+1 (555) 010-7788", "plain", "'=1", "", "1=1", "a@b", " =1", "–5"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_formulas_become_text_and_nothing_else_changes(kind: pa.DataType) -> None:
    table = pa.table(
        {"id": pa.array([*RUN, *STAYS, None], kind), "x": pa.array(range(len(RUN) + len(STAYS) + 1))}
    )
    made = harmless(table)
    assert made.schema == table.schema
    assert made["id"].to_pylist() == ["'" + text for text in RUN] + STAYS + [None]
    assert made["x"] == table["x"]


def test_a_table_without_formulas_is_the_same_object() -> None:
    table = pa.table({"id": STAYS})
    assert harmless(table) is table


def test_csv_files_have_text_and_parquet_files_what_was_given(tmp_path: Path) -> None:
    table = pa.table({"id": RUN, "x": [-1.5] * len(RUN)})
    with Sink(tmp_path / "out.csv", "csv", table.schema) as sink:
        sink.write(table)
        sink.finish()
    back = pacsv.read_csv(tmp_path / "out.csv", parse_options=pacsv.ParseOptions(newlines_in_values=True))
    assert back["id"].to_pylist() == ["'" + text for text in RUN]
    assert back["x"].to_pylist() == [-1.5] * len(RUN)
    with Sink(tmp_path / "out.parquet", "parquet", table.schema) as sink:
        sink.write(table)
        sink.finish()
    assert pa.parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == RUN


@pytest.mark.parametrize("wrong", RUN)
def test_an_id_that_is_a_formula_is_refused(wrong: str, tmp_path: Path) -> None:
    """With a mark before it, it would be another id."""
    table = pa.table({"id": ["a", wrong, wrong], "note": [wrong] * 3})
    with (
        Sink(tmp_path / "out.csv", "csv", table.schema, ids="id") as sink,
        pytest.raises(ValueError, match=r"id column 'id' has 2 ids that would be run as formulas .*Parquet"),
    ):
        sink.write(table)
    with Sink(tmp_path / "out.parquet", "parquet", table.schema, ids="id") as sink:
        sink.write(table)
        sink.finish()
    with Sink(tmp_path / "good.csv", "csv", table.schema, ids="id") as sink:
        sink.write(table.set_column(0, "id", pa.array(["a", "+4912", "-7"])))
        sink.finish()


def test_a_column_name_that_is_a_formula_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    refuse_formulas(["a", "+3", "b=c"])
    schema = pa.schema([("id", pa.string()), ("=cmd", pa.float64())])
    with pytest.raises(
        ValueError, match=r"column '=cmd' would be run as a formula .*: name it otherwise, or write"
    ):
        Sink(tmp_path / "out.csv", "csv", schema)
    assert not list(tmp_path.iterdir())
    Sink(tmp_path / "out.parquet", "parquet", schema)
