"""A weighted sum of the columns: ridge or logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats
from targetdp.programs import Task
from targetdp.targeting._fit._kinds import FittedScore, ScoreKind, rounded

RIDGES = np.logspace(-2, 5, 29)
"""Penalties that are tried, in units of a person."""
_LEAST_LEFT = 1e-3
"""Of a person's leverage to the others, at least."""


@dataclass(frozen=True, eq=False)
class LinearFit(FittedScore):
    """A weighted sum."""

    weights: Floats = field(repr=False)
    middle: float

    def of_rows(self, X: Floats) -> Floats:
        """See `FittedScore.of_rows`."""
        return np.asarray(X @ self.weights)

    def asked(self, features: Sequence[str]) -> dict[str, Any]:
        """See `FittedScore.asked`."""
        return {"weights": dict(zip(features, self.weights.tolist(), strict=True))}


class Linear(ScoreKind):
    """A weighted sum of the columns."""

    name, any_B, request_field, order = "linear", True, "weights", 0

    def fit(self, X: Floats, y: Floats, task: Task, weights: Floats, seed: int) -> LinearFit:  # noqa: ARG002
        """See `ScoreKind.fit`; people with a gap are left out."""
        whole = ~np.isnan(X).any(axis=1)
        rows = X[whole]
        if len(rows) < 2 or y[whole].min() == y[whole].max():
            return LinearFit(np.zeros(X.shape[1]), float(y.mean()))
        center, deviation = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        slopes, middle = penalized_fit((rows - center) / scale, y[whole], task, weights[whole])
        steepest = float(np.abs(slopes).max())
        # A weight may err by a share of what the columns with the largest effect do, also far from 0.
        reach = scale * np.maximum(1.0, np.abs(center) / scale)
        found = np.array(
            [
                rounded(slope / size, steepest / far)
                for slope, size, far in zip(slopes, scale, reach, strict=True)
            ]
        )
        if steepest > 0 and not found.any():
            found = slopes / scale
        return LinearFit(found, middle - float(center @ found))


def penalized_fit(rows: Floats, y: Floats, task: Task, weights: Floats) -> tuple[Floats, float]:
    """Slopes and intercept with the penalty that predicts best: ridge, or logistic regression."""
    if task == "regression":
        return ridge_fit(rows, y, weights)
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (slow to import)

    logistic = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8).fit(rows, y, weights)
    return np.asarray(logistic.coef_[0], dtype=np.float64), float(logistic.intercept_[0])


def ridge_fit(rows: Floats, y: Floats, weights: Floats) -> tuple[Floats, float]:
    """Ridge regression with the penalty of the smallest leave-one-out error, all from one decomposition.

    With A = USVᵀ the weighted, centered rows, whoever is left out has the residual rᵢ/(1 − hᵢ), where
    hᵢ = Σⱼ Uᵢⱼ² sⱼ²/(sⱼ² + α), and her share of the weights for the intercept.
    """
    shares = weights / weights.sum()
    counts = np.sqrt(shares * len(rows))
    middle, mean = shares @ rows, float(shares @ y)
    u, s, v = np.linalg.svd(counts[:, None] * (rows - middle), full_matrices=False)
    target = counts * (y - mean)
    along, squares = u.T @ target, np.square(u)
    kept = np.square(s)[:, None] / (np.square(s)[:, None] + RIDGES)  # a column for each penalty
    left = 1 - squares @ kept - shares[:, None]
    errors = (target[:, None] - u @ (kept * along[:, None])) / np.maximum(left, _LEAST_LEFT)
    best = RIDGES[int(np.argmin(np.square(errors).sum(axis=0)))]
    slopes = v.T @ (s / (np.square(s) + best) * along)
    return np.asarray(slopes), mean - float(middle @ slopes)
