"""Bins of the scores of a view: mean prediction and event rate of each bin, histograms, and the number of bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import default_partition
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.diagrams.bin_intervals import BarFunction, BinIntervals
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.table_columns import Columns
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

# Equal cells of the histogram strip if the bins differ in width. Their edges are edges of a tally's cells, too, so that
# no cell of a tally is split.
N_STRIP_CELLS = 30


class BinnedView:
    """The bins of one view, lowest first. Bins without weight are omitted.

    Parameters
    ----------
    view : View
        The rows or the cells of a tally.
    partition : Partition or None
        The bins; None is the default partition.

    Attributes
    ----------
    fitted_partition : FittedPartition
        The partition fitted to the view.
    bin_index : ndarray (n,)
        The bin of each row, from 0 to n_bins − 1.
    n_bins : int
        Number of bins, empty ones included.
    order : ndarray (occupied bins,)
        The occupied bins by increasing lower edge, as positions among those in the order of the partition.
    columns : dict of str to ndarray
        The bins as columns of a table, in the order `order`: name of the view, number and edges of the bin, number of
        rows, weight, share of the weight, mean prediction, event rate, and their difference (`deviation`).
    """

    def __init__(self, view: View, partition: Partition | None) -> None:
        """Fit the partition to the view, and summarize the occupied bins."""
        self.view = view
        self.partition = partition or default_partition(view)
        self.fitted_partition = self.partition.fit(view)
        self.bin_index = np.asarray(view.assign(self.fitted_partition))
        self.n_bins = self.fitted_partition.size
        binned = view.pool(self.bin_index, self.n_bins)
        occupied = np.flatnonzero(np.bincount(self.bin_index, view.w, self.n_bins) > 0)
        low, high = self._edges(occupied)
        self.order = np.argsort(low, kind="stable")
        columns = {
            "view": np.full(len(occupied), view.name, dtype=object),
            "bin": occupied,
            "low": low,
            "high": high,
            "n": binned.n.astype(np.int64),
            "weight": binned.w,
            "share": binned.w / binned.w.sum(),
            "mean_prediction": binned.p,
            "outcome_rate": binned.y,
            "deviation": binned.y - binned.p,
        }
        self.columns: Columns = {name: column[self.order] for name, column in columns.items()}

    def _edges(self, occupied: Array) -> tuple[Array, Array]:
        """Lower and upper edges of the `occupied` bins, given by their numbers, (occupied bins,) each.

        The bins of a tree have no edges: those of a leaf are its smallest and its largest prediction.
        """
        if isinstance(self.fitted_partition, Bins):
            return self.fitted_partition.edges[:-1][occupied], self.fitted_partition.edges[1:][occupied]
        low, high = np.full(self.n_bins, np.inf), np.full(self.n_bins, -np.inf)
        np.minimum.at(low, self.bin_index, self.view.partition_values)
        np.maximum.at(high, self.bin_index, self.view.partition_values)
        return low[occupied], high[occupied]

    def intervals_by_level(self, bar_function: BarFunction, levels: Sequence[float]) -> tuple[BinIntervals, ...]:
        """Return the intervals of the bins at each level, lowest bin first, computed by `bar_function`."""
        return tuple(
            BinIntervals(bars.low[self.order], bars.high[self.order], tuple(bars.method[i] for i in self.order))
            for bars in bar_function(self.view, self.bin_index, self.n_bins, levels)
        )

    @property
    def has_equal_widths(self) -> bool:
        """Whether all bins have equal width, so that heights in a histogram are proportional to areas."""
        if not isinstance(self.fitted_partition, Bins):
            return False
        width = np.diff(self.fitted_partition.edges)
        return bool((width > 0).all() and np.ptp(width) < 1e-9)

    @property
    def strip_shares(self) -> Array:
        """The histogram of the scores for the strip below the diagram: shares of the weight in equal cells.

        Its `N_STRIP_CELLS` cells do not depend on the bins, whose widths may differ.
        """
        cells = Uniform(N_STRIP_CELLS).fit(self.view)
        cell_weights = np.bincount(cells.index(self.view.partition_values), self.view.w, N_STRIP_CELLS)
        return np.asarray(cell_weights / cell_weights.sum())

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: the mean of |deviation| over bins, weighted by their share of rows."""
        return float(self.columns["share"] @ np.abs(self.columns["deviation"]))


def pool_rows(view: View) -> View:
    """Return a view with a single cell, which has the mean prediction and the event rate of all rows."""
    return view.pool(np.zeros(len(view.w), dtype=np.intp), 1)


# Numbers of bins from 5 to 40 whose edges are edges of a tally's cells too: the divisors of 3,840.
NESTED_BIN_COUNTS = (5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 32, 40)


def score_histogram(view: View, n_bins: int) -> dict[str, Array]:
    """The histogram of the scores in `n_bins` equal bins: edges (`x_low`, `x_high`), n, weight and share of each."""
    columns = BinnedView(view, Uniform(n_bins)).columns
    source_columns = {"x_low": "low", "x_high": "high", "n": "n", "weight": "weight", "share": "share"}
    return {name: columns[column] for name, column in source_columns.items()}


def freedman_diaconis_bin_count(score_sums: DistinctScoreSums) -> int:
    """Freedman and Diaconis's number of bins on [0, 1], from 5 to 40; 20 if half of the rows share a score.

    Their bins have the width 2 IQR n^(−1/3), where IQR is the interquartile range of the scores. The number is rounded
    up to one whose edges are edges of a tally's cells.
    """
    cumulative_share = np.cumsum(score_sums.w) / score_sums.w.sum()
    # The tolerance 1e-12 lets a cumulative share that rounding puts below a quartile reach it.
    lower, upper = score_sums.score[np.searchsorted(cumulative_share, (0.25 - 1e-12, 0.75 - 1e-12))]
    min_bins = np.cbrt(score_sums.n.sum()) / (2 * (upper - lower)) if upper > lower else 20
    return next((n_bins for n_bins in NESTED_BIN_COUNTS if n_bins >= min_bins), NESTED_BIN_COUNTS[-1])
