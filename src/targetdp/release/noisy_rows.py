"""From columns, as tables are stored, to private rows or scores: where noise is added, for every engine."""

import numpy as np

from targetdp.mechanisms.law import NoiseLaw
from targetdp.mechanisms.linear import LinearLaw
from targetdp.scales import ColumnScales
from targetdp.table.layout import rows_in_ball, scores_in_ball
from targetdp.typing import Floats
from targetdp.words import WordSource


def noisy_rows(columns: Floats, scales: ColumnScales, law: NoiseLaw, words: WordSource) -> tuple[Floats, int]:
    """Scale and clip rows whose finite values come column by column, add noise; how many were clipped.

    Scores are summed up on the way, so that rows of all columns are never held.
    """
    if isinstance(law, LinearLaw):
        scores, clipped = scores_in_ball(columns, scales, np.array(law.weights))
        return law.noise_on(scores, words), clipped
    rows, clipped = rows_in_ball(columns, scales)
    return law.add_to(rows, words), clipped
