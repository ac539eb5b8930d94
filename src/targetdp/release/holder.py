"""The data holder's side of every job: keys, scales, the ledger, and the signature under a release."""

import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from targetdp.plan import DROWNED
from targetdp.release.certificate import Certificate, LedgerMark, Output, make_certificate, noise_length
from targetdp.release.inspection import Inspection
from targetdp.release.keys import SigningKey, default_key_path, pseudonym_key
from targetdp.release.ledger import Ledger
from targetdp.release.scales_file import read_bounds, read_scales
from targetdp.release.settings import Settings
from targetdp.release.terms import Terms
from targetdp.scales import ColumnScales, private_scales_of, scales_of
from targetdp.version import __version__


class Publisher(Protocol):
    """Who makes a certified release visible."""

    @property
    def published(self) -> bool:
        """Whether it is visible."""

    def publish(self, certificate: Certificate, journal: dict[str, Any]) -> None:
        """Make it visible, whole. The journal is for a run that must finish what this one began."""


class Holder:
    """The data holder's side of a job: keys, scales, ledger."""

    def __init__(self, settings: Settings, scales: ColumnScales | None = None) -> None:
        self.settings = settings
        self.bounds = None if settings.bounds is None else read_bounds(settings.bounds, settings.features)
        self._given = (
            scales if scales is not None or settings.scales in {"private", "data"}
            else read_scales(Path(settings.scales), settings.features)
        )  # fmt: skip
        self.key = SigningKey.open(settings.key or default_key_path())
        self.pseudonym_key = None if settings.pseudonymize is None else pseudonym_key(settings.pseudonymize)
        self.ledger = None if settings.ledger is None else Ledger(settings.ledger, self.key)

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

    def check(self, terms: Terms) -> None:
        """Refuse early what the ledger would refuse later."""
        s = self.settings
        if self.ledger is not None and s.population is not None:
            self.ledger.check(s.population, terms.charge, part=s.part, override=s.override)

    def certify(
        self, terms: Terms, scales: ColumnScales, rows: int, output: Output, publisher: Publisher
    ) -> Certificate:
        """Charge the ledger, sign the certificate, make the release visible, settle; in this order."""
        release = uuid.uuid4().hex
        mark = self._reserve(release, terms, rows)
        try:
            certificate = make_certificate(
                release, self.settings, terms, scales, rows, output, mark, __version__
            ).signed(self.key)
            journal = {
                "release": release, "sha256": output.sha256,
                "ledger": None if self.settings.ledger is None else str(self.settings.ledger.absolute()),
            }  # fmt: skip
            publisher.publish(certificate, journal)
        except BaseException as error:
            if self.ledger is not None and not publisher.published:
                # The kind of error only: its text may hold an id or a value.
                kind = type(error).__name__
                self.ledger.void(release, f"the run failed before anything was published: {kind}")
            raise
        if self.ledger is not None:
            self.ledger.settle(release, output.sha256)
        return certificate

    def settle_earlier(self, journal: dict[str, Any]) -> None:
        """An earlier run published and died before it could tell the ledger: tell it now."""
        if journal.get("ledger") is not None:
            Ledger.existing(journal["ledger"], self.key).settle(journal["release"], journal["sha256"])

    def warnings(self, terms: Terms, scales: ColumnScales) -> tuple[str, ...]:
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
        if self.ledger is None:
            found.append("no ledger: nobody adds up what is released about these people")
        elif s.population is not None and self.ledger.limit(s.population) is None:
            found.append(f"population {s.population!r} has no limit: set one with targetdp ledger limit")
        return tuple(found)

    def _reserve(self, release: str, terms: Terms, rows: int) -> LedgerMark | None:
        s = self.settings
        if self.ledger is None or s.population is None:
            return None
        title = {
            "guarantee": None if terms.guarantee is None else asdict(terms.guarantee),
            "mechanism": terms.name, "rows": rows, "columns": len(s.features), "not_protected": list(s.keep),
            "conditions": list(terms.conditions),
        }  # fmt: skip
        head = self.ledger.reserve(
            s.population, release, terms.charge, part=s.part, override=s.override, title=title
        )
        return LedgerMark(
            population=s.population, part=s.part, ledger_id=head.ledger_id, number=head.number,
            hash=head.hash, override=s.override,
        )  # fmt: skip
