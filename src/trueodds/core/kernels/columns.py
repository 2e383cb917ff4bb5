"""What are the sums of one column of probabilities against its outcomes, bin by bin?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, plain, summed
from trueodds.core.kernels.edges import folded, placed, scale, thresholds

Array = NDArray[Any]

_ROWS = 1024  # placed at a time
_BLOCK = 2**16  # rows worth a thread's while


@compiled
def _of_labels(p, y, label, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """n, Σp and Σp² of the rows of other labels and of this one, by bin, into out (2·(bins + 2), 3)."""
    slot, none = np.empty(_ROWS, dtype=np.int32), np.zeros(_ROWS, dtype=np.int32)
    for start in range(0, p.shape[0], _ROWS):
        m = min(_ROWS, p.shape[0] - start)
        here = p[start : start + m]
        placed(here, m, bounds, bins, by, none, slot)
        for i in range(m):
            s = np.uint32(slot[i] * 2 + np.int32(y[start + i] == label))
            x = np.float64(here[i])
            out[s, 0] += 1.0
            out[s, 1] += x
            out[s, 2] += x * x


@compiled
def _of_rows(p, y, w, n, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """n, Σw, Σwp, Σwy and the sums of a View by bin, into out (bins + 2, 10)."""
    slot, none = np.empty(_ROWS, dtype=np.int32), np.zeros(_ROWS, dtype=np.int32)
    for start in range(0, p.shape[0], _ROWS):
        m = min(_ROWS, p.shape[0] - start)
        here = p[start : start + m]
        placed(here, m, bounds, bins, by, none, slot)
        for i in range(m):
            s = np.uint32(slot[i])
            a, x, z = w[start + i], np.float64(here[i]), y[start + i]
            out[s, 0] += n[start + i]
            out[s, 1] += a
            out[s, 2] += a * x
            out[s, 3] += a * z
            out[s, 4] += a * a
            out[s, 5] += a * x * x
            out[s, 6] += a * x * z
            out[s, 7] += a * z * z
            out[s, 8] += a * a * x * (1.0 - x)
            out[s, 9] += a * a * (z - x) * (z - x)


def label_sums(p: Array, y: Array, label: int, edges: Array, closed: str) -> Array:
    """n, Σp and Σp², (bins, 2, 3): rows of another label than this, and its own. p (n,), y (n,) int64."""
    bounds, bins, by = _cells(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_labels(plain(p[a:b]), plain(y[a:b]), label, bounds, bins, by, out)

    table = summed(add, len(p), (2 * (bins + 2), 3), block=_BLOCK)
    return folded(table.reshape(bins + 2, 6)).reshape(bins, 2, 3)


def row_sums(p: Array, y: Array, w: Array, n: Array, edges: Array, closed: str) -> Array:
    """n, Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)², (bins, 10); all but p float64."""
    bounds, bins, by = _cells(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_rows(plain(p[a:b]), plain(y[a:b]), plain(w[a:b]), plain(n[a:b]), bounds, bins, by, out)

    return folded(summed(add, len(p), (bins + 2, 10), block=_BLOCK))


def _cells(p: Array, edges: Array, closed: str) -> tuple[Array, int, float]:
    dtype = np.float64 if p.dtype == np.float64 else np.float32
    return thresholds(edges, closed, dtype), len(edges) - 1, scale(edges, closed, dtype)
