"""Rows of a sample, then scores, simulated on invented people and, where they are at hand, on real tables."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.simulated_scores import ROWS, SCORES, WITHOUT_PRIVACY, SimulatedScores, simulate_scores
from support.outside import CREDIT, VIETNAM, needs
from targetdp import Guarantee
from targetdp._core import Floats
from targetdp.normalization import data_scales, normalize
from targetdp.populations import draw
from targetdp.programs import Aid, Lending, Loans, Program, loans_at_rates
from targetdp.targeting._sample_and_scores import part_of

QUOTA = 0.29
PROMISE = Guarantee(0.25, 4.0)

needs_real_tables = needs(VIETNAM, CREDIT)


def half(people: int, seed: int) -> Any:
    chosen = np.zeros(people, dtype=bool)
    chosen[np.random.default_rng([seed, 1]).permutation(people)[: people // 2]] = True
    return chosen


@cache
def togo() -> tuple[Floats, Aid]:
    people = draw("togo", 3_000)
    groups = {"sex": people.column("sex").tolist()}
    return normalize(people.X, data_scales(people.X)).X, Aid(people.y, QUOTA, 4_950_000, groups=groups)


@cache
def nigeria() -> tuple[Floats, Lending]:
    people = draw("nigeria", 5_000)
    loans = Loans(*(people.column(name) for name in ("loan_amount", "revenue", "interest")))
    return normalize(people.X, data_scales(people.X)).X, Lending(people.y, loans)


def played(case: Any, promise: Guarantee, times: int, metric: str = "accuracy") -> dict[str, Floats]:
    """A figure of people outside the sample, in several plays."""
    X, program = case()
    plays = [
        simulate_scores(program, X, half(len(X), seed), promise, promise, np.random.default_rng(seed)).outside
        for seed in range(times)
    ]
    return {name: np.array([play[name][metric] for play in plays]) for name in plays[0]}


# What a play is


@pytest.mark.parametrize("case", [togo, nigeria])
def test_a_play_can_be_repeated_and_hangs_on_nothing_beside(case: Any) -> None:
    X, program = case()
    sample = half(len(X), 0)
    one, again, alone = (
        simulate_scores(program, X, sample, PROMISE, PROMISE, np.random.default_rng(3), compared=compared)
        for compared in (True, True, False)
    )
    np.testing.assert_array_equal(one.chances, again.chances)
    np.testing.assert_array_equal(one.chances, alone.chances)
    assert set(one.outside) == set(one.everyone) == {SCORES, ROWS, WITHOUT_PRIVACY}
    assert set(alone.outside) == {SCORES}
    assert one.outside[SCORES].metrics == alone.outside[SCORES].metrics
    other = simulate_scores(program, X, sample, PROMISE, PROMISE, np.random.default_rng(4))
    assert not np.array_equal(one.chances, other.chances)


@pytest.mark.parametrize("case", [togo, nigeria])
def test_outcomes_of_others_are_not_learned_from(case: Any) -> None:
    X, program = case()
    sample = half(len(X), 0)
    order = np.arange(len(X))
    order[~sample] = np.random.default_rng(1).permutation(order[~sample])
    name = "consumption" if isinstance(program, Aid) else "repaid"
    shuffled = replace(program, **{name: getattr(program, name)[order]})
    one, other = (
        simulate_scores(p, X, sample, PROMISE, PROMISE, np.random.default_rng(3)) for p in (program, shuffled)
    )
    np.testing.assert_array_equal(one.chances, other.chances)
    assert one.outside[SCORES]["accuracy"] > other.outside[SCORES]["accuracy"] + 0.05


def test_figures_are_of_the_people_they_name() -> None:
    X, program = togo()
    sample = half(len(X), 0)
    found = simulate_scores(program, X, sample, PROMISE, PROMISE, np.random.default_rng(3))
    outside, everyone = found.outside[SCORES], found.everyone[SCORES]
    assert outside["people"] == (~sample).sum()
    assert outside["population"] == pytest.approx(4_950_000 / 2, rel=1e-3)
    assert everyone["people"] == len(X)
    assert everyone["eligible"] == pytest.approx(QUOTA * 4_950_000, rel=1e-3)
    assert set(outside.by_group["sex"]) == {"male", "female"}
    # Among those outside, the order is that of their chances.
    poorest = np.argsort(-found.chances[~sample])[: round(QUOTA * (~sample).sum())]
    assert outside.decisions[poorest].mean() > 0.999


def test_each_round_has_its_own_guarantee() -> None:
    """More ε for the sample gives better weights, more for the scores better scores."""
    X, program = togo()
    loud, quiet = Guarantee(2.0, 1.0), Guarantee(0.25, 8.0)

    def mean(first: Guarantee, second: Guarantee) -> float:
        plays = [
            simulate_scores(
                program, X, half(len(X), s), first, second, np.random.default_rng(s), compared=False
            )
            for s in range(6)
        ]
        return float(np.mean([play.outside[SCORES]["accuracy"] for play in plays]))

    worst, best = mean(loud, loud), mean(quiet, quiet)
    assert worst + 0.01 < mean(loud, quiet) < best
    assert worst + 0.01 < mean(quiet, loud) < best


def test_people_of_the_sample_do_not_crowd_out_the_others() -> None:
    """Chances are one scale: by groups of equal chances, both kinds of people are poor equally often."""
    X, program = togo()
    gaps = []
    for seed in range(6):
        sample = half(len(X), seed)
        found = simulate_scores(
            program, X, sample, PROMISE, PROMISE, np.random.default_rng(seed), compared=False
        )
        chosen = found.everyone[SCORES].decisions
        gaps += [
            program.poor[chosen & who].mean() - found.chances[chosen & who].mean()
            for who in (sample, ~sample)
        ]
        # Scores have less noise, so that there are more clear cases among them.
        assert found.chances[~sample].std() > found.chances[sample].std()
    assert abs(np.mean(gaps[::2])) < 0.04
    assert abs(np.mean(gaps[1::2])) < 0.04


def test_a_surveys_weights_count() -> None:
    X, program = togo()
    weights = np.where(program.consumption > np.median(program.consumption), 5.0, 1.0)
    weighted = replace(program, weights=weights)
    found = simulate_scores(weighted, X, half(len(X), 0), PROMISE, PROMISE, np.random.default_rng(1))
    assert found.weights.target_mean > np.log(program.consumption).mean() + 0.2
    plain = simulate_scores(program, X, half(len(X), 0), PROMISE, PROMISE, np.random.default_rng(1))
    assert not np.allclose(found.weights.w, plain.weights.w, atol=1e-3)


# What it achieves


@pytest.mark.parametrize("B", [0.25, 2.0])
@pytest.mark.parametrize("case", [togo, nigeria])
def test_scores_beat_rows_on_invented_people(case: Any, B: float) -> None:
    found = played(case, Guarantee(B, 4.0), 5)
    gain = found[SCORES] - found[ROWS]
    assert gain.mean() > 0
    assert gain.mean() - 2 * gain.std(ddof=1) / np.sqrt(len(gain)) > -0.005
    assert found[SCORES].mean() < found[WITHOUT_PRIVACY].mean() + 0.005


def test_scores_earn_more_than_rows() -> None:
    found = played(nigeria, Guarantee(0.25, 4.0), 4, "profit")
    assert (found[SCORES] > found[ROWS]).all()


@cache
def vietnam() -> tuple[Floats, Aid]:
    X, table = _features(VIETNAM)
    return X, Aid(table["y"].to_numpy(), QUOTA, 4_950_000)


@cache
def credit() -> tuple[Floats, Lending]:
    X, table = _features(CREDIT)
    few = slice(0, 8_000)
    loans = loans_at_rates(table["amount"].to_numpy()[few], revenue=0.15, interest=0.02)
    return X[few], Lending(table["y"].to_numpy()[few], loans)


def _features(path: Path) -> tuple[Floats, Any]:
    table = pq.read_table(path)
    names = [
        n for n in table.column_names if n not in {"y", "y_default0", "amount"} and not n.startswith("g_")
    ]
    X = np.column_stack([table[name].to_numpy() for name in names])
    return normalize(X, data_scales(X)).X, table


@needs_real_tables
@pytest.mark.parametrize(("B", "bar"), [(0.25, 0.745), (2.0, 0.67)])
def test_the_bars_on_a_real_table(B: float, bar: float) -> None:
    """Twenty plays; their mean has a deviation of 0.002 to 0.003."""
    found = played(vietnam, Guarantee(B, 4.0), 20)
    assert found[SCORES].mean() >= bar
    assert (found[SCORES] - found[ROWS]).mean() > 0.02
    assert found[WITHOUT_PRIVACY].mean() == pytest.approx(0.757, abs=0.006)


@needs_real_tables
@pytest.mark.parametrize("B", [0.25, 2.0])
def test_scores_beat_rows_on_real_applicants(B: float) -> None:
    found = played(credit, Guarantee(B, 4.0), 2)
    assert (found[SCORES] > found[ROWS] + 0.02).all()


# Bad input


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"sample": np.ones(3_000, dtype=bool)}, ValueError, "nobody"),
        ({"sample": np.zeros(3_000, dtype=bool)}, ValueError, "nobody"),
        ({"sample": np.arange(3_000) < 20}, ValueError, "people = 20"),
        ({"sample": np.ones(10, dtype=bool)}, ValueError, "true or false"),
        ({"rng": None}, TypeError, "numpy Generator"),
        ({"X": np.zeros((5, 2))}, ValueError, "true or false"),
        ({"program": "aid"}, TypeError, "Program"),
    ],
)
def test_bad_arguments(change: dict[str, Any], error: type[Exception], words: str) -> None:
    X, program = togo()
    given: dict[str, Any] = {
        "program": program, "X": X, "sample": half(len(X), 0), "first": PROMISE, "second": PROMISE,
        "rng": np.random.default_rng(0),
    }  # fmt: skip
    with pytest.raises(error, match=words):
        simulate_scores(**(given | change))


def test_a_line_needs_someone_poor() -> None:
    _, program = togo()
    assert program.line() == np.sort(program.consumption)[round(QUOTA * 3_000) - 1]
    few = part_of(replace(program, quota=0.001), np.arange(3_000) < 40)
    assert isinstance(few, Aid)
    with pytest.raises(ValueError, match="is nobody"):
        few.line()


def test_other_programs_are_refused() -> None:
    class Tombola(Program):
        kind = "tombola"
        people = togo()[1].people

        @property
        def outcomes(self) -> Floats:
            return np.zeros(3_000)

        def judge(self, scores: Any, rng: Any = None, folds: Any = None) -> Any:
            raise NotImplementedError

    with pytest.raises(TypeError, match="neither aid nor lending"):
        simulate_scores(Tombola(), togo()[0], half(3_000, 0), PROMISE, PROMISE, np.random.default_rng(0))


def test_a_simulation_says_who_spent_what() -> None:
    X, program = togo()
    second = Guarantee(0.1, 2.0)
    found = simulate_scores(
        program, X, half(len(X), 0), PROMISE, second, np.random.default_rng(0), compared=False
    )
    assert isinstance(found, SimulatedScores)
    assert (found.first, found.second) == (PROMISE, second)
    assert found.sample.sum() == 1_500
