"""What a decision looks at, told to the data holder by some of her own rows; nothing of it leaves her."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from targetdp._core import Floats
from targetdp.mechanisms import DecisionLaw
from targetdp.normalization import ColumnScales
from targetdp.release._decision._cuts import CutRule
from targetdp.release._decision._scoring import RunModel, Scoring
from targetdp.release._look._importance import importance
from targetdp.release._prepare import Prepared

_PURPOSE = (
    "a decision can be any question about a row: “age > 60” is one, too. ε bounds how much an answer tells; "
    "whether the question may be asked is for you to say, by the purpose in the request and by what the "
    "ledger says was asked before"
)


def looks_at(prepared: Prepared, law: DecisionLaw, sample: pa.Table | None) -> tuple[str, ...]:
    """What decisions look at, how many people would get a yes, and what ε does not decide, in words.

    Args:
        prepared: The request at the desk.
        law: Of the bits.
        sample: Some people's rows.
    """
    scoring, scales = prepared.scoring, prepared.recipe().scales
    if scoring is None:
        return ()
    if sample is None or (scales is None and not scoring.classic):
        return ("what the decision looks at cannot be told before the scales are known", _PURPOSE)
    with prepared.models.running(prepared.request.decisions) as runners:
        models = {name: runner.scores for name, runner in runners.items()}
        confined = (
            f"the model of {name} runs in processes of its own, confined by {one.confined_by}"
            for name, one in runners.items()
        )
        return (*_each(scoring, law, sample, scales, models), *confined, _PURPOSE)


def _each(
    scoring: Scoring,
    law: DecisionLaw,
    sample: pa.Table,
    scales: ColumnScales | None,
    models: Mapping[str, RunModel],
) -> Iterator[str]:
    for place, question in enumerate(scoring.questions):
        rule = question.rule(law)
        cut = rule.first if isinstance(rule, CutRule) else rule

        def score(rows: pa.Table, place: int = place) -> Floats:
            batch = rows.combine_chunks().to_batches()[0]
            return scoring.steps(batch, scales, models)[0][:, place].astype(np.float64)

        columns = scoring.encoding.sources(question.asked.takes)
        found = importance(score, sample, columns, cut=float(cut), rng=np.random.default_rng())
        yield from found.in_words(question.asked.name)
