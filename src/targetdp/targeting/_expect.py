"""What to expect of scores, before they are paid for: from the private sample and its labels alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LARGEST_EPSILON, LEAST_NOISE, SMALLEST_EPSILON, NoiseLaw, least_noise
from targetdp.programs import CONFIDENCE, ScoredProgram
from targetdp.targeting._agreed._sample import Sample
from targetdp.targeting._denoise import Channel, ScoreNoise
from targetdp.targeting._learn import LearnedWeights
from targetdp.targeting._score_models import BootstrapSample, ErrorShares, counted

REDRAWN = 300
"""Samples that an interval is made from."""

_CHECKED = 60
"""Samples that tell how far two models may be from each other by chance."""

_UNSEEN = 0.005
"""Share of people, in either kind of error, that no model shows: as it was measured."""

_ODD = 2.5
"""Errors of chance above which a difference is reported."""


@dataclass(frozen=True)
class Expected:
    """A figure to expect, with an interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Accuracy of the private sample's own scores: as two normal distributions have it, and as it is counted.

    Both are with the noise of the private rows, so they should agree but for chance: by about ``error``.
    """

    smooth: float
    counted: float
    error: float

    @property
    def disbelief(self) -> float:
        """From 0, believe in two normal distributions, to 1, in what is counted (James and Stein)."""
        far = abs(self.smooth - self.counted)
        return 0.0 if far <= self.error else 1 - (self.error / far) ** 2

    @property
    def is_odd(self) -> bool:
        """Whether chance hardly makes it: two and a half times its error, and a point or more."""
        return abs(self.smooth - self.counted) > max(_ODD * self.error, 2 * _UNSEEN)


@dataclass(frozen=True)
class Expectation:
    """What the program would achieve with what is released, by the names of its metrics.

    For aid ``accuracy``, ``recall`` and ``exclusion_errors``; for lending ``accuracy``, ``wrong_approvals``,
    ``wrong_refusals`` and, if loans are known, ``profit``. Counts and money are of the program's population.
    ``difference`` is that of two models, where the sample is private.
    """

    figures: Mapping[str, Expected] = field(repr=False)
    confidence: float
    difference: Difference | None = None

    def __getitem__(self, name: str) -> Expected:
        return self.figures[check.choice("name", name, self.figures)]


def expect(
    labelled: ScoredProgram,
    learned: LearnedWeights,
    released: Channel,
    rng: np.random.Generator,
    *,
    law: NoiseLaw | None = None,
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> Expectation:
    """What scores of these weights would achieve as they are released, among many people like the sample's.

    Each person's score is by weights that were learned without her. Of the two models of the scores (smooth
    and counted) the smooth one is believed, and the counted one the more, the farther the two are from each
    other where both can be held against the sample itself: see `Difference`. Intervals come from samples
    drawn again from the sample (bootstrap), reach over both models, and are a point of accuracy wider on
    either side, for what neither shows.

    Args:
        labelled: The program of the sample, in the order in which the weights were learned.
        learned: The weights.
        released: What scores become: the noise that they get, or the answers that are drawn from them.
        rng: Draws the samples of the intervals.
        law: Of the noise on the sample's rows, which is taken for normal otherwise.
        confidence: Of the intervals.
        redrawn: How many samples an interval is made from; 0 for none.

    Returns:
        Each metric of the program, with an interval.

    Raises:
        ValueError: The weights are not of these people.

    Does not guarantee: anything where the sample is not drawn from the people to be scored; a program of few
    people varies by chance as well.
    Edges: the more noise the private rows have, the wider.

    Example:
        >>> from targetdp.programs import Aid
        >>> from targetdp.targeting import learn
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.uniform(-0.5, 0.5, (500, 2))
        >>> Z, poor = rows + rng.normal(0, 0.1, rows.shape), Aid(rows[:, 0] + 1, quota=0.3)
        >>> learned = learn(Z, poor.outcomes, 0.01 * np.eye(2), score_variance=0.01)
        >>> found = expect(poor, learned, ScoreNoise.normal(0.01, step=0.01), rng, redrawn=20)
        >>> bool(0.8 < found["accuracy"].low < found["accuracy"].value < 1)
        True
    """
    confidence = check.number("confidence", confidence, above=0, below=1)
    n = labelled.people.count
    if len(learned.scores) != n:
        raise ValueError(f"learned is from {len(learned.scores):,} people: labelled has {n:,}")
    first = ScoreNoise.along(law, learned.noise_variance, released.step)
    difference = difference_of(labelled, learned, first, rng)
    once = BootstrapSample.of(labelled, learned)
    believed = once.smooth(released).towards(counted([once], released, first)[0], difference.disbelief)
    named = _figures_of(once, believed)
    values = np.array(list(named.values()))
    ends = [_values(once, believed, by) for by in (-_UNSEEN, _UNSEEN)]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    if redrawn:
        draws = list(_redrawn(labelled, learned, redrawn, rng))
        score_models = ([draw.smooth(released) for draw in draws], counted(draws, released, first))
        again = [
            [_values(draw, wrong) for draw, wrong in zip(draws, model, strict=True)] for model in score_models
        ]
        doubt = (1 - confidence) / 2
        reached = np.quantile(np.array(again), [doubt, 1 - doubt], axis=1)  # end, model, figure
        low = np.minimum(values, reached[0].min(axis=0)) + low - values
        high = np.maximum(values, reached[1].max(axis=0)) + high - values
    figures = {
        name: Expected(float(v), *within_range(name, float(a), float(b), labelled))
        for name, v, a, b in zip(named, values, low, high, strict=True)
    }
    return Expectation(figures, confidence, difference)


def within_range(name: str, low: float, high: float, labelled: ScoredProgram) -> tuple[float, float]:
    """An interval within what the figure can be: a share, or a count of people; money can be anything."""
    if name == "profit":
        return low, high
    most = 1.0 if name in {"accuracy", "recall"} else labelled.people.population
    return max(low, 0.0), min(high, most)


def difference_of(
    labelled: ScoredProgram, learned: LearnedWeights, first: ScoreNoise, rng: np.random.Generator
) -> Difference:
    """How the smooth model does where it can be checked: on the private sample's own scores."""

    def both(drawn: BootstrapSample) -> tuple[float, float]:
        return drawn.smooth(first).accuracy, drawn.seen(first).accuracy

    smooth, seen = both(BootstrapSample.of(labelled, learned))
    again = [both(drawn) for drawn in _redrawn(labelled, learned, _CHECKED, rng)]
    return Difference(smooth, seen, float(np.std([a - b for a, b in again])))


def _redrawn(
    labelled: ScoredProgram, learned: LearnedWeights, times: int, rng: np.random.Generator
) -> Iterator[BootstrapSample]:
    """Samples drawn again, each with a plausible variance of its own."""
    n = labelled.people.count
    for _ in range(times):
        counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        yield BootstrapSample.of(labelled, learned, counts, float(rng.random()))


def _values(drawn: BootstrapSample, wrong: ErrorShares, doubt: float = 0.0) -> Floats:
    """Figures in their order; ``doubt`` is added to either kind of error."""
    more = ErrorShares(
        min(max(wrong.let_in + doubt, 0.0), 1 - drawn.share),
        min(max(wrong.left_out + doubt, 0.0), drawn.share),
    )
    return np.array(list(_figures_of(drawn, more).values()))


def _figures_of(drawn: BootstrapSample, wrong: ErrorShares) -> dict[str, float]:
    """Figures, by name."""
    return drawn.program.expected_figures(drawn.high, drawn.weights, wrong.let_in, wrong.left_out)


# What more or less ε of the scores would buy: weights learned anew for each, and what to expect.

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Multiples of ε that are compared."""

COARSE = 1e-2
"""Steps that are fine enough to count errors on."""


@dataclass(frozen=True, eq=False)
class ScorePlan:
    """Scores with this guarantee: their mechanism, the weights for it, and what they would achieve.

    The guarantee is the one that was asked for, unless no sampler keeps that (a δ below 2⁻⁹⁰).
    """

    guarantee: Guarantee
    mechanism: str
    deviation: float
    weights: LearnedWeights
    expectation: Expectation = field(repr=False)

    @property
    def w(self) -> Floats:
        """The direction."""
        return self.weights.w


def plan_scores(
    sample: Sample,
    guarantee: Guarantee,
    rng: np.random.Generator,
    *,
    mechanism: str = LEAST_NOISE,
    confidence: float = CONFIDENCE,
    redrawn: int = REDRAWN,
) -> ScorePlan:
    """The noise on one score for a guarantee, the weights that know it, and what to expect of both.

    Args:
        sample: The private sample with its labels.
        guarantee: The guarantee of the scores.
        rng: Draws the samples of the intervals.
        mechanism: That of the noise on a score, by name; whichever needs the least unless given.
        confidence: Of the intervals.
        redrawn: How many samples an interval is made from; 0 for none.

    Returns:
        Weights to hand to the data holder, and what they would achieve.

    Raises:
        ValueError: No noise keeps this guarantee, or nothing can be learned from the sample.

    Example:
        >>> from targetdp.targeting import read_labelled
        >>> sample = read_labelled(Path("private.parquet"), Path("labels.csv"), program)  # doctest: +SKIP
        >>> plan_scores(sample, Guarantee(0.25, 4.0), np.random.default_rng(0)).mechanism  # doctest: +SKIP
        'staircase'
    """
    choice = least_noise(guarantee, 1)
    name = choice.name if mechanism == LEAST_NOISE else check.choice("mechanism", mechanism, choice.possible)
    score_mechanism = choice.possible[name]
    noise = ScoreNoise.of(score_mechanism.law(1), COARSE)
    weights = sample.learn(noise.variance)
    expectation = expect(
        sample.program, weights, noise, rng, law=sample.law, confidence=confidence, redrawn=redrawn
    )
    kept = score_mechanism.guarantee
    promised = guarantee if kept.is_at_least(guarantee) else kept
    return ScorePlan(promised, name, noise.deviation, weights, expectation)


def compare_epsilons(
    sample: Sample, guarantee: Guarantee, rng: np.random.Generator, *, mechanism: str = LEAST_NOISE
) -> tuple[ScorePlan, ...]:
    """What other ε would buy: `plan_scores` with multiples of it, as far as there is noise for them.

    Args:
        sample: The private sample with its labels.
        guarantee: The guarantee whose ε is multiplied.
        rng: As for `plan_scores`.
        mechanism: As for `plan_scores`.

    Returns:
        A plan for each multiple from a quarter to four times ε, without intervals.

    Example:
        >>> from targetdp.targeting import read_labelled
        >>> sample = read_labelled(Path("private.parquet"), Path("labels.csv"), program)  # doctest: +SKIP
        >>> plans = compare_epsilons(sample, Guarantee(0.25, 4.0), np.random.default_rng(0))  # doctest: +SKIP
        >>> [plan.guarantee.epsilon for plan in plans]  # doctest: +SKIP
        [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    each = (Guarantee(guarantee.B, guarantee.epsilon * by, guarantee.delta) for by in TIMES)
    return tuple(
        plan_scores(sample, one, rng, mechanism=mechanism, redrawn=0) for one in each
        if SMALLEST_EPSILON <= one.epsilon <= LARGEST_EPSILON
    )  # fmt: skip
