"""Sums per cell of a grid on the probability simplex, for lenses with a vector per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View


@dataclass(frozen=True, slots=True, eq=False)
class SimplexCells:
    """Sums over the occupied cells of a grid on the simplex. The cells of two batches are merged with `+`.

    Rows share a cell if each of their m coordinates lies in the same bin. Memory: 4·m + 24 + 16·m bytes per occupied
    cell. In the worst case every row has its own cell.
    """

    bins: int  # per axis of the grid
    keys: Array  # (c, m) int32, the bin of each coordinate; rows in lexicographic order
    n: Array  # (c,) int64, rows in the cell
    w: Array  # (c,) Σw
    ww: Array  # (c,) Σw²
    wp: Array  # (c, m) Σwp
    wy: Array  # (c, m) Σwy

    @classmethod
    def from_view(cls, view: View, bins: int) -> SimplexCells:
        axis_bins = Bins(np.arange(bins + 1) / bins)
        keys = np.stack([axis_bins.index(column) for column in view.partition_values.T], axis=1).astype(np.int32)
        w = view.w[:, None]
        p = view.p.astype(np.float64, copy=False)
        return _merge_cells(bins, keys, view.n.astype(np.int64), view.w, view.sums("ww"), w * p, w * view.y)

    def __add__(self, other: SimplexCells) -> SimplexCells:
        if self.bins != other.bins or self.keys.shape[1] != other.keys.shape[1]:
            raise InputError(
                "TO401",
                "Only cells of the same simplex grid can be added.",
                f"{self.bins} bins on {self.keys.shape[1]} axes and {other.bins} on {other.keys.shape[1]}",
                "Tally both with the same grid.",
            )
        names = ("keys", "n", "w", "ww", "wp", "wy")
        return _merge_cells(self.bins, *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def view(self, name: str, classes: int) -> View:
        """The joint view of these cells, each located at the midpoint of its bins."""
        has_weight = (self.w > 0)[:, None]
        midpoints = (self.keys + 0.5) / self.bins
        p = np.divide(self.wp, self.w[:, None], out=midpoints.copy(), where=has_weight)
        y = np.divide(self.wy, self.w[:, None], out=np.zeros_like(self.wy), where=has_weight)
        return View(
            p, y, self.w, n=self.n, sums={"ww": self.ww}, partition_values=midpoints, name=name, classes=classes
        )


def _merge_cells(bins: int, keys: Array, *sums: Array) -> SimplexCells:
    """Merge cells with the same key (c, m) by adding their `sums` (c, …), and sort them by key."""
    unique, inverse = np.unique(_sortable_keys(keys), return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    first = np.searchsorted(inverse[order], np.arange(len(unique)))
    return SimplexCells(bins, keys[order[first]], *(np.add.reduceat(values[order], first, axis=0) for values in sums))


def _sortable_keys(keys: Array) -> Array:
    """Return each row of keys (c, m) as a byte string (c,). The strings sort like the rows, lexicographically."""
    big_endian = np.ascontiguousarray(keys.astype(">u4"))
    return big_endian.view(f"V{4 * keys.shape[1]}")[:, 0]
