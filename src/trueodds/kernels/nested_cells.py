"""Split vectors into nested cells, and sum the squares of sums over the cells of all depths (the nodes of a tree).

Each cell is split at the mean of its axis of largest variance. A scale is a level of the tree; one pass over the cells
computes the sums of all scales.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, map_items

MAX_SMALL_CELL_ROWS = 2**15  # rows of a cell whose descendants are split by one thread
_ROUNDED_DECIMALS = 12  # to which means and variances are rounded before they are compared, against rounding errors


def nested_cells(x: Array, depth: int) -> Array:
    """Cell of each vector (n, m) among 2^depth nested cells, split at the mean of the axis of largest variance.

    A mean lies between clusters of vectors, while a median may split a cluster. The leading bits of a cell number are
    those of its parent cell, so one number per vector gives the cells at every depth. Equal vectors share a cell.

    >>> nested_cells(np.array([[0.1], [0.2], [0.8], [0.9]]), 2)
    array([0, 1, 2, 3])
    """
    x, cell_index = as_plain_array(x), np.zeros(len(x), dtype=np.int64)
    current_cells, small_cells = [_PendingCell(np.arange(len(x)), 0, depth)], []
    while current_cells:  # cells of few rows are split further one by one, in the cache
        small_cells += [candidate for candidate in current_cells if len(candidate.rows) <= MAX_SMALL_CELL_ROWS]
        large_cells = [candidate for candidate in current_cells if len(candidate.rows) > MAX_SMALL_CELL_ROWS]
        current_cells = [
            half for pair in map_items(lambda parent: _split(x, parent, cell_index), large_cells) for half in pair
        ]
    map_items(lambda small_cell: _split_completely(x, small_cell, cell_index), small_cells)
    return cell_index


class _PendingCell(NamedTuple):
    """A cell that may be split further."""

    rows: Array  # (rows,) numbers of its rows, in increasing order
    number: int
    depth: int  # number of splits to come


def _split_completely(x: Array, start: _PendingCell, cell_index: Array) -> None:
    rows, number, depth = start
    vectors, descendants = as_plain_array(x.take(rows, axis=0)), np.empty(len(rows), dtype=np.int64)
    pending_cells = [_PendingCell(np.arange(len(rows)), number, depth)]
    while pending_cells:
        pending_cells += _split(vectors, pending_cells.pop(), descendants)
    cell_index[rows] = descendants


def _split(x: Array, parent: _PendingCell, cell_index: Array) -> list[_PendingCell]:
    """Return both halves of a cell of x (n, m), or if it is not split, store its number in `cell_index` (n,)."""
    rows, number, depth = parent
    if depth and len(rows) > 1:
        mean, variance = np.zeros((2, x.shape[1]))
        _means_and_variances(x, rows, mean, variance)
        axis = int(np.argmax(np.round(variance, _ROUNDED_DECIMALS)))
        column = x[rows, axis]
        is_low = column < round(float(column.mean()), _ROUNDED_DECIMALS)
        if is_low.any() and not is_low.all():  # otherwise the vectors are equal on every axis
            return [
                _PendingCell(rows[np.flatnonzero(half)], 2 * number + is_high, depth - 1)
                for is_high, half in enumerate((is_low, ~is_low))
            ]
    cell_index[rows] = number << depth
    return []


@compile_kernel
def _means_and_variances(x, rows, mean, variance):  # type: ignore[no-untyped-def]
    """Write mean and variance of the columns of x (n, m) over some rows to `mean` and `variance` (m,), zero before."""
    n, m = rows.shape[0], x.shape[1]
    for i in range(n):
        for k in range(m):
            mean[k] += x[rows[i], k]
    for k in range(m):
        mean[k] /= n
    for i in range(n):
        for k in range(m):
            deviation = x[rows[i], k] - mean[k]
            variance[k] += deviation * deviation
    for k in range(m):
        variance[k] /= n


@compile_reordering
def _add_squares(sums_by_cell, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the weighted squares of the sums of every node of `sums_by_cell` to `out` (draws, scales)."""
    scales, n_columns = is_last.shape[0], sums_by_cell.shape[2]
    sums = np.empty((scales, n_columns))
    for draw in range(sums_by_cell.shape[0]):
        sums[:] = 0.0
        for cell in range(sums_by_cell.shape[1]):
            for column in range(n_columns):
                sums[0, column] += sums_by_cell[draw, cell, column]
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
def _add_squares_of_one_column(sums_by_cell, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the same as `_add_squares` for a single column, without inner loops: `sums_by_cell` (draws, cells)."""
    scales = is_last.shape[0]
    sums = np.empty(scales)
    for draw in range(sums_by_cell.shape[0]):
        sums[:] = 0.0
        for cell in range(sums_by_cell.shape[1]):
            sums[0] += sums_by_cell[draw, cell]
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
