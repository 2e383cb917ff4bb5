"""Sum the rows of each cell, one column after the other, on several threads."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.parallel import map_columns


def sums_by_cell(index: Array, x: Array, size: int, w: Array | None = None) -> Array:
    """Return Σwx over the rows of each cell, (size,) for x (n,), and (size, m) for the columns of x (n, m).

    `index` (n,) is the cell of each row, below `size`, and `w` (n,) its weight, by default 1.

    >>> sums_by_cell(np.array([0, 2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3).tolist()
    [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]
    """
    if x.ndim == 1:
        return np.bincount(index, x if w is None else w * x, size)
    sums = np.empty((size, x.shape[1]))

    def sum_column(column: int) -> None:
        sums[:, column] = sums_by_cell(index, x[:, column], size, w)

    map_columns(sum_column, x.shape[1], len(x))
    return sums
