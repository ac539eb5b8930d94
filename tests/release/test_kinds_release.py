"""Columns that are no plain numbers: the same, to the last bit, as the same table written in numbers."""

import math
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.release import (
    ENOUGH,
    certificate_of,
    holds,
    look,
    make_desk,
    place_with,
    policy_text,
    read_back,
    release,
    release_frame,
    request_of,
    table_of,
    write_csv,
    write_parquet,
)
from targetdp._core import Silent
from targetdp.attacks import join_tables
from targetdp.noise import PublicWords
from targetdp.release import Desk, Policy, Refused, verify_release
from targetdp.release._certificate._witnesses import _space as space_of
from targetdp.release._draws import Draws
from targetdp.release._ledger._spaces import space_of_kinds
from targetdp.release._trust._loosened import loosened
from targetdp.table import Category, Encoding, NumberKind

WIDER = 1 + 2.0**-34
"""What scales are widened by, so that no rounding makes two values farther apart than is declared."""
ROWS = 60
REGIONS = ("Maritime", "Plateaux", "Centrale")
rng = np.random.default_rng(7)
REGION = [REGIONS[i] for i in rng.integers(0, 3, ROWS)]
SCHOOL = [("none", "primary", "secondary")[i] for i in rng.integers(0, 3, ROWS)]
SEEN = [date(2026, 1, 1) + timedelta(days=int(d)) for d in rng.integers(-40, 40, ROWS)]
ROAMS = [("oui", "non")[i] for i in rng.integers(0, 2, ROWS)]


def category(distance: float = 0.5, levels: tuple[str, ...] = REGIONS, **more: Any) -> dict[str, Any]:
    return {"kind": "category", "levels": levels, "distance": distance} | more


def one_hot(values: list[str], levels: tuple[str, ...], distance: float) -> dict[str, Any]:
    scale = math.sqrt(2) * WIDER / distance
    return {level: ([float(value == level) for value in values], 1 / len(levels), scale) for level in levels}


def days(values: list[date]) -> list[float]:
    return [float((day - date(2026, 1, 1)).days) for day in values]


CASES: dict[str, tuple[Any, dict[str, Any], Mapping[str, Any], dict[str, Any]]] = {
    # name: values, their kind, what stands for gaps; then by feature: numbers, center, scale
    "category": (
        REGION, category(), {}, {f"x={k}": v for k, v in one_hot(REGION, REGIONS, 0.5).items()},
    ),
    "category in a dictionary": (
        pa.array(REGION).dictionary_encode(), category(), {},
        {f"x={k}": v for k, v in one_hot(REGION, REGIONS, 0.5).items()},
    ),
    "category with others": (
        REGION, category(0.3, REGIONS[:2], other="elsewhere"), {},
        {
            f"x={k}": v for k, v in one_hot(
                [r if r in REGIONS[:2] else "elsewhere" for r in REGION], (*REGIONS[:2], "elsewhere"), 0.3
            ).items()
        },
    ),
    "category with gaps": (
        [None if i % 7 == 0 else r for i, r in enumerate(REGION)], category(other="unknown"),
        {"x": "unknown"},
        {
            f"x={k}": v for k, v in one_hot(
                ["unknown" if i % 7 == 0 else r for i, r in enumerate(REGION)], (*REGIONS, "unknown"), 0.5
            ).items()
        },
    ),
    "codes": (
        [REGIONS.index(r) for r in REGION], category(levels=("0", "1", "2")), {},
        {f"x={REGIONS.index(k)}": v for k, v in one_hot(REGION, REGIONS, 0.5).items()},
    ),
    "ordered": (
        SCHOOL, {"kind": "ordered", "levels": ["none", "primary", "secondary"], "distance": 0.125}, {},
        {"x": ([float(("none", "primary", "secondary").index(s)) for s in SCHOOL], 1.0, WIDER / 0.125)},
    ),
    "ordered at places": (
        SCHOOL,
        {"kind": "ordered", "levels": {"none": 0, "primary": 6, "secondary": 12.5}, "distance": 0.1}, {},
        {"x": ([{"none": 0.0, "primary": 6.0, "secondary": 12.5}[s] for s in SCHOOL], 6.25, WIDER / 0.1)},
    ),
    "yes or no": (
        ROAMS, {"kind": "yes-or-no", "yes": "oui", "no": ["non", "nein"], "distance": 0.4}, {},
        {"x": ([float(r == "oui") for r in ROAMS], 0.5, WIDER / 0.4)},
    ),
    "truth": (
        [r == "oui" for r in ROAMS], {"kind": "yes-or-no", "yes": "true", "no": "false", "distance": 0.4}, {},
        {"x": ([float(r == "oui") for r in ROAMS], 0.5, WIDER / 0.4)},
    ),
    "date": (
        SEEN, {"kind": "date", "days_from": "2026-01-01", "days": 28}, {},
        {"x": (days(SEEN), 0.0, 28 * WIDER)},
    ),
    "date as text": (
        [f" {day.isoformat()}" for day in SEEN], {"kind": "date", "days_from": "2026-01-01", "days": 28}, {},
        {"x": (days(SEEN), 0.0, 28 * WIDER)},
    ),
    "date as French text": (
        [f"{day:%d/%m/%Y}" for day in SEEN],
        {"kind": "date", "days_from": "2026-01-01", "days": 7, "format": "%d/%m/%Y"}, {},
        {"x": (days(SEEN), 0.0, 7 * WIDER)},
    ),
    "moment": (
        [datetime(day.year, day.month, day.day, 23, 59) for day in SEEN],
        {"kind": "date", "days_from": "2026-01-01", "days": 28}, {}, {"x": (days(SEEN), 0.0, 28 * WIDER)},
    ),
    "date with gaps": (
        [None if i % 5 == 0 else day for i, day in enumerate(SEEN)],
        {"kind": "date", "days_from": "2026-01-01", "days": 28, "gap_distance": 0.2}, {"x": "2026-01-15"},
        {
            "x": (days([date(2026, 1, 15) if i % 5 == 0 else d for i, d in enumerate(SEEN)]), 0, 28 * WIDER),
            "x=missing": ([float(i % 5 == 0) for i in range(ROWS)], 0.5, WIDER / 0.2),
        },
    ),
}  # fmt: skip


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise in every release."""
    monkeypatch.setattr(Draws, "for_batch", lambda *_: PublicWords(3))
    monkeypatch.setattr(Draws, "for_scales", lambda *_: PublicWords(4))


def scales_file(place: Path, numbers: Mapping[str, tuple[float, float]]) -> None:
    lines = ['source = "public"', 'reason = "a census"', "[features]"]
    lines += [f'"{name}" = {{ center = {float(c)!r}, scale = {s!r} }}' for name, (c, s) in numbers.items()]
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain(folder: Path, features: Mapping[str, Any], **policy: Any) -> Path:
    """A desk, and a table, where everything is written in numbers."""
    folder.mkdir()
    table = table_of(ROWS).select(["name", "calls"])
    for name, (numbers, _, _) in features.items():
        table = table.append_column(name, pa.array(numbers, pa.float64()))
    write_parquet(folder / "in.parquet", table)
    scales_file(folder / "scales.toml", {"calls": (10.0, 8.0)} | {n: f[1:] for n, f in features.items()})
    make_desk(folder, ("calls", *features), **policy)
    return folder


def with_kind(
    folder: Path, values: Any, kind: Mapping[str, Any], gaps: Mapping[str, Any], **policy: Any
) -> Path:
    """A desk, and a table, that has a column x with a kind."""
    folder.mkdir()
    table = table_of(ROWS).select(["name", "calls"]).append_column("x", pa.array(values))
    write_parquet(folder / "in.parquet", table)
    scales_file(folder / "scales.toml", {"calls": (10.0, 8.0)})
    make_desk(folder, ("calls", "x"), kinds={"x": kind}, gaps=gaps, **policy)
    return folder


@pytest.mark.usefixtures("fixed")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["parquet", "csv", "frame"])
def test_a_release_is_that_of_the_same_table_in_numbers(tmp_path: Path, name: str, how: str) -> None:
    values, kind, gaps, features = CASES[name]
    ours = with_kind(tmp_path / "ours", values, kind, gaps)
    theirs = plain(tmp_path / "theirs", features)
    expected = release(theirs, new_people="a test").certificate
    if how == "frame":
        done = release_frame(read_back(ours / "in.parquet"), ours / "desk", new_people="a test")
        found = done.frame
    else:
        if how == "csv":
            write_csv(ours / "in.csv", read_back(ours / "in.parquet"))
        done = release(ours, table=f"in.{how}", new_people="a test")
        found = read_back(ours / "out.parquet")
    assert found.equals(read_back(theirs / "out.parquet"))
    c = done.certificate
    assert (c.features, c.scales.values) == (expected.features, expected.scales.values)
    assert (c.guarantee, c.mechanism) == (expected.guarantee, expected.mechanism)
    assert list(c.kinds) == ["x"]
    assert c.gaps == gaps
    if how != "frame":
        assert verify_release(ours / "out.parquet", certificate_of(ours / "out.parquet")).holds


@pytest.mark.usefixtures("fixed")
def test_scores_weigh_what_columns_become(tmp_path: Path) -> None:
    values, kind, gaps, features = CASES["category"]
    ours, theirs = with_kind(tmp_path / "a", values, kind, gaps), plain(tmp_path / "b", features)
    asked = request_of(release="scores", weights={"x=Maritime": 1.0, "calls": -0.5, "x=Centrale": 2})
    release(ours, request=asked)
    release(theirs, request=asked, new_people="a test")
    assert read_back(ours / "out.parquet").equals(read_back(theirs / "out.parquet"))
    assert holds(ours / "out.parquet")


def test_a_category_itself_cannot_be_weighed(tmp_path: Path) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    seen = look(ours, release="scores", weights={"x": 1.0})
    assert [str(p) for p in seen.problems] == [
        "x is no number: weigh what is made of it: x=Maritime, x=Plateaux, x=Centrale"
    ]


@pytest.mark.usefixtures("fixed")
@pytest.mark.parametrize("B", [0.25, 2])
def test_decisions_weigh_what_columns_become(
    tmp_path: Path, B: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Draws, "for_decisions", lambda *_: PublicWords(9))
    values, kind, gaps, features = CASES["category with gaps"]
    ours, theirs = with_kind(tmp_path / "a", values, kind, gaps), plain(tmp_path / "b", features)
    asked = request_of(
        B=B, release="decisions",
        decisions=[{"name": "aid", "weights": {"x=unknown": 3.0, "x=Maritime": 1.0}, "cut": 0.4}],
    )  # fmt: skip
    release(ours, request=asked)
    release(theirs, request=asked, new_people="a test")
    mine, other = (certificate_of(place / "out.parquet") for place in (ours, theirs))
    assert mine.features == other.features == ("x=unknown", "x=Maritime")
    assert holds(ours / "out.parquet")
    assert certificate_of(ours / "out.parquet").kinds.keys() == {"x"}


@pytest.mark.usefixtures("fixed")
def test_private_scales_are_estimated_for_numbers_alone(tmp_path: Path) -> None:
    """Kinds have theirs by declaration: nothing is estimated or paid for them."""
    region = [REGIONS[i % 3] for i in range(ENOUGH)]
    table = table_of(ENOUGH)
    place = tmp_path / "one"
    place.mkdir()
    write_parquet(place / "in.parquet", table.append_column("x", pa.array(region)))
    make_desk(place, ("calls", "texts", "topups", "x"), kinds={"x": category()}, scales="private")
    ours = release(place).certificate
    assert ours.scales.estimated == ("calls", "texts", "topups")
    assert ours.scales.values["x=Maritime"].scale == math.sqrt(2) * WIDER / 0.5
    assert holds(place / "out.parquet")
    other = tmp_path / "other"
    other.mkdir()
    write_parquet(other / "in.parquet", table)
    make_desk(other, scales="private")
    theirs = release(other, new_people="a test").certificate
    assert {n: s for n, s in ours.scales.values.items() if "=" not in n} == dict(theirs.scales.values)
    assert ours.scales.spent == theirs.scales.spent
    again = release(
        place, "again.parquet", new_people="a test"
    ).certificate  # earlier scales, and those of the kind
    assert (again.scales.source, again.scales.estimated) == ("earlier", ())
    assert holds(place / "again.parquet")


@pytest.mark.parametrize("scales", ["public", "private"])
def test_a_release_of_kinds_alone_needs_no_other_scales(tmp_path: Path, scales: str) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3], scales=scales)
    c = release(ours, features=("x",)).certificate
    assert (c.scales.source, c.scales.reason, c.scales.spent) == ("declared", None, None)
    assert c.features == tuple(f"x={level}" for level in REGIONS)
    assert holds(ours / "out.parquet")


def test_a_level_that_nobody_has_is_no_constant_column(tmp_path: Path) -> None:
    kind = category(levels=(*REGIONS, "Savanes"))
    ours = with_kind(tmp_path / "a", REGION, kind, {})
    assert release(ours).certificate.features[-1] == "x=Savanes"


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown levels": (
        ["Kara" if i in {3, 9} else r for i, r in enumerate(REGION)], category(),
        "x  2 values that are none of those declared, in row 4, 10  add them to [kinds.x], or name a level "
        'for others: other = "other"',
    ),
    "gaps": ([None, *REGION[1:]], category(), "x  1 gap, in row 1  [gaps] x = "),
    "no date": (
        [f"{d:%d.%m.%Y}" for d in SEEN], {"kind": "date", "days_from": "2026-01-01", "days": 28},
        "x  60 values that are no dates, first in row 1, 2, 3",
    ),
    "numbers as dates": (
        [1.5] * ROWS, {"kind": "date", "days_from": "2026-01-01", "days": 28},
        "x  cannot be read as date: number  declare another kind: [kinds.x]",
    ),
    "lists": ([[1]] * ROWS, category(), "x  cannot be read as category: list"),
    "a word": (
        ["oui", "non", "ja"] * 20, {"kind": "yes-or-no", "yes": "oui", "no": "non", "distance": 1},
        "x  20 values that are none of those declared, first in row 3, 6, 9",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_of_its_kind_is_counted_and_never_shown(tmp_path: Path, name: str) -> None:
    values, kind, message = REFUSED[name]
    ours = with_kind(tmp_path / "a", values, kind, {})
    with pytest.raises(Refused) as refused:
        release(ours)
    told = str(refused.value)
    assert message in told
    assert not {"Kara", "ja"} & {*told.split()}


def test_the_holder_is_told_what_within_B_means(tmp_path: Path) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    near, far = (look(ours, B=B) for B in (0.5, 0.25))
    assert [line for line in near.lines if line.startswith("within B, x")] == [
        "within B, x: any two of its 3 levels are 0.5 apart, within B = 0.5: hidden from each other"
    ]
    assert [line for line in far.lines if line.startswith("within B, x")] == [
        "within B, x: any two of its 3 levels are 0.5 apart: NOT hidden from each other at B = 0.25; "
        "B = 0.5 would hide them"
    ]
    assert "differ in nothing else; differences add up" in far.record()["within_B"][-1]
    release(ours)
    page = (ours / "out.parquet.certificate.md").read_text(encoding="utf-8")
    assert "NOT hidden from each other at B = 0.25" in page
    one = look(ours, release="scores", weights={"x=Maritime": 1.0})
    assert "1 of its 3 levels are looked at: two are at most 0.353554 apart" in "\n".join(one.lines)
    assert "B = 0.353554 would hide them" in "\n".join(one.lines)  # never rounded down


def test_another_map_of_a_column_is_another_space(tmp_path: Path) -> None:
    """At B, what was released under another map counts at distance 2 from then on."""
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    first = release(ours).certificate
    text = (ours / "desk" / "policy.toml").read_text(encoding="utf-8")
    before = look(ours)
    (ours / "desk" / "policy.toml").write_text(
        'reason = "levels are nearer"\n' + text.replace("distance = 0.5", "distance = 0.4"), encoding="utf-8"
    )
    after = look(ours)
    assert not after.problems, after.problems
    assert after.spending is not None
    assert before.spending is not None
    assert after.spending.spent > before.spending.spent
    with Desk.open(ours / "desk").ledger() as ledger:
        space = ledger.history.releases[first.release].space
    assert space["x"].startswith("map ")
    assert {space[f"x={level}"].split()[0] for level in REGIONS} == {"kind"}


def test_a_map_that_changes_is_put_on_record_with_a_reason(tmp_path: Path) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    release(ours)
    path = ours / "desk" / "policy.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("distance = 0.5", "distance = 0.4"), encoding="utf-8"
    )
    assert "x becomes numbers in another way" in str(look(ours).problems)


def test_rows_of_a_request_name_columns_or_what_they_become(tmp_path: Path) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    assert look(ours, features=("x",)).prepared.features == tuple(f"x={level}" for level in REGIONS)
    assert look(ours, features=("x=Plateaux",)).prepared.features == ("x=Plateaux",)
    refused = look(ours, features=("x=Kara",)).problems
    assert "the policy releases no x=Kara" in str(refused[0])


def test_a_forged_kind_is_found(tmp_path: Path) -> None:
    """A kind on record must be the one that the scales are of."""
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    c = release(ours).certificate
    near = c.kinds["x"].model_copy(update={"distance": 0.1})
    for forged in (
        c.model_copy(update={"kinds": {"x": near}}),
        c.model_copy(update={"kinds": {}}),
        c.model_copy(update={"kinds": dict(c.kinds) | {"y": c.kinds["x"]}}),
        c.model_copy(update={"gaps": {"x": "nowhere"}}),
    ):
        failed = {check.what for check in verify_release(ours / "out.parquet", forged).failed}
        assert failed & {"kinds of columns", "column scales", "conditions"}


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no kind": ({"distance": 1}, {}, "kinds.x"),
    "an unknown kind": (category() | {"kind": "colour"}, {}, "colour"),
    "no distance": ({"kind": "category", "levels": ["a", "b"]}, {}, "kinds.x.distance must be given"),
    "no distance at all": (category(0), {}, "distance = 0.0 is outside [1e-06, 2]"),
    "too far": (category(2.5), {}, "distance = 2.5 is outside"),
    "a truth value": (category(True), {}, "distance = True is not a number"),
    "a level twice": (category(levels=("a", "a")), {}, "levels names 'a' twice"),
    "one level": (category(levels=("a",)), {}, "levels names one level"),
    "a level with a space": (category(levels=("a ", "b")), {}, "without space at the ends"),
    "no level of these": (category(), {"x": "Kara"}, "gaps.x = 'Kara': 'Kara' is none of its values"),
    "a number for a level": (category(), {"x": 0}, "gaps.x = 0"),
    "no day": ({"kind": "date", "days_from": "1.1.2026", "days": 1}, {}, "'1.1.2026' is no day"),
    "no format": (
        {"kind": "date", "days_from": "2026-01-01", "days": 1, "format": "%d %b %Y"}, {}, "has %b",
    ),
    "half a format": (
        {"kind": "date", "days_from": "2026-01-01", "days": 1, "format": "%m/%Y"}, {}, "does not tell a day",
    ),
    "no constant for the indicator": ({"kind": "number", "gap_distance": 0.5}, {}, "[gaps] x = "),
    "an indicator of a category": (category(gap_distance=0.5), {}, "gap_distance is not for a category"),
    "other is no ordered level": (
        {"kind": "ordered", "levels": ["a", "b"], "distance": 1, "other": "c"}, {}, "is none of the levels",
    ),
    "places too near": (
        {"kind": "ordered", "levels": {"a": 0, "b": 0.001}, "distance": 1}, {}, "0.01 or more apart",
    ),
    "a word for both": ({"kind": "yes-or-no", "yes": "x", "no": "x", "distance": 1}, {}, "'x' stands twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_kind_that_makes_no_sense_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    kind, gaps, message = WRONG[name]
    with pytest.raises(ValueError, match=r".") as refused:
        Desk.create(
            tmp_path / "desk", policy_text(("calls", "x"), kinds={"x": kind}, gaps=gaps, scales="private")
        )
    assert message in str(refused.value)


def test_kinds_are_of_columns_that_may_go_out_and_names_do_not_clash(tmp_path: Path) -> None:
    kinds = {"y": category(), "x": category(levels=("a", "b"))}
    with pytest.raises(ValueError, match=r".") as refused:
        Desk.create(tmp_path / "desk", policy_text(("x=a", "x"), kinds=kinds, scales="private"))
    assert "kinds names 'y', which is neither in columns.release nor in columns.decide" in str(refused.value)
    assert "two columns would be called 'x=a', one of them by [kinds]" in str(refused.value)


def test_a_policy_with_kinds_is_the_same_from_its_record(tmp_path: Path) -> None:
    """The ledger keeps policies as JSON."""
    kinds = {f"c{place}": case[1] for place, case in enumerate(CASES.values())}
    gaps = {f"c{place}": case[2]["x"] for place, case in enumerate(CASES.values()) if case[2]}
    policy = Desk.create(
        tmp_path / "desk", policy_text((*kinds, "calls"), kinds=kinds, gaps=gaps, scales="private")
    ).policy
    again = Policy.model_validate(policy.model_dump(mode="json"))
    assert again == policy
    assert again.sha256 == policy.sha256


def test_requests_are_held_against_what_columns_became(tmp_path: Path) -> None:
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    asked = request_of(features=("x", "calls"))
    release(ours, request=asked)
    proof = certificate_of(ours / "out.parquet")
    assert verify_release(ours / "out.parquet", proof, None, asked).holds
    other = request_of(features=("calls",))
    assert not verify_release(ours / "out.parquet", proof, None, other).holds


def test_a_certificate_tells_the_space_that_the_ledger_has(tmp_path: Path) -> None:
    """Whoever brings a lost ledger back by it must find the same distances."""
    ours = with_kind(tmp_path / "a", *CASES["date with gaps"][:3])
    for request in (request_of(), request_of(release="scores", weights={"x": 1.0, "calls": 1.0})):
        done = release(ours, "out.parquet", request=request, force=True).certificate
        with Desk.open(ours / "desk").ledger() as ledger:
            assert dict(ledger.history.releases[done.release].space) == space_of(done)


def test_scores_of_kinds_are_remembered_by_their_scales(tmp_path: Path) -> None:
    """What scores single out together is measured over all that were released."""
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    release(ours, release="scores", weights={"x=Maritime": 1.0, "calls": 1.0})
    seen = look(ours, release="scores", weights={"x=Maritime": 1.0, "calls": -1.0})
    told = " ".join(seen.warnings)
    assert "the scores, with those released before, are nearly the column 'x=Maritime'" in told


def test_what_a_pattern_comes_to_stand_for_is_a_loosening(tmp_path: Path) -> None:
    """A column that only decisions may look at is not released because it is no longer named."""
    texts = (
        policy_text(("c*",), decide=decide, scales="private") for decide in (("c_secret",), ("other",), None)
    )
    before, after, without = (Policy.model_validate(tomllib.loads(text)) for text in texts)
    assert "c_secret may be released" in loosened(before, after)
    assert "c_secret may be released" in loosened(before, without)
    assert loosened(without, before) == []


def test_attacks_know_what_columns_became(tmp_path: Path) -> None:
    """The original table has levels and dates, and the certificate says how these became numbers."""
    values, kind, gaps, features = CASES["category with gaps"]
    ours = with_kind(tmp_path / "a", values, kind, gaps)
    release(ours)
    tables = join_tables(ours / "in.parquet", ours / "out.parquet", "name", progress=Silent())
    assert tables.features == ("calls", *features)
    table = read_back(ours / "in.parquet")
    calls = dict(zip(table["name"].to_pylist(), table["calls"].to_pylist(), strict=True))
    columns = {name: dict(zip(table["name"].to_pylist(), f[0], strict=True)) for name, f in features.items()}
    assert tables.ids is not None
    for person, row in zip(tables.ids.to_pylist(), tables.original, strict=True):
        scaled = [(calls[person] - 10) / 8]
        scaled += [(columns[name][person] - f[1]) / f[2] for name, f in features.items()]
        expected = np.array(scaled) / max(1.0, float(np.linalg.norm(scaled)))
        assert row == pytest.approx(expected)


def test_a_model_takes_a_category_as_it_is(tmp_path: Path) -> None:
    """Beside a decision that weighs what the same column becomes."""
    ours = with_kind(tmp_path / "a", *CASES["category"][:3])
    asked = request_of(
        B=2, release="decisions",
        decisions=[
            {"name": "one", "model": "a" * 64, "columns": ["x"], "cut": 0.5},
            {"name": "two", "weights": {"x=Maritime": 1.0}, "cut": 0.5},
        ],
    )  # fmt: skip
    seen = look(ours, request=asked)
    assert seen.prepared.features == ("x", "x=Maritime")
    assert seen.prepared.recipe().columns == ["name", "x"]
    assert str(seen.problems[0]).startswith("decision 'one' is made by a model")
    assert len(seen.problems) == 1


def test_the_same_word_is_one_level_whatever_the_engine_reads(tmp_path: Path) -> None:
    """Of a CSV all is text; of Parquet, whole numbers, truth values and texts in dictionaries."""
    for values in ([0, 1, 2] * 20, [0.0, 1.0, 2.0] * 20, ["0", "1", "2"] * 20):
        folder = tmp_path / str(type(values[0]).__name__)
        ours = with_kind(folder, values, category(levels=("0", "1", "2")), {})
        seen = look(ours)
        assert not seen.problems


def test_a_release_without_kinds_says_nothing_of_them(tmp_path: Path) -> None:
    """Certificates from before there were kinds stay what they are: readable, and witnesses."""
    folder = place_with(tmp_path)
    release(folder)
    text = (folder / "out.parquet.certificate.json").read_text(encoding="utf-8")
    assert '"kinds"' not in text
    assert certificate_of(folder / "out.parquet").kinds == {}


def test_an_indicator_alone_leaves_its_number_where_it_was() -> None:
    """Asking for whether a value was missing made earlier releases of the value count at distance 2."""
    number = Encoding({"x": NumberKind(kind="number", gap_distance=0.1)})
    assert set(space_of_kinds(number, ["x=missing"])) == {"x=missing"}
    # What becomes a category is elsewhere, and so is the indicator that it had.
    category = Encoding({"x": Category(kind="category", levels=("a", "b"), distance=0.5)})
    assert {"x", "x=missing", "x=a"} <= set(space_of_kinds(category, ["x=a", "x=b"]))
