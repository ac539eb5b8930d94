"""An invented population of phone users, for demonstrations. No real person is in it.

It has the size of the paper's Togolese table (Table S1: 4,201 people, 10 features, consumption in
[0.005, 1] with mean 0.073) and features that are correlated and skewed as phone use is. Everything is
drawn from one latent "means" of each person plus noise, so that consumption can be predicted from the
features about as well as the paper's case study implies.
"""

from dataclasses import dataclass

import numpy as np

from targetdp import check
from targetdp.typing import Floats

_MEANS_WEIGHT = {
    "night_calls": 0.30,
    "weekday_text_entropy": 0.38,
    "contacts": 0.42,
    "top_up_total": 0.55,
    "top_up_count": 0.18,
    "international_calls": 0.35,
    "share_calls_in_capital": 0.33,
    "days_active": 0.22,
    "incoming_share": -0.28,
    "mean_call_seconds": 0.12,
}
"""Each feature's correlation with the latent means, before it is skewed."""

_SKEWED = {
    "night_calls",
    "contacts",
    "top_up_total",
    "top_up_count",
    "international_calls",
    "mean_call_seconds",
}


@dataclass(frozen=True)
class Population:
    """Features of invented people, and their consumption as a share of the largest."""

    names: tuple[str, ...]
    X: Floats
    consumption: Floats


def togo_like(rng: np.random.Generator, people: int = 4_201) -> Population:
    """Draw invented people with phone use and consumption."""
    n = check.integer("people", people, at_least=1)
    means, habit = rng.standard_normal(n), rng.standard_normal(n)
    columns = []
    for name, weight in _MEANS_WEIGHT.items():
        # A shared habit of using the phone at all correlates the features beyond what means explain.
        rest = 0.5 * habit + np.sqrt(0.75) * rng.standard_normal(n)
        latent = weight * means + np.sqrt(1 - weight**2) * rest
        columns.append(np.exp(0.6 * latent) if name in _SKEWED else latent)
    spread = 0.78
    log_consumption = spread * (0.62 * means + np.sqrt(1 - 0.62**2) * rng.standard_normal(n))
    consumption = np.clip(0.0535 * np.exp(log_consumption), 0.005, 1.0)
    return Population(tuple(_MEANS_WEIGHT), np.column_stack(columns), consumption)
