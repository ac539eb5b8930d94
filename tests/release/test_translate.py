"""Between ids and pseudonyms: only at the desk, in its one spelling, there and back."""

from pathlib import Path

import pyarrow as pa
import pytest

from support.release import make_desk, read_back, release, table_of, write_csv, write_parquet
from targetdp.release import Desk, translate_ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = table_of(40)
    ids = [f"+228 90 {i:02d} 00 00" for i in range(40)]
    write_parquet(tmp_path / "in.parquet", table.set_column(0, "name", [ids]))
    make_desk(tmp_path, pseudonyms=True, spelling={"country_code": "228", "digits": 8})
    release(tmp_path)
    return tmp_path


def desk_of(folder: Path) -> Desk:

    return Desk.open(folder / "desk")


def test_ids_in_any_spelling_become_the_pseudonyms_of_releases(folder: Path) -> None:
    write_csv(folder / "labelled.csv", pa.table({"phone": ["90030000", "0022890070000"], "label": [1, 0]}))
    found = translate_ids(desk_of(folder), folder / "labelled.csv").table
    assert found.column_names == ["id", "pseudonym"], "labels never leave whoever has them"
    assert found["id"].to_pylist() == ["90030000", "0022890070000"]
    released = set(read_back(folder / "out.parquet")["name"].to_pylist())
    assert set(found["pseudonym"].to_pylist()) < released


def test_there_and_back(folder: Path) -> None:
    chosen = read_back(folder / "out.parquet").slice(3, 7).select(["name"])
    chosen = chosen.append_column("amount", [list(range(7))])
    write_parquet(folder / "chosen.parquet", chosen)
    found = translate_ids(desk_of(folder), folder / "chosen.parquet", everybody=folder / "in.parquet")
    assert found.unknown == 0
    assert found.table.column_names == ["id", "pseudonym", "amount"]
    assert found.table["pseudonym"].to_pylist() == chosen["name"].to_pylist()
    assert found.table["amount"].to_pylist() == list(range(7))
    write_parquet(folder / "ids.parquet", found.table.select(["id"]))
    again = translate_ids(desk_of(folder), folder / "ids.parquet").table
    assert again["pseudonym"].to_pylist() == chosen["name"].to_pylist()


def test_pseudonyms_of_nobody_are_counted_and_left_out(folder: Path) -> None:
    known = read_back(folder / "out.parquet")["name"].to_pylist()[:2]
    write_parquet(folder / "chosen.parquet", pa.table({"x": [known[0], "f" * 32, known[1]], "n": [1, 2, 3]}))
    found = translate_ids(desk_of(folder), folder / "chosen.parquet", everybody=folder / "in.parquet")
    assert (found.unknown, found.table["n"].to_pylist()) == (1, [1, 3])


def test_odd_ids_are_refused(folder: Path) -> None:
    write_parquet(folder / "odd.parquet", pa.table({"phone": ["90030000", "12"]}))
    with pytest.raises(ValueError, match=r"has 1 ids? in another spelling than policy.toml's"):
        translate_ids(desk_of(folder), folder / "odd.parquet")
    with pytest.raises(ValueError, match="nope"):
        translate_ids(desk_of(folder), folder / "odd.parquet", column="nope")


def test_where_ids_go_out_as_they_are_nothing_needs_a_translation(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    write_parquet(tmp_path / "in.parquet")
    with pytest.raises(ValueError, match="nothing needs a translation"):
        translate_ids(desk, tmp_path / "in.parquet")
