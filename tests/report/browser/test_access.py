"""For everybody: by keyboard, on a phone, on paper, in the dark, and for those who hear the page."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from .conftest import Opened

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
}
SECTIONS = ("answer", "tradeoff", "choose", "ceiling", "meaning", "who", "conditions")

NAMED = """(at) => (at === document.body ? "BODY"
  : at.id || at.name || at.getAttribute("aria-label") || at.getAttribute("href") || at.textContent.trim())"""
VISIBLE = """(query) => [...document.querySelectorAll(query)].filter((at) => at.checkVisibility()).length"""
BEYOND = """([query, right]) => [...document.querySelectorAll(query)]
  .filter((at) => at.checkVisibility() && !at.closest("svg svg, svg *"))
  .filter((at) => at.getBoundingClientRect().right > right + 1).map((at) => at.outerHTML.slice(0, 80))"""
"""What of that kind reaches farther to the right."""

CONTRAST = """(query) => [...document.querySelectorAll(query)].map((element) => {
  // Whatever form a color has, a canvas tells its bytes.
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const bytes = (color) => {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => bytes(color).slice(0, 3).map((byte) => byte / 255)
    .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4))
    .reduce((sum, share, i) => sum + share * [0.2126, 0.7152, 0.0722][i], 0);
  const ink = light(getComputedStyle(element).color);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
})"""


def everything_shown(page: Page) -> None:
    """All that is folded is open, and some settings have faded."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.locator("#r-singling_out").fill("0.6")
    assert 0 < page.locator("#settings tr.pale").count() < page.locator("#settings tbody tr").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 360])
def test_axe_finds_nothing(opened: Opened, scheme: Any, width: int) -> None:
    name = "aid" if (scheme == "light") == (width == 1100) else "lending"
    page = opened(name, width=width, color_scheme=scheme)
    everything_shown(page)
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
    passed = {rule["id"] for rule in found.response["passes"]}
    assert {"color-contrast", "label", "html-has-lang", "button-name"} <= passed  # it did look


def test_axe_would_find_something(opened: Opened) -> None:
    page = opened("bare")
    page.evaluate("document.getElementById('answer-cost').style.color = '#bbb'")
    page.evaluate("document.querySelector('#settings input').removeAttribute('aria-label')")
    found = Axe().run(page, options=RULES).response["violations"]
    assert {rule["id"] for rule in found} == {"color-contrast", "label"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_faded_can_still_be_read(opened: Opened, scheme: Any) -> None:
    page = opened("aid", color_scheme=scheme)
    everything_shown(page)
    ink = page.evaluate(CONTRAST, "#settings tr.fits td")
    pale = page.evaluate(CONTRAST, "#settings tr.pale td")
    assert min(pale) >= 4.5
    assert max(pale) < min(ink)
    faded = page.locator("#chart-singling_out .role-mark.mark-text text[opacity]")
    assert {float(str(text.get_attribute("opacity"))) for text in faded.all()} == {0.7, 1.0}


def test_every_control_is_reached_by_tab(opened: Opened) -> None:
    page = opened("aid")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    reached: list[str] = []
    page.locator("body").press("Tab")
    while (here := page.evaluate(f"({NAMED})(document.activeElement)")) != "BODY":  # once around
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        reached.append(here)
        assert len(reached) < 80
        page.keyboard.press("Tab")
    query = "input:not([type=radio]), select, button, a, summary, [tabindex]"
    controls = page.evaluate(f"[...document.querySelectorAll('{query}')].map({NAMED})")
    assert len(controls) > 20
    assert set(controls) <= set(reached)
    assert "setting" in reached  # one of the radio buttons stands for all
    numbers = [
        reached.index(name) for name in ("n-singling_out", "reset", "download", "setting", "t-epsilon")
    ]
    assert numbers == sorted(numbers)


def test_everything_works_by_keys(opened: Opened) -> None:
    page = opened("aid", accept_downloads=True)
    slider = page.locator("#r-distinguishing")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#n-distinguishing").input_value() == "0.03"
    page.keyboard.press("Home")
    assert page.locator("#n-distinguishing").input_value() == ""
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    expect(slider).to_be_focused()
    page.locator("#n-singling_out").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("0.01")
    first = page.evaluate("targetdpPage.chosen()")
    taken = page.locator("#settings input:checked")
    taken.focus()
    seen = {first}
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        expect(taken).to_be_focused()  # although the table is made anew
        seen.add(page.evaluate("targetdpPage.chosen()"))
    assert len(seen) == 3
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("targetdpPage.chosen()") == first
    page.locator("#epsilon").focus()
    before = page.locator("#epsilon").input_value()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert page.locator("#epsilon").input_value() == "1.9" != before
    page.locator("#download").focus()
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == "request.toml"
    page.locator("#reset").focus()
    page.keyboard.press("Enter")
    assert page.locator("#n-singling_out").input_value() == "0.3"
    for folded in page.locator("summary").all():
        folded.focus()
        assert not folded.evaluate("(at) => at.parentElement.open")
        page.keyboard.press("Enter")
        assert folded.evaluate("(at) => at.parentElement.open")
    page.get_by_role("link", name="Choose").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#choose"


@pytest.mark.parametrize("name", ["aid", "lending", "names"])
def test_a_phone_need_not_scroll_sideways(opened: Opened, name: str) -> None:
    page = opened(name, width=360, has_touch=True, is_mobile=True)
    if name != "names":
        everything_shown(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("innerWidth") == 360
    small = page.evaluate("""() => [...document.querySelectorAll("input, select, button, summary, nav a")]
      .filter((at) => at.checkVisibility()).map((at) => [at.id || at.textContent, at.getBoundingClientRect()])
      .filter(([, box]) => box.width < 24 || box.height < 24).map(([name]) => name)""")
    assert small == []
    assert page.evaluate(BEYOND, ["main p, main figure, main div:not(.scroll *), main ul, svg", 360]) == []


@pytest.mark.parametrize("name", ["aid", "lending"])
def test_on_paper_everything_fits_and_nothing_waits_for_a_click(opened: Opened, name: str) -> None:
    """The width of A4 with margins; charts were drawn for the screen, and nobody draws them anew."""
    page = opened(name, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="light")
    page.evaluate("document.body.style.width = '680px'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100
    for section in SECTIONS:
        assert page.locator(f"#{section} h2").is_visible()
    assert page.evaluate(VISIBLE, "input, select, button, nav, .calculator") == 0
    assert page.evaluate(BEYOND, [".chart svg, table, p, li", 680]) == []
    assert page.locator(".chart svg").count() == (7 if name == "aid" else 6)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    shown = page.locator("#epsilon-shown")
    assert shown.is_visible()
    assert shown.inner_text() == page.locator("#epsilon").input_value()


def test_printing_opens_what_is_folded_and_closes_it_again(opened: Opened, tmp_path: Path) -> None:
    page = opened("aid")
    page.evaluate("""addEventListener("beforeprint", () => {
      const open = [...document.querySelectorAll("details")].filter((one) => one.open);
      window.printed = open.map((one) => one.textContent.trim().slice(0, 12));
    })""")
    printed = page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert printed.startswith(b"%PDF")
    assert page.evaluate("window.printed") == ["Why this one", "The conditio"]
    assert page.locator("details[open]").count() == 0
