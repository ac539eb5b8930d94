"""Sweeps of rows that are not clipped are for comparisons: nothing is promised, nothing can be released."""

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.release import cli
from support.tradeoff import SIMULATIONS, WITH_SCORES, files, study, sweep
from targetdp.programs import open_program
from targetdp.report import choose, read_program
from targetdp.report._figures import _choice as caption
from targetdp.tradeoff import Cell, Constraint, find_sweep, read_run, recommend, request_text, run

EVERYTHING = replace(WITH_SCORES, mechanisms=(*WITH_SCORES.mechanisms, "projection"), group_sizes=(2,))
"""A cell of every technology."""


@pytest.fixture(scope="module")
def unclipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("largest")
    run(sweep(study=study(rows="largest"), grid=EVERYTHING, simulations=2), folder / "sweep", jobs=1)
    return folder / "sweep"


def figures(folder: Path, metric: str) -> dict[tuple[str, str], float]:
    rows = pq.read_table(folder / "summary.parquet").to_pylist()
    return {(row["cell"], row["setting"]): row["mean"] for row in rows if row["metric"] == metric}


def test_no_cell_promises_anything(unclipped: Path) -> None:
    cells = read_run(unclipped)["cells"]
    assert {cell["rows"] for cell in cells} == {"largest"}
    assert [Cell(**cell).promise for cell in cells] == [None] * len(cells)
    assert all(value in {math.inf, None} for value in figures(unclipped, "exact_epsilon").values())
    derived = figures(unclipped, "distinguishing")
    assert {setting for _, setting in derived} >= {"exact", "as_printed", "corrected"}
    assert set(derived.values()) == {0.0}


def test_the_same_sweep_of_clipped_rows_does_promise(tmp_path: Path) -> None:
    run(sweep(grid=WITH_SCORES, simulations=1), tmp_path / "sweep", jobs=1)
    promised = [Cell(**cell).promise for cell in read_run(tmp_path / "sweep")["cells"]]
    assert sum(promise is not None for promise in promised) == 4
    assert max(figures(tmp_path / "sweep", "distinguishing").values()) > 0


def test_nothing_is_recommended_and_no_request_is_written(unclipped: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows = 'largest', and only clipped rows are released"):
        recommend(unclipped, [Constraint("singling_out", at_least=0.1)])
    record = read_run(unclipped)
    noisy = next(cell for cell in record["cells"] if cell["epsilon"] is not None)
    with pytest.raises(ValueError, match=r'its rows are not clipped.*sweep with rows = "clip"'):
        request_text(record, Cell(**noisy))
    page = tmp_path / "page.html"
    ran = cli("report", unclipped, "--out", page)
    assert (ran.code, page.exists()) == (2, False)
    assert "only clipped rows are released" in ran.err


def test_figures_say_that_no_guarantee_holds(unclipped: Path, tmp_path: Path) -> None:
    assert "small (rows: largest): rows are not clipped, so that no guarantee holds;" in caption.guarantees(
        [choose(read_program(unclipped))]
    )
    assert "Claimed" not in caption.guarantees([choose(read_program(unclipped))])
    ran = cli("report", "figures", unclipped, "--out", tmp_path / "figures")
    assert ran.code == 0, ran.err


def test_a_record_that_was_changed_to_clip_is_refused(unclipped: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    text = (unclipped / "run.json").read_text().replace('"rows": "largest"', '"rows": "clip"')
    (copy / "run.json").write_text(text)
    (copy / "summary.parquet").write_bytes((unclipped / "summary.parquet").read_bytes())
    with pytest.raises(ValueError, match="do not agree"):
        recommend(copy, [Constraint("singling_out", at_least=0.1)])


@pytest.mark.parametrize("rule", ["largest", "unit"])
def test_a_program_file_may_name_the_rule(tmp_path: Path, rule: str) -> None:
    path = files(tmp_path, rows=rule, quota_rule="per fold")
    opened = open_program(path)
    lengths = np.linalg.norm(opened.rows, axis=1)
    assert lengths.max() == pytest.approx(1)
    assert (lengths.min() == pytest.approx(1)) == (rule == "unit")
    assert opened.program.quota_rule == "per fold"  # type: ignore[attr-defined]
    assert find_sweep(str(path)).study.rows == rule
    assert find_sweep(str(path), rows="clip").study.rows == "clip"


def test_the_command_takes_both_rules(tmp_path: Path) -> None:
    given = ("--rows", "largest", "--quota-rule", "per fold", "--simulations", SIMULATIONS)
    ran = cli("tradeoff", files(tmp_path), *given, "--out", tmp_path / "sweep")
    assert ran.code == 0, ran.err
    assert read_run(tmp_path / "sweep")["rows"] == "largest"
    lending = find_sweep("nigeria", quick=True, rows="largest")
    assert lending.study.rows == "largest"
    with pytest.raises(ValueError, match="nigeria has a threshold and no quota"):
        find_sweep("nigeria", quota_rule="per fold")
    assert tomllib.loads((tmp_path / "program.toml").read_text()).get("rows") is None


def test_every_table_says_how_rows_came_into_the_ball(unclipped: Path) -> None:
    for name in ("results.parquet", "summary.parquet"):
        assert set(pq.read_table(unclipped / name)["rows"].to_pylist()) == {"largest"}


def test_what_the_command_prints_promises_nothing(tmp_path: Path) -> None:
    program = files(tmp_path, parts=6, rows="largest")
    ran = cli("tradeoff", program, "--simulations", "1", "--out", tmp_path / "sweep")
    assert ran.code == 0, ran.err
    assert "NOT CLIPPED, NO GUARANTEE" in " ".join(ran.out.split())
    assert "δ =" not in ran.out
    assert "the promise" not in ran.err
    assert "for comparisons only: rows = 'largest'" in " ".join(ran.err.split())
    again = cli("tradeoff", program, "--simulations", "1", "--out", tmp_path / "sweep", "--json", "--quiet")
    record = json.loads(again.out)
    assert record["rows"] == "largest"
    assert [cell["guarantee"] for cell in record["cells"]] == [None] * len(record["cells"])


def test_figures_of_both_rules_say_which_is_which(unclipped: Path, tmp_path: Path) -> None:
    run(sweep(grid=EVERYTHING, simulations=1), tmp_path / "sweep", jobs=1)
    both = [choose(read_program(folder)) for folder in (tmp_path / "sweep", unclipped)]
    assert [caption.heading(one) for one in both] == [
        "small: aid program",
        "small (rows: largest): aid program",
    ]
    words = caption.guarantees(both)
    assert words.startswith("Claimed: small ε")
    assert "small (rows: largest): rows are not clipped, so that no guarantee holds" in words
    assert "rows that are not clipped have no guarantee" in caption.without_guarantee(both)
    assert caption.without_guarantee(both[1:]) == "Nothing that is drawn here has a guarantee."


def test_a_request_cannot_be_had_from_an_edited_record(unclipped: Path) -> None:
    record = read_run(unclipped)
    noisy = next(cell for cell in record["cells"] if cell["mechanism"] == "least-noise") | {"rows": "clip"}
    with pytest.raises(ValueError, match=r"run\.json was changed by hand"):
        request_text(record, Cell(**noisy))
    made_of = record["made_of"] | {"public_record": record["made_of"]["public_record"] | {"rows": "clip"}}
    with pytest.raises(ValueError, match=r"run\.json was changed by hand"):
        request_text(record | {"made_of": made_of}, Cell(**noisy))


def test_rows_outside_the_ball_are_refused() -> None:
    with pytest.raises(ValueError, match="X has a row of length 50: sweeps are of rows in the unit ball"):
        replace(study(), X=50 * study().X)


def test_a_quota_per_fold_is_for_comparisons_too(tmp_path: Path) -> None:
    program = files(tmp_path, quota_rule="per fold")
    assert cli("tradeoff", program, "--simulations", "1", "--out", tmp_path / "sweep").code == 0
    refused = cli("report", tmp_path / "sweep", "--out", tmp_path / "page.html")
    assert refused.code == 2
    assert "quota_rule = 'per fold', and a budget has no folds" in refused.err
