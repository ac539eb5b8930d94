"""Run as a script: sweeps that are killed, by SIGKILL, at calls that touch the disk and at random moments.

Prints what happened.

Each run is forked from this process, which has imported everything and started no thread that is still there.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("replace", "fsync", "mkdir", "unlink")


def attempt(out: Path, die_at: int, kill_after: float | None = None) -> bool:
    """Whether a run came to its end; otherwise it was killed at some call, or after some seconds."""
    pid = os.fork()
    if pid == 0:
        try:
            _watch(die_at)
            run(sweep(grid=TINY), out)
        except BaseException as error:  # noqa: BLE001
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)  # until it is waited for, the id is its own
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


def killed_at_random(place: Path, kills: int) -> int:
    """How many folders it took: in each, runs are killed until one of them comes to its end."""
    rng, begin = random.Random(60), time.monotonic()
    assert attempt(place / "timed", -1)
    takes, folders = time.monotonic() - begin, 0
    while kills > 0:
        folders += 1
        while not attempt(place / f"random-{folders}", -1, rng.uniform(0.02, 1.1) * takes):
            kills -= 1
    return folders


def main(place: Path, kills_at_random: int) -> None:
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
    folders = killed_at_random(place, kills_at_random)
    print(json.dumps({"kills": kills, "ends": ends, "folders": folders}))  # noqa: T201


if __name__ == "__main__":
    from support.tradeoff import TINY, sweep
    from targetdp.tradeoff import run

    folder = Path(sys.argv[1])
    run(sweep(grid=TINY), folder / "warm")  # loads compiled code once
    main(folder, int(sys.argv[2]))
