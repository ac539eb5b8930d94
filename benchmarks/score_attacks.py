"""Attacks at equal accuracy: what rows and scores protect when the program is served equally well.

At the same B and ε scores are the more accurate, so they can afford a larger B for the accuracy of rows.
Both are then attacked alike: the people outside the sample, of whom the whole row or one score is released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.sample_then_scores import EPSILON, VIETNAM, cases
from benchmarks.section import Bar, Effort, Section, new_table
from benchmarks.simulated_scores import ROWS, SCORES, SimulatedScores, simulate_scores
from benchmarks.timing import Say
from targetdp._core import Floats
from targetdp.attacks import (
    Protection,
    distinguishing,
    in_scores,
    linkage,
    row_inference,
    score_inference,
    singling_out,
    split_holdout,
    worst_of_means,
)
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseMechanism, Scores, least_noise
from targetdp.programs import QUOTA, Program

TABLES = ("Togo, invented", VIETNAM)
GRID = (0.05, 0.1, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""B at ε = 4. No two people are farther apart than 2: beyond it ε falls instead, so that B/ε goes on."""
COMPARED = (0.25, 0.5, 1.0)
"""B of rows, whose accuracy scores are to reach."""
PLAYS, QUICK_PLAYS = 16, 4
ATTACKED, QUICK_ATTACKED = 3, 1
ATTACKS = ("singling out", "linkage", "inference", "distinguishing")
FARTHEST = 2.0
BARS = {"linkage": 0.0, "inference": 0.0, "distinguishing": 0.0}
"""None for singling out: nets hold several scores whatever the noise, so a bar could not be missed."""

Found = dict[str, Protection]


@dataclass(frozen=True)
class Compared:
    """Rows at one B, and scores at the promise that gives the same accuracy."""

    table: str
    promise: dict[str, Guarantee]
    accuracy: dict[str, float]
    found: dict[str, Found] = field(repr=False)
    at_same_B: Found = field(repr=False)

    def gain(self, attack: str) -> float:
        """Of scores' protection over that of rows."""
        return self.found[SCORES][attack].score - self.found[ROWS][attack].score


def measure(effort: Effort, say: Say) -> Section:
    """Play both technologies, find B of equal accuracy, and attack."""
    plays, attacked = (QUICK_PLAYS, QUICK_ATTACKED) if effort.quick else (PLAYS, ATTACKED)
    curves: dict[str, dict[str, list[float]]] = {}
    compared: list[Compared] = []
    for name, case in cases():
        if name not in TABLES:
            continue
        X, program = case()
        say(f"{name}: accuracy")
        curves[name] = _accuracies(X, program, plays)
        for B in COMPARED[: 1 if effort.quick else None]:
            say(f"{name}: attacks at the accuracy of B = {B:g}")
            compared.append(_compared(name, X, program, B, curves[name], plays, attacked))
    table = new_table(
        f"Attacks at equal accuracy, aid for the poorest {QUOTA:.0%}",
        "table", "technology", "B", "ε", "accuracy", *ATTACKS,
        caption=f"Protection (1 is safe); accuracy: mean of {plays} plays, attacks: of {attacked} releases. "
        "Inference: an adversary who knows whose row or score it is, and up to all other columns. "
        "Singling out is not informative for one number: nets hold several scores whatever the noise. "
        "Distinguishing: derived, for the two people who differ the most.",
    )  # fmt: skip
    for one in compared:
        for technology, found in ((ROWS, one.found[ROWS]), (SCORES, one.found[SCORES])):
            table.add_row(*_cells(one, technology, found))
    same = new_table(
        f"The same attacks on scores at the same B, ε = {EPSILON:g}", "table", "B", *ATTACKS,
        caption="Protection of scores, where the accuracy is higher than that of rows.",
    )  # fmt: skip
    for one in compared:
        same.add_row(one.table, f"{one.promise[ROWS].B:g}", *(_down(one.at_same_B[a].score) for a in ATTACKS))
    return Section([table, same], _bars(compared, quick=effort.quick), _record(compared, curves))


def _accuracies(X: Floats, program: Program, plays: int) -> dict[str, list[float]]:
    """Mean accuracy of each technology at each B of the grid."""
    played = [[_play(X, program, B, seed) for seed in range(plays)] for B in GRID]
    return {
        way: [float(np.mean([p.outside[way]["accuracy"] for p in one_B])) for one_B in played]
        for way in (ROWS, SCORES)
    }


def _promise(B: float) -> Guarantee:
    return Guarantee(min(B, FARTHEST), EPSILON * min(1.0, FARTHEST / B))


def _play(X: Floats, program: Program, B: float, seed: int, *, compared: bool = True) -> SimulatedScores:
    sample = np.zeros(len(X), dtype=bool)
    sample[np.random.default_rng([seed, 1]).permutation(len(X))[: len(X) // 2]] = True
    promise = _promise(B)
    return simulate_scores(
        program, X, sample, promise, promise, np.random.default_rng(seed), compared=compared
    )


def _compared(
    name: str, X: Floats, program: Program, B: float, curves: dict[str, list[float]], plays: int,
    attacked: int,
) -> Compared:  # fmt: skip
    wanted = _at(B, curves[ROWS])
    larger = _reaches(wanted, curves[SCORES])
    again = [_play(X, program, larger, seed, compared=False).outside for seed in range(plays)]
    reached = float(np.mean([outside[SCORES]["accuracy"] for outside in again]))
    return Compared(
        name,
        {ROWS: _promise(B), SCORES: _promise(larger)},
        {ROWS: wanted, SCORES: reached},
        {
            ROWS: _mean(attacked, lambda seed: _attack_rows(X, program, B, seed)),
            SCORES: _mean(attacked, lambda seed: _attack_scores(X, program, larger, seed)),
        },
        _mean(attacked, lambda seed: _attack_scores(X, program, B, seed)),
    )


def _at(B: float, accuracy: list[float]) -> float:
    return float(np.interp(np.log(B), np.log(GRID), accuracy))


def _reaches(wanted: float, accuracy: list[float]) -> float:
    """The largest B with this accuracy, between points of the grid on a log scale.

    The curve is made to fall first, downward: so no B is said to be enough because of one lucky mean.
    """
    falling = np.minimum.accumulate(accuracy)
    return float(np.exp(np.interp(-wanted, -falling, np.log(GRID))))


def _mean(times: int, attack: Callable[[int], Found]) -> Found:
    found = [attack(seed) for seed in range(times)]
    return {name: worst_of_means([one[name] for one in found]) for name in ATTACKS}


def _attack_rows(X: Floats, program: Program, B: float, seed: int) -> Found:
    people = X[~_play(X, program, B, seed, compared=False).sample]
    noise, rng = _noise(B, X.shape[1]), np.random.default_rng([seed, 2])
    released = noise.privatize(people, rng)
    working, holdout = split_holdout(people, rng=_same(seed))
    return {
        "singling out": singling_out(people, released),
        "linkage": linkage(people, released, noise, rng=rng),
        "inference": row_inference(
            people[working], released[working], noise, people[holdout], population=people, rng=_same(seed)
        ),
        "distinguishing": distinguishing(noise, X.shape[1]),
    }


def _attack_scores(X: Floats, program: Program, B: float, seed: int) -> Found:
    played = _play(X, program, B, seed, compared=False)
    people = X[~played.sample]
    noise, rng = Scores(played.weights.w, _noise(B, 1)), np.random.default_rng([seed, 2])
    released, exact = noise.privatize(people, rng), in_scores(people, noise)
    working, holdout = split_holdout(people, rng=_same(seed))
    return {
        "singling out": singling_out(exact, released),
        "linkage": linkage(exact, released, noise.noise, rng=rng),
        "inference": score_inference(
            people[working], released[working], noise.weights, noise, people[holdout], population=people,
            rng=_same(seed),
        ),
        "distinguishing": distinguishing(noise, X.shape[1]),
    }  # fmt: skip


def _same(seed: int) -> np.random.Generator:
    """The same holdout, and the same known columns, for both technologies: their luck cancels."""
    return np.random.default_rng([seed, 3])


def _noise(B: float, dimensions: int) -> NoiseMechanism:
    return least_noise(_promise(B), dimensions).mechanism


def _cells(one: Compared, technology: str, found: Found) -> list[str]:
    promise = one.promise[technology]
    return [
        one.table, technology, f"{promise.B:.2g}", f"{promise.epsilon:.2g}",
        f"{one.accuracy[technology]:.3f}", *(_down(found[attack].score) for attack in ATTACKS),
    ]  # fmt: skip


def _down(protection: float) -> str:
    """Three digits, never rounded to more protection than there is."""
    return f"{math.floor(protection * 1000 + 1e-9) / 1000:.3f}"


def _bars(compared: list[Compared], *, quick: bool) -> list[Bar]:
    return [
        Bar(
            f"score at equal accuracy: protection from {attack} above that of rows, worst",
            min(one.gain(attack) for one in compared), bar, "at least", binding=not quick,
        )
        for attack, bar in BARS.items()
    ]  # fmt: skip


def _record(compared: list[Compared], curves: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    return {
        "B": list(GRID),
        "accuracy": curves,
        "attacks": {
            f"{one.table}, rows at B = {one.promise[ROWS].B:g}": {
                way: {
                    "B": one.promise[way].B,
                    "epsilon": one.promise[way].epsilon,
                    "accuracy": one.accuracy[way],
                    **{
                        attack: {"score": p.score, "interval": list(p.interval), "strongest": p.strongest}
                        for attack, p in one.found[way].items()
                    },
                }
                for way in (ROWS, SCORES)
            }
            for one in compared
        },
    }
