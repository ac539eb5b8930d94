"""Kernels that turn uniform 64-bit words into noise on a grid.

Every draw is a *whole number of grid steps*, and each whole number comes out with the probability
that the ideal, continuous noise has of being rounded to it, up to a factor that is as good as one
(`targetdp.noise` states it, `docs/noise.md` derives it, `tests/distributions` checks it with 60-digit
arithmetic). Two ideas carry the argument:

* **Lazy digits.** A draw that is uniform on an interval starts with 53 random bits. Only if those
  leave open to which grid point it rounds (about one draw in two million) 53 more are drawn and
  the comparison is made in exact (two-float) arithmetic. So the finite lattice of floating-point
  numbers never decides to which cell a draw belongs.
* **Everything is an interval.** The ziggurat's layers, its tail (an exponential, split into
  a geometric number of half-lives and a fraction of one) and the staircase are all mixtures of
  uniform intervals, so that one rounding function serves all.

Words are read cyclically: a row that runs past the end of the buffer is drawn again by the driver
from the same words with more appended (`targetdp.noise`). Stopping early instead would favor rows
that need few words, which is a bias.
"""

import math
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Words, kernel

LAYERS = 256
TAIL_START = 3.6541528853610088
"""Where the ziggurat's base layer ends and its tail begins, for 256 layers (Marsaglia and Tsang 2000)."""

_UNIT = 2.0**-53
_LAST = 2.0**53 - 1.0  # the largest fraction, in units
_LN2 = math.log(2.0)
_SPLIT = 2.0**27 + 1.0  # Dekker's constant: cuts a double into two halves of 26 bits
_GUARD = 2.0**-22  # how close to a rounding boundary a draw must be to need more digits


def _layers() -> tuple[Floats, Floats, Integers]:
    """Widths x, heights y and quick-acceptance thresholds of the 256 layers of exp(-x²/2).

    Layer i covers [0, x_i] × [y_i, y_{i+1}]; all layers, and the base with its tail, have one area.
    """
    r = TAIL_START
    tail_area = math.sqrt(math.pi / 2) * math.erfc(r / math.sqrt(2))
    area = r * math.exp(-r * r / 2) + tail_area
    x, y = np.zeros(LAYERS + 1), np.zeros(LAYERS + 1)
    x[0], x[1], y[1] = area / math.exp(-r * r / 2), r, math.exp(-r * r / 2)
    for i in range(1, LAYERS):
        y[i + 1] = y[i] + area / x[i]
        x[i + 1] = math.sqrt(max(0.0, -2.0 * math.log(min(1.0, y[i + 1]))))
    y[LAYERS], x[LAYERS] = 1.0, 0.0
    inside = np.floor(x[1:] / x[:-1] * 2.0**53).astype(np.int64)
    return x, y, inside


def _trailing_zeros() -> Floats:
    """How many zeros follow a power of two, by the six highest bits of its product with `_DE_BRUIJN`."""
    counts = np.zeros(64)
    for zeros in range(64):
        counts[((int(_DE_BRUIJN) << zeros) % 2**64) >> 58] = zeros
    return counts


_NEXT_LAP = np.uint64(0x9E3779B97F4A7C15)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its shifts begin with 64 different patterns of six bits
_TRAILING_ZEROS = _trailing_zeros()
WIDTHS, HEIGHTS, INSIDE = _layers()
BASE_BODY = int(INSIDE[0])  # below it a draw of the base layer is not in the tail
INSIDE[0] = 0  # the base layer is never taken by the quick path


@kernel
def word(words: Words, position: int) -> Any:
    """The word at a position, reading cyclically (the buffer's length is a power of two).

    What is drawn beyond the end is thrown away, but must come to an end: a rejection that came back to the
    same words would be repeated forever, so each lap reads other ones.
    """
    if position < words.shape[0]:  # a division for every word would take as long as the rest of a draw
        return words[position]
    lap = np.uint64(position // words.shape[0])
    return words[position & (words.shape[0] - 1)] + lap * _NEXT_LAP


@kernel
def uniform(words: Words, position: int) -> float:
    """53 bits of a word as a number in (0, 1] (the largest rounds up to 1)."""
    return (np.int64(word(words, position) >> np.uint64(11)) + 0.5) * _UNIT


@kernel
def to_grid(offset: float, step: float, u: float, words: Words, position: int) -> tuple[float, int]:
    """Round offset + step·(u + v) to the nearest whole number, v uniform on [0, 1).

    The value is never negative. ``v`` is drawn only if it can matter.
    """
    value = offset + step * u
    shifted = value + 0.5
    nearest = np.floor(shifted)
    fraction = shifted - nearest
    guard = _GUARD + 2.0 * step + value * 2.0**-48  # covers v, and the rounding of value
    if guard < fraction < 1.0 - guard:
        return nearest, position
    upper = nearest + 1.0 if fraction > 0.5 else nearest
    v = uniform(words, position)
    if _above(offset, step, u, v, upper - 0.5):
        return upper, position + 1
    return upper - 1.0, position + 1


@kernel
def _above(offset: float, step: float, u: float, v: float, boundary: float) -> bool:
    """Whether offset + step·(u + v) ≥ boundary, with the product and the sum taken exactly.

    Dekker's product and Knuth's sum give step·u and offset + step·u as unevaluated pairs of
    floats; the difference to a boundary this near is exact, so what is left is a relative error
    of 2⁻⁵² on a quantity of about 2⁻²² grid steps.
    """
    product = step * u
    c = _SPLIT * step
    step_high = c - (c - step)
    step_low = step - step_high
    c = _SPLIT * u
    u_high = c - (c - u)
    u_low = u - u_high
    product_error = step_low * u_low - (
        ((product - step_high * u_high) - step_low * u_high) - step_high * u_low
    )
    total = offset + product
    back = total - offset
    total_error = (offset - (total - back)) + (product - back)
    return (total - boundary) + (total_error + product_error + step * v) >= 0.0


@kernel
def exponential_parts(words: Words, position: int) -> tuple[float, float, int]:
    """A standard exponential as ln2·(halvings + u·2⁻⁵³): its two parts and the new position.

    The number of halvings is geometric (trailing zeros of a word); the fraction has density
    ∝ 2^−f on [0, 1), drawn by rejection. Tail probabilities so keep full *relative* accuracy.
    """
    halvings, position = _halvings(words, position)
    u, position = _fraction(words, position)
    return halvings, u, position


@kernel
def _halvings(words: Words, position: int) -> tuple[float, int]:
    """The first part of an exponential."""
    halvings = 0.0
    w = word(words, position)
    position += 1
    while w == 0:
        halvings += 64.0
        w = word(words, position)
        position += 1
    lowest = w & (~w + np.uint64(1))
    return halvings + _TRAILING_ZEROS[(lowest * _DE_BRUIJN) >> np.uint64(58)], position


@kernel
def _fraction(words: Words, position: int) -> tuple[float, int]:
    """The second part of an exponential, independent of the first."""
    while True:
        u = float(np.int64(word(words, position) >> np.uint64(11)))
        accepted = uniform(words, position + 1) < math.exp(-_LN2 * _UNIT * u)
        position += 2
        if accepted:
            return u, position


@kernel
def exponential(words: Words, position: int) -> tuple[float, int]:
    """A standard exponential as a float."""
    halvings, u, position = exponential_parts(words, position)
    return _together(halvings, u), position


@kernel
def _together(halvings: float, u: float) -> float:
    """An exponential from its two parts; in floats, too, it never falls where a part grows."""
    return _LN2 * (halvings + (u + 0.5) * _UNIT)


@kernel
def normal_steps(scale: float, words: Words, position: int) -> tuple[float, int]:
    """A normal draw with a deviation of ``scale`` grid steps, rounded to whole steps."""
    while True:
        w = word(words, position)
        position += 1
        layer = np.int64(w & np.uint64(255))
        bits = np.int64(w >> np.uint64(11))
        u = float(bits)
        if bits >= INSIDE[layer]:
            if layer == 0:
                steps, position = _base_steps(scale, bits, words, position)
                return (-steps if w & np.uint64(256) else steps), position
            distance = WIDTHS[layer] * u * _UNIT
            height = HEIGHTS[layer] + (HEIGHTS[layer + 1] - HEIGHTS[layer]) * uniform(words, position)
            position += 1
            if height >= math.exp(-0.5 * distance * distance):
                continue
        steps, position = to_grid(0.0, WIDTHS[layer] * scale * _UNIT, u, words, position)
        return (-steps if w & np.uint64(256) else steps), position


@kernel
def _base_steps(scale: float, bits: Any, words: Words, position: int) -> tuple[float, int]:
    """A draw of the base layer: its body [0, start) or the tail beyond.

    The body is drawn anew, so that it ends exactly, to the last bit, where the tail begins.
    """
    if bits < BASE_BODY:
        u = float(np.int64(word(words, position) >> np.uint64(11)))
        return to_grid(0.0, _tail_offset(scale, 0.0) * _UNIT, u, words, position + 1)
    return _tail_steps(scale, words, position)


@kernel
def _tail_offset(scale: float, halvings: float) -> float:
    """Where the tail's piece after so many half-lives begins."""
    return scale * (TAIL_START + _LN2 * halvings / TAIL_START)


@kernel
def _tail_steps(scale: float, words: Words, position: int) -> tuple[float, int]:
    """A normal draw beyond TAIL_START: start + E/start, kept with probability exp(−(E/start)²/2)."""
    while True:
        halvings, u, position = exponential_parts(words, position)
        beyond = _LN2 * (halvings + u * _UNIT) / TAIL_START
        enough, position = exponential(words, position)
        if enough > 0.5 * beyond * beyond:
            offset = _tail_offset(scale, halvings)
            width = _tail_offset(scale, halvings + 1.0) - offset  # pieces join without gap or overlap
            return to_grid(offset, width * _UNIT, u, words, position)


@kernel
def chi(degrees: int, words: Words, position: int) -> tuple[float, int]:
    """The length of a standard normal vector in ``degrees`` ≥ 2 dimensions.

    Its square is twice a gamma draw of shape degrees/2, by Marsaglia and Tsang (2000). The last
    word of the acceptance test is an exponential, so that far tails keep their relative accuracy.
    """
    d = degrees / 2.0 - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        steps, position = normal_steps(2.0**40, words, position)
        z = steps * 2.0**-40
        root = 1.0 + c * z
        if root <= 0.0:
            continue
        v = root * root * root
        squeeze = 1.0 - 0.0331 * z * z * z * z
        if squeeze > 0.0:
            u = uniform(words, position)
            position += 1
            if u < squeeze:
                return math.sqrt(2.0 * d * v), position
            surprise = -math.log(u)
        else:
            surprise, position = exponential(words, position)
        if surprise > -(0.5 * z * z + d * (1.0 - v + math.log(v))):
            return math.sqrt(2.0 * d * v), position


@kernel
def normal_rows(
    signal: Floats, out: Floats, columns: int, grid: float, scale: float, degrees: int, words: Words, row: int
) -> tuple[int, int]:
    """Round rows to the grid and add normal noise; start at ``row``.

    The deviation is ``scale`` grid steps for every row, or, with ``degrees`` > 0, ``scale`` times
    the row's own chi draw. Returns the first row that ran out of words and the words used before it.

    The common case (inside its layer, far from a rounding boundary) is written out here; the
    rest, one draw in a hundred, begins again in `normal_steps` at the same word.
    """
    mask = words.shape[0] - 1
    per_grid = 1.0 / grid
    deviation = scale
    used = position = 0
    row_end = row * columns
    for j in range(row * columns, signal.shape[0]):
        if j == row_end:
            if position > words.shape[0]:
                return j // columns - 1, used
            used = position
            row_end += columns
            if degrees > 0:
                root, position = chi(degrees, words, position)
                deviation = scale * root
        w = words[position & mask]
        layer = np.int64(w & np.uint64(255))
        bits = np.int64(w >> np.uint64(11))
        step = WIDTHS[layer] * (deviation * _UNIT)
        shifted = float(bits) * step + 0.5
        steps = np.floor(shifted)
        guard = _GUARD + 2.0 * step + shifted * 2.0**-48
        if bits < INSIDE[layer] and abs(shifted - steps - 0.5) < 0.5 - guard:
            position += 1
            steps *= 1.0 - 2.0 * float(np.int64((w >> np.uint64(8)) & np.uint64(1)))
        else:
            steps, position = normal_steps(deviation, words, position)
        out[j] = (np.floor(signal[j] * per_grid + 0.5) + steps) * grid
    rows = signal.shape[0] // columns
    if position > words.shape[0]:
        return rows - 1, used
    return rows, position


@kernel
def staircase_rows(
    signal: Floats, out: Floats, grid: float, period: float, inner: float, level: float,
    rare: float, rare_is_outer: bool, words: Words, row: int,
) -> tuple[int, int]:  # fmt: skip
    """Round single values to the grid and add staircase noise.

    A geometric number of whole periods, then the inner part or the outer part of one, uniformly. ``period``
    and ``inner`` are whole numbers of grid steps, so that all ends of intervals are exact. The less likely
    of the two parts has probability e^−``rare`` and is decided by an exponential, which keeps its relative
    accuracy. The fraction of an exponential is drawn only where it can change what is decided: nearly
    never for the periods. Returns as `normal_rows` does.
    """
    used = position = 0
    for i in range(row, signal.shape[0]):
        halvings, position = _halvings(words, position)
        periods = np.floor(_together(halvings, 0.0) / level)
        if periods != np.floor(_together(halvings, _LAST) / level):
            u, position = _fraction(words, position)
            periods = np.floor(_together(halvings, u) / level)
        halvings, position = _halvings(words, position)
        beyond = _together(halvings, 0.0) > rare
        if beyond != (_together(halvings, _LAST) > rare):
            u, position = _fraction(words, position)
            beyond = _together(halvings, u) > rare
        outer = beyond == rare_is_outer
        start, width = (inner, period - inner) if outer else (0.0, inner)
        w = word(words, position)
        position += 1
        u = float(np.int64(w >> np.uint64(11)))
        steps, position = to_grid(period * periods + start, width * _UNIT, u, words, position)
        if w & np.uint64(256):
            steps = -steps
        if position > words.shape[0]:
            return i, used
        used = position
        out[i] = (np.floor(signal[i] / grid + 0.5) + steps) * grid
    return signal.shape[0], used


@kernel
def normal_rows_by_window(
    signal: Floats, out: Floats, columns: int, grid: float, scale: float, degrees: int, windows: Words,
    short: Integers,
) -> int:  # fmt: skip
    """`normal_rows` with a window of words for each row; lists rows whose window was too short."""
    missed = 0
    for i in range(windows.shape[0]):
        a, b = i * columns, (i + 1) * columns
        done, _ = normal_rows(signal[a:b], out[a:b], columns, grid, scale, degrees, windows[i], 0)
        if done == 0:
            short[missed] = i
            missed += 1
    return missed


@kernel
def staircase_rows_by_window(
    signal: Floats, out: Floats, grid: float, period: float, inner: float, level: float,
    rare: float, rare_is_outer: bool, windows: Words, short: Integers,
) -> int:  # fmt: skip
    """`staircase_rows` with a window of words for each row; lists rows whose window was too short."""
    missed = 0
    for i in range(windows.shape[0]):
        done, _ = staircase_rows(
            signal[i : i + 1], out[i : i + 1], grid, period, inner, level, rare, rare_is_outer, windows[i], 0
        )
        if done == 0:
            short[missed] = i
            missed += 1
    return missed
