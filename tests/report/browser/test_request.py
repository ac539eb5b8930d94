"""The request that goes out: filled in on the page, downloaded, and read by the desk."""

import json
import random
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from support.tradeoff import study
from targetdp._files import plain_name
from targetdp.release import Request, read_request
from targetdp.report import content, page
from targetdp.tradeoff import Sweep, request_text, run

from .conftest import Opened, Recipe
from .pages import ONE_CELL
from .reading import fitting, limit, numbers, take, text

OWN = {"asked_by", "asked_on", "why", "limits"}
"""What a page adds to the request of a setting."""

BY, ON, WHY = "Ministry of Finance", "2026-11-19", "the winter transfers"

FILL_IN = """(given) => JSON.parse(given).forEach((words, i) => {
  const field = document.getElementById(["asked-by", "asked-on", "asked-why"][i]);
  field.value = words;
  field.dispatchEvent(new Event("input"));
})"""

REFUSED = """([id, texts]) => texts.map((one) => {
  document.getElementById(id).value = one;
  document.getElementById("download").click();
  const said = document.getElementById("incomplete").textContent;
  return said.includes(id === "asked-by" ? "is no plain name" : "cannot be printed");
})"""
"""Which texts the page refuses in a field; nothing is downloaded as long as another field is empty."""


def fill_in(shown: Page, by: str, on: str, why: str) -> None:
    """Who, when and why; halves of a character get to the page only in ASCII."""
    shown.evaluate(FILL_IN, json.dumps([by, on, why]))


def read(words: str, folder: Path) -> Request:
    path = folder / "own.toml"
    path.write_text(words, encoding="utf-8")
    return read_request(path)


def asked(shown: Page, folder: Path) -> Request:
    """The file that the page hands over, as the desk reads it; the page shows the same text."""
    with shown.expect_download() as waiting:
        shown.locator("#download").click()
    assert waiting.value.suggested_filename == "request.toml"
    path = folder / "request.toml"
    waiting.value.save_as(path)
    assert path.read_text(encoding="utf-8") == shown.locator("#toml").text_content()
    return read_request(path)


@pytest.mark.parametrize("name", ["aid", "names", "lending"])
def test_a_download_asks_for_what_was_chosen(
    opened: Opened, page_of: Recipe, tmp_path: Path, name: str
) -> None:
    made, shown = page_of(name), opened(name, accept_downloads=True)
    limit(shown, singling_out="", inference="")
    fill_in(shown, BY, ON, WHY)
    fits, places = fitting(shown), numbers(made)
    mechanisms = {made.cells[one].mechanism for one in fits}
    assert mechanisms == {"projection", "least-noise", "score", "score-laplace", "decision"}
    for cell in fits[:: max(1, len(fits) // 5)]:
        take(shown, places[cell])
        found = asked(shown, tmp_path)
        own = read(request_text(made.run, made.cells[cell]), tmp_path)
        assert found.model_dump(exclude=OWN) == own.model_dump(exclude=OWN)
        assert (found.asked_by, found.asked_on, found.why) == (BY, ON, WHY)
        assert list(found.features or ()) == made.run["features"]
        promise = made.cells[cell].promise
        assert promise is not None
        assert (found.B, found.epsilon) == (promise.B, promise.epsilon)
        assert found.delta is None  # the table that it is used on has its own
        assert found.page == made.run["fingerprint"]
        assert str(found.page)[:16] in text(shown, "#send")


def test_what_happens_to_the_request_follows_the_choice(opened: Opened, page_of: Recipe) -> None:
    """Whoever took a decision still read of rows: that everybody's go out, not those of the sample."""
    made, shown = page_of("aid"), opened("aid")
    limit(shown, singling_out="", inference="")
    first = {made.cells[one].technology.form: one for one in fitting(shown)}
    assert set(first) == {"rows", "score", "decision"}
    for name in (*first.values(), *first.values()):
        take(shown, numbers(made)[name])
        cell = made.cells[name]
        assert shown.locator("#s-steps li").all_inner_texts() == list(cell.technology.steps(cell))
    assert "for the labelled sample only" in text(shown, "#s-steps")


def test_limits_go_out_in_the_readers_sentences(opened: Opened, tmp_path: Path) -> None:
    shown = opened("aid", accept_downloads=True)
    fill_in(shown, BY, ON, WHY)
    assert asked(shown, tmp_path).limits == (
        "accuracy of at least 0.1",
        "At least 30 of 100 people cannot be singled out by a stranger, who gets the table without ids.",
    )
    limit(
        shown, singling_out="57,3", best_guess="99.5", extra_exclusion_errors="1 234,5", worst_group_rise="30"
    )
    limits = asked(shown, tmp_path).limits
    assert limits[1:] == (
        "At least 57.3 of 100 people cannot be singled out by a stranger, who gets the table without ids.",
        "Which of two people who are alike a row belongs to, nobody can tell more than 99.5 of 100 times.",
        "At most 1234.5 more poor people are missed than today.",
        "In no group that share rises by more than 30 points of 100.",
    )
    assert shown.locator("#s-limits li").all_inner_texts() == list(limits)


def test_a_smaller_delta_of_the_sweep_is_asked_for(opened: Opened, tmp_path: Path) -> None:
    run(Sweep(study(), grid=replace(ONE_CELL, delta=1e-7), simulations=1), tmp_path / "sweep")
    html = tmp_path / "page.html"
    html.write_text(page(content(tmp_path / "sweep")), encoding="utf-8")
    shown = opened(html, accept_downloads=True)
    limit(shown, singling_out="", inference="")
    fill_in(shown, BY, ON, WHY)
    assert asked(shown, tmp_path).delta == 1e-7


def test_a_request_from_confidential_rows_names_no_fingerprint(
    opened: Opened, page_of: Recipe, tmp_path: Path
) -> None:
    shown = opened("confidential", accept_downloads=True)
    limit(shown, singling_out="")
    fill_in(shown, BY, ON, WHY)
    assert asked(shown, tmp_path).page is None
    fingerprint = page_of("confidential").run["fingerprint"][:16]
    assert fingerprint not in shown.content()
    assert fingerprint not in str(shown.locator("#toml").text_content())


MISSING = [
    (["", ON, WHY], "Say who asks.", "asked-by"),
    (["the people who decide about all of it", ON, WHY], "is no plain name", "asked-by"),
    (["x@y.org", ON, WHY], "“x@y.org” is no plain name", "asked-by"),
    ([BY, "", WHY], "Say when", "asked-on"),
    ([BY, "12026-11-19", WHY], "Say when", "asked-on"),
    ([BY, ON, " \t "], "Say why", "asked-why"),
    ([BY, ON, "a\x7fb"], "a character that cannot be printed (U+007F)", "asked-why"),
    ([BY, ON, "half \ud83c"], "a character that cannot be printed (U+D83C)", "asked-why"),
    ([BY, ON, "\u0958" * 260], "longer than 500", "asked-why"),  # an accent apart is a character more
    (["", "", ""], "Say who asks. Say when: a day, and a year of four digits. Say why", "asked-by"),
]
"""What is filled in, what the page says to it, and where it leads to."""


def test_what_is_missing_is_said_and_nothing_is_downloaded(opened: Opened) -> None:
    shown = opened("bare", accept_downloads=True)
    limit(shown, singling_out="")
    today = "new Date(Date.now() - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 10)"
    assert shown.locator("#asked-on").input_value() == shown.evaluate(today)
    taken: list[str] = []
    shown.on("download", lambda download: taken.append(download.suggested_filename))
    for given, words, field in MISSING:
        fill_in(shown, *given)
        shown.locator("#download").click()
        assert words in text(shown, "#incomplete")
        assert shown.evaluate("document.activeElement.id") == field
        assert shown.locator(f"#{field}").get_attribute("aria-invalid") == "true"
        shown.locator("#asked-why").fill("something else")
        assert text(shown, "#incomplete") == ""
    assert taken == []
    fill_in(shown, BY, ON, WHY)
    with shown.expect_download():
        shown.locator("#download").click()
    assert taken == ["request.toml"]
    assert shown.locator("#asks [aria-invalid=true]").count() == 0


def test_odd_words_come_back_as_they_were(opened: Opened, tmp_path: Path) -> None:
    shown = opened("bare", accept_downloads=True)
    limit(shown, singling_out="")
    for by, why in (
        ("O'Brien", 'quotes " \' """ and \\ \\u0041 and \\n'),
        ("Müller-Lüdenscheidt", "a party 🎉 and a flag 🏴 ${1} $& </script><!--"),
        ("Àjọ ìgbìmọ̀", "why = 'x' # no comment [table] B = 1"),
        ("经济部", "a" * 500),
        ("  a   b  ", "  space\u00a0 \u2003of all \u3000kinds, and \n lines  "),
        ("Cafe\u0301", "an accent apart: e\u0301 \ufffd"),
    ):
        fill_in(shown, by, ON, why)
        found = asked(shown, tmp_path)
        told = [" ".join(unicodedata.normalize("NFC", one).split()) for one in (by, why)]
        assert [found.asked_by, found.why] == told
        assert found.B == 2


@pytest.mark.parametrize("field", ["asked-by", "asked-why"])
def test_the_page_takes_no_character_that_the_desk_refuses(opened: Opened, field: str) -> None:
    """Indian vowel signs, zero-width joiners and private characters were downloaded, and then refused."""
    shown = opened("bare")
    limit(shown, singling_out="")
    rng, given = random.Random(5), []
    for _ in range(4000):
        code = rng.choice([rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(sys.maxunicode + 1)])
        if unicodedata.category(chr(code)) not in {"Cs", "Cn"}:  # what is assigned differs by version
            given.append(f"a{chr(code)}b")
    given += ["\u0915\u0940", "a\ufe0fb", "a\u034fb", "👨\u200d👩", "a\xadb", "a\ue000b"]
    fill_in(shown, BY, "", WHY)
    refused = dict(zip(given, shown.evaluate(REFUSED, [field, given]), strict=True))

    def told(words: str) -> str:
        return " ".join(unicodedata.normalize("NFC", words).split())

    def desk_refuses(words: str) -> bool:
        try:
            plain_name(words)
        except ValueError:
            return True
        return False

    desk = {
        one: desk_refuses(told(one)) if field == "asked-by" else not told(one).isprintable() for one in given
    }
    assert [one for one in given if desk[one] and not refused[one]] == []
    # It refuses little else: rare marks, and signs that Python takes for spaces.
    needless = [one for one in given if refused[one] and not desk[one]]
    marks = [one for one in needless if any(map(unicodedata.combining, unicodedata.normalize("NFC", one)))]
    assert {one[1:-1] for one in needless if one not in marks} <= set("\x1c\x1d\x1e\x1f\x85")
    assert 100 < sum(refused.values()) < len(given) - 100
