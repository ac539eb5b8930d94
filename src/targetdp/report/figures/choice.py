"""Which releases of a sweep are drawn: the paper's points, or the nearest there are, by fixed rules.

1. Mechanisms: the projection as printed, least noise and two rounds. Where a sweep lacks one, its others take
   the place, in the sweep's order; never more than three.
2. ε: the paper's total (3.9999 for aid, 2.9999 for lending), or the nearest by ratio; of two, the smaller.
   Where the projection reaches it in several ways: k nearest to 10,000, then the largest ε₂, as in the paper.
3. Targeted DP: the paper's B (0.25 for aid, 0.1 for lending), or the nearest by ratio below 2; of two, the
   larger. Classic DP is B = 2.
4. k-anonymity: the smallest group size, 2 in the paper.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from targetdp.programs.file import TWO_ROUNDS
from targetdp.report.figures.sweep import Release, SweptProgram
from targetdp.tradeoff.grid import CLASSIC, LEAST_NOISE, PROJECTION

PAPER = {"exclusion_errors": (0.25, 3.9999), "profit": (0.1, 2.9999)}
"""B and ε of the paper's green stars, by what the program is for (Figures 2 and 3)."""
_OTHER = PAPER["exclusion_errors"]
_K = 10_000
_FIRST, _MOST = (PROJECTION, LEAST_NOISE, TWO_ROUNDS), 3


@dataclass(frozen=True)
class Chosen:
    """What is drawn of a sweep. ``curves`` has for each mechanism its releases by B, all at one ε and δ."""

    program: SweptProgram
    curves: Mapping[str, tuple[Release, ...]]
    epsilon: float | None
    delta: float | None
    B: float | None
    alike: Release | None
    left_out: tuple[str, ...]

    @property
    def status_quo(self) -> Release:
        """The program as it is, without privacy."""
        return self.program.status_quo

    def classic(self, mechanism: str) -> Release | None:
        """Classic differential privacy."""
        return self._at(mechanism, CLASSIC)

    def targeted(self, mechanism: str) -> Release | None:
        """Targeted differential privacy at the B that stands for it."""
        return None if self.B is None else self._at(mechanism, self.B)

    def notes(self) -> tuple[str, ...]:
        """Where the sweep did not have the paper's own points, in words."""
        B, epsilon = PAPER.get(self.program.metric, _OTHER)
        found = []
        if self.B is not None and self.B != B:
            found.append(
                f"{self.program.name}: targeted DP is shown at B = {self.B:g}, nearest to the paper's {B:g}"
            )
        if self.epsilon is not None and self.epsilon != epsilon:
            found.append(
                f"{self.program.name}: ε = {self.epsilon:g} is shown, the nearest to the paper's {epsilon:g}"
            )
        if self.alike is not None and self.alike.group_size != 2:
            found.append(f"{self.program.name}: the smallest groups alike are of {self.alike.group_size}")
        if self.left_out:
            found.append(f"{self.program.name}: not drawn are {', '.join(self.left_out)}")
        return tuple(found)

    def _at(self, mechanism: str, B: float) -> Release | None:
        return next((one for one in self.curves.get(mechanism, ()) if one.B == B), None)


def choose(program: SweptProgram) -> Chosen:
    """Choose by the rules above."""
    B, epsilon = PAPER.get(program.metric, _OTHER)
    noisy = program.noisy
    there = list(dict.fromkeys(one.mechanism for one in noisy))
    drawn = sorted(there, key=lambda name: (*_FIRST, name).index(name))[:_MOST]
    shown = _nearest(epsilon, [one.epsilon for one in noisy if one.epsilon is not None], smaller=True)
    curves = {name: _curve(name, noisy, shown) for name in drawn}
    below = [one.B for curve in curves.values() for one in curve if one.B is not None and one.B < CLASSIC]
    return Chosen(
        program=program, curves=curves, epsilon=shown, B=_nearest(B, below, smaller=False),
        delta=max((one.delta for one in noisy if one.delta is not None), default=None),
        alike=min(program.alike, key=lambda one: one.group_size or 0, default=None),
        left_out=tuple(name for name in there if name not in drawn),
    )  # fmt: skip


def _curve(mechanism: str, noisy: tuple[Release, ...], epsilon: float | None) -> tuple[Release, ...]:
    best: dict[float, Release] = {}
    for one in noisy:
        if one.mechanism == mechanism and one.epsilon == epsilon and one.B is not None:
            best[one.B] = min(best.get(one.B, one), one, key=_from_the_papers)
    return tuple(best[B] for B in sorted(best))


def _from_the_papers(one: Release) -> tuple[float, float]:
    return abs(math.log((one.k or _K) / _K)), -(one.epsilon2 or 0.0)


def _nearest(wanted: float, values: list[float], *, smaller: bool) -> float | None:
    """The value with the smallest ratio to what is wanted, up to rounding."""
    return min(
        values,
        key=lambda x: (round(abs(math.log(x / wanted)), 9), x if smaller else -x),
        default=None,
    )
