"""Chances on one scale: right for scores and for rows of the sample."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from support.targeting import crowd, noisy
from targetdp import Guarantee, least_noise
from targetdp._core import Floats
from targetdp.mechanisms import Scores
from targetdp.programs import Folds
from targetdp.targeting import chances_of_scores, learn
from targetdp.targeting._denoise import ScoreNoise
from targetdp.targeting._learn import LearnedWeights
from targetdp.targeting._sample_and_scores import chances_of_rows

QUOTA = 0.3


def labels(X: Floats, y: Floats, kind: str, seed: int = 0) -> Floats:
    if kind == "aid":
        return np.exp(2 + 3 * y)
    return (np.random.default_rng(seed).random(len(X)) < expit(0.4 + X @ [9.0, -6.0, 4.0, 0.0])).astype(float)


@pytest.fixture(scope="module", params=[("aid", 0.25), ("lending", 0.25), ("aid", 2.0), ("lending", 2.0)])
def played(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Both releases, and everybody's true event: at or below the line, or repaid."""
    kind, B = request.param
    promise = Guarantee(B, 4.0)
    rng = np.random.default_rng(11)
    ours, theirs = crowd(8_000, seed=1), crowd(40_000, seed=2)
    y, other = labels(ours.X, ours.y, kind), labels(theirs.X, theirs.y, kind, 1)
    loud, sigma = noisy(promise)
    quiet = least_noise(promise, 1).mechanism
    noise = ScoreNoise.of(quiet.law(1))
    Z = loud.privatize(ours.X, rng)
    learned = learn(Z, y, sigma, noise.variance, task="regression" if kind == "aid" else "classification")
    scores = Scores(learned.w, quiet).privatize(theirs.X, rng)[:, 0]
    line = float(np.quantile(y, QUOTA)) if kind == "aid" else None
    return {
        "kind": kind, "B": B, "Z": Z, "y": y, "learned": learned, "noise": noise, "scores": scores,
        "line": line,
        "theirs": chances_of_scores(scores, noise, learned, line),
        "ours": chances_of_rows(Z, y, learned, Folds(len(y)), line),
        "their_truth": other <= line if line is not None else other == 1,
        "our_truth": y <= line if line is not None else y == 1,
    }  # fmt: skip


@pytest.mark.parametrize("who", ["theirs", "ours"])
def test_chances_are_what_they_say(played: dict[str, Any], who: str) -> None:
    """In ten groups of people by chance, the mean chance is off by less than 5 deviations and 4 points."""
    chances, truth = played[who], played["their_truth" if who == "theirs" else "our_truth"]
    assert ((chances > 0) & (chances < 1)).all()
    for part in np.array_split(np.argsort(chances, kind="stable"), 10):
        share = truth[part].mean()
        error = np.sqrt(share * (1 - share) / len(part))
        assert abs(chances[part].mean() - share) < 5 * error + 0.04
    assert chances.mean() == pytest.approx(truth.mean(), abs=0.03)


def test_the_two_groups_are_on_one_scale(played: dict[str, Any]) -> None:
    """Everybody with a chance near the middle comes true alike, whatever noise she has."""
    low, high = np.quantile(played["theirs"], [0.6, 0.9])
    found = []
    for who, truth in (("theirs", "their_truth"), ("ours", "our_truth")):
        inside = (played[who] > low) & (played[who] < high)
        if inside.sum() > 200:
            gap = played[truth][inside].mean() - played[who][inside].mean()
            found.append((gap, 5 * 0.5 / np.sqrt(inside.sum()) + 0.03))
    assert found
    assert all(abs(gap) < allowed for gap, allowed in found)


def test_scores_tell_more_than_rows(played: dict[str, Any]) -> None:
    assert played["theirs"].std() > 1.05 * played["ours"].std()


def test_order_is_that_of_scores_where_noise_is_small(played: dict[str, Any]) -> None:
    if played["B"] > 1:
        return
    sign = -1 if played["kind"] == "aid" else 1
    inner = np.abs(played["scores"]) < 0.5
    order = np.argsort(played["scores"][inner])
    steps = np.diff(sign * played["theirs"][inner][order])
    assert steps.min() > -0.02


def test_where_nothing_was_learned_everybody_is_alike(played: dict[str, Any]) -> None:
    """Repaying: the share of all. Poverty: an order remains, but chances hardly differ."""
    learned: LearnedWeights = played["learned"]
    fields = {name: getattr(learned, name) for name in learned.__dataclass_fields__}
    nothing = LearnedWeights(**(fields | {"covariance": -0.01, "covariance_error": 0.02}))
    assert nothing.believed == 0
    chances = chances_of_scores(played["scores"], played["noise"], nothing, played["line"])
    if played["kind"] == "lending":
        np.testing.assert_allclose(chances, learned.target_mean)
    else:
        assert chances.std() < 0.02
        assert len(np.unique(chances)) > 1_000


def test_a_line_is_needed_for_aid(played: dict[str, Any]) -> None:
    if played["kind"] == "lending":
        return
    with pytest.raises(TypeError, match="line"):
        chances_of_scores(played["scores"], played["noise"], played["learned"])
