"""Lists from drawn answers: exactly the quota, lots on record, and a test on people whose truth is known."""

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.learn import write_program
from support.release import (
    FEATURES,
    make_desk,
    normalized,
    release,
    table_of,
    values_of,
    write_csv,
    write_parquet,
)
from targetdp._core import Integers, Words
from targetdp.mechanisms import Decision, DecisionLaw
from targetdp.programs import read_decision_rule
from targetdp.release import Certificate
from targetdp.release._certificate._contents import questions_of
from targetdp.release._decision._bits import Bits, Cuts, Rule, Turns, cuts_of, decide, turns_of
from targetdp.targeting import known_people_check, list_people, read_decisions, read_known
from targetdp.targeting._list._answers import PrivateAnswers
from targetdp.targeting._list._known_people import KnownPeople

PEOPLE = 3_000
WEIGHTS = {"calls": 1.0, "texts": 0.5}
FAR = [[-30.0, 0.0], [-8.0, 0.3], [40.0, 1.0]]
"""Cuts that are expected far below those of the people here: of them 3% have a score below the first one."""
NEAR = [[-1.6, 0.0], [-1.0, 0.3], [1.6, 1.0]]
"""The same of scaled columns."""
ASKED: dict[str, dict[str, Any]] = {
    "searched": {"decisions": [{"name": "aid", "weights": WEIGHTS, "share": 0.3, "expected": FAR}]},
    "near": {
        "B": 0.25,
        "epsilon": 1.0,
        "decisions": [{"name": "aid", "weights": WEIGHTS, "share": 0.3, "expected": NEAR}],
    },
    "known cut": {"decisions": [{"name": "aid", "weights": WEIGHTS, "yes": "above", "cut": 16.0}]},
    "near, known cut": {
        "B": 0.25, "epsilon": 1.0, "decisions": [{"name": "aid", "weights": WEIGHTS, "cut": 0.1}],
    },
    "two": {
        "decisions": [
            {"name": "aid", "weights": WEIGHTS, "share": 0.3, "expected": FAR},
            {"name": "loan", "weights": {"topups": 1.0}, "cut": 1.0, "yes": "above"},
        ],
    },
}  # fmt: skip
CLASSIC: dict[str, Any] = {"release": "decisions", "B": 2.0, "epsilon": 4.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lists")
    write_parquet(place / "in.parquet", table_of(PEOPLE))
    make_desk(place)
    for name, asked in ASKED.items():
        release(place, f"{name}.parquet", **CLASSIC | asked)
    release(place, "rows.parquet", delta=1e-5)
    write_program(place)
    write_program(place, "lending", "lending.toml")
    return place


@cache
def truth(kind: str) -> dict[str, float]:
    """Everybody's score of the first decision in the units of the request, computed here.

    A release clips rows of the columns that it names: these are two, not three.
    """
    table = table_of(PEOPLE)
    columns = values_of(table) if "B" not in ASKED[kind] else normalized(table, FEATURES[:2])
    scores = columns[:, 0] + 0.5 * columns[:, 1]
    return dict(zip(table["name"].to_pylist(), scores.tolist(), strict=True))


def known(answers: PrivateAnswers, kind: str, some: slice = slice(None)) -> KnownPeople:
    scores = truth(kind)
    ids = answers.ids.to_pylist()[some]
    return KnownPeople(pa.array(ids), scores=np.array([scores[one] for one in ids]))


# Lists


@pytest.mark.parametrize("quota", [0.1, 0.3, 0.6])
def test_the_quota_is_filled_exactly(folder: Path, quota: float) -> None:
    write_program(folder, name="quota.toml", quota=quota)
    answers = read_decisions(folder / "searched.parquet")
    made = list_people(answers, read_decision_rule(folder / "quota.toml"), np.random.default_rng(0))
    places, yes = round(quota * PEOPLE), int(answers.yes.sum())
    assert made.chosen.sum() == places
    assert made.lots == abs(places - yes)
    # Lots are drawn on one side only: whoever is on the list without a yes, or off it in spite of one.
    if places > yes:
        assert made.chosen[answers.yes].all()
    else:
        assert not made.chosen[~answers.yes].any()
    table = made.table()
    assert table.column_names == ["name", "answer", "decision", "based_on"]
    assert table["name"].to_pylist() == sorted(table_of(PEOPLE)["name"].to_pylist())
    assert table["answer"].to_pylist().count("yes") == yes
    assert table["decision"].to_pylist().count("aid") == places
    assert table["based_on"].to_pylist().count("lot") == made.lots


def test_lots_are_fair_and_on_record(folder: Path) -> None:
    answers = read_decisions(folder / "searched.parquet")
    write_program(folder, name="small.toml", quota=0.1)
    rule = read_decision_rule(folder / "small.toml")
    found = [list_people(answers, rule, np.random.default_rng(seed)).chosen for seed in range(400)]
    again = list_people(answers, rule, np.random.default_rng(7)).chosen
    np.testing.assert_array_equal(found[7], again)
    often = np.sum(found, axis=0)[answers.yes]
    share = 0.1 * PEOPLE / answers.yes.sum()
    # Of 400 lots each person with a yes wins some 130: five deviations of a binomial, for 900 of them.
    assert np.abs(often - 400 * share).max() < 5 * np.sqrt(400 * share * (1 - share))


def test_loans_go_to_everybody_with_a_yes(folder: Path) -> None:
    answers = read_decisions(folder / "known cut.parquet")
    made = list_people(answers, read_decision_rule(folder / "lending.toml"), np.random.default_rng(0))
    np.testing.assert_array_equal(made.chosen, answers.yes)
    assert (made.given, made.lots) == ("loan", 0)
    assert "no lots were needed" in made.words[0]
    ids = np.array(answers.ids.to_pylist())
    scores = np.array([truth("known cut")[one] for one in ids])
    assert np.mean((scores > 16.0) == answers.yes) > 0.97


def test_what_the_law_tells_is_true(folder: Path) -> None:
    """The share of true yes, and how many on the list have none, against the truth that only we know."""
    answers = read_decisions(folder / "known cut.parquet")
    true = np.array([truth("known cut")[one] > 16.0 for one in answers.ids.to_pylist()])
    for quota in (0.2, 0.5):
        write_program(folder, name="quota.toml", quota=quota)
        made = list_people(answers, read_decision_rule(folder / "quota.toml"), np.random.default_rng(1))
        told = made.record()
        right = float(answers.law.agreement(0.0)[0])
        assert told["agreement"]["value"] == pytest.approx(np.exp(4) / (1 + np.exp(4)))
        error = np.sqrt(right * (1 - right) / PEOPLE) / (2 * right - 1)
        assert told["true_yes"]["standard_error"] == pytest.approx(error)
        assert abs(told["true_yes"]["share"] - true.mean()) < 4 * error
        without = int((made.chosen & ~true).sum())
        assert abs(told["chosen_without_a_true_yes"] - without) < 5 * np.sqrt(without + 5)


def test_below_b_2_the_share_of_yes_alone_does_not_tell(folder: Path) -> None:
    answers = read_decisions(folder / "near.parquet")
    made = list_people(answers, read_decision_rule(folder / "program.toml"), np.random.default_rng(0))
    told = made.record()
    assert told["true_yes"] is None
    assert told["chosen_without_a_true_yes"] is None
    assert "next to the cut, and more often farther from it" in made.words[-1]


def test_several_decisions_are_named(folder: Path) -> None:
    path = folder / "two.parquet"
    with pytest.raises(ValueError, match=r"has 2 decisions \(aid, loan\): say which"):
        read_decisions(path)
    with pytest.raises(ValueError, match=r"decision = 'lone': .* has aid, loan"):
        read_decisions(path, "lone")
    answers = read_decisions(path, "loan")
    topups = dict(zip(*(table_of(PEOPLE)[name].to_pylist() for name in ("name", "topups")), strict=True))
    true = np.array([topups[one] > 1.0 for one in answers.ids.to_pylist()])
    right = 1 - 2 / (np.exp(4) + 3)  # one program's bit of two: four answers, two of them wrong for it
    assert float(answers.law.agreement(0.0)[0]) == pytest.approx(right)
    assert abs(np.mean(true == answers.yes) - right) < 5 * np.sqrt(right * (1 - right) / PEOPLE)


def test_what_is_no_release_of_decisions(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no decisions, but rows"):
        read_decisions(folder / "rows.parquet")
    changed = pa.parquet.read_table(folder / "searched.parquet").slice(1)
    pa.parquet.write_table(changed, tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="does not hold for decisions"):
        read_decisions(tmp_path / "other.parquet", None, folder / "searched.parquet.certificate.json")
    answers = read_decisions(folder / "searched.parquet")
    named = answers.certificate.model_copy(update={"id": "answer"})
    with pytest.raises(ValueError, match="named 'answer'"):
        list_people(
            replace(answers, certificate=named), read_decision_rule(folder / "program.toml"),
            np.random.default_rng(0),
        )  # fmt: skip


def test_a_release_in_csv_is_read_too(folder: Path) -> None:
    release(folder, "out.csv", **CLASSIC | ASKED["known cut"])
    answers = read_decisions(folder / "out.csv")
    assert answers.yes.dtype == np.bool_
    assert known_people_check(answers, known(answers, "known cut")).p_value > 1e-6


# People whose truth is known


@pytest.mark.parametrize("kind", ASKED)
def test_a_release_as_it_was_made_passes(folder: Path, kind: str) -> None:
    """The whole way: rows, scores, turns, cuts and bits by the engine; the truth computed here."""
    answers = read_decisions(folder / f"{kind}.parquet", "aid")
    found = known_people_check(answers, known(answers, kind))
    assert found.people == PEOPLE
    assert found.elsewhere == 0
    assert found.p_value > 1e-6
    assert abs(found.wrong - found.expected) < 6 * np.sqrt(found.expected)
    if answers.law.cells is not None:
        right = float(answers.law.agreement(0.0)[0])
        assert found.expected < 0.9 * (1 - right) * PEOPLE, "farther from the cut they are right more often"


def words_for(seed: int) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, PEOPLE, dtype=np.uint64)


@dataclass(frozen=True)
class Drawing:
    """A release whose answers are drawn again and again, with or without a fault."""

    answers: PrivateAnswers
    scores: Integers
    rules: tuple[Rule, ...]
    kind: str

    @property
    def proof(self) -> Certificate:
        return self.answers.certificate

    def batches(self, release_id: str) -> Turns:
        return turns_of(self.answers.ids, release_id, PEOPLE)[0]

    def draw(
        self, seed: int, law: DecisionLaw | None = None, rules: tuple[Rule, ...] | None = None,
        turned_by: str | None = None,
    ) -> PrivateAnswers:  # fmt: skip
        """Answers of a release; where cuts were others than the rule's, those that `verify` would find."""
        batches, words = self.batches(turned_by or self.proof.release), words_for(seed)
        drawn = decide(batches, self.scores, rules or self.rules, law or self.answers.law, words)
        return self.with_bits(drawn.bits, drawn.cuts if rules is None and turned_by is None else None)

    def with_bits(self, bits: Bits, cuts: Cuts | None = None) -> PrivateAnswers:
        found = cuts or cuts_of(self.batches(self.proof.release), bits, self.rules)
        proof = self.proof.model_copy(update={"cuts": found})
        return replace(self.answers, certificate=proof, yes=bits[:, 0])

    def p_value(self, answers: PrivateAnswers, some: slice = slice(None)) -> float:
        return known_people_check(answers, known(answers, self.kind, some)).p_value


def drawing_of(folder: Path, kind: str) -> Drawing:
    answers = read_decisions(folder / f"{kind}.parquet")
    (question,) = questions_of(answers.certificate, answers.law)
    mine = known(answers, kind)
    assert mine.scores is not None
    moved = turns_of(answers.ids, answers.certificate.release, PEOPLE)[1] * (question.asked.cut is None)
    scores = (question.placed(mine.scores) + moved)[:, None]
    return Drawing(answers, scores, (question.rule(answers.law),), kind)


@pytest.fixture(scope="module", params=["searched", "near"])
def drawing(folder: Path, request: pytest.FixtureRequest) -> Drawing:
    return drawing_of(folder, request.param)


@pytest.mark.parametrize("kind", ["searched", "near, known cut"])
def test_honest_answers_pass(folder: Path, kind: str) -> None:
    """Below α with a probability of at most α: of 200 plays with 300 known people, 5% and no more."""
    drawing = drawing_of(folder, kind)
    found = np.array([drawing.p_value(drawing.draw(seed), slice(300)) for seed in range(200)])
    for level in (0.05, 0.2):
        assert (found < level).sum() <= 200 * level + 3 * np.sqrt(200 * level * (1 - level))
    assert len(set(found.tolist())) > 3, "the test looks at answers"


def test_answers_with_half_of_the_errors_are_found(drawing: Drawing) -> None:
    law = drawing.answers.law
    half = (1 - float(law.agreement(0.0)[0])) / 2
    wrong = replace(law, level=math.log((1 - half) / half))
    assert max(drawing.p_value(drawing.draw(seed, wrong)) for seed in range(2)) < 0.01


def test_answers_that_were_not_drawn_are_found(drawing: Drawing) -> None:
    """The truth itself, at cuts that follow from it: no answer is wrong."""
    answers = drawing.draw(0, Decision(B=2, epsilon=40.0).law())
    found = known_people_check(answers, known(answers, drawing.kind))
    assert found.wrong == 0
    assert found.p_value < 1e-9
    with pytest.raises(ValueError, match="that does not happen"):
        found.warnings()


def test_another_order_is_found(drawing: Drawing) -> None:
    """People were held against cuts of other batches than the certificate says."""
    found = [drawing.p_value(drawing.draw(seed, turned_by="0" * 32)) for seed in range(2)]
    assert min(found) < 1e-6


def test_a_cut_from_true_scores_is_found(drawing: Drawing) -> None:
    """A quantile of everybody's true scores: what nobody paid for."""
    cut = int(np.quantile(drawing.scores, 0.3))
    found = [drawing.p_value(drawing.draw(seed, rules=(cut,))) for seed in range(2)]
    assert max(found) < 1e-6


def test_answers_by_chance_are_found(drawing: Drawing) -> None:
    bits = np.random.default_rng(0).random((PEOPLE, 1)) < 0.3
    assert drawing.p_value(drawing.with_bits(bits), slice(100)) < 1e-6


def test_an_odd_p_value_is_a_warning(drawing: Drawing) -> None:
    found = known_people_check(drawing.answers, known(drawing.answers, drawing.kind))
    assert found.warnings() == ()
    (warning,) = replace(found, p_value=1e-4).warnings()
    assert "hardly chance" in warning
    assert "not fraud" in found.meaning


# What is given


def test_a_table_of_known_people(folder: Path, tmp_path: Path) -> None:
    answers = read_decisions(folder / "known cut.parquet")
    scores = truth("known cut")
    some = sorted(scores)[:500]
    values = [scores[one] for one in some]
    write_csv(tmp_path / "scores.csv", pa.table({"name": some, "score": values}))
    true = [one > 16.0 for one in values]
    write_parquet(tmp_path / "answers.parquet", pa.table({"who": some, "answer": true}))
    write_csv(tmp_path / "answers.csv", pa.table({"name": [*some, "nobody"], "answer": [*true, False]}))
    by_score = known_people_check(answers, read_known(tmp_path / "scores.csv", answers))
    assert by_score.people == 500
    assert by_score.p_value > 1e-6
    by_answer = read_known(tmp_path / "answers.parquet", answers, id_column="who")
    assert known_people_check(answers, by_answer) == by_score
    and_nobody = known_people_check(answers, read_known(tmp_path / "answers.csv", answers))
    assert and_nobody == replace(by_score, elsewhere=1)
    assert "(1 more are not in the release)" in and_nobody.words


@pytest.mark.parametrize("kind", ["searched", "near, known cut"])
def test_an_answer_alone_may_tell_too_little(folder: Path, kind: str) -> None:
    answers = read_decisions(folder / f"{kind}.parquet")
    with pytest.raises(ValueError, match="Give their score"):
        known_people_check(answers, KnownPeople(answers.ids, answers=answers.yes))


def test_tables_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    answers = read_decisions(folder / "searched.parquet")
    for columns, said in (
        ({"name": ["000001"]}, "neither score nor answer"),
        ({"name": ["000001"], "score": [1.0], "answer": [True]}, "score and answer: give one"),
        ({"who": ["000001"], "score": [1.0]}, "id names 'name'"),
        ({"name": ["000001", "000001"], "score": [1.0, 2.0]}, "whose id occurs before"),
        ({"name": ["000001"], "score": pa.array([None], pa.float64())}, "1 gap, in row 1"),
    ):
        write_parquet(tmp_path / "known.parquet", pa.table(columns))
        with pytest.raises(ValueError, match=said):
            read_known(tmp_path / "known.parquet", answers)
    with pytest.raises(ValueError, match=r"none of 1 known people is in the release: .*such as '000000'"):
        known_people_check(answers, KnownPeople(pa.array(["ann"]), scores=np.zeros(1)))
