"""Ways around the ledger's limit that somebody who meant harm has found: each is closed."""

import json
import os
import resource
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    certificate_of,
    cli,
    command,
    holds,
    look,
    make_desk,
    nothing_changes,
    place_with,
    release,
    release_frame,
    request_of,
    table_of,
    words,
    write_csv,
)
from targetdp import Guarantee
from targetdp._core import exact
from targetdp.release import Desk, LedgerDamaged, Limit, Refused, certificate_path, privatize
from targetdp.release import _job as job
from targetdp.release._certificate import _witnesses
from targetdp.release._certificate._caveats import format_guarantee
from targetdp.release._ledger._elsewhere import second_mark
from targetdp.release._staging import Staging, page_path
from targetdp.release._trust._keys import config_folder

TIGHT: dict[str, Any] = {"limit": (0.25, 8.0, 1e-6), "most": (4.0, 1e-6)}
LARGE = 3.9
"""An ε that fits the tight limit once."""
LEDGER = ("ledger.db", "ledger.db.head")


def states(folder: Path) -> list[str]:
    with Desk.open(folder / "desk").ledger() as ledger:
        return [row.state for row in ledger.history.releases.values()]


def verify(folder: Path, *certificates: Path) -> Any:
    return cli("ledger", "verify", *certificates, "--desk", folder / "desk")


def resume(folder: Path, *certificates: Path) -> Any:
    return cli("ledger", "resume", *certificates, "--reason", "the disk broke", "--desk", folder / "desk")


def copy(source: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)


def spelled(spell: Callable[[str], str], rows: int = 60) -> pa.Table:
    """The same people under other ids."""
    table = table_of(rows)
    return table.set_column(0, "name", [[spell(name) for name in table["name"].to_pylist()]])


# A copy from between the charge and the first draw


@pytest.fixture
def published_from_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release, and behind it a desk and a configuration that have only seen it charged."""
    folder = place_with(tmp_path / "place", **TIGHT)
    scales = job._scales

    def copied(*given: Any) -> Any:
        copy(folder / "desk", tmp_path / "desk")
        copy(config_folder(), tmp_path / "config")
        return scales(*given)

    with monkeypatch.context() as patch:
        patch.setattr(job, "_scales", copied)
        release(folder, "a.parquet", epsilon=LARGE)
    copy(tmp_path / "desk", folder / "desk")
    copy(tmp_path / "config", config_folder())
    assert states(folder) == ["reserved"]
    return folder


def test_what_a_certificate_shows_to_be_published_is_settled_and_never_freed(
    published_from_a_window: Path,
) -> None:
    folder = published_from_a_window
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "b.parquet", epsilon=LARGE)
    with Desk.open(folder / "desk").ledger() as ledger:
        (row,) = ledger.history.releases.values()
    assert (row.state, row.sha256) == ("published", certificate_of(folder / "a.parquet").output.sha256)
    assert not list((folder / "desk" / "drafts").glob("*/secret")), "nobody draws with it again"
    release(folder, "b.parquet", epsilon=0.5)
    assert states(folder) == ["published", "published"]


def test_a_certificate_of_what_was_freed_speaks_against_the_ledger(published_from_a_window: Path) -> None:
    folder = published_from_a_window
    certificate = certificate_path(folder / "a.parquet")
    away = folder.parent / certificate.name
    certificate.rename(away)
    release(folder, "b.parquet", epsilon=0.5)
    assert states(folder) == ["voided", "published"], "nobody knew"
    assert verify(folder).code == 0
    away.rename(certificate)
    told = r"release \w+ is freed, and the certificate .*a\.parquet\S* says that it is published"
    for attempt in (lambda: look(folder), lambda: release(folder, "c.parquet")):
        with pytest.raises(LedgerDamaged, match=told):
            attempt()
    assert verify(folder).code == 1
    assert resume(folder).code == 0
    with Desk.open(folder / "desk").ledger() as ledger:
        row = ledger.release(certificate_of(folder / "a.parquet").release)
    assert (row.state, row.everybody) == ("lost", True)
    assert verify(folder).code == 0
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "c.parquet", epsilon=LARGE)


# Certificates that say something else


def cheaper(folder: Path, name: str) -> Any:
    """A certificate that tells of far more noise, and so of a far smaller charge."""
    true = certificate_of(folder / name)
    law = dict(true.mechanism.law)
    law |= {"scale": law["scale"] * 1000, "grid": law["grid"] * 512}
    return true.model_copy(update={"mechanism": true.mechanism.model_copy(update={"law": law})})


def test_nobody_goes_on_by_a_certificate_that_the_desk_has_not_signed(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    copy(folder / "desk", folder / "backup")
    release(folder, "b.parquet")
    forged = tmp_path / "forged.certificate.json"
    forged.write_text(cheaper(folder, "b.parquet").text(), encoding="utf-8")
    certificate_path(folder / "b.parquet").unlink()
    for name in LEDGER:
        shutil.copy(folder / "backup" / name, folder / "desk" / name)
    for attempt in (verify, resume):
        with nothing_changes(folder):
            ran = attempt(folder, forged)
        assert ran.code == 2
        assert f"certificate {forged} is not signed by this desk" in words(ran.err)


def test_a_certificate_with_another_charge_than_is_on_record_is_a_problem(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    signed = cheaper(folder, "a.parquet").signed(Desk.open(folder / "desk").key)
    (folder / "other.certificate.json").write_text(signed.text(), encoding="utf-8")
    told = r"release \w+ is charged otherwise than the certificate .*other"
    with pytest.raises(LedgerDamaged, match=told):
        release(folder, "b.parquet")
    assert "is charged otherwise than" in verify(folder).out


# A desk with another name


def test_a_desk_that_takes_another_id_is_refused(tmp_path: Path) -> None:
    """Under another id no mark outside, and no list, would know it."""
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    path = folder / "desk" / "desk.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id": "0" * 32}), encoding="utf-8")
    told = r"desk\.json names another desk than its ledger"
    for attempt in (lambda: look(folder), lambda: release(folder, "b.parquet")):
        with pytest.raises(ValueError, match=told):
            attempt()
    for arguments in (("status",), ("ledger", "verify"), ("ledger", "resume", "--reason", "why not")):
        ran = cli(*arguments, "--desk", folder / "desk")
        assert ran.code == 2
        assert "names another desk than its ledger" in words(ran.err)


# A few people who are always the same


@pytest.mark.parametrize("left_out", [False, True])
def test_a_few_known_people_vouch_for_nobody_else(tmp_path: Path, left_out: bool) -> None:
    make_desk(tmp_path)
    table = table_of(60)
    pilot = release_frame(table.slice(0, 2), tmp_path / "desk", epsilon=0.01).certificate.release
    # Asked of the largest release, which the pilot is: a table may grow.
    release_frame(table, tmp_path / "desk")
    salted = pa.concat_tables([table.slice(0, 2), spelled(lambda name: f"+228{name}").slice(2)])
    told = r"no earlier release shares half of these 60 people \(the most is 2\)"
    with pytest.raises(Refused, match=told):
        release_frame(salted, tmp_path / "desk", leave_out=[pilot] if left_out else None)


@pytest.mark.parametrize(
    ("known", "others", "passes"),
    [(30, 30, True), (29, 31, False), (30, 270, True), (29, 270, False), (5, 5, True), (4, 5, False)],
)
def test_half_of_the_table_or_half_of_the_largest_release(
    tmp_path: Path, known: int, others: int, passes: bool
) -> None:
    folder = place_with(tmp_path)
    release(folder)
    more = spelled(lambda name: f"other {name}", 300).slice(0, others)
    problems = look(folder, table=pa.concat_tables([table_of(60).slice(0, known), more])).problems
    assert [
        problem.what for problem in problems if "no earlier release shares half" not in problem.what
    ] == []
    assert (not problems) is passes


def test_who_is_left_out_counts_as_known(tmp_path: Path) -> None:
    make_desk(tmp_path)
    first = release_frame(table_of(60), tmp_path / "desk").certificate.release
    grown = pa.concat_tables([table_of(60).slice(0, 40), spelled(lambda name: f"other {name}").slice(0, 40)])
    done = release_frame(grown, tmp_path / "desk", leave_out=[first])
    assert done.certificate.rows == 40


# Entries that were lost


def pure(folder: Path) -> float | None:
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        return ledger.standing(Limit.of(desk.policy)).pure


SCORES: dict[str, Any] = {"mechanism": "staircase", "release": "scores", "weights": {"calls": [1.0]}}


@pytest.mark.parametrize("what", ["the list", "the mark"])
def test_after_going_on_it_is_said_that_entries_were_lost(tmp_path: Path, what: str) -> None:
    folder = place_with(tmp_path)
    before = release(folder, "a.parquet", epsilon=0.5, **SCORES)
    assert pure(folder) is not None
    copy(folder / "desk", folder / "backup")
    release_frame(table_of(60), folder / "desk", epsilon=0.5, **SCORES)  # it leaves no certificate
    if what == "the list":
        for name in LEDGER:
            shutil.copy(folder / "backup" / name, folder / "desk" / name)
    else:
        shutil.rmtree(config_folder() / "heads")
        shutil.copy(folder / "backup" / "ledger.db", folder / "desk" / "ledger.db")
    assert resume(folder).code == 0
    assert pure(folder) is None, "nobody knows what has been spent"
    after = release(folder, "b.parquet", epsilon=0.5, **SCORES)
    said = "Entries of its ledger were lost"
    for done, lost in ((before, False), (after, True)):
        assert done.certificate.together.forgot is lost
        assert any(said in condition for condition in done.certificate.conditions) is lost
        assert (said in words(page_path(done.path or folder).read_text(encoding="utf-8"))) is lost
    assert holds(folder / "b.parquet")
    for arguments in (("status",), ("ledger", "show")):
        ran = cli(*arguments, "--desk", folder / "desk")
        assert said in words(ran.out)
        assert "so far: the sum of pure releases" not in words(ran.out)
        assert cli(*arguments, "--json", "--desk", folder / "desk").json["pure_epsilon"] is None


# A B that is said to be larger than it is


def test_B_is_printed_with_all_its_digits(tmp_path: Path) -> None:
    B = 0.12345651  # to six digits it is larger: a promise to more people than is kept
    folder = place_with(tmp_path, limit=(B, 100.0, 0.1))
    certificate = release(folder, B=B).certificate
    page = page_path(folder / "out.parquet").read_text(encoding="utf-8")
    shown = cli("ledger", "show", "--desk", folder / "desk").out
    (statement,) = (one for one in certificate.conditions if one.startswith("No two rows"))
    for text in (statement, page, words(shown), certificate._repr_html_()):
        assert f"{B}" in text
        assert f"{B:g}" not in text
    for number in (0.1 + 0.2, 0.12345678901234567, 1e-5 / 3, 0.25):
        assert float(exact(number)) == number
        assert f"(B = {exact(number)}, " in format_guarantee(Guarantee(number, 1.0, 0.0))


# A table that is exchanged between the look and the release


def test_a_file_that_is_rewritten_in_place_is_noticed_although_its_time_is_put_back(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    table = folder / "in.csv"
    real = write_csv(table, spelled(lambda name: f"1{name}")).read_bytes()
    release(folder, "a.parquet", table="in.csv")
    other = write_csv(table, spelled(lambda name: f"2{name}")).read_bytes()
    assert len(real) == len(other)
    shown = table.stat()

    def exchange(_: object) -> None:
        with table.open("r+b") as file:
            file.write(real)
        while table.stat().st_ctime_ns == shown.st_ctime_ns:  # a clock that ticks slowly
            os.utime(table)
        os.utime(table, ns=(shown.st_atime_ns, shown.st_mtime_ns))

    with pytest.raises(ValueError, match="changed while it was read"):
        privatize(
            table, folder / "b.parquet", desk=folder / "desk", request=request_of(), confirm=exchange,
            new_people="they are others",
        )  # fmt: skip
    now = table.stat()
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (shown.st_size, shown.st_mtime_ns, shown.st_ino)
    assert states(folder) == ["published"]
    assert not (folder / "b.parquet").exists()


# Draws whose list is removed


def test_a_list_of_draws_that_is_missing_means_that_noise_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place_with(tmp_path, **TIGHT)

    def broken(*_: Any) -> None:
        raise OSError("the power is out")

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "publish", broken)
        with pytest.raises(OSError, match="the power is out"):
            release(folder, "a.parquet", epsilon=LARGE)
    (drawn,) = (folder / "desk" / "drafts").glob("*/drawn")
    assert look(folder, epsilon=LARGE).goes_on is not None
    drawn.unlink()
    # Neither is it free, nor is it gone on with: nobody knows which rows its noise was drawn for.
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "b.parquet", epsilon=LARGE)
    assert states(folder) == ["reserved"]
    release(folder, "b.parquet", epsilon=0.5)
    assert states(folder) == ["reserved", "published"]


# Nothing outside the desk that has seen its ledger


@pytest.mark.parametrize("mark", [None, "{}"])
def test_a_ledger_that_nothing_outside_has_seen_is_told_of(tmp_path: Path, mark: str | None) -> None:
    folder = place_with(tmp_path)
    told = "your configuration has no mark of this ledger: only certificates would tell an older copy"
    assert told not in look(folder).warnings, "a new ledger has seen nothing"
    assert told not in release(folder, "a.parquet").look.warnings
    place = second_mark(Desk.open(folder / "desk").id)
    place.unlink() if mark is None else place.write_text(mark, encoding="utf-8")
    assert told in look(folder).warnings
    ran = cli("privatize", folder / "in.parquet", folder / "b.parquet", *ASKED, "--desk", folder / "desk")
    assert ran.code == 0
    assert told in words(ran.err)
    assert told not in release(folder, "c.parquet").look.warnings, "there is one again"


def test_certificates_are_not_hidden_in_a_crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place_with(tmp_path)
    monkeypatch.setattr(_witnesses, "_MOST", 3)
    release(folder, "z.parquet")
    for number in range(3):
        (folder / f"{number}.certificate.json").write_text("{}", encoding="utf-8")
    with nothing_changes(folder), pytest.raises(ValueError, match="has 4 files that are named as cert"):
        release(folder, "b.parquet")
    (folder / "0.certificate.json").unlink()
    release(folder, "b.parquet")


# Another desk, out of sight or with another spelling


def test_a_desk_that_was_away_knows_its_people_when_it_is_back(tmp_path: Path) -> None:
    there = place_with(tmp_path / "there")
    release(there)
    (there / "desk").rename(there / "away")
    here = place_with(tmp_path / "here")
    seen = look(here)
    assert seen.problems == ()
    assert any(f"whether desk {there / 'desk'} knows" in one and "no longer" in one for one in seen.warnings)
    (there / "away").rename(there / "desk")
    keys = {(place / "desk" / "keys" / "tags.key").read_bytes() for place in (here, there)}
    keys.add((config_folder() / "tags.key").read_bytes())
    assert len(keys) == 1
    (problem,) = look(here).problems
    assert problem.what.startswith("60 of these people are in releases of another desk of yours")


def test_the_key_of_tags_is_for_its_owner_alone(tmp_path: Path) -> None:
    make_desk(tmp_path)
    assert stat.S_IMODE((config_folder() / "tags.key").stat().st_mode) == 0o600


def test_a_desk_that_spells_ids_in_another_way_needs_the_holder_s_word(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    numbers = spelled(lambda name: f"90{name}")
    for place, spelling in ((there, {"country_code": "228", "digits": 8}), (here, None)):
        place.mkdir()
        make_desk(place, spelling=spelling)
        if place is there:
            release_frame(numbers, place / "desk")
    (problem,) = look(here, table=numbers).problems
    assert f"whether desk {there / 'desk'} knows these people cannot be told: it spells ids" in problem.what
    with pytest.raises(Refused, match="it spells ids in another way"):
        release_frame(numbers, here / "desk")
    done = release_frame(numbers, here / "desk", new_people="they only have similar numbers")
    assert any("it spells ids in another way" in one for one in done.look.warnings)


# Things that are no certificates and no desks


def test_a_pipe_and_a_device_named_as_certificates_neither_hang_nor_break_a_release(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    os.mkfifo(folder / "pipe.certificate.json")
    (folder / "endless.certificate.json").symlink_to("/dev/zero")
    ran = command(
        "privatize", folder / "in.parquet", folder / "out.parquet", *ASKED, "--desk", folder / "desk",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert holds(folder / "out.parquet")
    assert verify(folder).code == 0


NO_PATHS = {
    "many folders": "/x" * 2500, "a long name": "/" + "x" * 5000, "a zero": "/a\0b", "half a pair": "/\ud800",
    "a loop": "loop",
}  # fmt: skip


@pytest.mark.parametrize("what", NO_PATHS)
@pytest.mark.parametrize("own", [False, True])
def test_a_line_of_the_list_that_can_name_no_desk_stops_no_command(
    tmp_path: Path, what: str, own: bool
) -> None:
    folder = place_with(tmp_path / "here")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    path = str(tmp_path / "loop") if what == "a loop" else NO_PATHS[what]
    line = {"id": Desk.open(folder / "desk").id if own else "0" * 32, "path": path}
    with (config_folder() / "desks.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    assert look(folder).problems == ()
    release(folder)
    for arguments in (("status",), ("ledger", "show"), ("ledger", "verify")):
        assert cli(*arguments, "--desk", folder / "desk").code == 0
    assert "there is no desk at" in cli("status", "--desk", tmp_path / "none").err
    (tmp_path / "new").mkdir()
    new = ("--desk", tmp_path / "new" / "desk", "--new-people", "a copy")
    assert cli("init", folder / "in.parquet", "--id", "name", *new).code == 0
