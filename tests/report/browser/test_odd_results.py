"""Results that are not as usual: the page still says what is the case."""

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from targetdp.cli import app
from targetdp.programs import MARK
from targetdp.report._page._render import LARGEST
from targetdp.tradeoff import Constraint, recommend

from .conftest import Opened, Recipe
from .pages import HOSTILE
from .reading import STEPS, chosen, columns, fitting, limit, take, text


def test_one_setting_one_column_one_simulation_and_no_groups(opened: Opened) -> None:
    page = opened("bare")
    assert text(page, "#verdict") == "1 of 1 settings meets your limits."
    assert page.locator("input[name=setting]").count() == 1
    assert list(columns(page)) == ["Today", "The one setting"]
    answer = text(page, "#picked")
    assert "poor people would be missed (95% interval: " in answer  # it knows sampling
    assert "one of two at distance B = 2" in answer
    assert "If the two are as different as can be" not in answer  # they are those at distance 2
    assert "It is the only cell that satisfies every constraint" in str(
        page.locator("#check details").text_content()
    )
    assert "hidden value" not in answer  # one column: nothing to infer from
    assert columns(page)["The one setting"][3].startswith("–")
    assert "“Hidden values not guessed, even by an insider” was not measured in this sweep." in text(
        page, "#annex"
    )
    fields = {str(one.get_attribute("id")) for one in page.locator(".limit input").all()}
    assert fields == {"n-singling_out", "n-best_guess", "n-extra_exclusion_errors"}  # no groups, no guesses
    assert "run without groups" in text(page, "#bear")
    assert page.locator("#groups").count() == 0
    assert page.locator("svg.wide .pt").count() == 2
    limit(page, extra_exclusion_errors="-1000")
    assert "None of the 1 settings meets all of your limits" in text(page, "#verdict")


def test_a_loss_everywhere(opened: Opened) -> None:
    page = opened("losses")
    answer = text(page, "#picked")
    assert "The lender's profit would be −$" in answer
    assert "today it is −$" in answer
    assert "−$" not in str(page.locator("#picked").inner_text())  # a line could end between the two
    assert "Today's profit is not positive, so that a share of it says nothing." in answer
    assert "% of today's" not in answer
    assert all(column[1].startswith("−$") for column in columns(page).values())
    ticks = page.locator("svg.wide text.tick").all_text_contents()
    assert sum(tick.startswith("−") for tick in ticks) >= 3
    limit(page, profit="0")
    assert "“profit ($)” rules out the most" in text(page, "#verdict")
    assert page.locator("#groups").is_hidden()  # nothing is chosen
    limit(page, profit="")
    assert page.locator("#groups tbody tr").count() == 2


def test_names_are_shown_and_never_run(opened: Opened) -> None:
    page = opened("names")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.locator("#people tbody th").all_text_contents() == list(HOSTILE)
    column = HOSTILE[0].replace("=", "&lt;")
    groups = [f"{column}: {HOSTILE[1]}", f"{column}: {HOSTILE[2]}"]
    assert sorted(page.locator("#groups tbody th").all_text_contents()) == sorted(groups)
    assert "HYPERLINK" in " ".join(columns(page)["Strong"])
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert "−0" not in page.locator("#people td").all_text_contents()
    for one in page.locator("input[name=setting]").all()[-3:]:  # what the script writes anew is text, too
        take(page, int(str(one.get_attribute("value"))))
    assert page.evaluate("window.hacked") is None
    assert page.locator("#options img, #groups img").count() == 0


def test_figures_that_are_undefined(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("undefined"), opened("undefined")
    found = recommend(made.sweep, [Constraint("singling_out", at_least=0.1)])
    assert found.chosen is not None
    assert chosen(page) == found.chosen.name
    offered = [int(str(one.get_attribute("value"))) for one in page.locator("input[name=setting]").all()]
    assert text(page, "#verdict") == f"{len(offered)} of {len(offered)} settings meet your limits."
    lost = [place for place in offered if place % 2]
    assert lost
    for place in offered:
        value = page.locator(f'#every tr[data-i="{place}"] td').first.text_content()
        assert (value == "–") == (place in lost)
    take(page, lost[0])
    assert columns(page)["Your choice"][1:4] == [
        "–\nnot measured",
        columns(page)["Your choice"][2],
        "–\nnot measured",
    ]
    assert "How many more poor people would be missed is undefined." in text(page, "#picked")
    assert "Guesses at a hidden value" not in text(page, "#picked")  # that attack has no figure
    drawn = {int(str(one.get_attribute("data-i"))) for one in page.locator("svg.wide .pt").all()}
    assert drawn
    assert not any(place % 2 for place in drawn)
    limit(page, extra_exclusion_errors="1000000")
    many = len(offered) - len(lost)
    assert text(page, "#verdict") == f"{many} of {len(offered)} settings meet your limits."
    limit(page, extra_exclusion_errors="", inference="0")
    assert "“hidden values not guessed” rules out the most" in text(page, "#verdict")


def test_nothing_to_choose_from(opened: Opened) -> None:
    """k-anonymity guarantees nothing, so that nothing can be recommended."""
    page = opened("unprotected")
    nothing = "This sweep has no setting that could be released with a guarantee"
    assert nothing in text(page, "#why")
    assert "Loosen" not in text(page, "#why")
    assert text(page, "#verdict").startswith(nothing)
    assert page.locator("#download, #picked, .curve-chart").count() == 0
    assert list(columns(page)) == ["Today"]
    assert "There is nothing to ask for." in text(page, "#send")
    assert page.locator("svg.wide .pt").count() == 2  # the third costs far more than the best of its kind
    assert "1 that cost more" in text(page, "#as-chart figcaption")
    page.get_by_role("tab", name="Table").click()
    assert "for comparison only" in text(page, "#settings")
    limit(page, singling_out="1")
    assert text(page, "#verdict").startswith(nothing)


def test_a_thousand_settings(opened: Opened, page_of: Recipe) -> None:
    made, page = page_of("thousand"), opened("thousand")
    assert len(made.cells) == 1001
    assert made.html.stat().st_size < LARGEST
    assert page.locator("#every tbody tr").count() < 1001
    assert "more are in summary.parquet" in text(page, "#every")
    assert page.locator("svg.wide .pt").count() > 300
    limit(page, singling_out="84")
    fits = len(fitting(page))
    assert 0 < fits < 50
    assert text(page, "#verdict") == f"{fits} of 1000 settings meet your limits."
    seconds = page.evaluate("""() => {
      const begin = performance.now(), field = document.getElementById("n-singling_out");
      for (const share of [20, 40, 60, 80]) {
        field.value = share;
        field.dispatchEvent(new Event("input"));
        document.body.offsetHeight;  // lay it out
      }
      return (performance.now() - begin) / 4000;
    }""")
    assert seconds < 5  # far above what it takes: only a page that hangs is caught


def test_confidential_rows_are_marked_in_every_section(opened: Opened) -> None:
    page = opened("confidential")
    for section in STEPS:
        assert MARK in text(page, f"#{section}")
    assert "confidential rows" in text(page, "#annex")
    assert "invented" not in text(page, "#options").lower()


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
    for section in STEPS:
        assert f"“{reason}”" in text(page, f"#{section}")
    assert page.locator("b", has_text="asked").count() == 0


@pytest.mark.parametrize("name", ["bare", "unprotected", "undefined", "confidential"])
def test_odd_pages_fit_a_phone(opened: Opened, name: str) -> None:
    page = opened(name, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
