"""Terms of a release: δ, price and conditions follow from request, policy and the number of rows alone."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.release import ENOUGH, FEATURES, make_desk, new_policy, request_of
from targetdp import least_noise
from targetdp.accounting import StatedLoss, compose
from targetdp.guarantee import Guarantee, sequential
from targetdp.mechanisms import LinearLaw
from targetdp.release import Desk, Limit, Request, format_guarantee
from targetdp.release._certificate._caveats import ALWAYS, statement
from targetdp.release._prepare import Prepared, prepare
from targetdp.release._terms import ReleaseTerms, _rest, make_terms

COLUMNS = ("name", *FEATURES, "region", "age")
WEIGHTS = {"calls": 1.0, "texts": 2.0, "topups": -1.0}
TWO = {"calls": [1.0, 1.0], "texts": [-1.0, 1.0], "topups": [0.0, -2.0]}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    return make_desk(tmp_path_factory.mktemp("terms"))  # type: ignore[return-value]


def prepared(desk: Desk, request: Request, **policy: Any) -> Prepared:
    """A request at a desk whose owner has written this policy."""
    opened = new_policy(desk, **policy)
    with opened.ledger() as ledger:
        return prepare(opened, ledger, request, COLUMNS, "the table", "local")


def terms(desk: Desk, rows: int = 1000, policy: dict[str, Any] | None = None, **given: Any) -> ReleaseTerms:
    return make_terms(prepared(desk, request_of(**given), **(policy or {})), rows)


# δ


@pytest.mark.parametrize("rows", [1, 60, 5_000_000])
def test_without_delta_it_is_the_smaller_of_the_policy_s_and_one_over_rows_plus_one(
    desk: Desk, rows: int
) -> None:
    assert terms(desk, rows).guarantee == Guarantee(0.25, 4.0, min(0.5, 1 / (rows + 1)))
    assert terms(desk, rows, {"most": (100, 1e-5)}).guarantee.delta == min(1e-5, 1 / (rows + 1))


def test_decisions_have_no_delta_but_that_of_scales_estimated_with_them(desk: Desk) -> None:
    one = {"weights": {"calls": 1.0, "texts": 2.0}, "cut": 0.0}
    asked: dict[str, Any] = {"release": "decisions", "decisions": [one], "epsilon": 4.0}
    assert terms(desk, **asked).guarantee == Guarantee(0.25, 4.0, 0.0)
    made = terms(desk, 1_000_000, {"scales": "private"}, **asked)
    assert made.scales is not None
    assert 0 < made.guarantee.delta == made.scales.spent.delta < 1e-25
    assert made.guarantee.epsilon <= 4.0


def test_a_delta_that_is_asked_for_is_kept(desk: Desk) -> None:
    assert terms(desk, delta=1e-7).guarantee == Guarantee(0.25, 4.0, 1e-7)
    assert terms(desk, delta=0.4).guarantee.delta == 0.4


def test_without_delta_it_is_that_of_the_plan_s_own_line(desk: Desk) -> None:
    line = {"release": "rows", "columns": 3, "B": 0.25, "epsilon": 4.0, "delta": 1e-6}
    plan = [
        line, line | {"epsilon": 8.0, "delta": 1e-8}, line | {"B": 0.5, "delta": 1e-10},
        line | {"release": "scores", "columns": 1, "delta": 1e-9, "mechanism": "gaussian"},
        line | {"columns": 2, "delta": 1e-7},
    ]  # fmt: skip
    policy = {"plan": plan}
    assert terms(desk, policy=policy).guarantee.delta == 1e-6
    assert terms(desk, policy=policy, epsilon=8.0).guarantee.delta == 1e-8
    assert terms(desk, policy=policy, B=0.5).guarantee.delta == 1e-10
    scores: dict[str, Any] = {"release": "scores", "weights": WEIGHTS, "mechanism": "gaussian"}
    assert terms(desk, policy=policy, **scores).guarantee.delta == 1e-9
    assert terms(desk, policy=policy, features=FEATURES[:2]).guarantee.delta == 1e-7
    assert terms(desk, policy=policy, epsilon=5.0).guarantee.delta == 1 / 1001, "no line is like it"


# Which noise


@pytest.mark.parametrize("name", ["spherical-laplace", "gaussian", "projection", "projection-exact"])
def test_a_mechanism_by_name_is_the_one_that_is_used(desk: Desk, name: str) -> None:
    made = terms(desk, mechanism=name)
    assert made.name == name
    assert made.guarantee == Guarantee(0.25, 4.0, 1 / 1001)
    assert made.why == f"{name} was asked for"
    assert made.law.noisy is not None
    assert made.law.noisy.dimensions == len(FEATURES)
    assert made.charge.law == made.law


def test_the_least_noise_is_chosen_and_said_why(desk: Desk) -> None:
    made, gaussian = terms(desk), terms(desk, mechanism="gaussian")
    assert made.law.noisy is not None
    assert gaussian.law.noisy is not None
    assert made.law.noisy.deviation_per_column <= gaussian.law.noisy.deviation_per_column
    assert made.name in made.why


@pytest.mark.parametrize(("weights", "q"), [(WEIGHTS, 1), (TWO, 2)])
@pytest.mark.parametrize("name", ["least-noise", "gaussian", "projection-exact"])
def test_noise_of_scores_is_calibrated_for_their_number(
    desk: Desk, name: str, weights: dict[str, Any], q: int
) -> None:
    scores = tuple(f"score_{i}" for i in range(q))
    made = terms(desk, release="scores", weights=weights, scores=scores, mechanism=name, delta=1e-5)
    plain = least_noise(Guarantee(0.25, 4.0, 1e-5), q)
    assert isinstance(made.law, LinearLaw)
    assert (made.law.dimensions, made.law.scores) == (3, q)
    if name == "least-noise":
        assert made.name == plain.name
        assert made.law.noise == plain.mechanism.law(q)
    assert made.guarantee.is_at_least(Guarantee(0.25, 4.0, 1e-5))
    assert made.charge.law == made.law


# Private scales, inside what is asked for


@pytest.mark.parametrize("share", [0.1, 0.01, 0.3, 0.5, 1 / 3])
@pytest.mark.parametrize("epsilon", [4.0, 1.1, 0.7, 99.9])
def test_private_scales_are_paid_for_inside_the_epsilon(desk: Desk, share: float, epsilon: float) -> None:
    """As floating-point numbers, not up to rounding."""
    made = terms(desk, 1_000_000, {"scales": "private", "share": share}, epsilon=epsilon)
    assert made.scales is not None
    paid, own = made.scales.spent, made.law.privacy_loss(0.25)
    assert paid.B == 2
    assert paid.epsilon == share * epsilon
    assert made.guarantee.epsilon <= epsilon
    assert made.guarantee.delta <= 1 / 1_000_001
    assert made.guarantee.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert made.charge.scales == paid
    # What is left covers the noise.
    left_epsilon, left_delta = made.guarantee.epsilon - paid.epsilon, made.guarantee.delta - paid.delta
    assert own.delta(left_epsilon * (1 + 1e-12)) <= left_delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "share"), [(0.3, 0.1), (7.7, 0.3), (0.9, 1 / 3), (5.3, 0.07), (2.894700909975852, 0.2296)]
)
def test_what_rounding_would_add_is_taken_off(desk: Desk, epsilon: float, share: float) -> None:
    """ε − s + s is above ε for some of these numbers, as floating-point arithmetic has it."""
    spent = share * epsilon
    rest = _rest(Guarantee(0.25, epsilon, 0.1), Guarantee(2, spent, 0.1 * share))
    assert spent + rest.epsilon <= epsilon
    assert 0.1 * share + rest.delta <= 0.1
    if share < 0.5:
        made = terms(desk, 1_000_000, {"scales": "private", "share": share}, epsilon=epsilon)
        assert made.guarantee.epsilon <= epsilon


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(1e-3, 100), st.floats(0.001, 0.999), st.floats(1e-20, 0.5), st.floats(0, 1e-21))
def test_the_sum_is_never_above_what_was_asked_for(
    epsilon: float, share: float, delta: float, paid_delta: float
) -> None:
    asked, spent = Guarantee(0.25, epsilon, delta), Guarantee(2, share * epsilon, paid_delta)
    rest = _rest(asked, spent)
    together = sequential(spent, rest)
    assert together.epsilon <= epsilon
    assert together.delta <= delta
    assert together.B == 0.25
    assert math.isclose(together.epsilon, epsilon, rel_tol=1e-12)


def test_what_is_promised_follows_from_what_is_charged(desk: Desk) -> None:
    """Composed independently of `make_terms`: the noise's curve with that of the scales."""
    for policy, asked in (
        ({}, {}),
        ({}, {"mechanism": "gaussian"}),
        ({"scales": "private"}, {}),
        ({"scales": "private"}, {"mechanism": "gaussian", "delta": 1e-6}),
        ({}, {"release": "scores", "weights": WEIGHTS}),
    ):  # type: tuple[dict[str, Any], dict[str, Any]]
        made = terms(desk, 50_000, policy, **asked)
        losses = [made.law.privacy_loss(0.25)]
        if made.scales is not None:
            losses.append(StatedLoss.of(made.scales.spent, distance=0.25))
        true = compose(*losses).delta(made.guarantee.epsilon * (1 + 1e-9))
        assert true <= made.guarantee.delta * (1 + 1e-6)
        # And it has power: a tenth less ε would be a lie.
        assert (
            compose(*losses).delta(0.9 * made.guarantee.epsilon) > made.guarantee.delta
            or not made.guarantee.delta
        )


def test_what_is_printed_is_never_less_than_what_is_promised_nor_more_than_was_asked_for(desk: Desk) -> None:
    for epsilon in (4.0, 1.1, 0.1 + 0.2):
        made = terms(desk, 99_999, {"scales": "private"}, epsilon=epsilon)
        printed = format_guarantee(made.guarantee)
        told = float(printed.split("ε = ")[1].split(",")[0])
        assert made.guarantee.epsilon <= told * (1 + 1e-12)
        assert told <= float(f"{epsilon:.6g}")


def test_scales_that_would_drown_in_noise_are_refused(desk: Desk) -> None:
    told = (
        r"^epsilon = 0.05 for the private scales of 3 columns needs at least 57,052 rows, and there are 20: "
        r"noise would drown the scales; .*; scales get 0.5 of the ε that is asked for \(scales.share in"
    )
    with pytest.raises(ValueError, match=told):
        terms(desk, 20, {"scales": "private"}, epsilon=0.1)


def test_a_delta_that_the_noise_cannot_keep_is_refused_with_one_that_it_can(desk: Desk) -> None:
    with pytest.raises(
        ValueError, match=r"delta = 1e-300 is less than .* noise can keep: ask for .* or more"
    ):
        terms(desk, delta=1e-300, mechanism="spherical-laplace")


# Conditions


@pytest.mark.parametrize(
    ("policy", "given", "said"),
    [
        ({"public": {"region": "why", "age": "why"}}, {}, "NOT protected: region, age"),
        ({"gaps": {"calls": -1.5}}, {}, "declared, not learned: calls = -1.5"),
        ({"gaps": {"all": 0}}, {}, "declared, not learned: 0 in every column"),
        ({"pseudonyms": True}, {}, "Ids are keyed hashes"),
        ({"scales": "private"}, {}, "were estimated from the data under classic differential privacy and"),
        ({}, {"tuned_on": "public"}, "B was chosen on public data"),
        ({}, {"tuned_on": "synthetic"}, "B was chosen on synthetic data"),
        ({}, {"tuned_on": "this-data"}, "that choice is a disclosure"),
        ({}, {"release": "scores", "weights": WEIGHTS}, "Released is one weighted sum of the protected col"),
        (
            {}, {"release": "scores", "weights": TWO, "scores": ("a", "b")},
            "Released are 2 weighted sums of the protected columns (a, b)",
        ),
        (
            {}, {"release": "scores", "weights": WEIGHTS, "learned_from": "abcdef"},
            "The weights were learned, as was declared, from release abcdef",
        ),
    ],
)  # fmt: skip
def test_each_choice_is_a_condition_that_is_stated(
    desk: Desk, policy: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    assert any(said in condition for condition in terms(desk, ENOUGH, policy, **given).conditions)
    assert not any(said in condition for condition in terms(desk).conditions)


def test_what_always_holds_is_always_said(desk: Desk) -> None:
    together = statement(Guarantee(0.25, 100.0, 0.1), Limit.of(desk.policy).classic)
    for made in (terms(desk), terms(desk, ENOUGH, {"scales": "private", "pseudonyms": True})):
        assert {*ALWAYS, together} < set(made.conditions)
    assert any("How B was chosen is not stated" in condition for condition in terms(desk).conditions)


def test_terms_depend_on_nothing_else(desk: Desk) -> None:
    assert terms(desk) == terms(desk)
    assert terms(desk, 1000) != terms(desk, 1001)


def test_a_promise_that_no_noise_keeps_is_refused(tmp_path: Path, desk: Desk) -> None:
    """The library's own check, by the way that verifying takes."""
    from unittest import mock

    with (
        mock.patch(
            "targetdp.release._terms.least_noise",
            lambda asked, d: least_noise(Guarantee(asked.B, 9.0, asked.delta), d),
        ),
        pytest.raises(RuntimeError, match=r"is weaker than .*, which was asked for: please report this"),
    ):
        terms(desk)
