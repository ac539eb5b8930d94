"""One simulation in two rounds: a private sample, weights, private scores, and what attackers do with these.

Nearly everybody is outside the sample, and that is who is decided about and attacked: one noisy number of
each is released. People of the sample are released as with the least noise in one round, and protected so.
"""

from collections.abc import Callable

import numpy as np

from targetdp.attacks.inference import split_holdout
from targetdp.attacks.score_inference import score_inference
from targetdp.attacks.singling_out import singling_out
from targetdp.programs.aid import Aid
from targetdp.programs.base import Result
from targetdp.programs.lending import Lending
from targetdp.programs.two_rounds.rounds import Rounds
from targetdp.tradeoff.figure import Simulated, attack_figures, program_figures, timed
from targetdp.tradeoff.seeds import Use
from targetdp.tradeoff.study import Study


def in_two_rounds(
    study: Study,
    rounds: Rounds,
    status_quo: Result,
    rng: Callable[[Use], np.random.Generator],
    draws: int,
) -> Simulated:
    """One simulation; ``rng`` gives the generator for each use.

    The program decides about everybody by weights learned without her part. Attackers meet scores of
    everybody by weights learned from the whole private table: as large a sample as there is. They know the
    weights, and for attribute inference whose score is whose and the moments of all rows: more than the
    attackers of other cells do.
    """
    program, seconds = study.program, dict[str, float]()
    assert isinstance(program, Aid | Lending)  # noqa: S101 (a sweep refuses others)
    with timed(seconds, "privatize"):
        Z = rounds.first.privatize(study.X, rng("release"))
    with timed(seconds, "program"):
        predicted = rounds.predict(program, study.X, Z, study.folds, rng("scores"))
        figures = list(program_figures(program.judge(predicted, rng("program")), status_quo))
        learned = rounds.learn(Z, program)
    with timed(seconds, "privatize"):
        scores = rounds.release(study.X, learned, rng("working set"))[:, None]
    exact = study.X @ learned.w[:, None]
    with timed(seconds, "singling_out"):
        figures += attack_figures("singling_out", singling_out(exact, scores))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        with timed(seconds, "attribute_inference"):
            protection = score_inference(
                study.X[working], scores[working], learned.w, rounds.second, study.X[holdout],
                population=study.X, draws=draws, columns=study.features, rng=rng("attack"),
            )  # fmt: skip
            figures += attack_figures("attribute_inference", protection)
    return Simulated(tuple(figures), seconds)
