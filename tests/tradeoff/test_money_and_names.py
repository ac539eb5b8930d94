"""What a sweep says of its program: title, what is counted, currency, money of transfers, groups alike."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release import cli, words
from support.tradeoff import GRID, files, people, study
from targetdp.programs import Aid, Lending, changes, example_terms
from targetdp.tradeoff import Study, Sweep, find_sweep, read_figures, read_run, run

COST = 25.5
TINY = replace(GRID, B=(0.25,), epsilon2=(0.5,), mechanisms=("least-noise",), group_sizes=(5,))
MONEY = {"misspent": "inclusion_errors", "spent": "eligible"}
"""Sums of money, and whose transfers they are."""
DIFFERENCE = ("extra_misspent", "")


def costly(cost: float | None = COST, **more: Any) -> Study:
    known = study()
    assert isinstance(known.program, Aid)
    return replace(known, program=replace(known.program, cost=cost, **more), currency="XOF", title="")


def lines(given: Study, folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    done = run(Sweep(given, TINY, simulations=4), folder)
    return {(row["cell"], row["metric"], row["setting"]): row for row in done.summary.to_pylist()}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("money")
    lines(costly(), folder / "costly")
    lines(costly(None), folder / "free")
    return folder


def summary(folder: Path) -> Iterator[dict[str, Any]]:
    yield from pq.read_table(folder / "summary.parquet").to_pylist()


def test_money_is_what_the_same_sweep_counts_times_the_cost(swept: Path) -> None:
    """Of a sweep that knows no cost: means, ends of intervals, noise and changes, for each group.

    Ends of intervals come from sums that are kept in single precision.
    """
    counted = {(r["cell"], r["metric"], r["setting"]): r for r in summary(swept / "free")}
    of_money = {
        (r["cell"], r["metric"], r["setting"]): r for r in summary(swept / "costly") if "spent" in r["metric"]
    }
    assert not any("spent" in metric for _, metric, _ in counted)
    assert {metric for _, metric, _ in of_money} == {"misspent", "spent", "extra_misspent"}
    assert {setting for _, _, setting in of_money} == {"", "region=north", "region=south"}
    for (cell, metric, setting), row in of_money.items():
        if metric == "extra_misspent":
            continue
        count = counted[cell, MONEY[metric], setting]
        for name in ("mean", "low", "high", "noise", "change"):
            wanted = None if count[name] is None else pytest.approx(COST * count[name], rel=1e-6)
            assert row[name] == wanted, (cell, metric, setting, name)
    noisy = of_money["least-noise B=0.25 epsilon=3.5", "misspent", ""]
    assert noisy["low"] < noisy["mean"] < noisy["high"]


def test_the_difference_from_today_has_the_interval_of_changes(swept: Path) -> None:
    """Of one fixed release (k-anonymity draws no noise), person by person and without any file between."""
    given = costly()
    sweep = Sweep(given, TINY, simulations=4)
    today, *_, alike = sweep.cells
    rng = np.random.default_rng(0)
    mechanism = alike.build(given.dimensions)
    assert mechanism is not None
    before = given.run(given.X, rng)
    after = given.run(mechanism.privatize(given.X, rng), rng)
    change = changes(before, [after]).everybody["misspent"]
    rows = {r["cell"]: r for r in summary(swept / "costly") if (r["metric"], r["setting"]) == DIFFERENCE}
    row = rows[alike.name]
    assert row["mean"] == pytest.approx(change.difference)
    assert row["high"] - row["mean"] == pytest.approx(change.interval[1] - change.difference, rel=0.05)
    assert rows[today.name]["mean"] == 0


@pytest.mark.parametrize("quota_rule", ["once", "per fold"])
def test_misspent_is_the_cost_of_each_transfer_to_somebody_who_is_not_poor(quota_rule: Any) -> None:
    """Counted here person by person, with weights and a population."""
    known = study()
    rng = np.random.default_rng(1)
    weights, sex = rng.uniform(0.5, 2, known.people), rng.choice(["f", "m"], known.people)
    program = Aid(
        people()[1], 0.3, 15_000, None if quota_rule == "per fold" else weights, {"sex": sex.tolist()},
        cost=COST, quota_rule=quota_rule,
    )  # fmt: skip
    result = program.evaluate(known.X, known.folds, rng)
    assert result.wanted is not None
    each = program.people.weights * program.people.each
    for name, chosen in (("", np.ones(known.people, bool)), ("f", sex == "f"), ("m", sex == "m")):
        paid = sum(COST * each[i] for i in np.flatnonzero(result.decisions & chosen))
        wasted = sum(COST * each[i] for i in np.flatnonzero(result.decisions & ~result.wanted & chosen))
        found = result.by_group["sex"][name] if name else result.metrics
        assert [found["spent"], found["misspent"]] == pytest.approx([paid, wasted])
        assert 0 < wasted < paid
    assert program.part(np.arange(50), 5_000).cost == COST


@pytest.mark.parametrize("cost", [0, -1.0, float("nan"), float("inf"), 1e16, True, "12"])
def test_a_cost_must_be_a_sum_of_money(cost: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"cost = .* (must lie|is outside|is not)"):
        Aid(np.array([1.0, 2.0, 3.0]), cost=cost)


def test_the_record_says_what_pages_need(swept: Path) -> None:
    record = read_run(swept / "costly")
    assert {name: record[name] for name in ("title", "counted", "currency", "alike_groups")} == {
        "title": "Aid: small", "counted": "people", "currency": "XOF", "alike_groups": [],
    }  # fmt: skip
    assert record["made_of"]["unit"] == "people"
    lender = Sweep(study(lending=True, unit="$"), TINY).record()
    assert (lender["counted"], lender["currency"], lender["made_of"]["unit"]) == ("people", "$", "$")
    by_hand: list[dict[str, Any]] = [
        {"title": "Other"}, {"counted": "cows"}, {"currency": "$"}, {"alike_groups": [{}]}
    ]  # fmt: skip
    for change in by_hand:
        (swept / "costly" / "run.json").write_text(json.dumps(record | change), encoding="utf-8")
        with pytest.raises(ValueError, match=r"the cells or names of run.json are not those of its sweep"):
            read_figures(swept / "costly")
    (swept / "costly" / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert read_figures(swept / "costly")


@pytest.mark.parametrize(
    ("name", "lending", "title"),
    [
        ("northern_villages", False, "Aid: northern villages"), ("aid_2024", False, "Aid 2024"),
        ("my-aid program", False, "My aid program"), ("plaid", False, "Aid: plaid"),
        ("credit", True, "Lending: credit"), ("Lending", True, "Lending"),
    ],
)  # fmt: skip
def test_a_title_follows_from_kind_and_name(name: str, lending: bool, title: str) -> None:
    given = study(lending=lending)
    assert replace(given, name=name, title="").title == title
    assert replace(given, name=name, title="Its own").title == "Its own"


@pytest.mark.parametrize("name", ["togo", "nigeria"])
def test_built_in_programs_are_called_what_they_are(name: str) -> None:
    found, terms = find_sweep(name).study, example_terms(name)
    assert found.title == terms.title
    assert "invented people" in found.title
    assert found.currency == terms.currency
    assert (found.currency is not None) == isinstance(found.program, Lending)


def test_a_file_s_title_unit_cost_and_groups_reach_the_table_and_the_record(tmp_path: Path) -> None:
    program = files(tmp_path, title="Novissi [cash]", counted="households")
    table = pq.read_table(tmp_path / "people.parquet").to_pydict()
    table["region"] = ["North" if i % 3 else "north " for i in range(len(table["region"]))]
    pq.write_table(pa.table(table), tmp_path / "people.parquet")
    text = program.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^mechanisms = .*$", 'mechanisms = ["least-noise"]', text)
    text += f'[transfer]\ncost = {COST}\ncurrency = "F[CFA]"\n'
    program.write_text(text, encoding="utf-8")
    done = cli("tradeoff", program, "--out", tmp_path / "results", "--jobs", "1")
    assert done.code == 0, done.err
    assert "Novissi [cash]: 150 households (synthetic)" in words(done.out)
    assert "(F[CFA])" in done.out
    alike = "group column 'region': 'North' (100 rows) and 'north ' (50 rows) look alike"
    assert alike in words(done.err)
    figures, record = read_figures(tmp_path / "results"), read_run(tmp_path / "results")
    today = figures["status quo"]
    assert today["misspent"].mean == pytest.approx(COST * (today["inclusion_errors"].mean or 0))
    assert f"{today['misspent'].mean:,.0f}"[:3] in done.out
    (group,) = record["alike_groups"]
    assert (group["column"], group["names"], group["rows"]) == ("region", ["North", "north "], [100, 50])
    assert (record["title"], record["counted"], record["currency"]) == (
        "Novissi [cash]", "households", "F[CFA]",
    )  # fmt: skip
    asked = ("--singling-out", "0.01", "--at-most", "misspent=1e9")
    chosen = cli("tradeoff", "recommend", tmp_path / "results", *asked)
    assert chosen.code == 0, chosen.err
    assert "Novissi [cash]: 150 households (synthetic)" in words(chosen.out)
    assert "(F[CFA])" in chosen.out
    assert alike in words(chosen.err)
    as_json = cli("tradeoff", program, "--out", tmp_path / "results", "--jobs", "1", "--json").json
    assert as_json["alike_groups"] == record["alike_groups"]
    assert (as_json["title"], as_json["currency"]) == ("Novissi [cash]", "F[CFA]")


def test_a_lender_s_profit_has_its_currency(tmp_path: Path) -> None:
    run(Sweep(study(lending=True, unit="NGN"), TINY, simulations=2), tmp_path / "results")
    done = cli("tradeoff", "recommend", tmp_path / "results", "--singling-out", "0.01")
    assert done.code == 0, done.err
    assert "profit (NGN)" in words(done.out)
