"""Decisions: cells that no two rows within B jump over, losses by enumeration, draws, and broken twins."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from support.statistics import FALSE_ALARM
from targetdp import Guarantee, accuracy_ceiling
from targetdp._core import Floats, Integers, Words
from targetdp.accounting import PrivacyFilter, ResponseLoss, compose
from targetdp.attacks import audit_rows
from targetdp.mechanisms import (
    AdditiveScore,
    Cells,
    Decision,
    DecisionLaw,
    LinearScore,
    RowScore,
    law_of,
    noise_law_of,
)
from targetdp.mechanisms import SphericalLaplace as Laplace
from targetdp.noise import ALL_WORDS
from targetdp.release._certificate._charge import Charge, charge_of

BITS = 50
ADDITIVE = AdditiveScore.of(
    [[-0.9, -0.2, 0.1, 0.7], [-1.0, 0.3, 1.0], [0.4]], [[0.3, -0.4, 0.2, 0.25], [0.9, 0.1, 0.8], [5.0]]
)


def sharpest(make: Callable[[float], RowScore]) -> RowScore:
    """The longest score that is not refused: its norm is 1 but for the last digits."""
    low, high = 0.5, 2.0
    while math.nextafter(low, 2) < high:
        middle = (low + high) / 2
        try:
            make(middle)
        except ValueError:
            high = middle
        else:
            low = middle
    return make(low)


def linear(*weights: float) -> RowScore:
    length = math.hypot(*weights)
    return sharpest(lambda factor: LinearScore(tuple(factor * w / length for w in weights)))


def zigzag(factor: float) -> AdditiveScore:
    """Lines in two columns, with knots where floats have to be rounded."""
    knots = ((-1.0, -0.3, 0.1, 0.7, 1.0), (-0.9, -1 / 3, 0.0, 0.3, 0.9), (0.0,))
    return AdditiveScore(
        knots, (tuple(factor * 0.6 * t for t in knots[0]), tuple(-factor * 0.8 * t for t in knots[1]), (0.0,))
    )


SCORES: dict[str, RowScore] = {
    "one column": LinearScore((1.0,)),
    "two columns": linear(3.0, -4.0),
    "ten columns": linear(*np.random.default_rng(7).normal(size=10)),
    "additive": sharpest(zigzag),
}
WIDTHS = (0.013, 0.07, 0.1, 0.25, 0.3, 1 / 3, 0.9)


# Rows within B are never two cells apart.


def within(a: Floats, b: Floats, B: float) -> bool:
    """Whether two rows are within B, by fractions."""
    return sum((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True)) <= Fraction(B) ** 2


def direction(score: RowScore) -> Floats:
    """Where the score rises the fastest."""
    if isinstance(score, LinearScore):
        return np.array(score.weights) / math.hypot(*score.weights)
    assert isinstance(score, AdditiveScore)
    return np.array([score.slopes[0], -score.slopes[1], 0.0])


def adversarial(
    score: RowScore, B: float, cut: float, count: int, rng: np.random.Generator, apart: int = 1
) -> tuple[Floats, Floats]:
    """Pairs at an exact distance of at most B·apart, next to borders of cells: of width B, and of ours."""
    d, along = score.columns, direction(score)
    width = rng.choice([B, Cells.hiding(B, score).width * 2.0**-BITS], size=count)
    border = cut - rng.integers(-math.ceil(1 / B), math.ceil(1 / B) + 1, size=count) * width
    border += rng.integers(-3, 4, size=count) * np.spacing(np.abs(border) + 0.01)
    aside = rng.normal(size=(count, d)) * (0.01 if d > 2 else 0.0)
    own = border[:, None] * along + aside - (aside @ along)[:, None] * along
    other = own + B * apart * along
    good = np.zeros(count, dtype=bool)
    for _ in range(6):
        far = [i for i in np.flatnonzero(~good) if not within(own[i], other[i], apart * Fraction(B))]  # type: ignore[arg-type]
        good = np.ones(count, dtype=bool)
        good[far] = False
        other[far] = np.nextafter(other[far], own[far])
    inside = (np.linalg.norm(own, axis=1) <= 1) & (np.linalg.norm(other, axis=1) <= 1)
    return own[good & inside], other[good & inside]


CellsOf = Callable[[RowScore, Floats, float, float], Integers]


def ours(score: RowScore, rows: Floats, B: float, cut: float) -> Integers:
    return Cells.hiding(B, score).of_rows(rows, cut)


def in_floats(score: RowScore, rows: Floats, B: float, cut: float) -> Integers:
    """A broken twin: cells of width B, by a division of floats."""
    return np.floor((cut - score.of_rows(rows)) / B).astype(np.int64)


def without_room(score: RowScore, rows: Floats, B: float, cut: float) -> Integers:
    """A broken twin: whole numbers, but no room for rounding."""
    return Cells(score, math.floor(Fraction(B) * 2**BITS)).of_rows(rows, cut)


def jumps(cells_of: CellsOf, pairs: int, names: tuple[str, ...] = tuple(SCORES)) -> tuple[int, int]:
    """How many of so many pairs are two cells apart."""
    rng, tried, found = np.random.default_rng(20), 0, 0
    while tried < pairs:
        for name, B in product(names, WIDTHS):
            cut = float(rng.choice([0.0, rng.uniform(-0.9, 0.9)]))
            own, other = adversarial(SCORES[name], B, cut, 200 if SCORES[name].columns > 3 else 600, rng)
            if len(own):
                cells = [cells_of(SCORES[name], rows, B, cut) for rows in (own, other)]
                found += int((np.abs(cells[0] - cells[1]) > 1).sum())
                tried += len(own)
    return found, tried


def test_no_pair_within_B_is_two_cells_apart() -> None:
    found, tried = jumps(ours, 100_000)
    assert tried >= 100_000
    assert found == 0


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("twin", [in_floats, without_room])
def test_cells_without_room_for_rounding_are_caught(twin: CellsOf, name: str) -> None:
    found, _ = jumps(twin, 10_000, (name,))
    assert found >= 10


@pytest.mark.parametrize("name", SCORES)
def test_rows_anywhere_are_as_close_as_they_should_be(name: str) -> None:
    """Also rows outside the ball, which are clipped, and cuts beyond all scores."""
    rng, score = np.random.default_rng(3), SCORES[name]
    for B, cut in product((0.02, 0.3, 2.0), (-2.0, -0.3, 0.0, 1.0, 2.0)):
        own = rng.normal(size=(4000, score.columns)) * rng.choice([1e-9, 0.1, 1.0, 1e6], size=(4000, 1))
        step = rng.normal(size=own.shape)
        other = own + step / np.linalg.norm(step, axis=1, keepdims=True) * B * 0.999
        close = np.linalg.norm(other - own, axis=1) <= B
        cells = Cells.hiding(B, score)
        apart = np.abs(cells.of_rows(own, cut) - cells.of_rows(other, cut))[close]
        assert apart.max() <= 1


@pytest.mark.parametrize("apart", [2, 3])
def test_pairs_farther_apart_are_within_what_is_claimed_and_reach_it(apart: int) -> None:
    rng, most = np.random.default_rng(4), 0
    for B in (0.1, 0.25, 0.3):
        cells = Cells.hiding(B, SCORES["one column"])
        for _ in range(5):
            own, other = adversarial(SCORES["one column"], B, 0.0, 2000, rng, apart)
            found = np.abs(cells.of_rows(own, 0.0) - cells.of_rows(other, 0.0)).max()
            assert found <= cells.apart(apart * B) == apart
            most = max(most, int(found))
            assert cells.apart(math.nextafter(apart * B, 2) * (1 + 1e-9)) == apart + 1
    assert most == apart


@pytest.mark.parametrize("name", SCORES)
def test_at_distance_two_there_is_one_cell_on_each_side(name: str) -> None:
    cells, rng = Cells.hiding(2.0, SCORES[name]), np.random.default_rng(5)
    assert cells.on_a_side == 1
    assert cells.apart(2.0) == cells.apart(1e-6) == 1
    rows = rng.normal(size=(2000, SCORES[name].columns))
    for cut in (-1.0, -0.2, 0.0, 1.0):
        assert set(cells.of_rows(rows, cut).tolist()) <= {0, -1}


@pytest.mark.parametrize("name", SCORES)
def test_scores_that_are_off_by_all_that_is_allowed_for_are_not_two_cells_apart(name: str) -> None:
    """The worst that floats might do, and did not to any rows above; cells a step narrower would not do."""
    rng, score, jumped = np.random.default_rng(8), SCORES[name], 0
    for B in WIDTHS:
        ours, most = Cells.hiding(B, score), Fraction(B) + Fraction(score.rounding)
        for cells in (ours, Cells(score, ours.width - 1)):
            # In the last steps of a cell, and on all sides of where the grid rounds.
            last = rng.integers(-3, max(1, int(0.9 / B) - 1), size=300) * cells.width + cells.width - 1
            own = (-last + rng.integers(-8, 9, size=300) / 8) * 2.0**-BITS
            other = np.array([float(Fraction(s) - most) for s in own])
            for _ in range(3):
                far = [Fraction(a) - Fraction(b) > most for a, b in zip(own, other, strict=True)]
                other = np.where(far, np.nextafter(other, 9), other)
            assert not any(Fraction(a) - Fraction(b) > most for a, b in zip(own, other, strict=True))
            apart = np.abs(cells.of_scores(own, 0.0) - cells.of_scores(other, 0.0))[np.abs(other) <= 1]
            if cells is ours:
                assert apart.max(initial=0) <= 1
            else:
                jumped += int((apart > 1).sum())
    assert jumped > 10


def test_the_width_is_hardly_more_than_B() -> None:
    for B, d in product((1e-9, 1e-6, 0.05, 1.0), (1, 10, 1000)):
        width = Cells.hiding(B, LinearScore.of(np.ones(d), B=B)).width * 2.0**-BITS
        assert B < width < B + 2.0**-BITS * (d + 11)


def test_a_cut_for_each_person_and_scores_that_are_no_numbers() -> None:
    cells = Cells.hiding(0.25, SCORES["one column"])
    scores = np.array([0.0, 0.0, math.nan, math.inf, -math.inf])
    assert cells.of_scores(scores, 0.0).tolist() == [0, 0, -4, -4, 3]
    step = 2.0**-BITS
    cuts = np.array([0.0, -step, 0.0, 1.0, -1.0])
    assert cells.of_scores(scores, cuts).tolist() == [0, -1, -4, 0, 0]
    for bad in (2.5, math.nan, None, np.full(5, 3.0), np.zeros(4)):
        with pytest.raises((ValueError, TypeError), match="cut"):
            cells.of_scores(scores, bad)  # type: ignore[arg-type]


# The loss, by enumeration of the whole numbers.


def chance_of_yes(table: tuple[int, ...], cell: int) -> int:
    wrong = table[min(cell if cell >= 0 else -1 - cell, len(table) - 1)]
    return ALL_WORDS - wrong if cell >= 0 else wrong


def exact_delta(p: list[int], q: list[int], epsilon: float) -> Fraction:
    factor = Fraction(math.nextafter(math.exp(epsilon), 0) if epsilon else 1.0)  # below e^ε: δ is no smaller
    return sum((max(Fraction(0), a - factor * b) for a, b in zip(p, q, strict=True)), Fraction(0)) / ALL_WORDS


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 4.0, 30.0, 100.0])
@pytest.mark.parametrize("distance", [0.01, 0.25, 0.251, 0.5, 0.75, 1.0, 2.0])
def test_no_two_cells_tell_more_than_the_loss(epsilon: float, distance: float) -> None:
    law = Decision(B=0.25, epsilon=epsilon, score=[1.0, 2.0]).law()
    assert law.cells is not None
    loss, apart = law.privacy_loss(distance), law.cells.apart(distance)
    assert apart == math.ceil(distance / 0.25)
    assert loss.largest() <= apart * epsilon * (1 + 1e-15)
    worst = 0.0
    for cell, step in product(range(-9, 9), range(-apart, apart + 1)):
        p, q = chance_of_yes(law.table, cell), chance_of_yes(law.table, cell + step)
        answers = [p, ALL_WORDS - p], [q, ALL_WORDS - q]
        for e in (0.0, 0.3 * loss.largest(), epsilon, loss.largest()):
            room = Fraction(2.0**-52) if e else Fraction(0)  # of the bound on e^ε
            assert exact_delta(*answers, e) <= Fraction(loss.delta(e)) + room
        worst = max(worst, *(math.log(a / b) for a, b in zip(*answers, strict=True)))
    assert worst == pytest.approx(loss.largest(), rel=1e-7), "and some two tell as much"


@pytest.mark.parametrize("epsilon", [1e-4, 0.25, 4.0, 60.0])
@pytest.mark.parametrize("programs", [1, 2, 3, 4])
def test_at_distance_two_all_answers_are_enumerated(epsilon: float, programs: int) -> None:
    law = Decision(B=2, epsilon=epsilon, programs=programs).law()
    answers, (wrong,) = 2**programs, law.table
    right = ALL_WORDS - (answers - 1) * wrong
    p, q = [right, wrong] + [wrong] * (answers - 2), [wrong, right] + [wrong] * (answers - 2)
    for distance in (1e-6, 0.3, 2.0):
        loss = law.privacy_loss(distance)
        assert loss.largest() <= epsilon
        assert math.log(right / wrong) == pytest.approx(loss.largest(), rel=1e-9)
        for share in (0.0, 0.5, 0.99):
            e = share * loss.largest()
            room = Fraction(2.0**-52) if e else Fraction(0)
            assert exact_delta(p, q, e) <= Fraction(loss.delta(e)) + room
            assert loss.delta(e) <= float(exact_delta(p, q, e)) + 1e-9
        assert loss.epsilon(0.0) <= epsilon


def test_distances_and_composition_go_through_the_same_types() -> None:
    decision = Decision(B=0.25, epsilon=1, score=[1.0, 1.0])
    assert decision.guarantee == Guarantee(0.25, 1.0, 0.0)
    assert decision.privacy_loss(distance=0.25) == ResponseLoss(1.0)
    assert decision.privacy_loss(distance=0.1) == ResponseLoss(1.0)
    assert decision.privacy_loss(distance=1.0).epsilon(0.0) == pytest.approx(4.0, rel=1e-12)
    row = Laplace(B=0.25, epsilon=1).law(2).privacy_loss(0.25)
    both = compose(decision.privacy_loss(distance=0.25), row)
    assert 1.3 < both.epsilon(1e-5) <= 2.0 + 1e-6
    limit = PrivacyFilter("pure", 4.0, 1e-6)
    assert 4 * limit.cost(decision.privacy_loss(distance=0.25)).amount <= limit.budget.amount
    # Twelve monthly bits of ε = 4 are ε = 48.
    assert compose(*[Decision(B=2, epsilon=4).privacy_loss(distance=2.0)] * 12).largest() == pytest.approx(48)


# How often bits are right.


@pytest.mark.parametrize("B", [1e-6, 0.05, 0.25, 1.0, 2.0])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0, 8.0])
def test_next_to_the_cut_they_are_right_as_often_as_any_can_be(B: float, epsilon: float) -> None:
    law = Decision(B=B, epsilon=epsilon, score=[1.0]).law()
    best = accuracy_ceiling(Guarantee(B, epsilon, 0.0))
    assert law.agreement(0.0)[0] == pytest.approx(best, rel=1e-12)
    assert float(law.agreement(0.0)[0]) <= best * (1 + 1e-15), "the sharper theorem, reached"


def test_agreement_by_distance_from_the_cut() -> None:
    law = Decision(B=0.25, epsilon=4, score=[1.0]).law()
    curve = law.agreement([0.0, 0.2, 0.2501, 0.4, 0.51, 2.0])
    assert curve.round(4).tolist() == [0.982, 0.982, 0.9997, 0.9997, 1.0, 1.0]
    assert (np.diff(curve) >= 0).all()
    assert Decision(B=2, epsilon=4).law().agreement([0.0, 1.0]).round(4).tolist() == [0.982, 0.982]
    with pytest.raises(ValueError, match="distances"):
        law.agreement([-0.1])


def test_two_programs_together_agree_more_often_than_apart() -> None:
    together = Decision(B=2, epsilon=4, programs=2).law().agreement(0.0)[0]
    apart = Decision(B=2, epsilon=2).law().agreement(0.0)[0]
    assert (round(together, 3), round(apart, 3)) == (0.965, 0.881)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_bits_have_the_chances_of_their_cells_on_both_sides(epsilon: float) -> None:
    decision = Decision(B=0.2, epsilon=epsilon, score=[1.0])
    law, rng = decision.law(), np.random.default_rng(11)
    assert law.cells is not None
    rows = rng.uniform(-0.5, 0.5, size=(300_000, 1))
    cells = law.cells.of_rows(rows, 0.05)
    yes = decision.decide_rows(rows, cut=0.05)
    assert law.p_value(cells, yes) > FALSE_ALARM
    for cell in np.unique(cells):
        here = cells == cell
        chance = float(law.chance_of_yes(np.array([cell]))[0])
        assert stats.binomtest(int(yes[here].sum()), int(here.sum()), chance).pvalue > FALSE_ALARM
    assert (cells >= 0).mean() == pytest.approx((rows[:, 0] <= 0.05).mean())
    # The test has power: another ε, a bit that is never wrong far out, one-sided answers.
    for other in (0.93 * epsilon, 1.07 * epsilon):
        assert Decision(B=0.2, epsilon=other, score=[1.0]).law().p_value(cells, yes) < FALSE_ALARM
    assert law.p_value(cells, cells >= 0) < FALSE_ALARM
    assert law.p_value(cells, np.ones(len(cells), dtype=np.bool_)) < FALSE_ALARM


@pytest.mark.parametrize("programs", [1, 2, 4])
def test_answers_of_several_programs_have_their_chances(programs: int) -> None:
    decision, people = Decision(B=2, epsilon=2, programs=programs), 400_000
    truth = np.tile(np.arange(programs) % 2 == 0, (people, 1))
    answers = decision.decide(truth)
    assert answers.shape == truth.shape
    code = (answers.astype(np.int64) << np.arange(programs)).sum(axis=1)
    true = int((truth[0].astype(np.int64) << np.arange(programs)).sum())
    counts = np.bincount(code, minlength=2**programs)
    wrong = decision.law().table[0] / ALL_WORDS
    expected = np.full(2**programs, wrong)
    expected[true] = 1 - (2**programs - 1) * wrong
    assert stats.chisquare(counts, people * expected).pvalue > FALSE_ALARM
    # Power: one wrong answer that is drawn 10% more often.
    expected[true - 1] *= 1.1
    expected /= expected.sum()
    assert stats.chisquare(counts, people * expected).pvalue < FALSE_ALARM
    for j in range(programs):
        agree = float((answers[:, j] == truth[:, j]).mean())
        assert agree == pytest.approx(float(decision.law().agreement(0.0)[0]), abs=0.004)


class GivenWords:
    """Words that a test has chosen."""

    def __init__(self, words: list[int]) -> None:
        self.words = np.array(words, dtype=np.uint64)

    def fill(self, out: Words) -> None:
        out[:] = self.words


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("programs", [1, 2, 3, 4])
def test_one_of_several_bits_is_wrong_for_as_many_words_as_it_says(epsilon: float, programs: int) -> None:
    """Over all words: they are in stretches of one answer each, whose first and last word is tried."""
    law = Decision(B=2, epsilon=epsilon, programs=programs).law()
    (each,) = law.table
    starts = [each * place for place in range(law.answers)]
    ends = [*starts[1:], ALL_WORDS]
    for true in product([False, True], repeat=programs):
        truth = np.tile(true, (law.answers, 1))
        answers = law.decide_together(truth, GivenWords(starts))
        assert (answers == law.decide_together(truth, GivenWords([end - 1 for end in ends]))).all()
        assert len({tuple(one) for one in answers.tolist()}) == law.answers
        for wrong in (answers != truth).T:
            stretches = [end - start for start, end, here in zip(starts, ends, wrong, strict=True) if here]
            assert sum(stretches) == law.marginal_table[0]


def test_the_p_value_is_exact() -> None:
    """Over all results for few people it is below α with a probability of at most α."""
    law, cells = Decision(B=0.25, epsilon=1, score=[1.0]).law(), np.array([0, -1, 0, 1, 1, -2])
    chances = law.chance_of_error(cells)
    found: list[tuple[float, float]] = []
    for wrong in product([False, True], repeat=len(cells)):
        chance = float(np.prod(np.where(wrong, chances, 1 - chances)))
        found.append((law.p_value(cells, (cells >= 0) ^ np.array(wrong)), chance))
    assert sum(chance for _, chance in found) == pytest.approx(1)
    for alpha in (0.01, 0.05, 0.2, 0.5):
        assert sum(chance for p, chance in found if p <= alpha) <= alpha
    assert law.p_value(np.array([], dtype=np.int64), np.array([], dtype=np.bool_)) == 1.0


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 4.0, 20.0, 44.0, 100.0])
@pytest.mark.parametrize("people", [1, 2, 7, 60])
def test_the_p_value_has_both_tails_to_their_ends(epsilon: float, people: int) -> None:
    """Against sums of fractions, from nobody wrong to everybody."""
    law, cells = Decision(B=2, epsilon=epsilon).law(), np.zeros(people, np.int64)
    q = Fraction(law.table[0], ALL_WORDS)
    masses = [math.comb(people, k) * q**k * (1 - q) ** (people - k) for k in range(people + 1)]
    for count in range(people + 1):
        exact = min(1, 2 * min(sum(masses[: count + 1]), sum(masses[count:])))
        found = law.p_value(cells, np.arange(people) >= count)
        assert found == pytest.approx(float(exact), rel=1e-11, abs=1e-280)


def test_the_share_of_yes() -> None:
    law = Decision(B=2, epsilon=1).law()
    cells = np.array([0] * 30 + [-1] * 70)
    assert law.unbiased_share(float(law.chance_of_yes(cells).mean())) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="does not tell"):
        Decision(B=0.25, epsilon=1, score=[1.0]).law().unbiased_share(0.3)
    with pytest.raises(ValueError, match="share"):
        law.unbiased_share(1.5)


def test_a_simulation_can_be_repeated_and_a_release_cannot() -> None:
    decision, truth = Decision(B=2, epsilon=1), np.ones(200, dtype=np.bool_)
    once, again = (decision.decide(truth, rng=np.random.default_rng(1)) for _ in range(2))
    assert (once == again).all()
    assert (decision.decide(truth) != decision.decide(truth)).any()


# Audits: an adversary who looks at bits finds no more than ε, and finds a twin out.


def bits_of(decision: Decision, cut: float) -> Callable[[Floats], Floats]:
    return lambda rows: decision.decide_rows(rows, cut=cut).astype(np.float64)[:, None]


@pytest.mark.parametrize(("own", "other"), [([0.3], [0.05]), ([0.3], [0.299]), ([0.3], [-0.15])])
def test_audits_find_no_more_than_epsilon_and_nearly_that(own: list[float], other: list[float]) -> None:
    decision = Decision(B=0.25, epsilon=2, score=[1.0])
    found = audit_rows(bits_of(decision, 0.2995), own, other, runs=200_000, confidence=1 - 1e-6)
    claim = decision.privacy_loss(distance=own[0] - other[0]).epsilon(0.0)
    assert not found.refutes(claim)
    assert found.epsilon > 1.8
    loud = Decision(B=0.25, epsilon=1.4, score=[1.0])
    assert found.refutes(loud.privacy_loss(distance=0.1).epsilon(0.0)), "a twin that claims less is caught"


def test_on_one_side_nothing_is_told() -> None:
    decision = Decision(B=2, epsilon=4, score=[1.0])
    found = audit_rows(bits_of(decision, 0.5), [0.4], [-0.9], runs=200_000, confidence=1 - 1e-6)
    assert found.epsilon < 0.1


# Records and refusals.

LAWS = {
    "any function": Decision(B=2, epsilon=4).law(),
    "programs": Decision(B=2, epsilon=4, programs=3).law(),
    "linear": Decision(B=0.25, epsilon=0.7, score=[1.0, 2.0]).law(),
    "additive": Decision(B=0.25, epsilon=0.7, score=ADDITIVE).law(),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_record_is_plain_and_reads_back(law: DecisionLaw) -> None:
    again = law_of(json.loads(json.dumps(law.record())))
    assert again == law
    assert again.record() == law.record()
    assert again.decision is again
    assert again.linear is None
    assert again.privacy_loss(0.6) == law.privacy_loss(0.6)
    for name in law.record():
        with pytest.raises(ValueError, match=r"family = None|is not complete"):
            law_of({key: value for key, value in law.record().items() if key != name})


@pytest.mark.parametrize(
    "change",
    [{"level": 0.0}, {"level": 101.0}, {"level": "4"}, {"programs": 0}, {"programs": 2}, {"programs": 5},
     {"cells": 5}, {"cells": {}}, {"cells": {"score": {"weights": [1.0]}, "width": 0}},
     {"cells": {"score": {"weights": [1.0, 1.0]}, "width": 5}}, {"cells": {"score": {}, "width": 5}},
     {"cells": {"score": {"weights": [1.0], "more": 1}, "width": 5}}, {"cells": {"score": 7, "width": 5}},
     {"cells": {"score": {"weights": [1.0]}, "width": 2.5}}, {"more": 1},
     {"cells": {"score": {"knots": [[0.0, 0.5]], "values": [[0.0, 0.6]]}, "width": 5}}],
)  # fmt: skip
def test_a_record_that_no_decision_has_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        law_of(LAWS["linear"].record() | change)


def test_a_charge_holds_it_and_readers_of_noise_refuse_it() -> None:
    law = LAWS["additive"]
    charge = charge_of(json.loads(json.dumps(Charge(law, Guarantee(0.25, 0.1, 1e-9)).record())))
    assert charge.law == law
    assert charge.losses(0.25)[0] == ResponseLoss(0.7)
    with pytest.raises(ValueError, match="no noise on rows: give a release of rows or scores"):
        noise_law_of(law.record())


def test_narrower_cells_are_a_larger_loss() -> None:
    law = LAWS["linear"]
    assert law.cells is not None
    narrow = DecisionLaw(law.level, 1, Cells(law.cells.score, law.cells.width - 1))
    assert narrow.privacy_loss(0.25).epsilon(0.0) == pytest.approx(1.4)
    assert law.privacy_loss(0.25).epsilon(0.0) == 0.7


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"B": 0.25}, "needs a score"), ({"B": 0.0}, "B"), ({"B": 3}, "B"), ({"epsilon": 0}, "epsilon"),
     ({"epsilon": 200}, "epsilon"), ({"programs": 5}, "programs"), ({"programs": True}, "programs"),
     ({"programs": 2, "score": [1.0]}, "programs"), ({"score": [0.0, 0.0]}, "score.0. is zero"),
     ({"score": [[1.0, 0.0], [0.0, 1.0]]}, "2 scores"), ({"score": "age"}, "score")],
)  # fmt: skip
def test_what_is_no_decision_is_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        Decision(**{"B": 2, "epsilon": 4} | arguments)


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(TypeError, match="booleans"):
        Decision(B=2, epsilon=4).decide([0, 1])
    with pytest.raises(ValueError, match="decide_rows"):
        Decision(B=1, epsilon=4, score=[1.0]).decide([True])
    with pytest.raises(ValueError, match="a column for each of 2"):
        Decision(B=2, epsilon=4, programs=2).decide([True, False])
    with pytest.raises(ValueError, match="a column for each of 1"):
        Decision(B=2, epsilon=4).decide([[True, False]])
    with pytest.raises(ValueError, match="there is no score"):
        Decision(B=2, epsilon=4).decide_rows([[0.1]], cut=0.0)
    with pytest.raises(ValueError, match="column"):
        Decision(B=1, epsilon=4, score=[1.0]).decide_rows([[0.1, 0.2]], cut=0.0)
