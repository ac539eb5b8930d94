"""The regulators' criteria and the plain words: complete, and right at the ends."""

import ast
import math
import re
from pathlib import Path
from typing import Any

import pytest

from targetdp import GaussianNoise, Mondrian, PrivateProjection, SphericalLaplace
from targetdp.attacks import (
    QUESTIONS,
    Answer,
    Protection,
    Setting,
    attack,
    distinguishing,
    meaning,
    registered,
    worst,
)

SOURCE = Path(__file__).parents[2] / "src" / "targetdp" / "attacks"
ANSWERS = {name: one.answers for name, one in registered().items()}
SHARES = ("singling_out", "linkage", "linkability")
ATTACKS = (*SHARES, "attribute_inference", "membership", "reconstruction", "distinguishing")


def scored(score: float, settings: int = 3, **detail: Any) -> Protection:
    """A protection as an attack would hand it back."""
    others = {f"way {i}": Setting(1.5, (1.5, 1.5)) for i in range(settings - 1)}
    return worst({"the worst": Setting(score, (score, score)), **others}, "upper", **detail)


def functions() -> dict[str, str | None]:
    """Every public function of the attacks and what it says it returns."""
    found = {}
    for path in (*SOURCE.glob("*.py"), SOURCE / "_guess" / "_bit_inference.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found[f"{path.stem}.{node.name}"] = ast.unparse(node.returns) if node.returns else None
    return found


# Complete


def test_every_attack_has_its_answer() -> None:
    attacks = {
        name.split(".")[1]
        for name, returns in functions().items()
        if returns == "Protection" and not name.startswith(("_protection.", "_together."))
    }
    assert "distinguishing" in attacks
    assert attacks | {"neighborhood"} == set(ANSWERS)


def test_every_attack_has_its_meaning() -> None:
    for name in set(ANSWERS) - {"neighborhood"}:
        assert meaning(name, scored(0.5, expected_loss=1.0)).endswith(".")
    with pytest.raises(ValueError, match="name = 'neighborhood' is not one of attribute_inference"):
        meaning("neighborhood", scored(0.5))


def test_every_criterion_is_answered_by_an_attack_and_by_a_derivation() -> None:
    assert set(QUESTIONS) == {"singling out", "linkability", "inference"}
    assert all(question.endswith("?") for question in QUESTIONS.values())
    for criterion in QUESTIONS:
        answering = {name for name, answer in ANSWERS.items() if criterion in answer.criteria}
        assert "distinguishing" in answering
        assert len(answering) >= 2


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_sentences_that_say_what_is_not_reached(name: str) -> None:
    answer: Answer = ANSWERS[name]
    assert set(answer.criteria) <= set(QUESTIONS)
    for words in (answer.adversary, answer.reaches, answer.does_not_reach):
        assert words.endswith(".")
        assert words[0].isupper()
        assert "risk" not in words.lower()
        assert "  " not in words


def test_what_the_guarantee_does_not_promise_answers_no_criterion() -> None:
    assert ANSWERS["membership"].criteria == ()
    assert "no promise" in ANSWERS["membership"].reaches
    assert ANSWERS["neighborhood"].criteria == ()


def test_the_documented_table_has_every_attack_with_its_criteria() -> None:
    text = (SOURCE.parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")
    table = text.split("## The regulators' three criteria")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE))
    assert set(rows) == set(ANSWERS)
    for name, answer in ANSWERS.items():
        stated = rows[name].replace("all three, from below", ", ".join(QUESTIONS))
        assert set(() if stated.startswith("none") else stated.split(", ")) == set(answer.criteria), name


@pytest.mark.parametrize(
    ("place", "more", "reason"),
    [
        (3, {"headline": str, "on_tables": str}, "place = 3 of mine is taken by linkage"),
        (99, {}, "give headline= and on_tables="),
    ],
)
def test_a_declaration_that_is_not_complete_is_refused(place: int, more: dict[str, Any], reason: str) -> None:
    def mine() -> None:
        """Nothing."""

    with pytest.raises(ValueError, match=re.escape(reason)):
        attack(place=place, answers=ANSWERS["linkage"], **more)(mine)
    assert "mine" not in registered()


# Shares of people


@pytest.mark.parametrize("name", SHARES)
def test_nobody_and_everybody_are_said_of_the_ends_only(name: str) -> None:
    assert meaning(name, scored(0.0)).startswith("Everybody could be ")
    assert meaning(name, scored(1.0)).startswith("Nobody was ")
    for score in (1e-12, 1e-4, 0.004, 0.5, 0.996, 1 - 1e-4, 1 - 1e-12):
        assert not re.search("everybody|nobody", meaning(name, scored(score)), re.IGNORECASE)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (0.9, "At most 90 of 100 people could not be"),
        (0.29, "At most 29 of 100 people could not be"),  # 0.29·100 is 28.999999999999996 in floats
        (0.937, "At most 937 of 1,000 people could not be"),
        (0.01, "At most 1 of 100 people could not be"),
        (0.99, "At most 99 of 100 people could not be"),
        (0.9963, "At most 997 of 1,000 people could not be"),
        (0.0037, "At most 4 of 1,000 people could not be"),
        (0.99963, "At most 9,997 of 10,000 people could not be"),
        (10 / 600, "At most 17 of 1,000 people could not be"),  # 1 of 100 would not be true
        (1 - 1e-6, "Fewer than 1 of 10,000 people were"),
        (1e-6, "Fewer than 1 of 10,000 people could not be"),
    ],
)
def test_at_most_is_true(score: float, words: str) -> None:
    assert meaning("singling_out", scored(score)).startswith(words)


def test_a_share_that_is_said_at_most_is_never_below_the_score() -> None:
    for i in range(1, 5000):
        score = i / 5000
        found = re.match(
            r"At most ([\d,]+) of ([\d,]+) people could not", meaning("singling_out", scored(score))
        )
        if found:
            said, of = (int(number.replace(",", "")) for number in found.groups())
            assert 0 < said < of
            assert score - 1e-9 <= said / of < score + 1 / of


def test_the_strongest_is_said_to_be_one_of_so_many() -> None:
    assert meaning("singling_out", scored(0.9, 6)) == (
        "At most 90 of 100 people could not be singled out by the strongest of 6 net sizes."
    )
    assert meaning("singling_out", scored(0.9, 1)).endswith("singled out by the worst.")


def test_without_a_holdout_nobody_is_said_to_be_outside() -> None:
    alone = worst({"h=1, a": Setting(0.77, (0.7, 0.8))}, "upper", p_holdout=None)
    assert meaning("attribute_inference", alone) == (
        "Guesses at a missing value failed for at most 77% of people (h=1, a)."
    )


# Ratios


def test_attribute_inference_in_words() -> None:
    assert meaning("attribute_inference", scored(0.0)).startswith("Every guess at a missing value was right")
    assert "failed at most 47% as often" in meaning("attribute_inference", scored(0.4699))
    assert "failed at most 0.1% as often" in meaning("attribute_inference", scored(1e-7))
    assert "failed less than 100% as often" in meaning("attribute_inference", scored(1 - 1e-9))
    assert "failed at least as often" in meaning("attribute_inference", scored(1.2))


def test_failures_of_58_among_600_are_not_said_to_be_fewer() -> None:
    alone = worst({"h=1, a": Setting(58 / 600, (0.0, 0.2))}, "upper", p_holdout=None)
    assert "failed for at most 9.7% of people" in meaning("insider_inference", alone)


def test_membership_in_words() -> None:
    assert "no better than by guessing" in meaning("membership", scored(1.0))
    assert "with certainty" in meaning("membership", scored(0.0))
    assert "53.1% of the way from guessing to certainty" in meaning("membership", scored(0.4699))
    assert "more than 99.9% of the way" in meaning("membership", scored(1e-9))
    assert "told 0.1% of the way" in meaning("membership", scored(1 - 1e-9))


def test_reconstruction_in_words() -> None:
    assert "without error" in meaning("reconstruction", scored(0.0))
    assert "no better than the mean of all" in meaning("reconstruction", scored(1.3))
    assert "left at most 47% of their differences" in meaning("reconstruction", scored(0.4699, measured=True))
    assert "is expected to leave at most 47%" in meaning("reconstruction", scored(0.4699, measured=False))


# Distinguishing


def test_distinguishing_says_what_a_score_of_047_means() -> None:
    delta = 1 / 4202
    mechanism = PrivateProjection(B=0.25, epsilon1=3, epsilon2=0.9999, delta1=delta * 2 / 3, delta2=delta / 3)
    found = distinguishing(mechanism, 10)
    assert round(found.score, 2) == 0.47
    assert meaning("distinguishing", found) == (
        "Of the two people who differ the most, the release tells at most 1.132 nats (odds of 3.11 to 1) on "
        "average; the best guess which of them it was is right at most 78 times in 100 (of two people 0.25 "
        "apart 54 times), a coin 50 times."
    )
    printed = meaning("distinguishing", distinguishing(mechanism, 10, formula="as_printed"))
    assert printed == (
        "Of the two people who differ the most, the release tells at most 50 nats (which leaves no doubt) "
        "on average."
    )


def test_distinguishing_at_the_ends() -> None:
    nothing = "No limit could be derived: the release may tell any two people apart."
    assert meaning("distinguishing", distinguishing(None, 10)) == nothing
    assert meaning("distinguishing", distinguishing(Mondrian(5), 10)) == nothing
    assert meaning("distinguishing", scored(0.0)) == nothing
    hidden = meaning("distinguishing", distinguishing(SphericalLaplace(B=2, epsilon=1e-4), 10))
    assert "at most 0.001 nats (next to nothing) on average" in hidden
    assert "right at most 51 times in 100" in hidden
    bare = meaning("distinguishing", distinguishing(GaussianNoise(B=1e-3, epsilon=50, delta=1e-3), 3))
    assert "nats (which leaves no doubt)" in bare
    assert "right at most 100 times in 100" in bare


# All of them


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("score", [0.0, 1e-300, 0.3, 0.5, 1 - 1e-16, 1.0, 1.7, math.inf])
def test_a_meaning_is_one_plain_sentence(name: str, score: float) -> None:
    words = meaning(name, scored(score, expected_loss=0.7))
    assert words.endswith(".")
    assert "\n" not in words
    assert not re.search(r"\b(nan|inf|none|risk)\b", words, re.IGNORECASE)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="name = 'unheard_of' is not one of"):
        meaning("unheard_of", scored(0.5))
    with pytest.raises(TypeError, match="is not a Protection"):
        meaning("linkage", 0.5)  # type: ignore[arg-type]


def test_scores_are_called_scores() -> None:
    assert "estimated without error" in meaning("reconstruction", scored(0.0), scores=True)
    for name, of_rows, of_scores in (
        ("reconstruction", "people's values", "people's scores"),
        ("linkage", "released row", "released score"),
    ):
        assert of_rows.lower() in meaning(name, scored(0.5)).lower()
        assert of_rows.lower() not in meaning(name, scored(0.5), scores=True).lower()
        assert of_scores.lower() in meaning(name, scored(0.5), scores=True).lower()
    assert meaning("reconstruction", scored(0.0), scores=True).startswith("People's scores could")


def test_the_informed_adversary_says_more_of_itself() -> None:
    for name, what in (("score_inference", "score"), ("row_inference", "row")):
        assert f"whose {what} is whose" in ANSWERS[name].adversary
        assert ANSWERS[name].criteria == ("inference",)
        assert "failed at most 50% as often" in meaning(name, scored(0.5, p_holdout={}))
