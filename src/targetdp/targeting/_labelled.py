"""A private sample and its labels, joined by whoever has the labels: what weights are learned from."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress, Silent
from targetdp.attacks import covariance_of
from targetdp.mechanisms import NoiseLaw, law_of
from targetdp.programs import ProgramSettings, ScoredProgram, read_columns
from targetdp.release import Certificate, certificate_path, read_certificate, verify_release
from targetdp.table import Tally, batch_rows, check_columns, ids_of, numbers_of, open_source
from targetdp.targeting._learn import FEWEST, LearnedWeights, learn_for
from targetdp.targeting._sample_and_scores import part_of

# A release, read by whoever was handed it: its certificate must hold for the file, then ids and values.


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


OF_EACH = 1_000.0
"""People whom counts and money are of, where a program file names no population."""


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """People of a private sample whose label is known: row i of ``rows`` is the i-th person of ``program``.

    ``notes`` say who was left out of the join; ``unlabelled`` are people of the sample without a label.
    """

    certificate: Certificate = field(repr=False)
    law: NoiseLaw
    rows: Floats = field(repr=False)
    program: ScoredProgram
    notes: tuple[str, ...]
    ids: pa.StringArray = field(repr=False)
    unlabelled: ReleasedRows = field(repr=False)

    def learn(self, score_variance: float) -> LearnedWeights:
        """Weights for scores that get noise of this variance."""
        return learn_for(self.program, self.rows, self.noise_covariance, score_variance)

    @property
    def noise_covariance(self) -> Floats:
        """Of the noise on the sample's rows."""
        return covariance_of(self.law, self.rows.shape[1])


def read_labelled(
    sample: Path,
    labels: Path,
    settings: ProgramSettings,
    *,
    id_column: str | None = None,
    certificate: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> LabelledSample:
    """Join a private sample with a table of labels on the id.

    Columns, their order and the noise are the certificate's. Of the program's settings only kind, target,
    quota, weights, loans and population count; labels' ids are where ``id_column``, the program or the
    certificate says.

    Args:
        sample: The released rows of the sample.
        labels: Table of labels (Parquet or CSV).
        settings: The program.
        id_column: Where labels have their ids.
        certificate: The sample's; beside the file unless given.
        public_key: The data holder's, to check the signature with.
        progress: Whom to tell how far reading is.

    Returns:
        People with a row and a label, and notes about those who have one of them only.

    Raises:
        ValueError: There is no certificate, or it does not hold; the release is k-anonymous, of scores, or
            made for another tool; ids or labels are missing, or ids are there twice; fewer than 30 people are
            in both.

    Example:
        >>> from targetdp.programs import read_program_file
        >>> program = read_program_file(Path("aid.toml"))  # doctest: +SKIP
        >>> read_labelled(Path("private.parquet"), Path("labels.csv"), program).notes  # doctest: +SKIP
        ('812 people of the sample have no label: nothing was learned from them',)
    """
    progress = progress or Silent()
    proof = certified("sample", sample, certificate, public_key)
    law = _noise(sample, proof)
    released = read_released("sample", sample, proof, progress)
    ids, rows = released.ids, released.rows
    given = settings.model_copy(
        update={
            "table": labels, "id": id_column or settings.id or proof.id, "features": (), "groups": (),
            "population": settings.population or OF_EACH,
        }
    )  # fmt: skip
    columns = read_columns(given, progress)
    try:
        program = given.program(columns, {})
    except ValueError as error:
        raise ValueError(f"labels {labels}: {error}") from error
    places = pc.index_in(columns.ids, value_set=ids)
    known = np.asarray(places.is_valid().to_numpy(zero_copy_only=False))
    both = int(known.sum())
    if both < FEWEST:
        hashed = " The release has pseudonyms: labels need the same ones." if proof.pseudonyms else ""
        raise ValueError(
            f"labels {labels} and sample {sample} have {both:,} people in common, by {given.id!r} and "
            f"{proof.id!r}: at least {FEWEST} are needed, with ids written the same way.{hashed}"
        )
    here = np.asarray(places.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    unlabelled = np.setdiff1d(np.arange(len(rows)), here)
    return LabelledSample(
        proof, law, np.ascontiguousarray(rows[here]), part_of(program, known, whole=True),
        _left_out(len(rows) - both, len(known) - both), ids.take(here),
        ReleasedRows(proof, ids.take(unlabelled), np.ascontiguousarray(rows[unlabelled])),
    )  # fmt: skip


def _left_out(without_label: int, elsewhere: int) -> tuple[str, ...]:
    notes = []
    if without_label:
        notes.append(f"{without_label:,} people of the sample have no label: nothing was learned from them")
    if elsewhere:
        notes.append(f"{elsewhere:,} labels are of people who are not in the sample: they were not used")
    return tuple(notes)


def _noise(sample: Path, proof: Certificate) -> NoiseLaw:
    """The law of the sample's noise, if it is one that weights can be learned under."""
    if proof.mechanism.law is None or proof.guarantee is None:
        reason = f"was made by {proof.mechanism.name}, which has no noise of a known law"
    elif proof.scores is not None:
        reason = f"holds scores ({', '.join(proof.scores)}), not features"
    elif proof.made_for is not None:
        reason = f"was made for {proof.made_for}, which standardizes values after the noise"
    else:
        return law_of(proof.mechanism.law)
    raise ValueError(
        f"sample {sample} {reason}: learn from a release of the features with noise (targetdp privatize)"
    )
