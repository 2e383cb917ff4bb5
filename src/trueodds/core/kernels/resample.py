"""Sums per cell when rows are drawn with replacement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, in_blocks

Array = NDArray[Any]


@compiled
def _sums(rows, slots, w, wp, wy, out):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            i = rows[r, j]
            for v in range(slots.shape[1]):
                s = slots[i, v]
                out[r, s, 0] += w[i]
                out[r, s, 1] += wp[i, v]
                out[r, s, 2] += wy[i, v]


def sums(rows: Array, slots: Array, w: Array, wp: Array, wy: Array, size: int) -> Array:
    """Σw, Σwp and Σwy per slot for each resample, (R, size, 3).

    `rows` (R, n) are the rows drawn, `slots` (n, V) the slot of each row in each of V columns.
    """

    def work(a: int, b: int) -> Array:
        out = np.zeros((b - a, size, 3))
        _sums(rows[a:b], slots, w, wp, wy, out)
        return out

    return np.concatenate(list(in_blocks(work, len(rows), 16)))
