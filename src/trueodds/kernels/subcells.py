"""How many rows does each bin hold in each cell of the fine grid, and what do they say on average?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain
from trueodds.kernels.cells import CELLS, EDGES, cells_of


def subcells(p: Array, index: Array, size: int) -> tuple[Array, Array, Array]:
    """Bin, number of rows and mean of p, of each pair of a bin and a fine cell that holds rows; by rising bin."""
    p, index = plain(p), plain(index)
    cell = np.empty((1, len(p)), dtype=np.uint16).T
    cells_of(p[:, None], 0, 1, EDGES, p.dtype == np.float32, cell)
    low, high = np.full(size, CELLS), np.full(size, -1)
    _cell_range(index, cell[:, 0], low, high)
    width = np.maximum(high - low + 1, 0)
    sums = np.zeros((int(width.sum()), 2))
    _add(index, cell[:, 0], p, np.cumsum(width) - width - low, sums)
    occupied = sums[:, 0] > 0
    n, total = sums[occupied].T
    return np.repeat(np.arange(size), width)[occupied], n, total / n


@compiled
def _cell_range(index, cell, low, high):  # type: ignore[no-untyped-def]
    """The first and the last cell of each bin."""
    for i in range(index.shape[0]):
        b, c = index[i], np.int64(cell[i])
        low[b] = min(low[b], c)
        high[b] = max(high[b], c)


@compiled
def _add(index, cell, p, first, out):  # type: ignore[no-untyped-def]
    for i in range(index.shape[0]):
        s = first[index[i]] + np.int64(cell[i])
        out[s, 0] += 1.0
        out[s, 1] += np.float64(p[i])
