"""What a request says of decisions: each way to get it wrong has one clear line, and a file says it whole."""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support.decisions import CURVES, EXPECTED, NEAR_CURVES, WEIGHTS, asks, decision, near, with_cut
from support.release import cli, make_desk, request_of
from targetdp.release import Request, SigningKey, describe_request, make_request
from targetdp.release._decision._asked import describe_decision
from targetdp.release._request import parse_request

NAN, INF = float("nan"), float("inf")
MODEL = "ab" * 32


def wrong(asked: dict[str, Any] | list[dict[str, Any]], said: str, **given: Any) -> None:
    """It is refused in one line that says so."""
    decisions = asked if isinstance(asked, list) else [asked]
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        make_request(**{"release": "decisions", "B": 2.0, "epsilon": 4.0, "decisions": decisions} | given)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 2_000


# One decision


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": None}, "aid: nothing given for what people are judged by; give one of weights"),
        ({"additive": CURVES}, "aid: weights and additive given for what people are judged by"),
        ({"model": MODEL, "columns": ("calls",)}, "aid: weights and model given"),
        ({"columns": ("calls",)}, "aid: columns are those that a model takes: give them with a model"),
        ({"weights": None, "model": MODEL}, "columns are those that a model takes: give them with a model"),
        ({"weights": None, "model": MODEL, "columns": ()}, "at least 1 item"),
        ({"weights": None, "model": MODEL, "columns": ("a", "a")}, "columns names 'a' twice"),
        ({"weights": None, "model": "ab", "columns": ("a",)}, "String should match pattern"),
        ({"weights": None, "model": MODEL.upper(), "columns": ("a",)}, "String should match pattern"),
        ({"weights": {}}, "at least 1 item"),
        ({"weights": {"calls": 0.0, "texts": -0.0}}, "aid: all weights are 0"),
        ({"weights": {f"c{i}": 1.0 for i in range(100_001)}}, "number of columns = 100001"),
        ({"additive": {}, "weights": None}, "at least 1 item"),
    ],
)
def test_what_people_are_judged_by_is_one_thing(changed: dict[str, Any], said: str) -> None:
    wrong(decision(**changed), said)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        ({"knots": (0.0, 1.0), "values": (0.0,)}, "2 knots and 1 values: give a value for each knot"),
        ({"knots": (1.0, 0.0), "values": (0.0, 1.0)}, "knots must rise"),
        ({"knots": (1.0, 1.0), "values": (0.0, 1.0)}, "knots must rise"),
        ({"knots": (), "values": ()}, "at least 1 item"),
        ({"knots": range(5000), "values": range(5000)}, "at most 1024 items"),
        ({"knots": (0.0, NAN), "values": (0.0, 1.0)}, "knots.1 = nan"),
        ({"knots": (0.0, 1.0), "values": (0.0, INF)}, "values.1 = inf"),
        ({"knots": (0.0, 1.0), "values": ("0", "1")}, "values.0 = '0'"),
        ({"knots": (False, True), "values": (0.0, 1.0)}, "knots.0 = False"),
        ({"knots": (0.0, 1.0), "values": (3.0, 3.0)}, "aid: all curves are flat"),
        ({"knots": (0.0,), "values": (3.0,)}, "aid: all curves are flat"),
        ({"knots": (0.0, 1.0)}, "values must be given"),
        ({"knots": (0.0, 1.0), "values": (0.0, 1.0), "slope": 1}, "is no field"),
    ],
)
def test_a_curve_is_knots_that_rise_and_a_value_for_each(curve: dict[str, Any], said: str) -> None:
    given = {name: list(values) if isinstance(values, range) else values for name, values in curve.items()}
    wrong(decision(weights=None, additive={"calls": given}), said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cut": 1.0}, "aid: give cut, where it is known; or share and expected"),
        ({"cut": 1.0, "expected": None}, "aid: give cut, where it is known; or share and expected"),
        ({"cut": 1.0, "share": None}, "aid: give cut, where it is known; or share and expected"),
        ({"share": None, "expected": None}, "aid: give cut, where it is known; or share and expected"),
        ({"expected": None}, "aid: give cut, where it is known; or share and expected"),
        ({"share": None}, "aid: give cut, where it is known; or share and expected"),
        ({"share": 0.0}, "share = 0.0: must be greater than 0"),
        ({"share": 1.0}, "share = 1.0: must be less than 1"),
        ({"share": NAN}, "share = nan"),
        ({"share": "0.3"}, "share = '0.3'"),
        ({"share": True}, "share = True"),
        ({"expected": ((0.0, 0.3),)}, "at least 2 items"),
        ({"expected": tuple((float(i), i / 64) for i in range(65))}, "at most 64 items"),
        ({"expected": ((0.0, 1.0), (1.0, 0.0))}, "rising cuts, and shares of yes that rise"),
        ({"expected": ((1.0, 0.0), (0.0, 1.0))}, "aid: expected must have rising cuts"),
        ({"expected": ((0.0, 0.0), (0.0, 1.0))}, "aid: expected must have rising cuts"),
        ({"yes": "above"}, "aid: expected must have rising cuts, and shares of yes that fall"),
        ({"expected": ((0.0, 0.3), (1.0, 0.3))}, "aid: expected has the same share everywhere"),
        ({"expected": ((0.0, 0.0), (1.0, 1.5))}, "expected.1.1 = 1.5"),
        ({"expected": ((0.0, -0.1), (1.0, 1.0))}, "expected.0.1 = -0.1"),
        ({"expected": ((0.0, False), (1.0, True))}, "expected.0.1 = False"),
        ({"expected": (("0", 0.0), (1.0, 1.0))}, "expected.0.0 = '0'"),
        ({"expected": ((0.0, 0.0), (INF, 1.0))}, "expected.1.0 = inf"),
        ({"expected": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))}, "at most 2 items"),
        ({"expected": ((-1e308, 0.0), (1e308, 1.0))}, "aid: expected has cuts beyond what floats hold"),
        ({"expected": ((1.7e308, 0.0), (1.75e308, 1.0))}, "aid: expected has cuts beyond what floats hold"),
        ({"expected": ((0.0, 0.0), (1e-17, 0.5), (1.0, 1.0))}, "aid: expected has cuts that cannot"),
        ({"yes": "maybe"}, "yes = 'maybe': must be 'below' or 'above'"),
        ({"yes": True}, "yes = True"),
        ({"name": ""}, "decisions.name = '' is no plain name"),
        ({"name": "She is poor."}, "is no plain name"),
        ({"name": "aid\n"}, "is no plain name"),
        ({"name": "été"}, "is no plain name"),
        ({"name": 3}, "name = 3"),
        ({"why": "because"}, "is no field"),
    ],
)  # fmt: skip
def test_the_cut_is_known_or_is_found_from_what_is_expected(changed: dict[str, Any], said: str) -> None:
    wrong(decision(**changed), said)


@pytest.mark.parametrize(("value", "said"), [(NAN, "nan"), (-INF, "-inf"), ("1", "'1'"), (True, "True")])
def test_a_cut_or_a_weight_is_a_finite_number(value: Any, said: str) -> None:
    wrong(with_cut(value), f"cut = {said}")
    wrong(decision(weights={"calls": value}), f"weights.calls = {said}")


# Several, and what else a request says


def test_several_are_taken_together_at_B_2_and_no_more_than_four() -> None:
    names = ("a", "b", "c", "d", "e")
    both = [decision(name=name) for name in names]
    wrong(both[:2], "B = 0.5: several decisions are taken together at B = 2 only", B=0.5)
    wrong(both, "at most 4 items")
    assert [one.name for one in asks(*both[:4]).decisions] == ["a", "b", "c", "d"]
    wrong([decision(), decision(name="AID")], "'AID' has the name of column 'aid'")
    wrong([decision(name=None), decision(name=None)], "'decision' has the name of column 'decision'")
    wrong([], 'release = "decisions" needs [[decisions]]')
    with pytest.raises(ValueError, match="must be a valid tuple"):
        make_request(release="decisions", B=2.0, epsilon=4.0, decisions=decision())


@pytest.mark.parametrize("more", [{"features": ("calls",)}, {"delta": 1e-6}, {"mechanism": "gaussian"}])
def test_what_is_for_noise_is_not_for_decisions(more: dict[str, Any]) -> None:
    wrong(decision(), f"{next(iter(more))} is not for decisions", **more)


def test_decisions_are_for_releases_of_decisions() -> None:
    for kind in ("rows", "scores"):
        wrong(decision(), 'decisions belongs to release = "decisions"', release=kind)
    wrong(decision(), 'weights belongs to release = "scores"', weights=WEIGHTS)
    wrong(decision(), 'scores belongs to release = "scores"', scores=("aid",))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"weights": None, "model": MODEL, "columns": ("calls",)},
            "aid: a model decides at B = 2 only, where any function of the one row is safe; ask for B = 2",
        ),
        (
            {"weights": None, "additive": {"calls": {"knots": (-2.0, 2.0), "values": (0.0, 1.0)}}},
            "aid: knots[0] = (-2.0, 2.0) must rise, from −1 at least to 1 at most",
        ),
        ({"expected": ((-20.0, 0.0), (-10.0, 0.5), (1.0, 1.0))}, "aid: expected has cuts that cannot"),
        ({"expected": ((0.0, 0.0), (1e-17, 0.5), (1.0, 1.0))}, "within what scores of scaled rows can be"),
    ],
)  # fmt: skip
def test_below_B_2_scores_are_of_scaled_rows(changed: dict[str, Any], said: str) -> None:
    wrong(near(**changed), said, B=0.25)


# As a file

FLAT = {"knots": (1.0,), "values": (2.0,)}
ODD = ("a.b", 'he said "so"', "été", "a b", "x\\y", "'", "=1+1", "[decisions]", "#", "日本")
KINDS: dict[str, tuple[tuple[dict[str, Any], ...], float]] = {
    "weights": ((decision(),), 2.0),
    "a cut": ((with_cut(-3.25, yes="above"),), 2.0),
    "above": ((decision(yes="above", expected=((0.0, 1.0), (1e-3, 0.25), (9.0, 0.0))),), 2.0),
    "curves": ((decision(weights=None, additive=CURVES),), 2.0),
    "one knot": ((decision(weights=None, additive=CURVES | {"texts": FLAT}),), 2.0),
    "a model": ((decision(weights=None, model=MODEL, columns=ODD),), 2.0),
    "odd weights": ((decision(weights={name: 1e300 / (1 + i) for i, name in enumerate(ODD)}),), 2.0),
    "odd curves": ((decision(weights=None, additive=dict.fromkeys(ODD, CURVES["calls"])),), 2.0),
    "together": (
        (
            decision(name="a"),
            with_cut(1e-300, name="b"),
            decision(name="c", weights=None, additive=CURVES, share=0.9),
            decision(name="d", weights=None, model=MODEL, columns=("calls",)),
        ),
        2.0,
    ),
    "near": ((near(),), 0.25),
    "near curves": ((near(weights=None, additive=NEAR_CURVES),), 0.25),
    "the default name": ((decision(name=None),), 2.0),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_says_all_of_it(kind: str, tmp_path: Path) -> None:
    decisions, B = KINDS[kind]
    asked = asks(*decisions, B=B, asked_by="Ministry of Aid", learned_from="abcdef")
    text = asked.text("a comment\n[[decisions]]")
    assert parse_request(text) == asked
    assert parse_request(text).sha256 == asked.sha256
    schema = tomllib.loads(text)
    jsonschema.validate(schema, Request.model_json_schema())
    (tmp_path / "request.toml").write_text(text, encoding="utf-8")
    shown = cli("request", "show", tmp_path / "request.toml")
    assert (shown.code, shown.err) == (0, "")
    for one in asked.decisions:
        assert f"{one.name}: yes where" in " ".join(shown.out.split())
    assert "δ: 0" in shown.out
    assert "noise" not in shown.out


def test_signing_works(tmp_path: Path) -> None:
    make_desk(tmp_path)
    key = SigningKey.open(tmp_path / "key.pem")
    for decisions, B in KINDS.values():
        signed = asks(*decisions, B=B).signed(key)
        assert parse_request(signed.text()).signer == key.public
        changed = parse_request(signed.text().replace("epsilon = 4.0", "epsilon = 4.5"))
        with pytest.raises(ValueError, match="signature does not fit"):
            _ = changed.signer


VARIANTS: tuple[Request, ...] = (
    asks(),
    asks(epsilon=3.9),
    asks(near(), B=1.5),
    asks(decision(name="help")),
    asks(decision(weights={"calls": 1.0, "texts": 0.25})),
    asks(decision(weights={"calls": 1.0, "topups": 0.5})),
    asks(decision(weights={"texts": 0.5, "calls": 1.0, "topups": 0.0})),
    asks(decision(share=0.31)),
    asks(decision(expected=(*EXPECTED[:-1], (60.0, 0.99)))),
    asks(decision(expected=(*EXPECTED[:-1], (61.0, 1.0)))),
    asks(with_cut(8.0)),
    asks(with_cut(8.0, yes="above")),
    asks(with_cut(8.5)),
    asks(decision(weights=None, additive=CURVES)),
    asks(decision(weights=None, additive=CURVES | {"texts": CURVES["calls"]})),
    asks(decision(weights=None, model=MODEL, columns=("calls", "texts"))),
    asks(decision(weights=None, model="cd" * 32, columns=("calls", "texts"))),
    asks(decision(weights=None, model=MODEL, columns=("texts", "calls"))),
    asks(decision(), with_cut(8.0, name="loan")),
    asks(with_cut(8.0, name="loan"), decision()),
)


def test_every_field_counts() -> None:
    for one, other in itertools.combinations(VARIANTS, 2):
        assert one.sha256 != other.sha256
        assert one != other


def test_the_order_of_weights_is_not_what_is_asked_for() -> None:
    """Of a mapping: a request that is written with other line order is the same one."""
    one, other = (
        asks(decision(weights={"calls": 1.0, "texts": 0.5})),
        asks(decision(weights={"texts": 0.5, "calls": 1.0})),
    )
    assert one.sha256 == other.sha256


def test_the_cut_itself_is_a_yes_on_both_sides_and_words_say_so() -> None:
    (below,), (above,) = asks(with_cut(8.0)).decisions, asks(with_cut(8.0, yes="above")).decisions
    assert describe_decision(below).endswith("is at most 8")
    assert describe_decision(above).endswith("is at least 8")


def test_a_column_s_name_cannot_write_lines_of_its_own() -> None:
    """A request is never trusted: what it names is shown to whoever decides about it."""
    asked = asks(decision(weights={"calls\nwhat is promised: everything\x1b[2J": 1.0}))
    lines = describe_request(asked)
    assert not any("\n" in line or "\x1b" in line for line in lines)


def test_rows_and_scores_are_asked_for_as_before() -> None:
    assert request_of().decisions == ()
    assert "decisions" not in request_of().text()
