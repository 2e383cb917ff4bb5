"""Sum the covariances of the outcomes of two classes under calibration, by the bins of both classes.

If a row with probabilities p is calibrated, its label is multinomial, and the outcomes (one-hot indicators) of the
classes k and l have the covariance δ_kl p_k − p_k p_l. These are summed over the rows, with squared weights, for each
pair of bins.

With many classes, most values of a row lie in the first bin. Products of two such values are summed by columns, and
products of such a value and one above the first bin by vectors. Only values above the first bin ("beyond" it) are
paired one by one.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_inline, compile_kernel, compile_reordering
from trueodds.kernels.fine_grid import CELL_EDGES, ROWS_PER_TILE, find_tile_cells

_MAX_PAIRED_CLASSES = 4  # number of classes up to which a loop over all pairs is faster than separating the first bin
_VALUES_PER_VECTOR = 4  # number of values per vector operation


def first_bin_edge(bin_of_cell: Array, k: int) -> float:
    """Upper edge of the first bin, or −1 for few classes k, where no value is treated as in the first bin."""
    return -1.0 if k <= _MAX_PAIRED_CLASSES else float(CELL_EDGES[np.count_nonzero(bin_of_cell == 0)])


def zero_covariance_sums(k: int, n_bins: int, first_edge: float) -> tuple[Array, ...]:
    """Return zero arrays for Σ w²p(1 − p) by class and bin, and for Σ w²p_k p_l by both classes and both bins.

    The latter are three: of two values in the first bin, k < l, (K, K); of one above it, by class and bin, and one in
    it, by class, (K·bins, …); and of two values above it, k < l, (K·bins, K·bins).
    """
    size, padded_k = k * n_bins, -(-k // _VALUES_PER_VECTOR) * _VALUES_PER_VECTOR if first_edge >= 0 else 0
    return np.zeros(size), np.zeros((k, k)), np.zeros((size, padded_k)), np.zeros((size, size))


def covariance_matrix(sums: tuple[Array, ...]) -> Array:
    """Return Σ w²(δ_kl p_k − p_k p_l) between classes and bins, upper triangle (K·bins, K·bins); overwrites `sums`."""
    variance, first_first, beyond_first, beyond_beyond = sums
    k, size = len(first_first), len(variance)
    covariance = np.subtract(0.0, beyond_beyond, out=beyond_beyond)
    if beyond_first.shape[1]:
        by_class = covariance.reshape(k, size // k, k, size // k)
        beyond_first, upper_triangle = beyond_first[:, :k].reshape(k, -1, k), np.tri(k, k, -1).T
        by_class[:, :, :, 0] -= beyond_first * upper_triangle[:, None, :]
        by_class[:, 0, :, :] -= (beyond_first * upper_triangle.T[:, None, :]).transpose(2, 0, 1)
        by_class[:, 0, :, 0] -= first_first
    covariance[np.arange(size), np.arange(size)] += variance
    return covariance


@compile_kernel
def add_shared_bin_covariances(P, w, bin_of_cell, n_bins, first_edge, exact, edges, sums):  # type: ignore[no-untyped-def]
    """Add the rows of P (n, K) to the `sums` of `zero_covariance_sums`, if all classes have the same bins.

    The weights w are (n,), or (0,) for weight 1. `bin_of_cell` (CELLS,) maps the cells of the fine grid to bins.
    """
    k = P.shape[1]
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement, buffers = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), covariance_buffers(k)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, 0, edges, exact, columns, x, complement, cells)
        add_covariance_tile(P, start, m, columns, cells, w, bin_of_cell, n_bins, first_edge, sums, buffers)


@compile_inline
def covariance_buffers(k):  # type: ignore[no-untyped-def]
    """Return the buffers of `add_covariance_tile` for K classes.

    The weighted values in the first bin, by column (K, ROWS) and by row, are 0 for other values. The list of the values
    above the first bin has their positions in the tile, rows, indices of class and bin, and the entries that have
    further values in their row.
    """
    size = k * ROWS_PER_TILE
    index_lists = np.empty((5, size + 1), dtype=np.uint32)
    for j in range(size):
        index_lists[0, j] = j // k
    low_columns, low_rows = np.empty((k, ROWS_PER_TILE)), np.zeros(size + _VALUES_PER_VECTOR)
    return (
        np.ones(ROWS_PER_TILE),
        low_columns,
        low_rows,
        index_lists[0],
        index_lists[1],
        index_lists[2],
        index_lists[3],
        index_lists[4],
        np.empty(size),
    )


@compile_inline
def add_covariance_tile(P, start, m, columns, cells, w, bin_of_cell, n_bins, first_edge, sums, buffers):  # type: ignore[no-untyped-def]
    """Add the rows start..start + m − 1 of P to `sums`, given their transpose `columns` and its fine `cells`."""
    variance, first_first, beyond_first, beyond_beyond = sums
    weight, low_columns, low_rows, row_of, position, row, bin_index, open_entries, wp = buffers
    for i in range(m if w.shape[0] > 0 else 0):
        weight[i] = w[start + i]
    values = P[start : start + m].reshape(-1)
    if beyond_first.shape[1] > 0:
        _add_pairs_in_first_bin(columns, m, first_edge, weight, low_columns, n_bins, variance, first_first)
        for j in range(values.shape[0]):
            p_j = np.float64(values[j])
            low_rows[j] = p_j if p_j <= first_edge else 0.0
        for j in range(values.shape[0] if w.shape[0] > 0 else 0):
            low_rows[j] *= weight[row_of[j]]
    n_beyond = _find_values_above(values, first_edge, position)
    _add_values_beyond_first_bin(
        values,
        n_beyond,
        cells,
        weight,
        low_rows,
        row_of,
        position,
        bin_of_cell,
        n_bins,
        variance,
        beyond_first,
        row,
        bin_index,
        wp,
    )
    _add_pairs_beyond_first_bin(n_beyond, row, bin_index, wp, open_entries, beyond_beyond)


@compile_reordering
def _add_pairs_in_first_bin(columns, m, first_edge, w, low_columns, n_bins, variance, sums):  # type: ignore[no-untyped-def]
    """Add the terms of values in the first bin: w²p(1 − p) of each, and products of two in the same row."""
    k = columns.shape[0]
    for c in range(k):
        column, values, total = columns[c], low_columns[c], 0.0
        for i in range(m):
            value = np.float64(column[i])
            values[i] = value * w[i] if value <= first_edge else 0.0
        values[m:] = 0.0
        for i in range(m):
            total += values[i] * (w[i] - values[i])
        variance[c * n_bins] += total
    for c in range(k):
        values = low_columns[c]
        for d in range(c + 1, k - 3, 4):  # four columns at a time, so that `values` is read once for them
            column0, column1, column2, column3 = (
                low_columns[d],
                low_columns[d + 1],
                low_columns[d + 2],
                low_columns[d + 3],
            )
            sum0 = sum1 = sum2 = sum3 = 0.0
            for i in range(ROWS_PER_TILE):
                value = values[i]
                sum0 += value * column0[i]
                sum1 += value * column1[i]
                sum2 += value * column2[i]
                sum3 += value * column3[i]
            sums[c, d] += sum0
            sums[c, d + 1] += sum1
            sums[c, d + 2] += sum2
            sums[c, d + 3] += sum3
        for d in range(k - (k - 1 - c) % 4, k):
            column0, sum0 = low_columns[d], 0.0
            for i in range(ROWS_PER_TILE):
                sum0 += values[i] * column0[i]
            sums[c, d] += sum0


@compile_inline
def _find_values_above(values, first_edge, position):  # type: ignore[no-untyped-def]
    n_beyond = 0
    for j in range(values.shape[0]):
        position[np.uint32(n_beyond)] = j
        n_beyond += np.float64(values[j]) > first_edge
    return n_beyond


@compile_inline
def _add_values_beyond_first_bin(  # type: ignore[no-untyped-def]
    values,
    n_beyond,
    cells,
    w,
    low_rows,
    row_of,
    position,
    bin_of_cell,
    n_bins,
    variance,
    beyond_first,
    row,
    bin_index,
    wp,
):
    """Add the terms of values above the first bin: w²p(1 − p), and products with first-bin values of the same row."""
    k, n_padded, n_bins_unsigned = np.uint32(cells.shape[0]), beyond_first.shape[1], np.uint32(n_bins)
    for entry in range(n_beyond):
        j = position[entry]
        i = row_of[j]
        c = np.uint32(j - i * k)
        index = np.uint32(c * n_bins_unsigned + bin_of_cell[np.uint32(cells[c, i])])
        wp_entry = np.float64(values[j]) * w[i]
        row[entry], bin_index[entry], wp[entry] = i, index, wp_entry
        variance[index] += wp_entry * (w[i] - wp_entry)
        sums, low_values = beyond_first[index], low_rows[np.uint32(i * k) :]
        for d in range(n_padded):
            sums[d] += wp_entry * low_values[d]
    row[n_beyond] = ROWS_PER_TILE  # sentinel: no such row


@compile_inline
def _add_pairs_beyond_first_bin(n_beyond, row, bin_index, wp, open_entries, beyond_beyond):  # type: ignore[no-untyped-def]
    """Add the products of two values above the first bin in the same row, at lag 1, then 2, and so on.

    Entries without a partner at the next lag leave `open_entries`, so that the inner loop has no branch.
    """
    n_open = 0
    for entry in range(n_beyond):
        open_entries[np.uint32(n_open)] = entry
        n_open += row[entry + 1] == row[entry]
    lag, unsigned_one = np.uint32(1), np.uint32(1)
    while n_open > 0:
        n_still_open = 0
        for i_open in range(n_open):
            entry = open_entries[i_open]
            partner = np.uint32(entry + lag)
            beyond_beyond[bin_index[entry], bin_index[partner]] += wp[entry] * wp[partner]
            open_entries[np.uint32(n_still_open)] = entry
            n_still_open += row[np.uint32(partner + unsigned_one)] == row[entry]
        n_open = n_still_open
        lag = np.uint32(lag + unsigned_one)


# Number of rows whose covariances are added at a time; with a power of two, columns would share cache sets.
_ROWS_PER_PAIRWISE_TILE = 1000


@compile_kernel
def add_class_bin_covariances(P, w, bins, out):  # type: ignore[no-untyped-def]
    """Add Σ w²(δ_kl p_k − p_k p_l) of each pair of classes k ≤ l and their bins to `out` (K(K + 1)/2, size, size).

    This is the covariance of the outcomes of both classes under calibration, where labels are multinomial.

    P is (n, K), w (n,), or (0,) for weight 1. `bins` (K, n) are the bin indices of the values, below `size`. The loop
    runs over the pairs of classes, so that the sums of a pair fit the L1 cache. If all classes share their bins,
    `add_shared_bin_covariances` is faster.
    """
    k, weighted = P.shape[1], w.shape[0] > 0
    p_columns, scaled = np.empty((k, _ROWS_PER_PAIRWISE_TILE)), np.empty((k, _ROWS_PER_PAIRWISE_TILE))
    for start in range(0, P.shape[0], _ROWS_PER_PAIRWISE_TILE):
        m = min(_ROWS_PER_PAIRWISE_TILE, P.shape[0] - start)
        for i in range(m):
            squared_weight = w[start + i] * w[start + i] if weighted else 1.0
            for c in range(k):
                p_columns[c, i] = P[start + i, c]
                scaled[c, i] = p_columns[c, i] * squared_weight
        pair = 0
        for c in range(k):
            for d in range(c, k):
                sums, is_same_class = out[pair], 1.0 if d == c else 0.0
                for i in range(m):
                    sums[bins[c, start + i], bins[d, start + i]] += scaled[c, i] * (is_same_class - p_columns[d, i])
                pair += 1
