"""Keys on disk: the signing key of a data holder or an official, and a desk's keys of tags and pseudonyms.

A key file belongs to its owner alone (permission 0600). It is created once, whole or not at all, and of
several processes that create it at the same moment one wins and the others read what it wrote.
"""

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from targetdp._files import StrictModel, canonical, write_whole
from targetdp.noise import fresh_keys

_SECRET_BYTES = 32
_LONGEST_FILE = 16_384
"""No key file is longer: whoever names his data by mistake is told so without reading all of it."""


_OF_NOBODY = {
    "00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f", "ed" + "ff" * 30 + "7f", "ee" + "ff" * 30 + "7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
}  # fmt: skip
"""Points of small order, without their sign: under such a "key" anybody can sign, and OpenSSL takes it."""


class KeyDamagedError(ValueError):
    """A file holds no signing key, or no whole one."""


class SigningKey:
    """The data holder's Ed25519 key: what it signs, others can check with its public part.

    Guarantees: the private part never shows in `repr` and leaves only to its own file.
    Does not guarantee: who the holder is. Tell people the `fingerprint` by another way than the release.
    """

    def __init__(self, private: Ed25519PrivateKey, *, created: bool = False) -> None:
        if not isinstance(private, Ed25519PrivateKey):
            raise TypeError(f"private is a {type(private).__name__}: use SigningKey.open(path)")
        self._private = private
        self.public = base64.b64encode(private.public_key().public_bytes_raw()).decode()
        self.created = created

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> "SigningKey":
        """The key in a PEM file (PKCS8); made and written there if there is none (then ``created``)."""
        place = Path(path)
        if not create and not place.exists():
            raise ValueError(f"key file {place} does not exist: bring it back from your backup")
        content, created = _load_or_create(place, _new_signing_key)
        remedy = "name a key that targetdp made, or a path where it may make one"
        try:
            private = load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm, InternalError) as error:
            # InternalError has a page about OpenSSL and no cause: the key in the file has the wrong length.
            why = "its key is damaged" if isinstance(error, InternalError) else error
            raise KeyDamagedError(f"{place} is no Ed25519 key without password ({why}): {remedy}") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyDamagedError(f"{place} holds another kind of key than Ed25519: {remedy}")
        return cls(private, created=created)

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"

    @property
    def fingerprint(self) -> str:
        """See `fingerprint_of`."""
        return fingerprint_of(self.public)

    def sign(self, message: bytes) -> str:
        """The signature of a message, in base64."""
        return base64.b64encode(self._private.sign(message)).decode()


def is_signed(public: str, signature: str, message: bytes) -> bool:
    """Whether the holder of a public key signed a message; False also for what is malformed."""
    raw, signed = _key_bytes(public), _from_base64(signature)
    if raw is None or signed is None or not isinstance(message, bytes):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signed, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint_of(public: str, name: str = "public") -> str:
    """A public key for people to compare: 16 hex digits of its SHA-256, such as ``5f1c-90aa-…``.

    What is no key is a ValueError, which calls it by ``name``.
    """
    raw = _key_bytes(public)
    if raw is None:
        raise ValueError(f"{name} = {public!r} is not an Ed25519 public key: give its 32 bytes in base64")
    digest = hashlib.sha256(raw).hexdigest()
    return "-".join(digest[i : i + 4] for i in range(0, 16, 4))


class Succession(StrictModel):
    """A step from one key of a desk to the next: ``value`` is the older key's signature of it."""

    older: str
    newer: str
    value: str

    @classmethod
    def between(cls, desk: str, older: SigningKey, newer: str) -> "Succession":
        """The older key's word that a newer one signs for a desk from now on."""
        step = cls(older=older.public, newer=newer, value="")
        return step.model_copy(update={"value": older.sign(step.message(desk))})

    def message(self, desk: str) -> bytes:
        """What is signed: both keys, and the desk's id, so that no other desk can claim it."""
        step = {"desk": desk, "newer": self.newer, "older": self.older}
        return f"targetdp succession {canonical(step)}".encode()

    def holds(self, desk: str) -> bool:
        """Whether the older key has said so, of this desk."""
        return self.newer != self.older and is_signed(self.older, self.value, self.message(desk))


def succeeds(trusted_key: str, signer_key: str, succession: Iterable[Succession], desk_id: str) -> bool:
    """Whether a signer's key is one that somebody trusts, or follows from it step by step.

    Args:
        trusted_key: The public key that is known by another way.
        signer_key: The one that has signed.
        succession: The steps that the signer shows, the oldest first.
        desk_id: Of the desk that the signer speaks for.

    Guarantees: every step from the trusted key on is signed by the key before it, for this desk.
    Does not guarantee: that nobody else has an older key. Whoever has one can sign in its name, and name a
    successor of his own, also after the desk has replaced it: only those who trust the newest key, and no
    older one, are safe from him.

    Example:
        >>> succeeds("a key", "a key", (), "a desk"), succeeds("a key", "another", (), "a desk")
        (True, False)
    """
    key = trusted_key
    for step in succession:
        if key != signer_key and step.older == key and step.holds(desk_id):
            key = step.newer
    return key == signer_key


def default_key_path() -> Path:
    """Where a person's own key is: ``TARGETDP_KEY``, or ``targetdp/signing-key.pem`` in the config."""
    chosen = os.environ.get("TARGETDP_KEY")
    return Path(chosen) if chosen else config_folder() / "signing-key.pem"


def config_folder() -> Path:
    """The user's own configuration of targetdp."""
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "targetdp"


def secret_key(path: str | Path, *, create: bool = False) -> bytes:
    """The 32 secret bytes (hex in a file) that pseudonyms or tags of people are made with.

    Guarantees: the same file gives the same pseudonyms.
    Does not guarantee: anything once the file is known. Ids come from a short list, so whoever has the key
    can try them all.
    """
    place = Path(path)
    if not create and not place.exists():
        raise ValueError(f"key file {place} does not exist: bring it back from your backup")
    content, _ = _load_or_create(place, lambda: fresh_keys(1)[0].hex().encode() + b"\n")
    try:
        key = bytes.fromhex(content.decode("ascii"))
    except ValueError as error:
        raise ValueError(f"{place} is no secret key: it must hold {2 * _SECRET_BYTES} hex digits") from error
    if len(key) != _SECRET_BYTES:
        raise ValueError(f"{place} holds {len(key)} bytes: a secret key has {_SECRET_BYTES}")
    return key


def wipe(path: Path) -> None:
    """Write zeros over a secret, where there is one, before its file is removed or replaced.

    Does not guarantee: that no trace is left in backups, snapshots, or spare blocks of a disk.
    """
    with suppress(FileNotFoundError), path.open("r+b") as file:
        file.write(bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())


def _new_signing_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _load_or_create(path: Path, make: Callable[[], bytes]) -> tuple[bytes, bool]:
    """The content of a key file, written whole or not at all if there is none, and whether it was."""
    try:
        return _load(path), False
    except FileNotFoundError:
        for missing in reversed([folder for folder in path.parents if not folder.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)  # for its owner alone
    created = True
    try:
        write_whole(path, make(), private=True, replace=False)
    except FileExistsError:  # another process was first
        created = False
    return _load(path), created


def _load(path: Path) -> bytes:
    """The content of a key file that nobody but its owner can read."""
    # O_NONBLOCK: a pipe under that name must be refused, not waited for. A file object would
    # refuse a folder itself, and not say which.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        # Of the open file, not of its name: nobody can exchange it in between.
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{path} is not a file: name the key's own file")
        if os.name == "posix" and mode & 0o077:
            raise ValueError(
                f"{path} has permission {stat.S_IMODE(mode):04o}, so others than its owner can get at it: "
                f"if it was never shared, run chmod 600 '{path}'; otherwise use a new key"
            )
        content = os.read(descriptor, _LONGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > _LONGEST_FILE:
        raise ValueError(f"{path} is longer than any key ({_LONGEST_FILE} bytes): name the key's own file")
    return content


def _key_bytes(public: str) -> bytes | None:
    """The bytes of a public key; None for what is none, or fits signatures that nobody had to make."""
    raw = _from_base64(public)
    if raw is None or len(raw) != 32 or (raw[:31] + bytes([raw[31] & 0x7F])).hex() in _OF_NOBODY:
        return None
    return raw


def _from_base64(text: str) -> bytes | None:
    """The bytes in a text; None unless it is the one way to write them, since keys are compared as texts."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None
    return found if base64.b64encode(found).decode() == text else None
