"""Who does the work does not matter: every task once, errors come back, one thread of algebra everywhere."""

import os
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from support.tradeoff import TINY, finished_bytes, look, sweep
from targetdp._core import Silent, at_most, in_threads, processors
from targetdp.tradeoff import run
from targetdp.tradeoff._run import Backend, as_they_come


def fail(task: int) -> int:
    if task == 3:
        raise ArithmeticError("task 3")
    return task


@pytest.fixture
def two_algebra_threads() -> Iterator[None]:
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_algebra_threads")
@pytest.mark.parametrize(("jobs", "backend"), [(1, "loky"), (2, "loky"), (3, "threading"), (-1, "threading")])
def test_every_task_is_done_once_and_alone(
    jobs: int, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy  # noqa: F401, ICN001 (its linear algebra is looked at)

    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    tasks = list(range(10, 30))
    done = list(as_they_come(look, tasks, jobs=jobs, backend=backend))
    assert sorted(task for task, _ in done) == tasks
    assert all(task == result[0] for task, result in done)
    assert {pid for _, (_, pid, _, _) in done} == {os.getpid()} or (jobs, backend) == (2, "loky")
    assert {threads for _, (_, _, threads, _) in done} == {2 if jobs == 1 else 1}
    assert {count for _, (_, _, _, algebra) in done for count in algebra} == {1}
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}


def test_processes_are_other_ones() -> None:
    pids = {result[1] for _, result in as_they_come(look, list(range(8)), jobs=2)}
    assert os.getpid() not in pids


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_is_raised(jobs: int) -> None:
    with pytest.raises(ArithmeticError, match="task 3"):
        list(as_they_come(fail, list(range(6)), jobs=jobs, backend="threading"))


def test_a_backend_that_hands_back_everything_at_once_works_in_rounds() -> None:
    done = list(as_they_come(look, list(range(25)), jobs=2, backend="threading"))
    import joblib

    with pytest.MonkeyPatch.context() as patch:
        backend = joblib.parallel.BACKENDS["threading"]
        patch.setattr(backend, "supports_retrieve_callback", False)
        rounds = list(as_they_come(look, list(range(25)), jobs=2, backend="threading"))
    assert sorted(task for task, _ in rounds) == sorted(task for task, _ in done)
    assert [task for task, _ in rounds] == list(range(25))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"jobs": 0}, "jobs = 0 is outside"),
        ({"jobs": -2}, "jobs = -2 is outside"),
        ({"backend": "cloud"}, "backend = 'cloud' is not one of"),
        ({"address": "tcp://here"}, "address = 'tcp://here' is for backend dask or ray"),
    ],
)
def test_bad_input(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        list(as_they_come(look, [1], **given))


@pytest.mark.parametrize(
    ("backend", "package"), [("dask", "distributed"), ("ray", "ray"), ("spark", "joblibspark")]
)
def test_what_is_not_installed_is_named(backend: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=f"backend = '{backend}' needs .*: install it, or use loky"):
        list(as_they_come(look, [1], jobs=1, backend=backend))


@pytest.mark.skipif(find_spec("distributed") is None, reason="pip install 'dask[distributed]' to test it")
@pytest.mark.filterwarnings("ignore")  # of dask's own start and end
def test_dask_gives_the_same_bytes(tmp_path: Path) -> None:
    """With a scheduler that is running already; its workers are threads here, which start at once."""
    dask = import_module("distributed")
    alone = run(sweep(grid=TINY), tmp_path / "alone")
    with dask.LocalCluster(2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        together = run(sweep(grid=TINY), tmp_path / "together", jobs=2, backend="dask", address=address)
    assert together.computed == alone.computed
    assert finished_bytes(together.folder) == finished_bytes(alone.folder)


# Threads of one piece of work: `targetdp._core._kernels`


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert processors() == 8
    with at_most(3):
        assert processors() == 3
        with at_most(1):
            assert processors() == 1
        assert processors() == 3
    assert processors() == 8
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert processors() == 2
    with at_most(5):
        assert processors() == 2
    monkeypatch.setenv("NUMBA_NUM_THREADS", "")
    assert processors() == 8


def test_work_uses_no_more_threads_than_it_may() -> None:
    seen = set()

    def work(begin: int, end: int) -> None:
        seen.add(threading.get_ident())

    with at_most(1):
        in_threads(work, 50, 1, Silent())
    assert len(seen) == 1
