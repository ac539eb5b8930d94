"""People whom the ledger should know and does not: another spelling or salt would begin all budgets anew."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from support.release import FEATURES, cli, look, make_desk, place_with, release, table_of, write_parquet
from targetdp.release import Desk, Refused

UNKNOWN = r"no earlier release shares half of these 60 people \(the most is 0\): ids with another spelling"


def renamed(table: pa.Table, spell: Callable[[str], str]) -> pa.Table:
    return table.set_column(0, "name", [[spell(name) for name in table["name"].to_pylist()]])


def salted(name: str) -> str:
    return hashlib.sha256(f"salt of this month{name}".encode()).hexdigest()[:16]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "a new salt": salted,
    "a country code": lambda name: f"+228{name}",
    "without leading zeros": lambda name: f"{int(name) + 1_000_000}",
    "in words": lambda name: f"subscriber {name}",
}


def titles(folder: Path) -> list[str | None]:
    with Desk.open(folder / "desk").ledger() as ledger:
        return [row.title["new_people"] for row in ledger.history.releases.values()]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_ids_need_the_holder_s_word_which_goes_on_record(tmp_path: Path, spelling: str) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    write_parquet(folder / "other.parquet", renamed(table_of(60), SPELLINGS[spelling]))
    with pytest.raises(Refused, match=UNKNOWN) as refused:
        release(folder, "b.parquet", table="other.parquet")
    assert "say why, on record: --new-people REASON" in str(refused.value)
    assert titles(folder) == [None], "nothing was charged"
    release(folder, "b.parquet", table="other.parquet", new_people="a second country")
    assert titles(folder) == [None, "a second country"]
    # From then on they are known, too.
    release(folder, "c.parquet", table="other.parquet")
    release(folder, "d.parquet")
    assert titles(folder) == [None, "a second country", None, None]


def test_the_command_takes_the_word_and_shows_it(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    write_parquet(folder / "other.parquet", renamed(table_of(60), salted))
    given = (
        "privatize", folder / "other.parquet", folder / "b.parquet", "--B", 0.25, "--epsilon", 4, "--yes",
        "--desk", folder / "desk",
    )  # fmt: skip
    refused = cli(*given)
    assert refused.code != 0
    assert "--new-people REASON" in refused.err
    assert cli(*given, "--new-people", "a second country").code == 0
    assert titles(folder) == [None, "a second country"]
    assert "a second country" in cli("ledger", "log", "--json", "--desk", folder / "desk").out


@pytest.mark.parametrize("word", ["", " ", "two\nlines", "x" * 501])
def test_the_word_is_one(tmp_path: Path, word: str) -> None:
    folder = place_with(tmp_path)
    with pytest.raises(ValueError, match="new_people"):
        release(folder, new_people=word)


def test_half_is_enough_and_less_is_not(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    ids = table_of(60)["name"].to_pylist()
    for known, fits in ((30, True), (29, False)):
        names = [*ids[:known], *(f"new {i}" for i in range(60 - known))]
        table = table_of(60).set_column(0, "name", [names])
        problems = look(folder, table=table).problems
        assert (problems == ()) == fits
        if not fits:
            assert "(the most is 29)" in str(problems[0])


def sampled(folder: Path) -> None:
    """A desk, a table of 200 people, and a sample of 20 of them."""
    write_parquet(folder / "in.parquet", table_of(200))
    write_parquet(folder / "sampled.parquet", table_of(200).slice(0, 20))
    make_desk(folder)


def test_a_sample_and_then_everybody_needs_no_word(tmp_path: Path) -> None:
    sampled(tmp_path)
    sample = release(tmp_path, "sample.parquet", table="sampled.parquet").certificate.release
    assert look(tmp_path).problems == ()
    assert release(tmp_path, "rest.parquet", leave_out=(sample,)).certificate.rows == 180
    assert release(tmp_path, "all.parquet").certificate.rows == 200


def test_everybody_and_then_a_sample_needs_no_word(tmp_path: Path) -> None:
    sampled(tmp_path)
    release(tmp_path, "all.parquet")
    assert release(tmp_path, "sample.parquet", table="sampled.parquet").certificate.rows == 20


def test_leaving_people_out_does_not_hide_that_the_others_are_spelled_anew(tmp_path: Path) -> None:
    """A few known people, left out, would otherwise vouch for everybody."""
    folder = place_with(tmp_path)
    first = release(folder, "a.parquet").certificate.release
    plain, anew = table_of(60), renamed(table_of(60), salted)
    write_parquet(folder / "mixed.parquet", pa.concat_tables([plain.slice(0, 3), anew.slice(3)]))
    with pytest.raises(Refused, match=r"shares half of these 60 people \(the most is 3\)"):
        release(folder, "b.parquet", table="mixed.parquet", leave_out=(first,))


def test_a_release_that_drew_nothing_makes_nobody_known(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert ledger.history.releases == {}
    assert look(folder, table=renamed(table_of(60), salted)).problems == (), "the first release has no before"


def test_who_is_known_is_told_before_the_release(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    done = release(folder, "a.parquet", features=FEATURES[:2]).certificate
    some = pa.concat_tables([table_of(60).slice(0, 40), renamed(table_of(60), salted).slice(0, 10)])
    seen = look(folder, table=some)
    assert seen.problems == ()
    assert f"of these people the ledger knows: 40 in {done.release[:12]}" in "\n".join(seen.lines)
