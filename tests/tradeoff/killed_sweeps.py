"""Run as a script: sweeps that are killed, by SIGKILL, at calls that touch the disk. Prints what happened.

Each run is forked from this process, which has imported everything and started no thread that is still there.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("replace", "fsync", "mkdir", "unlink")


def attempt(out: Path, die_at: int) -> bool:
    """Whether a run came to its end; otherwise it was killed at the so-manieth call."""
    pid = os.fork()
    if pid == 0:
        try:
            _watch(die_at)
            run(sweep(grid=TINY), out)
        except BaseException as error:  # noqa: BLE001
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


def _watch(die_at: int) -> None:
    count = 0

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def before(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            if count == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return call(*args, **kwargs)

        return before

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))


def main(place: Path) -> None:
    # The same folder again and again, each time killed one call later, until it ends.
    chain, kills = place / "chain", 0
    while not attempt(chain, kills):
        kills += 1
    # Once all parts are there: killed at each call of the end, then run once more.
    ends = 0
    for die_at in range(100):
        end = place / f"end-{die_at}"
        shutil.copytree(chain, end)
        for name in ("results", "summary", "timing"):
            (end / f"{name}.parquet").unlink()
        if attempt(end, die_at):
            break
        ends += 1
        assert attempt(end, -1)
    print(json.dumps({"kills": kills, "ends": ends}))  # noqa: T201


if __name__ == "__main__":
    from targetdp.tradeoff.runner import run
    from tradeoff_support import TINY, sweep

    folder = Path(sys.argv[1])
    run(sweep(grid=TINY), folder / "warm")  # loads compiled code once
    main(folder)
