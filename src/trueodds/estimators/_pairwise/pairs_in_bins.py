"""Debiased statistics of bins: mean products of the residuals of pairs of different rows in the same bin."""

from __future__ import annotations

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.arithmetic import divide_or_zero
from trueodds.core.typing import Array
from trueodds.estimators.base import BinStatistic, CellStatistic
from trueodds.lenses.view import View

MIN_PAIR_WEIGHT = 1e-12  # (Σw)² − Σw² relative to (Σw)² up to which it is a rounding error, and a bin holds one row


class RowCells(CellStatistic):
    """Cell statistic whose cells are rows (or cells of a tally), for a function of Σw, Σwu, Σw²u² and Σw² by bin.

    u = y − p is the residual of a row. The sum of w_i u_i w_j u_j over the pairs i ≠ j of rows of a bin is (Σwu)² minus
    Σw²u², so a draw needs the sums of each row.
    """

    def __init__(self, view: View, partition: Partition, bin_statistic: BinStatistic) -> None:
        self.bin_statistic = bin_statistic
        bin_of_row = view.assign(view.cached(partition, lambda: partition.fit(view)))
        order = np.argsort(bin_of_row, kind="stable")
        self.size = len(bin_of_row)
        self.index = np.empty(self.size, dtype=np.int64)
        self.index[order] = np.arange(self.size)
        self.starts = np.flatnonzero(np.diff(bin_of_row[order], prepend=-1))
        sums = (view.w, view.w * (view.y - view.p), view.sums("wwr"), view.sums("ww"))
        self.sums = tuple(self._sum_by_bin(x[order]) for x in sums)
        w = view.w[order]
        self.row_weight = divide_or_zero(view.sums("ww")[order], w)  # the weight of one row of a cell
        self.is_rows = view.is_rows
        if not self.is_rows:
            self.has_hard_labels = np.allclose(view.sums("wyy"), view.w * view.y, rtol=1e-9, atol=0)
            # Σwp² and Σw²u² of each cell as multiples of its Σw, which a draw keeps.
            self.wpp_per_weight, self.wwr_per_weight = (
                divide_or_zero(view.sums(name)[order], w) for name in ("wpp", "wwr")
            )

    def value(self) -> float:
        return float(self.bin_statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        residual = wy - wp
        squares = (
            residual * residual * divide_or_zero(self.row_weight, w)
            if self.is_rows
            else self._squared_residuals(w, wp, wy)
        )
        return self.bin_statistic(*(self._sum_by_bin(x) for x in (w, residual, squares, w * self.row_weight)))

    def _squared_residuals(self, w: Array, wp: Array, wy: Array) -> Array:
        """Σw²u² of cells. Binary outcomes have y² = y, and shares of votes keep their squares."""
        if not self.has_hard_labels:
            return self.wwr_per_weight * w
        return self.row_weight * (wy - 2 * divide_or_zero(wp, w) * wy + self.wpp_per_weight * w)

    def _sum_by_bin(self, x: Array) -> Array:
        """Sum over the rows of each bin, from (…, n) in the order of the bins to (…, bins)."""
        return np.asarray(np.add.reduceat(x, self.starts, axis=-1))


def mean_of_bins(w: Array, ww: Array, square: Array) -> Array:
    """Return the mean over bins (…) of a `square` by bin (…, bins), which needs pairs: bins of one row contribute 0."""
    return np.asarray((w * np.where(has_pairs(w, ww), square, 0.0)).sum(axis=-1) / w.sum(axis=-1))


def mean_square(w: Array, residual: Array, squares: Array, ww: Array) -> Array:
    """Return T_mn, the mean over bins of ((Σwu)² − Σw²u²) / ((Σw)² − Σw²), from these sums (…, bins), (…).

    This is the debiased squared calibration error of the bins (see `DebiasedL2`). `residual` is Σwu, and `squares` is
    Σw²u².
    """
    return mean_of_bins(w, ww, divide_or_zero(residual**2 - squares, w**2 - ww))


def has_pairs(w: Array, ww: Array) -> Array:
    """Return whether each bin holds more than one row: whether (Σw)² is larger than Σw²."""
    return np.asarray(w**2 - ww > MIN_PAIR_WEIGHT * w**2)
