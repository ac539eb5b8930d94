"""One round, to compare with: all columns of everybody, and a model that is fitted to the labelled sample."""

import numpy as np

from targetdp.programs.folds import Folds
from targetdp.programs.logistic import Logistic
from targetdp.programs.ridge import Ridge
from targetdp.programs.two_rounds.learning import Kind
from targetdp.programs.two_rounds.target_scale import TargetScale
from targetdp.typing import Floats


def one_round(
    ours: Floats,
    y: Floats,
    theirs: Floats,
    scale: TargetScale,
    kind: Kind,
    folds: Folds,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Predictions for people of the sample (``ours``, by cross-validation) and for all others (``theirs``).

    Aid: ridge regression (α = 1) of the target on its ``scale``; lending: logistic regression (C = 1). Rows
    may be private or not, and are taken as they are. Both groups' rows have noise of the same kind, which is
    then what such a model should be fitted to.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (slow to import)
    from sklearn.linear_model import Ridge as AnyRidge  # noqa: PLC0415

    if kind == "lending":
        fit = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8).fit(ours, y, weights)
        return Logistic().predict(ours, y, folds, weights), np.asarray(fit.predict_proba(theirs)[:, 1])
    target = scale.of(y)
    others = AnyRidge(alpha=1.0).fit(ours, target, weights).predict(theirs)
    return Ridge().predict(ours, target, folds, weights), np.asarray(others)
