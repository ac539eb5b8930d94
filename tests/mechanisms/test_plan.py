"""Plans: Theorem 1 for people, the noise that each mechanism needs, the true ε at other distances."""

import pytest

from support.release import cli
from targetdp import Guarantee, accuracy_ceiling, largest_B, least_noise
from targetdp.mechanisms import plan
from targetdp.mechanisms._plan import PAPER_GRID


def test_a_plan_says_what_the_library_says() -> None:
    made = plan(accuracy=0.99, epsilon=1, delta=1e-4)
    assert made.largest_B == largest_B(accuracy=0.99, epsilon=1, delta=1e-4) == 0.4
    assert [c.B for c in made.ceilings] == list(PAPER_GRID)
    for row in made.ceilings:
        assert row.ceiling == accuracy_ceiling(Guarantee(row.B, 1, 1e-4))
        assert row.ruled_out == (row.B > 0.4)
    assert made.guarantee.B == 0.25  # the largest of the grid that is left
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
    assert "Theorem 1 rules out agreement of 0.99 at B = 2" in warnings[0]
    assert plan(accuracy=0.9, epsilon=4, delta=1e-5, B=0.1, dimensions=3).warnings == ()


def test_a_pure_plan_states_the_samplers_delta() -> None:
    made = plan(accuracy=0.9, epsilon=2, delta=0, dimensions=2)
    assert made.guarantee.delta == 2.0**-90


def test_command_prints_tables_and_json() -> None:
    shown = cli("plan", "--accuracy", "0.99", "--epsilon", "1", "--delta", "1e-4")
    assert shown.code == 0
    assert "leaves B up to 0.4" in shown.out
    assert "not a program's accuracy" in " ".join(shown.out.split())
    data = cli("plan", "--accuracy", "0.99", "--epsilon", "1", "--delta", "1e-4", "--json")
    assert data.json["largest_B"] == 0.4


def test_bad_arguments_are_messages_with_exit_code_2() -> None:
    done = cli("plan", "--accuracy", "0.2", "--epsilon", "1", "--delta", "1e-4")
    assert done.code == 2
    assert done.out == ""
    assert "accuracy = 0.2 is outside [0.5, 1)" in done.err
    assert "Traceback" not in done.err
    assert cli("plan", "--accuracy", "x", "--epsilon", "1", "--delta", "0").code == 2
    assert cli("--version").out.strip() == "targetdp 0.1.0"
