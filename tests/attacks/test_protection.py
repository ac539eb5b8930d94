"""What attacks hand back: the worst of settings, intervals that keep their promise, plain records."""

import json
import math
from dataclasses import FrozenInstanceError, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from targetdp.attacks import Protection, Setting, share_interval, worst, worst_of_means

SETTINGS = {
    "small net": Setting(0.9, (0.8, 0.95)),
    "wide net": Setting(0.6, (0.5, 0.85)),
    "no net": Setting(0.7, (0.65, 0.75)),
}


def of_scores(scores: list[float]) -> list[Protection]:
    """Simulations of an attack with one setting."""
    return [worst({"only": Setting(score, (score, score))}, "upper") for score in scores]


# The worst of several settings


def test_the_strongest_setting_decides_and_every_interval_counts() -> None:
    found = worst(SETTINGS, "upper", confidence=0.9, people=7)
    assert (found.score, found.strongest, found.bound) == (0.6, "wide net", "upper")
    # The truth may be as low as the lowest end of all, and is at most the lowest of the high ends.
    assert found.interval == (0.5, 0.75)
    assert found.settings == SETTINGS
    assert (found.detail["confidence"], found.detail["people"]) == (0.9, 7)


def test_the_first_of_equally_strong_settings_is_named() -> None:
    same = Setting(0.5, (0.4, 0.6))
    assert worst({"b": same, "a": same}, "upper").strongest == "b"


def test_scores_above_one_are_capped_and_kept_in_the_detail() -> None:
    found = worst({"ratio": Setting(1.3, (0.9, math.inf))}, "upper")
    assert (found.score, found.interval) == (1.0, (0.9, 1.0))
    assert found.settings["ratio"].score == 1.3
    below = worst({"mean": Setting(-0.1, (-0.3, 0.1))}, "upper")
    assert (below.score, below.interval) == (0.0, (0.0, 0.1))


def test_the_worst_of_intervals_covers_the_worst_of_truths() -> None:
    """Each setting's interval has a share of the doubt. Without sharing it, the same check fails."""
    rng = np.random.default_rng(1)
    truths, n, confidence, tries = np.array([0.5] * 6 + [0.55, 0.9]), 200, 0.9, 1000
    missed = {"shared": 0, "not shared": 0}
    for _ in range(tries):
        counts = rng.binomial(n, truths)
        for name, doubt in (("shared", (1 - confidence) / len(truths)), ("not shared", 1 - confidence)):
            settings = {
                str(i): Setting(count / n, share_interval(count, n, doubt)) for i, count in enumerate(counts)
            }
            low, high = worst(settings, "upper").interval
            missed[name] += not low <= truths.min() <= high
    limit = stats.binom.isf(1e-6, tries, 1 - confidence)
    assert missed["shared"] <= limit
    assert missed["not shared"] > limit


@pytest.mark.parametrize(
    ("score", "interval"), [(math.nan, (0, 1)), (0.5, (math.nan, 1)), (0.5, (0, math.nan)), (0.5, (0.6, 0.4))]
)
def test_an_undefined_score_is_refused(score: float, interval: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="is undefined"):
        Setting(score, interval)


def test_an_attack_without_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="settings has 0 entries"):
        worst({}, "upper")


def test_results_are_frozen() -> None:
    found = worst(SETTINGS, "upper", notes=("as it is",))
    with pytest.raises(FrozenInstanceError):
        found.score = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.detail["score"] = 1.0  # type: ignore[index]
    with pytest.raises(TypeError):
        found.settings["new"] = Setting(1, (1, 1))  # type: ignore[index]


def test_later_changes_to_what_was_given_do_not_matter() -> None:
    given = dict(SETTINGS)
    found = worst(given, "upper")
    given.clear()
    assert found.settings == SETTINGS


# The worst of means


def test_the_worst_of_means_is_not_the_mean_of_the_worst() -> None:
    """Two settings take turns in being the stronger one: each has a mean of 0.6, the worst of each 0.4."""
    turns = [(0.4, 0.8), (0.8, 0.4)] * 3
    simulations = [
        worst({"a": Setting(a, (a, a)), "b": Setting(b, (b, b))}, "upper") for a, b in turns
    ]  # fmt: skip
    found = worst_of_means(simulations)
    assert found.score == pytest.approx(0.6)
    assert np.mean([one.score for one in simulations]) == pytest.approx(0.4)
    assert found.detail["simulations"] == 6
    assert found.bound == "upper"


def test_the_interval_of_a_mean_is_students() -> None:
    scores = [0.31, 0.42, 0.38, 0.35]
    found = worst_of_means(of_scores(scores), confidence=0.9)
    low, high = stats.t.interval(0.9, 3, np.mean(scores), stats.sem(scores))
    assert found.interval == pytest.approx((low, high), rel=1e-12)
    # A second setting takes half of the doubt.
    two = [worst({"a": Setting(s, (s, s)), "b": Setting(s + 0.5, (s, 1))}, "upper") for s in scores]
    low, high = stats.t.interval(0.95, 3, np.mean(scores), stats.sem(scores))
    assert worst_of_means(two, confidence=0.9).interval == pytest.approx((low, high), rel=1e-12)


def test_intervals_of_means_cover() -> None:
    """Normal scores, 5 simulations, 1000 times; normal quantiles instead of Student's fail the same check."""
    rng = np.random.default_rng(2)
    confidence, tries, missed, missed_by_normal = 0.9, 1000, 0, 0
    for _ in range(tries):
        scores = rng.normal(0.5, 0.1, size=5)
        low, high = worst_of_means(of_scores(list(scores)), confidence=confidence).interval
        missed += not low <= 0.5 <= high
        reach = stats.norm.isf(0.05) * scores.std(ddof=1) / math.sqrt(5)
        missed_by_normal += abs(scores.mean() - 0.5) > reach
    limit = stats.binom.isf(1e-6, tries, 1 - confidence)
    assert missed <= limit < missed_by_normal


def test_scores_above_one_count_in_full_in_a_mean() -> None:
    assert worst_of_means(of_scores([1.4, 0.8, 0.4])).score == pytest.approx(2.6 / 3)


def test_an_infinite_ratio_has_an_infinite_mean_and_no_bounds() -> None:
    found = worst_of_means(
        [
            worst({"a": Setting(a, (0.1, math.inf)), "b": Setting(0.7, (0.6, 0.8))}, "upper")
            for a in (math.inf, 0.9)
        ]
    )
    assert (found.score, found.strongest) == (0.7, "b")
    assert found.settings["a"] == Setting(math.inf, (-math.inf, math.inf))
    assert found.interval[0] == 0.0
    assert found.interval[1] == pytest.approx(0.7 + 0.1 / math.sqrt(2))


def test_one_simulation_is_handed_back_as_it_is() -> None:
    (one,) = of_scores([0.3])
    assert worst_of_means([one]) is one


def test_simulations_of_different_attacks_are_refused() -> None:
    (one,) = of_scores([0.3])
    with pytest.raises(ValueError, match="simulations has 0 entries"):
        worst_of_means([])
    with pytest.raises(ValueError, match="differ in their settings"):
        worst_of_means([one, worst(SETTINGS, "upper")])
    with pytest.raises(ValueError, match="differ in their settings"):
        worst_of_means([one, worst({"only": Setting(0.3, (0.3, 0.3))}, "lower")])
    with pytest.raises(ValueError, match="confidence = 1"):
        worst_of_means([one, one], confidence=1)


# Records


@dataclass(frozen=True)
class Inner:
    """Something an attack might put into its detail."""

    counts: Any
    parts: Any


def test_a_record_is_plain_json() -> None:
    detail: dict[str, Any] = {
        "array": np.array([[1.5, np.nan], [np.inf, 2.0]]),
        "whole": np.arange(3),
        "number": np.float64(0.25),
        "small": np.float32(0.5),
        "count": np.int64(7),
        "yes": np.bool_(True),
        "nothing": None,
        "by_size": {0.5: (1, 2.0), 1: [math.inf, -math.inf]},
        "frozen": MappingProxyType({"a": MappingProxyType({"b": 1})}),
        "notes": ("one", "two"),
        "inner": Inner(np.array([1, 2]), MappingProxyType({"x": math.nan})),
        "protection": worst({"s": Setting(0.5, (0.4, 0.6))}, "lower"),
    }
    record = json.loads(json.dumps(worst(SETTINGS, "upper", **detail).record(), allow_nan=False))
    assert set(record) == {"score", "interval", "strongest", "bound", "detail"}
    assert (record["score"], record["interval"], record["bound"]) == (0.6, [0.5, 0.75], "upper")
    found = record["detail"]
    assert found["settings"]["no net"] == {"score": 0.7, "interval": [0.65, 0.75]}
    assert found["array"] == [[1.5, None], [None, 2.0]]
    assert (found["whole"], found["number"], found["small"]) == ([0, 1, 2], 0.25, 0.5)
    assert (found["count"], found["yes"], found["nothing"]) == (7, True, None)
    assert found["by_size"] == {"0.5": [1, 2.0], "1": [None, None]}
    assert found["frozen"] == {"a": {"b": 1}}
    assert found["notes"] == ["one", "two"]
    assert found["inner"] == {"counts": [1, 2], "parts": {"x": None}}
    assert found["protection"]["detail"]["settings"] == {"s": {"score": 0.5, "interval": [0.4, 0.6]}}


def test_an_infinite_setting_becomes_null() -> None:
    record = worst({"ratio": Setting(math.inf, (1.0, math.inf))}, "upper").record()
    assert record["score"] == 1.0
    assert record["detail"]["settings"]["ratio"] == {"score": None, "interval": [1.0, None]}


@pytest.mark.parametrize("simulations", [2, 5, 10])
def test_simulations_that_agree_by_chance_do_not_make_a_mean_certain(simulations: int) -> None:
    """Shares near 1 of 50 people, 400 times: Student's interval alone would miss in most of them."""
    rng, truth, people = np.random.default_rng(simulations), 0.998, 50
    covered = alone = 0
    for _ in range(400):
        counts = rng.binomial(people, truth, simulations)
        runs = [
            worst({"a": Setting(c / people, share_interval(float(c), people, 0.05))}, "upper") for c in counts
        ]
        low, high = worst_of_means(runs).interval
        covered += low <= truth <= high
        alone += bool(counts.std() > 0)
    assert covered >= 380
    assert alone < 300  # Student's has no width in the others


def test_details_that_all_simulations_share_are_kept() -> None:
    one = worst({"a": Setting(0.5, (0.4, 0.6))}, "upper", people=7, notes=("x",), other=1)
    two = worst({"a": Setting(0.6, (0.5, 0.7))}, "upper", people=7, notes=("x",), other=2)
    found = worst_of_means([one, two])
    assert (found.detail["people"], found.detail["notes"]) == (7, ("x",))
    assert "other" not in found.detail


def test_a_notebook_shows_the_worst_setting_and_no_more_protection_than_there_is() -> None:
    shown = worst(
        {"b": Setting(0.7, (0.3, 0.9)), "a <b>": Setting(0.5999, (0.4, 0.6))}, "upper"
    )._repr_html_()
    assert "<b>0.599</b>" in shown
    assert "a &lt;b&gt;" in shown
    assert shown.index("a &lt;b&gt;</td>") < shown.index("<td>b</td>")
    assert "at most" in shown
