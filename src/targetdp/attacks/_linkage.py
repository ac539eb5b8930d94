"""Linkage: the adversary holds the original table, and wants to know which released row is whose.

This adversary lacks nothing but who is who: whoever knows less about people could only do worse than the best
that can be done with all of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Progress, Silent, check
from targetdp.attacks._match._known_density import Noise, density_of, in_unit_ball
from targetdp.attacks._match._one_to_one import SOFT_PASSES, assign, soft_ranks
from targetdp.attacks._match._pairs import Ranks, checked_ranks, nearest_ranks, setting_of, shares
from targetdp.attacks._match._units import must_have_squares, released_directions, units_of
from targetdp.attacks._protection import CONFIDENCE, Protection, worst
from targetdp.mechanisms import NoiseDensity, StaircaseDensity

NEAREST, LIKELIEST = "nearest row", "most likely row under the noise"
SCALED, SEEN = "nearest row, columns in their deviations", "nearest row in the released directions"
ASSIGNED, SOFT = "one-to-one assignment", "soft one-to-one matching"

Found = dict[int, Floats]
"""For each rank everybody's chance to be found within it."""
Way = tuple[int | None, Callable[[], Found]]
"""How many rows of work it is, if that is known, and the work."""


def linkage(
    X: Any,
    X_priv: Any,
    noise: Noise | None = None,
    *,
    ranks: Sequence[int] = (1, 10),
    assignment_limit: int = 5_000,
    matching_limit: int = 25_000,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Share of people whose released row is *not* recognized as theirs by somebody who holds X.

    Row i of ``X_priv`` is the private version of row i of ``X``, rows of the unit ball as the mechanism saw
    them; the adversary gets the released rows in unknown order. ``noise`` is the mechanism that made the
    release, or its law; None if it is not known. For each released row people are put in order: by Euclidean
    distance, in the units as given, and by likelihood under the noise or, where it is not known, by distance
    with each column in units of its released deviation. Where released rows lie in fewer directions than
    there are columns, distances are also taken in those alone. Two more ways use that everybody has
    one row: the likeliest assignment of all rows together (up to ``assignment_limit`` people: it needs all
    n×n distances, and about n³ time), and a soft form of it (up to ``matching_limit``: n² time).

    The score is 1 − the share found at rank 1 by the best of them. ``detail["shares"]`` has each way's share
    at each of the ``ranks`` beside chance. Ties count as if they stood in random order. Intervals are about
    other noise on people like these; in one-to-one ways people are found or missed in couples, so that their
    intervals count each couple once.

    Does not guarantee: that no cleverer matching finds more (the score is an upper bound).
    Edges: people who have equal rows cannot be told apart, so that even a release without noise protects
    them: of m equal rows each is found with a chance of 1/m.
    """
    table = check.table(X)
    released = check.table(X_priv, "X_priv", columns=table.shape[1])
    n = same_people(table, "X", released, "X_priv")
    must_have_squares(table, released)
    asked = checked_ranks(ranks)
    assignment_limit = check.integer("assignment_limit", assignment_limit, at_least=0)
    matching_limit = check.integer("matching_limit", matching_limit, at_least=0)
    confidence = check.number("confidence", confidence, above=0, below=1)
    shape = density_of(noise, table.shape[1])
    if shape is not None:
        in_unit_ball(table, "X")
    chance = check.generator(rng) or np.random.default_rng()
    told = Silent() if progress is None else progress

    ways, notes = _ways(table, released, shape, asked, assignment_limit, matching_limit, chance, told)
    doubt = (1 - confidence) / len(ways)
    settings, details = {}, {}
    for name, (rows, attack) in ways.items():
        told.phase(name, rows)
        found = attack()
        together = 2 if name in {ASSIGNED, SOFT} else 1
        settings[name] = setting_of(found[1], doubt, together)
        details[name] = shares(found, n, doubt, together)
    return worst(settings, "upper", confidence=confidence, people=n, shares=details, notes=tuple(notes))


def _ways(
    X: Floats,
    X_priv: Floats,
    shape: NoiseDensity | None,
    asked: Sequence[int],
    assignment_limit: int,
    matching_limit: int,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[dict[str, Way], list[str]]:
    """The ways to match that are possible here, and what to say of those that are not."""
    n, most = len(X), asked[-1]
    ways: dict[str, Way] = {NEAREST: (n, lambda: _found(nearest_ranks(X_priv, X, most, progress), asked))}
    notes = ["Chance finds a person at rank r with probability r/n."]
    directions = released_directions(X_priv)
    if directions is not None:
        ways[SEEN] = (
            n,
            lambda: _found(nearest_ranks(X_priv @ directions, X @ directions, most, progress), asked),
        )
    scaled = (X, X_priv)
    if shape is None:
        units = units_of(X_priv)
        scaled = (X / units, X_priv / units)
        ways[SCALED] = (n, lambda: _found(nearest_ranks(scaled[1], scaled[0], most, progress), asked))
        notes.append("The noise is not known: only distances were used.")
    elif shape.nearer_is_likelier:
        notes.append("Under this noise the nearest row is the most likely one: one attack stands for both.")
    elif isinstance(shape, StaircaseDensity):
        ways[LIKELIEST] = (None, lambda: _found(staircase_ranks(X[:, 0], X_priv[:, 0], shape), asked))
    else:
        people, rows = shape.whitened(X), shape.whitened(X_priv)
        ways[LIKELIEST] = (n, lambda: _found(nearest_ranks(rows, people, most, progress), asked))
    if n <= assignment_limit:
        ways[ASSIGNED] = (n, lambda: {1: assign(*scaled, shape, rng, progress)})
    else:
        notes.append(
            f"{ASSIGNED} was not run: it needs all distances between {n} people at once; "
            f"assignment_limit is {assignment_limit}."
        )
    if shape is not None and n <= matching_limit:
        ways[SOFT] = (SOFT_PASSES * n, lambda: _found(soft_ranks(X, X_priv, shape, progress), asked))
    elif shape is not None:
        notes.append(f"{SOFT} was not run: there are {n} people, matching_limit is {matching_limit}.")
    if shape is not None and shape.note:
        notes.append(shape.note)
    return ways, notes


def same_people(table: Floats, name: str, other: Floats, other_name: str) -> int:
    """How many rows both have; row i must be about the same person in both."""
    if len(table) != len(other):
        raise ValueError(
            f"{other_name} has {len(other)} rows, {name} has {len(table)}: row i must be about the same "
            "person in both; join them by id first"
        )
    return len(table)


def _found(ranks: Ranks, asked: Sequence[int]) -> Found:
    return {rank: ranks.found(rank) for rank in asked}


def staircase_ranks(x: Floats, z: Floats, shape: StaircaseDensity) -> Ranks:
    """Everybody on the same step of the density is equally likely."""
    steps = shape.steps(np.abs(z - x))
    ordered = np.sort(x)

    def nearer_than(distances: Floats) -> Integers:
        begin = np.searchsorted(ordered, z - distances, "right")
        end = np.searchsorted(ordered, z + distances, "left")
        return np.asarray(np.maximum(end - begin, 0))

    inner, outer = shape.edges(steps)
    before = nearer_than(inner)
    return Ranks(before, np.maximum(nearer_than(outer) - before, 1))
