"""What is known of a desk outside its folder: the user's other desks, and where its ledger stood."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.release import (
    certificate_of,
    cli,
    holds,
    look,
    make_desk,
    nothing_changes,
    place_with,
    release,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from targetdp.release import Desk, LedgerDamaged, Refused, Released, certificate_path
from targetdp.release import make_desk as propose
from targetdp.release._trust._keys import config_folder


def user(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """From now on another user is at work."""
    config.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))


def others(rows: int = 60) -> pa.Table:
    """A table of people whom no other test has."""
    return table_of(rows).set_column(0, "name", [[f"other {i}" for i in range(rows)]])


# Other desks of the same user


def test_people_of_another_desk_are_refused_at_a_release(tmp_path: Path) -> None:
    here, there = place_with(tmp_path / "here"), place_with(tmp_path / "there")
    assert look(there).problems == (), "the other desk has released nothing"
    release(there)
    with pytest.raises(Refused, match="60 of these people are in releases of another desk of yours") as error:
        release(here)
    assert str(there / "desk") in str(error.value)
    assert not (here / "out.parquet").exists()
    release(here, new_people="they only have the same numbers")
    with Desk.open(here / "desk").ledger() as ledger:
        (row,) = ledger.history.releases.values()
    assert row.title["new_people"] == "they only have the same numbers"


def test_one_person_is_enough_and_nobody_is_fine(tmp_path: Path) -> None:
    here, there = place_with(tmp_path / "here"), place_with(tmp_path / "there")
    release(there)
    assert look(here, table=others()).problems == ()
    one = pa.concat_tables([others(59), table_of(60).slice(7, 1)])
    (problem,) = look(here, table=one).problems
    assert problem.what.startswith("1 of these people are in releases of another desk")
    release(here, table=others())


def test_people_of_another_desk_are_refused_when_a_desk_is_made(tmp_path: Path) -> None:
    there = place_with(tmp_path / "there")
    release(there)
    place, table = tmp_path / "here", there / "in.parquet"
    place.mkdir()
    told = "60 people of .* are in releases of another desk of yours, .*/there/desk: .* --new-people REASON"
    with nothing_changes(place), pytest.raises(ValueError, match=told):
        propose(table, place / "desk", id_column="name")
    ran = cli("init", table, "--id", "name", "--desk", place / "desk")
    assert ran.code != 0
    assert "are in releases of another desk of yours" in words(ran.err)
    assert list(place.iterdir()) == []
    ran = cli("init", table, "--id", "name", "--desk", place / "desk", "--new-people", "another register")
    assert ran.code == 0
    assert "another register" in cli("ledger", "log", "--json", "--desk", place / "desk").out


def test_other_people_and_desks_without_releases_keep_no_desk_from_being_made(tmp_path: Path) -> None:
    there = place_with(tmp_path / "there")
    for name, table in (("a", table_of(60)), ("b", others())):
        (tmp_path / name).mkdir()
        source = write_parquet(tmp_path / name / "in.parquet", table)
        made = propose(source, tmp_path / name / "desk", id_column="name")
        assert all((other.known, other.problem) == (0, None) for other in made.elsewhere)
        if name == "a":
            release(there)


@pytest.mark.parametrize("word", ["", " ", "x" * 501])
def test_the_word_for_a_new_desk_is_one(tmp_path: Path, word: str) -> None:
    write_parquet(tmp_path / "in.parquet")
    with nothing_changes(tmp_path), pytest.raises(ValueError, match="new_people"):
        propose(tmp_path / "in.parquet", tmp_path / "desk", id_column="name", new_people=word)


def test_desks_of_a_user_share_the_key_of_tags_and_no_other(tmp_path: Path) -> None:
    first, second, third = (
        Desk.open(place_with(tmp_path / name) / "desk") for name in ("first", "second", "third")
    )
    keys = [(desk.path / "keys" / "tags.key").read_bytes() for desk in (first, second, third)]
    assert len(set(keys)) == 1
    assert len({desk.pseudonym_key for desk in (first, second, third)}) == 3
    assert len({desk.key.public for desk in (first, second, third)}) == 3
    assert len({desk.id for desk in (first, second, third)}) == 3


def test_two_users_do_not_see_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, tmp_path / "one")
    release(place_with(tmp_path / "hers"))
    user(monkeypatch, tmp_path / "two")
    his = place_with(tmp_path / "his")
    assert look(his).problems == ()
    assert look(his).elsewhere == ()
    release(his)
    both = [(tmp_path / name / "desk" / "keys" / "tags.key").read_bytes() for name in ("hers", "his")]
    assert both[0] != both[1]


def another_tag_key(there: Path, monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """A desk that another user made, and this one has taken over."""
    user(monkeypatch, config)
    shutil.rmtree(there / "desk")
    desk = make_desk(there)
    user(monkeypatch, config.with_name("mine"))
    desk.remember()


def damaged(there: Path, *_: Any) -> None:
    (there / "desk" / "ledger.db").write_bytes(b"this is no ledger")


def without_a_key(there: Path, *_: Any) -> None:
    (there / "desk" / "keys" / "tags.key").unlink()


def without_a_list_of_people(there: Path, *_: Any) -> None:
    release(there)
    shutil.rmtree(there / "desk" / "people")


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (another_tag_key, "its tags have another key"), (damaged, "ledger.db"),
        (without_a_key, "tags.key"), (without_a_list_of_people, "cannot be read"),
    ],
)  # fmt: skip
def test_a_desk_that_cannot_be_asked_needs_the_holder_s_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happens: Any, why: str
) -> None:
    user(monkeypatch, tmp_path / "mine")
    here, there = place_with(tmp_path / "here"), place_with(tmp_path / "there")
    happens(there, monkeypatch, tmp_path / "theirs")
    (problem,) = look(here).problems
    assert f"whether desk {there / 'desk'} knows these people cannot be told: " in problem.what
    assert why in problem.what
    with pytest.raises(Refused, match="cannot be told"):
        release(here)
    (tmp_path / "new").mkdir()
    ran = cli("init", here / "in.parquet", "--id", "name", "--desk", tmp_path / "new" / "desk")
    assert ran.code == 0
    assert f"whether desk {there / 'desk'} knows these people cannot be told" in words(ran.err)
    done = release(here, new_people="they are other people")
    assert any("cannot be told" in warning for warning in done.look.warnings), "and it is said all the same"


def test_a_desk_that_is_gone_is_said_and_stops_nobody(tmp_path: Path) -> None:
    here, there = place_with(tmp_path / "here"), place_with(tmp_path / "there")
    release(there)
    shutil.rmtree(there / "desk")
    seen = look(here)
    assert seen.problems == ()
    (warning,) = (one for one in seen.warnings if "no longer there" in one)
    assert "if you removed it, take its line out of" in warning


# An older copy of the desk


def restored(folder: Path, *names: str) -> list[Released]:
    """Copy the desk away, release some, and put the copy back."""
    shutil.copytree(folder / "desk", folder / "backup")
    done = [release(folder, name) for name in names]
    shutil.rmtree(folder / "desk")
    (folder / "backup").rename(folder / "desk")
    return done


def forget_heads() -> None:
    """The user's own notes of where ledgers stood are lost."""
    shutil.rmtree(config_folder() / "heads")


def forget_certificates(folder: Path) -> None:
    for path in folder.glob("*.certificate.*"):
        path.unlink()


def is_clean(folder: Path) -> bool:
    return cli("ledger", "verify", "--desk", folder / "desk").code == 0


def resumed(folder: Path, *more: Any) -> str:
    ran = cli("ledger", "resume", *more, "--reason", "the disk broke", "--desk", folder / "desk")
    assert ran.code == 0, ran.err
    return words(ran.err)


def test_an_older_copy_is_found_by_the_user_s_list(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    restored(folder, "b.parquet")
    forget_certificates(folder)
    for attempt in (lambda: release(folder, "c.parquet"), lambda: look(folder)):
        with pytest.raises(LedgerDamaged, match=r"the tail was cut: your own list of desks has seen entry"):
            attempt()
    assert not (folder / "c.parquet").exists()
    assert not is_clean(folder)


def test_also_if_it_has_gone_on_since_it_was_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else, whose list knows nothing, may have released from the copy."""
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    restored(folder, "b.parquet")
    forget_certificates(folder)
    mine = config_folder().parent
    user(monkeypatch, tmp_path / "else")
    for name in ("c.parquet", "d.parquet"):
        release(folder, name)
    forget_certificates(folder)
    user(monkeypatch, mine)
    with pytest.raises(LedgerDamaged, match="the history was replaced: your own list of desks has seen"):
        release(folder, "e.parquet")


def test_without_the_list_an_older_copy_is_found_by_the_certificate_beside_the_output(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    restored(folder, "b.parquet")
    forget_heads()
    told = r"the tail was cut: the certificate .*b\.parquet.* has seen entry"
    for attempt in (lambda: release(folder, "c.parquet"), lambda: look(folder)):
        with pytest.raises(LedgerDamaged, match=told):
            attempt()
    assert not (folder / "c.parquet").exists()


def test_or_by_a_certificate_where_the_next_output_goes(tmp_path: Path) -> None:
    """The ledger that was put back may know of no release at all."""
    folder = place_with(tmp_path)
    (folder / "outputs").mkdir()
    restored(folder, "outputs/b.parquet")
    forget_heads()
    with pytest.raises(LedgerDamaged, match=r"the tail was cut: the certificate .*outputs/b\.parquet"):
        release(folder, "outputs/c.parquet")
    assert not (folder / "outputs" / "c.parquet").exists()


def test_without_list_and_certificates_an_older_copy_is_not_found(tmp_path: Path) -> None:
    """What remains possible, and is said."""
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    restored(folder, "b.parquet")
    forget_heads()
    forget_certificates(folder)
    ran = cli("ledger", "verify", "--desk", folder / "desk")
    assert ran.code == 0
    assert "put back to an older state with your list of desks cannot be told" in words(ran.err)
    release(folder, "c.parquet")
    assert is_clean(folder)


def test_going_on_charges_what_was_lost_to_everybody(tmp_path: Path) -> None:
    limit = (0.25, 8.0, 1e-3)
    folder = place_with(tmp_path, limit=limit, most=(8.0, 1e-3))
    release(folder, "a.parquet", epsilon=0.5)
    (lost,) = restored(folder, "b.parquet")
    assert not is_clean(folder)
    assert f"release {lost.certificate.release[:12]} was lost: it is charged to everybody" in resumed(folder)
    assert is_clean(folder)
    with Desk.open(folder / "desk").ledger() as ledger:
        row = ledger.release(lost.certificate.release)
        entry = ledger.entries[-1]
    assert (row.state, row.everybody, row.people) == ("lost", True, "")
    assert row.charge.record() == lost.certificate.charge().record()
    assert row.title["guarantee"]["epsilon"] == 4.0
    assert '"the disk broke"' in entry.body
    # Also to people whom nobody has ever released anything about.
    seen = look(folder, table=others(), epsilon=7.0, delta=1e-4, new_people="others")
    (problem,) = seen.problems
    assert "the limit would be passed" in problem.what
    assert seen.spending is not None
    assert seen.spending.spent > 0.3
    release(folder, "c.parquet", epsilon=0.5)
    assert is_clean(folder)
    assert holds(folder / "c.parquet")
    assert "lost" in cli("ledger", "show", "--desk", folder / "desk").out


def test_several_lost_releases_are_all_charged_once(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    lost = {one.certificate.release for one in restored(folder, "a.parquet", "b.csv", "c.parquet")}
    # One of them was brought elsewhere, and is given by name.
    (folder / "away").mkdir()
    away = folder / "away" / certificate_path(folder / "c.parquet").name
    certificate_path(folder / "c.parquet").rename(away)
    told = resumed(folder, away, *(certificate_path(folder / name) for name in ("a.parquet", "b.csv")))
    assert all(release_id[:12] in told for release_id in lost)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert {row.release for row in ledger.history.counted} == lost
    release(folder, "d.parquet")
    assert is_clean(folder)


def test_a_release_that_left_no_certificate_is_forgotten_and_the_list_is_gone_on_from(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    restored(folder, "b.parquet")
    forget_certificates(folder)
    resumed(folder)
    with Desk.open(folder / "desk").ledger() as ledger:
        assert len(ledger.history.counted) == 1
    release(folder, "c.parquet")
    assert is_clean(folder)


def test_an_older_copy_is_found_again_after_going_on(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    restored(folder, "a.parquet")
    resumed(folder, certificate_path(folder / "a.parquet"))
    restored(folder, "b.parquet")
    with pytest.raises(LedgerDamaged, match="has seen entry"):
        release(folder, "c.parquet")


def test_scales_that_only_a_lost_release_had_are_counted(tmp_path: Path) -> None:
    """Rows that are near by the scales of now may have been far apart by those of the lost release."""
    spent = []
    for name, other in (("same", False), ("other", True)):
        folder = place_with(tmp_path / name)
        shutil.copytree(folder / "desk", folder / "backup")
        if other:
            scales = folder / "desk" / "scales.toml"
            scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 0.8"))
        release(folder, "a.parquet", new_people="desks are compared")
        shutil.rmtree(folder / "desk")
        (folder / "backup").rename(folder / "desk")
        resumed(folder, certificate_path(folder / "a.parquet"))
        seen = look(folder, new_people="desks are compared")
        assert seen.spending is not None
        spent.append(seen.spending.spent)
    assert spent[1] > 2 * spent[0]


def test_a_stranger_s_certificate_beside_the_output_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, tmp_path / "hers")
    theirs = place_with(tmp_path / "theirs")
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        release(theirs, name)
    user(monkeypatch, tmp_path / "mine")
    folder = place_with(tmp_path / "own")
    release(folder, "a.parquet")
    for path in theirs.glob("*.certificate.json"):
        shutil.copy(path, folder / f"strange-{path.name}")
    # Nor does one that says it is this desk's, of an entry that never was: nobody signed it.
    own = certificate_of(folder / "a.parquet")
    forged = own.model_copy(update={"ledger": own.ledger.model_copy(update={"number": 99})})
    (folder / "forged.parquet.certificate.json").write_text(forged.text(), encoding="utf-8")
    (folder / "broken.certificate.json").write_text("{", encoding="utf-8")
    release(folder, "b.parquet")
    assert is_clean(folder)


def test_a_mark_in_the_list_that_the_desk_did_not_sign_is_none(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    (place,) = (config_folder() / "heads").iterdir()
    good = place.read_text(encoding="utf-8")
    for bad in ("", "{", "[]", good.replace('"number":', '"number":9'), "9" * 5000):
        place.write_text(bad, encoding="utf-8")
        assert look(folder).problems == ()
    release(folder, "b.parquet")
    assert place.read_text(encoding="utf-8") != bad, "and it is written anew"


def test_a_list_that_cannot_be_written_stops_no_release(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    shutil.rmtree(config_folder() / "heads", ignore_errors=True)
    (config_folder() / "heads").write_text("in the way", encoding="utf-8")
    write_scales(tmp_path / "scales.toml")
    release(folder, "a.parquet")
    assert is_clean(folder)
