"""The claim behind every ε: each grid point has its ideal probability, up to 2⁻⁴³ (docs/noise.md)."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from support.statistics import FALSE_ALARM, follows
from targetdp import Staircase
from targetdp._core import Words
from targetdp.noise import _sampler as noise
from targetdp.noise import _ziggurat as ziggurat
from targetdp.noise._random_words import SimulatedWords

mpmath.mp.dps = 60
X, Y, INSIDE = ziggurat.WIDTHS, ziggurat.HEIGHTS, ziggurat.INSIDE


def drawn_density(x: mpmath.mpf) -> mpmath.mpf:
    """The density of |z| that the tables imply, per round of the ziggurat, in 60-digit arithmetic."""
    f = mpmath.exp(-x * x / 2)
    base_end = mpmath.mpf(ziggurat.TAIL_START)
    total = mpmath.mpf(0)
    if x < base_end:
        total += mpmath.mpf(ziggurat.BASE_BODY) / 2**53 / base_end
    if x >= ziggurat.TAIL_START:
        tail_mass = mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(mpmath.mpf(ziggurat.TAIL_START) / mpmath.sqrt(2))
        total += (1 - mpmath.mpf(ziggurat.BASE_BODY) / 2**53) * f / tail_mass
    for i in range(1, ziggurat.LAYERS):
        width = mpmath.mpf(X[i])
        if x >= width:
            break  # widths only shrink
        if x < mpmath.mpf(int(INSIDE[i])) / 2**53 * width:
            total += 1 / width
        else:
            low, high = mpmath.mpf(Y[i]), mpmath.mpf(Y[i + 1])
            total += min(mpmath.mpf(1), max(mpmath.mpf(0), (f - low) / (high - low))) / width
    return total / ziggurat.LAYERS


def test_the_tables_imply_the_normal_density_to_a_relative_error_of_two_to_the_minus_46() -> None:
    rng = np.random.default_rng(1)
    near_edges = np.concatenate([X[1:-1] * (1 - 1e-12), X[2:-1] * (1 + 1e-12), X[1:-1] * (1 - 1e-4)])
    points = np.concatenate(
        [rng.uniform(0, 3.65, 400), near_edges, rng.uniform(3.6542, 12, 100), [1e-9, 0.2]]
    )
    ratios = [
        drawn_density(mpmath.mpf(float(x))) / mpmath.exp(-(mpmath.mpf(float(x)) ** 2) / 2) for x in points
    ]
    spread = mpmath.log(max(ratios) / min(ratios))
    # Acceptance tests in floats add at most a few 2⁻⁵² of f(x), and x² of them in the tail (next test).
    assert spread < 2.0**-46
    assert noise.gaussian_imperfection(1, 0.0).log_error == 2.0**-43


def test_far_tails_are_off_by_no_more_than_the_square_of_their_distance_allows() -> None:
    """What a far draw's log probability loses to floats: half-lives, and the threshold of its last test."""
    rng = np.random.default_rng(8)
    start = mpmath.mpf(ziggurat.TAIL_START)
    for _ in range(3000):
        halvings, u = float(rng.integers(0, 2000)), float(rng.integers(0, 2**53))
        beyond = math.log(2.0) * (halvings + u * 2.0**-53) / ziggurat.TAIL_START
        threshold = 0.5 * beyond * beyond
        exact = mpmath.log(2) * (mpmath.mpf(halvings) + mpmath.mpf(u) / 2**53) / start
        x = float(start + exact)
        lost = abs(mpmath.mpf(threshold) - exact**2 / 2) + start * abs(mpmath.mpf(beyond) - exact)
        assert lost < 2.0**-43 + 2.0**-50 * max(0.0, x - 12) ** 2


def test_a_wrong_table_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = X.copy()
    wrong[100] *= 1 + 1e-9
    monkeypatch.setitem(globals(), "X", wrong)
    ratios = [
        drawn_density(mpmath.mpf(x)) / mpmath.exp(-(mpmath.mpf(x) ** 2) / 2) for x in (0.1, 1.0, 2.0, 3.0)
    ]
    assert mpmath.log(max(ratios) / min(ratios)) > 2.0**-40


def random_words(count: int, seed: int) -> Words:
    out = np.empty(count, dtype=np.uint64)
    SimulatedWords(np.random.default_rng(seed)).fill(out)
    return out


def test_rounding_is_exact_also_next_to_a_boundary() -> None:
    rng = np.random.default_rng(2)
    words = random_words(1024, 3)
    resolved = 0
    for trial in range(4000):
        scale = 2.0 ** rng.uniform(18, 24)
        step = scale * rng.uniform(0.2, 3.7) * 2.0**-53
        offset = 0.0 if trial % 2 else scale * rng.uniform(0, 8)
        boundary = math.floor(offset + rng.uniform(0, 0.99) * step * 2**53) + 0.5
        if boundary < offset:
            boundary += 1.0
        # the u whose interval [u, u + 1) holds the boundary, or one of its neighbors
        u = int((Fraction(boundary) - Fraction(offset)) / Fraction(step)) + int(rng.integers(-1, 2))
        u = min(max(u, 0), 2**53 - 1)
        position = int(rng.integers(0, 1024))
        got, after = ziggurat.to_grid(offset, step, float(u), words, position)
        v = Fraction(float(ziggurat.uniform(words, position)))
        exact = Fraction(offset) + Fraction(step) * (u + v)
        assert after == position + 1
        distance_to_boundary = abs(exact - Fraction(boundary))
        if distance_to_boundary > Fraction(2) ** -70:
            assert got == math.floor(exact + Fraction(1, 2))
            resolved += 1
    assert resolved > 3900


def test_digits_are_only_drawn_where_they_matter() -> None:
    words = random_words(1024, 3)
    got, after = ziggurat.to_grid(0.0, 2.0**-33, float(2**52), words, 5)  # value 2¹⁹ exactly
    assert (got, after) == (2.0**19, 5)


@pytest.mark.parametrize("scale", [3.0, 2.0**20, 1.7 * 2.0**20])
def test_grid_points_have_normal_probabilities(scale: float) -> None:
    """Coarse grids too: cell probabilities are differences of Φ, by a χ² test over cells."""
    words = SimulatedWords(np.random.default_rng(5))
    n = 2_000_000
    steps = noise.add_gaussian(np.zeros((n, 1)), scale, 1.0, words).ravel()
    width = max(1, round(scale / 8))
    cells = np.floor((steps + width // 2) / width)
    edges = np.arange(-40, 42) * width - width // 2 - 0.5
    observed = np.histogram(cells * width, bins=edges)[0]
    expected = n * np.diff(stats.norm.cdf(edges / scale))
    keep = expected > 10
    chi2 = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert stats.chi2.sf(chi2, keep.sum()) > FALSE_ALARM


def test_far_tails_have_their_share() -> None:
    """Beyond 3.65 (the ziggurat's tail), 4.5 and 5 deviations, exact binomial limits."""
    draws = noise.add_gaussian(
        np.zeros((5_000_000, 4)), 1.0, 2.0**-20, SimulatedWords(np.random.default_rng(6))
    )
    for limit in (3.0, 3.6541528853610088, 4.0, 4.5, 5.0):
        count = int((np.abs(draws) > limit).sum())
        expected = 2 * stats.norm.sf(limit)
        assert stats.binomtest(count, draws.size, expected).pvalue > FALSE_ALARM


def test_exponentials_keep_their_law() -> None:
    words = random_words(1 << 20, 7)
    position = 0
    draws: list[float] = []
    while len(draws) < 100_000:
        draw, position = ziggurat.exponential(words, position)
        draws.append(draw)
    assert position < len(words)
    assert follows(np.array(draws), stats.expon.cdf)


@pytest.mark.parametrize("level", [1e-5, 0.1, math.log(2), 1.0, 4.0, 3.9999999999944085, 30.0])
def test_a_staircase_leaves_out_only_fractions_that_decide_nothing(level: float) -> None:
    """Whatever fraction would follow lies between the first and the last, and so does what is decided."""
    rng = np.random.default_rng(12)
    last = 2.0**53 - 1
    fractions = [0.0, 1.0, last - 1, last, *rng.integers(0, 2**53, 40).astype(float)]
    decided = 0
    for halvings in range(200):
        ends = [ziggurat._together(float(halvings), u) for u in (0.0, last)]
        low, high = (math.floor(end / level) for end in ends)
        between = [ziggurat._together(float(halvings), u) for u in fractions]
        assert all(low <= math.floor(draw / level) <= high for draw in between)
        assert all(ends[0] <= draw <= ends[1] for draw in between)
        decided += low == high
    assert (decided > 0) == (level > math.log(2) / 2)


@pytest.mark.parametrize("degrees", [2, 3, 11, 101, 1001])
def test_chi_draws_keep_their_law(degrees: int) -> None:
    words = random_words(1 << 18, 8)
    position = 0
    draws: list[float] = []
    while len(draws) < 40_000:
        draw, position = ziggurat.chi(degrees, words, position)
        draws.append(draw)
    assert position < len(words)
    assert follows(np.array(draws), stats.chi(degrees).cdf)
    assert not follows(np.array(draws) * 1.1, stats.chi(degrees).cdf)


@pytest.mark.parametrize("scale", [1.0e6, 1.37 * 2.0**20, 1.9e7])
def test_pieces_of_the_tail_join_without_gap_or_overlap(scale: float) -> None:
    """Each piece ends, to the last bit, where the next begins; the base layer's body where the tail does."""
    assert ziggurat._tail_offset(scale, 0.0) == scale * ziggurat.TAIL_START
    for halvings in range(400):
        here, there = (ziggurat._tail_offset(scale, h) for h in (halvings, halvings + 1.0))
        assert Fraction(here) + Fraction(there - here) == Fraction(there)


def test_halvings_are_the_zeros_at_the_end_of_a_word() -> None:
    """Of one word, or, where it is zero, of as many as it takes."""
    rng = np.random.default_rng(3)
    for zeros in range(64):
        above = int(rng.integers(2**63)) << zeros + 1
        words = np.array([0, 0, (above | 1 << zeros) % 2**64, 1], dtype=np.uint64)
        assert ziggurat._halvings(words, 2) == (zeros, 3)
        assert ziggurat._halvings(words, 0) == (128 + zeros, 3)


def test_words_beyond_the_end_differ_from_lap_to_lap() -> None:
    words = np.arange(8, dtype=np.uint64)
    first, *others = ([int(ziggurat.word(words, 8 * lap + i)) for i in range(8)] for lap in range(4))
    assert first == list(range(8))
    assert len({word for lap in others for word in lap} | set(first)) == 32


@pytest.mark.parametrize(("B", "epsilon"), [(0.25, 1.0), (0.3, 0.1), (2.0, 4.0), (0.1, 12.0), (0.25, 30.0)])
def test_staircases_have_whole_ends_that_doubles_hold(B: float, epsilon: float) -> None:
    law = Staircase(B=B, epsilon=epsilon).law()
    period, inner, level, grid = law.period, law.inner, law.level, law.grid
    assert isinstance(period, int)
    assert isinstance(inner, int)
    assert 0 < inner < period
    assert period * grid >= B + noise.row_growth(1, grid)
    far = 100 / level  # periods that a draw reaches with probability e^−100
    assert period * far < 2.0**53


def test_rounding_counts_the_digits_not_drawn_where_steps_are_wide() -> None:
    """With a step of 2⁻¹⁸ a value next to a boundary needs its next digits although it is small."""
    words = random_words(1024, 9)
    step = 2.0**-18
    for u in (float(2**17), float(2**17 - 1)):  # [0.5 − 2⁻¹⁸, 0.5) and [0.5, 0.5 + 2⁻¹⁸)
        got, after = ziggurat.to_grid(0.0, step, u, words, 0)
        assert after == 1
        assert got == math.floor(step * (u + ziggurat.uniform(words, 0)) + 0.5)
