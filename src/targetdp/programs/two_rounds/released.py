"""A release, read by whoever was handed it: its certificate must hold for the file, then ids and values."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp.progress import Progress
from targetdp.release.certificate import Certificate
from targetdp.release.columns import Tally, check_columns, ids_of, numbers_of
from targetdp.release.staging import certificate_path
from targetdp.release.verify import read_certificate, verify_release
from targetdp.table.source import batch_rows, open_source
from targetdp.typing import Floats


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Row i of ``rows`` is that of ``ids[i]``; columns are those that the certificate says were released."""

    certificate: Certificate
    ids: pa.StringArray = field(repr=False)
    rows: Floats = field(repr=False)


def certified(what: str, path: Path, given: Path | None, public_key: str | None) -> Certificate:
    """The certificate of a release, if it holds for the file; ``what`` the release is, for messages."""
    place = given or certificate_path(path)
    if not place.exists():
        raise ValueError(
            f"{what} {path} has no certificate ({place}): it tells what noise the values have, and without "
            "it nothing can be learned that knows the noise; ask the data holder for it"
        )
    proof = read_certificate(place)
    checks = verify_release(path, proof, public_key).checks
    wrong = [f"{check.what}: {check.detail}" for check in checks if check.holds is False]
    if wrong:
        raise ValueError(
            f"certificate {place} does not hold for {what} {path} ({'; '.join(wrong)}): run targetdp verify "
            "for all checks"
        )
    return proof


def read_released(what: str, path: Path, proof: Certificate, progress: Progress) -> ReleasedRows:
    """Ids and released columns, in the certificate's order. An id that is missing, or twice, is refused."""
    source, columns = open_source(path), proof.released
    check_columns(source.columns, f"{what} {path}", id=[proof.id], features=columns)
    progress.phase(f"reading {path.name}", source.count())
    tally, seen, ids, blocks = Tally(), 0, [], []
    types = dict.fromkeys(columns, pa.float64())
    for batch in source.batches([proof.id, *columns], types, batch_rows(len(columns))):
        ids.append(ids_of(batch.column(proof.id), proof.id, tally, seen))
        blocks.append(numbers_of(batch, columns, {}, tally, seen))
        seen += batch.num_rows
        progress.advance(batch.num_rows)
    try:
        tally.raise_if_any()
    except ValueError as error:
        raise ValueError(f"{what} {path}: {str(error).removesuffix('. Nothing was published')}") from error
    together = pa.concat_arrays(ids)
    if (different := pc.count_distinct(together).as_py()) < seen:
        raise ValueError(
            f"{what} {path} has {seen - different:,} rows whose id occurs before: one row for each person"
        )
    return ReleasedRows(proof, together, np.concatenate(blocks, axis=1).T)
