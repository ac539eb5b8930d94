"""Guesses by an adversary who lacks nothing but the secret: how often they fail, in and outside a release.

A release shows z = A·x + noise: A is the identity where the whole row is released, and the weights where it
is scores. With the mean and covariance of people in general, Gaussian algebra gives the mean and variance of
what is not known. It first takes the known columns into account, then z. Where only a few values are
possible, the same belief says which of them is the likeliest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from targetdp._core import Floats, Progress, Silent, check
from targetdp.attacks._guess._failed_guesses import (
    GuessingPlan,
    Rule,
    Window,
    notes_on,
    relative,
    rule_of,
    sampled_note,
)
from targetdp.attacks._guess._observation import EXACT, Observation
from targetdp.attacks._match._known_noise import check_in_unit_ball
from targetdp.attacks._match._pairs import same_people, shared_note
from targetdp.attacks._protection import Protection, Setting, worst

_NOTHING = 1e-12
"""Share of the largest variance (columns in units of their own) below which a direction holds nothing."""


@dataclass(frozen=True)
class Moments:
    """What somebody knows of people in general: their ``mean`` and their ``covariance``."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, rows: Floats) -> "Moments":
        """The mean and covariance of a table's rows."""
        mean = rows.mean(axis=0)
        apart = rows - mean
        return cls(mean, apart.T @ apart / len(rows))


@dataclass(frozen=True)
class Belief:
    """What is believed of the ``columns`` that are not known: ``means`` by person, ``variances`` for all."""

    columns: tuple[int, ...]
    means: Floats
    variances: Floats

    def _of(self, column: int) -> tuple[Floats, float]:
        place = self.columns.index(column)
        return self.means[:, place], float(self.variances[place])

    def guesses(self, column: int) -> tuple[Floats, Floats]:
        """Two guesses at one of the columns: its mean, and the mean drawn outward.

        A value a allows for an error in proportion to |a|. So the guess g that is likeliest to be right has
        the largest |g|·φ(g), φ being the normal density of mean m and variance v: g = (m ± √(m² + 4v))/2,
        with the sign of m.
        """
        m, v = self._of(column)
        reach = np.sqrt(np.square(m) + 4 * v)
        return m, np.asarray((m + np.where(m < 0, -reach, reach)) / 2)

    def likeliest(self, column: int, values: Floats, log_odds: Floats | float = 0.0) -> Floats:
        """For each person the likeliest of a few ``values`` (K, or n×K) of one of the columns.

        ``log_odds`` (the same shape) is what else speaks for each of them. Of several that are equally likely
        the first is taken.
        """
        m, v = self._of(column)
        likely = log_odds - np.square(values - m[:, None]) / (2 * max(v, EXACT**2))
        each = np.broadcast_to(values, likely.shape)
        return np.asarray(np.take_along_axis(each, likely.argmax(axis=1)[:, None], axis=1)[:, 0])


@dataclass(frozen=True)
class InformedBelief(Belief):
    """A belief of somebody who has seen a release, and how likely it is for each value of a secret."""

    general: Belief
    """What was believed before the release."""
    log_density: Callable[[int, Floats], Floats]

    def likeliest(self, column: int, values: Floats, log_odds: Floats | float = 0.0) -> Floats:
        """The same; by the noise's own density where nothing is unknown but the secret.

        That density is not normal, and for some laws far from it.
        """
        if len(self.columns) > 1:
            return super().likeliest(column, values, log_odds)
        return self.general.likeliest(column, values, log_odds + self.log_density(column, values))


@dataclass(frozen=True)
class KnownColumns:
    """Somebody who knows the ``known`` columns of a person, and what people are like in general."""

    known: tuple[int, ...]
    rest: tuple[int, ...]
    center: Floats
    slopes: Floats
    """By which the others follow from the known columns; ``left`` is the covariance that this leaves."""
    left: Floats

    @classmethod
    def of(cls, moments: Moments, known: Sequence[int]) -> "KnownColumns":
        """What follows from knowing these columns, by the moments of people in general."""
        given, C = list(known), moments.covariance
        rest = [j for j in range(len(C)) if j not in set(given)]
        slopes = _inverse(C[np.ix_(given, given)]) @ C[np.ix_(given, rest)]
        left = C[np.ix_(rest, rest)] - C[np.ix_(rest, given)] @ slopes
        # A column that follows from the known ones leaves a rounding error, which must not be believed in.
        follows = np.diag(left) <= _NOTHING * np.diag(C)[rest]
        left[follows, :] = left[:, follows] = 0.0
        return cls(tuple(given), tuple(rest), moments.mean, slopes, left)

    def alone(self, rows: Floats) -> Belief:
        """What the known columns of ``rows`` tell of the others."""
        given = list(self.known)
        means = self.center[list(self.rest)] + (rows[:, given] - self.center[given]) @ self.slopes
        return Belief(self.rest, means, np.diag(self.left))

    def with_release(self, rows: Floats, released: Floats, observation: Observation) -> Belief:
        """What they tell together with the released values."""
        before, given = self.alone(rows), list(self.known)
        A = observation.map[:, list(self.rest)]
        about = A @ self.left
        gains = _inverse(about @ A.T + observation.covariance) @ about
        news = released - rows[:, given] @ observation.map[:, given].T - before.means @ A.T
        variances = np.maximum(0.0, before.variances - np.einsum("ij,ij->j", about, gains))
        density = partial(observation.log_density, rows, released)
        return InformedBelief(self.rest, before.means + news @ gains, variances, before, density)


def _inverse(covariance: Floats) -> Floats:
    """The (pseudo-)inverse of a covariance, taken with each column in units of its own."""
    units = np.sqrt(np.diag(covariance))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    kept = values > _NOTHING * max(float(values[-1]), 0.0)
    own = vectors[:, kept] / units[:, None]
    return np.asarray((own / values[kept]) @ own.T)


# The attack: several guesses at each secret, with what was released and without it.

WITH_RELEASE = ("linear guess", "outward guess", "likeliest of few values", "likelier sign")
WITHOUT_RELEASE = (*(f"{name} without the release" for name in WITH_RELEASE), "commonest value")
GUESSES = (*WITH_RELEASE, *WITHOUT_RELEASE)
"""All that are tried on people in the release; outside it, only what needs no release.

A column with no few values, and a sign where the size of a value does not follow, are guessed by the linear
guess, which comes first and so is never named by another's name.
"""

COMMON_SHARE = 0.01
"""Share of people who have a value, or lie on the sphere, from which on an adversary expects it."""
FEWEST_PEOPLE = 5
MOST_VALUES = 16
"""A common value is shared by so many people at least; a column has so many common values at most."""
_ON_SPHERE, _ROUNDED = 1 - 1e-6, 1e-6

WELL_INFORMED = (
    "The adversary is taken to know what the very people who are attacked are like in general: a real one "
    "knows less."
)
BY_HINDSIGHT = (
    "In each setting the strongest guess counts, chosen by hindsight: the score errs to the side of less "
    "protection."
)


@dataclass(frozen=True)
class CommonValues:
    """The common ``values`` of a column, and how much more often they occur than a normal one would.

    So the posterior of the normal belief, times these ``log_odds``, is that of the values' own frequencies.
    """

    values: Floats
    log_odds: Floats

    @classmethod
    def of(cls, column: Floats) -> "CommonValues | None":
        """The common values of a column of people at large; None where there are not two of them."""
        values, counts = np.unique(np.round(column, 10), return_counts=True)
        common = np.flatnonzero(counts >= max(FEWEST_PEOPLE, COMMON_SHARE * len(column)))
        common = np.sort(common[np.argsort(-counts[common], kind="stable")[:MOST_VALUES]])
        if len(common) < 2:
            return None
        values, counts = values[common], counts[common]
        return cls(values, np.log(counts) + np.square(values - column.mean()) / (2 * column.var()))


@dataclass(frozen=True)
class InformedAttack:
    """People in a release and what it shows of them, people outside it, and what is known of people at large.

    ``commonest`` has the commonest value of each column, ``common`` its common values, if it has several;
    ``on_sphere`` says that rows of length 1 are common, as after clipping: there the size of the last value
    follows from all others. ``total`` counts the people of whom those attacked are a sample.
    """

    rows: Floats = field(repr=False)
    released: Floats = field(repr=False)
    outside: Floats = field(repr=False)
    observation: Observation
    moments: Moments
    commonest: Floats
    common: tuple[CommonValues | None, ...]
    on_sphere: bool
    rule: Rule
    total: int
    well_informed: bool

    with_release: ClassVar[tuple[str, ...]] = WITH_RELEASE
    """The guesses that follow from a belief."""

    @property
    def without_release(self) -> tuple[str, ...]:
        """The same guesses by somebody who has no release, and one more."""
        return (*(f"{name} without the release" for name in self.with_release), "commonest value")

    @property
    def guesses(self) -> tuple[str, ...]:
        """All that are tried on people in the release."""
        return (*self.with_release, *self.without_release)

    @classmethod
    def of(
        cls,
        X: Floats,
        released: Any,
        name: str,
        observation: Observation,
        holdout: Any,
        population: Any,
        tolerance: Any,
    ) -> Self:
        """Everybody, checked; ``name`` is what the released table is called."""
        d = X.shape[1]
        private = check.table(released, name, columns=len(observation.map))
        same_people(X, "X", private, name)
        outside = np.empty((0, d)) if holdout is None else check.table(holdout, "holdout", columns=d)
        general = X if population is None else check.table(population, "population", columns=d)
        for table, called in ((X, "X"), (outside, "holdout"), (general, "population")):
            if len(table):
                check_in_unit_ball(table, called)
        return cls._of_checked(X, private, observation, outside, general, tolerance, population is None)

    @classmethod
    def _of_checked(
        cls, X: Floats, released: Floats, observation: Observation, outside: Floats, general: Floats,
        tolerance: Any, well_informed: bool, **own: Any,
    ) -> Self:  # fmt: skip
        """What is known of people at large, ``general``; ``own`` are fields of a subclass."""
        rule, lengths = rule_of(X, tolerance), np.linalg.norm(general, axis=1)
        # Where rows lie outside the ball, as they may in releases that clip none, length tells nothing.
        on_sphere = lengths.max() <= 1 + _ROUNDED and (lengths > _ON_SPHERE).mean() >= COMMON_SHARE
        return cls(
            X, released, outside, observation, Moments.of(general), rule.commonest(general),
            tuple(map(CommonValues.of, general.T)), bool(on_sphere), rule, len(X), well_informed, **own,
        )  # fmt: skip

    def run(
        self, known: Any, draws: Any, people: Any, columns: Any, confidence: Any,
        rng: np.random.Generator | None, progress: Progress | None,
    ) -> Protection:  # fmt: skip
        """Check what the attacks share, and run them."""
        confidence = check.number("confidence", confidence, above=0, below=1)
        rng = check.generator(rng) or np.random.default_rng()
        plan = GuessingPlan.of(self.rows.shape, known, draws, people, columns, rng)
        chosen = replace(self, rows=self.rows[plan.sample], released=self.released[plan.sample])
        return chosen.protection(plan, confidence, progress or Silent())

    def failures(self, windows: Sequence[Window], progress: Progress) -> tuple[Floats, Floats]:
        """By column: failures of each of the `guesses` in the release, and of those without it outside."""
        d = self.rows.shape[1]
        inside = np.zeros((d, len(self.guesses)))
        of_holdout = np.zeros((d, len(self.without_release)))
        for window in windows:
            known = KnownColumns.of(self.moments, window.known)
            informed, general, of_outsiders = self._beliefs(known)
            for secret in window.secrets:
                guesses = [
                    *self._guesses(informed, self.rows, secret), *self._guesses(general, self.rows, secret)
                ]  # fmt: skip
                inside[secret] += self._failed(guesses, self.rows, secret)
                controls = self._guesses(of_outsiders, self.outside, secret)
                of_holdout[secret] += self._failed(controls, self.outside, secret)
            progress.advance(1)
        return inside, of_holdout

    def _beliefs(self, known: KnownColumns) -> tuple[Belief, Belief, Belief]:
        """What is believed of people in the release with it, and without it, and of people outside it."""
        informed = known.with_release(self.rows, self.released, self.observation)
        return informed, known.alone(self.rows), known.alone(self.outside)

    def _guesses(self, belief: Belief, rows: Floats, secret: int) -> list[Floats]:
        """The guesses at a column that follow from a belief, as `WITH_RELEASE` has them."""
        linear, outward = belief.guesses(secret)
        value = sign = linear
        common = self.common[secret]
        if common is not None:
            value = belief.likeliest(secret, common.values, common.log_odds)
        if self.on_sphere and len(belief.columns) == 1:  # one of two values gives the row length 1
            known = np.delete(rows, secret, axis=1)
            size = np.sqrt(np.maximum(0.0, 1 - np.einsum("ij,ij->i", known, known)))
            sign = belief.likeliest(secret, np.stack([size, -size], axis=1))
        return [linear, outward, value, sign]

    def _failed(self, guesses: Sequence[Floats], actual: Floats, secret: int) -> list[int]:
        """How many fail, of each of these guesses and of the commonest value."""
        tried = (*guesses, np.full(len(actual), self.commonest[secret]))
        return [len(actual) - int(self.rule.right(g, actual[:, secret], secret).sum()) for g in tried]

    def protection(self, plan: GuessingPlan, confidence: float, progress: Progress) -> Protection:
        """The strongest guess at each column, for each number of known columns and its windows."""
        progress.phase("attribute inference", sum(map(len, plan.windows.values())))
        n, m = len(self.rows), len(self.outside)
        settings: dict[str, Setting] = {}
        figures: dict[str, dict[str, Any]] = {}
        error_rate = (1 - confidence) / (len(plan.names) * len(plan.windows) * len(self.guesses))
        for h, windows in plan.windows.items():
            failed = (part / plan.draws_of(h) for part in self.failures(windows, progress))
            for name, inside, outside in zip(plan.names, *failed, strict=True):
                # The control is the guess that is best without the release. It is tried on everybody, in the
                # release and outside: a few hundred people outside alone leave rare failures to luck, and the
                # worst of many ratios would then look like a leak where there is none.
                best = int(inside[len(self.with_release) :].argmin())
                setting, same = f"h={h}, {name}", float(inside[len(self.with_release) + best])
                control, total = (same + float(outside[best]), n + m) if m else (0.0, 0)
                fewest = float(inside.min())  # the strongest guess has the lowest score and interval
                settings[setting] = relative(fewest, n, control, total, error_rate)
                figures[setting] = {
                    "p_release": fewest / n,
                    "p_without": same / n,
                    "p_holdout": float(outside[best]) / max(1, m),
                    "p_control": control / max(1, total),
                    "guess": self.guesses[int(inside.argmin())],
                }
        detail: dict[str, Any] = {
            figure: {setting: of_setting[figure] for setting, of_setting in figures.items()}
            for figure in ("p_release", "p_without", "p_holdout", "p_control", "guess")
        }
        if not m:
            detail |= {"p_holdout": None, "p_control": None}
        zeros = self.rule.zeros(np.concatenate([self.rows, self.outside]), plan.names)
        return worst(
            settings,
            "upper",
            confidence=confidence,
            **detail,
            people=n,
            holdout=m,
            draws=plan.draws,
            tolerance=self.rule.tolerance,
            zeros=zeros,
            notes=(
                BY_HINDSIGHT,
                *([WELL_INFORMED] if self.well_informed else []),
                *shared_note(self.rows, self.outside),
                *([self.observation.note] if self.observation.note else []),
                *sampled_note(n, self.total),
                *notes_on(detail["p_release"], detail["p_control"], zeros),
            ),
        )
