"""Guesses by an adversary who lacks nothing but the secret: how often they fail, in and outside a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp import check
from targetdp.attacks.comparable import shared_note
from targetdp.attacks.failed_guesses import Rule, notes_on, relative, rule_of, sampled_note
from targetdp.attacks.known_columns import Window
from targetdp.attacks.linear_guess import Knowing, Moments, Shown
from targetdp.attacks.linkage import same_people
from targetdp.attacks.noise_shape import in_unit_ball
from targetdp.attacks.protection import Protection, Setting, worst
from targetdp.progress import Progress
from targetdp.typing import Floats

WITHOUT = ("linear guess without the release", "outward guess without the release", "commonest value")
GUESSES = ("linear guess", "outward guess", *WITHOUT)
"""All that are tried on people in the release; outside it, only what needs no release."""

WELL_INFORMED = (
    "The adversary is taken to know what the very people who are attacked are like in general: a real one "
    "knows less."
)
BY_HINDSIGHT = (
    "In each setting the strongest guess counts, chosen by hindsight: the score errs to the side of less "
    "protection."
)


@dataclass(frozen=True)
class Attacked:
    """People in a release and what it shows of them, people outside it, and what is known of people at large.

    ``usual`` has the commonest value of each column; ``everyone`` counts the people of whom those attacked
    are a sample.
    """

    rows: Floats = field(repr=False)
    released: Floats = field(repr=False)
    outside: Floats = field(repr=False)
    shown: Shown
    moments: Moments
    usual: Floats
    rule: Rule
    everyone: int
    well_informed: bool

    @classmethod
    def of(
        cls, X: Floats, released: Any, name: str, shown: Shown, holdout: Any, population: Any, tolerance: Any
    ) -> "Attacked":
        """Everybody, checked; ``name`` is what the released table is called."""
        d = X.shape[1]
        private = check.table(released, name, columns=len(shown.map))
        same_people(X, "X", private, name)
        outside = np.empty((0, d)) if holdout is None else check.table(holdout, "holdout", columns=d)
        general = X if population is None else check.table(population, "population", columns=d)
        for table, called in ((X, "X"), (outside, "holdout"), (general, "population")):
            if len(table):
                in_unit_ball(table, called)
        rule = rule_of(X, tolerance)
        usual, moments = rule.commonest(general), Moments.of(general)
        return cls(X, private, outside, shown, moments, usual, rule, len(X), population is None)

    def failures(self, windows: Sequence[Window], progress: Progress) -> tuple[Floats, Floats]:
        """By column: failures of each of `GUESSES` in the release, and of each of `WITHOUT` outside it."""
        d = self.rows.shape[1]
        inside, beyond = np.zeros((d, len(GUESSES))), np.zeros((d, len(WITHOUT)))
        for window in windows:
            knowing = Knowing.of(self.moments, window.known)
            told = knowing.with_release(self.rows, self.released, self.shown)
            general, of_others = knowing.alone(self.rows), knowing.alone(self.outside)
            for secret in window.secrets:
                place = knowing.rest.index(secret)
                guesses = (*told.guesses(place), *general.guesses(place))
                inside[secret] += self._failed(guesses, self.rows, secret)
                beyond[secret] += self._failed(of_others.guesses(place), self.outside, secret)
            progress.advance(1)
        return inside, beyond

    def _failed(self, guesses: Sequence[Floats], actual: Floats, secret: int) -> list[int]:
        """How many fail, of each of these guesses and of the commonest value."""
        tried = (*guesses, np.full(len(actual), self.usual[secret]))
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
        strongest: dict[str, str] = {}
        doubt = (1 - confidence) / (d * len(plan) * len(GUESSES))
        for h, windows in plan.items():
            inside, beyond = (
                failed / (1 if h == d - 1 else draws) for failed in self.failures(windows, progress)
            )
            for name, tried, controls in zip(names, inside, beyond, strict=True):
                # Which guess is best without the release is decided on other people than those whom it is
                # then tried on: so it does not look better there, nor the release safer, than it is.
                control = int(tried[-len(WITHOUT) :].argmin())
                setting, failed_outside = f"h={h}, {name}", float(controls[control])
                settings[setting] = _lowest([relative(float(p), n, failed_outside, m, doubt) for p in tried])
                shares[setting] = (float(tried.min()) / n, failed_outside / max(1, m))
                without[setting] = float(tried[-len(WITHOUT) :].min()) / n
                strongest[setting] = GUESSES[int(tried.argmin())]
        zeros = self.rule.zeros(np.concatenate([self.rows, self.outside]), names)
        return worst(
            settings,
            "upper",
            confidence=confidence,
            p_release={setting: p for setting, (p, _) in shares.items()},
            p_without=without,
            p_holdout={setting: p for setting, (_, p) in shares.items()} if m else None,
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
            *([self.shown.note] if self.shown.note else []),
            *sampled_note(len(self.rows), self.everyone),
        ]


def _lowest(tried: list[Setting]) -> Setting:
    """The lowest of several scores; if all their intervals hold, so does the one of their lowest ends."""
    return Setting(
        min(one.score for one in tried),
        (min(one.interval[0] for one in tried), min(one.interval[1] for one in tried)),
    )
