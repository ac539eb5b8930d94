"""A model's scores for the rows of a table: one row at a time, where there is nothing to give away."""

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, check
from targetdp.release._model._columns import check_columns, chunk_of, rows_in_chunk
from targetdp.release._model._file import ModelFile
from targetdp.release._model._process import ConfinedProcess, plain

PERIOD = 5
"""Seconds: a release with a model is published at whole numbers of them after its start."""
MARGIN = 10
"""Seconds for everything that is not the model's work."""
_MOST_STARTS = 20
"""How often the process of one chunk is started before it is said that this machine keeps ending it."""


class ModelRunner:
    """Runs a model on rows: on real ones nothing is refused.

    Use it as a context manager: it starts its processes, and ends them.

    Args:
        model: From `read_model`.
        columns: Names of the columns that the model is given, in their order.
        jobs: How many processes share the rows; None: one for each processor. Scores do not depend on it.

    Attributes:
        without_answer: How many rows had no answer so far. For the data holder's eyes only.
        seconds: How long all rows so far have taken. For the data holder's eyes only.
        confined_by: By which means processes are confined here.

    Raises:
        ValueError: The model does not take these columns.

    Guarantees: a row's score is made of this row alone, whatever the model does with other rows, however
    rows are divided among processes, and whatever other rows lead to.
    """

    def __init__(self, model: ModelFile, columns: Sequence[str], *, jobs: int | None = None) -> None:
        self.model, self.columns = model, tuple(columns)
        check_columns(model, self.columns)
        self.jobs = (os.cpu_count() or 1) if jobs is None else check.integer("jobs", jobs, at_least=1)
        self.without_answer, self.seconds, self.confined_by = 0, 0.0, ""
        self._idle: SimpleQueue[ConfinedProcess] = SimpleQueue()
        self._processes: list[ConfinedProcess] = []

    def __enter__(self) -> "ModelRunner":
        for _ in range(self.jobs):
            self._idle.put(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.close()
        self._processes.clear()

    def scores(self, rows: pa.RecordBatch | pa.Table) -> Floats:
        """The score of each row.

        Args:
            rows: A table that has the model's columns; others are not looked at.

        Returns:
            One number for each row. NaN: the row has no answer, as the model fails on it, works too long or
            gives what is no number; or it has a gap where the model takes a whole number, or too long a text.

        Raises:
            ValueError: Names or types of columns are not what the model takes.
            OSError: This machine keeps ending the processes: memory may be short.
        """
        if not self._processes:
            raise RuntimeError(
                "a ModelRunner runs inside its with statement: write with ModelRunner(…) as runner"
            )
        begun = time.monotonic()
        check_columns(self.model, self.columns, rows.schema)
        table = pa.table(rows) if isinstance(rows, pa.RecordBatch) else rows
        table = table.select(list(self.columns))
        size = rows_in_chunk(self.model)
        chunks = [table.slice(start, size) for start in range(0, table.num_rows, size)]
        with ThreadPoolExecutor(self.jobs) as pool:
            found = list(pool.map(self._scores, chunks))
        scores = np.concatenate(found) if found else np.empty(0)
        scores[~np.isfinite(scores)] = np.nan
        self.without_answer += int(np.count_nonzero(np.isnan(scores)))
        self.seconds += time.monotonic() - begun
        return scores

    def _scores(self, rows: pa.Table) -> Floats:
        """Of one chunk, by whichever process is idle."""
        chunk = chunk_of(self.model, self.columns, rows)
        process = self._idle.get()
        try:
            for _ in range(_MOST_STARTS):
                try:
                    return np.frombuffer(process.ask(rows.num_rows, chunk), dtype="<f8").copy()
                except EOFError:
                    # Rows are run in copies of this process: what ends it has nothing to do with a row.
                    process.close()
                    self._processes.remove(process)
                    process = self._start()
        finally:
            self._idle.put(process)
        raise OSError(f"the process that runs the model was ended {_MOST_STARTS} times: is memory short?")

    def _start(self) -> ConfinedProcess:
        process = ConfinedProcess("run")
        self._processes.append(process)
        inputs = [(one.name, one.kind, one.width) for one in self.model.inputs]
        try:
            process.tell(json.dumps({"inputs": inputs, "score": self.model.score}).encode())
            process.tell(self.model.graph)
            loaded = process.reply()
        except EOFError:
            loaded = {"error": "the process ended while it was loaded"}
        if "error" in loaded:
            self.__exit__(None, None, None)
            raise ValueError(f"the model cannot be loaded ({plain(loaded['error'])}): convert it again")
        self.confined_by = process.confined_by
        return process


def publication_moment(rows: int, microseconds: int, *, seconds_taken: float = 0.0) -> int:
    """When a release with a model is published: how long after its start, in seconds.

    How long a model works may depend on people's values. So the moment is made of the number of rows and of
    the policy alone: the time that the policy gives to all rows and a fixed margin. A model
    that was let in needs less. If the machine was so slow that it took longer, it is the next whole number of
    such times.

    Args:
        rows: That all models together are given, those of the look before included.
        microseconds: For a row, by the policy.
        seconds_taken: How long the release has taken until it could be published.

    Returns:
        Seconds after the start.

    Example:
        >>> publication_moment(5_000_000, 100), publication_moment(2_000, 100)
        (510, 15)
        >>> publication_moment(2_000, 100, seconds_taken=121)
        135
    """
    check.integer("rows", rows, at_least=0)
    check.integer("microseconds", microseconds, at_least=1)
    whole = -(-(rows * microseconds + MARGIN * 1_000_000) // 1_000_000)
    moment = -(-whole // PERIOD) * PERIOD
    return moment * max(1, -(-int(np.ceil(seconds_taken)) // moment))
