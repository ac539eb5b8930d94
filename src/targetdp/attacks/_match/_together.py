"""Several releases about the same people: what they show together, and each of them alone.

Where a person's row was equal before the noise (the same columns in any order, the same scales) release i
shows z_i = A_i·x + noise of covariance Σ_i of one and the same row x, where A_i is the unit matrix
for rows and the weights for scores. Independent noise averages out: with P = Σ A_iᵀ·Σ_i⁻¹·A_i, the row
P⁻¹·Σ A_iᵀ·Σ_i⁻¹·z_i is x and noise of covariance P⁻¹. For normal noise nothing is lost by it; for any other
it is an attack all the same. Other releases are attacked one by one, and the strongest counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from targetdp._core import Floats, Integers, down
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
    def of_scores(self) -> bool:
        """Whether nothing but scores is seen."""
        return all(release.rows_before_scoring is not None for release in self.releases)

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
            scored, order = release.rows_before_scoring, _order(self.releases[0], release)
            weights = np.eye(len(order)) if scored is None else np.array(scored.law.weights)
            as_they_are = scored is None and order == sorted(order)
            shown = None if as_they_are else weights[:, order]
            values.append(ReleasedValues(release.released[places], release.law, shown))
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
    """Every release of a case alone, and those that show the same rows together.

    Together are seen: the release under attack with each other one, and every set of releases that are all
    that some people are in. Nothing depends on the order of the further releases.
    """
    releases = (case.tables, *case.further)
    views = [View((i,), (r,), (np.arange(len(r.original)),)) for i, r in enumerate(releases, 1)]
    views += _together(releases)
    return tuple(replace(view, holdout=_outsiders(case, view.releases[0])) for view in views)


def _outsiders(case: Case, release: "JoinedTables") -> Floats | None:
    """The holdout of the release under attack, in a release's columns, less the people of any release."""
    rows, places = release.rows.holdout, release.holdout_places
    if case.tables.holdout is None or rows is None:
        return None
    everybody = np.concatenate([one.people for one in (case.tables, *case.further)])
    outside = rows[~np.isin(places, everybody)] if len(places) else rows
    return outside if len(outside) else None


def _together(releases: "Sequence[JoinedTables]") -> list[View]:
    noisy = [i for i, release in enumerate(releases) if _has_noise(release)]
    views: dict[tuple[int, ...], View] = {}
    for first in noisy:
        places = {i: _places_of_equals(releases[first], releases[i]) for i in noisy}
        shown = np.column_stack([places[i] >= 0 for i in noisy])
        sets = [tuple(np.array(noisy)[there]) for there in np.unique(shown, axis=0)]
        if first == 0:
            sets += [(0, i) for i in noisy]
        for members in sets:
            if members[0] != first or len(set(members)) < 2 or members in views:
                continue
            here = np.all([places[i] >= 0 for i in members], axis=0)
            if np.count_nonzero(here) >= 2:
                views[members] = View(
                    tuple(int(i) + 1 for i in members),
                    tuple(releases[i] for i in members),
                    tuple(places[i][here] for i in members),
                )
    return [views[members] for members in sorted(views, key=lambda some: (len(some), some))]


def _places_of_equals(one: "JoinedTables", two: "JoinedTables") -> Integers:
    """For each person of one release the place in another, if the row before the noise is the same; or -1."""
    places = np.full(len(one.people), -1, dtype=np.int64)
    if set(one.rows.features) != set(two.rows.features):
        return places
    _, here, there = np.intersect1d(one.people, two.people, assume_unique=True, return_indices=True)
    mine, others = one.rows.original[here], two.rows.original[there][:, _order(one, two)]
    same = np.isclose(mine, others, rtol=0, atol=_SAME).all(axis=1)
    places[here[same]] = there[same]
    return places


def _order(one: "JoinedTables", two: "JoinedTables") -> list[int]:
    """Where the columns of one release stand in another."""
    return [two.rows.features.index(name) for name in one.rows.features]


def _has_noise(release: "JoinedTables") -> bool:
    """Whether the noise is known, and reaches every released direction: then it can be averaged out."""
    if release.law is None:
        return False
    variances = np.linalg.eigvalsh(release.law.covariance)
    return bool(variances[0] > _LOST * variances[-1])


OnView = Callable[[View, dict[str, Any]], Protection]
"""Runs an attack on a view, with the options that all attacks share."""


def strongest_view(
    case: Case, attack: OnView, views: Sequence[View], *, combined: bool = True, of_variance: bool = False
) -> Protection:
    """Run an attack on each view with its part of the error rate; the strongest counts.

    Where releases are ``combined`` as far as they can be, the result says which could not. Shares
    ``of_variance`` of rows and of scores are not compared: those of the kind of the release under attack
    count, and the result tells the others.
    A view on which the attack cannot be run is left out, and a note says why; if that is every view, the
    first reason is raised.
    """
    if len(views) == 1 and not (combined and case.further):
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
    scores = case.tables.rows_before_scoring is not None
    compared = {v: p for v, p in results.items() if not of_variance or v.of_scores == scores} or results
    sentence = " ".join(
        (
            _strongest(compared),
            *_not_combined(views, range(1, len(case.further) + 2) if combined else ()),
            *_not_compared({view: p for view, p in results.items() if view not in compared}),
        )
    )
    notes = tuple(f"Not used: {name}: {str(r).removeprefix('Not run: ')}" for name, r in refused.items())
    by_view = {view.name: {"score": p.score, "interval": p.interval} for view, p in results.items()}
    return _worst(compared, case, {"releases": sentence, "by_release": by_view}, notes)


def _strongest(results: Mapping[View, Protection]) -> str:
    """Which releases the strongest result is from."""
    strongest = min(results, key=lambda view: results[view].score)
    joined = ", with the rows of one person known to belong together," if len(strongest.numbers) > 1 else ""
    return f"Strongest: {strongest.name}{joined} for {len(strongest.places[0]):,} people."


def _not_combined(views: Iterable[View], numbers: Iterable[int]) -> Iterator[str]:
    """Which releases are in no view together with another."""
    together = {number for view in views if len(view.numbers) > 1 for number in view.numbers}
    alone = [str(number) for number in numbers if number not in together]
    if alone:
        *others, last = alone
        which = f"Releases {', '.join(others)} and {last}" if others else f"Release {last}"
        yield (
            f"{which} could not be combined (other columns, scales or people, or no known noise in some "
            "direction): the strongest counts."
        )


def _not_compared(results: Mapping[View, Protection]) -> Iterator[str]:
    """The strongest of the results that are about something else: scores where rows count, or rows."""
    if results:
        view = min(results, key=lambda one: results[one].score)
        these, those = ("scores", "rows") if view.of_scores else ("rows", "scores")
        score = down(results[view].score)
        yield f"For {these}, which are not compared with {those}, protection was {score} ({view.name})."


def _worst(
    results: Mapping[View, Protection], case: Case, said: Mapping[str, Any], notes: tuple[str, ...]
) -> Protection:
    strongest = min(results, key=lambda view: results[view].score)
    own = results[strongest]
    detail = {k: v for k, v in own.detail.items() if k not in {"settings", "confidence"}}
    settings = {f"{view.name}: {way}": s for view, p in results.items() for way, s in p.settings.items()}
    detail |= {"strongest_release": strongest.name, "of_scores": strongest.of_scores, **said}
    detail["notes"] = (*detail.get("notes", ()), *notes)
    return worst(settings, own.bound, confidence=case.confidence, **detail)
