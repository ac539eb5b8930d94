"""Two and ten processes at one desk, some of them killed: the limit holds, and nothing is forgotten."""

import random
import shutil
from pathlib import Path

import pytest

from support.faults import WHOLE, count, times
from support.release import hidden, holds, words
from support.staged import RUN, nothing_is_left_of_the_dead, place, room_for, states
from support.zygote import Harm, Zygote
from targetdp.release import Desk, Limit
from targetdp.release._trust._keys import config_folder


def asks(number: int) -> list[tuple[str, ...]]:
    """So many releases, each to a file of its own."""
    return [tuple(f"out-{i}.parquet" if a == "out.parquet" else a for a in RUN) for i in range(number)]


def is_within_the_limit(folder: Path) -> bool:
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        return ledger.standing(Limit.of(desk.policy)).spending.fits


@pytest.mark.parametrize("turn", range(5 if WHOLE else 1))
@pytest.mark.parametrize(("processes", "fit"), [(2, 1), (10, 3)])
def test_as_many_publish_as_the_limit_has_room_for(
    zygote: Zygote, tmp_path: Path, turn: int, processes: int, fit: int
) -> None:
    folder = place(tmp_path / "place", 200, limit=room_for(fit))
    done = zygote.together(folder, *asks(processes))
    assert sorted(ended.code for ended in done if ended.code is not None) == [0] * fit + [7] * (
        processes - fit
    )
    for i, ended in enumerate(done):
        output = folder / f"out-{i}.parquet"
        assert "Traceback" not in ended.words
        assert output.exists() == (ended.code == 0)
        if ended.code == 0:
            assert holds(output)
        else:
            assert "of what one person may spend" in words(ended.err)
    assert [state for state in states(folder).values() if state != "voided"] == ["published"] * fit
    assert is_within_the_limit(folder)
    assert hidden(folder) == []
    count("crowd", f"of {processes}, {fit} published")


def test_some_of_ten_are_killed(zygote: Zygote, tmp_path: Path) -> None:
    """Whoever was killed after its first draw is charged for it, once; the same commands finish all ten."""
    rng, killed, turn = random.Random(10), 0, 0
    wanted = times("random kills: ten at a desk")
    while killed < wanted:
        turn += 1
        shutil.rmtree(config_folder(), ignore_errors=True)  # the same people, at somebody else's desk
        folder = place(tmp_path / str(turn), 200, limit=(0.25, 40.0, 1e-3))
        deaths = min(5, wanted - killed)
        runs = asks(10)
        harms = [Harm(die_at=rng.randrange(100)) for _ in range(deaths)] + [Harm()] * (10 - deaths)
        done = zygote.harmed(folder, runs, harms)
        assert not any("Traceback" in ended.words for ended in done)
        # All ask for the same: who finds that one of the dead has begun it goes on with it, one at a time.
        wait = "is being made by another run: wait for it"
        assert all(e.code == 0 or (e.code == 6 and wait in words(e.err)) for e in done if not e.killed)
        known = states(folder)
        outputs = [folder / f"out-{i}.parquet" for i in range(10)]
        published = [path for path in outputs if path.exists()]
        assert len(published) <= len(known)
        assert sum(state == "published" for state in known.values()) >= sum(e.code == 0 for e in done)
        assert all(map(holds, published))
        assert is_within_the_limit(folder)
        # Once more, one by one: what was published is told to the ledger, what was begun is finished.
        for run in runs:
            assert zygote.run(folder, *run).code == 0
        assert all(map(holds, outputs))
        after = states(folder)
        assert [state for state in after.values() if state != "voided"] == ["published"] * 10
        assert all(after[release] == "published" for release, state in known.items() if state == "published")
        nothing_is_left_of_the_dead(folder)
        dead = sum(ended.killed for ended in done)
        killed += dead
        count("random kills: ten at a desk", "the others unharmed", dead)
