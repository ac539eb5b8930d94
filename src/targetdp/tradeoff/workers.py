"""Who does the work: this process, its threads, other processes, or other machines, all through joblib.

Guarantees: figures do not depend on it. Linear algebra runs in one thread wherever a unit is computed, since
the last bits of a product can depend on how many threads share it.
"""

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar

import joblib
from threadpoolctl import threadpool_limits

from targetdp import check
from targetdp.attacks.threads import at_most, processors

Backend = Literal["loky", "threading", "dask", "ray", "spark"]
BACKENDS: tuple[Backend, ...] = ("loky", "threading", "dask", "ray", "spark")
LOCAL: tuple[Backend, ...] = ("loky", "threading")

Task = TypeVar("Task")
Done = TypeVar("Done")

_PACKAGES = {"dask": "dask[distributed]", "ray": "ray", "spark": "joblibspark"}


def as_they_come(
    work: Callable[[Task], Done],
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    address: str | None = None,
) -> Iterator[tuple[Task, Done]]:
    """Every task with its result, in the order in which they are done; the first error is raised.

    ``jobs`` is how many tasks run at once (−1: one for each processor). ``address`` is that of a running dask
    scheduler or ray cluster; without it one is started on this machine.
    """
    check.choice("backend", backend, BACKENDS)
    if jobs != -1:
        check.integer("jobs", jobs, at_least=1, remedy="or -1 for one for each processor")
    if address is not None and backend not in {"dask", "ray"}:
        raise ValueError(f"address = {address!r} is for backend dask or ray: leave it out with {backend}")
    numbered = list(enumerate(tasks))
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1, user_api="blas"))
        if jobs == 1 and backend in LOCAL:
            for task in tasks:
                yield task, work(task)
            return
        at_once = processors() if jobs == -1 else jobs
        threads = max(1, processors() // at_once) if backend in LOCAL else 1
        stack.enter_context(_connected(backend, at_once, address))
        # Of a cluster joblib takes all workers for -1, however many processors are here.
        there = at_once if backend in LOCAL else joblib.effective_n_jobs(jobs)
        for number, done in _through_joblib(_Worker(work, threads, backend), numbered, there):
            yield tasks[number], done


class _Worker:
    """A task's work in a process of which we know nothing but whether it is this one."""

    def __init__(self, work: Callable[[Any], Any], threads: int, backend: Backend) -> None:
        self._work, self._threads = work, threads
        self._home, self._is_child = _here(), backend == "loky"

    def __call__(self, number: int, task: Any) -> tuple[int, Any]:
        if _here() != self._home:  # for good: other threads of a worker may be in the middle of a product
            threadpool_limits(1, user_api="blas")
            if self._is_child:
                _end_with_parent(self._home[1])
        with at_most(self._threads):
            return number, self._work(task)


def _through_joblib(
    does: _Worker, numbered: list[tuple[int, Any]], at_once: int
) -> Iterator[tuple[int, Any]]:
    # Arrays are sent as they are: as shared memory they would be read-only, which is another type to kernels.
    options: dict[str, Any] = {"n_jobs": at_once, "max_nbytes": None, "batch_size": 1}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs", **options)
    except ValueError:  # a backend that can only hand back everything at the end: in rounds, then
        for begin in range(0, len(numbered), 4 * at_once):
            round_ = numbered[begin : begin + 4 * at_once]
            yield from joblib.Parallel(**options)(joblib.delayed(does)(*one) for one in round_)
        return
    yield from parallel(joblib.delayed(does)(*one) for one in numbered)


@contextmanager
def _connected(backend: Backend, at_once: int, address: str | None) -> Iterator[None]:
    """Set joblib to a backend, which is started where it has to be and ended with the work."""
    with ExitStack() as stack:
        try:
            if backend == "dask":
                dask = import_module("distributed")
                here = {"n_workers": at_once, "threads_per_worker": 1, "dashboard_address": None}
                scheduler = address or stack.enter_context(dask.LocalCluster(**here))
                stack.enter_context(dask.Client(scheduler))
            elif backend == "ray":
                ray = import_module("ray")
                ray.init(address=address, num_cpus=None if address else at_once)
                stack.callback(ray.shutdown)
                import_module("ray.util.joblib").register_ray()
            elif backend == "spark":
                import_module("joblibspark").register_spark()
        except ImportError as error:
            raise ValueError(
                f"backend = {backend!r} needs {_PACKAGES[backend]} ({error}): install it, or use loky"
            ) from error
        stack.enter_context(joblib.parallel_config(backend=backend))
        yield


@cache
def _end_with_parent(parent: int) -> None:
    """A process that was started for the work does not outlive a killed parent, with all its memory."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _here() -> tuple[str, int]:
    return platform.node(), os.getpid()
