"""Damaged tables: refused, or released as what the bytes now say; never a traceback, never a dead process.

A table of raw data has no checksum: nobody can notice that 3.1 was 3.2 before. So here the right answer is
the release of what an independent reader finds in the damaged file. Noise is nearly nothing: it shows.
"""

import csv
import io
import random
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from support.faults import WHOLE, count, mutated, times
from support.release import (
    CENTERS,
    FEATURES,
    SCALES,
    certificate_of,
    hidden,
    make_desk,
    read_back,
    request_of,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from support.staged import forget, states
from support.zygote import Zygote
from targetdp._core import Floats
from targetdp.release import verify_release

LOUD = request_of(B=0.0001, epsilon=100, delta=1e-6)


def read_parquet(path: Path) -> tuple[list[str], Floats]:
    table = pq.read_table(path, memory_map=False)
    return [str(name) for name in table.column("name").to_pylist()], values_of(table).astype(np.float64)


def read_csv(path: Path) -> tuple[list[str], Floats]:
    rows = [row for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")) if row]
    places = [rows[0].index(name) for name in ("name", *FEATURES)]
    found = [[row[place] for place in places] for row in rows[1:]]
    return [row[0] for row in found], np.array([[float(x) for x in row[1:]] for row in found])


def in_unit_ball(values: Floats) -> Floats:
    """Computed here and not by the library; a value may be enormous."""
    scaled = (values - CENTERS) / np.array(SCALES)
    largest = np.maximum(1.0, np.abs(scaled).max(axis=1))[:, None]
    lengths = largest * np.linalg.norm(scaled / largest, axis=1)[:, None]
    return np.asarray(np.where(lengths > 1, (scaled / largest) / (lengths / largest), scaled))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_damaged_table(zygote: Zygote, tmp_path: Path, suffix: str) -> None:
    write, read = {"parquet": (write_parquet, read_parquet), "csv": (write_csv, read_csv)}[suffix]
    rng = random.Random(f"damaged {suffix}")
    source, output = tmp_path / f"in.{suffix}", tmp_path / "out.parquet"
    whole = write(source, table_of(80)).read_bytes()
    make_desk(tmp_path, limit=(0.0001, 1e6, 0.5))
    (tmp_path / "request.toml").write_text(LOUD.text())
    run = ("privatize", source.name, output.name, "--request", "request.toml", "--yes", "--force")
    undamaged = zygote.run(tmp_path, *run)
    assert undamaged.code == 0, undamaged.words
    forget(tmp_path)
    codes = []
    for _ in range(times(f"mutations: {suffix} input")):
        source.write_bytes(mutated(whole, rng))
        ended = zygote.run(tmp_path, *run)
        assert not ended.killed
        assert "Traceback" not in ended.words
        assert hidden(tmp_path) == []
        codes.append(ended.code)
        if ended.code == 0:
            ids, values = read(source)
            order = sorted(range(len(ids)), key=lambda i: ids[i].encode())
            released = read_back(output)
            assert released.column("name").to_pylist() == [ids[i] for i in order]
            np.testing.assert_allclose(values_of(released), in_unit_ball(values)[order], atol=1e-3)
            assert verify_release(output, certificate_of(output)).holds
            forget(tmp_path)
        else:
            assert ended.code == 2, ended.words
            assert ended.err.startswith("error: "), ended.words
            assert not output.exists()
            assert set(states(tmp_path).values()) <= {"published"}, "a bad table is found before the charge"
        count(f"mutations: {suffix} input", "released as it now is" if ended.code == 0 else "refused")
    assert 2 in codes
    assert not WHOLE or 0 in codes
