"""Checking a release: the file against its certificate, and the certificate against its own noise."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from targetdp._core import __version__
from targetdp._files import explain
from targetdp.accounting import compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LinearLaw, NoiseLaw, law_of, unit_map
from targetdp.release._certificate._caveats import conditions_of
from targetdp.release._certificate._certificate import Certificate, at_distances, classic, noise_length
from targetdp.release._certificate._charge import Charge
from targetdp.release._certificate._contents import Check, file_checks
from targetdp.release._certificate._page import page
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Witness
from targetdp.release._request import scores_must_be_plain, scores_must_differ
from targetdp.release._staging import certificate_path, page_path
from targetdp.release._trust._keys import fingerprint_of, is_signed

# Scores of a certificate against their own weights.

SLACK = 1e-9
"""Relative: another processor may round the last digits differently."""


def score_checks(c: Certificate, stated: Guarantee, law: NoiseLaw) -> Iterator[Check]:
    """Whether what is said of scores and weights can be true."""
    linear = law.linear
    if linear is None:
        if c.scores or c.learned_from is not None:
            yield Check("scores", False, "no weights are on record that would make them")
        return
    yield _names(c, linear)
    yield _weights(linear, stated.B)


def _names(c: Certificate, law: LinearLaw) -> Check:
    try:
        names = scores_must_differ(scores_must_be_plain(c.scores), (c.id, *c.features, *c.public))
    except ValueError as error:
        return Check("scores", False, str(error))
    return Check("scores", len(names) == law.scores, ", ".join(names) or "none is named")


def _weights(law: LinearLaw, B: float) -> Check:
    """Divided by their norm: longer weights leak, and shorter ones would look safer than they are."""
    given = np.array(law.weights)
    good = bool(np.allclose(given, unit_map(given, B), rtol=1e-6, atol=1e-12))
    return Check("weights", good, "of norm 1" if good else "are not divided by their norm")


def keeps(what: str, law: NoiseLaw, spent: Guarantee | None, stated: Guarantee) -> Check:
    """Lemma 2: what is left of ε and δ after the scales must cover the noise."""
    epsilon = stated.epsilon - (spent.epsilon if spent else 0.0)
    delta = stated.delta - (spent.delta if spent else 0.0)
    true = law.privacy_loss(stated.B).delta(max(0.0, epsilon) * (1 + 1e-12))
    return Check(
        what,
        epsilon > 0 and true <= delta * (1 + SLACK),
        f"{stated} derived again from {law.added.family} noise: δ = {true:.3g} at its ε",
    )


_FORMAT = re.compile("targetdp certificate [0-9]{1,4}")
_FAMILIES = {"projection-exact": "projection"}
"""Mechanisms whose noise has another name than they have."""


@dataclass(frozen=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]

    def also(self, more: Iterable[Check]) -> "Verification":
        """With more checks."""
        return Verification((*self.checks, *more))

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return all(check.holds is not False for check in self.checks)

    def _repr_html_(self) -> str:
        words = {True: "yes", False: "<b>NO</b>", None: "–"}
        rows = "".join(
            f"<tr><td>{escape(c.what)}</td><td>{words[c.holds]}</td><td>{escape(c.detail)}</td></tr>"
            for c in self.checks
        )
        verdict = "the release holds" if self.holds else "the release does NOT hold: do not use it"
        return f"<p>{verdict}</p><table>{rows}</table>"


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


def verify_release(output: Path, certificate: Certificate, public_key: str | None = None) -> Verification:
    """Check signature, page, files, shape, noise grid, and derive every stated number again from the noise.

    Does not guarantee: that noise was drawn as it should have been; only the data holder can know.
    """
    checks = [*_signature(certificate, public_key), *_page(output, certificate)]
    return Verification((*checks, *file_checks(output, certificate), *verify_guarantee(certificate)))


def verify(
    output: str | Path, certificate: Certificate | str | Path | None = None, public_key: str | None = None
) -> Verification:
    """Check a released file or folder against its certificate, and the certificate against its noise.

    Args:
        output: What was released.
        certificate: Its certificate, or the certificate's file; by default the one beside it.
        public_key: The data holder's public key, as she has told it by another way.

    Returns:
        All checks; ``holds`` says whether none of them failed.

    Raises:
        ValueError: There is no certificate that can be read.
    """
    place = _path("output", output)
    if not isinstance(certificate, Certificate):
        certificate = read_certificate(certificate_path(place) if certificate is None else certificate)
    return verify_release(place, certificate, public_key)


def certified(what: str, release: Path, given: Path | None, public_key: str | None) -> Certificate:
    """The certificate of a release, if it holds for the file.

    Args:
        what: What messages call the release: ``"sample"``.
        release: The released file or folder.
        given: The certificate's file; by default the one beside the release.
        public_key: The data holder's public key, if it is known.

    Raises:
        ValueError: There is none, or it does not hold; the message says what of it.
    """
    place = given or certificate_path(release)
    if not place.exists():
        raise ValueError(
            f"{what} {release} has no certificate ({place}): it tells what noise the values have, and "
            "without it nothing can be learned that knows the noise; ask the data holder for it"
        )
    proof = read_certificate(place)
    checks = verify_release(release, proof, public_key).checks
    wrong = [f"{check.what}: {check.detail}" for check in checks if check.holds is False]
    if wrong:
        raise ValueError(
            f"certificate {place} does not hold for {what} {release} ({'; '.join(wrong)}): run targetdp "
            "verify for all checks"
        )
    return proof


def verify_in_ledger(c: Certificate, ledger: Ledger) -> Iterator[Check]:
    """Whether a ledger is sound, of the same key, and has this release charged as it is certified."""
    key = None if c.signature is None else c.signature.key
    problems = ledger.verify([Witness("the certificate", c.ledger.head())], key)
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


def verify_guarantee(c: Certificate) -> Iterator[Check]:
    """Derive what is stated again from the law of the noise: nothing may be too good, nothing left out."""
    yield _conditions(c)
    yield from _scales(c)
    try:
        yield from _derived(c, c.guarantee.value(), law_of(c.mechanism.law))
    except (ValueError, TypeError, ArithmeticError) as error:
        yield Check("guarantee", False, f"the noise on record makes no sense: {error}")


def _derived(c: Certificate, stated: Guarantee, law: NoiseLaw) -> Iterator[Check]:
    spent = None if c.scales.spent is None else c.scales.spent.value()
    yield keeps("guarantee", law, spent, stated)
    m, noise = c.mechanism, law.added
    same = (
        law.dimensions == len(c.features)
        and noise.family == _FAMILIES.get(m.name, m.name)
        and _close(m.deviation_per_column, law.deviation_per_column)
        and _close(m.noise_length, noise_length(law))
    )
    yield Check(
        "noise",
        same,
        f"{noise.family}, deviation {law.deviation_per_column:.6g}; columns: {noise.dimensions}",
    )
    yield from score_checks(c, stated, law)
    charge = Charge(law=law, scales=spent)
    again = at_distances(charge, stated)
    comparable = [a.distance for a in c.distances] == [a.distance for a in again]
    names = ("epsilon", "best_guess")
    yield _no_better("ε at other distances", c.distances, again, names, comparable)
    exact = classic(charge, stated)
    claimed = (c.classic.exact, c.classic.switch_lemma)
    true = (exact.exact, exact.switch_lemma)
    comparable = all(one is None or one.B == 2 for one in claimed)
    # What is promised of all releases cannot be less than what this one takes.
    near, far = c.together.near.value(), c.together.classic.value()
    good = far.B == 2 and all(
        compose(*charge.losses(one.B)).delta(one.epsilon * (1 + 1e-12)) <= one.delta * (1 + SLACK)
        for one in (near, far)
    )
    yield Check("all releases together", good, f"{near}, {far}" if good else "less than this release takes")
    yield _no_better("classic differential privacy", claimed, true, ("B", "epsilon", "delta"), comparable)


def _conditions(c: Certificate) -> Check:
    if c.library != __version__:
        return Check("conditions", False, f"worded by targetdp {c.library}: verify with that version")
    try:
        good = c.conditions == conditions_of(c.facts())
    except (ValueError, TypeError, ArithmeticError) as error:
        return Check("conditions", False, f"its facts make no sense: {error}")
    return Check("conditions", good, "all are there" if good else "not those that the facts ask for")


def _scales(c: Certificate) -> Iterator[Check]:
    """Private scales that this release estimated, and no others, were paid for here, at B = 2."""
    s = c.scales
    good = (s.spent is not None) == (s.source == "private") and (s.spent is None or s.spent.B == 2)
    good &= tuple(s.values) == c.features
    good &= bool(s.estimated) == (s.source == "private") and set(s.estimated) <= set(c.features)
    earlier = s.source != "declared" and set(s.estimated) != set(c.features)
    good &= bool(s.releases) == earlier
    paid_for = {
        "declared": "not paid for",
        "private": "paid for, on the data holder's word",
        "earlier": "paid for by an earlier release, on the data holder's word",
    }[s.source]
    yield Check("column scales", good, f"{s.source}, {paid_for}")


def _no_better(
    what: str, stated: Sequence[object], again: Sequence[object], names: Sequence[str], comparable: bool
) -> Check:
    """Stated numbers must be at least those derived again (None: nothing is promised)."""
    good = comparable and len(stated) == len(again)
    for one, two in zip(stated, again, strict=False):
        for name in names:
            claimed, true = getattr(one, name, None), getattr(two, name, None)
            good &= claimed is None or (true is not None and claimed >= true * (1 - SLACK))
    return Check(what, good, "derived again" if good else "stated better than the noise allows")


def _close(a: float | None, b: float) -> bool:
    return a is not None and math.isclose(a, b, rel_tol=SLACK)


def _signature(c: Certificate, public_key: str | None) -> Iterator[Check]:
    if c.signature is None:
        yield Check("signature", False, "the certificate is not signed")
        return
    good = is_signed(c.signature.key, c.signature.value, c.message())
    yield Check("signature", good, f"by key {fingerprint_of(c.signature.key)}" if good else "does not fit")
    if public_key is None:
        yield Check("signer", None, "compare the key with the data holder's, or give --public-key")
    else:
        yield Check("signer", c.signature.key == public_key, "the key that it is held against")


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
