"""Kinds of columns: fixed maps, exact distances, and whatever may stand in a cell."""

import math
import re
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from targetdp._core import Floats
from targetdp.table import AnyKind, Category, Date, Encoding, NumberKind, Ordered, Tally, YesOrNo
from targetdp.table._encode._dates import day_number, days_of_texts, must_be_format

WORDS = st.text("abcdefghijklmnopqrstuvwxyzéàß0123456789", min_size=1, max_size=12)
LEVELS = st.lists(WORDS, min_size=2, max_size=40, unique=True)
DISTANCES = st.floats(1e-6, 2)


def scaled(kind: AnyKind, values: Any, gaps: dict[str, Any] | None = None) -> Floats:
    """Rows as they enter the mechanism, before they are clipped."""
    encoding, tally = Encoding({"x": kind}, gaps or {}), Tally()
    features = encoding.expanded(["x"])
    batch = pa.record_batch({"x": values if isinstance(values, pa.Array) else pa.array(values)})
    rows = encoding.numbers(batch, features, tally, 0)
    assert not tally.counts, tally.counts
    both = [encoding.scales(features)[name] for name in features]
    return np.array([(row - center) / scale for row, (center, scale) in zip(rows, both, strict=True)]).T


def apart(rows: Floats) -> float:
    return float(np.linalg.norm(rows[0] - rows[1]))


def is_so_far(found: float, declared: float) -> bool:
    """Exactly the declared distance, up to rounding, and never farther."""
    return declared * (1 - 1e-9) <= found <= declared


@given(levels=LEVELS, distance=DISTANCES, data=st.data())
def test_any_two_levels_are_exactly_so_far_apart(levels: list[str], distance: float, data: Any) -> None:
    kind = Category(kind="category", levels=tuple(levels), distance=distance)
    one, other = data.draw(st.lists(st.sampled_from(levels), min_size=2, max_size=2, unique=True))
    assert is_so_far(apart(scaled(kind, [one, other])), distance)
    assert apart(scaled(kind, [one, one])) == 0


@given(levels=LEVELS, distance=DISTANCES, data=st.data())
def test_ordered_levels_are_so_many_steps_apart(levels: list[str], distance: float, data: Any) -> None:
    kind = Ordered.model_validate({"kind": "ordered", "levels": levels, "distance": distance})
    one, other = data.draw(st.lists(st.sampled_from(range(len(levels))), min_size=2, max_size=2, unique=True))
    assert is_so_far(apart(scaled(kind, [levels[one], levels[other]])), distance * abs(one - other))


@given(
    places=st.lists(st.integers(-100_000, 100_000), min_size=2, max_size=20, unique=True), distance=DISTANCES
)
def test_places_are_apart_as_they_are_declared(places: list[int], distance: float) -> None:
    levels = {f"l{place}": place / 100 for place in places}
    kind = Ordered(kind="ordered", levels=levels, distance=distance)
    found = scaled(kind, [f"l{places[0]}", f"l{places[1]}"])
    assert is_so_far(apart(found), distance * abs(places[0] - places[1]) / 100)


@given(distance=DISTANCES, missing=DISTANCES)
def test_yes_no_and_nothing(distance: float, missing: float) -> None:
    kind = YesOrNo(kind="yes-or-no", yes=("oui",), no=("non",), distance=distance, gap_distance=missing)
    gaps = {"x": "non"}
    assert is_so_far(apart(scaled(kind, ["oui", "non"], gaps)), distance)
    assert is_so_far(apart(scaled(kind, [None, "non"], gaps)), missing)
    both = apart(scaled(kind, [None, "oui"], gaps))
    assert math.isclose(both, math.hypot(distance, missing), rel_tol=1e-9)


@given(one=st.dates(), days_apart=st.integers(-5_000, 5_000), days=st.floats(0.5, 1e5), origin=st.dates())
def test_dates_are_so_many_days_apart(one: date, days_apart: int, days: float, origin: date) -> None:
    other = date.fromordinal(max(1, min(date.max.toordinal(), one.toordinal() + days_apart)))
    kind = Date(kind="date", days_from=origin.isoformat(), days=days)
    exact = abs(one.toordinal() - other.toordinal()) / days
    found = apart(scaled(kind, [one, other]))
    near = max(abs(day.toordinal() - origin.toordinal()) for day in (one, other)) <= 100_000
    assert found <= exact
    assert not near or found >= exact * (1 - 1e-9)
    texts = scaled(kind, [one.isoformat(), other.isoformat()])
    assert (texts == scaled(kind, [one, other])).all()
    moments = pa.array([one, other]).cast(pa.date64())
    assert (scaled(kind, moments) == texts).all()


@given(day=st.dates(), hour=st.integers(0, 23), style=st.sampled_from(["%d/%m/%Y", "%m-%d-%Y", "%Y%m%d",
    "%Y.%m.%d %H:%M", "(%d) %m %% %Y"]))  # fmt: skip
def test_a_declared_format_reads_what_it_writes(day: date, hour: int, style: str) -> None:
    must_be_format(style)
    written = datetime(day.year, day.month, day.day, hour, 30)
    # strftime writes years below 1000 with fewer digits on some machines.
    text = style.replace("%Y", f"{day.year:04d}")
    text = text if day.year < 1000 and "%" not in text else written.strftime(text)
    assert days_of_texts(pa.array([text]), style).tolist() == [day_number(day.isoformat())]


@given(st.text(max_size=30))
def test_no_text_that_is_no_date_is_taken_for_one(text: str) -> None:
    (found,) = days_of_texts(pa.array([text], pa.string()), "").tolist()
    if math.isnan(found):
        return
    day = re.match(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", text)
    assert day is not None
    assert found == day_number(date(*map(int, day.groups())).isoformat())


@given(year=st.integers(0, 9999), month=st.integers(0, 99), day=st.integers(0, 99))
def test_only_days_of_the_calendar_are_dates(year: int, month: int, day: int) -> None:
    (found,) = days_of_texts(pa.array([f"{year:04d}-{month:02d}-{day:02d}"]), "").tolist()
    try:
        expected = float(day_number(date(year, month, day).isoformat()))
    except ValueError:
        expected = math.nan
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["a", " a", "NA", "nan", "b\n"])),
        max_size=20,
    )
)
def test_whatever_stands_in_a_cell_is_a_level_a_gap_or_counted(values: list[str | None]) -> None:
    """And the same cell becomes the same numbers, whatever stands in other rows."""
    kind = Category(kind="category", levels=("a", "b", "é"), other="é", distance=1)
    strict = Category(kind="category", levels=("a", "b", "é"), distance=1)
    features = Encoding({"x": kind}).expanded(["x"])
    for one in (kind, strict):
        encoding, tally = Encoding({"x": one}, {"x": "b"}), Tally()
        rows = encoding.numbers(pa.record_batch({"x": pa.array(values, pa.string())}), features, tally, 0)
        unknown = tally.counts.get(("unknown", "x"), 0)
        assert set(tally.counts) <= {("unknown", "x")}
        assert np.isnan(rows).any(axis=0).sum() == unknown
        assert (np.nansum(rows, axis=0) == ~np.isnan(rows).any(axis=0)).all()
        for place, value in enumerate(values):
            alone = encoding.numbers(
                pa.record_batch({"x": pa.array([value], pa.string())}), features, Tally(), 0
            )
            assert np.array_equal(alone[:, 0], rows[:, place], equal_nan=True)
    assert not unknown or any(value is not None for value in values)


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=True)), min_size=1, max_size=20))
def test_numbers_with_an_indicator_are_numbers_as_without(values: list[float | None]) -> None:
    encoding = Encoding({"x": NumberKind(kind="number", gap_distance=0.5)}, {"x": 7.0})
    tally, plain = Tally(), Tally()
    batch = pa.record_batch({"x": pa.array(values, pa.float64())})
    rows = encoding.numbers(batch, ["x", "x=missing"], tally, 0)
    expected = Encoding({}, {"x": 7.0}).numbers(batch, ["x"], plain, 0)
    assert np.array_equal(rows[0], expected[0])
    assert tally.counts == plain.counts
    missing = [value is None or math.isnan(value) for value in values]
    assert rows[1].tolist() == [float(one) for one in missing]


def test_dates_beyond_what_is_told_apart_are_the_last_of_them() -> None:
    kind = Date(kind="date", days_from="2026-01-01", days=28)
    far = pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32())
    rows = scaled(kind, far)
    assert rows[0, 0] == -rows[1, 0] == 100_000 / (28 * (1 + 2.0**-34))


@pytest.mark.parametrize(("unit", "value"), [("s", -1), ("ms", -1), ("us", -1), ("ns", -1)])
def test_a_moment_is_its_day_in_utc(unit: str, value: int) -> None:
    kind = Date(kind="date", days_from="1970-01-01", days=1)
    for zone in (None, "UTC", "Asia/Tokyo"):
        assert scaled(kind, pa.array([value], pa.timestamp(unit, zone)))[0, 0] == pytest.approx(-1)


def test_accents_are_one_letter_however_they_are_written() -> None:
    kind = Category(kind="category", levels=("\u00e9t\u00e9", "hiver"), distance=1)
    assert apart(scaled(kind, ["e\u0301te\u0301", "\u00e9t\u00e9"])) == 0


def test_types_that_a_kind_cannot_be_are_named() -> None:
    tally = Tally()
    kinds: dict[str, Any] = {
        "seen": Date(kind="date", days_from="2026-01-01", days=1),
        "home": Category(kind="category", levels=("a", "b"), distance=1),
    }
    batch = pa.record_batch({"seen": [True], "home": [[1]]})
    Encoding(kinds).numbers(batch, ["seen", "home=a"], tally, 0)
    assert tally.lines()[1:] == (
        "  seen  cannot be read as date: yes-or-no  declare another kind: [kinds.seen]",
        "  home  cannot be read as category: list   declare another kind: [kinds.home]",
    )


@pytest.mark.parametrize(
    ("kind", "B", "said"),
    [
        ({"levels": ["a", "b"], "distance": 0.5, "kind": "ordered"}, 0.5, "all its levels are within 0.5"),
        ({"levels": ["a", "b", "c"], "distance": 0.2, "kind": "ordered"}, 0.25, "levels up to 1.25 steps"),
        ({"levels": ["a", "b", "c"], "distance": 0.3, "kind": "ordered"}, 0.25, "B = 0.3 would hide"),
        ({"days_from": "2026-01-01", "days": 28, "kind": "date"}, 0.25, "dates up to 7 days apart"),
        ({"days_from": "2026-01-01", "days": 28, "kind": "date"}, 0.249, "dates up to 6 days apart"),
        ({"days_from": "2026-01-01", "days": 3, "kind": "date"}, 0.25, "B = 0.333334 would hide a day"),
        ({"yes": "a", "no": "b", "distance": 0.1, "kind": "yes-or-no"}, 0.25, "yes and no are 0.1 apart"),
        ({"gap_distance": 0.3, "kind": "number"}, 0.25, "NOT hidden from each other at B = 0.25; B = 0.3"),
    ],
)  # fmt: skip
def test_what_is_within_B_is_said_in_days_and_steps(kind: dict[str, Any], B: float, said: str) -> None:
    models: dict[str, type[Any]] = {
        "ordered": Ordered, "date": Date, "yes-or-no": YesOrNo, "number": NumberKind
    }  # fmt: skip
    encoding = Encoding({"x": models[kind["kind"]](**kind)})
    assert said in "\n".join(encoding.within(encoding.expanded(["x"]), B))


@given(
    levels=st.lists(st.integers(-50_000, 50_000), min_size=2, max_size=6, unique=True),
    distance=DISTANCES, B=st.floats(0.001, 2),
)  # fmt: skip
def test_what_is_called_hidden_is_within_B(levels: list[int], distance: float, B: float) -> None:
    kind = Ordered(kind="ordered", levels={f"l{i}": i / 100 for i in levels}, distance=distance)
    rows = scaled(kind, [f"l{i}" for i in levels])[:, 0]
    widest = float(rows.max() - rows.min())
    said = kind.within(B)
    if said.startswith("all its levels"):
        assert widest <= B
    if said.startswith("no two"):
        assert np.diff(np.sort(rows)).min() > B * (1 - 1e-9)


def test_many_columns_are_said_in_few_lines() -> None:
    kinds = {f"c{i}": Category(kind="category", levels=("a", "b"), distance=1) for i in range(1000)}
    encoding = Encoding(kinds)
    lines = list(encoding.within(encoding.expanded(kinds), 0.25))
    assert len(lines) == 14
    assert "differ in nothing else" in lines[-2]
    assert "988 more columns" in lines[-1]


@given(st.dictionaries(st.sampled_from(["kind", "levels", "distance", "other", "yes", "days"]),
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.lists(st.text(max_size=3)),
              st.dictionaries(st.text(max_size=3), st.floats())), max_size=6))  # fmt: skip
def test_nothing_but_a_refusal_comes_of_nonsense(given_: dict[str, Any]) -> None:
    for kind in (Category, Ordered, YesOrNo, Date, NumberKind):
        try:
            made = kind.model_validate(given_)
        except ValidationError:
            continue
        for _, scale in made.scales("x").values():
            assert 0 < scale < math.inf


def test_a_year_of_days_in_any_month() -> None:
    days = [date(2027, 12, 25) + timedelta(days=i) for i in range(800)]
    texts = pa.array([day.isoformat() for day in days])
    assert days_of_texts(texts, "").tolist() == [float(day_number(d.isoformat())) for d in days]


def test_bytes_that_are_no_text_are_a_value_that_nobody_declared() -> None:
    """A Parquet file may call them text. One person's must not stop a release of decisions at B = 2."""
    _, offsets, _ = pa.array(["ab"]).buffers()
    broken = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff\xfe"))
    batch = pa.record_batch({"x": broken})
    kinds: list[AnyKind] = [
        Category(kind="category", levels=("a", "b"), distance=1),
        Date(kind="date", days_from="2026-01-01", days=1),
    ]
    for kind in kinds:
        encoding = Encoding({"x": kind})
        tally = Tally()
        encoding.numbers(batch, encoding.expanded(["x"]), tally, 0)
        assert sum(count for count in tally.counts.values()) == 1


def test_private_scales_see_numbers_with_their_gaps_filled() -> None:
    """An indicator beside a number changes nothing of the number."""
    batch = pa.record_batch({"x": [1.0, None, 3.0]})
    encoding = Encoding({"x": NumberKind(kind="number", gap_distance=0.5)}, {"x": 7.0})
    assert encoding.numbers_only(encoding.expanded(["x"])) == ("x",)
    assert encoding.numbers(batch, ["x"], Tally(), 0).tolist() == [[1.0, 7.0, 3.0]]


def test_hidden_is_never_said_where_it_is_not_so() -> None:
    """A missing value that differs in the value, too; places and days that are rounded the wrong way."""
    yes = YesOrNo(kind="yes-or-no", yes=("y",), no=("n",), distance=0.25, gap_distance=0.2)
    assert "at most 0.320157 apart: NOT hidden from each other at B = 0.25" in yes.gaps_within(0.25)
    assert "NOT hidden" not in yes.gaps_within(0.33)
    exact = YesOrNo(kind="yes-or-no", yes=("y",), no=("n",), distance=0.75, gap_distance=1.0)
    assert "at most 1.25 apart, within B = 1.25: hidden" in exact.gaps_within(1.25)
    levels = {level: float(place) for place, level in enumerate("abcde")}
    steps = Ordered(kind="ordered", levels=levels, distance=0.1, gap_distance=0.3)
    assert "levels up to 2.99 steps apart" in steps.within(0.299999)
    assert "at most 0.5 apart, within B = 0.5000001" in steps.gaps_within(0.5000001)
    number = NumberKind(kind="number", gap_distance=0.1)
    assert "√(r² + 0.1²) away" in number.within(0.25)
    assert "B = n/12345.67" in Date(kind="date", days_from="2026-01-01", days=12345.67).within(0.25)
