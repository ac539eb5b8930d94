"""Ridge and logistic regression, cross-validated: the paper's two models, and what folds share only once."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import expit

from targetdp._core import Floats, Integers, check
from targetdp.programs._people import Folds, set_fields

_USUAL = "1 is scikit-learn's default"

# Cross-validated ridge regression from Gram matrices: one pass over the table for all folds.
#
# Each part's share of XᵀX and Xᵀy is computed once; what a fold is fitted on is the sum less its own share.


@dataclass(frozen=True)
class Ridge:
    """Least squares with a penalty α‖w‖² on the weights and none on the intercept.

    The minimum of Σᵢ cᵢ(yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖², cᵢ being person i's weight: scikit-learn's
    ``Ridge(alpha)``, equal to 1e-8 of the target's size. Columns are taken as they are: the original rows
    were scaled before (`normalize`), and a private table must be treated exactly as the original one is.

    Args:
        alpha: α, above 0.

    Raises:
        ValueError: ``alpha`` is not above 0.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> predicted = Ridge().predict(X, X @ [1.0, 2.0], Folds(100))
        >>> bool(np.corrcoef(predicted, X @ [1.0, 2.0])[0, 1] > 0.999)
        True
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, alpha=check.number("alpha", self.alpha, above=0, remedy=_USUAL))

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


# Cross-validated logistic regression by Newton's method, with what the folds share computed once.
#
# The fit to all people comes first, roughly. There, one pass gives each part's share of gradient and Hessian,
# so that every fold's first Newton step costs nothing more; then each fold walks the short rest alone.

_STEPS = 100
_NEAR, _ENOUGH = 1e-2, 2e-4
"""Largest change of anyone's log-odds in the last step, for the shared start and at the end.

While log-odds change by m, the curvature changes by a factor of at most e^m, so that what is left after a
Newton step of m is about m²: 4e-8 in log-odds.
"""


@dataclass(frozen=True)
class Logistic:
    """Logistic regression with scikit-learn's penalty: the minimum of ½‖w‖² + C·Σᵢ cᵢ·lossᵢ.

    cᵢ is person i's weight; the intercept is free. Probabilities equal those of ``LogisticRegression(C)`` to
    1e-6, if that is run to convergence (by default it stops earlier).

    Args:
        C: What the losses count against the penalty, above 0.

    Raises:
        ValueError: ``C`` is not above 0.

    Edges: where everybody (or nobody) of a fold's people repaid, there is no finite intercept; the limit is
    taken, a probability of 1 (or 0) for all.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> repaid = (X[:, 0] > 0).astype(float)
        >>> chances = Logistic().predict(X, repaid, Folds(100))
        >>> bool(((chances > 0.5) == (repaid == 1)).mean() > 0.9)
        True
    """

    C: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, C=check.number("C", self.C, above=0, remedy=_USUAL))

    def record(self) -> dict[str, object]:
        """Plain data."""
        return {"estimator": "logistic", "C": self.C}

    def predict(self, X: Floats, y: Floats, folds: Folds, weights: Floats | None = None) -> Floats:
        """Each person's probability by the model that was fitted without her part."""
        n, d = X.shape
        if y.min() == y.max():
            return np.full(n, float(y[0]))
        table = np.ones((n, d + 1))
        table[:, :d] = X[folds.order]
        signs = 2 * y[folds.order] - 1
        counts = np.full(n, self.C) if weights is None else self.C * weights[folds.order]
        start = _State(table, signs, counts, np.zeros(d + 1), np.zeros(n)).settled(_NEAR)
        shares = [start.of(slice(a, b)).slopes() for a, b in folds.ranges()]
        gradient = np.sum([g for g, _ in shares], axis=0)
        hessian = np.sum([h for _, h in shares], axis=0)
        predicted = np.empty(n)
        for (begin, end), (own_gradient, own_hessian) in zip(folds.ranges(), shares, strict=True):
            rest = start.of(np.r_[:begin, end:n])
            if abs(rest.signs.sum()) == len(rest.signs):
                chances = np.full(end - begin, float(rest.signs[0] > 0))
            else:
                step = start.newton(gradient - own_gradient, hessian - own_hessian)
                chances = expit(table[begin:end] @ rest.settled(_ENOUGH, step).weight)
            predicted[folds.order[begin:end]] = chances
        return predicted


@dataclass(frozen=True)
class _State:
    """Where a fit stands: the weights so far and the log-odds that they give.

    Rows have a last column of ones; ``signs`` is ±1 for the outcome, ``counts`` what a person's loss counts.
    """

    table: Floats
    signs: Floats
    counts: Floats
    weight: Floats
    odds: Floats

    def of(self, rows: slice | Integers) -> Self:
        """The same for some of the people."""
        table, signs = self.table[rows], self.signs[rows]
        return replace(self, table=table, signs=signs, counts=self.counts[rows], odds=self.odds[rows])

    def settled(self, enough: float, step: Floats | None = None) -> Self:
        """The minimum, by Newton's method; ``step`` is the first one, if it is known already."""
        here, loss = self, None
        for _ in range(_STEPS):
            step = here.newton(*here.slopes()) if step is None else step
            moves = here.table @ step
            moved = float(np.abs(moves).max())
            there = here._moved(step, moves)
            if moved > 1:  # far from the minimum: only go where it gets better
                loss = here.loss() if loss is None else loss
                while (better := there.loss()) > loss and moved > enough:
                    step, moves, moved = step / 2, moves / 2, moved / 2
                    there = here._moved(step, moves)
                loss = better
            else:
                loss = None
            if moved <= enough:
                return there
            here, step = there, None
        raise ValueError(
            f"logistic regression found no minimum in {_STEPS} steps: scale the features first, or lower C"
        )

    def newton(self, gradient: Floats, hessian: Floats) -> Floats:
        """Newton's step for slopes of the losses: the penalty is added here."""
        penalty = np.ones(len(self.weight))
        penalty[-1] = 0.0
        return np.asarray(-np.linalg.solve(hessian + np.diag(penalty), gradient + penalty * self.weight))

    def slopes(self) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the losses."""
        wrong = expit(-self.signs * self.odds)
        pull = self.counts * wrong
        curvature = (pull * (1 - wrong))[:, None]
        return -((pull * self.signs) @ self.table), self.table.T @ (self.table * curvature)

    def loss(self) -> float:
        """What is minimized."""
        losses = np.logaddexp(0.0, -self.signs * self.odds)
        return 0.5 * float(self.weight[:-1] @ self.weight[:-1]) + float(self.counts @ losses)

    def _moved(self, step: Floats, moves: Floats) -> Self:
        return replace(self, weight=self.weight + step, odds=self.odds + moves)
