"""Permutation importance of a decision: how many answers change with somebody else's value in a column."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from targetdp._core import Floats

MOST_PEOPLE = 1_000
"""Whose rows are looked at: shares are then right to a few points."""
_MOST_ROWS = 200_000
"""That are scored, all columns together: many columns are told by fewer people."""
_SHOWN = 10


@dataclass(frozen=True)
class Importance:
    """What a decision looks at.

    Args:
        columns: Of each column, the share of people who would get another answer with somebody else's value
            in it; the most important first.
        yes: How many people of the sample would get a yes, before the draw.
        people: How many there are in the sample.
    """

    columns: tuple[tuple[str, float], ...]
    yes: int
    people: int

    def in_words(self, name: str) -> Iterator[str]:
        """Lines for the data holder, to read before anything goes out."""
        told = ", ".join(f"{column} {100 * share:.0f}" for column, share in self.columns[:_SHOWN])
        rest = len(self.columns) - _SHOWN
        more = (
            f", and {rest:,} other columns at most {100 * self.columns[_SHOWN][1]:.0f} each"
            if rest > 0
            else ""
        )
        yield (
            f"for you only: {name} looks at {told}{more} (so many in 100 would get another answer with "
            f"somebody else's value there; told by {self.people:,} of your rows)"
        )
        yield (
            f"for you only: {100 * self.yes / self.people:.0f}% of these people would get a yes at the first "
            "cut, before any draw"
        )


def people_in_sample(people: int, columns: int) -> int:
    """How many of so many people are looked at, each once for every column and once before."""
    return min(MOST_PEOPLE, people, max(50, _MOST_ROWS // (columns + 1)))


def importance(
    score: Callable[[pa.Table], Floats],
    sample: pa.Table,
    columns: Sequence[str],
    *,
    cut: float,
    rng: np.random.Generator,
) -> Importance:
    """How many answers change when a column is shuffled.

    Args:
        score: The score of each row of a table.
        sample: Some of the data holder's own rows, in no order.
        columns: Those that the score may look at.
        cut: Scores up to it are a yes.
        rng: Where shuffles come from.

    Returns:
        Shares of people by column, and how many would get a yes.

    Does not guarantee: that a column of little importance is not used; two columns that say the same share
    what they matter. Nothing of this may leave the data holder: it is made of people's rows without noise.
    """
    people = people_in_sample(sample.num_rows, len(columns))
    sample = sample.slice(0, people)
    before = score(sample) <= cut
    shares = []
    for name in columns:
        shuffled = sample.column(name).take(pa.array(rng.permutation(people)))
        after = score(sample.set_column(sample.schema.get_field_index(name), name, shuffled)) <= cut
        shares.append((name, float(np.mean(before != after))))
    shares.sort(key=lambda one: -one[1])
    return Importance(tuple(shares), int(np.count_nonzero(before)), people)
