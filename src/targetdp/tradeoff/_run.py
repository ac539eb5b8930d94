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
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import joblib
import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from targetdp._core import Floats, Progress, Silent, at_most, check, processors
from targetdp.attacks import neighborhood
from targetdp.tradeoff import _results as results
from targetdp.tradeoff._sweep import Sweep, Unit, generator, simulate
from targetdp.tradeoff._sweep_folder import RESULTS, SUMMARY, TIMING, open_folder, part_name
from targetdp.tradeoff._technology import STATUS_QUO, Cell, Figure

Backend = Literal["loky", "threading", "dask", "ray", "spark"]
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
    check.choice("backend", backend, get_args(Backend))
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


# Run a sweep in a folder: what is there already is not done again, and the end is the same in any case.


@dataclass(frozen=True)
class Finished:
    """A finished sweep.

    Args:
        folder: Where its files are.
        sweep: What was computed.
        summary: Means and intervals: one row for each cell, metric and setting.
        timing: Seconds that each part of the work took.
        simulations: How many there are in all.
        computed: How many of them were run now; the others had been run before.

    Example:
        >>> from targetdp.tradeoff import find_sweep
        >>> empty = pa.table({})
        >>> done = Finished(Path("sweep"), find_sweep("togo"), empty, empty, simulations=120, computed=20)
        >>> done.simulations - done.computed
        100
    """

    folder: Path
    sweep: Sweep
    summary: pa.Table
    timing: pa.Table
    simulations: int
    computed: int

    @property
    def first_look(self) -> tuple[str, ...]:
        """Why its figures are a quick look only; empty if they are none."""
        return self.sweep.first_look


def run(
    sweep: Sweep,
    out: Path,
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    address: str | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Compute every cell and write `results.parquet`, `summary.parquet` and `timing.parquet` to a folder.

    Args:
        sweep: What is computed.
        out: A new or empty folder, or one in which a run of this very sweep was begun.
        jobs: How many simulations run at once; −1 for one on each processor.
        backend: Who does the work: processes (``"loky"``), threads, or a cluster of dask, ray or Spark.
        address: Of a running dask scheduler or ray cluster.
        progress: Whom to tell how far it is.

    Returns:
        The folder, the summary, and how many simulations were run now.

    Raises:
        ValueError: ``out`` holds something else, another run is at work there, or a cell of the grid is not
            possible on so many columns.

    Guarantees: results and summary have the same bytes however often the run was killed and started again,
    and for any number of workers, with the same software on processors of one kind. A folder that holds
    another sweep is refused.
    Edges: finished simulations are kept whatever happens; run again to go on.

    Example:
        >>> import tempfile
        >>> from targetdp.programs import Aid, Folds
        >>> from targetdp.tradeoff import Grid, Study
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
        >>> study = Study("small", "synthetic", ("calls", "texts"), X, Aid(X[:, 0], 0.3), Folds(40))
        >>> grid = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     finished = run(Sweep(study, grid, simulations=2), Path(folder) / "sweep")
        >>> finished.simulations
        3
    """
    watch = progress or Silent()
    known = _known(sweep)
    with open_folder(out, sweep) as place:
        units = list(sweep.units())
        kept = {unit.name: part for unit in units if (part := place.part(unit)) is not None}
        missing = [unit for unit in units if unit.name not in kept]
        simulations, computed = sum(map(len, units)), sum(map(len, missing))
        watch.phase("simulations", simulations)
        watch.advance(simulations - computed)
        work = partial(_simulate_unit, sweep)
        done = as_they_come(work, missing, jobs=jobs, backend=backend, address=address)
        for unit, part in done if missing else ():
            place.keep(part_name(unit), part)
            kept[unit.name] = part
            watch.advance(len(unit))
        parts: dict[str, list[pa.Table]] = {}
        for unit in units:
            parts.setdefault(unit.cell.name, []).append(kept[unit.name].combine_chunks())
        watch.phase("summary", None)
        figures = results.figures_of(sweep, parts, known)
        timing = results.timing(sweep, parts)
        finished = Finished(out, sweep, results.summary(sweep, figures), timing, simulations, computed)
        place.keep(RESULTS, results.results(sweep, figures))
        place.keep(TIMING, finished.timing)
        place.keep(SUMMARY, finished.summary)  # last: whoever finds it finds all
    return finished


def _simulate_unit(sweep: Sweep, unit: Unit) -> pa.Table:
    """What a worker does: all simulations of a unit, each compared with the status quo."""
    study, cell, first = sweep.study, unit.cell, sweep.cells[0]
    assert first.name == STATUS_QUO  # noqa: S101 (every grid begins with it)
    mechanism = cell.build(study.dimensions)
    today = study.run(study.X, generator(sweep.seed, first, 0, "program"))
    simulated = [
        simulate(study, cell, mechanism, today, number, seed=sweep.seed, draws=sweep.draws(cell))
        for number in range(unit.begin, unit.end)
    ]
    return results.part_of(unit, simulated)


def _known(sweep: Sweep) -> dict[str, pa.Table]:
    """What is known of each cell without a simulation. Cells that cannot be are refused first."""
    noise = {cell.name: _derived(cell, sweep.study.dimensions) for cell in sweep.cells}
    crowds = {B: _crowd(sweep.study.X, B) for B in dict.fromkeys(cell.B for cell in sweep.cells)}
    return {cell.name: results.derived((*noise[cell.name], *crowds[cell.B])) for cell in sweep.cells}


def _derived(cell: Cell, dimensions: int) -> tuple[Figure, ...]:
    """What the noise alone tells; a cell that cannot be is refused here, before any work."""
    try:
        return cell.technology.derive(cell, dimensions)
    except ValueError as error:
        raise ValueError(f"cell {cell.name!r} is not possible on {dimensions} columns: {error}") from error


CROWD = "crowd"
"""The metric; its settings are ``typical`` (the median number of others within B), ``alone`` (the share of
people who have nobody there) and ``looked_at`` (of how many people that was counted)."""

_LOOKED_AT = 5_000
"""People of a large table for whom others are counted, among everyone."""


def _crowd(X: Floats, B: float | None) -> tuple[Figure, ...]:
    """What a distance means on the table, always the same for the same rows; nothing without a distance."""
    if B is None:
        return ()
    around = neighborhood(X, B, people=min(_LOOKED_AT, len(X)), rng=np.random.default_rng(0))
    known = {"typical": around.typical, "alone": around.alone, "looked_at": float(len(around.crowd))}
    return tuple(Figure(CROWD, setting, value) for setting, value in known.items())
