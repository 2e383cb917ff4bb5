"""Nested cells of vectors: each cell is split at the mean of its axis of largest variance, to a given depth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_items

MAX_SMALL_CELL_ROWS = 2**15  # rows of a cell whose descendants are split by one thread
_ROUNDED_DECIMALS = 12  # to which means and variances are rounded before they are compared, against rounding errors


def nested_cells(x: Array, depth: int) -> Array:
    """Cell of each vector (n, m) among 2^depth nested cells, split at the mean of the axis of largest variance.

    A mean lies between clusters of vectors, while a median may split a cluster. The leading bits of a cell number are
    those of its parent cell, so one number per vector gives the cells at every depth. A median-variance tree stops at
    a minimum number of rows instead. Equal vectors share a cell.

    >>> nested_cells(np.array([[0.1], [0.2], [0.8], [0.9]]), 2)
    array([0, 1, 2, 3])
    """
    x, cell = as_plain_array(x), np.zeros(len(x), dtype=np.int64)
    level, small_cells = [_Cell(np.arange(len(x)), 0, depth)], []
    while level:  # cells of few rows are split further one by one, in the cache
        small_cells += [candidate for candidate in level if len(candidate.rows) <= MAX_SMALL_CELL_ROWS]
        large_cells = [candidate for candidate in level if len(candidate.rows) > MAX_SMALL_CELL_ROWS]
        level = [half for pair in map_items(lambda parent: _split(x, parent, cell), large_cells) for half in pair]
    map_items(lambda small_cell: _split_completely(x, small_cell, cell), small_cells)
    return cell


class _Cell(NamedTuple):
    """A cell that may be split further."""

    rows: Array  # (rows,) numbers of its rows, in increasing order
    number: int
    depth: int  # number of splits to come


def _split_completely(x: Array, start: _Cell, cell: Array) -> None:
    """Split a cell of the vectors x (n, m) and its descendants, and store their numbers in `cell` (n,)."""
    rows, number, depth = start
    vectors, descendants = as_plain_array(x.take(rows, axis=0)), np.empty(len(rows), dtype=np.int64)
    pending_cells = [_Cell(np.arange(len(rows)), number, depth)]
    while pending_cells:
        pending_cells += _split(vectors, pending_cells.pop(), descendants)
    cell[rows] = descendants


def _split(x: Array, parent: _Cell, cell: Array) -> list[_Cell]:
    """Return both halves of a cell of x (n, m); if it is not split, none, and its number is stored in `cell` (n,)."""
    rows, number, depth = parent
    if depth and len(rows) > 1:
        mean, variance = np.zeros((2, x.shape[1]))
        _means_and_variances(x, rows, mean, variance)
        axis = int(np.argmax(np.round(variance, _ROUNDED_DECIMALS)))
        column = x[rows, axis]
        is_low = column < round(float(column.mean()), _ROUNDED_DECIMALS)
        if is_low.any() and not is_low.all():  # otherwise the vectors are equal on every axis
            return [
                _Cell(rows[np.flatnonzero(half)], 2 * number + is_high, depth - 1)
                for is_high, half in enumerate((is_low, ~is_low))
            ]
    cell[rows] = number << depth
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
