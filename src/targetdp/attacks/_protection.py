"""What every attack hands back: how well people were protected from it, from 0 (not at all) to 1."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv, stdtrit

from targetdp._core import Floats, check

# Confidence intervals for shares of people and for the ratio of two shares.
#
# Exact (Clopper and Pearson 1934): they hold at every size and for shares of 0 and 1, and are a little wide.
# A count may be a fraction, where each person's part is a mean over several tries: such a mean varies less
# than one try would. That the interval still holds is checked in tests, exactly, for parts of two values.


Interval = tuple[float, float]


def lowest_share(counts: Any, total: int, error_rate: float) -> Floats:
    """A share that the true one is below with probability at most ``error_rate``."""
    counts = np.asarray(counts, dtype=np.float64)
    some = np.maximum(counts, np.finfo(np.float64).tiny)
    return np.where(counts > 0, betaincinv(some, total - counts + 1, error_rate), 0.0)


def highest_share(counts: Any, total: int, error_rate: float) -> Floats:
    """A share that the true one is above with probability at most ``error_rate``."""
    return 1 - lowest_share(total - np.asarray(counts, dtype=np.float64), total, error_rate)


def share_interval(count: float, total: int, error_rate: float) -> Interval:
    """An exact interval for a share of people (Clopper and Pearson 1934).

    Args:
        count: How many people it happened to; a mean over several tries may be a fraction.
        total: Of how many.
        error_rate: The largest probability with which the interval may miss the true share.

    Returns:
        Its lower and its upper end.

    Example:
        >>> low, high = share_interval(5, 100, 0.05)
        >>> round(low, 3), round(high, 3)
        (0.016, 0.113)
    """
    return float(lowest_share(count, total, error_rate / 2)), float(
        highest_share(count, total, error_rate / 2)
    )


def ratio_interval(
    count: float, total: int, base_count: float, base_total: int, error_rate: float
) -> Interval:
    """An interval for the ratio of two shares: it holds if each share's own does.

    Edges: where the base's interval begins at 0 the ratio has no upper end (infinite).
    """
    low, high = share_interval(count, total, error_rate / 2)
    base_low, base_high = share_interval(base_count, base_total, error_rate / 2)
    return low / base_high, high / base_low if base_low > 0 else float("inf")


Bound = Literal["upper", "lower"]

CONFIDENCE = 0.95
"""Of an interval, unless the caller says otherwise."""


@dataclass(frozen=True)
class Setting:
    """One way to run an attack (a net size, a column).

    Args:
        score: Its own score, not capped; it may be infinite, as a ratio to nothing is.
        interval: The ends of its confidence interval, the lower one first.

    Raises:
        ValueError: The score or the interval is undefined.

    Example:
        >>> Setting(0.5, (0.4, 0.6)).interval
        (0.4, 0.6)
    """

    score: float
    interval: Interval

    def __post_init__(self) -> None:
        low, high = self.interval
        if math.isnan(self.score) or not low <= high:
            raise ValueError(
                f"score = {self.score!r} with interval = {self.interval!r} is undefined: give numbers, the "
                "lower end of the interval first"
            )


@dataclass(frozen=True)
class Protection:
    """How well people were protected from an attack.

    Args:
        score: Protection from the strongest setting of the attack, from 0 (none) to 1 (safe).
        interval: A confidence interval for the score; all settings share its error rate, so that choosing
            the worst of them does not flatter it.
        strongest: The name of that setting.
        bound: What the score is good for: an ``"upper"`` bound on true protection (an audit: a cleverer
            attack may get more) or a ``"lower"`` one (a derivation: no attack can get more).
        detail: Each setting's own figure under ``settings``, and whatever the attack wants to add.

    Example:
        >>> result = worst({"nearest row": Setting(0.5, (0.4, 0.6))}, "upper")
        >>> result.score, result.strongest, result.bound
        (0.5, 'nearest row', 'upper')
    """

    score: float
    interval: Interval
    strongest: str
    bound: Bound
    detail: Mapping[str, Any]

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Each setting's own figure."""
        settings: Mapping[str, Setting] = self.detail["settings"]
        return settings

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON: what is not finite comes as null."""
        record: dict[str, Any] = plain_data(self)
        return record

    def _repr_html_(self) -> str:
        """The worst setting first, all others below, for a notebook."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{_shown(one.score)}</td><td>{_range(one.interval)}</td></tr>"
            for name, one in sorted(self.settings.items(), key=lambda item: item[1].score)
        )
        means = {
            "upper": "at most: a cleverer attack may get more",
            "lower": "at least: no attack can get more",
        }[self.bound]
        return (
            f"<p>protection <b>{_shown(self.score)}</b> ({_range(self.interval)}) from "
            f"{escape(self.strongest)}; {means}. 1 is safe, 0 is none.</p><table>{rows}</table>"
        )


def _shown(score: float) -> str:
    """Rounded down: nobody may read more protection than there is."""
    return "–" if math.isnan(score) else f"{math.floor(score * 1000) / 1000:.3f}"


def _range(interval: Interval) -> str:
    return f"{_shown(interval[0])} to {_shown(interval[1])}"


def worst(
    settings: Mapping[str, Setting], bound: Bound, *, confidence: float = CONFIDENCE, **detail: Any
) -> Protection:
    """Protection from the strongest of several settings.

    If all their intervals hold at once, so does the one from the lowest low end to the lowest high end.

    Args:
        settings: Each setting's score and interval, by name.
        bound: Whether scores are upper or lower bounds on true protection.
        confidence: That of the intervals together.
        detail: What else the attack wants to say.

    Returns:
        Protection with the lowest score; of several equally strong settings the first is named.

    Raises:
        ValueError: There are no settings.

    Example:
        >>> result = worst({"a": Setting(0.5, (0.4, 0.6)), "b": Setting(0.7, (0.3, 0.9))}, "upper")
        >>> result.score, result.interval, result.strongest
        (0.5, (0.3, 0.6), 'a')
    """
    if not settings:
        raise ValueError("settings has 0 entries: an attack is run in at least one setting")
    strongest = min(settings, key=lambda name: settings[name].score)
    low = min(setting.interval[0] for setting in settings.values())
    high = min(setting.interval[1] for setting in settings.values())
    return Protection(
        score=_cap(settings[strongest].score),
        interval=(_cap(low), _cap(high)),
        strongest=strongest,
        bound=bound,
        detail=MappingProxyType(
            {"settings": MappingProxyType(dict(settings)), "confidence": confidence} | detail
        ),
    )


def worst_of_means(simulations: Sequence[Protection], *, confidence: float = CONFIDENCE) -> Protection:
    """The paper's figure over repeated simulations: the worst over settings of each one's mean.

    The interval is for the mean over simulations: Student's, from how much they differ, but never narrower
    than what their own intervals leave for a mean of so many (a few simulations may agree by chance). It
    knows how noise varies, not how another sample of people would.

    Args:
        simulations: What one attack found in each simulation.
        confidence: Of the interval.

    Returns:
        Protection from the setting with the lowest mean. Of the details those are kept that all simulations
        share. A single simulation is handed back as it is, with its own confidence.

    Raises:
        TypeError: An entry is not a `Protection`.
        ValueError: There are no simulations, or they are not repetitions of one attack.

    Example:
        >>> scores = (0.5, 0.6, 0.7)
        >>> runs = [worst({"nearest row": Setting(s, (s - 0.1, s + 0.1))}, "upper") for s in scores]
        >>> round(worst_of_means(runs).score, 2)
        0.6
    """
    simulations = tuple(check.several("simulations", simulations, "give the results of several simulations"))
    for place, one in enumerate(simulations):
        check.instance(f"simulations[{place}]", one, Protection)
    confidence = check.number("confidence", confidence, above=0, below=1)
    if not simulations:
        raise ValueError("simulations has 0 entries: give at least one Protection")
    first: Protection = simulations[0]
    if len(simulations) == 1:
        return first
    if any(set(one.settings) != set(first.settings) or one.bound != first.bound for one in simulations):
        raise ValueError("simulations differ in their settings: give repetitions of one attack")
    error_rate = (1 - confidence) / len(first.settings)
    means = {name: _mean([one.settings[name] for one in simulations], error_rate) for name in first.settings}
    ours = {"settings", "confidence", "simulations"}
    shared = {
        name: value
        for name, value in first.detail.items()
        if name not in ours and all(one.detail.get(name) == value for one in simulations)
    }
    return worst(means, first.bound, confidence=confidence, simulations=len(simulations), **shared)


def _mean(settings: Sequence[Setting], error_rate: float) -> Setting:
    """The mean of one setting's scores over simulations, with its interval."""
    scores = np.array([setting.score for setting in settings])
    if not np.isfinite(scores).all():  # a ratio to nothing: the others say too little to bound its mean
        return Setting(float(scores.mean()), (-math.inf, math.inf))
    root, mean = math.sqrt(len(scores)), float(scores.mean())
    spread = float(stdtrit(len(scores) - 1, 1 - error_rate / 2)) * float(scores.std(ddof=1)) / root
    below = float(np.mean([setting.score - setting.interval[0] for setting in settings])) / root
    above = float(np.mean([setting.interval[1] - setting.score for setting in settings])) / root
    return Setting(mean, (mean - max(spread, below), mean + max(spread, above)))


def _cap(score: float) -> float:
    return min(1.0, max(0.0, score))


def plain_data(value: Any) -> Any:
    """A value as JSON has it: a dataclass as its fields, an array as a list, what is not finite as None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain_data(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
