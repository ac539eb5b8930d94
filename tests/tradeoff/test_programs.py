"""From a program's name or file to a sweep."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.tradeoff import FEATURES, GRID, PEOPLE, files, people
from targetdp.programs import Aid, Lending
from targetdp.tradeoff import Grid, find_sweep


def test_a_program_file_says_everything(tmp_path: Path) -> None:
    made = find_sweep(str(files(tmp_path, "confidential")))
    s = made.study
    assert (made.grid, made.simulations, made.seed) == (GRID, 3, 5)
    assert (s.name, s.source, s.features, s.people) == ("program", "confidential", FEATURES, PEOPLE)
    assert s.for_the_data_holder_only
    X, y, _ = people()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = scaled / np.maximum(1, np.linalg.norm(scaled, axis=1))[:, None]
    assert np.allclose(s.X, rows, atol=1e-12)
    assert isinstance(s.program, Aid)
    assert np.array_equal(s.program.consumption, y)
    assert (s.program.quota, s.program.population) == (0.3, 15_000)
    assert s.folds.seed == 5


def test_parts_and_scales_of_a_file(tmp_path: Path) -> None:
    lines = [f"{name} = {{ center = 0.0, scale = 2.0 }}" for name in FEATURES]
    (tmp_path / "scales.toml").write_text(
        'source = "public"\nreason = "a census"\n[features]\n' + "\n".join(lines), encoding="utf-8"
    )
    made = find_sweep(str(files(tmp_path, parts=3, scales="scales.toml", impute=0.0)))
    assert made.grid.parts == 3
    assert made.cells[-1].delta is None
    assert made.cells[1].delta == 1 / 51
    assert made.study.scales is not None
    assert made.study.scales.source == "declared"


def test_what_is_given_wins_over_the_file(tmp_path: Path) -> None:
    made = find_sweep(str(files(tmp_path)), quick=True, simulations=2, seed=9)
    assert (made.grid, made.simulations, made.seed) == (GRID.quick(), 2, 9)
    assert find_sweep(str(tmp_path / "program.toml"), quick=True).simulations == 3


def test_togo_is_built_in() -> None:
    made = find_sweep("togo")
    s = made.study
    assert (s.people, s.dimensions, s.source, s.holdout) == (4_201, 10, "synthetic", 500)
    assert (made.grid, made.simulations) == (Grid(), 50)
    assert isinstance(s.program, Aid)
    assert (s.program.quota, s.program.population) == (0.29, 4_950_000)
    assert s.program.people.groups.columns == ("sex", "region")
    assert made.cells[1].delta == 1 / 4_202
    assert s.objective == {"metric": "exclusion_errors", "best": "smallest"}
    # The paper's shape: today's accuracy well above that of a lottery.
    today = s.run(s.X, np.random.default_rng(0))
    assert today["accuracy"] == pytest.approx(0.69, abs=0.02)


SLOW = "decision-agreed"
"""It fits boosted trees to a sample of thousands, again and again: nothing for a first look."""


def test_a_quick_look_has_what_is_slow_only_where_a_file_names_it(tmp_path: Path) -> None:
    assert SLOW in find_sweep("togo").grid.mechanisms
    assert SLOW not in find_sweep("togo", quick=True).grid.mechanisms
    path = files(tmp_path)
    text = re.sub(r"(?m)^mechanisms = .*$", "", path.read_text(encoding="utf-8"))
    path.write_text(text.replace("[grid]", f'[grid]\nmechanisms = ["{SLOW}"]'), encoding="utf-8")
    assert find_sweep(str(path), quick=True).grid.mechanisms == (SLOW,)


def test_nigeria_is_built_in() -> None:
    made = find_sweep("nigeria", quick=True)
    s = made.study
    assert (s.people, s.dimensions, s.source, made.simulations) == (20_788, 15, "synthetic", 5)
    quick = Grid(parts=6).quick()
    assert made.grid == replace(quick, mechanisms=tuple(one for one in quick.mechanisms if one != SLOW))
    assert isinstance(s.program, Lending)
    assert made.cells[1].delta == 1 / 3_466
    assert s.objective == {"metric": "profit", "best": "largest"}
    units = list(made.units())
    assert max(unit.end - unit.begin for unit in units) == 2, "progress moves also where a simulation is slow"
    assert len({unit.name for unit in units}) == len(units)


@pytest.mark.parametrize("name", ["ghana", "", "no/such/file.toml"])
def test_an_unknown_program_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a file nor one of togo, nigeria|program file"):
        find_sweep(name)


def test_a_technology_that_nobody_knows_is_refused_before_the_table_is_read(tmp_path: Path) -> None:
    path = files(tmp_path)
    for name in ("magic", "mondrian"):  # k-anonymity is in every grid, by its group sizes
        text = path.read_text(encoding="utf-8").replace('["projection", "least-noise"]', f'["{name}"]')
        (tmp_path / "other.toml").write_text(
            text.replace("people.parquet", "absent.parquet"), encoding="utf-8"
        )
        with pytest.raises(
            ValueError, match=rf"other.toml: grid: mechanisms = '{name}' is not one of .*score"
        ):
            find_sweep(str(tmp_path / "other.toml"))
