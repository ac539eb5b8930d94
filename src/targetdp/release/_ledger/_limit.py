"""The limit of a desk: what all its releases together may cost one person."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from targetdp._core import Floats, up
from targetdp._files import canonical
from targetdp.accounting import PrivacyFilter, compose
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LEAST_NOISE, Decision, NoiseLaw, RowLaw, least_noise, noise_mechanisms
from targetdp.release._certificate._charge import Charge
from targetdp.release._policy import CLASSIC, LimitPolicy, PlannedRelease, Policy

_PLANNED = 0.5
"""Of the limit's δ, what is for the releases of a plan; the rest is for all others."""
NEAR, FAR = 0, 1
"""Places in a cost: the amounts at the limit's distance, and at distance 2."""


@dataclass(frozen=True)
class Limit:
    """What all releases of a desk together may cost one person, fixed before the first of them.

    Args:
        near: The filter at the limit's distance, for all releases that are not in the plan.
        far: The filter at distance 2.
        stated: What is promised at the limit's distance, the plan included.
        classic: What is promised at distance 2, the plan included.
        plan: The releases that were planned, all reserved at once.
    """

    near: PrivacyFilter
    far: PrivacyFilter
    stated: Guarantee
    classic: Guarantee
    plan: tuple[PlannedRelease, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, policy: Policy) -> "Limit":
        """The limit of a policy; a ValueError if its plan does not fit it."""
        return cls.within(policy.limit, policy.plan)

    @classmethod
    def within(cls, own: LimitPolicy, plan: tuple[PlannedRelease, ...]) -> "Limit":
        """The same of a limit and a plan."""
        share = _PLANNED if plan else 0.0
        rest = own.delta * (1 - share)
        taken, taken_far = (_together(plan, r, own.delta * share) for r in (own.B, CLASSIC))
        if taken > own.epsilon or (own.classic is not None and taken_far > own.classic):
            raise ValueError(
                f"the plan needs ε = {up(taken, 4)} at distance {own.B:g} and {up(taken_far, 4)} at "
                f"distance 2 (δ = {own.delta * share:.3g}), which is more than the limit"
            )
        near = PrivacyFilter(own.filter, own.epsilon - taken, rest, own.order)
        far = near.widened(math.ceil(CLASSIC / own.B))
        if own.classic is not None:
            far = PrivacyFilter(own.filter, own.classic - taken_far, rest)
        elif own.B == CLASSIC:
            far = near
        classic = Guarantee(CLASSIC, far.epsilon + taken_far, own.delta)
        return cls(near, far, own.value(), classic, plan)

    @cached_property
    def budget(self) -> Floats:
        """How much may be spent of each part of a cost."""
        return np.array(self._order(self.near.budget, self.far.budget))

    @property
    def parts(self) -> int:
        """Of how many numbers a cost is made."""
        return len(self.budget)

    @cached_property
    def plan_id(self) -> str | None:
        """What tells this plan from others, where there is one."""
        if not self.plan:
            return None
        return hashlib.sha256(canonical([one.model_dump() for one in self.plan]).encode()).hexdigest()

    def cost(self, charge: Charge, *, moved: bool = False) -> Floats:
        """What a release takes of the budget.

        Args:
            charge: What it costs.
            moved: Whether scales have changed since: rows that are near each other now may have been as far
                apart there as rows can be.
        """
        near = self.near.cost(*charge.losses(CLASSIC if moved else self.stated.B))
        return np.array(self._order(near, self.far.cost(*charge.losses(CLASSIC))))

    @staticmethod
    def _order(near: Sequence[float], far: Sequence[float]) -> list[float]:
        """Both amounts, then what is set aside for samplers."""
        return [near[0], far[0], *near[1:], *far[1:]]

    def share(self, cost: Floats) -> float:
        """How much of the budget a cost is, in whichever part it is the most."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(cost > 0, cost / self.budget, 0.0)
        return float(shares.max())

    def holds(self, cost: Floats) -> bool:
        """Whether a sum of costs is within the budget."""
        return bool((cost <= self.budget).all())

    def is_planned(self, line: int, charge: Charge) -> bool:
        """Whether a release is what a line of the plan says, so that it is paid for already."""
        planned, noise, linear = (
            Charge(law_of_line(self.plan[line])), Charge(charge.law.added, charge.scales), charge.law.linear,
        )  # fmt: skip
        return all(
            noise.losses(r) == planned.losses(r)
            # Scores are no farther apart than their rows, whose loss the plan has.
            and (linear is None or linear.distance_after(r) <= r)
            for r in (self.stated.B, CLASSIC)
        )


def law_of_line(line: PlannedRelease) -> RowLaw:
    """What is drawn in a planned release."""
    if line.release == "decisions":
        # Whichever score it is: between rows within B there is one cell, at every other distance as many.
        score = None if line.B == CLASSIC else [1.0]
        return Decision(B=line.B, epsilon=line.epsilon, score=score, programs=line.columns).law()
    return noise_of_line(line)


@lru_cache(maxsize=64)
def noise_of_line(line: PlannedRelease) -> NoiseLaw:
    """The noise of a planned release of rows or scores."""
    asked = Guarantee(line.B, line.epsilon, line.delta)
    if line.mechanism == LEAST_NOISE:
        return least_noise(asked, line.columns).mechanism.law(line.columns)
    return noise_mechanisms()[line.mechanism](asked).law(line.columns)


@lru_cache(maxsize=256)
def _together(plan: tuple[PlannedRelease, ...], distance: float, delta: float) -> float:
    """ε of all planned releases, composed exactly: their losses do not depend on what any of them shows."""
    losses = [law_of_line(line).privacy_loss(distance) for line in plan for _ in range(line.times)]
    if not losses:
        return 0.0
    try:
        return compose(*losses).epsilon(delta)
    except OverflowError:  # a loss beyond the range of floats hides nothing
        return math.inf


Stated = tuple[Guarantee, Guarantee]
"""A limit in numbers: at its distance, and at distance 2."""


def all_of(limits: Iterable[Stated]) -> tuple[Guarantee, Guarantee, int]:
    """What holds at the limit's distance, and at distance 2, and how many limits have made it.

    Each of them was in force for a time. Cut a set S of outcomes by the limit that a person's last release
    was made under: within each part, all her releases are within that limit. So P(S) ≤ e^ε·Q(S) + Σδ, with
    the largest ε, for rows that are within the smallest B. It takes that the numbers of a limit were not
    chosen by looking at releases.
    """
    each = tuple(limits)
    delta = each[0][0].delta
    if len(each) > 1:
        delta = math.nextafter(math.fsum(near.delta for near, _ in each), math.inf)
    if delta >= 1:
        raise ValueError(
            f"the δ of the {len(each)} limits that were in force add up to 1: nothing is promised"
        )
    near = Guarantee(min(near.B for near, _ in each), max(near.epsilon for near, _ in each), delta)
    return near, Guarantee(CLASSIC, max(far.epsilon for _, far in each), delta), len(each)
