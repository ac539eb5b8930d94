"""For everybody: by keyboard, on a phone, on paper, in the dark, and for those who hear the page."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from .conftest import Opened, Recipe
from .reading import OPEN, STEPS, chosen, columns, fitting, limit

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
}
NAMED = """(at) => (at === document.body ? "BODY"
  : at.id || at.name || at.getAttribute("aria-label") || at.getAttribute("href") || at.textContent.trim())"""
VISIBLE = """(query) => [...document.querySelectorAll(query)].filter((at) => at.checkVisibility()).length"""
BEYOND = """([query, right]) => [...document.querySelectorAll(query)]
  .filter((at) => at.checkVisibility() && !at.closest("svg *, .unseen"))
  .filter((at) => at.getBoundingClientRect().right > right + 1).map((at) => at.outerHTML.slice(0, 80))"""
"""What of that kind reaches farther to the right."""

LABELS = """(cells) => cells.map((cell) =>
  JSON.parse(getComputedStyle(cell, "::before").content.replace(/ ?"$/, '"')))"""
"""What stands before the cells of a table."""

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
    """All that is folded is open, both tabs are, and some settings have faded."""
    page.evaluate(OPEN)
    page.evaluate("document.getElementById('as-table').style.display = ''")
    limit(page, singling_out="60")
    assert 0 < page.locator("#every tr.faded").count() < page.locator("#every tbody tr").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 360])
def test_axe_finds_nothing(opened: Opened, scheme: Any, width: int) -> None:
    name = "aid" if (scheme == "light") == (width == 1100) else "lending"
    page = opened(name, width=width, color_scheme=scheme)
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    for show in (lambda _: None, everything_shown):  # as it begins, and with all that it has
        show(page)
        found = Axe().run(page, options=RULES)
        assert found.violations_count == 0, found.generate_report()
        passed = {rule["id"] for rule in found.response["passes"]}
        assert {"color-contrast", "label", "html-has-lang", "button-name"} <= passed  # it did look


def test_axe_finds_nothing_without_a_script(opened: Opened, page_of: Recipe) -> None:
    """Axe is a script itself: the page's own is taken out."""
    whole = page_of("aid").html.read_text(encoding="utf-8")
    page = opened("aid")
    page.set_content(whole[: whole.index("<script>")] + "</body></html>")
    assert page.locator("body[data-ready]").count() == 0
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()


def test_axe_would_find_something(opened: Opened) -> None:
    page = opened("bare")
    page.evaluate("document.getElementById('why').style.color = '#bbb'")
    page.evaluate("document.querySelector('label[for=asked-by]').remove()")
    found = Axe().run(page, options=RULES).response["violations"]
    assert {rule["id"] for rule in found} == {"color-contrast", "label"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_faded_can_still_be_read(opened: Opened, scheme: Any) -> None:
    page = opened("aid", color_scheme=scheme)
    everything_shown(page)
    ink = page.evaluate(CONTRAST, "#every tr[data-i]:not(.faded) td")
    pale = page.evaluate(CONTRAST, "#every tr.faded td")
    assert min(pale) >= 4.5
    assert max(pale) < min(ink)


def test_every_control_is_reached_by_tab(opened: Opened) -> None:
    page = opened("aid")
    page.evaluate(OPEN)
    reached: list[str] = []
    page.locator("body").press("Tab")
    while (here := page.evaluate(f"({NAMED})(document.activeElement)")) != "BODY":  # once around
        seen = page.evaluate("""() => {
          const at = document.activeElement, head = document.querySelector(`th:has(label[for="${at.id}"])`);
          return getComputedStyle(at.name === "option" ? head : at).outlineStyle;
        }""")
        assert seen != "none", here
        reached.append(here)
        assert len(reached) < 80
        page.keyboard.press("Tab")
    query = "input:not([type=radio]), select, button, a, summary, [tabindex='0']"
    controls = page.evaluate(
        f'[...document.querySelectorAll("{query}")].filter((at) => at.checkVisibility() && at.tabIndex >= 0)'
        f".map({NAMED})"
    )
    assert len(controls) > 20
    assert set(controls) <= set(reached)
    order = ("n-singling_out", "reset", "n-extra_exclusion_errors", "tab-chart", "n-worst_group_rate",
             "asked-by", "asked-on", "asked-why", "download")  # fmt: skip
    numbers = [reached.index(name) for name in order]
    assert numbers == sorted(numbers)
    # Of radio buttons the one that is checked stands for all: an option, and a setting.
    assert {"o1", "o2", "o3"} & set(reached)
    assert "setting" in reached


def test_everything_works_by_keys(opened: Opened) -> None:
    page = opened("aid", accept_downloads=True)
    first = chosen(page)
    taken = page.locator("input[name=option]:checked")
    taken.focus()
    seen = [first]
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        expect(taken).to_be_focused()
        seen.append(chosen(page))
    assert len(set(seen)) == 3
    assert seen[-1] == first  # around, and the hidden column is none
    page.locator("#n-singling_out").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("1")
    assert len(fitting(page)) > 10
    page.locator("#tab-chart").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-table")).to_be_focused()
    best = page.locator("input[name=best]:checked")
    best.focus()
    before = chosen(page)
    page.keyboard.press("ArrowDown")
    expect(best).to_be_focused()
    assert chosen(page) != before
    page.keyboard.press("ArrowUp")
    assert chosen(page) == before
    for name, words in (("asked-by", "Ministry of Finance"), ("asked-why", "winter")):
        page.locator(f"#{name}").focus()
        page.keyboard.type(words)
    page.locator("#download").focus()
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == "request.toml"
    page.locator("#reset").focus()
    page.keyboard.press("Enter")
    assert page.locator("#n-singling_out").input_value() == "30"
    for folded in page.locator("summary").all():
        folded.focus()
        assert not folded.evaluate("(at) => at.parentElement.open")
        page.keyboard.press("Enter")
        assert folded.evaluate("(at) => at.parentElement.open")
    page.get_by_role("link", name="Send the request").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#send"


@pytest.mark.parametrize(
    ("name", "script"), [("aid", True), ("aid", False), ("lending", True), ("names", True)]
)
def test_a_phone_need_not_scroll_sideways(opened: Opened, name: str, script: bool) -> None:
    """Tables were cut off: each of their cells stands on the screen now, with the name of its column."""
    page = opened(name, width=360, has_touch=True, is_mobile=True, script=script)
    if name != "names" and script:
        everything_shown(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("innerWidth") == 360
    small = page.evaluate("""() =>
      [...document.querySelectorAll("input, select, button, summary, nav a, .tabs label")]
      .filter((at) => at.checkVisibility() && !at.closest("#every") && at.name !== "option")
      .map((at) => [at.id || at.textContent, (at.closest("label") || at).getBoundingClientRect()])
      .filter(([, box]) => box.width < 24 || box.height < 24).map(([name]) => name)""")
    assert small == []
    everywhere = "main p, figure, main ul, svg, .grid td, .grid th, #settings td, #settings th, #groups td"
    assert page.evaluate(BEYOND, [everywhere, 360]) == []
    if not script:
        assert page.locator(".fits").filter(visible=True).count() == 0
    for table in ("#settings", "#groups"):
        headings = [str(one).strip() for one in page.locator(f"{table} thead th").all_text_contents()]
        for row in page.locator(f"{table} tbody tr").all():
            told = row.locator("td").evaluate_all(LABELS)
            assert told == [one if one.endswith("?") else f"{one}:" for one in headings[1:]]


@pytest.mark.parametrize("script", [True, False])
def test_a_phone_shows_one_option_at_a_time_beside_today(opened: Opened, script: bool) -> None:
    """With names: options lost theirs. It works by style alone."""
    page = opened("aid", width=390, height=844, script=script)
    names = [one.removesuffix(" ✓") for one in page.locator(".tabs label").all_inner_texts() if one]
    assert names[:3] == ["Light", "Balanced", "Strong"]
    for i, name in enumerate(names[:3], 1):
        page.locator(f".tabs label[for=o{i}]").click()
        heads = page.locator(".grid thead b").filter(visible=True).all_inner_texts()
        assert [head.removesuffix(" ✓") for head in heads] == ["Today", name]
        assert page.locator(".grid tbody td").filter(visible=True).count() == 10
        if script:
            assert list(columns(page)) == ["Today", name]


@pytest.mark.parametrize("width", [700, 768, 1024])
def test_on_a_tablet_no_group_is_cut_off(opened: Opened, width: int) -> None:
    """The number of people stood beyond the edge at 768."""
    page = opened("togo", width=width)
    table = page.locator(".scroll:has(#groups)")
    assert table.evaluate("(at) => at.scrollWidth - at.clientWidth") <= 0


@pytest.mark.parametrize("script", [True, False])
def test_both_columns_of_a_phone_are_equally_wide(opened: Opened, script: bool) -> None:
    """An interval that did not break made one row's columns others than those of the heading."""
    page = opened("togo", width=390, height=844, script=script)
    cells = page.locator(".grid thead th, .grid tbody td").filter(visible=True).all()
    boxes = [cell.bounding_box() for cell in cells]
    assert len(boxes) == 12
    widths = [box["width"] for box in boxes if box is not None]
    assert max(widths) - min(widths) < 2


@pytest.mark.parametrize(
    ("name", "script"), [("aid", True), ("lending", True), ("togo", True), ("aid", False)]
)
def test_on_paper_at_most_five_pages_and_no_heading_apart(opened: Opened, name: str, script: bool) -> None:
    """Nine pages parted headings from charts."""
    page = opened(name, color_scheme="dark", script=script)
    headings = {" ".join(one.split()) for one in page.locator("h2, #as-chart h3").all_inner_texts()}
    captions = [" ".join(one.split())[:30] for one in page.locator("figcaption").all_inner_texts() if one]
    sheets = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True, print_background=True))).pages
    assert 2 <= len(sheets) <= 5
    texts = [[" ".join(line.split()) for line in one.extract_text().splitlines()] for one in sheets]
    texts = [[line for line in lines if line] for lines in texts]
    everything = " ".join(line for lines in texts for line in lines)
    for words in ("What must be protected?", "Who bears it?", "Send the request", "Conditions"):
        assert words in everything
    assert "Download" not in everything
    # Figures keep the conditions under which they hold: at a small B the best guess is about people alike.
    table = page.locator("#settings tbody tr:is(:not(.more), .taken)").all()
    assert 4 < len(table) <= 13
    assert name == "togo" or page.locator("#settings tbody tr").count() > 13
    for words in ("if they are alike", "any two people", "without the release:", "column "):
        seen = sum(words in " ".join(str(row.text_content()).split()) for row in table)
        assert everything.count(words) >= seen
        assert seen or name != "aid"
    for lines in texts[:-1]:
        assert not any(lines[-1] and heading.endswith(lines[-1]) for heading in headings), lines[-1]
        assert not lines[-1].startswith(("Why ", "\u25bc Why ", "\u25be Why ")), lines[-1]
    title = " ".join(str(page.locator("#as-chart h3").text_content()).split())[:40]
    begun = [i for i, lines in enumerate(texts) if title in " ".join(lines)]
    told = [i for i, lines in enumerate(texts) if captions[0] in " ".join(lines)]
    assert begun == told  # the chart is between them
    assert len(begun) == 1


def test_print_is_light_and_without_controls(opened: Opened) -> None:
    page = opened("aid", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="light")
    page.evaluate("document.body.style.width = '700px'")
    for step in STEPS[1:]:
        assert page.locator(f"#{step} h2").is_visible()
    assert page.evaluate(VISIBLE, "input, select, button, nav") == 0
    assert page.evaluate(BEYOND, ["svg, table, p, li, .grid .whole, .grid small", 700]) == []
    over = "(cells) => cells.filter((at) => at.scrollWidth > at.clientWidth).map((at) => at.textContent)"
    assert page.locator(".grid td, .grid th, #settings td, #groups td:not(.bars)").evaluate_all(over) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#as-chart svg.wide").is_visible()
    assert page.locator("#settings").is_visible()  # chart and table, although a screen shows one of them
    assert page.locator("#asked-said").is_visible()


def test_printing_opens_what_is_folded_and_closes_it_again(opened: Opened, tmp_path: Path) -> None:
    page = opened("aid")
    page.evaluate("""addEventListener("beforeprint", () => {
      const open = [...document.querySelectorAll("details")].filter((one) => one.open);
      window.printed = open.map((one) => one.textContent.trim().slice(0, 12));
    })""")
    printed = page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert printed.startswith(b"%PDF")
    assert page.evaluate("window.printed") == ["Why Light is"]
    assert page.locator("details[open]").count() == 0
