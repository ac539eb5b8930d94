"""Algorithm 1: what cancels, what is charged, and what is refused."""

from typing import Any

import numpy as np
import pytest

from targetdp import PrivateProjection
from targetdp._core import Floats
from targetdp.mechanisms import literal_private_projection
from targetdp.mechanisms._projection_law import _exact_gram

SPLIT: dict[str, Any] = {"B": 0.25, "epsilon1": 3.0, "epsilon2": 0.9999, "delta1": 1e-4, "delta2": 5e-5}


def some_rows(n: int = 200, d: int = 6) -> Floats:
    return np.random.default_rng(1).standard_normal((n, d)) * np.linspace(0.5, 0.05, d)


def test_steps_4_and_5_cancel_at_full_rank() -> None:
    """(VᵀR)†Vᵀ = R† for any orthogonal V."""
    rng = np.random.default_rng(2)
    R = rng.integers(-1, 2, size=(5, 40)).astype(float)
    V, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    np.testing.assert_allclose(np.linalg.pinv(V.T @ R) @ V.T, np.linalg.pinv(R), atol=1e-12)


def test_full_rank_charges_nothing_for_epsilon2() -> None:
    little, much = (PrivateProjection(**{**SPLIT, "epsilon2": e}) for e in (0.01, 0.9999))
    for r in (0.1, 0.25, 2.0):
        a, b = (m.epsilon(distance=r, delta=1e-4, dimensions=6) for m in (little, much))
        assert a == b
    assert much.guarantee.epsilon > little.guarantee.epsilon  # the label still adds it, as printed


def test_a_rank_below_d_charges_the_covariance() -> None:
    full, cut = PrivateProjection(**SPLIT), PrivateProjection(**SPLIT, rank=2)
    assert cut.epsilon(distance=0.25, delta=1e-4, dimensions=6) > full.epsilon(
        distance=0.25, delta=1e-4, dimensions=6
    )
    same = PrivateProjection(**SPLIT, rank=6)
    assert same.epsilon(distance=0.25, delta=1e-4, dimensions=6) == full.epsilon(
        distance=0.25, delta=1e-4, dimensions=6
    )


def test_a_rank_below_d_gives_rows_in_that_many_directions() -> None:
    out = PrivateProjection(**SPLIT, rank=2).privatize(some_rows())
    assert np.linalg.matrix_rank(out, tol=1e-8) == 2


def test_rank_finds_the_directions_of_the_data_when_noise_is_small() -> None:
    """With many rows the private covariance points where the data do."""
    X = some_rows(60_000, 4)
    out = PrivateProjection(**{**SPLIT, "B": 0.01}, rank=1, calibration="exact").privatize(X)
    _, _, vt = np.linalg.svd(out, full_matrices=False)
    _, _, own = np.linalg.svd(X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], full_matrices=False)
    assert abs(vt[0] @ own[0]) > 0.99


def test_exact_calibration_spends_what_it_claims_for_step_3() -> None:
    mechanism = PrivateProjection(**SPLIT, calibration="exact")
    truth = mechanism.epsilon(distance=0.25, delta=SPLIT["delta1"], dimensions=6)
    assert truth <= SPLIT["epsilon1"]
    assert truth == pytest.approx(SPLIT["epsilon1"], rel=1e-6)


def test_output_is_on_the_scale_of_the_rows() -> None:
    """Algorithm 1's own output is k times smaller; both versions here are multiplied by k."""
    X = some_rows(2000, 3)
    quiet = PrivateProjection(**{**SPLIT, "B": 0.0005}, k=2000)
    for out in (
        quiet.privatize(X),
        quiet.privatize(X, np.random.default_rng(3)),
        literal_private_projection(quiet, X, np.random.default_rng(3)),
    ):
        clipped = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        assert np.abs(out - clipped).max() < 0.05


def test_releases_share_a_public_projection_and_simulations_do_not() -> None:
    mechanism = PrivateProjection(**SPLIT, k=3)
    X = np.zeros((500, 5))
    directions = mechanism.public_projection(5).directions
    for _ in range(3):
        out = mechanism.privatize(X)
        np.testing.assert_allclose(out @ directions @ directions.T, out, atol=1e-9)
    simulated = mechanism.privatize(X, np.random.default_rng(1))
    assert not np.allclose(simulated @ directions @ directions.T, simulated, atol=1e-3)
    other = PrivateProjection(**SPLIT, k=3, projection_seed=1).public_projection(5)
    assert not np.allclose(other.directions @ other.directions.T, directions @ directions.T)


def test_the_gram_matrix_is_exact_and_independent_of_row_order() -> None:
    rows = some_rows(20_000, 5)
    gram = _exact_gram(rows)
    np.testing.assert_array_equal(gram, _exact_gram(rows[::-1]))
    whole = np.rint(rows * 2**20).astype(np.int64).astype(object)
    exact = (whole.T @ whole).astype(float) / 2.0**40
    np.testing.assert_array_equal(gram, exact)


def test_a_projection_on_which_the_claim_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = PrivateProjection(**SPLIT)
    monkeypatch.setattr("targetdp.mechanisms._projection.printed_step3_sigma", lambda *_: 1e-4)
    with pytest.raises(RuntimeError, match=r"projection_seed = 0 .* does not hold"):
        mechanism.privatize(some_rows())


def test_very_wide_tables_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"2001 columns: .* 1 to 2000; use SphericalLaplace"):
        PrivateProjection(**SPLIT).privatize(np.zeros((1, 2001)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epsilon2", 1.0, r"epsilon2 = 1.0 is outside \(0, 1\): Lemma 7 needs ε₂ < 1; try 0.9999"),
        ("delta1", 0.5, r"delta1 = 0.5 is outside \[1e-20, 0.5\): Lemma 6"),
        ("k", 0, "k = 0 is outside 1 to"),
        ("rank", 0, "rank = 0 is outside 1 to any"),
        ("B", 2.5, r"B = 2.5 is outside \(0, 2\]"),
        ("calibration", "loose", "calibration = 'loose' is not one of exact, printed"),
        ("projection_seed", -1, "projection_seed = -1"),
    ],
)
def test_bad_parameters(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrivateProjection(**{**SPLIT, name: value})


def test_exact_calibration_is_not_bound_by_lemma_7() -> None:
    assert (
        PrivateProjection(**{**SPLIT, "epsilon2": 2.0}, calibration="exact", rank=1).guarantee.epsilon == 5.0
    )


def test_directions_that_r_lost_are_left_out() -> None:
    """k = 3 = d with a singular R (seed 11): the lost direction must not blow up the noise."""
    mechanism = PrivateProjection(**SPLIT, k=3, calibration="exact", projection_seed=11)
    assert 0.0 in mechanism.public_projection(3).lengths
    assert mechanism.noise_sd(3) < 10
