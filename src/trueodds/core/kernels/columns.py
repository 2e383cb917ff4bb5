"""What are the sums of one column of probabilities against its outcomes, bin by bin?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, plain, summed
from trueodds.core.kernels.edges import beyond, thresholds

Array = NDArray[Any]

_ROWS = 1024  # placed at a time
_BLOCK = 2**16  # rows worth a thread's while


@compiled
def _of_labels(p, y, label, bounds, out):  # type: ignore[no-untyped-def]
    """n, Σp and Σp² of the rows of other labels and of this one, by bin, into out (2·bins, 3)."""
    slot = np.empty(_ROWS, dtype=np.int32)
    for start in range(0, p.shape[0], _ROWS):
        m = min(_ROWS, p.shape[0] - start)
        here = p[start : start + m]
        slot[:m] = 0
        beyond(here, m, bounds, slot)
        for i in range(m):
            s = np.uint32(slot[i] * 2 + np.int32(y[start + i] == label))
            x = np.float64(here[i])
            out[s, 0] += 1.0
            out[s, 1] += x
            out[s, 2] += x * x


@compiled
def _of_rows(p, y, w, n, bounds, out):  # type: ignore[no-untyped-def]
    """n, Σw, Σwp, Σwy and the sums of a View by bin, into out (bins, 10)."""
    slot = np.empty(_ROWS, dtype=np.int32)
    for start in range(0, p.shape[0], _ROWS):
        m = min(_ROWS, p.shape[0] - start)
        here = p[start : start + m]
        slot[:m] = 0
        beyond(here, m, bounds, slot)
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
    bounds = _bounds(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_labels(plain(p[a:b]), plain(y[a:b]), label, bounds, out)

    bins = len(edges) - 1
    return summed(add, len(p), (2 * bins, 3), block=_BLOCK).reshape(bins, 2, 3)


def row_sums(p: Array, y: Array, w: Array, n: Array, edges: Array, closed: str) -> Array:
    """n, Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)², (bins, 10); all but p float64."""
    bounds = _bounds(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_rows(plain(p[a:b]), plain(y[a:b]), plain(w[a:b]), plain(n[a:b]), bounds, out)

    return summed(add, len(p), (len(edges) - 1, 10), block=_BLOCK)


def _bounds(p: Array, edges: Array, closed: str) -> Array:
    return thresholds(edges, closed, np.float64 if p.dtype == np.float64 else np.float32)
