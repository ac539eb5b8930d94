"""Killed at any moment: nothing half-published, nothing lost, nothing free; the next run puts it right."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from support.faults import count, some, times
from support.release import ENOUGH, certificate_of, hidden, holds, read_back, write_parquet
from support.staged import (
    RUN,
    STAGES,
    clean_up,
    drawn,
    keep,
    nothing_is_left_of_the_dead,
    place,
    put_back,
    release_that_is_there,
    room_for,
    stage_of,
    states,
)
from support.zygote import Ended, Harm, Zygote

CHAINED = 5
"""A run may finish after so many kills at random moments (every call has its own kill besides)."""


@pytest.mark.parametrize("force", [False, True], ids=["a new release", "an older release is replaced"])
def test_it_survives_a_kill_at_every_call_that_touches_the_disk(
    zygote: Zygote, tmp_path: Path, force: bool
) -> None:
    """The limit has room for no more than is published: nothing may be charged twice, or to the dead."""
    folder = place(tmp_path / "place", 100, limit=room_for(2 if force else 1))
    run = (*RUN, "--force") if force else RUN
    older = None
    stages = set()
    if force:
        assert zygote.run(folder, *RUN).code == 0
        older = release_that_is_there(folder)
    kept = keep(folder, tmp_path / "kept")
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    assert whole.calls > 60, "the run was watched"
    outcomes = []
    for die_at in some(range(whole.calls), 40):
        put_back(folder, kept)
        ended = zygote.run(folder, *run, die_at=die_at)
        if not ended.killed:  # the last calls differ a little from run to run
            assert ended.code == 0, ended.words
        visible, begun = release_that_is_there(folder), drawn(folder)
        stages.add(stage := stage_of(folder, {older or ""}))
        assert len(begun) <= 1
        published = visible not in {None, older}
        again = zygote.run(folder, *run)
        there = release_that_is_there(folder)
        assert there is not None
        if published:
            assert (again.code, there) == (7 if force else 0, visible), again.words
            outcomes.append("published")
        else:
            assert again.code == 0, again.words
            assert there not in {None, older}
            assert not begun or begun == {there}, "what noise was drawn for is finished, and no other one"
            outcomes.append("finished" if begun else "begun anew")
        assert {release for release, state in states(folder).items() if state != "voided"} == {
            release for release in (older, there) if release is not None
        }
        assert set(states(folder).values()) <= {"published", "voided"}
        nothing_is_left_of_the_dead(folder)
        count("kills at calls: privatize", stage)
    assert set(outcomes) == {"published", "finished", "begun anew"}
    assert stages == set(STAGES), "killed at every stage"


def test_a_run_that_is_gone_on_with_repeats_its_noise(zygote: Zygote, tmp_path: Path) -> None:
    """Also with private scales, which are drawn first; on other rows it is refused, and its secret erased."""
    folder = place(tmp_path / "place", ENOUGH, limit=room_for(1), scales="private")
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    seen = 0
    for die_at in some(range(calls // 3, calls), 12):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        begun = drawn(folder)
        if not begun or (folder / "out.parquet").exists():
            continue
        seen += 1
        killed = keep(folder, tmp_path / f"killed-{die_at}")
        tables, scales = [], []
        for _ in range(2):
            put_back(folder, killed)
            assert zygote.run(folder, *RUN).code == 0
            c = certificate_of(folder / "out.parquet")
            assert {c.release} == begun
            tables.append(read_back(folder / "out.parquet"))
            scales.append(c.scales.values)
        assert tables[0] == tables[1], "the same noise"
        assert scales[0] == scales[1]
        assert states(folder) == {c.release: "published"}, "one charge"
    assert seen > 3


def test_draws_are_never_used_for_other_rows(zygote: Zygote, tmp_path: Path) -> None:
    folder = place(tmp_path / "place", 100, limit=room_for(2))
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    for die_at in range(calls * 2 // 3, 0, -1):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if (begun := drawn(folder)) and not (folder / "out.parquet").exists():
            break
    (release,) = begun
    table = read_back(folder / "in.parquet")
    moved = table.set_column(1, "calls", [[value + 1 for value in table["calls"].to_pylist()]])
    write_parquet(folder / "in.parquet", moved)
    ended = zygote.run(folder, *RUN)
    assert ended.code == 2
    assert "its noise was drawn for other rows" in " ".join(ended.err.split())
    assert states(folder) == {release: "reserved"}, "it stays charged"
    assert not (folder / "desk" / "drafts" / release).exists()
    assert zygote.run(folder, *RUN).code == 0, "a new release, a new charge"
    assert sorted(states(folder).values()) == ["published", "reserved"]
    assert release_that_is_there(folder) != release
    assert zygote.run(folder, *RUN, "--force").code == 7, "the limit had room for two"


def test_it_survives_kills_at_random_moments(zygote: Zygote, tmp_path: Path) -> None:
    rng = random.Random(20)
    folder = place(tmp_path / "place", 20_000)
    zygote.run(folder, *RUN)
    begin = time.monotonic()
    assert zygote.run(folder, *RUN, "--force").code == 0
    takes = time.monotonic() - begin
    killed, before = 0, release_that_is_there(folder)
    published = {None, before}
    while killed < times("random kills: privatize"):
        ended: Ended = zygote.run(folder, *RUN, "--force", kill_after=rng.uniform(0.05, 1.1) * takes)
        killed += ended.killed
        there = release_that_is_there(folder)
        if ended.killed:
            count("random kills: privatize", "not published" if there in published else "published")
        published.add(there)
        if killed % CHAINED == 0:
            published.add(clean_up(zygote, folder))
    published.add(clean_up(zygote, folder))
    assert zygote.run(folder, *RUN, "--force").code == 0
    known = states(folder)
    assert before in known
    assert published - {None} <= set(known), "the ledger knows all that anyone ever saw"
    assert not any(known[name] == "voided" for name in published - {None} if name)
    assert "reserved" not in known.values(), "whatever was begun is finished or free"
    assert sorted(p.name for p in folder.iterdir()) == [
        "desk", "in.parquet", "out.parquet", "out.parquet.certificate.json", "out.parquet.certificate.md",
        "request.toml", "scales.toml",
    ]  # fmt: skip


def test_directories_survive_kills_around_publication(zygote: Zygote, tmp_path: Path) -> None:
    """The last half of all calls, where an older directory of parts is replaced."""
    folder = place(tmp_path / "place", 100, limit=room_for(2))
    run = tuple("out" if a == "out.parquet" else a for a in RUN)
    whole = zygote.run(folder, *run)
    assert whole.code == 0, whole.words
    kept = keep(folder, tmp_path / "kept")
    before = certificate_of(folder / "out").release
    calls = zygote.run(folder, *run, "--force").calls
    for die_at in some(range(calls // 2, calls), 15):
        put_back(folder, kept)
        zygote.run(folder, *run, "--force", die_at=die_at)
        if (folder / "out").exists():
            assert holds(folder / "out")
        assert zygote.run(folder, *run).code == 0, "a whole release is there again"
        assert holds(folder / "out")
        assert hidden(folder) == []
        after = certificate_of(folder / "out").release
        assert states(folder)[after] == "published"
        assert after == before or states(folder)[before] == "published"
        count("kills at calls: privatize", "not published" if after == before else "published")
        if after == before:
            assert zygote.run(folder, *run, "--force").code == 0, "it is finished, or begun anew"
            assert holds(folder / "out")
            assert (
                sorted(state for state in states(folder).values() if state != "voided") == ["published"] * 2
            )


def test_a_release_that_was_published_and_not_settled_is_another_one_elsewhere(
    zygote: Zygote, tmp_path: Path
) -> None:
    """Its noise may not go out twice under two hashes, of which the ledger would know one."""
    folder = place(tmp_path / "place", 100)
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    for die_at in range(calls // 2, calls):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if release_that_is_there(folder) is not None:
            break
    first = release_that_is_there(folder)
    assert list(states(folder).values()) == ["reserved"]
    elsewhere = tuple("out.csv" if a == "out.parquet" else a for a in RUN)
    assert zygote.run(folder, *elsewhere).code == 0
    second = release_that_is_there(folder, "out.csv")
    assert second != first
    assert clean_up(zygote, folder) == first
    assert states(folder) == {first: "published", second: "published"}


def test_a_release_that_was_begun_may_be_finished_under_another_name(zygote: Zygote, tmp_path: Path) -> None:
    """Where the first place was full, say; nothing is left there for anybody to go on with."""
    folder = place(tmp_path / "place", 100, limit=room_for(1))
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    for die_at in range(calls * 2 // 3, 0, -1):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if (begun := drawn(folder)) and not (folder / "out.parquet").exists():
            break
    assert zygote.run(folder, *("out.csv" if a == "out.parquet" else a for a in RUN)).code == 0
    assert {release_that_is_there(folder, "out.csv")} == begun
    ended = zygote.run(folder, *RUN)
    assert (ended.code, "the limit would be passed" in ended.err) == (7, True)
    nothing_is_left_of_the_dead(folder)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_at_any_call_it_tidies_up_and_tells_the_truth(
    zygote: Zygote, tmp_path: Path, by: signal.Signals
) -> None:
    """What nothing was drawn for is free, in the same run; what noise was drawn for is finished later."""
    folder = place(tmp_path / "place", 100, limit=room_for(1))
    kept = keep(folder, tmp_path / "kept")
    whole = zygote.run(folder, *RUN)
    code, word = (143, "terminated") if by is signal.SIGTERM else (130, "interrupted")
    endings = set()
    for die_at in some(range(whole.calls), 40):
        put_back(folder, kept)
        ended = zygote.run(folder, *RUN, harm=Harm(die_at=die_at, die_of=by))
        there, known, said = release_that_is_there(folder), states(folder), ended.err
        if there is not None:
            assert (ended.code, "IS published" in said) in {(4, True), (0, False)}
            assert "Nothing was published" not in said
            assert clean_up(zygote, folder) == there
            endings.add("published")
            continue
        assert ended.code == code, ended.words
        assert said.splitlines()[-1].startswith(f"{word}. ")
        assert "Nothing was published" in said
        assert hidden(folder) == []
        if begun := drawn(folder):
            assert f"Noise was drawn: release {min(begun)[:12]} stays charged" in said
            assert "run the same command again" in said
            endings.add("drawn")
        else:
            assert set(known.values()) <= {"voided"}, "freed by the run itself"
            assert ("Nothing was drawn: the release is not charged" in said) or not known
            endings.add("freed" if known else "before the charge")
        assert zygote.run(folder, *RUN).code == 0
        assert not begun or begun == {release_that_is_there(folder)}
    assert endings == {"before the charge", "freed", "drawn", "published"}


@pytest.mark.parametrize(
    ("by", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interrupt_cleans_up_and_says_so(
    tmp_path: Path, zygote: Zygote, by: signal.Signals, code: int, word: str
) -> None:
    folder = place(tmp_path / "place", 400_000)
    ended = zygote.run(folder, *RUN, interrupt_at=folder / ".out.parquet.targetdp", by=by)
    assert (ended.code, ended.err) == (code, f"{word}. Nothing was published\n")
    assert hidden(folder) == []
    assert not (folder / "out.parquet").exists()
    assert states(folder) == {}, "it looked at the table, and had charged nothing"
    shutil.rmtree(folder)
