"""What does a tally keep of rows with one label each? All of it in one pass, where there are few classes."""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compiled
from trueodds.kernels.cells import CELLS, tiled
from trueodds.kernels.covariance_sums import paired, room_for
from trueodds.kernels.rows import ROWS, looked, room, score, score_of_two
from trueodds.kernels.tables import add_hit, added


@compiled
def one_pass(P, y, ranks, atol, exact, single, edges, n, sums, counts, extremes, scores, report, bins, first, pairs):  # type: ignore[no-untyped-def]
    """Everything about P (n, K) with labels y (n,), tile by tile, so that a row is fetched once.

    n ((ranks + K)·CELLS,) and sums (…, 4) take counts and Σp, Σp², Σy, Σpy of the largest values and of the classes;
    `counts` and `extremes` what `surveyed` tells; scores (2, 3) how many rows have a finite Brier score and log loss,
    their sum and that of their squares (`single` as `scored` has it); `pairs` what `together` adds, unless there are no bins.
    """
    k = P.shape[1]
    columns, cells = np.empty((k, ROWS), dtype=P.dtype), np.empty((k, ROWS), dtype=np.int32)
    x, q, none = np.empty(ROWS), np.empty(ROWS), np.empty(0)
    tile, pair_room = room(P), room_for(k)
    _, square, top, at = tile
    class_n, class_sums = n[ranks * CELLS :], sums[ranks * CELLS :]
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        labels = y[start : start + m]
        tiled(P, start, m, 0, edges, exact, columns, x, q, cells)
        looked(columns, m, atol, ranks, tile, counts, extremes)
        added(columns, cells, m, class_n, class_sums)
        _labeled(columns, cells, labels, class_sums)
        _ranked(top, at, ranks, cells, labels, n, sums)
        _scored(columns, labels, square, single, scores)
        if bins > 0:
            paired(P, start, m, columns, cells, none, report, bins, first, pairs, pair_room)


@compiled
def _labeled(columns, cells, y, sums):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        c = np.uint32(y[i])
        s = np.uint32(c * np.uint32(CELLS) + np.uint32(cells[c, i]))
        sums[s, 2] += 1.0
        sums[s, 3] += np.float64(columns[c, i])


@compiled
def _ranked(top, at, ranks, cells, y, n, sums):  # type: ignore[no-untyped-def]
    for rank in range(ranks):
        values, classes = top[rank], at[rank]
        for i in range(y.shape[0]):
            c = np.uint32(classes[i])
            s = np.uint32(np.uint32(rank * CELLS) + np.uint32(cells[c, i]))
            x, z = np.float64(values[i]), np.float64(np.int64(c) == y[i])
            add_hit(s, x, z, n, sums)


@compiled
def _scored(columns, y, squares, single, scores):  # type: ignore[no-untyped-def]
    k, finite = columns.shape[0], 0
    brier = brier_squared = loss = loss_squared = 0.0
    for i in range(y.shape[0]):
        if k <= 2:
            p = np.float64(columns[k - 1, i])
            b, s = score_of_two(p, 1.0 - p if single else np.float64(columns[0, i]), y[i])
        else:
            b, s = score(np.float64(columns[y[i], i]), squares[i])
        brier += b
        brier_squared += b * b
        if s < np.inf:
            finite += 1
            loss += s
            loss_squared += s * s
    for j, value in enumerate((np.float64(y.shape[0]), brier, brier_squared)):
        scores[0, j] += value
    for j, value in enumerate((np.float64(finite), loss, loss_squared)):
        scores[1, j] += value
