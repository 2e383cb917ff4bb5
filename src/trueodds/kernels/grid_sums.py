"""Sum predicted probabilities and outcomes per class and cell of the fine grid (see `fine_grid`).

In the shapes below, K or k is the number of classes, CELLS the number of cells of the grid, and ROWS the number of rows
that are processed at a time.
"""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compile_inline, compile_kernel
from trueodds.kernels.fine_grid import N_CELLS, find_column_cells, find_tile_cells
from trueodds.kernels.outcome_covariance import add_covariance_tile, covariance_buffers
from trueodds.kernels.row_statistics import (
    ROWS_PER_TILE,
    score_binary_row,
    score_row,
    summarize_tile,
    tile_buffers,
    transpose_rows,
)


@compile_inline
def add_tile_sums(columns, cells, m, n, sums):  # type: ignore[no-untyped-def]
    """Add the counts of m rows to n (k·CELLS,), and their Σp and Σp² to the first two columns of sums (k·CELLS, …).

    `columns` (k, ROWS) are the transposed rows, and `cells` (k, ROWS) the cells of their values.
    """
    for c in range(columns.shape[0]):
        column, cell = columns[c], cells[c]
        count, total = n[c * N_CELLS : (c + 1) * N_CELLS], sums[c * N_CELLS : (c + 1) * N_CELLS]
        for i in range(m):
            index, value = np.uint32(cell[i]), np.float64(column[i])
            count[index] += 1
            total[index, 0] += value
            total[index, 1] += value * value


@compile_kernel
def tally_labels(P, y, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (k·CELLS,) and Σp, Σp², Σy, Σpy to sums (k·CELLS, 4) by class and cell, for labels (n,).

    Only the k classes first..last−1 of P are used; in the sums, y is 1 for the class of the label and 0 for the others.
    `edges` and `exact` are as in `find_cells`.
    """
    k = last - first
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, first, edges, exact, columns, x, complement, cells)
        add_tile_sums(columns, cells, m, n, sums)
        for i in range(m):
            c = y[start + i] - first
            if 0 <= c < k:
                index = c * N_CELLS + np.int64(cells[c, i])
                sums[index, 2] += 1.0
                sums[index, 3] += np.float64(columns[c, i])


@compile_kernel
def tally_outcomes(P, outcomes, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add the sums of `tally_labels` for binary outcomes of each class separately, `outcomes` (n, last − first)."""
    k = last - first
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, first, edges, exact, columns, x, complement, cells)
        add_tile_sums(columns, cells, m, n, sums)
        for c in range(k):
            for i in range(m):
                index, outcome = c * N_CELLS + np.int64(cells[c, i]), np.float64(outcomes[start + i, c])
                sums[index, 2] += outcome
                sums[index, 3] += outcome * np.float64(columns[c, i])


@compile_kernel
def tally_weighted_shares(P, Y, w, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (k·CELLS,) and the nine sums of `add_weighted_outcome` to sums (k·CELLS, 9) by class and cell.

    The rows have weights w (n,) and outcome shares Y (n, last − first). The other arguments are those of
    `tally_labels`.
    """
    k = last - first
    columns, cell = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, first, columns)
        for c in range(k):
            find_column_cells(columns[c], m, edges, exact, x, complement, cell)
            count, total = n[c * N_CELLS : (c + 1) * N_CELLS], sums[c * N_CELLS : (c + 1) * N_CELLS]
            for i in range(m):
                add_weighted_outcome(np.uint32(cell[i]), w[start + i], x[i], Y[start + i, c], count, total)


@compile_kernel
def tally_bins(P, Y, w, bin_index, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (m,) and the sums of `add_outcome` to sums (m, 4), by given bins instead of cells of the grid.

    P, the outcomes Y and `bin_index`, from 0 to m − 1, are (n, k), and the weights w (n,). If sums is (m, 9), it
    receives the sums of `add_weighted_outcome`.
    """
    for i in range(P.shape[0]):
        for c in range(P.shape[1]):
            index, p, outcome = bin_index[i, c], np.float64(P[i, c]), Y[i, c]
            if sums.shape[1] > 4:
                add_weighted_outcome(index, w[i], p, outcome, n, sums)
            else:
                add_outcome(index, p, outcome, n, sums)


@compile_inline
def add_outcome(index, p, y, n, sums):  # type: ignore[no-untyped-def]
    """Add a value p with outcome y to the count, Σp, Σp², Σy and Σpy at an index of `n` and `sums`."""
    n[index] += 1
    sums[index, 0] += p
    sums[index, 1] += p * p
    sums[index, 2] += y
    sums[index, 3] += y * p


@compile_inline
def add_weighted_outcome(index, w, p, y, n, sums):  # type: ignore[no-untyped-def]
    """Add a value p with outcome share y and weight w to the count and the weighted sums at an index.

    The sums are Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1 − p) and Σw²(y − p)².
    """
    n[index] += 1
    sums[index, 0] += w
    sums[index, 1] += w * p
    sums[index, 2] += w * y
    sums[index, 3] += w * w
    sums[index, 4] += w * p * p
    sums[index, 5] += w * p * y
    sums[index, 6] += w * y * y
    sums[index, 7] += w * w * p * (1.0 - p)
    sums[index, 8] += w * w * (y - p) * (y - p)


@compile_kernel
def tally_rows(  # type: ignore[no-untyped-def]
    P,
    y,
    ranks,
    atol,
    exact,
    single_column,
    edges,
    n,
    sums,
    counts,
    extremes,
    scores,
    bin_of_cell,
    n_bins,
    first_edge,
    covariance_sums,
):
    """Tally P (n, K) with labels y (n,), tile by tile, so that each row is read from memory once.

    `n` ((ranks + K)·CELLS,) and `sums` (…, 4) receive counts and Σp, Σp², Σy, Σpy of the `ranks` largest values of each
    row and of the classes; `counts` and `extremes` the results of `summarize_rows`; `scores` (2, 3) the number of rows
    with a finite Brier score and log loss, their sum and sum of squares; `covariance_sums` those of
    `zero_covariance_sums`, for the bins of `add_covariance_tile`, if `n_bins` is not 0. `atol` is the deviation of a
    row sum from 1 that is considered rounding, `exact` and `edges` are as in `find_cells`, `single_column` as in
    `score_rows`.
    """
    k = P.shape[1]
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement, no_weights = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), np.empty(0)
    row_buffers, pair_buffers = tile_buffers(P), covariance_buffers(k)
    _, square, top, top_class = row_buffers
    class_n, class_sums = n[ranks * N_CELLS :], sums[ranks * N_CELLS :]
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        labels = y[start : start + m]
        find_tile_cells(P, start, m, 0, edges, exact, columns, x, complement, cells)
        summarize_tile(columns, m, atol, ranks, row_buffers, counts, extremes)
        add_tile_sums(columns, cells, m, class_n, class_sums)
        _add_label_outcomes(columns, cells, labels, class_sums)
        _add_ranked_values(top, top_class, ranks, cells, labels, n, sums)
        _add_scores(columns, labels, square, single_column, scores)
        if n_bins > 0:
            add_covariance_tile(
                P, start, m, columns, cells, no_weights, bin_of_cell, n_bins, first_edge, covariance_sums, pair_buffers
            )


@compile_inline
def _add_label_outcomes(columns, cells, y, sums):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        c = np.uint32(y[i])
        index = np.uint32(c * np.uint32(N_CELLS) + np.uint32(cells[c, i]))
        sums[index, 2] += 1.0
        sums[index, 3] += np.float64(columns[c, i])


@compile_inline
def _add_ranked_values(top_values, top_class, ranks, cells, y, n, sums):  # type: ignore[no-untyped-def]
    """Add the largest values of each row and whether their class was observed to `n` and `sums`, by rank and cell."""
    for rank in range(ranks):
        values_of_rank, classes_of_rank = top_values[rank], top_class[rank]
        for i in range(y.shape[0]):
            c = np.uint32(classes_of_rank[i])
            index = np.uint32(np.uint32(rank * N_CELLS) + np.uint32(cells[c, i]))
            value, outcome = np.float64(values_of_rank[i]), np.float64(np.int64(c) == y[i])
            add_outcome(index, value, outcome, n, sums)


@compile_inline
def _add_scores(columns, y, squares, single_column, scores):  # type: ignore[no-untyped-def]
    """Add the number, the sum and the sum of squares of Brier scores and log losses to `scores` (2, 3)."""
    k, finite = columns.shape[0], 0
    brier = brier_squared = loss = loss_squared = 0.0
    for i in range(y.shape[0]):
        if k <= 2:
            p = np.float64(columns[k - 1, i])
            row_brier, row_loss = score_binary_row(p, 1.0 - p if single_column else np.float64(columns[0, i]), y[i])
        else:
            row_brier, row_loss = score_row(np.float64(columns[y[i], i]), squares[i])
        brier += row_brier
        brier_squared += row_brier * row_brier
        if row_loss < np.inf:
            finite += 1
            loss += row_loss
            loss_squared += row_loss * row_loss
    for j, value in enumerate((np.float64(y.shape[0]), brier, brier_squared)):
        scores[0, j] += value
    for j, value in enumerate((np.float64(finite), loss, loss_squared)):
        scores[1, j] += value
