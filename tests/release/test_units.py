"""Released rows in the table's own units: computed from the release alone, beside it."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    certificate_of,
    cli,
    holds,
    make_desk,
    nothing_changes,
    read_back,
    release,
    table_of,
    words,
    write_parquet,
)
from targetdp.release import write_in_units
from targetdp.table import Category, Date, Encoding, Ordered, nearest_values

ROWS = 60
KINDS: dict[str, dict[str, Any]] = {
    "region": {"kind": "category", "levels": ["north", "south", "west"], "distance": 0.5},
    "school": {"kind": "ordered", "levels": {"none": 0, "primary": 6, "secondary": 13}, "distance": 0.1},
    "roams": {"kind": "yes-or-no", "yes": ["oui", "O"], "no": ["non"], "distance": 0.5},
    "seen": {"kind": "date", "days_from": "2026-01-01", "days": 28, "gap_distance": 0.5},
}


def place(folder: Path, features: tuple[str, ...] = ("calls", *KINDS)) -> Path:
    rng = np.random.default_rng(1)
    table = table_of(ROWS).select(["name", "calls"])
    columns = {
        "region": [("north", "south", "west")[i] for i in rng.integers(0, 3, ROWS)],
        "school": [("none", "primary", "secondary")[i] for i in rng.integers(0, 3, ROWS)],
        "roams": [("O", "non")[i] for i in rng.integers(0, 2, ROWS)],
        "seen": [None if i % 6 == 0 else date(2026, 1, 1 + i % 28) for i in range(ROWS)],
    }
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    write_parquet(folder / "in.parquet", table)
    (folder / "scales.toml").write_text(
        'source = "public"\nreason = "a census"\n[features]\ncalls = { center = 10.0, scale = 40.0 }\n',
        encoding="utf-8",
    )
    make_desk(folder, features, kinds=KINDS, gaps={"seen": "2026-01-15"})  # fmt: skip
    return folder


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_with_next_to_no_noise_the_table_comes_back(tmp_path: Path, suffix: str) -> None:
    """Rows that are short enough not to be clipped, and ε = 90."""
    place(tmp_path)
    ran = cli(
        "privatize", tmp_path / "in.parquet", tmp_path / "out.parquet", "--desk", tmp_path / "desk",
        "--B", "0.25", "--epsilon", "90", "--yes", "--units", tmp_path / f"units.{suffix}",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert f"in the table's own units: {tmp_path / f'units.{suffix}'} (not certified" in words(ran.err)
    assert holds(tmp_path / "out.parquet")
    original = read_back(tmp_path / "in.parquet").sort_by("name")
    found = read_back(tmp_path / f"units.{suffix}")
    assert found.column_names == ["name", "calls", "region", "school", "roams", "seen", "seen=missing"]
    lengths = np.linalg.norm(np.stack([np.asarray(read_back(tmp_path / "out.parquet")[name])
        for name in certificate_of(tmp_path / "out.parquet").features]), axis=0)  # fmt: skip
    short = lengths < 0.99
    assert short.sum() > ROWS / 3
    for name in ("region", "school"):
        same = np.array(found[name].to_pylist()) == np.array(original[name].to_pylist())
        assert same[short].mean() > 0.9, name
    roams = np.array(["oui" if one == "O" else one for one in original["roams"].to_pylist()])
    assert (np.array(found["roams"].to_pylist()) == roams)[short].mean() > 0.9
    seen = [one or date(2026, 1, 15) for one in original["seen"].to_pylist()]
    apart = [abs((one - other).days) for one, other in zip(found["seen"].to_pylist(), seen, strict=True)]
    assert np.median(np.array(apart)[short]) <= 1
    missing = [one is None for one in original["seen"].to_pylist()]
    assert (np.array(found["seen=missing"].to_pylist()) == missing)[short].mean() > 0.9
    calls = np.abs(np.asarray(found["calls"]) - np.asarray(original["calls"]))
    assert np.median(calls[short]) < 1


def test_whoever_has_the_certificate_can_do_it(tmp_path: Path) -> None:
    place(tmp_path)
    release(tmp_path)
    ran = cli("verify", tmp_path / "out.parquet", "--units", tmp_path / "units.csv")
    assert ran.code == 0, ran.err
    write_in_units(tmp_path / "out.parquet", certificate_of(tmp_path / "out.parquet"), tmp_path / "b.csv")
    assert (tmp_path / "units.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    again = cli("verify", tmp_path / "out.parquet", "--units", tmp_path / "units.csv")
    assert again.code != 0
    assert "exists" in again.err


def test_a_release_that_does_not_hold_is_not_written_in_units(tmp_path: Path) -> None:
    place(tmp_path)
    release(tmp_path)
    with (tmp_path / "out.parquet").open("ab") as file:
        file.write(b"x")
    ran = cli("verify", tmp_path / "out.parquet", "--units", tmp_path / "units.csv")
    assert ran.code == 1
    assert not (tmp_path / "units.csv").exists()


@pytest.mark.parametrize(
    ("asked", "units", "message"),
    [
        ('release = "scores"\nweights = { calls = 1 }', "units.csv", "only rows have the table's own units"),
        ("", "units.xlsx", "has no known suffix"),
        ("", "out.parquet", "which must stay as it is"),
        ("", "in.parquet", "which must stay as it is"),
        ("", "desk/units.csv", "which must stay as it is"),
        ("", "older.csv", "is a release"),
        ("", "nowhere/units.csv", "its folder does not exist"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_charged(
    tmp_path: Path, asked: str, units: str, message: str
) -> None:
    """The raw table was replaced by ``--units in.parquet --force``."""
    place(tmp_path)
    (tmp_path / "older.csv.certificate.json").write_text("{}", encoding="utf-8")
    (tmp_path / "request.toml").write_text(f"B = 0.25\nepsilon = 4\n{asked}\n", encoding="utf-8")
    with nothing_changes(tmp_path):
        ran = cli(
            "privatize", tmp_path / "in.parquet", tmp_path / "out.parquet", "--desk", tmp_path / "desk",
            "--request", tmp_path / "request.toml", "--yes", "--force", "--units", tmp_path / units,
        )  # fmt: skip
    assert ran.code != 0
    assert message in words(ran.err)


def test_a_part_of_a_category_stays_numbers() -> None:
    kind = Category(kind="category", levels=("a", "b", "c"), distance=1)
    found = nearest_values(Encoding({"x": kind}), {"x=a": np.array([0.3])})
    assert found["x=a"].to_pylist() == [0.3]


def test_noise_beyond_the_calendar_and_places_in_any_order() -> None:
    kind = Ordered(kind="ordered", levels={"last": 9.0, "first": -1.0, "middle": 2.0}, distance=1)
    numbers = np.array([-np.inf, -1.0, 0.49, 0.51, 5.6, 1e300])
    found = nearest_values(Encoding({"x": kind}), {"x": numbers})["x"]
    assert found.to_pylist() == ["first", "first", "first", "middle", "last", "last"]
    dates = Encoding({"x": Date(kind="date", days_from="2026-01-01", days=1)})
    far = nearest_values(dates, {"x": np.array([-1e12, 1e300, 0.4])})["x"]
    assert far.to_pylist() == [date.min, date.max, date(2026, 1, 1)]
