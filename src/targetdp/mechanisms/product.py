"""Rows times a matrix, each row by itself.

A library's matrix product rounds a row differently by its place among the others, and so its last digits
would tell of the order of the table. Here a row's product depends on that row and the matrix only.
"""

import numpy as np

from targetdp.compiled import kernel
from targetdp.typing import Floats


def row_product(rows: Floats, matrix: Floats) -> Floats:
    """Rows @ matrix, with every sum taken in the order of the columns."""
    out = np.zeros((len(rows), matrix.shape[1]))
    _product(np.ascontiguousarray(rows), np.ascontiguousarray(matrix), out)
    return out


@kernel
def _product(rows: Floats, matrix: Floats, out: Floats) -> None:
    if matrix.shape[1] == 1:  # the same sums, without a loop over one column
        for i in range(rows.shape[0]):
            total = 0.0
            for k in range(rows.shape[1]):
                total += rows[i, k] * matrix[k, 0]
            out[i, 0] = total
        return
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            factor = rows[i, k]
            for j in range(matrix.shape[1]):
                out[i, j] += factor * matrix[k, j]
