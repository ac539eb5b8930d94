"""What an engine is, and how every one ends: ranges of private rows, each sorted, become the released table.

A new engine is one new file here: a class with the methods of `Engine`, under ``@named("…")``.

What is written depends on the released rows alone: their order is that of their ids, and they are cut into
groups of a fixed number of rows. So neither layout nor last digits tell how the input was ordered or cut.
"""

import hmac
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers, Progress, Words, check, declared, import_all
from targetdp._files import canonical
from targetdp.mechanisms import DecisionLaw, NoiseLaw, RowLaw
from targetdp.noise import derived_key, one_word_each
from targetdp.normalization import ColumnScales
from targetdp.release._decision._bits import Bits, Cuts, Decided, Turns, decide
from targetdp.release._decision._scoring import RunModel, Scoring
from targetdp.release._draws import Draws
from targetdp.release._look._made_of import Spread
from targetdp.release._prepare import Recipe
from targetdp.table import MAX_BUCKETS, SortedIds, Source, Tally, overlapped, regrouped

GROUP_CELLS = 2_500_000
"""Values in a range of ids, about, and exactly in a row group of the output."""

FEWEST_GROUPED = 10
"""Columns that a range of ids is cut for, at least."""


@dataclass(frozen=True)
class Inspection:
    """What a look at all rows found: nothing of it leaves but through private scales.

    ``people`` are sorted tags; ``repeated`` counts rows whose id came before. ``lowest`` and ``highest`` are
    two values of each feature, different ones if there are any; ``clipped`` says how many rows are longer
    than 1, and ``spread`` how rows differ then, where the scales are known; ``counts`` is what private
    centers are drawn from.
    """

    rows: int
    people: Words
    repeated: int
    splitters: pa.StringArray
    tally: Tally
    lowest: Floats
    highest: Floats
    clipped: int | None
    counts: Integers | None
    left_out: int = 0
    spread: Spread | None = None
    in_scales: int = 0
    """People whom the declared scales were learned from."""
    formulas: int = 0
    """Ids that go out as they are, and that a spreadsheet would run."""
    sample: pa.Table | None = field(default=None, repr=False)
    """Rows of some people who are decided about, to tell the data holder what a score looks at."""
    not_taken: tuple[str, ...] = ()
    """Why models do not take the table's columns."""


NOTHING_INSPECTED = Inspection(
    0,
    np.empty(0, dtype=np.uint64),
    0,
    pa.array([], pa.string()),
    Tally(),
    np.empty(0),
    np.empty(0),
    None,
    None,
)
"""Of a table without the columns that would tell whose rows there are."""


@dataclass(frozen=True)
class ReleaseJob:
    """What is done to all rows, once it is charged."""

    release: str
    recipe: Recipe
    scales: ColumnScales | None
    """None where rows are taken as they are."""
    law: RowLaw
    inspection: Inspection
    draws: Draws
    folder: Path | None
    """Where what is not sorted yet may lie."""
    models: Mapping[str, RunModel] = field(default_factory=dict)
    """Those that score people, by the names of decisions, and that are running."""

    @property
    def noise(self) -> tuple[NoiseLaw, ColumnScales]:
        """The noise that is added, and the scales that rows have before."""
        law = self.law.noisy
        if law is None or self.scales is None:
            raise RuntimeError("noise without its law, or rows without scales: please report this")
        return law, self.scales

    @property
    def decisions(self) -> tuple[DecisionLaw, Scoring]:
        """The law of decisions, and how people are scored."""
        law, scoring = self.law.decision, self.recipe.scoring
        if law is None or scoring is None:
            raise RuntimeError("decisions without their law: please report this")
        return law, scoring

    def steps(self, number: int, batch: pa.RecordBatch, room: Floats) -> tuple[Integers, int]:
        """The scores of a batch of people, and how many rows were clipped; what models said is kept."""
        _, scoring = self.decisions
        if not scoring.by_models:
            return scoring.steps(batch, self.scales, self.models, room)
        rows = batch.select(list(self.recipe.sources))
        return self.draws.answers(number, rows, lambda: scoring.steps(rows, None, self.models, room)[0]), 0


@dataclass(frozen=True)
class Wrote:
    """What was done to all rows. How many were clipped is for the data holder only."""

    clipped: int
    cuts: Cuts = ()


def decide_all(job: ReleaseJob, batches: Turns, scores: Integers, tags: Words) -> Decided:
    """Draw everybody's bits, once all people are scored.

    Args:
        job: The release.
        batches: Of each person the number of her batch.
        scores: Her scores, a column for each decision.
        tags: Who she is. A re-run has the same people with the same scores in the same order, and so the same
            bits; or it is refused.
    """
    law, scoring = job.decisions
    words = one_word_each(len(tags), job.draws.for_decisions(tags, scores))
    return decide(batches, scores, [one.rule(law) for one in scoring.questions], law, words)


class RowWriter(Protocol):
    """Where finished rows go."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""


class Engine(Protocol):
    """A table, and the machinery that reads it: made of a table, used for one release."""

    name: str
    """What certificates call it."""
    columns: Sequence[str]
    """The table's columns."""
    place: str
    """What messages call the table."""
    read_as: str
    """Which files it is, and how they are read, in a line; nothing for a table in memory."""
    doubt: str
    """How CSV files look written, where that is not as they are read."""
    numbered: bool
    """Whether its rows have numbers that a message can name."""
    can_repeat: bool
    """Whether a re-run can repeat draws: rows come in the same batches each time."""

    def types(self, names: Sequence[str]) -> Mapping[str, pa.DataType]:
        """The types in which columns are passed on."""

    def inspect(self, recipe: Recipe, progress: Progress) -> Inspection:
        """Look at all rows: who they are, and whatever is wrong with them. Nothing is drawn."""

    def count(self, recipe: Recipe, centers: Floats, progress: Progress) -> Integers:
        """How far people are from the centers that were drawn: what private scales are drawn from."""

    def write(self, job: ReleaseJob, output: RowWriter, schema: pa.Schema, progress: Progress) -> Wrote:
        """Add noise, or draw bits, and write all rows in the order of their ids."""

    def check_unchanged(self) -> None:
        """A ValueError if the table is not what it was when this object was made."""

    def fingerprint(self, key: bytes) -> str | None:
        """What tells the table from a later one of its name, without reading it; None where nothing does."""


def fingerprint_of(source: Source, key: bytes) -> str | None:
    """The same of a table of files: names, times, what folders give, and how they are read.

    It goes on record, and sizes would tell of rows. It is made with a key of the desk's all the same.
    """
    if source.copied:
        return None
    files = [(Path(name).name, written) for name, _, written, *_ in source.state()]
    folders = {name: list(values) for name, values in source.folders.items()}
    told = canonical([files, folders, source.csv.text])
    return hmac.digest(derived_key(key, "tables"), told.encode(), "sha256").hex()


_ENGINES: dict[str, Callable[[Any], Engine]] = {}


def named(name: str) -> Callable[[type], type]:
    """Declare an engine by the name that the command line has for it."""

    def declare(engine: type) -> type:
        engine.name = name  # type: ignore[attr-defined]
        _ENGINES[name] = engine
        return engine

    return declare


def engine_of(name: str) -> Callable[[Source | Any], Engine]:
    """The engine of a name; no other one is imported, since some need libraries that may not be there."""
    check.choice("engine", name, declared("targetdp.release._engine"))
    import_all("targetdp.release._engine", rf'^@named\("{re.escape(name)}"')
    return _ENGINES[name]


def group_rows(released: int) -> int:
    """How many rows of so many released columns make a range of ids, and a row group of the output.

    Few columns make no larger ranges than ten: ids take memory, too.
    """
    return max(64, GROUP_CELLS // max(released, FEWEST_GROUPED))


def ranges_of(rows: int, released: int) -> int:
    """Into how many ranges of ids a table is cut."""
    return max(1, min(MAX_BUCKETS, -(-rows // group_rows(released))))


def hash_splitters(ranges: int) -> pa.StringArray:
    """Keyed hashes are uniform, so even ranges need no look at them."""
    return pa.array([f"{(b << 64) // ranges:016x}" for b in range(1, ranges)], pa.string())


def joined(total: Any, more: Any) -> Any:
    """The sum of two parts of a table, either of which may be None: nothing."""
    return more if total is None else total if more is None else total + more


SortedRange = Callable[[int], tuple[pa.StringArray, Floats | Bits, dict[str, pa.Array], SortedIds]]
"""By a range's number: ids, values column by column, public columns, and how the ids were sorted."""


def output_schema(recipe: Recipe, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of a release: the id, the features, scores or decisions, and what is public."""
    kind = pa.float64() if recipe.scoring is None else pa.bool_()
    return pa.schema(
        [
            pa.field(recipe.id, pa.string(), nullable=False),
            *(pa.field(name, kind, nullable=False) for name in recipe.released),
            *(pa.field(name, kind) for name, kind in types.items()),
        ]
    )


def released_columns(schema: pa.Schema) -> list[str]:
    """The columns of a release that come from protected ones: neither the id nor what is public."""
    return [column.name for column in list(schema)[1:] if not column.nullable]


def write_in_order(
    sorted_range: SortedRange,
    ranges: int,
    rows: int,
    schema: pa.Schema,
    output: RowWriter,
    progress: Progress,
) -> None:
    """Write all ranges one after the other."""
    progress.phase("writing in order of ids", rows)

    def tables() -> Iterator[pa.Table]:
        seen = 0
        for ids, columns, others, found in overlapped(sorted_range, range(ranges)):
            if found.duplicates:
                raise RuntimeError("an id came twice, and was not seen before: please report this")
            if len(ids):
                seen += len(ids)
                yield pa.Table.from_arrays([ids, *map(pa.array, columns), *others.values()], schema=schema)
                progress.advance(len(ids))
        if seen != rows:
            raise RuntimeError(
                f"{rows:,} rows were drawn for, and {seen:,} were found again: please report this"
            )

    for table in regrouped(tables(), group_rows(len(released_columns(schema)))):
        output.write(table)
