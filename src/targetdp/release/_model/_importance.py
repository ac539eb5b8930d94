"""What a score looks at, for the data holder's eyes: never part of a release.

Any score will do, a model's or one that is written in a request as numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, check

MOST_PEOPLE = 1_000
"""Whose rows are looked at: shares are then right to a few points."""
_SHOWN = 10


@dataclass(frozen=True)
class Importance:
    """What a decision looks at.

    Args:
        columns: Of each column, how many people in 100 would get another answer with somebody else's value in
            it; the most important first.
        yes: How many people of the sample would get a yes.
        without_answer: How many rows have no score: they get a no.
        people: How many there are in the sample.
    """

    columns: tuple[tuple[str, float], ...]
    yes: int
    without_answer: int
    people: int

    def in_words(self) -> list[str]:
        """Lines for the data holder, to read before the release is approved."""
        lines = [
            f"what the decision looks at, on {self.people:,} of your own rows (for your eyes only): how many "
            "people in 100 would get another answer with somebody else's value in the column"
        ]
        width = max(len(name) for name, _ in self.columns)
        lines += [f"  {name:<{width}}  {100 * share:5.1f}" for name, share in self.columns[:_SHOWN]]
        if len(self.columns) > _SHOWN:
            rest = len(self.columns) - _SHOWN
            lines.append(f"  {rest} other columns: {100 * self.columns[_SHOWN][1]:.1f} or less each")
        lines.append(
            f"{self.yes:,} of {self.people:,} would get a yes before the draw; {self.without_answer:,} rows "
            "have no score, and get a no"
        )
        lines.append(
            "a decision can be any question about a row: 'age > 60' is one, too. epsilon bounds how much the "
            "answer tells about a person; whether the question may be asked is for you to decide, by the "
            "purpose in the request and by what the ledger says was asked before"
        )
        return lines


def importance(
    score: Callable[[pa.Table], Floats],
    sample: pa.Table,
    columns: Sequence[str],
    *,
    cut: float,
    yes: Literal["below", "above"],
    rng: np.random.Generator,
) -> Importance:
    """Permutation importance of a decision: how many answers change when a column is shuffled.

    Args:
        score: The score of each row of a table; NaN: no answer.
        sample: Some of the data holder's own rows; of more than 1,000 the first ones are looked at, so draw
            them first.
        columns: Those that the score may look at.
        cut: Scores on one side of it get a yes.
        yes: ``"below"`` (at the cut, too) or ``"above"``.
        rng: Where shuffles come from.

    Returns:
        Shares of people by column, and how many would get a yes.

    Raises:
        ValueError: There are no rows or columns.

    Does not guarantee: that a column of little importance is not used; two columns that say the same share
    what they matter. Nothing of this may leave the data holder: it is made of people's rows without noise.
    """
    check.choice("yes", yes, ("below", "above"))
    if not columns or not sample.num_rows:
        raise ValueError("importance needs a column and a row: give those that the score looks at")
    sample = sample.slice(0, MOST_PEOPLE)

    def decide(rows: pa.Table) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Floats]:
        scores = score(rows)
        return (scores <= cut if yes == "below" else scores > cut), scores

    before, scores = decide(sample)
    shares = []
    for name in columns:
        shuffled = sample.column(name).take(pa.array(rng.permutation(sample.num_rows)))
        after, _ = decide(sample.set_column(sample.schema.get_field_index(name), name, shuffled))
        shares.append((name, float(np.mean(before != after))))
    shares.sort(key=lambda one: -one[1])
    return Importance(
        tuple(shares), int(np.count_nonzero(before)), int(np.count_nonzero(np.isnan(scores))), sample.num_rows
    )
