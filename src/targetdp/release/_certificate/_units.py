"""Released rows in the table's own units, beside the release: whatever is computed from it costs nothing.

The release itself stays as it is certified: noise can be told, and taken into account, only there. Levels,
dates and words are the nearest ones, so that the noise of these is gone for whoever reads them: nobody can
say by them how sure they are.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from targetdp._core import Floats
from targetdp._files import whole_file
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._staging import agreement_path, certificate_path
from targetdp.table import Sink, batch_rows, format_of, nearest_values, open_source


def must_have_units(certificate_kind: str, place: Path, output: Path, others: Iterable[Path] = ()) -> None:
    """Refuse what cannot be written in a table's own units, before anything is done.

    Args:
        certificate_kind: What is released: ``"rows"``, ``"scores"`` or ``"decisions"``.
        place: Where the rows go.
        output: The release.
        others: What else must stay as it is: the input, the desk.

    Raises:
        ValueError: It is no release of rows, or the name is that of another file, or of no known format.

    Example:
        >>> must_have_units("rows", Path("units.csv"), Path("out.csv"))
    """
    if certificate_kind != "rows":
        raise ValueError(
            f"units = {place}: {certificate_kind} are released, and only rows have the table's own units"
        )
    if format_of(place) is None:
        raise ValueError(f"units = {place} has no known suffix: use .parquet or .csv")
    for whole in (output.resolve(), *(other.resolve() for other in others)):
        if place.resolve() == whole or whole in place.resolve().parents:
            raise ValueError(
                f"units = {place} is {whole}, or in it, which must stay as it is: choose another name"
            )
    if any(proof(place).exists() for proof in (certificate_path, agreement_path)):
        raise ValueError(f"units = {place} is a release, or rows of people who agreed: choose another name")


def write_in_units(output: Path, certificate: Certificate, place: Path, *, force: bool = False) -> None:
    """Write released rows in the table's own units to a file of their own.

    Args:
        output: The released file or folder; whoever believes it has verified it.
        certificate: Its certificate.
        place: Where the rows go, a Parquet or CSV file.
        force: Whether a file of that name is replaced.

    Raises:
        ValueError: These are no rows, or a file cannot be read or written.

    Guarantees: of privacy, what the release has: this is computed from it alone. Numbers are moved back by
    the scales on the certificate; of a kind of column the nearest declared value is written.
    Does not guarantee: that values are possible ones. Numbers have noise; there are negative counts among
    them.

    Example:
        >>> from targetdp.release import read_certificate
        >>> proof = read_certificate(Path("out.certificate.json"))  # doctest: +SKIP
        >>> write_in_units(Path("out.parquet"), proof, Path("units.csv"))  # doctest: +SKIP
    """
    must_have_units(certificate.kind, place, output)
    kind = format_of(place)
    if kind is None:
        raise RuntimeError("a format that is known and not known: please report this")
    with whole_file(place, force=force) as draft:
        tables = _tables(output, certificate)
        first = next(tables)
        with Sink(draft, kind, first.schema, ids=certificate.id) as sink:
            sink.write(first)
            for table in tables:
                sink.write(table)
            sink.finish()


def _tables(output: Path, c: Certificate) -> Iterator[pa.Table]:
    """All rows, some at a time; the first may have none."""
    source = open_source(output, csv=c.output.dialect)
    types = dict.fromkeys(c.features, pa.float64()) | source.types(list(c.public))
    schema = None
    for batch in source.batches([c.id, *c.features, *c.public], types, batch_rows(len(c.features))):
        numbers = {name: _moved_back(batch, c, name) for name in c.features}
        columns = {c.id: batch.column(c.id).cast(pa.string())} | nearest_values(c.encoding, numbers)
        columns |= {name: batch.column(name) for name in c.public}
        table = pa.table(columns)
        schema = schema or table.schema
        yield table.cast(schema)


def _moved_back(batch: pa.RecordBatch, c: Certificate, name: str) -> Floats:
    scale = c.scales.values[name]
    with np.errstate(over="ignore"):
        return np.asarray(batch.column(name).to_numpy(zero_copy_only=False) * scale.scale + scale.center)
