"""A release of which one bit is another does not verify, be it of the table, the certificate or the page."""

import random
from pathlib import Path

import pytest

from support.faults import count, mutated, times
from support.release import ASKED, cli, place_with
from support.zygote import Zygote
from targetdp.release import certificate_path
from targetdp.release._staging import page_path


@pytest.fixture(params=["out.parquet", "out.csv"])
def output(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place_with(tmp_path, 80))
    ran = cli("privatize", "in.parquet", request.param, *ASKED)
    assert ran.code == 0, ran.err
    return tmp_path / str(request.param)


def test_a_damaged_table(zygote: Zygote, output: Path) -> None:
    """In processes of their own: what reads a damaged Parquet file could die of it."""
    rng, whole = random.Random(f"released {output.name}"), output.read_bytes()
    assert zygote.run(output.parent, "verify", output).code == 0
    for _ in range(times("mutations: released table") // 2):
        output.write_bytes(mutated(whole, rng))
        ended = zygote.run(output.parent, "verify", output)
        assert (ended.killed, ended.code) == (False, 1), ended.words
        assert "Traceback" not in ended.words
        assert "does NOT hold" in ended.err
        count("mutations: released table", "does not hold")


def test_a_damaged_certificate_or_page(output: Path) -> None:
    rng = random.Random(f"certified {output.name}")
    places = [certificate_path(output)] * 3 + [page_path(output)]
    for number in range(times("mutations: certificate") // 2):
        place = places[number % 4]
        whole = place.read_bytes()
        place.write_bytes(mutated(whole, rng))
        ran = cli("verify", output)
        place.write_bytes(whole)
        assert ran.code in {1, 2}, ran.out
        assert "Traceback" not in ran.err
        assert ran.err.startswith("error: certificate") if ran.code == 2 else "does NOT hold" in ran.err
        count("mutations: certificate", "does not hold" if ran.code == 1 else "refused")
    assert cli("verify", output).code == 0
