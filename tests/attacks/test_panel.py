"""The panel: what ids give away, the insider, the situation of each figure, and the worst of each kind."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import (
    cli,
    make_desk,
    new_policy,
    normalized,
    release,
    table_of,
    values_of,
    write_parquet,
)
from targetdp import data_scales
from targetdp._core import Silent
from targetdp.attacks import (
    AS_RELEASED,
    Finding,
    JoinedTables,
    join_tables,
    linkage_by_id,
    panel_names,
    row_inference,
    run_attacks,
    worst_by_kind,
)
from targetdp.attacks._declaration import IF_STRIPPED, WITHOUT_KEY
from targetdp.attacks._match._together import AS_IT_IS
from targetdp.attacks._panel import VARIANCE
from targetdp.mechanisms import Mondrian
from targetdp.populations import invented_populations
from targetdp.release import Desk

STRANGERS = {"singling_out", "attribute_inference", "linkage", "linkability", "membership"}
TOGO = invented_populations()["togo"].features


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, elsewhere: Path) -> Path:
    """The example table of the documentation, released with ids, and under pseudonyms: twice at one desk."""
    place = tmp_path_factory.mktemp("panel")
    assert cli("example", "togo", "--out", place / "people.parquet", "--rows", "2500", "--quiet").code == 0
    released = pq.read_table(place / "people.parquet").slice(0, 2000)
    scales = data_scales(values_of(released, TOGO))
    each = zip(TOGO, scales.center.tolist(), scales.scale.tolist(), strict=True)
    lines = "".join(f"{name} = {{ center = {c!r}, scale = {s!r} }}\n" for name, c, s in each)
    for one in (place, elsewhere):
        (one / "scales.toml").write_text(
            f'source = "public"\nreason = "a"\n[features]\n{lines}', encoding="utf-8"
        )
        write_parquet(one / "in.parquet", released)
    here = make_desk(place, TOGO, id="id")
    release(place, "private.parquet")
    new_policy(here, TOGO, id="id", pseudonyms=True)
    release(place, "hashed.parquet")
    release(place, "again.parquet")
    there = make_desk(elsewhere, TOGO, id="id", pseudonyms=True)
    release(place, "other.parquet", desk=there, new_people="another desk's pseudonyms are shown")
    return place


@pytest.fixture(scope="module")
def joined(folder: Path) -> Callable[..., JoinedTables]:
    def join(name: str, of: Path = folder) -> JoinedTables:
        return join_tables(
            folder / "people.parquet", folder / name, "id", progress=Silent(), rest_is_holdout=True,
            desk=Desk.open(of / "desk"),
        )  # fmt: skip

    return join


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.attack: finding for finding in findings}


def score(finding: Finding) -> float:
    assert finding.protection is not None, finding.meaning
    return finding.protection.score


@pytest.fixture(scope="module")
def in_clear(joined: Callable[..., JoinedTables]) -> tuple[JoinedTables, dict[str, Finding]]:
    tables = joined("private.parquet")
    return tables, by_name(run_attacks(tables, seed=1))


def test_the_worst_inference_is_that_of_row_inference(
    in_clear: tuple[JoinedTables, dict[str, Finding]],
) -> None:
    """0.977 by somebody who looks for a similar row stood there, where an insider leaves about 0.26."""
    tables, found = in_clear
    rng = np.random.default_rng([1, 7])  # the seed, and the attack's place
    own = row_inference(
        tables.original, tables.released, tables.law, tables.holdout, columns=tables.features, rng=rng
    )
    worst = worst_by_kind(found.values())["inference"]
    assert worst[AS_RELEASED].attack == "insider_inference"
    assert worst[AS_RELEASED].protection == own
    assert score(worst[AS_RELEASED]) < 0.4
    assert worst[IF_STRIPPED].attack == "attribute_inference"
    assert score(worst[IF_STRIPPED]) > 0.9
    assert "whose row or score it is" in worst[AS_RELEASED].meaning


def test_joining_on_the_id_matches_everybody(in_clear: tuple[JoinedTables, dict[str, Finding]]) -> None:
    tables, found = in_clear
    assert tables.ids_are == "in clear"
    by_id = found["linkage_by_id"]
    assert (score(by_id), by_id.situation) == (0.0, AS_RELEASED)
    assert by_id.meaning == "Everybody could be matched to their released row by joining on the id."
    for kind in ("singling out", "linkability"):
        worst = worst_by_kind(found.values())[kind]
        assert worst[AS_RELEASED] is by_id
        assert score(worst[IF_STRIPPED]) > 0.3


def test_figures_that_assume_unknown_order_are_headed_so(
    in_clear: tuple[JoinedTables, dict[str, Finding]],
) -> None:
    _, found = in_clear
    for name, finding in found.items():
        assert finding.situation == (IF_STRIPPED if name in STRANGERS else AS_RELEASED), name
        assert finding.record()["situation"] == finding.situation
    assert set(found) == set(panel_names())


def test_shares_of_variance_are_not_compared_with_shares_of_people(
    in_clear: tuple[JoinedTables, dict[str, Finding]],
) -> None:
    worst = worst_by_kind(in_clear[1].values())
    assert {finding.attack for finding in worst[VARIANCE].values()} == {"reconstruction"}
    assert all(f.attack not in {"distinguishing", "reconstruction"} for f in worst["inference"].values())


def test_pseudonyms_hide_from_those_without_the_key_only(joined: Callable[..., JoinedTables]) -> None:
    tables = joined("hashed.parquet")
    assert tables.ids_are == "pseudonyms"
    found = by_name(run_attacks(tables, ["linkage_by_id", "linkage", "insider_inference"], seed=1))
    by_id = found["linkage_by_id"]
    assert (score(by_id), by_id.situation) == (0.0, AS_RELEASED)
    for words in ("has the key of the pseudonyms", "was told them", "the official", "nobody else can join"):
        assert words in by_id.meaning
    assert found["linkage"].situation == WITHOUT_KEY
    assert found["insider_inference"].situation == AS_RELEASED


def test_releases_of_one_desk_are_linked_by_their_pseudonyms(
    joined: Callable[..., JoinedTables], elsewhere: Path
) -> None:
    tables = joined("hashed.parquet")
    same, other = joined("again.parquet"), joined("other.parquet", elsewhere)
    asked = ["linkage_by_id", "linkability", "singling_out"]
    found = by_name(run_attacks(tables, asked, further=[same], seed=1))
    assert "Release 2 has the same pseudonyms: joining on them, without any key" in (
        found["linkage_by_id"].meaning
    )
    assert found["linkability"].situation == IF_STRIPPED  # as released they are linked
    assert found["singling_out"].situation == WITHOUT_KEY
    assert "nobody else can join them with a table that does not have them" in found["linkage_by_id"].meaning
    worst = worst_by_kind(found.values())
    linked = worst["linkability"][WITHOUT_KEY]  # the pseudonyms say which rows belong together
    assert (linked.attack, score(linked)) == ("linkage_by_id", 0.0)
    assert linked.meaning.startswith("Release 2 has the same pseudonyms")
    assert worst["linkability"][IF_STRIPPED] is found["linkability"]
    assert WITHOUT_KEY not in worst_by_kind([found["linkability"], found["singling_out"]])["linkability"]
    assert worst["singling out"][WITHOUT_KEY] is found["singling_out"]
    found = by_name(run_attacks(tables, asked, further=[other], seed=1))
    assert worst_by_kind(found.values())["linkability"][WITHOUT_KEY] is found["linkability"]
    assert "Release 2 has no id in common" in found["linkage_by_id"].meaning
    assert found["linkability"].situation == WITHOUT_KEY


def test_the_share_by_id_is_counted() -> None:
    found = linkage_by_id(["a", "b", "c", "d"], {"one": ["x"], "two": ["a", "c", "y"]})
    assert (found.score, found.interval, found.strongest) == (0.5, (0.5, 0.5), "two")
    with pytest.raises(ValueError, match="number of ids = 0"):
        linkage_by_id([], {"one": ["x"]})
    with pytest.raises(ValueError, match="settings has 0 entries"):
        linkage_by_id(["a"], {})


def test_tables_without_ids_are_not_joined() -> None:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 3))
    found = by_name(run_attacks(JoinedTables(("a", "b", "c"), X, X), ["linkage_by_id", "linkage"], seed=1))
    assert found["linkage_by_id"].protection is None
    assert "without ids" in found["linkage_by_id"].meaning
    assert found["linkage"].situation == IF_STRIPPED


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_without_a_certificate_released_values_are_taken_as_they_are(unit: float) -> None:
    """Also in units of their own, far outside the unit ball: the guesses are the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    tables = JoinedTables(("a", "b", "c"), unit * X, unit * (X + rng.normal(0, 0.003, X.shape)))
    (found,) = run_attacks(tables, ["insider_inference"], seed=1)
    assert 0.0 < score(found) < 0.4
    assert found.protection is not None
    assert AS_IT_IS in found.protection.detail["notes"]
    exact = JoinedTables(("a", "b", "c"), unit * X, unit * X)
    assert score(run_attacks(exact, ["insider_inference"], seed=1)[0]) == 0.0


def test_k_anonymous_rows_are_attacked_by_the_insider() -> None:
    """There is no certificate and no noise: nothing is derived, and values are taken as they are."""
    rows = normalized(table_of(300))
    alike = Mondrian(3).privatize(rows, np.random.default_rng(0))
    tables = JoinedTables(("calls", "texts", "topups"), rows, alike)
    found = by_name(run_attacks(tables, ["insider_inference", "distinguishing", "reconstruction"], seed=1))
    insider = found["insider_inference"]
    assert score(insider) < 0.95
    assert insider.protection is not None
    assert AS_IT_IS in insider.protection.detail["notes"]
    assert found["distinguishing"].protection is found["reconstruction"].protection is None


def test_the_best_guess_is_told_at_both_distances(in_clear: tuple[JoinedTables, dict[str, Finding]]) -> None:
    finding = in_clear[1]["distinguishing"]
    assert finding.protection is not None
    assert 0.5 < finding.protection.detail["at_B"]["best_guess"] < 0.8
    assert "(of two people 0.25 apart " in finding.meaning


def test_the_documented_headline_is_what_the_tour_prints(tmp_path: Path) -> None:
    """Up to what another draw of the noise changes."""
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")
    quoted = re.search(r"```\nkind of attack.*?\n(.*?)```", page, re.DOTALL)
    assert quoted is not None
    for file, more in (("people", ()), ("census", ("--seed", 7)), ("others", ("--seed", 8, "--rows", 1000))):
        assert cli("example", "togo", "--out", tmp_path / f"{file}.parquet", *more, "--quiet").code == 0
    named = ("--id", "id", "--features", ",".join(TOGO))
    scales, private = tmp_path / "scales.toml", tmp_path / "private.parquet"
    cli(
        "scales",
        tmp_path / "census.parquet",
        *named,
        "--source",
        "public",
        "--reason",
        "a",
        "--out",
        scales,
    )
    make_desk(tmp_path, TOGO, id="id")
    release(tmp_path, private.name, table="people.parquet")
    people = ("attack", tmp_path / "people.parquet", private, "--id", "id")
    found = cli(*people, "--holdout", tmp_path / "others.parquet", "--seed", "1", "--json", "--quiet").json
    lines = quoted[1].strip().splitlines()
    assert len(lines) == len(found["worst"])
    for line, (kind, by_situation) in zip(lines, found["worst"].items(), strict=True):
        assert line.startswith(kind)
        shown = re.findall(r"≤ ([\d.]+)  (\w+)", line)
        assert [name for _, name in shown] == [one["attack"] for one in by_situation.values()]
        for (said, _), one in zip(shown, by_situation.values(), strict=True):
            assert float(said) == pytest.approx(one["score"], abs=0.05)


def test_bad_input_is_refused() -> None:
    X = np.zeros((3, 2))
    tables = JoinedTables(("a", "b"), X, X, ids=pa.array(["1", "2", "3"]))
    wrong: Any = [X]
    with pytest.raises(TypeError, match=r"further\[0\]"):
        run_attacks(tables, further=wrong)
