"""A plan for a year: the largest equal releases that fit a limit, composed exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from targetdp._core import check, exact
from targetdp.accounting import FilterKind
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import LARGEST_EPSILON, LEAST_NOISE, SMALLEST_EPSILON
from targetdp.release._certificate._charge import Charge
from targetdp.release._ledger._limit import Limit, law_of_line, noise_of_line
from targetdp.release._policy import LimitPolicy, PlannedRelease

MOST_RELEASES = 1000
_FILTERS: tuple[FilterKind, ...] = ("pure", "gaussian", "renyi")
_NOISES = (LEAST_NOISE, "gaussian")
"""One release alone is quietest with the first; of many, normal noise adds up to less."""
_QUIETER = 0.95
"""The noise that every request gets unless it asks for another is proposed if it is not louder than so."""
_SHARE_OF_DELTA = 4
"""Half of the limit's δ is the plan's, and half of that is what its releases state."""


@dataclass(frozen=True)
class EqualReleases:
    """So many equal releases as a limit allows of one kind, counted in one way.

    Args:
        way: ``"plan"``: exactly, all fixed beforehand; otherwise the filter that counts them, one by one.
        epsilon: ε of each, rounded down to three digits.
        mechanism: The noise to ask for.
        family: The noise that it is.
        noise_sd: Its deviation per coordinate.
        classic: ε of everything together at distance 2, as the desk would state it.
    """

    way: str
    epsilon: float
    mechanism: str
    family: str
    noise_sd: float
    classic: float


@dataclass(frozen=True)
class ProposedPlan:
    """A plan of equal releases that fits a limit, and what filters would allow instead.

    Args:
        limit: What it is for.
        line: The plan: one line, so many times.
        ways: The plan, then the filters that allow any such release at all.
    """

    limit: LimitPolicy
    line: PlannedRelease
    ways: tuple[EqualReleases, ...]

    def toml(self) -> str:
        """Limit and plan as they stand in ``policy.toml``."""
        own, line = self.limit, self.line
        return "\n".join(
            (
                "[limit]",
                f"B = {exact(own.B)}", f"epsilon = {exact(own.epsilon)}", f"delta = {own.delta!r}",
                f'filter = "{own.filter}"',
                "",
                "[[plan]]",
                f'release = "{line.release}"', f"columns = {line.columns}", f"B = {exact(line.B)}",
                f"epsilon = {exact(line.epsilon)}  # [release] must allow it",
                f"delta = {line.delta!r}",
                f'mechanism = "{line.mechanism}"', f"times = {line.times}",
            )
        )  # fmt: skip


def propose_plan(
    *,
    B: float,
    epsilon: float,
    delta: float,
    releases: int,
    columns: int,
    kind: Literal["rows", "scores"] = "rows",
) -> ProposedPlan:
    """Find the largest ε of each of some equal releases that all together fit a limit.

    Depends on these numbers only, never on data.

    Args:
        B: The limit's distance, and that of each release.
        epsilon: ε of the limit.
        delta: δ of the limit.
        releases: How many releases there are to be.
        columns: How many columns, or scores, each of them has.
        kind: ``"rows"`` or ``"scores"``.

    Returns:
        The plan, and what each filter would allow for as many.

    Raises:
        ValueError: A number is outside its range, or not even tiny releases fit.

    Guarantees: `Limit.of` accepts a policy with the proposed limit and plan, and with the next larger ε of
    three digits it does not.
    Edges: as long as a policy has a plan, nothing else is released.

    Example:
        >>> made = propose_plan(B=0.25, epsilon=10, delta=1e-6, releases=12, columns=1, kind="scores")
        >>> made.line.epsilon, made.line.times
        (0.833, 12)
    """
    count = check.integer("releases", releases, at_least=1, at_most=MOST_RELEASES)
    asked = Guarantee(B, epsilon, delta)
    if asked.delta == 0:
        raise ValueError("delta = 0: a limit needs some, since no sampler is exactly pure; 1e-9 will do")
    limit = LimitPolicy(B=asked.B, epsilon=asked.epsilon, delta=asked.delta)
    own_delta = _number(_place(limit.delta / (_SHARE_OF_DELTA * count)))

    def line(mechanism: str, size: float) -> PlannedRelease:
        return PlannedRelease(
            release=kind, columns=check.dimensions(columns), B=limit.B, epsilon=size,
            delta=own_delta, mechanism=mechanism, times=count,
        )  # fmt: skip

    def planned(one: PlannedRelease) -> Limit | None:
        try:
            return Limit.within(limit, (one,))
        except ValueError:
            return None

    def counted_by(filter_kind: FilterKind) -> Callable[[PlannedRelease], Limit | None]:
        own = Limit.within(limit.model_copy(update={"filter": filter_kind}), ())

        def fits(one: PlannedRelease) -> Limit | None:
            try:
                return own if own.holds(count * own.cost(Charge(law_of_line(one)))) else None
            except ValueError:
                return None

        return fits

    ways = {"plan": planned} | {one: counted_by(one) for one in _FILTERS}
    found = {way: _quietest(way, line, fits, limit.epsilon) for way, fits in ways.items()}
    chosen = found["plan"]
    if chosen is None:
        raise ValueError(
            f"not even {count} tiny releases fit the limit {limit.value()}: give a larger ε, or plan fewer"
        )
    proposed = line(chosen.mechanism, chosen.epsilon)
    return ProposedPlan(limit, proposed, tuple(one for one in found.values() if one is not None))


def _quietest(
    way: str,
    line: Callable[[str, float], PlannedRelease],
    fits: Callable[[PlannedRelease], Limit | None],
    most: float,
) -> EqualReleases | None:
    """The releases with the least noise that fit, of those that some mechanisms can make."""
    best = None
    for mechanism in _NOISES:
        # A release's own δ lets it be larger than what all may cost together, by a little.
        made = partial(line, mechanism)
        size = _largest(made, fits, min(2 * most, LARGEST_EPSILON))
        if size is None or (limit := fits(made(size))) is None:
            continue
        law = noise_of_line(made(size))
        one = EqualReleases(way, size, mechanism, law.family, law.deviation_per_column, limit.classic.epsilon)
        if best is None or one.noise_sd < _QUIETER * best.noise_sd:
            best = one
    return best


def _largest(
    made: Callable[[float], PlannedRelease], fits: Callable[[PlannedRelease], Limit | None], most: float
) -> float | None:
    """The largest ε of three digits, up to some number, whose releases fit; None if not even the smallest."""
    low, high = _place(SMALLEST_EPSILON), _place(most)
    if fits(made(_number(low))) is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(made(_number(middle))) is None else (middle, high)
    return _number(low)


def _place(value: float) -> int:
    """Which of all numbers of three digits is the last that is not above a value."""
    power = math.floor(math.log10(value))
    return 900 * power + min(999, math.floor(value / 10.0**power * 100 + 1e-9)) - 100


def _number(place: int) -> float:
    """The number of three digits at a place."""
    power, digits = divmod(place, 900)
    return float(f"{digits + 100}e{power - 2}")
