"""Keys of tests: the same in every run, never twice in one, and real ones in a forked process."""

import os
import threading

import pytest

from support.steady_keys import REAL, SteadyKeys


def draw(keys: SteadyKeys, whose: str, count: int) -> list[bytes]:
    with keys.of(whose):
        return [keys.draw() for _ in range(count)]


@pytest.fixture(autouse=True)
def no_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REAL, raising=False)


def test_the_same_whatever_else_is_drawn() -> None:
    one, other = SteadyKeys(), SteadyKeys()
    draw(other, "somebody else", 7)
    mine = draw(one, "mine", 5)
    assert len(set(mine)) == 5
    assert draw(other, "mine", 5) == mine
    assert not set(draw(one, "yours", 5)) & set(mine)


def test_a_fixtures_keys_do_not_move_the_tests() -> None:
    keys = SteadyKeys()
    with keys.of("test"):
        first = keys.draw()
        draw(keys, "fixture", 3)
        second = keys.draw()
    assert [first, second] == draw(keys, "test", 2)


def test_threads_never_share_one() -> None:
    keys, found = SteadyKeys(), []
    threads = [threading.Thread(target=lambda: found.extend(draw_some(keys))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 400


def draw_some(keys: SteadyKeys) -> list[bytes]:
    return [keys.draw() for _ in range(100)]


def test_real_ones_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = SteadyKeys()
    here = draw(keys, "test", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)  # as in a process that was forked
        assert draw(keys, "test", 1) != here
    assert draw(keys, "test", 1) == here
    monkeypatch.setenv(REAL, "1")
    assert draw(keys, "test", 1) != here
