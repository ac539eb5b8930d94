"""What programs make of real tables, where these are at hand: the figures that the project quotes.

Vietnam Living Standards Survey 1997/98 (R package Ecdat, VietNamH) and UCI's default of credit card clients
are not part of this project: their licenses differ. Without them these tests are skipped, and say so.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict

from support.outside import CREDIT, VIETNAM, needs
from targetdp import Guarantee
from targetdp.mechanisms import least_noise, noise_mechanisms
from targetdp.programs import Folds, OpenProgram, load_program
from targetdp.programs._settings import make_program_settings

pytestmark = needs(VIETNAM, CREDIT)


def features(table: Path) -> list[str]:
    names = pq.read_schema(table).names
    return [name for name in names if name not in {"y", "y_default0", "amount"} and not name.startswith("g_")]


@cache
def vietnam() -> OpenProgram:
    given = {
        "kind": "aid", "table": VIETNAM, "source": "public", "features": features(VIETNAM), "target": "y",
        "quota": 0.29, "population": 4_950_000, "groups": ["g_head_sex", "g_urban"],
    }  # fmt: skip
    return load_program(make_program_settings(given))


@cache
def credit() -> OpenProgram:
    given = {
        "kind": "lending", "table": CREDIT, "source": "public", "features": features(CREDIT), "target": "y",
        "loans": {"amount": "amount", "revenue": 0.15, "interest": 0.02}, "groups": ["g_sex"],
        "currency": "units",
    }  # fmt: skip
    return load_program(make_program_settings(given))


def test_aid_before_any_privacy() -> None:
    """Ten plans: one has a deviation of 0.0013. Clipping rows to the unit ball alone costs a point."""
    found = vietnam()
    plans = [Folds(len(found.rows), seed=seed) for seed in range(10)]
    scaled = (found.raw - found.scales.center) / found.scales.scale
    clipped = np.mean([found.program.evaluate(found.rows, plan)["accuracy"] for plan in plans])
    assert clipped == pytest.approx(0.757, abs=0.006)
    unclipped = np.mean([found.program.evaluate(scaled, plan)["accuracy"] for plan in plans])
    assert unclipped - clipped == pytest.approx(0.011, abs=0.004)
    assert found.program.chance == pytest.approx(0.588, abs=0.0005)


@pytest.mark.parametrize(
    ("mechanism", "expected"), [("projection", 0.630), ("gaussian", 0.706), ("spherical-laplace", 0.718)]
)
def test_aid_at_one_guarantee(mechanism: str, expected: float) -> None:
    """B = 0.25, ε ≈ 4; the mean of ten simulations has a deviation of about 0.002."""
    found, rng = vietnam(), np.random.default_rng(1)
    private = noise_mechanisms()[mechanism](Guarantee(0.25, 3.9999, 1 / 4_202))
    results = [
        found.program.evaluate(private.privatize(found.rows, rng), found.folds, rng) for _ in range(10)
    ]  # fmt: skip
    assert np.mean([result["accuracy"] for result in results]) == pytest.approx(expected, abs=0.008)


def test_lending_before_any_privacy() -> None:
    found = credit()
    result = found.program.evaluate(found.rows, found.folds)
    assert result["accuracy"] == pytest.approx(0.874, abs=0.003)
    assert found.program.chance == pytest.approx(0.634, abs=0.0005)
    assert result["profit"] > 0


@pytest.mark.parametrize(("mechanism", "expected"), [("projection", 0.676), ("gaussian", 0.864)])
def test_lending_at_one_guarantee(mechanism: str, expected: float) -> None:
    found, rng = credit(), np.random.default_rng(1)
    promise = Guarantee(0.1, 2.9999, 1 / 20_789)
    private = noise_mechanisms()[mechanism](promise)
    result = found.program.evaluate(private.privatize(found.rows, rng), found.folds, rng)
    assert result["accuracy"] == pytest.approx(expected, abs=0.01)
    quiet = least_noise(promise, found.rows.shape[1]).mechanism
    best = found.program.evaluate(quiet.privatize(found.rows, rng), found.folds, rng)
    assert best["accuracy"] > result["accuracy"] - 0.003
    assert best["accuracy"] > 0.86


def test_fast_models_are_scikit_learns_on_real_rows() -> None:
    aid, lending = vietnam(), credit()
    slow = cross_val_predict(Ridge(), aid.rows, aid.program.outcomes, cv=list(aid.folds))
    fast = aid.program.model.predict(aid.rows, aid.program.outcomes, aid.folds)
    assert np.abs(fast - slow).max() <= 1e-8 * np.ptp(aid.program.outcomes)
    converged = LogisticRegression(tol=1e-10, solver="newton-cholesky")
    chances = cross_val_predict(
        converged, lending.rows, lending.program.outcomes, cv=list(lending.folds), method="predict_proba"
    )[:, 1]
    mine = lending.program.model.predict(lending.rows, lending.program.outcomes, lending.folds)
    assert np.abs(mine - chances).max() <= 1e-6
