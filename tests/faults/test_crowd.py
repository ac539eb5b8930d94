"""Two and ten processes on one ledger, some of them killed: the limit holds, and nothing is forgotten."""

import random
from pathlib import Path

import pytest

from support.faults import WHOLE, count, times
from support.release import ASKED, cli, hidden, holds, table_of, words, write_parquet, write_scales
from support.zygote import Harm, Zygote
from targetdp.release import Ledger

BOOK = ("--ledger", "ledger.db", "--population", "people")


def place(folder: Path, monkeypatch: pytest.MonkeyPatch, epsilon: str) -> None:
    monkeypatch.chdir(folder)
    write_parquet(Path("in.parquet"), table_of(200))
    write_scales(Path("scales.toml"))
    limit = ("--B", "0.25", "--epsilon", epsilon, "--delta", "1e-3")
    assert cli("ledger", "limit", *BOOK, *limit).code == 0


def asks(number: int) -> list[tuple[str, ...]]:
    """So many releases, each to a file of its own."""
    asked = (*ASKED, "--delta", "1e-5", "--scales", "scales.toml", "--mechanism", "gaussian", *BOOK)
    return [("privatize", "in.parquet", f"out-{i}.parquet", *asked) for i in range(number)]


@pytest.mark.parametrize("turn", range(5 if WHOLE else 1))
@pytest.mark.parametrize(("processes", "epsilon", "fit"), [(2, "3.6", 1), (10, "6.2", 3)])
def test_as_many_publish_as_the_limit_has_room_for(
    zygote: Zygote,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    turn: int,
    processes: int,
    epsilon: str,
    fit: int,
) -> None:
    place(tmp_path, monkeypatch, epsilon)
    done = zygote.together(tmp_path, *asks(processes))
    assert sorted(ended.code for ended in done if ended.code is not None) == [0] * fit + [2] * (
        processes - fit
    )
    for i, ended in enumerate(done):
        assert "Traceback" not in ended.words
        assert Path(f"out-{i}.parquet").exists() == (ended.code == 0)
        if ended.code == 0:
            assert holds(Path(f"out-{i}.parquet"))
        else:
            assert "this release is refused" in words(ended.err)
    ledger = Ledger.existing("ledger.db")
    assert ledger.verify() == []
    assert [row.state for row in ledger.releases() if row.counts] == ["published"] * fit
    assert ledger.standing("people").spent <= float(epsilon)
    assert hidden(tmp_path) == []
    count("crowd", f"of {processes}, {fit} published")


def test_some_of_ten_are_killed(zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was killed after its reservation is charged for it, until the data holder says otherwise."""
    rng, killed, turn = random.Random(10), 0, 0
    wanted = times("random kills: ten on a ledger")
    while killed < wanted:
        turn += 1
        folder = tmp_path / str(turn)
        folder.mkdir()
        place(folder, monkeypatch, "40")
        ledger = Ledger.existing("ledger.db")
        deaths = min(5, wanted - killed)
        runs = asks(10)
        harms = [Harm(die_at=rng.randrange(20)) for _ in range(deaths)] + [Harm()] * (10 - deaths)
        done = zygote.harmed(folder, runs, harms)
        assert not any("Traceback" in ended.words for ended in done)
        assert all(ended.code in {0, 2} for ended in done if not ended.killed), [ended.err for ended in done]
        assert ledger.verify() == []
        assert ledger.standing("people").spent <= 40
        fresh = ledger.releases()
        published = [path for i in range(10) if (path := Path(f"out-{i}.parquet")).exists()]
        assert len(published) <= len(fresh)
        assert sum(row.state == "published" for row in fresh) >= sum(ended.code == 0 for ended in done)
        assert all(map(holds, published))
        assert all(row.counts for row in fresh if row.state == "reserved")
        # Once more, each to its own output: what was published is told to the ledger, nothing stays hidden.
        again = zygote.together(folder, *runs)
        assert all(ended.code in {0, 2} for ended in again), [ended.err for ended in again]
        assert [name for name in hidden(folder) if not name.startswith(".ledger.db.head.")] == []
        states = {row.release: row.state for row in ledger.releases()}
        assert all(states[row.release] in {row.state, "published"} for row in fresh)
        dead = sum(ended.killed for ended in done)
        killed += dead
        count("random kills: ten on a ledger", "the others unharmed", dead)
