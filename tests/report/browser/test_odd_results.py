"""Results that are not as usual: the page still says what is the case."""

import json
import os
import stat
from pathlib import Path

import pytest
from playwright.sync_api import Page
from typer.testing import CliRunner

from targetdp.cli import app
from targetdp.programs import MARK
from targetdp.report._page._render import LARGEST
from targetdp.tradeoff import Constraint, recommend

from .conftest import Opened, Recipe
from .pages import HOSTILE

SECTIONS = ("answer", "tradeoff", "choose", "ceiling", "meaning", "who", "conditions")


def text(page: Page, query: str) -> str:
    return page.locator(query).inner_text().replace("\u00a0", " ")


def test_one_setting_one_column_one_simulation_and_no_groups(opened: Opened) -> None:
    page = opened("bare")
    assert text(page, "#verdict") == "1 of 1 settings meets your limits."
    assert page.locator("#settings tbody tr").count() == 1
    answer = text(page, "#answer")
    assert "poor people would be missed (95% interval: " in answer  # it knows sampling
    assert "one of two at distance B = 2" in answer
    assert "For the two most different people" not in answer  # they are those at distance 2
    assert "It is the only cell that satisfies every constraint" in str(
        page.locator("#answer details").text_content()
    )
    assert "hidden value" not in answer  # one column: nothing to infer from
    assert "“Hidden values not guessed, even by an insider” was not measured in this sweep." in text(
        page, "#tradeoff"
    )
    assert page.locator("#tradeoff figure").count() == 2
    assert page.locator("#needs input[type=range]").count() == 4  # no groups, nothing to infer
    assert "run without groups" in text(page, "#who")
    assert page.locator("#who svg").count() == 0
    assert page.locator("#chart-singling_out [aria-roledescription=point]").count() == 2
    page.locator("#n-main").fill("-1000")
    assert "None of the 1 settings meets all of your limits" in text(page, "#verdict")


def test_a_loss_everywhere(opened: Opened) -> None:
    page = opened("losses")
    answer = text(page, "#answer")
    assert "The lender's profit would be −$" in answer
    assert "today it is −$" in answer
    assert "Today's profit is not positive, so that a share of it says nothing." in answer
    assert "% of today's" not in answer
    ticks = page.locator("#chart-singling_out .role-axis-label text").all_text_contents()
    assert sum(tick.startswith("−") for tick in ticks) >= 3
    assert all("−" in row for row in page.locator("#settings tbody td:nth-child(4)").all_inner_texts())
    page.locator("#r-main").fill("900")
    assert float(page.locator("#n-main").input_value()) < 0
    page.locator("#n-main").fill("0")
    assert "“profit of at least” rules out the most" in text(page, "#verdict")
    assert page.locator("#groups tbody tr").count() == 0  # nothing is chosen
    page.locator("#n-main").fill("")
    assert page.locator("#groups tbody tr").count() == 2


def test_names_are_shown_and_never_run(opened: Opened) -> None:
    page = opened("names")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.title().startswith(HOSTILE[3].replace("\u2028", "")[:40])
    assert text(page, "h1").startswith("</script><!-- {{ 7 * 7 }} @features@ $& ${1}")
    assert page.locator("#people tbody td:first-child").all_text_contents() == list(HOSTILE)
    column = HOSTILE[0].replace("=", "&lt;")
    groups = [f"{column}: {HOSTILE[1]}", f"{column}: {HOSTILE[2]}"]
    assert sorted(page.locator("#groups tbody td:first-child").all_text_contents()) == sorted(groups)
    labels = page.locator("#chart-groups .role-axis-label text").all_text_contents()
    assert any(label.startswith("<script>window.hacked") for label in labels)
    assert page.evaluate("document.querySelectorAll('script').length") == 4
    assert "−0" not in page.locator("#people td").all_text_contents()
    # Tooltips are made of names, too.
    page.locator("#chart-groups [aria-roledescription=point]").first.hover()
    page.locator("#vg-tooltip-element.visible").wait_for()
    assert "<script>window.hacked" in text(page, "#vg-tooltip-element")
    assert page.evaluate("window.hacked") is None


def test_figures_that_are_undefined(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("undefined"), opened("undefined")
    found = recommend(made.sweep, [Constraint("singling_out", at_least=0.1)])
    assert found.chosen is not None
    assert page.evaluate("targetdpPage.chosen()") == found.chosen.name
    many = page.locator("#settings tbody tr").count()
    assert text(page, "#verdict") == f"{many} of {many} settings meet your limits."
    values = page.locator("#settings tbody td:nth-child(4)").all_inner_texts()
    lost = values.count("–")
    offered = [int(str(one.get_attribute("value"))) for one in page.locator("#settings input").all()]
    assert lost == sum(place % 2 for place in offered) > 0
    assert values[-lost:] == ["–"] * lost  # what is unknown is not best
    assert "undefined" not in text(page, "#answer-cost")
    page.locator("#settings tbody input").last.check()
    assert "How many more poor people would be missed is undefined." in text(page, "#picked")
    assert "Guesses at a hidden value" not in text(page, "#picked")  # that attack has no figure
    shown = page.locator("#chart-singling_out [aria-roledescription=point]").count()
    assert 0 < shown < len(made.cells)
    assert page.locator("#chart-inference [aria-roledescription=point]").count() == 0
    page.locator("#n-main").fill("1000000")
    assert text(page, "#verdict") == f"{many - lost} of {many} settings meet your limits."
    page.locator("#n-main").fill("")
    page.locator("#n-inference").fill("0")
    assert "“hidden values not guessed, even by an insider” rules out the most" in text(page, "#verdict")


def test_nothing_to_choose_from(opened: Opened) -> None:
    """k-anonymity guarantees nothing, so that nothing can be recommended."""
    page = opened("unprotected")
    nothing = "This sweep has no setting that could be released with a guarantee."
    assert nothing in text(page, "#answer")
    assert "Loosen" not in text(page, "#answer")
    assert text(page, "#verdict") == nothing
    assert page.locator("#download").is_disabled()
    assert page.locator("#picked").is_hidden()
    assert "No setting of this sweep has a guarantee" in text(page, "#ceiling")
    assert "No setting of this sweep has a B." in text(page, "#meaning")
    assert page.locator("#epsilon").count() == 0
    assert page.locator("#chart-singling_out [aria-roledescription=point]").count() == 3
    page.locator("#r-singling_out").fill("0.01")
    assert page.locator("#chart-singling_out [aria-label*='met, but it has no guarantee']").count() > 0


def test_a_thousand_settings(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("thousand"), opened("thousand")
    assert len(made.cells) == 1001
    assert made.html.stat().st_size < LARGEST
    assert page.locator("#epsilon option").count() == 10
    assert page.locator("#settings tbody tr").count() == 200
    assert "more settings are not listed here" in text(page, "#unlisted")
    assert page.locator("#tradeoff details tbody tr").count() == 1001
    assert page.locator("#chart-singling_out [aria-roledescription=point]").count() == 101
    page.locator("#n-singling_out").fill("0.84")
    fits = page.evaluate("targetdpPage.fitting().length")
    assert 0 < fits < 50
    assert page.locator("#settings tr.fits").count() == fits
    assert text(page, "#verdict") == f"{fits} of 1000 settings meet your limits."
    seconds = page.evaluate("""() => {
      const begin = performance.now(), slider = document.getElementById("r-singling_out");
      for (const place of [0.2, 0.4, 0.6, 0.8]) {
        slider.value = place;
        slider.dispatchEvent(new Event("input"));
        document.body.offsetHeight;  // lay it out
      }
      return (performance.now() - begin) / 4000;
    }""")
    assert seconds < 5  # far above what it takes: only a page that hangs is caught


def test_confidential_rows_are_marked_in_every_section(opened: Opened) -> None:
    page = opened("confidential")
    for section in SECTIONS:
        assert MARK in text(page, f"#{section}")
    assert MARK in text(page, "header")
    assert "confidential rows" in text(page, "#conditions")
    assert "invented" not in text(page, "header")


def test_an_official_sees_confidential_figures_only_with_a_reason(
    opened: Opened, page_of: Recipe, tmp_path: Path
) -> None:
    made, out = page_of("confidential"), tmp_path / "page.html"
    base = ["report", str(made.sweep), "--out", str(out), "--for", "official", "--singling-out", "0.1"]
    refused = CliRunner().invoke(app, base)
    assert refused.exit_code != 0
    assert "for the data holder only" in str(refused.exception)
    assert not out.exists()
    reason = "the minister <b>asked</b> & the board agreed"
    assert CliRunner().invoke(app, [*base, "--show-confidential", reason]).exit_code == 0
    line = json.loads((made.sweep / "overrides.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert line["reason"] == reason
    assert stat.S_IMODE(out.stat().st_mode) & 0o077 == 0 or os.geteuid() == 0
    page = opened(out)
    for section in SECTIONS:
        assert f"“{reason}”" in text(page, f"#{section}")
    assert page.locator("b").count() == 0


@pytest.mark.parametrize("name", ["bare", "unprotected", "undefined", "confidential"])
def test_odd_pages_fit_a_phone(opened: Opened, name: str) -> None:
    page = opened(name, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
