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

import numpy as np
import pytest

from support.agreed import handed_over, place_of_agreed
from support.fuzz_readers import READERS, SECRET, file_of
from support.release import cli, release, request_of, table_of, write_csv
from support.table_files import mixed, write_dialect
from support.tradeoff import files
from targetdp.release import agreement_path, certificate_path, read_policy
from targetdp.release._draws import Draws
from targetdp.release._trust._approval import PolicyChange
from targetdp.table import Dialect

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
    program = files(folder)
    assert cli("tradeoff", program, "--quick", "--simulations", "2", "--out", folder / "sweep").code == 0
    place_of_agreed(
        folder / "place", 30, pseudonyms=True, gaps={"calls": 0.0}, spelling={"case": "lower"}
    )  # fmt: skip
    write_csv(folder / "table.csv", table_of(30))
    write_dialect(folder / "declared.csv", mixed(30), Dialect(";", ",", " ", "cp1252"))
    (folder / "dialect").write_text("separator=; decimal=, thousands=space quote='", encoding="utf-8")
    request = folder / "request.toml"
    asked = request_of(release="scores", weights={"calls": 0.5, "texts": -1.0})
    request.write_text(asked.text("asked for a test"))
    output = release(folder / "place").path
    assert output is not None
    desk = folder / "place" / "desk"
    (people,) = (desk / "people").iterdir()
    handed_over(folder / "place")
    draft = folder / "drafts" / "draft"
    draft.mkdir(parents=True)
    (draft / "secret").write_text(SECRET)
    (draft / "drawn").touch()  # nothing was drawn yet
    draws = Draws.reopen(draft.parent, draft.name, "bound")
    assert draws is not None
    draws.for_scales("centers", np.arange(3))
    draws.close()
    proposal = folder / "proposed.json"
    plain = read_policy(desk / "policy.toml").model_dump(mode="json")
    wider = plain | {"limit": plain["limit"] | {"epsilon": 200.0}}
    proposal.write_text(PolicyChange(desk="0" * 32, number=1, before=plain, after=wider).text())
    return {
        "proposal": proposal, "agreement": agreement_path(folder / "place" / "agreed.parquet"),
        "policy": desk / "policy.toml", "request": request, "program": program,
        "scales": desk / "scales.toml", "certificate": certificate_path(output), "desk": desk / "desk.json",
        "mark": desk / "ledger.db.head", "sweep": folder / "sweep" / "run.json", "ledger": desk / "ledger.db",
        "people": people, "secret": draft / "secret", "drawn": draft / "drawn",
        "signing key": desk / "keys" / "signing.pem", "secret key": desk / "keys" / "tags.key",
        "declared CSV": folder / "declared.csv", "dialect": folder / "dialect",
        "CSV": folder / "table.csv", "Parquet": folder / "place" / "in.parquet",
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
    READERS[name](seeds[name])
    code, log = fuzzer.run(name, tmp_path / "fuzz", seeds[name].read_bytes(), SECONDS)
    assert code == 0, log[-7000:]
    done = re.search(r"Done (\d+) runs", log)
    assert done, log[-2000:]
    assert int(done[1]) > 100


def test_a_careless_reader_is_found_out(fuzzer: Fuzzer, tmp_path: Path) -> None:
    code, log = fuzzer.run("careless", tmp_path / "fuzz", b"true", 60)
    assert code != 0
    assert "KeyError" in log
