"""Guesses by an adversary who lacks nothing but the secret: how often they fail, in and outside a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats, Progress, check
from targetdp.attacks._attribute_inference import Window
from targetdp.attacks._guess._failed_guesses import Rule, notes_on, relative, rule_of, sampled_note
from targetdp.attacks._guess._linear_guess import Belief, KnownColumns, Moments, Observation
from targetdp.attacks._match._known_noise import check_in_unit_ball
from targetdp.attacks._match._pairs import same_people, shared_note
from targetdp.attacks._protection import Protection, Setting, worst

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
_ON_SPHERE = 1 - 1e-6

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
    ) -> "InformedAttack":
        """Everybody, checked; ``name`` is what the released table is called."""
        d = X.shape[1]
        private = check.table(released, name, columns=len(observation.map))
        same_people(X, "X", private, name)
        outside = np.empty((0, d)) if holdout is None else check.table(holdout, "holdout", columns=d)
        general = X if population is None else check.table(population, "population", columns=d)
        for table, called in ((X, "X"), (outside, "holdout"), (general, "population")):
            if len(table):
                check_in_unit_ball(table, called)
        rule = rule_of(X, tolerance)
        common, long = tuple(map(CommonValues.of, general.T)), np.linalg.norm(general, axis=1) > _ON_SPHERE
        return cls(
            X, private, outside, observation, Moments.of(general), rule.commonest(general), common,
            float(long.mean()) >= COMMON_SHARE, rule, len(X), population is None,
        )  # fmt: skip

    def failures(self, windows: Sequence[Window], progress: Progress) -> tuple[Floats, Floats]:
        """By column: failures of each of `GUESSES` in the release, and of those without it outside."""
        d = self.rows.shape[1]
        inside, of_holdout = np.zeros((d, len(GUESSES))), np.zeros((d, len(WITHOUT_RELEASE)))
        for window in windows:
            known = KnownColumns.of(self.moments, window.known)
            informed = known.with_release(self.rows, self.released, self.observation)
            general, of_others = known.alone(self.rows), known.alone(self.outside)
            for secret in window.secrets:
                place = known.rest.index(secret)
                alone = self._guesses(general, self.rows, secret, place)
                guesses = (*self._informed_guesses(informed, general, secret, place), *alone)
                inside[secret] += self._failed(guesses, self.rows, secret)
                controls = self._guesses(of_others, self.outside, secret, place)
                of_holdout[secret] += self._failed(controls, self.outside, secret)
            progress.advance(1)
        return inside, of_holdout

    def _guesses(self, belief: Belief, rows: Floats, secret: int, place: int) -> tuple[Floats, ...]:
        """The guesses at a column that follow from known columns alone, as `WITH_RELEASE` has them."""
        linear, drawn = belief.guesses(place)
        common, signs = self.common[secret], self._signs(belief, rows)
        value = linear if common is None else belief.likeliest(place, common.values, common.log_odds)
        return linear, drawn, value, linear if signs is None else belief.likeliest(place, signs)

    def _informed_guesses(
        self, informed: Belief, general: Belief, secret: int, place: int
    ) -> tuple[Floats, ...]:
        """The same with what the release shows of the people in it.

        Where nothing is unknown but the secret, few values are weighed by the noise's own density: it is not
        normal, and for some laws far from it.
        """
        linear, drawn = informed.guesses(place)
        common, signs = self.common[secret], self._signs(general, self.rows)
        value = sign = linear
        if common is not None and len(informed.columns) > 1:
            value = informed.likeliest(place, common.values, common.log_odds)
        elif common is not None:
            value = general.likeliest(
                place, common.values, common.log_odds + self._density(secret, common.values)
            )
        if signs is not None:
            sign = general.likeliest(place, signs, self._density(secret, signs))
        return linear, drawn, value, sign

    def _signs(self, belief: Belief, rows: Floats) -> Floats | None:
        """The two values of the one column that is not known with which a row has length 1."""
        if len(belief.columns) > 1 or not self.on_sphere:
            return None
        known = np.delete(rows, belief.columns[0], axis=1)
        size = np.sqrt(np.maximum(0.0, 1 - np.einsum("ij,ij->i", known, known)))
        return np.stack([size, -size], axis=1)

    def _density(self, secret: int, values: Floats) -> Floats:
        return self.observation.log_density(self.rows, self.released, secret, values)

    def _failed(self, guesses: Sequence[Floats], actual: Floats, secret: int) -> list[int]:
        """How many fail, of each of these guesses and of the commonest value."""
        tried = (*guesses, np.full(len(actual), self.commonest[secret]))
        return [len(actual) - int(self.rule.right(g, actual[:, secret], secret).sum()) for g in tried]

    def protection(
        self, plan: Mapping[int, Sequence[Window]], names: Sequence[str], draws: int, confidence: float,
        progress: Progress,
    ) -> Protection:  # fmt: skip
        """The strongest guess at each column, for each number of known columns and its windows."""
        progress.phase("attribute inference", sum(len(windows) for windows in plan.values()))
        n, m, d = len(self.rows), len(self.outside), len(names)
        settings: dict[str, Setting] = {}
        shares: dict[str, tuple[float, float]] = {}
        without: dict[str, float] = {}
        outside: dict[str, float] = {}
        strongest: dict[str, str] = {}
        error_rate = (1 - confidence) / (d * len(plan) * len(GUESSES))
        for h, windows in plan.items():
            inside, of_holdout = (
                failed / (1 if h == d - 1 else draws) for failed in self.failures(windows, progress)
            )
            for name, tried, others in zip(names, inside, of_holdout, strict=True):
                # The control is the guess that is best without the release. It is tried on everybody, in the
                # release and outside: a few hundred people outside alone leave rare failures to luck, and the
                # worst of many ratios would then look like a leak where there is none.
                best = int(tried[-len(WITHOUT_RELEASE) :].argmin())
                setting, same = f"h={h}, {name}", float(tried[len(WITH_RELEASE) + best])
                control, total = (same + float(others[best]), n + m) if m else (0.0, 0)
                settings[setting] = _lowest(
                    [relative(float(p), n, control, total, error_rate) for p in tried]
                )
                shares[setting] = (float(tried.min()) / n, control / max(1, total))
                without[setting], outside[setting] = same / n, float(others[best]) / max(1, m)
                strongest[setting] = GUESSES[int(tried.argmin())]
        zeros = self.rule.zeros(np.concatenate([self.rows, self.outside]), names)
        return worst(
            settings,
            "upper",
            confidence=confidence,
            p_release={setting: p for setting, (p, _) in shares.items()},
            p_without=without,
            p_holdout=outside if m else None,
            p_control={setting: p for setting, (_, p) in shares.items()} if m else None,
            guess=strongest,
            people=n,
            holdout=m,
            draws=draws,
            tolerance=self.rule.tolerance,
            zeros=zeros,
            notes=(BY_HINDSIGHT, *self._notes(), *notes_on(shares, m, zeros)),
        )

    def _notes(self) -> list[str]:
        return [
            *([WELL_INFORMED] if self.well_informed else []),
            *(shared_note(self.rows, self.outside) if len(self.outside) else []),
            *([self.observation.note] if self.observation.note else []),
            *sampled_note(len(self.rows), self.total),
        ]


def _lowest(tried: list[Setting]) -> Setting:
    """The lowest of several scores; if all their intervals hold, so does the one of their lowest ends."""
    return Setting(
        min(one.score for one in tried),
        (min(one.interval[0] for one in tried), min(one.interval[1] for one in tried)),
    )
