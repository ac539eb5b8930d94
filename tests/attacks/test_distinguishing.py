"""Distinguishing protection: the paper's numbers, the exact ones, and which of them are bounds."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from targetdp import (
    GaussianNoise,
    Guarantee,
    Mondrian,
    Partitioned,
    PrivateProjection,
    SphericalLaplace,
    Staircase,
)
from targetdp.attacks import distinguishing, printed_loss
from targetdp.attacks._distinguishing import corrected_loss, score_of
from targetdp.mechanisms import NoiseMechanism, noise_law_of, printed_step3_sigma, printed_step4_sigma

DOCUMENT = Path(__file__).parents[2] / "docs" / "attacks.md"
FALSE_ALARM = 1e-6

DELTA = 1 / 4202
TOGO: dict[str, Any] = {"epsilon1": 3, "epsilon2": 0.9999, "delta1": DELTA * 2 / 3, "delta2": DELTA / 3}
CLAIM: dict[str, float] = {"epsilon": 3.9999, "delta": DELTA}


def togo(B: float, **options: Any) -> PrivateProjection:
    return PrivateProjection(B=B, **TOGO, **options)


# The formula as printed


@pytest.mark.parametrize(
    ("B", "score"), [(2, 0.8347), (1, 0.4844), (0.75, 0.2159), (0.5, 0.0760), (0.25, 0.0197), (0.1, 0.0024)]
)
def test_the_paper_as_printed(B: float, score: float) -> None:
    found = distinguishing(togo(B), 10, formula="as_printed")
    assert found.score == pytest.approx(score, abs=5e-5)
    assert found.score == score_of(printed_loss(B, **TOGO))
    assert found.bound == "lower"


def test_printed_loss_by_hand() -> None:
    """B = 1/2 means s = 4: ε̂ = 4ε and δ̂ = δ(e^4ε − 1)/(e^ε − 1), capped at 1 for the first step only."""
    one, two = 1e-2 * math.expm1(8.0) / math.expm1(2.0), 1e-4 * math.expm1(2.0) / math.expm1(0.5)
    assert one > 1 > two
    by_hand = 8**2 / (4 * (0 + 2)) + 2**2 / (16 * math.log(1.25 / two))
    loss = printed_loss(0.5, epsilon1=2, delta1=1e-2, epsilon2=0.5, delta2=1e-4)
    assert loss == pytest.approx(by_hand, rel=1e-12)


def test_the_steps_of_the_switch_lemma_are_exact() -> None:
    """2/B is 49.000000000000004 for B = 2/49 in floats: a fiftieth step would be counted."""
    one, two = printed_loss(2 / 49, **TOGO), printed_loss(2 / 49 * 1.0001, **TOGO)
    assert one == pytest.approx(two, rel=1e-12)


def test_the_text_says_something_else_at_a_quarter() -> None:
    found = distinguishing(togo(0.25), 10, formula="as_printed")
    assert round(found.score, 4) == 0.0197
    assert any("6.66%" in note and "0.0197" in note for note in found.detail["notes"])


# The corrected formula


def test_corrected_loss_by_hand() -> None:
    step3, step4 = (
        9 / (4 * (math.log(1 / TOGO["delta1"]) + 3)),
        0.9999**2 / (4 * math.log(1.25 / TOGO["delta2"])),
    )
    assert corrected_loss(2, **TOGO, truncated=False) == pytest.approx(step3, rel=1e-12)
    assert corrected_loss(2, **TOGO, truncated=True) == pytest.approx(step3 + step4, rel=1e-12)
    assert corrected_loss(0.5, **TOGO, truncated=True) == pytest.approx(16 * (step3 + step4), rel=1e-12)


def test_corrected_loss_is_that_of_the_printed_noise_at_the_printed_sensitivity() -> None:
    """E₃ = α²/(2σ²) and E₄ = (2B)²/(2σ²), whatever d and k are."""
    B, d, k = 0.5, 7, 300
    alpha = B / math.sqrt(k) * math.sqrt(
        d * math.log((2 / 3) * (math.e - 1) + 1) - math.log(TOGO["delta1"] / 2) / k
    )  # fmt: skip
    step3 = (alpha / printed_step3_sigma(B, d, k, TOGO["epsilon1"], TOGO["delta1"])) ** 2 / 2
    step4 = (2 * B / printed_step4_sigma(B, TOGO["epsilon2"], TOGO["delta2"])) ** 2 / 2
    assert corrected_loss(B, **TOGO, truncated=True) == pytest.approx(
        (2 / B) ** 2 * (step3 + step4), rel=1e-12
    )


def test_step_4_counts_only_where_the_rank_is_cut() -> None:
    full, cut = (distinguishing(togo(0.5, rank=r), 4, formula="corrected").score for r in (4, 3))
    assert full == distinguishing(togo(0.5), 4, formula="corrected").score
    assert full == score_of(corrected_loss(0.5, **TOGO, truncated=False))
    assert cut == score_of(corrected_loss(0.5, **TOGO, truncated=True)) < full


# The exact one


def test_algorithm_1_as_printed_protects_far_better_than_its_formula_says() -> None:
    found = distinguishing(togo(0.25), 10)
    assert round(found.score, 2) == 0.47
    assert round(found.detail["expected_loss"], 2) == 1.13
    assert round(found.detail["best_guess"], 2) == 0.77


@pytest.mark.parametrize("B", [2, 0.5, 0.1])
def test_exact_loss_of_the_projection_from_the_matrix_itself(B: float) -> None:
    """(2·σ_max(R)/k)²/(2σ²): nothing of the paper's bound on R's length is left in it."""
    mechanism = togo(B, k=400)
    longest = float(mechanism.public_projection(6).lengths.max())
    sigma = printed_step3_sigma(B, 6, 400, TOGO["epsilon1"], TOGO["delta1"])
    truth = (2 * longest / 400 / sigma) ** 2 / 2
    loss = distinguishing(mechanism, 6).detail["expected_loss"]
    assert truth < loss < truth * (1 + 1e-4)


def test_exact_loss_counts_step_4_where_the_rank_is_cut() -> None:
    """Covariances of two rows of the ball are at most √2 apart."""
    sigma = printed_step4_sigma(0.5, TOGO["epsilon2"], TOGO["delta2"])
    full, cut = (distinguishing(togo(0.5, rank=r), 6).detail["expected_loss"] for r in (6, 2))
    assert cut - full == pytest.approx(2 / (2 * sigma**2), rel=1e-4)


def test_exact_loss_of_gaussian_noise() -> None:
    mechanism = GaussianNoise(B=0.5, **CLAIM)
    truth = (2 / mechanism.noise_sd(7)) ** 2 / 2
    found = distinguishing(mechanism, 7)
    assert truth < found.detail["expected_loss"] < truth * (1 + 1e-5)
    assert found.score < 1 / (1 + truth)
    best = (1 + stats.norm.cdf(1 / mechanism.noise_sd(7)) - stats.norm.cdf(-1 / mechanism.noise_sd(7))) / 2
    assert found.detail["best_guess"] == pytest.approx(best, rel=1e-5)
    at_B = found.detail["at_B"]
    assert at_B["distance"] == 0.5
    assert at_B["expected_loss"] == pytest.approx(truth / 16, rel=1e-5)
    assert at_B["score"] == pytest.approx(1 / (1 + truth / 16), rel=1e-5)


@pytest.mark.parametrize(
    ("mechanism", "d"),
    [
        (SphericalLaplace(B=0.5, **CLAIM), 1),
        (SphericalLaplace(B=0.5, **CLAIM), 4),
        (SphericalLaplace(B=1, epsilon=2), 12),
        (GaussianNoise(B=1, **CLAIM), 3),
    ],
)
def test_the_mean_of_what_is_released_is_the_mean_that_is_derived(mechanism: NoiseMechanism, d: int) -> None:
    """Log likelihood ratios of rows as drawn: on average the derived loss, and not 0.9 or 1.1 of it."""
    n = 100_000
    x = np.zeros(d)
    x[0] = 1.0
    law = mechanism.law(d)
    Z = mechanism.privatize(np.tile(x, (n, 1)), np.random.default_rng(1))
    near, far = np.linalg.norm(Z - x, axis=1), np.linalg.norm(Z + x, axis=1)
    if isinstance(mechanism, SphericalLaplace):
        losses = (far - near) / law.record()["scale"]
    else:
        losses = (far**2 - near**2) / (2 * law.record()["deviation"] ** 2)
    derived = distinguishing(mechanism, d).detail["expected_loss"]
    reach = stats.norm.isf(FALSE_ALARM / 2) * losses.std() / math.sqrt(n)
    assert abs(losses.mean() - derived) < reach < 0.1 * derived


MECHANISMS: list[tuple[NoiseMechanism, int]] = [
    (GaussianNoise(B=0.3, **CLAIM), 5),
    (SphericalLaplace(B=0.3, **CLAIM), 5),
    (SphericalLaplace(B=0.3, epsilon=2), 5),
    (Staircase(B=0.3, epsilon=2), 1),
    (togo(0.3, k=200), 5),
    (togo(0.3, k=200, calibration="exact"), 5),
    (togo(0.3, k=3), 5),
    (togo(0.3, k=200, rank=2), 5),
    (Partitioned(GaussianNoise(B=0.3, **CLAIM)), 5),
]


@pytest.mark.parametrize(("mechanism", "d"), MECHANISMS)
def test_every_noise_mechanism_has_a_score(mechanism: NoiseMechanism, d: int) -> None:
    found = distinguishing(mechanism, d)
    assert 0 < found.score < 1
    assert found.interval == (found.score, found.score)
    assert (found.strongest, found.bound) == ("two people at distance 2", "lower")
    assert found.detail["formula"] == "exact"
    at_B = found.detail["at_B"]
    assert at_B["score"] > found.score
    assert 0.5 < at_B["best_guess"] < found.detail["best_guess"] <= 1
    assert json.loads(json.dumps(found.record(), allow_nan=False))["score"] == found.score


def test_no_guess_is_better_than_pinsker_and_the_score_allow() -> None:
    """Best guess ≤ (1 + √(𝒰/2))/2: two figures from different code that bound each other."""
    for mechanism, d in MECHANISMS:
        at_B = distinguishing(mechanism, d).detail["at_B"]
        assert at_B["best_guess"] <= (1 + math.sqrt(at_B["expected_loss"] / 2)) / 2


def test_more_noise_protects_more() -> None:
    for build in (lambda B: GaussianNoise(B=B, **CLAIM), lambda B: SphericalLaplace(B=B, **CLAIM), togo):
        scores = [distinguishing(build(B), 5).score for B in (0.01, 0.1, 0.5, 1, 2)]
        assert all(a < b for a, b in itertools.pairwise(scores))
    small = [distinguishing(SphericalLaplace(B=2, epsilon=e), 5).score for e in (1e-4, 1, 4, 100)]
    assert small[0] > 1 - 1e-8
    assert all(a > b for a, b in itertools.pairwise(small))
    assert small[-1] < 0.02


def test_a_law_has_the_score_of_its_mechanism() -> None:
    for mechanism, d in MECHANISMS:
        if isinstance(mechanism, PrivateProjection) and mechanism.rank is not None:
            continue  # has no law of its own
        law = noise_law_of(mechanism.law(d).record())
        of_law, of_mechanism = distinguishing(law, d, B=0.3), distinguishing(mechanism, d)
        assert of_law.record() == of_mechanism.record()
        assert distinguishing(law, d).detail["at_B"] is None


def test_parts_change_nothing() -> None:
    inner = togo(0.3, k=200)
    for formula in ("exact", "as_printed", "corrected"):
        own = distinguishing(inner, 5, formula=formula)
        assert distinguishing(Partitioned(inner), 5, formula=formula).record() == own.record()
    with_delta = Partitioned(inner, parts=6, rows=20_788)
    assert distinguishing(with_delta, 5).score < distinguishing(inner, 5).score


@pytest.mark.parametrize("formula", ["exact", "as_printed", "corrected"])
@pytest.mark.parametrize("mechanism", [None, Mondrian(5)])
def test_without_noise_there_is_no_protection(mechanism: Mondrian | None, formula: Any) -> None:
    found = distinguishing(mechanism, 5, formula=formula)
    assert (found.score, found.interval, found.bound) == (0.0, (0.0, 0.0), "lower")
    assert "nothing is derived" in found.detail["notes"][0]
    assert found.record()["detail"]["expected_loss"] is None
    json.dumps(found.record(), allow_nan=False)


# Which formulas are bounds


def settings() -> list[tuple[PrivateProjection, int]]:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(40):
        d = int(rng.integers(1, 12))
        rank = None if rng.random() < 0.5 else int(rng.integers(1, d + 1))
        found.append(
            (
                PrivateProjection(
                    B=float(np.exp(rng.uniform(np.log(1e-3), np.log(2)))),
                    epsilon1=float(np.exp(rng.uniform(np.log(0.01), np.log(20)))),
                    epsilon2=float(rng.uniform(0.01, 0.9999)),
                    delta1=float(np.exp(rng.uniform(np.log(1e-9), np.log(0.4)))),
                    delta2=float(np.exp(rng.uniform(np.log(1e-9), np.log(0.4)))),
                    k=int(np.exp(rng.uniform(np.log(20), np.log(3000)))),
                    rank=rank,
                ),
                d,
            )
        )
    return found


def test_printed_and_corrected_formulas_claim_no_more_than_the_exact_one() -> None:
    """Odd as it is, the printed formula errs to the safe side; so does the corrected one."""
    for mechanism, d in settings():
        exact = distinguishing(mechanism, d).score
        for formula in ("as_printed", "corrected"):
            found = distinguishing(mechanism, d, formula=formula)
            assert found.score < exact, (mechanism, d)
            assert found.detail["exact_score"] == exact
            assert "It is a bound here" in found.detail["notes"][-1]


def test_the_reading_with_a_capped_delta_and_a_switched_epsilon_is_no_bound() -> None:
    """ε̂₁²/(4(ln(1/δ̂₁) + ε̂₁)) is ε̂₁/4 once δ̂₁ is 1: it grows with 2/B, the truth with its square."""

    budget: dict[str, Any] = TOGO | {"epsilon2": 0.01}

    def other_reading(B: float) -> float:
        step3 = Guarantee(B, budget["epsilon1"], budget["delta1"]).classic()
        step4 = Guarantee(B, budget["epsilon2"], budget["delta2"]).classic()
        return step3.epsilon**2 / (4 * (math.log(1 / step3.delta) + step3.epsilon)) + step4.epsilon**2 / (
            16 * math.log(1.25 / step4.delta)
        )

    def truth(B: float) -> float:
        return float(distinguishing(PrivateProjection(B=B, **budget), 10).detail["expected_loss"])

    assert other_reading(0.25) > truth(0.25)
    assert other_reading(0.025) < truth(0.025) < printed_loss(0.025, **budget)


def test_a_formula_that_claims_too_much_would_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targetdp.attacks._distinguishing.printed_loss", lambda *budget: 0.01)
    found = distinguishing(togo(0.25), 10, formula="as_printed")
    assert "claims more protection than the exact score of 0.4690" in found.detail["notes"][-1]


# Scales that were paid for


def test_private_scales_tell_people_apart_too() -> None:
    mechanism = SphericalLaplace(B=0.5, epsilon=1)
    plain = distinguishing(mechanism, 5).detail
    found = distinguishing(mechanism, 5, scales_spent=Guarantee(2, 0.5, 2.0**-90))
    extra = 0.5 * math.tanh(0.25)
    assert found.detail["expected_loss"] == pytest.approx(plain["expected_loss"] + extra, rel=1e-9)
    assert found.detail["at_B"]["expected_loss"] == pytest.approx(
        plain["at_B"]["expected_loss"] + extra, rel=1e-9
    )
    # No pure ε = 1/2 moves the best guess by more than tanh(1/4)/2, nor is it free.
    moved = found.detail["at_B"]["best_guess"] - plain["at_B"]["best_guess"]
    assert 0 < moved < math.tanh(0.25) / 2
    printed = distinguishing(togo(0.5), 5, formula="as_printed", scales_spent=Guarantee(2, 0.5))
    assert printed.detail["expected_loss"] == pytest.approx(printed_loss(0.5, **TOGO) + extra, rel=1e-9)


@pytest.mark.parametrize("formula", ["exact", "as_printed", "corrected"])
def test_scales_with_a_delta_leave_no_mean(formula: Any) -> None:
    found = distinguishing(togo(0.5), 5, formula=formula, scales_spent=Guarantee(2, 0.5, 1e-6))
    assert found.score == 0
    assert "no bound" in found.detail["notes"][0]
    json.dumps(found.record(), allow_nan=False)


# Bad input


@pytest.mark.parametrize("formula", ["as_printed", "corrected"])
def test_the_papers_formulas_are_for_the_papers_noise(formula: Any) -> None:
    with pytest.raises(
        TypeError, match="is for a PrivateProjection, not for a GaussianNoise: use formula='exact'"
    ):
        distinguishing(GaussianNoise(B=0.5, **CLAIM), 5, formula=formula)
    with pytest.raises(TypeError, match="not for a ProjectionLaw"):
        distinguishing(togo(0.5).law(5), 5, formula=formula)
    with pytest.raises(ValueError, match="calibration = 'exact' adds less"):
        distinguishing(togo(0.5, calibration="exact"), 5, formula=formula)


def test_bad_input_is_refused() -> None:
    mechanism: Any = GaussianNoise(B=0.5, **CLAIM)
    wrong: Any = "half"
    with pytest.raises(ValueError, match="formula = 'half' is not one of as_printed, corrected, exact"):
        distinguishing(mechanism, 5, formula=wrong)
    with pytest.raises(TypeError, match="mechanism = 'half' is not a mechanism"):
        distinguishing(wrong, 5)
    with pytest.raises(ValueError, match="dimensions = 0"):
        distinguishing(mechanism, 0)
    with pytest.raises(ValueError, match="dimensions = 5 does not fit a law of noise on 4 columns"):
        distinguishing(mechanism.law(4), 5)
    with pytest.raises(ValueError, match="B = 3"):
        distinguishing(mechanism, 5, B=3)
    with pytest.raises(TypeError, match="scales_spent"):
        distinguishing(mechanism, 5, scales_spent=wrong)
    with pytest.raises(ValueError, match="takes exactly 1 column"):
        distinguishing(Staircase(B=0.5, epsilon=1), 5)


# The document


def test_the_documents_table_is_computed() -> None:
    if not DOCUMENT.exists():
        pytest.skip("docs/attacks.md is not written yet")
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text[text.index("<!-- distinguishing -->") : text.index("<!-- /distinguishing -->")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    assert [float(row[0]) for row in rows] == [2, 1, 0.75, 0.5, 0.25, 0.1]
    for B, *shown in ([float(cell) for cell in row] for row in rows):
        found = [distinguishing(togo(B), 10, formula=f).score for f in ("as_printed", "corrected", "exact")]
        found += [distinguishing(make(B=B, **CLAIM), 10).score for make in (SphericalLaplace, GaussianNoise)]
        assert shown == pytest.approx(found, abs=5.1e-5)
