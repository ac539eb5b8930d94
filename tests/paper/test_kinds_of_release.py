"""Rows, a score and a decision on real tables: what the README says, measured again with fewer plays."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from examples.kinds import BEGIN, COLUMNS, END, SETTINGS, People, authors, play, vietnam
from support.outside import AUTHORS, CREDIT, VIETNAM, needs, outside
from targetdp.programs import Lending
from targetdp.release import simulate_decisions
from targetdp.targeting import fit_scores, try_decisions

README = Path(__file__).parents[2] / "README.md"
PLAYS = 4
NEAR = 0.025
"""Accuracies of 4 plays are within so much of those of 20: some three and a half standard errors."""


@cache
def measured(name: str) -> dict[tuple[float, float], dict[str, float]]:
    people: People = {"vietnam": vietnam, "authors": authors}[name]()
    found: dict[tuple[float, float], list[dict[str, float]]] = {setting: [] for setting in SETTINGS}
    for seed in range(100, 100 + PLAYS):  # others than those of the README
        for setting, figures in play(people, seed):
            found[setting].append(figures)
    return {
        setting: {name: float(np.mean([one[name] for one in each])) for name in COLUMNS}
        for setting, each in found.items()
    }


@needs(VIETNAM)
def test_a_decision_serves_classic_privacy_best() -> None:
    """The bars are 0.760 and 0.742 (agreed: best and linear), 0.698 at ε = 2, and 0.715 (private)."""
    found = measured("vietnam")
    classic, more = found[2.0, 4.0], found[2.0, 2.0]
    assert classic["decision, agreed, best"] > 0.760 - 0.010  # three standard errors of so few plays
    assert classic["decision, agreed, linear"] > 0.742 - 0.010
    assert more["decision, agreed, best"] > 0.698 - 0.010
    assert classic["decision, private sample"] > 0.715 - 0.015
    assert classic["rows"] < classic["score"] < classic["decision, private sample"]
    assert classic["decision, private sample"] < classic["decision, agreed, linear"]
    assert abs(found[0.25, 4.0]["score"] - found[0.25, 4.0]["decision, private sample"]) < 0.015


@pytest.mark.parametrize(
    ("name", "label"),
    [
        pytest.param("vietnam", "Vietnam", marks=needs(VIETNAM)),
        pytest.param("authors", "the authors'", marks=needs(outside(AUTHORS, "replication_input.csv"))),
    ],
)
def test_the_readme_says_what_is_measured(name: str, label: str) -> None:
    text = README.read_text(encoding="utf-8")
    lines = text[text.index(BEGIN) : text.index(END)].splitlines()
    told = {
        tuple(map(float, cells[2].split(","))): [float(cell) for cell in cells[3 : 3 + len(COLUMNS)]]
        for cells in ([cell.strip() for cell in line.split("|")] for line in lines if label in line)
    }
    assert set(told) == set(SETTINGS)
    for setting, figures in measured(name).items():
        for column, said in zip(COLUMNS, told[setting], strict=True):
            assert figures[column] == pytest.approx(said, abs=NEAR), (setting, column)


@needs(CREDIT)
def test_loans_under_classic_privacy_are_within_two_points_and_a_half() -> None:
    table = pq.read_table(CREDIT)
    names = table.column_names[:15]
    X = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
    y = table["y"].to_numpy().astype(float)
    order = np.random.default_rng(0).permutation(len(y))
    asked, others = order[: len(y) // 2], order[len(y) // 2 :]
    center, deviation = X[asked].mean(axis=0), X[asked].std(axis=0)
    line = LogisticRegression(max_iter=1_000).fit((X[asked] - center) / deviation, y[asked])
    plain = float((line.predict((X[others] - center) / deviation) == y[others]).mean())
    program = Lending(y[asked], None)
    fits = fit_scores(X[asked], program, classic=True, kinds=["linear", "additive"])
    for one in try_decisions(fits, program, names, B=2, epsilon=4):
        scores = one.fitted.score.of_rows(X[others])
        bits = simulate_decisions(one.asked, scores, B=2, epsilon=4, rng=np.random.default_rng(1))
        right = float((bits == y[others]).mean())
        assert right > plain - 0.025
        assert right == pytest.approx(one.figures["accuracy"], abs=0.015)
