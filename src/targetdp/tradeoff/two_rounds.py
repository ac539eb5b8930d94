"""One simulation in two rounds: a private sample, weights, private scores, and what attackers do with both.

Nearly everybody is outside the sample, and that is who is decided about: one noisy number of each is
released. Of people in it all columns are. Attackers meet both releases, and the worse of the two counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from targetdp.attacks.inference import attribute_inference, split_holdout
from targetdp.attacks.protection import Protection
from targetdp.attacks.score_inference import row_inference, score_inference
from targetdp.attacks.singling_out import singling_out
from targetdp.programs.aid import Aid
from targetdp.programs.base import Result
from targetdp.programs.lending import Lending
from targetdp.programs.two_rounds.rounds import Rounds
from targetdp.tradeoff.figure import (
    INSIDE,
    OUTSIDE,
    Figure,
    Simulated,
    attack_figures,
    program_figures,
    timed,
)
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

    The program decides about everybody by weights learned without her part. Attackers of people inside the
    sample meet the private rows of a sample as large as the table, as in a cell of one round; of people
    outside it, scores of everybody by weights learned from those rows. The paper's attribute inference looks
    for a row with the columns that are known of somebody: scores have none, and only the informed attacker,
    who knows whose score is whose, is one for them.
    """
    program = study.program
    seconds: dict[str, float] = {}
    assert isinstance(program, Aid | Lending)  # noqa: S101 (a sweep refuses others)
    release = rng("release")
    with timed(seconds, "privatize"):
        Z = rounds.first.privatize(study.X, release)
    with timed(seconds, "program"):
        predicted = rounds.predict(program, study.X, Z, study.folds, rng("scores"))
        figures = list(program_figures(program.judge(predicted, rng("program"), study.folds), status_quo))
        learned = rounds.learn(Z, program)
    with timed(seconds, "privatize"):
        scores = rounds.release(study.X, learned, release)[:, None]
    exact = study.X @ learned.w[:, None]
    with timed(seconds, "singling_out"):
        figures += _of(INSIDE, "singling_out", singling_out(study.X, Z))
        figures += _of(OUTSIDE, "singling_out", singling_out(exact, scores))
    if study.dimensions > 1:  # one column leaves nothing to be guessed from
        working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
        W, out = study.X[working], study.X[holdout]
        with timed(seconds, "privatize"):
            W_priv = rounds.first.privatize(W, rng("working set"))
        with timed(seconds, "attribute_inference"):
            searched = attribute_inference(
                W, W_priv, out, draws=draws, columns=study.features, rng=rng("attack")
            )
            figures += _of(INSIDE, "attribute_inference", searched)
        known: dict[str, Any] = {
            "known": [study.dimensions - 1],
            "population": study.X,
            "columns": study.features,
        }
        with timed(seconds, "informed_inference"):
            informed = rng("informed")
            inside = row_inference(W, W_priv, rounds.first, out, rng=informed, **known)
            outside = score_inference(
                W, scores[working], learned.w, rounds.second, out, rng=informed, **known
            )
            figures += _of(INSIDE, "informed_inference", inside)
            figures += _of(OUTSIDE, "informed_inference", outside)
    return Simulated(tuple(figures), seconds)


def _of(who: str, attack: str, protection: Protection) -> Iterator[Figure]:
    """An attack's figures, each with whom it is about."""
    for figure in attack_figures(attack, protection):
        yield replace(figure, setting=f"{who}: {figure.setting}")
