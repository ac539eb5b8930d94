"""What is published beside a table tells nothing that was not paid for.

Two tables that differ in one person (a neighbor within B, or somebody extreme) are released alike, each at a
desk of its own. Certificates, pages, printed words, logs and ledgers may differ in what every release has of
its own (its name, time, hashes, signature), and in nothing else.
"""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.leaks import masked, tables, without_own
from support.release import (
    ASKED,
    FEATURES,
    Ran,
    cli,
    make_desk,
    new_policy,
    place_with,
    read_back,
    request_of,
    table_of,
    write_csv,
    write_parquet,
)
from targetdp.release import certificate_path
from targetdp.release._staging import page_path

BOUNDS = dict.fromkeys(FEATURES, (-1e3, 1e3))
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "pseudonyms": ({"pseudonyms": True}, {}),
    "private scales": ({"scales": "private", "bounds": BOUNDS}, {}),
    "gaussian": ({}, {"mechanism": "gaussian", "delta": 1e-4}),
    "scores": ({}, {"release": "scores", "weights": {"calls": 2.0, "texts": -1.0}}),
    "gaps filled": ({"gaps": {"all": 0.0}}, {}),
    "CSV": ({}, {}),
}


def run(table: pa.Table, output: str, **asked: Any) -> Ran:
    """A release in this folder, at the desk that is there."""
    Path("request.toml").write_text(request_of(**asked).text(), encoding="utf-8")
    source = write_parquet(Path("in.parquet"), table)
    return cli("privatize", source, output, "--request", "request.toml", "--yes", "--force")


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


@pytest.mark.parametrize("way", WAYS)
def test_nothing_differs_but_what_is_each_releases_own(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, asked = WAYS[way]
    seen: dict[str, list[str]] = {}
    for number, (name, table) in enumerate(tables(3_000 if way == "private scales" else 60).items()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        make_desk(folder, **policy)
        output = Path("out.csv" if way == "CSV" else "out.parquet")
        ran = run(table, output.name, **asked)
        assert ran.code == 0, ran.err
        assert read_back(output).num_rows == table.num_rows
        certificate = without_own(json.loads(certificate_path(output).read_text(encoding="utf-8")))
        texts = [
            page_path(output).read_text(encoding="utf-8"), for_others(ran.err), ran.out, ledger_text(),
            Path("desk/log.jsonl").read_text(encoding="utf-8"), cli("ledger", "show", "--json").out,
            cli("status", "--json").out,
        ]  # fmt: skip
        if way == "private scales":  # they were paid for: their values may differ, nothing else
            assert certificate["scales"].pop("values") is not None
            texts = [re.sub(r"[-−]?\d[\d.,e+-]*", "N", masked(text)) for text in texts]
        places = [masked(text).replace(str(folder), "PLACE") for text in texts]
        seen[name] = [json.dumps(certificate, sort_keys=True), *places]
    for texts_of_a_kind in zip(*seen.values(), strict=True):
        assert len(set(texts_of_a_kind)) == 1, texts_of_a_kind


def test_what_is_for_the_holder_only_stays_with_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows were clipped is told to the holder, and is in nothing that is handed over or kept."""
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path)
    told = {}
    for name in ("as it is", "extreme"):
        source = write_parquet(Path("in.parquet"), tables()[name])
        ran = cli("privatize", source, "out.parquet", *ASKED, "--force", "--json")
        told[name] = ran.json["for_the_data_holder_only"]["rows_clipped"]
        output = Path("out.parquet")
        texts = [path.read_text() for path in (certificate_path(output), page_path(output))]
        for text in [*texts, ledger_text(), Path("desk/log.jsonl").read_text()]:
            assert not re.search(rf"\b{told[name]}\b.{{0,40}}clipped|clipped.{{0,40}}\b{told[name]}\b", text)
    assert told["as it is"] != told["extreme"] or told["as it is"] > 0


def test_a_refusal_for_budget_tells_nothing_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, limit=(0.25, 1.0, 0.05))
    said = set()
    for table in tables().values():
        ran = run(table, "out.parquet")
        assert ran.code == 2
        said.add(masked(ran.err))
    assert len(said) == 1


def test_the_answer_to_an_official_tells_nothing_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something is wrong with them: the sentence that may be handed on is of policy and ledger."""
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, most=(3.0, 1e-5))
    table = table_of()
    gaps = table.set_column(1, "calls", [[None, *table["calls"].to_pylist()[1:]]])
    words = table.set_column(1, "calls", pa.array(["x"] * 60))
    answers = set()
    for one in (*tables().values(), gaps, words):
        ran = run(one, "out.parquet")
        assert ran.code == 2
        (answer,) = (line for line in ran.err.splitlines() if line.startswith("you may tell who asked: "))
        answers.add(answer)
    assert len(answers) == 1
    new_policy(tmp_path / "desk", most=(3.0, 1e-5), requests={"tell": False})
    assert "you may tell who asked" not in run(table, "out.parquet").err


def test_nothing_that_was_drawn_is_shown_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not private scales, nor what is clipped under them: who looks and draws again would choose."""
    monkeypatch.chdir(tmp_path)
    make_desk(tmp_path, scales="private", bounds=BOUNDS)
    source = write_parquet(Path("in.parquet"), table_of(3_000))
    looks = [cli("privatize", source, "--check", *ASKED) for _ in range(2)]
    assert looks[0] == looks[1]
    assert "clipped is known when the scales are drawn" in looks[0].err
    record = cli("privatize", source, "--check", *ASKED, "--json").json
    assert record["clipped_for_the_data_holder_only"] is None

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


# The policy that init proposes


def test_a_proposed_policy_holds_no_number_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same columns, other people and other numbers: the same text, to the last byte."""
    several = [table_of(60, seed=0), table_of(500, seed=1), *list(tables().values())[1:]]
    several.append(pa.table({"name": ["x1", "x2"]} | {name: [1e300, -7.0] for name in FEATURES}))
    texts, told = set(), set()
    for number, table in enumerate(several):
        folder = tmp_path / f"{number}" / "people"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        ran = cli("init", write_parquet(Path("in.parquet"), table), "--id", "name")
        assert ran.code == 0, ran.err
        texts.add(Path("desk/policy.toml").read_text(encoding="utf-8"))
        told.add(masked(Path("desk/log.jsonl").read_text(encoding="utf-8")))
    assert len(texts) == len(told) == 1
    numbers = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", texts.pop()))
    assert not numbers & {f"{value:g}" for table in several for value in values(table)}


def values(table: pa.Table) -> list[float]:
    return [float(value) for name in FEATURES for value in np.asarray(table.column(name))]


# Values of people

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
