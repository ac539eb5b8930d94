"""The cut of a quota, for free: a public rule of what was asked for and of bits that are out already.

People are asked in batches, in an order that has nothing to do with their rows. Each batch has its cut, and
each cut is made of the request and of the bits of earlier batches alone. So a person's row enters one draw,
that of her own bit: P(bits | rows) is a product of one factor for each person, given the bits before hers,
and only one factor holds her row. Nobody pays for the cut, and whoever has the bits can compute it again:
everything here is done in whole numbers, so that all machines find the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from targetdp.mechanisms import STEPS

FIRST_BATCH = 48
"""People, at least, who are held against the cut that was asked for."""
MOST_KNOTS = 64
_EXPECTED_OF = 16
"""What was expected counts as much as what so many people told: a few bits do not move a cut far."""


def batches(people: int) -> list[range]:
    """The places of each batch, one after the other: each adds a third to all who were asked before.

    Args:
        people: How many there are.

    Returns:
        Ranges that cover all of them; the last one has a quarter of all people.

    Example:
        >>> [len(batch) for batch in batches(300)]
        [53, 18, 23, 32, 42, 56, 76]
    """
    ends = [people]
    while 3 * ends[-1] // 4 >= FIRST_BATCH:
        ends.append(3 * ends[-1] // 4)
    return [range(start, stop) for start, stop in pairwise([0, *reversed(ends)]) if stop > start]


@dataclass(frozen=True)
class Expected:
    """What an official expects: the share of people who would get a yes, by the cut.

    Args:
        cuts: Cuts in whole numbers of 2⁻⁵⁰, each above the one before it.
        shares: The share of yes at each, from 0 to 1, never falling.

    Raises:
        ValueError: There are too few or too many, or they are not in order.

    Example:
        >>> line = Expected((0, 100), (Fraction(0), Fraction(1)))
        >>> line.share(25), line.cut(Fraction(1, 2))
        (Fraction(1, 4), 50)
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

    def share(self, cut: int) -> Fraction:
        """The share of yes at a cut: straight lines between those that were given."""
        cuts, shares = self.cuts, self.shares
        if cut <= cuts[0]:
            return shares[0]
        if cut >= cuts[-1]:
            return shares[-1]
        at = next(place for place, one in enumerate(cuts) if one > cut)
        low, high = cuts[at - 1], cuts[at]
        return shares[at - 1] + (shares[at] - shares[at - 1]) * Fraction(cut - low, high - low)

    def cut(self, share: Fraction) -> int:
        """The smallest cut at which the share is reached."""
        cuts, shares = self.cuts, self.shares
        if share <= shares[0]:
            return cuts[0]
        if share >= shares[-1]:
            return cuts[shares.index(shares[-1])]
        at = next(place for place, one in enumerate(shares) if one >= share)
        rise = shares[at] - shares[at - 1]
        exact = cuts[at - 1] + (cuts[at] - cuts[at - 1]) * (share - shares[at - 1]) / rise
        return -((-exact.numerator) // exact.denominator)


@dataclass(frozen=True)
class CutRule:
    """How cuts follow from bits.

    The scores of everybody are thought to be spread as was expected, moved by some amount. The amount is that
    at which as many yes would have been expected as there were, of all who were asked so far; the next cut is
    the one whose share of yes is then the one that is wanted. As batches grow, what was expected far from the
    cut matters less and less.

    Args:
        expected: What the official expects.
        wanted: The share of people who are to get a yes.
        errors: Chances of a wrong bit in whole numbers of 2⁻⁶⁴, by how many cells away from the cut.
        width: Of a cell, in whole numbers of 2⁻⁵⁰; None where there is one on each side.
    """

    expected: Expected
    wanted: Fraction
    errors: tuple[int, ...]
    width: int | None

    @cached_property
    def first(self) -> int:
        """The cut of the first batch."""
        return self.expected.cut(self.wanted)

    def next(self, cuts: Sequence[int], people: Sequence[int], yes: Sequence[int]) -> int:
        """The cut after some batches: of each its cut, how many people it had, and how many bits say yes."""
        if not cuts:
            return self.first
        seen = sum(yes) + _EXPECTED_OF * self.bits(self.first)

        def too_many(moved: int) -> bool:
            """Whether fewer yes would be expected than there were: scores are lower than this, then."""
            asked = zip((self.first, *cuts), (_EXPECTED_OF, *people), strict=True)
            return sum(n * self.bits(cut - moved) for cut, n in asked) < seen

        # The farther scores are moved up, the fewer yes at a cut. The smallest amount with too few of them.
        reach = self.expected.cuts[-1] - self.expected.cuts[0] + max(abs(cut) for cut in cuts) + 1
        low, high = -reach, reach
        if not too_many(high) or too_many(low):
            moved = high if not too_many(high) else low
            return self._kept(self.first + moved)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if too_many(middle) else (middle, high)
        return self._kept(self.first + low)

    def _kept(self, cut: int) -> int:
        """Scores are from −1 to 1: a cut far beyond tells nobody apart."""
        return max(-2 * STEPS, min(2 * STEPS, cut))

    def bits(self, cut: int) -> Fraction:
        """The share of bits that say yes at a cut, if scores are spread as expected."""
        share, unit = self.expected.share, 1 << 64
        at = share(cut)
        first = Fraction(self.errors[0], unit)
        total = at * (1 - first) + (1 - at) * first
        if self.width is None:
            return total
        # Each cell farther away has a smaller error: what is gained by it, on both sides.
        for place in range(1, len(self.errors)):
            less = Fraction(self.errors[place - 1] - self.errors[place], unit)
            away = place * self.width
            total += less * share(cut - away) - less * (1 - share(cut + away))
        return total
