"""A release beside what it must be compared with: no privacy, classic differential privacy, k-anonymity."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from targetdp import check
from targetdp.mechanisms.base import Mechanism, NoiseMechanism
from targetdp.mechanisms.mondrian import Mondrian
from targetdp.mechanisms.partition import Partitioned
from targetdp.normalization import clip_rows
from targetdp.programs.base import Program, Result, plain
from targetdp.programs.cost import CONFIDENCE, Changes, changes
from targetdp.programs.folds import Folds
from targetdp.progress import Progress, Silent
from targetdp.typing import Floats

STATUS_QUO, UNCLIPPED, RELEASE, CLASSIC = "status quo", "not clipped", "release", "classic"
GROUP_SIZES = tuple(range(2, 11))
"""Of the paper's k-anonymity."""
WHOLE_BALL = 2.0
"""No two rows of the unit ball are farther apart: at this B the guarantee is classic differential privacy."""


def k_anonymity(group_size: int) -> str:
    """The name of k-anonymity in a comparison."""
    return f"k-anonymity {group_size}"


def classic(mechanism: NoiseMechanism) -> NoiseMechanism:
    """The same mechanism at B = 2 with the same ε and δ: classic differential privacy."""
    if isinstance(mechanism, Partitioned):
        return replace(mechanism, mechanism=classic(mechanism.mechanism))
    claim = getattr(mechanism, "claimed", mechanism)
    settings = {
        name: getattr(claim if hasattr(claim, name) else mechanism, name)
        for name in inspect.signature(type(mechanism)).parameters
    }
    return type(mechanism)(**(settings | {"B": WHOLE_BALL}))


def baselines(
    mechanism: NoiseMechanism, group_sizes: Iterable[int] = GROUP_SIZES
) -> dict[str, Mechanism | None]:
    """What a release with this mechanism is compared with, by name; the status quo has no mechanism."""
    found: dict[str, Mechanism | None] = {STATUS_QUO: None, CLASSIC: classic(mechanism)}
    return found | {k_anonymity(size): Mondrian(size) for size in group_sizes}


@dataclass(frozen=True)
class Entry:
    """One way to treat the table: what the program did with it, and what that changed.

    Ways without noise have one result; the others one for each simulation.
    """

    name: str
    mechanism: Mechanism | None
    results: tuple[Result, ...] = field(repr=False)
    changes: Changes | None = field(repr=False)
    against: Mapping[str, float]

    @property
    def metrics(self) -> dict[str, float]:
        """Every metric, for everybody: the mean over simulations."""
        return {
            name: float(np.mean([result.figures[name][0] for result in self.results]))
            for name in self.results[0].figures
        }

    @property
    def by_group(self) -> dict[str, dict[str, dict[str, float]]]:
        """Every metric by group column and group: the mean over simulations."""
        first = self.results[0]
        means = np.mean([np.stack(list(result.figures.values()), 1) for result in self.results], axis=0)
        return first.people.groups.nested(
            [dict(zip(first.figures, row, strict=True)) for row in means.tolist()]
        )

    @property
    def summary(self) -> str:
        """One line for people."""
        result = self.results[0]
        if self.changes is None:
            return f"{self.name}: {result.summary}"
        change = self.changes.everybody[result.headline]
        low, high = change.interval
        more = "more" if change.difference >= 0 else "fewer" if "people" in result.counted else "less"
        return (
            f"{self.name}: {result.counted} {change.after:,.0f}, {abs(change.difference):,.0f} {more} than "
            f"without privacy ({self.changes.confidence:.0%} interval {low:+,.0f} to {high:+,.0f}); accuracy "
            f"{self.metrics['accuracy']:.3f}."
        )

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON. No person is in it."""
        guarantee = None if self.mechanism is None else self.mechanism.guarantee
        record: dict[str, Any] = plain(
            {
                "name": self.name,
                "mechanism": None if self.mechanism is None else str(self.mechanism),
                "guarantee": None if guarantee is None else asdict(guarantee),
                "simulations": len(self.results),
                "ties": float(np.mean([result.ties for result in self.results])),
                "metrics": self.metrics,
                "groups": self.by_group,
                "against": dict(self.against),
                "changes": None if self.changes is None else self.changes.record(),
                "summary": self.summary,
            }
        )
        return record


@dataclass(frozen=True)
class Comparison:
    """A release and its baselines, by name."""

    entries: Mapping[str, Entry]

    def __getitem__(self, name: str) -> Entry:
        return self.entries[check.choice("name", name, self.entries)]

    @property
    def summary(self) -> tuple[str, ...]:
        """One line for each."""
        return tuple(entry.summary for entry in self.entries.values())

    def record(self) -> list[dict[str, Any]]:
        """Plain data, ready for JSON."""
        return [entry.record() for entry in self.entries.values()]


def compare(
    program: Program,
    X: Any,
    folds: Folds,
    mechanism: NoiseMechanism,
    *,
    rng: np.random.Generator | None = None,
    simulations: int = 1,
    group_sizes: Iterable[int] = GROUP_SIZES,
    unclipped: Any = None,
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate a program on a simulated release, and on everything that it must be compared with.

    X are rows in the unit ball (longer ones are clipped, as every mechanism does); the status quo is the
    program on these. ``unclipped``, the scaled rows before clipping, adds what clipping alone costs.
    Nothing is released: all noise is simulated.

    Guarantees: the figures of one entry do not depend on which others are there.
    """
    check.instance("program", program, Program)
    check.instance("mechanism", mechanism, NoiseMechanism)
    simulations = check.integer("simulations", simulations, at_least=1)
    seed = int((check.generator(rng) or np.random.default_rng()).integers(2**63))
    watch = progress or Silent()
    rows = clip_rows(check.table(X))
    ways: dict[str, Mechanism | None] = {STATUS_QUO: None, RELEASE: mechanism}
    ways |= baselines(mechanism, group_sizes)
    watch.phase("comparing", len(ways))
    status_quo = program.evaluate(rows, folds, _stream(seed, STATUS_QUO, 0))
    entries = {STATUS_QUO: _entry(STATUS_QUO, None, (status_quo,), None, confidence)}
    if unclipped is not None:
        today = program.evaluate(unclipped, folds, _stream(seed, UNCLIPPED, 0))
        entries[UNCLIPPED] = _entry(UNCLIPPED, None, (today,), status_quo, confidence)
    for name, way in ways.items():
        if way is not None:
            times = simulations if isinstance(way, NoiseMechanism) else 1
            results = tuple(
                _simulated(program, rows, folds, way, _stream(seed, name, time)) for time in range(times)
            )
            entries[name] = _entry(name, way, results, status_quo, confidence)
        watch.advance(1)
    return Comparison(entries)


def _simulated(
    program: Program, rows: Floats, folds: Folds, mechanism: Mechanism, rng: np.random.Generator
) -> Result:
    return program.evaluate(mechanism.privatize(rows, rng), folds, rng)


def _stream(seed: int, name: str, time: int) -> np.random.Generator:
    """Randomness of its own for each entry and simulation, whatever else is compared."""
    return np.random.default_rng([seed, time, *name.encode()])


def _entry(
    name: str,
    mechanism: Mechanism | None,
    results: tuple[Result, ...],
    status_quo: Result | None,
    confidence: float,
) -> Entry:
    if status_quo is None:
        return Entry(name, mechanism, results, None, {})
    relative = [result.against(status_quo) for result in results]
    means = {key: float(np.mean([one[key][0] for one in relative])) for key in relative[0]}
    return Entry(name, mechanism, results, changes(status_quo, results, confidence=confidence), means)
