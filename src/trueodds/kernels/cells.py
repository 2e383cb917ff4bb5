"""In which cell of the fine grid does a value lie?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled
from trueodds.kernels.rows import ROWS, turned

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
_FRACTION = (1 << 52) - 1
_MANTISSA = _BITS & _FRACTION
_EXPONENT = _BITS >> 52
_FIRST = 1 / WIDTH
_LAST = (WIDTH - 1) / WIDTH
# 1 − x is exact, but the stored edges there are rounded: by less than this share of the narrowest cell's mantissa.
_NEAR_ONE = 1 << 31


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
        inner = (x[j] > _FIRST) & (abs(t - np.rint(t)) < 1e-11)
        near += abs((q_bits[j] & _FRACTION) - _MANTISSA) < _NEAR_ONE if x[j] > _LAST else inner
    if near > 0:
        for j in range(x.shape[0]):
            c = np.int64(cells[j])
            c += np.int64(x[j] > edges[c + 1]) - np.int64(x[j] <= edges[c])
            cells[j] = min(max(c, 0), CELLS - 1)


@compiled
def placed(column, m, edges, exact, x, q, cells):  # type: ignore[no-untyped-def]
    """The cells of the first m values of a column; x and q are room for as many float64."""
    for i in range(m):
        x[i] = column[i] + 0.0  # −0 becomes 0, whose bits are the lowest
    for i in range(m):
        q[i] = 1.0 - x[i]
    place(x[:m], q[:m], edges, exact, cells[:m])


@compiled
def tiled(P, start, m, first, edges, exact, columns, x, q, cells):  # type: ignore[no-untyped-def]
    """The rows from `start` on as columns (k, ROWS), from the class `first` on, and the cell of each value."""
    turned(P, start, m, first, columns)
    for c in range(columns.shape[0]):
        placed(columns[c], m, edges, exact, x, q, cells[c])


@compiled
def cells_of(P, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """The cell of every value of the classes first..last−1 of P, out (n, last − first) uint16, best class by class."""
    k = last - first
    columns = np.empty((k, ROWS), dtype=P.dtype)
    x, q, cells = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS, dtype=np.int32)
    for start in range(0, P.shape[0], ROWS):
        m = min(ROWS, P.shape[0] - start)
        turned(P, start, m, first, columns)
        for c in range(k):
            placed(columns[c], m, edges, exact, x, q, cells)
            column = out.T[c]
            for i in range(m):
                column[start + i] = cells[i]
