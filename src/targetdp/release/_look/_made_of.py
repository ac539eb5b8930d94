"""What scores are made of once columns are scaled and rows clipped: for the data holder's eyes only.

Weights alone do not tell: a column with a tiny scale fills every row, and whoever chooses scales and weights
could have a score that is one column under another name. So it is measured on the rows themselves, which is
a statistic that nobody paid for: it is shown before a release and goes nowhere else.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from targetdp._core import Floats
from targetdp.normalization import ColumnScales, rows_in_ball
from targetdp.release._ledger._history import History, ReleaseRow
from targetdp.release._prepare import Prepared

SINGLED_OUT = 0.9
"""Share of a column's variance from which on scores are hardly more than the column under another name."""
_STANDS_OUT = 3 * SINGLED_OUT / (1 - SINGLED_OUT)
"""Rare values show through scores that are little of their column: squared deviations of the other columns
that rare values are away by, from which on they do. A normal column's are so far from `SINGLED_OUT` on."""
MANY_ORDERS = 1e6
"""How far declared scales may be apart before somebody is asked about it."""
SHOWN = 8
"""Columns named for a score."""
_RANK, _NOTHING = 1e-9, 1e-12
"""Directions, and variances, below this share of the largest are none."""
_LOOKED_AT, _VALUES, _PRODUCTS = 4_096, 100_000, 1e8
"""Rows of a batch, their values, and products of these, at most: more would tell the holder no more."""


@dataclass(frozen=True)
class Spread:
    """How rows differ from each other after scaling and clipping; ``+`` joins two parts of a table.

    ``weight`` is how many rows these stand for, ``sums`` are those of each column, and ``products`` those of
    every two columns or, where rows themselves are released, of each column with itself. ``powers`` are the
    sums of third and fourth powers.
    """

    weight: float
    sums: Floats
    products: Floats
    powers: Floats

    @classmethod
    def of(cls, columns: Floats, scales: ColumnScales, *, whole: bool) -> "Spread":
        """That of some rows, whose finite values come column by column; of many, some are looked at."""
        d, n = columns.shape
        most = max(64, min(_LOOKED_AT, int(_PRODUCTS / d**2) if whole else _VALUES // d))
        if n > most:  # in no order that the table could have, and the same ones each time
            columns = columns[:, np.random.default_rng(n).integers(0, n, most)]
        rows, _ = rows_in_ball(np.ascontiguousarray(columns), scales)
        squares = rows * rows
        products, each = rows.T @ rows if whole else squares.sum(axis=0), n / len(rows)
        powers = np.stack([np.einsum("ij,ij->j", squares, other) for other in (rows, squares)])
        return cls(float(n), each * rows.sum(axis=0), each * products, each * powers)

    def __add__(self, other: "Spread") -> "Spread":
        return Spread(
            self.weight + other.weight, self.sums + other.sums, self.products + other.products,
            self.powers + other.powers,
        )  # fmt: skip

    @property
    def covariance(self) -> Floats:
        """Of every two columns."""
        mean = self.sums / self.weight
        return np.asarray(self.products / self.weight - np.outer(mean, mean))

    @property
    def variances(self) -> Floats:
        """Of each column."""
        squares = np.diagonal(self.products) if self.products.ndim == 2 else self.products
        return np.maximum(0.0, squares / self.weight - np.square(self.sums / self.weight))

    @property
    def rarity(self) -> Floats:
        """The kurtosis of each column: how far out rare values are. That of a flag is 1 over its share."""
        mean, squares = self.sums / self.weight, self.variances + np.square(self.sums / self.weight)
        cubes, fourths = self.powers / self.weight
        fourth = fourths - 4 * mean * cubes + 6 * mean**2 * squares - 3 * mean**4
        return np.asarray(fourth / np.maximum(np.square(self.variances), 1e-300))


def doubts(prepared: Prepared, spread: Spread | None, history: History) -> Iterator[str]:
    """What the data holder should think about: odd scales, and scores that are one column."""
    p = prepared
    if p.policy.scales.source == "public" and p.known_scales:
        yield from _odd_scales(p, spread)
        if p.scaled_from is None and p.numbers:
            yield (
                "whom the declared scales were learned from is not on record here: make sure that it was "
                f"nobody of this table (scales.toml says: “{p.scales_reason}”)"
            )
        if p.numbers and not p.desk.scales.are_as_learned():
            yield (
                "the declared scales were changed after it was put on record whom they were learned from: "
                "make sure that it was nobody of this table"
            )
        record = p.desk.scales.record
        if p.numbers and record is not None and record.other_people is not None:
            yield (
                "whether the declared scales were learned from these people is not looked at: scales.toml "
                f"says that the same ids are other people's (“{record.other_people}”); are these your words?"
            )
    if p.weights is None:
        return
    columns, scales = _ever_scored(p, history)
    earlier = span_of(history, columns, scales)
    own = np.pad(p.weights, ((0, 0), (0, len(columns) - len(p.features))))
    before = singled_out(columns, earlier, spread) if len(earlier) else {}
    of = "the scores are" if not len(earlier) else "the scores, with those released before, are"
    for name, share in singled_out(columns, np.concatenate([earlier, own]), spread).items():
        if name in p.features or name not in before:
            yield (
                f"{of} nearly the column {name!r} ({share:.0%} of how people differ in it): whoever gets "
                "them learns nearly that column of everybody, with noise"
                if share > SINGLED_OUT
                else f"{of} {share:.0%} of how people differ in the column {name!r}, which has rare values: "
                "whoever gets them learns who has these, with noise"
            )


def _ever_scored(p: Prepared, history: History) -> tuple[tuple[str, ...], dict[str, float]]:
    """The features, then what else earlier scores were made of, and scales: a difference may be a column."""
    scales = {name: scale for name, (_, scale) in p.known_scales.items()}
    others: dict[str, float] = {}
    for row in history.counted:
        if row.charge.law.linear is not None:
            found = {name: history.scale_of(row, name) for name in row.title.get("features") or ()}
            others |= {name: scale for name, scale in found.items() if scale is not None}
    return (*p.features, *(name for name in others if name not in p.features)), others | scales


def _odd_scales(p: Prepared, spread: Spread | None) -> Iterator[str]:
    """Declared scales that look as if somebody had chosen them to show one column."""
    by_size = sorted((p.known_scales[name][1], name) for name in p.numbers if name in p.known_scales)
    if not by_size:
        return
    (least, small), (most, large) = by_size[0], by_size[-1]
    if most / MANY_ORDERS > least:
        orders = math.log10(most) - math.log10(least)
        yield (
            f"the declared scales span {orders:.0f} orders of magnitude, from {least:g} ({small}) to "
            f"{most:g} ({large}): is each of the size of what people differ by?"
        )
    if spread is None or len(p.features) < 2 or not (total := float(spread.variances.sum())):
        return
    part = spread.variances / total
    if part.max() > SINGLED_OUT:
        yield (
            f"under the declared scales {p.features[int(part.argmax())]!r} is {part.max():.0%} of how people "
            "differ, and the other columns next to nothing: is its scale right?"
        )


def made_of(prepared: Prepared, weights: Floats, spread: Spread | None) -> str:
    """What scores are made of, in words."""
    p = prepared
    variances = np.ones(len(p.features)) if spread is None else spread.variances
    how = (
        "by their weights alone: the scales are not known yet"
        if spread is None
        else "of how people differ, after scaling and clipping; for you only"
    )
    each = (
        f"{name}: {in_words(p.features, row, shares(row, variances))}"
        for name, row in zip(p.released, weights, strict=True)
    )
    return f"the scores are made of: {'; '.join(each)} ({how})"


def shares(weights: Floats, variances: Floats) -> Floats:
    """How much of a score's variance each column brings in, taken by itself."""
    scaled = weights / np.abs(weights).max()
    brought = np.square(scaled) * variances
    total = float(brought.sum())
    return np.asarray(brought / total) if total > 0 else np.zeros(len(weights))


def singled_out(features: tuple[str, ...], span: Floats, spread: Spread | None) -> dict[str, float]:
    """The columns that scores nearly give, and how nearly (1: exactly), were there no noise.

    It is the share of a column's variance that a linear guess from all scores of ``span`` explains; rare
    values stand out at a smaller one. Columns behind those of the ``spread`` are taken for independent ones
    that people differ in as much.
    """
    covariance = np.empty((0, 0)) if spread is None else spread.covariance
    known, variances = len(covariance), np.diagonal(covariance)
    usual = float(variances.mean()) if known else 1.0
    variances = np.pad(variances, (0, len(features) - known), constant_values=usual)
    scaled = span / np.maximum(np.abs(span).max(axis=1, keepdims=True), 1e-300)
    together = np.hstack([scaled[:, :known] @ covariance, scaled[:, known:] * usual])
    explained = np.einsum("ij,ik,kj->j", together, _inverse(together @ scaled.T), together)
    is_one = variances > _NOTHING * max(float(variances.max()), 1e-300)
    told = np.where(is_one, explained / np.where(is_one, variances, 1.0), 0.0)
    told = np.minimum(told, 1.0)
    rarity = np.pad(np.empty(0) if spread is None else spread.rarity, (0, len(features) - known))
    shown = (told > SINGLED_OUT) | (rarity * told > _STANDS_OUT * (1 - told))
    return {features[place]: float(told[place]) for place in np.flatnonzero(shown)}


def _inverse(matrix: Floats) -> Floats:
    """Of a matrix that may have directions in which there is nothing."""
    values, vectors = np.linalg.eigh(matrix)
    there = values > _RANK * max(float(values.max()), 1e-300)
    return np.asarray(vectors[:, there] / values[there] @ vectors[:, there].T)


def span_of(history: History, features: tuple[str, ...], scales: Mapping[str, float]) -> Floats:
    """The weights of all scores that a desk has released, on some features, as these are scaled now."""
    rows = [_weights(row, history, features, scales) for row in history.counted]
    found = [row for row in rows if row is not None]
    return np.concatenate(found) if found else np.empty((0, len(features)))


def _weights(
    row: ReleaseRow, history: History, features: tuple[str, ...], scales: Mapping[str, float]
) -> Floats | None:
    """The weights of one release on the features; other columns of it are left out."""
    law, columns = row.charge.law.linear, row.title.get("features")
    if law is None or not isinstance(columns, list) or len(columns) != law.dimensions:
        return None
    weights, found = np.array(law.weights), np.zeros((law.scores, len(features)))
    for place, name in enumerate(features):
        then = history.scale_of(row, name)
        if name in columns and then is not None:
            found[:, place] = weights[:, columns.index(name)] * (scales.get(name, then) / then)
    return found if np.isfinite(found).all() and found.any() else None


def in_words(features: tuple[str, ...], weights: Floats, parts: Floats) -> str:
    """One score: its columns by their part in it, the largest first."""
    order = np.argsort(-parts, kind="stable")
    used = int(np.count_nonzero(weights))
    named = [j for j in order if weights[j] != 0][:SHOWN]
    words = [
        f"{_percent(parts[j])} {features[j]} ({'raises' if weights[j] > 0 else 'lowers'} it)" for j in named
    ]
    if rest := used - len(named):
        left = float(np.sum(parts[[j for j in order if weights[j] != 0][SHOWN:]]))
        words.append(f"{_percent(left)} {rest:,} other column{'s' if rest > 1 else ''}")
    if unused := len(features) - used:
        words.append(f"nothing of {unused:,} column{'s' if unused > 1 else ''}")
    return ", ".join(words)


def _percent(share: float) -> str:
    if share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{share:.0%}"
