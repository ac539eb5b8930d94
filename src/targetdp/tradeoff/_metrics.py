"""What a sweep's figures are called, and how each is rounded for people: once, the same everywhere."""

import math
from dataclasses import dataclass
from typing import Literal

from targetdp._core import down, percent_up, up

ATTACKS = ("singling_out", "attribute_inference", "insider_inference")
"""Run in every simulation of every technology: a score for each of their settings. A stranger, who gets the
released table without ids, does the first two; the last is an insider's, who knows whose row or score it is,
the noise, and all columns but one."""

INFERENCE = "inference"
"""The worst of both attacks by which hidden values are guessed, over all their settings."""

GUESSING = ("attribute_inference", "insider_inference")
"""Those attacks."""

DERIVED = ("distinguishing", "exact_epsilon", "best_guess", "best_guess_at_2", "crowd")
"""Known without a simulation, once for each cell: from the noise, or (the crowd within B) from the rows."""

ATTACKED = (*ATTACKS, INFERENCE)
"""Metrics of attacks: of each the line over all settings counts."""

PROTECTIONS = ("singling_out", INFERENCE, "distinguishing")
"""The three kinds of protection; of each the worst that was measured or derived."""

MOST_GUESSED = "most_guessed"
"""Of guesses at hidden values, how many are right in the column in which that is the most."""

FEW_WANTED = "few_wanted"
"""Of a group that is too small to be the worst-hit one, how many people it has whom the program is for."""

AS_IN_THE_PAPER = {INFERENCE: "attribute_inference"}
"""For a protection, the paper's own figure, where it is another than the worst that was measured."""

STRANGER = "A stranger gets the released table without ids."
"""Who does the paper's attacks."""

INSIDER = "An insider knows whose row or score it is, the noise, and all columns but one."
"""Who guesses at the last column in `insider_inference`."""

_Kind = Literal["protection", "chance", "points", "epsilon", "amount"]


@dataclass(frozen=True)
class _Metric:
    """A figure's name in a sentence; how it is rounded; between which numbers it lies."""

    words: str
    kind: _Kind = "amount"
    between: tuple[float, float] | None = None


_SHARE, _RISE = (0.0, 1.0), (-1.0, 1.0)
_METRICS = {
    "singling_out": _Metric("singling-out protection", "protection", _SHARE),
    INFERENCE: _Metric("inference protection", "protection", _SHARE),
    "attribute_inference": _Metric(
        "attribute inference protection as in the paper", "protection", _SHARE
    ),
    "insider_inference": _Metric("inference protection from an insider", "protection", _SHARE),
    "distinguishing": _Metric("distinguishing protection", "protection", _SHARE),
    "best_guess": _Metric("the best guess of any attacker at distance B", "chance", (0.5, 1.0)),
    "best_guess_at_2": _Metric("the best guess of any attacker at distance 2", "chance", (0.5, 1.0)),
    "accuracy": _Metric("accuracy", "protection", _SHARE),
    "precision": _Metric("precision", "protection", _SHARE),
    "recall": _Metric("recall", "protection", _SHARE),
    "false_positive_rate": _Metric("false positive rate", "chance", _SHARE),
    "extra_exclusion_rate": _Metric("the rise of the share of the poor who are missed", "points", _RISE),
    "extra_refusal_rate": _Metric("the rise of the share refused of those who would repay", "points", _RISE),
    "exclusion_rate": _Metric("the share of the poor who are missed", "chance", _SHARE),
    "refusal_rate": _Metric("the share refused of those who would repay", "chance", _SHARE),
    "worst_group_rate": _Metric("the share left out in the worst-hit group", "chance", _SHARE),
    "worst_group_rise": _Metric("the largest rise of the share left out in a group", "points", _RISE),
    "exact_epsilon": _Metric("true ε", "epsilon"),
    MOST_GUESSED: _Metric("hidden values guessed in the column in which most are", "chance", _SHARE),
    FEW_WANTED: _Metric("people whom the program is for, in a group of few"),
    "spent": _Metric("aid paid"),
    "misspent": _Metric("aid paid to people who are not poor"),
    "extra_misspent": _Metric("aid paid to people who are not poor, beyond that of the status quo"),
    "extra_exclusion_errors": _Metric("exclusion errors beyond those of the status quo"),
}  # fmt: skip


def metric_of(name: str) -> _Metric:
    """What is known of a metric; one that nobody declared is an amount with its own name."""
    return _METRICS.get(name) or _Metric(name.replace("_", " "))


def in_words(metric: str) -> str:
    """A metric's name for people.

    Args:
        metric: As results call it.

    Returns:
        Its name in a sentence.

    Example:
        >>> in_words("exclusion_errors"), in_words("best_guess")
        ('exclusion errors', 'the best guess of any attacker at distance B')
    """
    return metric_of(metric).words


def shown(value: float | None, metric: str = "", *, percent: bool = False) -> str:
    """A figure for people, with as many digits as mean something, rounded to the safe side.

    Protection is never rounded to more than there is; how often an attacker is right, the share of people who
    are missed, and ε never to less. Counts and amounts have three digits, and are whole from 10 on.

    Args:
        value: The number; None where it is undefined.
        metric: What it is a figure of; an amount unless given.
        percent: Whether protection is printed in percent; how often a guess is right always is.

    Returns:
        Its text.

    Example:
        >>> shown(12345.6), shown(52.55), shown(0.68)
        ('12,300', '53', '0.68')
        >>> shown(0.8012, "inference", percent=True), shown(0.9323, "best_guess"), shown(0.7999, "inference")
        ('80.1%', '93.3%', '0.799')
    """
    if value is None or math.isnan(value):
        return "undefined"
    kind = metric_of(metric).kind
    if kind == "epsilon":
        return up(value, 4)
    if kind == "chance":
        return percent_up(value)
    if kind == "points":
        return f"{percent_up(value)[:-1]} points"
    if kind == "protection":
        return f"{down(100 * value, 1)}%" if percent else down(value)
    return _amount(value)


def shown_limit(value: float, metric: str) -> str:
    """A limit that somebody set, with all its digits: rounding it either way would claim another."""
    units = {"chance": "%", "points": " points"}
    unit = units.get(metric_of(metric).kind)
    return f"{value:,.10g}" if unit is None else f"{100 * value:.10g}{unit}"


def is_share(metric: str) -> bool:
    """Whether it lies between 0 and 1, so that a miss is told in hundredths and not in a part of it."""
    return metric_of(metric).between is not None


def _amount(value: float) -> str:
    size = abs(value)
    if size < 10 or not math.isfinite(value):
        return f"{value:.3g}" if math.isfinite(value) and size >= 0.0005 else f"{value:g}"
    unit = 10 ** max(0, math.floor(math.log10(size)) - 2)
    # Halves go away from 0, as in browsers: a page rounds with the same rule.
    return f"{math.copysign(math.floor(size / unit + 0.5) * unit, value):,.0f}"
