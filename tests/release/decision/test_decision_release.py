"""Releases of decisions from end to end: what goes out, what is promised of it, and what it costs."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.decisions import (
    CURVES,
    NEAR_CURVES,
    asks,
    batches_of_people,
    bits_of,
    check_named,
    decision,
    near,
    weighted,
    with_cut,
    within_five,
)
from support.release import (
    ENOUGH,
    FEATURES,
    certificate_of,
    cli,
    hidden,
    holds,
    look,
    make_desk,
    nothing_changes,
    place_with,
    policy_text,
    read_back,
    release,
    request_of,
    table_of,
    words,
    write_csv,
    write_parquet,
)
from targetdp.accounting import compose
from targetdp.mechanisms import law_of
from targetdp.release import (
    Certificate,
    Desk,
    Refused,
    Released,
    Request,
    privatize,
    verify,
    verify_in_ledger,
)
from targetdp.release._certificate._contents import is_certified
from targetdp.release._decision._bits import cuts_of_people
from targetdp.release._decision._cuts import batch_ends
from targetdp.release._policy import Policy
from targetdp.release._trust._loosened import loosened

Q = 1 / (1 + math.exp(4.0))
"""How often one bit is wrong at ε = 4."""


def sound(folder: Path, request: Request, output: str = "out.parquet") -> Certificate:
    """A release that holds, as a stranger sees it, against its request and in the ledger."""
    c = certificate_of(folder / output)
    found = verify(folder / output, request=request)
    with Desk.open(folder / "desk").ledger() as ledger:
        found = found.also(verify_in_ledger(c, ledger))
    assert found.failed == ()
    assert hidden(folder) == []
    return c


def steps_of_people(c: Certificate, ids: list[str]) -> Any:
    """The cut of each person, in the order of the released ids, in the request's own units."""
    law = law_of(c.mechanism.law).decision
    assert law is not None
    return cuts_of_people(c.cuts, batches_of_people(ids, c.release))


# What goes out


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    place_with(folder, 20_000)
    return folder


def curve(name: str, of: dict[str, Any] = CURVES) -> tuple[Any, Any]:
    return of[name]["knots"], of[name]["values"]


def by_id(table: pa.Table) -> pa.Table:
    return table.sort_by("name")


LINEAR = asks(decision(share=0.3), epsilon=2.0)


def test_a_linear_decision_of_columns_as_they_are(large: Path) -> None:
    """True answers at the cuts that each person was held against; bits are wrong as often as the law says."""
    done = release(large, "linear.parquet", request=LINEAR)
    out, table = read_back(large / "linear.parquet"), by_id(table_of(20_000))
    assert out.schema == pa.schema(
        [pa.field("name", pa.string(), nullable=False), pa.field("aid", pa.bool_(), nullable=False)]
    )
    ids = out.column("name").to_pylist()
    assert ids == table.column("name").to_pylist() == sorted(ids)
    c = sound(large, LINEAR, "linear.parquet")
    (question,) = LINEAR.questions
    cuts = np.array([question.in_own_units(int(cut)) for cut in steps_of_people(c, ids)[:, 0]])
    truth = weighted(table) <= cuts
    q = 1 / (1 + math.exp(2.0))
    assert within_five(int((bits_of(out) != truth).sum()), 20_000, q)
    assert abs(truth.mean() - 0.3) < 0.02, "the share that was asked for, of true answers"
    (count,) = {len(own) for own in c.cuts}
    assert count == len(batch_ends(20_000))
    assert done.clipped == 0


def test_the_certificate_says_what_was_done_and_no_more(large: Path) -> None:
    if not (large / "linear.parquet").exists():
        release(large, "linear.parquet", request=LINEAR)
    c = certificate_of(large / "linear.parquet")
    assert c.guarantee.model_dump() == {"B": 2.0, "epsilon": 2.0, "delta": 0.0}
    assert c.mechanism.law == {"family": "decision", "level": 2.0, "programs": 1, "cells": None}
    assert (c.mechanism.name, c.mechanism.noise_length, c.mechanism.deviation_per_column) == (
        "decision",
        None,
        None,
    )
    assert {at.epsilon for at in c.distances} == {2.0}
    assert all(at.best_guess == pytest.approx(1 / (1 + math.exp(-2.0))) for at in c.distances)
    assert all(at.best_guess >= 1 / (1 + math.exp(-2.0)) for at in c.distances)
    assert c.classic.exact is not None
    assert c.classic.exact.model_dump() == {"B": 2.0, "epsilon": 2.0, "delta": 0.0}
    assert c.scales.source == "none"
    assert (c.scales.values, c.scales.spent, c.scales.estimated) == ({}, None, ())
    assert c.features == ("calls", "texts")
    assert (c.scores, c.released, c.kind) == ((), ("aid",), "decisions")
    assert c.decisions == LINEAR.decisions
    said = " ".join(c.conditions)
    assert "any two rows, however far apart" in said
    assert "gets the fixed answer no, drawn as any other" in said
    assert "Released is one decision about each person (aid)" in said
    assert "clipped to the unit ball" not in said
    page = (large / "linear.parquet.certificate.md").read_text(encoding="utf-8")
    assert "ε-differential privacy in the classic sense, ε = 2" in page
    assert "probability 88.1%" in page
    # Nothing of the table but what is in the release.
    text = c.text() + page
    for value in (*weighted(table_of(20_000))[:50], *np.asarray(table_of(20_000).column("calls"))[:50]):
        assert f"{value:.6g}" not in text


def test_several_decisions_have_their_own_cuts_and_shares(large: Path) -> None:
    """Together: all right, or one of the other combinations, each as often as any other."""
    asked = asks(
        decision(name="aid"),
        with_cut(6.0, name="loan", weights={"topups": 2.0, "texts": 1.0}, yes="above"),
        decision(
            name="visit", weights=None, additive=CURVES, share=0.6,
            expected=((0.0, 0.0), (1.0, 0.5), (2.5, 1.0)),
        ),
    )  # fmt: skip
    release(large, "three.parquet", request=asked)
    c = sound(large, asked, "three.parquet")
    out, table = read_back(large / "three.parquet"), by_id(table_of(20_000))
    assert out.column_names == ["name", "aid", "loan", "visit"]
    assert c.mechanism.law["programs"] == 3
    assert c.features == ("calls", "texts", "topups")
    held = steps_of_people(c, out.column("name").to_pylist())
    own = [q.in_own_units for q in asked.questions]
    scores = [
        weighted(table),
        weighted(table, {"topups": 2.0, "texts": 1.0}),
        np.interp(np.asarray(table["calls"]), *curve("calls"))
        + np.interp(np.asarray(table["topups"]), *curve("topups")),
    ]
    cuts = [np.array([unit(int(cut)) for cut in held[:, j]]) for j, unit in enumerate(own)]
    assert set(cuts[1].tolist()) == {6.0}
    truth = np.stack([scores[0] <= cuts[0], scores[1] >= cuts[1], scores[2] <= cuts[2]], axis=1)
    bits = np.stack([bits_of(out, name) for name in ("aid", "loan", "visit")], axis=1)
    q = 1 / (7 + math.exp(4.0))
    change = ((bits ^ truth) * np.array([1, 2, 4])).sum(axis=1)
    counts = np.bincount(change, minlength=8)
    assert within_five(int(counts[0]), 20_000, 1 - 7 * q)
    assert all(within_five(int(count), 20_000, q) for count in counts[1:])
    assert abs(truth[:, 0].mean() - 0.3) < 0.02
    assert abs(truth[:, 2].mean() - 0.6) < 0.02
    page = (large / "three.parquet.certificate.md").read_text(encoding="utf-8")
    assert "is at least 6" in page


NEAR: dict[str, tuple[dict[str, Any], Any]] = {
    "linear": (near(), lambda rows: rows @ np.array([1.0, 0.5])),
    "above": (
        near(yes="above", expected=((-1.0, 1.0), (0.3, 0.3), (1.0, 0.0))),
        lambda rows: rows @ np.array([1.0, 0.5]),
    ),
    "additive": (
        near(weights=None, additive=NEAR_CURVES, expected=((-0.5, 0.0), (0.4, 0.4), (1.4, 1.0))),
        lambda rows: (
            np.interp(rows[:, 0], *curve("calls", NEAR_CURVES))
            + np.interp(rows[:, 1], *curve("topups", NEAR_CURVES))
        ),
    ),
}


@pytest.mark.parametrize("kind", NEAR)
def test_below_B_2_bits_are_right_as_often_as_their_cells_say(large: Path, kind: str) -> None:
    given, score_of = NEAR[kind]
    asked = asks(given, B=0.25, epsilon=2.0)
    release(large, f"near {kind}.parquet", request=asked)
    c = sound(large, asked, f"near {kind}.parquet")
    assert c.scales.source == "declared"
    assert c.guarantee.model_dump() == {"B": 0.25, "epsilon": 2.0, "delta": 0.0}
    stated = [at.epsilon for at in c.distances]
    assert stated == pytest.approx([2.0, 2.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0])
    assert all(one is not None and one >= round(one) for one in stated), "rounded up"
    out, table = read_back(large / f"near {kind}.parquet"), by_id(table_of(20_000))
    names = list(given.get("weights") or given["additive"])
    positions = [FEATURES.index(name) for name in names]
    scaled = (
        np.column_stack([np.asarray(table[name]) for name in names]) - np.array([10.0, 5.0, 1.0])[positions]
    ) / (np.array([8.0, 6.0, 2.0])[positions])
    rows = scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1))[:, None]
    (question,) = asked.questions
    own = np.array(
        [question.in_own_units(int(cut)) for cut in steps_of_people(c, out["name"].to_pylist())[:, 0]]
    )
    size = abs(float(question._place[1]))
    away = (own - score_of(rows)) / size * (-1 if kind == "above" else 1)
    truth, cell = away >= 0, np.floor(np.abs(away) / 0.25)
    assert abs(truth.mean() - 0.3) < 0.03
    bits = bits_of(out)
    for number in (0, 1, 2):
        here = cell == number
        q = math.exp(-2.0 * number) / (1 + math.exp(2.0))
        assert here.sum() > 500 or kind == "additive"
        assert within_five(int((bits != truth)[here].sum()), int(here.sum()), q)


# Formats and frames


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out"])
@pytest.mark.parametrize("source", ["in.parquet", "in.csv"])
def test_files_and_folders(tmp_path: Path, output: str, source: str) -> None:
    folder = place_with(tmp_path, public={"region": "printed"})
    table = table_of(region=["north", "south"] * 30)
    write_parquet(folder / "in.parquet", table)
    write_csv(folder / "in.csv", table)
    asked = asks(decision(), with_cut(9.0, name="loan"))
    release(folder, output, table=source, request=asked)
    sound(folder, asked, output)
    out = read_back(folder / output)
    assert out.column_names == ["name", "aid", "loan", "region"]
    assert [out.schema.field(name).type for name in ("aid", "loan")] == [pa.bool_()] * 2
    both = by_id(table)
    assert out["name"].to_pylist() == both["name"].to_pylist()
    assert out["region"].to_pylist() == both["region"].to_pylist()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(tmp_path: Path, library: str) -> None:
    desk = make_desk(tmp_path)
    table = table_of()
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[
        library
    ]()
    done = privatize(frame, desk=desk, request=asks())
    assert type(done.frame) is type(frame)
    kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
    assert isinstance(done.frame, kinds[library])
    back = (
        pa.table(done.frame)
        if library == "pyarrow"
        else pa.Table.from_pandas(
            done.frame if library == "pandas" else done.frame.to_pandas(), preserve_index=False
        )
    )
    assert back["aid"].type == pa.bool_()
    assert back["name"].to_pylist() == sorted(table["name"].to_pylist())
    assert is_certified(done.frame, done.certificate)
    saved = write_parquet(tmp_path / "saved.parquet", back)
    assert [one for one in verify(saved, done.certificate).checks if one.holds is False] == []
    flipped = back.set_column(1, back.schema.field("aid"), pa.array(~bits_of(back)))
    assert not is_certified(flipped, done.certificate)


def test_pseudonyms_and_people_who_are_left_out(tmp_path: Path) -> None:
    """Turns are those of published ids: verifying needs no key."""
    folder = place_with(tmp_path, 300, pseudonyms=True)
    write_parquet(folder / "some.parquet", table_of(300).slice(200))
    first = release(folder, "some.parquet.out.parquet", table="some.parquet", request=asks(epsilon=1.0))
    asked = asks(leave_out=(first.certificate.release,), learned_from=first.certificate.release)
    release(folder, request=asked)
    c = sound(folder, asked)
    out = read_back(folder / "out.parquet")
    assert out.num_rows == c.rows == 200
    assert all(len(name) == 32 for name in out["name"].to_pylist())
    earlier = read_back(folder / "some.parquet.out.parquet")["name"].to_pylist()
    assert not set(earlier) & set(out["name"].to_pylist())
    assert c.left_out == (first.certificate.release,)
    assert "What people are judged by was learned" in " ".join(c.conditions)


@pytest.mark.parametrize("place", [0, 150, 299])
def test_left_out_people_at_either_end_do_not_move_anybody_s_answer(
    tmp_path: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a level at which no answer is wrong, in batches that may be of left out people alone."""
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: 10)
    folder = place_with(tmp_path, 300, limit=(2.0, 1000.0, 0.1), most=(200.0, 0.1))
    write_parquet(folder / "some.parquet", table_of(300).slice(max(0, place - 30), 60))
    first = release(folder, "some.out.parquet", table="some.parquet", request=asks(epsilon=1.0))
    release(folder, request=asks(with_cut(10.0), epsilon=60.0, leave_out=(first.certificate.release,)))
    out = read_back(folder / "out.parquet")
    answers = dict(
        zip(table_of(300)["name"].to_pylist(), (weighted(table_of(300)) <= 10.0).tolist(), strict=True)
    )
    assert bits_of(out).tolist() == [answers[name] for name in out["name"].to_pylist()]


# Tables that are odd


def with_gaps(**columns: Any) -> pa.Table:
    table = table_of(600)
    made = {name: table[name] for name in ("name", *FEATURES)} | columns
    return pa.table(made)


SURE: dict[str, Any] = {"limit": (2.0, 1000.0, 0.1), "most": (200.0, 0.1)}
"""At ε = 60 no answer is wrong."""


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("gaps", [None, {"calls": 3.0}, {"all": 3.0}])
def test_a_gap_is_a_no_or_what_the_data_holder_has_declared(
    tmp_path: Path, suffix: str, gaps: dict[str, float] | None
) -> None:
    calls = [None if at % 3 == 0 else 5.0 if at % 3 == 1 else 50.0 for at in range(600)]
    table = with_gaps(calls=pa.array(calls, pa.float64()))
    folder = place_with(tmp_path, gaps=gaps, **SURE)
    write_parquet(folder / "in.parquet", table)
    write_csv(folder / "in.csv", table)
    done = release(
        folder, table=f"in.{suffix}", request=asks(with_cut(10.0, weights={"calls": 1.0}), epsilon=60.0)
    )
    out = read_back(folder / "out.parquet")
    known = dict(zip(table["name"].to_pylist(), calls, strict=True))
    missing = gaps is not None
    expected = [missing if known[name] is None else known[name] == 5.0 for name in out["name"].to_pylist()]
    assert bits_of(out).tolist() == expected
    assert done.certificate.gaps == ({} if gaps is None else {"calls": 3.0})
    assert sound(folder, asks(with_cut(10.0, weights={"calls": 1.0}), epsilon=60.0))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 1e308, None])
@pytest.mark.parametrize("asked", [decision(), decision(weights=None, additive=CURVES), with_cut(3.0)])
def test_nothing_on_a_real_row_is_refused(tmp_path: Path, value: float | None, asked: dict[str, Any]) -> None:
    calls = [value, *np.asarray(table_of(600)["calls"]).tolist()[1:]]
    folder = place_with(tmp_path)
    write_parquet(folder / "in.parquet", with_gaps(calls=pa.array(calls, pa.float64())))
    assert look(folder, request=asks(asked)).problems == ()
    release(folder, request=asks(asked))
    sound(folder, asks(asked))


def test_below_B_2_what_cannot_be_scaled_is_refused_as_for_rows(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    write_parquet(folder / "in.parquet", with_gaps(calls=pa.array([None, *[1.0] * 599], pa.float64())))
    with pytest.raises(Refused, match="1 gap, in row 1"):
        release(folder, request=asks(near(), B=0.25))
    write_parquet(folder / "in.parquet", with_gaps(calls=[1.0] * 600))
    with pytest.raises(Refused, match="constant columns: calls"):
        release(folder, request=asks(near(), B=0.25))
    release(folder, request=asks())
    sound(folder, asks())


def test_columns_that_are_no_numbers_are_told_by_name(tmp_path: Path) -> None:
    folder = place_with(tmp_path, decide=["village"])
    write_parquet(folder / "in.parquet", with_gaps(village=["x"] * 600))
    for weights in ({"village": 1.0}, {"calls": 1.0, "village": 1.0}):
        with pytest.raises(Refused, match=r"village +text") as refused:
            release(folder, request=asks(decision(weights=weights)))
        assert "nothing was charged" in str(refused.value)


def test_numbers_of_other_types_count_as_numbers(tmp_path: Path) -> None:
    folder = place_with(tmp_path, **SURE)
    table = with_gaps(
        calls=pa.array([at % 2 == 0 for at in range(600)]),
        texts=pa.array(range(600), pa.int64()),
        topups=pa.array([f"{at % 5}" for at in range(600)]).cast(pa.decimal128(5, 2)),
    )
    write_parquet(folder / "in.parquet", table)
    weights = {"calls": 1000.0, "texts": 1.0, "topups": 0.5}
    release(folder, request=asks(with_cut(500.0, weights=weights), epsilon=60.0))
    out = read_back(folder / "out.parquet")
    own = {
        name: 1000 * (at % 2 == 0) + at + 0.5 * (at % 5) <= 500
        for at, name in enumerate(table["name"].to_pylist())
    }
    assert bits_of(out).tolist() == [own[name] for name in out["name"].to_pylist()]


def test_a_policy_says_which_columns_a_decision_may_look_at(tmp_path: Path) -> None:
    folder = place_with(tmp_path, decide=["rent"], features=("calls", "texts"))
    write_parquet(folder / "in.parquet", with_gaps(rent=np.arange(600.0)))
    with nothing_changes(folder):
        for asked, said in (
            (
                asks(decision(weights={"topups": 1.0})),
                "the policy releases no topups: ask for some of calls, texts, rent",
            ),
            (asks(decision(weights={"calls": 1.0, "topups": 1.0})), "the policy releases no topups"),
            (asks(decision(weights={"calls": 1.0, "nothing": 1.0})), "has no column 'nothing'"),
            (asks(near(weights={"calls": 1.0, "rent": 1.0}), B=0.25), "the policy releases no rent"),
            (request_of(features=("rent",)), "the policy releases no rent"),
            (request_of(release="scores", weights={"rent": 1.0}), "the policy releases no rent"),
            (asks(decision(name="calls")), "'calls' has the name of column 'calls'"),
            (asks(decision(name="Name")), "'Name' has the name of column 'name'"),
            (asks(decision(weights={"name": 1.0})), "the policy releases no name"),
        ):
            seen = look(folder, request=asked)
            assert any(said in str(problem) for problem in seen.problems), (said, seen.problems)
            assert "choose another name: ask" not in str(seen.problems)
    release(folder, request=asks(decision(weights={"calls": 1.0, "rent": 1.0})))
    c = sound(folder, asks(decision(weights={"calls": 1.0, "rent": 1.0})))
    assert c.features == ("calls", "rent")
    assert read_back(folder / "out.parquet").column_names == ["name", "aid"]
    refused = look(folder, request=asks(decision(weights={"topups": 1.0})))
    assert "columns among calls, texts, rent" in refused.reply
    assert "δ" not in refused.reply


@pytest.mark.parametrize("people", [1, 2, 47, 48, 63, 64, 65])
def test_few_people(tmp_path: Path, people: int) -> None:
    folder = place_with(tmp_path, people)
    release(folder, request=asks())
    c = sound(folder, asks())
    assert [len(own) for own in c.cuts] == [len(batch_ends(people))]
    assert c.guarantee.value().delta == 0


def sure_bits(folder: Path, table: pa.Table, output: str = "out.parquet", **given: Any) -> None:
    """At ε = 60 everybody's answer is the true one, under her own id."""
    asked = asks(with_cut(10.0), epsilon=60.0)
    release(folder, output, request=asked, **given)
    sound(folder, asked, output)
    out = read_back(folder / output)
    own = dict(zip(table["name"].to_pylist(), (weighted(table) <= 10.0).tolist(), strict=True))
    assert bits_of(out).tolist() == [own[name] for name in out["name"].to_pylist()]


def test_everybody_has_her_own_answer_in_many_ranges_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targetdp.release._engine._base.GROUP_CELLS", 1000)
    monkeypatch.setattr("targetdp.release._engine._local.batch_rows", lambda _: 77)
    folder = place_with(tmp_path, 3000, **SURE)
    sure_bits(folder, table_of(3000))
    assert pq.ParquetFile(folder / "out.parquet").num_row_groups > 10


@pytest.mark.parametrize("output", ["out.parquet", "out.csv"])
def test_odd_ids_are_found_again_as_they_are_published(tmp_path: Path, output: str) -> None:
    """Turns are made of the text that goes out: quotes, accents, commas, other scripts."""
    odd = ['a"b', "a,b", "été", "ÉTÉ", "日本", "0", "00", "1e5", "true", "nan", "x" * 300, "a b", "'", "é"]
    names = [*odd, *(f"id {at}" for at in range(86))]
    table = table_of(100).set_column(0, "name", [names])
    folder = place_with(tmp_path, **SURE)
    write_parquet(folder / "in.parquet", table)
    sure_bits(folder, table, output)


def test_a_spelling_is_applied_before_turns_are_told(tmp_path: Path) -> None:
    names = [f"  Ab{at} " for at in range(100)]
    table = table_of(100).set_column(0, "name", [names])
    folder = place_with(tmp_path, spelling={"spaces": "remove", "case": "lower"}, **SURE)
    write_parquet(folder / "in.parquet", table)
    asked = asks(epsilon=60.0)
    release(folder, request=asked)
    c = sound(folder, asked)
    out = read_back(folder / "out.parquet")
    assert {*out["name"].to_pylist()} == {f"ab{at}" for at in range(100)}
    assert len(c.cuts[0]) > 1


@pytest.mark.parametrize(
    ("B", "epsilon"), [(1e-9, 1.0), (1e-6, 4.0), (0.01, 1e-3), (1.999, 100.0), (2.0, 1e-4), (2.0, 100.0)]
)
def test_settings_at_the_ends_of_their_ranges(tmp_path: Path, B: float, epsilon: float) -> None:
    folder = place_with(tmp_path, 300, limit=(2.0, 1e9, 0.1), most=(100.0, 0.1))
    asked = asks(near() if B < 2 else decision(), B=B, epsilon=epsilon)
    release(folder, request=asked)
    assert sound(folder, asked).guarantee.epsilon == epsilon


def test_an_epsilon_beyond_the_law_is_refused_in_words(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(2.0, 1e9, 0.1), most=(1e6, 0.1))
    for epsilon in (101.0, 1e-5):
        (problem,) = look(folder, request=asks(epsilon=epsilon)).problems
        assert "epsilon" in str(problem)
        assert problem.whose == "official"


def test_more_columns_to_decide_by_loosen_a_policy() -> None:
    before, after, fewer = (
        Policy.model_validate(tomllib.loads(policy_text(decide=decide)))
        for decide in (["rent"], ["rent", "village"], None)
    )
    assert loosened(before, after) == ["decisions may look at village"]
    assert loosened(after, before) == loosened(after, fewer) == []


# Scales


def test_private_scales_are_estimated_here_paid_for_and_used_again(tmp_path: Path) -> None:
    folder = place_with(tmp_path, 2 * ENOUGH, scales="private")
    asked = asks(near(), B=0.25)
    seen = look(folder, request=asked)
    assert seen.problems == ()
    release(folder, request=asked)
    c = sound(folder, asked)
    assert (c.scales.source, c.scales.estimated) == ("private", ("calls", "texts"))
    assert c.scales.spent is not None
    law = law_of(c.mechanism.law).decision
    assert law is not None
    assert c.guarantee.delta == c.scales.spent.delta < 1e-29, "no more than the tails of the scales' sampler"
    assert c.scales.spent.epsilon + law.level == pytest.approx(4.0)
    assert c.scales.spent.epsilon + law.level <= 4.0
    # The next one has them for nothing, and one of columns as they are needs none.
    release(folder, "again.parquet", request=asked)
    again = sound(folder, asked, "again.parquet")
    assert (again.scales.source, again.scales.values) == ("earlier", c.scales.values)
    assert again.scales.releases == (c.release,)
    assert again.mechanism.law["level"] == 4.0
    release(folder, "classic.parquet", request=asks())
    classic = sound(folder, asks(), "classic.parquet")
    assert (classic.scales.source, classic.scales.estimated, classic.scales.releases) == ("none", (), ())


def test_at_B_2_a_desk_needs_no_scales_at_all(tmp_path: Path) -> None:
    """Ten people are far too few to estimate any."""
    folder = place_with(tmp_path, 10, scales="private")
    with pytest.raises(Refused, match="private scales cannot be estimated from so few people"):
        release(folder, request=asks(near(), B=0.25))
    release(folder, request=asks())
    sound(folder, asks())


# The ledger


def spent(folder: Path) -> float:
    seen = look(folder, request=asks())
    assert seen.spending is not None
    return seen.spending.spent


def test_the_same_again_is_charged_again(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit={"B": 2.0, "epsilon": 9.0, "delta": 1e-6, "filter": "pure"})
    for number in (1, 2):
        release(folder, f"{number}.parquet", request=asks(asked_by="Ministry"))
        assert spent(folder) == pytest.approx(4.0 * number / 9.0)
    with pytest.raises(Refused, match="the limit would be passed"):
        release(folder, "3.parquet", request=asks())
    release(folder, "4.parquet", request=asks(epsilon=1.0))
    one, two = (read_back(folder / f"{number}.parquet") for number in (1, 2))
    assert certificate_of(folder / "1.parquet").release != certificate_of(folder / "2.parquet").release
    assert one.num_rows == two.num_rows
    seen = look(folder, request=asks(asked_by="Ministry"))
    assert any("this very request was answered before" in one for one in seen.warnings)


@pytest.mark.parametrize(
    ("filter", "B", "cost"),
    [
        ("pure", 2.0, lambda budget: 4.0 / 20.0),
        ("pure", 0.25, lambda budget: 4.0 / 20.0),
        ("gaussian", 2.0, None),
        ("renyi", 2.0, None),
    ],
)
def test_every_filter_counts_decisions(tmp_path: Path, filter: str, B: float, cost: Any) -> None:  # noqa: A002
    folder = place_with(tmp_path, limit={"B": B, "epsilon": 20.0, "delta": 1e-3, "filter": filter})
    seen = look(folder, request=asks(epsilon=2.0))
    assert seen.problems == ()
    release(folder, request=asks(epsilon=2.0))
    assert 0 < spent(folder) < 1
    if cost is not None:
        assert spent(folder) == pytest.approx(2.0 / 20.0, rel=1e-3)
    # A decision below B = 2 costs more at distance 2, where there are eight cells.
    seen = look(folder, request=asks(near(), B=0.25, epsilon=2.0))
    assert seen.spending is not None
    far = seen.spending.asked[1] / seen.spending.limit.budget[1]
    once = look(folder, request=asks(epsilon=2.0)).spending
    assert once is not None
    assert far > 7 * once.asked[1] / once.limit.budget[1]


def test_decisions_compose_with_scores_as_brute_force_says(tmp_path: Path) -> None:
    """Two bits and a score with Laplace noise: δ at several ε, summed up over all outcomes."""
    folder = place_with(tmp_path)
    score = request_of(
        release="scores",
        weights={"calls": 1.0},
        B=0.25,
        epsilon=1.5,
        delta=1e-9,
        mechanism="spherical-laplace",
    )
    for number, asked in enumerate((asks(), asks(near(), B=0.25, epsilon=1.0), score)):
        release(folder, f"{number}.parquet", request=asked)
    with Desk.open(folder / "desk").ledger() as ledger:
        charges = [row.charge for row in ledger.history.counted]
    kinds = [
        row["kind"] for row in cli("ledger", "show", "--desk", folder / "desk", "--json").json["releases"]
    ]
    assert kinds == ["decisions", "decisions", "scores"]
    distance = 0.25
    noise = charges[2].law.record()["noise"]
    scale = float(noise["scale"])
    together = compose(*(loss for charge in charges for loss in charge.losses(distance)))

    def delta_of(epsilon: float) -> float:
        """Over both bits and the score: E over the first table of (1 − e^(ε − loss)) where it is positive."""
        total = mpmath.mpf(0)
        ratio = mpmath.mpf(distance) / scale
        for first in (1, -1):
            for second in (1, -1):
                weight = 1 / (1 + mpmath.exp(-4 * first)) / (1 + mpmath.exp(-second))
                rest = epsilon - 4 * first - second

                def gain(loss: Any, rest: Any = rest) -> Any:
                    return max(mpmath.mpf(0), 1 - mpmath.exp(rest - loss))

                inside = mpmath.quad(
                    # At x between the two scores the loss is (distance − 2x)/scale.
                    lambda x: gain((distance - 2 * x) / scale) * mpmath.exp(-x / scale) / (2 * scale),
                    mpmath.linspace(0, distance, 65),
                )
                total += weight * (gain(ratio) / 2 + inside + gain(-ratio) * mpmath.exp(-ratio) / 2)
        return float(total)

    for epsilon in (0.0, 1.0, 3.0, 5.0, 6.0, 6.4):
        told, true = together.delta(epsilon), delta_of(epsilon)
        assert told >= true * (1 - 1e-6)
        assert told == pytest.approx(true, rel=2e-2, abs=1e-6)
    assert together.epsilon(1e-9) == pytest.approx(4.0 + 1.0 + distance / scale, rel=1e-3)


def test_two_bits_are_what_their_four_outcomes_say(tmp_path: Path) -> None:
    folder = place_with(tmp_path, limit=(2.0, 100.0, 1e-3))
    for number, epsilon in enumerate((4.0, 1.0)):
        release(folder, f"{number}.parquet", request=asks(epsilon=epsilon))
    with Desk.open(folder / "desk").ledger() as ledger:
        losses = [loss for row in ledger.history.counted for loss in row.charge.losses(2.0)]
    together = compose(*losses)
    for epsilon in (0.0, 2.0, 3.5, 4.5, 5.0):
        true = 0.0
        for first in (1, -1):
            for second in (1, -1):
                own = 1 / (1 + math.exp(-4 * first)) / (1 + math.exp(-second))
                true += max(0.0, own * (1 - math.exp(epsilon - 4 * first - second)))
        assert true * (1 - 1e-9) <= together.delta(epsilon) <= true + 1e-4
    assert together.epsilon(0.0) == pytest.approx(5.0, rel=1e-3)


LINE: dict[str, Any] = {"release": "decisions", "columns": 1, "B": 2.0, "epsilon": 4.0, "times": 2}


def test_a_plan_may_have_decisions(tmp_path: Path) -> None:
    folder = place_with(
        tmp_path,
        limit=(2.0, 20.0, 1e-3),
        plan=[LINE, LINE | {"B": 0.25, "columns": 1, "times": 1, "epsilon": 1.0}],
    )
    seen = look(folder, request=asks())
    assert (seen.planned, seen.problems) == (0, ())
    assert "it is one of 2 of 2 that the plan has left, which is charged whole" in seen.lines
    for number in (1, 2):
        release(folder, f"{number}.parquet", request=asks())
        sound(folder, asks(), f"{number}.parquet")
    assert spent(folder) == 0
    with pytest.raises(
        Refused, match="the plan has none of these releases left: the plan has 1 decision at B = 2"
    ):
        release(folder, "3.parquet", request=asks())
    for other in (
        asks(epsilon=3.0),
        asks(decision(), decision(name="b")),
        asks(near(), B=0.5),
        request_of(B=2.0),
    ):
        assert any("not in the plan" in str(one) for one in look(folder, request=other).problems)
    release(folder, "near.parquet", request=asks(near(), B=0.25, epsilon=1.0))
    sound(folder, asks(near(), B=0.25, epsilon=1.0), "near.parquet")


@pytest.mark.parametrize("weights", [{"calls": 1.0}, {f"c{i}": 1.0 + i for i in range(40)}])
@pytest.mark.parametrize("B", [0.125, 0.3, 1.0, 1.9999])
def test_a_planned_decision_is_the_same_charge_whatever_its_score_is(
    tmp_path: Path, weights: dict[str, float], B: float
) -> None:
    """The plan knows no score: its law must be that of the release at every distance that is charged."""
    line = LINE | {"B": B, "epsilon": 1.0, "times": 1}
    names = tuple(weights)
    make_desk(tmp_path, features=names, limit=(0.25, 200.0, 1e-3), plan=[line])
    rng = np.random.default_rng(0)
    table = pa.table(
        {"name": [f"{i:03d}" for i in range(60)]} | {name: rng.normal(size=60) for name in names}
    )
    write_parquet(tmp_path / "in.parquet", table)
    asked = asks(near(weights=weights), B=B, epsilon=1.0)
    release(tmp_path, request=asked)
    sound(tmp_path, asked)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"delta": 1e-3}, "decisions have none"),
        ({"mechanism": "gaussian"}, "they have no noise"),
        ({"columns": 5}, "columns = 5 with decisions at B = 2: up to 4 are taken together at B = 2"),
        ({"columns": 2, "B": 0.25}, "columns = 2 with decisions at B = 0.25: up to 4"),
    ],
)
def test_a_plan_of_decisions_that_makes_no_sense_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        place_with(tmp_path, limit=(2.0, 20.0, 1e-3), plan=[LINE | changed])


# The command line


def ask_by_file(folder: Path, asked: Request) -> Path:
    (folder / "request.toml").write_text(asked.text(), encoding="utf-8")
    return folder / "request.toml"


def test_the_command_line_from_look_to_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place_with(tmp_path / "place", 200)
    monkeypatch.chdir(folder)
    file = ask_by_file(folder, asks(decision(), with_cut(3.0, name="loan")))
    with nothing_changes(folder):
        ran = cli("privatize", "in.parquet", "--check", "--request", file)
    assert ran.code == 0, ran.err
    said = words(ran.err)
    assert "what goes out: 2 decisions about 200 people (aid, loan)" in said
    assert "loan: yes where a weighted sum of calls, texts is at most 3" in said
    assert "an answer is the true one in 96.5% of all draws" in said
    assert "δ = 0" in said
    assert "noise" not in said.split("on these conditions")[0]
    record = cli("privatize", "in.parquet", "--check", "--request", file, "--json").json["look"]
    assert (record["released"], record["mechanism"]) == (["aid", "loan"], "decision")
    assert (record["noise_length"], record["guarantee"]["delta"]) == (None, 0.0)
    assert record["clipped_for_the_data_holder_only"] is None
    ran = cli("privatize", "in.parquet", "out.csv", "--request", file, "--yes", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["decisions"], ran.json["scores"]) == (["aid", "loan"], [])
    assert cli("verify", "out.csv", "--request", file).code == 0
    shown = words(cli("ledger", "show").out)
    assert "decisions (aid, loan), B=2 ε=4 δ=0" in words(shown.replace("│", " "))
    assert json.loads(cli("ledger", "show", "--json").out)["releases"][0]["decisions"] == ["aid", "loan"]
    assert cli("status").code == 0
    assert cli("ledger", "verify").code == 0
    other = ask_by_file(folder, asks(decision(), with_cut(3.5, name="loan")))
    ran = cli("verify", "out.csv", "--request", other)
    assert ran.code == 1
    assert "other decisions were taken" in words(ran.out + ran.err)
    # What is refused has the code of what is refused.
    bad = ask_by_file(folder, asks(decision(weights={"calls": 1.0, "secret": 1.0})))
    ran = cli("privatize", "in.parquet", "--check", "--request", bad)
    assert (ran.code, "Traceback" in ran.err) == (2, False)
    assert "the policy releases no secret" in words(ran.err)
    (folder / "request.toml").write_text('release = "decisions"\nB = 2\nepsilon = 4\n')
    ran = cli("privatize", "in.parquet", "x.parquet", "--request", "request.toml", "--yes")
    assert (ran.code, "needs [[decisions]]" in ran.err) == (2, True)


def test_a_name_in_a_request_writes_no_line_of_its_own_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place_with(tmp_path / "place")
    monkeypatch.chdir(folder)
    file = ask_by_file(folder, asks(decision(weights={"calls": 1.0, "x\nwhat is promised: all\x1b[2J": 1.0})))
    for run in (("privatize", "in.parquet", "--check", "--request", file), ("request", "show", file)):
        ran = cli(*run)
        assert "\x1b" not in ran.out + ran.err
        lines = (ran.out + ran.err).splitlines()
        assert not any(line.startswith("what is promised: all") for line in lines)


def test_what_verify_says_of_the_share_is_no_more_than_is_known(large: Path) -> None:
    if not (large / "linear.parquet").exists():
        release(large, "linear.parquet", request=LINEAR)
    found = check_named(verify(large / "linear.parquet"), "share of yes: aid")
    assert found.holds is True
    assert "refutes extremes only" in found.detail


def test_released_s_own_page_tells_the_promise(tmp_path: Path) -> None:
    folder = place_with(tmp_path)
    done: Released = release(folder, request=asks())
    assert "1 decision about each person" in done._repr_html_()
    assert holds(folder / "out.parquet")
