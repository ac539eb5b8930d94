"""A few options out of all settings that can be asked for: what an official sees first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from targetdp.tradeoff._choosing._exposure import Exposure
from targetdp.tradeoff._choosing._near import Wanted, goods
from targetdp.tradeoff._constraints import CellResult, Estimate

KEEPING = (0.9, 0.75, 0.5)
"""Shares of what the program gains today over deciding without looking at anybody: for each of them the
setting is taken that protects most and still keeps so much."""

NAMES: Mapping[int, tuple[str, ...]] = {
    0: (), 1: ("The one setting",), 2: ("Light", "Strong"), 3: ("Light", "Balanced", "Strong"),
}  # fmt: skip
"""What options are called, from the least protection to the most."""


@dataclass(frozen=True)
class Option:
    """A setting with a name of its own.

    Args:
        name: ``"Light"``, ``"Balanced"`` or ``"Strong"``.
        cell: The name of its cell.
        recommended: Whether it is the recommended one.

    Example:
        >>> Option("Light", "least-noise B=0.25 epsilon=4", recommended=False).name
        'Light'
    """

    name: str
    cell: str
    recommended: bool


def options(
    objective: Wanted,
    results: Sequence[CellResult],
    chosen: CellResult | None,
    today: Mapping[str, Estimate],
    chance: float,
) -> tuple[Option, ...]:
    """At most three settings, from the least protection to the most, the recommended one among them.

    They are of the front: no other setting that can be asked for is as good for the program and as safe, by
    the best guess at distance 2 and by what an insider reaches. By both each is at least as safe as those
    before it. For each share of `KEEPING` the safest is taken that keeps so much of the program; where these
    are fewer than three settings, those of the front join them that keep the most.

    Args:
        objective: What the program is for, and which of its values is best.
        results: Every setting with its figures.
        chosen: The recommended one; None if there is none.
        today: Figures of the status quo.
        chance: The accuracy of deciding without looking at anyone.

    Returns:
        The options; none if no setting can be asked for.

    Example:
        >>> options({"metric": "profit", "best": "largest"}, [], None, {}, chance=0.5)
        ()
    """
    known = [one for one in results if one.cell.why_not is None and _good(objective, one) is not None]
    safety = {one.name: Exposure.of(one.figures).order for one in known}
    front = sorted(
        (one for one in known if one is chosen or not any(_beats(objective, b, one, safety) for b in known)),
        key=lambda one: (tuple(-x for x in safety[one.name]), one.name),
    )
    kept = {one.name: _kept(one, today, chance) for one in front}
    taken: list[CellResult] = [] if chosen is None or chosen not in front else [chosen]
    useful = [one for one in front if kept[one.name] >= KEEPING[-1]]
    tiers = [[one for one in useful if kept[one.name] >= share] for share in KEEPING]
    most_kept = [[one] for one in sorted(front, key=lambda one: kept[one.name])]
    for pool in (*tiers, useful[:1], useful, *reversed(most_kept)):
        fits = [one for one in pool if one not in taken and _in_line(one, taken, safety)]
        taken += fits[-1:] if len(taken) < len(KEEPING) else []
    taken.sort(key=front.index)
    return tuple(
        Option(name, one.name, one is chosen) for name, one in zip(NAMES[len(taken)], taken, strict=True)
    )


def _good(objective: Wanted, one: CellResult) -> float | None:
    """How well it serves the program; None where that is undefined."""
    defined = one.figures.get(objective["metric"], Estimate()).mean is not None
    return goods(objective, one.figures)[0] if defined else None


def _beats(
    objective: Wanted, other: CellResult, one: CellResult, safety: Mapping[str, tuple[float, ...]]
) -> bool:
    """Whether another is at least as good for the program and as safe in both respects, and better in one."""
    mine = (_good(objective, one) or 0.0, *(-x for x in safety[one.name][:2]))
    theirs = (_good(objective, other) or 0.0, *(-x for x in safety[other.name][:2]))
    return theirs != mine and all(a >= b for a, b in zip(theirs, mine, strict=True))


def _in_line(one: CellResult, taken: Sequence[CellResult], safety: Mapping[str, tuple[float, ...]]) -> bool:
    """Whether of it and each that is taken one is safer, by anybody's best guess and by an insider's."""
    guess, gained, *_ = safety[one.name]
    others = [safety[other.name] for other in taken]
    return all((guess - other[0]) * (gained - other[1]) >= 0 for other in others)


def _kept(one: CellResult, today: Mapping[str, Estimate], chance: float) -> float:
    """How much is left of what the program gains today over deciding without looking at anybody."""
    own, whole = (figures.get("accuracy", Estimate()).mean for figures in (one.figures, today))
    if own is None or whole is None or whole <= chance:
        return 1.0
    return (own - chance) / (whole - chance)
