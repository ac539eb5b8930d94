"""The page's content against the sweep it was made from; who may read it; the command."""

import base64
import gzip
import json
import re
import stat
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.tradeoff import GRID, people, study, sweep
from targetdp.cli import app
from targetdp.guarantee import Guarantee
from targetdp.normalization import confidential_scales, data_scales, declared_scales
from targetdp.programs import MARK
from targetdp.release import make_settings
from targetdp.report import Content, content, page, usual_limits
from targetdp.report._page._promise import EPSILONS, ceiling_curves
from targetdp.report._page._render import LARGEST, OVERRIDES
from targetdp.theorem1 import accuracy_ceiling
from targetdp.tradeoff import Cell, Constraint, Grid, read_figures, recommend, release_text, run

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
        for metric, (mean, low, high) in cell["figures"].items():
            one = figures[cell["name"]][metric]
            assert (mean, low, high) == (one.mean, one.low, one.high)


def test_only_releases_with_a_guarantee_can_be_chosen(made: Content) -> None:
    kinds = {cell["mechanism"] for cell in made.data["cells"] if cell["choosable"]}
    assert kinds == {"projection", "least-noise", "score"}
    # Of settings that are equal in distribution one is offered.
    names = [cell["name"] for cell in made.data["cells"] if cell["choosable"] and cell["B"] == 0.25]
    assert len([name for name in names if name.startswith("projection")]) == 1


def test_a_downloaded_release_file_is_recommends_own(made: Content) -> None:
    cells = {cell["name"]: Cell(**cell) for cell in made.run["cells"]}
    for cell in made.data["cells"]:
        if cell["choosable"]:
            text = cell["toml"]
            assert text == release_text(made.run, cells[cell["name"]])
            settings = make_settings(tomllib.loads(text))
            promise = cell["promise"]
            assert (settings.B, settings.epsilon) == (promise["B"], promise["epsilon"])


def test_ceilings_are_theorem_1s_at_what_is_promised(made: Content) -> None:
    for cell in made.data["cells"]:
        if cell["choosable"]:
            assert cell["ceiling"] == accuracy_ceiling(Guarantee(**cell["promise"]))
    curves = ceiling_curves(0.01)
    assert {curve["epsilon"] for curve in curves} == {f"{epsilon:g}" for epsilon in EPSILONS}
    for curve in curves[::7]:
        promise = Guarantee(curve["B"], float(curve["epsilon"]), 0.01)
        assert curve["ceiling"] == accuracy_ceiling(promise)


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
    wanted = {
        (row["cell"], row["setting"]): row["change"]
        for row in rows if row["metric"] == "eligible" and row["setting"].startswith("region=")
    }  # fmt: skip
    assert made.data["groups"]["of"]
    for cell in made.data["cells"]:
        if cell["choosable"]:
            for (column, name, _), figures in zip(made.data["groups"]["of"], cell["groups"], strict=True):
                assert figures[1][0] == pytest.approx(wanted[cell["name"], f"{column}={name}"], rel=1e-4)
    # Under a quota, what one group loses the others gain.
    eligible = [figures[1][0] for figures in (made.chosen or {})["groups"]]
    assert sum(eligible) == pytest.approx(0, abs=1e-6 * 15_000)


def test_the_crowd_is_told(made: Content) -> None:
    assert made.chosen is not None
    assert re.match(r"At B = [\d.]+ a typical person has \d+ other", made.chosen["crowd"])


def test_confidential_scales_are_in_no_file_of_a_sweep(tmp_path: Path) -> None:
    secret = 123.456789
    scales = confidential_scales([secret] * 4, [1.0] * 4)
    run(sweep(grid=GRID.quick(), study=study(scales=scales), simulations=1), tmp_path / "r")
    assert str(secret) not in (tmp_path / "r" / "run.json").read_text(encoding="utf-8")
    made = content(tmp_path / "r", usual_limits(tmp_path / "r"))
    text = page(made)
    assert str(secret) not in text
    assert "no example in original units" in text


def test_means_of_confidential_rows_are_in_no_file_of_a_sweep(hidden: Path, tmp_path: Path) -> None:
    """From the exact means and everybody's row but one, the last one would follow."""
    X, _, _ = people()
    own = data_scales(X)
    out = tmp_path / "r"
    run(sweep(grid=RELEASABLE.quick(), study=study("confidential", scales=own), simulations=1), out)
    text = page(content(out, usual_limits(out)), override="somebody decided so")
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
    text = page(content(tmp_path / "r", usual_limits(tmp_path / "r")))
    assert evil not in text
    assert text.lower().count("</script>") == 4
    data = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(gzip.decompress(base64.b64decode(data[1])))["features"][0] == evil


def test_a_page_of_confidential_rows_says_so_everywhere(hidden: Path) -> None:
    said = read(page(content(hidden, usual_limits(hidden)))).said
    assert set(said) == {"answer", "tradeoff", "choose", "ceiling", "meaning", "who", "conditions"}
    assert all(MARK in text for text in said.values())


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
