"""Audits of decisions through the code that makes them: all bits and all cuts; broken twins are caught.

Bits are decided by whole words, and a law has a handful of thresholds. So every outcome's probability is
found exactly: one run for each combination of stretches of words, through `decide_all` itself.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.decisions import asks, decision, near, with_cut
from targetdp._core import Integers, Words
from targetdp.attacks._audit import lower_bound
from targetdp.mechanisms import STEPS, Cells, Decision, DecisionLaw, LinearScore, RowScore, steps_of
from targetdp.noise import ALL_WORDS, SecretWords, exp_between, fresh_keys
from targetdp.normalization import ColumnScales
from targetdp.release._decision import _bits, _cuts
from targetdp.release._decision._bits import Decided, Turns, batches_of, marks_of
from targetdp.release._decision._question import Question
from targetdp.release._decision._scoring import Scoring, scoring_of
from targetdp.release._engine import _base
from targetdp.table import Encoding

Outcome = tuple[Any, ...]
Law = dict[Outcome, Fraction]
Decide = Callable[..., Decided]


class Listed:
    """Words that are given, one after the other."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words, self._next = np.array(words, dtype=np.uint64), 0

    def fill(self, out: Words) -> None:
        out[:] = self._words[self._next : self._next + out.size]
        self._next += out.size


class Job:
    """What `decide_all` needs of a release: its law, how people are scored, and words."""

    def __init__(self, law: DecisionLaw, scoring: Scoring, words: Any) -> None:
        self.decisions, self.draws, self._words = (law, scoring), self, words

    def for_decisions(self, tags: Words, scores: Integers) -> Any:
        assert len({*tags.tolist()}) == len(tags) == len(scores)
        return self._words


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person is a batch, and what was expected counts as one: cuts move from the first bit on."""
    monkeypatch.setattr(_cuts, "FIRST_BATCH", 1)
    monkeypatch.setattr(_cuts, "_EXPECTED_OF", 1)


@cache
def release_id(people: int) -> str:
    """An id of a release that puts these few people into as many batches as there are."""
    if people > 5:
        return "release"
    ids = pa.array([f"p{place}" for place in range(people)])
    names = (f"release {number}" for number in itertools.count())
    batches = len(_cuts.batch_ends(people))
    return next(one for one in names if len({*batches_of(marks_of(ids, one)[0], people).tolist()}) == batches)


class Release:
    """A release of a few people: what is asked, and the law by which it is answered."""

    def __init__(
        self, *decisions: dict[str, Any], B: float, epsilon: float, score: RowScore | None = None
    ) -> None:
        self.epsilon, self.questions = epsilon, asks(*decisions, B=B, epsilon=epsilon).questions
        if score is not None:
            self.questions = tuple(Question(one.asked, score) for one in self.questions)
        self.scoring = scoring_of(self.questions, Encoding())
        own = self.questions[0].score
        self.law = Decision(B=B, epsilon=epsilon, score=own, programs=len(self.questions)).law()
        scaled = ColumnScales(np.zeros(1), np.ones(1), "declared")
        self.scales = None if self.scoring.classic else scaled

    def scored(self, calls: Sequence[float | None]) -> tuple[Turns, Integers, Words]:
        """Batches, scores and tags of a table of one column, by the code that every engine runs."""
        ids = pa.array([f"p{place}" for place in range(len(calls))])
        batch = pa.record_batch({"calls": pa.array(calls, pa.float64())})
        steps, _ = self.scoring.steps(batch, self.scales, {})
        tags, moved = marks_of(ids, release_id(len(calls)))
        return batches_of(tags, len(calls)), self.scoring.moved_apart(steps, moved), tags

    def stretches(self, more: Iterable[int] = ()) -> list[tuple[int, Fraction]]:
        """A word of each stretch within which all words do the same, and how many there are, as a share."""
        own = {words * place for words in self.law.table for place in range(1, self.law.answers)}
        ends = sorted({0, ALL_WORDS, *own, *more})
        return [(low, Fraction(high - low, ALL_WORDS)) for low, high in itertools.pairwise(ends)]

    def outcomes(
        self, calls: Sequence[float | None], decide_all: Decide | None = None, more: Iterable[int] = ()
    ) -> Law:
        """The exact probability of everything that goes out: each person's bits, and all cuts."""
        people = self.scored(calls)
        found: Law = {}
        for drawn in itertools.product(self.stretches(more), repeat=len(calls)):
            chance = math.prod((share for _, share in drawn), start=Fraction(1))
            job: Any = Job(self.law, self.scoring, Listed([word for word, _ in drawn]))
            done = (decide_all or _base.decide_all)(job, *people)
            outcome = (*map(tuple, done.bits.tolist()), done.cuts)
            found[outcome] = found.get(outcome, Fraction(0)) + chance
        assert sum(found.values()) == 1
        return found


def worst(one: Law, other: Law) -> Fraction | float:
    """The largest ratio of probabilities of any outcome, either way round."""
    most: Fraction | float = Fraction(1)
    for outcome in {*one, *other}:
        both = sorted((one.get(outcome, Fraction(0)), other.get(outcome, Fraction(0))))
        if both[0] == 0:
            return math.inf
        most = max(most, both[1] / both[0])
    return most


def neighbors(table: Sequence[float | None], rows: Iterable[float | None]) -> Iterator[list[float | None]]:
    """Tables in which one person, whoever, has another row."""
    for place, row in itertools.product(range(len(table)), rows):
        if table[place] != row:
            yield [*table[:place], row, *table[place + 1 :]]


def loss(release: Release, table: Sequence[float | None], rows: Iterable[float | None], **more: Any) -> float:
    """The largest loss between a table and any neighbor of it."""
    own = release.outcomes(table, **more)
    ratios = [worst(own, release.outcomes(other, **more)) for other in neighbors(table, rows)]
    return float(math.log(max(ratios)))


def must_keep(release: Release, one: Law, other: Law, times: int = 1) -> Fraction:
    """No ratio above e^ε, in fractions; how large it is."""
    found = worst(one, other)
    assert isinstance(found, Fraction)
    assert found <= exp_between(release.epsilon)[0] ** times
    return found


# What is claimed, at B = 2

EXPECTED = ((0.0, 0.0), (10.0, 1.0))
FIVE: tuple[tuple[float | None, ...], ...] = (
    (5.0, 5.0, 5.0, 5.0, 5.0),
    (0.0, 3.0, 5.0, 7.0, 10.0),
    (1.0, None, 4.0, -1e300, 2.5),
)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("table", FIVE)
def test_at_B_2_all_bits_and_cuts_together_tell_no_more_than_one_bit(
    epsilon: float, table: tuple[float | None, ...]
) -> None:
    """One person's row may be anything: a gap, a huge number, a value on a cut."""
    release = Release(decision(weights={"calls": 1.0}, share=0.4, expected=EXPECTED), B=2.0, epsilon=epsilon)
    own = release.outcomes(table)
    assert len({outcome[-1] for outcome in own}) > 3, "cuts do move"
    found = [
        must_keep(release, own, release.outcomes(other)) for other in neighbors(table, (-1e300, 4.0, None))
    ]
    assert math.log(max(found)) == pytest.approx(epsilon), "and it tells that much"


def test_several_decisions_together_tell_no_more_than_epsilon() -> None:
    release = Release(
        decision(name="a", weights={"calls": 1.0}, expected=EXPECTED),
        with_cut(4.0, name="b", weights={"calls": 1.0}, yes="above"),
        B=2.0, epsilon=1.0,
    )  # fmt: skip
    table = (3.0, 4.0, 6.0)
    own = release.outcomes(table)
    found = [
        must_keep(release, own, release.outcomes(other)) for other in neighbors(table, (-9.0, 4.0, 99.0))
    ]
    assert math.log(max(found)) == pytest.approx(1.0)


def test_on_one_side_of_a_known_cut_nothing_is_told_at_all() -> None:
    release = Release(with_cut(4.0, weights={"calls": 1.0}), B=2.0, epsilon=4.0)
    assert release.outcomes((1.0, 2.0)) == release.outcomes((-1e9, 4.0))
    assert release.outcomes((9.0, None)) == release.outcomes((math.inf, 5.0))


# Below B = 2


def near_release(B: float, epsilon: float, **given: Any) -> Release:
    return Release(near(weights={"calls": 1.0}, **given), B=B, epsilon=epsilon)


@pytest.mark.parametrize(("B", "epsilon"), [(0.5, 1.0), (0.25, 4.0)])
def test_below_B_2_rows_within_B_are_hidden_wherever_cells_end(B: float, epsilon: float) -> None:
    release = near_release(B, epsilon)
    cells = release.law.cells
    assert cells is not None
    first = release.questions[0].rule(release.law)
    assert isinstance(first, _cuts.CutRule)
    found = [Fraction(1)]
    for number in (-1, 0, 1):
        # Just within B, on two sides of the end of a cell, as floats are.
        end = (first.first - number * cells.width) / STEPS
        for start in (end, end - 1e-15, end + 1e-15, end - B / 2):
            table, other = (start, 0.1), (float(start + B * (1 - 2.0**-52)), 0.1)
            assert Fraction(other[0]) - Fraction(start) <= Fraction(B)
            found.append(must_keep(release, release.outcomes(table), release.outcomes(other)))
    assert math.log(max(found)) == pytest.approx(epsilon)


def test_farther_apart_it_is_the_stated_loss() -> None:
    release = near_release(0.5, 1.0)
    for distance in (0.4, 0.5, 0.9, 1.0, 1.4, 2.0):
        stated = release.law.privacy_loss(distance).epsilon(0.0)
        most = max(
            float(math.log(worst(release.outcomes((low, 0.1)), release.outcomes((low + distance, 0.1)))))
            for low in np.linspace(-1, 1 - distance, 4).tolist()
        )
        assert most <= stated * (1 + 1e-9)


# Broken twins


def test_a_cut_from_true_answers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of the first batch's true answers in place of its bits."""

    def twin(batches: Turns, scores: Integers, rules: Any, law: DecisionLaw, words: Words) -> Decided:
        bits = np.empty(scores.shape, dtype=np.bool_)

        def ask(places: Integers, cuts: Integers) -> Any:
            truth = scores[places] <= cuts
            bits[places, 0] = law.decide(np.where(truth[:, 0], 0, -1), words[places])
            return [int(truth.sum())]

        return Decided(bits, _bits._walk(batches, rules, ask))

    release = Release(decision(weights={"calls": 1.0}, share=0.4, expected=EXPECTED), B=2.0, epsilon=1.0)
    table = (3.0, 4.0, 5.0, 6.0)
    assert loss(release, table, (-99.0, 99.0)) == pytest.approx(1.0)
    monkeypatch.setattr(_base, "decide", twin)
    assert loss(release, table, (-99.0, 99.0)) == math.inf, "cuts go out, and are made of rows"
    # Even if nobody saw the cuts: others' bits tell of her row.
    hidden = [_without_cuts(release.outcomes(rows)) for rows in (table, *neighbors(table, (99.0,)))]
    assert max(math.log(worst(hidden[0], other)) for other in hidden[1:]) > 1.5


def _without_cuts(law: Law) -> Law:
    found: Law = {}
    for outcome, chance in law.items():
        found[outcome[:-1]] = found.get(outcome[:-1], Fraction(0)) + chance
    return found


def pairs_at_multiples(B: float, cut: float) -> Iterator[tuple[float, float]]:
    """Scores at exact distance B at most, beside multiples of B from a cut."""
    for number in range(-9, 9):
        for ulps in range(-3, 4):
            one = cut - number * B
            for _ in range(abs(ulps)):
                one = math.nextafter(one, math.copysign(9, ulps))
            other = one + B
            while Fraction(other) - Fraction(one) > Fraction(B):
                other = math.nextafter(other, -9)
            if -1 <= one <= 1 and -1 <= other <= 1:
                yield one, other


def test_unrounded_cells_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor of a quotient of floats puts rows within B two cells apart; whole numbers do not."""
    B, cut = 0.1, 0.3
    # Weights of a request are divided by a little more than their norm, which hides it: these are not.
    score = LinearScore((1.0,))
    release = Release(with_cut(cut, weights={"calls": 1.0}), B=B, epsilon=1.0, score=score)
    pairs = list(pairs_at_multiples(B, cut))
    assert len(pairs) > 50
    for one, other in pairs:
        must_keep(release, release.outcomes((one,)), release.outcomes((other,)))

    def twin(_: Cells, scores: Integers, at: Any) -> Integers:
        return np.asarray(np.floor((at / STEPS - scores / STEPS) / B)).astype(np.int64)

    monkeypatch.setattr(Cells, "of_steps", twin)
    losses = [math.log(worst(release.outcomes((one,)), release.outcomes((other,)))) for one, other in pairs]
    assert max(losses) > 1.5


def test_a_skipped_draw_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is far from the cut gets her true answer."""

    def twin(law: DecisionLaw, cells: Integers, words: Any) -> Any:
        bits = cells >= 0
        drawn = np.flatnonzero((cells < 2) & (cells >= -2))
        bits[drawn] = kept(law, cells[drawn], words[drawn])
        return bits

    kept = DecisionLaw.decide
    release = near_release(0.5, 1.0)
    table, other = (-0.9, 0.1, 0.3), (-0.4, 0.1, 0.3)
    must_keep(release, release.outcomes(table), release.outcomes(other))
    monkeypatch.setattr(DecisionLaw, "decide", twin)
    assert worst(release.outcomes(table), release.outcomes(other)) == math.inf


def test_turns_that_depend_on_scores_are_caught() -> None:
    def twin(job: Any, batches: Turns, scores: Integers, tags: Words) -> Decided:
        by_score = np.empty_like(batches)
        by_score[np.argsort(scores[:, 0], kind="stable")] = np.sort(batches)
        return _base.decide_all(job, by_score, scores, tags)

    release = Release(decision(weights={"calls": 1.0}, share=0.4, expected=EXPECTED), B=2.0, epsilon=1.0)
    table = (3.0, 4.0, 5.0, 6.0)
    assert loss(release, table, (-99.0, 99.0)) == pytest.approx(1.0)
    assert loss(release, table, (-99.0, 99.0), decide_all=twin) > 1.2


def test_words_that_two_decisions_share_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bits of ε/2 each, which would keep ε with words of their own, flip together."""
    release = Release(
        with_cut(3.0, name="a", weights={"calls": 1.0}), with_cut(7.0, name="b", weights={"calls": 1.0}),
        B=2.0, epsilon=2.0,
    )  # fmt: skip
    half = Decision(B=2, epsilon=1.0).law()
    table, rows = (1.0, 5.0), (1.0, 5.0, 9.0)
    assert loss(release, table, rows) == pytest.approx(2.0)

    def twin(_: DecisionLaw, answers: Any, words: Any) -> Any:
        return answers ^ (words < half.table[0])[:, None]

    monkeypatch.setattr(DecisionLaw, "decide_together", twin)
    assert loss(release, table, rows, more=half.table) == math.inf


def test_the_same_words_at_another_cut_are_caught() -> None:
    """A re-run that was let through: both go out, and whose bit was flipped is seen."""
    first, second = (Release(with_cut(cut, weights={"calls": 1.0}), B=2.0, epsilon=1.0) for cut in (3.0, 7.0))

    def both(rows: Sequence[float], *, fresh: bool) -> Law:
        found: Law = {}
        draws = itertools.product(first.stretches(), repeat=len(rows))
        others = list(itertools.product(first.stretches(), repeat=len(rows)))
        for drawn in draws:
            for again in others if fresh else [drawn]:
                outcome: Outcome = ()
                for release, words in ((first, drawn), (second, again)):
                    job: Any = Job(release.law, release.scoring, Listed([word for word, _ in words]))
                    done = _base.decide_all(job, *release.scored(rows))
                    outcome += (tuple(done.bits[:, 0].tolist()), done.cuts)
                chance = math.prod((share for _, share in drawn), start=Fraction(1))
                if fresh:
                    chance *= math.prod((share for _, share in again), start=Fraction(1))
                found[outcome] = found.get(outcome, Fraction(0)) + chance
        return found

    table, other = (1.0, 5.0), (9.0, 5.0)
    twice = must_keep(first, both(table, fresh=True), both(other, fresh=True), 2)
    assert math.log(twice) == pytest.approx(2.0)
    between = (5.0, 5.0)
    assert worst(both(table, fresh=False), both(between, fresh=False)) == math.inf


# With secret words, on many people at once: a known cut binds nobody to others, so each is a play of her own

PLAYS, CONFIDENCE = 200_000, 1 - 1e-6


def played(release: Release, calls: float) -> Any:
    """The bits of as many people as there are plays, all with one row."""
    (key,) = fresh_keys(1)
    job: Any = Job(release.law, release.scoring, SecretWords(key))
    return _base.decide_all(job, *release.scored([calls] * PLAYS)).bits[:, 0].astype(float)


def measured(release: Release, one: float, other: float) -> float:
    bits = played(release, one), played(release, other)
    found = [lower_bound(a, b, delta=0.0, confidence=CONFIDENCE).epsilon for a, b in (bits, bits[::-1])] + [
        lower_bound(-a, -b, delta=0.0, confidence=CONFIDENCE).epsilon for a, b in (bits, bits[::-1])
    ]
    return max(found)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_an_audit_at_B_2_finds_nearly_epsilon_and_no_more(epsilon: float) -> None:
    release = Release(with_cut(4.0, weights={"calls": 1.0}), B=2.0, epsilon=epsilon)
    assert 0.85 * epsilon < measured(release, 4.0, 1e9) <= epsilon
    assert measured(release, 4.0, -1e9) < 0.05, "on one side there is nothing to find"


def test_an_audit_below_B_2_finds_nearly_epsilon_beside_the_end_of_a_cell_and_no_more() -> None:
    release = Release(with_cut(0.0, weights={"calls": 1.0}), B=0.25, epsilon=1.0)
    cells = release.law.cells
    assert cells is not None
    width = cells.width / STEPS
    assert 0.9 < measured(release, 0.0, 0.25) <= 1.0
    start = -width * (1 + 1e-6)  # in the second cell, also when weights are divided by more than their norm
    assert 0.85 < measured(release, start, start + 0.25) <= 1.0
    assert 1.5 < measured(release, -0.2, 0.3) <= 2.0, "two cells apart, which is beyond B"


def test_an_audit_catches_half_of_the_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of errors that is too small by half."""
    release = Release(with_cut(4.0, weights={"calls": 1.0}), B=2.0, epsilon=2.0)
    half = tuple(words // 2 for words in release.law.table)
    monkeypatch.setattr(DecisionLaw, "table", property(lambda _: half))
    assert measured(release, 4.0, 1e9) > 2.3


def test_the_questions_of_this_audit_are_those_of_releases() -> None:
    """Otherwise it would audit something else."""
    release = near_release(0.25, 1.0)
    assert isinstance(release.questions[0], Question)
    batches, scores, _ = release.scored([0.5, -0.25])
    moved = marks_of(pa.array(["p0", "p1"]), release_id(2))[1]
    own = release.questions[0].score
    assert own is not None
    assert own.of_rows(np.array([[1.0]]))[0] == pytest.approx(1.0, rel=1e-8)
    np.testing.assert_array_equal(scores[:, 0], steps_of(own.of_rows(np.array([[0.5], [-0.25]]))) + moved)
    assert sorted(batches.tolist()) == [0, 1]
