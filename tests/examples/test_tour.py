"""The demonstration: the same numbers at every run, and a table that people can read."""

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from examples.tour import _tour as tour
from examples.tour import comparison as demo
from examples.tour import cost, hands
from examples.tour._tour import steps
from examples.tour.comparison import Line, compare, render
from support.demo import compared
from support.release import read_back
from targetdp import Guarantee, SphericalLaplace, least_noise
from targetdp.mechanisms import noise_mechanisms
from targetdp.normalization import data_scales, normalize
from targetdp.populations import draw, invented_populations
from targetdp.release import SigningKey, known_desks, read_certificate
from targetdp.report import compare_noise

PEOPLE, FEATURES = 4_201, 10
PROMISE = Guarantee(B=0.25, epsilon=3.9999, delta=1 / (PEOPLE + 1))

STATUS_QUO = "status quo (no privacy)"
PRINTED = "private projection, as printed"
EXACT = "private projection, exact scale"
GAUSSIAN = "Gaussian noise"
PURE = "spherical Laplace, pure"
LEAST = "least noise: spherical-laplace"
MONDRIAN = "Mondrian, groups of 2 or more"
NAMES = [STATUS_QUO, PRINTED, EXACT, GAUSSIAN, PURE, LEAST, MONDRIAN]

MECHANISMS = {
    PRINTED: noise_mechanisms()["projection"](PROMISE),
    EXACT: noise_mechanisms()["projection-exact"](PROMISE),
    GAUSSIAN: noise_mechanisms()["gaussian"](PROMISE),
    PURE: SphericalLaplace(B=PROMISE.B, epsilon=PROMISE.epsilon),
    LEAST: least_noise(PROMISE, FEATURES).mechanism,
}


@pytest.fixture(scope="module")
def lines() -> dict[str, Line]:
    return {line.name: line for line in compared()}


def text_of(lines: list[Line]) -> str:
    out = io.StringIO()
    Console(width=140, file=out).print(render(lines))
    return out.getvalue()


# The comparison


def test_there_is_one_line_for_each_mechanism(lines: dict[str, Line]) -> None:
    assert list(lines) == NAMES


def test_it_is_deterministic(lines: dict[str, Line], monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen on two simulations each, which take little time, and on the status quo of the whole."""
    monkeypatch.setattr(demo, "SIMULATIONS", 2)
    first, second = compare(), compare()
    assert first == second
    assert first[0] == lines[STATUS_QUO]


def test_progress_is_told_once_for_each_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SIMULATIONS", 2)
    told: list[int] = []
    compare(lambda: told.append(1))
    assert len(told) >= 5 * 2


def test_the_noise_is_the_mechanisms(lines: dict[str, Line]) -> None:
    for name, mechanism in MECHANISMS.items():
        assert lines[name].noise == mechanism.noise_sd(FEATURES) / PROMISE.B
        assert lines[name].guarantee == mechanism.guarantee
        assert lines[name].true_epsilon == mechanism.epsilon(
            distance=PROMISE.B, delta=mechanism.guarantee.delta, dimensions=FEATURES
        )
    for name in (STATUS_QUO, MONDRIAN):
        assert lines[name].noise is None
        assert lines[name].guarantee is None
        assert lines[name].true_epsilon is None


def test_every_private_line_keeps_the_one_promise(lines: dict[str, Line]) -> None:
    for name in MECHANISMS:
        line = lines[name]
        assert line.guarantee is not None
        assert line.true_epsilon is not None
        assert line.guarantee.B == PROMISE.B
        assert line.guarantee.epsilon == pytest.approx(PROMISE.epsilon, rel=1e-12)
        assert line.guarantee.delta <= PROMISE.delta * (1 + 1e-12)
        assert line.true_epsilon <= line.guarantee.epsilon


def test_less_noise_is_more_accurate(lines: dict[str, Line]) -> None:
    """Means of 50 runs with a fixed seed; the paper's printed scale is far behind."""
    noisy = sorted((lines[name] for name in MECHANISMS), key=lambda line: line.noise or 0.0)
    assert noisy[0].name == LEAST
    assert noisy[-1].name == PRINTED
    accuracies = [line.accuracy for line in noisy]
    assert accuracies == sorted(accuracies, reverse=True)
    assert lines[LEAST].accuracy > lines[PRINTED].accuracy + 0.03
    assert lines[LEAST].missed < lines[PRINTED].missed
    assert lines[STATUS_QUO].accuracy >= max(line.accuracy for line in lines.values())


def test_accuracy_and_people_missed_belong_together(lines: dict[str, Line]) -> None:
    """As many are picked as are poor, so everyone missed makes room for one who is not poor."""
    for line in lines.values():
        assert 1 - line.accuracy == pytest.approx(2 * line.missed, abs=1e-12)
        chance = 1 - 2 * demo.QUOTA * (1 - demo.QUOTA)
        assert chance < line.accuracy < 1


# The table


def test_the_table_is_aligned_and_numbers_have_separators() -> None:
    some = [
        Line("nothing", None, None, None, 1.0, 0.75, 0.125),
        Line("something", Guarantee(0.25, 3.9999, 1 / 4202), 5.4741, 0.51209, 0.5374, 0.6174, 0.2),
    ]
    text = text_of(some)
    body = [line for line in text.splitlines() if line.startswith(("┃", "│"))]
    assert len(body) == 3
    assert len({len(line) for line in body}) == 1
    cells = [[cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")] for line in body]
    assert cells[0] == [
        "mechanism",
        "B",
        "ε stated",
        "ε true",
        "δ",
        "best guess",
        "noise / B",
        "accuracy",
        "poor people missed",
    ]
    assert cells[1] == ["nothing", "none", "none", "–", "–", "100.0%", "–", "0.750", "618,750"]
    assert cells[2] == [
        "something",
        "0.25",
        "3.9999",
        "0.5121",
        "2.4e-04",
        "53.8%",
        "5.474",
        "0.617",
        "990,000",
    ]
    borders = [[i for i, sign in enumerate(line) if sign in "┃│"] for line in body]
    assert borders[0] == borders[1] == borders[2]
    for line in body[1:]:  # numbers end in the same place: they are aligned to the right
        assert line[borders[0][-1] - 2].isdigit()


def test_rendering_computes_nothing(lines: dict[str, Line]) -> None:
    text = text_of(list(lines.values()))
    for line in lines.values():
        (row,) = [row for row in text.splitlines() if line.name in row]
        assert f"{line.missed * demo.ADULTS:,.0f}" in row
        assert f"{line.accuracy:.3f}" in row
        if line.noise is not None:
            assert f"{line.noise:.3f}" in row


# The tour


def lighter() -> tuple[tour.Step, ...]:
    """The tour of few people, whose own program is swept in place of both, once in each cell."""
    swept = "tradeoff program.toml --quick --simulations 1 --jobs 1"

    def light(command: str) -> str:
        few = command.replace("example togo --out", "example togo --rows 500 --out")
        few = few.replace("example togo --seed 9", "example togo --seed 9 --rows 600")
        return re.sub(r"tradeoff \w+ --quick", swept, few)

    return tuple(replace(step, commands=tuple(map(light, step.commands))) for step in steps())


def test_the_tours_programs_are_those_that_come_with_the_package() -> None:
    commands = [command for step in steps() for command in step.commands]
    swept = [command.split()[1] for command in commands if command.startswith("tradeoff ")]
    assert swept == ["togo", "nigeria"]
    assert set(swept) <= set(invented_populations())


def test_every_step_of_the_tour_works_and_leaves_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SIMULATIONS", 1)
    monkeypatch.setattr(tour, "steps", lighter)
    # Figures are tested by themselves: here one format, and no noise of a thousand columns.
    monkeypatch.setattr("targetdp.report._figures._drawing.FORMATS", ("png",))
    guarantee, _ = compare_noise.__defaults__ or ()
    monkeypatch.setattr(compare_noise, "__defaults__", (guarantee, (2, 10, 50)))
    folder = tmp_path / "demo"
    known_desks_before = list(known_desks())
    tour.tour(folder)
    first = folder / tour.FIRST
    told = capfd.readouterr()
    for name in ("togo.html", "scores.parquet", "scores.parquet.certificate.json", "payments.csv", "figures"):
        assert (first / name).exists()
    assert "What the tour has made" in told.out
    assert "the release holds" in told.err
    helped = (first / "payments.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(helped) == round(0.29 * 500)
    assert all(line.strip('"').startswith("2289") for line in helped)
    certificate = read_certificate(first / "private_sample.parquet.certificate.json")
    assert certificate.request.asked_by == "Ministry"
    assert certificate.request.signer == SigningKey.open(first / "official.pem").public
    assert certificate.pseudonyms
    scores = read_certificate(first / "scores.parquet.certificate.json")
    assert scores.left_out == (certificate.release,)
    assert certificate.rows + scores.rows == 500
    assert known_desks_before == list(known_desks()), "the tour's desk is in nobody's list"
    for step in lighter():
        assert step.title in " ".join(told.err.split())
        for command in step.commands:
            known = command.replace(tour.MODEL, hands.model_option(folder / step.inside))
            assert f"$ targetdp {known}" in told.err
    assert "Traceback" not in told.err
    _of_the_second_operator(folder / tour.SECOND, told.out)
    # A second tour replaces the first one.
    (folder / "old").touch()
    tour._prepare(folder)
    assert [path.name for path in folder.iterdir()] == [tour.OURS]


def _of_the_second_operator(second: Path, printed: str) -> None:
    """People who agreed have no promise, everybody else has: B = 2, ε = 4, δ = 0; and the list is full."""
    proof = read_certificate(second / "decisions.parquet.certificate.json")
    assert (proof.guarantee.B, proof.guarantee.epsilon, proof.guarantee.delta) == (2.0, 4.0, 0.0)
    assert [people.people for people in proof.agreed] == [100]
    listed = read_back(second / "list.csv")
    assert listed.num_rows == 600
    assert listed["decision"].to_pylist().count("aid") == round(0.29 * 600)
    for way in ("everything: no privacy", "a decision: this list", "a score", "a row: all columns"):
        assert way in printed


def test_what_lists_cost_is_counted() -> None:
    """Rows cost most, a score less; a list of the truth costs nobody, and one of the others everybody."""
    people = draw("togo", seed=9)
    X = normalize(people.X, data_scales(draw("togo", seed=7).X)).X
    agreed = np.arange(len(X)) % 6 == 0
    poor = people.y <= np.sort(people.y)[round(demo.QUOTA * len(X)) - 1]
    costs = cost.count_costs(X, people.y, agreed, poor, epsilon=4)
    nothing, listed, score, rows = (one.missed for one in costs)
    assert listed == 0
    assert 0.15 < nothing < score - 0.005 < rows - 0.01 < demo.QUOTA * (1 - demo.QUOTA)
    assert cost.count_costs(X, people.y, agreed, ~poor, epsilon=4)[1].missed == poor.mean()
    shown = io.StringIO()
    Console(width=140, file=shown).print(cost.render(costs))
    assert f"{(rows - nothing) * demo.ADULTS:+,.0f}" in shown.getvalue()
    # With less promised, noise costs less.
    assert cost.count_costs(X, people.y, agreed, poor, epsilon=16)[3].missed < rows - 0.01


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(SystemExit, match="was not made by the demo"):
        tour.tour(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_command_that_fails_ends_the_tour() -> None:
    with pytest.raises((SystemExit, ValueError)):
        tour._run("report nowhere --out nothing.html")
