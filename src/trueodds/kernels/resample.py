"""What falls into each cell when rows, or whole clusters of them, are drawn with replacement?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled


def order_by_bin(bin_index: Array, size: int) -> Array:
    """The order in which slots below `size` rise, the first of equals first; sixteen bits are sorted by radix, ten times as fast."""
    return np.argsort(bin_index.astype(np.uint16) if size <= 2**16 else bin_index, kind="stable")


class Resampler:
    """Σw, Σwp and Σwy per slot, from how often each unit (a row or a cluster) comes in each resample.

    `slots`, `w`, `wp` and `wy` (n, columns) say where each row adds what, `unit` (n,) whose multiplicity it takes.
    The entries are kept in the order of their slots, so that a slot's sums stay in the nearest cache.
    """

    def __init__(self, slots: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> None:
        counted = np.flatnonzero((w != 0).ravel())  # a row outside a subgroup adds nothing
        bin_index = slots.ravel()[counted]
        order = order_by_bin(bin_index, size)
        entry = counted[order]
        row = entry // slots.shape[1]
        self.unit = (row if unit is None else unit[row]).astype(np.uint32)
        self.bin_index = bin_index[order].astype(np.uint32)
        self.parts = np.stack([x.ravel()[entry] for x in (w, wp, wy)], axis=1).astype(np.float64)
        self.size = size

    def sums(self, times: Array) -> Array:
        """The sums for the multiplicities `times` (units, resamples) uint8: (3, resamples, size)."""
        out = np.zeros((self.size, 3, times.shape[1]))
        _add(np.ascontiguousarray(times), self.unit, self.bin_index, self.parts, out)
        return out.transpose(1, 2, 0)


def _sums(times, unit, bin_index, parts, out):  # type: ignore[no-untyped-def]
    """Every resample at once for each entry; four entries of one slot together, so that its sums are touched once."""
    i, m = 0, unit.shape[0]
    while i < m:
        mass, wp, wy = out[bin_index[i], 0], out[bin_index[i], 1], out[bin_index[i], 2]
        a, aw, ap, ay = times[unit[i]], parts[i, 0], parts[i, 1], parts[i, 2]
        if i + 3 < m and bin_index[i + 3] == bin_index[i]:
            b, bw, bp, by = times[unit[i + 1]], parts[i + 1, 0], parts[i + 1, 1], parts[i + 1, 2]
            c, cw, cp, cy = times[unit[i + 2]], parts[i + 2, 0], parts[i + 2, 1], parts[i + 2, 2]
            d, dw, dp, dy = times[unit[i + 3]], parts[i + 3, 0], parts[i + 3, 1], parts[i + 3, 2]
            for r in range(times.shape[1]):
                ta, tb, tc, td = np.float64(a[r]), np.float64(b[r]), np.float64(c[r]), np.float64(d[r])
                mass[r] = mass[r] + ta * aw + tb * bw + tc * cw + td * dw
                wp[r] = wp[r] + ta * ap + tb * bp + tc * cp + td * dp
                wy[r] = wy[r] + ta * ay + tb * by + tc * cy + td * dy
            i += 4
        else:
            for r in range(times.shape[1]):
                t = np.float64(a[r])
                mass[r] += t * aw
                wp[r] += t * ap
                wy[r] += t * ay
            i += 1


_add = compiled(_sums, fastmath={"contract"})  # a product and its sum in one instruction
