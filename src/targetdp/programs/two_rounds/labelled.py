"""A private sample and its labels, joined by whoever has the labels: what weights are learned from."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp.attacks.noise_shape import covariance_of
from targetdp.mechanisms.law import NoiseLaw
from targetdp.mechanisms.laws import law_of
from targetdp.programs.aid import Aid
from targetdp.programs.file import AidSettings, AnySettings
from targetdp.programs.lending import Lending
from targetdp.programs.opening import aid_program, lending_program, read_columns
from targetdp.programs.two_rounds.learning import FEWEST, Weights, learn_weights
from targetdp.programs.two_rounds.parts import part_of
from targetdp.programs.two_rounds.released import ReleasedRows, certified, read_released
from targetdp.progress import Progress, Silent
from targetdp.release.certificate import Certificate
from targetdp.typing import Floats

OF_EACH = 1_000.0
"""People whom counts and money are told of, where a program file names no population."""


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """People of a private sample whose label is known: row i of ``rows`` is the i-th person of ``program``.

    ``notes`` say who was left out of the join; ``unlabelled`` are people of the sample without a label.
    """

    certificate: Certificate = field(repr=False)
    law: NoiseLaw
    rows: Floats = field(repr=False)
    program: Aid | Lending
    notes: tuple[str, ...]
    ids: pa.StringArray = field(repr=False)
    unlabelled: ReleasedRows = field(repr=False)

    def learn(self, score_variance: float) -> Weights:
        """Weights for scores that get noise of this variance."""
        program = self.program
        return learn_weights(
            self.rows,
            program.outcomes,
            covariance_of(self.law, self.rows.shape[1]),
            score_variance,
            kind="aid" if isinstance(program, Aid) else "lending",
            weights=program.people.weights if program.people.weighted else None,
        )


def read_labelled(
    sample: Path,
    labels: Path,
    settings: AnySettings,
    *,
    id_column: str | None = None,
    certificate: Path | None = None,
    public_key: str | None = None,
    progress: Progress | None = None,
) -> LabelledSample:
    """Join a private sample with a table of labels on the id.

    Columns, their order and the noise are the certificate's, which must hold for the file. Of the program's
    settings only kind, target, quota, weights, loans and population count; labels' ids are in ``id_column``,
    or where the program, or the certificate, says.
    Refuses, with the reason: no certificate; k-anonymity, scores, or a release made for another tool; ids
    that are missing, or twice; labels that are missing; fewer than 30 people in both.
    """
    watch = progress or Silent()
    proof = certified("sample", sample, certificate, public_key)
    law = _noise(sample, proof)
    released = read_released("sample", sample, proof, watch)
    ids, rows = released.ids, released.rows
    given = settings.model_copy(
        update={
            "table": labels, "id": id_column or settings.id or proof.id, "features": (), "groups": (),
            "population": settings.population or OF_EACH,
        }
    )  # fmt: skip
    found = read_columns(given, watch)
    try:
        program = (
            aid_program(given, found, {})
            if isinstance(given, AidSettings)
            else lending_program(given, found, {})
        )
    except ValueError as error:
        raise ValueError(f"labels {labels}: {error}") from error
    places = pc.index_in(found.ids, value_set=ids)
    known = np.asarray(places.is_valid().to_numpy(zero_copy_only=False))
    both = int(known.sum())
    if both < FEWEST:
        hashed = " The release has pseudonyms: labels need the same ones." if proof.pseudonyms else ""
        raise ValueError(
            f"labels {labels} and sample {sample} have {both:,} people in common, by {given.id!r} and "
            f"{proof.id!r}: at least {FEWEST} are needed, with ids written the same way.{hashed}"
        )
    here = np.asarray(places.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    others = np.setdiff1d(np.arange(len(rows)), here)
    return LabelledSample(
        proof, law, np.ascontiguousarray(rows[here]), part_of(program, known, whole=True),
        _left_out(len(rows) - both, len(known) - both), ids.take(here),
        ReleasedRows(proof, ids.take(others), np.ascontiguousarray(rows[others])),
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
    reason = None
    if proof.mechanism.law is None or proof.guarantee is None:
        reason = f"was made by {proof.mechanism.name}, which has no noise of a known law"
    elif proof.scores is not None:
        reason = f"holds scores ({', '.join(proof.scores)}), not features"
    elif proof.made_for is not None:
        reason = f"was made for {proof.made_for}, which standardizes values after the noise"
    if reason is not None or proof.mechanism.law is None:
        raise ValueError(
            f"sample {sample} {reason}: learn from a release of the features with noise (targetdp privatize)"
        )
    return law_of(proof.mechanism.law)
