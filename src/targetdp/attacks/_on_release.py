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
from targetdp.mechanisms import LinearLaw, NoiseLaw, noise_law_of
from targetdp.normalization import ColumnScales, declared_scales, normalize, read_scales
from targetdp.release import Certificate, Desk, certificate_path, certified, pseudonyms
from targetdp.table import check_columns, open_source, read_people

AS_THEY_ARE = (
    "There is no certificate: the tables are compared in the units that they have. If the release was "
    "scaled, give its scales."
)

IN_CLEAR = (
    "No attack here uses the columns that are passed on as they are ({columns}): what they say, and linkage "
    "by them, is not measured."
)

LEFT_OUT_ASIDE = (
    "The holdout may hold people whom this release left out because they are in others ({releases}): nothing "
    "of them is in this one, but those tell of them."
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
        return None if self.certificate is None else noise_law_of(self.certificate.mechanism.law)

    @property
    def rows(self) -> "RowsBeforeScoring | JoinedTables":
        """The features, law and rows that the mechanism saw: these, or those that scores were made of."""
        return self.rows_before_scoring or self

    @property
    def B(self) -> float | None:
        """The distance of the certificate's guarantee."""
        return None if self.certificate is None else self.certificate.guarantee.B

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
    desk: Desk | None = None,
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
        scales: File with the column scales, where there is no certificate.
        public_key: The data holder's public key, to check the certificate's signature.
        desk: The desk that made the release: it knows how ids are spelled, and the key of pseudonyms.
            Without it, or for a release that is not its own, ids are compared as they are.
        holdout: Table of people who are not in the release.
        rest_is_holdout: Whether people of the original who are not in the release are the holdout.
        further: Whether this is a further release, beside the one under attack: it may have other people, and
            people of the holdout.

    Returns:
        Both tables, person by person.

    Raises:
        ValueError: With the reason: an id twice, people in the release who are not in the original, people in
            the original who are not in the release (unless they are the holdout), a holdout that shares
            people, a certificate that does not hold, pseudonyms of another desk, or tables that differ by
            something else than the certificate's noise.

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
    encoding = None if proof is None else proof.encoding
    mine = read_people("table", original, id_column, names, encoding=encoding, progress=progress)
    shown = names if proof is None else proof.released
    private = read_people(
        "table",
        released,
        id_column if proof is None else proof.id,
        shown,
        progress=progress,
        csv=None if proof is None else proof.output.dialect,
    )
    own_ids = _as_released(mine.ids, f"original {original}", proof, desk)
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
        aside = read_people("table", holdout, id_column, names, encoding=encoding, progress=progress)
        aside_ids = _as_released(aside.ids, f"holdout {holdout}", proof, desk)
        if not further:
            _check_holdout(aside_ids, private.ids, holdout)
        outside = aside.rows
        outsiders = pc.fill_null(pc.index_in(aside_ids, value_set=own_ids), -1).to_numpy()
    rows = mine.rows[here]
    used = _scales(names, proof, scales)
    if used is not None:
        rows = normalize(rows, used).X
        outside = None if outside is None else normalize(outside, used).X
    notes = (AS_THEY_ARE,) if proof is None and used is None else ()
    if proof is not None and proof.public:
        notes = (*notes, IN_CLEAR.format(columns=", ".join(proof.public)))
    if proof is not None and proof.left_out and outside is not None:
        notes = (*notes, LEFT_OUT_ASIDE.format(releases=", ".join(one[:12] for one in proof.left_out)))
    tables = JoinedTables(
        names, rows, private.rows, outside, proof, notes, here, ids=private.ids, holdout_places=outsiders
    )
    if proof is not None and proof.scores:
        tables = _in_scores(tables, proof)
    check_differs_by_noise(tables.original, tables.released, tables.law)
    return tables


def _in_scores(tables: JoinedTables, proof: Certificate) -> JoinedTables:
    """The same people, by the exact scores that the certificate's weights give them."""
    law = None if tables.law is None else tables.law.linear
    if law is None:
        raise ValueError("the certificate has no weights for its scores: run targetdp verify")
    return replace(
        tables,
        features=proof.released,
        original=in_scores(tables.original, law),
        holdout=None if tables.holdout is None else in_scores(tables.holdout, law),
        rows_before_scoring=RowsBeforeScoring(tables.features, law, tables.original, tables.holdout),
    )


def _certificate(released: Path, given: Path | None, public_key: str | None) -> Certificate | None:
    path = given or certificate_path(released)
    if given is None and not path.exists():
        return None
    proof = certified("release", released, path, public_key)
    if proof.decisions:
        raise ValueError(
            f"release {released} holds decisions, and these attacks are on rows and scores: its certificate "
            "states how often the best guess of any attacker is right"
        )
    return proof


def _features(
    original: Path, released: Path, id_column: str, proof: Certificate | None, given: Sequence[str] | None
) -> tuple[str, ...]:
    """The columns to attack: the certificate's, those given, or all that both tables have."""
    csv = None if proof is None else proof.output.dialect
    ours, theirs = open_source(original).columns, open_source(released, csv=csv).columns
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
    sources = names if proof is None else proof.sources
    check_columns(ours, f"original {original}", features=sources)
    check_columns(theirs, f"release {released}", features=names if proof is None else proof.released)
    return names


def _as_released(
    ids: pa.StringArray, what: str, proof: Certificate | None, desk: Desk | None
) -> pa.StringArray:
    """Ids as the release has them: in its desk's spelling and, where it has pseudonyms, hashed."""
    if proof is None:
        return ids
    if desk is None or desk.id != proof.desk.id:
        if not proof.pseudonyms:
            return ids
        given = "no desk is given or found here" if desk is None else f"{desk.path} is another desk"
        raise ValueError(
            f"the release has pseudonyms of desk {proof.desk.name} ({proof.desk.id[:12]}), and {given}: name "
            "the folder of that desk (--desk), which has their key"
        )
    spelled = desk.policy.id.spelling.apply(ids)
    if (different := pc.count_distinct(spelled).as_py()) < len(spelled):
        raise ValueError(
            f"{what} has {len(spelled) - different:,} rows whose id occurs before, in the spelling of desk "
            f"{desk.name}: one row for each person"
        )
    return pseudonyms(spelled, desk.pseudonym_key) if proof.pseudonyms else spelled


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


def _scales(features: Sequence[str], proof: Certificate | None, file: Path | None) -> ColumnScales | None:
    """How the original becomes what the mechanism saw; None: the units are the same already."""
    if proof is None:
        return None if file is None else read_scales(file, features)
    if file is not None:
        raise ValueError(f"scales = {file}: the release's certificate has its scales; leave --scales out")
    values = [proof.scales.values[name] for name in features]
    return declared_scales([one.center for one in values], [one.scale for one in values])
