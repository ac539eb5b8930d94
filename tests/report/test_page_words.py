"""Numbers, sentences and examples of the page: rounded to the safe side, and true."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from targetdp._core import up
from targetdp.mechanisms import NoiseMechanism
from targetdp.normalization import declared_scales, normalize
from targetdp.report._page import _words as answer
from targetdp.report._page._words import (
    Subject,
    label,
    money,
    of_1000,
    points_up,
    subject_of,
    whole,
    with_interval,
)
from targetdp.tradeoff import INSIDER, STRANGER, Cell, Estimate, Grid, at_distances, profiles, shown


def aid() -> Subject:
    return subject_of({"kind": "aid", "made_of": {}, "objective": {}})


def lending(unit: str = "$") -> Subject:
    objective = {"metric": "profit", "best": "largest"}
    return subject_of({"kind": "lending", "made_of": {"unit": unit}, "objective": objective})


def test_whole_numbers_and_money() -> None:
    assert whole(4_950_000) == "4,950,000"
    assert whole(-0.3) == "0"
    assert money(-18_442, "$") == "−$18,400"
    assert money(2_130, "NGN") == "2,130 NGN"


@given(st.floats(0, 1))
def test_protection_is_never_rounded_up_and_the_same_in_sentences_and_tables(share: float) -> None:
    many, of = (int(part.replace(",", "")) for part in of_1000(share).split(" of "))
    assert many / of <= share + 1e-9
    assert share - many / of <= 0.001
    assert (many == of) == (share >= 1)
    assert f"{many / of:.3f}" == shown(share, "inference")


def test_figures_and_their_intervals_are_told_once() -> None:
    """52.55 to 9,845 and 53 to 9,840 stood on one page."""
    extra = Estimate(4_949.3, 52.55, 9_844.8)
    told = with_interval(extra, aid().in_words)
    assert told == "4,950 (53 to 9,840)"
    said = answer.cost(aid(), {"extra_exclusion_errors": extra}, {"exclusion_errors": Estimate(9.0)}, 5e6)
    assert "About 4,950 more poor people would be missed (95% interval: 53 to 9,840)" in said
    assert with_interval(Estimate(), aid().in_words) == "–"
    assert with_interval(Estimate(-5.0, -7.0, 2.0), aid().in_words) == "−5 (−7 to 2)"
    assert with_interval(Estimate(0.5, 0.5, 0.5), str) == "0.5"


def test_rises_of_a_rate_are_rounded_up() -> None:
    assert [points_up(x) for x in (0.0312, -0.0312, 0.0, 0.00001)] == [
        "+3.2", "−3.1", "0.0", "+0.1"
    ]  # fmt: skip
    assert aid().changed("extra_exclusion_errors", 56_558.0) == "+56,600"
    assert aid().changed("extra_eligible", -5.8e-12) == "0"
    assert lending().changed("extra_profit", 2_130.0) == "+$2,130"


@given(st.floats(1e-12, 1e6), st.integers(2, 8))
def test_epsilon_and_delta_are_never_rounded_down(value: float, digits: int) -> None:
    told = float(up(value, digits))
    assert told >= value * (1 - 1e-8)
    assert told <= value * (1 + 2 * 10.0 ** (1 - digits))


def test_what_rounds_to_itself_stays() -> None:
    assert [up(x) for x in (0.25, 4.0, 0.1, 0.000238)] == ["0.25", "4", "0.1", "0.000238"]
    assert up(3.9999, 6) == "3.9999"


def test_a_cost_in_people() -> None:
    chosen = {
        "extra_exclusion_errors": Estimate(12_312, 11_020, 13_600), "exclusion_rate": Estimate(0.6384),
    }  # fmt: skip
    today = {"exclusion_errors": Estimate(904_120), "exclusion_rate": Estimate(0.6298)}
    assert answer.cost(aid(), chosen, today, 4_950_000) == (
        "About 12,300 more poor people would be missed (95% interval: 11,000 to 13,600): 63.9% of the poor "
        "are missed, and 63.0% today. Today 904,000 are missed; the program decides about 4,950,000 people."
    )


def test_fewer_errors_than_today_are_told_as_fewer() -> None:
    chosen = {"extra_exclusion_errors": Estimate(-1_000, -2_500, 500)}
    said = answer.cost(aid(), chosen, {"exclusion_errors": Estimate(904_120)}, 4_950_000)
    assert "About 1,000 fewer poor people would be missed (95% interval: 2,500 fewer to 500 more)" in said


@pytest.mark.parametrize(
    ("profit", "before", "end"),
    [
        (2_128, 6_716, "today it is $6,720. That is 31% of today's."),
        (-18_442, 6_716, "today it is $6,720. That is a loss."),
        (
            -18_442,
            -10,
            "today it is −$10. Today's profit is not positive, so that a share of it says nothing.",
        ),
    ],
)
def test_a_cost_in_money(profit: float, before: float, end: str) -> None:
    said = answer.cost(lending(), {"profit": Estimate(profit)}, {"profit": Estimate(before)}, 20_788)
    assert said.startswith("The lender's profit would be ")
    assert said.endswith(end)


def test_an_undefined_figure_is_called_so() -> None:
    said = answer.cost(lending(), {"profit": Estimate()}, {"profit": Estimate(1.0)}, 10)
    assert "undefined" in said


def test_what_people_get_in_exchange_errs_to_less() -> None:
    chosen = {
        "singling_out": Estimate(0.8399, 0.8299, 0.85),
        "inference": Estimate(
            0.16299, 0.1409, 0.2, strongest="insider_inference: h=5, contacts", anyway=0.1, right=0.85331
        ),
        "attribute_inference": Estimate(0.98399, 0.9409, 1.0),
    }
    first, second, last = answer.exchange(chosen, {"singling_out": Estimate(0.0123)})
    assert first == (
        "839 of 1,000 people were not singled out by the attacks we ran; at least 829 of 1,000 by the 95% "
        "interval (today: 12 of 1,000)."
    )
    assert second == (
        "Guesses at a hidden value by an insider, the best that we ran, failed 16.2% as often for people in "
        "the table as for people outside it; at least 14% as often by the 95% interval (today: not known). "
        "854 of 1,000 were right, and 100 without the release. As in the paper (a stranger): 98.3% as often."
    )
    assert last.startswith("People are at most so well protected")


def test_a_stranger_who_guesses_best_is_called_one() -> None:
    same = Estimate(0.4, 0.3, 0.5, strongest="attribute_inference: h=5, contacts")
    told = answer.exchange({"inference": same, "attribute_inference": same}, {})
    assert told[0].startswith("Guesses at a hidden value by a stranger, the best that we ran, failed 40%")


def test_the_worst_hit_group_is_named() -> None:
    figures = {
        "worst_group_rate": Estimate(0.7277, 0.7, 0.75, "region=Lomé"),
        "worst_group_rise": Estimate(0.4321, 0.4, 0.5, "region=Savanes"),
    }
    assert answer.worst_hit(aid(), figures) == (
        "Most in region: Lomé: 72.8% of the poor are missed. The share rises the most in "
        "region: Savanes: by 43.3 points."
    )
    none = figures | {"worst_group_rise": Estimate(-0.01, -0.02, 0.01, "region=Savanes")}
    assert answer.worst_hit(aid(), none).endswith("In no group does that share rise.")
    assert answer.worst_hit(aid(), {}) == ""


def test_the_page_says_who_an_insider_and_a_stranger_are() -> None:
    assert answer.glossary()["Insider"] == INSIDER
    assert answer.glossary()["Stranger"] == STRANGER
    assert "noise" in answer.glossary()["95% interval"]
    assert "other people sampled" in answer.glossary()["95% interval"]


def test_attacks_that_were_not_run_are_not_told_of() -> None:
    assert answer.exchange({"distinguishing": Estimate(0.5)}, {}) == []


def test_the_best_guess_is_rounded_up() -> None:
    said = answer.derived(0.77117, 0.99999, 0.25)
    assert "at most 77.2 times in 100" in said
    assert "it is 100 times in 100" in said
    assert "everybody else's rows" in said
    assert "guarantees nothing" in answer.derived(None, None, None)


def test_labels_name_classic_privacy_and_group_sizes() -> None:
    cells = {cell.name: cell for cell in Grid().cells(1000)}
    classic = cells["least-noise B=2 epsilon=3.9999"]
    assert label(classic) == "least noise, B = 2, ε = 3.9999 (classic differential privacy)"
    assert label(cells["mondrian group_size=3"]) == "k-anonymity, groups of 3"
    assert label(cells["status quo"]) == "today, no privacy"


@given(st.floats(1e-4, 2.0), st.integers(1, 6))
def test_two_invented_people_are_exactly_B_apart_after_clipping(B: float, columns: int) -> None:
    center, scale = np.linspace(-3, 40, columns), np.linspace(0.01, 900, columns)
    names = [f"c{i}" for i in range(columns)]
    known = {"source": "declared", "center": center.tolist(), "scale": scale.tolist()}
    traits = profiles(names, known, B)
    assert traits is not None
    rows = np.array([[t.one for t in traits], [t.other for t in traits]])
    ball = normalize(rows, declared_scales(center, scale)).X
    assert np.linalg.norm(ball[0] - ball[1]) == pytest.approx(B, rel=1e-9)
    # They are typical rows: longer than 1 before clipping, and as far from the center as the scales say.
    if columns > 1:
        assert np.linalg.norm(ball[0]) == pytest.approx(1)
    np.testing.assert_allclose((rows[0] - center) / scale, 1.0)
    before = np.linalg.norm((rows[0] - rows[1]) / scale)
    assert before >= B * (1 - 1e-9)
    # A difference of B in one column alone is B, too, while both stay in the ball.
    one = np.array([center, center])
    one[1, 0] += traits[0].alone / 2
    one[0, 0] -= traits[0].alone / 2
    ball = normalize(one, declared_scales(center, scale)).X
    assert np.linalg.norm(ball[0] - ball[1]) == pytest.approx(B, rel=1e-9)


def test_clipped_rows_that_are_B_apart_differ_by_more_than_B_of_scale() -> None:
    """What B means for typical people: of ten columns, three differ by far more than B/√3 of scale."""
    known = {"source": "data", "center": [0.0] * 10, "scale": [1.0] * 10}
    traits = profiles([f"c{i}" for i in range(10)], known, 0.25)
    assert traits is not None
    apart = np.array([trait.one - trait.other for trait in traits])
    assert np.count_nonzero(apart) == 3
    assert np.linalg.norm(apart) > 3 * 0.25


def test_values_of_a_profile_are_told_with_digits_that_matter_beside_B() -> None:
    trait = profiles(["calls"], {"center": [40.0], "scale": [20.0]}, 0.29999)
    assert trait is not None
    assert trait[0].told == ["60", "54", "5.99"]


def test_without_known_scales_there_is_no_example() -> None:
    assert profiles(["a"], None, 0.25) is None
    assert profiles(["a"], {"source": "confidential"}, 0.25) is None


def test_the_curve_of_a_gaussian_is_the_closed_form() -> None:
    cell = Cell("g", "gaussian", 0.25, epsilon=1.0, delta=1e-4)
    curve = {at.distance: at for at in at_distances(cell, 5)}
    assert curve[0.25].epsilon == pytest.approx(1.0, rel=1e-4)
    mechanism = cell.build(5)
    assert isinstance(mechanism, NoiseMechanism)
    for r in (0.1, 0.5, 2.0):
        mu = r / mechanism.noise_sd(5)
        # The best guess between N(0, 1) and N(µ, 1) is right with probability Φ(µ/2).
        assert curve[r].guess == pytest.approx(norm.cdf(mu / 2), abs=1e-6)
        epsilon = curve[r].epsilon
        assert epsilon is not None
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-4, rel=1e-2)


def test_curves_rise_with_distance_and_begin_at_a_coin() -> None:
    cell = next(c for c in Grid().cells(500) if c.mechanism == "least-noise" and c.B == 0.25)
    curve = at_distances(cell, 4)
    guesses = [at.guess for at in curve]
    assert guesses == sorted(guesses)
    assert curve[0].guess == 0.5
    assert curve[-1].distance == 2.0
    assert at_distances(Grid().cells(500)[0], 4) == ()


@pytest.mark.parametrize("columns", [2, 3, 10, 60])
@pytest.mark.parametrize("mechanism", ["least-noise", "gaussian", "projection-exact"])
def test_straight_lines_between_epsilons_are_never_below_the_truth(columns: int, mechanism: str) -> None:
    cell = Cell("c", mechanism, 0.25, epsilon=4.0, delta=1e-4)
    made = cell.build(columns)
    assert isinstance(made, NoiseMechanism)
    known = [(at.distance, at.epsilon) for at in at_distances(cell, columns) if at.epsilon is not None]
    for (r, low), (s, high) in itertools.pairwise(known):
        for share in (0.25, 0.5, 0.75):
            middle = r + share * (s - r)
            truth = made.epsilon(distance=middle, delta=1e-4, dimensions=columns)
            assert truth <= low + share * (high - low) + 1e-9


def test_a_staircase_has_its_jumps_among_the_points() -> None:
    """One column: the best guess and ε jump at multiples of B; drawn in steps they are never below."""
    cell = Cell("c", "staircase", 0.05, epsilon=4.0, delta=1e-6)
    made = cell.build(1)
    assert isinstance(made, NoiseMechanism)
    curve = at_distances(cell, 1)
    for r in np.linspace(0.001, 2.0, 97):
        next_up = next(at for at in curve if at.distance >= r)
        loss = made.privacy_loss(distance=float(r), dimensions=1)
        assert (1 + loss.delta(0.0)) / 2 <= next_up.guess + 1e-9
        shown = next(at.epsilon for at in curve if at.distance >= r and at.epsilon is not None)
        assert loss.epsilon(1e-6) <= shown + 1e-6


def test_a_name_that_is_written_to_the_left_turns_no_number() -> None:
    assert answer.group_name("region=Lomé") == "region: Lomé"
    assert answer.group_name("region=شمال") == "\u2068region: شمال\u2069"
    figures = {
        "worst_group_rate": Estimate(0.5, strongest="r=a"),
        "worst_group_rise": Estimate(0.1, strongest="r=a"),
    }
    said = answer.worst_hit(aid(), figures, ["r: b"])
    assert said.endswith("Too few people to tell, and under no limit: r: b.")
