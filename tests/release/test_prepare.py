"""What a request means at a desk: all that speaks against it, at once, before a row is looked at."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.ledgers import WIDE, gaussian, people
from support.release import (
    FEATURES,
    look,
    make_desk,
    new_policy,
    place_with,
    read_back,
    release,
    request_of,
    table_of,
    write_parquet,
    write_scales,
)
from targetdp.release import Desk, Limit, Look, Refused, Request
from targetdp.release._prepare import Prepared, prepare

COLUMNS = ("name", *FEATURES)


def prepared(folder: Path, columns: tuple[str, ...] = COLUMNS, **given: Any) -> Prepared:
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        return prepare(desk, ledger, request_of(**given), columns, "input x.csv", "local")


def problems(seen: Look | Prepared) -> str:
    return "\n".join(map(str, seen.problems))


# Columns


def test_without_features_all_that_the_policy_allows_are_released(tmp_path: Path) -> None:
    make_desk(tmp_path)
    found = prepared(tmp_path)
    assert found.features == found.released == FEATURES
    assert prepared(tmp_path, features=("texts", "calls")).features == ("texts", "calls")
    assert found.problems == ()


def test_columns_that_the_policy_does_not_release_are_refused_by_name(tmp_path: Path) -> None:
    make_desk(tmp_path, ("calls", "texts"))
    for given in (
        {"features": ("calls", "topups")},
        {"release": "scores", "weights": {"calls": 1, "topups": 1}},
    ):
        found = prepared(tmp_path, **given)
        (problem,) = found.problems
        assert str(problem) == "the policy releases no topups: ask for some of calls, texts"
        assert problem.whose == "official"
        assert found.features == ("calls",), "the rest can be looked at"


def test_nobody_can_ask_for_a_raw_column(tmp_path: Path) -> None:
    """Not by `keep`, which is no field, nor as a feature; not what is public, either: it goes out anyway."""
    with pytest.raises(ValueError, match="keep: the data holder decides"):
        request_of(keep=("region",))
    make_desk(tmp_path, public={"region": "it is on the list"})
    columns = (*COLUMNS, "region", "secret")
    assert "releases no region" in problems(prepared(tmp_path, columns, features=("region",)))
    assert "releases no secret" in problems(prepared(tmp_path, columns, features=("secret",)))
    assert "releases no name" in problems(prepared(tmp_path, columns, features=("name",)))


def test_only_what_the_policy_declares_public_is_passed_on(tmp_path: Path) -> None:
    regions, secrets = ["north", "south"] * 30, [f"s{i}" for i in range(60)]
    table = table_of(60, region=regions, secret=secrets)
    write_parquet(tmp_path / "in.parquet", table)
    make_desk(tmp_path)
    release(tmp_path, "a.parquet")
    assert read_back(tmp_path / "a.parquet").column_names == list(COLUMNS)
    new_policy(tmp_path / "desk", public={"region": "it is on the list"}, reason="the list is printed")
    done = release(tmp_path, "b.parquet")
    found = read_back(tmp_path / "b.parquet")
    assert found.column_names == [*COLUMNS, "region"]
    where = dict(zip(table["name"].to_pylist(), regions, strict=True))
    assert found["region"].to_pylist() == [where[name] for name in found["name"].to_pylist()]
    assert done.certificate.public == {"region": "it is on the list"}
    assert "passed on as they are, NOT protected: region" in done.look.warnings
    assert any("NOT protected: region" in condition for condition in done.certificate.conditions)
    with Desk.open(tmp_path / "desk").ledger() as ledger:
        assert ledger.release(done.certificate.release).title["public"] == ["region"]


def test_all_missing_columns_are_named_at_once_with_what_was_meant(tmp_path: Path) -> None:
    make_desk(tmp_path, public={"region": "why"})
    found = problems(prepared(tmp_path, ("Name", "calls", "text", "other")))
    assert "input x.csv has no column 'name': did you mean 'Name'?" in found
    assert "input x.csv has no column 'texts': did you mean 'text'?" in found
    assert "input x.csv has no column 'topups': it has Name, calls, text, other" in found
    assert "input x.csv has no column 'region'" in found


def test_of_many_missing_columns_the_first_are_named(tmp_path: Path) -> None:
    names = tuple(f"c{i:03d}" for i in range(40))
    make_desk(tmp_path, names)
    found = prepared(tmp_path, ("name", "c000"))
    assert len(found.problems) == 9
    assert str(found.problems[-1]) == "and 31 more columns are missing: see policy.toml"


@pytest.mark.parametrize("score", ["name", "NAME", "texts", "Region"])
def test_a_score_may_not_have_the_name_of_a_column(tmp_path: Path, score: str) -> None:
    make_desk(tmp_path, public={"region": "why"})
    found = prepared(
        tmp_path, (*COLUMNS, "region"), release="scores", weights=dict.fromkeys(FEATURES, 1), scores=(score,)
    )
    assert f"{score!r} has the name of column" in problems(found)


def test_weights_are_matched_by_name(tmp_path: Path) -> None:
    make_desk(tmp_path)
    found = prepared(tmp_path, release="scores", weights={"topups": 3, "calls": 1}, scores=("s",))
    assert (found.features, found.released) == (("topups", "calls"), ("s",))
    np.testing.assert_array_equal(found.weights, [[3.0, 1.0]])


# How much one release may ask for


def test_more_than_one_release_may_have_is_refused_with_what_it_may(tmp_path: Path) -> None:
    make_desk(tmp_path, most=(2.0, 1e-6))
    found = prepared(tmp_path, delta=1e-3)
    assert [str(p) for p in found.problems] == [
        "epsilon = 4 is more than one release may have: ask for at most 2",
        "delta = 0.001 is more than one release may have: ask for at most 1e-06, or leave it out",
    ]
    assert prepared(tmp_path, epsilon=2.0, delta=1e-6).problems == ()


# Scales


def test_public_scales_are_those_of_the_desk_s_file(tmp_path: Path) -> None:
    make_desk(tmp_path)
    found = prepared(tmp_path, features=("texts",))
    assert found.known_scales == {"texts": (5.0, 6.0)}
    assert (found.scales_source, found.estimated) == ("declared", ())


@pytest.mark.parametrize("source", ["confidential", "data"])
def test_scales_of_these_very_people_are_refused(tmp_path: Path, source: str) -> None:
    folder = place_with(tmp_path)
    write_scales(folder / "desk" / "scales.toml", source)
    with pytest.raises(Refused, match=r"scales\.toml"):
        release(folder)
    (folder / "desk" / "scales.toml").unlink()
    with pytest.raises(Refused, match=r"scales\.toml.*cannot be read"):
        release(folder)


def private(folder: Path, rows: int = 3000, **policy: Any) -> Path:
    return place_with(folder, rows, scales="private", **policy)


def test_private_scales_are_estimated_once_and_reused_free(tmp_path: Path) -> None:
    folder = private(tmp_path)
    first = release(folder, "a.parquet").certificate
    assert (first.scales.source, first.scales.estimated, first.scales.releases) == ("private", FEATURES, ())
    assert first.scales.spent is not None
    assert first.guarantee.epsilon <= 4.0
    second = release(folder, "b.parquet", features=("texts", "calls")).certificate
    assert (second.scales.source, second.scales.estimated) == ("earlier", ())
    assert (second.scales.spent, second.scales.releases) == (None, (first.release,))
    assert second.guarantee.epsilon == 4.0
    for name in ("texts", "calls"):
        assert second.scales.values[name] == first.scales.values[name]
    with Desk.open(folder / "desk").ledger() as ledger:
        charges = [row.charge.scales for row in ledger.history.releases.values()]
    assert charges[0] is not None
    assert charges[1] is None


def test_only_new_columns_are_estimated_and_paid_for(tmp_path: Path) -> None:
    folder = private(tmp_path)
    first = release(folder, "a.parquet", features=("calls",)).certificate
    seen = look(folder)
    assert seen.prepared.estimated == ("texts", "topups")
    assert seen.clipped is None
    second = release(folder, "b.parquet").certificate
    assert (second.scales.source, second.scales.estimated) == ("private", ("texts", "topups"))
    assert second.scales.releases == (first.release,)
    assert second.scales.values["calls"] == first.scales.values["calls"]


def test_scales_are_not_shown_before_they_are_published(tmp_path: Path) -> None:
    """Who looked, declined and drew again would choose among noises."""
    folder = private(tmp_path)
    seen = look(folder)
    assert (seen.clipped, seen.inspection.clipped) == (None, None)
    assert seen.record()["clipped_for_the_data_holder_only"] is None
    told = "\n".join([*seen.lines, *seen.warnings])
    assert "how many rows are clipped is known when the scales are drawn" in told
    assert "longer than 1" not in told
    done = release(folder)
    assert look(folder).clipped == pytest.approx(done.clipped / 3000)
    assert 0 < done.clipped <= 3000


# Leaving people out


def test_people_of_an_earlier_release_are_left_out_and_not_charged_twice(tmp_path: Path) -> None:
    everybody = table_of(200)
    write_parquet(tmp_path / "in.parquet", everybody)
    write_parquet(tmp_path / "sampled.parquet", everybody.slice(0, 50))
    desk = make_desk(tmp_path, limit=(0.25, 4.2, 0.1))
    sample = release(tmp_path, "sample.parquet", table="sampled.parquet", delta=1e-4).certificate
    with pytest.raises(Refused, match="the limit would be passed"):
        release(tmp_path, "all.parquet", delta=1e-4)
    for name in (sample.release, sample.release[:6]):
        seen = look(tmp_path, leave_out=(name,), delta=1e-4)
        assert (seen.inspection.rows, seen.inspection.left_out, seen.problems) == (150, 50, ())
    done = release(tmp_path, "rest.parquet", leave_out=(sample.release[:8],), delta=1e-4).certificate
    assert (done.rows, done.left_out) == (150, (sample.release,))
    both = [
        set(read_back(tmp_path / name)["name"].to_pylist()) for name in ("sample.parquet", "rest.parquet")
    ]
    assert both[0].isdisjoint(both[1])
    assert both[0] | both[1] == set(everybody["name"].to_pylist())
    with desk.ledger() as ledger:
        standing = ledger.standing(Limit.of(desk.policy))
    assert standing.spending.fits
    assert sum(count for _, count in standing.levels) == 200


def test_nothing_of_who_is_left_out_is_looked_at(tmp_path: Path) -> None:
    table = table_of(100).to_pydict()
    write_parquet(tmp_path / "sampled.parquet", pa.table(table).slice(0, 20))
    make_desk(tmp_path)
    sample = release(tmp_path, "sample.parquet", table="sampled.parquet").certificate
    table["calls"][3], table["texts"][7] = None, float("inf")
    write_parquet(tmp_path / "in.parquet", pa.table(table))
    done = release(tmp_path, "rest.parquet", leave_out=(sample.release,))
    assert done.certificate.rows == 80
    with pytest.raises(Refused, match="gap"):
        release(tmp_path, "all.parquet")


@pytest.mark.parametrize("named", ["ffffff", "0" * 32])
def test_people_of_a_release_that_is_not_there_cannot_be_left_out(tmp_path: Path, named: str) -> None:
    folder = place_with(tmp_path)
    with pytest.raises(Refused, match="no release of this desk begins so"):
        release(folder, leave_out=(named,))


def test_people_of_a_release_that_is_not_published_cannot_be_left_out(tmp_path: Path) -> None:
    """Nobody may have seen it: whoever was in it would be told by being left out."""
    folder = place_with(tmp_path)
    desk = Desk.open(folder / "desk")
    with desk.ledger() as ledger:
        ledger.reserve("ab" * 16, gaussian(), WIDE, people(1, 2, 3), {})
        ledger.reserve("cd" * 16, gaussian(), WIDE, people(1, 2, 3), {})
        ledger.free("cd" * 16, "nothing was drawn")
    for name in ("ab", "cd"):
        with pytest.raises(
            Refused, match=f"release {name * 6} is not published: its people can be left out once"
        ):
            release(folder, leave_out=(name * 16,))


def test_all_people_left_out_leave_nothing(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    first = release(folder, "a.parquet").certificate
    with pytest.raises(Refused, match="all its people are left out: there is nothing to release"):
        release(folder, "b.parquet", leave_out=(first.release,))


def test_a_request_stays_what_it_was(tmp_path: Path) -> None:
    make_desk(tmp_path)
    asked = request_of(features=("calls",))
    assert prepared(tmp_path, features=("calls",)).request == asked
    assert isinstance(asked, Request)
