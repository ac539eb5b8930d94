"""A sum of piecewise linear curves, one for each column: splines of degree 1 with rounded knots."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats
from targetdp.programs import Task
from targetdp.targeting._fit._kinds import FittedScore, ScoreKind, rounded, rounded_cuts
from targetdp.targeting._fit._linear import penalized_fit

_MOST_KNOTS, _FEWEST = 10, 20
"""Of a curve, and people between two of them."""


@dataclass(frozen=True, eq=False)
class AdditiveFit(FittedScore):
    """Knots and values of a curve for each column; constant beyond the first and last knot."""

    knots: tuple[Floats, ...] = field(repr=False)
    values: tuple[Floats, ...] = field(repr=False)
    middle: float

    def of_rows(self, X: Floats) -> Floats:
        """See `FittedScore.of_rows`."""
        total = np.zeros(len(X))
        for column, knots, values in zip(X.T, self.knots, self.values, strict=True):
            total += np.where(np.isnan(column), np.nan, np.interp(column, knots, values))
        return total

    def asked(self, features: Sequence[str]) -> dict[str, Any]:
        """See `FittedScore.asked`."""
        curves = zip(features, self.knots, self.values, strict=True)
        return {"additive": {name: {"knots": at.tolist(), "values": v.tolist()} for name, at, v in curves}}


class Additive(ScoreKind):
    """A sum of one curve for each column."""

    name, any_B, request_field, order = "additive", True, "additive", 1

    def fit(self, X: Floats, y: Floats, task: Task, weights: Floats, seed: int) -> AdditiveFit:  # noqa: ARG002
        """See `ScoreKind.fit`; people with a gap are left out."""
        whole = ~np.isnan(X).any(axis=1)
        rows, target = X[whole], y[whole]
        knots = [_knots(column) for column in X.T]
        if len(rows) < 2 or target.min() == target.max():
            return AdditiveFit(tuple(knots), tuple(np.zeros(len(at)) for at in knots), float(y.mean()))
        # A column's bumps add up to 1: each is 1 at its own knot and falls to 0 at the next ones.
        bumps = [_bumps(column, at) for column, at in zip(rows.T, knots, strict=True)]
        heights, middle = penalized_fit(np.concatenate(bumps, axis=1), target, task, weights[whole])
        ends = np.cumsum([len(at) for at in knots])[:-1]
        values = []
        for own, bump in zip(np.split(heights, ends), bumps, strict=True):
            mean = float(bump.mean(axis=0) @ own)
            middle += mean
            values.append(own - mean)
        largest = max(float(np.abs(own).max()) for own in values)
        shown = tuple(np.array([rounded(float(one), largest) for one in own]) for own in values)
        return AdditiveFit(tuple(knots), shown, middle)


def _knots(column: Floats) -> Floats:
    """Rounded places between people, and one beyond either end of most of them."""
    inside = rounded_cuts(column, _MOST_KNOTS - 2, _FEWEST)
    known = column[~np.isnan(column)]
    if not len(inside):
        return np.array([float(np.round(known[0], 6)) if len(known) else 0.0])
    low, high = np.quantile(known, [0.01, 0.99])
    gap = float(max(inside[-1] - inside[0], abs(high - low))) / 4
    first, last = rounded(float(low), gap, 1), rounded(float(high), gap, 1)
    found = np.unique(np.concatenate([[min(first, inside[0])], inside, [max(last, inside[-1])]]))
    # Of rows of the unit ball no knot may be outside it, and rounding may have led there.
    return np.unique(np.clip(found, -1, 1)) if np.abs(known).max() <= 1 else found


def _bumps(column: Floats, knots: Floats) -> Floats:
    """How near each value is to each knot, from 0 to 1."""
    if len(knots) == 1:
        return np.zeros((len(column), 1))
    return np.stack([np.interp(column, knots, one) for one in np.eye(len(knots))], axis=1)
