"""Answers that are drawn from scores, as a way to release them: what a program makes of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from targetdp._core import Floats
from targetdp.mechanisms import DecisionLaw
from targetdp.programs import ScoredProgram
from targetdp.targeting._denoise import ScoreNoise


@dataclass(frozen=True, eq=False)
class DrawnAnswers:
    """One bit of everybody, drawn from a score in [−1, 1] and a cut.

    Args:
        law: The chances of answers.
        grid: Possible scores.
        yes: Whether scores below the cut are a yes, or those above.
        share: Of people who are to get a yes, where the cut is found on the way.
        cut: The cut, where it is known.
    """

    law: DecisionLaw
    grid: ScoreNoise = field(repr=False)
    yes: str
    share: float | None = None
    cut: float | None = None

    @property
    def step(self) -> float:
        """See `targetdp.targeting._denoise.Channel.step`."""
        return self.grid.step

    @property
    def values(self) -> Floats:
        """See `targetdp.targeting._denoise.Channel.values`."""
        return self.grid.values

    def bell(self, mean: float, variance: float) -> Floats:
        """See `targetdp.targeting._denoise.Channel.bell`."""
        return self.grid.bell(mean, variance)

    def chances_of_yes(self, everybody: Floats) -> Floats:
        """The chance of a yes at each possible score, where so many people have each."""
        if self.cut is not None:
            truly = np.clip(0.5 + (self.cut - self.values) / self.step, 0, 1)
            cut = self.cut
        else:
            share = self.share or 0.0
            wanted = share if self.yes == "below" else 1 - share
            before = np.concatenate([[0.0], np.cumsum(everybody)]) / everybody.sum()
            # Of those at the step of the cut a part is below it, as ids move equal scores apart.
            truly = np.clip((wanted - before[:-1]) / np.maximum(np.diff(before), 1e-300), 0, 1)
            cut = float(np.interp(wanted, before, np.append(self.values, self.values[-1] + self.step)))
            cut -= self.step / 2
        far = self.law.agreement(np.minimum(np.abs(self.values - cut), 2.0))
        below = truly * far + (1 - truly) * (1 - far)
        return below if self.yes == "below" else 1 - below

    def errors(
        self,
        program: ScoredProgram,
        low: Floats,
        high: Floats,
        believed: Callable[[], tuple[Floats, Floats]],  # noqa: ARG002 (an answer leaves nothing to believe)
    ) -> tuple[float, float]:
        """See `targetdp.targeting._denoise.Channel.errors`: lots make the list of the program."""
        yes = self.chances_of_yes(low + high)
        shares = [(float(kind @ yes), float(kind @ (1 - yes))) for kind in (low, high)]
        # In the order of scores, as a program takes them: those with a yes are at its own end.
        both = [np.array(one if self.yes == "below" else one[::-1]) for one in shares]
        everything = np.array([1.0, 0.0])
        sure = (everything, everything[::-1])
        return program.errors(both[0], both[1], lambda: sure)
