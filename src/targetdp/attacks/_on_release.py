"""An original table and its release, person by person, in the units of the release (or as scores)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Integers, Progress
from targetdp.attacks._match._known_noise import check_differs_by_noise, in_scores
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LinearLaw, NoiseLaw, law_of
from targetdp.normalization import (
    ColumnScales,
    data_scales,
    declared_scales,
    normalize,
    read_scales,
)
from targetdp.release import (
    Certificate,
    certificate_path,
    certified,
    pseudonym_key,
    pseudonyms,
)
from targetdp.table import check_columns, open_source, read_people

AS_THEY_ARE = (
    "There is no certificate: the tables are compared in the units that they have. If the release was "
    "scaled, give its scales."
)

IN_CLEAR = (
    "No attack here uses the columns that are passed on as they are ({columns}): what they say, and linkage "
    "by them, is not measured."
)

SAMPLE_ASIDE = (
    "The holdout may hold people of the sample that the weights were learned from: they have no score in "
    "this release, but the sample tells of them."
)


@dataclass(frozen=True)
class RowsBeforeScoring:
    """The rows that scores were made of, scaled and clipped: of people in the release, and of the holdout."""

    features: tuple[str, ...]
    law: LinearLaw
    original: Floats = field(repr=False)
    holdout: Floats | None = field(repr=False)


@dataclass(frozen=True)
class JoinedTables:
    """What attacks work on: row i of ``original`` and of ``released`` is the same person.

    Args:
        features: The released columns.
        original: Rows in the units of the release: scaled and clipped as its mechanism saw them or, where
            scores were released, their exact scores.
        released: The released rows.
        holdout: People who are not in the release, in the same units.
        certificate: The release's certificate, if it has one.
        notes: What a reader of the results should know.
        places: The rows' places in the original table, by which people meet in several releases; without
            them row i is the same person in all.
        rows_before_scoring: The rows that scores were made of, where scores were released.
        ids: The ids that stand in the release, in clear or as pseudonyms; None for a table without ids.
        holdout_places: The same of the holdout, -1 for people who are not in the original table; without them
            nobody of the holdout is in any release.

    Example:
        >>> tables = JoinedTables(("calls",), np.array([[0.3], [0.5]]), np.array([[0.4], [0.1]]))
        >>> tables.law is None, tables.B is None  # no certificate says which noise was added
        (True, True)
    """

    features: tuple[str, ...]
    original: Floats = field(repr=False)
    released: Floats = field(repr=False)
    holdout: Floats | None = field(repr=False, default=None)
    certificate: Certificate | None = field(repr=False, default=None)
    notes: tuple[str, ...] = ()
    places: Integers = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    rows_before_scoring: RowsBeforeScoring | None = field(repr=False, default=None)
    ids: pa.StringArray | None = field(repr=False, default=None)
    holdout_places: Integers = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def ids_are(self) -> Literal["in clear", "pseudonyms", "not released"]:
        """How people are named in the release."""
        if self.ids is None:
            return "not released"
        hashed = self.certificate is not None and self.certificate.pseudonyms
        return "pseudonyms" if hashed else "in clear"

    @property
    def people(self) -> Integers:
        """By what number people meet in several releases."""
        return self.places if len(self.places) else np.arange(len(self.original))

    @property
    def law(self) -> NoiseLaw | None:
        """The noise on the released columns, if the certificate tells it."""
        if self.rows_before_scoring is not None:
            return self.rows_before_scoring.law.noise
        record = None if self.certificate is None else self.certificate.mechanism.law
        return None if record is None else law_of(record)

    @property
    def rows(self) -> "RowsBeforeScoring | JoinedTables":
        """The features, law and rows that the mechanism saw: these, or those that scores were made of."""
        return self.rows_before_scoring or self

    @property
    def B(self) -> float | None:
        """The distance of the certificate's guarantee."""
        proof = self.certificate
        return None if proof is None or proof.guarantee is None else proof.guarantee.B

    @property
    def scales_spent(self) -> Guarantee | None:
        """What private column scales cost, if the certificate says so."""
        spent = None if self.certificate is None else self.certificate.scales.spent
        return None if spent is None else spent.value()


def join_tables(
    original: Path,
    released: Path,
    id_column: str,
    *,
    progress: Progress,
    certificate: Path | None = None,
    features: Sequence[str] | None = None,
    scales: Path | None = None,
    public_key: str | None = None,
    pseudonym_key_file: Path | None = None,
    holdout: Path | None = None,
    rest_is_holdout: bool = False,
    further: bool = False,
) -> JoinedTables:
    r"""Join two tables on the id and bring the original into the units of the release.

    With a certificate beside the release (or given) features, constants for gaps and column scales are the
    certificate's own; it must hold for the file.

    Args:
        original: The original table.
        released: Its release.
        id_column: The column that identifies a person, in both.
        progress: Is told how far reading is.
        certificate: The release's certificate, where it is not beside it.
        features: Columns to attack, where there is no certificate.
        scales: File with the column scales, where a certificate may not tell them.
        public_key: The data holder's public key, to check the certificate's signature.
        pseudonym_key_file: Key of the release's pseudonyms, if it has any.
        holdout: Table of people who are not in the release.
        rest_is_holdout: Whether people of the original who are not in the release are the holdout.
        further: Whether this is a further release, beside the one under attack: it may have other people, and
            people of the holdout.

    Returns:
        Both tables, person by person.

    Raises:
        ValueError: With the reason: an id twice, people in the release who are not in the original, people in
            the original who are not in the release (unless they are the holdout), a holdout that shares
            people, a certificate that does not hold, or tables that differ by something else than its noise.

    Example:
        >>> import tempfile
        >>> from targetdp._core import Silent
        >>> temporary = tempfile.TemporaryDirectory()
        >>> folder = Path(temporary.name)
        >>> _ = (folder / "people.csv").write_text("name,calls\nann,3\nbob,5\n")
        >>> _ = (folder / "private.csv").write_text("name,calls\nbob,4.8\nann,3.1\n")
        >>> tables = join_tables(folder / "people.csv", folder / "private.csv", "name", progress=Silent())
        >>> tables.original.ravel().tolist(), tables.released.ravel().tolist()
        ([5.0, 3.0], [4.8, 3.1])
        >>> temporary.cleanup()
    """
    proof = _certificate(released, certificate, public_key)
    names = _features(original, released, id_column, proof, features)
    gaps = {} if proof is None else proof.imputed
    mine = read_people("table", original, id_column, names, gaps=gaps, progress=progress)
    shown = names if proof is None else proof.released
    private = read_people(
        "table", released, id_column if proof is None else proof.id, shown, progress=progress
    )
    own_ids = _as_released(mine.ids, proof, pseudonym_key_file)
    here = _places(own_ids, private.ids, original, released)
    rest = np.setdiff1d(np.arange(len(own_ids)), here)
    if len(rest) and not (rest_is_holdout or further):
        raise ValueError(
            f"original {original} has {len(rest):,} people who are not in release {released}: leave them "
            "out, or say that they are the holdout (--rest-is-holdout)"
        )
    outside, outsiders = (mine.rows[rest], rest) if len(rest) and rest_is_holdout else (None, rest[:0])
    if holdout is not None:
        if outside is not None:
            raise ValueError("holdout is given twice: as a table and as the rest of the original; choose one")
        aside = read_people("table", holdout, id_column, names, gaps=gaps, progress=progress)
        if not further:
            _check_holdout(_as_released(aside.ids, proof, pseudonym_key_file), private.ids, holdout)
        outside = aside.rows
        outsiders = pc.fill_null(pc.index_in(aside.ids, value_set=mine.ids), -1).to_numpy()
    rows = mine.rows[here]
    used = _scales(rows, names, proof, scales)
    if used is not None:
        rows = normalize(rows, used).X
        outside = None if outside is None else normalize(outside, used).X
    notes = (AS_THEY_ARE,) if proof is None and used is None else ()
    if proof is not None and proof.not_protected:
        notes = (*notes, IN_CLEAR.format(columns=", ".join(proof.not_protected)))
    tables = JoinedTables(
        names, rows, private.rows, outside, proof, notes, here, ids=private.ids, holdout_places=outsiders
    )
    if proof is not None and proof.scores is not None:
        tables = _in_scores(tables, proof, aside=len(rest))
    check_differs_by_noise(tables.original, tables.released, tables.law)
    return tables


def _in_scores(tables: JoinedTables, proof: Certificate, aside: int) -> JoinedTables:
    """The same people, by the exact scores that the certificate's weights give them.

    ``aside`` counts people of the original who are not in the release.
    """
    law, notes = None if tables.law is None else tables.law.linear, tables.notes
    if law is None:
        raise ValueError("the certificate has no weights for its scores: run targetdp verify")
    if aside and proof.sample is not None and not proof.sample.scored:
        notes = (*notes, SAMPLE_ASIDE)
    return replace(
        tables,
        features=proof.released,
        original=in_scores(tables.original, law),
        holdout=None if tables.holdout is None else in_scores(tables.holdout, law),
        notes=notes,
        rows_before_scoring=RowsBeforeScoring(tables.features, law, tables.original, tables.holdout),
    )


def _certificate(released: Path, given: Path | None, public_key: str | None) -> Certificate | None:
    path = given or certificate_path(released)
    if given is None and not path.exists():
        return None
    proof = certified("release", released, path, public_key)
    if proof.made_for is not None:
        raise ValueError(
            f"release {released} was made for {proof.made_for}, which standardizes values after the noise: "
            "attack a release made without --for"
        )
    return proof


def _features(
    original: Path, released: Path, id_column: str, proof: Certificate | None, given: Sequence[str] | None
) -> tuple[str, ...]:
    """The columns to attack: the certificate's, those given, or all that both tables have."""
    ours, theirs = open_source(original).columns, open_source(released).columns
    check_columns(ours, f"original {original}", id=[id_column])
    check_columns(theirs, f"release {released}", id=[id_column if proof is None else proof.id])
    if proof is not None:
        if given is not None and tuple(given) != proof.features:
            raise ValueError(
                f"features names {', '.join(given)}: the release's certificate says "
                f"{', '.join(proof.features)}; leave --features out"
            )
        names = proof.features
    else:
        names = tuple(given) if given else tuple(n for n in theirs if n in ours and n != id_column)
    if len(set(names)) < len(names) or id_column in names:
        raise ValueError(f"features names {', '.join(names)}: each column once, and not the id ({id_column})")
    if not names:
        raise ValueError(f"original {original} and release {released} share no column but the id")
    check_columns(ours, f"original {original}", features=names)
    check_columns(theirs, f"release {released}", features=names if proof is None else proof.released)
    return names


def _as_released(ids: pa.StringArray, proof: Certificate | None, key: Path | None) -> pa.StringArray:
    """Ids as the release has them: hashed, where it has pseudonyms."""
    if proof is None or not proof.pseudonyms:
        if key is not None:
            raise ValueError("pseudonym_key is given, but the release has no pseudonyms: leave it out")
        return ids
    if key is None:
        raise ValueError("the release has pseudonyms: give the key of the release (--pseudonym-key)")
    if not key.exists():
        raise ValueError(f"pseudonym_key {key} does not exist: give the file of the release")
    return pseudonyms(ids, pseudonym_key(key))


def _places(own: pa.StringArray, released: pa.StringArray, original: Path, release: Path) -> Integers:
    """Where each person of the release is in the original."""
    places = pc.index_in(released, value_set=own)
    if places.null_count:
        raise ValueError(
            f"release {release} has {places.null_count:,} people who are not in original {original}: the two "
            "tables must be about the same people, with ids written the same way"
        )
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def _check_holdout(aside: pa.StringArray, released: pa.StringArray, holdout: Path) -> None:
    shared = pc.sum(pc.is_in(aside, value_set=released)).as_py()
    if shared:
        raise ValueError(
            f"holdout {holdout} has {shared:,} people who are in the release: a holdout holds other people"
        )


def _scales(
    rows: Floats, features: Sequence[str], proof: Certificate | None, file: Path | None
) -> ColumnScales | None:
    """How the original becomes what the mechanism saw; None: the units are the same already."""
    if proof is None:
        return None if file is None else read_scales(file, features)
    published = proof.scales.values
    given = None if file is None else read_scales(file, features)
    if published is not None:
        used = declared_scales(
            *([getattr(published[n], part) for n in features] for part in ("center", "scale"))
        )
        same = given is None or (
            np.array_equal(given.center, used.center) and np.array_equal(given.scale, used.scale)
        )
        if not same:
            raise ValueError(f"scales {file} are not those of the certificate: leave --scales out")
        return used
    if proof.scales.source == "data":
        if given is not None:
            raise ValueError("scales were the data's own: they are computed again; leave --scales out")
        return data_scales(rows)
    if given is None:
        raise ValueError(
            "the release's scales are confidential, so that its certificate does not tell them: give the "
            "scales file (--scales)"
        )
    return given
