"""Every reader meets inputs that grow out of true files and look for new branches (atheris).

`make fuzz` installs atheris and runs this for a minute each; without it a test is skipped, and says so.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.fuzz_readers import BOUND, READERS, file_of, only_value_errors, true_policy
from support.release import ASKED, cli, request_of, table_of, write_csv
from support.staged import place
from support.tradeoff import files
from targetdp.release import SigningKey, certificate_path

pytestmark = pytest.mark.skipif(
    find_spec("atheris") is None and os.environ.get("TARGETDP_REQUIRE_ATHERIS") != "1",
    reason="atheris is not installed: make fuzz",
)

SECONDS = int(os.environ.get("TARGETDP_FUZZ_SECONDS", "3"))
FUZZER = Path(__file__).with_name("guided.py")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A true file for every reader."""
    folder = tmp_path_factory.mktemp("seeds")
    place(folder, 30)
    write_csv(folder / "table.csv", table_of(30))
    assert cli("privatize", folder / "in.parquet", folder / "out.parquet", *ASKED, *at(folder)).code == 0
    request = request_of(
        release="scores", scores=("one", "two"), weights={"calls": (1.0, -2.5), "texts": (0.0, 3.0)},
        leave_out=["0123456789ab"], asked_by="Ministry", why="to know", tuned_on="public", delta=1e-6,
    ).signed(SigningKey.open(folder / "own.pem"))  # fmt: skip
    (folder / "signed.toml").write_text(request.text())
    (folder / "secret").write_text(f"{'ab' * 32} {BOUND}\n")
    (folder / "drawn").write_bytes(bytes(range(24)) * 3)
    program = files(folder)
    assert cli("tradeoff", program, "--quick", "--simulations", "2", "--out", folder / "sweep").code == 0
    return {
        "request": folder / "signed.toml", "policy": true_policy(folder), "program": program,
        "scales": folder / "scales.toml", "certificate": certificate_path(folder / "out.parquet"),
        "desk": folder / "desk" / "desk.json", "sweep": folder / "sweep" / "run.json",
        "ledger": folder / "desk" / "ledger.db", "secret of draws": folder / "secret",
        "what was drawn for": folder / "drawn", "key": folder / "desk" / "keys" / "tags.key",
        "CSV": folder / "table.csv", "Parquet": folder / "in.parquet",
    }  # fmt: skip


def at(folder: Path) -> tuple[str, str]:
    return "--desk", str(folder / "desk")


class Fuzzer:
    """The process that imported every reader under instrumentation, once for all tests of a worker."""

    def __init__(self) -> None:
        paths = os.pathsep.join(str(folder) for folder in (FUZZER.parents[1], *filter(None, sys.path)))
        self.process = subprocess.Popen(  # noqa: S603 (our own script)
            [sys.executable, str(FUZZER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip

    def run(self, name: str, place: Path, seed: bytes, seconds: int) -> tuple[int, str]:
        """The exit code of feeding one reader for so long, and what libFuzzer said."""
        corpus, log = place / "corpus", place / "log"
        corpus.mkdir(parents=True)
        (corpus / "seed").write_bytes(seed)
        options = [
            f"-max_total_time={seconds}", f"-artifact_prefix={place}/", "-rss_limit_mb=4096", "-timeout=60",
            str(corpus),
        ]  # fmt: skip
        task = {"reader": name, "file": str(place / file_of(name)), "options": options, "log": str(log)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), log.read_text(errors="replace")


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    started = Fuzzer()
    with started.process:
        yield started


@pytest.mark.parametrize("name", READERS)
def test_a_value_or_a_clear_error(name: str, seeds: dict[str, Path], fuzzer: Fuzzer, tmp_path: Path) -> None:
    only_value_errors(READERS[name], seeds[name])
    code, log = fuzzer.run(name, tmp_path / "fuzz", seeds[name].read_bytes(), SECONDS)
    assert code == 0, log[-7000:]
    done = re.search(r"Done (\d+) runs", log)
    assert done, log[-2000:]
    assert int(done[1]) > 100


def test_a_careless_reader_is_found_out(fuzzer: Fuzzer, tmp_path: Path) -> None:
    code, log = fuzzer.run("careless", tmp_path / "fuzz", b"true", 60)
    assert code != 0
    assert "KeyError" in log
