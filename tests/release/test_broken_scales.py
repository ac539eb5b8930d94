"""What a hostile reader found wrong with public scales, and with what scores are made of: each failed."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ASKED,
    ENOUGH,
    FEATURES,
    Ran,
    cli,
    look,
    make_desk,
    place_with,
    release,
    table_of,
    words,
    write_parquet,
    write_scales,
)
from targetdp.normalization import declared_scales
from targetdp.release._draws import Draws
from targetdp.release._ids import loose_tags
from targetdp.release._look._made_of import Spread
from targetdp.release._trust._keys import config_folder


def learn(folder: Path, table: str, *more: Any) -> Ran:
    named = ("--features", ",".join(FEATURES), "--source", "public", "--reason", "a census", "--id", "name")
    return cli("scales", folder / table, *named, "--out", folder / "scales.toml", "--force", *more)


def named(ids: list[str], seed: int = 0) -> pa.Table:
    return table_of(len(ids), seed=seed).set_column(0, "name", [ids])


def said(folder: Path, **given: Any) -> str:
    return "\n".join(look(folder, **given).warnings)


def people_line(folder: Path) -> str:
    return (folder / "scales.toml").read_text().split('people = "')[1][:32]


# Whom public scales were learned from


def test_the_very_same_table_is_found_whatever_the_desk_s_spelling_does(tmp_path: Path) -> None:
    """With seven digits behind a country code the last eight are no longer those of the table."""
    write_parquet(tmp_path / "in.parquet", named([f"58{i:05d}" for i in range(60)]))
    assert learn(tmp_path, "in.parquet").code == 0
    make_desk(tmp_path, spelling={"country_code": "354", "digits": 7})
    ran = cli(
        "privatize", tmp_path / "in.parquet", tmp_path / "o.parquet", *ASKED, "--desk", tmp_path / "desk"
    )
    assert ran.code == 2
    assert "learned from 60 of these people" in words(ran.err)


@pytest.mark.parametrize(
    "other",
    ["９０123456", "90\u00a0123456", "90\u2011123\u2011456", "90123456\u200b", "90,123,456", "'90123456",
     "90123456.0", "#90123456", "90:12:34:56"],
)  # fmt: skip
def test_loose_tags_do_not_see_marks_that_a_table_may_have(other: str) -> None:
    tags = loose_tags(pa.array([other, "90123456"]), bytes(32))
    assert tags[0] == tags[1]


def test_a_file_that_says_other_people_does_not_silence_everything(tmp_path: Path) -> None:
    """A scales file comes from somebody: its word is not the data holder's until she has read it."""
    write_parquet(tmp_path / "in.parquet")
    path = write_scales(tmp_path / "scales.toml")
    path.write_text(path.read_text().replace("[features]", 'other_people = "trust me"\n[features]'))
    make_desk(tmp_path)
    assert "the same ids are other people's (“trust me”)" in said(tmp_path)


def test_a_record_of_others_does_not_vouch_for_scales_of_these_people(tmp_path: Path) -> None:
    """The name of a record stands in a public file: put into another one, it passed without a word."""
    write_parquet(tmp_path / "in.parquet")
    write_parquet(tmp_path / "census.parquet", named([f"c{i}" for i in range(80)], seed=5))
    learn(tmp_path, "census.parquet")
    census = people_line(tmp_path)
    learn(tmp_path, "in.parquet")
    text = (tmp_path / "scales.toml").read_text().replace(people_line(tmp_path), census)
    (tmp_path / "scales.toml").write_text(text)
    make_desk(tmp_path)
    assert "were changed after it was put on record" in said(tmp_path)


def test_scales_as_learned_raise_no_such_doubt(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet")
    write_parquet(tmp_path / "census.parquet", named([f"c{i}" for i in range(80)], seed=5))
    learn(tmp_path, "census.parquet")
    make_desk(tmp_path)
    assert "put on record" not in said(tmp_path)
    assert "on record here" not in said(tmp_path)


def test_a_check_makes_no_key(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet")
    write_parquet(tmp_path / "census.parquet", named([f"c{i}" for i in range(80)], seed=5))
    learn(tmp_path, "census.parquet")
    make_desk(tmp_path)
    (config_folder() / "tags.key").unlink()
    before = sorted(config_folder().rglob("*"))
    look(tmp_path)
    assert sorted(config_folder().rglob("*")) == before


@pytest.mark.parametrize(
    "text", ["a\u001b[2Jcensus", "a census\nwarning: none", "\u202ea census", "a census "]
)
@pytest.mark.parametrize("field", ["reason", "other_people"])
def test_words_of_a_scales_file_are_plain(tmp_path: Path, text: str, field: str) -> None:
    """They are shown to the data holder: what they say must not draw over what else is shown."""
    write_parquet(tmp_path / "in.parquet")
    path = write_scales(tmp_path / "scales.toml")
    lines = [line for line in path.read_text().splitlines() if not line.startswith(field)]
    path.write_text("\n".join([lines[0], f"{field} = {json.dumps(text)}", *lines[1:]]))
    with pytest.raises(ValueError, match="printable characters"):
        make_desk(tmp_path)


@pytest.mark.parametrize("scale", ["1e-9", "1e12", "5e-324", "1.7e308"])
@pytest.mark.parametrize("center", ["0.0", "1.7e308"])
def test_hostile_scales_are_told_of_and_break_nothing(tmp_path: Path, scale: str, center: str) -> None:
    """No finding: it held."""
    write_parquet(tmp_path / "in.parquet")
    path = write_scales(tmp_path / "scales.toml")
    path.write_text(
        path.read_text().replace("center = 10.0, scale = 8.0", f"center = {center}, scale = {scale}")
    )
    make_desk(tmp_path)
    told = said(tmp_path)
    assert any(part in told for part in ("orders of magnitude", "next to nothing", "longer than 1"))
    release(tmp_path)


# Draws


def test_the_disk_knows_for_what_scales_were_drawn_before_a_refusal_tells_of_them(tmp_path: Path) -> None:
    """Only the first record was made sure of: without power, other rows could have got the same words."""
    draws, synced = Draws.create(tmp_path, "r", "b"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
        draws.for_scales("centers", np.zeros(3, dtype=np.int64))
        draws.for_scales("scales", np.zeros(3, dtype=np.int64))
    draws.close()
    assert synced == [24, 48]


# What scores are made of


def test_a_column_is_singled_out_by_a_difference_that_does_not_name_it(tmp_path: Path) -> None:
    """A sum of three columns, then the sum of the two others: the first is their difference."""
    place_with(tmp_path, 400)
    release(tmp_path, "a.parquet", release="scores", weights={"calls": 1.0, "texts": 1.0, "topups": 1.0})
    told = said(tmp_path, release="scores", weights={"texts": 1.0, "topups": 1.0})
    assert "the scores, with those released before, are nearly the column 'calls'" in told
    assert "nearly the column 'texts'" not in told


def test_a_score_of_one_column_is_told_of_before_its_scales_are_known(tmp_path: Path) -> None:
    place_with(tmp_path, ENOUGH, scales="private")
    assert "nearly the column 'calls'" in said(tmp_path, release="scores", weights={"calls": 1.0})
    assert "nearly" not in said(tmp_path, release="scores", weights={"calls": 1.0, "texts": 1.0})


def test_the_order_of_rows_does_not_fool_it() -> None:
    """Every tenth row was looked at: a column that differs in these alone seemed as wide as the other."""
    generator, n = np.random.default_rng(0), 40_960
    one, other = generator.normal(size=(2, n)) / 10
    columns = np.array([one, np.where(np.arange(n) % 10 == 0, other, 0.0)])
    found = Spread.of(columns, declared_scales([0, 0], [1, 1]), whole=True)
    assert found.variances == pytest.approx(columns.var(axis=1), rel=0.3)


def test_a_rare_flag_is_singled_out_by_a_score_that_is_half_of_it(tmp_path: Path) -> None:
    """1% of people have the flag; the score tells it of everybody, and is not told of: R² is 0.6."""
    generator, n = np.random.default_rng(0), 2_000
    flag, rest = (np.arange(n) % 100 == 0).astype(float), generator.uniform(-0.12, 0.12, n)
    data = {"name": [f"{i:06d}" for i in range(n)], "calls": flag, "texts": rest, "topups": rest[::-1]}
    write_parquet(tmp_path / "in.parquet", pa.table(data))
    lines = [f"{name} = {{ center = 0.0, scale = 2.0 }}" for name in FEATURES]
    (tmp_path / "scales.toml").write_text(
        "\n".join(['source = "public"', 'reason = "a"', "[features]", *lines])
    )
    make_desk(tmp_path)
    assert ((flag + rest > 0.5) == (flag > 0.5)).all()
    told = said(tmp_path, release="scores", weights={"calls": 1.0, "texts": 1.0})
    assert "of how people differ in the column 'calls', which has rare values" in told
