"""A damaged desk is refused or says what it said before; nothing that was spent is forgotten."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from support.faults import count, mutated, some, times
from support.release import cli
from support.staged import RUN, clean_up, drawn, keep, place, put_back, room_for, states
from support.zygote import Zygote
from targetdp.mechanisms import GaussianNoise
from targetdp.release import Desk, Limit, secret_key
from targetdp.release._certificate._charge import Charge

CHARGE = Charge(law=GaussianNoise(B=0.25, epsilon=1.0, delta=1e-5).law(3), scales=None)
TITLE = {"guarantee": {"B": 0.25, "epsilon": 1.0, "delta": 1e-5}}


@pytest.fixture
def folder(tmp_path: Path, zygote: Zygote) -> Path:
    """A desk whose ledger has releases in every state; ``kept`` beside it is a copy."""
    made = place(tmp_path / "place", 40)
    assert zygote.run(made, *RUN).code == 0
    for name in ("killed", "freed"):
        assert reserve(made, name)
    with Desk.open(made / "desk").ledger() as ledger:
        ledger.free("freed", "nothing was drawn")
    keep(made, tmp_path / "kept")
    return made


def test_a_damaged_ledger_or_mark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    rng, kept, desk = random.Random("ledger"), folder.with_name("kept"), ("--desk", folder / "desk")
    before, said = states(folder), cli("ledger", "show", *desk, "--json").out
    assert sorted(before.values()) == ["published", "reserved", "voided"]
    certificate = kept / "out.parquet.certificate.json"
    outcomes = set()
    for number in range(times("mutations: ledger")):
        name = "ledger.db.head" if number % 4 == 3 else "ledger.db"
        put_back(folder, kept)
        damaged = folder / "desk" / name
        damaged.write_bytes(mutated(damaged.read_bytes(), rng))
        shown = cli("ledger", "show", *desk, "--json")
        verified = cli("ledger", "verify", *desk, certificate)
        assert "Traceback" not in shown.err + verified.err
        assert shown.code in {0, 2, 3}, shown.err
        assert verified.code in {0, 1, 2, 3}, verified.err
        assert (verified.code == 0) == (shown.code == 0), "what can be read is sound"
        if shown.code == 0:
            assert shown.out == said
        else:
            assert shown.err.startswith("error: ")
        assert cli("status", *desk).code == shown.code
        taken = reserve(folder, "after")
        if taken:
            assert shown.code == 0
            assert states(folder) == before | {"after": "reserved"}
        outcomes.add((shown.code, taken))
        count("mutations: ledger", "the same answer" if shown.code == 0 else "refused")
    assert outcomes & {(2, False), (3, False)}


def reserve(folder: Path, release: str) -> bool:
    """Whether a release could be reserved."""
    try:
        desk = Desk.open(folder / "desk")
        with desk.ledger() as ledger:
            people = np.arange(3, dtype=np.uint64)
            ledger.reserve(release, CHARGE, Limit.of(desk.policy), people, TITLE)
    except (ValueError, OSError):
        return False
    return True


def test_a_damaged_list_of_people(zygote: Zygote, folder: Path) -> None:
    """Without it nobody knows who has spent what: nothing more is released."""
    rng, kept = random.Random("people"), folder.with_name("kept")
    names = [path.name for path in (kept / "desk" / "people").iterdir()]
    counted = [release for release, state in states(folder).items() if state != "voided"]
    again = tuple("again.parquet" if word == "out.parquet" else word for word in RUN)
    for number in range(times("mutations: people")):
        put_back(folder, kept)
        path = folder / "desk" / "people" / names[number % len(names)]
        path.write_bytes(mutated(path.read_bytes(), rng))
        ended, verified = zygote.run(folder, *again), zygote.run(folder, "ledger", "verify")
        assert "Traceback" not in ended.words + verified.words
        if path.stem in counted:
            assert (ended.code, verified.code) == (2, 1)
            assert "is not the file that the ledger has on record" in ended.err
            assert not (folder / "again.parquet").exists()
        else:
            assert (ended.code, verified.code) == (0, 0), "nobody is asked for who was freed"
        count("mutations: people", "refused" if ended.code else "not needed")
    (folder / "desk" / "people" / f"{counted[0]}.tags").unlink()
    assert zygote.run(folder, "status").code == 2


DESK = ("desk.json", "policy.toml", "scales.toml", "keys/tags.key", "keys/signing.pem")


@pytest.mark.parametrize("name", DESK)
def test_a_damaged_desk(zygote: Zygote, folder: Path, name: str) -> None:
    """Policy or scales may say another thing now, which is theirs; but never is a key another one."""
    rng, kept = random.Random(name), folder.with_name("kept")
    again = tuple("again.parquet" if word == "out.parquet" else word for word in RUN)
    for _ in range(times("mutations: desk") // len(DESK)):
        put_back(folder, kept)
        path = folder / "desk" / name
        path.write_bytes(mutated(path.read_bytes(), rng))
        path.chmod(0o600)
        before = states_or_none(folder)
        ended = zygote.run(folder, *again)
        assert "Traceback" not in ended.words, ended.words
        assert ended.code in {0, 2}, ended.words
        if ended.code == 2:
            assert not (folder / "again.parquet").exists()
            assert states_or_none(folder) == before
        elif name == "keys/tags.key":
            assert secret_key(path) == secret_key(kept / "desk" / name), "or everybody would be somebody else"
        count("mutations: desk", "refused" if ended.code else "as it now says")


def states_or_none(folder: Path) -> dict[str, str] | None:
    try:
        return states(folder)
    except ValueError:
        return None


def test_damaged_draws_are_not_gone_on_with(zygote: Zygote, tmp_path: Path) -> None:
    """A run died after its first draw, and then what it drew from was damaged: never another noise for it."""
    rng, folder = random.Random("draws"), place(tmp_path / "place", 40, limit=room_for(2))
    kept = keep(folder, tmp_path / "kept")
    calls = zygote.run(folder, *RUN).calls
    for die_at in range(calls * 2 // 3, 0, -1):
        put_back(folder, kept)
        zygote.run(folder, *RUN, die_at=die_at)
        if (begun := drawn(folder)) and not (folder / "out.parquet").exists():
            break
    (release,) = begun
    killed = keep(folder, tmp_path / "killed")
    assert zygote.run(folder, *RUN).code == 0
    whole = (folder / "out.parquet").read_bytes()
    for number in range(times("mutations: draws")):
        put_back(folder, killed)
        path = folder / "desk" / "drafts" / release / ("secret" if number % 2 else "drawn")
        path.write_bytes(mutated(path.read_bytes(), rng))
        ended = zygote.run(folder, *RUN)
        assert "Traceback" not in ended.words, ended.words
        assert states(folder)[release] != "voided", "noise was drawn: it is never free"
        known = states(folder)
        if ended.code == 0 and known[release] == "published":
            assert (folder / "out.parquet").read_bytes() == whole or path.name == "secret"
            outcome = "finished"
        elif ended.code == 0:
            assert list(known.values()) == ["reserved", "published"]
            outcome = "charged anew"
        else:
            assert ended.code == 2, ended.words
            assert not (folder / "out.parquet").exists()
            outcome = "refused"
        count("mutations: draws", outcome)


def names_in(folder: Path) -> list[str]:
    """All but the lock of a dead run."""
    return sorted(path.name for path in folder.rglob("*") if path.suffix != ".lock")


def test_a_damaged_journal_throws_nothing_away(zygote: Zygote, tmp_path: Path) -> None:
    """A run died while it replaced an older release; then the journal that says so was damaged."""
    rng, folder = random.Random("journal"), place(tmp_path / "place", 40)
    assert zygote.run(folder, *RUN).code == 0
    calls = zygote.run(folder, *RUN, "--force").calls
    kept = keep(folder, tmp_path / "kept")
    stages = []
    journal = Path(".out.parquet.targetdp", "journal.json")
    for die_at in some(range(calls * 2 // 3, calls), 7):
        put_back(folder, kept)
        zygote.run(folder, *RUN, "--force", die_at=die_at)
        if (folder / journal).exists() and (folder / journal.parent / "old").exists():
            stages.append(keep(folder, tmp_path / f"stage-{die_at}"))
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
