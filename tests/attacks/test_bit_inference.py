"""Inference from drawn answers: against a literal twin, against Bayes' rule by hand, and at known limits."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from targetdp._core import Floats, Silent
from targetdp.attacks import BitQuestion, Protection, bit_inference, meaning, near, zero_tolerances
from targetdp.attacks._guess._bit_guesses import (
    CANDIDATES_OF_FUNCTIONS,
    STRETCH,
    BitAttack,
    chances_of_answers,
)
from targetdp.attacks._guess._failed_guesses import plan_searches
from targetdp.mechanisms import AdditiveScore, Decision, DecisionLaw, LinearScore
from targetdp.noise._random_words import SimulatedWords
from targetdp.normalization import clip_rows

W = np.array([0.6, -0.5, 0.4]) / np.linalg.norm([0.6, -0.5, 0.4])
LAW = Decision(B=2, epsilon=2).law()
TELLING = BitQuestion([0.1, 0.1, 0.9], cuts=0.1)
"""Mostly about the column of two values."""


def some_people(n: int, seed: int = 0, columns: int = 3) -> Floats:
    """Correlated, of both signs, one column of two values; some are clipped to the sphere."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns)) + rng.standard_normal((n, 1))
    X[:, -1] = np.where(X[:, -1] > 0.3, 0.5, -0.2)
    return clip_rows(X * 0.35)


def drawn(X: Floats, law: DecisionLaw, question: BitQuestion, seed: int = 0) -> Any:
    """Answers as the law draws them."""
    score, cuts = question.sign * question.scores(X), question.sign * np.broadcast_to(question.cuts, len(X))
    cells = np.where(score <= cuts, 0, -1) if law.cells is None else law.cells.of_scores(score, cuts.copy())
    return law.decide(cells, SimulatedWords(np.random.default_rng(seed)))


# ---------------------------------------------------------------- the slow twin


def slow_failures(  # noqa: PLR0915 (the whole attack, once more)
    X: Floats, bits: Any, outside: Floats, law: DecisionLaw, known: list[int], j: int
) -> list[Any]:
    """How many guesses of each kind fail, person by person; with the answer, without it, and outside."""
    C, mean, n = np.cov(X.T, bias=True), X.mean(axis=0), len(X)
    slopes = np.linalg.solve(C[np.ix_(known, known)], C[known, j])
    v = float(C[j, j] - C[j, known] @ slopes)
    rest = [i for i in range(X.shape[1]) if i not in known]
    all_slopes = np.linalg.solve(C[np.ix_(known, known)], C[np.ix_(known, rest)])
    errors = X[:, rest] - (mean[rest] + (X[:, known] - mean[known]) @ all_slopes)
    values, counts = np.unique(np.round(X[:, j], 10), return_counts=True)
    often = {float(a): int(c) for a, c in zip(values, counts, strict=True) if c >= max(5, n / 100)}
    sphere = (np.linalg.norm(X, axis=1) > 1 - 1e-6).mean() >= 0.01
    zero = float(zero_tolerances(X, 0.05)[j])
    q = law.chance_of_yes(np.array([0, -1]))

    def chance(row: Floats, bit: bool) -> float:
        cell = 0 if row @ W <= 0.05 else -1
        if law.cells is not None:
            cell = int(law.cells.of_scores(np.array([row @ W]), 0.05)[0])
            yes = float(law.chance_of_yes(np.array([cell]))[0])
        else:
            yes = float(q[0] if cell == 0 else q[1])
        return yes if bit else 1 - yes

    def guesses(x: Floats, bit: bool | None) -> list[float]:
        predicted = mean[rest] + (x[known] - mean[known]) @ all_slopes
        at = rest.index(j)
        weight = np.ones(n)
        for k, error in enumerate(errors):
            row = x.copy()
            row[rest] = predicted + error
            weight[k] = 1.0 if bit is None else chance(row, bit)
        weight /= weight.sum()
        candidates = predicted[at] + errors[:, at]
        m = float(weight @ candidates)
        spread = float(weight @ candidates**2 - m * m)
        found = [m, (m + (-1 if m < 0 else 1) * (m * m + 4 * spread) ** 0.5) / 2]
        low, high = candidates - 0.05 * abs(candidates), candidates + 0.05 * abs(candidates)
        held = [float(weight[(low <= b) & (high >= b)].sum()) for b in low]
        at_best = max(held)

        def likeliest(options: dict[float, float]) -> float:
            def log_chance(a: float) -> float:
                row = x.copy()
                row[j] = a
                middle, width = float(predicted[at]), v
                if bit is None:
                    return options[a] - (a - middle) ** 2 / (2 * max(width, 1e-12))
                if len(rest) > 1:
                    return options[a] - (a - m) ** 2 / (2 * max(spread, 1e-12))
                told = float(np.log(chance(row, bit)))
                return options[a] - (a - middle) ** 2 / (2 * max(width, 1e-12)) + told

            return max(options, key=log_chance)

        prior = {a: float(np.log(c) + (a - mean[j]) ** 2 / (2 * C[j, j])) for a, c in often.items()}
        linear = float(predicted[at]) if bit is None else m
        found[0:1] = [linear if bit is None else m]
        found.append(likeliest(prior) if len(often) > 1 else found[0])
        size = max(0.0, 1 - float(np.square(x[[i for i in range(3) if i != j]]).sum())) ** 0.5
        found.append(likeliest({size: 0.0, -size: 0.0}) if sphere and len(rest) == 1 else found[0])
        b = min(b for b, w in zip(low, held, strict=True) if w >= at_best - 1e-12)
        inside = (low <= b) & (high >= b)
        found.append(float(low[inside].max() + high[inside].min()) / 2)
        return found

    def failed(rows: Floats, answers: Any) -> Floats:
        wrong = np.zeros(5)
        for x, bit in zip(rows, answers, strict=True):
            tried = np.array(guesses(x, bit))
            wrong += ~near(tried, np.full(5, x[j]), 0.05, zero)
        return wrong

    return [failed(X, bits), failed(X, [None] * n), failed(outside, [None] * len(outside))]


@pytest.mark.parametrize("B", [2.0, 0.25])
@pytest.mark.parametrize("h", [2, 1])
def test_the_literal_twin_agrees(B: float, h: int) -> None:
    X, outside = some_people(90), some_people(40, seed=5)
    law = LAW if B == 2 else Decision(B=B, epsilon=2, score=W).law()
    question = BitQuestion(W, cuts=0.05)
    bits = drawn(X, law, question)
    attack = BitAttack.against(X, bits[:, None], (question,), law, outside, None, 0.05)
    window = plan_searches(3, h, 1, np.random.default_rng(0))[0]
    inside, alone = attack.failures([window], Silent())
    for j in window.secrets:
        twin = slow_failures(X, bits, outside, law, list(window.known), j)
        np.testing.assert_array_equal(inside[j, :5], twin[0])
        np.testing.assert_array_equal(inside[j, 5:10], twin[1])
        np.testing.assert_array_equal(alone[j, :5], twin[2])


# ---------------------------------------------------------------- Bayes' rule, by hand


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
def test_it_is_right_as_often_as_bayes_rule_can_be(epsilon: float) -> None:
    """Three values of a column that is the score itself, and another one that tells nothing of it."""
    rng = np.random.default_rng(3)
    values, shares = np.array([-0.6, 0.2, 0.5]), np.array([0.3, 0.4, 0.3])
    X = np.stack([rng.choice([-0.3, 0.3], 30_000), rng.choice(values, 30_000, p=shares)], axis=1)
    law = Decision(B=2, epsilon=epsilon).law()
    question = BitQuestion([0.0, 1.0], cuts=0.0)
    found = bit_inference(X, drawn(X, law, question), question, law, known=[1], population=X)
    right = np.exp(epsilon) / (1 + np.exp(epsilon))
    of_yes = shares * [right, 1 - right, 1 - right]  # of each value, together with a yes
    best = max(of_yes) + max(shares - of_yes)
    setting = "h=1, column 1"
    assert found.detail["p_release"][setting] == pytest.approx(1 - best, abs=0.012)
    assert found.detail["p_without"][setting] == pytest.approx(0.6, abs=0.012)
    assert found.detail["guess"][setting] == "likeliest of few values"


def test_without_noise_a_score_that_is_the_column_gives_it_away() -> None:
    X = np.random.default_rng(1).choice([-0.5, 0.5], size=(900, 2))
    law = Decision(B=2, epsilon=100).law()
    question = BitQuestion([0.0, 1.0])
    found = bit_inference(X[:600], X[:600, 1] <= 0, question, law, X[600:])
    assert (found.score, found.strongest) == (0.0, "h=1, column 1")
    assert found.settings["h=1, column 0"].score > 0.9  # of which the answer tells nothing


def test_a_continuous_column_is_told_by_its_stretch() -> None:
    """Below a low cut values are few: a yes says nearly which one it is. Other guesses do not see that."""
    rng = np.random.default_rng(2)
    secret = np.where(rng.random(4_000) < 0.3, -0.5 + 0.01 * rng.random(4_000), rng.uniform(0, 0.8, 4_000))
    X = np.stack([rng.uniform(-0.3, 0.3, 4_000), secret], axis=1)
    law, question = Decision(B=2, epsilon=8).law(), BitQuestion([0.0, 1.0], cuts=-0.2)
    found = bit_inference(X, drawn(X, law, question), question, law, known=[1])
    assert found.detail["guess"]["h=1, column 1"] == STRETCH
    assert (
        found.detail["p_release"]["h=1, column 1"] < 0.7 < found.detail["p_without"]["h=1, column 1"] + 0.01
    )


def test_next_to_nothing_is_told_at_a_tiny_epsilon() -> None:
    X = some_people(6_000)
    law, question = Decision(B=2, epsilon=0.001).law(), BitQuestion(W)
    found = bit_inference(X[:5_000], drawn(X[:5_000], law, question), question, law, X[5_000:], population=X)
    assert found.score > 0.96


def test_answers_of_others_tell_nothing() -> None:
    """The broken twin: answers that are shuffled, under the same claim."""
    X, question = some_people(4_000), TELLING
    bits = drawn(X, LAW, question)
    others = np.random.default_rng(0).permutation(bits[:3_000])
    mine, shuffled = (
        bit_inference(X[:3_000], answers, question, LAW, X[3_000:], known=[2])
        for answers in (bits[:3_000], others)
    )
    assert mine.score < 0.9
    assert shuffled.score > 0.97


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_it_is_never_worse_than_without_the_answers(seed: int, epsilon: float) -> None:
    X = some_people(300, seed)
    law, question = Decision(B=2, epsilon=epsilon).law(), BitQuestion(W, cuts=0.1)
    found = bit_inference(X[:200], drawn(X[:200], law, question), question, law, X[200:])
    for setting, failed in found.detail["p_release"].items():
        assert failed <= found.detail["p_without"][setting]


def test_less_is_told_the_smaller_epsilon_is() -> None:
    X, question = some_people(5_000), TELLING
    scores = []
    for epsilon in (6.0, 2.0, 0.5):
        law = Decision(B=2, epsilon=epsilon).law()
        bits = drawn(X, law, question)[:4_000]
        scores.append(bit_inference(X[:4_000], bits, question, law, X[4_000:], known=[2]).score)
    assert scores == sorted(scores)
    assert scores[0] < scores[-1] - 0.1


# ---------------------------------------------------------------- questions


def test_a_function_and_its_weights_are_one_attack() -> None:
    X, few = some_people(400), some_people(CANDIDATES_OF_FUNCTIONS, seed=9)
    cuts = np.random.default_rng(0).uniform(-0.1, 0.1, 400)
    by_weights = BitQuestion(W, cuts)
    bits = drawn(X, LAW, by_weights)
    results = [
        bit_inference(X, bits, question, LAW, population=few, rng=np.random.default_rng(1))
        for question in (by_weights, BitQuestion(lambda rows: rows @ W, cuts))
    ]
    assert results[0].detail["p_release"] == results[1].detail["p_release"]


def test_above_is_below_mirrored() -> None:
    X = some_people(500)
    below, above = BitQuestion(W, cuts=0.05), BitQuestion(-W, cuts=-0.05, yes="above")
    bits = drawn(X, LAW, below)
    np.testing.assert_array_equal(bits, drawn(X, LAW, above))
    one, other = (bit_inference(X, bits, q, LAW, known=[2]) for q in (below, above))
    assert one.detail["p_release"] == other.detail["p_release"]


@pytest.mark.parametrize(
    "score", [LinearScore.of(W, B=0.3), AdditiveScore.of([[-1, 0, 1]] * 3, [[0, 0, 1]] * 3)]
)
def test_chances_of_answers_below_b_2_are_those_that_are_drawn(score: Any) -> None:
    law = Decision(B=0.3, epsilon=2, score=score).law()
    X = some_people(40)
    question = BitQuestion(score.of_rows, cuts=0.1)
    told = chances_of_answers(
        law, (question,), np.ones((40, 1), bool), np.full((40, 1), 0.1), question.scores(X)[None, :, None]
    )[:, 0]
    times = 4_000
    yes = np.mean([drawn(X, law, question, seed) for seed in range(times)], axis=0)
    assert (np.abs(yes - told) <= 5 * np.sqrt(told * (1 - told) / times) + 1e-9).all()
    assert len(np.unique(told)) >= 4


def test_several_answers_are_seen_together() -> None:
    law = Decision(B=2, epsilon=1.5, programs=2).law()
    questions = (BitQuestion([1.0, 0.0]), BitQuestion([0.0, 1.0], yes="above"))
    row = np.array([[-0.2, 0.3]])
    scores = np.stack([one.scores(row) for one in questions])[:, :, None]
    told = {
        bits: float(chances_of_answers(law, questions, np.array([bits]), np.zeros((1, 2)), scores)[0, 0])
        for bits in product([True, False], repeat=2)
    }
    assert sum(told.values()) == pytest.approx(1.0)
    right = np.exp(1.5) / (3 + np.exp(1.5))
    assert told[True, True] == pytest.approx(right)
    assert {bits: p for bits, p in told.items() if bits != (True, True)} == pytest.approx(
        dict.fromkeys(set(told) - {(True, True)}, (1 - right) / 3)
    )
    # One column decides both: two answers tell more of it than one of the same law.
    X = np.random.default_rng(1).choice([-0.5, 0.5], size=(3_000, 2))
    both = (BitQuestion([1.0, 0.0]), BitQuestion([1.0, 0.0]))
    bits = law.decide_together(np.repeat(X[:, :1] <= 0, 2, axis=1), SimulatedWords(np.random.default_rng(0)))
    together = bit_inference(X, bits, both, law, known=[1])
    marginal = Decision(B=2, epsilon=float(np.log((right + (1 - right) / 3) / (2 * (1 - right) / 3)))).law()
    alone = bit_inference(X, bits[:, 0], both[0], marginal, known=[1])
    expected = (1 - right) / 3 / (right + (1 - right) / 3)  # both agree: how often they are wrong
    assert together.detail["p_release"]["h=1, column 0"] < alone.detail["p_release"]["h=1, column 0"] + 0.01
    assert expected < 0.25


def test_a_row_without_a_score_is_a_no() -> None:
    X = some_people(200)
    never = BitQuestion(lambda rows: np.full(len(rows), np.nan))
    found = bit_inference(X, np.zeros(200, bool), never, LAW, known=[2])
    assert found.detail["p_release"] == found.detail["p_without"]


def test_raw_columns_need_no_ball() -> None:
    """At B = 2 columns are as they are: the attack does not depend on their units."""
    X = some_people(300)
    units = np.array([1.0, 1e5, 1e-3])
    bits = drawn(X, LAW, BitQuestion(W))
    raw = bit_inference(X * units, bits, BitQuestion(W / units), LAW, known=[2])
    inside = bit_inference(X * 0.9, bits, BitQuestion(W / 0.9), LAW, known=[2])  # nobody on the sphere
    for setting, failed in raw.detail["p_release"].items():
        assert failed == pytest.approx(inside.detail["p_release"][setting], abs=0.011)


def test_the_sentence() -> None:
    X = some_people(200)
    question = BitQuestion(W)
    found = bit_inference(X, drawn(X, LAW, question), question, LAW, X, known=[2])
    assert meaning("bit_inference", found).startswith(
        "An insider knows whose answer it is. Guesses at a missing"
    )
    assert found.bound == "upper"


def _call(**changed: Any) -> Callable[[], Protection]:
    X = some_people(50)
    given: dict[str, Any] = {
        "X": X,
        "bits": np.ones(50, bool),
        "questions": BitQuestion(W),
        "law": LAW,
    } | changed
    return lambda: bit_inference(**given)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"bits": np.ones(50)}, TypeError, "bits of type float64 must be booleans"),
        ({"bits": np.ones(49, bool)}, ValueError, "bits has shape"),
        ({"bits": np.ones((50, 2), bool)}, ValueError, "a column for each decision"),
        ({"questions": "aid"}, TypeError, "questions"),
        ({"questions": BitQuestion([1.0])}, ValueError, r"questions\[0\] has 1 weights: X has 3 columns"),
        ({"questions": BitQuestion(W, cuts=np.zeros(3))}, ValueError, r"questions\[0\] has 3 cuts: X has 50"),
        ({"law": Decision(B=2, epsilon=1)}, TypeError, "law"),
        ({"law": Decision(B=2, epsilon=1, programs=2).law()}, ValueError, "a law of 2 decisions"),
        ({"X": some_people(50)[:, :1], "questions": BitQuestion([1.0])}, ValueError, "needs at least 2"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        _call(**changed)()


def test_bad_questions() -> None:
    with pytest.raises(ValueError, match="yes = 'left'"):
        replace(BitQuestion(W), yes="left")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cuts must be"):
        BitQuestion(W, cuts=np.nan)
