"""Scores against rows at the same ε: who is reached, and what is earned, among people outside the sample.

Half of each table is labelled, and the other half is decided about. Real tables that are no part of the
project are measured where they lie beside it, and left out elsewhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.special import stdtrit

from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.simulated_scores import ROWS, SCORES, WITHOUT_PRIVACY, simulate_scores
from benchmarks.timing import Say
from targetdp._core import Floats
from targetdp.guarantee import Guarantee
from targetdp.normalization import data_scales, normalize
from targetdp.populations import draw, public_tables
from targetdp.programs import QUOTA, TOGO_ADULTS, Aid, Lending, Loans, loans_at_rates

BESIDE = Path(__file__).parents[2] / "shared" / "data"
VIETNAM = "Vietnam, 4,201 households"
EPSILON = 4.0
DISTANCES = (0.25, 1.0, 2.0)
PLAYS, QUICK_PLAYS = 20, 4
BARS = {0.25: 0.745, 2.0: 0.67}
WAYS = (ROWS, SCORES, WITHOUT_PRIVACY)

Case = Callable[[], tuple[Floats, Aid | Lending]]


@dataclass(frozen=True)
class Played:
    """A table at one B: figures of each way in each play."""

    table: str
    B: float
    program: Aid | Lending
    figures: dict[str, dict[str, Floats]]

    def mean(self, way: str, metric: str) -> float:
        """Over all plays."""
        return float(self.figures[metric][way].mean())

    def gain(self, metric: str) -> tuple[float, float]:
        """Of scores over rows, simulation by simulation, and half the width of its 95% interval."""
        gains = self.figures[metric][SCORES] - self.figures[metric][ROWS]
        half = -float(stdtrit(len(gains) - 1, 0.025)) * gains.std(ddof=1) / np.sqrt(len(gains))
        return float(gains.mean()), float(half)


def measure(effort: Effort, say: Say) -> Section:
    """Simulate both on every table at hand."""
    times = QUICK_PLAYS if effort.quick else PLAYS
    found = []
    for name, case in cases():
        for B in DISTANCES:
            say(f"{name}, B = {B:g}")
            found.append(_played(name, case, B, times))
    aid = new_table(
        f"Score: aid for the poorest {QUOTA:.0%} outside the sample, ε = {EPSILON:g} for everybody",
        "table", "B", "rows", "score", "gain", "without privacy", "more poor people reached",
        caption=f"Accuracy, mean of {times} plays, half of the table labelled; a lottery has "
        f"{1 - 2 * QUOTA * (1 - QUOTA):.3f}. People: of {TOGO_ADULTS // 2:,} outside the sample.",
    )  # fmt: skip
    lending = new_table(
        f"Score: loans for those outside the sample, ε = {EPSILON:g} for everybody",
        "table", "B", "rows", "score", "gain", "without privacy", "profit: rows", "score", "without",
        caption=f"Accuracy and profit for each applicant, mean of {times} plays, half of the table labelled.",
    )  # fmt: skip
    for one in found:
        (aid if isinstance(one.program, Aid) else lending).add_row(*_cells(one))
    return Section([aid, lending], _bars(found, quick=effort.quick), _record(found))


def _played(name: str, case: Case, B: float, times: int) -> Played:
    X, program = case()
    promise = Guarantee(B, EPSILON)
    metrics = ("accuracy", "exclusion_errors") if isinstance(program, Aid) else ("accuracy", "profit")
    plays = []
    for seed in range(times):
        sample = np.zeros(len(X), dtype=bool)
        sample[np.random.default_rng([seed, 1]).permutation(len(X))[: len(X) // 2]] = True
        plays.append(
            simulate_scores(program, X, sample, promise, promise, np.random.default_rng(seed)).outside
        )
    figures = {
        metric: {way: np.array([play[way][metric] for play in plays]) for way in WAYS} for metric in metrics
    }
    return Played(name, B, program, figures)


def _cells(one: Played) -> list[str]:
    gain, half = one.gain("accuracy")
    accuracy = [f"{one.mean(way, 'accuracy'):.3f}" for way in WAYS]
    cells = [one.table, f"{one.B:g}", accuracy[0], accuracy[1], f"{gain:+.3f} ± {half:.3f}", accuracy[2]]
    if isinstance(one.program, Aid):
        more, error = one.gain("exclusion_errors")
        return [*cells, f"{-more:,.0f} ± {error:,.0f}"]
    people = one.program.people.count / 2
    profits = [one.mean(way, "profit") / people for way in WAYS]
    digits = 0 if max(map(abs, profits)) >= 1_000 else 2
    return [*cells, *(f"{profit:,.{digits}f}" for profit in profits)]


def _bars(found: list[Played], *, quick: bool) -> list[Bar]:
    bars = [
        Bar(
            f"score, {one.table}, B = {one.B:g}: accuracy", one.mean(SCORES, "accuracy"),
            BARS[one.B], "at least", binding=not quick,
        )
        for one in found if one.table == VIETNAM and one.B in BARS
    ]  # fmt: skip
    upper = [gain + half for gain, half in (one.gain("accuracy") for one in found)]
    return [
        *bars,
        Bar("score: gain over rows, upper end, on the worst table", min(upper), 0.0, "at least"),
    ]


def _record(found: list[Played]) -> dict[str, object]:
    return {
        f"{one.table}, B = {one.B:g}": {
            metric: {way: values.tolist() for way, values in ways.items()}
            for metric, ways in one.figures.items()
        }
        for one in found
    }


def cases() -> Iterator[tuple[str, Case]]:
    """Every table that is at hand, the invented ones first."""
    yield "Togo, invented", _togo
    yield "Nigeria, invented", _nigeria
    try:
        for case in public_tables().values():
            case()
    except ImportError:  # the extra is not installed
        pass
    else:
        yield "Vietnam, 5,999 households", _whole_vietnam
        yield "credit, 4,454 applicants", _applicants
    if BESIDE.is_dir():
        yield VIETNAM, _vietnam
        yield "credit cards, 20,788 clients", _clients


def _ball(X: Floats) -> Floats:
    return normalize(X, data_scales(X)).X


def _togo() -> tuple[Floats, Aid]:
    people = draw("togo")
    return _ball(people.X), Aid(people.y, QUOTA, TOGO_ADULTS)


def _nigeria() -> tuple[Floats, Lending]:
    people = draw("nigeria")
    loans = Loans(*(people.column(name) for name in ("loan_amount", "revenue", "interest")))
    return _ball(people.X), Lending(people.y, loans)


def _whole_vietnam() -> tuple[Floats, Aid]:
    people = public_tables()["vietnam"]()
    return _ball(people.X), Aid(people.y, QUOTA, TOGO_ADULTS)


def _applicants() -> tuple[Floats, Lending]:
    people = public_tables()["credit"]()
    loans = loans_at_rates(people.column(people.money[0]).astype(np.float64), revenue=0.4, interest=0.02)
    return _ball(people.X), Lending(people.y, loans)


def _vietnam() -> tuple[Floats, Aid]:
    X, y, _ = _kept("vietnam_4201x10.parquet")
    return X, Aid(y, QUOTA, TOGO_ADULTS)


def _clients() -> tuple[Floats, Lending]:
    X, y, amount = _kept("credit_20788x15.parquet")
    return X, Lending(y, loans_at_rates(amount, revenue=0.15, interest=0.02))


def _kept(name: str) -> tuple[Floats, Floats, Floats]:
    """Features in the unit ball, the target and, for loans, the amount."""
    table = pq.read_table(BESIDE / name)
    other = {"y", "y_default0", "amount"}
    names = [n for n in table.column_names if n not in other and not n.startswith("g_")]
    X = np.column_stack([table[n].to_numpy() for n in names])
    amount = table["amount"].to_numpy() if "amount" in table.column_names else np.zeros(len(X))
    return _ball(X), table["y"].to_numpy(), amount
