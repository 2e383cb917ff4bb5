"""What do rows add to the cells of a table? Counts, and Σp, Σp², Σy, Σpy or a View's sums, class by class."""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compiled
from trueodds.kernels.cells import CELLS, placed, tiled
from trueodds.kernels.rows import ROWS, turned


@compiled
def added(columns, cells, m, n, sums):  # type: ignore[no-untyped-def]
    """Counts, Σp and Σp² of a tile of rows: columns (k, ROWS) with their cells, n (k·CELLS,), sums (k·CELLS, …)."""
    for c in range(columns.shape[0]):
        column, cell = columns[c], cells[c]
        count, total = n[c * CELLS : (c + 1) * CELLS], sums[c * CELLS : (c + 1) * CELLS]
        for i in range(m):
            s, x = np.uint32(cell[i]), np.float64(column[i])
            count[s] += 1
            total[s, 0] += x
            total[s, 1] += x * x


@compiled
def by_label(P, y, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """n and Σp, Σp², Σy, Σpy of the classes first..last−1 against labels y (n,), into n (…,) and sums (…, 4)."""
    k = last - first
    columns, cells = np.empty((k, ROWS), dtype=P.dtype), np.empty((k, ROWS), dtype=np.int32)
    x, q = np.empty(ROWS), np.empty(ROWS)
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        tiled(P, start, m, first, edges, exact, columns, x, q, cells)
        added(columns, cells, m, n, sums)
        for i in range(m):
            c = y[start + i] - first
            if 0 <= c < k:
                s = c * CELLS + np.int64(cells[c, i])
                sums[s, 2] += 1.0
                sums[s, 3] += np.float64(columns[c, i])


@compiled
def by_hit(P, hit, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """The same sums for columns with a yes or no each, hit (n, last − first)."""
    k = last - first
    columns, cells = np.empty((k, ROWS), dtype=P.dtype), np.empty((k, ROWS), dtype=np.int32)
    x, q = np.empty(ROWS), np.empty(ROWS)
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        tiled(P, start, m, first, edges, exact, columns, x, q, cells)
        added(columns, cells, m, n, sums)
        for c in range(k):
            for i in range(m):
                s, z = c * CELLS + np.int64(cells[c, i]), np.float64(hit[start + i, c])
                sums[s, 2] += z
                sums[s, 3] += z * np.float64(columns[c, i])


@compiled
def by_share(P, Y, w, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """n and Σw, Σwp, Σwy and a View's sums for weights w (n,) and outcome shares Y (n, last − first); sums (…, 9)."""
    k = last - first
    columns, cell = np.empty((k, ROWS), dtype=P.dtype), np.empty(ROWS, dtype=np.int32)
    x, q = np.empty(ROWS), np.empty(ROWS)
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        turned(P, start, m, first, columns)
        for c in range(k):
            placed(columns[c], m, edges, exact, x, q, cell)
            count, total = n[c * CELLS : (c + 1) * CELLS], sums[c * CELLS : (c + 1) * CELLS]
            for i in range(m):
                add_share(np.uint32(cell[i]), w[start + i], x[i], Y[start + i, c], count, total)


@compiled
def add_by_bin(P, Y, w, bin_index, n, sums):  # type: ignore[no-untyped-def]
    """n (m,) and the sums of `by_hit` (m, 4) or `by_share` (m, 9) for values P with outcomes Y, each in its slot."""
    for i in range(P.shape[0]):
        for c in range(P.shape[1]):
            s, p, z = bin_index[i, c], np.float64(P[i, c]), Y[i, c]
            if sums.shape[1] > 4:
                add_share(s, w[i], p, z, n, sums)
            else:
                add_hit(s, p, z, n, sums)


@compiled
def add_hit(s, p, z, n, sums):  # type: ignore[no-untyped-def]
    """Count a value p with outcome z in slot s."""
    n[s] += 1
    sums[s, 0] += p
    sums[s, 1] += p * p
    sums[s, 2] += z
    sums[s, 3] += z * p


@compiled
def add_share(s, a, p, z, n, sums):  # type: ignore[no-untyped-def]
    """Count a value p with outcome share z and weight a in slot s."""
    n[s] += 1
    sums[s, 0] += a
    sums[s, 1] += a * p
    sums[s, 2] += a * z
    sums[s, 3] += a * a
    sums[s, 4] += a * p * p
    sums[s, 5] += a * p * z
    sums[s, 6] += a * z * z
    sums[s, 7] += a * a * p * (1.0 - p)
    sums[s, 8] += a * a * (z - p) * (z - p)
