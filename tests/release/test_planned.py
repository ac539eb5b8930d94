"""Limits that were fixed beforehand: plans that are charged whole, pure ε, and scales that change."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.release import (
    FEATURES,
    cli,
    holds,
    look,
    make_desk,
    new_policy,
    place_with,
    policy_text,
    release,
    table_of,
    write_parquet,
)
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import mechanism_names
from targetdp.release import Desk, Limit, Refused, ReleaseRow
from targetdp.release._certificate._caveats import statement
from targetdp.release._draws import Draws

LINE: dict[str, Any] = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 4.0, "delta": 1e-3}
SCORES: dict[str, Any] = {"release": "scores", "weights": {"calls": 1, "texts": 2}}


def rows(folder: Path) -> list[ReleaseRow]:
    with Desk.open(folder / "desk").ledger() as ledger:
        return list(ledger.history.releases.values())


def spent(folder: Path) -> float:
    seen = look(folder)
    assert seen.spending is not None
    return seen.spending.spent


# Plans


@pytest.mark.parametrize("given", [{}, {"delta": 1e-3}, {"asked_by": "Ministry"}])
def test_what_is_planned_is_released_and_without_delta_it_has_the_line_s(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    folder = place_with(tmp_path, plan=[LINE | {"mechanism": "gaussian"}])
    seen = look(folder, mechanism="gaussian", **given)
    assert (seen.planned, seen.problems, seen.largest_epsilon) == (0, (), None)
    assert "it is one of 1 of 1 that the plan has left, which is charged whole" in seen.lines
    c = release(folder, mechanism="gaussian", **given).certificate
    assert c.guarantee.value() == Guarantee(0.25, 4.0, 1e-3)
    (row,) = rows(folder)
    limit = Limit.of(Desk.open(folder / "desk").policy)
    assert (row.title["planned"], row.title["plan"]) == (0, limit.plan_id)
    assert holds(folder / "out.parquet")


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 3.9}, {"epsilon": 4.1}, {"B": 0.2}, {"B": 0.3}, {"delta": 1e-4}, {"delta": 2e-3}, SCORES,
        {"features": FEATURES[:2]}, {"mechanism": "gaussian"},
    ],
)  # fmt: skip
def test_nothing_else_is_released_also_if_it_is_less(tmp_path: Path, given: dict[str, Any]) -> None:
    folder = place_with(tmp_path, plan=[LINE])
    told = (
        r"the release is not in the plan: the plan has rows of 3 columns at B = 0\.25, ε = 4, δ = 0\.001 "
        r"with least-noise noise, 1 of 1 left"
    )
    with pytest.raises(Refused, match=told) as refused:
        release(folder, **given)
    assert "this desk releases what it has planned, and nothing else" in str(refused.value)
    assert rows(folder) == []


def test_scores_are_planned_by_their_number(tmp_path: Path) -> None:
    folder = place_with(tmp_path, plan=[LINE | {"release": "scores", "columns": 1}])
    assert release(folder, "a.parquet", **SCORES).certificate.scores == ("score",)
    with pytest.raises(Refused, match="0 of 1 left"):
        release(folder, "b.parquet", release="scores", weights={"topups": 1, "texts": 2})


def test_a_plan_is_used_up(tmp_path: Path) -> None:
    folder = place_with(tmp_path, plan=[LINE | {"times": 2}, LINE | {"epsilon": 1.0}])
    release(folder, "a.parquet")
    release(folder, "b.parquet")
    with pytest.raises(Refused, match=r"0 of 2 left; rows .* ε = 1, .* 1 of 1 left"):
        release(folder, "c.parquet")
    release(folder, "c.parquet", epsilon=1.0)
    with pytest.raises(Refused, match=r"0 of 2 left; rows .* 0 of 1 left"):
        release(folder, "d.parquet", epsilon=1.0)
    assert [row.title["planned"] for row in rows(folder)] == [0, 0, 1]
    assert spent(folder) == 0.0, "all of it was charged beforehand"
    with Desk.open(folder / "desk").ledger() as ledger:
        standing = ledger.standing(Limit.of(Desk.open(folder / "desk").policy))
    assert standing.levels == ((0.0, 60),)


@pytest.mark.parametrize("mechanism", sorted(mechanism_names()))
def test_every_kind_of_noise_can_be_planned(tmp_path: Path, mechanism: str) -> None:
    lines = [
        LINE | {"mechanism": mechanism},
        LINE | {"mechanism": mechanism, "release": "scores", "columns": 1},
    ]
    if mechanism == "staircase":
        lines = lines[1:]  # it is for one score
    folder = place_with(tmp_path, plan=lines)
    for number, line in enumerate(lines):
        given = SCORES if line["release"] == "scores" else {}
        release(folder, f"{number}.parquet", mechanism=mechanism, **given)
    assert [row.title["planned"] for row in rows(folder)] == list(range(len(lines)))


def test_pure_planned_releases_are_in_the_sum_that_is_told(tmp_path: Path) -> None:
    line = LINE | {"release": "scores", "columns": 1, "mechanism": "staircase", "times": 2}
    folder = place_with(tmp_path, plan=[line])
    for name in ("a.parquet", "b.parquet"):
        release(folder, name, mechanism="staircase", **SCORES)
    shown = cli("ledger", "show", "--json", "--desk", folder / "desk").json
    assert shown["pure_epsilon"] == pytest.approx(8.0)
    assert shown["people"] == [{"spent_of_the_limit": 0.0, "people": 60}]


def test_lines_that_differ_in_delta_alone_are_told_apart_by_it(tmp_path: Path) -> None:
    folder = place_with(tmp_path, plan=[LINE, LINE | {"delta": 1e-4}])
    release(folder, "a.parquet")
    with pytest.raises(Refused, match=r"δ = 0\.001 .* 0 of 1 left; .* δ = 0\.0001 .* 1 of 1 left"):
        release(folder, "b.parquet")
    assert release(folder, "b.parquet", delta=1e-4).certificate.guarantee.delta <= 1e-4
    assert [row.title["planned"] for row in rows(folder)] == [0, 1]


def test_what_drew_nothing_uses_nothing_of_the_plan_up(tmp_path: Path) -> None:
    folder = place_with(tmp_path, plan=[LINE])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draws, "for_batch", full)
        with pytest.raises(OSError, match="No space"):
            release(folder)
    assert [row.state for row in rows(folder)] == ["voided"]
    release(folder)


def test_private_scales_that_are_not_known_yet_are_refused_with_a_plan(tmp_path: Path) -> None:
    line = LINE | {"delta": 1e-4}
    folder = place_with(tmp_path, 3000, scales="private")
    new_policy(folder / "desk", scales="private", plan=[line])
    with pytest.raises(
        Refused, match="a plan is made of releases whose scales are known, and this one would"
    ):
        release(folder)
    new_policy(folder / "desk", scales="private")
    release(folder, "first.parquet")
    new_policy(folder / "desk", scales="private", plan=[line], reason="for the rest of the year")
    assert release(folder, "second.parquet").certificate.scales.source == "earlier"
    assert rows(folder)[1].title["planned"] == 0


def test_a_changed_plan_needs_a_reason_and_the_old_one_s_releases_count(tmp_path: Path) -> None:
    folder, limit = place_with(tmp_path, limit=(0.25, 50.0, 0.1), plan=[LINE | {"times": 2}]), (0.25, 50, 0.1)
    first = release(folder, "a.parquet").certificate
    assert spent(folder) == 0.0
    new_policy(folder / "desk", limit=limit, plan=[LINE | {"times": 3}])
    with pytest.raises(Refused, match="the plan of releases is another one"):
        release(folder, "b.parquet")
    new_policy(folder / "desk", limit=limit, plan=[LINE | {"times": 3}], reason="a release more")
    assert spent(folder) > 0, "it was not made under this plan"
    second = release(folder, "b.parquet").certificate
    assert "it is one of 2 of 3 that the plan has left" in "\n".join(look(folder).lines)
    assert (first.together.limits, second.together.limits) == (1, 2)
    assert second.together.near.delta >= 2 * first.together.near.delta
    # Without a plan, everything that was planned is counted one by one.
    new_policy(folder / "desk", limit=limit, reason="no plan holds for ever")
    with_both = spent(folder)
    assert with_both > 0
    release(folder, "c.parquet", delta=LINE["delta"])
    assert spent(folder) == pytest.approx(1.5 * with_both)


def test_a_plan_where_there_was_none_needs_a_reason_since_both_are_stated(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet")
    new_policy(folder / "desk", plan=[LINE])
    with pytest.raises(Refused, match="the plan of releases is another one"):
        release(folder, "b.parquet")
    new_policy(folder / "desk", plan=[LINE], reason="for this year")
    assert release(folder, "b.parquet").certificate.together.limits == 2
    assert spent(folder) > 0, "the first one was not planned"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"B": 0.25, "epsilon": 6.0, "delta": 1e-3}, "the plan needs ε = "),
        ({"B": 0.25, "epsilon": 20.0, "delta": 1e-3, "classic": 21.0}, "at distance 2"),
    ],
)
def test_a_plan_that_does_not_fit_the_limit_is_a_problem(
    tmp_path: Path, limit: dict[str, Any], said: str
) -> None:
    folder = place_with(tmp_path, limit=limit, plan=[LINE | {"times": 3}])
    with pytest.raises(Refused, match="which is more than the limit: plan less, or raise") as refused:
        release(folder)
    assert said in str(refused.value)
    assert rows(folder) == []
    ran = cli("ledger", "show", "--desk", folder / "desk")
    assert ran.code != 0
    assert "which is more than the limit" in ran.err
    assert "Traceback" not in ran.err


def test_what_is_promised_of_a_plan_is_the_limit(tmp_path: Path) -> None:
    limit = (0.25, 20.0, 1e-2)
    folder = place_with(tmp_path, limit=limit, plan=[LINE | {"times": 2}])
    c = release(folder).certificate
    assert c.together.near.value() == Guarantee(*limit)
    assert statement(c.together.near.value(), c.together.classic.value()) in c.conditions


# Pure ε


PURE = {"B": 0.25, "epsilon": 8.0, "delta": 1e-6, "filter": "pure"}


@pytest.mark.parametrize("given", [{}, SCORES])
def test_two_pure_releases_of_half_the_limit_fit_and_a_third_does_not(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    folder = place_with(tmp_path, limit=PURE, most=(8.0, 1e-6))
    for name in ("a.parquet", "b.parquet"):
        c = release(folder, name, **given).certificate
        assert c.guarantee.epsilon == 4.0
        assert c.guarantee.delta <= 2.0**-80, "as good as pure"
    assert "100% before" in "\n".join(look(folder, **given).lines)
    for epsilon in (4.0, 0.01):
        with pytest.raises(Refused, match=r"the limit would be passed: it takes .* 100% is spent"):
            release(folder, "c.parquet", epsilon=epsilon, **given)
    shown = cli("ledger", "show", "--json", "--desk", folder / "desk").json
    assert shown["pure_epsilon"] == pytest.approx(8.0)


def test_three_thirds_of_a_pure_limit_fit(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=PURE, most=(8.0, 1e-6))
    for number in range(3):
        release(folder, f"{number}.parquet", epsilon=8.0 / 3)
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "more.parquet", epsilon=1e-3)


@pytest.mark.parametrize("mechanism", ["gaussian", "projection-exact"])
def test_noise_without_a_bound_is_refused_in_words(tmp_path: Path, mechanism: str) -> None:
    folder = place_with(tmp_path, limit=PURE, most=(8.0, 1e-6))
    told = r'the limit of this desk counts only noise whose loss is bounded \(filter = "pure"\)'
    with pytest.raises(Refused, match=told):
        release(folder, mechanism=mechanism, delta=1e-6)
    seen = look(folder, mechanism=mechanism, delta=1e-6)
    assert seen.largest_epsilon is None
    json.dumps(seen.record(), allow_nan=False)


def test_private_scales_are_pure_too(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 3000, scales="private", limit=PURE, most=(8.0, 1e-6))
    assert release(folder, "a.parquet").certificate.scales.spent is not None
    assert 0.49 < spent(folder) < 0.9


# Scales that change


def test_other_scales_charge_earlier_releases_at_distance_2(tmp_path: Path) -> None:
    """Rows that are near by the new scales may have been as far apart by the old ones as rows can be."""
    limit = (0.25, 30.0, 1e-3)
    folder = place_with(tmp_path, limit=limit, most=(30.0, 1e-3))
    release(folder, "a.parquet", mechanism="gaussian", delta=1e-4)
    before = spent(folder)
    assert look(folder, mechanism="gaussian", delta=1e-4).problems == (), "a second one fits"
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 9.0"), encoding="utf-8")
    new_policy(folder / "desk", limit=limit, most=(30.0, 1e-3), reason="the census was published again")
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "b.parquet", mechanism="gaussian", delta=1e-4)
    assert spent(folder) > 10 * before
    # A release of other columns leaves those of the first one as they were.
    assert look(folder, mechanism="gaussian", delta=1e-4, features=FEATURES[1:]).problems == ()


def test_only_releases_with_a_column_that_changed_are_charged_anew(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    release(folder, "a.parquet", features=FEATURES[1:])
    before = spent(folder)
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 9.0"), encoding="utf-8")
    new_policy(folder / "desk", reason="the census was published again")
    assert spent(folder) == before
    release(folder, "b.parquet")
    assert spent(folder) < 3 * before


def test_private_scales_in_place_of_public_ones_charge_earlier_releases_at_distance_2(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 3000)
    release(folder, "a.parquet")
    before = spent(folder)
    new_policy(folder / "desk", scales="private", reason="the census was of these people")
    assert spent(folder) > 4 * before
    release(folder, "b.parquet")
    assert spent(folder) > 4 * before, "and they stay so"


def test_a_plan_pays_for_scales_as_they_are_now_alone(tmp_path: Path) -> None:
    folder = place_with(tmp_path, plan=[LINE | {"times": 3}])
    release(folder, "a.parquet")
    assert spent(folder) == 0.0
    scales = folder / "desk" / "scales.toml"
    scales.write_text(scales.read_text().replace("scale = 8.0", "scale = 9.0"), encoding="utf-8")
    (folder / "desk" / "policy.toml").write_text(
        policy_text(plan=[LINE | {"times": 3}], reason="the census was published again"), encoding="utf-8"
    )
    moved = spent(folder)
    assert moved > 0
    release(folder, "b.parquet")
    assert spent(folder) == moved, "the second one is paid for by the plan"


def test_one_statement_stands_everywhere(tmp_path: Path) -> None:
    write_parquet(tmp_path / "in.parquet", table_of(60))
    desk = make_desk(tmp_path, limit=(0.25, 20.0, 1e-2))
    limit = Limit.of(desk.policy)
    said = statement(limit.stated, limit.classic)
    assert f"  - {said}" in look(tmp_path).lines
    c = release(tmp_path).certificate
    assert c.conditions[-1] == said
    for command in ("ledger", "show"), ("status",):
        assert cli(*command, "--json", "--desk", desk.path).json["statement"] == said
    assert said in (tmp_path / "out.parquet.certificate.md").read_text(encoding="utf-8")
