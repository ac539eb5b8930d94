"""The technology *score*: rows of a labelled sample, then one private score of everybody else."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.attacks import (
    Protection,
    attribute_inference,
    distinguishing,
    row_inference,
    score_inference,
    singling_out,
    split_holdout,
)
from targetdp.mechanisms import LEAST_NOISE, NoiseMechanism
from targetdp.programs import Program, ScoredProgram
from targetdp.targeting import FEWEST_TO_DECIDE, LearnedWeights, SampleAndDecisions, SampleAndScores
from targetdp.tradeoff._rows import LEAST_NOISE_IS_TAKEN, LeastNoiseRows
from targetdp.tradeoff._study import Study
from targetdp.tradeoff._technology import (
    Cell,
    Randomness,
    Simulated,
    Trial,
    attack_figures,
    program_figures,
    timed,
)

if TYPE_CHECKING:
    from targetdp.tradeoff._sweep import Grid

INSIDE, OUTSIDE = "inside the sample", "outside the sample"
"""Whom a figure of a score is about."""


class ReleasedOutside(ABC):
    """What is released of people outside a sample, simulated for everybody, as attackers meet it."""

    @abstractmethod
    def tables(self) -> tuple[Floats, Floats]:
        """What is released without any noise, and with it: a number of each person."""

    @abstractmethod
    def guess(self, rows: Floats, places: Integers, **more: Any) -> Protection:
        """What an insider finds of people with these rows, who are at these places of the release."""


@dataclass(frozen=True, eq=False)
class ReleasedScores(ReleasedOutside):
    """Scores of everybody, and the mechanism that made them."""

    exact: Floats = field(repr=False)
    scores: Floats = field(repr=False)
    weights: Floats
    mechanism: NoiseMechanism

    def tables(self) -> tuple[Floats, Floats]:
        """See `ReleasedOutside.tables`."""
        return self.exact, self.scores

    def guess(self, rows: Floats, places: Integers, **more: Any) -> Protection:
        """See `ReleasedOutside.guess`."""
        holdout = more.pop("holdout")
        return score_inference(rows, self.scores[places], self.weights, self.mechanism, holdout, **more)


class Score(LeastNoiseRows):
    """All columns of a sample, then one score of everybody else, both with the least noise.

    Nearly everybody is outside the sample, and that is who is decided about: one noisy number of each is
    released. Of people in it all columns are. Attackers meet both releases, and the worse of the two counts.
    """

    name = label = form = "score"
    goes_out = "one noisy number per person; noisy rows of a sample"
    explanation = (
        "First all columns of a labelled sample are released, with noise. Weights are learned from them and "
        "the labels. Then one number, a weighted sum, is released of everybody else: noise on one number can "
        "be much smaller. Nobody is in both releases."
    )
    about_attacks = (
        "These figures are of people in the sample, of whom all columns are released, or outside it, of whom "
        "one score is: whichever is worse. The sample was as large as this table; in a smaller one people "
        "are singled out more easily. A stranger searched for hidden values in the sample only, since a "
        "score has no columns to search; an insider guessed at them in both."
    )
    about_figure = "Of scores the worse is drawn, inside the sample or outside it."
    sample_first = True
    score_noise = LEAST_NOISE
    """The mechanism of the noise on a score."""
    how_to_learn = "targetdp learn"
    """The command that asks for scores with this noise."""

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """As of any noise; none where there are too few people to learn from a part of them."""
        return [] if people < FEWEST_TO_DECIDE else super().cells(grid, people)

    def experiment(self, cell: Cell) -> str:
        """What decides the distribution of a cell's tables."""
        # In the words of earlier versions: seeds hang on them, and published figures must stay reproducible.
        return super().experiment(cell).replace(self.name, "two-rounds", 1)

    def check_program(self, program: Program) -> None:
        """Scores are learned for aid and lending."""
        if not isinstance(program, ScoredProgram):
            raise TypeError(
                f"mechanisms names {self.name}, which is made for aid and lending, and the program is "
                f"{program.kind!r}: leave it out of the grid's mechanisms"
            )

    def sample_and_scores(self, cell: Cell, dimensions: int) -> SampleAndScores:
        """The noise of both releases. Nobody is in both, so that nobody spends more than one."""
        asked = cell.calibrated_to
        return SampleAndScores.of(asked, asked, dimensions, mechanism=self.score_noise)

    def releases(self, cell: Cell, dimensions: int) -> SampleAndScores | SampleAndDecisions:
        """Both releases: of the sample's rows, and of everybody else."""
        return self.sample_and_scores(cell, dimensions)

    def release_outside(
        self, trial: Trial, learned: LearnedWeights, rng: np.random.Generator
    ) -> ReleasedOutside:
        """What is released of people outside the sample, simulated for everybody."""
        releases = self.sample_and_scores(trial.cell, trial.study.dimensions)
        scores = releases.release(trial.study.X, learned, rng)[:, None]
        return ReleasedScores(trial.study.X @ learned.w[:, None], scores, learned.w, releases.score_mechanism)

    def noises(self, cell: Cell, dimensions: int) -> tuple[Randomness, ...]:
        """Inside the sample, and outside it."""
        return self.releases(cell, dimensions).noises

    def fewest_numbers(self, dimensions: int) -> int:
        """One score."""
        return 1

    def distinguishing(self, cell: Cell, dimensions: int) -> dict[str, float]:
        """Of people inside the sample, outside it, and (exact) the worse of both."""
        both = zip((INSIDE, OUTSIDE), self.noises(cell, dimensions), strict=True)
        scores = {who: distinguishing(noise, dimensions).score for who, noise in both}
        return {"exact": min(scores.values())} | scores

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """The request is for the sample's rows; what follows takes several commands."""
        return (
            "This is the first of two requests: rows of a labelled sample, then scores of everybody else.",
            "1. The data holder answers it for the labelled sample only: targetdp privatize SAMPLE OUTPUT "
            "--request request.toml",
            f"2. Whoever has the labels runs {self.how_to_learn}: it writes the request for scores, with "
            "their weights, which leaves the sample's people out",
            "3. The data holder answers that one for everybody: targetdp privatize TABLE SCORES --request …",
            "4. Whoever has the labels runs targetdp allocate: it applies the program to both releases",
            "Nobody is in both releases, so that nobody spends more than is asked for here.",
            LEAST_NOISE_IS_TAKEN,
        )

    def simulate(self, trial: Trial) -> Simulated:
        """One simulation of both releases.

        The program decides about everybody by weights learned without her part. Attackers of people inside
        the sample meet the private rows of a sample as large as the table, as in a cell of rows; of people
        outside it, scores of everybody by weights learned from those rows. The paper's attribute inference
        looks for a row with the columns that are known of somebody: scores have none, and only the insider,
        who knows whose score is whose, is one for them.
        """
        study, rng, program = trial.study, trial.rng, scored_program(trial.study)
        releases = self.releases(trial.cell, study.dimensions)
        seconds: dict[str, float] = {}
        release = rng("release")
        with timed(seconds, "privatize"):
            Z = releases.row_mechanism.privatize(study.X, release)
        with timed(seconds, "program"):
            predicted = releases.predict(program, study.X, Z, study.folds, rng("scores"))
            result = program.judge(predicted, rng("program"), study.folds)
            figures = list(program_figures(result, trial))
            learned = releases.learn(Z, program)
        with timed(seconds, "privatize"):
            shown = self.release_outside(trial, learned, release)
        with timed(seconds, "singling_out"):
            figures += attack_figures("singling_out", singling_out(study.X, Z), INSIDE)
            figures += attack_figures("singling_out", singling_out(*shown.tables()), OUTSIDE)
        if study.dimensions > 1:  # one column leaves nothing to be guessed from
            working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
            W, out = study.X[working], study.X[holdout]
            with timed(seconds, "privatize"):
                W_priv = releases.row_mechanism.privatize(W, rng("working set"))
            with timed(seconds, "attribute_inference"):
                searched = attribute_inference(
                    W, W_priv, out, draws=trial.draws, columns=study.features, rng=rng("attack")
                )
                figures += attack_figures("attribute_inference", searched, INSIDE)
            known: dict[str, Any] = {
                "known": [study.dimensions - 1],
                "population": study.X,
                "columns": study.features,
            }
            with timed(seconds, "insider_inference"):
                insider = rng("insider")
                inside = row_inference(W, W_priv, releases.row_mechanism, out, rng=insider, **known)
                outside = shown.guess(W, working, holdout=out, rng=insider, **known)
                figures += attack_figures("insider_inference", inside, INSIDE)
                figures += attack_figures("insider_inference", outside, OUTSIDE)
        return Simulated(tuple(figures), seconds)


def scored_program(study: Study) -> ScoredProgram:
    """The study's program: a sweep of scores refuses others."""
    assert isinstance(study.program, ScoredProgram)  # noqa: S101 (`Score.check_program`)
    return study.program


class ScoreWithLaplaceNoise(Score):
    """All columns of a sample with the least noise, then one score of everybody else with Laplace noise.

    At one and the same (B, ε, δ) the staircase needs less noise for one number than the Laplace, and the best
    guess of an attacker is right more often by it: 97 of 100 times in place of 93, at (0.25, 4, 1/4202).
    """

    name, label = "score-laplace", "score, Laplace noise"
    explanation = (
        "As score, but the noise on the one number is the Laplace: more of it for the same promise, so that "
        "the best guess of an attacker is right less often."
    )
    score_noise = "spherical-laplace"
    how_to_learn = f"{Score.how_to_learn} --mechanism {score_noise}"

    def experiment(self, cell: Cell) -> str:
        """What decides the distribution of a cell's tables."""
        return super(Score, self).experiment(cell)
