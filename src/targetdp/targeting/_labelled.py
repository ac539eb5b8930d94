"""A private sample and its labels, joined by whoever has the labels: what weights are learned from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress, Silent
from targetdp.attacks import covariance_of
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseLaw, noise_law_of
from targetdp.programs import ProgramSettings, ScoredProgram, read_columns
from targetdp.release import Certificate, certified
from targetdp.table import PeopleRows, Tally, batch_rows, check_columns, ids_of, open_source, read_people
from targetdp.targeting._learn import FEWEST, LearnedWeights, learn_for
from targetdp.targeting._sample_and_scores import part_of


@dataclass(frozen=True)
class SampleOrigin:
    """Where a sample's rows are from, as its certificate or record says.

    Args:
        release: The id of the release, or of the agreement.
        desk: The id of the desk.
        desk_name: What it is called.
        pseudonyms: Whether people go by pseudonyms there.
        features: Columns of the rows.
        scales: Center and scale by column, as far as they are known.
        tuned_on: On which data the setting of the release was chosen.
    """

    release: str
    desk: str
    desk_name: str
    pseudonyms: bool
    features: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]] = field(repr=False)
    tuned_on: str | None = None


OF_EACH = 1_000.0
"""People whom counts and money are of, where a program file names no population."""

TRANSLATION = ("id", "pseudonym")
"""Columns of the list in which a data holder says which pseudonym is whose: what `targetdp ids` writes."""


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
    unlabelled: PeopleRows = field(repr=False)

    def learn(self, score_variance: float) -> LearnedWeights:
        """Weights for scores that get noise of this variance."""
        return learn_for(self.program, self.rows, self.noise_covariance, score_variance)

    @property
    def noise_covariance(self) -> Floats:
        """Of the noise on the sample's rows."""
        return covariance_of(self.law, self.rows.shape[1])

    @property
    def promise(self) -> Guarantee:
        """Of the release."""
        return self.certificate.guarantee.value()

    @property
    def origin(self) -> SampleOrigin:
        """Where the rows are from."""
        proof = self.certificate
        scales = {name: (one.center, one.scale) for name, one in proof.scales.values.items()}
        return SampleOrigin(
            proof.release,
            proof.desk.id,
            proof.desk.name,
            proof.pseudonyms,
            self.features,
            scales,
            proof.tuned_on,
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Columns, in the order of the rows."""
        return tuple(self.certificate.features)

    @property
    def why_no_scores(self) -> None:
        """Nothing keeps scores from being learned from it."""
        return

    @property
    def weighed(self) -> "LabelledSample":
        """Itself: whom weights of a score are learned from."""
        return self


def read_labelled(
    sample: Path,
    labels: Path,
    settings: ProgramSettings,
    *,
    id_column: str | None = None,
    ids: Path | None = None,
    certificate: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> LabelledSample:
    """Join a private sample with a table of labels on the id.

    Columns, their order and the noise are the certificate's. Of the program's settings only kind, target,
    quota or threshold, weights, loans and population count, and all but the first three may be missing;
    labels' ids are where ``id_column``, the program or the certificate says.

    Args:
        sample: The released rows of the sample.
        labels: Table of labels (Parquet or CSV).
        settings: The program, from `targetdp.programs.read_decision_rule`.
        id_column: Where labels have their ids.
        ids: List of ids and pseudonyms, as `targetdp ids` writes it, where the sample has pseudonyms; without
            it ids are compared as they are.
        certificate: The sample's; beside the file unless given.
        public_key: The data holder's, to check the signature with.
        progress: Whom to tell how far reading is.

    Returns:
        People with a row and a label, and notes about those who have one of them only.

    Raises:
        ValueError: There is no certificate, or it does not hold; the release is not of rows; ids or labels
            are missing, or ids are there twice; fewer than 30 people are in both.

    Example:
        >>> from targetdp.programs import read_decision_rule
        >>> program = read_decision_rule(Path("aid.toml"))  # doctest: +SKIP
        >>> read_labelled(Path("private.parquet"), Path("labels.csv"), program).notes  # doctest: +SKIP
        ('812 people of the sample have no label: nothing was learned from them',)
    """
    progress = progress or Silent()
    proof = certified("sample", sample, certificate, public_key)
    if proof.kind != "rows":
        raise ValueError(
            f"sample {sample} holds {proof.kind} ({', '.join(proof.released)}), not features: learn from a "
            "release of the features with noise (targetdp privatize)"
        )
    released = read_people(
        "sample", sample, proof.id, proof.released, progress=progress, csv=proof.output.dialect
    )
    named = NamedSample(sample, proof.id, proof.pseudonyms, released)
    joined = join_labels(named, labels, settings, id_column=id_column, ids=ids, progress=progress)
    return LabelledSample(
        proof, noise_law_of(proof.mechanism.law), joined.rows, joined.program, joined.notes, joined.ids,
        joined.unlabelled,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class NamedSample:
    """Rows of a sample under the ids that a data holder has published, and where they were read."""

    path: Path
    id: str
    pseudonyms: bool
    people: PeopleRows = field(repr=False)


@dataclass(frozen=True, eq=False)
class JoinedSample:
    """Who has a row and a label: row i of ``rows`` is the i-th person of ``program``; the rest, and notes."""

    rows: Floats = field(repr=False)
    ids: pa.StringArray = field(repr=False)
    program: ScoredProgram
    notes: tuple[str, ...]
    unlabelled: PeopleRows = field(repr=False)


def join_labels(
    sample: NamedSample, labels: Path, settings: ProgramSettings, *, id_column: str | None, ids: Path | None,
    progress: Progress,
) -> JoinedSample:  # fmt: skip
    """Join rows of a sample with a table of labels; the arguments are those of `read_labelled`.

    Raises:
        ValueError: As for `read_labelled`, as far as labels are concerned.
    """
    if ids is not None and not sample.pseudonyms:
        raise ValueError(f"ids = {ids}: the sample has no pseudonyms; leave --ids out")
    released, rows = sample.people, sample.people.rows
    given = settings.model_copy(
        update={
            "table": labels, "id": id_column or settings.id or sample.id, "features": (), "groups": (),
            "population": settings.population or OF_EACH,
        }
    )  # fmt: skip
    columns = read_columns(given, progress)
    try:
        program = given.program(columns, {})
    except ValueError as error:
        raise ValueError(f"labels {labels}: {error}") from error
    labelled = columns.ids if ids is None else as_pseudonyms(columns.ids, ids)
    places = pc.index_in(labelled, value_set=released.ids)
    known = np.asarray(places.is_valid().to_numpy(zero_copy_only=False))
    both = int(known.sum())
    if both < FEWEST:
        remedy = "with ids written the same way"
        if sample.pseudonyms and ids is None:
            remedy = (
                "and the sample has pseudonyms: ask the data holder to translate the ids of the people whom "
                "you have labels of (targetdp ids), and give the list (--ids)"
            )
        elif sample.pseudonyms:
            remedy = "and the list must be of the desk that released the sample"
        raise ValueError(
            f"labels {labels} and sample {sample.path} have {both:,} people in common, by {given.id!r} and "
            f"{sample.id!r}: at least {FEWEST} are needed, {remedy}"
        )
    here = np.asarray(places.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    unlabelled = np.setdiff1d(np.arange(len(rows)), here)
    return JoinedSample(
        np.ascontiguousarray(rows[here]), released.ids.take(here), part_of(program, known, whole=True),
        _left_out(len(rows) - both, len(known) - both),
        PeopleRows(released.ids.take(unlabelled), np.ascontiguousarray(rows[unlabelled])),
    )  # fmt: skip


def as_pseudonyms(labelled: pa.StringArray, path: Path) -> pa.StringArray:
    """The pseudonym of each labelled person, by a data holder's list; null for people who are not in it."""
    source = open_source(path)
    check_columns(source.columns, f"list {path}", ids=TRANSLATION)
    tally, seen = Tally(), 0
    read: dict[str, list[pa.StringArray]] = {name: [pa.array([], pa.string())] for name in TRANSLATION}
    for batch in source.batches(TRANSLATION, {}, batch_rows(len(TRANSLATION))):
        for name, parts in read.items():
            parts.append(ids_of(batch.column(name), name, tally, seen))
        seen += batch.num_rows
    if tally.counts:
        raise ValueError("\n".join([f"list {path}:", *tally.lines(policy=False)]))
    own, theirs = (pa.concat_arrays(parts) for parts in read.values())
    if pc.count_distinct(own).as_py() < seen:
        raise ValueError(f"list {path} has an id twice: each id once, as targetdp ids writes it")
    found = theirs.take(pc.index_in(labelled, value_set=own))
    if (twice := len(found) - found.null_count - pc.count_distinct(found).as_py()) > 0:
        raise ValueError(
            f"{twice:,} labels are of a person who has one already: by list {path} their ids are other "
            "spellings of the same id; keep one label for each person"
        )
    return found


def _left_out(without_label: int, elsewhere: int) -> tuple[str, ...]:
    notes = []
    if without_label:
        notes.append(f"{without_label:,} people of the sample have no label: nothing was learned from them")
    if elsewhere:
        notes.append(f"{elsewhere:,} labels are of people who are not in the sample: they were not used")
    return tuple(notes)
