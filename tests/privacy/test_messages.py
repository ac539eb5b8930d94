"""No message and no record holds a value of a person, and none tells what was drawn before it is published.

Messages are the data holder's, but they end up in logs of servers and in mails.
"""

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    FEATURES,
    cli,
    make_desk,
    new_policy,
    place_with,
    table_of,
    write_csv,
    write_parquet,
)


def for_others(words: str) -> str:
    """What is printed, but for what is for the data holder only."""
    own = ("for you only", "longer than 1")
    return "\n".join(line for line in words.splitlines() if not any(part in line for part in own))


def ledger_text() -> str:
    """All that the ledger says, in one text."""
    connection = sqlite3.connect("desk/ledger.db")
    try:
        rows = connection.execute("SELECT number, kind, body FROM entries ORDER BY number").fetchall()
    finally:
        connection.close()
    return "\n".join(map(str, rows))


def test_nothing_that_was_drawn_is_shown_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not private scales, nor what is clipped under them: who looks and draws again would choose."""
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, scales="private")
    source = write_parquet(Path("in.parquet"), table_of(3_000))
    looks = [cli("privatize", source, "--check", *ASKED) for _ in range(2)]
    assert looks[0] == looks[1]
    assert "clipped is known when the scales are drawn" in looks[0].err
    record = cli("privatize", source, "--check", *ASKED, "--json").json
    assert record["look"]["clipped_for_the_data_holder_only"] is None

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("targetdp.release._engine._local.LocalEngine.write", stop)
        ran = cli("privatize", source, "out.parquet", *ASKED)
    assert ran.code == 130
    assert "Noise was drawn" in ran.err
    before = for_others(looks[0].err).splitlines()[:-1]
    assert for_others(ran.err).splitlines()[: len(before)] == before, "as the look said"
    assert len(ran.err.splitlines()) == len(before) + 1, "and then only that it was interrupted"
    assert "center" not in Path("desk/log.jsonl").read_text() + ledger_text()


CANARY, PERSON = "Canary Smith", 8271.93745
"""Text and a number that somebody has, and that no message may hold."""


def with_canary(**columns: Any) -> pa.Table:
    """A table where the second person has the canary's number, and other columns as given."""
    table = table_of(60)
    calls = [table["calls"].to_pylist()[0], PERSON, *table["calls"].to_pylist()[2:]]
    made = {name: table[name].to_pylist() for name in ("name", *FEATURES)} | {"calls": calls} | columns
    return pa.table({name: pa.array(column) for name, column in made.items()})


NAMES = [f"p{i}" for i in range(60)]
BAD: dict[str, pa.Table] = {
    "text among numbers": with_canary(texts=[CANARY, *map(str, range(59))]),
    "text": with_canary(texts=[CANARY] * 60),
    "the same id": with_canary(name=[CANARY, CANARY, *NAMES[2:]]),
    "an id with space": with_canary(name=[f" {CANARY}", *NAMES[1:]]),
    "an id that is a formula": with_canary(name=[f"={CANARY}", *NAMES[1:]]),
    "a gap": with_canary(texts=[None, *[1.5] * 59]),
    "infinite": with_canary(texts=[float("inf"), *[1.5] * 59]),
    "constant": with_canary(texts=[PERSON] * 60),
    "damaged text": with_canary(
        name=pa.array([CANARY.encode() + b"\xff"] * 60, pa.binary()).view(pa.string())
    ),
}


def everything(folder: Path) -> bytes:
    """All bytes at the desk but keys and lists of people, which are keyed."""
    return b"".join(path.read_bytes() for path in sorted((folder / "desk").rglob("*")) if path.is_file())


def has_canary(text: str | bytes) -> bool:
    content = text.encode() if isinstance(text, str) else text
    return CANARY.encode() in content or f"{PERSON:.6g}".encode() in content or b"8271.9" in content


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("kind", BAD)
def test_no_message_and_no_record_holds_a_value_of_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, suffix: str
) -> None:
    folder = place_with(tmp_path / "place")
    monkeypatch.chdir(folder)
    if suffix == "csv" and kind == "damaged text":
        content = write_csv(Path("bad.csv"), with_canary()).read_bytes()
        Path("bad.csv").write_bytes(content + f"{CANARY}".encode() + b"\xff,1,2,3\n")
    else:
        write = write_parquet if suffix == "parquet" else write_csv
        write(Path(f"bad.{suffix}"), BAD[kind])
    for run in (
        ("privatize", f"bad.{suffix}", "out.csv", *ASKED),
        ("privatize", f"bad.{suffix}", "out.csv", *ASKED, "--json"),
        ("privatize", f"bad.{suffix}", "--check", *ASKED),
        ("status",),
        ("ledger", "show"),
    ):
        ran = cli(*run)
        assert not has_canary(ran.out + ran.err), run
    assert not has_canary(everything(folder))
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("line", ["8271.93745", f"{CANARY},1,2", f"{CANARY},1,2,3,4,5", f'"{CANARY},1,2,3'])
def test_a_broken_line_of_a_csv_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    folder = place_with(tmp_path / "place")
    monkeypatch.chdir(folder)
    content = write_csv(Path("bad.csv"), table_of()).read_text()
    Path("bad.csv").write_text(f"{content}{line}\n")
    for run in (("privatize", "bad.csv", "out.csv", *ASKED), ("columns", "bad.csv")):
        ran = cli(*run)
        assert ran.code == 2
        assert not has_canary(ran.out + ran.err), ran.err


def test_a_release_holds_no_true_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place_with(tmp_path / "place")
    monkeypatch.chdir(folder)
    write_parquet(Path("in.parquet"), with_canary(name=[CANARY, *NAMES[1:]]))
    new_policy(folder / "desk", pseudonyms=True)
    for output in ("out.parquet", "out.csv"):
        ran = cli("privatize", "in.parquet", output, *ASKED)
        assert ran.code == 0, ran.err
        written = [path for path in folder.glob(f"{output}*") if path.is_file()]
        assert len(written) == 3
        assert not any(has_canary(path.read_bytes()) for path in written)
        assert not has_canary(ran.out + ran.err)
    assert not has_canary(everything(folder))
