"""Cross-validated ridge regression from Gram matrices: one pass over the table for all folds.

Each part's share of XᵀX and Xᵀy is computed once; what a fold is fitted on is the sum less its own share.
"""

from dataclasses import dataclass

import numpy as np

from targetdp import check
from targetdp.programs.folds import Folds
from targetdp.typing import Floats


@dataclass(frozen=True)
class Ridge:
    """Least squares with a penalty α‖w‖² on the weights and none on the intercept.

    The minimum of Σᵢ cᵢ(yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖², cᵢ being person i's weight: scikit-learn's
    ``Ridge(alpha)``, equal to 1e-8 of the target's size. Columns are taken as they are: the original rows
    were scaled before (`normalize`), and a private table must be treated exactly as the original one is.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        alpha = check.number("alpha", self.alpha, above=0, remedy="1 is scikit-learn's default")
        object.__setattr__(self, "alpha", alpha)

    def record(self) -> dict[str, object]:
        """Plain data."""
        return {"estimator": "ridge", "alpha": self.alpha}

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's prediction by the model that was fitted without her part."""
        d = X.shape[1]
        middle, level = X.mean(axis=0), float(y.mean())
        table = np.empty((len(X), d + 2))  # features, target and ones: one product holds every sum there is
        table[:, :d] = X[folds.order]
        table[:, :d] -= middle  # columns far from zero would lose digits in their squares
        table[:, d] = y[folds.order] - level
        table[:, d + 1] = 1.0
        counted = table if weights is None else table * weights[folds.order, None]
        shares = np.stack([table[a:b].T @ counted[a:b] for a, b in folds.ranges()])
        fitted_on = shares.sum(axis=0) - shares
        total = fitted_on[:, -1, -1][:, None, None]
        sums = fitted_on[:, :-1, -1:]
        centered = fitted_on[:, :-1, :-1] - sums @ sums.transpose(0, 2, 1) / total
        slopes = np.linalg.solve(centered[:, :d, :d] + self.alpha * np.eye(d), centered[:, :d, d:])[:, :, 0]
        means = sums[:, :, 0] / total[:, 0]
        intercepts = means[:, d] - np.einsum("fj,fj->f", means[:, :d], slopes)
        predicted = np.empty(len(X))
        for (begin, end), slope, intercept in zip(folds.ranges(), slopes, intercepts, strict=True):
            predicted[folds.order[begin:end]] = table[begin:end, :d] @ slope + (intercept + level)
        return predicted
