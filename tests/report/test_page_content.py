"""The page's content against the sweep it was made from; who may read it; the command."""

import base64
import gzip
import html
import json
import math
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.tradeoff import GRID, people, study, sweep
from targetdp._core import down, percent_up
from targetdp.cli import app
from targetdp.normalization import ColumnScales, confidential_scales, data_scales, declared_scales
from targetdp.programs import MARK
from targetdp.release import Request
from targetdp.report import Content, content, page
from targetdp.report._page._content import group_headings, table_of
from targetdp.report._page._render import LARGEST, OVERRIDES, plain_conditions, stated_conditions
from targetdp.report._page._words import PROTECTIONS, points_up
from targetdp.tradeoff import (
    DEFAULT_LIMITS,
    Cell,
    Constraint,
    Grid,
    read_figures,
    recommend,
    request_text,
    run,
)
from targetdp.tradeoff._choosing._near import NearMiss

RELEASABLE = Grid(B=(0.25, 2.0), epsilon1=(3.0,), epsilon2=(0.5, 0.9), group_sizes=(2, 5))
"""As GRID, but with the k that a release has: k = 100 cannot be made."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "results"
    scales = declared_scales([0.0] * 4, [1.0, 2.0, 3.0, 4.0])
    run(sweep(grid=RELEASABLE, study=study(scales=scales)), out)
    return out


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("confidential") / "results"
    run(sweep(grid=RELEASABLE, study=study("confidential"), simulations=1), out)
    return out


@pytest.fixture(scope="module")
def made(folder: Path) -> Content:
    return content(folder, [Constraint("singling_out", at_least=0.5)])


def test_it_recommends_what_recommend_does(folder: Path, made: Content) -> None:
    found = recommend(folder, [Constraint("singling_out", at_least=0.5)])
    assert found.chosen is not None
    assert made.shown is not None
    assert made.shown["name"] == found.chosen.name
    assert made.data["chosen"] == made.data["begin"] == made.shown["i"]


def test_every_figure_is_the_summarys(folder: Path, made: Content) -> None:
    figures = read_figures(folder)
    cells = [cell["name"] for cell in made.run["cells"]]
    assert [one.cell.name for one in made.comparison.settings] == cells
    assert made.data["settings"]
    for setting in made.data["settings"]:
        assert cells[setting["i"]] == setting["name"]
        for metric, (mean, low, high, noise) in setting["figures"].items():
            one = figures[setting["name"]][metric]
            assert (mean, low, high, noise) == (one.mean, one.low, one.high, one.noise)


def test_every_protection_is_the_worst_of_all_attacks_of_its_kind(folder: Path, made: Content) -> None:
    """The page once told 98.3% of a setting whose insider failed 16.2% as often."""
    import pyarrow.parquet as pq

    kinds = {
        "singling_out": ("singling_out",),
        "inference": ("attribute_inference", "insider_inference"),
        "distinguishing": ("distinguishing",),
    }
    means: dict[tuple[str, str], list[float]] = {}
    for row in pq.read_table(folder / "summary.parquet").to_pylist():
        if row["mean"] is not None and (row["metric"] != "distinguishing" or row["setting"] == "exact"):
            means.setdefault((row["cell"], row["metric"]), []).append(row["mean"])
    headings, rows = table_of(made)
    flattering = 0
    for one, texts in rows:
        told = dict(zip(headings, texts, strict=True))
        for name, attacks in kinds.items():
            # An agreed sample has no promise, and of one bit nothing is searched for.
            worst = min(mean for attack in attacks for mean in means.get((one.cell.name, attack), ()))
            assert one.figures[name].mean == pytest.approx(worst, abs=1e-12)
            assert told[PROTECTIONS[name]].split(" ")[0] == down(worst)
        papers, inference = one.figures.get("attribute_inference"), one.figures["inference"].mean
        assert (papers is None) == (one.cell.mechanism == "decision-agreed")
        assert inference is not None
        if papers is not None and papers.mean is not None:
            flattering += papers.mean > inference + 0.01
    for setting in made.data["settings"]:
        failed = setting["exchange"][1].split(" as often")[0]
        assert f"failed {math.floor(1000 * setting['figures']['inference'][0] + 1e-9) / 10:g}%" in failed
        assert "As in the paper (a stranger):" in setting["exchange"][1]
    assert flattering > 3  # the sweep has settings where the paper's own figure is the better one


def test_the_best_guess_of_the_sentence_is_that_of_the_curve_and_the_table(made: Content) -> None:
    headings, rows = table_of(made)
    assert {"Best guess, at B", "Best guess, at distance 2"} <= set(headings)
    told = {one.cell.name: dict(zip(headings, texts, strict=True)) for one, texts in rows}
    for setting in made.data["settings"]:
        mean, _ = setting["dots"]
        assert told[setting["name"]]["Best guess, at B"] == percent_up(mean)
        times = percent_up(mean).removesuffix("%").removesuffix(".0")
        assert f"at most {times} times in 100" in setting["derived"]
        B = setting["promise"]["B"]
        assert {r: guess for r, _, guess in setting["curve"]}[B] == pytest.approx(float(times) / 100)


def test_limits_that_nobody_asked_for_are_called_defaults_with_their_reasons(folder: Path) -> None:
    asked = page(content(folder, [Constraint("singling_out", at_least=0.8)]))
    assert "limits that were asked for: singling-out protection of at least 0.8." in asked
    assert "<em>defaults</em>" not in asked
    usual = content(folder)
    assert [one.metric for one in usual.comparison.recommendation.constraints] == [
        "singling_out",
        "inference",
    ]
    said = html.unescape(page(usual))
    assert "These limits are <em>defaults</em>" in said
    assert "limits that were asked for" not in said
    for one in DEFAULT_LIMITS:
        assert f"<li>{one.constraint.words}: {one.reason}</li>" in said


def advised(made: Content, **changes: Any) -> Content:
    """The same page with another recommendation."""
    advice = replace(made.comparison.recommendation, **changes)
    return replace(made, comparison=replace(made.comparison, recommendation=advice))


def test_near_misses_stand_at_the_top_and_before_the_chart(made: Content) -> None:
    """At the top in the words of the page; B and ε, by which it can be found, stand where the chart is."""
    assert "Near miss" not in page(advised(made, near=()))
    cell = next(one.cell for one in made.comparison.settings if one.cell.mechanism == "least-noise")
    asked = Constraint("singling_out", at_least=0.8)
    near = NearMiss(cell, asked, 0.79599, "18,000 fewer missed")
    said = read(page(advised(made, near=(near,)))).said
    top = said["options"].split("How much may")[0]
    words = (
        "Near miss: least noise, with 18,000 fewer missed; not singled out: 79.5 of 100, and 80 is the limit"
    )
    assert words in top
    assert "ε" not in top
    assert near.words in said["afford"]
    assert "ε = " in near.words
    guess = NearMiss(cell, Constraint("best_guess", at_most=0.8), 0.80101, "")
    top = read(page(advised(made, near=(guess,)))).said["options"]
    assert "least noise; best guess: 80.2 of 100, and 80 is the limit" in top


def test_what_an_agreed_sample_could_do_is_said_at_the_top(made: Content) -> None:
    top = "A sample that agreed, and would have no promise"
    assert top not in read(page(advised(made, on_condition=""))).said["options"]
    said = read(page(advised(made, on_condition="If they agree, it would be better."))).said
    assert top in said["options"].split("How much may")[0]
    assert "If they agree, it would be better." in said["check"]


def test_a_quick_look_is_flagged_at_the_top_and_in_the_request(made: Content) -> None:
    """Three simulations of invented people."""
    assert len(made.run["first_look"]) == 2
    top = read(page(made)).said["options"].split("How much may")[0]
    assert "Quick look, nothing to decide by: 3 simulations" in top
    assert "Invented people" in top
    assert all("quick look" in setting["toml"] for setting in made.data["settings"])
    whole = advised(made, run={**made.run, "first_look": []})
    assert "Quick look" not in page(whole)


def test_only_releases_with_a_guarantee_can_be_chosen(made: Content) -> None:
    cells = {cell["name"]: Cell(**cell) for cell in made.run["cells"]}
    offered = [cells[setting["name"]] for setting in made.data["settings"]]
    assert {cell.mechanism for cell in offered} == {
        "projection", "least-noise", "score", "score-laplace", "decision"
    }  # fmt: skip
    # Of settings that are equal in distribution one is offered.
    assert len([cell for cell in offered if cell.B == 0.25 and cell.mechanism == "projection"]) == 1


def test_a_downloaded_request_is_recommends_own(made: Content) -> None:
    cells = {cell["name"]: Cell(**cell) for cell in made.run["cells"]}
    for setting in made.data["settings"]:
        text = setting["toml"]
        assert text == request_text(made.run, cells[setting["name"]])
        asked = Request.model_validate(tomllib.loads(text))
        assert asdict(asked.guarantee(1 / 151)) == setting["promise"]


def test_the_page_says_to_whom_the_request_goes_and_what_comes_back(made: Content) -> None:
    send = read(page(made)).said["send"]
    assert "Send it to the data holder" in send
    assert "targetdp privatize TABLE OUTPUT --request request.toml" in send
    assert "What comes back each time is a release with a certificate" in send
    assert "targetdp verify OUTPUT --request request.toml" in send


@pytest.mark.parametrize(
    ("scales", "units", "stated"),
    [
        (declared_scales([0.0] * 4, [1.0] * 4), "units that were declared public", "declared public"),
        (data_scales(people()[0]), "units of the table's own spread", "estimated from the data under"),
        (None, "units of the table's own spread", "estimated from the data under"),
        (
            confidential_scales([0.0] * 4, [1.0] * 4), "units that were learned from confidential data",
            "estimated from the data under",
        ),
    ],
)  # fmt: skip
def test_conditions_are_those_of_a_release_and_not_of_the_sweep(
    scales: ColumnScales | None, units: str, stated: str
) -> None:
    """A release has the data holder's scales, and no conditional guarantee."""
    record = sweep(study=study("public", scales=scales)).record()
    first, *_ = plain_conditions(record)
    assert f"In this sweep each column was measured in {units}." in first
    assert "In a release it is measured in the data holder's" in first
    conditions = " ".join(stated_conditions(record))
    assert stated in conditions
    assert "only given these scales" not in conditions
    assert "same column scales" not in conditions
    assert "B was chosen on public data, as whoever asked says." in conditions


def test_parts_are_those_of_the_sweep_only() -> None:
    record = sweep(grid=replace(GRID, parts=5)).record()
    assert "A release has the usual δ, or less, and more noise" in " ".join(plain_conditions(record))


def test_curves_are_never_below_what_was_computed(folder: Path, made: Content) -> None:
    figures, looked_at = read_figures(folder), 0
    for setting in made.data["settings"]:
        if setting["name"].startswith("least-noise"):
            at_B = {r: epsilon for r, epsilon, _ in setting["curve"]}[setting["promise"]["B"]]
            exact = figures[setting["name"]]["exact_epsilon"].mean
            assert exact is not None
            assert exact <= at_B <= exact * 1.001
            looked_at += 1
    assert looked_at > 0


def test_groups_change_as_the_summary_says(folder: Path, made: Content) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "summary.parquet").to_pylist()
    known = {(row["cell"], row["metric"], row["setting"]): row for row in rows}
    groups = made.comparison.groups.each
    assert [one.setting for one in groups] == ["region=north", "region=south"]
    assert group_headings(made.subject)[:3] == ["of the poor are missed, today", "then", "change, in points"]

    def told(row: dict[str, Any], one: Callable[[float], str]) -> str:
        return f"{one(row['mean'])} ({one(row['low'])} to {one(row['high'])})".replace("-", "−")

    for setting in made.data["settings"]:
        for one, group in zip(groups, setting["groups"], strict=True):
            rates = [known[name, "exclusion_rate", one.setting] for name in ("status quo", setting["name"])]
            assert group["drawn"] == [pytest.approx(row["mean"], rel=1e-3) for row in rates]
            today, then, rise, more, _ = group["told"]
            assert [today, then] == [told(row, percent_up) for row in rates]
            assert rise == told(known[setting["name"], "extra_exclusion_rate", one.setting], points_up)
            missed = known[setting["name"], "extra_exclusion_errors", one.setting]
            changed = made.subject.changed("extra_exclusion_errors", missed["mean"]).replace("-", "−")
            assert more.startswith(changed)


def test_the_crowd_is_told(made: Content) -> None:
    assert made.shown is not None
    assert re.match(r"At B = [\d.]+ a typical person has \d+ other", made.shown["crowd"])


def test_confidential_scales_are_in_no_file_of_a_sweep(tmp_path: Path) -> None:
    secret = 123.456789
    scales = confidential_scales([secret] * 4, [1.0] * 4)
    run(sweep(grid=GRID.quick(), study=study(scales=scales), simulations=1), tmp_path / "r")
    assert str(secret) not in (tmp_path / "r" / "run.json").read_text(encoding="utf-8")
    made = content(tmp_path / "r")
    text = page(made)
    assert str(secret) not in text
    assert "no example in original units" in text


def test_means_of_confidential_rows_are_in_no_file_of_a_sweep(hidden: Path, tmp_path: Path) -> None:
    """From the exact means and everybody's row but one, the last one would follow."""
    X, _, _ = people()
    own = data_scales(X)
    out = tmp_path / "r"
    run(sweep(grid=RELEASABLE.quick(), study=study("confidential", scales=own), simulations=1), out)
    text = page(content(out), override="somebody decided so")
    for secret in (*own.center, *own.scale):
        assert repr(float(secret))[:9] not in text
        assert repr(float(secret))[:9] not in (out / "run.json").read_text(encoding="utf-8")
    assert "no example in original units" in text


class Reader(HTMLParser):
    """Which elements ask for something from elsewhere, and what every section says."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.section: str | None = None
        self.said: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.asked += [
            str(given[name]) for name in ("src", "href", "action", "data")
            if given.get(name) and not str(given[name]).startswith("#")
        ]  # fmt: skip
        if tag == "section":
            self.section = str(given["id"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self.section = None

    def handle_data(self, data: str) -> None:
        if self.section is not None:
            self.said[self.section] = self.said.get(self.section, "") + data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_asks_for_nothing_and_is_small(made: Content) -> None:
    text = page(made)
    assert len(text.encode()) < LARGEST
    assert read(text).asked == []
    assert "default-src 'none'" in text


def test_the_same_sweep_gives_the_same_page(folder: Path, made: Content) -> None:
    again = content(folder, [Constraint("singling_out", at_least=0.5)])
    assert page(again) == page(made)


def test_names_of_columns_cannot_end_a_script(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    s = study()
    named = type(s)(evil, "public", (evil, "=cmd|' /C calc'!A0", "<b>", "&amp;"), s.X, s.program, s.folds)
    run(sweep(study=named, grid=GRID.quick(), simulations=1), tmp_path / "r")
    text = page(content(tmp_path / "r"))
    assert evil not in text
    assert text.lower().count("</script>") == 2
    data = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(gzip.decompress(base64.b64decode(data[1])))["features"][0] == evil


def test_a_page_of_confidential_rows_says_so_everywhere(hidden: Path) -> None:
    said = read(page(content(hidden))).said
    assert set(said) == {"options", "protect", "afford", "bear", "check", "send", "annex"}
    assert all(MARK in text for text in said.values())


def test_no_hash_of_confidential_rows_is_on_a_page(hidden: Path, folder: Path) -> None:
    shown, public = content(hidden), content(folder)
    assert shown.run["fingerprint"][:16] not in page(shown, override="somebody decided so")
    assert all(shown.run["fingerprint"][:16] not in one["toml"] for one in shown.data["settings"])
    assert f"from sweep {public.run['fingerprint'][:16]}" in page(public)


def command(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=True)


def test_the_command_writes_a_page(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = command(folder, "--out", out, "--for", "official")
    assert done.exit_code == 0
    assert "opens offline" in done.stderr
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert out.stat().st_mode & stat.S_IROTH
    again = command(folder, "--out", out)
    assert "exists" in str(again.exception)
    assert command(folder, "--out", out, "--force", "--distinguishing", "0.01").exit_code == 0


def test_an_official_does_not_get_confidential_figures(hidden: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    refused = command(hidden, "--out", out, "--for", "official")
    assert "for the data holder only" in str(refused.exception)
    assert "--show-confidential" in str(refused.exception)
    assert not out.exists()
    assert not (hidden / OVERRIDES).exists()
    assert command(hidden, "--out", out).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_override_goes_on_record_and_on_the_page(hidden: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    reason = "the board <agreed> on 3 May"
    done = command(hidden, "--out", out, "--for", "official", "--show-confidential", reason)
    assert done.exit_code == 0
    record = json.loads((hidden / OVERRIDES).read_text(encoding="utf-8").splitlines()[-1])
    assert record["reason"] == reason
    said = read(out.read_text(encoding="utf-8")).said
    assert all(reason in text for text in said.values())
    (hidden / OVERRIDES).unlink()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--show-confidential", "why not"], "not confidential"),
        (["--singling-out", "1.5"], "singling_out = 1.5"),
        (["--at-least", "nonsense=1"], "nonsense"),
    ],
)
def test_bad_requests_are_refused_and_write_nothing(
    folder: Path, tmp_path: Path, given: list[str], words: str
) -> None:
    out = tmp_path / "page.html"
    assert words in str(command(folder, "--out", out, *given).exception)
    assert list(tmp_path.iterdir()) == []


def test_an_override_needs_a_reason(hidden: Path, tmp_path: Path) -> None:
    assert "gives no reason" in str(
        command(hidden, "--out", tmp_path / "p", "--show-confidential", " ").exception
    )
    wrong = command(hidden, "--out", tmp_path / "p", "--for", "data-holder", "--show-confidential", "x")
    assert "leave it out" in str(wrong.exception)


def test_if_nothing_meets_the_limits_the_page_says_why(folder: Path) -> None:
    made = content(folder, [Constraint("distinguishing", at_least=1.0)])
    assert made.comparison.recommendation.chosen is None
    said = read(page(made)).said["options"]
    assert "Nothing is recommended: no setting meets the limits." in said
    assert "Distinguishing protection of at least 1 excludes" in said
    assert made.shown is not None  # the safest option, to look at
    assert made.data["begin"] == made.data["options"][-1][1]
