"""People who agreed to be used as they are, with their labels: what any score can be fitted to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Progress, Silent
from targetdp.normalization import ColumnScales, data_scales, normalize
from targetdp.programs import ProgramSettings, ScoredProgram
from targetdp.release import Agreement, agreed_rows
from targetdp.table import PeopleRows, open_source, profile_table, read_people
from targetdp.targeting._labelled import LabelledSample, NamedSample, SampleOrigin, join_labels
from targetdp.targeting._learn import LearnedWeights, learn_for

CLASSIC = 2.0
NO_SCALES = (
    "the data holder has not said by what columns are scaled, as they are scaled privately and no release "
    "has paid for that yet: ask for decisions at B = 2, which need no scales, or ask the data holder for "
    "public scales (targetdp scales), and for the rows again"
)


@dataclass(frozen=True, eq=False)
class AgreedSample:
    """People who agreed and whose label is known: row i of ``raw`` is the i-th person of ``program``.

    Args:
        agreement: The signed record of what they agreed to.
        features: Columns of numbers, in the order of ``raw``.
        raw: Their rows in the table's own units; NaN is a gap.
        program: What is decided about them, with their outcomes.
        notes: Who, and which columns, were left out.
        ids: As they are published.
        unlabelled: People who agreed and have no label.

    Example:
        >>> read_agreed(Path("agreed.parquet"), Path("labels.csv"), program).promise  # doctest: +SKIP
    """

    agreement: Agreement = field(repr=False)
    features: tuple[str, ...]
    raw: Floats = field(repr=False)
    program: ScoredProgram
    notes: tuple[str, ...]
    ids: pa.StringArray = field(repr=False)
    unlabelled: PeopleRows = field(repr=False)

    @property
    def promise(self) -> None:
        """None: they agreed to be used as they are."""
        return

    @property
    def origin(self) -> SampleOrigin:
        """Where the rows are from."""
        record = self.agreement.record
        known = record.scales or {}
        scales = {name: (known[name].center, known[name].scale) for name in self.features if name in known}
        return SampleOrigin(
            record.agreement, record.desk.id, record.desk.name, record.pseudonyms, self.features, scales
        )

    @property
    def law(self) -> None:
        """Of noise on the rows: they have none."""
        return

    @property
    def why_no_scores(self) -> str | None:
        """Why no score can be learned from them, if none can."""
        return NO_SCALES if self.agreement.record.scales_of(self.features) is None else None

    def rows_for(self, B: float) -> Floats:
        """The rows as decisions look at them: at B = 2 as they are, below it scaled and clipped.

        Raises:
            ValueError: The data holder has not said by what columns are scaled.
        """
        if B == CLASSIC:
            return self.raw
        scales = self.agreement.record.scales_of(self.features)
        if scales is None:
            raise ValueError(NO_SCALES)
        return scaled_rows(self.raw, scales)

    @property
    def rows(self) -> Floats:
        """The rows, as a private sample calls them."""
        return self.raw

    @property
    def weighed(self) -> "AgreedSample":
        """Those without gaps, in the unit ball: whom weights of a score are learned from.

        Where the data holder has not said by what columns are scaled, their own deviations stand for that:
        enough to compare what releases would do, and not to ask for one.
        """
        scales = self.agreement.record.scales_of(self.features)
        if scales is None:
            scales = data_scales(self.raw[~np.isnan(self.raw).any(axis=1)])
        rows = scaled_rows(self.raw, scales)
        places = np.flatnonzero(~np.isnan(rows).any(axis=1))
        others = scaled_rows(self.unlabelled.rows, scales)
        whole = ~np.isnan(others).any(axis=1)
        people = self.program.people
        share = float(people.weights[places].sum() / people.weights.sum())
        return AgreedSample(
            self.agreement,
            self.features,
            np.ascontiguousarray(rows[places]),
            self.program.part(places, people.population * share),
            self.notes,
            self.ids.take(pa.array(places)),
            PeopleRows(self.unlabelled.ids.filter(pa.array(whole)), others[whole]),
        )

    def learn(self, score_variance: float) -> LearnedWeights:
        """Weights for scores that get noise of this variance, from rows of the unit ball (`weighed`)."""
        return learn_for(self.program, self.raw, self.noise_covariance, score_variance)

    @property
    def noise_covariance(self) -> Floats:
        """None on these rows."""
        return np.zeros((len(self.features), len(self.features)))


def scaled_rows(raw: Floats, scales: ColumnScales) -> Floats:
    """Rows by these scales, clipped; whoever has a gap stays a row of gaps."""
    whole = ~np.isnan(raw).any(axis=1)
    rows = np.full(raw.shape, np.nan)
    if whole.any():
        rows[whole] = normalize(raw[whole], scales).X
    return rows


Sample: TypeAlias = LabelledSample | AgreedSample
"""People with labels that something can be learned from."""


def read_agreed(
    rows: Path,
    labels: Path,
    settings: ProgramSettings,
    *,
    id_column: str | None = None,
    ids: Path | None = None,
    record: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> AgreedSample:
    """Join the rows of people who agreed with a table of labels on the id.

    Args:
        rows: Rows that a data holder has handed over (`targetdp agree`).
        labels: Table of labels (Parquet or CSV).
        settings: The program, from `targetdp.programs.read_decision_rule`.
        id_column: Where labels have their ids.
        ids: List of ids and pseudonyms, as `targetdp ids` writes it, where rows have pseudonyms.
        record: The record of what they agreed to; beside the rows unless given.
        public_key: The data holder's, to check the signature with.
        progress: Whom to tell how far reading is.

    Returns:
        People with a row and a label, and notes about those who have one of them only.

    Raises:
        ValueError: The record is missing or does not hold for the rows; ids or labels are missing, or ids are
            there twice; no column has numbers; fewer than 30 people are in both.

    Example:
        >>> from targetdp.programs import read_decision_rule
        >>> program = read_decision_rule(Path("aid.toml"))  # doctest: +SKIP
        >>> read_agreed(Path("agreed.parquet"), Path("labels.csv"), program).features  # doctest: +SKIP
        ('calls', 'texts')
    """
    progress = progress or Silent()
    agreement = agreed_rows(rows, record, public_key)
    table = open_source(rows, csv=agreement.record.output.dialect)
    numbers = {column.name for column in profile_table(table).columns if column.is_number}
    features = tuple(name for name in agreement.columns if name in numbers)
    if not features:
        raise ValueError(f"rows {rows} have no column of numbers: there is nothing to learn from")
    gaps = dict.fromkeys(features, np.nan)
    people = read_people("rows", table, agreement.id, features, progress=progress, gaps=gaps)
    sample = NamedSample(rows, agreement.id, agreement.pseudonyms, people)
    joined = join_labels(sample, labels, settings, id_column=id_column, ids=ids, progress=progress)
    others = [name for name in agreement.columns if name not in numbers]
    note = (f"columns without numbers were not looked at: {', '.join(others)}",) if others else ()
    return AgreedSample(
        agreement, features, joined.rows, joined.program, (*joined.notes, *note), joined.ids,
        joined.unlabelled,
    )  # fmt: skip
