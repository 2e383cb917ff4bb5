"""What falls into each cell when rows with a vector each, or whole clusters of them, are drawn with replacement?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled
from trueodds.kernels.resample import order_by_bin

_TILE = 64  # rows whose multiplicities are turned at a time


class VectorResampler:
    """Σw, Σwp and Σwy per cell for vectors p and y, from how often each unit (a row or a cluster) comes in each resample.

    `cell`, `w` (n,), `wp` and `wy` (n, m) say where each row adds what, `unit` (n,) whose multiplicity it takes. The rows
    are kept in the order of their cells, and a row's numbers in one piece: many cells of few rows are its business,
    where `Resampler` has few slots of many.
    """

    def __init__(self, cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> None:
        counted = np.flatnonzero(w != 0)  # a row outside a subgroup adds nothing
        cells = cell[counted]
        order = order_by_bin(cells, size)
        row = counted[order]
        self.unit = (row if unit is None else unit[row]).astype(np.uint32)
        self.first = np.searchsorted(cells[order], np.arange(size + 1))
        self.vectors = np.concatenate([w[row, None], wp[row], wy[row]], axis=1, dtype=np.float64)

    @property
    def numbers(self) -> int:
        """How many sums a resample has."""
        return (len(self.first) - 1) * self.vectors.shape[1]

    def arranged(self, times: Array) -> Array:
        """Of the multiplicities `times` (units, resamples) uint8 those of the rows as they lie here, (resamples, rows)."""
        out = np.empty((times.shape[1], len(self.unit)), dtype=np.uint8)
        _arranged(np.ascontiguousarray(times), self.unit, out)
        return out

    def sums(self, times: Array) -> tuple[Array, Array, Array]:
        """Σw (resamples, size), Σwp and Σwy (resamples, size, m) for arranged multiplicities."""
        m = self.vectors.shape[1] // 2
        out = np.zeros((len(times), len(self.first) - 1, 2 * m + 1))
        _add(times, self.first, self.vectors, out)
        return out[..., 0], out[..., 1 : m + 1], out[..., m + 1 :]


@compiled
def _arranged(times, unit, out):  # type: ignore[no-untyped-def]
    tile = np.empty((out.shape[0], _TILE), dtype=np.uint8)
    for start in range(0, unit.shape[0], _TILE):
        m = min(_TILE, unit.shape[0] - start)
        for i in range(m):
            row = times[unit[start + i]]
            for r in range(row.shape[0]):
                tile[r, i] = row[r]
        for r in range(out.shape[0]):
            out[r, start : start + m] = tile[r, :m]


def _sums(times, first, vectors, out):  # type: ignore[no-untyped-def]
    """A resample after the other for each cell, whose rows stay in the nearest cache."""
    for c in range(first.shape[0] - 1):
        for r in range(times.shape[0]):
            sums = out[r, c]
            for i in range(first[c], first[c + 1]):
                t, vector = np.float64(times[r, i]), vectors[i]
                for k in range(vectors.shape[1]):
                    sums[k] += t * vector[k]


_add = compiled(_sums, fastmath={"contract"})  # a product and its sum in one instruction
