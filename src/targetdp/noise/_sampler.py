"""Noise that holds against a real adversary: every random number of a release is drawn here.

Both the data and the noise are rounded to one public grid, a power of two about 2⁻²⁰ of the noise's
deviation. Rounding commutes with shifts by whole grid steps, so the output *is* the ideal, real-valued
mechanism's output on the rounded data, rounded: post-processing, whatever the floating-point lattice
looks like. Three things remain, and each is paid for:

* rounded rows are a little farther apart than the rows were: `row_growth`, inside every calibration;
* the sampler draws each grid point with almost its ideal probability: `Imperfection`, inside every ε
  and δ that is stated (`docs/noise.md` derives the constants);
* the words come from AES-256-CTR rather than from heaven: a condition, stated in `docs/promise.md`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Words, check
from targetdp.accounting import Imperfection
from targetdp.noise._random_words import RowWords, WordSource, WordStream

GRID_BITS = 20
"""The grid is between 2⁻²¹ and 2⁻²⁰ of the noise's deviation."""

_NORMAL_LOG_ERROR = 2.0**-43
"""Per normal draw within 12 deviations: layer areas, acceptance tests and lazy digits."""

_FAR_LOG_ERROR = 2.0**-50
"""Times the squared shift: farther out, ln(density) is a larger number and is off by more."""

_CHI_LOG_ERROR, _CHI_COLUMN_LOG_ERROR, _CHI_FAR_LOG_ERROR = 2.0**-34, 2.0**-38, 2.0**-38
"""Per chi draw: for its lattice, for each column, and times the shift."""

_TAIL = 2.0**-90
"""Per row: some normal beyond 12 deviations, or a radius beyond d + 14√d + 100 (both below 2⁻⁹² for
up to 16,384 columns)."""

LARGEST_GAUSSIAN_SHIFT = 64.0
"""Mechanisms are calibrated for neighbors at most so many deviations apart (ε ≤ 100 needs less than 20)."""

_BUFFER = 1 << 14
_WINDOWS = 1 << 17
"""Words drawn at once where each row has words of its own."""


def grid_for(deviation: float) -> float:
    """The grid for noise of a deviation: a power of two, so that it is exact and tells nothing.

    Args:
        deviation: Of the noise, above 0.

    Returns:
        The grid's step, between 2⁻²¹ and 2⁻²⁰ of the deviation.

    Example:
        >>> grid_for(1.5) == 2.0**-20
        True
    """
    return float(2.0 ** (math.floor(math.log2(deviation)) - GRID_BITS))


def row_growth(dimensions: int, grid: float) -> float:
    """How much farther apart two rows can be once they are rounded to the grid.

    Each of d coordinates moves by at most half a step in each row: √d · grid. The second term, 4d + 32
    units of 2⁻⁵³, covers the floating-point error of clipping both rows to the unit ball (d + 4 units), of
    dividing by the grid (4), and a distance that exceeds B by the rounding of `guarantee.steps` (16).

    Args:
        dimensions: How many columns a row has.
        grid: The grid's step.

    Returns:
        A distance, to be added to B.

    Example:
        >>> row_growth(4, 0.25) > 0.5
        True
    """
    return math.sqrt(dimensions) * grid + (dimensions + 8) * 2.0**-51


def gaussian_imperfection(normals: int, shift: float = LARGEST_GAUSSIAN_SHIFT) -> Imperfection:
    """How far values drawn by `add_gaussian` are from ideal normal noise.

    Args:
        normals: How many values of one person are drawn.
        shift: How many deviations neighbors are apart.

    Returns:
        The imperfection, which every stated ε and δ includes.

    Example:
        >>> gaussian_imperfection(10).tail == 2.0**-90
        True
    """
    return Imperfection(_NORMAL_LOG_ERROR * normals + _FAR_LOG_ERROR * shift**2, _tail(normals))


def largest_laplace_shift(dimensions: int) -> float:
    """How many scales apart neighbors are at most, for which spherical Laplace noise is calibrated.

    Args:
        dimensions: How many columns a row has.

    Returns:
        A number of scales.

    Example:
        >>> largest_laplace_shift(3)
        328.0
    """
    return LARGEST_GAUSSIAN_SHIFT * math.sqrt(dimensions + 1) + 200.0


def spherical_laplace_imperfection(dimensions: int, shift: float | None = None) -> Imperfection:
    """How far rows drawn by `add_spherical_laplace` are from ideal noise.

    Args:
        dimensions: How many columns a row has.
        shift: How many scales neighbors are apart; by default the most that is calibrated for.

    Returns:
        The imperfection, which every stated ε and δ includes.

    Example:
        >>> spherical_laplace_imperfection(10).log_error < 1e-5
        True
    """
    shift = largest_laplace_shift(dimensions) if shift is None else shift
    per_column = _NORMAL_LOG_ERROR + _CHI_COLUMN_LOG_ERROR
    log_error = _CHI_LOG_ERROR + per_column * dimensions + _CHI_FAR_LOG_ERROR * shift
    return Imperfection(log_error, _tail(dimensions))


def staircase_imperfection(level: float, shift: float = 1.0) -> Imperfection:
    """How far values drawn by `add_staircase` are from ideal noise.

    Args:
        level: ε of the noise at a shift of one period.
        shift: How many periods neighbors are apart.

    Returns:
        The imperfection, which every stated ε and δ includes.

    Example:
        >>> staircase_imperfection(1.0).log_error < 1e-12
        True
    """
    return Imperfection(_NORMAL_LOG_ERROR * (1 / min(1.0, level) + shift * level), _TAIL)


def add_gaussian(
    signal: Floats, deviation: float, grid: float, words: WordSource, *, bound: float = 1.0
) -> Floats:
    """Independent normal noise of a deviation on every value, on the grid.

    Args:
        signal: Rows; they are rounded to the grid.
        deviation: Of the noise.
        grid: The grid's step, from `grid_for`.
        words: Where random bits come from.
        bound: A public bound on the values: that sums are exact is checked on it, never on the data.

    Returns:
        Noisy rows, whose values are whole numbers of grid steps.

    Raises:
        ValueError: The grid is too fine for sums to be exact.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> noisy = add_gaussian(np.zeros((1000, 2)), 0.5, grid_for(0.5), PublicWords(7))
        >>> bool(0.45 < noisy.std() < 0.55)
        True
    """
    return _add_normals(signal, deviation, 0, grid, words, bound)


def add_spherical_laplace(
    signal: Floats, scale: float, grid: float, words: WordSource, *, bound: float = 1.0
) -> Floats:
    """Noise with density ∝ exp(−‖z‖/scale) on every row, on the grid.

    It is a normal vector times an independent chi of d + 1 degrees of freedom: mixing N(0, w·I) over
    w ~ Gamma((d + 1)/2, 2·scale²) gives exactly this density. Given its row's chi, every coordinate is
    a plain normal, so the grid argument of `add_gaussian` carries over. Two rooms draw it and account for it:
    `mechanisms/_laplace.py`, and private column scales (`normalization/_scales.py`).

    Args:
        signal: Rows; they are rounded to the grid.
        scale: Of the noise; its deviation in each column is scale·√(d + 1).
        grid: The grid's step, from `grid_for`.
        words: Where random bits come from.
        bound: A public bound on the values: that sums are exact is checked on it, never on the data.

    Returns:
        Noisy rows, whose values are whole numbers of grid steps.

    Raises:
        ValueError: The grid is too fine for sums to be exact.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> noisy = add_spherical_laplace(np.zeros((1000, 3)), 0.5, grid_for(1.0), PublicWords(7))
        >>> bool(0.9 < noisy.std() < 1.1)
        True
    """
    return _add_normals(signal, scale, signal.shape[1] + 1, grid, words, bound)


def add_staircase(
    signal: Floats, period: int, inner: int, level: float, grid: float, words: WordSource
) -> Floats:
    """Staircase noise (Geng and Viswanath 2014) with ε = ``level`` on a single column of rows in the ball.

    Args:
        signal: Rows of one column; they are rounded to the grid.
        period: The noise's period, in whole grid steps.
        inner: The part of a period where the density is higher, in whole grid steps.
        level: By how much the log-density falls from one period to the next.
        grid: The grid's step, from `grid_for`.
        words: Where random bits come from.

    Returns:
        Noisy rows, whose values are whole numbers of grid steps.

    Raises:
        ValueError: The grid is too fine for sums to be exact.

    Example:
        >>> from targetdp.noise import PublicWords
        >>> noisy = add_staircase(np.zeros((1000, 1)), 2**20, 2**19, 1.0, 2.0**-20, PublicWords(7))
        >>> bool(abs(noisy.mean()) < 0.2)
        True
    """
    from targetdp.noise import _ziggurat as ziggurat  # noqa: PLC0415 (numba is imported only where it is used)

    staircase_must_fit(period, level, grid)
    outer = (period - inner) * math.exp(-level)
    rare = min(inner, outer) / (inner + outer)
    shape = (grid, float(period), float(inner), level, -math.log(rare), outer < inner)
    kernels = ziggurat.staircase_rows, ziggurat.staircase_rows_by_window
    return _drawn(kernels, signal, shape, 16, words)


def _tail(normals: int) -> float:
    """The probability that one of so many normal draws lies in the sampler's tail."""
    return _TAIL * max(1, math.ceil(normals / check.MAX_COLUMNS))


def _add_normals(
    signal: Floats, scale: float, degrees: int, grid: float, words: WordSource, bound: float
) -> Floats:
    from targetdp.noise import _ziggurat as ziggurat  # noqa: PLC0415

    normals_must_fit(scale, degrees, grid, bound)
    columns = signal.shape[1]
    kernels = ziggurat.normal_rows, ziggurat.normal_rows_by_window
    return _drawn(kernels, signal, (columns, grid, scale / grid, degrees), columns + 8, words)


_Kernels = tuple[Callable[..., tuple[int, int]], Callable[..., int]]
"""For one stream of words, and for words of each row's own."""


def _drawn(
    kernels: _Kernels, signal: Floats, shape: tuple[Any, ...], words_per_row: int, words: WordSource
) -> Floats:
    """The signal, with noise of a shape, on the grid."""
    signal = np.ascontiguousarray(signal)  # ravel() must be a view of both
    out = np.empty(signal.shape)
    by_stream, by_window = kernels

    def draw(buffer: Words, row: int) -> tuple[int, int]:
        return by_stream(signal.ravel(), out.ravel(), *shape, buffer, row)

    def draw_window(start: int, stop: int, windows: Words, short: Integers) -> int:
        return by_window(signal[start:stop].ravel(), out[start:stop].ravel(), *shape, windows, short)

    if isinstance(words, RowWords):
        _draw_rows_by_window(draw_window, len(signal), words_per_row, words)
    else:
        _draw_rows(draw, len(signal), words_per_row, words)
    return out


def _draw_rows(
    draw: Callable[[Words, int], tuple[int, int]], rows: int, words_per_row: int, words: WordStream
) -> None:
    """Run a kernel over all rows, feeding it words.

    The kernel stops *before* the first row that ran past the buffer and says how many words the rows
    before it used. Those left over stay at the front of the next buffer, so the row is drawn again from
    the same words: whether a buffer ends never influences what a row becomes.
    """
    size = 1 << max(10, math.ceil(math.log2(min(2 * rows * words_per_row, _BUFFER))))
    size = max(size, 1 << math.ceil(math.log2(4 * words_per_row)))
    buffer: Words = np.empty(size, dtype=np.uint64)
    words.fill(buffer)
    row, used = draw(buffer, 0)
    while row < rows:
        left = len(buffer) - used
        if used == 0:  # one row alone needs more words than the buffer holds
            buffer = np.concatenate([buffer, np.empty_like(buffer)])
        else:
            buffer[:left] = buffer[used:].copy()
        words.fill(buffer[left:])
        row, used = draw(buffer, row)


def _draw_rows_by_window(
    draw: Callable[[int, int, Words, Integers], int], rows: int, words_per_row: int, words: RowWords
) -> None:
    """Run a kernel over all rows, each with words of its own.

    A row that needs more than its window is drawn again from a longer one, which begins with the same
    words: how long the first window was never influences what a row becomes.
    """
    if len(words) != rows:
        raise ValueError(f"words for {len(words)} rows were given for {rows}: give one tag for each row")
    width = 1 << math.ceil(math.log2(words_per_row + 8))
    together = max(1, _WINDOWS // width)
    for start in range(0, rows, together):
        stop = min(start + together, rows)
        short, one = np.empty(stop - start, dtype=np.int64), np.empty(1, dtype=np.int64)
        missed = draw(start, stop, words.of_rows(start, stop, width), short)
        for row in (start + short[:missed]).tolist():
            longer = 2 * width
            while draw(row, row + 1, words.of_rows(row, row + 1, longer), one):
                longer *= 2


def normals_must_fit(scale: float, degrees: int, grid: float, bound: float = 1.0) -> None:
    """Make sure that `add_gaussian` or `add_spherical_laplace` is exact on a grid.

    Args:
        scale: Of the noise.
        degrees: 0 for normal noise, d + 1 for spherical Laplace noise on d columns.
        grid: The grid's step.
        bound: A public bound on the values.

    Raises:
        ValueError: Values and noise together may reach 2⁵² grid steps.

    Example:
        >>> normals_must_fit(0.5, 0, grid_for(0.5))
    """
    _must_fit(bound, scale * 40 * math.sqrt(degrees + 100), grid)


def staircase_must_fit(period: int, level: float, grid: float) -> None:
    """Make sure that `add_staircase` is exact on a grid.

    Args:
        period: The noise's period, in grid steps.
        level: By how much the log-density falls from one period to the next.
        grid: The grid's step.

    Raises:
        ValueError: Values and noise together may reach 2⁵² grid steps.

    Example:
        >>> staircase_must_fit(2**20, 1.0, 2.0**-20)
    """
    _must_fit(1.0, period * grid * (1 + 130 / level), grid)


def _must_fit(bound: float, reach: float, grid: float) -> None:
    """Sums of grid steps must be exact: values and noise together below 2⁵² steps.

    Depends on public numbers only: a refusal that depended on the data would tell neighbors apart.
    """
    if (bound + reach) / grid >= 2.0**52:
        raise ValueError(
            f"noise on a grid of {grid:.3g} cannot be added exactly to values of up to {bound:g}: "
            "the noise is too small for rows of length 1; use a larger B or a smaller epsilon"
        )
