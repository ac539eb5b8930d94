"""`targetdp request`: what an official asks for is shown in words, signed, and accepted by who knows her."""

from pathlib import Path

import pytest

from support.release import certificate_of, cli, new_policy, nothing_changes, place_with, request_of, words
from support.staged import states
from targetdp.release import SigningKey, read_request

RUN = ("privatize", "in.parquet", "out.parquet", "--yes", "--request")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk, and a request of somebody with a key of her own."""
    place = place_with(tmp_path / "place", 60)
    monkeypatch.chdir(place)
    monkeypatch.setenv("TARGETDP_KEY", str(tmp_path / "official" / "signing-key.pem"))
    request = request_of(
        features=["calls", "texts"], asked_by="Ministry of Aid", program="Novissi", why="to learn who is poor"
    )
    Path("request.toml").write_text(request.text("written for a test"))
    return place


def test_a_request_is_shown_in_words(folder: Path) -> None:
    ran = cli("request", "show", "request.toml")
    assert (ran.code, ran.err) == (0, "")
    for part in (
        "release: rows (calls, texts)", "promise: B = 0.25, ε = 4, δ: that of the desk", "noise: least-noise",
        "asked by: Ministry of Aid", "program: Novissi", "why: “to learn who is poor”", "not signed",
        f"SHA-256 {read_request(Path('request.toml')).sha256}",
    ):  # fmt: skip
        assert part in ran.out.splitlines(), ran.out
    record = cli("request", "show", "request.toml", "--json").json
    assert (record["epsilon"], record["signer"], record["asked_by"]) == (4, None, "Ministry of Aid")


def test_a_request_is_signed_and_says_by_whom(folder: Path, tmp_path: Path) -> None:
    ran = cli("request", "sign", "request.toml", "--out", "signed.toml")
    assert ran.code == 0, ran.err
    own = SigningKey.open(tmp_path / "official" / "signing-key.pem", create=False)
    assert f"signed with key {own.fingerprint}" in ran.err
    assert f"signed with key {own.fingerprint}" in cli("request", "show", "signed.toml").out
    assert cli("request", "show", "signed.toml", "--json").json["signer"] == own.public
    assert read_request(Path("signed.toml")).sha256 == read_request(Path("request.toml")).sha256
    with nothing_changes(folder):
        again = cli("request", "sign", "request.toml", "--out", "signed.toml")
        assert (again.code, "exists" in again.err) == (2, True)
    assert cli("request", "sign", "request.toml", "--out", "signed.toml", "--force").code == 0
    other = cli("request", "sign", "request.toml", "--out", "other.toml", "--key", tmp_path / "other.pem")
    assert other.code == 0
    assert read_request(Path("other.toml")).signer != own.public


def test_what_was_changed_after_signing_is_refused(folder: Path) -> None:
    assert cli("request", "sign", "request.toml", "--out", "signed.toml").code == 0
    text = Path("signed.toml").read_text()
    Path("signed.toml").write_text(text.replace("epsilon = 4.0", "epsilon = 40.0"))
    assert "epsilon = 40.0" in Path("signed.toml").read_text()
    shown = cli("request", "show", "signed.toml")
    assert (shown.code, "signature does not fit the request" in shown.err) == (2, True)
    ran = cli(*RUN, "signed.toml")
    assert (ran.code, "signature does not fit the request" in ran.err) == (2, True)
    assert states(folder) == {}
    Path("signed.toml").write_text("# a comment more\n" + text)
    assert cli("request", "show", "signed.toml").code == 0, "comments say nothing"


def test_a_desk_may_answer_those_alone_whose_keys_it_names(folder: Path, tmp_path: Path) -> None:
    key = cli("key", "--key", tmp_path / "official" / "signing-key.pem").out.strip()
    new_policy(folder / "desk", requests={"accept": "signed"}, keys={"ministry of aid": key})
    with nothing_changes(folder / "desk" / "keys"):
        ran = cli(*RUN, "request.toml")
    assert (ran.code, "the request is not signed" in ran.err) == (2, True)
    assert "targetdp request sign" in ran.err
    stranger = ("--out", "stranger.toml", "--key", tmp_path / "stranger.pem")
    assert cli("request", "sign", "request.toml", *stranger).code == 0
    ran = cli(*RUN, "stranger.toml")
    assert (ran.code, "signed by nobody whom [requests.keys] names" in ran.err) == (2, True)
    ran = cli("privatize", "in.parquet", "out.parquet", "--yes", "--B", "0.25", "--epsilon", "4")
    assert (ran.code, "the request is not signed" in ran.err) == (2, True), "not even at the desk itself"
    assert states(folder) == {}
    assert cli("request", "sign", "request.toml", "--out", "signed.toml").code == 0
    ran = cli(*RUN, "signed.toml")
    assert ran.code == 0, ran.err
    assert "asked for by Ministry of Aid" in ran.err
    assert "signed by ministry of aid" in words(ran.err)
    c = certificate_of(Path("out.parquet"))
    assert (c.request.signer, c.request.asked_by) == (key, "Ministry of Aid")


def test_a_signature_that_nobody_pinned_is_said_to_be_so(folder: Path) -> None:
    assert cli("request", "sign", "request.toml", "--out", "signed.toml").code == 0
    ran = cli(*RUN, "signed.toml")
    assert ran.code == 0
    assert "signed by a key without a name here" in words(ran.err)


def test_what_is_no_request_is_neither_shown_nor_signed(folder: Path) -> None:
    Path("bad.toml").write_text("B = 3\nepsilom = 1\noverride = 'as agreed'\n")
    for run in (("show", "bad.toml"), ("sign", "bad.toml", "--out", "x.toml"), ("show", "absent.toml")):
        ran = cli("request", *run)
        assert (ran.code, "Traceback" in ran.err) == (2, False)
    assert not Path("x.toml").exists()
