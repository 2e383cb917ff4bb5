"""Sums per cell of the fine grid, straight from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled

Array = NDArray[Any]

WIDTH = 3840  # 2⁸·3·5: 10, 12, 15, 16, 20, 30 and 64 bins nest in it
HALVINGS = 20  # of the first and of the last cell
CELLS = WIDTH + 2 * HALVINGS


def _edges() -> Array:
    halves = 1 / WIDTH / 2.0 ** np.arange(1, HALVINGS + 1)
    # i/k, not linspace: i/3840 and j/15 are then the same float wherever they are the same number.
    return np.concatenate(([0.0], halves[::-1], np.arange(1, WIDTH) / WIDTH, 1 - halves, [1.0]))


EDGES: Array = _edges()  # (CELLS + 1,)
EDGES.flags.writeable = False
MIDDLES: Array = (EDGES[:-1] + EDGES[1:]) / 2  # strictly inside: edges that nest place a cell as they place its rows
MIDDLES.flags.writeable = False

# The bits of a positive float rise with it, so a shift by the mantissa's width finds the halving without a search.
_BITS = int(np.float64(1 / WIDTH).view(np.int64))
_MANTISSA = _BITS & ((1 << 52) - 1)
_EXPONENT = _BITS >> 52
_FIRST = 1 / WIDTH
_LAST = (WIDTH - 1) / WIDTH
_TURN = 4096  # rows summed class by class
_BUFFER = 2048  # values placed at a time: they stay in the nearest cache
_ROWS = 1000  # rows turned into columns at a time; columns a power of two apart would share cache sets


@compiled
def place(x, q, edges, exact, cells):  # type: ignore[no-untyped-def]
    """The cell of each x, given q = 1 − x; `exact` where float32 values make the arithmetic exact."""
    x_bits = x.view(np.int64)
    q_bits = q.view(np.int64)
    for j in range(x.shape[0]):
        middle = np.int64(np.int32(np.ceil(x[j] * WIDTH))) + (HALVINGS - 1)
        low = max(((x_bits[j] - 1 - _MANTISSA) >> 52) - (_EXPONENT - 1 - HALVINGS), 0)
        high = min(WIDTH + HALVINGS - 1 + (_EXPONENT - 1) - ((q_bits[j] - _MANTISSA) >> 52), CELLS - 1)
        cells[j] = low if x[j] <= _FIRST else (high if x[j] > _LAST else middle)
    if exact:
        return
    near = 0  # in float64 the product can round across an edge, by less than 1e-12: then the stored edges decide
    for j in range(x.shape[0]):
        t = x[j] * WIDTH
        near += (x[j] > _FIRST) & ((abs(t - np.rint(t)) < 1e-11) | (x[j] > _LAST))
    if near > 0:
        for j in range(x.shape[0]):
            c = cells[j]
            if x[j] > edges[c + 1] and c < CELLS - 1:
                cells[j] = c + 1
            elif x[j] <= edges[c] and c > 0:
                cells[j] = c - 1


@compiled
def _widen(P, start, stop, first, last, x, q):  # type: ignore[no-untyped-def]
    m = 0
    for i in range(start, stop):
        for c in range(first, last):
            x[m] = P[i, c]
            q[m] = 1.0 - x[m]
            m += 1
    return m


@compiled
def cells_of(P, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """The cell of every value of the classes first..last−1 of P, out (n, last − first) uint16, best class by class."""
    k = last - first
    rows = max(1, _BUFFER // k)
    x, q, cells = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k, dtype=np.int32)
    columns = out.T
    for start in range(0, P.shape[0], rows):
        m = min(rows, P.shape[0] - start)
        for i in range(m):
            for c in range(k):
                x[c * m + i] = P[start + i, first + c]
        for j in range(m * k):
            q[j] = 1.0 - x[j]
        place(x[: m * k], q[: m * k], edges, exact, cells[: m * k])
        for c in range(k):
            here, placed = columns[c], cells[c * m :]
            for i in range(m):
                here[start + i] = placed[i]


@compiled
def by_label(P, y, cells, first, out):  # type: ignore[no-untyped-def]
    """n, Σp, Σp², Σy, Σpy of the classes first, first + 1, … into out (m·CELLS, 5); cells (n, m), labels y (n,).

    Class by class for many rows, so that the sums in use fit a core's own cache.
    """
    k = cells.shape[1]
    columns = cells.T
    for start in range(0, P.shape[0], _TURN):
        stop = min(start + _TURN, P.shape[0])
        for c in range(k):
            sums, column = out[c * CELLS : (c + 1) * CELLS], columns[c]
            for i in range(start, stop):
                s = np.int64(column[i])
                x = np.float64(P[i, first + c])
                sums[s, 0] += 1.0
                sums[s, 1] += x
                sums[s, 2] += x * x
        for i in range(start, stop):
            c = y[i] - first
            if 0 <= c < k:
                s = c * CELLS + np.int64(columns[c, i])
                out[s, 3] += 1.0
                out[s, 4] += np.float64(P[i, y[i]])


@compiled
def by_rank(P, which, y, cells, out):  # type: ignore[no-untyped-def]
    """The same sums of the largest values, which (ranks, n) are their classes, with the cells (n, K) of all classes."""
    for i in range(P.shape[0]):
        for rank in range(which.shape[0]):
            c = which[rank, i]
            s, x, z = rank * CELLS + np.int64(cells[i, c]), np.float64(P[i, c]), np.float64(c == y[i])
            out[s, 0] += 1.0
            out[s, 1] += x
            out[s, 2] += x * x
            out[s, 3] += z
            out[s, 4] += z * x


@compiled
def by_hit(P, hit, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """The same sums for columns with a yes or no each, hit (n, last − first)."""
    k = last - first
    rows = max(1, _BUFFER // k)
    x, q, cells = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k, dtype=np.int32)
    for start in range(0, P.shape[0], rows):
        stop = min(start + rows, P.shape[0])
        m = _widen(P, start, stop, first, last, x, q)
        place(x[:m], q[:m], edges, exact, cells[:m])
        m = 0
        for i in range(start, stop):
            for c in range(k):
                s = c * CELLS + np.int64(np.uint32(cells[m]))
                z = np.float64(hit[i, c])
                out[s, 0] += 1.0
                out[s, 1] += x[m]
                out[s, 2] += x[m] * x[m]
                out[s, 3] += z
                out[s, 4] += z * x[m]
                m += 1


@compiled
def by_share(P, Y, w, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """n, Σw, Σwp, Σwy and a View's sums for weights w (n,) and outcome shares Y (n, last − first); out (…, 10)."""
    k = last - first
    rows = max(1, _BUFFER // k)
    x, q, cells = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k, dtype=np.int32)
    for start in range(0, P.shape[0], rows):
        stop = min(start + rows, P.shape[0])
        m = _widen(P, start, stop, first, last, x, q)
        place(x[:m], q[:m], edges, exact, cells[:m])
        m = 0
        for i in range(start, stop):
            a = w[i]
            for c in range(k):
                s = c * CELLS + np.int64(np.uint32(cells[m]))
                p, z = x[m], Y[i, c]
                out[s, 0] += 1.0
                out[s, 1] += a
                out[s, 2] += a * p
                out[s, 3] += a * z
                out[s, 4] += a * a
                out[s, 5] += a * p * p
                out[s, 6] += a * p * z
                out[s, 7] += a * z * z
                out[s, 8] += a * a * p * (1.0 - p)
                out[s, 9] += a * a * (z - p) * (z - p)
                m += 1


@compiled
def covariance(P, w, cells, report, bins, out):  # type: ignore[no-untyped-def]
    """Σ w²(δ_kl p_k − p_k p_l) of each pair of classes and their bins, k ≤ l; w (n,) or (0,).

    Pair of classes by pair, so that the sums in use fit the nearest cache, into out (K(K + 1)/2, copies, bins²), to
    be summed over the copies, a power of two: rows take turns, since adding to one place twice in a row waits.
    """
    k, copies = P.shape[1], out.shape[1]
    x, scaled = np.empty((k, _ROWS)), np.empty((k, _ROWS))
    line, slot = np.empty((k, _ROWS), dtype=np.uint32), np.empty((k, _ROWS), dtype=np.uint32)
    columns = cells.T
    weighted = w.shape[0] > 0
    for start in range(0, P.shape[0], _ROWS):
        m = min(_ROWS, P.shape[0] - start)
        for i in range(m):
            for c in range(k):
                x[c, i] = P[start + i, c]
        for c in range(k):
            slots, lines, values, p, placed = slot[c], line[c], x[c], scaled[c], columns[c]
            for i in range(m):
                slots[i] = report[placed[start + i]]
            for i in range(m):
                lines[i] = (slots[i] + (np.uint32(i) & np.uint32(copies - 1)) * np.uint32(bins)) * np.uint32(bins)
            if weighted:
                for i in range(m):
                    p[i] = values[i] * (w[start + i] * w[start + i])
        pair = 0
        for c in range(k):
            lines, p = line[c], scaled[c] if weighted else x[c]
            for d in range(c, k):
                slots, other, own = slot[d], x[d], 1.0 if d == c else 0.0
                sums = out[pair].reshape(-1)
                for i in range(m):
                    sums[np.uint64(lines[i] + slots[i])] += p[i] * (own - other[i])
                pair += 1


@compiled
def occupied(table, index, n, sums):  # type: ignore[no-untyped-def]
    """The rows of a table whose first column is not 0: their numbers, that column, and the others; leaves zeros."""
    m = 0
    for i in range(table.shape[0]):
        if table[i, 0] != 0.0:
            index[m] = i
            n[m] = np.int64(table[i, 0])
            for c in range(sums.shape[1]):
                sums[m, c] = table[i, c + 1]
            for c in range(table.shape[1]):
                table[i, c] = 0.0
            m += 1


@compiled
def union_size(a, b):  # type: ignore[no-untyped-def]
    """How many numbers two rising lists hold together."""
    i = j = m = 0
    while i < a.shape[0] and j < b.shape[0]:
        x, y = a[i], b[j]
        i += x <= y
        j += y <= x
        m += 1
    return m + a.shape[0] - i + b.shape[0] - j


@compiled
def merge(a, a_n, a_sums, b, b_n, b_sums, index, n, sums):  # type: ignore[no-untyped-def]
    """Two tables with rising indices as one; rows of the same index are added."""
    i = j = 0
    width = sums.shape[1]
    for m in range(index.shape[0]):
        x = a[i] if i < a.shape[0] else np.int64(0x7FFFFFFFFFFFFFFF)
        y = b[j] if j < b.shape[0] else np.int64(0x7FFFFFFFFFFFFFFF)
        index[m] = min(x, y)
        n[m] = 0
        for c in range(width):
            sums[m, c] = 0.0
        if x <= y:
            n[m] += a_n[i]
            for c in range(width):
                sums[m, c] += a_sums[i, c]
            i += 1
        if y <= x:
            n[m] += b_n[j]
            for c in range(width):
                sums[m, c] += b_sums[j, c]
            j += 1
