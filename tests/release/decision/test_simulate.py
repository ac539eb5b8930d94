"""What is tried with a question comes from the same rules and chances as a release of it."""

import math

import numpy as np
import pytest

from targetdp import Decision
from targetdp.release import AskedDecision, simulate_decisions

LINE = {"weights": {"calls": 1.0}, "yes": "below"}
PEOPLE = 200_000


def asked(**given: object) -> AskedDecision:
    return AskedDecision.model_validate(LINE | given)


def test_answers_at_a_known_cut_are_wrong_as_often_as_the_law_says() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(-1, 1, PEOPLE)
    found = simulate_decisions(asked(cut=0.25), scores, B=2, epsilon=2, rng=rng)
    wrong = (found != (scores <= 0.25)).mean()
    assert wrong == pytest.approx(1 / (1 + np.exp(2)), abs=0.004)  # five standard errors


def test_below_two_errors_fall_with_the_distance_from_the_cut() -> None:
    rng = np.random.default_rng(2)
    scores = rng.uniform(-1, 1, PEOPLE)
    found = simulate_decisions(asked(cut=0.0), scores, B=0.25, epsilon=1, rng=rng)
    law = Decision(B=0.25, epsilon=1, score=[1.0]).law()
    assert law.cells is not None
    for low, high in ((0.0, 0.25), (0.26, 0.5), (0.51, 0.75)):
        here = (np.abs(scores) > low) & (np.abs(scores) < high)
        wrong = (found != (scores <= 0))[here].mean()
        told = float(law.chance_of_error(law.cells.of_scores(-np.abs(scores[here]), 0.0)).mean())
        assert wrong == pytest.approx(told, abs=5 * (told / here.sum()) ** 0.5)


@pytest.mark.parametrize("yes", ["below", "above"])
def test_the_share_is_found_on_the_way(yes: str) -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=20_000)
    grid = np.linspace(-3, 3, 21)
    shares = [
        float((scores <= cut).mean() if yes == "below" else (scores >= cut).mean()) for cut in grid + 0.7
    ]
    expected = tuple(zip(grid.tolist(), shares, strict=True))  # off by 0.7: bits must correct it
    found = simulate_decisions(
        asked(yes=yes, share=0.3, expected=expected), scores, B=2, epsilon=4, rng=np.random.default_rng(0)
    )
    true_share = (found.mean() - 0.018) / (1 - 2 * 0.018)
    assert true_share == pytest.approx(0.3, abs=0.02)


def test_no_answer_is_a_drawn_no_and_a_seed_repeats_everything() -> None:
    scores = np.full(PEOPLE, np.nan)
    first, again = (
        simulate_decisions(asked(cut=0.0), scores, B=2, epsilon=1, rng=np.random.default_rng(5)) for _ in "ab"
    )
    assert np.array_equal(first, again)
    assert first.mean() == pytest.approx(1 / (1 + math.e), abs=0.006)


def test_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="people = 0"):
        simulate_decisions(asked(cut=0.0), np.empty(0), B=2, epsilon=1, rng=np.random.default_rng(5))
