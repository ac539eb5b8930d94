"""Linkage, by values or by id: which released row is whose.

The adversary knows every original row and must find out which released row belongs to whom. An adversary who
knows less cannot do better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from targetdp._core import Floats, Progress, Silent, check
from targetdp.attacks._declaration import (
    LINKABILITY,
    SINGLING_OUT,
    Answer,
    Case,
    attack,
    people_spared,
    strongest_of,
)
from targetdp.attacks._match._known_noise import AverageNoise, Noise, check_in_unit_ball, density_of
from targetdp.attacks._match._matchers import (
    SOFT_PASSES,
    Matcher,
    assign,
    check_ranks,
    plateau_ranks,
    protection_from,
    soft_shares,
)
from targetdp.attacks._match._pairs import check_squares, released_directions, same_people, units_of
from targetdp.attacks._match._together import View, each_and_together, strongest_view
from targetdp.attacks._protection import CONFIDENCE, Protection, Setting, worst
from targetdp.mechanisms import NoiseDensity

NEAREST, LIKELIEST = "nearest row", "most likely row under the noise"
SCALED, SEEN = "nearest row, columns in their deviations", "nearest row in the released directions"
ASSIGNED, SOFT = "one-to-one assignment", "soft one-to-one matching"


def _headline(p: Protection) -> str:
    spared = people_spared(p.score, "matched to their released row")
    return f"{spared} by someone who holds the original table ({strongest_of(p, 'ways')})."


def _on_tables(case: Case) -> Protection:
    def attacked(view: View, options: dict[str, Any]) -> Protection:
        if len(view.releases) > 1:
            rows, average, noise = view.average()
            return linkage(rows, average, noise, **options)
        (one,) = view.releases
        return linkage(one.original, one.released, one.law, **options)

    return strongest_view(case, attacked, each_and_together(case))


@attack(
    place=3,
    answers=Answer(
        criteria=(LINKABILITY, SINGLING_OUT),
        adversary="Has the released table and the whole original one, and lacks only who is who.",
        reaches="Whether a released row is recognized as a person's own: the hardest case of linking "
        "two tables, since no other table is as close to the release as the original is.",
        does_not_reach="Cleverer ways to match, and links of a row to a small group rather than to one "
        "person (the share that is found among the first ten says something about those).",
    ),
    headline=_headline,
    on_tables=_on_tables,
)
def linkage(
    X: Any,
    X_priv: Any,
    noise: Noise | AverageNoise | None = None,
    *,
    ranks: Sequence[int] = (1, 10),
    assignment_limit: int = 5_000,
    matching_limit: int = 25_000,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Share of people whose released row is *not* recognized as theirs by somebody who holds X.

    The adversary gets the released rows in unknown order. For each of them people are put in order: by
    Euclidean distance, in the units as given, and by likelihood under the noise or, where it is not known, by
    distance with each column in units of its released deviation. Where released rows lie in fewer directions
    than there are columns, distances are also taken in those alone. Two more ways use that everybody has one
    row: the likeliest assignment of all rows together, and a soft form of it.
    Ties count as if they stood in random order. Intervals are about other noise on people like these; in
    one-to-one ways people are found or missed in couples, so that their intervals count each couple once.

    Args:
        X: Rows of the unit ball, as the mechanism saw them.
        X_priv: Row i is the private version of row i of X.
        noise: The mechanism that made the release, or its law; None if it is not known.
        ranks: Ranks for which the detail has shares; 1 is always among them.
        assignment_limit: People up to whom all rows are assigned together: it needs all n×n distances, and
            about n³ time.
        matching_limit: People up to whom the soft form is run: n² time.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound: 1 − the share found at rank 1 by the best way. ``detail["shares"]`` has
        each way's share at each of the ``ranks`` beside chance.

    Raises:
        TypeError: ``noise`` is neither a mechanism nor a law.
        ValueError: The tables differ in shape, or X lies outside the unit ball where the noise is known.

    Does not guarantee: that no cleverer matching finds more (the score is an upper bound).
    Edges: people who have equal rows cannot be told apart, so that even a release without noise protects
    them: of m equal rows each is found with a chance of 1/m.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> round(linkage(X, X_priv, noise, rng=rng).score, 2)
        0.71
        >>> linkage(X, X).score
        0.0
    """
    table = check.table(X)
    released = check.table(X_priv, "X_priv", columns=table.shape[1])
    n = same_people(table, "X", released, "X_priv")
    check_squares(table, released)
    ranks = check_ranks(ranks)
    assignment_limit = check.integer("assignment_limit", assignment_limit, at_least=0)
    matching_limit = check.integer("matching_limit", matching_limit, at_least=0)
    confidence = check.number("confidence", confidence, above=0, below=1)
    density = density_of(noise, table.shape[1])
    if density is not None:
        check_in_unit_ball(table, "X")
    rng = check.generator(rng) or np.random.default_rng()
    progress = progress or Silent()

    matchers = _by_distance(table, released, density, ranks, progress)
    notes = ["Chance finds a person at rank r with probability r/n.", *_notes_on_noise(density)]
    units = units_of(released) if density is None else np.ones(1)
    if n <= assignment_limit:
        assigned = partial(assign, table / units, released / units, density, rng, progress)
        matchers.append(Matcher(ASSIGNED, n, lambda: {1: assigned()}, people_per_match=2))
    else:
        notes.append(
            f"{ASSIGNED} was not run: it needs all distances between {n} people at once; "
            f"assignment_limit is {assignment_limit}."
        )
    if density is not None and n <= matching_limit:
        soft = partial(soft_shares, table, released, density, ranks, progress)
        matchers.append(Matcher(SOFT, SOFT_PASSES * n, soft, people_per_match=2))
    elif density is not None:
        notes.append(f"{SOFT} was not run: there are {n} people, matching_limit is {matching_limit}.")
    if density is not None and density.note:
        notes.append(density.note)
    return protection_from(matchers, n, confidence, progress, notes=tuple(notes))


def _by_distance(
    X: Floats, X_priv: Floats, density: NoiseDensity | None, ranks: Sequence[int], progress: Progress
) -> list[Matcher]:
    """The ways to put people in order by a distance, or by the likelihood that follows from one."""
    compared = {NEAREST: (X_priv, X)}
    directions = released_directions(X_priv)
    if directions is not None:
        compared[SEEN] = X_priv @ directions, X @ directions
    plateau = None
    if density is None:
        units = units_of(X_priv)
        compared[SCALED] = X_priv / units, X / units
    elif not density.nearer_is_likelier:
        plateau = density.plateau(np.linalg.norm(X_priv - X, axis=1))
        if plateau is None:
            compared[LIKELIEST] = density.whitened(X_priv), density.whitened(X)
    matchers = [Matcher.by_distance(name, *tables, ranks, progress) for name, tables in compared.items()]
    if plateau is not None:
        steps = plateau_ranks(X[:, 0], X_priv[:, 0], plateau)
        matchers.append(Matcher(LIKELIEST, None, lambda: steps.shares(ranks)))
    return matchers


def _notes_on_noise(density: NoiseDensity | None) -> list[str]:
    if density is None:
        return ["The noise is not known: only distances were used."]
    if density.nearer_is_likelier:
        return ["Under this noise the nearest row is the most likely one: one attack stands for both."]
    return []


# Linkage by id: who joins tables on the id needs no values at all.
#
# Noise hides what a row says, not whose it is. A release carries ids, in clear or as pseudonyms, because a
# program must know whom it decides about: so whoever can tell the ids has everybody's row without any search.

ORIGINAL = "the original table"
BY_THE_KEY = (
    ", by whoever has the key of the pseudonyms or was told them (as the official is who gets the translated "
    "list); nobody else can join them with a table that does not have them"
)


def _headline_by_id(p: Protection) -> str:
    matched = people_spared(p.score, "matched to their released row by joining on the id")
    by = BY_THE_KEY if p.detail.get("pseudonyms") else ""
    return " ".join((f"{matched}{by}.", *p.detail.get("sentences", ())))


def in_common(ids: pa.StringArray, others: pa.StringArray) -> int:
    """How many of some ids stand among others."""
    return int(pc.sum(pc.is_in(ids, value_set=others)).as_py() or 0)


def _by_id_on_tables(case: Case) -> Protection:
    t = case.tables
    ids = case.require(t.ids, "Not run: the tables are without ids.")
    hashed = t.ids_are == "pseudonyms"
    sentences: list[str] = []
    others = {ORIGINAL: ids}  # the two tables were joined on them: all are there
    for number, release in enumerate(case.further, 2):
        if release.ids is None:
            continue
        others[f"release {number}"] = release.ids
        shared = in_common(ids, release.ids)
        by = "pseudonyms: joining on them, without any key," if hashed else "ids: joining on them"
        sentences.append(
            f"Release {number} has the same {by} brings together the rows of {shared:,} people."
            if shared
            else f"Release {number} has no id in common with this one."
        )
    found = linkage_by_id(ids, others, sentences=tuple(sentences), pseudonyms=hashed)
    linked = {name: one for name, one in found.settings.items() if name != ORIGINAL and one.score < 1}
    return replace(found, detail={**found.detail, "without_key": linked if hashed else {}})


@attack(
    place=8,
    answers=Answer(
        criteria=(LINKABILITY, SINGLING_OUT),
        adversary="Has the released table with its ids, and any other table about the same people; where ids "
        "are pseudonyms, also their key, or a list of them.",
        reaches="Whose row is whose, and who is in the table, wherever ids can be read.",
        does_not_reach="What the rows say: the noise protects values, not ids.",
    ),
    headline=_headline_by_id,
    on_tables=_by_id_on_tables,
    ids="used",
)
def linkage_by_id(ids: Any, others: Mapping[str, Any], **detail: Any) -> Protection:
    """Share of people whose released row is *not* matched by joining the release with other tables on the id.

    Args:
        ids: The ids in the release, one for each person.
        others: Ids of other tables by the table's name, written as the release writes them: where it has
            pseudonyms, by somebody who has their key.
        detail: What else the result should say.

    Returns:
        Protection, an upper bound, exact for these tables: 1 − the share of people who are in the table that
        matches most of them.

    Raises:
        ValueError: There are no ids, or no other tables.

    Example:
        >>> linkage_by_id(["ann", "bob"], {"a phone book": ["bob", "eve"]}).score
        0.5
    """
    named = pa.array(ids, pa.string())
    check.integer("number of ids", len(named), at_least=1)
    settings = {}
    for name, other in others.items():
        spared = 1 - in_common(named, pa.array(other, pa.string())) / len(named)
        settings[name] = Setting(spared, (spared, spared))
    return worst(settings, "upper", confidence=1.0, people=len(named), **detail)
