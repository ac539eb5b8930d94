"""The share of yes that is best after lots, against plays with real draws and real lots."""

import numpy as np
import pytest

from targetdp.mechanisms import Decision, DecisionLaw
from targetdp.targeting import best_share

N, QUOTA = 2000, 0.29


def sample(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores from −1 to 1 that tell need with some error."""
    rng = np.random.default_rng(seed)
    need = rng.normal(size=N)
    scores = np.clip((need + rng.normal(scale=0.8, size=N)) / 5, -1, 1)
    return scores, need <= np.quantile(need, QUOTA)


def played(scores: np.ndarray, wanted: np.ndarray, law: DecisionLaw, share: float, times: int) -> float:
    """Accuracy after lots, drawn many times."""
    rng = np.random.default_rng(1)
    cut = float(np.quantile(scores, share))
    cells = np.where(scores <= cut, 0, -1) if law.cells is None else law.cells.of_scores(scores, cut)
    chance, places, found = law.chance_of_yes(cells), round(QUOTA * N), []
    for _ in range(times):
        bits = rng.random(N) < chance
        # Lots: the yes first, in a random order; then the no.
        listed = np.zeros(N, dtype=bool)
        listed[np.lexsort((rng.random(N), ~bits))[:places]] = True
        found.append((listed == wanted).mean())
    return float(np.mean(found))


@pytest.mark.parametrize(
    "law",
    [
        Decision(B=2, epsilon=4).law(),
        Decision(B=2, epsilon=1).law(),
        Decision(B=0.25, epsilon=1, score=[1.0]).law(),
    ],
    ids=["classic, ε = 4", "classic, ε = 1", "near, ε = 1"],
)
def test_expected_accuracy_comes_true_and_no_other_share_is_better(law: DecisionLaw) -> None:
    """Means of 60 plays have a standard error of about 0.001."""
    scores, wanted = sample()
    found = best_share(scores, wanted, law, quota=QUOTA)
    assert found.accuracy == pytest.approx(played(scores, wanted, law, found.share, 60), abs=0.005)
    assert found.at_quota == pytest.approx(played(scores, wanted, law, QUOTA, 60), abs=0.005)
    assert found.accuracy >= found.at_quota
    for share in (0.1, 0.2, 0.29, 0.4, 0.6):
        assert played(scores, wanted, law, share, 60) < found.accuracy + 0.005


def test_a_share_far_from_the_best_is_told_apart() -> None:
    """The test above could not fail if all shares were alike."""
    scores, wanted = sample()
    law = Decision(B=2, epsilon=4).law()
    assert played(scores, wanted, law, 0.6, 20) < best_share(scores, wanted, law, quota=QUOTA).accuracy - 0.05


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"quota": 0.0}, "quota"),
        ({"quota": 1.0}, "quota"),
        ({"wanted": [1, 0]}, "a boolean for each score"),
        ({"wanted": [True]}, "a boolean for each score"),
        ({"scores": [0.1, float("nan")]}, "scores"),
    ],
)
def test_bad_input_is_said(wrong: dict[str, object], said: str) -> None:
    given = {"scores": [0.1, 0.2], "wanted": [True, False], "quota": 0.5} | wrong
    with pytest.raises(ValueError, match=said):
        best_share(given["scores"], given["wanted"], Decision(B=2, epsilon=4).law(), quota=given["quota"])  # type: ignore[arg-type]
