"""Tables in every format, in and out: ids, types, order of rows and columns, and what is never copied."""

import datetime as dt
import gzip
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
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from scipy import stats

from support.release import (
    ASKED,
    CENTERS,
    FEATURES,
    SCALES,
    certificate_of,
    cli,
    hidden,
    holds,
    make_desk,
    new_policy,
    normalized,
    people,
    read_back,
    release_frame,
    request_of,
    table_of,
    values_of,
    words,
    write_csv,
    write_parquet,
)
from support.staged import states
from support.statistics import assert_scale, same_distribution
from targetdp._core import Floats
from targetdp.release import Desk, secret_key
from targetdp.release._engine import _base as engine
from targetdp.table import _sink as sink

IDS = ["007", "7", "07", "NA", "null", "nan", "ünï", "名前", "🙂", "x y", "1e5", "TRUE", "a,b", 'q"q', "-0"]
QUIETLY: dict[str, Any] = {"B": 1e-3, "epsilon": 100.0, "delta": 0.3}
"""Asks for hardly any noise; at a limit that speaks of so small a distance it costs little."""
NEARBY = (1e-3, 1000.0, 0.5)
QUIET: dict[str, Any] = {"limit": NEARBY, "large_delta": "a test"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(source: Any, output: str, policy: dict[str, Any] | None = None, **asked: Any) -> Path:
    """A release that holds; by the mechanism whose certificate is derived quickest, if none is named."""
    features = asked.pop("of", FEATURES)
    if not Path("desk").exists():
        make_desk(Path.cwd(), features=features, **(policy or {}))
    elif policy is not None:
        new_policy(Path("desk"), features=features, reason=f"for {output}", **policy)
    request = request_of(**{"mechanism": "gaussian"} | asked)
    Path("request.toml").write_text(request.text(), encoding="utf-8")
    ran = cli("privatize", source, output, "--request", "request.toml", "--yes")
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
    released = read_back(release(stored(kind, table), "out.parquet", QUIET, **QUIETLY))
    order = np.argsort([i.encode() for i in IDS])
    assert released["name"].to_pylist() == [IDS[i] for i in order]
    assert np.abs(values_of(released) - normalized(table)[order]).max() < 1e-3


def test_every_pseudonym_has_its_own_persons_values() -> None:
    table = odd_table()
    source = write_parquet(Path("in.parquet"), table)
    released = read_back(release(source, "out.parquet", {**QUIET, "pseudonyms": True}, **QUIETLY))
    key = secret_key(Path("desk/keys/pseudonyms.key"))
    assert released["name"].to_pylist() == sorted(pseudonym(name, key) for name in IDS)
    place = {pseudonym(name, key): i for i, name in enumerate(IDS)}
    order = [place[name] for name in released["name"].to_pylist()]
    assert np.abs(values_of(released) - normalized(table)[order]).max() < 1e-3


def pseudonym(name: str, key: bytes) -> str:
    """AES-256-CMAC of the id, by another library's own loop."""
    code = CMAC(algorithms.AES(key))
    code.update(name.encode())
    return code.finalize().hex()


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out"])
def test_columns_come_in_the_order_that_is_asked_for(output: str) -> None:
    source = write_parquet(Path("in.parquet"), table_of(region=["n"] * 60, age=range(60)))
    policy = {"public": {"age": "on the list", "region": "on the map"}}
    released = read_back(release(source, output, policy, features=["topups", "calls"]))
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


@pytest.mark.parametrize("pseudonyms", [False, True])
def test_ids_come_out_in_the_one_spelling_of_the_policy(pseudonyms: bool) -> None:
    """However a table spells them: the ledger knows everybody again, and so does whoever joins releases."""
    spelling = {"country_code": "228", "digits": 8}
    policy = {"spelling": spelling, "pseudonyms": pseudonyms}
    local = [f"901234{i:02d}" for i in range(60)]
    odd = [(f"+228 {n}", f"00228{n}", f"0{n}", n, f"{n[:2]}-{n[2:]}")[i % 5] for i, n in enumerate(local)]
    outputs = []
    for name, ids in (("a", local), ("b", odd)):
        source = write_parquet(Path(f"{name}.parquet"), table_of().set_column(0, "name", [ids]))
        outputs.append(read_back(release(source, f"{name}-out.csv", policy if name == "a" else None)))
    assert outputs[0]["name"] == outputs[1]["name"]
    if not pseudonyms:
        assert outputs[0]["name"].to_pylist() == sorted(f"228{n}" for n in local)
    with Desk.open("desk").ledger() as ledger:
        one_row, other_row = ledger.history.releases.values()
        assert one_row.people == other_row.people, "they are the same people"


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
@pytest.mark.parametrize("pseudonyms", [False, True])
def test_public_columns_keep_their_values(kind: str, pseudonyms: bool) -> None:
    table = pa.table(people(3) | {"name": ["b", "c", "a"], "kept": KEPT[kind], "dropped": [1, 2, 3]})
    policy = {"public": {"kept": "it is printed on every wall"}, "pseudonyms": pseudonyms}
    output = release(write_parquet(Path("in.parquet"), table), "out.parquet", policy)
    released = read_back(output)
    names = ["b", "c", "a"]
    if pseudonyms:
        key = secret_key(Path("desk/keys/pseudonyms.key"))
        names = [pseudonym(name, key) for name in names]
    expected = [KEPT[kind].to_pylist()[i] for i in np.argsort(names)]
    assert released["kept"].to_pylist() == expected
    assert released.column_names[-1] == "kept"
    assert certificate_of(output).public == {"kept": "it is printed on every wall"}


def test_public_text_of_a_csv_stays_text() -> None:
    Path("in.csv").write_text("name,calls,texts,topups,zip\nb,1,2,3,01234\na,4,5,6,NA\n")
    released = pacsv.read_csv(
        release("in.csv", "out.csv", {"public": {"zip": "it is on the map"}}),
        convert_options=pacsv.ConvertOptions(column_types={"zip": pa.string()}, strings_can_be_null=False),
    )
    assert released["zip"].to_pylist() == ["NA", "01234"]


def test_a_public_column_that_csv_cannot_hold_is_refused_by_name() -> None:
    write_parquet(Path("in.parquet"), table_of(3, tags=[[1], [2], [3]]))
    make_desk(Path.cwd(), public={"tags": "they are on the wall"})
    ran = cli("privatize", "in.parquet", "out.csv", *ASKED)
    assert ran.code == 2
    assert "tags" in ran.err
    assert not Path("out.csv").exists()
    assert states(Path.cwd()) == {}


def test_parts_of_a_directory_are_cut_and_sorted_across(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "ROWS_PER_PART", 500)
    monkeypatch.setattr("targetdp.table._source.CELLS", 3 * 64)
    monkeypatch.setattr(engine, "GROUP_CELLS", 3 * 64)
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
    output = release("in.parquet", "out.parquet", {"public": {"age": "it is on the list"}})
    metadata = pq.read_metadata(output)
    assert metadata.num_row_groups == 1
    assert not metadata.metadata
    assert pq.read_schema(output).metadata is None
    assert all(not field.metadata or b"origin" not in field.metadata for field in pq.read_schema(output))
    assert b"SECRET" not in output.read_bytes()
    assert b"SECRET" not in Path("out.parquet.certificate.json").read_bytes()


def test_pseudonyms_stay_the_same_at_a_desk_and_differ_between_desks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source = write_parquet(Path("in.parquet"), odd_table())
    first = read_back(release(source, "one.parquet", {"pseudonyms": True}))
    second = read_back(release(source, "two.csv"))
    assert first["name"] == second["name"]
    assert certificate_of(Path("one.parquet")).pseudonyms
    key = Path("desk/keys/pseudonyms.key").read_text().strip()
    assert key not in Path("one.parquet.certificate.json").read_text()
    assert not set(first["name"].to_pylist()) & set(IDS)
    other = tmp_path_factory.mktemp("other")
    make_desk(other, pseudonyms=True)
    run = ("privatize", source, "three.parquet", *ASKED, "--desk", other / "desk")
    assert "are in releases of another desk of yours" in cli(*run).err
    ran = cli(*run, "--new-people", "invented twice")
    assert ran.code == 0, ran.err
    assert not set(read_back(Path("three.parquet"))["name"].to_pylist()) & set(first["name"].to_pylist())


def test_missing_values_are_filled_with_declared_constants() -> None:
    Path("in.csv").write_text("name,calls,texts,topups\na,,2,3\nb,4,,6\nc,7,8,\n")
    ways = ({"all": 1.5}, {"calls": -1, "texts": 0, "topups": 2}, {"calls": -1.0, "all": 2})
    for number, (gaps, fill) in enumerate(
        zip(ways, ((1.5, 1.5, 1.5), (-1.0, 0.0, 2.0), (-1.0, 2.0, 2.0)), strict=True)
    ):
        output = release("in.csv", f"{number}.csv", {**QUIET, "gaps": gaps}, **QUIETLY)
        raw = pa.table({"calls": [fill[0], 4, 7], "texts": [2, fill[1], 8.0], "topups": [3, 6, fill[2]]})
        assert np.abs(values_of(read_back(output)) - normalized(raw)).max() < 1e-3
        c = certificate_of(output)
        assert c.gaps == dict(zip(FEATURES, fill, strict=True))
        assert any("declared, not learned" in condition for condition in c.conditions)
    new_policy(Path("desk"), limit=NEARBY, large_delta="a test", gaps={"calls": 0})
    ran = cli("privatize", "in.csv", "x.csv", "--B", "1e-3", "--epsilon", "4", "--yes")
    assert ran.code == 2
    assert "texts 1 gap" in words(ran.err)
    assert "calls 1 gap" not in words(ran.err)


@pytest.mark.parametrize(
    "name", ["least-noise", "spherical-laplace", "gaussian", "projection-exact", "projection"]
)
def test_every_mechanism_releases_what_it_certifies(name: str) -> None:
    output = release(write_parquet(Path("in.parquet"), table_of(200)), "out.csv", mechanism=name)
    c = certificate_of(output)
    assert name in {c.mechanism.name, "least-noise"}
    assert c.mechanism.law["dimensions"] == 3


def test_one_column_can_have_the_staircase() -> None:
    output = release(
        write_parquet(Path("in.parquet")), "out.parquet", mechanism="staircase", features=["calls"]
    )
    assert certificate_of(output).mechanism.law["family"] == "staircase"


@pytest.mark.parametrize("gone", ["mondrian", "k-anonymity"])
def test_no_release_without_a_guarantee(gone: str) -> None:
    make_desk(Path.cwd())
    write_parquet(Path("in.parquet"))
    Path("request.toml").write_text(f'B = 0.25\nepsilon = 4\nmechanism = "{gone}"\n')
    ran = cli("privatize", "in.parquet", "out.parquet", "--request", "request.toml", "--yes")
    assert (ran.code, f"mechanism = '{gone}' is not one of" in ran.err) == (2, True)


# Scores


def test_scores_are_weighted_sums_of_scaled_rows() -> None:
    table = odd_table()
    weights = {"topups": (2.0, 0.5), "calls": (-1.0, 0.25)}
    output = release(
        write_parquet(Path("in.parquet"), table), "out.parquet", QUIET, release="scores",
        scores=("poverty", "need"), weights=weights, **QUIETLY,
    )  # fmt: skip
    released = read_back(output)
    assert released.column_names == ["name", "poverty", "need"]
    order = np.argsort([i.encode() for i in IDS])
    pair = pa.table({"calls": table["calls"], "topups": table["topups"]})
    scaled = (values_of(pair, ("calls", "topups")) - [CENTERS[0], CENTERS[2]]) / [SCALES[0], SCALES[2]]
    rows = scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1))[:, None]
    found = values_of(released, ("poverty", "need"))
    matrix = np.array([[-1.0, 0.25], [2.0, 0.5]])
    expected = (rows @ matrix)[order]
    assert np.allclose(found / np.linalg.norm(found), expected / np.linalg.norm(expected), atol=1e-3)
    c = certificate_of(output)
    assert (c.scores, set(c.features)) == (("poverty", "need"), {"calls", "topups"})


def test_people_of_an_earlier_release_are_left_out() -> None:
    everybody = table_of(60)
    write_parquet(Path("all.parquet"), everybody)
    write_parquet(Path("sample.parquet"), everybody.slice(40))
    sample = release("sample.parquet", "sample-out.parquet")
    earlier = certificate_of(sample).release
    output = release(
        "all.parquet", "scores.parquet", release="scores", weights={"calls": 1.0}, leave_out=[earlier[:8]]
    )
    left = set(everybody["name"].to_pylist()) - set(everybody["name"].to_pylist()[40:])
    assert set(read_back(output)["name"].to_pylist()) == left
    assert certificate_of(output).left_out == (earlier,), "named by its beginning, certified whole"


# Scales


def test_scales_are_learned_as_means_and_deviations() -> None:
    table = table_of(500)
    for source in (write_parquet(Path("t.parquet"), table), write_csv(Path("t.csv"), table)):
        named = ("--source", "public", "--reason", "a test")
        ran = cli("scales", source, "--features", "topups,calls", *named, "--out", "s.toml", "--force")
        assert ran.code == 0
        text = Path("s.toml").read_text()
        read = tomllib.loads(text)
        assert read["source"] == "public"
        for name in ("topups", "calls"):
            column = np.asarray(table[name])
            assert read["features"][name]["center"] == pytest.approx(column.mean())
            assert read["features"][name]["scale"] == pytest.approx(column.std())
    ran = cli(
        "scales", "t.csv", "--features", "calls", "--source", "public", "--reason", "a", "--out", "s.toml"
    )
    assert ran.code == 2
    assert "exists" in ran.err


def test_confidential_scales_make_no_desk() -> None:
    source = write_parquet(Path("in.parquet"))
    confidential = ("--source", "confidential", "--out", "c.toml")
    assert cli("scales", source, "--features", ",".join(FEATURES), *confidential).code == 0
    assert Path("c.toml").stat().st_mode & 0o077 == 0
    ran = cli("init", source, "--scales", "c.toml")
    assert (ran.code, "confidential, learned from the same people" in ran.err) == (2, True)
    assert not Path("desk").exists()


def test_private_scales_are_paid_for_once_and_reused_free() -> None:
    source = write_parquet(Path("in.parquet"), table_of(20_000))
    first = certificate_of(release(source, "one.parquet", {"scales": "private", "share": 0.125}))
    assert first.scales.source == "private"
    assert first.guarantee.epsilon == pytest.approx(4.0), "inside the ε that was asked for"
    assert first.scales.spent is not None
    assert first.scales.spent.epsilon == pytest.approx(0.5)
    for j, name in enumerate(FEATURES):
        assert first.scales.values[name].center == pytest.approx(CENTERS[j], abs=0.5 * SCALES[j])
        assert 1.4 * SCALES[j] < first.scales.values[name].scale < 3.6 * SCALES[j], "2.24 deviations"
    second = certificate_of(release(source, "two.parquet"))
    assert (second.scales.source, second.scales.spent) == ("earlier", None)
    assert second.scales.values == first.scales.values
    assert (first.scales.releases, second.scales.releases) == ((), (first.release,))


# The noise itself


@pytest.mark.parametrize("kind", ["file", "pseudonyms", "frame"])
def test_what_is_released_is_the_row_and_the_certified_noise(kind: str) -> None:
    table = table_of(60_000)
    policy = {"pseudonyms": kind == "pseudonyms"}
    if kind == "frame":
        done = release_frame(table, make_desk(Path.cwd()), mechanism="gaussian")
        released, c = done.frame, done.certificate
    else:
        output = release(write_parquet(Path("in.parquet"), table), "out.parquet", policy)
        released, c = read_back(output), certificate_of(output)
    names = table["name"].to_pylist()
    if kind == "pseudonyms":
        key = secret_key(Path("desk/keys/pseudonyms.key"))
        names = [pseudonym(name, key) for name in names]
    place = {name: i for i, name in enumerate(names)}
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
    output = release(write_parquet(Path("in.parquet"), table), "out.parquet", mechanism="spherical-laplace")
    done = release_frame(table, Path("desk"), mechanism="spherical-laplace")
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
    assert_scale(np.linalg.norm(one - signal, axis=1) / law["scale"], stats.gamma(3).cdf)


def test_no_noise_is_used_twice() -> None:
    source = write_parquet(Path("in.parquet"), table_of(3000))
    one, two = (values_of(read_back(release(source, f"{i}.parquet", mechanism=None))) for i in "ab")
    signal = normalized(table_of(3000))[np.argsort(table_of(3000)["name"].to_pylist())]
    for a, b in ((one - signal, two - signal), (one[:1500] - signal[:1500], one[1500:] - signal[1500:])):
        assert not np.isclose(a, b, atol=1e-7, rtol=0).any(axis=1).sum() > 3


# Requests


def test_a_request_tells_the_whole_story() -> None:
    write_parquet(Path("in.parquet"))
    output = release(
        "in.parquet", "out.parquet", B=0.5, epsilon=2, features=["calls", "texts"], tuned_on="synthetic",
        asked_by="Ministry of Aid", program="Novissi", why="to learn who is poor", page="ab" * 16,
    )  # fmt: skip
    c = certificate_of(output)
    assert (c.guarantee.B, c.guarantee.epsilon, c.features, c.tuned_on) == (
        0.5, 2.0, ("calls", "texts"), "synthetic",
    )  # fmt: skip
    assert (c.request.asked_by, c.request.program) == ("Ministry of Aid", "Novissi")
    assert (c.request.why, c.request.page) == ("to learn who is poor", "ab" * 16)
    assert c.request.sha256 in cli("request", "show", "request.toml").out


def test_names_may_come_from_a_file() -> None:
    write_parquet(Path("in.parquet"))
    ran = cli("columns", "in.parquet", "--names", "--without", "name")
    assert ran.out.split() == list(FEATURES)
    Path("names.txt").write_text(ran.out)
    scaled = ("--features", "@names.txt", "--source", "public", "--reason", "a test", "--out", "scales.toml")
    assert cli("scales", "in.parquet", *scaled).code == 0
    assert set(tomllib.loads(Path("scales.toml").read_text())["features"]) == set(FEATURES)
