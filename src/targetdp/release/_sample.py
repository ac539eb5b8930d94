"""The sample that weights were learned from: held against its certificate, and people who are not in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import __version__
from targetdp.mechanisms import law_of
from targetdp.normalization import ColumnScales
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._charge import Charge, SampleRelease
from targetdp.release._certificate._contents import Check
from targetdp.release._certificate._verify import read_certificate, verify_release
from targetdp.release._engine._inspection import Batches
from targetdp.release._keys import pseudonym_key, pseudonyms
from targetdp.release._settings import Settings
from targetdp.release._staging import certificate_path
from targetdp.table import Tally, ids_of, open_source

_WORDED = {"page", "conditions"}
"""Checks of wording, which only the version that wrote it can make."""

MANY = 0.05
"""Share of a sample from which on missing people look like ids that are written in another way."""


class ManyMissingError(ValueError):
    """Many people of a sample are said to have left, and the data holder has not seen how many."""


@dataclass(frozen=True)
class PrivateSample:
    """A release of the data holder's own that weights were learned from, and who is in it.

    ``key`` is that of its pseudonyms, if it has any: ``ids`` are then hashes.
    """

    path: Path
    certificate: Certificate
    ids: pa.StringArray
    key: bytes | None

    @property
    def first(self) -> SampleRelease:
        """What its certificate states."""
        c = self.certificate
        if c.guarantee is None or c.mechanism.law is None:
            raise ValueError(f"sample {self.path} has no guarantee: nothing could be stated for its people")
        values = c.scales.values
        return SampleRelease(
            release=c.release, sha256=c.output.sha256, rows=c.rows, guarantee=c.guarantee.value(),
            charge=Charge(
                law=law_of(c.mechanism.law),
                scales=None if c.scales.spent is None else c.scales.spent.value(),
            ),
            scales=None if values is None else {name: (v.center, v.scale) for name, v in values.items()},
            source=c.scales.source, estimated_there=c.scales.estimated_here,
        )  # fmt: skip

    def scales(self, features: tuple[str, ...]) -> ColumnScales:
        """Its own scales: public to whoever is outside, and paid for already by whoever is inside.

        Private scales are refused where its certificate does not say that it estimated them itself: they may
        be those of other people, too.
        """
        own = self.certificate.scales
        if own.values is None:
            raise ValueError(
                f"sample {self.path} has scales that were not paid for ({own.source}), and so not published: "
                "scales = 'sample' cannot take them over"
            )
        if own.source == "private" and not own.estimated_here:
            raise ValueError(
                f"sample {self.path} has private scales that it was given, or an older version made it: they "
                "may tell of people outside it, who have not paid for them; give other scales than 'sample'"
            )
        if set(own.values) != set(features):
            raise ValueError(
                f"sample {self.path} has scales for {', '.join(own.values)}: scales = 'sample' needs these "
                "same features"
            )
        return ColumnScales(
            np.array([own.values[name].center for name in features]),
            np.array([own.values[name].scale for name in features]),
            "sample" if own.source == "private" else "sample-declared",
        )


def open_sample(settings: Settings, public_key: str) -> PrivateSample:
    """The sample of the settings, if it is a release that its certificate and the holder's key vouch for."""
    path = settings.sample
    if path is None:
        raise ValueError("sample must be given: the private release that the weights were learned from")
    place = certificate_path(path)
    if not place.exists():
        raise ValueError(f"sample {path} has no certificate beside it ({place.name}): bring both together")
    proof = read_certificate(place)
    wrong = [f"{c.what}: {c.detail}" for c in sample_checks(path, proof, public_key) if c.holds is False]
    if wrong:
        raise ValueError(
            f"sample {path} is not what its certificate says, or not signed with your key "
            f"({'; '.join(wrong)}): run targetdp verify; --key names another key of yours"
        )
    if proof.scores is not None:
        raise ValueError(
            f"sample {path} holds scores, and weights are learned from features: give the release of features"
        )
    learned_from = None if settings.asked is None else settings.asked.release
    if learned_from not in {None, proof.release}:
        raise ValueError(
            f"the weights file says that it was learned from release {learned_from!r}, and sample {path} is "
            f"release {proof.release!r}: give the one that it was learned from"
        )
    sample = PrivateSample(path, proof, _ids(path, proof), _key(path, proof, settings))
    _ = sample.first  # a sample without a guarantee is refused now
    return sample


def sample_checks(path: Path, proof: Certificate, public_key: str | None) -> list[Check]:
    """Whether a sample is the release that its certificate says; an older version's words are not judged."""
    return [
        Check(c.what, None, c.detail) if c.what in _WORDED and proof.library != __version__ else c
        for c in verify_release(path, proof, public_key).checks
    ]


class WithoutSample:
    """A table without the people of a sample: nothing of their rows is looked at.

    Ids are compared as text, as everywhere in a release.
    """

    def __init__(self, table: Batches, id_column: str, sample: PrivateSample) -> None:
        self._table, self._id, self._sample = table, id_column, sample
        self._found = np.zeros(len(sample.ids), dtype=np.bool_)

    @property
    def found(self) -> int:
        """How many people of the sample the table has, as far as it was read."""
        return int(self._found.sum())

    def count(self) -> None:
        """Only reading tells how many are left."""
        return

    def batches(
        self, columns: list[str], types: dict[str, pa.DataType], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """See `Batches`; the id must be among the columns."""
        for batch in self._table.batches(columns, types, rows):
            ids = ids_of(batch.column(self._id), self._id, Tally(), 0)
            if self._sample.key is not None:
                ids = pseudonyms(ids, self._sample.key)
            places = pc.index_in(ids, value_set=self._sample.ids)
            if places.null_count == len(places):
                yield batch
                continue
            self._found[places.drop_null().to_numpy()] = True
            yield batch.filter(pc.is_null(places))


def must_all_be_there(found: int, sample: PrivateSample, settings: Settings) -> tuple[str, ...]:
    """Whoever is not found might be there under another spelling, and would be scored after all.

    What is left of that, where people are said to have left, is a warning.
    """
    missing = len(sample.ids) - found
    if found == 0:
        raise ValueError(
            f"nobody of sample {sample.path} is in the table: ids must be written the same way in both; if "
            "the table holds other people only, leave out the sample and say so (no_sample)"
        )
    if not missing:
        return ()
    who = f"{missing:,} of the {len(sample.ids):,} people of sample {sample.path}"
    if not settings.some_have_left:
        raise ValueError(
            f"{who} are not in the table: ids must be written the same way in both, or these people would "
            "be scored; if they have left, say so (some_have_left)"
        )
    if missing > MANY * len(sample.ids) and not settings.accept_missing:
        raise ManyMissingError(
            f"{who} are not in the table: so many look like ids that are written in another way, and these "
            "people would be scored; if they have all left, say so (--yes, or accept_missing)"
        )
    return (
        f"{who} were not found, and count as having left; whoever is in the table under another id is "
        "scored, and spends both releases",
    )


def _ids(path: Path, proof: Certificate) -> pa.StringArray:
    tally = Tally()
    batches = open_source(path).batches([proof.id], {}, 1 << 20)
    return pa.concat_arrays([ids_of(batch.column(proof.id), proof.id, tally, 0) for batch in batches])


def _key(path: Path, proof: Certificate, settings: Settings) -> bytes | None:
    if not proof.pseudonyms or not settings.leaves_sample_out:
        return None
    if settings.pseudonymize is None or not settings.pseudonymize.exists():
        raise ValueError(
            f"sample {path} has pseudonyms, so that only their key tells who is in it: give that key "
            "(pseudonymize)"
        )
    if settings.engine == "spark":
        raise ValueError(f"sample {path} has pseudonyms, which Spark cannot look up: use the local engine")
    return pseudonym_key(settings.pseudonymize)
