"""What the mechanisms leave of targeting on a real table, where one is at hand.

The table (Vietnam Living Standards Survey 1997/98, R package Ecdat, VietNamH: 4,201 households, 10 features)
is not part of this project: its license differs. Without it these tests are skipped, and say so.
"""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from support.outside import VIETNAM, needs
from targetdp import Guarantee, data_scales, normalize
from targetdp._core import Floats
from targetdp.mechanisms import noise_mechanisms

QUOTA = 0.29

pytestmark = needs(VIETNAM)


def rows_and_target() -> tuple[Floats, Floats]:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(VIETNAM)
    names = [name for name in table.column_names if name != "y" and not name.startswith("g_")]
    X = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])
    return normalize(X, data_scales(X)).X, np.asarray(table["y"], dtype=np.float64)


def accuracy(X: Floats, y: Floats) -> float:
    """Share put on the right side when the poorest 29% are picked by ridge regression, five folds."""
    predicted = cross_val_predict(Ridge(), X, y, cv=KFold(5, shuffle=True, random_state=0))
    return float(((predicted <= np.quantile(predicted, QUOTA)) == (y <= np.quantile(y, QUOTA))).mean())


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [("projection", 0.630), ("gaussian", 0.706), ("spherical-laplace", 0.718)],
)
def test_accuracy_of_targeting_at_one_guarantee(mechanism: str, expected: float) -> None:
    """B = 0.25, ε ≈ 4; ten simulations have a deviation of about 0.002, chance is 0.588."""
    X, y = rows_and_target()
    rng = np.random.default_rng(1)
    promise = Guarantee(0.25, 3.9999, 1 / (len(X) + 1))
    mean = np.mean([accuracy(noise_mechanisms()[mechanism](promise).privatize(X, rng), y) for _ in range(10)])
    assert mean == pytest.approx(expected, abs=0.008)


def test_status_quo() -> None:
    assert accuracy(*rows_and_target()) == pytest.approx(0.757, abs=0.006)
