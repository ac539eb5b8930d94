"""Scales that are called public were not learned from the people who are released."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    FEATURES,
    Ran,
    certificate_of,
    cli,
    look,
    make_desk,
    table_of,
    words,
    write_parquet,
)
from targetdp._core import Silent
from targetdp.release import Desk, learn_scales, verify_release
from targetdp.release._ids import loose_tags, person_tags
from targetdp.release._public_scales import read_tags, scaled_people
from targetdp.release._trust._keys import config_folder


def learn(folder: Path, table: str, *more: Any) -> Ran:
    named = ("--features", ",".join(FEATURES), "--source", "public", "--reason", "a census")
    return cli("scales", folder / table, *named, "--out", folder / "scales.toml", "--force", *more)


def others(rows: int, first: int = 500_000) -> pa.Table:
    """People whose ids nobody else has."""
    ids = pa.array([f"{first + i:06d}" for i in range(rows)])
    return table_of(rows, seed=1).set_column(0, "name", ids)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "in.parquet", table_of(60))
    write_parquet(tmp_path / "census.parquet", others(80))
    return tmp_path


def desk_at(folder: Path) -> Desk:
    return make_desk(folder)


def release(folder: Path, table: str = "in.parquet") -> Ran:
    return cli("privatize", folder / table, folder / "out.parquet", *ASKED, "--desk", folder / "desk")


def test_scales_of_other_people_are_accepted_and_certified_with_their_reason(folder: Path) -> None:
    assert learn(folder, "census.parquet").code == 0
    desk_at(folder)
    ran = release(folder)
    assert ran.code == 0, ran.err
    assert "not on record" not in ran.err
    c = certificate_of(folder / "out.parquet")
    assert (c.scales.source, c.scales.reason) == ("declared", "a census")
    assert "“a census” (the data holder's words)" in (folder / "out.parquet.certificate.md").read_text()
    # Whoever takes the reason away is found.
    bare = c.model_copy(update={"scales": c.scales.model_copy(update={"reason": None})})
    found = {check.what for check in verify_release(folder / "out.parquet", bare).failed}
    assert "column scales" in found


def test_scales_of_these_very_people_are_refused(folder: Path) -> None:
    """One row more would evade a hash of the table."""
    both = pa.concat_tables([table_of(60), others(1)])
    write_parquet(folder / "more.parquet", both)
    assert learn(folder, "more.parquet").code == 0
    desk_at(folder)
    ran = release(folder)
    assert ran.code == 2
    assert "the public scales were learned from 60 of these people" in words(ran.err)
    assert "--without" in ran.err
    assert not (folder / "out.parquet").exists()


def test_init_says_so_at_once(folder: Path) -> None:
    learn(folder, "in.parquet")
    scales, desk = folder / "scales.toml", folder / "desk"
    ran = cli("init", folder / "in.parquet", "--scales", scales, "--desk", desk)
    assert ran.code == 2
    assert "learned from 60 people" in words(ran.err)
    assert not desk.exists()
    assert cli("init", folder / "in.parquet", "--scales", scales, "--desk", desk).code == 2
    learn(folder, "census.parquet")
    assert cli("init", folder / "in.parquet", "--scales", scales, "--desk", desk).code == 0


@pytest.mark.parametrize("shared", [1, 30])
def test_even_one_person_is_found(folder: Path, shared: int) -> None:
    mixed = pa.concat_tables([others(80), table_of(60).slice(0, shared)])
    write_parquet(folder / "mixed.parquet", mixed)
    learn(folder, "mixed.parquet")
    desk_at(folder)
    assert f"learned from {shared} of these people" in words(release(folder).err)
    # They can be left out, and then the scales are those of the others.
    ran = learn(folder, "mixed.parquet", "--without", folder / "in.parquet")
    assert ran.code == 0, ran.err
    without = (folder / "scales.toml").read_text().split("[features]")[1]
    learn(folder, "census.parquet")
    assert (folder / "scales.toml").read_text().split("[features]")[1] == without


def test_nobody_is_left_to_learn_from(folder: Path) -> None:
    ran = learn(folder, "in.parquet", "--without", folder / "in.parquet")
    assert ran.code == 2
    assert "no rows of other people" in ran.err


def test_nobody_is_left_out_in_silence_where_nobody_can_be_told(folder: Path) -> None:
    nobody = np.empty(0, dtype=np.uint64)
    with pytest.raises(ValueError, match="id_column must be given"):
        learn_scales(
            folder / "in.parquet", FEATURES, id_column=None, impute=None, fit=None, progress=Silent(),
            without=nobody,
        )  # fmt: skip


def test_another_spelling_does_not_hide_them(folder: Path) -> None:
    numbers = [f"90{i:06d}" for i in range(60)]
    write_parquet(folder / "in.parquet", table_of(60).set_column(0, "name", [numbers]))
    abroad = [f"+228 90 {i:06d}" for i in range(60)]
    write_parquet(folder / "census.parquet", table_of(60, seed=3).set_column(0, "name", [abroad]))
    learn(folder, "census.parquet", "--id", "name")
    desk_at(folder)
    assert "learned from 60 of these people" in words(release(folder).err)


def test_tables_that_number_people_anew_say_so_on_record(folder: Path) -> None:
    assert learn(folder, "in.parquet", "--other-people", "the census numbers people anew").code == 0
    desk_at(folder)
    assert release(folder).code == 0
    assert "the census numbers people anew" in (folder / "desk" / "scales.toml").read_text()


def test_scales_that_name_nobody_are_told_of(folder: Path) -> None:
    """Written by hand, or learned elsewhere."""
    desk_at(folder)
    said = " ".join(look(folder).warnings)
    assert "whom the declared scales were learned from is not on record here" in said
    assert "“a census”" in said


def test_the_tags_are_keyed_and_come_to_the_desk(folder: Path) -> None:
    learn(folder, "census.parquet")
    desk = desk_at(folder)
    release(folder)
    own = desk.path / "scales.people"
    assert own.stat().st_mode & 0o077 == 0
    name = (folder / "scales.toml").read_text().split('people = "')[1][:32]
    tags = read_tags(own, name)
    assert tags is not None
    assert read_tags(own, "0" * 32) is None
    key = bytes.fromhex((config_folder() / "tags.key").read_text())
    ids = others(80).column("name").combine_chunks()
    assert set(tags.tolist()) == set(loose_tags(ids, key).tolist())
    assert set(tags.tolist()) != set(loose_tags(ids, bytes(32)).tolist())
    # Without the configuration, too: on another machine, say.
    for path in (config_folder() / "scales").iterdir():
        path.unlink()
    write_parquet(folder / "in.parquet", others(80))
    assert "learned from 80 of these people" in words(
        cli("privatize", folder / "in.parquet", folder / "b.parquet", *ASKED, "--desk", desk.path,
            "--new-people", "a test").err
    )  # fmt: skip


def test_damaged_tags_are_said(folder: Path) -> None:
    learn(folder, "census.parquet")
    name = (folder / "scales.toml").read_text().split('people = "')[1][:32]
    for damaged in (b"123", bytes.fromhex(name) + np.array([2, 1], dtype=np.uint64).tobytes()):
        scaled_people(name).write_bytes(damaged)
        (folder / "desk" / "scales.people").unlink(missing_ok=True)
        if not (folder / "desk").exists():
            desk_at(folder)
        ran = release(folder)
        assert ran.code == 2
        assert "is damaged" in ran.err


def test_public_scales_need_a_reason(folder: Path) -> None:
    named = ("--features", "calls", "--source", "public", "--out", folder / "s.toml")
    ran = cli("scales", folder / "census.parquet", *named)
    assert ran.code == 2
    assert "--reason must be given" in ran.err
    (folder / "s.toml").write_text('source = "public"\n[features]\ncalls = { center = 0, scale = 1 }\n')
    ran = cli("init", folder / "in.parquet", "--scales", folder / "s.toml", "--desk", folder / "desk")
    assert ran.code == 2
    assert "needs a reason" in ran.err


def test_other_scales_are_another_policy(folder: Path) -> None:
    """They, their reason and their people are one record, whose hash the ledger has."""
    learn(folder, "census.parquet")
    desk = desk_at(folder)
    assert release(folder).code == 0
    text = (desk.path / "scales.toml").read_text()
    (desk.path / "scales.toml").write_text(text.replace("a census", "another census"))
    said = " ".join(problem.what for problem in look(folder).problems)
    assert "columns are scaled in another way" in said


@pytest.mark.parametrize(
    ("one", "other"),
    [("+228 90-12.34 (56)", "0022890123456"), ("Ann", "ann"), ("0042", "42"), ("90123456", "22890123456")],
)
def test_loose_tags_do_not_see_spelling(one: str, other: str) -> None:
    tags = loose_tags(pa.array([one, other]), bytes(32))
    assert tags[0] == tags[1]
    assert len(set(person_tags(pa.array([one, other]), bytes(32)).tolist())) == 2
    assert len(set(loose_tags(pa.array(["12345678", "12345679", "a1", "a2"]), bytes(32)).tolist())) == 4
