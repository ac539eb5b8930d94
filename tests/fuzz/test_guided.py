"""Every reader meets inputs that grow out of true files and look for new branches (atheris).

`make fuzz` installs atheris and runs this for a minute each; without it a test is skipped, and says so.
"""

import json
import os
import re
import subprocess
import sys
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


def fuzz(name: str, place: Path, seed: bytes, seconds: int) -> subprocess.CompletedProcess[str]:
    corpus = place / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "seed").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={place}/",
        "-rss_limit_mb=4096",
        "-timeout=60",
    ]
    paths = os.pathsep.join(str(folder) for folder in (FUZZER.parents[1], *filter(None, sys.path)))
    return subprocess.run(  # noqa: S603 (our own script)
        [sys.executable, str(FUZZER), name, str(place / file_of(name)), *options, str(corpus)],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": paths}, cwd=place,
    )  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_value_or_a_clear_error(name: str, seeds: dict[str, Path], tmp_path: Path) -> None:
    only_value_errors(READERS[name], seeds[name])
    ran = fuzz(name, tmp_path / "fuzz", seeds[name].read_bytes(), SECONDS)
    assert ran.returncode == 0, ran.stderr[-5000:] + ran.stdout[-2000:]
    done = re.search(r"Done (\d+) runs", ran.stderr)
    assert done, ran.stderr[-2000:]
    assert int(done[1]) > 100


def test_a_careless_reader_is_found_out(tmp_path: Path) -> None:
    ran = fuzz("careless", tmp_path / "fuzz", b"true", 60)
    assert ran.returncode != 0
    assert "KeyError" in ran.stdout + ran.stderr
