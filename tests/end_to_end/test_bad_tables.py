"""Every bad input: a message of its own, exit code 2, and nothing left behind but what was there."""

import gzip
import json
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
    cli,
    make_desk,
    new_policy,
    nothing_changes,
    snapshot,
    table_of,
    words,
    write_csv,
    write_parquet,
    write_scales,
)
from support.staged import states
from targetdp.release._engine import _base as engine
from targetdp.release._engine._local import LocalEngine

WAYS: dict[str, dict[str, Any]] = {
    "public scales": {}, "pseudonyms": {"pseudonyms": True}, "private scales": {"scales": "private"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to work in, with a desk and one good table."""
    make_desk(tmp_path)
    write_parquet(tmp_path / "good.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(table: str | Path, *more: Any, output: str = "out.parquet", code: int = 2) -> str:
    """Try a release of bad input: what it says, once it is sure that nothing was charged or left behind.

    Looking first says the same, and leaves everything as it was, to the last byte.
    """
    with nothing_changes(Path.cwd()):
        looked = cli("privatize", table, output, *ASKED, "--check", *more)
    before = snapshot(Path.cwd())
    ran = cli("privatize", table, output, *ASKED, *more)
    after = snapshot(Path.cwd())
    log = str(Path("desk", "log.jsonl"))
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {log}
    assert ran.code == code, ran
    assert ran.out == looked.out == ""
    assert "Traceback" not in ran.err + looked.err
    said = ran.err.partition("error: ")[2]
    if looked.code == code:  # of an output, a look knows nothing
        assert looked.err.partition("error: ")[2] == said
    assert states(Path.cwd()) == {}
    return words(ran.err)


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
    "text": (lambda: changed("texts", ["a"] * 60), ["texts text [kinds.texts]"]),
    "date": (lambda: changed("texts", [date(2026, 1, 1)] * 60), ["texts date [kinds.texts]"]),
    "constant": (lambda: changed("topups", [2.5] * 60), ["constant columns", "topups", "leave them out"]),
    "constant whole": (lambda: changed("topups", [3] * 60), ["constant columns", "topups"]),
    "same id": (lambda: changed("name", ["x", *ids60[:-2], "x"]), ["'name'", "1 rows repeat"]),
    "all the same id": (lambda: changed("name", ["x"] * 60), ["59 rows repeat an id"]),
    "missing id": (lambda: changed("name", [None, *ids60[1:]]), ["name 1 row without an id, in row 1 give"]),
    "empty id": (lambda: changed("name", ["", *ids60[1:]]), ["name 1 row without an id, in row 1"]),
    "id with space": (lambda: changed("name", [" x", *ids60[1:]]), ["1 id in another spelling, in row 1"]),
    "id with a fraction": (lambda: changed("name", np.arange(60) / 2), ["id column 'name' has type double"]),
    "no rows": (lambda: table_of().slice(0, 0), ["has no rows", "nothing to release"]),
    "no such feature": (lambda: table_of().drop_columns(["texts"]), ["has no column 'texts': it has name"]),
    "a mistyped feature": (
        lambda: table_of().rename_columns(["name", "calls", "text", "topups"]),
        ["has no column 'texts': did you mean 'text'?"],
    ),
    "no such id": (lambda: table_of().drop_columns(["name"]), ["has no column 'name'"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("how", WAYS)
def test_a_bad_table_is_refused_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, **WAYS[how])
    make, said = BAD[kind]
    message = refused(write_parquet(Path("bad.parquet"), make()))
    assert message.startswith("error: ")
    assert "Warning" not in message
    for part in said:
        assert part in message, message


def test_all_that_is_wrong_comes_at_once_with_its_remedies(folder: Path) -> None:
    """Columns, rows, ids, request and policy: one run, one message; and the log says no more than that."""
    table = with_values({4: None})
    table = table.set_column(2, "texts", pa.array(["a"] * 60)).drop_columns(["topups"])
    table = table.set_column(0, "name", pa.array(["x", *ids60[:-2], "x"]))
    write_parquet(Path("bad.parquet"), table)
    new_policy(folder / "desk", most=(3.0, 1e-5), requests={"accept": "signed"}, keys={"ministry": KEY})
    message = refused("bad.parquet")
    for said in (
        "5 things keep this release from being made", "the request is not signed",
        "targetdp request sign", "has no column 'topups'", "epsilon = 4 is more than one release may have",
        "ask for at most 3", "calls 1 gap, in row 5 [gaps] calls = 0", "texts text [kinds.texts]",
        "1 rows repeat an id", "you may tell who asked: this desk would accept columns among calls",
        "signed with a key that the desk knows", "nothing was charged and nothing was published",
    ):  # fmt: skip
        assert said in message, (said, message)
    ran = cli("privatize", "bad.parquet", "--check", *ASKED, "--json")
    assert ran.code == 2
    look = ran.json["look"]
    assert len(look["problems"]) == 5
    assert {problem["whose"] for problem in look["problems"]} == {"official", "holder"}
    assert all(problem["remedy"].strip() for problem in look["problems"])
    logged = [json.loads(line) for line in Path("desk/log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in logged] == ["made", "refused"], "a look is not logged"


KEY = "a3sRQ3Jb9yWRO2kwSGRgKLbzkuH5BBLCjIL9uZo6kl0="


CSV: dict[str, tuple[bytes, list[str]]] = {
    "a bad number": (b"name,calls,texts,topups\na,1,2,3\nb,oops,4,5\nc,6,7,8\n", ["1 cell that is no"]),
    "text": (b"name,calls,texts,topups\na,x,2,3\nb,y,4,5\n", ["calls text"]),
    "a cell less": (b"name,calls,texts,topups\na,1,2,3\nb,4,5\n", ["bad.csv", "Expected 4 columns, got 3"]),
    "a cell more": (b"name,calls,texts,topups\na,1,2,3\nb,4,5,6,7\n", ["Expected 4 columns, got 5"]),
    "an empty id": (b"name,calls,texts,topups\na,1,2,3\n,4,5,6\n", ["name 1 row without an id, in row 2"]),
    "a missing value": (b"name,calls,texts,topups\na,1,2,3\nb,,5,6\n", ["calls 1 gap, in row 2"]),
    "infinity": (b"name,calls,texts,topups\na,1,2,3\nb,inf,5,6\n", ["calls 1 infinite value"]),
    "a header only": (b"name,calls,texts,topups\n", ["has no rows"]),
    "a header without an end": (b"name,calls,texts,topups", ["bad.csv", "no rows"]),
    "nothing": (b"", ["bad.csv", "mpty"]),
    "latin-1": (b"name,calls,texts,topups\n\xe9,1,2,3\nb,4,5,6\n", ["bad.csv", "is not text in utf-8"]),
    "latin-1 in the header": (b"\xe9,name,calls,texts,topups\n1,a,1,2,3\n2,b,4,5,6\n", ["bad.csv"]),
    "two columns of a name": (b"name,calls,calls,texts,topups\na,1,1,2,3\n", ["two columns named 'calls'"]),
    "the same id": (b"name,calls,texts,topups\na,1,2,3\na,4,5,6\n", ["1 rows repeat an id"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CSV)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_bad_csv_is_refused_in_its_own_words(folder: Path, kind: str, suffix: str) -> None:
    content, said = CSV[kind]
    Path(f"bad{suffix}").write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    message = refused(f"bad{suffix}")
    for part in said:
        assert part.replace("bad.csv", f"bad{suffix}") in message, message


def test_duplicates_are_found_across_batches_and_ranges(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)  # 64 rows in a batch
    monkeypatch.setattr(engine, "GROUP_CELLS", 3 * 64)
    ids = [f"{i:05d}" for i in np.random.default_rng(1).permutation(5000)]
    ids[4999] = ids[0]
    ids[2500] = ids[100]
    write_parquet(Path("bad.parquet"), table_of(5000).set_column(0, "name", [ids]))
    message = refused("bad.parquet")
    assert "2 rows repeat an id" in message
    assert not any(name in message for name in (ids[0], ids[100])), "nobody is named"


def test_counts_are_of_the_whole_table_and_rows_are_numbered_from_its_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)
    table = table_of(5000)
    calls = table["calls"].to_pylist()
    for place in (999, 1000, 4321, 4999):
        calls[place] = None
    write_parquet(Path("bad.parquet"), table.set_column(1, "calls", [calls]))
    assert "calls 4 gaps, first in row 1000, 1001, 4322" in refused("bad.parquet")


@pytest.mark.parametrize("place", [7, 4990])
@pytest.mark.parametrize("pseudonyms", [False, True])
def test_text_that_is_no_text_is_refused(folder: Path, pseudonyms: bool, place: int) -> None:
    """A Parquet file may say that any bytes are text."""
    table = table_of(5000)
    for wrong in (b"ab\xff\xfe7", b"\xed\xa0\x80x"):
        names = [name.encode() for name in table["name"].to_pylist()]
        names[place] = wrong
        bad = pa.array(names, pa.binary()).view(pa.string())
        new_policy(folder / "desk", pseudonyms=pseudonyms)
        write_parquet(Path("bad.parquet"), table.set_column(0, "name", bad))
        assert "id column 'name' is damaged or holds text that is not UTF-8" in refused("bad.parquet")
        new_policy(folder / "desk", pseudonyms=pseudonyms, public={"village": "it is on every map"})
        write_parquet(Path("bad.parquet"), table.append_column("village", bad))
        message = refused("bad.parquet")
        assert "public column 'village' is damaged or holds text that is not UTF-8" in message


def test_ids_that_a_spreadsheet_would_run_are_refused_in_csv_only(folder: Path) -> None:
    """Marked, they would be out of order, or somebody else's, or nobody's."""
    names = [f"@p{i}" if i % 2 else str(70 + i) for i in range(60)]
    write_parquet(Path("bad.parquet"), table_of(60).set_column(0, "name", [names]))
    assert "30 ids would be run as formulas" in refused("bad.parquet", output="out.csv")
    assert cli("privatize", "bad.parquet", "out.parquet", *ASKED).code == 0
    assert cli("verify", "out.parquet").code == 0


def test_one_column_is_called_one(folder: Path) -> None:
    new_policy(folder / "desk", features=("calls",))
    ran = cli("privatize", "good.parquet", "one.parquet", *ASKED)
    assert ran.code == 0, ran.err
    assert "rows, 1 column →" in words(ran.err)
    assert "what goes out: 1 column about" in words(ran.err)


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
        ran = cli("privatize", "bad.parquet", "out.parquet", *ASKED, "--force")
        assert ("constant columns: calls" in words(ran.err)) == constant
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
        message = refused(bad)
        assert "input bad.parquet cannot be read" in message
        assert "damaged" in message


def test_a_damaged_row_group_in_the_middle_is_refused(folder: Path) -> None:
    bad = Path("bad.parquet")
    pq.write_table(table_of(3000), bad, row_group_size=500, compression="zstd")
    group = pq.read_metadata(bad).row_group(3).column(2)
    content = bytearray(bad.read_bytes())
    start = group.data_page_offset
    for i in range(start, start + group.total_compressed_size):
        content[i] ^= 0x5A
    bad.write_bytes(bytes(content))
    assert "input bad.parquet cannot be read" in refused(bad)


def test_a_directory_must_be_of_one_kind_with_the_same_columns(folder: Path) -> None:
    parts = Path("parts")
    parts.mkdir()
    assert "holds no part files" in refused(parts, code=6)
    write_parquet(parts / "a.parquet")
    write_csv(parts / "b.csv")
    assert "mixes Parquet and CSV" in refused(parts)
    (parts / "b.csv").unlink()
    write_parquet(parts / "b.parquet", table_of().drop_columns(["texts"]))
    message = refused(parts)
    assert "b.parquet has other columns than a.parquet" in message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.int64(), pa.float64()), (pa.float32(), pa.int32()), (pa.int32(), pa.int64()),
        (pa.string(), pa.int64()),
    ],
)  # fmt: skip
def test_public_columns_whose_types_differ_between_parts_are_refused(
    folder: Path, first: pa.DataType, second: pa.DataType
) -> None:
    """Or converted; but never taken for what they are not."""
    new_policy(folder / "desk", public={"age": "it is on the list"})
    parts = Path("parts")
    parts.mkdir()
    table = table_of()
    for start, name, kind in ((0, "a", first), (20, "b", second), (40, "c", first)):
        kept = pa.array(np.arange(start, start + 20)).cast(kind)
        write_parquet(parts / f"{name}.parquet", table.slice(start, 20).append_column("age", kept))
    message = refused(parts)
    assert "age" in message
    assert "b.parquet" in message


def test_an_absent_or_unknown_input_is_refused(folder: Path) -> None:
    assert "input absent.parquet does not exist" in refused("absent.parquet", code=6)
    Path("table.xlsx").write_bytes(b"PK")
    assert "input table.xlsx has no known suffix: use .parquet" in refused("table.xlsx")


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
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", AS_NOBODY, "privatize", "secret.parquet", "out.parquet", *ASKED, "--quiet"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in {2, 3}, done.stderr
    assert "secret.parquet" in words(done.stderr)
    assert "ermission" in done.stderr
    assert "damaged" not in done.stderr
    assert not list(folder.glob("out*"))
    assert list(states(folder).values()) == ["published"], "the one that was made before"


def test_a_table_that_changes_while_it_is_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise was drawn for rows that are gone: it stays charged, and the next run is a new release."""
    write = LocalEngine.write

    def rewritten(rows: int) -> Callable[..., Any]:
        def late(*arguments: Any) -> Any:
            write_parquet(Path("changing.parquet"), table_of(rows, seed=5))
            return write(*arguments)

        return late

    for rows, epsilon, said in ((61, 4, "it changed meanwhile"), (60, 3, "changed while it was read")):
        write_parquet(Path("changing.parquet"))
        asked = ("--B", "0.25", "--epsilon", epsilon, "--yes")
        with monkeypatch.context() as patch:
            patch.setattr(LocalEngine, "write", rewritten(rows))
            ran = cli("privatize", "changing.parquet", "out.parquet", *asked)
        assert ran.code == 6
        assert said in words(ran.err)
        assert "Noise was drawn" in ran.err
        assert not any(p.name.startswith((".out", "out")) for p in Path().iterdir())
        assert set(states(folder).values()) == {"reserved"}
    ran = cli("privatize", "changing.parquet", "out.parquet", *asked)
    assert ran.code == 0, "its noise was drawn for the rows that are there now"
    assert sorted(states(folder).values()) == ["published", "reserved"]


# Outputs


def test_an_output_that_exists_is_refused_without_force(folder: Path) -> None:
    Path("out.parquet").write_text("mine")
    assert "output out.parquet exists" in refused("good.parquet")
    assert Path("out.parquet").read_text() == "mine"


def test_force_never_deletes_a_folder_that_is_no_release(folder: Path) -> None:
    home = Path("home")
    home.mkdir()
    (home / "thesis.txt").write_text("ten years of work")
    message = refused("good.parquet", "--force", output="home")
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
        ("desk/out.parquet", "overlap"),
        (".", "output"),
    ],
)
def test_an_output_that_cannot_be_is_refused(folder: Path, output: str, said: str) -> None:
    Path("parts").mkdir()
    shutil.copy("good.parquet", "parts/a.parquet")
    source = "parts" if output.startswith("parts") else "good.parquet"
    assert said in refused(source, output=output)


def test_an_output_must_be_given_but_for_a_look(folder: Path) -> None:
    ran = cli("privatize", "good.parquet", *ASKED)
    assert (ran.code, "OUTPUT must be given" in ran.err) == (2, True)
    assert cli("privatize", "good.parquet", "--check", *ASKED).code == 0


# Requests


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('mechanism = "magic"', "mechanism = 'magic' is not one of"),
        ('mechanism = "staircase"', "the staircase mechanism takes exactly 1 column"),
        ("B = 3", "B"),
        ("B = 0", "B"),
        ('B = "wide"', "B"),
        ("epsilon = -1", "epsilon"),
        ("epsilon = inf", "epsilon"),
        ("epsilon = true", "epsilon"),
        ("delta = 1.0", "delta"),
        ("epsilom = 4", "epsilom"),
        ('release = "decisions"', "release"),
        ('features = ["calls", "calls"]', "features names 'calls' twice"),
        ("features = []", "features"),
        ('features = ["income"]', "the policy releases no income: ask for some of calls, texts, topups"),
        ("[weights]\ncalls = 1", 'weights belongs to release = "scores"'),
        ('release = "scores"', 'release = "scores" needs weights'),
        ('release = "scores"\n[weights]\nincome = 1', "the policy releases no income"),
        ('release = "scores"\n[weights]\ncalls = inf', "a weight must be a finite number"),
        (
            'release = "scores"\nscores = ["calls"]\n[weights]\ncalls = 1.0\ntexts = 2.0',
            "under another name",
        ),
        ('release = "scores"\nscores = ["She is poor."]\n[weights]\ncalls = 1', "is no plain name"),
        ('leave_out = ["abcdef"]', "no release of this desk begins so"),
        ('asked_by = "The board. It agreed to everything."', "asked_by"),
        ("page = 'x'", "page"),
        ("id = [", "it is not TOML"),
    ],
)
def test_a_bad_request_is_refused_by_the_field(folder: Path, text: str, said: str) -> None:
    given = {"B": "0.25", "epsilon": "4"}
    top, table = text.partition("[")[0], text
    plain = "".join(f"{name} = {value}\n" for name, value in given.items() if not top.startswith(f"{name} "))
    Path("request.toml").write_text(plain + table + "\n")
    asked = ("good.parquet", "out.parquet", "--request", "request.toml", "--yes")
    before = snapshot(Path.cwd())
    ran = cli("privatize", *asked)
    after = snapshot(Path.cwd())
    assert {n for n in before | after if before.get(n) != after.get(n)} <= {"desk/log.jsonl"}
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert said in words(ran.err), ran.err
    assert states(folder) == {}


def test_what_is_asked_for_is_a_request_or_two_numbers(folder: Path) -> None:
    Path("request.toml").write_text("B = 0.25\nepsilon = 4\n")
    for given, said in (
        ((), "what is asked for must be given"),
        (("--B", "0.25"), "what is asked for must be given"),
        (("--request", "request.toml", "--B", "0.25"), "--B and --epsilon are the request's"),
        (("--request", "absent.toml"), "request absent.toml cannot be read"),
    ):
        with nothing_changes(folder):
            ran = cli("privatize", "good.parquet", "out.parquet", *given, "--yes")
        assert (ran.code, said in ran.err) == (2, True), ran.err


def test_scales_without_a_feature_are_refused(folder: Path) -> None:
    write_scales(Path("desk/scales.toml"), features=FEATURES[:2])
    assert "says nothing of topups" in refused("good.parquet")


def test_confidential_scales_are_refused(folder: Path) -> None:
    write_scales(Path("desk/scales.toml"), "confidential")
    assert "are confidential, learned from the same people" in refused("good.parquet")


def test_a_limit_that_is_reached_is_refused_before_the_work(folder: Path) -> None:
    new_policy(folder / "desk", limit=(0.25, 3.0, 0.05))
    message = refused("good.parquet", code=7)
    for said in ("of what one person may spend", "0% is spent", "together 1", "ε=3,", "ask for a smaller ε"):
        assert said in message
    # A tiny B does not sneak past: its ε at the limit's distance counts.
    ran = cli("privatize", "good.parquet", "out.parquet", "--B", "0.01", "--epsilon", "1", "--yes")
    assert (ran.code, "the limit would be passed" in ran.err) == (7, True)
    assert states(folder) == {}


def test_a_policy_that_is_none_is_refused_with_all_that_is_wrong(folder: Path) -> None:
    Path("desk/policy.toml").write_text('name = "people"\n[limit]\nB = 3\nepsilom = 1\n')
    for run in (("privatize", "good.parquet", "out.parquet", *ASKED), ("status",)):
        with nothing_changes(folder):
            ran = cli(*run)
        assert ran.code == 2
        for said in ("policy.toml", "epsilom", "B", "columns"):
            assert said in ran.err, ran.err
