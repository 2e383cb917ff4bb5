"""Sums per cell when rows are drawn with replacement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, in_blocks

Array = NDArray[Any]


@compiled
def _sums(rows, order, slots, w, wp, wy, out):  # type: ignore[no-untyped-def]
    times = np.empty(order.shape[1])
    for r in range(rows.shape[0]):
        times[:] = 0.0
        for j in range(rows.shape[1]):
            times[rows[r, j]] += 1.0
        for v in range(order.shape[0]):
            slot = slots[v, 0]
            mass = said = seen = 0.0
            for j in range(order.shape[1]):
                if slots[v, j] != slot:
                    out[r, 0, slot] = mass
                    out[r, 1, slot] = said
                    out[r, 2, slot] = seen
                    slot = slots[v, j]
                    mass = said = seen = 0.0
                i = order[v, j]
                mass += times[i] * w[i]
                said += times[i] * wp[v, j]
                seen += times[i] * wy[v, j]
            out[r, 0, slot] = mass
            out[r, 1, slot] = said
            out[r, 2, slot] = seen


class Resampler:
    """Σw, Σwp and Σwy per slot for each resample of rows.

    `slots` (n, V) is the slot of each row in each of V columns, no slot in two columns. The rows are kept in
    the order of their slots, so that a resample is read as a stream and each slot's sum stays in a register.
    """

    def __init__(self, slots: Array, w: Array, wp: Array, wy: Array, size: int) -> None:
        order = np.argsort(slots, axis=0, kind="stable")
        self.order = np.ascontiguousarray(order.T).astype(np.int32)
        self.slots, self.wp, self.wy = (
            np.ascontiguousarray(np.take_along_axis(x, order, axis=0).T) for x in (slots, wp, wy)
        )
        self.w, self.size = w, size

    def sums(self, rows: Array) -> Array:
        """The sums for `rows` (R, m), the row numbers drawn: (3, R, size)."""

        def work(a: int, b: int) -> Array:
            out = np.zeros((b - a, 3, self.size))
            _sums(rows[a:b], self.order, self.slots, self.w, self.wp, self.wy, out)
            return out

        return np.concatenate(list(in_blocks(work, len(rows), 16))).transpose(1, 0, 2)
