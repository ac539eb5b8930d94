"""Aggregation by hand: means over simulations first, then the worst setting; intervals; what is undefined."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.tradeoff import GRID, PEOPLE
from targetdp.tradeoff._results import derived, part_of, summarize
from targetdp.tradeoff._sweep import Unit
from targetdp.tradeoff._technology import Figure, Simulated

CELL = GRID.cells(PEOPLE)[1]
T2 = 4.302652729911275
"""Student's 97.5% point for two degrees of freedom, from a table."""


def table(*simulations: list[Figure]) -> pa.Table:
    simulated = [Simulated(tuple(figures), {"program": 0.5}) for figures in simulations]
    return part_of(Unit(CELL, 0, len(simulated)), simulated)


def lines(figures: pa.Table) -> dict[tuple[str, str], Any]:
    return {(line.metric, line.setting): line for line in summarize(figures)}


def attacked(*scores: tuple[float, float]) -> pa.Table:
    return table(
        *(
            [
                Figure("singling_out", "net size 0", a, a - 0.1, a + 0.1),
                Figure("singling_out", "net size 1", b, 0, 1),
            ]
            for a, b in scores
        )
    )


def test_the_worst_of_the_means_is_not_the_mean_of_the_worst() -> None:
    found = lines(attacked((0.2, 0.9), (0.9, 0.3), (0.7, 0.3)))
    assert found["singling_out", "net size 0"].mean == pytest.approx(0.6)
    assert found["singling_out", "net size 1"].mean == pytest.approx(0.5)
    worst = found["singling_out", "worst"]
    assert (worst.mean, worst.strongest, worst.simulations) == (pytest.approx(0.5), "net size 1", 3)


def test_intervals_of_attacks_share_the_doubt() -> None:
    found = lines(attacked((0.4, 0.9), (0.5, 0.9), (0.6, 0.9)))
    reach = 6.205347 * 0.1 / math.sqrt(3)  # 98.75%: two settings share 5%
    line = found["singling_out", "net size 0"]
    assert (line.low, line.high) == (
        pytest.approx(0.5 - reach, abs=1e-6),
        pytest.approx(0.5 + reach, abs=1e-6),
    )


def test_a_single_simulation_keeps_the_attacks_own_interval() -> None:
    worst = lines(attacked((0.4, 0.5)))["singling_out", "worst"]
    assert (worst.mean, worst.strongest) == (0.4, "net size 0")
    assert (worst.low, worst.high) == (0, 0.5)


def test_program_figures_have_means_and_students_interval() -> None:
    found = lines(
        table(*([Figure("accuracy", "", x), Figure("accuracy", "sex=f", 0.5)] for x in (0.6, 0.7, 0.8)))
    )
    line = found["accuracy", ""]
    reach = T2 * 0.1 / math.sqrt(3)
    assert line.mean == pytest.approx(0.7)
    assert (line.low, line.high) == (pytest.approx(0.7 - reach), pytest.approx(0.7 + reach))
    steady = found["accuracy", "sex=f"]
    assert (steady.mean, steady.low, steady.high) == (0.5, 0.5, 0.5)


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    """2,000 cells of 5 simulations: 95% is 1,900 ± 4 deviations of 9.7."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    covered = 0
    for values in draws:
        line = lines(table(*([Figure("profit", "", float(x))] for x in values)))["profit", ""]
        assert line.low is not None
        assert line.high is not None
        covered += line.low <= 3.0 <= line.high
    assert abs(covered - 1900) < 39


def test_one_simulation_knows_no_interval() -> None:
    line = lines(table([Figure("accuracy", "", 0.7)]))["accuracy", ""]
    assert (line.mean, line.low, line.high, line.simulations) == (0.7, None, None, 1)


def test_what_is_undefined_in_one_simulation_has_no_mean() -> None:
    found = lines(table([Figure("auc", "", 0.7)], [Figure("auc", "", math.nan)]))
    assert (found["auc", ""].mean, found["auc", ""].low) == (None, None)


def test_an_endless_ratio_is_not_the_worst() -> None:
    rows = [
        [
            Figure("attribute_inference", "h=1, a", math.inf, 0, math.inf),
            Figure("attribute_inference", "h=1, b", x, 0, 1),
        ]
        for x in (0.8, 0.9)
    ]
    worst = lines(table(*rows))["attribute_inference", "worst"]
    assert (worst.mean, worst.strongest) == (pytest.approx(0.85), "h=1, b")


def test_what_is_derived_is_exact() -> None:
    found = lines(derived([Figure("distinguishing", "exact", 0.25), Figure("exact_epsilon", "", math.inf)]))
    line = found["distinguishing", "exact"]
    assert (line.mean, line.low, line.high, line.simulations) == (0.25, 0.25, 0.25, 0)
    assert found["exact_epsilon", ""].mean == math.inf


def guessed(*scores: tuple[float, float, float]) -> pa.Table:
    return table(
        *(
            [
                Figure("attribute_inference", "h=1, a", stranger, stranger - 0.01, stranger + 0.01),
                Figure("attribute_inference", "h=1, b", 1.0, 0.9, 1.0),
                Figure("insider_inference", "h=2, a", insider, insider - 0.01, insider + 0.01),
                Figure("insider_inference", "h=2, b", other, other - 0.01, other + 0.01),
            ]
            for stranger, insider, other in scores
        )
    )


def test_inference_is_the_worst_of_all_guesses_and_says_whose() -> None:
    found = lines(guessed((0.98, 0.16, 0.3), (0.96, 0.2, 0.1), (0.97, 0.18, 0.2)))
    assert found["attribute_inference", "worst"].mean == pytest.approx(0.97)
    assert found["insider_inference", "worst"].mean == pytest.approx(0.18)
    worst = found["inference", "worst"]
    assert (worst.mean, worst.simulations) == (pytest.approx(0.18), 3)
    assert worst.strongest == "insider_inference: h=2, a"
    assert [key for key in found if key[0] == "inference"] == [("inference", "worst")]
    stronger = lines(guessed((0.1, 0.16, 0.3), (0.1, 0.2, 0.3)))["inference", "worst"]
    assert stronger.strongest == "attribute_inference: h=1, a"


def test_all_guesses_share_the_doubt_of_inference() -> None:
    """Four settings in place of two share the 5%: Student's 99.375% point for two degrees of freedom."""
    found = lines(guessed((1.0, 0.4, 1.0), (1.0, 0.5, 1.0), (1.0, 0.6, 1.0)))
    own, all_four = found["insider_inference", "worst"], found["inference", "worst"]
    assert own.low == pytest.approx(max(0.0, 0.5 - 6.205347 * 0.1 / math.sqrt(3)), abs=1e-6)
    assert all_four.low is not None
    assert all_four.low == pytest.approx(max(0.0, 0.5 - 8.860235 * 0.1 / math.sqrt(3)), abs=1e-6)
    single = lines(guessed((1.0, 0.4, 1.0)))
    wider = 2.4977055 / 2.2414027  # normal points of 99.375% and 98.75%
    assert single["inference", "worst"].low == pytest.approx(0.4 - 0.01 * wider, abs=1e-6)
    assert single["insider_inference", "worst"].low == pytest.approx(0.39)


def test_a_sweep_of_one_column_has_no_inference() -> None:
    assert not any(metric == "inference" for metric, _ in lines(attacked((0.4, 0.5))))
