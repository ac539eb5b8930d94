"""What changes for whom: exact sums, and intervals that hold."""

import json
import pickle
from typing import Any

import numpy as np
import pytest

from targetdp._core import Floats
from targetdp.programs import Aid, Changes, Lending, Resamples, Result, changes, loans_at_rates


def test_changes_are_differences_in_people() -> None:
    y = np.arange(10.0)
    sex = list("ffmmffmmfm")
    program = Aid(y, 0.3, population=1_000, groups={"sex": sex})
    before = program.judge(y)
    after = program.judge(np.where(y == 1, 99, y))  # person 1, a woman, is left out for person 3, a man
    found = changes(before, [after])
    assert found.everybody["exclusion_errors"].difference == 100
    assert found.everybody["eligible"].difference == 0
    women, men = found.groups["sex"]["f"], found.groups["sex"]["m"]
    assert (women["exclusion_errors"].before, women["exclusion_errors"].after) == (0, 100)
    assert women["eligible"].difference == -100
    assert men["eligible"].difference == 100
    assert men["inclusion_errors"].difference == 100
    assert men["exclusion_errors"].difference == 0
    json.dumps(found.record(), allow_nan=False)
    assert found.record()["groups"]["sex"]["f"]["exclusion_errors"]["difference"] == 100


def test_simulations_are_averaged() -> None:
    y = np.arange(100.0)
    program = Aid(y, 0.3)
    before = program.judge(y)
    half = [before, program.judge(-y)]
    change = changes(before, half).everybody["exclusion_errors"]
    assert change.difference == 15
    once = changes(before, [half[1]]).everybody["exclusion_errors"]
    assert once.difference == 30
    # Two simulations that differ by 30 people say little about their mean.
    assert change.interval[1] - change.interval[0] > 2 * 1.9 * 15


def test_no_change_is_not_taken_for_certain_in_a_group_but_a_quota_is_fixed() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(500)
    program = Aid(y, groups={"g": ["one"] + ["rest"] * 499})
    same = program.judge(y + 0.1 * rng.random(500))
    found = changes(same, [same])
    for change in (*found.groups["g"]["rest"].values(), found.everybody["exclusion_errors"]):
        low, high = change.interval
        assert low <= 0 <= high
    low, high = found.groups["g"]["rest"]["exclusion_errors"].interval
    assert 1 < high - low < 10
    low, high = found.everybody["eligible"].interval
    assert high - low == pytest.approx(0, abs=1e-3)


def test_a_group_without_poor_people_is_not_certain_to_have_none() -> None:
    """Nobody of "rich" is poor, so nobody there can be left out; another sample may have someone."""
    y = np.arange(200.0)
    program = Aid(y, 0.3, population=2_000, groups={"g": ["rich" if one >= 100 else "rest" for one in y]})
    before = program.judge(y)
    after = program.judge(np.where(y == 10, 99.0, y))
    low, high = changes(before, [after]).groups["g"]["rich"]["exclusion_errors"].interval
    person = 10 * 2.2414027276  # one of the table stands for ten; two groups share 5%
    assert (low, high) == pytest.approx((-person, person))


def test_few_simulations_hardly_tell_how_large_noise_is() -> None:
    """All applicants share the noise; 5% of intervals may miss what is its mean over many simulations."""
    rng = np.random.default_rng(7)
    n, total = 1_000, 400
    level = rng.random(n)
    program = Lending(np.ones(n), loans_at_rates(np.ones(n), revenue=0.1, interest=0.0))
    before = program.judge(np.full(n, 0.999))
    covered = 0
    for _ in range(total):
        # The share above 0.5 is 0.5 plus one draw for all: nearly all doubt is about that draw.
        simulated = [program.judge(np.clip(level + 0.1 * rng.standard_normal(), 0, 1)) for _ in range(3)]
        low, high = changes(before, simulated).everybody["approvals"].interval
        covered += low <= -n * float(np.mean(level <= 0.5)) <= high
    assert 0.925 * total <= covered <= 0.99 * total


def approvals(groups: dict[str, list[str]], confidence: float = 0.95) -> Changes:
    """The same 400 applicants and the same two sets of scores, in other groups."""
    rng = np.random.default_rng(1)
    repaid, scores = (rng.random(400) < 0.7).astype(np.float64), rng.random((2, 400))
    program = Lending(repaid, loans_at_rates(np.ones(400), revenue=0.1, interest=0.0), groups=groups)
    return changes(program.judge(scores[0]), [program.judge(scores[1])], confidence=confidence)


def test_groups_share_their_columns_doubt_and_not_another_columns() -> None:
    tenths = [str(i % 10) for i in range(400)]
    alone, beside = approvals({"g": ["a"] * 400}), approvals({"g": ["a"] * 400, "h": tenths})
    assert alone.groups["g"]["a"]["approvals"] == alone.everybody["approvals"]
    assert beside.groups["g"]["a"]["approvals"] == alone.everybody["approvals"]
    # Ten groups at 95% have the doubt of one in ten each, two groups at 99% of one in two: the same.
    ten = approvals({"h": tenths})
    two = approvals({"h": ["1" if tenth == "1" else "0" for tenth in tenths]}, 0.99)
    assert ten.groups["h"]["1"]["approvals"].interval == pytest.approx(
        two.groups["h"]["1"]["approvals"].interval
    )


def test_an_interval_is_from_each_persons_influence() -> None:
    """The slow twin: everyone's influence on a group's exclusion errors, written out person by person."""
    rng = np.random.default_rng(3)
    n, q = 300, 90
    y, before, after = rng.random(n), rng.random(n), rng.random(n)
    weights = rng.uniform(0.5, 2, n)
    inside = rng.random(n) < 0.4
    for weighted in (False, True):
        program = Aid(
            y, 0.3, weights=weights if weighted else None, groups={"g": inside.astype(str).tolist()}
        )
        w = program.people.weights
        old, new = program.judge(before), program.judge(after)
        influence = np.zeros(n)
        for result, sign in ((new, 1), (old, -1)):
            effect = effect_of(program, result, inside)
            out = program.poor & ~result.decisions & inside
            influence += sign * w * (out - effect * result.decisions)
        could = program.poor & inside
        someone = ((w * (-1 - effect_of(program, new, inside))) ** 2)[could].mean()
        outside = effect_of(program, new, inside) ** 2
        variance = ((influence - influence.mean()) ** 2).sum() + max(someone, outside)
        change = changes(old, [new]).groups["g"]["True"]["exclusion_errors"]
        reach = 2.2414027276 * np.sqrt(variance)  # two groups share 5%
        assert change.interval[1] - change.difference == pytest.approx(reach, rel=0.15)  # 200 resamples: 5%
        many = Resamples.of(program.people, 1, 20_000)
        moved = many.sums(new)["exclusion_errors"] - many.sums(old)["exclusion_errors"]
        place = 1 + program.people.groups.labels[0].index("True")
        known = ((influence - influence.mean()) ** 2).sum() * n / (n - 1)
        # Resamples also keep the sum of weights, which the linear influence does not know.
        assert moved[:, place].var() == pytest.approx(known, rel=0.06)
        assert weighted or old.decisions.sum() == q


def effect_of(program: Aid, result: Result, inside: Any) -> float:
    """What one more place does to the group: the mean over √300 people on either side of the cut."""
    w, seats = program.people.weights, int(result.decisions.sum())
    near = np.argsort(result.scores)[seats - 17 : seats + 17]
    return float(-(w * program.poor * inside)[near].sum() / w[near].sum())


Draw = tuple[Floats, Floats, Floats, list[str]]


def draw(rng: np.random.Generator, n: int) -> Draw:
    """People, their scores before and after; a group of one in fifty is hit harder."""
    wealth, small = rng.standard_normal(n), rng.random(n) < 0.02
    before = 0.7 * wealth + 0.7 * rng.standard_normal(n)
    after = before + 0.5 * rng.standard_normal(n) + 0.3 * small
    return np.exp(wealth), before, after, ["small" if one else "large" for one in small]


def test_intervals_cover_the_truth_and_are_not_idle() -> None:
    """300 samples of 800 people: 95% ± 1.3% would be exact. Half as wide, they would miss often."""
    rng = np.random.default_rng(5)
    y, before, after, groups = draw(rng, 400_000)
    program = Aid(y, groups={"g": groups})
    truth = changes(program.judge(before, rng), [program.judge(after, rng)])
    covered, half, together, total = 0, 0, 0, 300
    for _ in range(total):
        y, before, after, groups = draw(rng, 800)
        sample = Aid(y, groups={"g": groups}, population=400_000)
        found = changes(sample.judge(before, rng), [sample.judge(after, rng)])
        change, true = found.everybody["exclusion_errors"], truth.everybody["exclusion_errors"].difference
        low, high = change.interval
        covered += low <= true <= high
        half += abs(true - change.difference) <= (high - low) / 4
        together += all(
            found.groups["g"][label][part].interval[0] <= truth.groups["g"][label][part].difference
            <= found.groups["g"][label][part].interval[1]
            for label in found.groups["g"] for part in ("exclusion_errors",)
        )  # fmt: skip
    assert covered >= 0.92 * total
    assert half <= 0.85 * total
    assert together >= 0.92 * total


def test_intervals_of_money_cover_the_truth() -> None:
    rng = np.random.default_rng(6)

    def lending(n: int, population: float | None) -> tuple[Lending, Floats, Floats]:
        good = rng.standard_normal(n)
        repaid = (good + rng.standard_normal(n) > -0.5).astype(np.float64)
        money = loans_at_rates(np.exp(rng.standard_normal(n)), revenue=0.2, interest=0.02)
        before = 1 / (1 + np.exp(-good - 0.5))
        after = 1 / (1 + np.exp(-good - rng.standard_normal(n) - 0.5))
        return Lending(repaid, money, population=population), before, after

    whole, before, after = lending(400_000, None)
    true = changes(whole.judge(before), [whole.judge(after)]).everybody["profit"].difference
    covered, half, total = 0, 0, 300
    for _ in range(total):
        sample, before, after = lending(600, 400_000)
        change = changes(sample.judge(before), [sample.judge(after)]).everybody["profit"]
        covered += change.interval[0] <= true <= change.interval[1]
        half += abs(true - change.difference) <= (change.interval[1] - change.interval[0]) / 4
    assert covered >= 0.92 * total
    assert half <= 0.85 * total


def test_results_that_travelled_are_still_of_the_same_people() -> None:
    y = np.arange(20.0)
    program = Aid(y, groups={"g": ["a", "b"] * 10})
    before = program.judge(y)
    again = pickle.loads(pickle.dumps(program.judge(-y)))  # noqa: S301 (our own bytes)
    assert changes(before, [again]).everybody["exclusion_errors"].difference == 6
    others = Aid(y, groups={"g": ["b", "a"] * 10}).judge(y)
    with pytest.raises(ValueError, match="simulations are of another program than status_quo"):
        changes(before, [others])


def test_bad_arguments() -> None:
    result = Aid(np.arange(10.0)).judge(np.arange(10.0))
    with pytest.raises(ValueError, match="simulations has 0 entries: give at least one result"):
        changes(result, [])
    with pytest.raises(ValueError, match=r"confidence = 1.0 is outside \(0, 1\)"):
        changes(result, [result], confidence=1.0)
