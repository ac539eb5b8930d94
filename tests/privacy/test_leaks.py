"""What is published beside a table, and what stays at the desk, tells nothing that was not paid for.

Two tables that differ in one person (a neighbor within B, or somebody extreme) are released alike. What is
told of them may differ in what every release has of its own (its name, time, hashes, signature), and in
nothing else.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.leaks import Twins, must_be_alike, numbers_of, tables
from support.release import (
    FEATURES,
    cli,
    look,
    make_desk,
    place_with,
    release,
    request_of,
    snapshot,
    table_of,
    write_parquet,
    write_scales,
)
from targetdp.release import Refused, certificate_path
from targetdp.release import make_desk as propose_desk
from targetdp.release._staging import page_path

ASKED: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-4}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "gaussian": ({}, ASKED),
    "pseudonyms": ({"pseudonyms": True}, ASKED),
    "gaps": ({"gaps": {"all": 0}}, ASKED),
    "private scales": ({"scales": "private"}, ASKED),
    "earlier scales": ({"scales": "private"}, ASKED),
    "CSV": ({}, ASKED),
}


@pytest.mark.parametrize("way", WAYS)
def test_releases_of_neighbors_differ_in_nothing_but_their_own(way: str, tmp_path: Path) -> None:
    policy, asked = WAYS[way]
    rows = 3_000 if "scales" in policy else 60
    place_with(tmp_path, rows, **policy)
    if way == "earlier scales":
        release(tmp_path, "first.parquet", **asked)
    twins = Twins(tmp_path, request_of(**asked))
    output = "out.csv" if way == "CSV" else "out.parquet"
    told = [twins.release(table, output) for table in tables(rows, gap=way == "gaps").values()]
    if way == "private scales":  # they were paid for: their values may differ, nothing else
        paid = [one.pop_scales() for one in told]
        assert all(values and estimated for values, estimated in paid)
    must_be_alike(told)


def test_everything_that_could_tell_is_compared(tmp_path: Path) -> None:
    """Or the test above would hold for whatever it does not look at."""
    place_with(tmp_path, **WAYS["gaussian"][0])
    told = Twins(tmp_path, request_of(**ASKED)).release(tables()["as it is"])
    assert {"guarantee", "rows", "scales", "mechanism", "conditions", "output"} <= set(told.certificate)
    assert [entry["kind"] for entry in told.ledger] == ["opened", "policy", "reserved", "published"]
    assert {"charge", "people", "space", "title"} == set(told.ledger[2]["body"])
    assert [line["event"] for line in told.log] == ["made", "released"]
    assert "people/RELEASE.tags" in told.files
    # No secret of a release is left at the desk.
    assert [name for name in told.files if name.startswith("drafts/")] == ["drafts/CACHEDIR.TAG"]
    assert "RELEASE" in told.page


def test_what_is_for_the_holder_only_stays_with_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows were clipped is told to the holder, and is in nothing that is handed over or kept."""
    monkeypatch.chdir(tmp_path)
    place_with(tmp_path)
    clipped = {}
    for name in ("as it is", "extreme"):
        source = write_parquet(Path("in.parquet"), tables()[name])
        asked = ("--B", "0.25", "--epsilon", "4", "--yes")
        ran = cli("privatize", source, "out.parquet", *asked, "--force", "--json")
        clipped[name] = ran.json["for_the_data_holder_only"]["rows_clipped"]
        assert ran.json["look"]["clipped_for_the_data_holder_only"] == clipped[name] / 60
        texts = [
            certificate_path(Path("out.parquet")),
            page_path(Path("out.parquet")),
            Path("desk/log.jsonl"),
        ]
        for path in texts:
            count = rf"\b{clipped[name]}\b"
            assert not re.search(rf"{count}.{{0,40}}clipped|clipped.{{0,40}}{count}", path.read_text())
        assert b"clipped" not in Path("desk/ledger.db").read_bytes()
    assert clipped["extreme"] == clipped["as it is"] + 1


# Refusals and failures


def test_a_refusal_for_budget_tells_nothing_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place_with(tmp_path, limit=(0.25, 1.0, 0.01))
    said = set()
    for table in tables().values():
        source = write_parquet(Path("in.parquet"), table)
        ran = cli("privatize", source, "out.parquet", "--B", "0.25", "--epsilon", "4", "--yes")
        assert ran.code == 7
        said.add(ran.err)
    assert len(said) == 1
    assert "the limit would be passed" in said.pop()
    lines = [json.loads(line) for line in Path("desk/log.jsonl").read_text().splitlines()[1:]]
    assert len({json.dumps(line | {"time": None}) for line in lines}) == 1


def test_what_an_official_may_be_told_tells_nothing_of_the_rows(tmp_path: Path) -> None:
    """Neither of their values, nor of what is wrong with them: the data holder is told that."""
    place_with(tmp_path, most=(2.0, 0.5))
    told, problems = set(), set()
    for table in tables(gap=True).values():
        seen = look(tmp_path, table=table, **ASKED)
        told.add(seen.reply)
        problems.add(tuple(map(str, seen.problems)))
    (reply,) = told
    assert "this desk would accept" in reply
    assert "gap" not in reply
    assert len(problems) == 2, "one of the tables has a gap"


def test_no_id_and_no_value_is_kept_at_a_desk_or_told_beside_a_release(tmp_path: Path) -> None:
    """Under pseudonyms; also when a release was refused, or ids were translated."""
    ids = [f"person-{i:03d}" for i in range(60)]
    table = table_of(60).set_column(0, "name", pa.array(ids))
    write_parquet(tmp_path / "in.parquet", table)
    make_desk(tmp_path, pseudonyms=True)
    release(tmp_path, **ASKED)
    bad = table.set_column(1, "calls", pa.array([np.inf, *table["calls"].to_pylist()[1:]]))
    twice = pa.concat_tables([table, table.slice(0, 1)])
    misspelled = table.set_column(0, "name", pa.array([f" {ids[0]}", *ids[1:]]))
    for wrong in (bad, twice, misspelled):
        with pytest.raises(Refused):
            release(tmp_path, "again.parquet", table=wrong, **ASKED)
    write_parquet(tmp_path / "some.parquet", table.select(["name"]).slice(0, 5))
    desk = ("--desk", tmp_path / "desk")
    assert cli("ids", tmp_path / "some.parquet", tmp_path / "list.csv", *desk).code == 0
    assert "person-" in (tmp_path / "list.csv").read_text()

    said = {name: content for name, content in snapshot(tmp_path / "desk").items() if content is not None}
    said |= {
        path.name: path.read_bytes()
        for path in (certificate_path(tmp_path / "out.parquet"), page_path(tmp_path / "out.parquet"))
    }
    events = [json.loads(line)["event"] for line in said["log.jsonl"].decode().splitlines()]
    assert events == ["made", "released", "refused", "refused", "refused", "ids translated"]
    numbers = {number.encode() for number in numbers_of(table) if len(number) > 5}
    raw = {np.float64(v).tobytes() for name in FEATURES for v in table[name].to_pylist()}
    for name, content in said.items():
        assert b"person-" not in content, name
        assert not [number for number in numbers | raw if number in content], name


# The policy that is proposed for a table


def proposed(folder: Path, table: pa.Table, scales: Path | None = None) -> str:
    folder.mkdir()
    write_parquet(folder / "in.parquet", table)
    made = propose_desk(
        folder / "in.parquet", folder / "desk", id_column="name", name="people", scales=scales
    )
    return (made.desk.path / "policy.toml").read_text(encoding="utf-8")


def of_kinds(rows: int, seed: int, phone: str) -> pa.Table:
    """Columns of every kind that a proposal tells apart, and other numbers for each seed."""
    rng = np.random.default_rng(seed)
    table = table_of(rows, seed)
    gaps = [
        None if i in set(rng.choice(rows, 3, replace=False)) else float(rng.normal()) for i in range(rows)
    ]
    infinite = [float(v) for v in rng.normal(size=rows)]
    infinite[int(rng.integers(rows))] = np.inf
    return (
        table.set_column(0, "name", pa.array([f"{phone}{i:06d}" for i in rng.permutation(rows)]))
        .append_column("with gaps", pa.array(gaps, pa.float64()))
        .append_column("infinite", pa.array(infinite))
        .append_column("count", pa.array(rng.integers(0, 10 ** (seed + 1), rows)))
        .append_column("region", pa.array(rng.choice(["North", "South", f"District {seed}"], rows)))
        .append_column("constant", pa.array([float(seed)] * rows))
    )


@pytest.mark.parametrize("scales", ["private", "public"])
def test_no_number_of_the_table_is_in_the_policy_that_is_proposed(scales: str, tmp_path: Path) -> None:
    given = write_scales(tmp_path / "scales.toml") if scales == "public" else None
    first, second = of_kinds(60, 1, "90"), of_kinds(137, 4, "79")
    text = proposed(tmp_path / "first", first, given)
    assert proposed(tmp_path / "second", second, given) == text
    assert '"calls"' in text
    assert "it has gaps" in text or scales == "public"
    for table in (first, second):
        written = {n for n in numbers_of(table.select(FEATURES)) if len(n) > 5}
        assert not [number for number in written if number in text]
        assert not [one for one in table["name"].to_pylist() if one in text]


def test_neighbors_get_the_same_policy(tmp_path: Path) -> None:
    texts = {proposed(tmp_path / str(i), table) for i, table in enumerate(tables().values())}
    assert len(texts) == 1
