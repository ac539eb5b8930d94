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
from targetdp.guarantee import Guarantee
from targetdp.normalization import ColumnScales, confidential_scales, data_scales, declared_scales
from targetdp.programs import MARK
from targetdp.release import Request
from targetdp.report import Content, content, page
from targetdp.report._page._promise import CELLS, EPSILONS, agreement, agreement_curves
from targetdp.report._page._render import LARGEST, OVERRIDES, plain_conditions, stated_conditions
from targetdp.report._page._words import points_up
from targetdp.theorem1 import accuracy_ceiling, agreement_by_distance
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
    assert made.chosen is not None
    assert made.chosen["name"] == found.chosen.name


def test_every_figure_is_the_summarys(folder: Path, made: Content) -> None:
    figures = read_figures(folder)
    assert [cell["name"] for cell in made.data["cells"]] == [cell["name"] for cell in made.run["cells"]]
    for cell in made.data["cells"]:
        for metric, (mean, low, high, noise) in cell["figures"].items():
            one = figures[cell["name"]][metric]
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
    flattering = 0
    for cell in made.data["cells"]:
        for name, attacks in kinds.items():
            # An agreed sample has no promise, and of one bit nothing is searched for.
            worst = min(mean for attack in attacks for mean in means.get((cell["name"], attack), ()))
            assert cell["figures"][name][0] == pytest.approx(worst, abs=1e-12)
            assert cell["told"][name].split(" ")[0] == down(worst)
        if cell["mechanism"] == "decision-agreed":
            assert "attribute_inference" not in cell["figures"]
            continue
        papers = cell["figures"]["attribute_inference"][0]
        flattering += papers > cell["figures"]["inference"][0] + 0.01
        if cell["choosable"]:
            assert (
                f"failed {math.floor(1000 * cell['figures']['inference'][0] + 1e-9) / 10:g}%"
                in (cell["exchange"][1].split(" as often")[0])
            )
            assert "As in the paper (a stranger):" in cell["exchange"][1]
    assert flattering > 3  # the sweep has settings where the paper's own figure is the better one


def test_the_best_guess_stands_in_both_tables_and_is_that_of_the_sentence(made: Content) -> None:
    names = [name for name, _ in made.data["columns"]]
    assert {"best_guess", "best_guess_at_2", "attribute_inference", "worst_group_rate"} <= set(names)
    for cell in made.data["cells"]:
        mean = cell["figures"]["best_guess"][0]
        assert cell["told"]["best_guess"] == percent_up(mean)
        if not cell["choosable"]:
            continue
        times = percent_up(mean).removesuffix("%").removesuffix(".0")
        assert f"at most {times} times in 100" in cell["derived"]
        assert {r: guess for r, _, guess in cell["curve"]}[cell["B"]] == pytest.approx(float(times) / 100)
    said = page(made)
    assert said.count('<th scope="col">Best guess, at B</th>') == 2
    assert said.count('<th scope="col">Best guess, at distance 2</th>') == 2


def test_limits_that_nobody_asked_for_are_called_defaults_with_their_reasons(folder: Path) -> None:
    asked = page(content(folder, [Constraint("singling_out", at_least=0.8)]))
    assert "Limits that were asked for: singling-out protection of at least 0.8." in asked
    assert "<em>defaults</em>" not in asked
    usual = content(folder)
    assert [one.metric for one in usual.recommendation.constraints] == ["singling_out", "inference"]
    said = html.unescape(page(usual))
    assert "These limits are <em>defaults</em>" in said
    assert "Limits that were asked for" not in said
    for one in DEFAULT_LIMITS:
        assert f"<li>{one.constraint.words}: {one.reason}</li>" in said


def test_near_misses_stand_below_the_answer(made: Content) -> None:
    assert "Near misses" not in page(
        replace(made, recommendation=replace(made.recommendation, near_misses=()))
    )
    near = replace(made.recommendation, near_misses=("0.795 for 0.8: 18,000 fewer missed",))
    said = read(page(replace(made, recommendation=near))).said["answer"]
    assert "0.795 for 0.8: 18,000 fewer missed" in said.split("Recommended setting")[1]


def test_a_quick_look_is_flagged_at_the_top_and_in_the_request(made: Content) -> None:
    """Three simulations of invented people."""
    assert made.data["first_look"] == list(made.run["first_look"])
    assert len(made.data["first_look"]) == 2
    top = page(made).split("<nav")[0]
    assert "Quick look, nothing to decide by: 3 simulations" in top
    assert "these people are invented" in top
    assert all("quick look" in cell["toml"] for cell in made.data["cells"] if cell["choosable"])
    whole = replace(made, recommendation=replace(made.recommendation, run={**made.run, "first_look": []}))
    assert "Quick look" not in page(whole)


def test_only_releases_with_a_guarantee_can_be_chosen(made: Content) -> None:
    kinds = {cell["mechanism"] for cell in made.data["cells"] if cell["choosable"]}
    assert kinds == {"projection", "least-noise", "score", "score-laplace", "decision"}
    # Of settings that are equal in distribution one is offered.
    names = [cell["name"] for cell in made.data["cells"] if cell["choosable"] and cell["B"] == 0.25]
    assert len([name for name in names if name.startswith("projection")]) == 1


def test_a_downloaded_request_is_recommends_own(made: Content) -> None:
    cells = {cell["name"]: Cell(**cell) for cell in made.run["cells"]}
    for cell in made.data["cells"]:
        if cell["choosable"]:
            text = cell["toml"]
            assert text == request_text(made.run, cells[cell["name"]])
            asked = Request.model_validate(tomllib.loads(text))
            assert asdict(asked.guarantee(1 / 151)) == cell["promise"]


def test_the_page_says_to_whom_the_request_goes(made: Content) -> None:
    choose = read(page(made)).said["choose"]
    assert "Download request.toml" in choose
    assert "send it to the data holder, who answers it with" in choose
    assert "targetdp privatize TABLE OUTPUT --request request.toml" in choose


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
    assert "A release has the usual δ, or less, and more noise" in plain_conditions(record)[1]


def test_what_no_algorithm_can_do_is_the_librarys_at_what_is_promised(made: Content) -> None:
    for cell in made.data["cells"]:
        if cell["choosable"]:
            promise = Guarantee(**cell["promise"])
            *steps, (end, last) = cell["agreement"]
            assert [at for at, _ in steps] == list(range(len(steps)))
            shares = agreement_by_distance(promise, [at * promise.B for at, _ in steps])
            assert tuple(share for _, share in steps) == shares
            assert (end, last) == (min(CELLS, 2 / promise.B), shares[-1])
            assert shares[0] == accuracy_ceiling(promise)
    curves = agreement_curves(0.01)
    assert {curve["epsilon"] for curve in curves} == {f"{epsilon:g}" for epsilon in EPSILONS}
    for curve in curves:
        if curve["cell"] < CELLS:
            promise = Guarantee(0.5, float(curve["epsilon"]), 0.01)
            assert (curve["share"],) == agreement_by_distance(promise, [min(2.0, curve["cell"] / 2)])


def test_a_large_B_has_few_cells() -> None:
    (only, end) = agreement(Guarantee(2.0, 1.0))
    assert (only[0], end[0]) == (0, 1)
    assert only[1] == end[1] == accuracy_ceiling(Guarantee(2.0, 1.0))
    assert [at for at, _ in agreement(Guarantee(0.75, 1.0))] == [0, 1, 2, 2 / 0.75]
    assert len(agreement(Guarantee(1e-6, 1.0))) == CELLS + 1


def test_curves_are_never_below_what_was_computed(folder: Path, made: Content) -> None:
    figures = read_figures(folder)
    for cell in made.data["cells"]:
        if cell["choosable"] and cell["mechanism"] == "least-noise":
            at_B = {r: epsilon for r, epsilon, _ in cell["curve"]}[cell["B"]]
            exact = figures[cell["name"]]["exact_epsilon"].mean
            assert exact is not None
            assert exact <= at_B <= exact * 1.001


def test_groups_change_as_the_summary_says(folder: Path, made: Content) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "summary.parquet").to_pylist()
    known = {(row["cell"], row["metric"], row["setting"]): row for row in rows}
    assert made.data["groups"]["of"]
    assert made.data["groups"]["headings"][:3] == [
        "of the poor are missed, today", "of the poor are missed, then", "change, in points"
    ]  # fmt: skip

    def told(row: dict[str, Any], one: Callable[[float], str]) -> str:
        return f"{one(row['mean'])} ({one(row['low'])} to {one(row['high'])})".replace("-", "−")

    for cell in made.data["cells"]:
        if cell["choosable"]:
            for (column, name, _), group in zip(made.data["groups"]["of"], cell["groups"], strict=True):
                setting = f"{column}={name}"
                missed = known[cell["name"], "extra_exclusion_errors", setting]
                assert group["drawn"][0] == pytest.approx(missed["mean"], rel=1e-4)
                today, then, rise, *_ = group["told"]
                assert today == told(known["status quo", "exclusion_rate", setting], percent_up)
                assert then == told(known[cell["name"], "exclusion_rate", setting], percent_up)
                assert rise == told(known[cell["name"], "extra_exclusion_rate", setting], points_up)


def test_the_crowd_is_told(made: Content) -> None:
    assert made.chosen is not None
    assert re.match(r"At B = [\d.]+ a typical person has \d+ other", made.chosen["crowd"])


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


def test_the_same_sweep_gives_the_same_page(charts_anew: None, folder: Path, made: Content) -> None:
    again = content(folder, [Constraint("singling_out", at_least=0.5)])
    assert page(again) == page(made)


def test_names_of_columns_cannot_end_a_script(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    s = study()
    named = type(s)(evil, "public", (evil, "=cmd|' /C calc'!A0", "<b>", "&amp;"), s.X, s.program, s.folds)
    run(sweep(study=named, grid=GRID.quick(), simulations=1), tmp_path / "r")
    text = page(content(tmp_path / "r"))
    assert evil not in text
    assert text.lower().count("</script>") == 4
    data = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(gzip.decompress(base64.b64decode(data[1])))["features"][0] == evil


def test_a_page_of_confidential_rows_says_so_everywhere(hidden: Path) -> None:
    said = read(page(content(hidden))).said
    assert set(said) == {"answer", "tradeoff", "choose", "ceiling", "meaning", "who", "conditions"}
    assert all(MARK in text for text in said.values())


def test_no_hash_of_confidential_rows_is_on_a_page(hidden: Path, folder: Path) -> None:
    shown, public = content(hidden), content(folder)
    assert shown.run["fingerprint"][:16] not in page(shown, override="somebody decided so")
    assert all(shown.run["fingerprint"][:16] not in cell.get("toml", "") for cell in shown.data["cells"])
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
    assert made.chosen is None
    assert "No setting of this sweep meets the limits" in page(made)
    assert "distinguishing protection of at least 1 excludes" in page(made).replace(
        "Distinguishing", "distinguishing"
    )
