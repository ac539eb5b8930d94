"""Scores without their noise: what a release of scores is compared with."""

from typing import Any

import numpy as np

from targetdp import check
from targetdp.attacks.noise_shape import in_unit_ball
from targetdp.mechanisms.linear import LinearLaw, Scores
from targetdp.mechanisms.product import row_product
from targetdp.normalization import clip_rows
from targetdp.typing import Floats


def in_scores(X: Any, law: LinearLaw | Scores) -> Floats:
    """The exact scores of rows of the unit ball (n×m): those to which ``law`` adds its noise.

    Attacks that compare an original with its release take them in place of the rows: for example
    ``linkage(in_scores(X, law), scores, law.noise)`` and ``singling_out(in_scores(X, law), scores)``.
    """
    rows = check.table(X)
    if isinstance(law, Scores):
        law = law.law(rows.shape[1])
    check.instance("law", law, LinearLaw)
    if law.dimensions != rows.shape[1]:
        raise ValueError(f"law is for {law.dimensions} columns, X has {rows.shape[1]}: they must agree")
    in_unit_ball(rows, "X")
    return clip_rows(row_product(rows, np.array(law.weights).T))
