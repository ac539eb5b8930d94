"""Several releases about the same people: what they show together, and each of them alone.

Releases whose rows were equal before the noise (the same columns, the same scales) are in one *space*:
release i shows z_i = A_i·x + noise of covariance Σ_i of one and the same row x, where A_i is the unit matrix
for rows and the weights for scores. Independent noise averages out: with P = Σ A_iᵀ·Σ_i⁻¹·A_i, the row
P⁻¹·Σ A_iᵀ·Σ_i⁻¹·z_i is x and noise of covariance P⁻¹. For normal noise nothing is lost by it; for any other
it is an attack all the same. Releases in other spaces are attacked one by one, and the strongest counts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.attacks._declaration import CannotRunError, Case
from targetdp.attacks._match._known_noise import AverageNoise, density_of
from targetdp.attacks._protection import Protection, worst
from targetdp.attacks._score_inference import ReleasedValues

if TYPE_CHECKING:
    from targetdp.attacks._on_release import JoinedTables  # it needs the slow libraries that read tables

_SAME = 1e-9
"""How far apart two computations of one scaled row may lie."""
_LOST = 1e-12
"""Share of the largest variance, or precision, below which a direction holds nothing."""

AS_IT_IS = "No law of noise is known for this release: released values were taken as they are."
AS_NORMAL = "The average of several releases' noises was taken as normal noise of the same covariance."


@dataclass(frozen=True, eq=False)
class View:
    """Releases of the same rows, of the people who are in all of them; one release, or several together.

    ``numbers`` are the releases', 1 being the one under attack.
    """

    numbers: tuple[int, ...]
    releases: "tuple[JoinedTables, ...]" = field(repr=False)
    places: tuple[Integers, ...] = field(repr=False)
    """For each release, the rows of the people in question."""

    @property
    def name(self) -> str:
        """What the releases are called in settings and sentences."""
        if len(self.numbers) == 1:
            return f"release {self.numbers[0]}"
        *others, last = map(str, self.numbers)
        return f"releases {', '.join(others)} and {last} together"

    @property
    def rows(self) -> Floats:
        """The people's rows, before noise and scoring."""
        return np.asarray(self.releases[0].rows.original[self.places[0]])

    holdout: Floats | None = field(repr=False, default=None)
    """People of the same space with whom guesses without any release are compared."""

    def shown(self) -> tuple[ReleasedValues, ...]:
        """What each release shows of the people, and its noise."""
        values = []
        for release, places in zip(self.releases, self.places, strict=True):
            scored = release.rows_before_scoring
            weights = None if scored is None else np.array(scored.law.weights)
            values.append(ReleasedValues(release.released[places], release.law, weights))
        return tuple(values)

    def average(self) -> tuple[Floats, Floats, AverageNoise]:
        """The people's rows in the directions that are shown, their average over releases, and its noise."""
        shown = self.shown()
        parts = [_precision(values, self.rows.shape[1]) for values in shown]
        precision = np.sum([weighted @ seen for weighted, seen in parts], axis=0)
        weighed = np.sum([v.values @ w.T for v, (w, _) in zip(shown, parts, strict=True)], axis=0)
        values, vectors = np.linalg.eigh(precision)
        kept = values > _LOST * values.max()
        basis = np.eye(len(values)) if kept.all() else vectors[:, kept]
        covariance = np.linalg.inv(basis.T @ precision @ basis)
        covariance = (covariance + covariance.T) / 2
        note = "" if all(map(_is_normal, shown)) else AS_NORMAL
        return self.rows @ basis, weighed @ basis @ covariance, AverageNoise(covariance, note)


def _precision(values: ReleasedValues, columns: int) -> tuple[Floats, Floats]:
    """A_iᵀ·Σ_i⁻¹ and A_i of a release's values."""
    seen = values.observation(columns)
    return np.asarray(np.linalg.solve(seen.covariance, seen.map).T, dtype=np.float64), seen.map


def _is_normal(values: ReleasedValues) -> bool:
    dimensions = values.values.shape[1]
    density = density_of(values.noise, dimensions)
    return density is not None and density.normal_mixture and density.variance_shape(dimensions) is None


def each_and_together(case: Case) -> tuple[View, ...]:
    """Every release of a case alone, and those in one space together.

    Releases with more people come first into what is seen together: where another one leaves fewer people,
    both are looked at, with it and without it.
    """
    releases = (case.tables, *case.further)
    views = [View((i,), (r,), (np.arange(len(r.original)),)) for i, r in enumerate(releases, 1)]
    together: list[View] = []
    left = list(range(len(releases)))
    while left:
        first = left[0]
        group = [i for i in left if i == first or same_space(releases[first], releases[i])]
        left = [i for i in left if i not in group]
        together += _together([i for i in group if _has_noise(releases[i])], releases)
        holdouts = (releases[i].rows.holdout for i in group)
        holdout = next((rows for rows in holdouts if rows is not None), None)
        of_group = {i + 1 for i in group}
        views, together = (
            [replace(v, holdout=holdout) if set(v.numbers) <= of_group else v for v in some]
            for some in (views, together)
        )
    return (*views, *together)


def _together(group: Sequence[int], releases: "Sequence[JoinedTables]") -> list[View]:
    if len(group) < 2:
        return []
    first, views = group[0], []
    people = releases[first].people
    by_size = sorted(group[1:], key=lambda i: -len(np.intersect1d(people, releases[i].people)))
    members = [first]
    for i in by_size:
        common = np.intersect1d(people, releases[i].people)
        if len(common) < 2:
            continue
        if len(common) < len(people) and len(members) > 1:
            views.append(_view(members, people, releases))
        people, members = common, [*members, i]
    return [*views, _view(members, people, releases)] if len(members) > 1 else views


def _view(members: Sequence[int], people: Integers, releases: "Sequence[JoinedTables]") -> View:
    members = sorted(members)
    places = []
    for i in members:
        order = np.argsort(releases[i].people)
        places.append(order[np.searchsorted(releases[i].people, people, sorter=order)])
    return View(tuple(i + 1 for i in members), tuple(releases[i] for i in members), tuple(places))


def same_space(one: "JoinedTables", two: "JoinedTables") -> bool:
    """Whether people had the same rows before the noise."""
    if one.rows.features != two.rows.features:
        return False
    _, here, there = np.intersect1d(one.people, two.people, assume_unique=True, return_indices=True)
    mine, others = one.rows.original[here], two.rows.original[there]
    return len(here) >= 2 and bool(np.allclose(mine, others, rtol=0, atol=_SAME))


def _has_noise(release: "JoinedTables") -> bool:
    """Whether the noise is known, and reaches every released direction: then it can be averaged out."""
    if release.law is None:
        return False
    variances = np.linalg.eigvalsh(release.law.covariance)
    return bool(variances[0] > _LOST * variances[-1])


OnView = Callable[[View, dict[str, Any]], Protection]
"""Runs an attack on a view, with the options that all attacks share."""


def strongest_view(case: Case, attack: OnView, views: Sequence[View], *, combined: bool = True) -> Protection:
    """Run an attack on each view with its part of the error rate; the strongest counts.

    Where releases are ``combined`` as far as they can be, the result says which could not.
    A view on which the attack cannot be run is left out, and a note says why; if that is every view, the
    first reason is raised.
    """
    if len(views) == 1:
        return attack(views[0], case.options)
    options = case.options | {"confidence": 1 - (1 - case.confidence) / max(1, len(views))}
    results: dict[View, Protection] = {}
    refused: dict[str, ValueError] = {}
    for view in views:
        try:
            results[view] = attack(view, options)
        except ValueError as reason:  # also `CannotRunError`
            refused[view.name] = reason
    if not results:
        raise next(iter(refused.values()), CannotRunError("Not run: there is no release to run it on."))
    sentence = _sentence(results, range(1, len(case.further) + 2) if combined else ())
    notes = tuple(f"Not used: {name}: {reason}" for name, reason in refused.items())
    return _worst({view.name: result for view, result in results.items()}, case, sentence, notes)


def _sentence(results: Mapping[View, Protection], numbers: Iterable[int]) -> str:
    """Which releases the strongest result is from, and which of them could not be combined with another."""
    strongest = min(results, key=lambda view: results[view].score)
    joined = ", with the rows of one person known to belong together," if len(strongest.numbers) > 1 else ""
    words = f"Strongest: {strongest.name}{joined} for {len(strongest.places[0]):,} people."
    together = {number for view in results if len(view.numbers) > 1 for number in view.numbers}
    alone = [str(number) for number in numbers if number not in together]
    if not alone:
        return words
    which = f"Release {alone[0]}" if len(alone) == 1 else f"Releases {', '.join(alone[:-1])} and {alone[-1]}"
    return (
        f"{words} {which} could not be combined (other columns, scales or people, or no known noise): the "
        "strongest counts."
    )


def _worst(
    results: Mapping[str, Protection], case: Case, sentence: str, notes: tuple[str, ...]
) -> Protection:
    strongest = min(results, key=lambda name: results[name].score)
    detail = {k: v for k, v in results[strongest].detail.items() if k not in {"settings", "confidence"}}
    settings = {f"{name}: {way}": s for name, p in results.items() for way, s in p.settings.items()}
    by_view = {name: {"score": p.score, "interval": p.interval} for name, p in results.items()}
    detail |= {"releases": sentence, "strongest_release": strongest, "by_release": by_view}
    detail["notes"] = (*detail.get("notes", ()), *notes)
    return worst(settings, results[strongest].bound, confidence=case.confidence, **detail)
