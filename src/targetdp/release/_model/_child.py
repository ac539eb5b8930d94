"""What runs in the confined process: it is started anew, gives everything up, and only then reads a model.

There are two of them. One judges a model by its file. The other loads a model, and copies itself for every
chunk of rows: the copy computes row after row, and writes answers into memory that both have. If it crashes
or works too long on a row, that row is computed once more by a fresh copy; if that fails, too, the row has no
answer. So what is answered for a row depends on this row alone, and a failure costs milliseconds.

Messages are a number of bytes (64 bits) and these bytes; answers to a chunk are one float64 for each row.
"""

import gc
import importlib
import json
import math
import mmap
import os
import signal
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from targetdp.release._model import _confine
from targetdp.release._model._pipe import (
    KINDS,
    MOST_BYTES,
    MOST_CHUNK_BYTES,
    MOST_ROWS,
    read_exactly,
    receive,
    send,
    write_all,
)

ROW_SECONDS = 0.1
"""Time that the processor may spend on one row: far more than a model that was let in can need."""
ROOM = 1 << 30
"""Bytes that must be left when a model is loaded: several times what all that is made of a row may take. Were
memory short, it would depend on the rows before whether there is enough for one."""
WARM_UP = bytes.fromhex(
    "08083a3f0a100a017812017922084964656e746974791201675a130a0178120e0a0c080112080a0208010a02"
    "080162130a0179120e0a0c080112080a0208010a02080142040a00100d"
)
"""The smallest model: y is x. With it libraries load the last of their parts before nothing can be opened."""


def main(kind: str) -> None:
    """Give everything up, then judge or run the model that comes through the pipe."""
    try:
        _confine.begin()
        serve = _prepare_judge() if kind == "judge" else _prepare_run()
        ready = {"confined_by": _confine.confine()}
    except Exception as error:  # noqa: BLE001 (nothing was read yet: the other side says what is wrong here)
        send(1, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        return
    send(1, json.dumps(ready).encode())
    serve()
    os._exit(0)


def _prepare_judge() -> Callable[[], None]:
    from targetdp.release._model._judge import judge  # noqa: PLC0415 (its library is loaded here alone)

    importlib.import_module("numpy.ma")  # which numpy loads when it is first asked for what is unique
    judge(WARM_UP)

    def serve() -> None:
        _confine.forbid_copies()
        found = judge(receive(0, MOST_BYTES))
        graph = vars(found).pop("graph")
        send(1, json.dumps(vars(found)).encode())
        send(1, graph)

    return serve


def _prepare_run() -> Callable[[], None]:
    import numpy as np  # noqa: PLC0415 (loaded here alone, by the process that needs it)
    import onnxruntime  # noqa: PLC0415

    def load(data: bytes) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        # What runs is what was judged: no operator is replaced. Nothing of a row is kept for the next one.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.log_severity_level = 4
        # Numbers next to zero must not take a hundred times as long as others.
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    load(WARM_UP).run(None, {"x": np.zeros((1, 1), np.float32)})

    def serve() -> None:
        asked = json.loads(receive(0, MOST_BYTES))
        try:
            session = load(receive(0, MOST_BYTES))
            mmap.mmap(-1, ROOM, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
        except OSError:
            told = f"it leaves less than {ROOM >> 30} GiB of memory for rows; give one with fewer parts"
            send(1, json.dumps({"error": told}).encode())
            return
        except Exception as error:  # noqa: BLE001 (whatever the library raises: the file cannot be run)
            send(1, json.dumps({"error": str(error)[:500]}).encode())
            return
        send(1, json.dumps({}).encode())
        shared = np.frombuffer(mmap.mmap(-1, 8 * (MOST_ROWS + 1)), dtype=np.float64)
        gc.collect()
        gc.freeze()
        while True:
            try:
                (rows,) = struct.unpack("<Q", read_exactly(0, 8))
                chunk = receive(0, MOST_CHUNK_BYTES)
            except EOFError:
                return
            feeds, skipped = _feeds(asked["inputs"], chunk, rows)
            answers = shared[1 : rows + 1]
            answers[:] = math.nan
            _answer(session, asked["score"], feeds, skipped, answers, shared[:1])
            write_all(1, answers.tobytes())

    return serve


def _feeds(inputs: list[Any], chunk: bytes, rows: int) -> tuple[list[tuple[str, Any, Any]], Any]:
    """Of each input its name, a tensor of one row, and what is to be put into it for each row.

    The tensor is the same for all rows, and there is nothing of another row in or next to it.
    """
    import numpy as np  # noqa: PLC0415

    feeds: list[tuple[str, Any, Any]] = []
    at = 0

    def take(kind: str, number: int) -> Any:
        nonlocal at
        values = np.frombuffer(chunk, kind, number, at)
        at += values.nbytes
        return values

    for name, kind, width in inputs:
        if kind == "string":
            ends = take("<i8", rows + 1).tolist()
            texts = [chunk[at + start : at + stop].decode() for start, stop in pairwise(ends)]
            at += ends[-1]
            feeds.append((name, np.empty((1, 1), dtype=object), texts))
        else:
            values = take(KINDS[kind], rows * width).reshape(rows, width)
            feeds.append((name, np.empty((1, width), dtype=values.dtype), values))
    return feeds, take("|b1", rows)


def _answer(session: Any, score: str, feeds: Any, skipped: Any, answers: Any, at: Any) -> None:
    """Fill in the answers: rows without one stay as they are."""
    rows = len(answers)
    tensors = {name: tensor for name, tensor, _ in feeds}
    outputs = [score]

    def compute(first: int, stop: int) -> None:
        _confine.forbid_copies()
        for row in range(first, stop):
            at[0] = row
            if skipped[row]:
                continue
            # The signal ends this copy: work is counted in time of the processor, not of the clock.
            signal.setitimer(signal.ITIMER_PROF, ROW_SECONDS)
            for _, tensor, values in feeds:
                tensor[0] = values[row]
            try:
                answers[row] = session.run(outputs, tensors)[0].item(-1)
            except Exception:  # noqa: BLE001 (whatever the library raises is no answer)
                answers[row] = math.nan
        at[0] = stop

    first = 0
    while first < rows:
        _in_a_copy(compute, at, first, rows)
        # A copy that was not itself any more may have left anything there.
        failed = int(at[0]) if first <= at[0] <= rows else first
        if failed < rows:
            # This row failed after others: what it gets may depend on itself alone.
            answers[failed] = math.nan
            _in_a_copy(compute, at, failed, failed + 1)
        first = failed + 1


def _in_a_copy(compute: Callable[[int, int], None], at: Any, first: int, stop: int) -> None:
    """Run it in a copy of this process, and wait for its end, whatever it is."""
    at[0] = first
    copy = os.fork()
    if copy == 0:
        try:
            compute(first, stop)
        finally:
            os._exit(0)
    os.waitpid(copy, 0)
