"""Mean prediction, observed event rate and share of rows in each bin of a view, and histograms of its scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import default_for
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.diagrams.bin_intervals import Bars
from trueodds.diagrams.score_sums import ScoreSums
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import EXACT_ROWS

Columns = dict[str, Array]
BarFunction = Callable[[View, Array, int, Sequence[float]], tuple[Bars, ...]]
STRIP_CELLS = 30  # in which predictions are shown where the bins are not equally wide; whole cells of a tally


class Binned:
    """One view in its bins, lowest first; bins without weight are absent."""

    def __init__(self, view: View, partition: Partition | None) -> None:
        self.view = view
        self.partition = partition or default_for(view)
        self.frozen = self.partition.freeze(view)
        self.index = np.asarray(self.frozen.index(view.at))
        self.size = self.frozen.size
        binned = view.pool(self.index, self.size)
        occupied = np.flatnonzero(np.bincount(self.index, view.w, self.size) > 0)
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
        """The edges of the bins; of a tree, which has none, the smallest and largest prediction of each leaf."""
        if isinstance(self.frozen, Bins):
            return self.frozen.edges[:-1][occupied], self.frozen.edges[1:][occupied]
        low, high = np.full(self.size, np.inf), np.full(self.size, -np.inf)
        np.minimum.at(low, self.index, self.view.at)
        np.maximum.at(high, self.index, self.view.at)
        return low[occupied], high[occupied]

    def bars(self, bar_function: BarFunction, levels: Sequence[float]) -> tuple[Bars, ...]:
        """The range of each bin at each level, lowest bin first."""
        return tuple(
            Bars(bars.low[self.order], bars.high[self.order], tuple(bars.method[i] for i in self.order))
            for bars in bar_function(self.view, self.index, self.size, levels)
        )

    @property
    def even(self) -> bool:
        """Whether all bins are equally wide, so that the height of a share is also its area."""
        width = np.diff(self.frozen.edges) if isinstance(self.frozen, Bins) else np.zeros(1)
        return bool((width > 0).all() and np.ptp(width) < 1e-9)

    @property
    def strip_shares(self) -> Array:
        """The share of rows in each of STRIP_CELLS equal cells, whatever the bins."""
        cells = Uniform(STRIP_CELLS).freeze(self.view)
        cell_weights = np.bincount(cells.index(self.view.at), self.view.w, STRIP_CELLS)
        return np.asarray(cell_weights / cell_weights.sum())

    @property
    def error(self) -> float:
        """The share-weighted mean of |deviation| over bins."""
        return float(self.columns["share"] @ np.abs(self.columns["deviation"]))


def pool_all(view: View) -> View:
    """All rows of a view as one cell."""
    return view.pool(np.zeros(len(view.w), dtype=np.intp), 1)


def stack_tables(tables: Sequence[Mapping[str, Array]]) -> Columns:
    """The rows of several tables under each other; read-only."""
    table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
    for column in table.values():
        column.flags.writeable = False
    return table


def bar_notes(methods: Sequence[str], views: Sequence[View], partition: Partition, unit: str) -> list[Note]:
    """Which law gave the bars, where it is not the exact one for rows."""
    notes = []
    beyond = sum(method == "refined normal" for method in methods)
    if beyond:
        notes.append(
            Note(
                "TN241",
                f"{beyond} of {len(methods)} {unit} hold more than {EXACT_ROWS:,} rows; "
                "their consistency ranges come from the refined normal law, the others from the exact one.",
            )
        )
    if "normal" in methods:
        notes.append(
            Note("TN242", "Rows of a bin weigh differently; its range is normal with variance Σw²p(1−p)/(Σw)².")
        )
    if "residuals" in methods:
        notes.append(
            Note("TN243", "Outcomes are shares of votes; ranges are normal with variance Σw²(y−p)²/(Σw)², not exact.")
        )
    if methods and not {"wilson", "clopper-pearson"} & set(methods) and not all(view.is_rows for view in views):
        notes.append(Note("TN244", "Rows were tallied: those of one fine cell count with the cell's mean prediction."))
    if methods and partition.uses_outcomes:
        notes.append(Note("TN247", f"The outcomes chose the bins ({partition}); bars that hold them fixed are narrow."))
    return notes


NESTED_BIN_COUNTS = (
    5,
    6,
    8,
    10,
    12,
    15,
    16,
    20,
    24,
    30,
    32,
    40,
)  # counts of bins whose edges are edges of a tally's cells too


def score_histogram(view: View, count: int) -> dict[str, Array]:
    """The share of rows in so many bins of their score."""
    columns = Binned(view, Uniform(count)).columns
    names = {"x_low": "low", "x_high": "high", "n": "n", "weight": "weight", "share": "share"}
    return {name: columns[column] for name, column in names.items()}


def freedman_diaconis_bins(scores: ScoreSums) -> int:
    """Freedman & Diaconis's count of bins on [0, 1], 5 to 40; 20 where half of the rows share a score."""
    reached = np.cumsum(scores.w) / scores.w.sum()
    lower, upper = scores.at[np.searchsorted(reached, (0.25 - 1e-12, 0.75 - 1e-12))]
    wished = np.cbrt(scores.n.sum()) / (2 * (upper - lower)) if upper > lower else 20
    return next((count for count in NESTED_BIN_COUNTS if count >= wished), NESTED_BIN_COUNTS[-1])
