"""Linkability: two releases, or two sets of columns, about the same people, matched to each other.

The adversary holds no original row: only both releases. Article 29 WP 216 asks whether records of one person
can be linked.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from targetdp._core import Floats, Integers, Progress, Silent, check, row_product
from targetdp.attacks._declaration import LINKABILITY, Answer, Case, attack, people_spared, strongest_of
from targetdp.attacks._match._known_noise import Noise, covariance_of
from targetdp.attacks._match._matchers import Matcher, check_ranks, protection_from
from targetdp.attacks._match._pairs import check_squares, same_people
from targetdp.attacks._match._together import View, strongest_view
from targetdp.attacks._protection import CONFIDENCE, Protection

SHARED, LEARNED = "shared columns", "learned from known pairs"
STANDARDIZED = "shared columns, each in its own deviations"

_PENALTIES = np.geomspace(1e-6, 1e2, 17)
"""Of the ridge, per known pair, in units of the columns' variance."""
_LEAST = 1e-10
"""Share of a column's variance below which what is left of it is rounding."""


def _headline(p: Protection) -> str:
    spared = people_spared(p.score, "matched to their own row in the other release")
    return f"{spared} ({strongest_of(p, 'ways')})."


def _on_tables(case: Case) -> Protection:
    case.require(bool(case.further), "Not run: it needs another release of the same people (--second).")

    def attacked(view: View, options: dict[str, Any]) -> Protection:
        return _link(case, view, options)

    views = [
        View((number,), (other,), (np.flatnonzero(np.isin(other.people, case.tables.people)),))
        for number, other in enumerate(case.further, 2)
    ]
    return strongest_view(case, attacked, views, combined=False)


def _link(case: Case, view: View, options: dict[str, Any]) -> Protection:
    one, (two,) = case.tables, view.releases
    shared = [
        (one.features.index(name), two.features.index(name)) for name in one.features if name in two.features
    ]
    case.require(bool(shared), "Not run: the two releases have no column in common.")
    # Two releases may be sorted by different pseudonyms: people meet by their places in the original.
    _, here, there = np.intersect1d(one.people, two.people, assume_unique=True, return_indices=True)
    case.require(len(here) >= 2, "Not run: the two releases have fewer than two people in common.")
    return linkability(
        one.released[here], two.released[there], shared=shared, noise_a=one.law, noise_b=two.law,
        **options,
    )  # fmt: skip


@attack(
    place=4,
    answers=Answer(
        criteria=(LINKABILITY,),
        adversary="Has two releases, or two sets of columns, about the same people.",
        reaches="Whether a person's two rows are found to belong together.",
        does_not_reach="Links within one table, to tables that were not tried, through ids (linkage_by_id) "
        "or through the order of rows.",
    ),
    headline=_headline,
    on_tables=_on_tables,
    ids="unknown links",
)
def linkability(
    release_a: Any,
    release_b: Any,
    *,
    shared: Sequence[tuple[int, int]] | None = None,
    seeds: int | Sequence[int] | Integers | None = None,
    noise_a: Noise | None = None,
    noise_b: Noise | None = None,
    ranks: Sequence[int] = (1, 10),
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Protection:
    """Share of people whose row in release b is *not* recognized as belonging to their row in release a.

    Row i is about the same person in both; the adversary gets them in unknown order, and puts for each row
    of b the rows of a in order:

    - by distance, if there are columns in common. Units are the noise of both together if ``noise_a`` and
      ``noise_b`` are known, else each column's own deviation from its mean.
    - by likelihood, if there are people whose pairs the adversary already knows: a linear map from a to b and
      the spread around it are learned from them. Known pairs are taken out before anything is matched, in
      both ways.

    Ties count as if they stood in random order.

    Args:
        release_a: One release.
        release_b: Another release, or other columns, of the same people.
        shared: Columns in common, as pairs of their positions in a and b; all, if both have as many columns
            and nothing is given.
        seeds: People whose pairs the adversary knows: how many, drawn at random, or which.
        noise_a: The mechanism or law of release a, if it is known.
        noise_b: The same of release b.
        ranks: Ranks for which the detail has shares; 1 is always among them.
        confidence: Of the intervals.
        rng: Randomness of the attack; fresh unless given.
        progress: Is told how far the attack is.

    Returns:
        Protection, an upper bound: 1 − the share linked at rank 1 by the better way. ``detail["shares"]`` has
        each one's share at each of the ``ranks`` beside chance.

    Raises:
        TypeError: A noise is neither a mechanism nor a law.
        ValueError: The releases have different numbers of rows, or there is nothing to link by.

    Does not guarantee: that no cleverer matching links more (the score is an upper bound).
    Edges: two sets of columns that happen to be equally many are no shared columns: say ``shared=()``.

    Example:
        >>> import numpy as np
        >>> from targetdp import SphericalLaplace
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.5, 0.5, size=(200, 3))
        >>> noise = SphericalLaplace(B=0.25, epsilon=4)
        >>> X_priv = noise.privatize(X, rng)
        >>> again = noise.privatize(X, rng)
        >>> round(linkability(X_priv, again, noise_a=noise, noise_b=noise, rng=rng).score, 2)
        0.91
    """
    a, b = check.table(release_a, "release_a"), check.table(release_b, "release_b")
    n = same_people(a, "release_a", b, "release_b")
    check_squares(a)
    check_squares(b)
    pairs = _shared_columns(shared, a.shape[1], b.shape[1])
    ranks = check_ranks(ranks)
    confidence = check.number("confidence", confidence, above=0, below=1)
    rng = check.generator(rng) or np.random.default_rng()
    known = _known_pairs(seeds, n, rng)
    progress = progress or Silent()
    if not len(pairs) and not len(known):
        raise ValueError(
            f"release_a has {a.shape[1]} columns and release_b {b.shape[1]}, none shared, and seeds = None: "
            "there is nothing to link by; name pairs of columns in shared=, or give seeds=, people whose "
            "pairs the adversary knows"
        )
    rest = np.setdiff1d(np.arange(n), known)
    compared: dict[str, tuple[Floats, Floats]] = {}
    notes = []
    if len(pairs):
        deviations = _noise_deviations(noise_a, noise_b, pairs, a.shape[1], b.shape[1])
        compared[SHARED] = _comparable(a[:, pairs[:, 0]], b[:, pairs[:, 1]], deviations)
        units = "the columns' deviations" if deviations is None else "the noise of both releases"
        notes.append(f"Distances over {len(pairs)} shared columns are in units of {units}.")
        if deviations is not None:  # the two releases may have been scaled differently
            compared[STANDARDIZED] = _comparable(a[:, pairs[:, 0]], b[:, pairs[:, 1]], None)
    if len(known):
        compared[LEARNED] = _learned(a, b, known)
        notes.append(f"{len(known)} known pairs were learned from, and taken out before matching.")
    matchers = [
        Matcher.by_distance(name, from_b[rest], from_a[rest], ranks, progress)
        for name, (from_a, from_b) in compared.items()
    ]
    return protection_from(
        matchers, len(rest), confidence, progress, known_pairs=len(known), notes=tuple(notes)
    )


def _shared_columns(shared: Any, columns_a: int, columns_b: int) -> Integers:
    """Pairs of positions, one row each."""
    if shared is None:
        same = columns_a == columns_b
        return np.repeat(np.arange(columns_a if same else 0)[:, None], 2, axis=1)
    pairs = []
    for pair in check.several("shared", shared, "give pairs of column positions, (in a, in b)"):
        if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
            raise ValueError(f"shared has {pair!r}: give pairs of column positions, (in a, in b)")
        in_a = check.integer("shared", pair[0], at_least=0, at_most=columns_a - 1, remedy="a column of a")
        in_b = check.integer("shared", pair[1], at_least=0, at_most=columns_b - 1, remedy="a column of b")
        pairs.append((in_a, in_b))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _known_pairs(seeds: Any, n: int, rng: np.random.Generator) -> Integers:
    """The people whose pairs are known: at least 2, and 2 are left to match."""
    if seeds is None:
        return np.empty(0, dtype=np.int64)
    remedy = "2 or more to learn from, and 2 or more left to match"
    if np.ndim(seeds) == 0:
        count = check.integer("seeds", seeds, at_least=2, at_most=n - 2, remedy=remedy)
        return np.sort(rng.choice(n, count, replace=False))
    rows = np.array([check.integer("seeds", row, at_least=0, at_most=n - 1) for row in seeds], dtype=np.int64)
    if len(np.unique(rows)) != len(rows):
        raise ValueError(f"seeds names {len(rows) - len(np.unique(rows))} people twice: give each once")
    check.integer("number of seeds", len(rows), at_least=2, at_most=n - 2, remedy=remedy)
    return np.sort(rows)


def _noise_deviations(
    noise_a: Noise | None, noise_b: Noise | None, pairs: Integers, columns_a: int, columns_b: int
) -> Floats | None:
    """Of each shared column, both noises together; None if they are not both known."""
    variances = [
        np.diag(covariance_of(noise, columns, name))[places]
        for noise, columns, name, places in (
            (noise_a, columns_a, "noise_a", pairs[:, 0]),
            (noise_b, columns_b, "noise_b", pairs[:, 1]),
        )
        if noise is not None
    ]
    return np.sqrt(sum(variances)) if len(variances) == 2 else None


def _comparable(a: Floats, b: Floats, deviations: Floats | None) -> tuple[Floats, Floats]:
    """Shared columns in units that can be compared; one without any spread tells nobody apart."""
    if deviations is not None:
        units = np.where(deviations > 0, deviations, 1.0)
        return a / units, b / units
    return _standardized(a), _standardized(b)


def _standardized(columns: Floats) -> Floats:
    center, deviation = columns.mean(axis=0), columns.std(axis=0)
    constant = columns.min(axis=0) == columns.max(axis=0)
    return np.where(constant, 0.0, (columns - center) / np.where(constant, 1.0, deviation))


def _learned(a: Floats, b: Floats, known: Integers) -> tuple[Floats, Floats]:
    """What the known pairs let one expect of b given a, and b itself, in units of the spread around it.

    Ridge regression on standardized columns; its penalty has the least error when each pair is left out. The
    spread is the covariance of these left-out errors, drawn towards its diagonal while pairs are few.
    Products are taken row by row, so that equal rows stay equal.
    """
    before, after = _standardized(a), _standardized(b)
    expected, errors = _ridge(before[known], after[known], before)
    k, d = errors.shape
    spread = errors.T @ errors / k
    spread = (k * spread + d * np.diag(np.diag(spread))) / (k + d)
    values, vectors = np.linalg.eigh(spread)
    whiten = vectors / np.sqrt(np.maximum(values, _LEAST))
    return row_product(expected, whiten), row_product(after, whiten)


def _ridge(inputs: Floats, outputs: Floats, everybody: Floats) -> tuple[Floats, Floats]:
    """Predictions for everybody, and the errors for the known pairs when each is left out."""
    center, level = inputs.mean(axis=0), outputs.mean(axis=0)
    left, lengths, right = np.linalg.svd(inputs - center, full_matrices=False)
    turned = left.T @ (outputs - level)
    k = len(inputs)
    best: tuple[float, Floats, Floats] | None = None
    for penalty in _PENALTIES:
        kept = lengths**2 / (lengths**2 + penalty * k)
        leverage = np.einsum("ij,j,ij->i", left, kept, left) + 1 / k
        errors = (outputs - level - left @ (kept[:, None] * turned)) / np.maximum(1 - leverage, 1e-6)[:, None]
        size = float(np.square(errors).sum())
        if best is None or size < best[0]:
            factors = np.where(lengths > 0, kept / np.where(lengths > 0, lengths, 1.0), 0.0)
            best = size, right.T @ (factors[:, None] * turned), errors
    assert best is not None  # noqa: S101 (there are penalties)
    return level + row_product(everybody - center, best[1]), best[2]
