"""Checking a release: who signed it, its files, its numbers, its values, and what was asked for."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from targetdp._core import __version__
from targetdp._files import explain
from targetdp.release._certificate._asked import request_checks
from targetdp.release._certificate._certificate import Certificate
from targetdp.release._certificate._contents import Check, file_checks
from targetdp.release._certificate._numbers import verify_guarantee
from targetdp.release._certificate._page import page
from targetdp.release._certificate._signed import SIGNER, SignedBy, by_a_stranger, signature_checks
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Witness
from targetdp.release._request import Request
from targetdp.release._staging import certificate_path, page_path
from targetdp.release._trust._keys import fingerprint_of

_FORMAT = re.compile("targetdp certificate [0-9]{1,4}")


@dataclass(frozen=True)
class Verification:
    """All checks of a release.

    Args:
        checks: What was checked, and what was found.
        by_a_stranger: Whether nobody whom the user has named signed it.
    """

    checks: tuple[Check, ...]
    by_a_stranger: bool = False

    def also(self, more: Iterable[Check]) -> "Verification":
        """With more checks."""
        return replace(self, checks=(*self.checks, *more))

    @property
    def holds(self) -> bool:
        """Whether no check failed, and somebody signed it whom the user has named."""
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def only_the_signer_is_unknown(self) -> bool:
        """Whether nothing else speaks against it than that nobody has named its signer."""
        return self.by_a_stranger and all(check.what == SIGNER for check in self.failed)

    @property
    def verdict(self) -> str:
        """All of it in one sentence."""
        if self.holds:
            return "the release holds"
        if self.only_the_signer_is_unknown:
            return "it is signed by nobody you have named: do not use it before you know whose key it is"
        return "the release does NOT hold: do not use it"

    def _repr_html_(self) -> str:
        words = {True: "yes", False: "<b>NO</b>", None: "–"}
        rows = "".join(
            f"<tr><td>{escape(c.what)}</td><td>{words[c.holds]}</td><td>{escape(c.detail)}</td></tr>"
            for c in self.checks
        )
        return f"<p>{escape(self.verdict)}</p><table>{rows}</table>"


def read_certificate(path: str | Path) -> Certificate:
    """A certificate from its file, or a ValueError that says what is wrong with it.

    The file must be, byte for byte, what its content is written as: whoever reads it with other eyes (a
    person, a reader that takes the first of two equal keys) must see what was signed.
    """
    path = _path("certificate", path)
    try:
        data = path.read_bytes()
        found = Certificate.model_validate_json(data)
    except OSError as error:
        raise ValueError(f"certificate {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        if other := _other_format(data):
            raise ValueError(
                f"certificate {path} was made by another version of targetdp ({other}): verify it with that"
            ) from error
        raise ValueError(f"certificate {path} is not one: {explain(error)}") from error
    if found.text().encode() != data:
        raise ValueError(f"certificate {path} was edited: it is not in the form that targetdp writes")
    return found


def _path(name: str, given: Any) -> Path:
    if not isinstance(given, str | Path) or not Path(given).name:
        raise TypeError(f"{name} = {given!r} is no path: name a file or a folder")
    return Path(given)


def _other_format(data: bytes) -> str | None:
    """The format of a certificate that another version made."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        found = str(json.loads(data)["format"])
        if _FORMAT.fullmatch(found) and found != Certificate.model_fields["format"].default:
            return found
    return None


def verify_release(
    output: Path, certificate: Certificate, public_key: str | None = None, request: Request | None = None
) -> Verification:
    """Check signer, page, files, values and request, and derive every stated number again from the noise.

    Does not guarantee: that noise was drawn as it should have been; only the data holder can know. Values
    without any noise are found where noise outweighs rows.
    """
    if public_key is not None:
        fingerprint_of(public_key, "public_key")  # what is no key is bad input, not a bad release
    c = certificate
    who = SignedBy(c.signature, c.message(), c.desk.id, c.release, c.output.sha256)
    signed = tuple(signature_checks(who, public_key))
    checks = [*signed, *_page(output, certificate), *file_checks(output, certificate)]
    checks += [*verify_guarantee(certificate), *request_checks(certificate, request)]
    return Verification(tuple(checks), by_a_stranger(signed, public_key))


def verify(
    output: str | Path,
    certificate: Certificate | str | Path | None = None,
    public_key: str | None = None,
    request: Request | None = None,
) -> Verification:
    """Check a released file or folder against its certificate, and the certificate against its noise.

    Args:
        output: What was released.
        certificate: Its certificate, or the certificate's file; by default the one beside it.
        public_key: The data holder's public key, as she has told it by another way; by default any key that
            the user has named (``targetdp key trust``), or that is of a desk of the user's own.
        request: What was asked for, if the release is to be held against it.

    Returns:
        All checks; ``holds`` says whether none of them failed.

    Raises:
        ValueError: There is no certificate that can be read, or ``public_key`` is none.
    """
    place = _path("output", output)
    if not isinstance(certificate, Certificate):
        certificate = read_certificate(certificate_path(place) if certificate is None else certificate)
    return verify_release(place, certificate, public_key, request)


def certified(what: str, release: Path, given: Path | None, public_key: str | None) -> Certificate:
    """The certificate of a release, if it holds for the file.

    Args:
        what: What messages call the release: ``"sample"``.
        release: The released file or folder.
        given: The certificate's file; by default the one beside the release.
        public_key: The data holder's public key; by default any that the user has named.

    Raises:
        ValueError: There is none, or it does not hold; the message says what of it.
    """
    place = given or certificate_path(release)
    if not place.exists():
        raise ValueError(
            f"{what} {release} has no certificate ({place}): it tells how the values were drawn, and "
            "without it nothing can be made of them that knows it; ask the data holder for it"
        )
    proof = read_certificate(place)
    found = verify_release(release, proof, public_key)
    if found.only_the_signer_is_unknown:
        raise ValueError(f"{what} {release}: {found.failed[0].detail}")
    if not found.holds:
        wrong = "; ".join(f"{check.what}: {check.detail}" for check in found.failed)
        raise ValueError(
            f"certificate {place} does not hold for {what} {release} ({wrong}): run targetdp verify for all "
            "checks"
        )
    return proof


def verify_in_ledger(c: Certificate, ledger: Ledger) -> Iterator[Check]:
    """Whether a ledger is sound, of the same key or desk, and has this release charged as it is certified."""
    problems = ledger.verify([Witness("the certificate", c.ledger.head())])
    keys = ledger.reading.keys_since(c.ledger.number)
    if c.signature is None or c.signature.key not in keys:
        problems.append("it was not signed with the key of the certificate, then or later")
    yield Check("ledger", not problems, "; ".join(problems) or "sound, and signed by the same key")
    if problems:
        return
    row = ledger.history.releases.get(c.release)
    if row is None:
        yield Check("release in the ledger", False, "this ledger does not know it")
        return
    yield Check(
        "release in the ledger",
        row.entry == c.ledger.number and row.state != "voided",
        f"entry {row.entry}, {row.state}",
    )
    if row.state == "published":
        yield Check("published file", row.sha256 == c.output.sha256, "the one on record")
    spent = None if c.scales.spent is None else c.scales.spent.value()
    same = (row.charge.law.record(), row.charge.scales) == (c.mechanism.law, spent)
    yield Check("charge", same, "for what is certified" if same else "is not for what is certified")
    if ledger.history.agreements:
        good = _has_all_who_agreed(c, ledger)
        yield Check("people who agreed, in the ledger", good, "those who are told" if good else "are others")


def _has_all_who_agreed(c: Certificate, ledger: Ledger) -> bool:
    """Whether a certificate tells of the people without a promise whom the ledger knows, and of no others."""
    history, told = ledger.history, {one.agreement: one for one in c.agreed}
    known, row = history.agreements, history.releases[c.release]
    if any(name not in known or known[name].to != one.to for name, one in told.items()):
        return False
    # What was finished by a later run may tell of an agreement that came between.
    before = {name for name, one in known.items() if one.entry < row.entry}
    if any(known[name].in_all > c.together.agreed for name in before):
        return False
    counts = ledger.agreed.counts(ledger.people_of(row), c.features)
    if row.list_changed or any(one.list_changed for one in known.values()):
        # Who was erased is on no list now: there were at least as many as are left, and no more than agreed.
        fewest = {name: one if name in before else 0 for name, one in counts.items()}
        enough = all(one <= (told[name].people if name in told else 0) for name, one in fewest.items())
        return enough and all(one.people <= known[name].rows for name, one in told.items())
    return all(
        one == (told[name].people if name in told else 0)
        for name, one in counts.items()
        if name in before or name in told
    )


def _page(output: Path, c: Certificate) -> Iterator[Check]:
    path = page_path(output)
    if not path.exists():
        yield Check("page", None, "the certificate's page for people is not there")
        return
    if c.library != __version__:
        yield Check("page", False, f"written by targetdp {c.library}: verify with that version")
        return
    try:
        good = path.read_text(encoding="utf-8") == page(c)
    except (ValueError, LookupError, TypeError, ArithmeticError):
        good = False
    yield Check(
        "page", good, "says what the certificate says" if good else "was edited: read the certificate"
    )
