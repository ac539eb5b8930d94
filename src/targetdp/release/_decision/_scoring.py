"""From a batch of a table to the scores that people are decided by, in whole steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from targetdp._core import Floats, Integers
from targetdp.mechanisms import LinearScore, steps_of
from targetdp.normalization import ColumnScales, rows_in_ball, scores_in_ball
from targetdp.release._decision._question import Question
from targetdp.table import Encoding, Tally

RunModel = Callable[[pa.RecordBatch], Floats]
"""A model that is running: the score of each row, NaN where it has no answer."""


@dataclass(frozen=True)
class Scoring:
    """What is done to rows that are decided about: all questions of a release.

    Args:
        questions: One for each decision.
        numbers: The features that weights and curves are for.
        encoding: How columns become features.
        texts: Columns that a model takes as text.
    """

    questions: tuple[Question, ...]
    numbers: tuple[str, ...]
    encoding: Encoding
    texts: tuple[str, ...] = ()

    @property
    def classic(self) -> bool:
        """Whether scores are of columns as they are: any function of the one row."""
        return self.questions[0].score is None

    @property
    def by_models(self) -> bool:
        """Whether models of others score people."""
        return any(one.asked.model is not None for one in self.questions)

    def problems(self, batch: pa.RecordBatch) -> Tally:
        """Columns that are no numbers, told by their types alone: no row is looked at."""
        tally = Tally()
        # Columns that are not there, or that the policy does not allow, are told apart.
        known = [name for name in self.numbers if self.encoding.source(name) in batch.schema.names]
        self.encoding.numbers(batch.slice(0, 0), known, tally, 0)
        return tally

    def steps(
        self,
        batch: pa.RecordBatch,
        scales: ColumnScales | None,
        models: Mapping[str, RunModel],
        room: Floats | None = None,
    ) -> tuple[Integers, int]:
        """The scores of a batch, a column for each decision, and how many rows were clipped.

        Args:
            batch: Some people's rows, each of which alone makes its own score.
            scales: Of the columns, below B = 2.
            models: Those that questions name, by the decisions' names.
            room: An array for the numbers.
        """
        tally = Tally()
        block = self.encoding.numbers(batch, self.numbers, tally, 0, room)
        if not self.classic:
            if tally.counts or scales is None:  # all of it was looked at before
                raise ValueError("the table changed while it was read: try again when nobody writes to it")
            scores, clipped = _in_ball(block, scales, self.questions[0])
            return steps_of(scores)[:, None], clipped
        columns = dict(zip(self.numbers, block, strict=True))
        return np.stack([_classic(one, batch, columns, models) for one in self.questions], axis=1), 0

    def moved_apart(self, steps: Integers, moved: Integers) -> Integers:
        """Scores moved by what ids say, where the cut is found on the way and may fall on many of them."""
        searched = np.array([one.asked.cut is None for one in self.questions])
        return np.asarray(steps + moved[:, None] * searched)


def scoring_of(questions: Sequence[Question], encoding: Encoding, texts: Sequence[str] = ()) -> Scoring:
    """How people are scored for some questions."""
    weighed = (name for one in questions if one.asked.model is None for name in one.asked.takes)
    numbers = dict.fromkeys(name for name in weighed if encoding.is_feature(name))
    return Scoring(tuple(questions), tuple(numbers), encoding, tuple(texts))


def _in_ball(columns: Floats, scales: ColumnScales, question: Question) -> tuple[Floats, int]:
    """Scores of scaled and clipped rows, which of linear ones are never held."""
    if isinstance(question.score, LinearScore):
        scores, clipped = scores_in_ball(columns, scales, np.array([question.score.weights]))
        return scores[:, 0], clipped
    rows, clipped = rows_in_ball(columns, scales)
    if question.score is None:
        raise RuntimeError("a decision without a score below B = 2: please report this")
    return question.score.of_rows(rows), clipped


def _classic(
    question: Question, batch: pa.RecordBatch, columns: Mapping[str, Floats], models: Mapping[str, RunModel]
) -> Integers:
    asked = question.asked
    if asked.model is None:
        return question.steps_of_columns(columns)
    return question.placed(models[asked.name](batch.select(list(asked.takes))))
