"""Nested cells of vectors: each cell is split at the mean of its axis of largest variance, to a given depth."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

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
    pending_cells = [(np.arange(len(x)), 0, depth)]  # rows of a cell, its number, and the number of splits to come
    while pending_cells:
        rows, number, n_splits = pending_cells.pop()
        if n_splits == 0 or len(rows) < 2:
            cell[rows] = number << n_splits
            continue
        vectors = x[rows]
        axis = int(np.argmax(np.round(vectors.var(axis=0), _ROUNDED_DECIMALS)))
        column = vectors[:, axis]
        is_low = column < round(float(column.mean()), _ROUNDED_DECIMALS)
        if is_low.all() or not is_low.any():  # the vectors are equal on every axis
            cell[rows] = number << n_splits
            continue
        pending_cells.append((rows[is_low], 2 * number, n_splits - 1))
        pending_cells.append((rows[~is_low], 2 * number + 1, n_splits - 1))
    return cell
