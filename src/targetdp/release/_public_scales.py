"""Scales learned from a table of other people, to be declared public, and who these people are.

Who they are is kept by keyed tags in the user's configuration, and then at the desk: a hash without a key
would confirm a guess of any row. So a release can tell whether they are its own people.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Progress, Words, check
from targetdp._files import canonical, write_whole
from targetdp.normalization import (
    ColumnMoments,
    ColumnScales,
    ScalesFile,
    read_scales,
    read_scales_file,
    scales_of,
)
from targetdp.release._ids import is_among, loose_tags
from targetdp.release._ledger._elsewhere import shared_tag_key
from targetdp.release._trust._keys import config_folder
from targetdp.table import (
    Source,
    TableOnDisk,
    Tally,
    batch_rows,
    check_columns,
    ids_of,
    numbers_of,
    open_source,
)


def learn_scales(
    table: TableOnDisk,
    features: Sequence[str],
    *,
    id_column: str | None,
    impute: float | dict[str, float] | None,
    fit: float | None,
    progress: Progress,
    without: Words | None = None,
) -> ColumnScales:
    """Means and deviations of a table's columns.

    With ``fit`` all scales are multiplied by one number, so that this share of the table's rows fits in the
    unit ball; without, as in the paper, most rows of several columns are longer than 1 and will be clipped.
    People whose loose tags are in ``without`` are left out.

    Does not guarantee: any privacy. Whoever uses them must say whose data they are from.
    """
    if not features:
        raise ValueError("features must be given: name the columns to scale")
    if fit is not None:
        check.number("fit", fit, above=0, at_most=1, remedy="give the share of rows to fit, such as 0.9")
    source = open_source(table)
    check_columns(source.columns, f"input {table}", id=[id_column] if id_column else [], features=features)
    constants = (
        impute if isinstance(impute, dict) else {} if impute is None else dict.fromkeys(features, impute)
    )
    if without is not None and id_column is None:
        raise ValueError("id_column must be given: without it nobody can be left out")
    people = None if without is None or id_column is None else (id_column, without)
    moments = None
    for block in _blocks(source, features, constants, progress, people):
        moments = ColumnMoments.of(block) if moments is None else moments + ColumnMoments.of(block)
    if moments is None:
        of = "" if people is None else " of other people"
        raise ValueError(f"input {table} has no rows{of}: there is nothing to learn from")
    _refuse_constants(features, moments)
    scales = scales_of(moments, "data", features)
    if fit is None:
        return scales
    lengths = [
        np.linalg.norm((block - scales.center[:, None]) / scales.scale[:, None], axis=0)
        for block in _blocks(source, features, constants, progress, people)
    ]
    longest = float(np.quantile(np.concatenate(lengths), fit, method="higher"))
    return ColumnScales(scales.center, scales.scale * longest, "data")


def _blocks(
    source: Source, features: Sequence[str], constants: dict[str, float], progress: Progress,
    without: tuple[str, Words] | None,
) -> Iterator[Floats]:  # fmt: skip
    """The table's numbers, column by column, in batches; a table with gaps is refused at its end."""
    progress.phase("reading", source.count())
    tally = Tally()
    seen, types = 0, dict.fromkeys(features, pa.float64())
    own = [] if without is None else [without[0]]
    for whole in source.batches([*own, *features], types, batch_rows(len(features))):
        batch = whole
        if without is not None:
            ids = ids_of(whole.column(without[0]), without[0], tally, seen)
            batch = whole.filter(pa.array(~is_among(loose_tags(ids, shared_tag_key()), without[1])))
        if batch.num_rows:
            yield numbers_of(batch, features, constants, tally, seen)
        seen += whole.num_rows
        progress.advance(whole.num_rows)
    tally.raise_if_any()


def _refuse_constants(features: Sequence[str], moments: ColumnMoments) -> None:
    """No column may have the same value in every row."""
    ends = zip(features, moments.lowest, moments.highest, strict=True)
    constant = [name for name, low, high in ends if low == high]
    if constant:
        raise ValueError(
            f"constant columns among the features: {', '.join(map(repr, constant))}: leave them out; the "
            "same value in every row tells nothing and costs the others noise"
        )


# Whom scales were learned from


_ROWS = 1 << 20
_PEOPLE, _NAME = "scales.people", 16
"""Where a desk has the tags, and how many bytes the name has with which they begin."""


def people_in(table: TableOnDisk, id_column: str) -> Words:
    """Loose tags of a table's people under the user's key, sorted, each once."""
    source = open_source(table)
    check_columns(source.columns, f"input {table}", id=[id_column])
    key = shared_tag_key()
    found = [
        loose_tags(ids_of(batch.column(id_column), id_column, Tally(), 0), key)
        for batch in source.batches([id_column], {}, _ROWS)
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.uint64)


def remember_people(people: Words, scales: ColumnScales, features: Sequence[str]) -> str:
    """Keep tags in the user's configuration; the name under which they are, which is that of these scales."""
    both = zip(scales.center.tolist(), scales.scale.tolist(), strict=True)
    name = secrets.token_hex(8) + _hash_of(dict(zip(features, both, strict=True)))
    place = scaled_people(name)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(place, bytes.fromhex(name) + people.tobytes(), private=True)
    return name


def _hash_of(scales: dict[str, tuple[float, float]]) -> str:
    """With which the name of a record ends: it must not vouch for other scales."""
    return hashlib.sha256(canonical(scales).encode()).hexdigest()[:16]


def scaled_people(name: str) -> Path:
    """Where the user's configuration keeps whom scales were learned from."""
    return config_folder() / "scales" / f"{name}.people"


def read_tags(path: Path, name: str) -> Words | None:
    """Sorted tags from their file; None if it is that of other scales, a ValueError if it is damaged."""
    data = path.read_bytes()
    own, data = data[:_NAME], data[_NAME:]
    if len(own) == _NAME and own.hex() != name:
        return None
    tags = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.uint64)
    if len(own) < _NAME or len(data) % 8 or not bool((tags[1:] > tags[:-1]).all()):
        raise ValueError(
            f"{path} is damaged: it says whom the public scales were learned from; bring it back, or learn "
            "the scales again"
        )
    return tags


def must_be_public(path: Path) -> None:
    """A ValueError unless a file has scales that are called public."""
    if read_scales_file(path).source != "public":
        raise ValueError(
            f"scales {path} are confidential, learned from the same people: give public ones, or let them be "
            'estimated (scales.source = "private" in policy.toml)'
        )


@dataclass(frozen=True)
class PublicScales:
    """The scales.toml of a desk, and who is in the table that it was learned from.

    Args:
        desk: The desk's folder.
        tag_key: Gives the desk's key of tags.
    """

    desk: Path
    tag_key: Callable[[], bytes] = field(repr=False)

    @property
    def file(self) -> Path:
        """The one record of them: source, reason, and whom they were learned from."""
        return self.desk / "scales.toml"

    def of(self, features: Sequence[str]) -> ColumnScales:
        """Those of some features."""
        must_be_public(self.file)
        return read_scales(self.file, features)

    @cached_property
    def record(self) -> ScalesFile | None:
        """What the file said when it was first read; None if there is none."""
        return read_scales_file(self.file) if self.file.exists() else None

    def people(self) -> Words | None:
        """Loose tags of those whom they were learned from; None where that is not on record."""
        record = self.record
        if record is None or record.people is None:
            return None
        own, told = self.desk / _PEOPLE, scaled_people(record.people)
        found = read_tags(own, record.people) if own.exists() else None
        # They may have been learned by another user, or on another machine.
        if found is None and told.exists() and self._has_the_user_s_key():
            found = read_tags(told, record.people)
        return found

    def are_as_learned(self) -> bool:
        """Whether nobody has changed them since it was put on record whom they were learned from."""
        record = self.record
        if record is None or record.people is None:
            return True
        return record.people.endswith(_hash_of({n: (c.center, c.scale) for n, c in record.features.items()}))

    def _has_the_user_s_key(self) -> bool:
        """Whether the desk's tags are those of the user's configuration; none is made there for this."""
        return (config_folder() / "tags.key").exists() and shared_tag_key() == self.tag_key()

    def keep_people(self) -> None:
        """Keep the tags at the desk, where only the user's configuration has them."""
        record, people = self.record, self.people()
        if record is not None and record.people is not None and people is not None:
            content, own = bytes.fromhex(record.people) + people.tobytes(), self.desk / _PEOPLE
            if not own.exists() or own.read_bytes() != content:
                write_whole(own, content, private=True)


def shared_people(table: TableOnDisk, id_column: str, scales: Path) -> int:
    """How many people of a table public scales were learned from, as far as this user knows."""
    file = read_scales_file(scales)
    if file.people is None or file.other_people is not None or not scaled_people(file.people).exists():
        return 0
    people = read_tags(scaled_people(file.people), file.people)
    return 0 if people is None else int(is_among(people_in(table, id_column), people).sum())
