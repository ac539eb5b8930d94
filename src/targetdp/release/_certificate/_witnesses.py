"""Certificates beside releases as witnesses: each has seen where the ledger stood.

So has the record of people who agreed, beside their rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from targetdp.release._agreed._record import AGREEMENT_SUFFIX, AgreementRecord, read_agreement
from targetdp.release._certificate._certificate import SUFFIX, Certificate
from targetdp.release._certificate._verify import read_certificate
from targetdp.release._desk import Desk
from targetdp.release._ledger._book import Ledger
from targetdp.release._ledger._entries import Witness
from targetdp.release._ledger._spaces import private_space, public_space, space_of_kinds
from targetdp.release._trust._keys import is_signed, succeeds

_MOST, _LONGEST = 10_000, 1 << 22
"""Certificates in a folder, and bytes of one: nobody has more, and others may have put files there."""


def witnesses(desk: Desk, ledger: Ledger, *folders: Path) -> tuple[Witness, ...]:
    """What the desk's own certificates tell, beside releases that the ledger knows and in some folders.

    Guarantees: only what a key of the desk has signed is believed: one that its ledger knows, or one that
    follows from these, as the ledger would not know if it were older than the change.
    Does not guarantee: anything against whoever has an earlier key of the desk. What he signs makes the
    ledger look behind, or charges what never was, and never frees anything.
    """
    told = (row.title.get("output") for row in ledger.outputs_on_record())
    places = [Path(output).parent for output in told if isinstance(output, str)]
    found = _signed_in([*places, *folders], desk, _keys_of(ledger))
    return tuple(_witness(path, proof) for path, proof in found)


def witness(path: Path, desk: Desk, ledger: Ledger) -> Witness:
    """A certificate that somebody names as a witness; a ValueError unless the desk has signed it."""
    proof = _read(path)
    if not _is_own(proof, desk, _keys_of(ledger)):
        raise ValueError(f"certificate {path} is not signed by this desk: it tells nothing of its ledger")
    return _witness(path, proof)


def _read(path: Path) -> Certificate | AgreementRecord:
    """A certificate, or the record of people who agreed, by its name."""
    return read_agreement(path) if path.name.endswith(AGREEMENT_SUFFIX) else read_certificate(path)


def _witness(path: Path, proof: Certificate | AgreementRecord) -> Witness:
    """A certificate as a witness, with what the ledger would say of its release."""
    if isinstance(proof, AgreementRecord):
        return Witness(f"the agreement {path}", proof.ledger.head(), agreed=proof.in_all)
    certificate, g = proof, proof.guarantee
    title = {
        "guarantee": {"B": g.B, "epsilon": g.epsilon, "delta": g.delta}, "rows": certificate.rows,
        "kind": certificate.kind, "mechanism": certificate.mechanism.name,
        "output": str(path).removesuffix(SUFFIX),
    }  # fmt: skip
    return Witness(
        f"the certificate {path}", certificate.ledger.head(), certificate.release,
        certificate.charge().record(), _space(certificate), title, certificate.output.sha256,
        estimated_by(certificate), certificate.desk.policy_sha256,
        [one.model_dump() for one in (certificate.together.near, certificate.together.classic)],
        "" if certificate.signature is None else certificate.signature.key, certificate.together.agreed,
    )  # fmt: skip


def _space(c: Certificate) -> dict[str, str]:
    """Which scales its columns had, as far as a certificate tells; what it does not tell was another's."""
    if c.scales.source == "none":
        return {}
    kinds = space_of_kinds(c.encoding, c.features)
    if c.scales.source == "declared":
        numbers = c.scales.values.items()
        return {name: public_space(one.center, one.scale) for name, one in numbers} | kinds
    earlier = c.scales.releases[0] if len(c.scales.releases) == 1 else "?"
    mine = c.scales.estimated
    return {name: private_space(c.release if name in mine else earlier) for name in c.features} | kinds


def estimated_by(c: Certificate) -> dict[str, Any] | None:
    """The scales that a release has estimated, as the ledger keeps them for later ones."""
    return {name: c.scales.values[name].model_dump() for name in c.scales.estimated} or None


def _keys_of(ledger: Ledger) -> list[str]:
    return [one.public for one in ledger.reading.signers]


def _is_own(c: Certificate | AgreementRecord, desk: Desk, keys: Sequence[str]) -> bool:
    own = c.signature
    if own is None or not is_signed(own.key, own.value, c.message()):
        return False
    return any(succeeds(key, own.key, own.succession, desk.id) for key in keys)


def _signed_in(
    folders: Iterable[Path], desk: Desk, keys: Sequence[str]
) -> Iterator[tuple[Path, Certificate | AgreementRecord]]:
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        paths: list[Path] = []
        with suppress(OSError):
            paths = sorted([*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*{AGREEMENT_SUFFIX}")])
        if len(paths) > _MOST:
            raise ValueError(
                f"{folder} has {len(paths):,} files that are named as certificates, too many to look at: "
                "release into another folder, or move what is not yours away"
            )
        for path in paths:
            with suppress(OSError, ValueError):  # what is no certificate tells nothing
                # Neither a pipe nor a device nor a giant that somebody has put there.
                if not path.is_file() or path.stat().st_size > _LONGEST:
                    continue
                content = path.read_bytes()
                if not any(key.encode() in content for key in keys):
                    continue
                found = _read(path)
                if _is_own(found, desk, keys):
                    yield path, found
