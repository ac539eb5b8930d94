"""What attackers reach at a setting, as shares of people, from the worst that was measured or derived."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from targetdp.tradeoff._constraints import Estimate
from targetdp.tradeoff._metrics import INFERENCE, MOST_GUESSED

_COLUMN = re.compile(r"(?:(?:inside|outside) the sample: )?h=\d+, (.*)", re.DOTALL)
"""The column in the name of a setting of an attack; whatever a column is called, it comes last."""


@dataclass(frozen=True)
class Exposure:
    """What attackers reach at a setting; None where it was not measured, or is undefined.

    Args:
        singled_out: The share of people whom a stranger picks out of the released table.
        gained: By how much less often guesses at a hidden value fail: 0.3 if they fail 7 times where
            they fail 10 times without the release. Of all attacks and columns, where it is the most.
        learned: How often these guesses are right.
        anyway: How often they are right without the release (an insider's), or outside it (a stranger's).
        column: The column that they are about: the one that is given away most.
        learned_at_most: How often guesses are right in the column in which that is the most.
        by_stranger: Whether a stranger guesses; else an insider.
        best_guess: How often anybody's best guess is right, which of two rows B apart a person has.
        best_guess_at_2: The same of two rows that are as different as can be.

    Example:
        >>> exposure = Exposure.of({"singling_out": Estimate(0.9), "inference": Estimate(0.75)})
        >>> round(exposure.gained, 3), round(exposure.exposed, 3)
        (0.25, 0.25)
    """

    singled_out: float | None = None
    gained: float | None = None
    learned: float | None = None
    anyway: float | None = None
    column: str = ""
    learned_at_most: float | None = None
    by_stranger: bool = False
    best_guess: float | None = None
    best_guess_at_2: float | None = None

    @classmethod
    def of(cls, figures: Mapping[str, Estimate]) -> "Exposure":
        """Of a cell's figures, as `read_figures` has them."""

        def mean(metric: str) -> float | None:
            return figures[metric].mean if metric in figures else None

        nets, inference = mean("singling_out"), figures.get(INFERENCE, Estimate())
        attack, _, setting = (inference.strongest or "").partition(": ")
        column = _COLUMN.match(setting)
        return cls(
            singled_out=None if nets is None else 1 - nets,
            gained=None if inference.mean is None else 1 - inference.mean,
            learned=inference.right,
            anyway=inference.anyway,
            column="" if column is None else column[1],
            learned_at_most=mean(MOST_GUESSED),
            by_stranger=attack == "attribute_inference",
            best_guess=mean("best_guess"),
            best_guess_at_2=mean("best_guess_at_2"),
        )

    @property
    def exposed(self) -> float | None:
        """What the attacks reach that were run, the worse of both; attackers reach it at least."""
        known = [share for share in (self.singled_out, self.gained) if share is not None]
        return max(known, default=None)

    @property
    def order(self) -> tuple[float, float, float]:
        """By which settings are ordered: the less anybody can tell, the earlier.

        The best guess at distance 2 counts in thousandths, as it is told: what differs by less is not told
        apart by what can be derived, but by what an insider reaches.
        """
        far = 1.0 if self.best_guess_at_2 is None else self.best_guess_at_2
        return (
            -(-round(far * 1e6) // 1000) / 1000,
            1.0 if self.gained is None else self.gained,
            1.0 if self.singled_out is None else self.singled_out,
        )
