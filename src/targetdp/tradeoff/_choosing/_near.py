"""What comes near: releases that one limit alone excludes, and those that people could make possible."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from targetdp._core import exact, up
from targetdp.programs import Objective
from targetdp.tradeoff._constraints import CellResult, Constraint, Estimate
from targetdp.tradeoff._metrics import PROTECTIONS, in_words, is_share, shown, shown_limit
from targetdp.tradeoff._technology import Cell

CLOSE, CLOSE_SHARE = 0.02, 0.05
"""A limit is missed by little if a protection, chance or rate misses it by no more than the first, or another
figure by no more than this share of the limit."""

_TOLD = 3
"""Near misses that are told, those that serve the program best."""

Wanted = Mapping[str, str]
"""The metric that the program is for, and which of its values is ``best``: the largest or the smallest."""


@dataclass(frozen=True)
class NearMiss:
    """A release that one limit alone excludes, by little.

    Args:
        cell: Its setting.
        limit: The limit.
        reached: What it reaches there, at the unfavorable end.
        gain: By how much it would serve the program better than the recommended one; empty if none is.
    """

    cell: Cell
    limit: Constraint
    reached: float
    gain: str

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        metric = self.limit.metric
        # All digits of an amount: rounded, it might read as if the limit were met.
        said = shown(self.reached, metric) if is_share(metric) else f"{self.reached:,.10g}"
        asked = shown_limit(self.limit.limit, metric)
        gain = f": {self.gain}" if self.gain else ""
        return f"{in_words(metric)} {said} for {asked} ({_short(self.cell)}){gain}"


def goods(objective: Wanted, figures: Mapping[str, Estimate]) -> tuple[float, ...]:
    """What is wanted of a cell, the program first; larger is better, what is undefined is worst."""
    value = figures[objective["metric"]].mean
    if value is not None and objective["best"] == "smallest":
        value = -value
    scores = (figures.get(metric, Estimate()).mean for metric in PROTECTIONS)
    return tuple(-math.inf if good is None else good for good in (value, *scores))


def near_misses(
    goal: Objective,
    constraints: Sequence[Constraint],
    results: Sequence[CellResult],
    chosen: CellResult | None,
) -> tuple[NearMiss, ...]:
    """Releases with a guarantee that one limit alone excludes, by little, and better for the program."""
    objective: Wanted = {"metric": goal.metric, "best": goal.best}
    own = -math.inf if chosen is None else goods(objective, chosen.figures)[0]
    found: list[tuple[float, NearMiss]] = []
    for one in results:
        failed = [limit for limit in constraints if limit.words in one.excluded_by]
        good = goods(objective, one.figures)[0]
        if one.cell.guarantee is None or len(one.excluded_by) != 1 or len(failed) != 1 or good <= own:
            continue
        (limit,) = failed
        figure = one.figures.get(limit.metric, Estimate())
        close = CLOSE if is_share(limit.metric) else CLOSE_SHARE * abs(limit.limit)
        if limit.missed_by(figure) <= close + 1e-12:
            reached = figure.at_worst if limit.at_most is None else figure.at_best
            if reached is not None:
                found.append((good, NearMiss(one.cell, limit, reached, _gain(goal, one, chosen))))
    return tuple(miss for _, miss in sorted(found, key=lambda each: -each[0])[:_TOLD])


def best_on_condition(
    goal: Objective, constraints: Sequence[Constraint], results: Sequence[CellResult], chosen: CellResult
) -> str:
    """The best release for the program that only people can make possible, if all limits hold for it."""
    objective: Wanted = {"metric": goal.metric, "best": goal.best}
    limits = {limit.words for limit in constraints}
    possible = [
        one for one in results
        if one.cell.technology.condition and not limits & set(one.excluded_by)
        and goods(objective, one.figures)[0] > goods(objective, chosen.figures)[0]
    ]  # fmt: skip
    if not possible:
        return ""
    best = max(possible, key=lambda one: goods(objective, one.figures)[0])
    technology, figure = best.cell.technology, best.figures[goal.metric]
    return (
        f"If {technology.condition}, {best.name} would meet every constraint with "
        f"{in_words(goal.metric)} {shown(figure.mean)}. {technology.about_attacks} For that, "
        f"{technology.remedy}."
    )


def _short(cell: Cell) -> str:
    promise = cell.promise
    at = "" if promise is None else f", B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}"
    return cell.technology.label + at


def _gain(goal: Objective, one: CellResult, chosen: CellResult | None) -> str:
    """By how much it would serve the program better than the recommended one."""
    if chosen is None:
        return ""
    here, there = one.figures[goal.metric].mean, chosen.figures[goal.metric].mean
    if here is None or there is None:
        return ""
    more = shown(abs(here - there))
    direction = "more" if here > there else "fewer" if goal.people is not None else "less"
    if goal.people is not None:
        whom, verb = goal.people
        return f"{more} {direction} {whom} {verb}"
    return f"{more} {direction} {in_words(goal.metric)}"
