"""Killed while a desk is made, changed, or told something: all of it or nothing, and nothing becomes free."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.faults import FAULTS, count, some
from support.release import ASKED, certificate_of, hidden, people, write_parquet
from support.staged import (
    RUN,
    clean_up,
    forget,
    keep,
    lists_of_people,
    place,
    put_back,
    release_that_is_there,
    room_for,
    stage_of,
    states,
)
from support.zygote import Zygote
from targetdp._core import Words
from targetdp.release import Desk, Limit, NoDeskError, known_desks, tags_in

# Making a desk, and changing its policy


def test_a_desk_is_made_whole_or_not_at_all(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 60)
    shutil.rmtree(folder / "desk")
    kept = keep(folder, tmp_path / "kept")
    init = ("init", "in.parquet", "--scales", "scales.toml")
    whole = zygote.run(folder, *init)
    assert whole.code == 0, whole.words
    outcomes = set()
    for die_at in some(range(whole.calls), 30):
        put_back(folder, kept)
        zygote.run(folder, *init, die_at=die_at)
        made = (folder / "desk").exists()
        again = zygote.run(folder, *init)
        assert again.code == (2 if made else 0), again.words
        assert not made or "there is a desk already" in again.err
        desk = Desk.open(folder / "desk")
        assert desk.policy.id.column == "name"
        assert zygote.run(folder, "privatize", "in.parquet", "out.parquet", *ASKED).code == 0
        assert desk.id in {own for own, _ in known_desks()}, "whoever releases from it knows it"
        assert release_that_is_there(folder) is not None
        assert hidden(folder) == []
        elsewhere = zygote.run(folder, *init, "--desk", "another")
        assert (elsewhere.code, "another desk of yours" in elsewhere.err) == (2, True), elsewhere.words
        outcomes.add(made)
        count("kills at calls: init", "made" if made else "not made")
    assert outcomes == {False, True}
    put_back(folder, kept)
    with pytest.raises(NoDeskError):
        Desk.open(folder / "desk")


def test_a_policy_is_changed_for_all_or_for_none(zygote: Zygote, tmp_path: Path) -> None:
    """The change goes on record with the next release, whichever of its runs was killed."""
    folder = place(tmp_path / "place", 60, limit=room_for(1))
    assert zygote.run(folder, *RUN).code == 0
    forget(folder)
    policy = folder / "desk" / "policy.toml"
    wider = policy.read_text().replace(str(room_for(1)[1]), str(room_for(2)[1]))
    policy.write_text(wider)
    refused = zygote.run(folder, *RUN)
    assert (refused.code, "say why, at the top of the file" in refused.err) == (2, True)
    policy.write_text('reason = "a second survey"\n' + wider)
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    seen = set()
    for die_at in some(range(calls), 25):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        with Desk.open(folder / "desk").ledger() as ledger:
            versions = {ledger.history.policy_version}
        clean_up(zygote, folder)
        with Desk.open(folder / "desk").ledger() as ledger:
            assert ledger.history.policy_version == 2
            assert ledger.history.policy is not None
            assert ledger.history.policy.reason == "a second survey"
        assert [s for s in states(folder).values() if s != "voided"] == ["published"] * 2
        c = certificate_of(folder / "out.parquet")
        assert c.desk.policy == 2
        refused = zygote.run(folder, *RUN, "--force")
        assert (refused.code, "the limit would be passed" in refused.err) == (7, True), "room for two"
        count("kills at calls: policy", "on record" if 2 in versions else "not yet")
        seen |= versions
    assert seen == {1, 2}


def test_how_often_a_desk_is_killed() -> None:
    """Of every stage of a release, of a new desk, of a changed policy, of what the ledger is told."""
    kills = [fault for name, fault in FAULTS.items() if "kills" in name and "tradeoff" not in name]
    assert sum(fault.sample for fault in kills) >= 200
    assert sum(fault.whole for fault in kills) >= 500


@pytest.mark.parametrize("command", ["rotate", "replace"])
def test_a_key_is_changed_whole_or_not_at_all(zygote: Zygote, tmp_path: Path, command: str) -> None:
    folder = place(tmp_path / "place", 60)
    assert zygote.run(folder, *RUN).code == 0
    old = Desk.open(folder / "desk").key.public
    if command == "replace":
        (folder / "desk" / "keys" / "signing.pem").unlink()
    change = ("key", command, "--reason", "once a year")
    kept = keep(folder, tmp_path / "kept")
    whole = zygote.run(folder, *change)
    assert whole.code == 0, whole.words
    outcomes = set()
    for die_at in some(range(whole.calls), 15):
        put_back(folder, kept)
        ended = zygote.run(folder, *change, die_at=die_at)
        assert ended.killed or ended.code == 0, ended.words
        desk = Desk.open(folder / "desk")
        with desk.ledger(without_key=True) as ledger:
            assert ledger.verify() == []
            changed = ledger.reading.key != old
            if changed or command == "rotate":
                assert desk.key.public == ledger.reading.key
        if command == "replace":
            again = zygote.run(folder, *change)
            assert again.code == (2 if changed else 0), again.words
        made = zygote.run(folder, *RUN, "--force")
        assert made.code == 0, made.words
        assert release_that_is_there(folder) is not None
        assert hidden(folder / "desk") == []
        assert zygote.run(folder, "key", "rotate", "--reason", "again").code == 0
        assert sorted(p.name for p in (folder / "desk" / "keys").iterdir()) == [
            "pseudonyms.key", "signing.pem", "tags.key",
        ]  # fmt: skip
        outcomes.add(changed)
        count("kills at calls: keys", "changed" if changed else "not changed")
    assert outcomes == {False, True}


# Telling the ledger


def spent(folder: Path) -> float:
    """The share of the limit that whoever spent most has spent; the ledger is sound."""
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        assert ledger.verify() == []
        return ledger.standing(Limit.of(desk.policy)).spending.spent


def lists_with(folder: Path, tags: Words) -> list[str]:
    """The files of the desk's people that name somebody, whole or not, on record or not."""
    return [
        path.name
        for path in (folder / "desk" / "people").iterdir()
        if any(tag.tobytes() in path.read_bytes() for tag in tags.astype("<u8"))
    ]


def test_people_are_erased_from_every_list_and_nothing_is_free(zygote: Zygote, tmp_path: Path) -> None:
    """Also from the list of a run that was killed before its charge; who comes back has spent it all."""
    folder = place(tmp_path / "place", 60, limit=room_for(2))
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    for die_at in range(calls):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if stage_of(folder, set()) == "list of people":
            break
    (left,) = lists_of_people(folder)
    first = Desk.open(folder / "desk")
    for name in ("one.parquet", "two.parquet"):
        made = zygote.run(folder, *(name if a == "out.parquet" else a for a in RUN), "--force")
        assert made.code == 0, made.words
    assert left not in lists_of_people(folder), "the next run removes it"
    gone, table = ["000003", "000014", "000041"], pa.table(people(60))
    (folder / "gone.csv").write_text("name\n" + "\n".join(gone) + "\n", encoding="utf-8")
    back = table.filter(np.isin(table["name"].to_pylist(), gone))
    write_parquet(folder / "back.parquet", back)
    tags = tags_in(first.names(), folder / "gone.csv", None)
    again = ("privatize", "back.parquet", "back-out.parquet", *RUN[3:], "--new-people", "they came back")
    erase = ("ledger", "erase", "gone.csv", "--reason", "they asked")
    before, kept = spent(folder), keep(folder, tmp_path / "released")
    whole = zygote.run(folder, *erase)
    assert (whole.code, lists_with(folder, tags)) == (0, []), whole.words
    outcomes = set()
    for die_at in some(range(whole.calls), 30):
        put_back(folder, kept)
        ended = zygote.run(folder, *erase, die_at=die_at)
        assert ended.killed or ended.code == 0, ended.words
        with first.ledger() as ledger:
            done = all(row.everybody for row in ledger.history.releases.values())
        named = lists_with(folder, tags)
        assert done or len(named) >= 2, "a list is removed when there is another one on record"
        assert spent(folder) == pytest.approx(before)
        refused = zygote.run(folder, *again)
        assert (refused.code, "the limit would be passed" in refused.err) == (7, True), refused.words
        assert zygote.run(folder, *erase).code == 0
        assert lists_with(folder, tags) == []
        assert spent(folder) == pytest.approx(before)
        refused = zygote.run(folder, *again)
        assert (refused.code, "the limit would be passed" in refused.err) == (7, True), refused.words
        assert hidden(folder / "desk" / "people") == []
        outcomes.add((done, bool(named)))
        count("kills at calls: ledger", "erased" if done else "not erased")
    assert outcomes == {(False, True), (True, True), (True, False)}, "before, between and after"


def test_what_was_lost_with_a_backup_is_charged_whenever_resuming_is_killed(
    zygote: Zygote, tmp_path: Path
) -> None:
    """Two releases fill the limit; the desk is brought back as it was after the first."""
    folder = place(tmp_path / "place", 60, limit=room_for(2))
    assert zygote.run(folder, *RUN).code == 0
    backup = shutil.copytree(folder / "desk", tmp_path / "backup")
    second = tuple("second.parquet" if a == "out.parquet" else a for a in RUN)
    third = tuple("third.parquet" if a == "out.parquet" else a for a in RUN)
    assert zygote.run(folder, *second).code == 0
    lost = release_that_is_there(folder, "second.parquet")
    shutil.rmtree(folder / "desk")
    shutil.copytree(backup, folder / "desk")
    resume = ("ledger", "resume", "--reason", "the disk broke")
    kept = keep(folder, tmp_path / "kept")
    whole = zygote.run(folder, *resume)
    assert whole.code == 0, whole.words
    outcomes = set()
    for die_at in some(range(whole.calls), 20):
        put_back(folder, kept)
        ended = zygote.run(folder, *resume, die_at=die_at)
        assert ended.killed or ended.code == 0, ended.words
        refused = zygote.run(folder, *third)
        resumed = "the limit would be passed" in refused.err
        assert refused.code == (7 if resumed else 2), refused.words
        assert resumed or "is damaged" in refused.err, refused.words
        again = zygote.run(folder, *resume)
        assert again.code == (2 if resumed else 0), again.words
        assert states(folder)[str(lost)] == "lost"
        assert spent(folder) <= 1
        refused = zygote.run(folder, *third)
        assert (refused.code, "the limit would be passed" in refused.err) == (7, True), refused.words
        assert not (folder / "third.parquet").exists()
        outcomes.add(resumed)
        count("kills at calls: ledger", "resumed" if resumed else "not resumed")
    assert outcomes == {False, True}


def test_what_is_withdrawn_stays_charged_whenever_it_is_killed(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 60, limit=room_for(1))
    assert zygote.run(folder, *RUN).code == 0
    release = str(release_that_is_there(folder))
    withdraw = ("ledger", "withdraw", release, "--reason", "a mistake")
    before, kept = spent(folder), keep(folder, tmp_path / "kept")
    whole = zygote.run(folder, *withdraw)
    assert whole.code == 0, whole.words
    outcomes = set()
    for die_at in some(range(whole.calls), 12):
        put_back(folder, kept)
        zygote.run(folder, *withdraw, die_at=die_at)
        with Desk.open(folder / "desk").ledger() as ledger:
            done = ledger.release(release).withdrawn is not None
        assert zygote.run(folder, *withdraw).code == (2 if done else 0)
        assert spent(folder) == before
        refused = zygote.run(folder, *RUN, "--force")
        assert (refused.code, "the limit would be passed" in refused.err) == (7, True), refused.words
        assert release_that_is_there(folder) == release
        outcomes.add(done)
        count("kills at calls: ledger", "withdrawn" if done else "not withdrawn")
    assert outcomes == {False, True}
