"""Plans: what no algorithm can do, the noise that each mechanism needs, the true ε at other distances."""

import pytest

from support.release import cli
from targetdp import Guarantee, accuracy_ceiling, agreement_by_distance, least_noise, smallest_epsilon
from targetdp.mechanisms import plan


def test_a_plan_says_what_the_library_says() -> None:
    made = plan(accuracy=0.99, B=0.25, epsilon=1, delta=1e-4)
    assert made.guarantee == Guarantee(0.25, 1, 1e-4)
    assert made.ceiling == accuracy_ceiling(made.guarantee)
    assert made.ruled_out is True
    assert made.smallest_epsilon == smallest_epsilon(accuracy=0.99, delta=1e-4)
    assert list(made.agreement_at) == [0, 0.25, 0.5, 0.75, 1]
    assert tuple(made.agreement_at.values()) == agreement_by_distance(made.guarantee, made.agreement_at)
    unasked = plan(B=2, epsilon=1, delta=1e-4)
    assert (unasked.accuracy, unasked.ruled_out, unasked.smallest_epsilon) == (None, None, None)
    assert unasked.agreement_at == {0: made.ceiling}, "at B = 2 there is one figure for everybody"
    choice = least_noise(made.guarantee, 10)
    assert made.choice.noise == choice.noise
    assert made.noise_length == pytest.approx(choice.noise[choice.name] * 10**0.5)
    for r, epsilon in made.epsilon_at.items():
        assert epsilon == choice.mechanism.epsilon(distance=r, delta=1e-4, dimensions=10)
    assert made.epsilon_at[0.25] <= 1
    guesses = list(made.guess_at.values())
    assert 0.5 < guesses[0] < guesses[-1] < 1
    assert guesses == sorted(guesses)


def test_a_plan_warns_where_noise_drowns_the_signal_and_where_accuracy_is_ruled_out() -> None:
    (drowned,) = plan(accuracy=0.9, epsilon=4, delta=1e-5, B=0.25, dimensions=1000).warnings
    assert "fewer columns" in drowned
    warnings = plan(accuracy=0.99, epsilon=1, delta=1e-4, B=2, dimensions=3).warnings
    assert "no algorithm agrees with today's decisions with probability 0.99 for everybody" in warnings[0]
    assert "ε = 1 leaves at most 0.7311, whatever B is" in warnings[0]
    assert "or for ε = 4.596" in warnings[0]
    assert plan(accuracy=0.9, epsilon=4, delta=1e-5, B=0.1, dimensions=3).warnings == ()


def test_a_pure_plan_states_the_samplers_delta() -> None:
    made = plan(B=0.25, epsilon=2, delta=0, dimensions=2)
    assert made.guarantee.delta == 2.0**-90


def test_command_prints_tables_and_json() -> None:
    shown = cli("plan", "--B", "0.4", "--accuracy", "0.99", "--epsilon", "1", "--delta", "1e-4")
    assert shown.code == 0
    told = " ".join(shown.out.split())
    assert "γ = 0.99 is ruled out. With ε = 1 and δ = 0.0001, γ is at most 0.7311, whatever B is" in told
    assert "│ 0.4 to 0.8 │ 0.901109 │" in told
    assert "not a program's accuracy" in told
    data = cli("plan", "--B", "0.4", "--accuracy", "0.99", "--epsilon", "1", "--delta", "1e-4", "--json")
    assert (data.json["ruled_out"], data.json["agreement_by_distance"][0]["distance"]) == (True, 0)


def test_bad_arguments_are_messages_with_exit_code_2() -> None:
    done = cli("plan", "--B", "0.4", "--accuracy", "0.2", "--epsilon", "1", "--delta", "1e-4")
    assert done.code == 2
    assert done.out == ""
    assert "accuracy = 0.2 is outside [0.5, 1)" in done.err
    assert "Traceback" not in done.err
    assert cli("plan", "--B", "0.4", "--accuracy", "x", "--epsilon", "1", "--delta", "0").code == 2
    assert cli("--version").out.strip() == "targetdp 0.1.0"
