"""The data holder's side of every job: keys, scales, the ledger, and the signature under a release."""

import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from targetdp._core import __version__
from targetdp.mechanisms import DROWNED
from targetdp.normalization import ColumnScales, private_scales_of, read_bounds, read_scales, scales_of
from targetdp.release._certificate._certificate import (
    Certificate,
    LedgerMark,
    Output,
    make_certificate,
    noise_length,
)
from targetdp.release._engine._inspection import Batches, Inspection
from targetdp.release._keys import SigningKey, default_key_path, new_pseudonym_key, pseudonym_key
from targetdp.release._ledger._book import Ledger, check_first
from targetdp.release._ledger._populations import (
    check_parts,
    must_count,
    must_have_it_as_it_is,
    must_say_who_is_in_it,
)
from targetdp.release._ledger._spending import ReleaseRow
from targetdp.release._sample import PrivateSample, WithoutSample, must_all_be_there, open_sample
from targetdp.release._settings import SCALES_WORDS, Settings
from targetdp.release._terms import ReleaseTerms, make_terms

LARGE_DELTA = 0.01


class PublishedButUnsettledError(RuntimeError):
    """The release can be read, but its ledger was not told: it must not be taken for unpublished."""

    def __init__(self, place: str, cause: BaseException) -> None:
        super().__init__(
            f"the release IS published ({place}), but the run could not finish "
            f"({type(cause).__name__}: {cause}). Do not void it. Run the same command again, without "
            "--force: it will finish what is left, tell the ledger, and then say that the output exists"
        )


class Publisher(Protocol):
    """Who makes a certified release visible."""

    settled: bool
    """Whether the ledger knows of whatever could be read."""

    @property
    def place(self) -> str:
        """Where it will be."""

    @property
    def published(self) -> bool:
        """Whether it can be read, whole."""

    @property
    def visible(self) -> bool:
        """Whether anything of it can be read."""

    def publish(self, certificate: Certificate, journal: dict[str, Any]) -> None:
        """Make it visible, whole. The journal is for a run that must finish what this one began."""


@dataclass(frozen=True)
class Prepared:
    """Everything that is settled before noise is drawn."""

    inspection: Inspection
    scales: ColumnScales
    terms: ReleaseTerms


class Holder:
    """The data holder's side of a job: keys, scales, ledger."""

    def __init__(self, settings: Settings, scales: ColumnScales | None = None) -> None:
        if scales is not None and len(scales.center) != len(settings.features):
            raise ValueError(
                f"scales are for {len(scales.center)} columns, features names {len(settings.features)}: give "
                "one each"
            )
        self.settings = settings
        must_say_who_is_in_it(settings)
        settings.must_mean_weights()
        self.bounds = None if settings.bounds is None else read_bounds(settings.bounds, settings.features)
        self._given = (
            scales if scales is not None or settings.scales in SCALES_WORDS
            else read_scales(Path(settings.scales), settings.features)
        )  # fmt: skip
        self.key = SigningKey.open(settings.key or default_key_path())
        self.pseudonym_key: bytes | None = None
        if settings.pseudonymize is not None:
            known = settings.pseudonymize.exists()
            self.pseudonym_key = pseudonym_key(settings.pseudonymize) if known else new_pseudonym_key()
        # A ledger that is not there yet is made with the first charge: a run that fails leaves nothing.
        self.ledger: Ledger | None = None
        if settings.ledger is not None and settings.ledger.exists():
            self.ledger = Ledger.existing(settings.ledger, self.key)
        self.sample: PrivateSample | None = None
        if settings.sample is not None:
            self.sample = open_sample(settings, self.key.public)
            if settings.scales == "sample":
                self._given = self.sample.scales(settings.features)
            if self.ledger is not None:
                must_have_it_as_it_is(self.ledger, self.sample.certificate)
        self._others: WithoutSample | None = None
        self._on_parts: tuple[str, ...] = ()
        self._look([] if self.ledger is None else self.ledger.releases())
        self._who_left: tuple[str, ...] = ()
        self._others_to_know: tuple[str, ...] = ()
        self._override = settings.override

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the data holder should know, beyond the certificate."""
        return (*self._others_to_know, *self._who_left, *self._on_parts)

    def people(self, table: Batches) -> Batches:
        """The table, without those whom the settings leave out."""
        if self.sample is None or not self.settings.leaves_sample_out:
            return table
        self._others = WithoutSample(table, self.settings.id, self.sample)
        return self._others

    def prepare(self, inspection: Inspection) -> Prepared:
        """Settle scales and terms, and refuse what the ledger would refuse later."""
        scales = self._scales(inspection)
        terms = self.terms(scales, inspection.rows)
        self._check(terms)
        self._others_to_know = self._warnings(terms, scales)
        return Prepared(inspection, scales, terms)

    def _scales(self, inspection: Inspection) -> ColumnScales:
        """The scales that the settings ask for; private ones are drawn here, once."""
        settings = self.settings
        if self._given is not None:
            return self._given
        if settings.scales == "data" and inspection.moments is not None:
            return scales_of(inspection.moments, "data", settings.features)
        if inspection.sums is None or self.bounds is None or settings.scales_epsilon is None:
            raise RuntimeError("the table was inspected for other scales than are asked for")
        return private_scales_of(inspection.sums, inspection.rows, self.bounds, settings.scales_epsilon)

    def terms(self, scales: ColumnScales, rows: int) -> ReleaseTerms:
        """What will be done and what may be said of it, for so many rows."""
        return make_terms(self.settings, scales, rows, None if self.sample is None else self.sample.first)

    def _check(self, terms: ReleaseTerms) -> None:
        """Refuse early what the ledger would refuse later."""
        s = self.settings
        if self._others is not None:
            self.found(self._others.found)
        if s.population is not None:
            if self.ledger is not None:
                spending = self.ledger.check(s.population, terms.charge, part=s.part, override=s.override)
            else:
                spending = check_first(s.population, terms.charge, part=s.part, override=s.override)
            self._override = None if spending.fits else s.override

    def found(self, people: int) -> None:
        """So many people of the sample are in the table: refuse where too many are missing."""
        if self.sample is not None:
            self._who_left = must_all_be_there(people, self.sample, self.settings)

    def certify(self, prepared: Prepared, rows: int, output: Output, publisher: Publisher) -> Certificate:
        """Charge the ledger, sign the certificate, make the release visible, settle; in this order."""
        release = uuid.uuid4().hex
        self._keep_pseudonym_key()
        if self.settings.ledger is not None:
            self.ledger = Ledger(self.settings.ledger, self.key)
            if self.sample is not None:
                must_count(self.ledger, self.sample.certificate)
        mark = self._reserve(release, prepared.terms, rows, publisher.place)
        try:
            certificate = make_certificate(
                release, self.settings, prepared.terms, prepared.scales, rows, output, mark, __version__,
                estimated_here=self._given is None,
            ).signed(self.key)  # fmt: skip
            journal = {
                "release": release, "sha256": output.sha256,
                "ledger": None if self.settings.ledger is None else str(self.settings.ledger.absolute()),
            }  # fmt: skip
            self._must_still_be_reserved(release)
            publisher.publish(certificate, journal)
        except BaseException as error:
            if publisher.published:
                raise PublishedButUnsettledError(publisher.place, error) from error
            self._give_back(release, output, publisher, type(error).__name__)
            raise
        try:
            if self.ledger is not None:
                self.ledger.settle(release, output.sha256)
        except BaseException as error:
            raise PublishedButUnsettledError(publisher.place, error) from error
        return certificate

    def _look(self, releases: list[ReleaseRow]) -> None:
        """Hold the parts against what the ledger has."""
        sample = None if self.sample is None else self.sample.certificate
        self._on_parts = check_parts(self.settings, sample, releases)

    def _must_still_be_reserved(self, release: str) -> None:
        if self.ledger is not None and self.ledger.release(release).state != "reserved":
            raise RuntimeError(f"release {release} was voided while it was made: it will not be published")

    def _give_back(self, release: str, output: Output, publisher: Publisher, kind: str) -> None:
        """A run failed: what could not be read by anyone is void, what could be counts.

        Of the error only its kind goes on record: its text may hold an id or a value.
        """
        if self.ledger is None:
            publisher.settled = True
        elif publisher.visible:  # the certificate tells something by itself: private scales
            self.ledger.settle(release, output.sha256)
            publisher.settled = True
        elif self.ledger.release(release).state == "reserved":
            self.ledger.void(release, f"the run failed before anything was published: {kind}")

    def _keep_pseudonym_key(self) -> None:
        """A new key goes to its file before anything that was made with it can be read."""
        path = self.settings.pseudonymize
        if path is not None and pseudonym_key(path, self.pseudonym_key) != self.pseudonym_key:
            raise ValueError(f"key file {path} was made by another run meanwhile: try again, with that key")

    def settle_earlier(self, journal: dict[str, Any]) -> None:
        """An earlier run published and died before it could tell the ledger: tell it now."""
        path = journal.get("ledger")
        if path is None:
            return
        try:
            Ledger.existing(path, self.key).settle(journal["release"], journal["sha256"])
        except (ValueError, OSError) as error:
            raise ValueError(
                f"an earlier run published release {journal.get('release')} and could not tell the ledger "
                f"{path}, and neither can this one ({error}): bring that ledger and its key back first"
            ) from error

    def _warnings(self, terms: ReleaseTerms, scales: ColumnScales) -> tuple[str, ...]:
        s = self.settings
        found = []
        if s.keep:
            found.append(f"passed on as they are, NOT protected: {', '.join(s.keep)}")
        if terms.guarantee is None or not scales.may_be_published:
            found.append(
                f"{'no' if terms.guarantee is None else 'conditional'} guarantee: {terms.conditions[0]}"
            )
        if scales.source == "sample-declared":
            found.append(
                "the scales were declared public for the sample: to take them over declares that they were "
                "not learned from the people who are scored now, either"
            )
        if s.keep_order:
            found.append("rows are in the order of the input, which may publish ranks")
        if terms.law is not None:
            length = noise_length(terms.law)
            if length > DROWNED:
                fewer = (
                    "release fewer columns, or learn on a private sample first and release a score"
                    if s.asked is None else "give fewer scores, or a larger ε"
                )  # fmt: skip
                found.append(
                    f"the noise on a row has length {length:.2g}, and rows at most 1: it drowns any one "
                    f"person's signal; {fewer}"
                )
        if terms.sample_spending is not None and not terms.sample_spending.same_scales:
            found.append(
                "columns and scales are not known to be those of the sample, for which the weights were "
                "learned: use the same for sample and scores (scales = 'sample' takes them over)"
            )
        if terms.guarantee is not None and terms.guarantee.delta > LARGE_DELTA:
            found.append(
                f"δ = {terms.guarantee.delta:.2g} is large: in that share of cases the promise may fail for "
                "a person altogether; 1/(rows + 1) or less is usual"
            )
        if self._override is not None:
            found.append(f"this release breaks the limit of its population; on record: {self._override}")
        elif s.override is not None:
            found.append("the override was not needed and is not on record: the release is within the limit")
        if s.ledger is None:
            found.append("no ledger: nobody adds up what is released about these people")
        elif s.population is not None and (self.ledger is None or self.ledger.limit(s.population) is None):
            found.append(f"population {s.population!r} has no limit: set one with targetdp ledger limit")
        return tuple(found)

    def _reserve(self, release: str, terms: ReleaseTerms, rows: int, place: str) -> LedgerMark | None:
        s = self.settings
        if self.ledger is None or s.population is None:
            return None
        title = {
            "guarantee": None if terms.guarantee is None else asdict(terms.guarantee),
            "mechanism": terms.name, "rows": rows, "columns": len(s.released), "not_protected": list(s.keep),
            "conditions": list(terms.conditions), "output": place,
        }  # fmt: skip
        if s.asked is not None:
            title["scores"] = list(s.asked.scores)
        if terms.sample_spending is not None:
            spending = terms.sample_spending
            title["sample"] = {"release": spending.first.release, "scored": spending.scored}
        head = self.ledger.reserve(
            s.population, release, terms.charge, part=s.part, override=self._override, title=title,
            look=self._look,
        )  # fmt: skip
        return LedgerMark(
            population=s.population, part=s.part, ledger_id=head.ledger_id, number=head.number,
            hash=head.hash, override=self._override,
        )  # fmt: skip
