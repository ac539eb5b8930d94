"""Who signed what a desk hands over, and whether that is somebody whom the user knows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from targetdp.release._certificate._contents import Check
from targetdp.release._certificate._parts import Signature
from targetdp.release._trust._keys import fingerprint_of, is_signed, succeeds
from targetdp.release._trust._signers import earlier_key_of_own_desk, known_signers

SIGNER = "signer"


class SignedBy(NamedTuple):
    """A signature, what was signed, and what of: a release or an agreement of a desk, with its table."""

    signature: Signature | None
    message: bytes
    desk: str
    name: str
    sha256: str


def signature_checks(signed: SignedBy, public_key: str | None) -> Iterator[Check]:
    """Whether a signature fits, and whether its key is one that the user knows."""
    signature = signed.signature
    if signature is None:
        yield Check("signature", False, "the certificate is not signed")
        return
    key = signature.key
    if not is_signed(key, signature.value, signed.message):
        yield Check("signature", False, "does not fit")
        return
    mark = fingerprint_of(key)
    yield Check("signature", True, f"by key {mark}")
    if public_key is not None:
        same = succeeds(public_key, key, signature.succession, signed.desk)
        told = "the key that it is held against" if key == public_key else "a key that this one vouches for"
        yield Check(SIGNER, same, told if same else "another key than it is held against")
        return
    name = _name_of(signed, signature)
    yield Check(
        SIGNER, name is not None,
        name or f"signed by nobody you have named: if the data holder has told you that {mark} is her key, "
        f"by another way than this release, then targetdp key trust NAME {key}",
    )  # fmt: skip


def by_a_stranger(checks: Sequence[Check], public_key: str | None) -> bool:
    """Whether nobody whom the user has named signed it, as its checks say."""
    return public_key is None and any(c.what == SIGNER and c.holds is False for c in checks)


def _name_of(signed: SignedBy, signature: Signature) -> str | None:
    """Whose key it is, of those whom the user knows."""
    key, steps = signature.key, signature.succession
    for name, known in known_signers().items():
        if succeeds(known, key, steps, signed.desk):
            newer = f", by a newer key, on the named one's word (targetdp key trust NAME {key} --replace)"
            return name if known == key else name + newer
    return earlier_key_of_own_desk(signed.desk, key, signed.name, signed.sha256)
