"""Keys on disk: made once, whole, for their owner alone; and what is not a key is refused."""

import base64
import hashlib
import os
import pickle
import stat
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from targetdp.release import SigningKey, default_key_path, secret_key
from targetdp.release._trust._keys import fingerprint_of, is_signed

MESSAGE = b"what was said"


def write_private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def pem(key: object, encryption: KeySerializationEncryption | None = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())  # type: ignore[attr-defined,no-any-return]


def test_a_key_is_made_once_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "key.pem"
    first = SigningKey.open(path)
    second = SigningKey.open(str(path))
    assert first.created
    assert not second.created
    assert first.public == second.public
    assert first.sign(MESSAGE) == second.sign(MESSAGE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}
    assert [p.name for p in path.parent.iterdir()] == ["key.pem"]
    assert SigningKey.open(tmp_path / "other.pem").public != first.public


def test_a_signature_is_the_standard_one(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "key.pem")
    raw = base64.b64decode(key.public)
    assert len(raw) == 32
    Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(key.sign(MESSAGE)), MESSAGE)
    digest = hashlib.sha256(raw).hexdigest()
    assert key.fingerprint == fingerprint_of(key.public) == "-".join(digest[i : i + 4] for i in (0, 4, 8, 12))


def test_only_the_signed_message_passes(tmp_path: Path) -> None:
    key, other = SigningKey.open(tmp_path / "a.pem"), SigningKey.open(tmp_path / "b.pem")
    signature = key.sign(MESSAGE)
    assert is_signed(key.public, signature, MESSAGE)
    assert not is_signed(key.public, signature, MESSAGE + b"!")
    assert not is_signed(other.public, signature, MESSAGE)
    assert not is_signed(key.public, other.sign(MESSAGE), MESSAGE)


@pytest.mark.parametrize(
    "bad", ["", "?", "AAAA", "é", None, 3, b"\xff", base64.b64encode(bytes(64)).decode()]
)
def test_what_is_malformed_is_not_signed(bad: object, tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "key.pem")
    assert not is_signed(bad, key.sign(MESSAGE), MESSAGE)  # type: ignore[arg-type]
    assert not is_signed(key.public, bad, MESSAGE)  # type: ignore[arg-type]
    assert not is_signed(key.public, key.sign(MESSAGE), "text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="32 bytes in base64"):
        fingerprint_of(bad)  # type: ignore[arg-type]


def test_the_private_part_does_not_show(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    key = SigningKey.open(path)
    secret = path.read_text().splitlines()[1]
    assert repr(key) == str(key) == f"SigningKey({key.fingerprint})"
    assert secret not in repr(vars(key))
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError, match=r"SigningKey\.open"):
        SigningKey("a.pem")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_reach_is_refused(mode: int, tmp_path: Path) -> None:
    signing, pseudonyms = tmp_path / "key.pem", tmp_path / "pseudonyms"
    SigningKey.open(signing)
    secret_key(pseudonyms, create=True)
    signing.chmod(mode)
    pseudonyms.chmod(mode)
    with pytest.raises(ValueError, match=f"permission 0{mode:o}.*chmod 600"):
        SigningKey.open(signing)
    with pytest.raises(ValueError, match=f"permission 0{mode:o}.*chmod 600"):
        secret_key(pseudonyms)


def pem_of_no_length() -> bytes:
    """A well-formed PKCS8 file of an Ed25519 key of no bytes: OpenSSL itself stumbles over it."""
    der = bytes.fromhex("300e020100300506032b657004020400")
    return b"-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(der) + b"\n-----END PRIVATE KEY-----\n"


def test_what_is_no_signing_key_is_refused_and_left_alone(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    for content, message in (
        (b"", "no Ed25519 key"),
        (b"name,calls\na,1\n", "no Ed25519 key"),
        (pem(key)[:60], "no Ed25519 key"),
        (pem_of_no_length(), "its key is damaged"),
        (pem(key, BestAvailableEncryption(b"secret")), "without password"),
        (pem(generate_private_key(SECP256R1())), "another kind of key"),
        (b"x" * 100_000, "longer than any key"),
    ):
        path = write_private(tmp_path / "key.pem", content)
        with pytest.raises(ValueError, match=message):
            SigningKey.open(path)
        assert path.read_bytes() == content
    assert (
        SigningKey.open(write_private(path, pem(key))).sign(MESSAGE)
        == base64.b64encode(key.sign(MESSAGE)).decode()
    )


def test_a_folder_or_a_pipe_is_no_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ValueError, match="not a file"):
        SigningKey.open(tmp_path / "pipe")
    with pytest.raises((ValueError, IsADirectoryError)):
        SigningKey.open(tmp_path)


def test_the_place_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TARGETDP_KEY", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert default_key_path() == tmp_path / ".config" / "targetdp" / "signing-key.pem"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert default_key_path() == tmp_path / "config" / "targetdp" / "signing-key.pem"
    monkeypatch.setenv("TARGETDP_KEY", str(tmp_path / "mine.pem"))
    assert default_key_path() == tmp_path / "mine.pem"
    assert list(tmp_path.iterdir()) == []


def test_a_secret_key_is_made_once_and_only_where_it_is_meant_to(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "pseudonyms.key"
    key = secret_key(path, create=True)
    assert len(key) == 32
    assert secret_key(path) == secret_key(path, create=True) == key == bytes.fromhex(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret_key(tmp_path / "other", create=True) != key
    with pytest.raises(ValueError, match=r"key file .*absent does not exist: bring it back from your backup"):
        secret_key(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"key file .*absent\.pem does not exist: bring it back"):
        SigningKey.open(tmp_path / "absent.pem", create=False)
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds 0 bytes"),
        (b"ab" * 31, "holds 31 bytes"),
        (b"ab" * 33, "holds 33 bytes"),
        (b"xy" * 32, "64 hex digits"),
        (b"\xff\xfe" * 32, "64 hex digits"),
    ],
)
def test_what_is_no_secret_key_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = write_private(tmp_path / "key", content)
    with pytest.raises(ValueError, match=message):
        secret_key(path)
    assert path.read_bytes() == content


def test_of_several_that_make_a_key_at_once_one_wins(tmp_path: Path) -> None:
    """`open` holds no state in the process, so threads race for the file as processes would."""
    for turn in range(10):
        path, start = tmp_path / f"{turn}" / "key.pem", threading.Barrier(8)
        found: list[SigningKey] = []

        def make(
            path: Path = path, found: list[SigningKey] = found, start: threading.Barrier = start
        ) -> None:
            start.wait()
            found.append(SigningKey.open(path))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len({key.public for key in found}) == 1
        assert sum(key.created for key in found) == 1
        assert [p.name for p in path.parent.iterdir()] == ["key.pem"]
