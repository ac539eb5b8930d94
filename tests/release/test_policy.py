"""Policies: every rule, a sentence for each that is broken, and what counts as allowing more."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from support.release import policy_text
from targetdp._files import LONGEST_NAME, LONGEST_REASON, canonical
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE
from targetdp.release import Policy, SigningKey, Spelling, read_policy
from targetdp.release._trust._loosened import changes, loosened


def read(folder: Path, text: str) -> Policy:
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return read_policy(folder / "policy.toml")


def made(folder: Path, **policy: Any) -> Policy:
    return read(folder, policy_text(**policy))


LINE = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 1.0, "delta": 1e-6}


def test_a_policy_is_read_as_it_says(tmp_path: Path) -> None:
    key = SigningKey.open(tmp_path / "k.pem").public
    found = made(
        tmp_path, name="Togo 2026", pseudonyms=True, spelling={"spaces": "remove"}, gaps={"calls": -1},
        public={"region": "it is on the list"}, scales="private", share=0.2, limit=(0.25, 8, 1e-6),
        most=(4, 1e-7), requests={"accept": "signed", "tell": False}, keys={"ministry": key},
        plan=[LINE | {"times": 2}], reason="a pilot",
    )  # fmt: skip
    assert (found.name, found.reason) == ("Togo 2026", "a pilot")
    assert found.id.spelling == Spelling(spaces="remove")
    assert found.limit.value() == Guarantee(0.25, 8.0, 1e-6)
    assert found.columns.public == {"region": "it is on the list"}
    assert found.requests.name_of(key) == "ministry"
    assert found.requests.name_of("other") is None
    assert (found.plan[0].times, found.plan[0].columns, found.plan[0].mechanism) == (2, 3, LEAST_NOISE)
    assert found.encoding.gaps == {"calls": -1.0}
    assert (found.scales.source, found.scales.share) == ("private", 0.2)


def test_defaults_are_the_safe_ones() -> None:
    found = Policy.model_validate(
        {
            "name": "x", "id": {"column": "id"}, "columns": {"release": ["a"]},
            "limit": {"B": 0.25, "epsilon": 8, "delta": 1e-6}, "release": {"epsilon": 4, "delta": 1e-6},
        }
    )  # fmt: skip
    assert found.id.pseudonyms
    assert (found.columns.public, found.gaps, found.plan, found.requests.keys) == ({}, {}, (), {})
    assert (found.scales.source, found.scales.share) == ("private", 0.1)
    with pytest.raises(ValueError, match="frozen"):
        found.name = "y"


MORE = {"B": 0.25, "epsilon": 8, "delta": 1e-6}
SURVEY = {"to": "the survey of 2026", "columns": ("calls",), "at_most": 100}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a sentence for a name": ({"name": "This was approved by everybody, it is safe"}, "is no plain name"),
    "a long name": ({"name": "x" * (LONGEST_NAME + 1)}, "is outside 1 to 60"),
    "an empty name": ({"name": ""}, "name = ''"),
    "B": ({"limit": (2.5, 8, 1e-6)}, "limit.B = 2.5"),
    "no ε": ({"limit": (0.25, 0, 1e-6)}, "limit.epsilon = 0"),
    "infinite ε": ({"limit": (0.25, float("inf"), 1e-6)}, "policy"),
    "δ of 1": ({"limit": (0.25, 8, 1)}, "limit.delta = 1"),
    "δ of 0": ({"most": (4, 0)}, "release.delta = 0"),
    "no columns": ({"features": ()}, "columns.release"),
    "a column twice": ({"features": ("a", "a")}, "column 'a' is named twice"),
    "public and released": ({"public": {"calls": "why"}}, "column 'calls' is named twice: it is released"),
    "public without a reason": ({"public": {"region": ""}}, "columns.public.region = ''"),
    "public with no words": ({"public": {"region": 3}}, "is not text"),
    "a long reason": ({"public": {"region": "x" * (LONGEST_REASON + 1)}}, "is outside 1 to 500"),
    "the id as a feature": ({"id": "calls"}, "column 'calls' identifies people"),
    "the id as a public column": ({"public": {"name": "why"}}, "column 'name' identifies people"),
    "gaps of nobody": ({"gaps": {"nope": 0}}, "gaps names 'nope', which is not among the columns"),
    "text for a gap": ({"gaps": {"calls": "zero"}}, "gaps.calls = 'zero'"),
    "truth for a gap": ({"gaps": {"calls": True}}, "gaps.calls = True"),
    "share of all": ({"share": 1.0}, "scales.share = 1.0"),
    "unknown scales": ({"scales": "data"}, "scales.source = 'data'"),
    "unknown source of requests": ({"requests": {"accept": "all"}}, "requests.accept = 'all'"),
    "signed by nobody": ({"requests": {"accept": "signed"}}, "needs keys: name at least one"),
    "no key": ({"keys": {"ministry": "abc"}}, "is not an Ed25519 public key"),
    "a sentence for a key": ({"keys": {"the board, which agreed": "abc"}}, "is no plain name"),
    "no spelling": ({"spelling": {"case": "title"}}, "id.spelling.case = 'title'"),
    "half a phone number": ({"spelling": {"country_code": "228"}}, "country_code and digits belong together"),
    "zero times": ({"plan": [LINE | {"times": 0}]}, "plan.0.times = 0"),
    "zero columns": ({"plan": [LINE | {"columns": 0}]}, "plan.0.columns = 0"),
    "half a time": ({"plan": [LINE | {"times": 1.5}]}, "plan.0.times = 1.5"),
    "a decision": ({"plan": [LINE | {"release": "decision"}]}, "plan.0.release"),
    "noise of no kind": ({"plan": [LINE | {"mechanism": "uniform"}]}, "mechanism = 'uniform'"),
    "a filter of no kind": ({"limit": MORE | {"filter": "exact"}}, "limit.filter = 'exact'"),
    "an order of nothing": ({"limit": MORE | {"filter": "pure", "order": 3}}, 'belongs to filter = "renyi"'),
    "an order of one": ({"limit": MORE | {"order": 1}}, "limit.order = 1"),
    "classic below the limit": ({"limit": MORE | {"classic": 7.9}}, "classic = 7.9 is below epsilon = 8"),
    "agreed to nothing": ({"agreed": SURVEY | {"to": ""}}, "agreed.to = ''"),
    "agreed to no columns": ({"agreed": SURVEY | {"columns": ()}}, "agreed.columns"),
    "agreed to a column twice": ({"agreed": SURVEY | {"columns": ("calls", "calls")}}, "names 'calls' twice"),
    "agreed to an unknown column": (
        {"agreed": SURVEY | {"columns": ("calls", "age")}},
        "agreed.columns names 'age', which is neither in columns.release nor in columns.decide",
    ),
    "agreed to a public column": (
        {"agreed": SURVEY | {"columns": ("region",)}, "public": {"region": "it is on the list"}},
        "agreed.columns names 'region'",
    ),
    "nobody agreed": ({"agreed": SURVEY | {"at_most": 0}}, "agreed.at_most = 0"),
    "half a person agreed": ({"agreed": SURVEY | {"at_most": 2.5}}, "agreed.at_most = 2.5"),
    "a reason on two lines": ({"reason": "a\nb"}, "reason = 'a\\nb'"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_its_value(tmp_path: Path, what: str) -> None:
    given, message = WRONG[what]
    text = policy_text(**given).replace("Infinity", "inf")
    with pytest.raises(ValueError, match=r"^policy .*policy\.toml") as refused:
        read(tmp_path, text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"limit\.B = 3\.0.*release\.epsilon = -1"):
        made(tmp_path, limit=(3.0, 8, 1e-6), most=(-1, 1e-6))


def test_unknown_fields_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="epsilom is no field"):
        read(tmp_path, "epsilom = 4\n" + policy_text())
    with pytest.raises(ValueError, match=r"columns\.keep"):
        read(tmp_path, policy_text().replace("[columns]", '[columns]\nkeep = ["calls"]'))


@pytest.mark.parametrize("content", [b"name = [", b'name = "\xff"', b"a." * 5000 + b"b = 1"])
def test_what_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "policy.toml").write_bytes(content)
    with pytest.raises(ValueError, match=r"policy .*policy\.toml cannot be read"):
        read_policy(tmp_path / "policy.toml")
    with pytest.raises(ValueError, match=r"policy .*absent\.toml cannot be read"):
        read_policy(tmp_path / "absent.toml")


def test_gaps_are_filled_by_name_or_for_all(tmp_path: Path) -> None:
    found = made(tmp_path, gaps={"all": 0, "texts": -2.5})
    assert found.encoding.gaps == {"calls": 0.0, "texts": -2.5, "topups": 0.0}
    assert made(tmp_path).encoding.gaps == {}


def test_a_policy_is_known_by_what_it_says_not_by_how(tmp_path: Path) -> None:
    one = made(tmp_path, gaps={"calls": 0})
    two = read(tmp_path, "# a comment\n\n" + policy_text(gaps={"calls": 0}).replace("100.0", "1e2"))
    assert one == two
    assert one.sha256 == two.sha256
    assert one.sha256 != made(tmp_path, gaps={"calls": 1}).sha256
    assert one.sha256 != made(tmp_path, gaps={"calls": 0}, reason="why").sha256


def test_changes_are_told_by_place(tmp_path: Path) -> None:
    one, two = made(tmp_path), made(tmp_path, limit=(0.25, 50, 0.1), gaps={"calls": 1}, reason="why")
    found = changes(one.model_dump(mode="json"), two.model_dump(mode="json"))
    assert found == {
        "limit.epsilon": [100.0, 50.0], "gaps.calls": [None, 1.0], "reason": [None, "why"],
    }  # fmt: skip
    assert changes(one.model_dump(mode="json"), one.model_dump(mode="json")) == {}


STRICTER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "one release": ({}, {"most": (2.0, 0.1)}),
    "pseudonyms": ({}, {"pseudonyms": True}),
    "fewer columns": ({}, {"features": ("calls", "texts")}),
    "fewer public ones": ({"public": {"region": "why", "age": "why"}}, {"public": {"age": "why"}}),
    "the share of scales": ({"scales": "private"}, {"scales": "private", "share": 0.5}),
    "telling nothing": ({}, {"requests": {"tell": False}}),
}  # fmt: skip


@pytest.mark.parametrize("what", STRICTER)
def test_what_allows_no_more_is_not_called_so(tmp_path: Path, what: str) -> None:
    before, after = (made(tmp_path, **given) for given in STRICTER[what])
    assert loosened(before, after) == []


def test_a_planned_number_of_releases_is_not_changed_in_passing(tmp_path: Path) -> None:
    before, said = made(tmp_path, plan=[LINE]), ["the plan of releases is another one"]
    assert loosened(before, made(tmp_path, plan=[LINE | {"times": 2}])) == said
    assert loosened(before, made(tmp_path)) == said
    assert loosened(made(tmp_path), before) == said, "what is stated then has the δ of both"


@pytest.mark.parametrize(
    "limit",
    [
        {"B": 0.3}, {"epsilon": 7.0}, {"epsilon": 9.0}, {"delta": 1e-7}, {"filter": "pure"}, {"order": 9.0},
        {"classic": 30.0},
    ],
)  # fmt: skip
def test_any_other_limit_is_said_since_the_delta_of_both_counts(
    tmp_path: Path, limit: dict[str, Any]
) -> None:
    before, after = made(tmp_path, limit=MORE), made(tmp_path, limit=MORE | limit)
    for one, other in ((before, after), (after, before)):
        (said,) = loosened(one, other)
        assert said.startswith("the limit was ")
        assert said.endswith(", and δ of both is stated")


WITH_AGE = {"decide": ("age",), "agreed": SURVEY}


@pytest.mark.parametrize(
    ("after", "way"),
    [
        ({"agreed": SURVEY}, "calls; up to 100 of them; they agreed to “the survey of 2026”"),
        (WITH_AGE | {"agreed": SURVEY | {"columns": ("calls", "age")}}, "as they are: age"),
        (WITH_AGE | {"agreed": SURVEY | {"at_most": 101}}, "as they are: up to 101 of them"),
        (WITH_AGE | {"agreed": SURVEY | {"to": "a loan"}}, "as they are: they agreed to “a loan”"),
        (WITH_AGE | {"agreed": SURVEY | {"at_most": 99}}, ""),
        (WITH_AGE, ""),
        ({"decide": ("age",)}, ""),
    ],
)
def test_more_about_people_who_agreed_is_more(tmp_path: Path, after: dict[str, Any], way: str) -> None:
    before = made(tmp_path, decide=("age",)) if after == {"agreed": SURVEY} else made(tmp_path, **WITH_AGE)
    found = loosened(before, made(tmp_path, **({"decide": ("age",)} | after)))
    assert len(found) == bool(way)
    assert not way or way in found[0]


def test_a_policy_that_says_nothing_of_them_is_the_one_that_it_was(tmp_path: Path) -> None:
    """Its hash stands on certificates from before anybody could agree."""
    plain = made(tmp_path).model_dump(mode="json")
    assert (plain.pop("agreed"), plain.pop("kinds")) == (None, {})
    assert plain.pop("csv")
    assert made(tmp_path).sha256 == hashlib.sha256(canonical(plain).encode()).hexdigest()
    assert made(tmp_path, agreed=SURVEY).sha256 != made(tmp_path).sha256
