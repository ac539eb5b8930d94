"""What charts show: right is more private, up is better, on every panel and for either kind of program."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from targetdp._core import percent_up
from targetdp.report._page._words import label
from targetdp.tradeoff import PROTECTIONS, read_figures

from .conftest import Opened, Recipe

POINTS = """(id) => [...document.querySelectorAll(`#${id} [aria-roledescription="point"]`)].map((point) => {
  const box = point.getBoundingClientRect();
  return [point.getAttribute("aria-label"), box.x + box.width / 2, box.y + box.height / 2,
    point.getAttribute("fill-opacity"), box.width];
})"""


def points(page: Page, protection: str) -> dict[str, list[Any]]:
    """By label of its setting: center of a point, how full it is, and its width."""
    return {str(said).split(": ")[0]: rest for said, *rest in page.evaluate(POINTS, f"chart-{protection}")}


@pytest.mark.parametrize(
    ("name", "metric", "sign"), [("aid", "extra_exclusion_errors", -1), ("lending", "profit", 1)]
)
@pytest.mark.parametrize("width", [1100, 360])
def test_right_is_more_private_and_up_is_better(
    opened: Opened, page_of: Recipe, name: str, metric: str, sign: int, width: int
) -> None:
    made, page = page_of(name), opened(name, width=width)
    epsilon = float(page.locator("#epsilon").input_value())
    figures = read_figures(made.sweep)
    cells = [cell for cell in made.cells.values() if cell.epsilon in {None, epsilon}]
    for protection in PROTECTIONS:
        shown = points(page, protection)
        assert set(shown) == {label(cell) for cell in cells}
        places = np.array([shown[label(cell)][:2] for cell in cells])
        private = np.array([figures[cell.name][protection].mean for cell in cells])
        good = np.array([sign * (figures[cell.name][metric].mean or 0.0) for cell in cells])
        # A straight scale in the right direction, up to half a pixel.
        for pixels, values in ((places[:, 0], private), (-places[:, 1], good)):
            slope, begin = np.polyfit(values, pixels, 1)
            assert slope > 0
            np.testing.assert_allclose(pixels, begin + slope * values, atol=0.6)
        today = shown["today, no privacy"]
        assert today[0] <= min(at[0] for at in shown.values()) + 1
    said = page.locator("#tradeoff svg .role-axis-title text").all_text_contents()
    assert sum("more private →" in text for text in said) == 3
    titles = page.locator("#tradeoff svg .role-title-text text").all_text_contents()
    assert titles == ["↑ serves the program better"] * 3


def test_settings_light_up_and_fade_with_the_limits(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    page.locator("#r-singling_out").fill("0.5")
    page.locator("#epsilon").select_option("3.9")  # where projections are released as themselves
    labels = {label(made.cells[name]) for name in page.evaluate("targetdpPage.fitting()")}
    expect(
        page.locator('#chart-singling_out [aria-roledescription="point"][fill-opacity="0"]').first
    ).to_be_attached()
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 300)))")
    shown = points(page, "singling_out")
    full = {name for name, (_, _, fill, _) in shown.items() if fill == "1"}
    assert full
    assert full < set(shown)
    assert labels & set(shown) <= full
    # What is full but not offered is equal in distribution to what is.
    released = page.locator('#chart-singling_out [aria-label*="released as"]').count()
    assert len(full) == len(labels & set(shown)) + released


def test_a_setting_that_is_released_as_another_lights_up_with_it(opened: Opened) -> None:
    """Projections that differ in ε₂ alone are one release."""
    page = opened("aid")
    page.locator("#r-singling_out").fill("0")
    page.locator("#epsilon").select_option("3.3")
    twins = page.locator('#chart-singling_out [aria-label*="met; released as the paper\'s projection"]')
    expect(twins).to_have_count(3)
    assert {one.get_attribute("fill-opacity") for one in twins.all()} == {"1"}


def test_the_chosen_setting_has_the_ring_and_the_diamonds(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    page.locator("#r-singling_out").fill("0")
    for name in page.evaluate("targetdpPage.fitting()")[::6]:
        cell = made.cells[name]
        page.locator(f'#settings input[value="{list(made.cells).index(name)}"]').check()
        ring = page.locator("#chart-distinguishing .layer_4_marks path")
        expect(ring).to_have_count(1)
        expect(page.locator(f'#chart-distinguishing [aria-label^="{label(cell)}:"]')).to_have_count(1)
        box, point = ring.bounding_box(), points(page, "distinguishing")[label(cell)]
        assert box is not None
        assert abs(box["x"] + box["width"] / 2 - point[0]) < 2
        assert abs(box["y"] + box["height"] / 2 - point[1]) < 3
        for chart in ("guess", "epsilon"):
            expect(page.locator(f"#chart-{chart} svg")).to_contain_text(f"B = {cell.B:g}")
        expect(page.locator("#chart-ceiling svg")).to_contain_text("chosen")


def test_names_of_curves_stand_at_their_own_curve(opened: Opened) -> None:
    """Next to the cut, where curves are far enough apart to be told from each other."""
    page = opened("aid")
    steps = page.evaluate("""() => [...document.querySelectorAll('#chart-ceiling text')]
      .filter((text) => text.textContent.startsWith("ε = "))
      .map((text) => [text.textContent, text.getBoundingClientRect().x, text.getBoundingClientRect().y])""")
    assert [name for name, _, _ in sorted(steps, key=lambda one: one[2])] == [
        f"ε = {epsilon}" for epsilon in ("4", "2", "1", "0.5", "0.25", "0.1")
    ]
    heights = sorted(y for _, _, y in steps)
    assert min(b - a for a, b in pairwise(heights)) > 12
    assert max(x for _, x, _ in steps) - min(x for _, x, _ in steps) < 1


def test_no_name_is_cut_off(opened: Opened) -> None:
    for name, width in (("aid", 1100), ("lending", 360), ("thousand", 1100)):
        page = opened(name, width=width)
        page.locator("#epsilon").select_option(index=0)  # other points come, with other names
        page.locator("#r-singling_out").fill("0")
        page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100)))")
        cut = page.evaluate("""() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter((text) => text.textContent).filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
              || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          }).map((text) => text.textContent);
        })""")
        assert cut == []


def test_a_point_tells_the_best_guess_and_no_two_kinds_share_a_shape(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    figures = read_figures(made.sweep)
    kinds = {
        "projection", "least-noise", "score", "score-laplace", "decision", "decision-agreed", "mondrian",
        "status quo",
    }  # fmt: skip
    assert {cell.mechanism for cell in made.cells.values()} == kinds
    epsilon = float(page.locator("#epsilon").input_value())
    shown = page.locator('#chart-inference [aria-roledescription="point"]').evaluate_all(
        "(points) => points.map((point) => point.getAttribute('aria-label'))"
    )
    for cell in (cell for cell in made.cells.values() if cell.epsilon in {None, epsilon}):
        said = next(text for text in shown if text.startswith(f"{label(cell)}:"))
        guess, at_2 = (
            percent_up(figures[cell.name][name].mean or 0.0) for name in ("best_guess", "best_guess_at_2")
        )
        assert f"best guess at B: {guess}, at distance 2: {at_2};" in said
    specs = page.evaluate("targetdpPage.specs()")
    (shapes,) = {
        tuple(layer["encoding"]["shape"]["scale"]["range"])
        for layer in specs["chart-inference"]["layer"] if "scale" in layer["encoding"].get("shape", {})
    }  # fmt: skip
    assert len(set(shapes)) == len(shapes) == len(kinds)
