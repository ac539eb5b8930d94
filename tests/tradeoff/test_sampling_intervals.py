"""Intervals of a sweep know noise and sampling; the group that is hit the hardest is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from targetdp.programs import Aid, Folds, changes
from targetdp.tradeoff import Grid, Study, Sweep, run
from targetdp.tradeoff._sweep import generator

ONE = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=(5,))
CELL = "gaussian B=2 epsilon=3.5"


def study_of(n: int = 600, clusters: Any = None) -> Study:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, (n, 3))
    y = X @ [1.0, 0.5, 0.2] + 0.05 * rng.normal(size=n)
    groups = {"sex": rng.choice(["f", "m"], n).tolist(), "size": ["few"] * 5 + ["many"] * (n - 5)}
    program = Aid(y, 0.3, population=60_000, groups=groups, clusters=clusters)
    return Study("small", "synthetic", ("a", "b", "c"), X, program, Folds(n))


def summary_of(
    study: Study, folder: Path, simulations: int = 4, jobs: int = 1
) -> dict[tuple[str, str, str], Any]:
    done = run(Sweep(study, ONE, simulations=simulations), folder, jobs=jobs)
    return {(row["cell"], row["metric"], row["setting"]): row for row in done.summary.to_pylist()}


def test_it_is_the_interval_of_changes(tmp_path: Path) -> None:
    """The same people, the same simulations, person by person (`changes`), without any file between."""
    study = study_of()
    lines = summary_of(study, tmp_path / "sweep")
    sweep = Sweep(study, ONE, simulations=4)
    today = study.run(study.X, generator(0, sweep.cells[0], 0, "program"))
    cell = next(cell for cell in sweep.cells if cell.name == CELL)
    mechanism = cell.build(3)
    assert mechanism is not None
    simulations = [
        study.run(
            mechanism.privatize(study.X, generator(0, cell, i, "release")), generator(0, cell, i, "program")
        )
        for i in range(4)
    ]
    found = changes(today, simulations)
    for setting, change in (
        ("", found.everybody["exclusion_errors"]),
        ("sex=f", found.groups["sex"]["f"]["exclusion_errors"]),
        ("size=few", found.groups["size"]["few"]["exclusion_errors"]),
    ):
        line = lines[CELL, "extra_exclusion_errors", setting]
        assert line["mean"] == pytest.approx(change.difference)
        assert line["high"] - line["mean"] == pytest.approx(change.interval[1] - change.difference, rel=0.05)


def test_sampling_makes_them_wider_than_noise_alone_and_clusters_wider_still(tmp_path: Path) -> None:
    lines = summary_of(study_of(), tmp_path / "alone")
    widths = {}
    for name, clusters in (("alone", None), ("clusters", [i // 30 for i in range(600)])):
        lines = summary_of(study_of(clusters=clusters), tmp_path / f"{name}-again")
        line = lines["status quo", "exclusion_errors", ""]
        assert line["simulations"] == 1  # no noise, and an interval all the same
        widths[name] = line["high"] - line["low"]
        accuracy = lines["mondrian group_size=5", "accuracy", ""]
        assert accuracy["low"] < accuracy["mean"] < accuracy["high"]
    assert widths["alone"] > 60_000 / 600  # more than one person, who stands for a hundred
    assert widths["clusters"] != widths["alone"]
    # The status quo does not differ from itself.
    today = lines["status quo", "extra_exclusion_errors", ""]
    assert (today["mean"], today["low"], today["high"]) == (0, None, None)


def test_the_group_that_is_hit_the_hardest(tmp_path: Path) -> None:
    lines = summary_of(study_of(), tmp_path / "sweep")
    for metric, figure in (
        ("worst_group_rate", "exclusion_rate"),
        ("worst_group_rise", "extra_exclusion_rate"),
    ):
        worst = lines[CELL, metric, ""]
        own = {s: line for (c, m, s), line in lines.items() if (c, m) == (CELL, figure) and "=" in s}
        enough = {s: line for s, line in own.items() if s != "size=few"}  # five people say too little
        assert set(own) - set(enough) == {"size=few"}
        assert worst["strongest"] == max(enough, key=lambda s: enough[s]["mean"])
        assert worst["mean"] == max(line["mean"] for line in enough.values())
        assert worst["high"] == max(line["high"] for line in enough.values())


def test_sums_in_resamples_do_not_depend_on_workers_and_hold_nobody(tmp_path: Path) -> None:
    study = study_of(200)
    one, two = summary_of(study, tmp_path / "one"), summary_of(study, tmp_path / "two", jobs=2)
    assert one == two
    assert "resamples" not in study.__getstate__()


def test_intervals_cover_what_the_population_would_have(tmp_path: Path) -> None:
    """40 samples of 400 of many people: 38 should cover, and fewer than 33 do once in a thousand."""
    rng = np.random.default_rng(3)
    many = 200_000
    X = rng.uniform(-0.4, 0.4, (many, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=many)
    true = Aid(y, 0.3).judge(X[:, 0])["exclusion_rate"]
    covered, grid = (
        0,
        Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=()),
    )
    for number in range(40):
        places = rng.choice(many, 400, replace=False)
        study = Study("s", "synthetic", ("a", "b"), X[places], Aid(y[places], 0.3), Folds(400))
        done = run(Sweep(study, grid, simulations=1), tmp_path / str(number))
        line = next(
            row for row in done.summary.to_pylist()
            if (row["cell"], row["metric"], row["setting"]) == ("status quo", "exclusion_rate", "")
        )  # fmt: skip
        covered += line["low"] <= true <= line["high"]
    assert covered >= 33


def test_a_group_of_which_little_is_known_is_not_taken_for_safe(tmp_path: Path) -> None:
    """Strata of two clusters; a minority lives in one of them, and half of all resamples lack it."""
    rng = np.random.default_rng(1)
    n = 400
    X = rng.uniform(-0.4, 0.4, (n, 3))
    minority = np.arange(n) < 60
    y = np.where(minority, 0.0, 1.0) + 0.01 * rng.random(n)
    program = Aid(
        y, 0.3, groups={"g": ["minority" if m else "rest" for m in minority]},
        clusters=(np.arange(n) // 60).tolist(), strata=(np.arange(n) // 120).tolist(),
    )  # fmt: skip
    study = Study("small", "synthetic", ("a", "b", "c"), X, program, Folds(n))
    lines = summary_of(study, tmp_path / "sweep", simulations=5)
    for (_, metric, setting), line in lines.items():
        if (
            metric in {"exclusion_rate", "accuracy", "precision", "worst_group_rate"}
            and line["mean"] is not None
        ):
            assert 0 <= line["low"] <= line["mean"] <= line["high"] <= 1, (metric, setting)
    assert lines[CELL, "exclusion_rate", "g=minority"]["high"] == 1
    assert lines[CELL, "worst_group_rate", ""]["high"] == 1


def test_figures_that_are_always_equal_have_one_interval(tmp_path: Path) -> None:
    """Under a quota precision is recall."""
    lines = summary_of(study_of(), tmp_path / "sweep")
    precision, recall = (lines[CELL, name, ""] for name in ("precision", "recall"))
    assert precision["mean"] == pytest.approx(recall["mean"])
    assert precision["high"] - precision["mean"] > 1.1 * precision["noise"]
    assert precision["high"] == pytest.approx(recall["high"], abs=0.03)
