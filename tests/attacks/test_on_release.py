"""Two tables joined: person by person, in the units of the release; or refused, with the reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    FEATURES,
    make_desk,
    new_policy,
    read_back,
    table_of,
    write_csv,
    write_parquet,
)
from support.release import release as release_at
from targetdp import normalize
from targetdp._core import Floats, Silent
from targetdp.attacks import JoinedTables, join_tables, run_attacks
from targetdp.attacks._on_release import AS_THEY_ARE, IN_CLEAR, LEFT_OUT_ASIDE
from targetdp.normalization import read_scales
from targetdp.release import SigningKey

ROWS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "original.parquet")
    make_desk(tmp_path)
    return tmp_path


def release(folder: Path, output: str = "private.parquet", **given: Any) -> Path:
    release_at(folder, output, table="original.parquet", **given)
    return folder / output


def joined(folder: Path, released: Path, **more: Any) -> JoinedTables:
    return join_tables(folder / "original.parquet", released, "name", progress=Silent(), **more)


def rows_by_id(table: pa.Table) -> dict[str, Floats]:
    values = np.column_stack([table[name].to_numpy() for name in FEATURES])
    return dict(zip(table["name"].to_pylist(), values, strict=True))


@pytest.mark.parametrize("output", ["private.parquet", "private.csv", "parts"])
def test_each_person_meets_her_own_row_in_the_units_of_the_release(folder: Path, output: str) -> None:
    released = release(folder, output)
    tables = joined(folder, released)
    raw, private = rows_by_id(table_of()), read_back(released)
    ids = private["name"].to_pylist()
    expected = normalize(np.array([raw[i] for i in ids]), read_scales(folder / "scales.toml", FEATURES)).X
    assert np.array_equal(tables.original, expected)
    assert np.array_equal(tables.released, np.array([rows_by_id(private)[i] for i in ids]))
    assert tables.features == FEATURES
    assert tables.law is not None
    assert tables.law.dimensions == 3
    assert tables.notes == ()


def test_scales_that_were_paid_for_are_the_certificates(tmp_path: Path) -> None:
    write_parquet(tmp_path / "original.parquet", table_of(400))
    make_desk(tmp_path, scales="private", share=0.5)
    for output, source in (("first.parquet", "private"), ("second.parquet", "earlier")):
        tables = joined(tmp_path, release(tmp_path, output, epsilon=20))
        assert tables.certificate is not None
        assert tables.certificate.scales.source == source
        assert (tables.scales_spent is not None) == (source == "private")
        values = [tables.certificate.scales.values[name] for name in FEATURES]
        raw = rows_by_id(table_of(400))[read_back(tmp_path / output)["name"][0].as_py()]
        row = np.array([(x - one.center) / one.scale for x, one in zip(raw, values, strict=True)])
        assert tables.original[0] == pytest.approx(row / max(1.0, float(np.linalg.norm(row))))


def test_other_scales_or_another_original_are_found_out(folder: Path) -> None:
    released = release(folder)
    with pytest.raises(ValueError, match="certificate has its scales; leave --scales out"):
        joined(folder, released, scales=folder / "scales.toml")
    write_parquet(
        folder / "original.parquet", table_of(ROWS, seed=77).set_column(0, "name", table_of()["name"])
    )
    with pytest.raises(ValueError, match="not by the noise of the certificate"):
        joined(folder, released)


@pytest.mark.parametrize("mechanism", ["gaussian", "spherical-laplace", "projection", "projection-exact"])
def test_a_true_release_is_never_taken_for_a_wrong_one(folder: Path, mechanism: str) -> None:
    for number in range(5):
        released = release(folder, f"{number}.parquet", mechanism=mechanism)
        assert joined(folder, released).law is not None


# Whose row is whose: pseudonyms, and other spellings of an id


def test_pseudonyms_need_the_desk_that_made_them(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plain = joined(folder, release(folder, "plain.parquet"))
    desk = new_policy(folder / "desk", pseudonyms=True)
    released = release(folder)
    with pytest.raises(ValueError, match=r"pseudonyms of desk people .*no desk is given or found.*--desk"):
        joined(folder, released)
    elsewhere = make_desk(tmp_path_factory.mktemp("elsewhere"), pseudonyms=True)
    with pytest.raises(ValueError, match=r"pseudonyms of desk people .*is another desk: name the folder"):
        joined(folder, released, desk=elsewhere)
    tables = joined(folder, released, desk=desk)
    assert tables.ids_are == "pseudonyms"
    assert sorted(map(tuple, tables.original)) == sorted(map(tuple, plain.original))
    # A release with ids needs no desk, and another one does no harm.
    assert joined(folder, folder / "plain.parquet", desk=elsewhere).ids_are == "in clear"
    assert joined(folder, folder / "plain.parquet", desk=desk).ids_are == "in clear"


PHONES = {"country_code": "228", "digits": 8}


def by_phone(folder: Path, spelled: str, file: str, rows: slice = slice(0, ROWS)) -> Path:
    """The people of a folder under phone numbers, spelled like this."""
    people = table_of(ROWS)
    ids = pa.array([spelled.format(f"9{int(name):07d}") for name in people["name"].to_pylist()])
    return write_parquet(folder / file, people.set_column(0, "name", ids).slice(rows.start, rows.stop))


@pytest.mark.parametrize("pseudonyms", [True, False])
def test_ids_are_brought_into_the_desks_spelling(tmp_path: Path, pseudonyms: bool) -> None:
    desk = make_desk(tmp_path, spelling=PHONES, pseudonyms=pseudonyms)
    by_phone(tmp_path, "+228 {}", "original.parquet")
    released = release(tmp_path)
    local = by_phone(tmp_path, "{}", "local.parquet")
    by_phone(tmp_path, "00228{}", "original.parquet")
    one, two = (
        join_tables(path, released, "name", progress=Silent(), desk=desk)
        for path in (tmp_path / "original.parquet", local)
    )
    assert np.array_equal(one.original, two.original)
    assert one.law is not None
    if not pseudonyms:
        with pytest.raises(
            ValueError, match=r"60 people who are not in original .* ids written the same way"
        ):
            join_tables(local, released, "name", progress=Silent())
    # The holdout is spelled, too: nobody of the release hides in it behind a country code.
    with pytest.raises(ValueError, match="has 60 people who are in the release"):
        joined(tmp_path, released, desk=desk, holdout=local)
    twice = pa.concat_tables([read_back(local), read_back(tmp_path / "original.parquet").slice(0, 1)])
    with pytest.raises(
        ValueError, match=r"original .* has 1 rows whose id occurs before, in the spelling of"
    ):
        join_tables(
            write_parquet(tmp_path / "twice.parquet", twice), released, "name", progress=Silent(), desk=desk
        )


def test_people_of_the_holdout_are_found_in_further_releases_by_any_spelling(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, spelling=PHONES)
    by_phone(tmp_path, "+228 {}", "original.parquet")
    released = release(tmp_path)
    others = by_phone(tmp_path, "{}", "others.parquet", slice(40, 20))
    tables = joined(tmp_path, released, desk=desk, holdout=others, further=True)
    assert tables.holdout_places.tolist() == list(range(40, 60))


def test_without_a_certificate_units_are_taken_as_they_are(folder: Path) -> None:
    copy = write_csv(folder / "copy.csv", table_of())
    tables = joined(folder, copy)
    assert np.array_equal(tables.original, tables.released)
    assert tables.notes == (AS_THEY_ARE,)
    assert tables.certificate is None
    assert tables.law is None
    scaled = joined(folder, copy, scales=folder / "scales.toml", features=["calls", "texts"])
    assert scaled.features == ("calls", "texts")
    assert np.linalg.norm(scaled.original, axis=1).max() <= 1


def test_the_rest_may_be_the_holdout_if_said_so(folder: Path) -> None:
    few = write_parquet(folder / "few.parquet", table_of().slice(0, 40))
    with pytest.raises(ValueError, match=r"has 20 people who are not in release.*--rest-is-holdout"):
        joined(folder, few)
    tables = joined(folder, few, rest_is_holdout=True)
    assert tables.holdout is not None
    assert (len(tables.original), len(tables.holdout)) == (40, 20)
    together = np.concatenate([tables.original, tables.holdout])
    assert np.array_equal(
        np.sort(together, axis=0), np.sort(joined(folder, folder / "original.parquet").original, axis=0)
    )


def test_a_holdout_is_scaled_as_the_release_is(folder: Path) -> None:
    others = table_of(30, seed=5).set_column(0, "name", [[f"x{i}" for i in range(30)]])
    tables = joined(folder, release(folder), holdout=write_parquet(folder / "others.parquet", others))
    raw = np.column_stack([others[name].to_numpy() for name in FEATURES])
    assert np.array_equal(
        np.asarray(tables.holdout), normalize(raw, read_scales(folder / "scales.toml", FEATURES)).X
    )


def test_refused_with_the_reason(folder: Path) -> None:
    original = folder / "original.parquet"

    def refused(reason: str, released: Path, **more: Any) -> None:
        with pytest.raises(ValueError, match=reason):
            joined(folder, released, **more)

    whole = table_of()
    other = whole.set_column(0, "name", [["zz", *whole["name"].to_pylist()[1:]]])
    refused("has 1 people who are not in original", write_parquet(folder / "other.parquet", other))
    twice = pa.concat_tables([whole, whole.slice(0, 2)])
    refused("has 2 rows whose id occurs before", write_parquet(folder / "twice.parquet", twice))
    refused("share no column but the id", write_parquet(folder / "ids.parquet", whole.select(["name"])))
    nan = whole.set_column(1, "calls", [[None, *whole["calls"].to_pylist()[1:]]])
    refused(r"nan.parquet:\n.*\n  calls  1 gap, in row 1", write_parquet(folder / "nan.parquet", nan))
    refused("has no rows", write_parquet(folder / "none.parquet", whole.slice(0, 0)))
    refused("does not exist", folder / "nothing.parquet")
    refused("holdout is given twice", write_parquet(folder / "a.parquet", whole.slice(0, 9)),
            rest_is_holdout=True, holdout=original)  # fmt: skip
    refused("has 60 people who are in the release", original, holdout=original)
    refused("features names 'nope'", original, features=["nope"])
    refused("each column once", original, features=["calls", "calls"])
    refused("not the id", original, features=["name", "calls"])
    private = release(folder)
    refused(r"features names calls: the release's certificate says", private, features=["calls"])
    with pytest.raises(ValueError, match="id names 'who'"):
        join_tables(original, private, "who", progress=Silent())
    with pytest.raises(ValueError, match="not the id"):
        join_tables(original, private, "calls", progress=Silent())
    refused("not an Ed25519 public key", private, public_key="0" * 64)
    refused("signer", private, public_key=SigningKey.open(folder / "other.pem").public)


def test_a_certificate_must_hold(folder: Path) -> None:
    released = release(folder)
    write_parquet(released, read_back(released).slice(0, 59))
    with pytest.raises(ValueError, match=r"does not hold for release.*targetdp verify"):
        joined(folder, released)


def test_gaps_are_filled_with_the_certificates_constants(folder: Path) -> None:
    gappy = table_of().set_column(1, "calls", [[None, *table_of()["calls"].to_pylist()[1:]]])
    write_parquet(folder / "original.parquet", gappy)
    new_policy(folder / "desk", gaps={"calls": 10.0})
    tables = joined(folder, release(folder))
    first = gappy["name"][0].as_py()
    place = sorted(gappy["name"].to_pylist()).index(first)
    assert tables.original[place, 0] == 0.0  # the constant is the column's center


def test_columns_that_are_passed_on_are_named(folder: Path) -> None:
    """Under what a derived score says without them."""
    new_policy(
        folder / "desk", ("calls", "texts"), public={"topups": "a public list"}, reason="a public list"
    )
    tables = joined(folder, release(folder))
    assert tables.notes == (IN_CLEAR.format(columns="topups"),)
    (found,) = run_attacks(tables, ["distinguishing"])
    assert found.given == ("without the columns that are passed on as they are (topups)",)


def test_scales_that_another_release_has_paid_for_are_named(tmp_path: Path) -> None:
    """What they tell of a person is in that release's loss, unless she is not in it."""
    write_parquet(tmp_path / "original.parquet", table_of(600))
    write_parquet(tmp_path / "few.parquet", table_of(600).slice(0, 300))
    make_desk(tmp_path, scales="private", share=0.5)
    sample = release_at(tmp_path, "sample.parquet", table="few.parquet", epsilon=20).certificate.release
    first = joined(tmp_path, tmp_path / "sample.parquet", rest_is_holdout=True)
    again = joined(tmp_path, release(tmp_path))
    others = joined(tmp_path, release(tmp_path, "others.parquet", leave_out=(sample,)), rest_is_holdout=True)

    def given(tables: JoinedTables, *further: JoinedTables) -> tuple[str, ...]:
        (found,) = run_attacks(tables, ["distinguishing"], further=further)
        return found.given

    assert given(first) == ()
    assert given(again) == (f"without what the column scales tell, which release {sample[:12]} has paid for",)
    assert given(again, first) == given(first, again) == ()
    assert given(others) == ()
    assert others.notes == (LEFT_OUT_ASIDE.format(releases=sample[:12]),)
