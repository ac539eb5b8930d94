"""A sweep in a folder: same bytes however it is run, nothing computed twice, nobody else's folder touched."""

import fcntl
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.tradeoff import GRID, SIMULATIONS, finished_bytes, study, sweep
from targetdp._core import Silent
from targetdp.programs import Folds, Imported, Ridge
from targetdp.tradeoff import Finished, Grid, run
from targetdp.tradeoff import _sweep as sweep_module


class Counted(Silent):
    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []
        self.done = 0

    def phase(self, name: str, rows: int | None) -> None:
        self.phases.append((name, rows))

    def advance(self, rows: int) -> None:
        self.done += rows


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run(sweep(), tmp_path_factory.mktemp("sweeps") / "whole")


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Path:
    """A finished folder without its results."""
    place = tmp_path / "copy"
    shutil.copytree(finished.folder, place)
    for name in ("results", "summary", "timing"):
        (place / f"{name}.parquet").unlink()
    return place


def rows(finished: Finished, name: str = "results", **where: Any) -> list[dict[str, Any]]:
    table = pq.read_table(finished.folder / f"{name}.parquet")
    return [row for row in table.to_pylist() if all(row[key] == value for key, value in where.items())]


def test_one_row_for_each_cell_simulation_and_metric(finished: Finished) -> None:
    table = pq.read_table(finished.folder / "results.parquet")
    assert table.column_names == [
        "cell", "mechanism", "B", "epsilon1", "epsilon2", "epsilon", "delta", "k", "parts", "group_size",
        "rows", "same_as", "simulation", "metric", "setting", "value", "anyway", "source",
    ]  # fmt: skip
    found = [(r["cell"], r["simulation"], r["metric"], r["setting"]) for r in table.to_pylist()]
    assert len(set(found)) == len(found)
    cells = [cell.name for cell in finished.sweep.cells]
    assert list(dict.fromkeys(name for name, *_ in found)) == cells
    for cell in finished.sweep.cells:
        simulated = {number for name, number, *_ in found if name == cell.name}
        assert simulated == {None, *range(SIMULATIONS if cell.is_random else 1)}
        one = rows(finished, cell=cell.name, simulation=0, metric="accuracy", setting="")
        assert (one[0]["B"], one[0]["epsilon"], one[0]["group_size"]) == (
            cell.B,
            cell.epsilon,
            cell.group_size,
        )


def test_the_summary_is_of_the_results(finished: Finished) -> None:
    for cell in ("projection B=0.25 epsilon1=3 epsilon2=0.5", "least-noise B=2 epsilon=3.9"):
        for metric, setting in (
            ("accuracy", ""),
            ("exclusion_errors", "region=north"),
            ("singling_out", "net size 1"),
        ):
            values = [r["value"] for r in rows(finished, cell=cell, metric=metric, setting=setting)]
            (line,) = rows(finished, "summary", cell=cell, metric=metric, setting=setting)
            assert len(values) == SIMULATIONS == line["simulations"]
            assert line["mean"] == pytest.approx(np.mean(values))
        (line,) = rows(finished, "summary", cell=cell, metric="exclusion_errors", setting="")
        (today,) = rows(finished, "summary", cell="status quo", metric="exclusion_errors", setting="")
        (extra,) = rows(finished, "summary", cell=cell, metric="extra_exclusion_errors", setting="")
        assert line["change"] == pytest.approx(line["mean"] - today["mean"]) == pytest.approx(extra["mean"])
        (attack,) = rows(finished, "summary", cell=cell, metric="attribute_inference", setting="worst")
        assert attack["change"] is None
        assert attack["strongest"].startswith("h=")


def test_equal_cells_share_their_simulations_and_say_so(finished: Finished) -> None:
    first, second = (f"projection B=0.25 epsilon1=3 epsilon2={e2}" for e2 in (0.5, 0.9))
    (one,) = rows(finished, cell=second, simulation=0, metric="accuracy", setting="")
    assert one["same_as"] == first
    assert rows(finished, cell=first, simulation=0, metric="accuracy", setting="")[0]["same_as"] is None

    def simulated(cell: str) -> list[tuple[Any, ...]]:
        return [
            (r["simulation"], r["metric"], r["setting"], r["value"])
            for r in rows(finished, cell=cell) if r["simulation"] is not None
        ]  # fmt: skip

    assert simulated(first) == simulated(second) != []
    printed = [
        rows(finished, cell=cell, metric="distinguishing", setting="as_printed")[0]["value"]
        for cell in (first, second)
    ]
    assert printed[0] != printed[1], "what depends on ε₂ is each cell's own"
    computed = {row["cell"] for row in finished.timing.to_pylist()}
    assert second not in computed
    assert first in computed
    random = 2 + 4  # projections that differ, and least noise
    assert finished.simulations == random * SIMULATIONS + 3


def test_started_again_nothing_is_computed(finished: Finished) -> None:
    before = finished_bytes(finished.folder)
    watch = Counted()
    again = run(sweep(), finished.folder, progress=watch)
    assert again.computed == 0
    assert finished_bytes(finished.folder) == before
    assert watch.phases[0] == ("simulations", again.simulations)
    assert watch.done == again.simulations


def test_what_is_missing_or_damaged_is_computed_again(
    finished: Finished, copied: Path, tmp_path: Path
) -> None:
    parts = sorted((copied / "parts").iterdir())
    parts[0].unlink()
    parts[1].write_bytes(parts[1].read_bytes()[:-100])
    parts[2].write_bytes(b"")
    other = run(
        sweep(seed=1, grid=Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), k=(100,))), tmp_path / "other"
    )
    foreign = {path.name: path for path in (other.folder / "parts").iterdir()}
    mine = next(path for path in parts[3:] if path.name in foreign)
    shutil.copy(foreign[mine.name], mine)
    (copied / "parts" / ".half.parquet.0123456789ab.new").write_bytes(b"half")
    (copied / ".results.parquet.0123456789ab.new").write_bytes(b"half")
    watch = Counted()
    again = run(sweep(), copied, progress=watch)
    assert 0 < again.computed <= 4 * SIMULATIONS
    assert watch.done == again.simulations
    assert finished_bytes(copied) == finished_bytes(finished.folder)
    assert not list(copied.rglob(".*"))


@pytest.mark.parametrize(("jobs", "backend"), [(2, "loky"), (3, "threading")])
def test_any_number_of_workers_gives_the_same_bytes(
    finished: Finished, tmp_path: Path, jobs: int, backend: Any
) -> None:
    watch = Counted()
    other = run(sweep(), tmp_path / "out", jobs=jobs, backend=backend, progress=watch)
    assert finished_bytes(other.folder) == finished_bytes(finished.folder)
    assert watch.done == other.simulations == other.computed


def test_cells_do_not_depend_on_the_rest_of_the_grid(finished: Finished, tmp_path: Path) -> None:
    fewer = replace(GRID, B=(2.0,), epsilon2=(0.9,), group_sizes=(5,), mechanisms=("least-noise",))
    small = run(sweep(grid=fewer), tmp_path / "small")
    for cell in small.sweep.cells:
        pairs = zip(rows(small, cell=cell.name), rows(finished, cell=cell.name), strict=True)
        assert all(mine == theirs for mine, theirs in pairs)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"seed": 1}, r"differs in seed \(0 → 1\)"),
        ({"simulations": 4}, r"differs in simulations \(3 → 4\)"),
        ({"grid": replace(GRID, B=(0.5, 2.0))}, r"differs in grid \(B \[0.25, 2.0\] → \[0.5, 2.0\]\)"),
        ({"study": study(seed=1)}, "differs in table, program"),
        ({"study": study(lending=True)}, "differs in program,"),
        ({"study": study("public")}, r"differs in source\."),
        ({"study": study("confidential")}, r"differs in source\."),
        ({"study": study(unit="$")}, r"differs in public_record \(counted people → \$\), unit\."),
    ],
)
def test_another_sweep_is_refused_and_nothing_changes(
    finished: Finished, other: dict[str, Any], reason: str
) -> None:
    before = finished_bytes(finished.folder)
    with pytest.raises(ValueError, match=reason):
        run(sweep(**other), finished.folder)
    assert finished_bytes(finished.folder) == before


def test_folds_belong_to_the_program(finished: Finished) -> None:
    s = study()
    with pytest.raises(ValueError, match="differs in program"):
        run(sweep(study=replace(s, folds=Folds(s.people, seed=1))), finished.folder)


def test_the_estimators_package_is_part_of_a_sweep() -> None:
    s = study()
    forest = Imported("sklearn.linear_model.Ridge", "regression")
    own = sweep(study=replace(s, program=replace(s.program, model=forest)))  # type: ignore[type-var]
    assert own.made_of["software"]["scikit-learn"]
    with_own_model = sweep(study=replace(s, program=replace(s.program, model=_Mine())))  # type: ignore[type-var]
    assert with_own_model.made_of["software"][__name__.partition(".")[0]].startswith("sha256 ")


class _Mine(Ridge):
    """A model that belongs to no package."""


def test_another_version_is_refused(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"differs in software \(targetdp .* → 9.9\)"):
        run(sweep(), finished.folder)


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files and no run.json"):
        run(sweep(), tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        run(sweep(), tmp_path / "thesis.doc")
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        run(sweep(), tmp_path)
    (tmp_path / "run.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="is not of the format"):
        run(sweep(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "thesis.doc"]


def test_a_cell_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    impossible = replace(GRID, mechanisms=("staircase",))
    with pytest.raises(ValueError, match=r"cell 'staircase B=0.25 epsilon=3.5' is not possible on 4 columns"):
        run(sweep(grid=impossible), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_runs_at_once_are_refused(copied: Path) -> None:
    handle = os.open(copied, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(ValueError, match="another run is at work"):
            run(sweep(), copied)
    finally:
        os.close(handle)
    assert run(sweep(), copied).computed == 0


@pytest.mark.parametrize("source", ["confidential", "synthetic"])
def test_the_mark_is_in_every_file(source: Any, tmp_path: Path) -> None:
    tiny = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), k=(100,), group_sizes=())
    done = run(sweep(study=study(source), grid=tiny, simulations=1), tmp_path / "out")
    marked = source == "confidential"
    record = json.loads((done.folder / "run.json").read_text())
    assert (record["source"], record["for_the_data_holder_only"]) == (source, marked)
    tables = sorted(done.folder.rglob("*.parquet"))
    assert len(tables) == 7 + 3
    for path in tables:
        found = pq.read_schema(path).metadata
        assert found[b"targetdp.source"] == source.encode()
        assert found[b"targetdp.for_the_data_holder_only"] == str(marked).lower().encode()
        assert found[b"targetdp.fingerprint"] == done.sweep.fingerprint.encode()
    assert (done.folder.stat().st_mode & 0o077 == 0) == marked, "nobody else may look into it"


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_confidential_figures_are_for_their_owners_eyes(mask: int, tmp_path: Path) -> None:
    """Also in a folder that was there before, and that anyone could look into."""
    tiny = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), k=(100,), group_sizes=())
    out = tmp_path / "out"
    before = os.umask(mask)
    try:
        out.mkdir(mode=0o755)
        run(sweep(study=study("confidential"), grid=tiny, simulations=1), out)
        (out / "summary.parquet").chmod(0o644)
        (out / "parts").chmod(0o755)
        run(sweep(study=study("confidential"), grid=tiny, simulations=1), out)
        other = run(sweep(grid=tiny, simulations=1), tmp_path / "other").folder
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (out, out / "parts")} == {0o700}
    assert (other / "summary.parquet").stat().st_mode & 0o777 == 0o666 & ~mask


def test_every_line_says_where_it_comes_from(finished: Finished) -> None:
    for name in ("results", "summary"):
        assert {row["source"] for row in rows(finished, name)} == {"synthetic"}


def test_somebodys_hidden_files_are_left_alone(tmp_path: Path) -> None:
    tiny = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), k=(100,), group_sizes=())
    mine = tmp_path / ".draft.new"
    mine.write_text("mine")
    for _ in range(2):
        run(sweep(grid=tiny, simulations=1), tmp_path)
        assert mine.read_text() == "mine"


def test_time_is_kept_apart(finished: Finished) -> None:
    timing = finished.timing.to_pylist()
    parts = {"privatize", "program", "singling_out", "attribute_inference", "insider_inference"}
    assert {row["part"] for row in timing} == parts
    for row in timing:
        assert row["seconds_per_simulation"] == pytest.approx(row["seconds"] / row["simulations"])
        assert 0 < row["seconds"] < 60
    own = [cell for cell in finished.sweep.cells if cell.same_as is None]
    assert len(timing) == len(parts) * len(own)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"simulations": 0}, "simulations = 0 is outside"),
        ({"seed": -1}, "seed = -1 is outside"),
        ({"grid": "paper"}, "grid = 'paper' is not a Grid"),
    ],
)
def test_bad_sweeps_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        sweep(**given)
