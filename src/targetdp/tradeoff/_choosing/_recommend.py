"""Which release to make: the cells that satisfy what is asked, and the one that serves the program best."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from targetdp._core import check, up
from targetdp.guarantee import Guarantee
from targetdp.programs import objective_of
from targetdp.release import format_guarantee
from targetdp.tradeoff._choosing._exposure import Exposure
from targetdp.tradeoff._choosing._near import NearMiss, Wanted, best_on_condition, goods, near_misses
from targetdp.tradeoff._constraints import CellResult, Constraint, Estimate, read_figures
from targetdp.tradeoff._metrics import AS_IN_THE_PAPER, PROTECTIONS, in_words, shown
from targetdp.tradeoff._request_file import large_delta, request_text
from targetdp.tradeoff._rows import larger_by_parts
from targetdp.tradeoff._study import FIRST_LOOK, MARK, SOURCE
from targetdp.tradeoff._sweep import CLASSIC
from targetdp.tradeoff._sweep_folder import read_run
from targetdp.tradeoff._technology import STATUS_QUO, Cell


@dataclass(frozen=True)
class Recommendation:
    """What to release, and why; or why nothing satisfies what is asked.

    Args:
        run: The sweep's record.
        constraints: What is asked.
        results: Every cell with its figures; of cells equal in distribution one.
        chosen: The recommended cell; None if there is none.
        reason: Why, in words.
        request: The text of the request for it.
        near: Releases that would serve the program better and miss one limit by little.
        equals: How many cells that meet all limits serve the program equally well up to chance.
        on_condition: What only people could make possible and would serve the program better, in words.

    Example:
        >>> none = Recommendation({}, (), (), None, "None satisfies every constraint.", None)
        >>> none.guarantee is None
        True
    """

    run: Mapping[str, Any]
    constraints: tuple[Constraint, ...]
    results: tuple[CellResult, ...]
    chosen: CellResult | None
    reason: str
    request: str | None
    near: tuple[NearMiss, ...] = ()
    equals: int = 0
    on_condition: str = ""

    @property
    def near_misses(self) -> tuple[str, ...]:
        """Releases that would serve the program better and miss one limit by little, in words."""
        return tuple(one.words for one in self.near)

    @property
    def fitting(self) -> int:
        """How many cells meet all that is asked."""
        return sum(not one.excluded_by for one in self.results)

    @property
    def first_look(self) -> tuple[str, ...]:
        """Why the sweep is a quick look only, if it is one."""
        return tuple(self.run.get(FIRST_LOOK, ()))

    @property
    def for_the_data_holder_only(self) -> bool:
        """Whether it was made from confidential rows."""
        return bool(self.run[MARK])

    @property
    def guarantee(self) -> Guarantee | None:
        """What the recommended release promises at the least, on a table of this size."""
        return None if self.chosen is None else self.chosen.cell.promise

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before anybody asks for it."""
        warning = None if self.guarantee is None else large_delta(self.guarantee.delta)
        alike = tuple(one["words"] for one in self.run["alike_groups"])
        return alike if warning is None else (warning, *alike)

    def record(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            SOURCE: self.run[SOURCE],
            MARK: self.run[MARK],
            FIRST_LOOK: list(self.first_look),
            "program": self.run["program"],
            "constraints": [constraint.words for constraint in self.constraints],
            "recommended": None if self.chosen is None else self.chosen.name,
            "guarantee": None if self.guarantee is None else asdict(self.guarantee),
            "warnings": list(self.warnings),
            "reason": self.reason,
            "satisfy": [one.name for one in self.results if not one.excluded_by],
            "pareto_front": [one.name for one in self.results if one.on_front],
            "near_misses": list(self.near_misses),
            "excluded": {one.name: list(one.excluded_by) for one in self.results if one.excluded_by},
            "request": self.request,
        }


def recommend(folder: Path, constraints: Iterable[Constraint]) -> Recommendation:
    """Choose among the cells of a finished sweep.

    Of those that satisfy every constraint the one that serves the program best is recommended: the fewest
    exclusion errors, or the largest profit. Cells whose mean is within the noise of the best one's (all meet
    the same people, so that sampling does not tell them apart) count as equally good, and of these the one
    at which anybody's best guess at distance 2 is right least often is taken, which is derived and not only
    tried, then the one that leaves an insider and a stranger least (`Exposure.order`). On the Pareto front
    are cells than which no other is better in the program's figure and in all three protections, by their
    means. Of cells equal in distribution one is looked at: that whose ε is
    the release's own or, if none is, the next larger one.

    Cells that no request can ask for are never recommended: the status quo, k-anonymity (nothing goes out
    without a guarantee, since audits can only find what somebody thought of), and a projection with another k
    than a release's, or in random parts.

    Args:
        folder: Of a finished sweep.
        constraints: What must hold, at least one.

    Returns:
        The cell to release and why, with the request for it; or why nothing satisfies what is asked.

    Raises:
        ValueError: No constraint is given, one names a metric that was not measured, or the sweep's rows are
            not clipped, so that nothing in it can be released.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from targetdp.programs import Aid, Folds
        >>> from targetdp.tradeoff import Grid, Study, Sweep, run
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
        >>> study = Study("small", "synthetic", ("calls", "texts"), X, Aid(X[:, 0], 0.3), Folds(40))
        >>> grid = Grid(B=(2.0,), epsilon1=(3.0,), epsilon2=(0.5,), mechanisms=("gaussian",), group_sizes=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     finished = run(Sweep(study, grid, simulations=2), Path(folder) / "sweep")
        ...     recommendation = recommend(finished.folder, [Constraint("distinguishing", at_least=0.1)])
        >>> recommendation.chosen.name
        'gaussian B=2 epsilon=3.5'
    """
    constraints = tuple(constraints)
    if not constraints:
        raise ValueError(
            "constraints has 0 entries: say what is needed, such as singling out of at least 0.8"
        )
    run, figures = read_run(folder), read_figures(folder)
    if run["comparison_only"] is not None:
        raise ValueError(
            f"{folder}: {run['comparison_only']}; nothing of it can be recommended or released, and "
            "figures can be drawn"
        )
    measured = sorted({metric for estimates in figures.values() for metric in estimates})
    for constraint in constraints:
        check.choice("metric", constraint.metric, measured)
    cells = _one_of_each(Cell(**record) for record in run["cells"])
    objective = run["objective"]
    front = _front(objective, {cell.name: figures[cell.name] for cell in cells})
    results = tuple(_result(cell, figures[cell.name], constraints, cell.name in front) for cell in cells)
    fitting = [one for one in results if not one.excluded_by]
    if not fitting:
        near = near_misses(objective_of(run), constraints, results, None)
        return Recommendation(run, constraints, results, None, _why_none(constraints, results), None, near)
    chosen, equals = _best(objective, fitting)
    unit = f" ({run['currency']})" if objective_of(run).is_money and run["currency"] else ""
    reason = _why(objective, chosen, len(equals), len(fitting), figures[STATUS_QUO], unit)
    about = chosen.cell.technology.about_attacks
    reason += f" {about}" * bool(about) + _what_it_promises(chosen.cell, run["people"])
    condition = best_on_condition(objective_of(run), constraints, results, chosen)
    reason += f" {condition}" * bool(condition)
    limits = [constraint.words for constraint in constraints]
    request = request_text(run, chosen.cell, recommended=True, limits=limits)
    near = near_misses(objective_of(run), constraints, results, chosen)
    return Recommendation(run, constraints, results, chosen, reason, request, near, len(equals), condition)


def _one_of_each(cells: Iterable[Cell]) -> list[Cell]:
    """Of cells equal in distribution the one that promises what its release does, or the next less."""
    alike: dict[str, list[Cell]] = {}
    for cell in cells:
        alike.setdefault(cell.same_as or cell.name, []).append(cell)
    return [replace(_as_released(equals), same_as=None) for equals in alike.values()]


def _as_released(equals: Sequence[Cell]) -> Cell:
    promise = equals[0].promise
    if promise is None:
        return equals[0]
    by_epsilon = sorted(equals, key=lambda cell: cell.epsilon or 0.0)
    enough = (cell for cell in by_epsilon if (cell.epsilon or 0.0) >= promise.epsilon - 1e-9)
    return next(enough, by_epsilon[-1])


def _result(
    cell: Cell,
    figures: Mapping[str, Estimate],
    constraints: Sequence[Constraint],
    on_front: bool,
) -> CellResult:
    fails = {
        one.words: one.metric for one in constraints if not one.holds(figures.get(one.metric, Estimate()))
    }
    if cell.why_not is not None:
        fails[cell.why_not] = "no release"
    return CellResult(cell, figures, tuple(fails), tuple(fails.values()), on_front)


def _front(objective: Wanted, cells: Mapping[str, Mapping[str, Estimate]]) -> set[str]:
    ranks = {name: goods(objective, figures) for name, figures in cells.items()}

    def is_beaten(own: tuple[float, ...]) -> bool:
        return any(
            other != own and all(b >= a for a, b in zip(own, other, strict=True)) for other in ranks.values()
        )

    return {name for name, own in ranks.items() if not is_beaten(own)}


def _best(objective: Wanted, fitting: Sequence[CellResult]) -> tuple[CellResult, list[CellResult]]:
    """The recommended cell, and all that are equally good for the program."""
    metric = objective["metric"]
    best = max(fitting, key=lambda one: goods(objective, one.figures)[0])
    top, noise = best.figures[metric].mean, best.figures[metric].noise or 0.0

    def is_as_good(one: CellResult) -> bool:
        mean = one.figures[metric].mean
        return mean is not None and top is not None and abs(mean - top) <= noise

    equals = [one for one in fitting if one is best or is_as_good(one)]
    return min(equals, key=lambda one: Exposure.of(one.figures).order), equals


def _why(
    objective: Wanted, chosen: CellResult, equals: int, fitting: int, today: Mapping[str, Estimate],
    unit: str,
) -> str:  # fmt: skip
    metric = objective["metric"]
    figure = chosen.figures[metric]
    interval = "" if figure.low is None else f" (95% interval {shown(figure.low)} to {shown(figure.high)})"
    if fitting == 1:
        compared = "It is the only cell that satisfies every constraint."
    elif equals == 1:
        compared = f"That is the {objective['best']} among the {fitting} cells that satisfy every constraint."
    else:
        compared = (
            f"Of the {fitting} cells that satisfy every constraint, {equals} are equally good up to chance "
            "(their means are within the noise of the best one's); at this one anybody's best guess at "
            "distance 2 is right least often, and an insider's guesses where that is equal."
        )
    scores = ", ".join(
        f"{in_words(name)} {shown(chosen.figures[name].mean, name)}{_as_in_the_paper(chosen, name)}"
        for name in PROTECTIONS if name in chosen.figures
    )  # fmt: skip
    return (
        f"{chosen.name}: {in_words(metric)}{unit} {shown(figure.mean)}{interval}; "
        f"without privacy {shown(today[metric].mean)}. {compared} It has {scores}. "
        "What attacks found is an upper bound on protection: a cleverer attacker may get more."
        f"{_best_guess(chosen)}"
    )


def _as_in_the_paper(chosen: CellResult, name: str) -> str:
    """The paper's own figure beside the worst that was measured, named as such."""
    own = chosen.figures.get(AS_IN_THE_PAPER.get(name, ""))
    return "" if own is None else f" (as in the paper {shown(own.mean, AS_IN_THE_PAPER[name])})"


def _best_guess(chosen: CellResult) -> str:
    """What no attacker can beat, in a sentence; nothing where it was not derived."""
    guess, far = (chosen.figures.get(name) for name in ("best_guess", "best_guess_at_2"))
    if guess is None or far is None or chosen.cell.B is None:
        return ""
    near = f"{shown(guess.mean, 'best_guess')} of cases if they are B apart"
    if chosen.cell.B < CLASSIC:
        near += f", and in {shown(far.mean, 'best_guess_at_2')} if they are as far apart as can be"
    return f" The best guess of any attacker, which of two rows a person has, is right in {near}."


def _what_it_promises(cell: Cell, people: int) -> str:
    """A sentence with the release's own figures: they may be other than the cell's name has them."""
    promise = cell.promise
    assert promise is not None  # noqa: S101 (whatever can be asked for has one)
    more, warning = larger_by_parts(promise.delta, people), large_delta(promise.delta)
    usual = (
        f", or more: the sweep had δ = {up(promise.delta)}{more}, and a release has the usual one or less, "
        "with more noise"
    )
    said = f" Its release promises {format_guarantee(promise)}{usual if more else ''}."
    return said + ("" if warning is None else f" {warning}.")


def _some(names: Sequence[str], shown: int = 3) -> str:
    """A few names, and how many more there are."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def _why_none(constraints: Sequence[Constraint], results: Sequence[CellResult]) -> str:
    releases = [one for one in results if one.cell.why_not is None]
    sentences = [f"None of the {len(releases)} releases satisfies every constraint."]
    cannot = Counter(
        one.cell.why_not for one in results
        if one.cell.why_not is not None and one.cell.technology.is_release
    )  # fmt: skip
    sentences += [f"{many} more cells are no releases ({reason})." for reason, many in cannot.items()]
    for words in (constraint.words for constraint in constraints):
        out = [one for one in releases if words in one.excluded_by]
        alone = [one.name for one in out if len(one.excluded_by) == 1]
        more = f"; nothing else stands against {_some(alone)}" if alone else ""
        sentences.append(f"{words[:1].upper()}{words[1:]} excludes {len(out)}{more}.")
    return " ".join(sentences) + " Loosen one of them, or sweep a finer grid."
