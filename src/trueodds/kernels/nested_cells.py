"""Nested cells of vectors: each cell is split at the mean of its axis of largest variance, to a given depth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import map_items, sum_blocks

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
    cell = np.zeros(len(x), dtype=np.int64)
    level, small_cells = [_Cell(np.arange(len(x)), x, 0, depth)], []
    while level:  # cells of few rows are split further one by one, in the cache
        small_cells += [candidate for candidate in level if len(candidate.rows) <= MAX_SMALL_CELL_ROWS]
        large_cells = [candidate for candidate in level if len(candidate.rows) > MAX_SMALL_CELL_ROWS]
        level = [half for pair in map_items(lambda parent: _split(parent, cell), large_cells) for half in pair]
    map_items(lambda small_cell: _split_completely(small_cell, cell), small_cells)
    return cell


class _Cell(NamedTuple):
    """A cell that may be split further."""

    rows: Array  # (rows,) numbers of its rows
    vectors: Array  # (rows, m) their vectors
    number: int
    depth: int  # number of splits to come


def _split_completely(start: _Cell, cell: Array) -> None:
    """Split a cell and its descendants, and store their numbers in `cell` (n,)."""
    pending_cells = [start]
    while pending_cells:
        pending_cells += _split(pending_cells.pop(), cell)


def _split(parent: _Cell, cell: Array) -> list[_Cell]:
    """Return both halves of a cell; if it is not split, none, and its number is stored in `cell` (n,)."""
    rows, vectors, number, depth = parent
    if depth and len(rows) > 1:
        axis = int(np.argmax(np.round(_variances(vectors), _ROUNDED_DECIMALS)))
        column = vectors[:, axis]
        is_low = column < round(float(column.mean()), _ROUNDED_DECIMALS)
        if is_low.any() and not is_low.all():  # otherwise the vectors are equal on every axis
            return [
                _Cell(rows[half], vectors.take(half, axis=0), 2 * number + is_high, depth - 1)
                for is_high, half in enumerate((np.flatnonzero(is_low), np.flatnonzero(~is_low)))
            ]
    cell[rows] = number << depth
    return []


def _variances(x: Array) -> Array:
    """Variance of each column of x (n, m), (m,)."""
    mean = x.mean(axis=0)

    def add_squares(start: int, stop: int, out: Array) -> None:
        deviation = x[start:stop] - mean
        out += np.einsum("ij,ij->j", deviation, deviation)

    return sum_blocks(add_squares, len(x), x.shape[1:], block=2**12) / len(x)
