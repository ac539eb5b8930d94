"""The technology *decision*: what a program needs of each person, one bit, and nothing else of her."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from targetdp._core import Floats, Integers
from targetdp.attacks import (
    BitQuestion,
    Protection,
    bit_inference,
    distinguishing,
    singling_out,
    split_holdout,
)
from targetdp.mechanisms import DecisionLaw, LinearScore
from targetdp.programs import Truths
from targetdp.release import AskedDecision, SimulatedAnswers
from targetdp.targeting import FEWEST_AGREED, AgreedAndDecisions, LearnedWeights, SampleAndDecisions
from targetdp.tradeoff._rows import LEAST_NOISE_IS_TAKEN
from targetdp.tradeoff._score import ReleasedOutside, Score, scored_program
from targetdp.tradeoff._technology import (
    NO_REQUEST,
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

GUESSED_AT, GUESSED_AT_WITHOUT_SUMS = 4_000, 1_000
"""People at whose values an insider guesses; fewer where scores are no weighted sums, which takes longer."""

HOW_TO_ALLOCATE = (
    "targetdp allocate, which makes the list: lots are drawn among the yes or the no, until a quota is met "
    "exactly"
)


@dataclass(frozen=True, eq=False)
class ReleasedAnswers(ReleasedOutside):
    """Drawn answers of everybody, the true ones, and what the certificate says of the question."""

    true: Truths = field(repr=False)
    bits: Truths = field(repr=False)
    question: BitQuestion
    law: DecisionLaw

    @classmethod
    def of(cls, drawn: SimulatedAnswers, asked: AskedDecision, score: Any, X: Floats) -> "ReleasedAnswers":
        """Answers to a question; its ``score`` as `BitQuestion` takes one, in the units of the question."""
        question = BitQuestion(score, drawn.cuts, asked.yes)
        if drawn.law.cells is not None:
            own = drawn.law.cells.score
            by = own.weights if isinstance(own, LinearScore) else own.of_rows
            question = BitQuestion(by, drawn.unit_cuts)
        true = question.sign * question.scores(X) <= question.sign * question.cuts
        return cls(true, drawn.bits, question, drawn.law)

    def tables(self) -> tuple[Floats, Floats]:
        """See `ReleasedOutside.tables`: yes is 1."""
        return self.true.astype(np.float64)[:, None], self.bits.astype(np.float64)[:, None]

    def guess(self, rows: Floats, places: Integers, **more: Any) -> Protection:
        """See `ReleasedOutside.guess`; of some people only, since each takes many scores."""
        most = GUESSED_AT if self.question.weights is not None else GUESSED_AT_WITHOUT_SUMS
        question = BitQuestion(self.question.score, self.question.cuts[places], self.question.yes)
        return bit_inference(rows, self.bits[places], question, self.law, people=min(most, len(rows)), **more)


class DecisionBySample(Score):
    """All columns of a sample with the least noise, then one private bit of everybody else.

    The question is learned from private rows: a weighted sum of columns, and the cut that the program's quota
    or threshold asks for. Nobody is in both releases.
    """

    name = label = form = "decision"
    goes_out = "one yes or no per person, some wrong on purpose; noisy rows of a sample"
    told_apart = "with different answers"
    explanation = (
        "First all columns of a labelled sample are released, with noise, and a question is learned from "
        "them and the labels. Then one drawn answer, yes or no, is released of everybody else, and nothing "
        "more. A list is made of the answers; lots decide where there are too many or too few yes. Nobody "
        "is in both releases."
    )
    about_attacks = (
        "These figures are of people in the sample, of whom all columns are released, or outside it, of whom "
        "one drawn answer is: whichever is worse. The sample was as large as this table; in a smaller one "
        "people are singled out more easily. A stranger searched for hidden values in the sample only, since "
        "an answer has no columns to search; an insider guessed at them in both."
    )
    about_figure = "Of decisions the worse is drawn, inside the sample or outside it."
    how_to_learn = "targetdp learn … --release decisions"

    def experiment(self, cell: Cell) -> str:
        """What decides the distribution of a cell's tables."""
        return super(Score, self).experiment(cell)

    def releases(self, cell: Cell, dimensions: int) -> SampleAndDecisions:
        """Rows of the sample with the cell's δ, and bits of everybody else without any."""
        asked = cell.calibrated_to
        return SampleAndDecisions.of(asked, asked, dimensions)

    def release_outside(
        self, trial: Trial, learned: LearnedWeights, rng: np.random.Generator
    ) -> ReleasedOutside:
        """Answers of everybody to a question that was learned from everybody's private rows."""
        study, releases = trial.study, self.releases(trial.cell, trial.study.dimensions)
        asked = releases.question(learned, scored_program(study), study.features)
        drawn = releases.answers(asked, learned, study.X, rng)
        return ReleasedAnswers.of(drawn, asked, learned.w, study.X)

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """The request is for the sample's rows; what follows takes several commands."""
        return (
            "This is the first of two requests: rows of a labelled sample, then decisions about everybody "
            "else.",
            "1. The data holder answers it for the labelled sample only: targetdp privatize SAMPLE OUTPUT "
            "--request request.toml",
            f"2. Whoever has the labels runs {self.how_to_learn}: it writes the request for decisions, with "
            "the question, which leaves the sample's people out",
            "3. The data holder answers that one for everybody: targetdp privatize TABLE DECISIONS "
            "--request …",
            f"4. Whoever has the labels runs {HOW_TO_ALLOCATE}",
            "Nobody is in both releases, so that nobody spends more than is asked for here.",
            "Decisions have no δ.",
            LEAST_NOISE_IS_TAKEN,
        )


NO_PROMISE = (
    "People of the sample agreed to be used as they are: they have no promise, and no figure of protection "
    "is about them."
)
"""What is said wherever a setting with such a sample is described."""


class DecisionByAgreedSample(DecisionBySample):
    """Rows of a sample that agreed to be used as it is, then one private bit of everybody else.

    The question is the best of a linear, an additive and (at B = 2) a boosted score that those rows suggest.
    What is promised is promised to everybody else, and it has no δ.
    """

    name, label = "decision-agreed", "decision, agreed sample"
    form, goes_out = (
        "agreed sample, no promise",
        "one yes or no per person, some wrong on purpose; rows of a sample as they are",
    )
    in_quick_looks = False
    explanation = (
        "People of a labelled sample agreed that their rows are used as they are. A question is learned from "
        "them, and one drawn answer, yes or no, is released of everybody else, and nothing more. "
    ) + NO_PROMISE
    about_attacks = (
        f"{NO_PROMISE} These figures are of everybody else, of whom one drawn answer is released; an answer "
        "has no columns to search, so that only an insider guessed at hidden values."
    )
    about_figure = "Decisions by an agreed sample: of people outside it, who alone have a promise."
    condition = "the people of the sample agree to be used as they are, without any promise"
    how_to_learn = "targetdp learn … --release decisions"
    remedy = (
        "first the data holder hands over the rows of those who agreed (targetdp agree); then whoever has "
        "the labels runs targetdp learn, which writes the request; the data holder answers it (targetdp "
        "privatize), and targetdp allocate makes the list"
    )

    def cells(self, grid: "Grid", people: int) -> list[Cell]:
        """As of any noise, without a δ; none where a part of the people are too few to fit a score to."""
        if people < 2 * FEWEST_AGREED:
            return []
        return [replace(cell, delta=0.0) for cell in super().cells(grid, people)]

    def agreed(self, cell: Cell, features: tuple[str, ...]) -> AgreedAndDecisions:
        """The sample as it is, and the bits of everybody else."""
        return AgreedAndDecisions(cell.calibrated_to, features)

    def build(self, cell: Cell, dimensions: int) -> None:  # type: ignore[override]
        """No mechanism: rows of the sample are used as they are."""

    def noises(self, cell: Cell, dimensions: int) -> tuple[Randomness, ...]:
        """Outside the sample: inside it nothing is promised."""
        return (self.agreed(cell, tuple(f"column {j}" for j in range(dimensions))).decision,)

    def distinguishing(self, cell: Cell, dimensions: int) -> dict[str, float]:
        """Of people outside the sample."""
        (bits,) = self.noises(cell, dimensions)
        return {"exact": distinguishing(bits, dimensions).score}

    def simulate(self, trial: Trial) -> Simulated:
        """One simulation of the bits.

        The program decides about each part by a question learned from the others, as they are. Attackers meet
        answers of everybody to a question that was learned from everybody.
        """
        study, rng, program = trial.study, trial.rng, scored_program(trial.study)
        agreed = self.agreed(trial.cell, study.features)
        seconds: dict[str, float] = {}
        with timed(seconds, "program"):
            predicted = agreed.predict(program, study.X, study.folds, rng("scores"))
            result = program.judge(predicted, rng("program"), study.folds)
            figures = list(program_figures(result, trial))
            tried = agreed.learn(study.X, program)
        with timed(seconds, "privatize"):
            drawn = agreed.answers(tried, study.X, rng("release"))
        score = tried.fitted.score
        weights = tried.asked.weights
        by = score.of_rows if weights is None else np.array([weights[name] for name in study.features])
        shown = ReleasedAnswers.of(drawn, tried.asked, by, study.X)
        with timed(seconds, "singling_out"):
            figures += attack_figures("singling_out", singling_out(*shown.tables()))
        if study.dimensions > 1:  # one column leaves nothing to be guessed from
            working, holdout = split_holdout(study.X, study.holdout, rng("holdout"))
            with timed(seconds, "insider_inference"):
                found = shown.guess(
                    study.X[working], working, holdout=study.X[holdout], rng=rng("insider"),
                    known=[study.dimensions - 1], population=study.X, columns=study.features,
                )  # fmt: skip
                figures += attack_figures("insider_inference", found)
        return Simulated(tuple(figures), seconds)

    def why_not(self, cell: Cell) -> str:
        """The question is not known before rows of people who agreed are."""
        return (
            f"{NO_REQUEST} from here: its question is learned from the rows of people who agreed, which "
            "targetdp agree hands over and targetdp learn makes the request of"
        )

    def request_comments(self, cell: Cell) -> tuple[str, ...]:
        """What takes the place of a request."""
        return (
            "1. The data holder hands over the rows of those who agreed: targetdp agree …",
            f"2. Whoever has the labels runs {self.how_to_learn}: it writes the request for decisions, with "
            "the question; those people stay in the release, so that their answers are a test of it",
            "3. The data holder answers it for everybody: targetdp privatize TABLE DECISIONS --request …",
            f"4. Whoever has the labels runs {HOW_TO_ALLOCATE}",
            NO_PROMISE,
        )
