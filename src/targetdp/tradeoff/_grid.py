"""The parameter grid: every release that is compared, each with a name and a key that never change.

Two releases are *equal in distribution* if nobody could tell their tables apart, whatever they are called:
with all of V kept, Steps 4 and 5 of Algorithm 1 cancel, so cells that differ in ε₂ alone are one experiment.
It is computed once, and the others say whose figures they show (``same_as``).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from targetdp._core import check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import (
    LEAST_NOISE,
    Mechanism,
    Mondrian,
    NoiseMechanism,
    Partitioned,
    PrivateProjection,
    delta_per_part,
    least_noise,
    noise_mechanisms,
)
from targetdp.normalization import RowRule
from targetdp.programs import SWEPT, TWO_ROUNDS
from targetdp.targeting import FEWEST_TO_DECIDE, Rounds

STATUS_QUO, MONDRIAN, PROJECTION = "status quo", "mondrian", "projection"
CLASSIC = 2.0
"""B of classic differential privacy: no two people are farther apart."""


@dataclass(frozen=True)
class Cell:
    """One release of the grid; what does not apply to its mechanism is None.

    ``rows`` is how its rows came into the unit ball: a release clips them, and of no other can anything be
    promised. ``same_as`` names an earlier cell that is equal in distribution: its simulations are this
    one's too.
    """

    name: str
    mechanism: str
    B: float | None = None
    epsilon1: float | None = None
    epsilon2: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    k: int | None = None
    parts: int | None = None
    group_size: int | None = None
    rows: RowRule = "clip"
    same_as: str | None = None

    @property
    def is_random(self) -> bool:
        """Whether another simulation would give another table."""
        return self.mechanism not in {STATUS_QUO, MONDRIAN}

    @property
    def has_known_noise(self) -> bool:
        """Whether an attacker who reads the certificate knows the law of its noise in advance.

        A projection's depends on its R, which every simulation draws anew.
        """
        return self.epsilon is not None and self.mechanism not in {PROJECTION, "projection-exact"}

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release of this cell promises; None for the status quo, k-anonymity and unclipped rows."""
        if self.epsilon is None or self.rows != "clip":
            return None
        return self._calibrated_to()

    @property
    def experiment(self) -> str:
        """What decides the distribution of its tables: cells that share this are equal in distribution."""
        if self.mechanism == PROJECTION:  # ε₂ and δ₂ buy a covariance that cancels
            return f"projection B={self.B!r} epsilon1={self.epsilon1!r} delta={self.delta!r} k={self.k} " + (
                f"parts={self.parts}"
            )
        return f"{self.mechanism} B={self.B!r} epsilon={self.epsilon!r} delta={self.delta!r} " + (
            f"group_size={self.group_size}"
        )

    @property
    def key(self) -> int:
        """A number for its seeds: it depends on the experiment only, not on the rest of the grid."""
        return int.from_bytes(hashlib.sha256(self.experiment.encode()).digest()[:8], "big")

    def build(self, dimensions: int) -> Mechanism | None:
        """The mechanism for so many columns; None for the status quo, which releases rows as they are.

        For two rounds it is the first one's.
        """
        if self.mechanism == STATUS_QUO:
            return None
        if self.mechanism == MONDRIAN:
            return Mondrian(_given(self.group_size))
        if self.mechanism == PROJECTION:
            return self._projection()
        asked = self._calibrated_to()
        if self.mechanism in {LEAST_NOISE, TWO_ROUNDS}:
            return least_noise(asked, dimensions).mechanism
        return noise_mechanisms()[self.mechanism](asked)

    def rounds(self, dimensions: int) -> Rounds:
        """Both rounds, of a cell that has two. Nobody is in both, so that nobody spends more than one."""
        return Rounds.of(self._calibrated_to(), self._calibrated_to(), dimensions)

    def noises(self, dimensions: int) -> tuple[NoiseMechanism, ...]:
        """Every noise that somebody's row may get in a release of this cell; none without a guarantee."""
        if self.mechanism == TWO_ROUNDS:
            return self.rounds(dimensions).noises
        made = self.build(dimensions)
        return (made,) if isinstance(made, NoiseMechanism) else ()

    def _calibrated_to(self) -> Guarantee:
        """What its noise is for: a promise, if the rows are clipped."""
        return Guarantee(_given(self.B), _given(self.epsilon), _given(self.delta))

    def _projection(self) -> NoiseMechanism:
        delta = _given(self.delta)
        made = PrivateProjection(
            B=_given(self.B), epsilon1=_given(self.epsilon1), epsilon2=_given(self.epsilon2),
            delta1=delta * 2 / 3, delta2=delta / 3, k=_given(self.k),
        )  # fmt: skip
        return made if self.parts is None else Partitioned(made, parts=self.parts)


@dataclass(frozen=True)
class Grid:
    """What is compared: the paper's parameter grid unless told otherwise.

    ``delta`` is 1/(n + 1) unless given, n being the people of the table; with ``parts`` it is the paper's
    for each part, 1/(⌈n/parts⌉ + 1). It is split 2:1 between Steps 3 and 4. Other mechanisms are calibrated
    to the same total (B, ε₁ + ε₂, δ). Parts are the projection's: on other mechanisms they would change
    nothing but the δ, which all share anyway.

    Edges: the status quo and classic differential privacy (B = 2) are always among the cells. Repeated
    values count once. Two rounds are left out where there are too few people to learn from a part of them.
    """

    B: tuple[float, ...] = (0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, CLASSIC)
    epsilon1: tuple[float, ...] = (2.0, 3.0)
    epsilon2: tuple[float, ...] = (0.5, 0.9999)
    k: tuple[int, ...] = (10_000,)
    group_sizes: tuple[int, ...] = tuple(range(2, 11))
    mechanisms: tuple[str, ...] = (PROJECTION, LEAST_NOISE, TWO_ROUNDS)
    delta: float | None = None
    parts: int | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "B": _sorted("B", self.B, lambda name, x: check.distance(x, name)) or (CLASSIC,),
            "epsilon1": _sorted("epsilon1", self.epsilon1, lambda name, x: check.number(name, x, above=0)),
            "epsilon2": _sorted(
                "epsilon2", self.epsilon2, lambda name, x: check.number(name, x, above=0, below=1)
            ),
            "k": _sorted("k", self.k, lambda name, x: check.integer(name, x, at_least=1)),
            "group_sizes": _sorted(
                "group_sizes", self.group_sizes, lambda name, x: check.integer(name, x, at_least=2)
            ),
            "mechanisms": tuple(dict.fromkeys(self.mechanisms)),
        }
        for name in checked["mechanisms"]:
            check.choice("mechanisms", name, SWEPT)
        for name in ("epsilon1", "epsilon2", "k"):
            if not checked[name]:
                raise ValueError(f"{name} has 0 values: give at least one")
        if self.delta is not None and self.parts is not None:
            raise ValueError("parts sets δ from the number of people: leave out delta, or parts")
        if self.delta is not None:
            checked["delta"] = check.number("delta", self.delta, above=0, below=1)
        if self.parts is not None:
            checked["parts"] = check.integer("parts", self.parts, at_least=1)
        if CLASSIC not in checked["B"]:
            checked["B"] = (*checked["B"], CLASSIC)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def cells(self, people: int, rows: RowRule = "clip") -> tuple[Cell, ...]:
        """Every cell, in a fixed order; those equal in distribution to an earlier one say so."""
        delta = self.delta_for(people)
        cells = [Cell(STATUS_QUO, STATUS_QUO)]
        for mechanism in self.mechanisms:
            if mechanism == TWO_ROUNDS and people < FEWEST_TO_DECIDE:
                continue
            for B in self.B:
                cells += (
                    self._projections(B, delta) if mechanism == PROJECTION else self._at(mechanism, B, delta)
                )
        cells += [
            Cell(f"{MONDRIAN} group_size={size}", MONDRIAN, group_size=size)
            for size in self.group_sizes if size <= people
        ]  # fmt: skip
        first: dict[str, str] = {}
        return tuple(
            replace(cell, rows=rows) if first.setdefault(cell.experiment, cell.name) == cell.name
            else replace(cell, rows=rows, same_as=first[cell.experiment])
            for cell in cells
        )  # fmt: skip

    def delta_for(self, people: int) -> float:
        """The δ of every cell, for a table of so many people."""
        if self.delta is not None:
            return self.delta
        return delta_per_part(people, self.parts or 1)

    def quick(self) -> "Grid":
        """A few cells of the same kind, for a first look: the largest ε, and four B from end to end."""
        last = len(self.B) - 1
        return replace(
            self, B=tuple(self.B[-(-last * i // 3)] for i in range(4)), epsilon1=self.epsilon1[-1:],
            epsilon2=self.epsilon2[-1:], k=self.k[-1:],
            group_sizes=(*self.group_sizes[:1], *self.group_sizes[-1:]),
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    def _projections(self, B: float, delta: float) -> list[Cell]:
        several = len(self.k) > 1  # as a rule there is one, and names stay short
        return [
            Cell(
                f"{PROJECTION} B={B:.10g} epsilon1={e1:.10g} epsilon2={e2:.10g}" + f" k={k}" * several,
                PROJECTION, B, e1, e2, _total(e1, e2), delta, k, self.parts,
            )
            for k in self.k for e1 in self.epsilon1 for e2 in self.epsilon2
        ]  # fmt: skip

    def _at(self, mechanism: str, B: float, delta: float) -> list[Cell]:
        totals = sorted({_total(e1, e2) for e1 in self.epsilon1 for e2 in self.epsilon2})
        return [
            Cell(f"{mechanism} B={B:.10g} epsilon={total:.10g}", mechanism, B, epsilon=total, delta=delta)
            for total in totals
        ]


def _total(epsilon1: float, epsilon2: float) -> float:
    """ε₁ + ε₂ as people write it: 3.9999, not 3.9999000000000002."""
    return float(f"{epsilon1 + epsilon2:.12g}")


def _sorted(name: str, values: Sequence[Any], checked: Any) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name} = {values!r} is not a list: give values such as (0.25, 1)")
    return tuple(sorted({checked(f"{name}[{i}]", value) for i, value in enumerate(values)}))


def _given(value: Any) -> Any:
    if value is None:
        raise ValueError("this cell lacks a parameter of its mechanism: take cells from Grid.cells")
    return value
