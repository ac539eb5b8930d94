"""Engines: each declares itself; what is written depends on the released rows alone."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import ASKED, FEATURES, make_desk, place_with, release, table_of, write_parquet
from targetdp._core import Silent, declared
from targetdp.release import Spelling
from targetdp.release._engine._base import (
    engine_of,
    group_rows,
    hash_splitters,
    joined,
    output_schema,
    ranges_of,
    write_in_order,
)
from targetdp.release._ids import Names
from targetdp.release._prepare import Recipe
from targetdp.table import MAX_BUCKETS, Encoding, Sink, Spill, regrouped

# An engine declares itself

NEW = '''
"""The engine for one machine, under another name."""

from targetdp.release._engine._base import named
from targetdp.release._engine._local import LocalFiles


@named("elsewhere")
class Elsewhere(LocalFiles):
    def write(self, *given):
        print("an engine of somebody else's")
        return super().write(*given)
'''
BY_COMMAND = """
import sys
import targetdp.release._engine as engines

engines.__path__.append(sys.argv.pop(1))
from targetdp.cli import main

main()
"""


def by_command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of a package that has one more file in its folder of engines."""
    (folder / "engines").mkdir(exist_ok=True)
    (folder / "engines" / "_elsewhere.py").write_text(NEW)
    return subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", BY_COMMAND, str(folder / "engines"), *words],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip


def test_a_new_engine_is_one_new_file(tmp_path: Path) -> None:
    place_with(tmp_path)
    done = by_command(tmp_path, "privatize", "in.parquet", "out.parquet", *ASKED, "--engine", "elsewhere")
    assert done.returncode == 0, done.stderr
    assert "an engine of somebody else's" in done.stdout
    assert '"engine": "elsewhere"' in (tmp_path / "out.parquet.certificate.json").read_text()
    assert by_command(tmp_path, "verify", "out.parquet").returncode == 0
    assert "elsewhere|local|spark" in by_command(tmp_path, "privatize", "--help").stdout


def test_engines_are_those_that_declare_themselves() -> None:
    assert declared("targetdp.release._engine") == ("local", "spark")
    with pytest.raises(ValueError, match="engine = 'elsewhere' is not one of"):
        engine_of("elsewhere")


def test_an_engine_is_imported_alone() -> None:
    script = (
        "import sys; from targetdp.release._engine._base import engine_of; engine_of('local'); "
        "print(*(name for name in ('pyspark', 'targetdp.release._engine._spark') if name in sys.modules))"
    )
    run = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == []
    assert engine_of("local").__module__ == "targetdp.release._engine._local"


# Ranges


def test_ranges_are_as_many_as_rows_need() -> None:
    assert ranges_of(1, 3) == 1
    assert ranges_of(group_rows(10), 10) == 1
    assert ranges_of(group_rows(10) + 1, 10) == 2
    assert ranges_of(10**12, 16_000) == MAX_BUCKETS
    assert group_rows(1) == group_rows(10) > group_rows(100) > group_rows(10**9) >= 64


@pytest.mark.parametrize("ranges", [1, 2, 7, 256])
def test_pseudonyms_are_cut_into_even_ranges(ranges: int) -> None:
    cuts = hash_splitters(ranges).to_pylist()
    assert len(cuts) == ranges - 1
    assert cuts == sorted(cuts)
    rng = np.random.default_rng(1)
    names = [rng.bytes(16).hex() for _ in range(4000)]
    counts = np.bincount(np.searchsorted(cuts, names), minlength=ranges) if cuts else np.array([4000])
    assert counts.max() < 4000 / ranges + 6 * np.sqrt(4000 / ranges) + 1


def test_parts_are_joined_and_nothing_is_nothing() -> None:
    assert joined(None, None) is None
    assert (joined(None, 3), joined(3, None), joined(3, 4)) == (3, 3, 7)


# Not a byte tells how the input was ordered or cut

ROWS = 1_000
PUBLIC = {"region": pa.string()}


def recipe(**more: Any) -> Recipe:
    names = Names("name", Spelling(), bytes(32), None)
    nobody = np.empty(0, dtype=np.uint64)
    given: dict[str, Any] = {
        "names": names, "features": FEATURES, "released": FEATURES, "public": (), "encoding": Encoding(),
        "left_out": nobody, "estimated": (), "scales": None,
    }  # fmt: skip
    return Recipe(**given | more)


def written(folder: Path, name: str, order: Any, cuts: list[str], batch: int, kind: Any) -> bytes:
    """The bytes of a release whose rows came in some order, in batches, and were cut at some ids."""
    rng = np.random.default_rng(3)
    ids = np.array([f"{i:05d}" for i in range(ROWS)])
    rows = rng.integers(-(2**30), 2**30, size=(ROWS, 3)) * 2.0**-27
    spill = Spill(None, pa.array(cuts, pa.string()), 3, PUBLIC)
    for start in range(0, ROWS, batch):
        some = order[start : start + batch]
        others = {"region": pa.array([f"r{i % 7}" for i in some])}
        spill.add(pa.array(ids[some].tolist()), np.ascontiguousarray(rows[some]), others)
    schema = output_schema(recipe(public=("region",)), PUBLIC)
    with Sink(folder / name, kind, schema, ids="name") as sink:
        write_in_order(spill.sorted_bucket, spill.buckets, ROWS, schema, sink, Silent())
        sink.finish()
    spill.close()
    return (folder / name).read_bytes()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_not_a_byte_tells_how_the_input_was_ordered_or_cut(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 300)
    rng = np.random.default_rng(1)
    plain = written(tmp_path, "a", np.arange(ROWS), [], ROWS, kind)
    for number in range(4):
        cuts = sorted({f"{i:05d}" for i in rng.integers(0, ROWS, 5)})
        again = written(tmp_path, f"b{number}", rng.permutation(ROWS), cuts, int(rng.integers(50, 500)), kind)
        assert again == plain


def test_row_groups_have_a_fixed_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.group_rows", lambda _: 300)
    written(tmp_path, "a.parquet", np.arange(ROWS)[::-1], ["00123", "00124", "00900"], 77, "parquet")
    found = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [300, 300, 300, 100]


@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 4], [10, 10], [1] * 25, [7, 0, 30]])
def test_regrouped_keeps_rows_and_their_order(sizes: list[int]) -> None:
    numbers = iter(range(sum(sizes)))
    tables = [pa.table({"x": pa.array([next(numbers) for _ in range(n)], pa.int64())}) for n in sizes]
    groups = list(regrouped(tables, 10))
    assert [v for g in groups for v in g["x"].to_pylist()] == list(range(sum(sizes)))
    assert all(g.num_rows == 10 for g in groups[:-1])
    assert all(g["x"].num_chunks == 1 for g in groups)


def test_rows_that_are_lost_or_twice_are_noticed(tmp_path: Path) -> None:
    schema = output_schema(recipe(), {})
    for ids, rows, said in (
        (["a", "b"], 3, "3 rows were drawn for, and 2 were found again"),
        (["a", "a"], 2, "an id came twice, and was not seen before"),
    ):
        spill = Spill(None, pa.array([], pa.string()), len(FEATURES))
        spill.add(pa.array(ids), np.zeros((2, 3)), {})
        with (
            Sink(tmp_path / f"{rows}.parquet", "parquet", schema, ids="name") as sink,
            pytest.raises(RuntimeError, match=said),
        ):
            write_in_order(spill.sorted_bucket, spill.buckets, rows, schema, sink, Silent())
        spill.close()


def test_the_output_has_the_id_the_released_columns_and_what_is_public() -> None:
    schema = output_schema(recipe(released=("score",), public=("region",)), PUBLIC)
    assert schema.names == ["name", "score", "region"]
    assert [field.nullable for field in schema] == [False, False, True]


def test_a_recipe_does_not_show_whom_it_leaves_out_nor_its_keys() -> None:
    shown = repr(recipe(left_out=np.array([123456789], dtype=np.uint64)))
    assert "123456789" not in shown
    assert "x00" not in shown


def test_the_same_rows_in_another_order_are_released_in_the_same_order(tmp_path: Path) -> None:
    table = table_of(500)
    make_desk(tmp_path)
    for name, rows in (("a", table), ("b", table.take(np.random.default_rng(1).permutation(500)))):
        write_parquet(tmp_path / "in.parquet", rows)
        release(tmp_path, f"{name}.parquet")
    one, two = (pq.read_table(tmp_path / f"{name}.parquet")["name"] for name in "ab")
    assert one.equals(two)
