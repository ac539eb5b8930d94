"""What a list that was made of private decisions cost people, beside lists by other releases and by none.

The people of the tour are invented, so that everybody's consumption is known, and errors can be counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from examples.tour.comparison import ADULTS, QUOTA
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import Mechanism, least_noise
from targetdp.targeting import learn

SIMULATIONS = 20
SEED = 2026
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Cost:
    """One way to make a list.

    Args:
        name: What goes out.
        missed: The share of all people who are poor and not on the list.
    """

    name: str
    missed: float

    @property
    def accuracy(self) -> float:
        """As many are on a list as are poor: whoever is missed makes room for one who is not poor."""
        return 1 - 2 * self.missed


def count_costs(rows: Floats, consumption: Floats, agreed: Mask, helped: Mask, epsilon: float) -> list[Cost]:
    """Count the poor who are missed without privacy, by a list, and by lists of scores and rows at B = 2.

    The official has the rows of those who agreed, in all of these. Everybody else's score or row has the
    least noise; each list has the quota's places among those who agreed, and among the others.

    Args:
        rows: Everybody's row, in the unit ball.
        consumption: What everybody truly consumes.
        agreed: Who agreed to be used as she is.
        helped: Who is on the list that was made of decisions.
        epsilon: What the decisions promise at B = 2.

    Returns:
        No privacy first, then decisions, a score and rows, each of these two a mean of simulations.
    """
    people, columns = rows.shape
    poor = _poorest(consumption, np.ones(people, dtype=bool))
    promise = Guarantee(2.0, epsilon, 1 / (people + 1))
    rng = np.random.default_rng(SEED)

    def missed(scores: Floats) -> float:
        chosen = _poorest(scores, agreed) | _poorest(scores, ~agreed)
        return float((poor & ~chosen).mean())

    def weights(variance: float) -> Floats:
        return learn(rows[agreed], consumption[agreed], np.zeros((columns, columns)), variance).w

    def simulated(released: Floats, mechanism: Mechanism, along: Floats) -> float:
        """Mean over releases of everybody who did not agree."""
        runs = []
        for _ in range(SIMULATIONS):
            private = mechanism.privatize(released, rng)
            runs.append(missed(np.where(agreed, released @ along, private @ along)))
        return float(np.mean(runs))

    score, row = (least_noise(promise, size).mechanism for size in (1, columns))
    for_scores, for_rows = weights(score.noise_sd(1) ** 2), weights(row.noise_sd(columns) ** 2)
    return [
        Cost("everything: no privacy", missed(rows @ weights(0.0))),
        Cost("a decision: this list", float((poor & ~helped).mean())),
        Cost("a score", simulated((rows @ for_scores)[:, None], score, np.ones(1))),
        Cost("a row: all columns", simulated(rows, row, for_rows)),
    ]


def _poorest(values: Floats, among: Mask) -> Mask:
    """The quota's share of some people, those with the lowest values."""
    places = np.flatnonzero(among)
    chosen = np.zeros(len(values), dtype=bool)
    chosen[places[np.argsort(values[places], kind="stable")[: round(QUOTA * len(places))]]] = True
    return chosen


def render(costs: Sequence[Cost]) -> Table:
    """The costs as a table for people; the first is what the others are compared with."""
    table = Table(
        title="What goes out about everybody who did not agree, at B = 2 and ε = 4, and what it costs",
        title_justify="left",
        caption=f"Of {QUOTA * ADULTS:,.0f} poor people among {ADULTS:,} adults. A score and rows: means of "
        f"{SIMULATIONS} simulations, with the least noise.",
        caption_justify="left",
    )
    for heading in ("what goes out", "accuracy", "poor people missed", "more than without privacy"):
        table.add_column(heading, justify="left" if heading == "what goes out" else "right")
    least = costs[0].missed
    for cost in costs:
        more = "–" if cost is costs[0] else f"{(cost.missed - least) * ADULTS:+,.0f}"
        table.add_row(cost.name, f"{cost.accuracy:.3f}", f"{cost.missed * ADULTS:,.0f}", more)
    return table
