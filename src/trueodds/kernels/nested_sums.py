"""Sum values over nested groups of consecutive cells (the nodes of a tree), and square the sums, at all scales.

A scale is a level of the tree. One pass over the cells computes the sums of all scales.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, compile_reordering


@compile_reordering
def _add_squares(cells, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the weighted squares of the sums of every node to `out` (draws, scales).

    `cells` is the x (draws, cells, m) of `nested_squares`.
    """
    scales, n_columns = is_last.shape[0], cells.shape[2]
    sums = np.empty((scales, n_columns))
    for draw in range(cells.shape[0]):
        sums[:] = 0.0
        for cell in range(cells.shape[1]):
            for column in range(n_columns):
                sums[0, column] += cells[draw, cell, column]
            scale = 0
            while scale < scales and is_last[scale, cell]:
                total = 0.0
                for column in range(n_columns):
                    total += sums[scale, column] * sums[scale, column] * weights[scale, cell, column]
                out[draw, scale] += total
                if scale + 1 < scales:
                    for column in range(n_columns):
                        sums[scale + 1, column] += sums[scale, column]
                for column in range(n_columns):
                    sums[scale, column] = 0.0
                scale += 1


@compile_kernel
def _add_squares_of_one_column(cells, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the same as `_add_squares` for a single column, without inner loops: cells (draws, cells)."""
    scales = is_last.shape[0]
    sums = np.empty(scales)
    for draw in range(cells.shape[0]):
        sums[:] = 0.0
        for cell in range(cells.shape[1]):
            sums[0] += cells[draw, cell]
            scale = 0
            while scale < scales and is_last[scale, cell]:
                node_sum = sums[scale]
                out[draw, scale] += node_sum * node_sum * weights[scale, cell]
                sums[scale] = 0.0
                scale += 1
                if scale < scales:
                    sums[scale] += node_sum


def nested_squares(x: Array, is_last: Array, weights: Array) -> Array:
    """Return Σ over nodes and columns of weight · (sum of x in the node)², for each draw and scale, (draws, scales).

    `x` is (draws, cells, m). `is_last` (scales, cells) marks the last cell of every node, the finest scale first; a
    node of one scale consists of complete nodes of the next finer one. `weights` (scales, cells, m) are read at the
    last cell of a node.

    >>> x = np.array([[[1.0], [2.0], [3.0], [4.0]]])
    >>> is_last = np.array([[False, True, False, True], [False, False, False, True]])
    >>> nested_squares(x, is_last, np.ones((2, 4, 1)))  # 3² + 7², (3 + 7)²
    array([[ 58., 100.]])
    """
    out = np.zeros((len(x), len(is_last)))
    if len(is_last) and x.shape[2] == 1:
        _add_squares_of_one_column(np.ascontiguousarray(x[..., 0]), is_last, np.ascontiguousarray(weights[..., 0]), out)
    elif len(is_last):
        _add_squares(np.ascontiguousarray(x), is_last, weights, out)
    return out
