"""Damaged files of a desk are refused or say what they said before; nothing that was spent is forgotten."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from support.faults import count, mutated, some, times
from support.ledgers import EVERYBODY, gaussian
from support.release import cli, hidden, read_back, values_of, words
from support.staged import (
    RUN,
    clean_up,
    drawn,
    forget,
    place,
    put_back,
    release_that_is_there,
    room_for,
    states,
)
from support.zygote import Zygote
from targetdp.release import Desk


@pytest.fixture
def kept(tmp_path: Path, zygote: Zygote) -> Path:
    """A desk with releases in every state."""
    folder = place(tmp_path / "made", 40)
    assert zygote.run(folder, *RUN).code == 0
    for name in ("killed", "voided"):
        assert reserve(folder, name)
    with Desk.open(folder / "desk").ledger() as ledger:
        ledger.free("voided", "nothing was drawn")
    return folder.rename(tmp_path / "kept")  # a desk's copy is refused while it is where it was


def reserve(folder: Path, release: str) -> bool:
    """Whether a release could be reserved."""
    try:
        desk = Desk.open(folder / "desk")
        with desk.ledger() as ledger:
            ledger.reserve(release, gaussian(), desk.policy.limit.value(), EVERYBODY, {"rows": 10})
    except (ValueError, OSError):
        return False
    return True


def test_a_damaged_ledger_or_mark(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, folder = random.Random("ledger"), tmp_path / "damaged"
    folder.mkdir()
    put_back(folder, kept)
    before, said = states(folder), cli("ledger", "show", "--desk", folder / "desk", "--json").out
    assert sorted(before.values()) == ["published", "reserved", "voided"]
    certificate = kept / "out.parquet.certificate.json"
    outcomes = set()
    for number in range(times("mutations: ledger")):
        name = "ledger.db.head" if number % 4 == 3 else "ledger.db"
        put_back(folder, kept)
        file = folder / "desk" / name
        file.write_bytes(mutated(file.read_bytes(), rng))
        monkeypatch.chdir(folder)
        shown = cli("ledger", "show", "--json")
        verified = cli("ledger", "verify", certificate)
        assert "Traceback" not in shown.err + verified.err
        assert shown.code in {0, 2, 3}, shown.err
        assert verified.code in {0, 1, 2, 3}, verified.err
        assert (verified.code == 0) == (shown.code == 0), "what can be read is sound"
        if shown.code == 0:
            assert shown.out == said
        else:
            assert shown.err.startswith("error: ")
        taken = reserve(folder, "after")
        if taken:
            assert shown.code == 0
            assert states(folder) == before | {"after": "reserved"}
        outcomes.add((shown.code, taken))
        count("mutations: ledger", "the same answer" if shown.code == 0 else "refused")
        monkeypatch.chdir(tmp_path)
    assert outcomes & {(2, False), (3, False)}


def test_a_damaged_list_of_people(zygote: Zygote, tmp_path: Path, kept: Path) -> None:
    """Without it nobody knows who has spent what."""
    rng, folder = random.Random("people"), tmp_path / "damaged"
    folder.mkdir()
    put_back(folder, kept)
    counted = [release for release, state in states(folder).items() if state != "voided"]
    for number in range(times("mutations: people")):
        put_back(folder, kept)
        forget(folder)
        file = folder / "desk" / "people" / f"{counted[number % 2]}.tags"
        whole, before = file.read_bytes(), ledger_bytes(folder)
        file.write_bytes(mutated(whole, rng))
        verified = zygote.run(folder, "ledger", "verify")
        assert (verified.code, str(file.name) in verified.out) == (1, True), verified.words
        for run in (RUN, (*RUN, "--check")):
            ended = zygote.run(folder, *run)
            assert (ended.code, "Traceback" in ended.words) == (2, False), ended.words
            assert "is not the file that the ledger has on record" in words(ended.err)
        assert not (folder / "out.parquet").exists()
        assert ledger_bytes(folder) == before
        assert hidden(folder) == []
        file.write_bytes(whole)
        assert zygote.run(folder, *RUN).code == 0, "it was the damage"
        count("mutations: people", "refused")


@pytest.mark.parametrize("name", ["tags.key", "pseudonyms.key", "signing.pem"])
def test_a_key_that_is_another_one_is_refused(zygote: Zygote, tmp_path: Path, name: str) -> None:
    """By other tags nobody would be known again, and all would have a whole budget."""
    rng, folder = random.Random(f"keys {name}"), place(tmp_path / "place", 40, pseudonyms=True)
    assert zygote.run(folder, *RUN).code == 0
    before = read_back(folder / "out.parquet")["name"]
    kept = shutil.copytree(folder, tmp_path / "kept")
    for number in range(times("mutations: keys") // 3):
        put_back(folder, kept)
        forget(folder)
        file, entries = folder / "desk" / "keys" / name, ledger_bytes(folder)
        whole = file.read_bytes()
        file.write_bytes(_another_digit(whole) if number == 0 else mutated(whole, rng))
        ended = zygote.run(folder, *RUN)
        assert "Traceback" not in ended.words
        if ended.code == 0:  # such as a space more
            assert number > 0
            assert release_that_is_there(folder) is not None
            assert read_back(folder / "out.parquet")["name"] == before
            with Desk.open(folder / "desk").ledger() as ledger:
                assert ledger.people_of(one := ledger.history.counted[0]).size == 40
                assert {row.people for row in ledger.history.counted} == {one.people}, "the same people"
        else:
            assert ended.code == 2, ended.words
            assert name in ended.err or "signed by the key" in ended.err
            assert not (folder / "out.parquet").exists()
            assert ledger_bytes(folder) == entries
            file.write_bytes(whole)
            assert zygote.run(folder, *RUN).code == 0, "it was the damage"
        count("mutations: keys", "the same key" if ended.code == 0 else "refused")


def _another_digit(key: bytes) -> bytes:
    """A key file that is as good as any, in hex or in PEM."""
    place = 40
    return key[:place] + (b"7" if key[place : place + 1] != b"7" else b"8") + key[place + 1 :]


def ledger_bytes(folder: Path) -> bytes:
    return (folder / "desk" / "ledger.db").read_bytes()


def test_damaged_draws_never_give_a_second_noise(zygote: Zygote, tmp_path: Path) -> None:
    """Of what a killed run had begun comes the noise that it would have had, or none ever."""
    rng, folder = random.Random("draws"), place(tmp_path / "place", 40, limit=room_for(2))
    kept = shutil.copytree(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    stages = []
    for die_at in some(range(calls // 2, calls), 12):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if (begun := drawn(folder)) and not (folder / "out.parquet").exists():
            stage = shutil.copytree(folder, tmp_path / f"stage-{die_at}")
            assert zygote.run(folder, *RUN).code == 0
            stages.append((stage, min(begun), values_of(read_back(folder / "out.parquet"))))
    assert len(stages) >= 2
    outcomes = set()
    for number in range(times("mutations: draws")):
        stage, release, noisy = stages[number % len(stages)]
        put_back(folder, stage)
        file = folder / "desk" / "drafts" / release / ("drawn" if number % 3 == 2 else "secret")
        file.write_bytes(mutated(file.read_bytes(), rng))
        ended = zygote.run(folder, *RUN)
        assert (ended.code in {0, 2}, "Traceback" in ended.words) == (True, False), ended.words
        outcome = "another release"
        if ended.code == 2:
            assert "its noise was drawn for other rows" in words(ended.err)
            assert not (folder / "desk" / "drafts" / release).exists()
            assert states(folder) == {release: "reserved"}, "it stays charged"
            assert zygote.run(folder, *RUN).code == 0, "a new release, a new charge"
            outcome = "refused, then another release"
        there, found = release_that_is_there(folder), values_of(read_back(folder / "out.parquet"))
        if there == release:
            assert np.array_equal(found, noisy), "the same noise"
            assert states(folder) == {release: "published"}
            outcome = "the same release"
        else:
            assert not np.any(found == noisy)
            assert states(folder) == {release: "reserved", there: "published"}
        outcomes.add(outcome)
        count("mutations: draws", outcome)
    assert "the same release" in outcomes
    assert len(outcomes) > 1


def names_in(folder: Path) -> list[str]:
    """All but the lock of a dead run."""
    return sorted(path.name for path in folder.rglob("*") if path.suffix != ".lock")


def test_a_damaged_journal_throws_nothing_away(zygote: Zygote, tmp_path: Path) -> None:
    """A run died while it replaced an older release; then the journal that says so was damaged."""
    rng, folder = random.Random("journal"), place(tmp_path / "place", 40)
    assert zygote.run(folder, *RUN).code == 0
    calls = zygote.run(folder, *RUN, "--force").calls
    kept = shutil.copytree(folder, tmp_path / "kept")
    stages = []
    journal = Path(".out.parquet.targetdp", "journal.json")
    for die_at in some(range(calls * 2 // 3, calls), 7):
        put_back(folder, kept)
        zygote.run(folder, *RUN, "--force", die_at=die_at)
        if (folder / journal).exists() and (folder / journal.parent / "old").exists():
            stages.append(shutil.copytree(folder, tmp_path / f"stage-{die_at}"))
    assert len(stages) >= 3, "before, between and after the renames"
    for number in range(times("mutations: journal")):
        put_back(folder, stages[number % len(stages)])
        whole = (folder / journal).read_bytes()
        damaged = mutated(whole, rng)
        (folder / journal).write_bytes(damaged)
        there = names_in(folder)
        ended = zygote.run(folder, *RUN)
        assert ended.code == 2, ended.words
        if "journal.json is damaged" in " ".join(ended.words.split()):
            assert names_in(folder) == there
            (folder / journal).write_bytes(whole)
            count("mutations: journal", "refused, then put right")
        else:  # such as a space more
            assert json.loads(damaged) == json.loads(whole)
            count("mutations: journal", "the same answer")
        clean_up(zygote, folder)
