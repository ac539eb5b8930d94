"""The data holder's side of every job: keys, scales, the ledger, and the signature under a release."""

import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from targetdp.plan import DROWNED
from targetdp.release.certificate import Certificate, LedgerMark, Output, make_certificate, noise_length
from targetdp.release.inspection import Inspection
from targetdp.release.keys import SigningKey, default_key_path, new_pseudonym_key, pseudonym_key
from targetdp.release.ledger import Ledger, check_first
from targetdp.release.scales_file import read_bounds, read_scales
from targetdp.release.settings import Settings
from targetdp.release.terms import Terms
from targetdp.scales import ColumnScales, private_scales_of, scales_of
from targetdp.version import __version__

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


class Holder:
    """The data holder's side of a job: keys, scales, ledger."""

    def __init__(self, settings: Settings, scales: ColumnScales | None = None) -> None:
        if scales is not None and len(scales.center) != len(settings.features):
            raise ValueError(
                f"scales are for {len(scales.center)} columns, features names {len(settings.features)}: give "
                "one each"
            )
        self.settings = settings
        self.bounds = None if settings.bounds is None else read_bounds(settings.bounds, settings.features)
        self._given = (
            scales if scales is not None or settings.scales in {"private", "data"}
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
        self.warnings: tuple[str, ...] = ()
        self._override = settings.override

    def scales(self, inspection: Inspection) -> ColumnScales:
        """The scales that the settings ask for; private ones are drawn here, once."""
        settings = self.settings
        if self._given is not None:
            return self._given
        if settings.scales == "data" and inspection.moments is not None:
            return scales_of(inspection.moments, "data")
        if inspection.sums is None or self.bounds is None or settings.scales_epsilon is None:
            raise RuntimeError("the table was inspected for other scales than are asked for")
        return private_scales_of(inspection.sums, inspection.rows, self.bounds, settings.scales_epsilon)

    def check(self, terms: Terms, scales: ColumnScales) -> None:
        """Refuse early what the ledger would refuse later, and collect what the data holder should know."""
        s = self.settings
        if s.population is not None:
            if self.ledger is not None:
                spending = self.ledger.check(s.population, terms.charge, part=s.part, override=s.override)
            else:
                spending = check_first(s.population, terms.charge, part=s.part, override=s.override)
            self._override = None if spending.fits else s.override
        self.warnings = self._warnings(terms, scales)

    def certify(
        self, terms: Terms, scales: ColumnScales, rows: int, output: Output, publisher: Publisher
    ) -> Certificate:
        """Charge the ledger, sign the certificate, make the release visible, settle; in this order."""
        release = uuid.uuid4().hex
        self._keep_pseudonym_key()
        if self.settings.ledger is not None:
            self.ledger = Ledger(self.settings.ledger, self.key)
        mark = self._reserve(release, terms, rows, publisher.place)
        try:
            certificate = make_certificate(
                release, self.settings, terms, scales, rows, output, mark, __version__
            ).signed(self.key)
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

    def _warnings(self, terms: Terms, scales: ColumnScales) -> tuple[str, ...]:
        """What the data holder should know, beyond the certificate."""
        s = self.settings
        found = []
        if s.keep:
            found.append(f"passed on as they are, NOT protected: {', '.join(s.keep)}")
        if terms.guarantee is None or not scales.may_be_published:
            found.append(
                f"{'no' if terms.guarantee is None else 'conditional'} guarantee: {terms.conditions[0]}"
            )
        if s.keep_order:
            found.append("rows are in the order of the input, which may publish ranks")
        if terms.law is not None:
            length = noise_length(terms.law.deviation_per_column, terms.law.dimensions)
            if length > DROWNED:
                found.append(
                    f"the noise on a row has length {length:.2g}, and rows at most 1: it drowns any one "
                    "person's signal; release fewer columns, or learn on a private sample first (two rounds)"
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

    def _reserve(self, release: str, terms: Terms, rows: int, place: str) -> LedgerMark | None:
        s = self.settings
        if self.ledger is None or s.population is None:
            return None
        title = {
            "guarantee": None if terms.guarantee is None else asdict(terms.guarantee),
            "mechanism": terms.name, "rows": rows, "columns": len(s.features), "not_protected": list(s.keep),
            "conditions": list(terms.conditions), "output": place,
        }  # fmt: skip
        head = self.ledger.reserve(
            s.population, release, terms.charge, part=s.part, override=self._override, title=title
        )
        return LedgerMark(
            population=s.population, part=s.part, ledger_id=head.ledger_id, number=head.number,
            hash=head.hash, override=self._override,
        )  # fmt: skip
