"""Tables in every format, in and out: ids, types, order of rows and columns, and what is never copied."""

import datetime as dt
import gzip
import hmac
import json
import math
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from scipy import stats

from support.release import (
    ASKED,
    CENTERS,
    FEATURES,
    NAMED,
    SCALES,
    certificate_of,
    cli,
    hidden,
    holds,
    normalized,
    people,
    read_back,
    table_of,
    values_of,
    words,
    write_csv,
    write_parquet,
    write_scales,
)
from support.statistics import assert_scale, same_distribution
from targetdp._core import Floats
from targetdp.normalization import declared_scales
from targetdp.release import Ledger, privatize_frame
from targetdp.table import _sink as sink

IDS = [
    "007",
    "7",
    "07",
    "NA",
    "null",
    "nan",
    "",
    "ünï",
    "名前",
    "🙂",
    " x",
    "x ",
    "1e5",
    "TRUE",
    "a,b",
    'q"q',
    "-0",
]
IDS.remove("")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_scales(Path("scales.toml"))
    return tmp_path


def release(source: Any, output: str, *more: Any, asked: tuple[str, ...] = ASKED) -> Path:
    """A release that holds; by the mechanism whose certificate is derived quickest, if none is named."""
    named = () if "--mechanism" in more else ("--mechanism", "gaussian")
    ran = cli("privatize", source, output, *asked, "--scales", "scales.toml", *named, *more)
    assert ran.code == 0, ran.err
    assert holds(Path(output))
    assert hidden(Path.cwd()) == []
    return Path(output)


def odd_table() -> pa.Table:
    return pa.table(people(len(IDS)) | {"name": IDS})


def stored(kind: str, table: pa.Table) -> Path:
    """The table in one of the formats that are read, in two parts where there are parts."""
    if kind == "parquet":
        return write_parquet(Path("in.parquet"), table)
    if kind == "csv":
        return write_csv(Path("in.csv"), table)
    if kind == "csv.gz":
        plain = write_csv(Path("plain.csv"), table)
        Path("in.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
        return Path("in.csv.gz")
    parts, half = Path("parts"), table.num_rows // 2
    (parts / "deep").mkdir(parents=True)
    write = write_parquet if kind == "parquet parts" else write_csv
    suffix = kind.split(maxsplit=1)[0]
    write(parts / f"a.{suffix}", table.slice(0, half))
    write(parts / "deep" / f"b.{suffix}", table.slice(half))
    (parts / "_SUCCESS").write_text("")
    (parts / f".a.{suffix}.crc").write_text("x")
    return parts


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out"])
@pytest.mark.parametrize("kind", ["parquet", "parquet parts", "csv", "csv parts", "csv.gz"])
def test_ids_survive_and_rows_are_sorted_whatever_the_formats(kind: str, output: str) -> None:
    table = odd_table()
    released = read_back(release(stored(kind, table), output))
    assert released.column_names == ["name", *FEATURES]
    assert released["name"].to_pylist() == sorted(IDS, key=str.encode)
    assert [str(t) for t in released.schema.types] == ["string", "double", "double", "double"]


@pytest.mark.parametrize("kind", ["parquet", "parquet parts", "csv", "csv parts", "csv.gz"])
def test_every_value_belongs_to_its_own_person(kind: str) -> None:
    """With hardly any noise, what is released is what was there."""
    table = odd_table()
    asked = (*NAMED, "--B", "1e-6", "--epsilon", "100", "--delta", "0.3")
    for more in ((), ("--keep-order",)):
        output = f"out{len(more)}.parquet"
        released = read_back(
            release(stored(kind, table) if not more else _last(kind), output, *more, asked=asked)
        )
        order = np.arange(len(IDS)) if more else np.argsort([i.encode() for i in IDS])
        assert released["name"].to_pylist() == [IDS[i] for i in order]
        assert np.abs(values_of(released) - normalized(table)[order]).max() < 1e-5


def _last(kind: str) -> Path:
    return Path("parts") if kind.endswith("parts") else Path(f"in.{kind}")


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out"])
def test_columns_come_in_the_order_that_is_asked_for(output: str) -> None:
    source = write_parquet(Path("in.parquet"), table_of(region=["n"] * 60, age=range(60)))
    asked = ("--id", "name", "--features", "topups,calls", "--B", "0.25", "--epsilon", "4")
    released = read_back(release(source, output, "--keep", "age,region", asked=asked))
    assert released.column_names == ["name", "topups", "calls", "age", "region"]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(range(100, 160)), pa.array(range(60), pa.uint8()),
        pa.array([f"{i:03d}" for i in range(60)], pa.large_string()),
        pa.array([f"{i:03d}" for i in range(60)]).dictionary_encode(),
        pa.array([f"{i:03d}" for i in range(60)], pa.string_view()),
        pa.array(["x" * 5000 + f"{i}" for i in range(60)]),
    ],
    ids=["int64", "uint8", "large string", "dictionary", "string view", "long"],
)  # fmt: skip
def test_ids_of_any_kind_come_out_as_text(ids: pa.Array) -> None:
    source = write_parquet(Path("in.parquet"), table_of().set_column(0, "name", ids))
    released = read_back(release(source, "out.parquet"))
    assert released["name"].to_pylist() == sorted(map(str, ids.to_pylist()))
    assert released.schema.field("name").type == pa.string()


KEPT: dict[str, pa.Array] = {
    "whole": pa.array([1, None, -3], pa.int16()), "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "text": pa.array(["a", "", None]), "long text": pa.array(["a", "", None], pa.large_string()),
    "view": pa.array(["a", "", None], pa.string_view()), "truth": pa.array([True, None, False]),
    "day": pa.array([dt.date(2020, 1, 31), None, dt.date(1969, 7, 20)]),
    "moment": pa.array([dt.datetime(2020, 1, 31, 12, 30, 15, 123456), None, None]),
    "money": pa.array([Decimal("1.25"), None, Decimal("-9.99")]), "real": pa.array([0.1, math.inf, None]),
    "single": pa.array([0.5, None, 2.0], pa.float32()),
    "category": pa.array(["n", "s", "n"]).dictionary_encode(),
    "bytes": pa.array([b"\xff", None, b""]), "list": pa.array([[1], [], None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("more", [(), ("--keep-order",)], ids=["sorted", "order kept"])
def test_kept_columns_keep_their_values(kind: str, more: tuple[str, ...]) -> None:
    table = pa.table(people(3) | {"name": ["b", "c", "a"], "kept": KEPT[kind], "dropped": [1, 2, 3]})
    output = release(write_parquet(Path("in.parquet"), table), "out.parquet", "--keep", "kept", *more)
    released = read_back(output)
    expected = [KEPT[kind].to_pylist()[i] for i in ([0, 1, 2] if more else [2, 0, 1])]
    assert released["kept"].to_pylist() == expected
    assert released.column_names[-1] == "kept"
    assert certificate_of(output).not_protected == ("kept",)


def test_kept_text_of_a_csv_stays_text() -> None:
    Path("in.csv").write_text("name,calls,texts,topups,zip\nb,1,2,3,01234\na,4,5,6,NA\n")
    released = pacsv.read_csv(
        release("in.csv", "out.csv", "--keep", "zip"),
        convert_options=pacsv.ConvertOptions(column_types={"zip": pa.string()}, strings_can_be_null=False),
    )
    assert released["zip"].to_pylist() == ["NA", "01234"]


def test_a_kept_column_that_csv_cannot_hold_is_refused_by_name() -> None:
    table = table_of(3, tags=[[1], [2], [3]])
    write_parquet(Path("in.parquet"), table)
    ran = cli("privatize", "in.parquet", "out.csv", *ASKED, "--scales", "scales.toml", "--keep", "tags")
    assert ran.code == 2
    assert "tags" in ran.err
    assert not Path("out.csv").exists()


def test_parts_of_a_directory_are_cut_and_sorted_across(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "ROWS_PER_PART", 500)
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)
    monkeypatch.setattr("targetdp.release._engine._inspection.GROUP_CELLS", 3 * 64, raising=False)
    output = release(write_parquet(Path("in.parquet"), table_of(2000)), "out")
    names = sorted(p.name for p in output.iterdir())
    assert len(names) >= 3
    assert names[0] == "part-00000.parquet"
    assert read_back(output)["name"].to_pylist() == [f"{i:06d}" for i in range(2000)]


def test_nothing_of_the_input_but_its_values_is_copied() -> None:
    table = table_of(400, age=range(400))
    schema = pa.schema(
        [field.with_metadata({"origin": "SECRET-field"}) for field in table.schema],
        metadata={"pandas": '{"SECRET-pandas": 1}', "note": "SECRET-note"},
    )
    pq.write_table(table.cast(schema), "in.parquet", row_group_size=7, compression="gzip")
    output = release("in.parquet", "out.parquet", "--keep", "age")
    metadata = pq.read_metadata(output)
    assert metadata.num_row_groups == 1
    assert not metadata.metadata
    assert pq.read_schema(output).metadata is None
    assert all(not field.metadata or b"origin" not in field.metadata for field in pq.read_schema(output))
    assert b"SECRET" not in output.read_bytes()
    assert b"SECRET" not in Path("out.parquet.certificate.json").read_bytes()


def test_pseudonyms_are_keyed_hashes_and_stay_the_same_with_the_key() -> None:
    source = write_parquet(Path("in.parquet"), odd_table())
    first = read_back(release(source, "one.parquet", "--pseudonymize", "secret.key"))
    key_file = Path("secret.key")
    assert key_file.stat().st_mode & 0o777 == 0o600
    key = bytes.fromhex(key_file.read_text())
    expected = sorted(hmac.digest(key, name.encode(), "sha256").hex() for name in IDS)
    assert first["name"].to_pylist() == expected
    second = read_back(release(source, "two.csv", "--pseudonymize", "secret.key"))
    assert second["name"].to_pylist() == expected
    other = read_back(release(source, "three.parquet", "--pseudonymize", "other.key"))
    assert not set(other["name"].to_pylist()) & set(expected)
    assert certificate_of(Path("one.parquet")).pseudonyms
    assert key.hex() not in Path("one.parquet.certificate.json").read_text()


def test_pseudonyms_can_keep_the_order() -> None:
    source = write_parquet(Path("in.parquet"), odd_table())
    released = read_back(release(source, "out.parquet", "--pseudonymize", "secret.key", "--keep-order"))
    key = bytes.fromhex(Path("secret.key").read_text())
    assert released["name"].to_pylist() == [hmac.digest(key, name.encode(), "sha256").hex() for name in IDS]


def test_missing_values_are_filled_with_declared_constants() -> None:
    Path("in.csv").write_text("name,calls,texts,topups\na,,2,3\nb,4,,6\nc,7,8,\n")
    asked = (*NAMED, "--B", "1e-6", "--epsilon", "100", "--delta", "0.3")
    one = release("in.csv", "one.csv", "--impute", "1.5", asked=asked)
    two = release("in.csv", "two.csv", "--impute", "calls=-1,texts=0,topups=2", asked=asked)
    for output, fill in ((one, (1.5, 1.5, 1.5)), (two, (-1.0, 0.0, 2.0))):
        raw = pa.table({"calls": [fill[0], 4, 7], "texts": [2, fill[1], 8.0], "topups": [3, 6, fill[2]]})
        assert np.abs(values_of(read_back(output)) - normalized(raw)).max() < 1e-5
        c = certificate_of(output)
        assert c.imputed == dict(zip(FEATURES, fill, strict=True))
        assert any("declared, not learned" in condition for condition in c.conditions)
    ran = cli("privatize", "in.csv", "x.csv", *ASKED, "--scales", "scales.toml", "--impute", "calls=0")
    assert ran.code == 2
    assert "texts 1 gap" in words(ran.err)
    assert "'calls'" not in words(ran.err)


def test_partitions_set_delta() -> None:
    output = release(write_parquet(Path("in.parquet"), table_of(100)), "out.parquet", "--partitions", "6")
    c = certificate_of(output)
    assert c.guarantee is not None
    assert c.guarantee.delta == 1 / (17 + 1)
    assert c.mechanism.partitions == 6


@pytest.mark.parametrize(
    "name", ["least-noise", "spherical-laplace", "gaussian", "projection-exact", "projection"]
)
def test_every_mechanism_releases_what_it_certifies(name: str) -> None:
    output = release(write_parquet(Path("in.parquet"), table_of(200)), "out.csv", "--mechanism", name)
    c = certificate_of(output)
    assert name in {c.mechanism.name, "least-noise"}
    assert c.mechanism.law is not None
    assert c.mechanism.law["dimensions"] == 3


def test_one_column_can_have_the_staircase() -> None:
    asked = ("--id", "name", "--features", "calls", "--B", "0.25", "--epsilon", "4")
    output = release(
        write_parquet(Path("in.parquet")), "out.parquet", "--mechanism", "staircase", asked=asked
    )
    assert certificate_of(output).mechanism.law["family"] == "staircase"  # type: ignore[index]


def test_mondrian_makes_groups_and_promises_nothing() -> None:
    source = write_parquet(Path("in.parquet"), table_of(100))
    ran = cli(
        "privatize", source, "out.parquet", *NAMED, "--scales", "scales.toml", "--mechanism", "mondrian",
        "--group-size", "7",
    )  # fmt: skip
    assert ran.code == 0
    assert "no guarantee" in ran.err
    assert holds(Path("out.parquet"))
    values = values_of(read_back(Path("out.parquet")))
    _, sizes = np.unique(values, axis=0, return_counts=True)
    assert sizes.min() >= 7
    assert certificate_of(Path("out.parquet")).guarantee is None


def test_the_shape_that_cider_reads() -> None:
    table = table_of(500)
    source = write_parquet(Path("in.parquet"), table)
    output = release(source, "features.csv", "--for", "cider")
    released = pacsv.read_csv(output)
    assert released.column_names == ["name", *FEATURES]
    values = values_of(released)
    assert np.abs(values.mean(axis=0)).max() < 1e-9
    assert np.abs(values.std(axis=0) - 1).max() < 1e-9
    assert output.read_text().splitlines()[0].replace('"', "") == "name,calls,texts,topups"
    for reserved in ("label", "weight"):
        write_parquet(Path("bad.parquet"), table.append_column(reserved, [table["calls"].to_pylist()]))
        asked = ("--id", "name", "--features", f"calls,{reserved}", "--B", "0.25", "--epsilon", "4")
        ran = cli("privatize", "bad.parquet", "x.csv", *asked, "--scales", "scales.toml", "--for", "cider")
        assert ran.code == 2
        assert f"drop ['{reserved}']" in words(ran.err)


# Scales


def test_scales_are_learned_as_means_and_deviations() -> None:
    table = table_of(500)
    for source in (write_parquet(Path("t.parquet"), table), write_csv(Path("t.csv"), table)):
        ran = cli(
            "scales", source, "--features", "topups,calls", "--source", "public", "--out", "s.toml", "--force"
        )
        assert ran.code == 0
        text = Path("s.toml").read_text()
        read = tomllib.loads(text)
        assert read["source"] == "public"
        for name in ("topups", "calls"):
            column = np.asarray(table[name])
            assert read["features"][name]["center"] == pytest.approx(column.mean())
            assert read["features"][name]["scale"] == pytest.approx(column.std())
    ran = cli("scales", "t.csv", "--features", "calls", "--source", "public", "--out", "s.toml")
    assert ran.code == 2
    assert "exists" in ran.err


def test_confidential_scales_stay_confidential() -> None:
    source = write_parquet(Path("in.parquet"))
    assert (
        cli(
            "scales", source, "--features", ",".join(FEATURES), "--source", "confidential", "--out", "c.toml"
        ).code
        == 0
    )
    assert Path("c.toml").stat().st_mode & 0o077 == 0
    output = release(source, "out.parquet", "--scales", "c.toml")
    c = certificate_of(output)
    assert (c.scales.source, c.scales.values) == ("confidential", None)
    said = Path("out.parquet.certificate.json").read_text() + Path("out.parquet.certificate.md").read_text()
    for column in tomllib.loads(Path("c.toml").read_text())["features"].values():
        for value in column.values():
            assert f"{value:.6g}" not in said
            assert repr(value) not in said
    assert "no one paid for" in c.conditions[0]


def test_scales_of_the_data_itself_are_a_condition_said_on_screen() -> None:
    source = write_parquet(Path("in.parquet"))
    ran = cli("privatize", source, "out.parquet", *ASKED, "--scales", "data")
    assert ran.code == 0
    assert "conditional guarantee" in words(ran.err)
    assert certificate_of(Path("out.parquet")).scales.values is None


def test_private_scales_are_paid_for() -> None:
    source = write_parquet(Path("in.parquet"), table_of(20_000))
    bounds = "\n".join(f"{name} = {{ lower = -40, upper = 60 }}" for name in FEATURES)
    Path("bounds.toml").write_text(f"[features]\n{bounds}\n")
    private = ("--scales", "private", "--bounds", "bounds.toml", "--scales-epsilon", "0.5")
    ran = cli("privatize", source, "out.parquet", *ASKED, *private, "--mechanism", "gaussian")
    assert ran.code == 0, ran.err
    c = certificate_of(Path("out.parquet"))
    assert c.guarantee is not None
    assert c.guarantee.epsilon == pytest.approx(4.5)
    assert c.scales.spent is not None
    assert c.scales.spent.epsilon == 0.5
    assert c.scales.values is not None
    for j, name in enumerate(FEATURES):
        assert c.scales.values[name].center == pytest.approx(CENTERS[j], abs=2)
        assert c.scales.values[name].scale == pytest.approx(SCALES[j], abs=3)


# The noise itself


@pytest.mark.parametrize("engine", ["file", "file, order kept", "frame"])
def test_what_is_released_is_the_row_and_the_certified_noise(engine: str) -> None:
    table = table_of(60_000)
    given: dict[str, Any] = {
        "id": "name",
        "features": FEATURES,
        "B": 0.25,
        "epsilon": 4.0,
        "mechanism": "gaussian",
    }
    if engine == "frame":
        done = privatize_frame(table, scales=declared_scales(CENTERS, SCALES), **given)
        released, c = done.frame, done.certificate
    else:
        more = ("--keep-order",) if "kept" in engine else ()
        output = release(
            write_parquet(Path("in.parquet"), table), "out.parquet", "--mechanism", "gaussian", *more
        )
        released, c = read_back(output), certificate_of(output)
    assert c.mechanism.law is not None
    place = {name: i for i, name in enumerate(table["name"].to_pylist())}
    order = [place[name] for name in released["name"].to_pylist()]
    noise = values_of(released) - normalized(table)[order]
    for j in range(3):
        assert_scale(noise[:, j], stats.norm(scale=c.mechanism.law["deviation"]).cdf)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.05
    # Noise that fell on the wrong person would not leave the rows' own signal.
    assert np.abs(np.corrcoef(noise[:, 0], normalized(table)[order][:, 0])[0, 1]) < 0.05


def with_length(noise: Floats) -> Floats:
    """Noise with its length as one more column: of all numbers the one that tells scales apart best."""
    return np.column_stack([noise, np.linalg.norm(noise, axis=1)])


def test_file_and_frame_agree_in_distribution() -> None:
    table = table_of(20_000)
    output = release(
        write_parquet(Path("in.parquet"), table), "out.parquet", "--mechanism", "spherical-laplace"
    )
    done = privatize_frame(
        table, id="name", features=FEATURES, B=0.25, epsilon=4.0, mechanism="spherical-laplace",
        scales=declared_scales(CENTERS, SCALES),
    )  # fmt: skip
    one, two = values_of(read_back(output)), values_of(done.frame)
    rng = np.random.default_rng(3)
    assert certificate_of(output).mechanism == done.certificate.mechanism
    order = np.argsort(table["name"].to_pylist())
    signal = normalized(table)[order]
    noise, other = with_length(one - signal), with_length(two - signal)
    assert same_distribution(noise, other, rng)
    for factor in (0.9, 1.1):
        assert not same_distribution(noise, factor * other, rng)
    # ‖z‖/b of spherical Laplace noise in three dimensions is Gamma(3).
    law = done.certificate.mechanism.law
    assert law is not None
    assert_scale(np.linalg.norm(one - signal, axis=1) / law["scale"], stats.gamma(3).cdf)


def test_no_noise_is_used_twice() -> None:
    source = write_parquet(Path("in.parquet"), table_of(3000))
    one, two = (
        values_of(read_back(release(source, f"{i}.parquet", "--mechanism", "least-noise"))) for i in "ab"
    )
    signal = normalized(table_of(3000))[np.argsort(table_of(3000)["name"].to_pylist())]
    for a, b in ((one - signal, two - signal), (one[:1500] - signal[:1500], one[1500:] - signal[1500:])):
        assert not np.isclose(a, b, atol=1e-7, rtol=0).any(axis=1).sum() > 3


def test_a_release_file_tells_the_whole_story() -> None:
    write_parquet(Path("in.parquet"))
    Path("deep").mkdir()
    write_scales(Path("deep/scales.toml"))
    Path("deep/release.toml").write_text(
        'id = "name"\nfeatures = ["calls", "texts"]\nB = 0.25\nepsilon = 4\nscales = "scales.toml"\n'
        'ledger = "ledger.db"\npopulation = "people"\nkeep_order = true\ntuned_on = "synthetic"\n'
    )
    ran = cli(
        "privatize",
        "in.parquet",
        "out.parquet",
        "--release",
        "deep/release.toml",
        "--epsilon",
        "2",
        "--sort-by-id",
        "--json",
    )
    assert ran.code == 0, ran.err
    c = certificate_of(Path("out.parquet"))
    assert c.guarantee is not None
    assert (c.guarantee.epsilon, c.features, c.order, c.tuned_on) == (
        2.0, ("calls", "texts"), "sorted by id", "synthetic",
    )  # fmt: skip
    assert ran.json["ledger"]["population"] == "people"
    assert [row.state for row in Ledger.existing("deep/ledger.db").releases()] == ["published"]
    assert json.loads(ran.out)["warnings"]


def test_names_may_come_from_a_file() -> None:
    write_parquet(Path("in.parquet"))
    ran = cli("columns", "in.parquet", "--names", "--without", "name")
    assert ran.out.split() == list(FEATURES)
    Path("names.txt").write_text(ran.out)
    asked = ("--id", "name", "--features", "@names.txt", "--B", "0.25", "--epsilon", "4")
    assert read_back(release("in.parquet", "out.parquet", asked=asked)).column_names == ["name", *FEATURES]
