"""People who agreed are handed over as the policy allows, on record first, or not at all."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.agreed import (
    AGREED,
    TO,
    agreements,
    handed_over,
    list_people,
    place_of_agreed,
)
from support.release import (
    FEATURES,
    hidden,
    new_policy,
    nothing_changes,
    read_back,
    release,
    request_of,
    write_csv,
    write_parquet,
)
from targetdp.release import (
    Desk,
    NotHandedOver,
    SigningKey,
    agreed_rows,
    agreement_path,
    check_agreed,
    privatize,
    read_agreement,
)
from targetdp.release._staging import Staging


def look(folder: Path, **given: Any) -> Any:
    return check_agreed(folder / "in.parquet", folder / "agreed.csv", desk=folder / "desk", **given)


@pytest.mark.parametrize("output", ["agreed.parquet", "agreed.csv"])
def test_rows_go_out_as_they_are_and_nobody_else_s(tmp_path: Path, output: str) -> None:
    folder = place_of_agreed(tmp_path)
    (folder / "people").mkdir()
    (folder / "agreed.csv").rename(folder / "people" / "list.csv")
    done = handed_over(folder, output, people="people/list.csv")
    whole, given = read_back(folder / "in.parquet"), read_back(folder / output)
    assert given.column_names == ["name", *FEATURES]
    expected = {row["name"]: row for row in whole.slice(0, 20).to_pylist()}
    rows = given.to_pylist()
    assert [row["name"] for row in rows] == sorted(expected), "in the order of published ids"
    assert all(row == expected[row["name"]] for row in rows), "to the last bit"
    assert stat.S_IMODE((folder / output).stat().st_mode) == 0o600
    assert hidden(folder) == []
    record = read_agreement(agreement_path(folder / output))
    assert record == done.agreement
    assert (record.to, record.rows, record.in_all, record.columns) == (TO, 20, 20, FEATURES)
    assert agreements(folder) == [(record.agreement, 20)]


def test_the_entry_names_them_and_what_they_agreed_to(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    record = handed_over(folder).agreement
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        row = ledger.history.agreements[record.agreement]
        body = json.loads(ledger.entries[row.entry - 1].body)
        ids = read_back(folder / "agreed.parquet")["name"].combine_chunks()
        assert sorted(ledger.people_of(row)) == sorted(desk.names().tags(ids))
    assert (row.to, row.columns, row.rows, row.sha256) == (TO, FEATURES, 20, record.output.sha256)
    assert {"people", "columns", "to", "rows", "in_all", "sha256", "title"} == set(body)
    assert not any(name in json.dumps(body) for name in ids.to_pylist()), "no id is in the ledger"
    assert record.ledger.number == row.entry


def test_pseudonyms_are_those_of_releases(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, pseudonyms=True)
    handed_over(folder)
    release(folder)
    given, released = (read_back(folder / f"{n}.parquet")["name"].to_pylist() for n in ("agreed", "out"))
    assert set(given) < set(released)
    assert agreed_rows(folder / "agreed.parquet").pseudonyms


def test_a_list_may_spell_ids_as_people_do(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, spelling={"spaces": "remove"})
    ids = read_back(folder / "in.parquet")["name"].to_pylist()[:3]
    write_csv(folder / "agreed.csv", pa.table({"label": [1, 0, 1], "who": [f" {name} " for name in ids]}))
    handed_over(folder, column="who")
    assert read_back(folder / "agreed.parquet")["name"].to_pylist() == sorted(ids)


def test_a_csv_is_handed_over_as_a_parquet_is(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    write_csv(folder / "in.csv", read_back(folder / "in.parquet"))
    handed_over(folder)
    handed_over(folder, "again.parquet", table="in.csv")
    assert read_back(folder / "again.parquet").equals(read_back(folder / "agreed.parquet"))
    assert len(agreements(folder)) == 1, "the same rows are the same agreement"


def test_gaps_are_filled_as_declared_and_others_stay(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, gaps={"calls": -1.0})
    table = read_back(folder / "in.parquet")
    for name in ("calls", "texts"):
        holes = [None, *table[name].to_pylist()[1:]]
        table = table.set_column(table.column_names.index(name), name, pa.array(holes, pa.float64()))
    write_parquet(folder / "in.parquet", table)
    done = handed_over(folder)
    first = table["name"].to_pylist()[0]
    row = {row["name"]: row for row in read_back(folder / "agreed.parquet").to_pylist()}[first]
    assert (row["calls"], row["texts"]) == (-1.0, None)
    assert done.agreement.gaps == {"calls": -1.0}
    assert done.look.found is not None
    assert done.look.found.gaps == {"texts": 1}


def test_what_a_policy_says_of_other_columns_does_not_stop_it_behind_its_entry(tmp_path: Path) -> None:
    """The ledger had the agreement for good, and nobody's rows went out."""
    folder = place_of_agreed(tmp_path, gaps={"texts": 0.0}, agreed=AGREED | {"columns": ["calls"]})
    done = handed_over(folder)
    assert done.agreement.gaps == {}
    assert read_back(folder / "agreed.parquet").column_names == ["name", "calls"]


@pytest.mark.parametrize("kind", ["in.parquet", "in.csv"])
def test_text_goes_out_where_decisions_may_look_at_it(tmp_path: Path, kind: str) -> None:
    agreed = AGREED | {"columns": ("calls", "region")}
    folder = place_of_agreed(tmp_path, decide=("region",), agreed=agreed, gaps={"all": 0})
    table = read_back(folder / "in.parquet")
    regions = ["north", *(["7", "south"] * 30)][:60]
    table = table.append_column("region", pa.array(regions))
    (write_csv if kind == "in.csv" else write_parquet)(folder / kind, table)
    handed_over(folder, table=kind)
    given = {row["name"]: row["region"] for row in read_back(folder / "agreed.parquet").to_pylist()}
    assert given == dict(zip(table["name"].to_pylist()[:20], regions[:20], strict=True))


# What is refused


def refused(folder: Path, *, output: str = "agreed.parquet", **given: Any) -> list[str]:
    """What keeps people from being handed over; nothing changed, and nothing is left."""
    with nothing_changes(folder / "desk" / "people"), pytest.raises(NotHandedOver) as found:
        handed_over(folder, output, **given)
    assert not (folder / output).exists()
    assert hidden(folder) == []
    assert "nothing was handed over" in str(found.value)
    return [problem.what for problem in found.value.look.problems]


def test_without_a_policy_nobody_is_handed_over(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, agreed={})
    (folder / "desk" / "people").mkdir()
    (problem,) = refused(folder)
    assert problem == "policy.toml lets nobody be handed over"
    seen = look(folder)
    lines = seen.problems[0].remedy.splitlines()[1:]
    text = (folder / "desk" / "policy.toml").read_text()
    (folder / "desk" / "policy.toml").write_text("\n".join([text, *lines]), encoding="utf-8")
    assert not look(folder).problems, "the remedy's lines can be pasted"


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    agreed = AGREED | {"at_most": 1, "columns": ("calls", "gone")}
    folder = place_of_agreed(tmp_path, decide=("gone",), agreed=agreed)
    (folder / "desk" / "people").mkdir()
    ids = read_back(folder / "in.parquet")["name"].to_pylist()[:3]
    write_csv(folder / "agreed.csv", pa.table({"name": [*ids, ids[0], "nobody", "none"]}))
    said = refused(folder)
    assert len(said) == 4
    for part in (
        f"names 1 people twice: {ids[0]}", "has no column 'gone'", "2 of these people are not in table",
        "3 people would be handed over in all, and policy.toml lets at most 1",
    ):  # fmt: skip
        assert any(part in one for one in said), part


def test_people_of_a_table_are_there_once_and_have_values(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    (folder / "desk" / "people").mkdir()
    table = read_back(folder / "in.parquet")
    ids = table["name"].to_pylist()
    table = table.set_column(0, "name", pa.array([*ids[:-1], ids[30]]))
    infinite = pa.array([float("inf"), *table["calls"].to_pylist()[1:]])
    write_parquet(folder / "in.parquet", table.set_column(1, "calls", infinite))
    said = refused(folder)
    assert any("1 rows repeat an id" in one for one in said)
    assert any("cannot be handed over as they are" in one for one in said)


def test_at_most_counts_everybody_ever_erased_ones_too(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path, agreed=AGREED | {"at_most": 25})
    handed_over(folder)
    list_people(folder, 24, start=4, name="more.csv")
    handed_over(folder, "more.parquet", people="more.csv")
    assert read_agreement(agreement_path(folder / "more.parquet")).in_all == 24, "who is in both is one"
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        ids = read_back(folder / "in.parquet")["name"].combine_chunks().slice(0, 2)
        assert len(ledger.erase(desk.names().tags(ids), "they asked for it")) == 1
    list_people(folder, 26, start=25, name="one.csv")
    handed_over(folder, "one.parquet", people="one.csv")
    list_people(folder, 27, start=26, name="two.csv")
    (problem,) = refused(folder, output="two.parquet", people="two.csv")
    assert problem == "26 people would be handed over in all, and policy.toml lets at most 25"


def test_a_change_of_the_policy_needs_a_reason_and_an_approval(tmp_path: Path) -> None:
    auditor = SigningKey.open(tmp_path / "auditor.pem")
    folder = place_of_agreed(tmp_path / "place", agreed={}, approvers={"auditor": auditor.public})
    release(folder)
    new_policy(folder / "desk", approvers={"auditor": auditor.public}, agreed=AGREED)
    (problem,) = refused(folder)
    assert "people who agreed are handed over as they are" in problem
    new_policy(folder / "desk", approvers={"auditor": auditor.public}, agreed=AGREED, reason="a survey")
    (problem,) = refused(folder)
    assert "needs an approval" in problem
    with Desk.open(folder / "desk").ledger() as ledger:
        proposal = ledger.history.proposal(Desk.open(folder / "desk").policy)
    (folder / "desk" / "approval.json").write_text(proposal.approved(auditor).text(), encoding="utf-8")
    handed_over(folder)
    assert len(agreements(folder)) == 1


def test_an_output_that_exists_stays(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    first = handed_over(folder).agreement.agreement
    list_people(folder, 30)
    with pytest.raises(ValueError, match="exists: choose another name"):
        handed_over(folder)
    assert read_agreement(agreement_path(folder / "agreed.parquet")).agreement == first
    second = handed_over(folder, force=True).agreement
    assert (second.rows, second.in_all) == (30, 30)
    assert agreed_rows(folder / "agreed.parquet").agreement == second.agreement
    release(folder, "agreed.parquet", force=True)
    assert not agreement_path(folder / "agreed.parquet").exists(), "no record stays beside another table"


def test_a_folder_of_parts_is_no_output(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    with pytest.raises(ValueError, match=r"name a \*.parquet or \*.csv"):
        handed_over(folder, "agreed")


def test_whoever_says_no_changes_nothing(tmp_path: Path) -> None:
    folder = place_of_agreed(tmp_path)
    seen = look(folder)
    assert not seen.problems
    assert any("AS IT IS" in line for line in seen.lines)
    assert any("0.87" in line and "0.96" in line for line in seen.lines)
    assert seen.record()["people"] == 20
    assert agreements(folder) == []
    assert not (folder / "desk" / "people").exists()


def test_who_was_handed_over_elsewhere_is_known_here(tmp_path: Path) -> None:
    place_of_agreed(tmp_path / "one")
    handed_over(tmp_path / "one")
    place_of_agreed(tmp_path / "two")
    with pytest.raises(ValueError, match="20 of these people are in releases of another desk of yours"):
        release(tmp_path / "two")


# Runs that are killed


@pytest.mark.parametrize(
    ("where", "entries"),
    [
        ("Ledger.agree", 0),
        ("Pen.append", 0),
        ("Staging.publish", 1),
        ("Path.rename", 1),
        ("Desk.log", 1),
        ("Staging.__exit__", 1),
    ],
)
def test_whenever_a_run_is_killed_nothing_goes_out_without_an_entry(
    tmp_path: Path, where: str, entries: int
) -> None:
    folder = place_of_agreed(tmp_path)
    release(folder, epsilon=0.5)  # so that the policy is on record, and nothing but the entry is appended
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from support.agreed import handed_over\n"
        "from targetdp.release import Desk\n"
        "from targetdp.release._staging import Staging\n"
        "from targetdp.release._ledger._book import Ledger\n"
        "from targetdp.release._ledger._chain import Pen\n"
        "def die(*_, **__):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{where} = die\n"
        "handed_over(Path(sys.argv[1]))\n"
    )
    ended = subprocess.run(  # noqa: S603 (our own interpreter and script)
        [sys.executable, "-c", script, str(folder)], check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL
    before = agreements(folder)
    assert len(before) == entries
    if (folder / "agreed.parquet").exists():
        assert entries == 1
        assert agreed_rows(folder / "agreed.parquet").agreement == before[0][0]
        with pytest.raises(ValueError, match="exists: choose another name"):
            handed_over(folder)
    else:
        handed_over(folder)
    assert len(agreements(folder)) == 1, "an entry of a killed run is found again"
    assert agreed_rows(folder / "agreed.parquet").agreement == agreements(folder)[0][0]
    assert hidden(folder) == []
    assert len(list((folder / "desk" / "people").iterdir())) == 2, "no list of a killed run is left"


def test_a_killed_release_of_the_same_name_is_tidied_up(tmp_path: Path, monkeypatch: Any) -> None:
    """The next run may hand over people under a name that a release was dying under."""
    folder = place_of_agreed(tmp_path)
    kept = Staging.__exit__

    def left(self: Staging, *_: Any) -> None:
        self._lock_path.unlink()
        os.close(self._lock or 0)
        self._lock = None

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "__exit__", left)
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("no rename")))
        with pytest.raises(OSError, match="no rename"):
            release(folder, "agreed.parquet", epsilon=0.5)
    assert Staging.__exit__ is kept
    handed_over(folder)
    assert agreed_rows(folder / "agreed.parquet").rows == 20
    assert sorted(p.name for p in folder.glob("agreed.parquet*")) == [
        "agreed.parquet", "agreed.parquet.agreement.json",
    ]  # fmt: skip


def test_an_agreement_that_came_between_is_looked_at_again(tmp_path: Path, monkeypatch: Any) -> None:
    """Whoever is told how many people have no promise must not release with others."""
    folder = place_of_agreed(tmp_path)

    def meanwhile(_: Any) -> None:
        handed_over(folder)

    with pytest.raises(ValueError, match="agreements were made or changed meanwhile"):
        privatize(
            folder / "in.parquet", folder / "out.parquet", desk=folder / "desk", request=request_of(),
            confirm=meanwhile,
        )  # fmt: skip
    release(folder)
