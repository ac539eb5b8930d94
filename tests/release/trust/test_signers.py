"""Whose signatures count: named keys and own desks; a stranger's release is never taken for a good one."""

from pathlib import Path

import pytest

from support.release import cli, place_with, release, words
from targetdp.release import SigningKey, certificate_path, known_signers, read_certificate, trust, verify
from targetdp.release._certificate._page import page
from targetdp.release._staging import page_path
from targetdp.release._trust._signers import forget, named_signers, signers_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = place_with(tmp_path / "place")
    release(made)
    return made


def as_another_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever looks now has no desk, and has named nobody."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))


def sign_by_a_stranger(folder: Path) -> SigningKey:
    """Everything is as it was, but for the key."""
    stranger = SigningKey.open(folder / "stranger.pem")
    place = certificate_path(folder / "out.parquet")
    forged = read_certificate(place).signed(stranger)
    place.write_text(forged.text())
    page_path(folder / "out.parquet").write_text(page(forged), encoding="utf-8")
    return stranger


def test_ones_own_desk_is_known(folder: Path) -> None:
    assert cli("verify", folder / "out.parquet").code == 0
    assert cli("key", "list").out.count("your desk") == 1


def test_a_strangers_release_has_its_own_code_and_sentence(folder: Path) -> None:
    """Today's "the release holds", exit 0."""
    stranger = sign_by_a_stranger(folder)
    ran = cli("verify", folder / "out.parquet")
    assert ran.code == 5
    assert "signed by nobody you have named" in words(ran.err)
    assert "the release holds" not in ran.err
    found = verify(folder / "out.parquet")
    assert found.only_the_signer_is_unknown
    assert not found.holds
    assert "signed by nobody" in found._repr_html_()
    trust("the stranger", stranger.public)
    assert cli("verify", folder / "out.parquet").code == 0
    assert cli("verify", folder / "out.parquet", "--json").json["verdict"] == "the release holds"


def test_a_strangers_release_that_does_not_hold_is_no_mere_strangers(folder: Path) -> None:
    sign_by_a_stranger(folder)
    with (folder / "out.parquet").open("ab") as file:
        file.write(b"\n")
    assert cli("verify", folder / "out.parquet").code == 1
    assert not verify(folder / "out.parquet").only_the_signer_is_unknown


def test_an_official_names_the_key_and_no_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SigningKey.open(folder / "desk" / "keys" / "signing.pem", create=False)
    as_another_user(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli("verify", folder / "out.parquet").code == 5
    assert "nobody" in cli("key", "list").err
    ran = cli("key", "trust", "operator", key.public)
    assert ran.code == 0
    assert key.fingerprint in ran.err
    assert cli("verify", folder / "out.parquet").code == 0
    assert cli("key", "list", "--json").json == {
        "operator": {"key": key.public, "fingerprint": key.fingerprint}
    }
    assert cli("key", "forget", "operator").code == 0
    assert cli("verify", folder / "out.parquet").code == 5
    assert cli("key", "forget", "operator").code == 2
    # A key that is given counts alone.
    trust("operator", key.public)
    assert cli("verify", folder / "out.parquet", "--public-key", key.public).code == 0
    other = SigningKey.open(tmp_path / "other.pem")
    assert cli("verify", folder / "out.parquet", "--public-key", other.public).code == 1


def test_a_name_keeps_its_key_unless_somebody_says_so(tmp_path: Path) -> None:
    one, two = (SigningKey.open(tmp_path / name) for name in ("one.pem", "two.pem"))
    trust("operator", one.public)
    trust("operator", one.public)
    ran = cli("key", "trust", "operator", two.public)
    assert ran.code == 2
    assert one.fingerprint in ran.err
    assert "--replace" in ran.err
    assert named_signers() == {"operator": one.public} | _of_fixtures()
    assert cli("key", "trust", "operator", two.public, "--replace").code == 0
    assert named_signers()["operator"] == two.public
    forget("operator")


def _of_fixtures() -> dict[str, str]:
    return {name: key for name, key in named_signers().items() if name.startswith("fixture")}


MALFORMED = ["", "no key", "AAAA", "A" * 44]


@pytest.mark.parametrize("key", MALFORMED)
def test_a_malformed_key_is_bad_input_not_a_bad_release(folder: Path, key: str) -> None:
    for arguments in (
        ("verify", folder / "out.parquet", "--public-key", key),
        ("key", "trust", "operator", key),
    ):
        ran = cli(*arguments)
        assert ran.code == 2, arguments
        assert "not an Ed25519 public key" in ran.err
        assert "does NOT hold" not in ran.err


@pytest.mark.parametrize("name", ["", "x" * 500, "two\nlines", "see https://example.org for more"])
def test_a_name_is_a_plain_one(name: str, tmp_path: Path) -> None:
    ran = cli("key", "trust", name, SigningKey.open(tmp_path / "one.pem").public)
    assert ran.code == 2
    assert "name" in ran.err


@pytest.mark.parametrize("text", ["operator = 3", 'operator = "AAAA"', "operator", '[a]\nb = "c"'])
def test_a_damaged_list_is_said_not_skipped(folder: Path, text: str) -> None:
    signers_path().parent.mkdir(parents=True, exist_ok=True)
    signers_path().write_text(text)
    ran = cli("verify", folder / "out.parquet")
    assert ran.code == 2
    assert "list of signers" in ran.err


def test_the_list_is_for_its_owner_alone(tmp_path: Path) -> None:
    trust("operator", SigningKey.open(tmp_path / "one.pem").public)
    assert signers_path().stat().st_mode & 0o077 == 0
    assert "operator" in known_signers()


def test_a_newer_key_is_believed_on_the_word_of_the_one_that_was_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SigningKey.open(folder / "desk" / "keys" / "signing.pem", create=False)
    assert cli("key", "rotate", "--desk", folder / "desk", "--reason", "every year").code == 0
    release(folder, "later.parquet")
    # The holder knows both keys of her own desk.
    assert verify(folder / "out.parquet").holds
    assert verify(folder / "later.parquet").holds
    as_another_user(monkeypatch, tmp_path)
    trust("operator", old.public)
    assert verify(folder / "out.parquet").holds
    found = verify(folder / "later.parquet")
    assert found.holds
    (signer,) = [check for check in found.checks if check.what == "signer"]
    assert "on the named one's word" in signer.detail
    assert verify(folder / "later.parquet", public_key=old.public).holds
    # Nobody takes the old key's word off the certificate.
    place = certificate_path(folder / "later.parquet")
    c = read_certificate(place)
    assert c.signature is not None
    bare = c.model_copy(update={"signature": c.signature.model_copy(update={"succession": ()})})
    assert "signature" in {check.what for check in verify(folder / "later.parquet", bare).failed}


def test_a_key_that_came_for_a_lost_one_is_a_strangers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = folder / "desk" / "keys" / "signing.pem"
    old = SigningKey.open(pem, create=False)
    pem.unlink()
    ran = cli("key", "replace", "--desk", folder / "desk", "--reason", "the disk broke")
    assert ran.code == 0, ran.err
    release(folder, "later.parquet")
    assert verify(folder / "later.parquet").holds
    assert not verify(folder / "out.parquet").holds, "whoever found the lost key could have signed it"
    as_another_user(monkeypatch, tmp_path)
    trust("operator", old.public)
    assert verify(folder / "later.parquet").only_the_signer_is_unknown
