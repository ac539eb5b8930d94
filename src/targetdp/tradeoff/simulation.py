"""One simulation of one cell: a private table, what the program makes of it, and what attackers do.

The program and the net attack (singling out) meet a release of everyone. Attribute inference needs people
who are not in the release: a second one is made of the working set, without a random holdout. Two rounds are
attacked both inside their sample and outside it (`two_rounds.py`).
"""

import math

import numpy as np

from targetdp.attacks.distinguishing import Formula, distinguishing
from targetdp.attacks.inference import attribute_inference, split_holdout
from targetdp.attacks.score_inference import row_inference
from targetdp.attacks.singling_out import singling_out
from targetdp.mechanisms import Mechanism, NoiseMechanism
from targetdp.programs.base import Result
from targetdp.programs.file import TWO_ROUNDS
from targetdp.tradeoff.figure import (
    INSIDE,
    OUTSIDE,
    Figure,
    Simulated,
    attack_figures,
    program_figures,
    timed,
)
from targetdp.tradeoff.grid import PROJECTION, Cell
from targetdp.tradeoff.seeds import Use, generator
from targetdp.tradeoff.study import Study
from targetdp.tradeoff.two_rounds import in_two_rounds
from targetdp.typing import Floats


def simulate(
    study: Study, cell: Cell, mechanism: Mechanism | None, status_quo: Result, simulation: int, *,
    seed: int, draws: int = 1,
) -> Simulated:  # fmt: skip
    """One simulation. ``mechanism`` is the cell's own, ``draws`` how often known columns are drawn.

    Guarantees: the same figures whenever and wherever it is run with the same software on a processor of
    the same kind: all randomness comes from the seed, the cell and the number of the simulation.
    """
    seconds: dict[str, float] = {}

    def rng(use: Use) -> np.random.Generator:
        return generator(seed, cell, simulation, use)

    if cell.mechanism == TWO_ROUNDS:
        return in_two_rounds(study, cell.rounds(study.dimensions), status_quo, rng, draws)
    with timed(seconds, "privatize"):
        X_priv = _released(mechanism, study.X, rng("release"))
    with timed(seconds, "program"):
        result = study.run(X_priv, rng("program"))
        figures = list(program_figures(result, status_quo))
    with timed(seconds, "singling_out"):
        figures += attack_figures("singling_out", singling_out(study.X, X_priv))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        W = study.X[working]
        with timed(seconds, "privatize"):
            W_priv = _released(mechanism, W, rng("working set"))
        with timed(seconds, "attribute_inference"):
            protection = attribute_inference(
                W, W_priv, study.X[holdout], draws=draws, columns=study.features, rng=rng("attack")
            )
            figures += attack_figures("attribute_inference", protection)
        if cell.has_known_noise and isinstance(mechanism, NoiseMechanism):
            with timed(seconds, "informed_inference"):
                informed = row_inference(
                    W, W_priv, mechanism, study.X[holdout], known=[study.dimensions - 1], population=study.X,
                    columns=study.features, rng=rng("informed"),
                )  # fmt: skip
                figures += attack_figures("informed_inference", informed)
    return Simulated(tuple(figures), seconds)


def derive(cell: Cell, mechanism: Mechanism | None, dimensions: int) -> tuple[Figure, ...]:
    """What the noise alone tells of a cell: distinguishing protection, and the true ε at its B and δ.

    For the paper's algorithm distinguishing protection also comes as printed and as corrected; the formula
    is the setting. Of two rounds the worse counts, of people inside the sample or outside it; each is told,
    too. Without a guarantee (the status quo, k-anonymity, rows that are not clipped) protection is 0 and ε
    infinite; the paper's formulas stay what they are.
    """
    formulas: tuple[Formula, ...] = ("exact",)
    if cell.mechanism == PROJECTION:
        formulas = ("exact", "as_printed", "corrected")
    scores: dict[str, float] = {
        formula: distinguishing(mechanism, dimensions, formula=formula).score for formula in formulas
    }
    promise, epsilon, noises = cell.guarantee, math.inf, cell.noises(dimensions)
    if promise is not None and noises:
        epsilon = max(
            noise.epsilon(distance=promise.B, delta=promise.delta, dimensions=dimensions) for noise in noises
        )
    if cell.mechanism == TWO_ROUNDS:
        groups = zip((INSIDE, OUTSIDE), noises, strict=True)
        scores |= {who: distinguishing(noise, dimensions).score for who, noise in groups}
        scores["exact"] = min(scores.values())
    if promise is None:
        scores |= {setting: 0.0 for setting in scores if setting not in {"as_printed", "corrected"}}
    return (
        *(Figure("distinguishing", setting, score) for setting, score in scores.items()),
        Figure("exact_epsilon", "", epsilon),
    )


def _released(mechanism: Mechanism | None, X: Floats, rng: np.random.Generator) -> Floats:
    return X if mechanism is None else mechanism.privatize(X, rng)
