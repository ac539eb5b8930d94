"""Decisions as technologies of a sweep: simulations by hand, what is derived, and what is said of them."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.outside import VIETNAM, needs
from support.tradeoff import FEATURES, PEOPLE, study, sweep
from targetdp.attacks import BitQuestion, bit_inference, singling_out, split_holdout
from targetdp.guarantee import Guarantee
from targetdp.normalization import data_scales, normalize
from targetdp.programs import Aid, Folds, ScoredProgram
from targetdp.release import Request
from targetdp.targeting import AgreedAndDecisions, SampleAndDecisions
from targetdp.targeting._sample_and_scores import part_of
from targetdp.theorem1 import accuracy_ceiling
from targetdp.tradeoff import (
    Cell,
    Constraint,
    Grid,
    Study,
    generator,
    read_figures,
    recommend,
    request_text,
    run,
    simulate,
)
from targetdp.tradeoff._decision import NO_PROMISE, DecisionByAgreedSample, DecisionBySample, ReleasedAnswers

GRID = Grid(
    B=(0.25, 2.0), epsilon1=(3.0,), epsilon2=(0.5,), group_sizes=(),
    mechanisms=("least-noise", "score", "decision", "decision-agreed"),
)  # fmt: skip
CELLS = {cell.name: cell for cell in GRID.cells(PEOPLE)}
CELL, AGREED = CELLS["decision B=2 epsilon=3.5"], CELLS["decision-agreed B=2 epsilon=3.5"]
AT_2 = Guarantee(2.0, 3.5)


def figures(s: Study, cell: Cell, number: int, seed: int = 11) -> dict[tuple[str, str], float]:
    today = s.run(s.X, generator(seed, CELLS["status quo"], 0, "program"))
    found = simulate(s, cell, cell.build(4), today, number, seed=seed, draws=2).figures
    return {(figure.metric, figure.setting): figure.value for figure in found}


def derived(cell: Cell, dimensions: int = 4) -> dict[tuple[str, str], float]:
    return {(f.metric, f.setting): f.value for f in cell.technology.derive(cell, dimensions)}


# ---------------------------------------------------------------- simulations by hand


@pytest.mark.parametrize("lending", [False, True])
@pytest.mark.parametrize("B", [0.25, 2.0])
def test_a_simulation_by_hand(lending: bool, B: float) -> None:
    s, cell = study(lending=lending), CELLS[f"decision B={B:g} epsilon=3.5"]
    found = figures(s, cell, 2)
    releases = DecisionBySample().releases(cell, 4)
    Z = releases.row_mechanism.privatize(s.X, generator(11, cell, 2, "release"))
    assert releases.row_mechanism == CELLS[f"least-noise B={B:g} epsilon=3.5"].build(4)
    assert releases.promise == Guarantee(B, 3.5)

    draws, yes = generator(11, cell, 2, "scores"), np.zeros(PEOPLE, dtype=bool)
    for others, decided in s.folds:
        sample = np.isin(np.arange(PEOPLE), others)
        labelled = part_of(s.program, sample)
        learned = releases.learn(Z[sample], labelled)
        asked = releases.question(learned, labelled)
        yes[decided] = releases.answers(asked, learned, s.X[decided], draws).bits
    result = s.program.judge(yes if lending else ~yes, generator(11, cell, 2, "program"))
    assert found["accuracy", ""] == result["accuracy"]
    assert found[s.objective["metric"], ""] == result[s.objective["metric"]]
    if lending:
        assert found["approvals", ""] == yes.sum()
    else:
        assert found["eligible", ""] == round(0.3 * PEOPLE) * 100  # the quota, to the person

    program = s.program
    assert isinstance(program, ScoredProgram)
    learned = releases.learn(Z, program)
    release = generator(11, cell, 2, "release")
    releases.row_mechanism.privatize(s.X, release)
    asked = releases.question(learned, program, FEATURES)
    drawn = releases.answers(asked, learned, s.X, release)
    score = s.X @ learned.w
    true = score <= drawn.cuts if asked.yes == "below" else score >= drawn.cuts
    outside = singling_out(true[:, None].astype(float), drawn.bits[:, None].astype(float))
    assert found["singling_out", f"outside the sample: {outside.strongest}"] == outside.score

    working, holdout = split_holdout(s.X, PEOPLE // 4, generator(11, cell, 2, "holdout"))
    question = BitQuestion(learned.w, drawn.cuts[working], asked.yes)
    if B < 2:
        assert drawn.unit_cuts is not None
        assert drawn.law.cells is not None
        question = BitQuestion(drawn.law.cells.score.weights, drawn.unit_cuts[working])  # type: ignore[attr-defined]
    guessed = bit_inference(
        s.X[working], drawn.bits[working], question, drawn.law, s.X[holdout],
        known=[3], population=s.X, columns=FEATURES,
    )  # fmt: skip
    told = {k: v for (m, k), v in found.items() if m == "insider_inference" and k.startswith("outside")}
    assert told == {f"outside the sample: {name}": one.score for name, one in guessed.settings.items()}
    assert {k.partition(":")[0] for m, k in found if m == "attribute_inference"} == {"inside the sample"}


def test_a_simulation_of_an_agreed_sample_by_hand() -> None:
    s = study()
    found = figures(s, AGREED, 1)
    agreed, draws = AgreedAndDecisions(AT_2, FEATURES), generator(11, AGREED, 1, "scores")
    yes = np.zeros(PEOPLE, dtype=bool)
    for others, decided in s.folds:
        sample = np.isin(np.arange(PEOPLE), others)
        tried = agreed.learn(s.X[sample], part_of(s.program, sample))
        yes[decided] = agreed.answers(tried, s.X[decided], draws).bits
    result = s.program.judge(~yes, generator(11, AGREED, 1, "program"))
    assert found["accuracy", ""] == result["accuracy"]
    settings = {setting for metric, setting in found if metric in {"singling_out", "insider_inference"}}
    assert settings
    assert not any("inside" in setting for setting in settings), "nothing is promised inside the sample"
    assert not [m for m, _ in found if m == "attribute_inference"]


@pytest.mark.parametrize("kind", ["decision", "agreed"])
def test_nobody_is_decided_about_by_a_question_that_saw_her(kind: str) -> None:
    """Somebody's own row and outcome, as the sample has them, may be anything: her answer stays."""
    s = study()
    part = next(decided for _, decided in s.folds)
    rng = np.random.default_rng
    if kind == "decision":
        releases = DecisionBySample().releases(CELL, 4)
        Z = releases.row_mechanism.privatize(s.X, rng(0))
        before = releases.predict(s.program, s.X, Z, s.folds, rng(1))
        Z[part] = 7.0
        after = releases.predict(s.program, s.X, Z, s.folds, rng(1))
    else:
        agreed, program = AgreedAndDecisions(AT_2, FEATURES), s.program
        before = agreed.predict(program, s.X, s.folds, rng(1))
        outcomes = program.outcomes.copy()
        outcomes[part] = outcomes[part][::-1]
        after = agreed.predict(replace(program, consumption=outcomes), s.X, s.folds, rng(1))  # type: ignore[type-var]
    np.testing.assert_array_equal(before[part], after[part])
    assert (before != after).any()


def test_without_noise_decisions_are_todays(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a huge ε answers are the true ones, and the program is nearly as good as without privacy."""
    del monkeypatch
    X, y = _line(1_500)
    program, folds = Aid(y, 0.3), Folds(len(X))
    both = SampleAndDecisions.of(Guarantee(2, 90.0, 1e-4), Guarantee(2, 90.0), 3)
    rng = np.random.default_rng(0)
    Z = both.row_mechanism.privatize(X, rng)
    assert program.judge(both.predict(program, X, Z, folds, rng), rng)["accuracy"] > 0.96
    coin = SampleAndDecisions.of(Guarantee(2, 0.001, 1e-4), Guarantee(2, 0.001), 3)
    Z = coin.row_mechanism.privatize(X, rng)
    assert abs(program.judge(coin.predict(program, X, Z, folds, rng), rng)["accuracy"] - 0.58) < 0.04


def _line(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(3).uniform(-0.5, 0.5, (n, 3))
    return X, np.exp(X @ [1.0, 0.5, 0.2])


@pytest.mark.parametrize("B", [0.25, 2.0])
def test_the_share_of_yes_is_the_quota(B: float) -> None:
    X, y = _line(4_000)
    program = Aid(y, 0.3)
    both = SampleAndDecisions.of(Guarantee(B, 4.0, 1e-4), Guarantee(B, 4.0), 3)
    rng = np.random.default_rng(0)
    learned = both.learn(both.row_mechanism.privatize(X, rng), program)
    asked = both.question(learned, program)
    assert asked.share == pytest.approx(0.3, abs=0.02)
    drawn = both.answers(asked, learned, X, rng)
    assert drawn.bits.mean() == pytest.approx(asked.share, abs=0.05)


def test_a_lenders_cut_is_where_people_are_just_likely_enough() -> None:
    X, _ = _line(20_000)
    rng = np.random.default_rng(4)
    w = np.array([1.0, 0.5, 0.2]) / np.linalg.norm([1.0, 0.5, 0.2])
    chance = 1 / (1 + np.exp(-(8 * X @ w + 1)))
    from targetdp.programs import Lending

    for threshold in (0.5, 0.7):
        program = Lending((rng.random(len(X)) < chance).astype(float), None, threshold)
        both = SampleAndDecisions.of(Guarantee(0.25, 8.0, 1e-5), Guarantee(0.25, 8.0), 3)
        learned = both.learn(both.row_mechanism.privatize(X, rng), program)
        asked = both.question(learned, program)
        expected = (np.log(threshold / (1 - threshold)) - 1) / 8
        assert (asked.yes, asked.share) == ("above", None)
        assert asked.cut == pytest.approx(expected, abs=0.04)


# ---------------------------------------------------------------- what is derived


@pytest.mark.parametrize("B", [0.25, 2.0])
def test_a_best_guess_across_the_cut_is_what_no_algorithm_can_beat(B: float) -> None:
    cell = CELLS[f"decision-agreed B={B:g} epsilon=3.5"]
    found = derived(cell)
    across = np.exp(3.5) / (1 + np.exp(3.5))
    assert found["best_guess", ""] == pytest.approx(across, rel=1e-9)
    assert found["best_guess", ""] == pytest.approx(accuracy_ceiling(Guarantee(B, 3.5)), rel=1e-9)
    far = found["best_guess_at_2", ""]
    assert far == pytest.approx(across, rel=1e-9) if B == 2 else far > 0.999
    assert found["exact_epsilon", ""] == 3.5
    # 𝒰 of randomized response is ε·tanh(ε/2).
    level = 3.5 if B == 2 else 3.5 * 2 / B
    if B == 2:
        assert found["distinguishing", "exact"] == pytest.approx(
            1 / (1 + level * np.tanh(level / 2)), rel=1e-6
        )


def test_the_worse_of_both_groups_is_derived() -> None:
    found, rows = derived(CELL), derived(CELLS["least-noise B=2 epsilon=3.5"])
    bits = derived(AGREED)
    inside, outside = (found["distinguishing", f"{who} the sample"] for who in ("inside", "outside"))
    assert inside == rows["distinguishing", "exact"]
    assert outside == bits["distinguishing", "exact"]
    assert found["distinguishing", "exact"] == min(inside, outside)
    assert found["best_guess", ""] == max(rows["best_guess", ""], bits["best_guess", ""])
    assert found["exact_epsilon", ""] <= 3.5 * (1 + 1e-9)


def test_decisions_have_no_delta_and_the_samples_rows_do() -> None:
    assert CELL.delta == 1 / (PEOPLE + 1)
    assert AGREED.delta == 0.0
    assert AGREED.guarantee == AT_2
    assert {cell.delta for cell in CELLS.values() if cell.mechanism == "decision-agreed"} == {0.0}


def test_they_need_people_to_learn_from() -> None:
    kinds = {people: {cell.mechanism for cell in GRID.cells(people)} for people in (59, 119, 120)}
    assert "decision" not in kinds[59]
    assert "decision-agreed" not in kinds[119]
    assert {"decision", "decision-agreed"} <= kinds[120]


def test_keys_are_their_own() -> None:
    keys = [cell.key for cell in CELLS.values()]
    assert len(set(keys)) == len(keys)


# ---------------------------------------------------------------- what is said and asked for


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decisions") / "sweep"
    run(sweep(grid=replace(GRID, mechanisms=("decision", "decision-agreed")), simulations=3), folder)
    return folder


def test_a_sweep_has_both(finished: Path) -> None:
    found = read_figures(finished)
    assert {name.split()[0] for name in found} == {"status", "decision", "decision-agreed"}
    for name, estimates in found.items():
        if name != "status quo":
            assert {"singling_out", "inference", "insider_inference", "best_guess"} <= set(estimates)
    assert "attribute_inference" not in found[AGREED.name]


def test_a_private_sample_is_recommended_with_the_whole_story(finished: Path) -> None:
    found = recommend(finished, [Constraint("singling_out", at_least=0.01)])
    assert found.chosen is not None
    assert found.chosen.cell.mechanism == "decision"
    assert "of whom one drawn answer is: whichever is worse" in found.reason
    assert found.request is not None
    for step in (
        "This is the first of two requests", "1. The data holder", "targetdp learn … --release decisions",
        "targetdp allocate, which makes the list", "Decisions have no δ",
    ):  # fmt: skip
        assert step in found.request
    asked = Request.model_validate(tomllib.loads(found.request))
    assert (asked.release, asked.mechanism) == ("rows", "least-noise")
    assert found.guarantee is not None
    assert asked.guarantee(found.guarantee.delta) == found.guarantee


def test_an_agreed_sample_is_never_recommended_by_itself_and_told_with_its_condition(finished: Path) -> None:
    found = recommend(finished, [Constraint("singling_out", at_least=0.01)])
    agreed = [one for one in found.results if one.cell.mechanism == "decision-agreed"]
    assert agreed
    assert all(one.excluded_by for one in agreed)
    with pytest.raises(ValueError, match="targetdp agree") as refused:
        request_text(found.run, agreed[0].cell)
    assert "targetdp learn" in str(refused.value)
    told = found.reason
    if "decision-agreed" in told:
        assert "agree to be used as they are" in told
        assert "no promise" in told


def test_wherever_an_agreed_sample_is_described_it_has_no_promise() -> None:
    one = DecisionByAgreedSample()
    assert NO_PROMISE in one.explanation
    assert NO_PROMISE in one.about_attacks
    assert NO_PROMISE in one.request_comments(AGREED)
    # What learn writes leaves nobody out: answers of those who agreed test the release.
    assert "leaves those people out" not in " ".join(one.request_comments(AGREED))
    assert "no promise" in NO_PROMISE
    assert "without any promise" in one.condition


def test_answers_are_attacked_with_the_question_that_was_asked() -> None:
    """The true answers are those of the scores and cuts that the certificate would state."""
    X, y = _line(600)
    both = SampleAndDecisions.of(Guarantee(0.25, 80.0, 1e-4), Guarantee(0.25, 80.0), 3)
    rng = np.random.default_rng(0)
    program = Aid(y, 0.3)
    learned = both.learn(X, program)
    asked = both.question(learned, program)
    shown = ReleasedAnswers.of(both.answers(asked, learned, X, rng), asked, learned.w, X)
    true, bits = shown.tables()
    np.testing.assert_array_equal(true, bits)  # at ε = 80 nobody's answer is wrong
    assert 0.2 < bits.mean() < 0.4


@needs(VIETNAM)
def test_on_a_real_table_a_decision_beats_rows_and_scores_at_b_2() -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(VIETNAM)
    names = tuple(table.column_names[:10])
    columns = np.column_stack([np.asarray(table[name], dtype=float) for name in names])
    X = normalize(columns, data_scales(columns)).X
    program = Aid(np.asarray(table["y"], dtype=float), 0.29)
    s = Study("vietnam", "public", names, X, program, Folds(len(X), 2))
    grid = Grid(
        B=(2.0,), epsilon1=(3.0,), epsilon2=(0.9999,), group_sizes=(), mechanisms=("least-noise", "decision")
    )
    today, rows, decision = grid.cells(len(X))
    quo = s.run(s.X, generator(0, today, 0, "program"))
    found = {}
    for cell in (rows, decision):
        each = [
            next(
                f.value
                for f in simulate(s, cell, cell.build(10), quo, i, seed=0).figures
                if f.metric == "accuracy"
            )
            for i in range(3)
        ]
        found[cell.mechanism] = float(np.mean(each))
    assert 0.69 < found["decision"] < quo["accuracy"] + 0.01
    assert found["decision"] > found["least-noise"] + 0.04
