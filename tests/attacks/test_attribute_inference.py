"""Attribute inference: the literal attack as a twin, what scores mean, and every edge."""

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from targetdp._core import Floats
from targetdp.attacks import Protection, attribute_inference, share_interval, split_holdout, zero_tolerances
from targetdp.attacks._guess._failed_guesses import plan_searches
from targetdp.attacks._protection import ratio_interval

FALSE_ALARM = 1e-6


def some_people(rows: int, columns: int, seed: int) -> Floats:
    """Correlated and skewed, with both signs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) + rng.standard_normal((rows, 1))
    X[:, ::2] = np.exp(0.6 * X[:, ::2])
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


# ---------------------------------------------------------------- the slow twin


def slow_shares(
    people: Floats, released: Floats, h: int, draws: int, rng: np.random.Generator, zero_tolerance: float
) -> list[float]:
    """The attack in words: for each draw and secret, person by person; the share of failures by column."""
    d = people.shape[1]
    failures = [0.0] * d
    tries = 1 if h == d - 1 else draws
    deviation = [float(np.std(column)) if np.ptp(column) > 0 else 1.0 for column in released.T]
    for window in plan_searches(d, h, draws, rng):
        for person in people:
            best, at = math.inf, -1
            for row in range(len(released)):
                apart = 0.0
                for k in window.known:
                    apart += abs(person[k] / deviation[k] - released[row, k] / deviation[k])
                if apart < best:
                    best, at = apart, row
            for secret in window.secrets:
                actual = float(person[secret])
                allowed = 0.05 * abs(actual) if actual != 0 else zero_tolerance
                failures[secret] += not abs(released[at, secret] - actual) <= allowed
    return [failed / tries / len(people) for failed in failures]


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("discrete", [False, True])
def test_shares_are_those_of_the_literal_attack(draws: int, discrete: bool) -> None:
    X = some_people(60, 5, 1)
    X = np.round(2 * X) / 2 if discrete else X
    rng = np.random.default_rng(2)
    released = X[:40] + (rng.integers(0, 2, (40, 5)) if discrete else 0.1 * rng.standard_normal((40, 5)))
    found = attribute_inference(
        X[:40], released, X[40:], draws=draws, zero_tolerance=0.3, rng=np.random.default_rng(3)
    )
    rng = np.random.default_rng(3)
    for h in (1, 3, 4):
        slow_shares(X[:1], released, h, draws, rng, 0.3)
    released = released[rng.permutation(40)]  # drawn after the known columns: ties go to the first in it
    rng = np.random.default_rng(3)
    for h in (1, 3, 4):
        before = rng.bit_generator.state
        inside = slow_shares(X[:40], released, h, draws, rng, 0.3)
        rng.bit_generator.state = before
        outside = slow_shares(X[40:], released, h, draws, rng, 0.3)
        for j, name in enumerate(f"h={h}, column {j}" for j in range(5)):
            assert found.detail["p_release"][name] == pytest.approx(inside[j], abs=1e-12)
            assert found.detail["p_holdout"][name] == pytest.approx(outside[j], abs=1e-12)
            setting = found.settings[name]
            assert setting.score == pytest.approx(inside[j] / outside[j])
            doubt = 0.05 / 15
            assert setting.interval == pytest.approx(
                ratio_interval(40 * inside[j], 40, 20 * outside[j], 20, doubt)
            )
    assert found.score == min(1.0, *(setting.score for setting in found.settings.values()))
    assert any(0 < p < 1 for p in found.detail["p_release"].values())


# ---------------------------------------------------------------- what scores mean


def test_a_release_without_noise_protects_nobody() -> None:
    X = some_people(400, 6, 4)
    found = attribute_inference(X[:300], X[:300], X[300:], rng=np.random.default_rng(0))
    assert found.score == 0
    assert found.bound == "upper"
    assert all(p == 0 for p in found.detail["p_release"].values())
    assert found.interval[1] < 0.1
    assert attribute_inference(X[:300], X[:300], rng=np.random.default_rng(0)).score == 0


def test_pure_noise_protects_nearly_everybody() -> None:
    X = some_people(2500, 6, 5)
    noise = 5 * np.random.default_rng(6).standard_normal((2000, 6))
    found = attribute_inference(X[:2000], noise, X[2000:], rng=np.random.default_rng(0))
    assert found.score > 0.96
    assert found.interval[1] == 1


def test_less_noise_protects_less() -> None:
    X = some_people(1200, 6, 7)
    noise = np.random.default_rng(8).standard_normal((1000, 6))
    scores = [
        attribute_inference(X[:1000], X[:1000] + size * noise, X[1000:], rng=np.random.default_rng(0)).score
        for size in (0.001, 0.04, 1.0)
    ]
    assert scores[0] < 0.1 < scores[1] < 0.8 < scores[2]


def test_what_holds_for_everyone_is_not_held_against_the_release() -> None:
    """One column is a function of another: easy to guess, in the release or not."""
    X = np.abs(some_people(1500, 3, 9)) + 1
    X[:, 1] = 3 * X[:, 0]
    # The release is of other people altogether.
    found = attribute_inference(X[:500], X[500:1000], X[1000:], known=[2], rng=np.random.default_rng(0))
    assert found.detail["p_release"]["h=2, column 1"] < 0.5
    low, high = found.settings["h=2, column 1"].interval
    assert low < 1 < high


def test_intervals_cover() -> None:
    """The release has nothing to do with anyone, so all true ratios are 1: all intervals must hold at once.

    They are exact and share their doubt, so they hold more often than they claim; here 0.8 is claimed.
    """
    rng = np.random.default_rng(10)
    missed, runs = 0, 150
    for _ in range(runs):
        X = rng.integers(1, 4, (120, 3)) + 0.01 * rng.random((120, 3))
        released = rng.integers(1, 4, (60, 3)) + 0.01 * rng.random((60, 3))
        found = attribute_inference(X[:80], released, X[80:], known=[1], confidence=0.8, rng=rng)
        missed += any(not s.interval[0] <= 1 <= s.interval[1] for s in found.settings.values())
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.2)


# ---------------------------------------------------------------- zeros, and ratios to nothing


def test_zeros_have_a_tolerance_of_their_own() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 4.0], [4.0, -8.0], [5.0, 100.0]])
    assert zero_tolerances(X, 0.05) == pytest.approx([0.15, 0.4])
    released = X + np.array([[0.0, 0.39], [0.0, -0.41], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    shares = {}
    for zero_tolerance in (None, 0.0, 0.39, 0.41):
        found = attribute_inference(X, released, zero_tolerance=zero_tolerance, columns=["a", "b"])
        shares[zero_tolerance] = found.detail["p_release"]["h=1, b"]
        allowed = 0.4 if zero_tolerance is None else zero_tolerance
        assert found.detail["zeros"] == {"b": {"values": 2, "tolerance": pytest.approx(allowed)}}
        assert any(note.startswith("2 attacked values are exactly 0") for note in found.detail["notes"])
    assert shares == {None: 0.2, 0.0: 0.4, 0.39: 0.2, 0.41: 0.0}


def test_a_column_of_zeros_must_be_hit() -> None:
    X = np.column_stack([np.arange(10.0) + 1, np.zeros(10)])
    released = X.copy()
    released[:3, 1] = 1e-9
    found = attribute_inference(X, released)
    assert found.detail["p_release"]["h=1, column 1"] == pytest.approx(0.3)


def test_values_open_to_everyone() -> None:
    X = np.column_stack([some_people(60, 1, 12)[:, 0] + 10, np.full(60, 7.0)])
    noise = np.random.default_rng(0).permutation(X[:40, 0])
    found = attribute_inference(
        X[:40], np.column_stack([noise, np.full(40, 7.0)]), X[40:], columns=["a", "b"]
    )
    assert found.settings["h=1, b"].score == 1
    assert found.settings["h=1, b"].interval == (0, math.inf)
    assert any("h=1, b" in note and "open to everyone" in note for note in found.detail["notes"])
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert record["detail"]["settings"]["h=1, b"]["interval"] == [0, None]


def test_guesses_that_fail_in_the_release_only() -> None:
    X = np.column_stack([np.arange(1.0, 31), np.full(30, 5.0)])
    X[:10, 1] = 1.0
    released = np.column_stack([np.arange(1.0, 31), np.full(30, 5.0)])
    found = attribute_inference(X[:15], released, X[15:], columns=["a", "b"])
    assert found.settings["h=1, b"].score == math.inf
    assert any("h=1, b" in note and "infinite" in note for note in found.detail["notes"])
    assert found.score <= 1
    json.dumps(found.record(), allow_nan=False)


def test_ratios_above_one_stay_in_the_detail() -> None:
    """The release is a copy of the holdout: being outside it is worse than being in it."""
    X = some_people(200, 3, 13)
    found = attribute_inference(X[:100], X[100:] * 1.01, X[100:], known=[2], rng=np.random.default_rng(0))
    assert found.score == 1
    assert found.settings["h=2, column 0"].score > 2


# ---------------------------------------------------------------- the interface


def test_without_a_holdout_the_score_is_the_share_of_failures() -> None:
    X = some_people(300, 4, 14)
    released = X[:200] + 0.02 * np.random.default_rng(15).standard_normal((200, 4))
    alone = attribute_inference(X[:200], released, rng=np.random.default_rng(0))
    relative = attribute_inference(X[:200], released, X[200:], rng=np.random.default_rng(0))
    assert alone.detail["p_release"] == relative.detail["p_release"]
    for name, setting in alone.settings.items():
        p = alone.detail["p_release"][name]
        assert setting.score == p <= relative.settings[name].score
        assert setting.interval == pytest.approx(share_interval(200 * p, 200, 0.05 / 12))
    assert alone.detail["p_holdout"] is None
    assert any("no holdout" in note for note in alone.detail["notes"])
    assert not relative.detail["notes"]


def test_order_and_number_of_released_rows_do_not_matter() -> None:
    X = some_people(300, 5, 16)
    released = X[:200] + 0.05 * np.random.default_rng(17).standard_normal((200, 5))
    shuffled = np.random.default_rng(18).permutation(released)
    # Every row twice: more rows, the same deviations.
    scores = []
    for rows in (released, shuffled, np.concatenate([shuffled, shuffled])):
        found = attribute_inference(X[:200], rows, X[200:], draws=2, rng=np.random.default_rng(0))
        scores.append(
            found.detail["p_release"] | {f"out {k}": v for k, v in found.detail["p_holdout"].items()}
        )
    assert scores[0] == scores[1] == scores[2]


def test_the_same_seed_gives_the_same_result() -> None:
    X = some_people(200, 6, 19)
    released = X + 0.1
    first, second = (
        attribute_inference(X, released, people=50, draws=2, rng=np.random.default_rng(5)) for _ in range(2)
    )
    assert first.record() == second.record()
    other = attribute_inference(X, released, people=50, draws=2, rng=np.random.default_rng(6))
    assert first.record() != other.record()


def test_a_sample_of_people() -> None:
    X = some_people(400, 4, 20)
    found = attribute_inference(X, X, people=30, rng=np.random.default_rng(0))
    assert found.detail["people"] == 30
    assert found.score == 0
    everyone = attribute_inference(X, X + 0.02, known=[3], people=400, rng=np.random.default_rng(1))
    assert everyone.settings == attribute_inference(X, X + 0.02, known=[3]).settings


def test_names_and_settings() -> None:
    X = some_people(50, 4, 21)
    found = attribute_inference(X, X, X, known=[3, 2], columns=["a", "b", "c", "d"], confidence=0.9)
    assert list(found.settings) == [f"h={h}, {name}" for h, name in product((3, 2), "abcd")]
    assert next(iter(attribute_inference(X, X).settings)) == "h=1, column 0"
    assert found.detail["confidence"] == 0.9
    assert isinstance(found, Protection)
    json.dumps(found.record(), allow_nan=False)


def test_two_columns_are_enough() -> None:
    X = some_people(40, 2, 22)
    assert list(attribute_inference(X, X).settings) == ["h=1, column 0", "h=1, column 1"]


def test_more_columns_than_rows_and_a_single_row() -> None:
    X = some_people(6, 20, 23)
    assert attribute_inference(X[:4], X[:4], X[4:]).score == 0
    assert attribute_inference(X[:1], X[:1], X[1:2]).score == 0
    assert attribute_inference(X[:4], X[4:5], X[5:]).detail["people"] == 4


def test_a_constant_that_is_no_float_does_not_count() -> None:
    """The mean of a constant may be off by a rounding error: its deviation must not become a scale."""
    X = some_people(97, 3, 24)
    released = X.copy()
    X[:, 2], released[:, 2] = np.arange(97), 0.1
    assert released.std(axis=0)[2] > 0
    assert attribute_inference(X, released, known=[2]).detail["p_release"]["h=2, column 0"] == 0


class Watcher:
    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    def phase(self, name: str, rows: int | None) -> None:
        assert name == "attribute inference"
        self.total = rows

    def advance(self, rows: int) -> None:
        self.done += rows


@pytest.mark.parametrize("compatibility", [None, "anonymeter"])
def test_progress_adds_up(compatibility: Any) -> None:
    X = some_people(700, 5, 25)
    watcher = Watcher()
    attribute_inference(
        X[:600], X[:600], X[600:], draws=2, compatibility=compatibility, progress=watcher,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert watcher.total == watcher.done > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.ones((5, 1)), "X_priv": np.ones((5, 1))}, "at least 2"),
        ({"X_priv": np.ones((5, 3))}, "X_priv has 3 columns: exactly 4"),
        ({"holdout": np.ones((5, 3))}, "holdout has 3 columns: exactly 4"),
        ({"holdout": np.empty((0, 4))}, "holdout has shape"),
        ({"X": np.full((5, 4), np.nan)}, "NaN"),
        ({"known": [4]}, "outside 1 to 3"),
        ({"draws": 0}, "draws = 0"),
        ({"tolerance": -0.1}, "tolerance = -0.1"),
        ({"zero_tolerance": -1.0}, "zero_tolerance = -1.0"),
        ({"zero_tolerance": 1.0, "compatibility": "anonymeter"}, "no place in Anonymeter's rule"),
        ({"compatibility": "anonymous"}, "not one of anonymeter"),
        ({"people": 6}, "people = 6 is outside 1 to 5"),
        ({"columns": ["a", "b", "c"]}, "4 different names"),
        ({"columns": ["a", "b", "c", "c"]}, "4 different names"),
        ({"columns": "abcd"}, "4 different names"),
        ({"columns": [["a"], ["b"], ["c"], ["d"]]}, "4 different names"),
        ({"confidence": 1.0}, "confidence = 1.0"),
        ({"rng": 3}, "not a numpy Generator"),
        ({"X_priv": np.eye(5, 4) * 1e300}, "column scales away from 0"),
        (
            {"X_priv": np.eye(5, 4) * 1.7e308 - np.eye(5, 4)[::-1] * 1.7e308, "compatibility": "anonymeter"},
            "column scales away from 0",
        ),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"X": np.ones((5, 4)), "X_priv": np.ones((5, 4))} | change
    with pytest.raises((ValueError, TypeError), match=words):
        attribute_inference(arguments.pop("X"), arguments.pop("X_priv"), **arguments)


# ---------------------------------------------------------------- the holdout


def test_a_holdout_is_a_random_part() -> None:
    X = np.zeros((1000, 2))
    working, holdout = split_holdout(X, 300, np.random.default_rng(0))
    assert len(holdout) == 300
    assert sorted([*working, *holdout]) == list(range(1000))
    assert (np.diff(working) > 0).all()
    assert (np.diff(holdout) > 0).all()
    assert 60 < (holdout < 300).sum() < 120
    assert (split_holdout(X, 300, np.random.default_rng(1))[1] != holdout).any()
    assert len(split_holdout(X)[1]) == 500


@pytest.mark.parametrize("holdout", [0, 10, 2.0])
def test_a_holdout_leaves_somebody(holdout: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="holdout"):
        split_holdout(np.zeros((10, 2)), holdout)


def test_the_order_of_released_rows_favors_nobody() -> None:
    """Coarse columns tie: sorted by the secret, the first of the tied would fool the adversary, or help."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, (2000, 3)), rng.random(2000) < 0.9]).astype(np.float64) + 1
    by_secret = X[np.argsort(X[:, 3], kind="stable")]
    failed = [
        attribute_inference(X, rows, known=(3,), rng=np.random.default_rng(1)).detail["p_release"][
            "h=3, column 3"
        ]
        for rows in (X, by_secret, by_secret[::-1])
    ]
    assert np.ptp(failed) < 0.3  # one row stands for each of the eight kinds of people: chance remains


def test_what_was_left_out_or_shared_is_said() -> None:
    X = some_people(60, 3, 1)
    found = attribute_inference(X[:40], X[:40], X[30:60], people=20, rng=np.random.default_rng(0))
    said = " ".join(found.detail["notes"])
    assert "20 of 40 people were attacked" in said
    assert "10 of 30 people in the holdout have exactly the row" in said
