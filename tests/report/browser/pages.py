"""Small sweeps and their pages, each made once for all workers: usual results, and odd ones."""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from support.tradeoff import people, study
from targetdp.normalization import data_scales, normalize
from targetdp.programs import Aid, Folds, Lending, loans_at_rates
from targetdp.report import content, page
from targetdp.tradeoff import SUMMARY, Cell, Constraint, Grid, Study, Sweep, find_sweep, run
from targetdp.tradeoff._study import metadata
from targetdp.tradeoff._sweep_folder import RUN, sealed

GRID = Grid(B=(0.25, 0.5, 2.0), epsilon1=(1.0, 3.0), epsilon2=(0.3, 0.9), group_sizes=(2, 5))
"""Two ε₁ and two ε₂: four ε, and projections that are equal in distribution."""
FEW = Grid(B=(0.5, 2.0), epsilon1=(3.0,), epsilon2=(0.9,), group_sizes=(2,))
ONE_CELL = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), group_sizes=(), mechanisms=("least-noise",))
THOUSAND = Grid(
    B=tuple(round(0.02 * i, 2) for i in range(1, 101)), epsilon1=tuple(range(1, 11)), epsilon2=(0.5,),
    group_sizes=(), mechanisms=("gaussian",),
)  # fmt: skip
"""100 B and 10 ε."""

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    '=HYPERLINK("http://example.org")',
    "</script><!-- {{ 7 * 7 }} @features@ $& ${1} \u2028 &amp; 'x'",
)
"""Names that a careless page would run, load, or show as something else."""


@dataclass(frozen=True)
class Made:
    """A finished sweep, and its page."""

    sweep: Path
    html: Path

    @property
    def run(self) -> Mapping[str, Any]:
        found: dict[str, Any] = json.loads((self.sweep / RUN).read_bytes())
        return found

    @property
    def cells(self) -> dict[str, Cell]:
        return {cell["name"]: Cell(**cell) for cell in self.run["cells"]}


def made(shared: Path, name: str) -> Made:
    """The page of that name: made by whoever asks first."""
    folder = shared / f"page-{name}"
    with (shared / f"page-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = Made(folder / "sweep", folder / "page.html")
        if not found.html.exists():
            folder.mkdir(exist_ok=True)
            asked = MAKERS[name](found.sweep) or ()
            text = page(content(found.sweep, asked))
            draft = folder / "draft.html"
            draft.write_text(text, encoding="utf-8")
            draft.rename(found.html)
    return found


def aid(folder: Path) -> list[Constraint]:
    X, _, _ = people()
    run(Sweep(study(scales=data_scales(X)), grid=GRID, simulations=3), folder)
    return [Constraint("singling_out", at_least=0.3), Constraint("accuracy", at_least=0.1)]


def lending(folder: Path) -> list[Constraint]:
    run(Sweep(study(lending=True, unit="$"), grid=GRID, simulations=3), folder)
    return [Constraint("singling_out", at_least=least) for least in (0.3, 0.1)]  # asked for twice


def togo(folder: Path) -> list[Constraint]:
    """The paper's program with its own names, groups and numbers of people, which take more room."""
    grid = Grid(
        B=(0.75, 2.0), epsilon1=(3.0,), epsilon2=(0.9999,), group_sizes=(),
        mechanisms=("least-noise", "score-laplace", "decision"),
    )  # fmt: skip
    run(Sweep(find_sweep("togo").study, grid=grid, simulations=2), folder)
    return [Constraint("singling_out", at_least=0.8), Constraint("accuracy", at_least=0.1)]


def bare(folder: Path) -> None:
    """One column, one setting beside today's table, one simulation, no groups: the least there can be."""
    X, y, _ = people()
    rows = normalize(X[:, :1], data_scales(X[:, :1])).X
    program = Aid(y, 0.3)
    made = Study("bare", "public", ("calls",), rows, program, Folds(len(y)))
    run(Sweep(made, grid=ONE_CELL, simulations=1), folder)


def losses(folder: Path) -> list[Constraint]:
    """Loans that lose money even today."""
    _, y, groups = people()
    repaid = (y > np.quantile(y, 0.3)).astype(np.float64)
    loans = loans_at_rates(np.full(len(y), 1000.0), revenue=0.001, interest=0.05)
    program = Lending(repaid, loans, groups={"region": groups})
    run(Sweep(replace(study(unit="$"), program=program), grid=FEW, simulations=2), folder)
    return [Constraint("distinguishing", at_least=0.0)]


def names(folder: Path) -> list[Constraint]:
    X, y, groups = people()
    hostile = [HOSTILE[1] if group == "north" else HOSTILE[2] for group in groups]
    program = Aid(y, 0.3, groups={HOSTILE[0].replace("=", "&lt;"): hostile})  # the program refuses =
    scales = data_scales(X)
    given = replace(study(scales=scales), name=HOSTILE[3], features=HOSTILE, program=program)
    run(Sweep(given, grid=FEW, simulations=2), folder)
    return [Constraint("singling_out", at_least=0.01)]


def confidential(folder: Path) -> list[Constraint]:
    run(Sweep(study("confidential"), grid=FEW, simulations=2), folder)
    return [Constraint("singling_out", at_least=0.01)]


def unprotected(folder: Path) -> list[Constraint]:
    """k-anonymity only: nothing can be chosen."""
    grid = Grid(mechanisms=(), group_sizes=(2, 5))
    run(Sweep(study(), grid=grid, simulations=1), folder)
    return [Constraint("singling_out", at_least=0.1)]


def undefined(folder: Path) -> list[Constraint]:
    """Every second setting has no figure of the program, and an attack had none at all."""
    sweep = Sweep(study(), grid=GRID.quick())

    def figures(number: int) -> Iterator[tuple[str, str, Any]]:
        lost = number % 2 == 1
        yield "exclusion_errors", "", None if lost else (1000.0 + number, 900.0, 1100.0 + number)
        yield "extra_exclusion_errors", "", None if lost else (float(number), -100.0, 100.0 + number)
        yield "population", "", (15_000.0,) * 3
        yield "singling_out", "worst", (0.5, 0.4, 0.6)
        yield "inference", "worst", None
        yield "distinguishing", "exact", (0.01 * number,) * 3

    invent(folder, sweep, figures)
    return [Constraint("singling_out", at_least=0.1)]


def thousand(folder: Path) -> list[Constraint]:
    """A thousand settings with invented figures, many of them equal, or just at the end of an interval."""
    rng = np.random.default_rng(6)
    X, y, _ = people(n=40)
    rows = normalize(X[:, :2], data_scales(X[:, :2])).X
    sweep = Sweep(
        Study("thousand", "synthetic", ("calls", "texts"), rows, Aid(y, 0.3), Folds(40)), grid=THOUSAND
    )

    def figures(number: int) -> Iterator[tuple[str, str, Any]]:
        errors = float(rng.integers(1, 200)) / 3
        low, high = errors - float(rng.integers(0, 4)) / 3, errors + float(rng.integers(0, 4)) / 3
        yield "exclusion_errors", "", (errors, low, high)
        yield "extra_exclusion_errors", "", (errors - 10.1, low - 10.1, high - 10.1)
        yield "population", "", (40.0,) * 3
        for metric, setting in (("singling_out", "worst"), ("inference", "worst")):
            score = round(float(rng.uniform(0.1, 0.9)), 2)
            yield metric, setting, (score, score - 0.05, score + 0.05)
        yield "distinguishing", "exact", (round(float(rng.uniform(0, 1)), 1),) * 3
        yield "best_guess", "", (round(float(rng.uniform(0.5, 1)), 2),) * 3

    invent(folder, sweep, figures)
    return [Constraint("singling_out", at_least=0.3)]


def unequal(folder: Path) -> list[Constraint]:
    """The best setting for the program puts 56,558 of 74,704 more missed people on women; others do not."""
    _, y, _ = people()
    sexes = ["female", "male"] * (len(y) // 2)
    sweep = Sweep(
        replace(study("public"), program=Aid(y, 0.3, population=15_000, groups={"sex": sexes})),
        grid=FEW, simulations=50,
    )  # fmt: skip

    def figures(number: int) -> Iterator[tuple[str, str, Any]]:
        women, men = ((0, 0), (56_558, 18_146), (41_000, 40_000))[min(number, 2)]
        missed = float(women + men + (0 if number < 3 else 1000 * number))
        yield "exclusion_errors", "", (767_000 + missed,) * 3
        yield "extra_exclusion_errors", "", (missed, missed - 100, missed + 100)
        yield "population", "", (4_950_000.0,) * 3
        for metric in ("singling_out", "inference"):
            yield metric, "worst", (0.9, 0.89, 0.91)
        yield "distinguishing", "exact", (0.1,) * 3
        rates = {}
        for sex, more in (("female", women), ("male", men)):
            yield "population", f"sex={sex}", (2_475_000.0,) * 3
            yield "extra_exclusion_errors", f"sex={sex}", (more, more - 50.0, more + 50.0)
            rates[sex] = rate, rise = 0.5 + more / 700_000, more / 700_000
            yield "exclusion_rate", f"sex={sex}", (rate, rate - 0.004, rate + 0.004)
            yield "extra_exclusion_rate", f"sex={sex}", (rise, rise - 0.002, rise + 0.002)
        rate, rise = max(rates.values())
        yield "worst_group_rate", "", (rate, rate - 0.004, rate + 0.004)
        yield "worst_group_rise", "", (rise, rise - 0.002, rise + 0.002)

    invent(folder, sweep, figures)
    return [Constraint("singling_out", at_least=0.8)]


def invent(folder: Path, sweep: Sweep, figures: Callable[[int], Iterator[tuple[str, str, Any]]]) -> None:
    """A finished sweep whose figures are ours: (mean, low, high), or None where undefined."""
    folder.mkdir(parents=True)
    (folder / RUN).write_text(json.dumps(sweep.record()))
    rows = []
    for number, cell in enumerate(sweep.cells):
        for metric, setting, told in figures(number):
            mean, low, high = told or (None, None, None)
            rows.append(
                {"cell": cell.name, "B": cell.B, "metric": metric, "setting": setting, "mean": mean,
                 "low": low, "high": high, "change": mean if metric.startswith("extra_") else None,
                 "noise": None if low is None or high is None else (high - low) / 2}
            )  # fmt: skip
    schema = pa.schema(
        [(name, pa.string()) for name in ("cell", "metric", "setting")]
        + [(name, pa.float64()) for name in ("B", "mean", "low", "high", "change", "noise")]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    told = table.replace_schema_metadata(metadata(sweep.study.source, sweep.fingerprint))
    (folder / SUMMARY).write_bytes(sealed(told))


MAKERS: dict[str, Callable[[Path], list[Constraint] | None]] = {
    make.__name__: make
    for make in (
        *(aid, lending, togo, bare, losses, names),
        *(confidential, unprotected, undefined, thousand, unequal),
    )
}
