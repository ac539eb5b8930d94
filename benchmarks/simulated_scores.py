"""Rows of a sample, then scores, simulated: what they achieve, beside rows and beside no privacy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from targetdp._core import Floats, check
from targetdp.guarantee import Guarantee
from targetdp.mechanisms import NoiseMechanism, least_noise
from targetdp.normalization import clip_rows
from targetdp.programs import Folds, Program, Result, Truths
from targetdp.targeting import SampleAndScores
from targetdp.targeting._learn import LearnedWeights
from targetdp.targeting._sample_and_scores import (
    chances_of_rows,
    check_mask,
    check_scored,
    part_of,
    predict_rows,
)

# Rows, to compare with: all columns of everybody, and a model that is fitted to the labelled sample.


SCORES, ROWS, WITHOUT_PRIVACY = "score", "rows", "without privacy"


@dataclass(frozen=True, eq=False)
class SimulatedScores:
    """The sample's release and the score release, simulated once.

    ``outside`` has what the program achieves among the people outside the sample (its quota applied to them
    alone), ``everyone`` among all, by name: score, rows, without privacy. People of the sample spend
    ``first`` and all others ``second``; also where rows are released. ``chances`` are everybody's to be poor,
    or to repay, by the sample and the scores.
    """

    first: Guarantee
    second: Guarantee
    sample: Truths = field(repr=False)
    weights: LearnedWeights
    chances: Floats = field(repr=False)
    outside: Mapping[str, Result]
    everyone: Mapping[str, Result]


def simulate_scores(
    program: Program,
    X: Any,
    sample: Any,
    first: Guarantee,
    second: Guarantee,
    rng: np.random.Generator,
    *,
    folds: int = 5,
    compared: bool = True,
) -> SimulatedScores:
    """Simulate both releases on rows of the unit ball, and count what came of them.

    ``sample`` says who is in it (true or false for each person); only their outcomes are learned from, and
    the outcomes of the others only judge. Noise is the least for either guarantee. ``compared`` adds what
    everybody's rows and no privacy would have achieved, with the same sample: see `predict_rows`.

    Guarantees: with the same ``rng`` the same figures, whether or not others are compared. All is simulated:
    nothing here is a release.
    """
    check.instance("program", program, Program)
    rows = clip_rows(check.table(X))
    mask = check_mask(sample, len(rows))
    if check.generator(rng) is None:
        raise TypeError("rng = None: a simulation takes a numpy Generator")
    program = check_scored(program)
    people, labelled = part_of(program, ~mask), part_of(program, mask)
    plan = Folds(labelled.people.count, folds, int(rng.integers(2**31)))
    rngs = rng.spawn(4)

    d = rows.shape[1]
    releases = SampleAndScores.of(first, second, d)
    Z = releases.row_mechanism.privatize(rows[mask], rngs[0])
    counts = labelled.people.fit_weights
    learned = releases.learn(Z, labelled)
    released = releases.release(rows[~mask], learned, rngs[1])
    chances = np.empty(len(rows))
    chances[~mask] = releases.read(released, learned, labelled)
    chances[mask] = chances_of_rows(Z, labelled.outcomes, learned, plan, labelled.line(), counts)

    predicted: dict[str, Floats] = {SCORES: program.as_scores(chances)}
    if compared:
        other = _others_noise(second, d, releases.row_mechanism, first).privatize(rows[~mask], rngs[2])
        for name, ours, theirs in ((ROWS, Z, other), (WITHOUT_PRIVACY, rows[mask], rows[~mask])):
            predicted[name] = np.empty(len(rows))
            predicted[name][mask], predicted[name][~mask] = predict_rows(
                ours, labelled.outcomes, theirs, learned.scale, program.task, plan, counts
            )
    seed = int(rngs[3].integers(2**63))
    return SimulatedScores(
        first, second, mask, learned, chances,
        {name: people.judge(s[~mask], np.random.default_rng(seed)) for name, s in predicted.items()},
        {name: program.judge(s, np.random.default_rng(seed)) for name, s in predicted.items()},
    )  # fmt: skip


def _others_noise(second: Guarantee, d: int, loud: NoiseMechanism, first: Guarantee) -> NoiseMechanism:
    return loud if first == second else least_noise(second, d).mechanism
