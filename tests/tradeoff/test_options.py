"""What attackers reach, and the few options that an official sees first."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.tradeoff import GRID, people, study, sweep
from targetdp.attacks import row_inference, split_holdout
from targetdp.tradeoff import (
    STATUS_QUO,
    Cell,
    Constraint,
    Estimate,
    Exposure,
    compare,
    generator,
    read_figures,
    recommend,
    run,
)
from targetdp.tradeoff._choosing._options import KEEPING, options
from targetdp.tradeoff._constraints import CellResult

AIM = {"metric": "exclusion_errors", "best": "smallest"}
TODAY = {"accuracy": Estimate(0.9), "exclusion_errors": Estimate(100.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("options") / "sweep"
    run(sweep(), out)
    return out


def setting(name: str, errors: float, guess: float, gained: float, accuracy: float = 0.88) -> CellResult:
    """A release with invented figures."""
    figures = {
        "exclusion_errors": Estimate(errors), "accuracy": Estimate(accuracy),
        "best_guess_at_2": Estimate(guess), "inference": Estimate(1 - gained),
    }  # fmt: skip
    cell = Cell(name, "least-noise", B=0.25, epsilon=4.0, delta=1e-5)
    return CellResult(cell, figures, (), (), on_front=True)


def test_exposure_follows_from_the_worst_attack_of_its_kind() -> None:
    exposure = Exposure.of(
        {
            "singling_out": Estimate(0.99),
            "inference": Estimate(0.6, strongest="insider_inference: h=3, calls", anyway=0.25, right=0.55),
            "best_guess": Estimate(0.8),
            "best_guess_at_2": Estimate(0.97),
        }
    )
    assert (exposure.anyway, exposure.learned) == (0.25, 0.55)
    assert exposure.gained == pytest.approx(0.4)
    assert exposure.exposed == exposure.gained
    assert not exposure.by_stranger
    by = {"inference": Estimate(0.6, strongest="attribute_inference: h=3, calls")}
    assert Exposure.of(by).by_stranger
    assert Exposure.of(by).learned is None  # a sweep that does not say how often guesses are right anyway
    assert Exposure.of({}).exposed is None


def test_a_sweep_keeps_how_often_guesses_are_right_without_the_release(folder: Path) -> None:
    """Against the attack itself, run again by hand."""
    cell = sweep().cells[0]
    assert cell.name == STATUS_QUO
    given = study()
    working, holdout = split_holdout(given.X, given.holdout, generator(sweep().seed, cell, 0, "holdout"))
    W = given.X[working]
    found = row_inference(
        W, W, None, given.X[holdout], known=[3], population=given.X, columns=given.features,
        rng=generator(sweep().seed, cell, 0, "insider"),
    )  # fmt: skip
    rows = pq.read_table(folder / "summary.parquet").to_pylist()
    told = {
        row["setting"]: row["anyway"] for row in rows
        if (row["cell"], row["metric"]) == (STATUS_QUO, "insider_inference") and row["setting"] != "worst"
    }  # fmt: skip
    assert told == {name: pytest.approx(1 - failed) for name, failed in found.detail["p_control"].items()}
    assert 0 < max(told.values()) < 1
    # How often they are right with it: of those that fail without, the protection's share fails still.
    right = {
        row["setting"]: (row["right"], 1 - row["mean"] * (1 - row["anyway"])) for row in rows
        if row["metric"] == "insider_inference" and row["cell"] != STATUS_QUO and row["setting"] != "worst"
    }  # fmt: skip
    assert right
    for told_right, derived in right.values():
        assert told_right == pytest.approx(derived, abs=0.02)  # means of products, and products of means
    for row in rows:
        if row["metric"] == "inference":
            attack, _, name = row["strongest"].partition(": ")
            (own,) = (
                one["anyway"] for one in rows
                if (one["cell"], one["metric"], one["setting"]) == (row["cell"], attack, name)
            )  # fmt: skip
            assert row["anyway"] == own
        elif row["metric"] not in {"attribute_inference", "insider_inference"}:
            assert row["anyway"] is None


def test_options_go_from_the_least_protection_to_the_most(folder: Path) -> None:
    limit = Constraint("singling_out", at_least=0.1)
    comparison = compare(folder, [limit])
    found = {one.cell.name: one for one in comparison.settings}
    picked = [found[option.cell] for option in comparison.options]
    assert 1 < len(picked) <= len(KEEPING)
    for before, safer in pairwise(picked):
        assert safer.exposure.order[0] <= before.exposure.order[0]  # the best guess at distance 2
        assert safer.exposure.order[1] <= before.exposure.order[1]  # an insider
    assert all(one.choosable for one in picked)
    advised = [option.cell for option in comparison.options if option.recommended]
    chosen = recommend(folder, [limit]).chosen
    assert chosen is not None
    assert advised == [chosen.name]
    assert comparison.recommendation.chosen is not None
    assert comparison.recommendation.chosen.name == chosen.name


def test_no_option_is_beaten_by_a_setting_that_can_be_asked_for(folder: Path) -> None:
    comparison = compare(folder, [Constraint("singling_out", at_least=0.1)])

    def errors(name: str) -> float:
        mean = read_figures(folder)[name]["exclusion_errors"].mean
        assert mean is not None
        return mean

    for option in comparison.options:
        if option.recommended:
            continue
        mine = next(one for one in comparison.settings if one.cell.name == option.cell)
        for other in comparison.settings:
            if other.choosable and errors(other.cell.name) < errors(option.cell):
                pairs = zip(other.exposure.order[:2], mine.exposure.order[:2], strict=True)
                assert not all(theirs <= ours for theirs, ours in pairs), (other.cell.name, option.cell)


def test_the_safest_setting_is_taken_that_keeps_so_much() -> None:
    """What a setting keeps is its gain of accuracy over chance (0.5), as a share of today's (0.4)."""
    known = [
        setting("dear", 300, 0.6, 0.02, accuracy=0.55),  # keeps an eighth: too little to be an option
        setting("half", 250, 0.7, 0.05, accuracy=0.72),
        setting("most", 200, 0.8, 0.1, accuracy=0.82),
        setting("nearly all", 150, 0.9, 0.2, accuracy=0.87),
        setting("beaten", 150, 0.95, 0.3, accuracy=0.87),
        setting("free", 110, 0.99, 0.5, accuracy=0.89),
    ]
    found = options(AIM, known, None, TODAY, chance=0.5)
    assert [(one.name, one.cell) for one in found] == [
        ("Light", "nearly all"), ("Balanced", "most"), ("Strong", "half")
    ]  # fmt: skip
    advised = options(AIM, known, known[-1], TODAY, chance=0.5)
    assert [(one.cell, one.recommended) for one in advised] == [
        ("free", True), ("nearly all", False), ("most", False)
    ]  # fmt: skip


def test_what_an_insider_sees_through_is_not_called_stronger() -> None:
    """Its best guess at distance 2 is lower, and an insider learns more: it is no step on the way."""
    known = [
        setting("light", 100, 0.99, 0.3),
        setting("chosen", 150, 0.983, 0.2),
        setting("odd", 180, 0.968, 0.4),
        setting("strong", 300, 0.9, 0.1, accuracy=0.6),
    ]
    found = options(AIM, known, known[1], TODAY, chance=0.5)
    assert [one.cell for one in found] == ["light", "chosen", "strong"]


def test_fewer_settings_have_fewer_names() -> None:
    one, other = setting("one", 100, 0.9, 0.2), setting("other", 200, 0.6, 0.1)
    assert [o.name for o in options(AIM, [one], None, TODAY, chance=0.5)] == ["The one setting"]
    assert [o.name for o in options(AIM, [one, other], None, TODAY, chance=0.5)] == ["Light", "Strong"]
    nobody = CellResult(Cell("today", STATUS_QUO), one.figures, (), (), on_front=True)
    assert options(AIM, [nobody], None, TODAY, chance=0.5) == ()


def test_a_front_has_the_best_of_each_kind(folder: Path) -> None:
    settings = compare(folder, [Constraint("singling_out", at_least=0.1)]).settings
    forms = {one.cell.technology.form for one in settings}
    assert {"today", "rows", "k-anonymity"} <= forms
    for form in forms:
        front = sorted(
            (one.exposure.exposed or 0.0, one.figures["exclusion_errors"].mean or 0.0)
            for one in settings if one.on_front and one.cell.technology.form == form
        )  # fmt: skip
        assert front
        assert all(b[1] < a[1] for a, b in pairwise(front))  # whoever exposes more serves better
        for one in settings:
            if one.cell.technology.form == form:
                point = (one.exposure.exposed or 0.0, one.figures["exclusion_errors"].mean or 0.0)
                assert any(at <= point[0] and cost <= point[1] for at, cost in front)


def test_groups_are_those_of_the_program(folder: Path) -> None:
    groups = compare(folder, [Constraint("singling_out", at_least=0.1)]).groups
    assert [(one.column, one.name) for one in groups.each] == [("region", "north"), ("region", "south")]
    assert sum(one.people for one in groups.each) == pytest.approx(15_000)
    assert GRID.B  # the sweep's own grid
    rates = [groups.figure(STATUS_QUO, "exclusion_rate", one).mean for one in groups.each]
    assert all(rate is not None and 0 <= rate <= 1 for rate in rates)
    changes = [groups.change(STATUS_QUO, "extra_exclusion_errors", one).mean for one in groups.each]
    np.testing.assert_allclose(np.array(changes, dtype=float), 0, atol=1e-9)


@pytest.mark.parametrize(
    ("setting", "column"),
    [("h=9, calls", "calls"), ("inside the sample: h=3, calls", "calls"),
     ("outside the sample: h=3, a, b", "a, b"), ("h=9, length=3", "length=3"),
     ("h=9, income (h=1)", "income (h=1)"), ("h=9, depth=2, calls", "depth=2, calls"),
     ("h=9, x: h=2, y", "x: h=2, y"), ("worst", "")],
)  # fmt: skip
def test_the_column_is_named_whatever_it_is_called(setting: str, column: str) -> None:
    exposure = Exposure.of({"inference": Estimate(0.5, strongest=f"insider_inference: {setting}")})
    assert exposure.column == column


def test_the_most_that_is_guessed_in_any_column_is_kept(folder: Path) -> None:
    rows = pq.read_table(folder / "summary.parquet").to_pylist()
    for cell in {row["cell"] for row in rows}:
        own = [row for row in rows if row["cell"] == cell]
        right = [
            row["right"] for row in own
            if row["metric"] in {"attribute_inference", "insider_inference"} and row["setting"] != "worst"
        ]  # fmt: skip
        (most,) = (row["mean"] for row in own if row["metric"] == "most_guessed")
        assert most == max(right)


def test_a_recommendation_without_a_figure_of_the_program_is_no_option() -> None:
    lost = replace(setting("lost", 100, 0.9, 0.2), figures={"inference": Estimate(0.5)})
    found = options({"metric": "exclusion_errors", "best": "smallest"}, [lost], lost, {}, 0.5)
    assert found == ()


def test_groups_that_are_too_small_to_be_the_worst_are_named(folder: Path) -> None:
    """A page said 31 of 100 of the worst-hit group, and 100 of 100 of another one were missed."""
    groups = compare(folder, [Constraint("singling_out", at_least=0.1)]).groups
    _, y, labels = people()
    poor = np.argsort(y)[: round(0.3 * len(y))]
    few = {one for one in set(labels) if np.sum(np.asarray(labels)[poor] == one) < 30}
    assert {one.name for one in groups.too_few} == few
