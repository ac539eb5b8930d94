"""Certificates beside releases as witnesses: each has seen where the ledger stood."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from targetdp.release._certificate._certificate import SUFFIX, Certificate
from targetdp.release._certificate._verify import read_certificate
from targetdp.release._desk import Desk
from targetdp.release._keys import is_signed
from targetdp.release._ledger._book import Ledger, Witness
from targetdp.release._ledger._history import private_space, public_space

_MOST = 1_000
"""In one folder: nobody has more releases there, and others may have put many files."""


def witnesses(desk: Desk, ledger: Ledger, *folders: Path) -> tuple[Witness, ...]:
    """What the desk's own certificates tell, beside releases that the ledger knows and in some folders.

    Guarantees: only what the desk's key has signed is believed.
    """
    told = (row.title.get("output") for row in ledger.releases_on_record())
    places = [Path(output).parent for output in told if isinstance(output, str)]
    return tuple(witness(path, found) for path, found in _signed_in([*places, *folders], desk))


def witness(path: Path, certificate: Certificate) -> Witness:
    """A certificate as a witness, with what the ledger would say of its release."""
    g = certificate.guarantee
    title = {
        "guarantee": {"B": g.B, "epsilon": g.epsilon, "delta": g.delta}, "rows": certificate.rows,
        "kind": "scores" if certificate.scores else "rows", "mechanism": certificate.mechanism.name,
        "output": str(path).removesuffix(SUFFIX),
    }  # fmt: skip
    return Witness(
        f"the certificate {path}", certificate.ledger.head(), certificate.release,
        certificate.charge().record(), _space(certificate), title, certificate.desk.policy_sha256,
        [one.model_dump() for one in (certificate.together.near, certificate.together.classic)],
    )  # fmt: skip


def _space(c: Certificate) -> dict[str, str]:
    """Which scales its columns had, as far as a certificate tells; what it does not tell was another's."""
    if c.scales.source == "declared":
        return {name: public_space(one.center, one.scale) for name, one in c.scales.values.items()}
    earlier = c.scales.releases[0] if len(c.scales.releases) == 1 else "?"
    return {name: private_space(c.release if name in c.scales.estimated else earlier) for name in c.features}


def _signed_in(folders: Iterable[Path], desk: Desk) -> Iterator[tuple[Path, Certificate]]:
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        paths: list[Path] = []
        with suppress(OSError):
            paths = sorted(folder.glob(f"*{SUFFIX}"))
        for path in paths[:_MOST]:
            with suppress(OSError, ValueError):  # what is no certificate tells nothing
                found = read_certificate(path)
                signed = found.signature is not None and is_signed(
                    desk.key.public, found.signature.value, found.message()
                )
                if signed and found.desk.id == desk.id:
                    yield path, found
