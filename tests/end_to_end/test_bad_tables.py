"""Every bad input: a message of its own, exit code 2, and nothing left behind but what was there."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import (
    ASKED,
    FEATURES,
    NAMED,
    Ran,
    cli,
    nothing_changes,
    table_of,
    words,
    write_csv,
    write_parquet,
    write_scales,
)
from targetdp.release import Ledger
from targetdp.release._engine import _inspection as inspection
from targetdp.release._engine._local import privatize_table

LEDGER = ("--ledger", "ledger.db", "--population", "people")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scales, a ledger with a limit, and one good table."""
    place = tmp_path_factory.mktemp("prepared")
    write_scales(place / "scales.toml")
    write_parquet(place / "good.parquet")
    limit = ("--B", "0.25", "--epsilon", "8", "--delta", "0.05")
    book = ("--ledger", place / "ledger.db", "--population", "people")
    assert cli("ledger", "limit", *book, *limit).code == 0
    return place


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own to work in, with all that was prepared."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*arguments: Any, code: int = 2) -> str:
    """Run `privatize` on bad input: what it says, once it is sure that it left nothing behind."""
    with nothing_changes(Path.cwd()):
        ran: Ran = cli("privatize", *arguments)
    assert ran.code == code, ran
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert Ledger.existing("ledger.db").releases() == []
    return words(ran.err)


def released(table: str | Path, *more: Any) -> tuple[Any, ...]:
    return (table, "out.parquet", *ASKED, "--scales", "scales.toml", *LEDGER, *more)


def changed(name: str, values: Any) -> pa.Table:
    table = table_of()
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def with_values(at: dict[int, float | None], name: str = "calls") -> pa.Table:
    values = table_of()[name].to_pylist()
    for place, value in at.items():
        values[place] = value
    return changed(name, values)


ids60 = [f"p{i}" for i in range(60)]
BAD: dict[str, tuple[Callable[[], pa.Table], list[str]]] = {
    "missing": (lambda: with_values({4: None, 7: None}), ["calls 2 gaps, in row 5, 8 [gaps] calls = 0"]),
    "NaN": (lambda: with_values({0: np.nan}), ["1 of 3 columns cannot be", "calls 1 gap, in row 1"]),
    "infinite": (lambda: with_values({3: np.inf}), ["calls 1 infinite value, in row 4 correct or drop"]),
    "both infinities": (lambda: with_values({3: np.inf, 9: -np.inf}), ["2 infinite values, in row 4, 10"]),
    "text": (lambda: changed("texts", ["a"] * 60), ["texts text leave it out of [columns] release"]),
    "date": (lambda: changed("texts", [date(2026, 1, 1)] * 60), ["texts date convert it to numbers first"]),
    "constant": (lambda: changed("topups", [2.5] * 60), ["constant columns", "'topups'", "leave them out"]),
    "constant whole": (lambda: changed("topups", [3] * 60), ["constant columns", "'topups'"]),
    "same id": (lambda: changed("name", ["x", *ids60[:-2], "x"]), ["'name'", "1 rows repeat", "'x'"]),
    "all the same id": (lambda: changed("name", ["x"] * 60), ["59 rows repeat an id"]),
    "missing id": (lambda: changed("name", [None, *ids60[1:]]), ["name 1 row without an id, in row 1 give"]),
    "empty id": (lambda: changed("name", ["", *ids60[1:]]), ["name 1 row without an id, in row 1"]),
    "id with a fraction": (lambda: changed("name", np.arange(60) / 2), ["id column 'name' has type double"]),
    "no rows": (lambda: table_of().slice(0, 0), ["has no rows", "nothing to release"]),
    "no such feature": (lambda: table_of().drop_columns(["texts"]), ["'texts'", "no such column", "calls"]),
    "no such id": (lambda: table_of().drop_columns(["name"]), ["'name'", "no such column"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("how", ["sorted", "order kept", "pseudonyms", "own scales"])
def test_a_bad_table_is_refused_in_its_own_words(folder: Path, kind: str, how: str) -> None:
    make, said = BAD[kind]
    more: tuple[Any, ...] = {
        "sorted": (), "order kept": ("--keep-order",), "pseudonyms": ("--pseudonymize", "secret.key"),
        "own scales": (),
    }[how]  # fmt: skip
    if how == "pseudonyms":  # what is refused makes no key, so there is one
        Path("secret.key").write_text(bytes(range(32)).hex())
        Path("secret.key").chmod(0o600)
    arguments = released(write_parquet(Path("bad.parquet"), make()), *more)
    if how == "own scales":
        arguments = tuple("data" if a == "scales.toml" else a for a in arguments if a not in LEDGER)
    message = refused(*arguments)
    assert message.startswith("error: ")
    assert "Warning" not in message
    for part in said:
        # Of a pseudonymous id that is there twice nobody can say which it was.
        assert part in message or (part, how) == ("'x'", "pseudonyms"), message


CSV: dict[str, tuple[bytes, list[str]]] = {
    "a bad number": (b"name,calls,texts,topups\na,1,2,3\nb,oops,4,5\n", ["bad.csv", "'calls'", "no numbers"]),
    "text": (b"name,calls,texts,topups\na,x,2,3\nb,y,4,5\n", ["feature 'calls'", "numbers"]),
    "a cell less": (b"name,calls,texts,topups\na,1,2,3\nb,4,5\n", ["bad.csv", "Expected 4 columns, got 3"]),
    "a cell more": (b"name,calls,texts,topups\na,1,2,3\nb,4,5,6,7\n", ["Expected 4 columns, got 5"]),
    "an empty id": (b"name,calls,texts,topups\na,1,2,3\n,4,5,6\n", ["name 1 row without an id, in row 2"]),
    "a missing value": (b"name,calls,texts,topups\na,1,2,3\nb,,5,6\n", ["calls 1 gap, in row 2"]),
    "infinity": (b"name,calls,texts,topups\na,1,2,3\nb,inf,5,6\n", ["calls 1 infinite value"]),
    "a header only": (b"name,calls,texts,topups\n", ["has no rows"]),
    "a header without an end": (b"name,calls,texts,topups", ["bad.csv", "no rows"]),
    "nothing": (b"", ["bad.csv", "mpty"]),
    "latin-1": (b"name,calls,texts,topups\n\xe9,1,2,3\nb,4,5,6\n", ["bad.csv", "UTF8"]),
    "latin-1 in the header": (b"\xe9,name,calls,texts,topups\n1,a,1,2,3\n2,b,4,5,6\n", ["bad.csv"]),
    "two columns of a name": (b"name,calls,calls,texts,topups\na,1,1,2,3\n", ["two columns named 'calls'"]),
    "the same id": (b"name,calls,texts,topups\na,1,2,3\na,4,5,6\n", ["1 rows repeat an id (first: 'a')"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CSV)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_bad_csv_is_refused_in_its_own_words(folder: Path, kind: str, suffix: str) -> None:
    content, said = CSV[kind]
    Path(f"bad{suffix}").write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    message = refused(*released(f"bad{suffix}"))
    for part in said:
        assert part.replace("bad.csv", f"bad{suffix}") in message, message


def test_duplicates_are_found_across_batches_and_ranges(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)  # 64 rows in a batch
    monkeypatch.setattr(inspection, "GROUP_CELLS", 3 * 64, raising=False)
    ids = [f"{i:05d}" for i in np.random.default_rng(1).permutation(5000)]
    ids[4999] = ids[0]
    ids[2500] = ids[100]
    table = table_of(5000).set_column(0, "name", [ids])
    write_parquet(Path("bad.parquet"), table)
    for more in ((), ("--keep-order",)):
        message = refused(*released("bad.parquet", *more))
        assert "2 rows repeat an id" in message
        assert ids[0] in message or ids[100] in message


def test_counts_are_of_the_whole_table_and_rows_are_numbered_from_its_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)
    table = table_of(5000)
    calls = table["calls"].to_pylist()
    for place in (999, 1000, 4321, 4999):
        calls[place] = None
    write_parquet(Path("bad.parquet"), table.set_column(1, "calls", [calls]))
    assert "calls 4 gaps, first in row 1000, 1001, 4322" in refused(*released("bad.parquet"))


@pytest.mark.parametrize("place", [7, 4990])
@pytest.mark.parametrize("more", [(), ("--keep-order",), ("--pseudonymize", "secret.key")])
def test_text_that_is_no_text_is_refused(folder: Path, more: tuple[str, ...], place: int) -> None:
    """A Parquet file may say that any bytes are text."""
    Path("secret.key").write_text(bytes(range(32)).hex())
    Path("secret.key").chmod(0o600)
    table = table_of(5000)
    for wrong in (b"ab\xff\xfe7", b"\xed\xa0\x80x"):
        names = [name.encode() for name in table["name"].to_pylist()]
        names[place] = wrong
        bad = pa.array(names, pa.binary()).view(pa.string())
        write_parquet(Path("bad.parquet"), table.set_column(0, "name", bad))
        assert "id column 'name' is damaged or holds text that is not UTF-8" in refused(
            *released("bad.parquet", *more)
        )
        write_parquet(Path("bad.parquet"), table.append_column("village", bad))
        assert "kept column 'village' is damaged or holds text that is not UTF-8" in refused(
            *released("bad.parquet", "--keep", "village", *more)
        )


def test_ids_that_a_spreadsheet_would_run_are_refused_in_csv_only(folder: Path) -> None:
    """Marked, they would be out of order, or somebody else's, or nobody's."""
    table = table_of(60)
    names = [f"@p{i}" if i % 2 else str(70 + i) for i in range(60)]
    write_parquet(Path("bad.parquet"), table.set_column(0, "name", [names]))
    given = (*ASKED, "--scales", "scales.toml")
    assert "30 ids that would be run as formulas" in refused("bad.parquet", "out.csv", *given)
    assert cli("privatize", "bad.parquet", "out.parquet", *given).code == 0
    assert cli("verify", "out.parquet").code == 0


def test_one_column_is_called_one(folder: Path) -> None:
    ran = cli("privatize", "good.parquet", "one.parquet", *ASKED, "--features", "calls", "--scales", "data")
    assert ran.code == 0, ran.err
    assert "rows, 1 column →" in words(ran.err)
    assert " on 1 column:" in words(ran.err)


def test_a_column_is_constant_only_if_all_batches_agree(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)
    table = table_of(5000)
    for values, constant in (
        ([1.5] * 5000, True),
        ([1.5] * 4999 + [2.5], False),
        ([float(i // 2500) for i in range(5000)], False),
    ):
        write_parquet(Path("bad.parquet"), table.set_column(1, "calls", [values]))
        ran = cli("privatize", *released("bad.parquet", "--force"))
        assert ("constant columns among the features: 'calls'" in words(ran.err)) == constant
        assert ran.code == (2 if constant else 0)


# Files


def test_damaged_parquet_files_are_refused(folder: Path) -> None:
    good = Path("good.parquet").read_bytes()
    bad = Path("bad.parquet")
    for content in (
        b"PAR0" + good[4:-4] + b"PAR0",
        good[:-50],
        good[: len(good) // 2],
        b"PAR1",
        b"",
        b"x" * 500,
    ):
        bad.write_bytes(content)
        message = refused(*released(bad))
        assert "input bad.parquet cannot be read" in message
        assert "damaged" in message


@pytest.mark.parametrize("more", [(), ("--keep-order",)])
def test_a_damaged_row_group_in_the_middle_is_refused(folder: Path, more: tuple[str, ...]) -> None:
    bad = Path("bad.parquet")
    pq.write_table(table_of(3000), bad, row_group_size=500, compression="zstd")
    group = pq.read_metadata(bad).row_group(3).column(2)
    content = bytearray(bad.read_bytes())
    start = group.data_page_offset
    for i in range(start, start + group.total_compressed_size):
        content[i] ^= 0x5A
    bad.write_bytes(bytes(content))
    assert "input bad.parquet cannot be read" in refused(*released(bad, *more))


def test_a_directory_must_be_of_one_kind_with_the_same_columns(folder: Path) -> None:
    parts = Path("parts")
    parts.mkdir()
    assert "holds no part files" in refused(*released(parts))
    write_parquet(parts / "a.parquet")
    write_csv(parts / "b.csv")
    assert "mixes Parquet and CSV" in refused(*released(parts))
    (parts / "b.csv").unlink()
    write_parquet(parts / "b.parquet", table_of().drop_columns(["texts"]))
    message = refused(*released(parts))
    assert "b.parquet has other columns than a.parquet" in message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.int64(), pa.float64()), (pa.float32(), pa.int32()), (pa.int32(), pa.int64()),
        (pa.string(), pa.int64()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", [(), ("--keep-order",)])
def test_kept_columns_whose_types_differ_between_parts_are_refused(
    folder: Path, first: pa.DataType, second: pa.DataType, order: tuple[str, ...]
) -> None:
    """Or converted; but never taken for what they are not."""
    parts = Path("parts")
    parts.mkdir()
    table = table_of()
    for start, name, kind in ((0, "a", first), (20, "b", second), (40, "c", first)):
        kept = pa.array(np.arange(start, start + 20)).cast(kind)
        write_parquet(parts / f"{name}.parquet", table.slice(start, 20).append_column("age", kept))
    message = refused(*released(parts, "--keep", "age", *order))
    assert "age" in message
    assert "b.parquet" in message


def test_an_absent_or_unknown_input_is_refused(folder: Path) -> None:
    assert "input absent.parquet does not exist" in refused(*released("absent.parquet"))
    Path("table.xlsx").write_bytes(b"PK")
    assert "input table.xlsx has no known suffix: use .parquet" in refused(*released("table.xlsx"))


AS_NOBODY = """
import os, sys
from targetdp.cli import main
arguments = sys.argv
sys.argv = [a.replace("secret.parquet", "good.parquet").replace("out", "warm") for a in arguments]
try:
    main()  # as root: whatever is imported later may not be readable for others
except SystemExit as done:
    assert not done.code, done.code
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.argv = arguments
main()
"""


def test_an_unreadable_file_is_refused(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give up the right to read the file half-way")
    shutil.copy("good.parquet", "secret.parquet")
    Path("secret.parquet").chmod(0o600)
    with nothing_changes(folder):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", AS_NOBODY, "privatize", "secret.parquet", "out.parquet", *ASKED,
             "--scales", "scales.toml", "--quiet"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        for path in folder.glob("warm*"):
            path.unlink()
    assert done.returncode in {2, 3}, done.stderr
    assert "secret.parquet" in words(done.stderr)
    assert "ermission" in done.stderr
    assert "damaged" not in done.stderr


def test_a_table_that_changes_while_it_is_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewritten(rows: int) -> Callable[..., Any]:
        def late(*arguments: Any) -> Any:
            write_parquet(Path("changing.parquet"), table_of(rows, seed=5))
            return privatize_table(*arguments)

        return late

    for rows, said in ((61, "changed"), (60, "changed while it was read")):
        write_parquet(Path("changing.parquet"))
        monkeypatch.setattr("targetdp.release._engine._local.privatize_table", rewritten(rows))
        ran = cli("privatize", *released("changing.parquet"))
        assert ran.code == 2
        assert said in words(ran.err)
        assert not any(p.name.startswith((".out", "out")) for p in Path().iterdir())
        assert Ledger.existing("ledger.db").releases() == []


# Outputs


def test_an_output_that_exists_is_refused_without_force(folder: Path) -> None:
    Path("out.parquet").write_text("mine")
    assert "output out.parquet exists" in refused(*released("good.parquet"))
    assert Path("out.parquet").read_text() == "mine"


def test_force_never_deletes_a_folder_that_is_no_release(folder: Path) -> None:
    home = Path("home")
    home.mkdir()
    (home / "thesis.txt").write_text("ten years of work")
    message = refused("good.parquet", "home", *ASKED, "--scales", "scales.toml", *LEDGER, "--force")
    assert "home" in message
    assert (home / "thesis.txt").read_text() == "ten years of work"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("out.txt", "output out.txt has no known suffix: use .parquet, .csv, or no suffix"),
        ("out.csv.gz", "compressed text, which is not written"),
        ("absent/out.parquet", "output folder absent does not exist: create it first"),
        ("good.parquet", "overlap: choose an output elsewhere"),
        ("parts/out.parquet", "overlap"),
        ("parts", "overlap"),
        (".", "output"),
    ],
)
def test_an_output_that_cannot_be_is_refused(folder: Path, output: str, said: str) -> None:
    Path("parts").mkdir()
    shutil.copy("good.parquet", "parts/a.parquet")
    source = "parts" if output.startswith("parts") else "good.parquet"
    assert said in refused(source, output, *ASKED, "--scales", "scales.toml", *LEDGER)


# Settings


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--mechanism", "magic"), "mechanism = 'magic' is not one of"),
        (("--mechanism", "staircase"), "the staircase mechanism takes exactly 1 column"),
        (("--B", "3"), "B = 3.0"),
        (("--B", "0"), "B = 0.0"),
        (("--epsilon", "-1"), "epsilon = -1.0"),
        (("--epsilon", "inf"), "epsilon = inf"),
        (("--delta", "1"), "delta = 1.0"),
        (("--impute", "many"), "impute = 'many' is not a number or name=number pairs"),
        (("--impute", "nan"), "impute"),
        (("--impute", "other=0"), "impute names ['other']"),
        (("--partitions", "6", "--delta", "1e-5"), "leave out delta, or partitions"),
        (("--keep", "calls"), "'calls' is named twice"),
        (("--keep", "absent"), "'absent'"),
        (("--scales", "absent.toml"), "scales file absent.toml cannot be read"),
        (("--scales", "private"), "bounds and scales_epsilon belong to"),
        (("--release", "broken.toml"), "release file broken.toml cannot be read"),
        (("--release", "unknown.toml"), "epsilom"),
        (("--features", "@absent.txt"), "list of names absent.txt cannot be read"),
        (("--for", "cider"), "is not a CSV file: Cider reads one file"),
        (("--part", " "), "part"),
    ],
)
def test_a_bad_setting_is_named_with_its_value(folder: Path, more: tuple[str, ...], said: str) -> None:
    Path("broken.toml").write_text("id = [\n")
    Path("unknown.toml").write_text("epsilom = 4\n")
    assert said in refused(*released("good.parquet", *more))


def test_a_population_needs_its_ledger(folder: Path) -> None:
    plain = ("good.parquet", "out.parquet", *ASKED, "--scales", "scales.toml")
    for half in (LEDGER[:2], LEDGER[2:]):
        assert "ledger and population belong together" in refused(*plain, *half)


def test_scales_without_a_feature_are_refused(folder: Path) -> None:
    write_scales(Path("scales.toml"), features=FEATURES[:2])
    assert "says nothing of topups" in refused(*released("good.parquet"))


def test_a_limit_that_is_reached_is_refused_before_the_work(folder: Path) -> None:
    plain = ("good.parquet", "out.parquet", *NAMED, "--B", "0.25", "--scales", "scales.toml", *LEDGER)
    message = refused(*plain, "--epsilon", "9", "--delta", "0.01")
    for said in ("population 'people'", "requested ε = ", "spent 0", "remaining 8", "limit 8", "override"):
        assert said in message
    # A tiny B does not sneak past: its ε at the limit's distance counts.
    assert "requested ε" in refused(
        *plain[:6], "--B", "0.01", *plain[8:], "--epsilon", "1", "--delta", "0.01"
    )


@pytest.mark.parametrize(
    "more",
    [("--scales", "data"), ("--scales", "secret.toml"), ("--mechanism", "mondrian", "--group-size", "5")],
)
def test_what_has_no_bound_needs_an_override(folder: Path, more: tuple[str, ...]) -> None:
    write_scales(Path("secret.toml"), "confidential")
    asked = NAMED if "mondrian" in more else ASKED
    plain = ("good.parquet", "out.parquet", *asked, "--scales", "scales.toml", *LEDGER, *more)
    message = refused(*plain)
    assert "without bound" in message
    assert "override" in message
    assert cli("privatize", *plain, "--override", "the board agreed").code == 0
    (row,) = Ledger.existing("ledger.db").releases()
    assert (row.state, row.override) == ("published", "the board agreed")


def test_a_failed_run_makes_no_ledger_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_scales(Path("scales.toml"))
    write_parquet(Path("bad.parquet"), with_values({0: None}))
    with nothing_changes(tmp_path):
        ran = cli("privatize", *released("bad.parquet", "--pseudonymize", "secret.key"))
    assert ran.code == 2
