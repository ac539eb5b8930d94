"""The cut of a quota, for free: a public rule of what was asked for and of bits that are out already.

People are asked in batches, in an order that has nothing to do with their rows. Each batch has its cut, and
each cut is made of the request and of the bits of earlier batches alone. So a person's row enters one draw,
that of her own bit: P(bits | rows) is a product of one factor for each person, given the bits before hers,
and only one factor holds her row. Nobody pays for the cut, and whoever has the bits can compute it again:
everything here is done in whole numbers, so that all machines find the same.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil

from targetdp.mechanisms import STEPS

FIRST_BATCH = 48
"""People, at least and but for chance, who are held against the cut that was asked for."""
MOST_KNOTS = 64
MOST_CELLS = 64
"""On each side of a cut: where there are more, a few that are next to each other count as one."""
UNIT = 1 << 64
"""Shares and chances are whole numbers of so many parts."""
_EXPECTED_OF = 16
"""What was expected counts as much as what so many people told: a few bits do not move a cut far."""


def batch_ends(people: int) -> list[int]:
    """How many people are asked up to the end of each batch: each adds a third to all who came before.

    Args:
        people: How many there are.

    Returns:
        Numbers up to all people; as hashes have it, a batch has a few people more or less.

    Example:
        >>> batch_ends(300)
        [52, 70, 94, 126, 168, 225, 300]
    """
    ends = [people]
    while 3 * ends[-1] // 4 >= FIRST_BATCH:
        ends.append(3 * ends[-1] // 4)
    return ends[::-1]


@dataclass(frozen=True)
class ExpectedShares:
    """What an official expects: the share of people who would get a yes, by the cut.

    Args:
        cuts: Cuts in whole numbers of 2⁻⁵⁰, each above the one before it.
        shares: The share of yes at each, from 0 to 1, never falling.

    Raises:
        ValueError: There are too few or too many, or they are not in order.

    Example:
        >>> line = ExpectedShares((0, 100), (Fraction(0), Fraction(1)))
        >>> line.share(25) / UNIT, line.cut(Fraction(1, 2))
        (0.25, 50)
    """

    cuts: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.cuts) != len(self.shares) or not 2 <= len(self.cuts) <= MOST_KNOTS:
            raise ValueError(
                f"cuts and shares must be equally many, from 2 to {MOST_KNOTS}: there are {len(self.cuts)} "
                f"and {len(self.shares)}"
            )
        if any(b <= a for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must grow: give each above the one before it")
        if any(not 0 <= one <= 1 for one in self.shares) or list(self.shares) != sorted(self.shares):
            raise ValueError("shares must be from 0 to 1, and must not fall: give the sample's own, in order")
        if self.shares[0] == self.shares[-1]:
            raise ValueError("shares are all the same: no cut would change anything; give cuts farther apart")

    @cached_property
    def _whole(self) -> list[int]:
        return [share.numerator * UNIT // share.denominator for share in self.shares]

    def share(self, cut: int) -> int:
        """The share of yes at a cut, of 2⁶⁴, rounded down: straight lines between those that were given."""
        cuts, shares = self.cuts, self._whole
        at = bisect_right(cuts, cut)
        if at == 0 or at == len(cuts):
            return shares[min(at, len(cuts) - 1)]
        low, high = cuts[at - 1], cuts[at]
        return shares[at - 1] + (shares[at] - shares[at - 1]) * (cut - low) // (high - low)

    def cut(self, share: Fraction) -> int:
        """The smallest cut at which the share is reached, or the last one that raises it."""
        cuts, shares = self.cuts, self.shares
        share = min(share, shares[-1])
        at = bisect_left(shares, share)
        if at == 0:
            return cuts[0]
        rise = shares[at] - shares[at - 1]
        return cuts[at - 1] + ceil((cuts[at] - cuts[at - 1]) * (share - shares[at - 1]) / rise)


@dataclass(frozen=True)
class CutRule:
    """How cuts follow from bits.

    The scores of everybody are thought to be spread as was expected, moved by some amount. The amount is that
    at which as many yes would have been expected as there were, of all who were asked so far; the next cut is
    the one whose share of yes is then the one that is wanted. As batches grow, cuts come closer, and at B = 2
    what was expected far from them matters no more.

    Args:
        expected: What the official expects.
        wanted: The share of people who are to get a yes.
        errors: Chances of a wrong bit in whole numbers of 2⁻⁶⁴, by how many cells away from the cut.
        width: Of a cell, in whole numbers of 2⁻⁵⁰; None where there is one on each side.
    """

    expected: ExpectedShares
    wanted: Fraction
    errors: tuple[int, ...]
    width: int | None

    @cached_property
    def first(self) -> int:
        """The cut of the first batch."""
        return _kept(self.expected.cut(self.wanted))

    def next(self, cuts: Sequence[int], people: Sequence[int], yes: Sequence[int]) -> int:
        """The cut after some batches: of each its cut, how many people it had, and how many bits say yes."""
        if not cuts:
            return self.first
        asked = [(self.first, _EXPECTED_OF), *zip(cuts, people, strict=True)]
        seen = sum(yes) * UNIT**2 + _EXPECTED_OF * self.bits(self.first)

        def too_many(moved: int) -> int:
            """Expected yes beyond those there were: the farther up scores are moved, the fewer there are."""
            return sum(n * self.bits(cut - moved) for cut, n in asked) - seen

        # One step goes no farther than all that was expected is wide.
        last, reach = cuts[-1] - self.first, self.expected.cuts[-1] - self.expected.cuts[0]
        return _kept(self.first + _last_not_below_zero(too_many, last - reach, last + reach + 1))

    def bits(self, cut: int) -> int:
        """The share of bits that say yes at a cut, of 2¹²⁸, if scores are spread as expected.

        It is a line with corners where a cut, or the end of a cell beside it, meets a cut that was given.
        Between corners it is interpolated, rounded down.
        """
        corners = self._corners
        at = bisect_right(corners, cut)
        if at == 0 or at == len(corners):
            return self._bits_at(corners[min(at, len(corners) - 1)])
        low, high = corners[at - 1], corners[at]
        start = self._bits_at(low)
        return start + (self._bits_at(high) - start) * (cut - low) // (high - low)

    @cached_property
    def _cells(self) -> list[tuple[int, int]]:
        """How far from the cut cells of one side begin, and their chances of error."""
        together = -(-len(self.errors) // MOST_CELLS)
        wide = together * (self.width or 0)
        return [(place * wide, words) for place, words in enumerate(self.errors[together // 2 :: together])]

    @cached_property
    def _corners(self) -> list[int]:
        away = {side * far for far, _ in self._cells for side in (-1, 1)}
        return sorted({knot + far for knot in self.expected.cuts for far in away})

    @cached_property
    def _found(self) -> dict[int, int]:
        """What `_bits_at` found: cuts come closer to each other, and so meet the same few corners."""
        return {}

    def _bits_at(self, cut: int) -> int:
        if cut not in self._found:
            share, (_, first) = self.expected.share, self._cells[0]
            total = share(cut) * (UNIT - 2 * first) + UNIT * first
            # Each cell farther away has a smaller error: what is gained by it, on both sides.
            for (_, nearer), (far, words) in pairwise(self._cells):
                total += (nearer - words) * (share(cut - far) + share(cut + far) - UNIT)
            self._found[cut] = total
        return self._found[cut]


def _last_not_below_zero(value: Callable[[int], int], low: int, high: int) -> int:
    """The last place between two, the second apart, where a falling function is not below 0; or the first.

    Lines between known places find it in a few steps, since the function is made of lines; halves keep it
    from taking many.
    """
    at_low, at_high = value(low), value(high)
    if at_low < 0:
        return low
    if at_high >= 0:
        return high - 1
    halve = False
    while high - low > 1:
        guess = (low + high) // 2 if halve else low + (high - low) * at_low // (at_low - at_high)
        for place in (guess, guess + 1):
            if not low < place < high:
                continue
            found = value(place)
            low, at_low, high, at_high = (
                (place, found, high, at_high) if found >= 0 else (low, at_low, place, found)
            )
        halve = not halve
    return low


def _kept(cut: int) -> int:
    """Scores are from −1 to 1: a cut far beyond tells nobody apart."""
    return max(-2 * STEPS, min(2 * STEPS, cut))
