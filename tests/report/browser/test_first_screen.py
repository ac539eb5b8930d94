"""The answer at first sight: on one screen, with a base for every number, in the address, for all eyes."""

import re
from itertools import combinations

import numpy as np
import pytest
from playwright.sync_api import Page

from targetdp.tradeoff import Constraint, compare, read_figures

from .conftest import Opened, Recipe
from .reading import STEPS, chosen, columns, fitting, limit, numbers, take, text

SCREEN = {"width": 1280, "height": 720}
PROTECTED = [Constraint("singling_out", at_least=0.3), Constraint("accuracy", at_least=0.1)]
"""What the page of aid was asked for."""


@pytest.mark.parametrize("name", ["aid", "lending", "togo", "unequal", "losses"])
@pytest.mark.parametrize("script", [True, False])
def test_the_answer_is_above_the_fold(opened: Opened, name: str, script: bool) -> None:
    """The recommendation stood below it at 1280 × 720."""
    page = opened(name, **SCREEN, script=script)
    for query in ("#question", "#why", ".flags", ".grid thead", ".grid tbody tr:nth-child(5)"):
        box = page.locator(query).bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= SCREEN["height"], query
    assert page.locator(".grid tbody tr").count() == 5


def test_costs_have_a_base(opened: Opened, page_of: Recipe) -> None:
    """More people were missed, and nobody read of how many, or how many are missed today."""
    made, page = page_of("unequal"), opened("unequal")
    today = read_figures(made.sweep)["status quo"]
    assert today["exclusion_errors"].mean == 767_000
    lead = text(page, "#options .lead")
    assert lead == ""  # figures that it takes are not in this sweep
    shown = columns(page)
    assert "767,000 people" in shown["Today"][1]
    assert "today's worst" in shown["Today"][5]
    for name, (_, missed, *_, hit) in shown.items():
        if name != "Today":
            assert re.search(r"[+−]\d", missed), missed
            assert "points" in hit or "no rise" in hit
    aid = opened("aid")
    lead = text(aid, "#options .lead")
    assert re.fullmatch(
        r"The program gives aid to \S+ people, as many as are poor, and misses \S+ of 100 of the poor today\."
        r"( All figures: from \d+ people\.)?",
        lead,
    )
    for name, (_, missed, *_) in columns(aid).items():
        assert " of 100" in missed, name


def test_the_grid_says_the_figures_of_the_summary(opened: Opened, page_of: Recipe) -> None:
    """Rates rounded up, exposed people rounded up: of the worst attack of each kind."""
    made, page = page_of("aid"), opened("aid")
    comparison, shown = compare(made.sweep, PROTECTED), columns(page)
    figures = read_figures(made.sweep)
    assert [one.name for one in comparison.options] == list(shown)[1:]
    for option in comparison.options:
        found, (head, missed, stranger, insider, guess, _) = figures[option.cell], shown[option.name]
        assert ("recommended" in head) == option.recommended
        rate = found["exclusion_rate"].mean or 0.0
        assert 0 <= float(missed.split(" of 100")[0]) / 100 - rate < 0.001
        exposed = 1 - (found["singling_out"].mean or 0.0)
        assert 0 <= int(stranger.split(" of ")[0].replace(",", "")) / 1000 - exposed < 0.001 + 1e-9
        right, anyway = found["inference"].right, found["inference"].anyway
        assert right is not None
        assert anyway is not None
        assert 0 <= int(insider.split(" of ")[0].replace(",", "")) / 1000 - right < 0.001 + 1e-9
        least = int(re.findall(r"the release: ([\d,]+)", insider)[0].replace(",", "")) / 1000
        assert 0 <= anyway - least < 0.001 + 1e-9
        near = found["best_guess"].mean or 0.0
        assert 0 <= float(re.findall(r"([\d.]+) of 100", guess)[0]) / 100 - near < 0.001 + 1e-9


def test_options_can_be_looked_at_by_clicking_their_names(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("aid"), opened("aid")
    by_number = {i: name for name, i in numbers(made).items()}
    for i in (1, 2, 3):
        page.locator(f".grid label[for=o{i}]").click()
        number = int(str(page.locator(f"#o{i}").get_attribute("value")))
        assert chosen(page) == by_number[number]
        tags = page.locator(f"th.c{i} em").filter(visible=True).all_inner_texts()
        assert "recommended" in tags or "your choice" in tags
        assert text(page, "#s-name") == list(columns(page))[i]


def test_tags_and_reason_follow_the_limits(opened: Opened) -> None:
    """An option that missed a limit was marked as it was when the page began."""
    page = opened("aid")
    before = text(page, "#why")
    assert "would be recommended:" in before
    limit(page, best_guess="68")
    assert text(page, "#why").startswith("With your limits ")
    assert "With your limits" not in before
    out = [name for name, column in columns(page).items() if "limit missed: best guess" in column[0]]
    assert out
    assert "recommended" in columns(page)["Your choice"][0]
    assert page.locator(".limits-said").filter(visible=True).count() == 0
    limit(page, best_guess="50")
    assert text(page, "#why") == "Nothing is recommended: no setting meets your limits."
    page.locator("#reset").click()
    assert text(page, "#why") == before
    assert page.locator(".limits-said").filter(visible=True).count() > 0


def test_reloading_and_sharing_keep_the_choice(opened: Opened, page_of: Recipe) -> None:
    """Reloading lost it."""
    made, page = page_of("aid"), opened("aid")
    begun = chosen(page)
    assert page.evaluate("location.hash") == ""
    limit(page, singling_out="20,5", extra_exclusion_errors="1234.5")
    other = next(one for one in reversed(fitting(page)) if one != begun)
    take(page, numbers(made)[other])
    said = {"verdict": text(page, "#verdict"), "limits": text(page, "#s-limits"), "why": text(page, "#why")}
    kept = page.evaluate("location.hash")

    def is_the_same(shown: Page) -> None:
        assert chosen(shown) == other
        assert shown.locator("#n-singling_out").input_value() == "20.5"
        assert shown.locator("#n-extra_exclusion_errors").input_value() == "1234.5"
        assert text(shown, "#verdict") == said["verdict"]
        assert text(shown, "#s-limits") == said["limits"]
        assert text(shown, "#why") == said["why"]

    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    is_the_same(page)
    is_the_same(opened("aid", kept=kept))  # sent to somebody else
    page.get_by_role("link", name="Check your answers").click()
    assert page.evaluate("location.hash").startswith("#check?")
    assert chosen(page) == other
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    is_the_same(page)
    page.locator("#reset").click()
    assert chosen(page) == begun
    assert page.evaluate("location.hash") == "#check"


@pytest.mark.parametrize(
    "kept",
    ["#check?setting=nothing", "#nowhere?singling_out=2", "#?singling_out=abc&best_guess=-1", "#%E0%A4%A?x",
     "#protect?constructor=1&__proto__=2&setting=__proto__"],
)  # fmt: skip
def test_an_address_that_somebody_else_wrote_breaks_nothing(opened: Opened, kept: str) -> None:
    page, plain = opened("aid", kept=kept), opened("aid")
    assert chosen(page) == chosen(plain)
    assert fitting(page) == fitting(plain)


@pytest.mark.parametrize("name", ["aid", "lending"])
def test_without_a_script_all_is_there_to_read(opened: Opened, name: str) -> None:
    """Nothing was drawn: a browser may run no scripts, and a mail program never does."""
    page, dead = opened(name), opened(name, script=False)
    assert columns(dead) == columns(page)
    for query in (
        "svg.wide .pt",
        "#settings tbody tr",
        "#groups tbody tr",
        ".curve-chart",
        "#every tbody tr",
    ):
        assert dead.locator(query).count() == page.locator(query).count()
    assert dead.locator("svg.wide").is_visible()
    assert dead.locator("#settings").is_visible()  # no tabs: both stand there
    for query in (
        "#why", "#verdict", "#s-cost", "#s-exchange", "#s-label", "#s-limits", "#s-steps", "#worst-hit",
        "#s-promise",
    ):  # fmt: skip
        if page.locator(query).count():
            assert text(dead, query) == text(page, query)
    for step in STEPS:
        assert dead.locator(f"#{step} h1, #{step} h2").is_visible()
    assert dead.locator("button, input[type=text], select").filter(visible=True).count() == 0


def test_what_was_said_of_other_limits_is_not_said_any_more(opened: Opened) -> None:
    """Why another setting is recommended was printed beside the one that is chosen."""
    page = opened("lending")
    begun = page.locator("main").inner_text()
    assert "A sample that agreed" in begun
    assert page.locator("#check details").is_visible()
    limit(page, singling_out="99", inference="95")
    said = page.locator("main").inner_text()
    assert "A sample that agreed" not in said
    assert "would meet every constraint" not in said
    assert page.locator("#check details").is_hidden()


def test_limits_that_came_with_the_address_are_called_so(opened: Opened, page_of: Recipe) -> None:
    """Whoever sends a link may have loosened them."""
    made, page = page_of("aid"), opened("aid")
    assert page.locator("#from-address").is_hidden()
    weakest = fitting(page)[0]
    limit(page, singling_out="")
    take(page, numbers(made)[weakest])
    assert page.locator("#from-address").is_hidden()  # whoever reads it did it
    other = opened("aid", kept=page.evaluate("location.hash"))
    assert chosen(other) == weakest
    assert other.locator("#from-address").is_visible()
    assert "“Your choice”" not in text(other, "#why")
    other.locator("#forget").click()
    assert other.locator("#from-address").is_hidden()
    assert chosen(other) == chosen(opened("aid"))
    assert other.locator("#n-singling_out").input_value() == "30"


def test_a_page_without_a_script_asks_for_the_same(opened: Opened) -> None:
    page, dead = opened("aid"), opened("aid", script=False)
    lines = [
        line for line in str(page.locator("#toml").text_content()).splitlines() if not line.startswith("#")
    ]
    told = str(dead.locator("#toml").text_content()).splitlines()
    assert set(lines) - {line for line in lines if line.startswith("asked_on")} <= set(told)
    assert any(line.startswith("limits = ") for line in told)


# Colors, for all eyes: by the contrast of luminance, and as people with two kinds of cones see them.

COLORS = """() => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(document.documentElement);
  const kinds = [0, 1, 2, 3, 4, 5].map((i) => `--f${i}`);
  return Object.fromEntries(["--dot", "--half", "--none", "--paper", ...kinds].map((name) => {
    context.fillStyle = style.getPropertyValue(name);
    context.fillRect(0, 0, 1, 1);
    return [name, [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)];
  }));
}"""

SEEN_BY = {
    "everybody": np.eye(3),
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                     [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                       [-0.011820, 0.042940, 0.968881]],
    "no blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                      [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
"""Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB."""


def linear(color: list[int]) -> np.ndarray:
    share = np.array(color) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which distances are about as eyes see them."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    f = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 1e-4))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_survive_gray_copies_and_colorblind_eyes(opened: Opened, scheme: str) -> None:
    """Kinds of release have shapes and names, too; dots have colors alone, which differ in lightness."""
    found = opened("aid", color_scheme=scheme).evaluate(COLORS)
    seen = {
        eyes: {name: lab(np.clip(np.array(matrix) @ linear(color), 0, 1)) for name, color in found.items()}
        for eyes, matrix in SEEN_BY.items()
    }
    for eyes, colors in seen.items():
        for one, other in combinations(("--dot", "--half", "--none"), 2):
            assert abs(colors[one][0] - colors[other][0]) > 10, (eyes, one, other)
        for one, other in combinations([f"--f{i}" for i in range(6)], 2):
            assert np.linalg.norm(colors[one] - colors[other]) > 20, (eyes, one, other)
        for i in range(6):
            assert abs(colors[f"--f{i}"][0] - colors["--paper"][0]) > 30
