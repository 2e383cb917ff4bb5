"""Sum the covariances of the class indicators, given the predicted probabilities, by the bins of both classes.

In most rows most values lie in the first bin. Those meet each other as columns, and the others as vectors; only values
beyond the first bin are gone through pair by pair.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, reordered
from trueodds.kernels.fine_grid import EDGES, find_tile_cells
from trueodds.kernels.row_statistics import ROWS

_MAX_ALL_PAIRS = 4  # classes up to which going through all pairs costs less than telling the first bin apart
_STEP = 4  # numbers that are added in one go


def first_bin_edge(report: Array, k: int) -> float:
    """Return the upper edge of the first bin; negative if K classes put all values beyond it."""
    return -1.0 if k <= _MAX_ALL_PAIRS else float(EDGES[np.count_nonzero(report == 0)])


def empty_sums(k: int, bins: int, first: float) -> tuple[Array, ...]:
    """Return zero sums: Σ w²p(1 − p) of each class and bin, and Σ w²p_k p_l of two classes by the bins of both values.

    `own` (K·bins,); `low` (K, K) if both are in the first bin, k < l; `mixed` (K·bins, …) by class and bin of the one
    beyond it, and class of the other; `beyond` (K·bins, K·bins) if both are beyond it, k < l.
    """
    size, wide = k * bins, -(-k // _STEP) * _STEP if first >= 0 else 0
    return np.zeros(size), np.zeros((k, k)), np.zeros((size, wide)), np.zeros((size, size))


def covariance_matrix(sums: tuple[Array, ...]) -> Array:
    """Σ w²(δ_kl p_k − p_k p_l) between the classes and bins, (K·bins, K·bins), upper triangle; uses up the sums."""
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


@compiled
def add_rows(P, w, report, bins, first, exact, edges, sums):  # type: ignore[no-untyped-def]
    """Add the rows of P (n, K) with weights w (n,), or (0,) for weight 1; `report` (CELLS,) maps cells to bins."""
    k = P.shape[1]
    columns, cells = np.empty((k, ROWS), dtype=P.dtype), np.empty((k, ROWS), dtype=np.int32)
    x, q, room = np.empty(ROWS), np.empty(ROWS), covariance_buffers(k)
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        find_tile_cells(P, start, m, 0, edges, exact, columns, x, q, cells)
        add_covariance_tile(P, start, m, columns, cells, w, report, bins, first, sums, room)


@compiled
def covariance_buffers(k):  # type: ignore[no-untyped-def]
    """Room for tiles of K classes: weights, values in the first bin as columns and as rows; the row of each value.

    And of each value beyond the first bin its place, its row, its class and bin, whether others are behind it, w·p.
    """
    size = k * ROWS
    of = np.empty((5, size + 1), dtype=np.uint32)
    for j in range(size):
        of[0, j] = j // k
    low, rows = np.empty((k, ROWS)), np.zeros(size + _STEP)
    return np.ones(ROWS), low, rows, of[0], of[1], of[2], of[3], of[4], np.empty(size)


@compiled
def add_covariance_tile(P, start, m, columns, cells, w, report, bins, first, sums, room):  # type: ignore[no-untyped-def]
    """Adds m rows of P that are also there as columns (K, ROWS), with their cells."""
    own, low, mixed, beyond = sums
    weight, low_columns, low_rows, row_of, at, row, bin_index, live, x = room
    for i in range(m if w.shape[0] > 0 else 0):
        weight[i] = w[start + i]
    values = P[start : start + m].reshape(-1)
    if mixed.shape[1] > 0:
        _low(columns, m, first, weight, low_columns, bins, own, low)
        for j in range(values.shape[0]):
            p = np.float64(values[j])
            low_rows[j] = p if p <= first else 0.0
        for j in range(values.shape[0] if w.shape[0] > 0 else 0):
            low_rows[j] *= weight[row_of[j]]
    n_beyond = _beyond(values, first, at)
    _mixed(values, n_beyond, cells, weight, low_rows, row_of, at, report, bins, own, mixed, row, bin_index, x)
    _pairs(n_beyond, row, bin_index, x, live, beyond)


@reordered
def _low(columns, m, first, w, low, bins, own, sums):  # type: ignore[no-untyped-def]
    """The values in the first bin: with themselves, and with each other."""
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
        for d in range(c + 1, k - 3, 4):  # four at a time: `values` is read once for them
            a, b, e, f = low[d], low[d + 1], low[d + 2], low[d + 3]
            of_a = of_b = of_e = of_f = 0.0
            for i in range(ROWS):
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
            for i in range(ROWS):
                of_a += values[i] * a[i]
            sums[c, d] += of_a


@compiled
def _beyond(values, first, at):  # type: ignore[no-untyped-def]
    """Lists the values beyond the first bin; how many they are."""
    n_beyond = 0
    for j in range(values.shape[0]):
        at[np.uint32(n_beyond)] = j
        n_beyond += np.float64(values[j]) > first
    return n_beyond


@compiled
def _mixed(values, n_beyond, cells, w, low_rows, row_of, at, report, bins, own, mixed, row, bin_index, x):  # type: ignore[no-untyped-def]
    """Each of them with itself and with those of its row that lie in the first bin."""
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
    row[n_beyond] = ROWS  # behind the last one a row that there is not


@compiled
def _pairs(n_beyond, row, bin_index, x, live, beyond):  # type: ignore[no-untyped-def]
    """Add the products of each entry with the entries behind it in its row, at distance 1, then 2, and so on.

    Entries without a partner at a distance are removed from the list, so that the loops are long.
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


_ROWS = 1000  # rows turned into columns at a time; columns a power of two apart would share cache sets


@compiled
def add_covariance(P, w, bins, out):  # type: ignore[no-untyped-def]
    """Σ w²(δ_kl p_k − p_k p_l) of each pair of classes k ≤ l and their bins, into out (K(K + 1)/2, size, size).

    P (n, K), w (n,), or (0,) for rows of weight 1, bins (n, K). Pair of classes by pair, so that the sums in use fit
    the nearest cache. A tally's classes share their bins, which is quicker (see together.py).
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
