"""Work on all processors: every row once, errors come back, progress adds up in the caller's thread."""

import threading
import time

import numpy as np
import pytest

from targetdp._core import Silent, in_threads


class Counted(Silent):
    """Progress that adds up, and remembers who told it."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.threads: set[int] = set()

    def advance(self, rows: int) -> None:
        self.told.append(rows)
        self.threads.add(threading.get_ident())


@pytest.mark.parametrize(("rows", "piece"), [(0, 5), (1, 5), (5, 5), (6, 5), (1000, 7), (1000, 5000), (3, 1)])
def test_all_rows_are_done_once(rows: int, piece: int) -> None:
    done, progress, longest = np.zeros(rows, dtype=int), Counted(), []

    def work(begin: int, end: int) -> None:
        done[begin:end] += 1
        longest.append(end - begin)

    in_threads(work, rows, piece, progress)
    assert (done == 1).all()
    assert sum(progress.told) == rows
    assert max(longest, default=0) <= piece
    assert len(longest) == -(-rows // piece)


def test_progress_is_weighted_and_told_in_the_calling_thread() -> None:
    progress = Counted()
    in_threads(lambda begin, end: None, 10, 4, progress, weight=3)
    assert sorted(progress.told) == [6, 12, 12]
    assert progress.threads == {threading.get_ident()}


def test_work_runs_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stretches that wait for each other: in one thread the second would never begin."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    together = threading.Barrier(2, timeout=30)

    def work(begin: int, end: int) -> None:
        together.wait()

    in_threads(work, 2, 1, Silent())
    assert not together.broken


def test_an_unknown_number_of_processors_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: None)
    seen = []
    in_threads(lambda begin, end: seen.append(begin), 4, 1, Silent())
    assert seen == [0, 1, 2, 3]


def test_the_first_error_is_raised_and_what_has_not_begun_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    begun, progress = [], Counted()

    def work(begin: int, end: int) -> None:
        begun.append(begin)
        time.sleep(0.001)
        if begin == 3:
            raise ArithmeticError("row 3")

    with pytest.raises(ArithmeticError, match="row 3"):
        in_threads(work, 2000, 1, progress)
    assert len(begun) < 2000
    assert sum(progress.told) < 2000


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()

    def work(begin: int, end: int) -> None:
        raise ValueError("no")

    for _ in range(5):
        with pytest.raises(ValueError, match="no"):
            in_threads(work, 10, 1, Silent())
    assert threading.active_count() == before


def test_errors_of_progress_stop_the_work() -> None:
    class Stopped(Silent):
        def advance(self, rows: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(lambda begin, end: None, 10, 1, Stopped())
