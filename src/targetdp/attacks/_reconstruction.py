"""Reconstruction: the best estimate of each person's features from the release and the known noise.

Columns of real tables go together, and people are alike: both give back part of what the noise hid. Whoever
takes the noise for the protection overrates it, and this attack says by how much.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from targetdp._core import Floats, Progress, Silent, check
from targetdp.attacks._declaration import INFERENCE, Answer, Case, at_most, attack, strongest_of
from targetdp.attacks._guess._mixture import Mixture, expectation
from targetdp.attacks._guess._prior import (
    fitted_prior,
    linear_estimate,
    linear_prior,
    notes_on_fitting,
    posterior_spread,
)
from targetdp.attacks._match._known_noise import AverageNoise, KnownNoise, Noise, check_in_unit_ball
from targetdp.attacks._match._pairs import same_people
from targetdp.attacks._match._together import View, each_and_together, strongest_view
from targetdp.attacks._protection import CONFIDENCE, Protection, Setting, worst
from targetdp.normalization import clip_rows

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

AS_RELEASED, LINEAR, MIXTURE = "released values as they are", "best linear estimate", "mixture prior"

_GROUPS = 20
"""Of people, for the jackknife."""
_NOTHING = 1e-12
"""Variance of rows in the unit ball below which they are all the same."""
_FARTHEST = 1e50
"""Released values in units of the noise, at most: fourth powers of them are still numbers."""

MODELLED = (
    "The original table was not given: errors are those that the fitted prior expects, before estimates are "
    "moved into the unit ball. If the prior does not fit, they are wrong."
)


@dataclass(frozen=True)
class _Error:
    """Of one way to estimate: mean squared error by column, and its ratio to people's ``variance``."""

    squares: Floats
    variance: float
    setting: Setting


def estimate(X_priv: Any, mechanism: Noise, *, rng: np.random.Generator | None = None) -> Floats:
    """The best estimate that we know of everybody's features, from the release and the known noise.

    The posterior mean under a mixture of normal distributions that is fitted to the release with the noise
    taken into account, moved into the unit ball. This is post-processing of the release: it costs no privacy
    beyond it, and researchers may use it too.

    Args:
        X_priv: Released rows.
        mechanism: The mechanism that made the release, or its law.
        rng: Chooses where fitting starts; fresh unless given.

    Returns:
        An estimate of each row.

    Raises:
        TypeError: ``mechanism`` is neither a mechanism nor a law.
        ValueError: X_priv has values that no row of the unit ball with this noise reaches.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> errors = [np.abs(rows - X).mean() for rows in (X_priv, estimate(X_priv, noise, rng=rng))]
        >>> bool(errors[1] < errors[0])
        True
    """
    released = check.table(X_priv, "X_priv")
    rng = check.generator(rng) or np.random.default_rng()
    return _Fit.of(released, KnownNoise.of(mechanism, released.shape[1]), rng).mixture()


def _headline(p: Protection) -> str:
    by = strongest_of(p, "estimates")
    if p.score <= 0:
        return f"People's values could be estimated without error ({by})."
    if p.score >= 1:
        return (
            f"Our best estimate of people's values was no better than the mean of all for everybody ({by})."
        )
    left = "left" if p.detail.get("measured", True) else "is expected to leave"
    return (
        f"Our best estimate of people's values {left} {at_most(p.score)} of their differences (variance) "
        f"unexplained ({by})."
    )


def _on_tables(case: Case) -> Protection:
    def attacked(view: View, options: dict[str, Any]) -> Protection:
        if len(view.releases) > 1:
            rows, average, noise = view.average()
            return reconstruction(average, noise, rows, **options)
        (one,) = view.releases
        law = case.require(
            one.law, "Not run: without a certificate of added noise there is no noise to undo."
        )
        return reconstruction(one.released, law, one.original, **options)

    return strongest_view(case, attacked, each_and_together(case), of_variance=True)


@attack(
    place=6,
    answers=Answer(
        criteria=(INFERENCE,),
        adversary="Has the released table and knows the law of the noise.",
        reaches="How close the best estimate comes to a person's true values once the noise is averaged "
        "out over what all rows have in common.",
        does_not_reach="Estimates that use other tables, or more about the population than the release "
        "itself shows.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    ids="not needed",
    of_variance=True,
)
def reconstruction(
    X_priv: Any,
    mechanism: Noise | AverageNoise,
    X: Any = None,
    *,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """How much of people's differences an adversary who knows the noise still cannot tell from the release.

    Three estimates of everybody's row compete: the released values as they are; the best linear one, for a
    prior with the release's mean and its covariance less the noise's; and the posterior mean under a mixture
    of normal distributions fitted to the release. The last two are moved into the unit ball, where all rows
    are known to lie: a projection onto a convex set comes no farther from any point of it, so it never hurts.

    Args:
        X_priv: Released rows.
        mechanism: The mechanism that made the release, or its law.
        X: The true rows, against which errors are measured; without them, they are what the fitted prior
            expects.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound: the mean squared error that is left over the variance of the features, 0
        if all is known, 1 if everybody might as well be guessed to be the mean. ``detail["errors"]`` has root
        mean squared errors in the units of the rows, per column too, beside the length of the noise and what
        structure gives back of it; where that is much, compare with the error of guessing everybody to be the
        mean.

    Raises:
        TypeError: ``mechanism`` is neither a mechanism nor a law.
        ValueError: The tables do not fit each other, or X lies outside the unit ball.

    Does not guarantee: that no better prior exists (the score is an upper bound); somebody who knows a
    person's other data has one.
    Edges: people who are all the same differ by nothing that could be told; the score is 1 then.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> result = reconstruction(X_priv, noise, X, rng=rng)
        >>> round(result.score, 2), result.strongest
        (0.15, 'mixture prior')
    """
    released = check.table(X_priv, "X_priv")
    d = released.shape[1]
    noise = KnownNoise.of(mechanism, d)
    truth = None
    if X is not None:
        truth = check.table(X, columns=d)
        same_people(released, "X_priv", truth, "X")
        check_in_unit_ball(truth, "X")
    confidence = check.number("confidence", confidence, above=0, below=1)
    rng = check.generator(rng) or np.random.default_rng()
    progress = progress or Silent()

    progress.phase(MIXTURE, None)
    fit = _Fit.of(released, noise, rng)
    error_rate = (1 - confidence) / 3
    errors = fit.expected(error_rate, rng) if truth is None else _measured(fit, truth, error_rate)
    notes = [*([] if truth is not None else [MODELLED]), *notes_on_fitting(len(released), noise)]
    if not noise.exact:
        notes.append("The noise was taken as normal noise of the same covariance.")
    return worst(
        {name: error.setting for name, error in errors.items()},
        "upper",
        confidence=confidence,
        people=len(released),
        measured=truth is not None,
        components=len(fit.prior.weights),
        errors=_details(errors),
        notes=tuple(notes),
    )


def _details(errors: Mapping[str, _Error]) -> dict[str, Any]:
    noise = errors[AS_RELEASED].squares
    details = {}
    for name, error in errors.items():
        length, of_noise = math.sqrt(float(error.squares.sum())), math.sqrt(float(noise.sum()))
        details[name] = {
            "error": length,
            "noise": of_noise,
            "guessing_the_mean": math.sqrt(error.variance),
            "given_back": 1 - length / of_noise if of_noise > 0 else 0.0,
            "error_by_column": np.sqrt(error.squares),
            "noise_by_column": np.sqrt(noise),
        }
    return details


@dataclass(frozen=True)
class _Fit:
    """A release, its noise, and what was learned from both; ``rows`` are in units of the noise."""

    released: Floats
    noise: KnownNoise
    rows: Floats
    back: Floats
    prior: Mixture

    @classmethod
    def of(cls, released: Floats, noise: KnownNoise, rng: np.random.Generator) -> "_Fit":
        there, back = noise.units()
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            rows = released @ there
        if not np.abs(rows).max(initial=0.0) < _FARTHEST:
            raise ValueError(
                f"X_priv has values up to {np.abs(released).max():.4g}, which no row of the unit ball with "
                "this noise reaches: give the release as the mechanism made it, of normalized rows"
            )
        return cls(released, noise, rows, back, fitted_prior(rows, noise, rng))

    def linear(self) -> Floats:
        """The best linear estimate of everybody's row."""
        return self._in_the_ball(linear_estimate(self.rows, linear_prior(self.rows, self.noise.lengths)))

    def mixture(self) -> Floats:
        """The mean of everybody's row given the release, under the mixture."""
        return self._in_the_ball(expectation(self.prior, self.rows, self.noise).means)

    def _in_the_ball(self, estimates: Floats) -> Floats:
        """Back to the units of the rows: what has no noise, or nothing left of it, stays as it is."""
        return clip_rows(self.released + (estimates - self.rows) @ self.back)

    def expected(self, error_rate: float, rng: np.random.Generator) -> dict[str, _Error]:
        """Errors that the fitted priors expect.

        A jackknife over groups of people tells how the linear prior's figures vary; the mixture's, which is
        not fitted again, is taken to vary as much in proportion.
        """
        before, after = self._linear_variances(np.ones(len(self.rows), dtype=bool))
        group = rng.permutation(len(self.rows)) % min(_GROUPS, len(self.rows))
        parts = [self._linear_variances(group != g) for g in np.unique(group)] if group.any() else []
        befores, afters = np.reshape(parts, (-1, 2)).T
        noise = self.noise.variance
        released = _jackknife(noise, before, noise, befores, error_rate)
        linear = _jackknife(after, before, afters, befores, error_rate)
        spread = self._by_column(posterior_spread(self.prior, self.rows, self.noise))
        covariance = linear_prior(self.rows, self.noise.lengths).covariances[0]
        of_mixture = float(self._by_column(_covariance(self.prior)).sum())
        mixture = _equally_wide(float(spread.sum()), of_mixture, linear)
        return {
            AS_RELEASED: _Error(np.diag(self.noise.covariance), before, released),
            LINEAR: _Error(self._by_column(_posterior_covariance(covariance)), before, linear),
            MIXTURE: _Error(spread, of_mixture, mixture),
        }

    def _linear_variances(self, chosen: Mask) -> tuple[float, float]:
        """People's variance before their row is seen and after, by the linear prior of some."""
        covariance = linear_prior(self.rows[chosen], self.noise.lengths).covariances[0]
        before, after = self._by_column(covariance), self._by_column(_posterior_covariance(covariance))
        return float(before.sum()), float(after.sum())

    def _by_column(self, covariance: Floats) -> Floats:
        """Variances in units of the rows, of a covariance in units of the noise; none is below 0."""
        return np.asarray(np.maximum(0.0, np.einsum("ij,ij->j", self.back, covariance @ self.back)))


def _posterior_covariance(covariance: Floats) -> Floats:
    """What is left of a prior's covariance once a row with noise of variance 1 is seen: Σ − Σ(Σ + 1)⁻¹Σ."""
    return np.asarray(np.linalg.solve(covariance + np.eye(len(covariance)), covariance), dtype=np.float64)


def _covariance(prior: Mixture) -> Floats:
    """The covariance of the whole mixture."""
    apart = prior.means - prior.weights @ prior.means
    between = (apart * prior.weights[:, None]).T @ apart
    return np.asarray(np.einsum("k,kij->ij", prior.weights, prior.covariances) + between)


def _measured(fit: _Fit, truth: Floats, error_rate: float) -> dict[str, _Error]:
    """Errors against the true rows."""
    variances = np.square(truth - truth.mean(axis=0)).sum(axis=1)
    errors = {}
    for name, guess in ((AS_RELEASED, fit.released), (LINEAR, fit.linear()), (MIXTURE, fit.mixture())):
        squares = np.square(guess - truth)
        setting = _ratio(squares.sum(axis=1), variances, error_rate)
        errors[name] = _Error(squares.mean(axis=0), float(variances.mean()), setting)
    return errors


_UNKNOWN = Setting(1.0, (0.0, 1.0))
"""Where nobody differs, or nothing shows that anybody does."""


def _ratio(errors: Floats, variances: Floats, error_rate: float) -> Setting:
    """The ratio of two means over people; they vary as its linear form does (Student's interval)."""
    n, variance = len(errors), float(variances.mean())
    if variance < _NOTHING:
        return _UNKNOWN
    ratio = float(errors.mean()) / variance
    reach = (
        float(stdtrit(n - 1, 1 - error_rate / 2)) * float((errors - ratio * variances).std(ddof=1)) / variance
    )
    return Setting(ratio, (ratio - reach / math.sqrt(n), ratio + reach / math.sqrt(n)))


def _jackknife(
    after: float, before: float, afters: Floats | float, befores: Floats, error_rate: float
) -> Setting:
    """The ratio of what is left to what there was; its logarithm varies as it does without each group."""
    if before < _NOTHING or len(befores) < 2 or befores.min() < _NOTHING:
        return _UNKNOWN
    ratio = after / before
    logs = np.log(afters / befores)
    deviation = math.sqrt((len(logs) - 1) * float(logs.var()))
    reach = float(stdtrit(len(logs) - 1, 1 - error_rate / 2)) * deviation
    return Setting(ratio, (ratio * math.exp(-reach), ratio * math.exp(reach)))


def _equally_wide(after: float, before: float, linear: Setting) -> Setting:
    """A ratio whose interval is as wide, in proportion, as another's."""
    if before < _NOTHING or linear == _UNKNOWN or linear.score == 0:
        return _UNKNOWN
    ratio = after / before
    low, high = linear.interval
    return Setting(ratio, (ratio * low / linear.score, ratio * high / linear.score))
