"""Figures of confidential rows are for the data holder: no page, file or refusal gives them to others."""

import json
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import cli
from support.tradeoff import FEATURES, files
from targetdp.programs import MARK
from targetdp.tradeoff import MARK as FIELD

EXTREMES = {"as it is": None, "a neighbor": 0.1, "extreme": 1e12}


def with_first(path: Path, moved: float | None) -> None:
    """One person's calls, moved by so much."""
    table = pq.read_table(path)
    calls = np.asarray(table.column(FEATURES[0])).copy()
    calls[0] += moved or 0.0
    pq.write_table(
        table.set_column(table.schema.names.index(FEATURES[0]), FEATURES[0], pa.array(calls)), path
    )


@pytest.fixture(scope="module", params=EXTREMES)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of confidential rows."""
    folder = tmp_path_factory.mktemp("leaks")
    program = files(folder, "confidential", simulations=2)
    with_first(folder / "people.parquet", EXTREMES[request.param])
    grid = program.read_text("utf-8").partition("[grid]")[0]
    program.write_text(f"{grid}[grid]\nB = [2.0]\nepsilon1 = [3.0]\nepsilon2 = [0.5]\nk = [100]\n", "utf-8")
    done = cli("tradeoff", program, "--out", folder / "sweep", "--quiet")
    assert done.code == 0, done.err
    return folder


def test_an_officials_page_is_refused_whatever_the_rows(ran: Path) -> None:
    """In the same words, and before anything is written."""
    before = sorted(ran.rglob("*"))
    page = ran / "page.html"
    refused = cli("report", ran / "sweep", "--out", page, "--for", "official")
    assert refused.code == 2
    assert MARK[1:] in " ".join(refused.err.split())
    assert not any(character.isdigit() for character in refused.err)
    assert sorted(ran.rglob("*")) == before


def test_the_holders_page_says_so_in_every_section_and_is_the_holders_alone(ran: Path) -> None:
    page = ran / "holder.html"
    done = cli("report", ran / "sweep", "--out", page, "--for", "data-holder", "--quiet")
    assert done.code == 0, done.err
    said = done.err.splitlines()
    assert any(MARK in line for line in said)
    assert all(line.startswith("warning: ") for line in said), "it is quiet, but for warnings"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    sections = page.read_text("utf-8").split("<section")[1:]
    assert len(sections) > 3
    assert all(MARK in section for section in sections)


def test_every_file_of_the_sweep_carries_the_mark(ran: Path) -> None:
    looked = 0
    for path in (ran / "sweep").rglob("*"):
        if path.suffix == ".parquet":
            assert pq.read_schema(path).metadata[f"targetdp.{FIELD}".encode()] == b"true", path
        elif path.suffix == ".json":
            assert json.loads(path.read_text("utf-8"))[FIELD] is True, path
        else:
            assert path.is_dir(), path
            continue
        looked += 1
    assert looked >= 3


def test_a_program_file_is_the_same_for_neighbors(tmp_path: Path) -> None:
    """It is handed around, and has no ranges of columns."""
    written = set()
    for moved in EXTREMES.values():
        files(tmp_path)
        with_first(tmp_path / "people.parquet", moved)
        program = tmp_path / "proposed.toml"
        asked = ("--kind", "aid", "--id", "id", "--target", "consumption", "--force")
        assert cli("program", "init", tmp_path / "people.parquet", *asked, "--out", program).code == 0
        written.add(program.read_text("utf-8"))
    assert len(written) == 1
