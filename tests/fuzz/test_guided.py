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

from support.fuzz_readers import READERS, file_of, only_value_errors
from support.release import ASKED, FEATURES, cli, table_of, write_csv, write_parquet, write_scales
from support.scores import write_weights
from support.tradeoff import files
from targetdp.release import certificate_path

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
    table = write_parquet(folder / "table.parquet", table_of(30))
    write_csv(folder / "table.csv", table_of(30))
    scales = write_scales(folder / "scales.toml")
    bounds = folder / "bounds.toml"
    bounds.write_text(
        "[features]\n" + "".join(f"{name} = {{ lower = -9, upper = 9.5 }}\n" for name in FEATURES)
    )
    release = folder / "release.toml"
    release.write_text(
        f'id = "name"\nfeatures = {json.dumps(FEATURES)}\nB = 0.25\nepsilon = 4\ndelta = 1e-5\n'
        'scales = "private"\nscales_epsilon = 1.0\nbounds = "bounds.toml"\nimpute = { calls = 0.0 }\n'
    )
    out, book = folder / "out.parquet", folder / "ledger.db"
    charged = ("--scales", scales, "--ledger", book, "--population", "people")
    ran = cli("privatize", table, out, *ASKED, *charged)
    assert ran.code == 0, ran.err
    program = files(folder)
    assert cli("tradeoff", program, "--quick", "--simulations", "2", "--out", folder / "sweep").code == 0
    return {
        "release": release, "program": program, "scales": scales, "bounds": bounds,
        "weights": write_weights(folder / "weights.toml"), "certificate": certificate_path(out),
        "ledger": book, "sweep": folder / "sweep" / "run.json", "CSV": folder / "table.csv",
        "Parquet": table,
    }  # fmt: skip


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
