"""Sum the covariances of the class indicators, given the predicted probabilities, by the bins of both classes.

With many classes, most values of a row lie in the first bin. Products of two such values are summed by columns, and
products of such a value and one above the first bin by vectors. Only values above the first bin are paired one by one.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, compile_reordering
from trueodds.kernels.fine_grid import CELL_EDGES, find_tile_cells
from trueodds.kernels.row_statistics import ROWS_PER_TILE

_MAX_ALL_PAIRS = 4  # number of classes up to which a loop over all pairs is faster than separating the first bin
_STEP = 4  # number of values per vector operation


def first_bin_edge(report: Array, k: int) -> float:
    """Return the upper edge of the first bin, or −1 for few classes k, where no value is treated as in the first bin.

    `report` (CELLS,) maps fine cells to bins.
    """
    return -1.0 if k <= _MAX_ALL_PAIRS else float(CELL_EDGES[np.count_nonzero(report == 0)])


def zero_covariance_sums(k: int, bins: int, first: float) -> tuple[Array, ...]:
    """Return zero arrays for Σ w²p(1 − p) by class and bin, and for Σ w²p_k p_l by both classes and both bins.

    Returns
    -------
    own : ndarray of shape (K·bins,)
        Σ w²p(1 − p).
    low : ndarray of shape (K, K)
        Σ w²p_k p_l, k < l, of two values in the first bin.
    mixed : ndarray of shape (K·bins, …)
        The same by class and bin of a value above the first bin, and by class of a value in the first bin.
    beyond : ndarray of shape (K·bins, K·bins)
        The same, k < l, of two values above the first bin.
    """
    size, wide = k * bins, -(-k // _STEP) * _STEP if first >= 0 else 0
    return np.zeros(size), np.zeros((k, k)), np.zeros((size, wide)), np.zeros((size, size))


def covariance_matrix(sums: tuple[Array, ...]) -> Array:
    """Return Σ w²(δ_kl p_k − p_k p_l) between classes and bins, upper triangle (K·bins, K·bins); overwrites `sums`."""
    own, low, mixed, beyond = sums
    k, size = len(low), len(own)
    covariance = np.subtract(0.0, beyond, out=beyond)
    if mixed.shape[1]:
        by_class = covariance.reshape(k, size // k, k, size // k)
        mixed, above = mixed[:, :k].reshape(k, -1, k), np.tri(k, k, -1).T
        by_class[:, :, :, 0] -= mixed * above[:, None, :]
        by_class[:, 0, :, :] -= (mixed * above.T[:, None, :]).transpose(2, 0, 1)
        by_class[:, 0, :, 0] -= low
    covariance[np.arange(size), np.arange(size)] += own
    return covariance


@compile_kernel
def add_shared_bin_covariances(P, w, report, bins, first, exact, edges, sums):  # type: ignore[no-untyped-def]
    """Add the rows of P (n, K) with weights w (n,), or (0,) for weight 1; `report` (CELLS,) maps fine cells to bins."""
    k = P.shape[1]
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, q, room = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), covariance_buffers(k)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, 0, edges, exact, columns, x, q, cells)
        add_covariance_tile(P, start, m, columns, cells, w, report, bins, first, sums, room)


@compile_kernel
def covariance_buffers(k):  # type: ignore[no-untyped-def]
    """Return the buffers of `add_covariance_tile` for K classes.

    These are the weights, the weighted values in the first bin by column and by row, and the row of each value. For the
    list of values above the first bin they are the positions, rows, indices of class and bin, the entries with further
    values in their row, and w·p.
    """
    size = k * ROWS_PER_TILE
    of = np.empty((5, size + 1), dtype=np.uint32)
    for j in range(size):
        of[0, j] = j // k
    low, rows = np.empty((k, ROWS_PER_TILE)), np.zeros(size + _STEP)
    return np.ones(ROWS_PER_TILE), low, rows, of[0], of[1], of[2], of[3], of[4], np.empty(size)


@compile_kernel
def add_covariance_tile(P, start, m, columns, cells, w, report, bins, first, sums, room):  # type: ignore[no-untyped-def]
    """Add the rows start..start + m − 1 of P, given their transpose `columns` and its fine `cells`, both (K, ROWS)."""
    own, low, mixed, beyond = sums
    weight, low_columns, low_rows, row_of, at, row, bin_index, live, x = room
    for i in range(m if w.shape[0] > 0 else 0):
        weight[i] = w[start + i]
    values = P[start : start + m].reshape(-1)
    if mixed.shape[1] > 0:
        _add_first_bin(columns, m, first, weight, low_columns, bins, own, low)
        for j in range(values.shape[0]):
            p = np.float64(values[j])
            low_rows[j] = p if p <= first else 0.0
        for j in range(values.shape[0] if w.shape[0] > 0 else 0):
            low_rows[j] *= weight[row_of[j]]
    n_beyond = _positions_above(values, first, at)
    _add_other_bins(values, n_beyond, cells, weight, low_rows, row_of, at, report, bins, own, mixed, row, bin_index, x)
    _pairs(n_beyond, row, bin_index, x, live, beyond)


@compile_reordering
def _add_first_bin(columns, m, first, w, low, bins, own, sums):  # type: ignore[no-untyped-def]
    """Add the terms of values in the first bin: w²p(1 − p) of each, and products of two in the same row."""
    k = columns.shape[0]
    for c in range(k):
        column, values, total = columns[c], low[c], 0.0
        for i in range(m):
            x = np.float64(column[i])
            values[i] = x * w[i] if x <= first else 0.0
        values[m:] = 0.0
        for i in range(m):
            total += values[i] * (w[i] - values[i])
        own[c * bins] += total
    for c in range(k):
        values = low[c]
        for d in range(c + 1, k - 3, 4):  # four columns at a time, so that `values` is read once for them
            a, b, e, f = low[d], low[d + 1], low[d + 2], low[d + 3]
            of_a = of_b = of_e = of_f = 0.0
            for i in range(ROWS_PER_TILE):
                x = values[i]
                of_a += x * a[i]
                of_b += x * b[i]
                of_e += x * e[i]
                of_f += x * f[i]
            sums[c, d] += of_a
            sums[c, d + 1] += of_b
            sums[c, d + 2] += of_e
            sums[c, d + 3] += of_f
        for d in range(k - (k - 1 - c) % 4, k):
            a, of_a = low[d], 0.0
            for i in range(ROWS_PER_TILE):
                of_a += values[i] * a[i]
            sums[c, d] += of_a


@compile_kernel
def _positions_above(values, first, at):  # type: ignore[no-untyped-def]
    """Write the positions of the values above `first` to `at`; return their number."""
    n_beyond = 0
    for j in range(values.shape[0]):
        at[np.uint32(n_beyond)] = j
        n_beyond += np.float64(values[j]) > first
    return n_beyond


@compile_kernel
def _add_other_bins(values, n_beyond, cells, w, low_rows, row_of, at, report, bins, own, mixed, row, bin_index, x):  # type: ignore[no-untyped-def]
    """Add the terms of values above the first bin: w²p(1 − p), and products with first-bin values of the same row."""
    k, wide, count = np.uint32(cells.shape[0]), mixed.shape[1], np.uint32(bins)
    for h in range(n_beyond):
        j = at[h]
        i = row_of[j]
        c = np.uint32(j - i * k)
        s = np.uint32(c * count + report[np.uint32(cells[c, i])])
        p = np.float64(values[j]) * w[i]
        row[h], bin_index[h], x[h] = i, s, p
        own[s] += p * (w[i] - p)
        into, low = mixed[s], low_rows[np.uint32(i * k) :]
        for d in range(wide):
            into[d] += p * low[d]
    row[n_beyond] = ROWS_PER_TILE  # sentinel: no such row


@compile_kernel
def _pairs(n_beyond, row, bin_index, x, live, beyond):  # type: ignore[no-untyped-def]
    """Add the products of two values above the first bin in the same row, at lag 1, then 2, and so on.

    Entries without a partner at the next lag are removed from the list `live`, so that the inner loop has no branch.
    """
    left = 0
    for h in range(n_beyond):
        live[np.uint32(left)] = h
        left += row[h + 1] == row[h]
    lag, one = np.uint32(1), np.uint32(1)
    while left > 0:
        still = 0
        for a in range(left):
            h = live[a]
            g = np.uint32(h + lag)
            beyond[bin_index[h], bin_index[g]] += x[h] * x[g]
            live[np.uint32(still)] = h
            still += row[np.uint32(g + one)] == row[h]
        left = still
        lag = np.uint32(lag + one)


_ROWS = 1000  # number of rows transposed at a time; with a power of two, columns would share cache sets


@compile_kernel
def add_class_bin_covariances(P, w, bins, out):  # type: ignore[no-untyped-def]
    """Add Σ w²(δ_kl p_k − p_k p_l) of each pair of classes k ≤ l and their bins to `out` (K(K + 1)/2, size, size).

    P is (n, K), w (n,), or (0,) for weight 1, and bins (n, K). The loop runs over the pairs of classes, so that the
    sums of a pair fit the L1 cache. If all classes share their bins, `add_shared_bin_covariances` is faster.
    """
    k, weighted = P.shape[1], w.shape[0] > 0
    x, scaled = np.empty((k, _ROWS)), np.empty((k, _ROWS))
    for start in range(0, P.shape[0], _ROWS):
        m = min(_ROWS, P.shape[0] - start)
        for i in range(m):
            square = w[start + i] * w[start + i] if weighted else 1.0
            for c in range(k):
                x[c, i] = P[start + i, c]
                scaled[c, i] = x[c, i] * square
        pair = 0
        for c in range(k):
            for d in range(c, k):
                sums, own = out[pair], 1.0 if d == c else 0.0
                for i in range(m):
                    sums[bins[start + i, c], bins[start + i, d]] += scaled[c, i] * (own - x[d, i])
                pair += 1
