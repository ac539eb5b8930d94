"""Two tables joined: person by person, in the units of the release; or refused, with the reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import FEATURES, cli, read_back, table_of, write_csv, write_parquet, write_scales
from targetdp import data_scales, normalize
from targetdp._core import Floats, Silent
from targetdp.attacks import JoinedTables, join_tables
from targetdp.attacks._on_release import AS_THEY_ARE
from targetdp.normalization import read_scales

ROWS = 60
ASKED = ("--id", "name", "--features", ",".join(FEATURES), "--B", "0.25", "--epsilon", "4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "original.parquet")
    write_scales(tmp_path / "scales.toml")
    return tmp_path


def release(folder: Path, *more: Any, scales: str = "scales.toml", output: str = "private.parquet") -> Path:
    path = folder / output
    given = scales if scales in {"data", "private"} else folder / scales
    ran = cli("privatize", folder / "original.parquet", path, *ASKED, "--scales", given, "--quiet", *more)
    assert ran.code == 0, ran.err
    return path


def joined(folder: Path, released: Path, **more: Any) -> JoinedTables:
    return join_tables(folder / "original.parquet", released, "name", progress=Silent(), **more)


def rows_by_id(table: pa.Table) -> dict[str, Floats]:
    values = np.column_stack([table[name].to_numpy() for name in FEATURES])
    return dict(zip(table["name"].to_pylist(), values, strict=True))


@pytest.mark.parametrize("output", ["private.parquet", "private.csv", "parts"])
def test_each_person_meets_her_own_row_in_the_units_of_the_release(folder: Path, output: str) -> None:
    released = release(folder, output=output)
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


def test_the_datas_own_scales_are_computed_again(folder: Path) -> None:
    tables = joined(folder, release(folder, scales="data"))
    raw = np.array([rows_by_id(table_of())[f"{i:06d}"] for i in range(ROWS)])
    assert np.allclose(tables.original, normalize(raw, data_scales(raw)).X, atol=1e-12)


def test_confidential_scales_must_be_given(folder: Path) -> None:
    write_scales(folder / "secret.toml", source="confidential")
    released = release(folder, scales="secret.toml")
    with pytest.raises(ValueError, match=r"scales are confidential.*give the scales file"):
        joined(folder, released)
    again = joined(folder, released, scales=folder / "secret.toml")
    assert np.linalg.norm(again.original, axis=1).max() <= 1


def test_other_scales_or_another_original_are_found_out(folder: Path) -> None:
    write_scales(folder / "secret.toml", source="confidential")
    released = release(folder, scales="secret.toml")
    text = (folder / "secret.toml").read_text(encoding="utf-8")
    (folder / "wrong.toml").write_text(text.replace("scale = 8.0", "scale = 80.0"), encoding="utf-8")
    with pytest.raises(ValueError, match="not by the noise of the certificate"):
        joined(folder, released, scales=folder / "wrong.toml")
    public = release(folder, output="public.parquet")
    with pytest.raises(ValueError, match="are not those of the certificate"):
        joined(folder, public, scales=folder / "wrong.toml")
    assert joined(folder, public, scales=folder / "scales.toml").law is not None
    write_parquet(
        folder / "original.parquet", table_of(ROWS, seed=77).set_column(0, "name", table_of()["name"])
    )
    with pytest.raises(ValueError, match="not by the noise of the certificate"):
        joined(folder, public)


@pytest.mark.parametrize("mechanism", ["gaussian", "spherical-laplace", "projection", "projection-exact"])
def test_a_true_release_is_never_taken_for_a_wrong_one(folder: Path, mechanism: str) -> None:
    for number in range(5):
        released = release(folder, "--mechanism", mechanism, output=f"{number}.parquet")
        assert joined(folder, released).law is not None


def test_pseudonyms_need_their_key(folder: Path) -> None:
    released = release(folder, "--pseudonymize", folder / "key")
    with pytest.raises(ValueError, match="the release has pseudonyms: give the key"):
        joined(folder, released)
    with pytest.raises(ValueError, match="does not exist"):
        joined(folder, released, pseudonym_key_file=folder / "nokey")
    assert not (folder / "nokey").exists()
    tables = joined(folder, released, pseudonym_key_file=folder / "key")
    plain = joined(folder, release(folder, output="plain.parquet"))
    assert sorted(map(tuple, tables.original)) == sorted(map(tuple, plain.original))


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
    refused("the release has no pseudonyms", original, pseudonym_key_file=folder / "scales.toml")
    refused("features names 'nope'", original, features=["nope"])
    refused("each column once", original, features=["calls", "calls"])
    refused("not the id", original, features=["name", "calls"])
    private = release(folder)
    refused(r"features names calls: the release's certificate says", private, features=["calls"])
    with pytest.raises(ValueError, match="id names 'who'"):
        join_tables(original, private, "who", progress=Silent())
    with pytest.raises(ValueError, match="not the id"):
        join_tables(original, private, "calls", progress=Silent())
    refused("signer", private, public_key="0" * 64)
    cider = release(folder, "--for", "cider", output="cider.csv")
    refused("made for cider", cider)


def test_a_certificate_must_hold(folder: Path) -> None:
    released = release(folder)
    write_parquet(released, read_back(released).slice(0, 59))
    with pytest.raises(ValueError, match=r"does not hold for release.*targetdp verify"):
        joined(folder, released)


def test_gaps_are_filled_with_the_certificates_constants(folder: Path) -> None:
    gappy = table_of().set_column(1, "calls", [[None, *table_of()["calls"].to_pylist()[1:]]])
    write_parquet(folder / "original.parquet", gappy)
    tables = joined(folder, release(folder, "--impute", "calls=10"))
    first = gappy["name"][0].as_py()
    place = sorted(gappy["name"].to_pylist()).index(first)
    assert tables.original[place, 0] == 0.0  # the constant is the column's center
