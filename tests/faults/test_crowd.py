"""Two and ten processes at one desk, some of them killed: the limit holds, and nothing is forgotten."""

import random
from pathlib import Path

import pytest

from support.faults import WHOLE, count, times
from support.release import hidden, holds, words
from support.staged import ROOM, RUN, drawn, nothing_is_left_of_the_dead, place, room_for, states
from support.zygote import Harm, Zygote
from targetdp.release import Desk


def asks(number: int) -> list[tuple[str, ...]]:
    """So many releases, each to a file of its own."""
    return [
        tuple(f"out-{i}.parquet" if word == "out.parquet" else word for word in RUN) for i in range(number)
    ]


def spent(folder: Path) -> float:
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        return ledger.standing(desk.policy.limit.value()).spent


@pytest.mark.parametrize("turn", range(5 if WHOLE else 1))
@pytest.mark.parametrize(("processes", "fit"), [(2, 1), (10, 3)])
def test_as_many_publish_as_the_limit_has_room_for(
    zygote: Zygote, tmp_path: Path, turn: int, processes: int, fit: int
) -> None:
    folder = place(tmp_path / "place", 200, limit=room_for(fit))
    done = zygote.together(folder, *asks(processes))
    codes = sorted(ended.code for ended in done if ended.code is not None)
    assert codes == [0] * fit + [2] * (processes - fit)
    for i, ended in enumerate(done):
        assert "Traceback" not in ended.words
        assert (folder / f"out-{i}.parquet").exists() == (ended.code == 0)
        if ended.code == 0:
            assert holds(folder / f"out-{i}.parquet")
        else:
            for number in ("requested ε", "remaining", f"limit {ROOM[fit]:g}"):
                assert number in words(ended.err)
    assert [state for state in states(folder).values() if state != "voided"] == ["published"] * fit
    assert spent(folder) <= ROOM[fit]
    assert hidden(folder) == []
    nothing_is_left_of_the_dead(folder)
    count("crowd", f"of {processes}, {fit} published")


def test_some_of_ten_are_killed(zygote: Zygote, tmp_path: Path) -> None:
    """Whoever was killed after its first draw is charged for it, and one of the next runs finishes it."""
    rng, killed, turn = random.Random(10), 0, 0
    wanted = times("random kills: ten on a ledger")
    while killed < wanted:
        turn += 1
        folder = place(tmp_path / str(turn), 200, limit=(0.25, 40.0, 1e-3))
        deaths = min(5, wanted - killed)
        runs = asks(10)
        harms = [Harm(die_at=rng.randrange(70)) for _ in range(deaths)] + [Harm()] * (10 - deaths)
        done = zygote.harmed(folder, runs, harms)
        assert not any("Traceback" in ended.words for ended in done)
        assert all(ended.code in {0, 2} for ended in done if not ended.killed), [ended.err for ended in done]
        assert spent(folder) <= 40
        fresh, begun = states(folder), drawn(folder)
        published = [path for i in range(10) if (path := folder / f"out-{i}.parquet").exists()]
        assert len(published) <= len(fresh)
        assert list(fresh.values()).count("published") >= sum(ended.code == 0 for ended in done)
        assert all(map(holds, published))
        # Once more, each to its own output: what was published is told to the ledger, what was begun is
        # finished, the rest is freed, and nothing stays hidden.
        again = zygote.together(folder, *runs)
        assert all(ended.code in {0, 2} for ended in again), [ended.err for ended in again]
        zygote.run(folder, *RUN)
        nothing_is_left_of_the_dead(folder)
        now = states(folder)
        assert all(now[release] == "published" for release in begun), "paid for once, and used"
        assert all(
            now[release] in {state, "published"} for release, state in fresh.items() if state != "reserved"
        )
        assert "reserved" not in now.values()
        assert spent(folder) <= 40
        dead = sum(ended.killed for ended in done)
        killed += dead
        count("random kills: ten on a ledger", "the others unharmed", dead)
