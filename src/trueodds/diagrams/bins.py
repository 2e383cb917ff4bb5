"""Mean prediction, observed event rate and share of rows in each bin of a view, and histograms of its scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import default_partition
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.diagrams.bin_intervals import BinIntervals
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import MAX_CONVOLVED_ROWS

Columns = dict[str, Array]
BarFunction = Callable[[View, Array, int, Sequence[float]], tuple[BinIntervals, ...]]
N_STRIP_CELLS = 30  # equal cells of the strip where bins differ in width; their edges are edges of a tally's cells too


class BinnedView:
    """The bins of one view, lowest first. Bins without weight are omitted."""

    def __init__(self, view: View, partition: Partition | None) -> None:
        self.view = view
        self.partition = partition or default_partition(view)
        self.fitted_partition = self.partition.fit(view)
        self.bin_index = np.asarray(self.fitted_partition.index(view.partition_values))
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
        """The edges of the bins; for a tree, the smallest and largest prediction of each leaf."""
        if isinstance(self.fitted_partition, Bins):
            return self.fitted_partition.edges[:-1][occupied], self.fitted_partition.edges[1:][occupied]
        low, high = np.full(self.n_bins, np.inf), np.full(self.n_bins, -np.inf)
        np.minimum.at(low, self.bin_index, self.view.partition_values)
        np.maximum.at(high, self.bin_index, self.view.partition_values)
        return low[occupied], high[occupied]

    def intervals_by_level(self, bar_function: BarFunction, levels: Sequence[float]) -> tuple[BinIntervals, ...]:
        """Return the intervals of the bins, lowest bin first, at each level."""
        return tuple(
            BinIntervals(bars.low[self.order], bars.high[self.order], tuple(bars.method[i] for i in self.order))
            for bars in bar_function(self.view, self.bin_index, self.n_bins, levels)
        )

    @property
    def has_equal_widths(self) -> bool:
        """Whether all bins have equal width, so that heights in the strip are proportional to areas."""
        width = np.diff(self.fitted_partition.edges) if isinstance(self.fitted_partition, Bins) else np.zeros(1)
        return bool((width > 0).all() and np.ptp(width) < 1e-9)

    @property
    def strip_shares(self) -> Array:
        """The share of rows in each of `N_STRIP_CELLS` equal cells, independent of the bins."""
        cells = Uniform(N_STRIP_CELLS).fit(self.view)
        cell_weights = np.bincount(cells.index(self.view.partition_values), self.view.w, N_STRIP_CELLS)
        return np.asarray(cell_weights / cell_weights.sum())

    @property
    def calibration_error(self) -> float:
        """The mean of |deviation| over bins, weighted by their share of rows."""
        return float(self.columns["share"] @ np.abs(self.columns["deviation"]))


def pool_rows(view: View) -> View:
    """Pool all rows of a view into one cell."""
    return view.pool(np.zeros(len(view.w), dtype=np.intp), 1)


def stack_tables(tables: Sequence[Mapping[str, Array]]) -> Columns:
    """Concatenate tables row-wise into read-only columns."""
    table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
    for column in table.values():
        column.flags.writeable = False
    return table


def rows_to_columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Convert table rows with the same names into read-only columns; texts become columns of objects."""
    columns = {
        name: np.array([row[name] for row in rows], dtype=object if isinstance(rows[0][name], str) else None)
        for name in rows[0]
    }
    return stack_tables([columns])


def collect_bar_notes(methods: Sequence[str], views: Sequence[View], partition: Partition, unit: str) -> list[Note]:
    """Notes on how the bars were computed, where that is not the exact distribution for rows."""
    notes = []
    n_approximate = sum(method == "refined normal" for method in methods)
    if n_approximate:
        notes.append(
            Note(
                "TN241",
                f"For {n_approximate} of {len(methods)} {unit} (more than {MAX_CONVOLVED_ROWS:,} rows each) the"
                " consistency range is a refined normal approximation instead of exact.",
            )
        )
    if "normal" in methods:
        notes.append(
            Note(
                "TN242",
                "Rows of a bin have unequal weights; its range uses a normal approximation with variance"
                " Σw²p(1−p)/(Σw)².",
            )
        )
    if "residuals" in methods:
        notes.append(
            Note(
                "TN243",
                "Outcomes are shares of votes; ranges use a normal approximation with variance Σw²(y−p)²/(Σw)².",
            )
        )
    if methods and not {"wilson", "clopper-pearson"} & set(methods) and not all(view.is_rows for view in views):
        notes.append(Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows."))
    if methods and partition.uses_outcomes:
        notes.append(
            Note(
                "TN247",
                f"The bins depend on the outcomes ({partition}); bars that treat the bins as fixed are too narrow.",
            )
        )
    return notes


# Numbers of bins whose edges are edges of a tally's cells too.
NESTED_BIN_COUNTS = (5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 32, 40)


def score_histogram(view: View, n_bins: int) -> dict[str, Array]:
    """The share of rows in each of `count` equal bins of their score."""
    columns = BinnedView(view, Uniform(n_bins)).columns
    source_columns = {"x_low": "low", "x_high": "high", "n": "n", "weight": "weight", "share": "share"}
    return {name: columns[column] for name, column in source_columns.items()}


def freedman_diaconis_bin_count(score_sums: DistinctScoreSums) -> int:
    """Freedman and Diaconis's number of bins on [0, 1], from 5 to 40; 20 if half of the rows share a score."""
    cumulative_share = np.cumsum(score_sums.w) / score_sums.w.sum()
    lower, upper = score_sums.score[np.searchsorted(cumulative_share, (0.25 - 1e-12, 0.75 - 1e-12))]
    min_bins = np.cbrt(score_sums.n.sum()) / (2 * (upper - lower)) if upper > lower else 20
    return next((n_bins for n_bins in NESTED_BIN_COUNTS if n_bins >= min_bins), NESTED_BIN_COUNTS[-1])
