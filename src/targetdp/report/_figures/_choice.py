"""What figures show of a finished sweep: its releases, which of them are drawn, and the words below."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from targetdp.normalization import CONDITIONS, RowRule
from targetdp.programs import Objective, objective_of
from targetdp.report._figures import _style as style
from targetdp.report._figures._style import delta_words, epsilon_words, printable
from targetdp.tradeoff import (
    CLASSIC,
    MARK,
    PROJECTION,
    SOURCE,
    STATUS_QUO,
    Cell,
    Estimate,
    Grid,
    read_figures,
    read_run,
)
from targetdp.tradeoff import shown as told

_PEOPLE = {"synthetic": "invented people", "public": "people of a public table"}
_UNDEFINED = Estimate()
_GUESSES = ("best_guess", "best_guess_at_2")


@dataclass(frozen=True)
class Release(Cell):
    """A cell of the grid with its figures."""

    figures: Mapping[str, Estimate] = field(default_factory=dict)

    def figure(self, metric: str) -> Estimate:
        """A figure; undefined if the sweep did not measure it."""
        return self.figures.get(metric, _UNDEFINED)


@dataclass(frozen=True)
class SweptProgram:
    """A program and every release that was tried on it.

    ``metric`` is what the program is for, ``best`` says which of its values is, and ``unit`` what it is
    counted in. ``chance`` is the accuracy of deciding without looking at anyone, if known. ``scales`` names
    where column scales came from, if known. Of rows that are not clipped (``rows``) nothing is promised.
    ``first_look`` says why the sweep is a quick look; empty if it is none.
    """

    name: str
    metric: str
    best: str
    unit: str
    people: int
    simulations: int
    source: str
    for_the_data_holder_only: bool
    releases: tuple[Release, ...]
    chance: float | None = None
    kind: str | None = None
    scales: str | None = None
    rows: RowRule = "clip"
    first_look: tuple[str, ...] = ()

    @property
    def objective(self) -> Objective:
        """What the program is for, in its own words."""
        return objective_of({"kind": self.kind, "objective": {"metric": self.metric, "best": self.best}})

    @property
    def status_quo(self) -> Release:
        """The program as it is, without privacy."""
        return next(one for one in self.releases if one.mechanism == STATUS_QUO)

    @property
    def alike(self) -> tuple[Release, ...]:
        """The k-anonymous releases."""
        return tuple(one for one in self.releases if one.group_size is not None)

    @property
    def noisy(self) -> tuple[Release, ...]:
        """Releases with noise, and so with a guarantee."""
        return tuple(one for one in self.releases if one.B is not None)

    @property
    def whom(self) -> str:
        """How many people, and whose rows they are."""
        return f"{self.people:,} {_PEOPLE.get(self.source, 'people, confidential rows')}"

    @property
    def label(self) -> str:
        """Its name, and how its rows came into the ball where that is not as a release does it."""
        return printable(self.name) + ("" if self.rows == "clip" else f" (rows: {self.rows})")

    @property
    def condition(self) -> str | None:
        """What must be said of a guarantee, by how the rows and the column scales came about."""
        if self.rows != "clip":
            return f"{self.label}: rows are not clipped, so that no guarantee holds; B only names the noise."
        if self.scales not in CONDITIONS:
            return None
        return CONDITIONS[self.scales][0] + (" Their ε comes on top." if self.scales == "private" else "")


def read_program(folder: Path) -> SweptProgram:
    """Read a finished sweep; one that has not ended, or was changed by hand, is refused."""
    try:
        run, figures = read_run(folder), read_figures(folder)
    except KeyError as error:
        raise ValueError(
            f"{folder}: run.json lacks {error}, so it was made by another version: run the sweep again in a "
            "new folder"
        ) from error
    made_of = run["made_of"]
    releases = (Release(**cell, figures=figures.get(cell["name"], {})) for cell in run["cells"])
    return SweptProgram(
        name=run["program"], metric=run["objective"]["metric"], best=run["objective"]["best"],
        unit=str(made_of.get("unit", "")), people=run["people"], simulations=int(made_of["simulations"]),
        source=run[SOURCE], for_the_data_holder_only=run[MARK], releases=tuple(releases),
        chance=run.get("chance"), kind=run.get("kind"), rows=run["rows"],
        scales=(made_of.get("scales") or {}).get("source"), first_look=tuple(run["first_look"]),
    )  # fmt: skip


# Which releases of a sweep are drawn: the paper's points, or the nearest there are, by fixed rules.
# 1. Mechanisms: the projection as printed, least noise and score. Where a sweep lacks one, its others
#    take the place, in the sweep's order; never more than three. Decisions are drawn beside them.
# 2. ε: the paper's total (3.9999 for aid, 2.9999 for lending), or the nearest by ratio; of two, the
#    smaller. Where the projection reaches it in several ways: k nearest to 10,000, then the largest ε₂, as
#    in the paper.
# 3. Targeted DP: the paper's B (0.25 for aid, 0.1 for lending), or the nearest by ratio below 2; of two,
#    the larger. Classic DP is B = 2.
# 4. k-anonymity: the smallest group size, 2 in the paper.

PAPER = {"exclusion_errors": (0.25, 3.9999), "profit": (0.1, 2.9999)}
"""B and ε of the paper's green stars, by what the program is for (Figures 2 and 3)."""
_OTHER = PAPER["exclusion_errors"]
_K = 10_000
_FIRST, _MOST = Grid.mechanisms, 3
_BESIDE = ("decision", "decision-agreed")
"""Drawn wherever a sweep has them: a release of another kind, by a private and by an agreed sample."""


@dataclass(frozen=True)
class ShownCells:
    """What is drawn of a sweep. ``curves`` has for each mechanism its releases by B, all at one ε and δ."""

    program: SweptProgram
    curves: Mapping[str, tuple[Release, ...]]
    epsilon: float | None
    delta: float | None
    B: float | None
    alike: Release | None
    left_out: tuple[str, ...]

    @property
    def status_quo(self) -> Release:
        """The program as it is, without privacy."""
        return self.program.status_quo

    def classic(self, mechanism: str) -> Release | None:
        """Classic differential privacy."""
        return self._at(mechanism, CLASSIC)

    def targeted(self, mechanism: str) -> Release | None:
        """Targeted differential privacy at the B that stands for it."""
        return None if self.B is None else self._at(mechanism, self.B)

    def notes(self) -> tuple[str, ...]:
        """Where the sweep did not have the paper's own points, in words."""
        B, epsilon = PAPER.get(self.program.metric, _OTHER)
        notes = []
        if self.B is not None and self.B != B:
            notes.append(
                f"{self.program.name}: targeted DP is shown at B = {self.B:g}, nearest to the paper's {B:g}"
            )
        if self.epsilon is not None and self.epsilon != epsilon:
            notes.append(
                f"{self.program.name}: ε = {self.epsilon:g} is shown, the nearest to the paper's {epsilon:g}"
            )
        if self.alike is not None and self.alike.group_size != 2:
            notes.append(f"{self.program.name}: the smallest groups alike are of {self.alike.group_size}")
        if self.left_out:
            notes.append(f"{self.program.name}: not drawn are {', '.join(self.left_out)}")
        return tuple(notes)

    def _at(self, mechanism: str, B: float) -> Release | None:
        return next((one for one in self.curves.get(mechanism, ()) if one.B == B), None)


def choose(program: SweptProgram) -> ShownCells:
    """Choose by the rules above."""
    B, epsilon = PAPER.get(program.metric, _OTHER)
    noisy = program.noisy
    there = list(dict.fromkeys(one.mechanism for one in noisy))
    first = [name for name in _FIRST if name not in _BESIDE]
    kinds = sorted(set(there) - set(_BESIDE), key=[*first, *there].index)[:_MOST]
    drawn = [*kinds, *(name for name in _BESIDE if name in there)]
    shown = _nearest(epsilon, [one.epsilon for one in noisy if one.epsilon is not None], smaller=True)
    curves = {name: _curve(name, noisy, shown) for name in drawn}
    below = [one.B for curve in curves.values() for one in curve if one.B is not None and one.B < CLASSIC]
    return ShownCells(
        program=program, curves=curves, epsilon=shown, B=_nearest(B, below, smaller=False),
        delta=max((one.delta for one in noisy if one.delta is not None), default=None),
        alike=min(program.alike, key=lambda one: one.group_size or 0, default=None),
        left_out=tuple(name for name in there if name not in drawn),
    )  # fmt: skip


def _curve(mechanism: str, noisy: tuple[Release, ...], epsilon: float | None) -> tuple[Release, ...]:
    best: dict[float, Release] = {}
    for one in noisy:
        if one.mechanism == mechanism and one.epsilon == epsilon and one.B is not None:
            best[one.B] = min(best.get(one.B, one), one, key=_from_the_papers)
    return tuple(best[B] for B in sorted(best))


def _from_the_papers(one: Release) -> tuple[float, float]:
    return abs(math.log((one.k or _K) / _K)), -(one.epsilon2 or 0.0)


def _nearest(wanted: float, values: list[float], *, smaller: bool) -> float | None:
    """The value with the smallest ratio to what is wanted, up to rounding."""
    return min(
        values,
        key=lambda x: (round(abs(math.log(x / wanted)), 9), x if smaller else -x),
        default=None,
    )


# The words under a figure: what was compared, on whom, and on which conditions a guarantee stands.

_HOLDS = "A guarantee (B, ε, δ) is for a release, one row per person, between people within B of each other."


def guarantees(shown: Sequence[ShownCells]) -> str:
    """The ε and δ of each program, what the printed noise truly gives, and the conditions."""
    noisy = [one for one in shown if one.epsilon is not None and one.delta is not None]
    parts = [_claim(one) for one in noisy if one.program.rows == "clip"]
    claimed = [f"Claimed: {'; '.join(parts)}.", _HOLDS] if parts else []
    conditions = dict.fromkeys(one.program.condition for one in noisy)
    return " ".join([*claimed, *(text for text in conditions if text)])


def without_guarantee(shown: Sequence[ShownCells]) -> str:
    """What of a figure promises nothing."""
    if all(one.program.rows != "clip" for one in shown):
        return "Nothing that is drawn here has a guarantee."
    more = any(one.program.rows != "clip" for one in shown)
    which = (
        "The status quo, k-anonymity and rows that are not clipped"
        if more
        else "The status quo and k-anonymity"
    )
    return f"{which} have no guarantee."


def intervals(shown: Sequence[ShownCells], *, attacks: bool) -> str:
    """What the intervals know; an attack on a release that was tried once has its own."""
    counts = list(dict.fromkeys(one.program.simulations for one in shown))
    if counts == [1]:
        return (
            "Every release was tried once: how other noise would come out is not known. Whiskers: 95% "
            "intervals that know other samples of people."
        )
    many = " and ".join(f"{count:,}" for count in counts)
    means = f"Whiskers: 95% intervals over {many} simulations (other noise, and other samples of people)"
    if not attacks:
        return f"{means}."
    return f"{means}; those of protection know other noise, of releases tried once other people."


def best_guesses(shown: Sequence[ShownCells]) -> str:
    """How often the best guess of any attacker is right, of what is drawn as targeted and as classic DP."""
    parts = [
        f"{named(one, shown)}{style.of(name).words} at B = {release.B:g} "
        + " and ".join(told(release.figure(guess).mean, guess) for guess in _GUESSES)
        for one in shown for name in one.curves
        for release in (one.targeted(name), one.classic(name))
        if release is not None and set(_GUESSES) <= set(release.figures)
    ]  # fmt: skip
    if not parts:
        return ""
    return f"The best guess of any attacker is right, at distance B and at distance 2: {'; '.join(parts)}."


def named(one: ShownCells, shown: Sequence[ShownCells]) -> str:
    """A program's name before what is said of it, where there are two."""
    return f"{one.program.label}: " if len(shown) > 1 else ""


def first_look(shown: Sequence[ShownCells]) -> tuple[str, ...]:
    """Why what is drawn is a quick look, with the program's name where it is not true of all."""
    whose: dict[str, list[str]] = {}
    for one in shown:
        for reason in one.program.first_look:
            whose.setdefault(reason, []).append(named(one, shown))
    return tuple(
        reason if len(names) == len(shown) else f"{names[0]}{reason}" for reason, names in whose.items()
    )


def ends(estimate: Estimate) -> list[float]:
    """The figure and the ends of its interval, as far as they are known."""
    return [end for end in (estimate.mean, estimate.low, estimate.high) if end is not None]


def heading(one: ShownCells) -> str:
    """A program and its kind."""
    kind = f": {printable(one.program.kind, 16)} program" if one.program.kind else ""
    return f"{one.program.label}{kind}"


def whose(shown: Sequence[ShownCells]) -> str:
    """How many people each program has, and whose rows they are."""
    return "; ".join(f"{one.program.label}: {one.program.whom}" for one in shown) + "."


def _claim(one: ShownCells) -> str:
    assert one.epsilon is not None  # noqa: S101 (the caller looked)
    assert one.delta is not None  # noqa: S101
    claim = f"{one.program.label} {epsilon_words(one.epsilon)}, {delta_words(one.delta)}"
    true = [release.figure("exact_epsilon").mean for release in one.curves.get(PROJECTION, ())]
    known = [epsilon for epsilon in true if epsilon is not None]
    return f"{claim} (the noise as printed truly gives {epsilon_words(max(known))})" if known else claim
