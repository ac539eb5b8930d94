"""Limits and choices of the page against `recommend`: the same limits give the same settings, and choice."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from targetdp.report import content, page
from targetdp.tradeoff import Constraint, Recommendation, read_figures, recommend

from .conftest import Opened, Recipe
from .pages import Made
from .reading import chosen, columns, fitting, limit, numbers, of_100, read_of_100, take, text, unreadable

ANYTHING = Constraint("population", at_least=0.0)
"""`recommend` wants at least one."""

MAIN = {"aid": "extra_exclusion_errors", "lending": "profit"}
PROTECTED = ("singling_out", "inference")
AT_MOST = ("best_guess", "worst_group_rate", "worst_group_rise")
"""Shares that are limited from above, where a sweep has them."""

LIMITS = int(os.environ.get("TARGETDP_LIMITS", "12"))
"""Random sets of limits that are tried; the environment may ask for more."""


@pytest.fixture(autouse=True)
def figures_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`recommend` reads its folder anew every time; here it is asked very often."""
    monkeypatch.setattr("targetdp.tradeoff._choosing._recommend.read_figures", cache(read_figures))


def main_limit(metric: str, value: float) -> Constraint:
    if metric == "profit":
        return Constraint(metric, at_least=value)
    return Constraint(metric, at_most=value)


def agree(page: Page, found: Recommendation) -> bool:
    """Whether anything meets the limits: and the page shows what `recommend` does, wherever it shows it."""
    names = [one.name for one in found.results if not one.excluded_by]
    assert fitting(page) == names
    assert chosen(page) == (None if found.chosen is None else found.chosen.name)
    verdict = text(page, "#verdict")
    assert verdict.startswith(f"{len(names)} of " if names else "None of the ")
    assert page.locator("#download").is_enabled() == bool(names)
    for name in ("option", "best", "setting"):
        taken = page.locator(f"input[name={name}]:checked")
        assert taken.count() <= (1 if names else 0)
    rows = page.locator("#every tbody tr:has(input)")
    if rows.count() == len(found.results):
        assert page.locator("#every tbody tr.faded").count() == len(found.results) - len(names)
    return bool(names)


def likely_limits(made: Made, seed: int, many: int) -> list[dict[str, float]]:
    """Limits near figures of the sweep, every third of them exactly at an interval's end."""
    rng = np.random.default_rng(seed)
    figures = list(read_figures(made.sweep).values())
    main = MAIN[made.run["kind"]]
    found = []
    controls = (*PROTECTED, main, *(metric for metric in AT_MOST if metric in figures[-1]))
    for _ in range(many):
        limits = {}
        for metric in controls:
            if rng.random() < (0.35 if metric in {*PROTECTED, main} else 0.7):
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
def test_limits_choose_as_recommend_does(opened: Opened, page_of: Recipe, name: str) -> None:
    made, page = page_of(name), opened(name)
    fixed = [Constraint("accuracy", at_least=0.1)] if name == "aid" else []  # asked for: it has no field
    main = MAIN[made.run["kind"]]
    some, none = 0, 0
    rng = np.random.default_rng(13)
    fields = [str(one.get_attribute("id")).removeprefix("n-") for one in page.locator(".limit input").all()]
    assert {main, *PROTECTED} <= set(fields)
    for limits in likely_limits(made, seed=11, many=LIMITS // 2 if name == "thousand" else LIMITS):
        asked = []
        for metric in fields:
            if metric not in limits:
                limit(page, **{metric: ""})
                continue
            value = limits[metric]
            typed = repr(value) if metric == main else of_100(value)
            limit(page, **{metric: typed.replace(".", str(rng.choice([".", ","])))})
            read = value if metric == main else read_of_100(typed)
            assert read == pytest.approx(value, rel=1e-15)
            asked.append(
                main_limit(metric, read) if metric == main
                else Constraint(metric, at_least=read) if metric in PROTECTED
                else Constraint(metric, at_most=read)
            )  # fmt: skip
        assert unreadable(page) == ""
        if agree(page, recommend(made.sweep, [*asked, *fixed, ANYTHING])):
            some += 1
        else:
            none += 1
    assert some >= 2
    assert none >= 1


def test_the_page_begins_with_the_recommendation_and_reset_goes_back_to_it(
    opened: Opened, page_of: Recipe
) -> None:
    made, page = page_of("aid"), opened("aid")
    asked = [Constraint("singling_out", at_least=0.3), Constraint("accuracy", at_least=0.1)]
    found = recommend(made.sweep, asked)
    agree(page, found)
    assert found.chosen is not None
    before = text(page, "#picked")
    limit(page, singling_out="100", extra_exclusion_errors="-1000000")
    agree(page, recommend(made.sweep, [
        Constraint("singling_out", at_least=1), Constraint("extra_exclusion_errors", at_most=-1e6),
    ]))  # fmt: skip
    page.get_by_role("button", name="Back to the limits that the page began with").click()
    agree(page, found)
    assert text(page, "#picked") == before
    assert page.locator("#n-singling_out").input_value() == "30"
    assert page.locator("#n-extra_exclusion_errors").input_value() == ""
    assert "accuracy of at least 0.1" in text(page, "#fixed")


def test_of_two_limits_on_one_figure_the_stricter_counts(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("lending"), opened("lending")
    assert page.locator("#n-singling_out").input_value() == "30"
    agree(page, recommend(made.sweep, [Constraint("singling_out", at_least=least) for least in (0.3, 0.1)]))


def test_if_no_setting_is_left_the_strictest_limit_is_named_and_nothing_is_called_chosen(
    opened: Opened,
) -> None:
    """A setting that was chosen before, its costs and its promise stood there all the same."""
    page = opened("aid")
    many = page.locator("input[name=setting]").count()
    limit(page, singling_out="0", best_guess="50")
    verdict = text(page, "#verdict")
    assert f"None of the {many} settings meets all of your limits." in verdict
    assert f"“best guess” rules out the most: {many}." in verdict
    assert "“not singled out” rules out 0." in verdict
    assert "“accuracy” rules out 0." in verdict
    assert page.locator("#every tr.faded").count() == many
    page.get_by_role("tab", name="Table").click()
    assert page.locator("#settings tr.faded td.fits").first.inner_text() == "✗ no: best guess"
    assert chosen(page) is None
    assert text(page, "#s-label") == "Nothing."
    assert "No setting meets all of your limits" in text(page, "#s-fails")
    seen = page.locator(
        "#s-cost, #s-exchange, #s-derived, #s-promise, #groups, #worst-hit, .curve-chart, #toml"
    )
    assert seen.count() == 9
    assert not any(one.is_visible() for one in seen.all())
    assert page.locator("tr.taken, input[type=radio]:checked").count() == 0
    limit(page, best_guess="", extra_exclusion_errors="-1e9")
    assert "“more poor people missed” rules out the most" in text(page, "#verdict")
    limit(page, extra_exclusion_errors="")
    assert chosen(page) is not None
    assert page.locator("#s-cost").is_visible()
    assert page.locator("#groups").is_visible()


def test_a_page_that_begins_without_a_choice_says_so(opened: Opened, page_of: Recipe, tmp_path: Path) -> None:
    made, html = page_of("bare"), tmp_path / "page.html"
    text_of_page = page(content(made.sweep, [Constraint("distinguishing", at_least=1.0)]))
    html.write_text(text_of_page, encoding="utf-8")
    shown, dead = opened(html), opened(html, script=False)
    assert chosen(shown) is None
    assert text(shown, "#s-label") == "Nothing."
    assert shown.locator("#download").is_disabled()
    assert text(dead, "#s-what") == "The safest option"
    for one in (shown, dead):
        assert text(one, "#why").startswith("Nothing is recommended: no setting meets the limits.")
    take(shown, 1)
    assert text(shown, "#s-what") == "You choose"
    assert "This setting does not meet: distinguishing protection of at least 1" in text(shown, "#s-fails")


def test_your_choice_stands_beside_the_options_while_it_is_none_of_them(
    opened: Opened, page_of: Recipe
) -> None:
    """Taken in the table, in the chart, or by tighter limits; away again with an option."""
    made, page = page_of("aid"), opened("aid")
    names = list(numbers(made))
    options = [int(str(one.get_attribute("value"))) for one in page.locator("input[name=option]").all()[:-1]]
    assert list(columns(page)) == ["Today", "Light", "Balanced", "Strong"]

    def own_is(name: str) -> None:
        assert chosen(page) == name
        column = columns(page)["Your choice"]
        assert column[0].startswith("Your choice")
        assert len(column) == 6
        assert all(column)
        assert page.locator("#o9").is_checked()
        assert page.locator("#own-3 svg.dots path").count() >= 2

    def own_is_gone() -> None:
        assert list(columns(page)) == ["Today", "Light", "Balanced", "Strong"]
        assert page.locator("#o9").is_hidden()

    page.get_by_role("tab", name="Table").click()
    other = page.locator("#settings tr:not(.faded) input[name=best]").all()
    first = next(one for one in other if int(str(one.get_attribute("value"))) not in options)
    taken = names[int(str(first.get_attribute("value")))]
    first.check()
    own_is(taken)
    table = page.locator(f'#settings tr[data-i="{names.index(taken)}"] td').all_inner_texts()
    assert [" ".join(cell.split()) for cell in columns(page)["Your choice"][1:]] == [
        " ".join(cell.split()) for cell in table[:5]
    ]
    page.locator("label[for=o2]:has(b)").click()
    assert chosen(page) == names[options[1]]
    own_is_gone()
    page.get_by_role("tab", name="Chart").click()
    marks = page.locator("svg.wide .pt.best:not(.out)").all()
    mark = next(
        one for one in marks
        if (number := int(str(one.get_attribute("data-i")))) not in options and names[number] in fitting(page)
    )  # fmt: skip
    mark.locator("path").click()
    own_is(names[int(str(mark.get_attribute("data-i")))])
    page.locator("#reset").click()
    own_is_gone()
    limit(page, best_guess="68")
    found = recommend(made.sweep, [
        Constraint("singling_out", at_least=0.3), Constraint("best_guess", at_most=0.68),
        Constraint("accuracy", at_least=0.1),
    ])  # fmt: skip
    assert found.chosen is not None
    own_is(found.chosen.name)
    limit(page, best_guess="")
    own_is_gone()


def test_an_option_that_misses_a_limit_can_be_looked_at_and_not_asked_for(opened: Opened) -> None:
    page = opened("aid")
    limit(page, best_guess="80")
    light = page.locator("label[for=o1]:has(b)")
    light.click()
    assert "Which of two people who are alike" in text(page, "#s-fails")
    assert "than 80 of 100 times." in text(page, "#s-fails")
    assert page.locator("#download").is_disabled()
    assert "✗ no: best guess" in page.locator("#settings tr.taken td.fits").all_text_contents()
    limit(page, best_guess="")
    light.click()
    assert text(page, "#s-fails") == ""
    assert page.locator("#download").is_enabled()


def test_another_setting_stays_until_limits_change(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    first, other = chosen(page), fitting(page)[-1]
    assert other != first
    take(page, numbers(made)[other])
    assert chosen(page) == other
    assert page.locator("#every tr.taken").count() == 1
    assert f"B = {made.cells[other].B:g}" in text(page, "#s-label")
    limit(page, singling_out="1")  # a new question: the best one is chosen again
    assert chosen(page) == first


def test_every_setting_that_can_be_released_is_offered_once(opened: Opened, page_of: Recipe) -> None:
    """Of settings that are equal in distribution one is offered; none that no request can ask for."""
    made, page = page_of("aid"), opened("aid")
    offered = [int(str(one.get_attribute("value"))) for one in page.locator("input[name=setting]").all()]
    cells = [list(made.cells.values())[place] for place in offered]
    assert all(cell.epsilon is not None and cell.why_not is None for cell in cells)
    noises = [(cell.mechanism, cell.B, cell.epsilon1 or cell.epsilon) for cell in cells]
    assert len(set(noises)) == len(noises)
    assert set(noises) == {
        (cell.mechanism, cell.B, cell.epsilon1 or cell.epsilon)
        for cell in made.cells.values() if cell.why_not is None
    }  # fmt: skip
    best = [int(str(one.get_attribute("value"))) for one in page.locator("input[name=best]").all()]
    assert len(set(best)) == len(best) >= 3
    assert set(best) <= set(offered)


def test_numbers_are_the_same_in_sentences_and_tables(opened: Opened) -> None:
    """52.55 to 9,845 stood in the table, and 53 to 9,840 in the sentence."""
    page = opened("aid")
    cost = text(page, "#s-cost")
    taken = str(page.locator("#every tr.taken td").first.text_content())
    mean, low, high = taken.replace(")", "").replace(" (", " to ").split(" to ")
    told = [low, high]
    if low.startswith("−"):
        told = [f"{end[1:]} fewer" if end.startswith("−") else f"{end} more" for end in told]
    assert f"About {mean.lstrip('−')} " in cost
    assert f"95% interval: {told[0]} to {told[1]})" in cost
    changes = [one if one.startswith("−") else f"+{one}" for one in (mean, low, high)]
    listed = " ".join(str(page.locator("#settings tr.taken td").first.text_content()).split())
    assert listed.endswith(f"{changes[0]} ({changes[1]} to {changes[2]})")


def test_a_limit_by_group_excludes_what_one_group_bears(opened: Opened, page_of: Recipe) -> None:
    """56,558 of 74,704 more missed people are women: seen in step 3, and excluded by a limit."""
    made, page = page_of("unequal"), opened("unequal")
    best = chosen(page)
    assert page.locator("#groups tbody tr").count() == 2
    women = [
        " ".join(cell.split())
        for cell in page.locator("#groups tbody tr").first.locator("th, td:not(.bars)").all_inner_texts()
    ]
    assert women[:4] == [
        "sex: female", "50.0% (49.6% to 50.4%)", "58.1% (57.7% to 58.5%)", "+8.1 (+7.9 to +8.3)"
    ]  # fmt: skip
    assert women[4] == "+56,600 (+56,500 to +56,600)"
    assert women[-1] == "2,475,000"
    places = (
        page.locator("#groups tbody tr")
        .first.locator(".bar i")
        .evaluate_all("(dots) => dots.map((one) => [one.className, parseFloat(one.style.left)])")
    )
    assert places == [["today", 50], ["then", pytest.approx(58.08, abs=0.01)]]
    base = Constraint("singling_out", at_least=0.8)
    agree(page, recommend(made.sweep, [base]))
    for metric, typed, value in (("worst_group_rise", "7,0", 0.07), ("worst_group_rate", "57", 0.57)):
        limit(page, **{metric: typed})
        found = recommend(made.sweep, [base, Constraint(metric, at_most=value)])
        assert found.chosen is not None
        assert found.chosen.name != best
        agree(page, found)
        moved = page.locator("#groups tbody tr").first.locator(".bar .then").get_attribute("style")
        assert "58.08" not in str(moved)
        limit(page, **{metric: ""})
        assert chosen(page) == best
