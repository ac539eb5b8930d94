"""What settings and protections are called on a page."""

from collections.abc import Mapping
from typing import Any

from targetdp.programs.file import TWO_ROUNDS
from targetdp.rounding import exact, up
from targetdp.tradeoff.grid import CLASSIC, LEAST_NOISE, MONDRIAN, PROJECTION, STATUS_QUO
from targetdp.tradeoff.release_file import promise_of

MECHANISMS = {
    STATUS_QUO: "today, no privacy",
    LEAST_NOISE: "least noise",
    TWO_ROUNDS: "two rounds",
    PROJECTION: "the paper's projection",
    MONDRIAN: "k-anonymity",
}
"""Kinds of settings by their names in a sweep; others keep their own."""

PROTECTIONS = {
    "singling_out": "Not singled out",
    "attribute_inference": "Hidden values not guessed",
    "distinguishing": "Not told apart",
}
"""Headings of the three protections."""

EXPLAINED = {
    "singling_out": (
        "The share of people whom an attacker with the released table could not pick out as the only one in "
        "a box drawn around a row. Measured by attacks: a cleverer attacker may do better."
    ),
    "attribute_inference": (
        "How often guesses at a hidden value failed for people in the table, compared with people outside "
        "it: 1 means that being in the table gave nothing away. Measured by attacks: a cleverer attacker "
        "may do better."
    ),
    "distinguishing": (
        "How little the release tells, on average, about which of two rows a person has, if they are as "
        "different as can be, even to an attacker who knows everybody else's rows. Derived, not measured: no "
        "attacker can do better on average."
    ),
}


def label(cell: Mapping[str, Any]) -> str:
    """A setting's name on the page, with the ε that its release promises."""
    kind = MECHANISMS.get(cell["mechanism"], str(cell["mechanism"]))
    if cell["group_size"] is not None:
        return f"{kind}, groups of {cell['group_size']}"
    if cell["B"] is None:
        return kind
    classic = " (classic differential privacy)" if cell["B"] == CLASSIC else ""
    promise = promise_of(cell)
    assert promise is not None  # noqa: S101 (whatever has a B has one)
    return f"{kind}, B = {exact(promise.B)}, ε = {up(promise.epsilon, 6)}{classic}"
