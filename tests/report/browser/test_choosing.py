"""Controls of the page against `recommend`: the same limits give the same settings, and the same choice."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from targetdp.release import read_request
from targetdp.tradeoff import (
    PROTECTIONS,
    Constraint,
    Recommendation,
    read_figures,
    recommend,
    request_text,
)

from .conftest import Opened, Recipe
from .pages import Made

ANYTHING = Constraint("population", at_least=0.0)
"""`recommend` wants at least one."""

MAIN = {"aid": "extra_exclusion_errors", "lending": "profit", "thousand": "extra_exclusion_errors"}

AT_MOST = ("best_guess", "worst_group_rate", "worst_group_rise")
"""Figures beside the program's own that are limited from above, where a sweep has them."""

LOOSE = {"inference": 15, "distinguishing": 30}
"""Limits in hundredths that sliders are tried with: an insider guesses well, and few settings are left."""

LIMITS = int(os.environ.get("TARGETDP_LIMITS", "10"))
"""Random sets of limits that are tried; the environment may ask for more. Half as many on the large page."""

SET = """([id, value]) => {
  const field = document.getElementById(id);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""
"""As `fill` does, without waiting for the field to come into view."""


@pytest.fixture(autouse=True)
def figures_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`recommend` reads its folder anew every time; here it is asked very often."""
    monkeypatch.setattr("targetdp.tradeoff._recommend.read_figures", cache(read_figures))


def main_limit(metric: str, value: float) -> Constraint:
    if metric == "profit":
        return Constraint(metric, at_least=value)
    return Constraint(metric, at_most=value)


def fitting(page: Page) -> list[str]:
    found: list[str] = page.evaluate("targetdpPage.fitting()")
    return found


def chosen(page: Page) -> str | None:
    found: str | None = page.evaluate("targetdpPage.chosen()")
    return found


def agree(page: Page, found: Recommendation) -> bool:
    """Whether the page shows what was recommended: in its table, in its words and to tests."""
    names = [one.name for one in found.results if not one.excluded_by]
    assert fitting(page) == names
    assert chosen(page) == (None if found.chosen is None else found.chosen.name)
    assert page.locator("#settings tr.fits").count() == min(len(names), 200)
    taken = page.locator("#settings input:checked")
    assert taken.count() == (0 if found.chosen is None else 1)
    verdict = page.locator("#verdict").inner_text()
    if names:
        assert verdict.startswith(f"{len(names)} of ")
    else:
        assert verdict.startswith("None of the ")
    assert page.locator("#download").is_enabled() == bool(names)
    return bool(names)


def likely_limits(made: Made, seed: int, many: int) -> list[dict[str, float]]:
    """Limits near figures of the sweep, every third of them exactly at an interval's end."""
    rng = np.random.default_rng(seed)
    figures = list(read_figures(made.sweep).values())
    main = MAIN[made.run["kind"]]
    found = []
    controls = (*PROTECTIONS, main, *(metric for metric in AT_MOST if metric in figures[-1]))
    for _ in range(many):
        limits = {}
        for metric in controls:
            if rng.random() < (0.35 if metric in {*PROTECTIONS, main} else 0.7):
                continue
            ends = [end for one in figures for end in (one[metric].low, one[metric].high) if end is not None]
            value = float(rng.choice(ends)) if ends else 0.5
            if rng.random() < 0.66:
                value = round(value, 2)
            least = 0.5 if metric == "best_guess" else 0.0
            limits[metric] = value if metric == main else min(1.0, max(least, value))
        found.append(limits)
    return found


@pytest.mark.parametrize("name", ["aid", "lending", "thousand"])
def test_number_fields_choose_as_recommend_does(opened: Opened, page_of: Recipe, name: str) -> None:
    made, page = page_of(name), opened(name)
    fixed = [Constraint("accuracy", at_least=0.1)] if name == "aid" else []  # asked for: it has no control
    some, none = 0, 0
    rng = np.random.default_rng(13)
    for limits in likely_limits(made, seed=11, many=LIMITS // 2 if name == "thousand" else LIMITS):
        for field in page.locator("#needs input[type=text]").all():
            metric = str(field.get_attribute("data-metric"))
            value = repr(limits[metric]) if metric in limits else ""
            page.evaluate(
                SET, [str(field.get_attribute("id")), value.replace(".", str(rng.choice([".", ","])))]
            )
        asked = [
            Constraint(metric, at_least=value) if metric in PROTECTIONS else main_limit(metric, value)
            for metric, value in limits.items()
        ]
        if agree(page, recommend(made.sweep, [*asked, *fixed, ANYTHING])):
            some += 1
        else:
            none += 1
    assert some >= 2
    assert none >= 1


@pytest.mark.parametrize("name", ["aid", "lending"])
def test_sliders_choose_as_recommend_does(opened: Opened, page_of: Recipe, name: str) -> None:
    """A slider's field shows the limit that it sets, and nothing at the end that asks for nothing."""
    made, page = page_of(name), opened(name)
    fixed = [Constraint("accuracy", at_least=0.1)] if name == "aid" else []
    loose = 0 if name == "lending" else 1000
    rng = np.random.default_rng(12)
    counts = set()
    for turn in range(LIMITS):
        asked = []
        for metric in PROTECTIONS:
            place = int(rng.integers(0, LOOSE.get(metric, 90))) if turn and rng.random() < 0.7 else 0
            page.locator(f"#r-{metric}").fill(str(place / 100))
            field = page.locator(f"#n-{metric}").input_value()
            assert field == ("" if place == 0 else str(place / 100))
            asked += [Constraint(metric, at_least=place / 100)] if place else []
        for metric in (metric for metric in AT_MOST if page.locator(f"#r-{metric}").count()):
            place = int(rng.integers(60, 100)) if turn and rng.random() < 0.3 else 100
            page.locator(f"#r-{metric}").fill(str(place / 100))
            field = page.locator(f"#n-{metric}").input_value()
            assert field == ("" if place == 100 else str(place / 100))
            asked += [Constraint(metric, at_most=place / 100)] if place < 100 else []
        place = loose if turn in {0, 1} else int(rng.integers(100, 900))
        page.locator("#r-main").fill(str(place))
        field = page.locator("#n-main").input_value()
        assert (field == "") == (place == loose)
        asked += [main_limit(MAIN[name], float(field))] if field else []
        agree(page, recommend(made.sweep, [*asked, *fixed, ANYTHING]))
        counts.add(len(fitting(page)))
    assert len(counts) > 3


def test_the_page_begins_with_the_recommendation_and_reset_goes_back_to_it(
    opened: Opened, page_of: Recipe
) -> None:
    made, page = page_of("aid"), opened("aid")
    asked = [Constraint("singling_out", at_least=0.3), Constraint("accuracy", at_least=0.1)]
    found = recommend(made.sweep, asked)
    agree(page, found)
    assert found.chosen is not None
    before = page.locator("#picked").inner_text()
    page.locator("#n-singling_out").fill("1")
    page.locator("#n-main").fill("-1000000")
    agree(page, recommend(made.sweep, [
        Constraint("singling_out", at_least=1), Constraint("extra_exclusion_errors", at_most=-1e6),
    ]))  # fmt: skip
    assert page.locator("#picked").is_hidden()
    page.get_by_role("button", name="Back to the limits of section 1").click()
    agree(page, found)
    assert page.locator("#picked").inner_text() == before
    assert page.locator("#n-singling_out").input_value() == "0.3"
    assert page.locator("#r-singling_out").input_value() == "0.3"
    assert page.locator("#n-main").input_value() == ""


def test_of_two_limits_on_one_figure_the_stricter_counts(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("lending"), opened("lending")
    assert page.locator("#n-singling_out").input_value() == "0.3"
    agree(page, recommend(made.sweep, [Constraint("singling_out", at_least=least) for least in (0.3, 0.1)]))


def test_if_no_setting_is_left_the_strictest_limit_is_named(opened: Opened) -> None:
    page = opened("aid")
    page.locator("#n-singling_out").fill("0")
    page.locator("#n-inference").fill("")
    page.locator("#n-distinguishing").fill("1")
    many = page.locator("#settings tbody tr").count()
    verdict = page.locator("#verdict").inner_text()
    assert f"None of the {many} settings meets all of your limits." in verdict
    assert f"“not told apart” rules out the most: {many}." in verdict
    assert "“not singled out” rules out 0." in verdict
    assert "“accuracy” rules out 0." in verdict
    assert page.locator("#settings tr.pale").count() == many
    assert page.locator("#settings tr.pale").first.inner_text().count("✗ no: not told apart") == 1
    assert page.locator("#crowd").inner_text() == "Choose a setting to see what its B means."
    assert page.locator("#people tbody tr").count() == 0
    page.locator("#n-distinguishing").fill("")
    page.locator("#n-main").fill("-1e9")
    assert (
        "“at most so many more poor people missed” rules out the most"
        in page.locator("#verdict").inner_text()
    )


def test_another_setting_can_be_taken_and_stays_when_the_charts_change(
    opened: Opened, page_of: Recipe
) -> None:
    page = opened("aid")
    page.locator("#r-singling_out").fill("0")
    first, others = chosen(page), fitting(page)
    cells = page_of("aid").cells
    assert first is not None
    other = next(name for name in reversed(others) if cells[name].epsilon != cells[first].epsilon)
    place = list(cells).index(other)
    page.locator(f'#settings input[value="{place}"]').check()
    assert chosen(page) == other
    assert page.locator("#epsilon").input_value() == str(cells[other].epsilon)  # where its ring is
    assert f"B\u00a0=\u00a0{cells[other].B:g}" in page.locator("#picked").inner_text()
    assert page.locator("#settings tr.taken").count() == 1
    epsilons = page.locator("#epsilon option").all_inner_texts()
    assert [float(e) for e in epsilons] == [1.3, 1.9, 3.3, 3.9]
    for epsilon in epsilons:
        page.locator("#epsilon").select_option(epsilon)
        assert chosen(page) == other
        assert page.locator("#settings input:checked").get_attribute("value") == str(place)
    page.locator("#r-singling_out").fill("0.01")  # a new question: the best one is chosen again
    assert chosen(page) == first


def test_epsilon_changes_the_points(opened: Opened, page_of: Recipe) -> None:
    page = opened("aid")
    cells = page_of("aid").cells.values()
    seen = set()
    for epsilon in (1.3, 3.9):
        page.locator("#epsilon").select_option(str(epsilon))
        points = page.locator('#chart-singling_out [aria-roledescription="point"]')
        shown = sum(cell.epsilon in {None, epsilon} for cell in cells)
        expect(points).to_have_count(shown)
        labels = tuple(str(one.get_attribute("aria-label")) for one in points.all())
        assert sum(f"ε = {epsilon}" in label for label in labels) == 6 * 3  # mechanisms, B
        assert sum("k-anonymity" in label for label in labels) == 2
        seen.add(labels)
    assert len(seen) == 2


def test_downloads_are_requests_byte_for_byte(opened: Opened, page_of: Recipe, tmp_path: Path) -> None:
    for name in ("aid", "names"):
        made, page = page_of(name), opened(name, accept_downloads=True)
        for metric in PROTECTIONS:
            page.locator(f"#r-{metric}").fill("0")
        names = fitting(page)
        assert {made.cells[one].mechanism for one in names} == {
            "projection", "least-noise", "score", "score-laplace", "decision"
        }  # fmt: skip
        cells = list(made.cells)
        for cell in names[:: max(1, len(names) // 4)]:
            page.locator(f'#settings input[value="{cells.index(cell)}"]').check()
            with page.expect_download() as waiting:
                page.locator("#download").click()
            assert waiting.value.suggested_filename == "request.toml"
            path = tmp_path / "request.toml"
            waiting.value.save_as(path)
            assert path.read_bytes() == request_text(made.run, made.cells[cell]).encode()
            assert list(read_request(path).features or ()) == made.run["features"]


def test_every_setting_that_can_be_released_is_offered_once(opened: Opened, page_of: Recipe) -> None:
    """Of settings that are equal in distribution one is offered; none that no request can ask for."""
    made, page = page_of("aid"), opened("aid")
    offered = [int(str(one.get_attribute("value"))) for one in page.locator("#settings input").all()]
    cells = [list(made.cells.values())[place] for place in offered]
    assert all(cell.epsilon is not None and cell.why_not is None for cell in cells)
    noises = [(cell.mechanism, cell.B, cell.epsilon1 or cell.epsilon) for cell in cells]
    assert len(set(noises)) == len(noises) == 6 + 12 + 12 + 12 + 12


def test_a_decimal_comma_is_a_decimal_comma(opened: Opened, page_of: Recipe) -> None:
    """Typing 0,9 left the limit at 0, with the download enabled."""
    made, page = page_of("aid"), opened("aid")
    fixed = Constraint("accuracy", at_least=0.1)
    for typed, value in (("0,6", 0.6), ("0.6", 0.6), (" 0,60 ", 0.6), (",6", 0.6), ("6e-1", 0.6), ("1", 1.0)):
        page.locator("#n-singling_out").fill(typed)
        agree(page, recommend(made.sweep, [Constraint("singling_out", at_least=value), fixed]))
        assert page.locator("#r-singling_out").input_value() == f"{value:g}"
    page.locator("#n-singling_out").fill("")
    for typed, value in (("1 234,5", 1234.5), ("1,234,567", 1234567.0), ("−0,5", -0.5), ("1,234.5", 1234.5)):
        page.locator("#n-main").fill(typed)
        agree(page, recommend(made.sweep, [Constraint("extra_exclusion_errors", at_most=value), fixed]))
        assert page.locator("#unreadable").inner_text() == ""


@pytest.mark.parametrize(
    ("field", "typed"),
    [("singling_out", "0,9,1"), ("singling_out", "abc"), ("singling_out", "1,5"), ("singling_out", "-0.1"),
     ("best_guess", "0,4"), ("main", "9,840"), ("main", "12 people"), ("main", "--1"), ("main", "1e")],
)  # fmt: skip
def test_while_a_field_cannot_be_read_nothing_is_downloaded(opened: Opened, field: str, typed: str) -> None:
    """The limit before it still holds, and the page says so."""
    page = opened("aid")
    before, first = fitting(page), chosen(page)
    assert page.locator("#download").is_enabled()
    page.locator(f"#n-{field}").fill(typed)
    assert page.locator("#download").is_disabled()
    assert f"“{typed}” is no number" in page.locator("#unreadable").inner_text()
    assert page.locator(f"#n-{field}").get_attribute("aria-invalid") == "true"
    assert (fitting(page), chosen(page)) == (before, first)
    page.locator("#r-distinguishing").fill("0")  # another control: this field shows what holds again
    assert page.locator("#download").is_enabled()
    assert page.locator("#unreadable").inner_text() == ""
    page.locator(f"#n-{field}").fill(typed)
    page.locator(f"#n-{field}").fill("")
    assert page.locator("#download").is_enabled()
    page.locator(f"#n-{field}").fill(typed)
    page.get_by_role("button", name="Back to the limits of section 1").click()
    assert page.locator("#download").is_enabled()
    assert chosen(page) == first


def test_the_highest_agreement_reads_a_decimal_comma(opened: Opened) -> None:
    page = opened("aid")
    page.locator("#t-epsilon").fill("0.5")
    point = page.locator("#t-ceiling").inner_text()
    page.locator("#t-epsilon").fill("0,5")
    assert page.locator("#t-ceiling").inner_text() == point


def test_numbers_are_the_same_in_text_tables_and_charts(opened: Opened) -> None:
    """52.55 to 9,845 stood in the table, and 53 to 9,840 in the sentence."""
    page = opened("aid")
    cost = page.locator("#picked .lead").inner_text()
    taken = page.locator("#settings tr.taken td:nth-child(4)").inner_text().replace("\n", " ")
    mean, low, high = taken.replace(")", "").replace(" (", " to ").split(" to ")
    told = [low, high]
    if low.startswith("−"):
        told = [f"{end[1:]} fewer" if end.startswith("−") else f"{end} more" for end in told]
    assert f"About {mean.lstrip('−')} " in cost
    assert f"95% interval: {told[0]} to {told[1]})" in cost
    label = page.locator("#settings tr.taken td:nth-child(2)").inner_text().replace("\u00a0", " ")
    point = page.locator(f'#chart-singling_out [aria-label^="{label}:"]').get_attribute("aria-label")
    assert point is not None
    assert taken in point
    row = page.locator("#tradeoff details tbody tr", has_text=label)
    assert taken in str(row.first.text_content())


def test_a_limit_by_group_excludes_what_one_group_bears(opened: Opened, page_of: Recipe) -> None:
    """56,558 of 74,704 more missed people are women: seen in section 6, and excluded by a limit."""
    made, page = page_of("unequal"), opened("unequal")
    best = chosen(page)
    rows = page.locator("#groups tbody tr").all_inner_texts()
    assert len(rows) == 2
    women = [
        " ".join(cell.split())
        for cell in page.locator("#groups tbody tr").first.locator("td").all_inner_texts()
    ]
    assert women[:5] == [
        "sex: female", "2,475,000", "50.0% (49.6% to 50.4%)", "58.1% (57.7% to 58.5%)", "+8.1 (+7.9 to +8.3)"
    ]  # fmt: skip
    assert women[5] == "+56,600 (+56,500 to +56,600)"
    base = Constraint("singling_out", at_least=0.8)
    agree(page, recommend(made.sweep, [base]))
    for metric, typed, value in (("worst_group_rise", "0,07", 0.07), ("worst_group_rate", "0.57", 0.57)):
        page.locator(f"#n-{metric}").fill(typed)
        found = recommend(made.sweep, [base, Constraint(metric, at_most=value)])
        assert found.chosen is not None
        assert found.chosen.name != best
        agree(page, found)
        page.locator(f"#n-{metric}").fill("")
        assert chosen(page) == best
