"""Reading and writing one CSV file: blocks, words, and what comes back."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from targetdp.table import Dialect, Sink, TableError, open_source
from targetdp.table import _csv as csv_module
from targetdp.table._csv import CsvWriter

CSV = "separator=; decimal=, thousands=space"


@pytest.mark.parametrize("csv", ["separator=; decimal=,", CSV])
@pytest.mark.parametrize("rows", [7, 1000])
def test_words_come_as_text_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, csv: str
) -> None:
    monkeypatch.setattr(csv_module, "_CSV_BLOCK", 1 << 9)
    cells = ["oops" if i in {250, 251} else "2.5" if i == 400 else f"{i},5" for i in range(500)]
    lines = "".join(f"p{i};{x};{i}\n" for i, x in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"name;x;y\n{lines}", encoding="utf-8")
    types = {"x": pa.float64(), "y": pa.float64()}
    batches = list(
        open_source(tmp_path / "t.csv", csv=csv, keep_words=True).batches(["y", "x", "name"], types, rows)
    )
    assert [y for batch in batches for y in batch.column("y").to_pylist()] == [*map(float, range(500))]
    found = [str(x) for batch in batches for x in batch.column("x").to_pylist()]
    assert found == ["'2.5'" if c == "2.5" else c.replace(",", ".") for c in cells]
    with pytest.raises(TableError, match=r"feature 'x' has cells that are no numbers in input .*t\.csv"):
        list(open_source(tmp_path / "t.csv", csv=csv).batches(["x"], types, rows))


def test_other_types_are_read_beside_grouped_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name;x;yes\na;1 234,5;true\n", encoding="utf-8")
    types = {"x": pa.float64(), "yes": pa.bool_()}
    (batch,) = open_source(tmp_path / "t.csv", csv=CSV).batches(["yes", "x"], types, 10)
    assert batch.to_pydict() == {"yes": [True], "x": [1234.5]}


def table() -> pa.Table:
    values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.random.default_rng(1).integers(
        -300, 300, 200
    )
    values[:4] = [0.0, -0.0, 5e-324, 1.7976931348623157e308]
    texts = ['a"b', "c;d", "e,f", "", None, "g\nh", "'", "é"]
    return pa.table(
        {
            "name": [f"{i:03d}" for i in range(200)],
            "x": values,
            "t": pa.array([texts[i % 8] for i in range(200)], pa.string()),
            "yes": pa.array([(True, False, None)[i % 3] for i in range(200)]),
            "n": pa.array([None if i % 5 == 0 else i for i in range(200)], pa.int32()),
            "day": pa.array(range(200), pa.date32()),
        }
    )


@pytest.mark.parametrize(
    "csv",
    [
        Dialect(";", ","), Dialect("\t", ",", "", "utf-16"), Dialect(",", ","),
        Dialect("|", ".", "", "cp1252", "'"), Dialect(";", ",", "", "latin-1"),
    ],
)  # fmt: skip
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path: Path, csv: Dialect) -> None:
    whole = table()
    with Sink(tmp_path / "t.csv", "csv", whole.schema, csv=csv) as sink:
        for start in (0, 150):  # one encoder for all of them: a mark of byte order stands once
            sink.write(whole.slice(start, 150))
        (written,) = sink.finish()
    assert written.size == (tmp_path / "t.csv").stat().st_size
    kinds: dict[str, Any] = {"x": pa.float64(), "yes": pa.bool_(), "n": pa.int32(), "day": pa.date32()}
    batches = open_source(tmp_path / "t.csv", csv=csv).batches(whole.column_names, kinds, 64)
    back = pa.Table.from_batches(batches)
    assert back.drop_columns(["t", "x"]).equals(whole.drop_columns(["t", "x"]))
    assert back["t"].to_pylist() == [text or "" for text in whole["t"].to_pylist()]
    assert np.asarray(back["x"]).tobytes() == np.asarray(whole["x"]).tobytes()


def test_our_writer_and_arrow_s_write_the_same_plain_file() -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    whole = table()
    CsvWriter(ours, whole.schema, Dialect()).write_table(whole)
    pacsv.write_csv(whole, theirs)
    parse = pacsv.ParseOptions(newlines_in_values=True)
    one, other = (pacsv.read_csv(io.BytesIO(f.getvalue()), parse_options=parse) for f in (ours, theirs))
    assert one.equals(other)


def test_formulas_are_made_harmless_in_every_dialect(tmp_path: Path) -> None:
    whole = pa.table({"name": ["a", "b"], "t": ["=1+1", "-5"]})
    with Sink(tmp_path / "t.csv", "csv", whole.schema, ids="name", csv=Dialect(";", ",")) as sink:
        sink.write(whole)
        sink.finish()
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()[1] == '"a";"\'=1+1"'
