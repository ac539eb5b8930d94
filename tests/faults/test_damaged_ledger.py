"""A damaged ledger is refused or says what it said before; nothing that was spent is forgotten."""

import json
import random
import shutil
from pathlib import Path

import pytest

from support.faults import count, mutated, some, times
from support.release import cli
from support.staged import RUN, clean_up, place, put_back
from support.zygote import Zygote
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Ledger, SigningKey, default_key_path
from targetdp.release._certificate._charge import Charge

BOOK = ("--ledger", "ledger.db")


@pytest.fixture
def kept(tmp_path: Path, zygote: Zygote) -> Path:
    """A ledger with a limit and releases in every state."""
    folder = place(tmp_path / "kept", 40, zygote)
    assert zygote.run(folder, *RUN).code == 0
    ledger = Ledger(folder / "ledger.db", SigningKey.open(default_key_path()))
    for name in ("killed", "voided"):
        ledger.reserve("other", name, CHARGE)
    ledger.void("voided", "nothing was published")
    return folder


CHARGE = Charge(law=GaussianNoise(B=0.25, epsilon=1.0, delta=1e-5).law(3))


def states(folder: Path) -> dict[str, str]:
    return {row.release: row.state for row in Ledger.existing(folder / "ledger.db").releases()}


def test_a_damaged_ledger_or_mark(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, folder = random.Random("ledger"), tmp_path / "damaged"
    folder.mkdir()
    before, said = states(kept), cli("ledger", "show", "--ledger", kept / "ledger.db", "--json").out
    assert sorted(before.values()) == ["published", "reserved", "voided"]
    certificate = kept / "out.parquet.certificate.json"
    outcomes = set()
    for number in range(times("mutations: ledger")):
        name = "ledger.db.head" if number % 4 == 3 else "ledger.db"
        put_back(folder, kept)
        (folder / name).write_bytes(mutated((folder / name).read_bytes(), rng))
        monkeypatch.chdir(folder)
        shown = cli("ledger", "show", *BOOK, "--json")
        verified = cli("ledger", "verify", *BOOK, certificate)
        assert "Traceback" not in shown.err + verified.err
        assert shown.code in {0, 2, 3}, shown.err
        assert verified.code in {0, 1, 2, 3}, verified.err
        assert (verified.code == 0) == (shown.code == 0), "what can be read is sound"
        if shown.code == 0:
            assert shown.out == said
        else:
            assert shown.err.startswith("error: ")
        taken = reserve(folder)
        if taken:
            assert shown.code == 0
            assert states(folder) == before | {"after": "reserved"}
            assert Ledger.existing(folder / "ledger.db").verify() == []
        outcomes.add((shown.code, taken))
        count("mutations: ledger", "the same answer" if shown.code == 0 else "refused")
        monkeypatch.chdir(tmp_path)
    assert outcomes & {(2, False), (3, False)}


def reserve(folder: Path) -> bool:
    """Whether a release could be reserved."""
    try:
        ledger = Ledger.existing(folder / "ledger.db", SigningKey.open(default_key_path()))
        ledger.reserve("people", "after", CHARGE)
    except (ValueError, OSError):
        return False
    return True


def names_in(folder: Path) -> list[str]:
    """All but the lock of a dead run."""
    return sorted(path.name for path in folder.rglob("*") if path.suffix != ".lock")


def test_a_damaged_journal_throws_nothing_away(zygote: Zygote, tmp_path: Path) -> None:
    """A run died while it replaced an older release; then the journal that says so was damaged."""
    rng, folder = random.Random("journal"), place(tmp_path / "place", 40, zygote)
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
