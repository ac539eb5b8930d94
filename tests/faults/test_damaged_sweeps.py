"""Damaged files of a sweep: started again it ends with the same bytes; figures that changed are not shown."""

import random
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.faults import count, mutated, times
from support.release import cli
from support.tradeoff import TINY, finished_bytes, sweep
from targetdp.tradeoff import read_figures, run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(sweep(grid=TINY), tmp_path_factory.mktemp("sweep") / "whole").folder


def test_a_sweep_that_is_started_again(whole: Path, tmp_path: Path) -> None:
    """Any file of it, three times of four a finished simulation, which would otherwise be believed."""
    rng, wanted, made = random.Random("sweep"), finished_bytes(whole), sweep(grid=TINY)
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    parts = [name for name in names if name.parts[0] == "parts"]
    for number in range(times("mutations: sweep")):
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(whole, out)
        path = out / rng.choice(names if number % 4 == 3 else parts)
        path.write_bytes(mutated(path.read_bytes(), rng))
        try:
            done = run(made, out)
        except ValueError as error:
            refused = str(error)
        else:
            refused = ""
        if refused:
            assert path.name == "run.json"
            assert re.search("damaged|holds another sweep|not of the format", refused), refused
            count("mutations: sweep", "refused")
            continue
        assert finished_bytes(out) == wanted
        assert (done.computed > 0) == (path.parent.name == "parts"), "only what was damaged is done again"
        count("mutations: sweep", "the same bytes")


def test_another_figure_in_a_sound_parquet_file(whole: Path, tmp_path: Path) -> None:
    """Not only what cannot be read: whatever is not to the last bit what the sweep wrote."""
    out = shutil.copytree(whole, tmp_path / "out")
    table = pq.read_table(out / "summary.parquet", memory_map=False)
    place = table.schema.get_field_index("mean")
    other = pa.array([0.5] * table.num_rows, pa.float64())
    pq.write_table(table.set_column(place, table.schema.field(place), other), out / "summary.parquet")
    with pytest.raises(ValueError, match=r"summary.parquet is damaged.* Run the sweep again in this folder"):
        read_figures(out)
    run(sweep(grid=TINY), out)
    assert finished_bytes(out) == finished_bytes(whole)
    assert read_figures(out) == read_figures(whole)


def test_figures_that_are_read(whole: Path, tmp_path: Path) -> None:
    rng = random.Random("figures")
    ask = ("--distinguishing", "0", "--json")
    said = cli("tradeoff", "recommend", whole, *ask)
    assert said.code == 0, said.err
    for number in range(times("mutations: figures")):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "out")
        path = tmp_path / "out" / ("run.json" if number % 3 == 0 else "summary.parquet")
        path.write_bytes(mutated(path.read_bytes(), rng))
        ran = cli("tradeoff", "recommend", tmp_path / "out", *ask)
        assert "Traceback" not in ran.err
        assert ran.code in {0, 2}, ran.err
        assert ran.code == 2 or ran.out == said.out
        assert ran.code == 0 or ran.err.startswith("error: ")
        count("mutations: figures", "the same answer" if ran.code == 0 else "refused")
