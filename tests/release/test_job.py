"""Data frames in memory: the same kind out, the same rules, the same charge as for files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from support.release import CENTERS, FEATURES, SCALES, people, write_scales
from targetdp.guarantee import Guarantee
from targetdp.normalization import declared_scales
from targetdp.release import (
    Ledger,
    LimitExceeded,
    ReleasedFrame,
    SigningKey,
    default_key_path,
    privatize_frame,
)
from targetdp.release._certificate._contents import is_certified
from targetdp.release._certificate._verify import verify_guarantee

PUBLIC = declared_scales(CENTERS, SCALES)
KINDS: dict[str, tuple[Callable[..., Any], type]] = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
}


def privatized(frame: Any, **given: Any) -> ReleasedFrame:
    asked: dict[str, Any] = {
        "id": "name",
        "features": FEATURES,
        "B": 0.25,
        "epsilon": 4.0,
        "scales": PUBLIC,
    } | given
    return privatize_frame(frame, **asked)


def columns(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pa.Table):
        return frame.to_pydict()  # type: ignore[no-any-return]
    return {name: list(frame[name]) for name in frame.columns}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_comes_out_sorted_by_id_with_its_certificate(kind: str) -> None:
    make, expected = KINDS[kind]
    done = privatized(make(people(50)))
    assert type(done.frame) is expected
    found = columns(done.frame)
    assert list(found) == ["name", *FEATURES]
    assert found["name"] == [f"{i:06d}" for i in range(50)], "sorted, with leading zeros"
    assert all(isinstance(value, str) for value in found["name"])
    assert all(isinstance(value, float) for name in FEATURES for value in found[name])
    assert done.certificate.output.format == "frame"
    assert done.certificate.rows == done.outcome.rows == 50
    assert done.certificate.guarantee is not None
    assert done.certificate.guarantee.value() == Guarantee(0.25, 4.0, 1 / 51)
    assert any("no ledger" in warning for warning in done.warnings)
    assert all(check.holds for check in verify_guarantee(done.certificate))


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_recognized_and_a_changed_one_is_not(kind: str) -> None:
    done = privatized(KINDS[kind][0](people(50)))
    assert is_certified(done.frame, done.certificate)
    found = columns(done.frame)
    for other, _ in KINDS.values():
        assert is_certified(other(found), done.certificate), "whatever kind it is turned into"
        changed = found | {"texts": [np.nextafter(found["texts"][0], 9), *found["texts"][1:]]}
        assert not is_certified(other(changed), done.certificate)
        assert not is_certified(other({k: v[:-1] for k, v in found.items()}), done.certificate)
        assert not is_certified(other({k: v for k, v in found.items() if k != "texts"}), done.certificate)
        assert not is_certified(other(found | {"name": found["name"][::-1]}), done.certificate)


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_is_a_release_of_its_own_and_is_charged(kind: str, tmp_path: Path) -> None:
    key = SigningKey.open(default_key_path())
    ledger = Ledger(tmp_path / "l.db", key)
    ledger.set_limit("p", Guarantee(0.25, 6.0, 0.05))
    frame = KINDS[kind][0](people(50))
    given = {"ledger": tmp_path / "l.db", "population": "p"}
    done = privatized(frame, **given)
    (row,) = ledger.releases("p")
    assert (row.release, row.state, row.sha256) == (
        done.certificate.release, "published", done.certificate.output.sha256,
    )  # fmt: skip
    with pytest.raises(LimitExceeded, match=r"requested ε = .*, spent .*, remaining"):
        privatized(frame, **given)
    assert len(ledger.releases("p")) == 1
    assert ledger.verify([done.certificate.ledger.head()]) == []  # type: ignore[union-attr]


def test_noise_is_fresh_in_each_call() -> None:
    one, two = (privatized(pa.table(people(50))).frame for _ in range(2))
    assert not (np.asarray(one["calls"]) == np.asarray(two["calls"])).any()


def test_other_columns_are_dropped_and_kept_ones_keep_their_type() -> None:
    kept = {
        "region": ["north", "south"] * 25, "age": np.arange(50, dtype=np.int16), "paid": [True, None] * 25,
        "secret": range(50),
    }  # fmt: skip
    table = pa.table(people(50) | kept)
    done = privatized(table, keep=("age", "region", "paid"))
    assert done.frame.column_names == ["name", *FEATURES, "age", "region", "paid"]
    assert [str(t) for t in done.frame.schema.types[-3:]] == ["int16", "string", "bool"]
    order = np.argsort(table["name"].to_pylist())
    assert done.frame["age"].to_pylist() == order.tolist()
    assert done.certificate.not_protected == ("age", "region", "paid")
    assert any("NOT protected: age, region, paid" in warning for warning in done.warnings)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_categories_can_be_kept(kind: str) -> None:
    region = ["north", "south"] * 25
    makers: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pd.DataFrame(people(50) | {"region": pd.Categorical(region)}),
        "polars": lambda: pl.DataFrame(people(50) | {"region": pl.Series(region, dtype=pl.Categorical)}),
        "pyarrow": lambda: pa.table(people(50) | {"region": pa.array(region).dictionary_encode()}),
    }
    done = privatized(makers[kind](), keep=("region",))
    order = np.argsort(people(50)["name"])
    assert [str(value) for value in columns(done.frame)["region"]] == [region[i] for i in order]


@pytest.mark.parametrize("kind", KINDS)
def test_text_columns_can_be_kept(kind: str) -> None:
    region = ["north", "süd"] * 25
    done = privatized(KINDS[kind][0](people(50) | {"region": region}), keep=("region",))
    order = np.argsort(people(50)["name"])
    assert columns(done.frame)["region"] == [region[i] for i in order]


def test_an_index_of_pandas_does_not_come_along() -> None:
    frame = pd.DataFrame(people(50), index=pd.Index(np.arange(50) * 7, name="secret_rank"))
    done = privatized(frame)
    assert list(done.frame.columns) == ["name", *FEATURES]
    assert list(done.frame.index) == list(range(50))
    assert done.frame.index.name is None


def test_metadata_of_a_table_does_not_come_along() -> None:
    table = pa.table(people(50)).replace_schema_metadata({"secret": "mean = 3"})
    done = privatized(table)
    assert done.frame.schema.metadata is None
    assert all(field.metadata is None for field in done.frame.schema)


def test_order_is_kept_only_if_asked_for() -> None:
    table = pa.table(people(50))
    done = privatized(table, keep_order=True)
    assert done.frame["name"].to_pylist() == table["name"].to_pylist()
    assert done.certificate.order == "as given"
    assert any("ranks" in warning for warning in done.warnings)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_whole_numbers_as_ids_become_text(kind: str) -> None:
    done = privatized(KINDS[kind][0](people(12) | {"name": list(range(12))}))
    assert columns(done.frame)["name"] == sorted(map(str, range(12)))


def test_missing_values_of_pandas_are_found_and_filled() -> None:
    frame = pd.DataFrame(people(50))
    frame.loc[3, "calls"] = np.nan
    frame["texts"] = frame["texts"].round().astype("Int64")
    frame.loc[[5, 6], "texts"] = pd.NA
    with pytest.raises(ValueError, match=r"calls  1 gap, in row 4 .*\n  texts  2 gaps, in row 6, 7"):
        privatized(frame)
    assert privatized(frame, impute={"calls": 0, "texts": -1}).certificate.imputed == {
        "calls": 0,
        "texts": -1,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_private_and_own_scales_work_on_frames(kind: str, tmp_path: Path) -> None:
    frame = KINDS[kind][0](people(50))
    own = privatized(frame, scales="data")
    assert own.certificate.scales.source == "data"
    assert any("conditional guarantee" in warning for warning in own.warnings)
    declared = privatized(frame, scales=str(write_scales(tmp_path / "s.toml")))
    assert declared.certificate.scales == privatized(frame).certificate.scales


def test_a_frame_that_is_not_in_memory_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="frame is a LazyFrame: give a pandas, polars or pyarrow table"):
        privatized(pl.LazyFrame(people(50)))
    for other in ([1, 2], {"name": ["a"]}, None, pd.Series([1.0], name="calls"), np.zeros((3, 3))):
        with pytest.raises(TypeError, match=f"frame is a {type(other).__name__}"):
            privatized(other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ["a"] * 50}, "id column 'name' has duplicated values: 49 rows repeat an id"),
        ({"calls": ["x"] * 50}, r"1 of 3 columns cannot be released as it is:\n  calls  text  leave it out"),
        ({"calls": [1.0] * 50}, "constant columns among the features: 'calls'"),
        ({"calls": [np.inf] + [1.0] * 49}, "calls  1 infinite value, in row 1  correct or drop these rows"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_may_not_hold_a_frame_may_not(kind: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        privatized(KINDS[kind][0](people(50) | change))


def test_an_empty_frame_and_an_absent_column_are_refused() -> None:
    with pytest.raises(ValueError, match="the table has no rows"):
        privatized(pa.table(people(50)).slice(0, 0))
    with pytest.raises(
        ValueError, match="keep names 'nope': no such column in the frame; it has name, calls"
    ):
        privatized(pa.table(people(50)), keep=("nope",))
    with pytest.raises(ValueError, match="scales are for 3 columns"):
        privatized(pa.table(people(50)), features=("calls",))
    with pytest.raises(ValueError, match="engine = 'spark'"):
        privatized(pa.table(people(50)), engine="spark")
