"""Weights that know both noises: that of the rows they are learned from, and that of the scores to come.

A score ⟨w, x⟩ with ‖w‖ = 1 gets noise of variance v₂, and its correlation with the target is, but for the
target's deviation, ⟨w, c⟩/√(wᵀCw + v₂). That is largest for w ∝ (C + v₂·I)⁻¹c. The moments C = cov(x) and
c = cov(x, y) are those of rows without noise: cov(Z, y) is c already, and cov(Z) − Σ₁ is C.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
from scipy.special import expit

from targetdp._core import Floats, check
from targetdp.programs import ScoredProgram, Task, people_of, values_of
from targetdp.targeting._denoise import AS_GIVEN, Signal, TargetScale, plausible, scale_of, signal_of

FEWEST = 30
"""People with a label below whom nothing is learned."""

_RIDGES = (0.0, *np.geomspace(1e-3, 1e2, 26).tolist())
"""Tried beside v₂, in units of the typical variance and v₂ together: from none to weights ∝ c."""

_MORE = 2.0
"""Scores along weights that were worth learning usually vary more than columns do, by about so much."""

_LEAST_LEFT = 0.1
"""A person's leverage is taken to leave at least so much to the others."""

_NOTHING = 1e-12
"""Share of the largest eigenvalue below which a direction holds nothing."""


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """A direction of norm 1, and what the private sample tells about scores along it.

    ``covariance`` (with the target, on its ``scale``) and ``scores`` leave each person out of the weights
    that judge her, so they are not flattered. ``scores`` still have the noise of the private rows, of
    variance ``noise_variance``. ``spread`` is the variance of scores without noise, ``center`` their mean,
    ``usual`` a variance that would not surprise anyone. ``ridge`` is what was added to v₂ against sampling
    error, ``shrinkage`` how far the rows' covariance was pulled towards a multiple of I.

    Args:
        w: The direction.
        task: Whether the target are numbers, or 1 and 0.
        scale: Of the target.
        center: Mean of the scores.
        spread: Their variance without noise.
        covariance: Of scores with the target, on its scale.
        covariance_error: Its standard error.
        noise_variance: Of the private rows' noise along w.
        target_mean: On its scale.
        target_variance: On its scale.
        ridge: What was added to v₂ against sampling error.
        shrinkage: How far the rows' covariance was pulled towards a multiple of I.
        usual: A variance of scores that would not surprise anyone.
        scores: Each person's, by weights that were learned without her.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
        >>> learned = learn(rows, rows[:, 0], np.zeros((2, 2)), score_variance=0.01)
        >>> bool(abs(learned.w[0]) > 0.99)
        True
    """

    w: Floats
    task: Task
    scale: TargetScale
    center: float
    spread: float
    covariance: float
    covariance_error: float
    noise_variance: float
    target_mean: float
    target_variance: float
    ridge: float
    shrinkage: float
    usual: float
    scores: Floats = field(repr=False)

    @property
    def believed(self) -> float:
        """The covariance, shrunk by its own error; 0 within that (James and Stein, positive part)."""
        if self.covariance <= self.covariance_error:
            return 0.0
        return self.covariance - self.covariance_error**2 / self.covariance

    @property
    def tells(self) -> bool:
        """Whether the sample shows that scores tell something of the target: twice what chance may show."""
        return self.covariance > 2 * self.covariance_error

    def correlation(self, score_variance: float) -> float:
        """With the target, of scores that get noise of this variance."""
        return float(self.covariance / math.sqrt((self.spread + score_variance) * self.target_variance))


@dataclass(frozen=True, eq=False)
class _Towards:
    """The vector t of weights (C + λI)⁻¹t: c or, for lending, (C + Σ₁)b.

    Without person i, who counts shareᵢ, it is t − shareᵢ·(mix·xᵢ·strengthᵢ + xᵢ·beside), to first order.
    """

    t: Floats
    mix: Floats
    strength: Floats
    beside: Floats


def learn(
    Z: Any, y: Any, noise_covariance: Any, score_variance: float, *, task: Task = "regression",
    weights: Any = None,
) -> LearnedWeights:  # fmt: skip
    """The best weights for one private score, from private rows and their labels.

    A ``task`` of regression (aid) takes the target on the scale of `scale_of`; high scores are high targets.
    In classification (lending, 1: repaid) slopes b of a logistic regression on the private rows take the
    place of c, as (C + Σ₁)b: in least squares that would be c. Without any noise the weights are those of
    least squares, or of logistic regression.

    The ridge beside v₂ is for the best predicted correlation, each person's part of ⟨w, c⟩ being taken with
    weights learned without her (leave-one-out cross-validation, in closed form). Nothing is random.

    Args:
        Z: Rows of a release, in units of the unit ball; 30 people or more.
        y: The target of the same people; for lending 1 (repaid) or 0.
        noise_covariance: Σ₁ of the noise on the rows, by the release's certificate.
        score_variance: v₂ of the noise that scores will get.
        task: ``"regression"`` or ``"classification"``.
        weights: A survey's weights, one for each person.

    Returns:
        A direction of norm 1, and what the sample tells about scores along it.

    Raises:
        ValueError: There are too few people, shapes do not fit, or all targets are the same.

    Guarantees: post-processing. A function of private rows and of labels: it costs no privacy of the rows.
    Does not guarantee: privacy of the labels, which belong to whoever learns.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.uniform(-0.5, 0.5, (500, 2))
        >>> Z = rows + rng.normal(0, 0.1, rows.shape)
        >>> learned = learn(Z, rows[:, 0], 0.01 * np.eye(2), score_variance=0.01)
        >>> bool(abs(learned.w[0]) > 0.99), learned.tells
        (True, True)
    """
    rows = check.table(Z, "Z")
    target = values_of("y", y, len(rows))
    check.integer("people", len(rows), at_least=FEWEST, remedy="fewer labels tell nothing about anyone else")
    v2 = check.number("score_variance", score_variance, at_least=0)
    check.choice("task", task, get_args(Task))
    if target.min() == target.max():
        raise ValueError(f"y is {float(target[0])!r} for everybody: there is nothing to learn")
    if task == "classification" and not ((target == 0) | (target == 1)).all():
        raise ValueError("y has other values than 0 and 1: give 1 for people who repaid, 0 for the others")
    scale = AS_GIVEN if task == "classification" else scale_of(target)
    return _learned(_signal(rows, noise_covariance, weights), scale, scale.of(target), v2, task)


def learn_for(
    program: ScoredProgram, Z: Floats, noise_covariance: Floats, score_variance: float
) -> LearnedWeights:
    """`learn` from private rows of a program's people, in its order."""
    return learn(
        Z, program.outcomes, noise_covariance, score_variance, task=program.task,
        weights=program.people.fit_weights,
    )  # fmt: skip


def decision_ridge(Z: Floats, noise_covariance: Floats, weights: Floats | None = None) -> float:
    """The score variance with which `learn` makes weights for decisions from private rows: 2t·(s/(s + t))².

    A decision adds no noise to a score, but weights that were learned for none follow the noise on the rows
    too closely: columns that hold little besides noise get large weights. s is the variance of that noise in
    a column, t the typical variance of columns without it. Where rows have little noise it is next to
    nothing, and where they have much it is 2t, which keeps weights near the covariance with the target.

    Args:
        Z: Private rows.
        noise_covariance: Of their noise.
        weights: A survey's weights, one for each person.

    Returns:
        A variance for ``score_variance``.

    Example:
        >>> rows = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
        >>> little, much = (decision_ridge(rows, s * np.eye(2)) for s in (1e-4, 1e-2))
        >>> bool(0 < little < much < 0.1)
        True
    """
    signal = _signal(Z, noise_covariance, weights)
    noise, typical = float(np.trace(signal.noise)) / Z.shape[1], signal.typical
    return float(2 * typical * (noise / (noise + typical)) ** 2)


def weights_along(
    learned: LearnedWeights, w: Floats, program: ScoredProgram, Z: Floats, noise_covariance: Floats
) -> LearnedWeights:
    """What the sample of ``learned`` tells about scores along another direction, given by somebody else.

    Nobody is left out here, since it is not known how the direction came about: if it was learned from these
    very people, the covariance is a little too good.
    """
    w = w / np.linalg.norm(w)
    signal = _signal(Z, noise_covariance, program.people.fit_weights)
    far = learned.scale.of(program.outcomes) - learned.target_mean
    shared = float((signal.shares * far) @ (signal.rows @ w))
    scores = _scores_along(signal, w, far, np.zeros(len(far)), shared, learned.usual)
    return replace(learned, w=w, covariance=shared / (1 - signal.crowding), **scores)


def _signal(rows: Floats, noise_covariance: Any, weights: Any) -> Signal:
    d = rows.shape[1]
    sigma = check.table(noise_covariance, "noise_covariance", columns=d)
    if sigma.shape != (d, d):
        raise ValueError(f"noise_covariance has shape {sigma.shape}: Z has {d} columns")
    counted = None if weights is None else people_of(len(rows), weights=weights).weights
    return signal_of(rows, sigma, counted)


def _scores_along(
    signal: Signal, w: Floats, far: Floats, own: Floats, shared: float, usual: float
) -> dict[str, Any]:
    """What is known of scores along w, where people's own part in it is taken off.

    ``far`` is how far targets are from their mean, and ``shared`` the scores' covariance with them.
    """
    shares, along = signal.shares, signal.rows @ w
    noise, middle = float(w @ signal.noise @ w), float(signal.center @ w)
    seen = float(shares @ along**2)
    error = math.sqrt(float(np.square(shares * (along**2 - seen)).sum()))
    scores = along - own
    return {
        "center": middle,
        "spread": plausible(seen / (1 - signal.crowding) - noise, error, 1.0, usual),
        "noise_variance": noise,
        "covariance_error": math.sqrt(float(np.square(shares * (far * scores - shared)).sum())),
        "scores": scores + middle,
    }


def _learned(signal: Signal, scale: TargetScale, y: Floats, v2: float, task: Task) -> LearnedWeights:
    shares, x, lone = signal.shares, signal.rows, 1 - signal.crowding
    mean = float(shares @ y)
    far = y - mean
    c = (shares * far) @ x / lone
    towards = (
        _logistic(signal, y)
        if task == "classification"
        else _Towards(c, np.eye(len(c)), far, np.zeros(len(y)))
    )
    if not np.abs(towards.t).max() > 0:
        raise ValueError("Z and y have no covariance at all: are the rows all alike?")
    paths = _Paths.of(signal, towards, v2)
    spent = sum((shares[i] * far[i]) @ paths.own_part(i) for i in _blocks(len(y)))
    shared_by = paths.w.T @ c - spent / lone
    best = int(np.argmax(shared_by / np.sqrt(np.einsum("dk,dk->k", paths.w, signal.shrunk @ paths.w) + v2)))
    shared, w, usual = float(shared_by[best]), paths.w[:, best], _MORE * signal.typical
    own = np.concatenate([paths.own_part(i, best)[:, 0] for i in _blocks(len(y))])
    return LearnedWeights(
        w=w, task=task, scale=scale, covariance=shared, target_mean=mean,
        target_variance=float(shares @ far**2) / lone, ridge=float(paths.ridges[best]),
        shrinkage=signal.shrinkage, usual=usual, **_scores_along(signal, w, far, own, shared, usual),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Paths:
    """Weights for every ridge that is tried, one in each column of ``w``; all of norm 1.

    ``inverse`` has the eigenvalues of (C + λI)⁻¹ for each, ``sizes`` the weights' norms before: in the basis
    of C's eigenvectors all of them are products with the same few matrices.
    """

    signal: Signal
    towards: _Towards
    vectors: Floats
    ridges: Floats
    inverse: Floats
    sizes: Floats
    w: Floats

    @classmethod
    def of(cls, signal: Signal, towards: _Towards, v2: float) -> "_Paths":
        values, vectors = np.linalg.eigh(signal.shrunk)
        ridges = np.array(_RIDGES) * (signal.typical + v2)
        whole = values[:, None] + v2 + ridges
        # Directions that hold nothing, in rows or in noise, are left out.
        kept = whole > _NOTHING * whole.max(axis=0)
        inverse = np.divide(1.0, whole, out=np.zeros_like(whole), where=kept)
        turned = inverse * (vectors.T @ towards.t)[:, None]
        sizes = np.linalg.norm(turned, axis=0)
        return cls(signal, towards, vectors, ridges, inverse, sizes, vectors @ turned / sizes)

    def own_part(self, rows: slice, only: int | None = None) -> Floats:
        """How much of each person's score, ⟨w, xᵢ⟩/‖w‖, is due to her own part in learning w.

        She pulls at t, and through her share of the covariance at G = (C + λI)⁻¹ (Sherman and Morrison).
        A column for each ridge, or for the ``only`` one.
        """
        one = slice(None) if only is None else slice(only, only + 1)
        g, sizes = self.inverse[:, one], self.sizes[one]
        shares, kept = self.signal.shares[rows, None], 1 - self.signal.shrinkage
        x = self.signal.rows[rows] @ self.vectors
        pull = self.signal.rows[rows] @ (self.towards.mix.T @ self.vectors)
        unit = self.vectors.T @ self.w[:, one]
        along, through = x @ unit, np.square(x) @ g
        # Only what turns the weights counts, since they are made to have norm 1.
        toward = (pull * x) @ g - along * (pull @ (g * unit))
        around = through - along * (x @ (g * unit))
        own = toward * self.towards.strength[rows, None]
        own += around * kept * (self.towards.beside[rows, None] - along * sizes)
        left = 1 - kept * shares * through
        return np.asarray(shares * own / np.maximum(left, _LEAST_LEFT) / sizes)


def _blocks(n: int, size: int = 1 << 13) -> Iterator[slice]:
    """So that a large sample needs no more memory than its rows."""
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def _logistic(signal: Signal, y: Floats) -> _Towards:
    """(C + Σ₁)b for the slopes b of a logistic regression on rows with noise."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 (slow to import)

    counts = signal.shares / signal.crowding  # 1 for each, if all count alike
    # The penalty is the program's own (C = 1).
    fit = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8).fit(signal.rows, y, counts)
    b = fit.coef_[0]
    chances = expit(signal.rows @ b + fit.intercept_[0])
    curvature = counts * chances * (1 - chances)
    rows = signal.rows - curvature @ signal.rows / curvature.sum()
    hessian = (rows.T * curvature) @ rows + np.eye(len(b))
    both = signal.shrunk + signal.noise
    mix = both @ np.linalg.inv(hessian) / signal.crowding
    return _Towards(both @ b, mix, y - chances, signal.rows @ b)
