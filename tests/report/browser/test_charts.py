"""What charts show: fewer exposed people to the right, more for the program above; names at their marks."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from targetdp.report._page._charts import FEWEST
from targetdp.theorem1 import accuracy_ceiling, agreement_by_distance
from targetdp.tradeoff import read_figures

from .conftest import Opened, Recipe
from .reading import chosen, fitting, limit, numbers, take, text

MARKS = """(kind) => [...document.querySelectorAll(`svg.${kind} .pt`)].map((mark) => {
  const at = mark.getScreenCTM(), path = mark.querySelector("path");
  return { i: Number(mark.dataset.i), x: at.e, y: at.f, kind: mark.getAttribute("class").split(" ")[1],
    shape: path.getAttribute("d"), color: getComputedStyle(path).fill };
})"""
"""The marks of a chart: where their middles are on the screen, their kind of release, shape and color."""

LAID_OUT = """() =>
[...document.querySelectorAll("svg.chart")].filter((one) => one.checkVisibility()).map((svg) => {
  const frame = svg.getBoundingClientRect(), bad = [];
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((one) => [one.textContent, one.getBoundingClientRect()]);
  boxes.forEach(([name, box], i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1) { bad.push(`${name} leaves its chart`); }
    for (const [other, taken] of boxes.slice(i + 1)) {
      const across = Math.min(box.right, taken.right) - Math.max(box.left, taken.left);
      const up = Math.min(box.bottom, taken.bottom) - Math.max(box.top, taken.top);
      if (across > 0.5 && up > 0.5) { bad.push(`${name} lies on ${other}`); }
    }
  });
  return [boxes.length, bad];
})"""
"""Of every chart that is shown, how many names it has, and what is wrong with their places."""


def marks(page: Page, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(MARKS, kind)
    return found


@pytest.mark.parametrize(
    ("name", "metric", "sign"), [("aid", "extra_exclusion_errors", -1), ("lending", "profit", 1)]
)
@pytest.mark.parametrize(("kind", "width"), [("wide", 1100), ("phone", 390)])
def test_right_exposes_fewer_people_and_up_is_better(
    opened: Opened, page_of: Recipe, name: str, metric: str, sign: int, kind: str, width: int
) -> None:
    """Most settings stood in the last twentieth of an axis: a logarithm gives each its room."""
    made, page = page_of(name), opened(name, width=width)
    figures = list(read_figures(made.sweep).values())
    shown = marks(page, kind)
    assert len(shown) > 0.7 * len(figures)
    exposed, good = [], []
    for mark in shown:
        one = figures[mark["i"]]
        safe = [value for name in ("singling_out", "inference") if (value := one[name].mean) is not None]
        exposed.append(max(1000 * (1 - min(safe)), FEWEST))
        good.append(sign * (one[metric].mean or 0.0))
    for key, values, direction in (("x", np.log10(exposed), -1), ("y", np.array(good), -1)):
        pixels = np.array([mark[key] for mark in shown])
        slope, begin = np.polyfit(values, pixels, 1)
        assert slope * direction > 0
        np.testing.assert_allclose(pixels, begin + slope * values, atol=0.6)
    today = next(mark for mark in shown if mark["i"] == 0)
    assert today["x"] <= min(mark["x"] for mark in shown) + 0.1
    # What exposes no more than a tenth as many people has at least a fifth of the chart's width more.
    assert np.ptp(exposed) > 500
    spread = np.ptp([mark["x"] for mark in shown]) / np.ptp(np.log10(exposed))
    assert spread > page.locator(f"svg.{kind}").bounding_box()["width"] / 5  # type: ignore[index]
    said = page.locator(f"svg.{kind} text.axis").all_text_contents()
    assert all("fewer" in one and one.endswith("→") for one in said)
    assert len(said) == 1
    assert f"upwards {'fewer' if sign < 0 else 'more'}" in text(page, "#as-chart figcaption")


def test_the_title_says_what_the_chart_shows(opened: Opened, page_of: Recipe) -> None:
    """Of every kind of release the best that exposes no more people than the title has."""
    made, page = page_of("aid"), opened("aid")
    title = text(page, "#as-chart h3")
    begin, _, rest = title.partition("reached no more than ")
    assert begin == "Where the attacks that we ran "
    most = int(rest.split(" ")[0].replace(",", "")) / 1000
    best: dict[str, float] = {}
    figures = read_figures(made.sweep)
    for name, cell in made.cells.items():
        safe = min(figures[name][one].mean or 0.0 for one in ("singling_out", "inference"))
        if cell.why_not is None and 1 - safe <= most:
            more, form = figures[name]["extra_exclusion_errors"].mean or 0.0, cell.technology.form
            best[form] = min(more, best.get(form, more))
    assert len(best) == 3
    in_order = sorted(best, key=lambda form: best[form])
    places = [title.index(f"{form if form == 'rows' else f'a {form}'} ") for form in in_order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["aid", "lending", "thousand", "names", "bare", "unprotected"])
def test_no_name_lies_on_another_or_is_cut_off(opened: Opened, name: str) -> None:
    page = opened(name, width=1440)
    for width in (1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(LAID_OUT)
        assert len(found) == (1 if name == "unprotected" else 3)
        assert all(many >= 8 for many, _ in found)
        assert [bad for _, bad in found if bad] == []


def test_a_name_on_another_would_be_found(opened: Opened) -> None:
    page = opened("bare")
    page.evaluate("""() => {
      const [one, other, third] = document.querySelectorAll("svg.wide text");
      for (const at of ["x", "y"]) { other.setAttribute(at, one.getAttribute(at)); }
      third.setAttribute("x", "955");
    }""")
    (_, bad), *_ = page.evaluate(LAID_OUT)
    assert any("lies on" in one for one in bad)
    assert any("leaves its chart" in one for one in bad)


@pytest.mark.parametrize("name", ["aid", "lending", "losses", "thousand"])
def test_every_kind_and_option_has_its_name_in_the_chart_and_no_legend(
    opened: Opened, page_of: Recipe, name: str
) -> None:
    made, page = page_of(name), opened(name)
    forms = {cell.technology.form for cell in made.cells.values()}
    options = [one.removesuffix(" ✓") for one in page.locator("label[for^=o] b").all_inner_texts()][:-1]
    assert len(options) == 3
    for kind in ("wide", "phone"):
        named = page.locator(f"svg.{kind} text.form").all_text_contents()
        assert sorted(named) == sorted(forms)
        assert sorted(page.locator(f"svg.{kind} text.named").all_text_contents()) == sorted(options)
    assert page.locator("figure .legend, [class*=legend]").count() == 0
    written = " ".join(page.locator("#afford figcaption, #afford caption").all_text_contents())
    assert "k-anonymity" not in written  # what is named in the chart is not named again beside it


def test_kinds_differ_in_shape_and_not_in_color_alone(opened: Opened, page_of: Recipe) -> None:
    """For those who see no colors, and for copies in black and white."""
    made, page = page_of("aid"), opened("aid")
    shapes: dict[str, set[str]] = {}
    colors: dict[str, set[str]] = {}
    limit(page, singling_out="")
    for mark in marks(page, "wide"):
        shapes.setdefault(mark["kind"], set()).add(mark["shape"])
        colors.setdefault(mark["kind"], set()).add(mark["color"])
    assert len(shapes) == len({cell.technology.form for cell in made.cells.values()}) == 6
    assert all(len(one) == 1 for one in shapes.values())
    assert len({shape for (shape,) in shapes.values()}) == len({color for (color,) in colors.values()}) == 6
    names = page.locator("svg.wide text.form").evaluate_all(
        "(all) => all.map((one) => [one.getAttribute('class').split(' ')[1], getComputedStyle(one).fill])"
    )
    assert {kind: {color} for kind, color in names} == colors  # a name has the color of its marks
    dots = page.locator("#groups tbody tr").first.locator(".bar i")
    round_, square = dots.evaluate_all("(all) => all.map((one) => getComputedStyle(one).borderRadius)")
    keys = page.locator("#groups .key").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).borderRadius)"
    )
    assert [round_, square] == keys == ["50%", "2px"]


def test_settings_light_up_and_fade_with_the_limits(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    limit(page, singling_out="80")
    fits, places = set(fitting(page)), numbers(made)
    offered = {one for one in places if page.locator(f'input[name=setting][value="{places[one]}"]').count()}
    faded = {int(str(one.get_attribute("data-i"))) for one in page.locator("svg.wide .pt.out").all()}
    shown = {mark["i"] for mark in marks(page, "wide")}
    assert faded == {places[one] for one in offered - fits} & shown
    assert 0 < len(faded) < len(shown)
    bright = page.locator("svg.wide .pt.best:not(.out)").first.evaluate(
        "(one) => getComputedStyle(one).opacity"
    )
    pale = page.locator("svg.wide .pt.out").first.evaluate("(one) => getComputedStyle(one).opacity")
    assert float(pale) < float(bright)


def test_options_and_your_choice_have_rings(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    places = {mark["i"]: (mark["x"], mark["y"]) for mark in marks(page, "wide")}
    middle = """(one) => {
      const box = one.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    }"""
    rings = page.locator("svg.wide .ring:not(.own)").all()
    options = [int(str(one.get_attribute("value"))) for one in page.locator("input[name=option]").all()[:-1]]
    found = sorted(tuple(one.evaluate(middle)) for one in rings)
    assert found == [pytest.approx(one, abs=0.5) for one in sorted(places[i] for i in options)]
    own = page.locator("svg.wide .own.ring")
    assert own.get_attribute("visibility") == "hidden"
    for name in fitting(page)[::6]:
        number = numbers(made)[name]
        take(page, number)
        hidden = number in options or number not in places
        assert own.get_attribute("visibility") == ("hidden" if hidden else "visible")
        if not hidden:  # the table above has one more column now: all has moved
            mark = next(one for one in marks(page, "wide") if one["i"] == number)
            assert own.evaluate(middle) == pytest.approx([mark["x"], mark["y"]], abs=0.5)
    assert chosen(page) == name


def test_what_no_algorithm_can_do_is_never_drawn_below_the_packages(opened: Opened, page_of: Recipe) -> None:
    """Of so many decisions at a distance from the cut; and the best guess never below what was computed."""
    made, page = page_of("aid"), opened("aid")
    limit(page, singling_out="")
    read = """(name) => {
      const at = document.querySelector(`[data-curve=${name}]`);
      const [left, right, low, top] = at.dataset.box.split(",").map(Number);
      const long = at.getTotalLength(), points = [];
      for (let i = 0; i <= 4000; i += 1) {
        const { x, y } = at.getPointAtLength(long * i / 4000);
        points.push([(x - left) / (right - left) * at.dataset.farthest, 0.5 + (low - y) / (low - top) * 0.5]);
      }
      return points;
    }"""
    heights, figures = set(), read_figures(made.sweep)
    for name in fitting(page)[::9]:
        take(page, numbers(made)[name])
        promise = made.cells[name].promise
        assert promise is not None
        reach = min(5.0, 2 / promise.B)
        sure = [(at, share) for at, share in page.evaluate(read, "sure") if at < reach - 0.01]
        level = [(at, share) for at, share in sure if abs(at - round(at)) > 0.01]  # else it goes straight up
        truths = agreement_by_distance(promise, [at * promise.B for at, _ in level])
        assert len(level) > 1000 * reach / 5
        for (_, share), truth in zip(level, truths, strict=True):
            assert truth - 1e-4 <= share <= truth + 1e-4
        assert sure[0][1] >= accuracy_ceiling(promise) - 1e-4
        heights.add(round(sure[0][1], 3))
        guess = [share for _, share in page.evaluate(read, "guess")]
        assert guess == sorted(guess)
        assert guess[-1] == pytest.approx(figures[name]["best_guess_at_2"].mean, abs=1e-3)
    assert len(heights) > 2
