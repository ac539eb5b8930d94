"""What every engine does with a batch of rows: look at it, count it, and add noise to it."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Words, kernel
from targetdp.mechanisms import NoiseLaw
from targetdp.noise import WordSource
from targetdp.normalization import (
    ColumnScales,
    count_clipped,
    count_distances,
    count_values,
    rows_in_ball,
    scores_in_ball,
)
from targetdp.release._engine._base import Inspection, joined
from targetdp.release._ids import is_among, loose_tags
from targetdp.release._look._made_of import Spread
from targetdp.release._prepare import Recipe
from targetdp.table import Tally, formulas_in, ids_of

_SAMPLED_ROWS, _SAMPLED_VALUES = 1_000, 200_000
"""Of a batch: by so many rows, or values, the data holder is told what a score looks at."""

# From columns, as tables are stored, to private rows or scores: where noise is added, for every engine.


def noisy_rows(columns: Floats, scales: ColumnScales, law: NoiseLaw, words: WordSource) -> tuple[Floats, int]:
    """Scale and clip rows whose finite values come column by column, add noise; how many were clipped.

    Scores are summed up on the way, so that rows of all columns are never held.
    """
    if law.linear is not None:
        scores, clipped = scores_in_ball(columns, scales, np.array(law.linear.weights))
        return law.linear.noise_on(scores, words), clipped
    rows, clipped = rows_in_ball(columns, scales)
    return law.add_to(rows, words), clipped


@dataclass
class Looked:
    """What a look at some rows found; ``+`` joins two parts of a table."""

    rows: int
    people: list[Words]
    tally: Tally
    lowest: Floats
    highest: Floats
    clipped: int | None
    counts: Integers | None
    left_out: int = 0
    formulas: int = 0
    spread: Spread | None = None
    in_scales: int = 0
    sample: list[pa.RecordBatch] = field(default_factory=list)
    not_taken: tuple[str, ...] = ()

    def __add__(self, other: "Looked") -> "Looked":
        tally = Tally()
        tally.merge(self.tally)
        tally.merge(other.tally)
        return Looked(
            self.rows + other.rows, self.people + other.people, tally,
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest),
            joined(self.clipped, other.clipped), joined(self.counts, other.counts),
            self.left_out + other.left_out, self.formulas + other.formulas,
            joined(self.spread, other.spread), self.in_scales + other.in_scales, self.sample + other.sample,
            self.not_taken or other.not_taken,
        )  # fmt: skip

    def inspection(self, splitters: pa.StringArray) -> Inspection:
        """All of it, once every row was seen."""
        people = in_order(self.people)
        different = len(people) - int(np.count_nonzero(people[1:] == people[:-1]))
        return Inspection(
            self.rows, people, len(people) - different, splitters, self.tally, self.lowest, self.highest,
            self.clipped, self.counts, self.left_out, self.spread, self.in_scales, self.formulas,
            _mixed(self.sample), self.not_taken,
        )  # fmt: skip


def _mixed(samples: list[pa.RecordBatch]) -> pa.Table | None:
    """Rows of several batches, in no order; where parts of a table have other types, those of the first."""
    if not samples:
        return None
    together = pa.Table.from_batches([one for one in samples if one.schema == samples[0].schema])
    return together.take(pa.array(np.random.default_rng().permutation(together.num_rows)))


def in_order(people: list[Words]) -> Words:
    """The tags of several parts of a table, sorted; the parts go as it grows, so that none is held twice."""
    found, stop = np.empty(sum(map(len, people)), dtype=np.uint64), 0
    people.reverse()
    while people:
        part = people.pop()
        found[stop : stop + len(part)] = part
        stop += len(part)
    found.sort()
    return found


def nothing_seen(recipe: Recipe) -> Looked:
    """What a look at no rows finds."""
    d = len(recipe.features)
    clipped = None if recipe.scales is None else 0
    return Looked(0, [], Tally(), np.full(d, np.inf), np.full(d, -np.inf), clipped, None)


def look_at(
    batch: pa.RecordBatch, recipe: Recipe, offset: int, room: Floats | None = None, *, whose: bool = False
) -> tuple[Looked, pa.StringArray]:
    """Look at the rows of a batch: what was found, and the ids of those who will be released.

    ``whose`` rows they are is all that is looked at, where columns are taken as they are.
    """
    tally = Tally()
    ids = recipe.names.ids(batch, tally, offset)
    tags = recipe.names.tags(ids)
    batch, ids, tags, left_out = _without(batch, ids, tags, recipe)
    found = nothing_seen(recipe)
    found.rows, found.people, found.tally, found.left_out = len(ids), [tags], tally, left_out
    if len(ids):
        found.formulas = 0 if recipe.names.pseudonym_key is not None else formulas_in(ids)
    if recipe.as_they_are:
        return (found if whose else found + look_at_types(batch, recipe)), ids
    block = recipe.encoding.numbers(batch, recipe.features, tally, offset, room)
    if len(ids):
        if len(recipe.scaled_from):
            found.in_scales = _known_to_scales(batch, ids, recipe)
        _two_values(block, found.lowest, found.highest)
        if recipe.scales is not None and not tally.counts:
            found.clipped = count_clipped(block, recipe.scales)
            found.spread = Spread.of(
                block, recipe.scales, whole=recipe.scoring is None and recipe.released != recipe.features
            )
        if recipe.estimated and not tally.counts:
            found.counts = count_values(block[list(recipe.estimated)])
    if recipe.scoring is not None:
        found.sample = _some_of(batch, recipe, tally)
    return found, ids


def look_at_types(batch: pa.RecordBatch, recipe: Recipe) -> Looked:
    """What keeps people from being decided about by columns as they are: types alone, and no value."""
    found = nothing_seen(recipe)
    if recipe.scoring is not None:
        found.tally = recipe.scoring.problems(batch)
        decisions = [one.asked for one in recipe.scoring.questions]
        found.not_taken = tuple(recipe.models.do_not_take(decisions, batch.schema))
        found.sample = _some_of(batch, recipe, found.tally)
    return found


def _some_of(batch: pa.RecordBatch, recipe: Recipe, tally: Tally) -> list[pa.RecordBatch]:
    """A few rows of a batch, whichever; none where something is wrong with it."""
    if tally.counts or not batch.num_rows:
        return []
    most = min(batch.num_rows, _SAMPLED_ROWS, _SAMPLED_VALUES // len(recipe.features))
    rows = np.random.default_rng().choice(batch.num_rows, most, replace=False)
    return [batch.select(list(recipe.sources)).take(pa.array(rows))]


def _known_to_scales(batch: pa.RecordBatch, ids: pa.StringArray, recipe: Recipe) -> int:
    """How many people the declared scales were learned from: by their ids as they are, and as spelled."""
    as_they_are = ids_of(batch.column(recipe.id), recipe.id, Tally(), 0)
    found = [
        is_among(loose_tags(texts, recipe.names.tag_key), recipe.scaled_from) for texts in (ids, as_they_are)
    ]
    return int(np.logical_or(*found).sum())


@kernel
def _two_values(columns: Floats, lower: Floats, higher: Floats) -> None:
    """Two values of each column: different ones if there are any. It stops at the first difference."""
    for j in range(len(columns)):
        first = other = columns[j, 0]
        for value in columns[j]:
            if value != first:
                other = value
                break
        lower[j], higher[j] = min(first, other), max(first, other)


def _without(
    batch: pa.RecordBatch, ids: pa.StringArray, tags: Words, recipe: Recipe
) -> tuple[pa.RecordBatch, pa.StringArray, Words, int]:
    """A batch without the people who are left out: nothing of their rows is looked at."""
    gone = is_among(tags, recipe.left_out)
    if not gone.any():
        return batch, ids, tags, 0
    stay = pa.array(~gone)
    return batch.filter(stay), ids.filter(stay), tags[~gone], int(gone.sum())


def people_of(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, pa.StringArray]:
    """The rows of a batch that are released, and their ids; all of it was looked at before."""
    ids = recipe.names.ids_again(batch)
    if not len(recipe.left_out):
        return batch, ids
    return _without(batch, ids, recipe.names.tags(ids), recipe)[:2]


def count_from(
    centers: Floats, batch: pa.RecordBatch, recipe: Recipe, room: Floats | None = None
) -> Integers | None:
    """How far the people of a batch are from the centers of the columns whose scales are estimated."""
    batch, ids = people_of(batch, recipe)
    if not len(ids):
        return None
    tally = Tally()
    block = recipe.encoding.numbers(batch, recipe.estimated_names, tally, 0, room)
    if tally.counts:  # all of it was looked at before
        raise ValueError("the table changed while it was read: try again when nobody writes to it")
    return count_distances(block, centers)
