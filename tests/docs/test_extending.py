"""docs/extending.md: what it adds works as it says, and broken versions of it are refuted."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.docs import DOCS, blocks, differences, printed_by
from targetdp import Guarantee, Protection, SphericalLaplace, audit
from targetdp.attacks import JoinedTables, _declaration, audit_rows, registered, run_attacks
from targetdp.mechanisms import NoiseMechanism, _base, _law, law_of, noise_mechanisms
from targetdp.programs import _base as programs
from targetdp.programs import _settings as settings
from targetdp.programs import objective_of, open_program, program_file
from targetdp.release import AskedDecision
from targetdp.report._page._words import subject_of
from targetdp.targeting import ScoreKind, fit_scores, score_kinds
from targetdp.tradeoff import Cell, Grid, Technology, technologies

PAGE = "extending.md"
MECHANISM = 0
"""Which block of the page is the mechanism's file."""
Attack = Callable[..., Protection]


@pytest.fixture(scope="module")
def page() -> Iterator[dict[str, Any]]:
    """Everything that the page defines; each block has printed what the page shows."""
    noise_mechanisms()  # ours are declared before the page's, and stay
    registered()
    technologies()
    score_kinds()
    registers: list[dict[str, Any]] = [
        _base._BUILDERS, _law._LAWS, _declaration._ATTACKS, programs._PROGRAMS, settings._SETTINGS,
        Technology.kinds, ScoreKind.kinds,
    ]  # fmt: skip
    before, names = [dict(one) for one in registers], dict[str, Any](__name__="extending")
    found = blocks(PAGE, "python")
    assert len(found) > 7
    try:
        for place, block in enumerate(found):
            printed = printed_by(block, names)
            assert bool(printed) == (block.shown is not None), f"block {place}: {printed}"
            assert differences(block.shown or "", printed) == [], f"block {place}"
        yield names
    finally:
        for register, old in zip(registers, before, strict=True):
            register.clear()
            register.update(old)


def test_no_printed_block_stands_alone() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    assert text.count("```output") == sum(block.shown is not None for block in blocks(PAGE, "python"))


# The mechanism


def test_its_noise_is_doubled_where_it_says(page: dict[str, Any]) -> None:
    """The deviation of 40,000 draws is within 5% of the stated one; 0.9 and 1.1 of it are not."""
    law = page["Careful"](SphericalLaplace(B=0.25, epsilon=2), (0, 1, 3)).law(4)
    noise = law.add_to(np.zeros((40_000, 4)), _words(5))
    stated = law.inner.deviation_per_column * np.array([1, 2, 8, 1])
    assert np.abs(noise.std(axis=0) / stated - 1).max() < 0.05
    assert law.deviation_per_column == pytest.approx(np.sqrt(np.mean(stated**2)))
    made = page["Careful"](SphericalLaplace(B=0.25, epsilon=2), (0, 1, 3))
    assert np.sqrt(np.diag(made.noise_covariance(4))) == pytest.approx(stated)


def test_people_who_differ_in_a_delicate_column_are_hidden_better(page: dict[str, Any]) -> None:
    """What line 4 of the proof says, held against runs: at most ε/4 after two doublings."""
    made = page["Careful"](SphericalLaplace(B=0.5, epsilon=4), (2,))
    own, other = np.array([[1.0, 0, 0]]), np.array([[0.5, 0, 0]])

    def runs(rows: np.ndarray) -> np.ndarray:
        return np.asarray(made.law(3).add_to(rows, _words(int(rows[0, 0] * 100))))

    found = audit_rows(runs, own, other, runs=40_000)
    assert 0.5 < found.epsilon < 4 / 2**2
    assert made.epsilon(distance=0.5 / 4, delta=1e-9, dimensions=3) == pytest.approx(4 / 2**2, rel=1e-3)


def test_the_audit_holds_along_every_column(page: dict[str, Any]) -> None:
    for doublings in ((1,), (0, 1)):
        made = page["Careful"](SphericalLaplace(B=0.25, epsilon=2), doublings)
        assert audit(made, dimensions=3, runs=20_000, rng=np.random.default_rng(6)).holds


def halved(mechanism: Any) -> Any:
    """Noise of half the scale under the same claim."""

    class Halved(type(mechanism)):  # type: ignore[misc]
        def law(self, dimensions: int) -> Any:
            whole = super().law(dimensions)
            return dataclasses.replace(whole, scale=whole.scale / 2, grid=whole.grid / 2)

    return Halved(mechanism.inner, mechanism.doublings)


def forgetful(mechanism: Any) -> Any:
    """Undoes D and never did it: where the noise should be doubled, the row is."""

    class Law(type(mechanism.law(3))):  # type: ignore[misc]
        def add_to(self, rows: Any, words: Any) -> Any:
            return self.inner.add_to(rows * self.factors, words) / self.factors

    class Forgetful(type(mechanism)):  # type: ignore[misc]
        def law(self, dimensions: int) -> Any:
            return Law(**vars(super().law(dimensions)))

    return Forgetful(mechanism.inner, mechanism.doublings)


@pytest.mark.parametrize("broken", [halved, forgetful])
def test_a_broken_mechanism_is_refuted(page: dict[str, Any], broken: Callable[[Any], Any]) -> None:
    sound = page["Careful"](SphericalLaplace(B=0.25, epsilon=2), (1,) if broken is forgetful else (0, 1))
    assert audit(sound, dimensions=3, runs=20_000, rng=np.random.default_rng(7)).holds
    found = audit(broken(sound), dimensions=3, runs=20_000, rng=np.random.default_rng(7))
    assert not found.holds
    assert found.refutes(2.0)


@pytest.mark.parametrize("doublings", [(), (-1,), (21,), (0.5,), (0, 0, 0, 0, 1)])
def test_bad_doublings_are_refused(page: dict[str, Any], doublings: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError), match="doublings"):
        page["Careful"](SphericalLaplace(B=0.25, epsilon=2), doublings).law(4)


def test_its_law_can_be_written_down_and_read_back(page: dict[str, Any]) -> None:
    law = noise_mechanisms()["careful"](Guarantee(0.25, 4, 1e-5)).law(4)
    assert law_of(json.loads(json.dumps(law.record()))) == law
    assert json.loads(json.dumps(law.record())) == law.record()


def test_it_is_released_and_verified_from_a_file_that_registers_it(tmp_path: Path) -> None:
    """As the page says: the mechanism's file, the registers' lines, and the command line behind them."""
    code = blocks(PAGE, "python")
    (last,) = (part for part in _plain_blocks() if "from targetdp.cli import main" in part)
    (tmp_path / "mine.py").write_text(code[MECHANISM].text + last, encoding="utf-8")
    rows = np.random.default_rng(8).normal(size=(50, 3))
    lines = (f"p{i},{','.join(map(str, row))}" for i, row in enumerate(rows.round(3).tolist()))
    (tmp_path / "people.csv").write_text("name,a,b,c\n" + "\n".join(lines) + "\n", encoding="utf-8")
    columns = "".join(f"[features.{name}]\ncenter = 0\nscale = 3\n" for name in "abc")
    (tmp_path / "scales.toml").write_text(f'source = "public"\nreason = "a"\n{columns}', encoding="utf-8")
    request = 'B = 0.25\nepsilon = 4\ndelta = 1e-6\nmechanism = "careful"\n'
    (tmp_path / "request.toml").write_text(request, encoding="utf-8")
    release = "mine.py privatize people.csv private.csv --request request.toml --yes"
    for words, code_expected, said in (
        ("mine.py init people.csv --scales scales.toml", 0, "3 columns may be released"),
        (release, 0, "(B = 0.25, ε = 4, δ = 1e-06)"),
        ("mine.py verify private.csv", 0, "the release holds"),
        ("-m targetdp verify private.csv", 1, "does NOT hold"),
    ):
        run = subprocess.run(  # noqa: S603 (our own commands)
            [sys.executable, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == code_expected, run.stdout + run.stderr
        assert said in run.stderr


# The program


def test_a_program_file_of_the_new_kind_is_opened_and_decided(page: dict[str, Any], tmp_path: Path) -> None:
    need = np.arange(20.0)
    lines = (f"{i},{value},{'ab'[i % 2]}" for i, value in enumerate(need))
    (tmp_path / "people.csv").write_text("calls,need,area\n" + "\n".join(lines) + "\n", encoding="utf-8")
    file = tmp_path / "visits.toml"
    file.write_text(
        'kind = "visits"\ntable = "people.csv"\nsource = "public"\ntarget = "need"\nplaces = 4\n'
        'features = ["calls"]\ngroups = ["area"]\n',
        encoding="utf-8",
    )
    program = open_program(file).program
    assert isinstance(program, page["Visits"])
    result = program.judge(need)
    assert np.flatnonzero(result.decisions).tolist() == [16, 17, 18, 19]
    assert result["need_met"] == pytest.approx((16 + 17 + 18 + 19) / need.sum())
    assert result.by_group["area"]["b"]["visits"] == 2
    assert {"aid", "lending", "visits"} <= program_file().model_json_schema()["discriminator"][
        "mapping"
    ].keys()
    file.write_text(file.read_text(encoding="utf-8").replace("places = 4", "places = 21"), encoding="utf-8")
    with pytest.raises(ValueError, match="places = 21"):
        open_program(file)


def test_a_page_speaks_of_the_new_kind_in_its_own_words(page: dict[str, Any]) -> None:
    run = {"kind": "visits", "objective": page["study"].objective, "made_of": {"unit": "people"}}
    assert objective_of(run) is page["Visits"].objective
    subject = subject_of(run)
    assert (subject.metric, subject.better, subject.axis) == ("need_met", "largest", "need met")
    assert subject.by_group == (("visits", "visits"),)
    stranger = subject_of(run | {"kind": "raffle"})
    assert stranger.by_group == (("need_met", "need met"),)


# The attack


def test_importing_it_is_enough_to_run_it_in_the_panel(page: dict[str, Any]) -> None:
    X, X_priv = page["X"], page["X_priv"]
    tables = JoinedTables(tuple("abcd"), X, X_priv)
    finding = run_attacks(tables, ["by_direction", "singling_out"], seed=1)[0]
    assert finding.protection == page["by_direction"](X, X_priv)
    assert finding.meaning.endswith("of 100 people could not be recognized by the direction of their row.")
    assert finding.record()["wp216_criteria"] == ["linkability", "singling out"]
    places = [one.place for one in registered().values()]
    assert places.index(100) == len(places) - 1 - places[::-1].index(100)
    assert all(place is None or place < 100 for place in places[: places.index(100)])  # behind our own
    assert list(registered())[places.index(100)] == "by_direction"


def test_the_command_line_runs_it_from_a_file_that_imports_it(tmp_path: Path) -> None:
    (code,) = (block.text for block in blocks(PAGE, "python") if "def by_direction" in block.text)
    (last,) = (part for part in _plain_blocks() if "from targetdp.cli import main" in part)
    (tmp_path / "mine.py").write_text(code + last, encoding="utf-8")
    X, X_priv = _noisy()
    for name, table in (("people.csv", X), ("private.csv", X_priv)):
        lines = [f"p{i}," + ",".join(map(str, row)) for i, row in enumerate(table.tolist())]
        (tmp_path / name).write_text("\n".join(["name,a,b,c,d,e", *lines, ""]), encoding="utf-8")
    words = "mine.py attack people.csv private.csv --id name --attacks by_direction --json"
    run = subprocess.run(  # noqa: S603 (our own command)
        [sys.executable, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    (found,) = json.loads(run.stdout)["findings"]
    assert found["meaning"].endswith("by the direction of their row.")


def problems(attack: Attack) -> list[str]:
    """What speaks against an attack on tables whose answer is known."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(1500, 5))
    twice = np.repeat(X[:100], 2, axis=0)
    cases = {
        "no noise, other units": (X, 7 * X, 0.0, 1e-9),
        "all rows equal": (X, np.ones_like(X), 1 - 1 / 1500, 1e-9),
        "rows of zeros": (X, np.zeros_like(X), 1 - 1 / 1500, 1e-9),
        "noise alone": (X, rng.normal(size=X.shape), 1 - 1 / 1500, 0.004),
        "couples": (twice, twice, 0.5, 1e-9),
    }
    found = {name: attack(own, released).score for name, (own, released, *_) in cases.items()}
    return [name for name, (*_, right, off) in cases.items() if abs(found[name] - right) > off]


def test_it_finds_what_is_there_and_no_more(page: dict[str, Any]) -> None:
    assert problems(page["by_direction"]) == []
    found = page["by_direction"](page["X"], page["X_priv"])
    assert found.bound == "upper"
    assert found.interval[0] < found.score < found.interval[1]
    assert set(found.settings) == {"direction", "profile"}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ tied.sum(axis=1)", "/ 1"),  # every tie counts as found
        ("np.round(some @ people.T, 12)", "np.round(some @ people.T, 0)"),  # everybody is tied
        ("offset=begin", "offset=0"),  # people of the first thousand rows stand for all
        ("1 - confidence", "0 * confidence"),  # no doubt is left: intervals without end
        ("rows / np.where(lengths > 0, lengths, 1)", "rows"),  # length decides, not direction
    ],
)
def test_a_broken_attack_is_noticed(right: str, wrong: str) -> None:
    (code,) = (block.text for block in blocks(PAGE, "python") if "def by_direction" in block.text)
    assert right in code
    names = dict[str, Any](__name__="broken")
    registered()  # ours are declared before, and stay
    before = dict(_declaration._ATTACKS)
    try:
        exec(compile(code.replace(right, wrong), "broken", "exec"), names)  # noqa: S102
    finally:
        _declaration._ATTACKS.clear()
        _declaration._ATTACKS.update(before)

    def attack(X: Any, X_priv: Any) -> Protection:
        found: Protection = names["by_direction"](X, X_priv)
        return found

    assert problems(attack) or attack(*_noisy()).interval == (0.0, 1.0)


def test_tables_that_do_not_belong_together_are_refused(page: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="X_priv has 1 rows, X has 2: join them by id first"):
        page["by_direction"](np.eye(2), np.ones((1, 2)))


def _noisy() -> tuple[Any, Any]:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(200, 5))
    return X, X + 0.5 * rng.normal(size=X.shape)


def _words(seed: int) -> Any:
    from targetdp.noise import word_stream

    return word_stream(np.random.default_rng(seed))


def _plain_blocks() -> list[str]:
    parts = (DOCS / PAGE).read_text(encoding="utf-8").split("\n```\n")
    return [part for part in parts if part.startswith("from ")]


def test_the_page_subclasses_what_mechanisms_are(page: dict[str, Any]) -> None:
    assert issubclass(page["Careful"], NoiseMechanism)


# The technology


def test_its_technology_is_known_by_its_name_and_promises_nothing(page: dict[str, Any]) -> None:
    known = technologies()["public"]
    assert isinstance(known, page["RoundedRows"])
    _, cell, *_ = Grid(mechanisms=("public",)).cells(100)
    assert (cell.name, cell.guarantee, cell.noises(4)) == ("public", None, ())
    assert cell.why_not is not None
    figures = {(one.metric, one.setting): one.value for one in known.derive(cell, 4)}
    nothing = {("distinguishing", "exact"): 0.0, ("exact_epsilon", ""): float("inf")}
    assert figures == nothing | {("best_guess", ""): 1.0, ("best_guess_at_2", ""): 1.0}


def test_what_is_swept_is_rounded(page: dict[str, Any]) -> None:
    released = page["RoundedRows"]().release(None, np.array([[0.26, -0.94]]), None)
    assert released.tolist() == [[0.3, -0.9]]
    with pytest.raises(ValueError, match="mechanism = 'unheard of' is not one of"):
        _ = Cell("x", "unheard of").technology


# The kind of score


def test_its_score_is_the_one_that_a_data_holder_computes_from_the_request(page: dict[str, Any]) -> None:
    X, names = page["agreed"], page["names"]
    assert list(score_kinds())[-1] == "few columns"
    for classic in (True, False):  # below B = 2, too
        rows = X if classic else X / np.linalg.norm(X, axis=1, keepdims=True)
        (fit,) = fit_scores(rows, page["needy"], classic=classic, kinds=["few columns"])
        asked = AskedDecision.model_validate({"yes": "below", "cut": 0.0} | fit.score.asked(names))
        assert asked.takes == ("c0", "c1", "c2")
        columns = dict(zip(names, rows.T, strict=True))
        assert asked.scores_of(columns) == pytest.approx(fit.score.of_rows(rows))


def test_a_gap_in_another_column_does_not_matter_to_it(page: dict[str, Any]) -> None:
    (fit,) = fit_scores(page["agreed"], page["needy"], classic=True, kinds=["few columns"])
    rows = page["agreed"][:2].copy()
    rows[0, 7], rows[1, 0] = np.nan, np.nan
    assert np.isnan(fit.score.of_rows(rows)).tolist() == [False, True]


def test_it_sees_nobodys_own_label(page: dict[str, Any]) -> None:
    """With labels that are noise alone, scores of people by fits without them tell nothing of these."""
    rng = np.random.default_rng(11)
    noise = type(page["needy"])(np.exp(rng.normal(size=600)), quota=0.3)
    (fit,) = fit_scores(page["agreed"], noise, classic=True, kinds=["few columns"])
    assert abs(np.corrcoef(fit.own, np.log(noise.outcomes))[0, 1]) < 0.15  # 3.7 deviations
    (true,) = fit_scores(page["agreed"], page["needy"], classic=True, kinds=["few columns"])
    assert np.corrcoef(true.own, np.log(page["needy"].outcomes))[0, 1] > 0.8
