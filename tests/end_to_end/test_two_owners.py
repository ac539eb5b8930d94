"""Two files, two owners, one folder: no request has powers of the data holder, and no path makes a budget."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.release import (
    ASKED,
    FEATURES,
    certificate_of,
    cli,
    command,
    environment,
    holds,
    make_desk,
    new_policy,
    nothing_changes,
    place_with,
    read_back,
    request_of,
    table_of,
    words,
    write_parquet,
)
from support.staged import room_for, states
from targetdp.release import Desk
from targetdp.release._request import HOLDERS
from targetdp.release._staging import page_path

RUN = ("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")
PLAIN = 'B = 0.25\nepsilon = 4\ndelta = 1e-5\nmechanism = "gaussian"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk with room for one release, a table, and a request that is granted."""
    place = place_with(tmp_path / "place", 60, limit=room_for(1))
    monkeypatch.chdir(place)
    Path("request.toml").write_text(PLAIN)
    return place


# A request

FOUND = {
    "override": '"as agreed"', "part": '"the board has agreed to everything"', "population": '"others"',
    "ledger": '"mine.db"', "no_sample": "true", "keep": '["region"]', "pseudonymize": "false",
    "key": '"mine.pem"', "id": '"texts"', "scales": '"data"', "limit": "{ B = 2, epsilon = 100, delta = 1 }",
    "gaps": "{ all = 0 }", "public": '{ region = "why not" }', "keep_order": "true", "yes": "true",
    "desk": '"elsewhere"', "policy": '"policy.toml"', "partitions": "6", "group_size": "5",
}  # fmt: skip
"""What an official's file was obeyed in, and more that is the data holder's."""


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["", "quiet"])
@pytest.mark.parametrize("field", FOUND)
def test_a_field_of_the_holder_in_a_request_is_refused_by_name(
    folder: Path, field: str, quiet: tuple[str, ...]
) -> None:
    Path("request.toml").write_text(f"{PLAIN}{field} = {FOUND[field]}\n")
    with nothing_changes(folder):
        ran = cli(*RUN, *quiet)
        looked = cli(*RUN, *quiet, "--check")
    assert ran.code == looked.code == 2
    assert f"{field}: the data holder decides about that, in policy.toml, and no request does" in ran.err
    assert "leave it out" in ran.err


def test_all_of_them_are_named_at_once(folder: Path) -> None:
    Path("request.toml").write_text(PLAIN + "".join(f"{n} = {v}\n" for n, v in FOUND.items()))
    said = words(cli(*RUN).err)
    assert ", ".join(sorted(FOUND)) in said
    assert set(FOUND) <= HOLDERS


def test_a_limit_is_passed_by_a_change_of_the_policy_alone_and_that_is_on_record(folder: Path) -> None:
    assert cli(*RUN).code == 0
    for more in ((), ("--quiet",), ("--force",), ("--force", "--quiet", "--json")):
        ran = cli("privatize", "in.parquet", "more.parquet", *RUN[3:], *more)
        assert (ran.code, "the limit would be passed" in ran.err) == (7, True)
    wider: dict[str, Any] = {"limit": room_for(2)}
    new_policy(folder / "desk", **wider)
    ran = cli("privatize", "in.parquet", "more.parquet", *RUN[3:])
    assert ran.code == 2, "not without a word"
    assert "policy.toml allows more than the policy on record: the limit was" in words(ran.err)
    assert 'say why, at the top of the file: reason = "…"' in words(ran.err)
    assert "allows more than the policy on record" in cli("status").err
    new_policy(folder / "desk", reason="a second survey, agreed on 3 May", **wider)
    assert cli("privatize", "in.parquet", "more.parquet", *RUN[3:]).code == 0
    with Desk.open(folder / "desk").ledger() as ledger:
        entries = [json.loads(entry.body) for entry in ledger.entries if entry.kind == "policy"]
    assert len(entries) == 2
    assert entries[1]["changed"]["limit.epsilon"] == [room_for(1)[1], room_for(2)[1]]
    assert entries[1]["policy"]["reason"] == "a second survey, agreed on 3 May"
    assert certificate_of(folder / "more.parquet").desk.policy == 2


def test_columns_are_passed_on_by_the_policy_alone_and_with_a_reason(folder: Path) -> None:
    write_parquet(Path("in.parquet"), table_of(60, region=["north"] * 60))
    for text in ('features = ["calls", "region"]', 'release = "scores"\n[weights]\nregion = 1'):
        Path("request.toml").write_text(f"{PLAIN}{text}\n")
        ran = cli(*RUN)
        assert (ran.code, "the policy releases no region" in ran.err) == (2, True), ran.err
    Path("request.toml").write_text(PLAIN)
    assert cli(*RUN).code == 0
    assert read_back(Path("out.parquet")).column_names == ["name", *FEATURES]
    reason = "it is printed on the list of the program"
    more = ("privatize", "in.parquet", "more.parquet", *RUN[3:])
    public: dict[str, Any] = {"limit": room_for(2), "public": {"region": reason}}
    new_policy(folder / "desk", **public)
    ran = cli(*more)
    assert (ran.code, "region goes out as it is" in ran.err) == (2, True)
    new_policy(folder / "desk", reason="the program asks for it", **public)
    ran = cli(*more, "--quiet")
    assert ran.code == 0, ran.err
    assert "warning: passed on as they are, NOT protected: region" in ran.err, "however quiet"
    output = folder / "more.parquet"
    assert certificate_of(output).public == {"region": reason}
    assert reason in page_path(output).read_text(encoding="utf-8")
    assert cli("ledger", "show", "--json").json["releases"][-1]["public"] == ["region"]


def test_no_release_is_without_a_guarantee(folder: Path) -> None:
    assert cli(*RUN).code == 0
    c = certificate_of(Path("out.parquet"))
    assert c.guarantee.epsilon <= 4
    assert "unbounded" not in cli("ledger", "show", "--json").out
    assert holds(Path("out.parquet"))


# Where the desk is


def test_a_desk_is_found_from_below_and_never_made_by_a_release(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path from another folder, as of cron: it finds the desk, or it fails."""
    below = folder / "jobs" / "nightly"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    request = ("--request", folder / "request.toml", "--yes")
    assert cli("privatize", "../../in.parquet", "out.parquet", *request).code == 0
    assert list(states(folder).values()) == ["published"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    asked = ("privatize", folder / "in.parquet", "out.parquet", *request)
    with nothing_changes(tmp_path):
        for more in ((), ("--desk", "desk"), ("--desk", "place/desk"), ("--desk", elsewhere)):
            ran = cli(*asked, *more)
            assert (ran.code, "there is no desk" in ran.err) == (2, True), ran.err
            assert str(folder / "desk") in ran.err, "desks that are known are named"
        monkeypatch.setenv("TARGETDP_DESK", "desk")
        assert cli(*asked).code == 2
    monkeypatch.setenv("TARGETDP_DESK", str(folder / "desk"))
    ran = cli(*asked)
    assert (ran.code, "the limit would be passed" in ran.err) == (7, True), "one budget, from everywhere"
    monkeypatch.setenv("TARGETDP_DESK", "../place/desk")
    assert "the limit would be passed" in cli(*asked).err
    monkeypatch.delenv("TARGETDP_DESK")
    assert "the limit would be passed" in cli(*asked, "--desk", "../place").err, "its parent will do"


def test_a_cron_job_says_so_too(folder: Path, tmp_path: Path) -> None:
    """As a process of its own, without a terminal, in the root folder."""
    run = ("privatize", folder / "in.parquet", tmp_path / "x.parquet", "--request", folder / "request.toml")
    ran = command(*run, "--yes", cwd=Path("/"))
    assert (ran.code, "there is no desk here or above" in ran.err) == (2, True)
    ran = command(*run, cwd=Path("/"), env=environment(TARGETDP_DESK=str(folder / "desk")))
    assert (ran.code, "nobody is at the terminal to say yes" in ran.err) == (2, True)
    assert states(folder) == {}


def test_a_copy_of_a_desk_is_refused(folder: Path, tmp_path: Path) -> None:
    """Each would keep a budget of its own for the same people."""
    assert cli(*RUN).code == 0
    copy = shutil.copytree(folder / "desk", tmp_path / "copied")
    for run in ((*RUN[:2], "copy.parquet", *RUN[3:]), ("status",), ("ledger", "show")):
        ran = cli(*run, "--desk", copy)
        assert (ran.code, "is a copy of" in ran.err) == (2, True), ran.err
    shutil.rmtree(folder / "desk")
    moved = cli("status", "--desk", copy)
    assert moved.code == 0, "a desk that was moved is the same one"
    ran = cli(*RUN[:2], "again.parquet", *RUN[3:], "--desk", copy)
    assert "the limit would be passed" in ran.err


def test_no_desk_is_made_below_or_beside_another(folder: Path) -> None:
    (folder / "below").mkdir()
    with nothing_changes(folder):
        for place in ("second", "below/desk", "desk/inside", "desk"):
            ran = cli("init", "in.parquet", "--desk", place)
            assert (ran.code, "there is a desk already" in ran.err) == (2, True), ran.err


def test_another_desk_elsewhere_is_told_of_the_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    init = ("init", "in.parquet", "--desk", elsewhere / "desk")
    assert cli(*RUN).code == 0, "a desk that releases is known from then on"
    ran = cli(*init)
    assert ran.code == 2
    assert "60 people of in.parquet are in releases of another desk of yours" in words(ran.err)
    assert str(folder / "desk") in ran.err
    assert not (elsewhere / "desk").exists()
    assert cli(*init, "--new-people", "the same numbers abroad").code == 0


LOST = ("ledger.db", "ledger.db.head", "keys/tags.key", "keys/signing.pem", "policy.toml")


@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_at_a_desk_is_not_made_anew(folder: Path, lost: str) -> None:
    """A new ledger would be a new budget, a new key new people."""
    assert cli(*RUN).code == 0
    (folder / "desk" / lost).unlink()
    with nothing_changes(folder):
        ran = cli(*RUN[:2], "again.parquet", *RUN[3:])
    assert ran.code == 2, ran.err
    assert Path(lost).name in ran.err or "ledger" in ran.err
    assert not (folder / "desk" / lost).exists()


# Releases by a prefix


def test_releases_are_named_by_a_beginning_that_is_theirs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path)
    write_parquet(Path("first.parquet"), table_of(60).slice(0, 20))
    write_parquet(Path("in.parquet"))
    ids = iter(["abcdef01" + "0" * 24, "abcdef02" + "0" * 24, "1" * 32, "2" * 32])

    class Id:
        def __init__(self) -> None:
            self.hex = next(ids)

    monkeypatch.setattr("targetdp.release._run._reservation.uuid.uuid4", Id)
    for name in "ab":
        assert cli("privatize", "first.parquet", f"{name}.parquet", *ASKED).code == 0
    for prefix, code, said in (
        ("abcdef", 2, "2 releases begin so"), ("abcdee", 2, "no release of this desk begins so"),
        ("abcdef01", 0, "20 people are left out"),
    ):  # fmt: skip
        Path("request.toml").write_text(request_of(leave_out=[prefix]).text())
        ran = cli(*RUN)
        assert (ran.code, said in words(ran.err)) == (code, True), ran.err
    assert certificate_of(Path("out.parquet")).left_out == ("abcdef01" + "0" * 24,)
    assert read_back(Path("out.parquet")).num_rows == 40
