"""Histogram binning of whole probability vectors, in the cells of a tree or a grid on the simplex."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from trueodds.binning.median_variance import Tree, grow_tree
from trueodds.binning.simplex_grid import grid_key_function
from trueodds.calibrators._curves.one_vs_rest import effective_rows, zero_probability_notes
from trueodds.calibrators._glm.fit_data import rows_with_weight
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.saved_parameters import Numbers, Saved, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count, format_percent
from trueodds.core.settings import Count, OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts
from trueodds.kernels.bins import Bins, sums_by_cell

_PARTITIONS = ("median-variance", "simplex-grid")
_MIN_NOTED_SHARE = 0.0005  # share of rows in empty cells from which a note is given; less rounds to 0 %
MAX_BINS = 100_000  # bins per axis; a file must not ask for more memory than that
MAX_NODE = 2**31 - 1  # of a tree


class TreeLeaves(Saved):
    """The leaves of a median-variance tree, by its splits in the order in which they were made.

    Every row is in a leaf.
    """

    node: Annotated[Array, Numbers(0, MAX_NODE, ("leaves-1",), kind=int)]  # which was a leaf at the time of the split
    axis: Annotated[Array, Numbers(0, MAX_NODE, ("leaves-1",), kind=int)]
    cut: Annotated[Array, Numbers(0, 2, ("leaves-1",))]  # smallest value on the axis that goes to the upper child

    @classmethod
    def from_tree(cls, tree: Tree) -> TreeLeaves:
        axis, cut = np.array(tree.axis), np.array(tree.cut)
        nodes = np.flatnonzero(axis >= 0)
        nodes = nodes[np.argsort(np.array(tree.low)[nodes])]  # children are numbered in the order of the splits
        return cls(nodes, axis[nodes], cut[nodes])

    @cached_property
    def tree(self) -> Tree:
        """The tree, by repeating the splits."""
        tree = Tree()
        for node, axis, cut in zip(self.node.tolist(), self.axis.tolist(), self.cut.tolist(), strict=True):
            tree.split(node, axis, cut)
        return tree

    @property
    def size(self) -> int:
        return len(self.node) + 1

    def index(self, x: Array) -> Array:
        return self.tree.index(x)

    def check_saved(self, k: int) -> None:
        """Check that each node is a leaf at the time of its split, and that the axes exist."""
        # Split i, counted from 0, makes the nodes 2i + 1 and 2i + 2.
        if (self.node > 2 * np.arange(len(self.node))).any() or len(np.unique(self.node)) < len(self.node):
            raise invalid_value_error("node", "leaves at the time of their split", self.node.tolist())
        if (self.axis >= axis_count(k)).any():
            raise invalid_value_error("axis", f"below {axis_count(k)}", self.axis.tolist())


class OccupiedGridCells(Saved):
    """The cells of a regular grid that contained a row in the fit."""

    bins: Annotated[int, Range(1, MAX_BINS)]  # per axis
    # The bin of each cell on each axis; cells are sorted and distinct.
    cells: Annotated[Array, Numbers(0, MAX_BINS, ("cells", "axes"), kind=int)]

    @classmethod
    def from_rows(cls, x: Array, bins: int) -> OccupiedGridCells:
        """The cells that contain a row of x (n, axes)."""
        keys = np.unique(_grid_keys(x, bins))
        return cls(bins, np.frombuffer(keys.tobytes(), dtype=">u4").reshape(len(keys), -1).astype(np.int64))

    @property
    def size(self) -> int:
        return len(self.cells)

    def index(self, x: Array) -> Array:
        """The cell of each row; −1 for a cell without rows in the fit."""
        cell_keys, keys = _cells_as_bytes(self.cells), _grid_keys(x, self.bins)
        cell = np.minimum(np.searchsorted(cell_keys, keys), len(cell_keys) - 1)
        return np.where(cell_keys[cell] == keys, cell, -1)

    def check_saved(self, k: int) -> None:
        """Check that cells are sorted and inside the grid."""
        keys = _cells_as_bytes(self.cells)
        if self.cells.shape[1] != axis_count(k) or (self.cells >= self.bins).any() or (keys[:-1] >= keys[1:]).any():
            expected = f"sorted, on {axis_count(k)} axes, and below {self.bins}"
            raise invalid_value_error("cells", expected, self.cells[0].tolist())


def _grid_keys(x: Array, bins: int) -> Array:
    """One sortable key per row of x (n, axes), which identifies its cell of the grid."""
    # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
    return grid_key_function(Bins(np.arange(bins + 1) / bins))(x)


def _cells_as_bytes(cells: Array) -> Array:
    """One sortable key per cell of `cells` (cells, axes), equal to the key that `grid_key_function` gives its rows."""
    return np.ascontiguousarray(cells.astype(">u4")).view(f"S{4 * cells.shape[1]}")[:, 0]


def axis_count(k: int) -> int:
    """Number of coordinates of a row of K classes."""
    return 1 if k == 2 else k


class SimplexHistogramMap(CalibrationMap):
    """The mean outcome of the cell of a row; a row in no cell stays unchanged."""

    partition: Annotated[str, OneOf(_PARTITIONS)]
    cells: TreeLeaves | OccupiedGridCells
    values: Annotated[Array, Numbers(0, 1, ("cells", "k"))]  # mean outcomes; rows sum to 1

    def apply(self, P: Array) -> Array:
        cell = self.cells.index(_cell_coordinates(P))
        return np.where(cell[:, None] >= 0, self.values[cell], P)

    def describe(self) -> str:
        return format_count(self.cells.size, "cell")

    def check_saved(self, k: int) -> None:
        """Check that the cells are those of the partition, and that each has mean outcomes that sum to 1."""
        if isinstance(self.cells, OccupiedGridCells) != (self.partition == "simplex-grid"):
            raise invalid_value_error("partition", "that of the cells", self.partition)
        if len(self.values) != self.cells.size or (np.abs(self.values.sum(axis=1) - 1) > 1e-9).any():
            raise invalid_value_error("values", f"{self.cells.size} rows that sum to 1", self.values.tolist())


class SimplexHistogramSpec(CalibratorSpec):
    r"""Histogram binning on the simplex: the mean outcome of all rows in the same cell.

    It uses the estimate of the calibration function by which canonical calibration is measured. Rows in one cell become
    equal, predicted classes may change, and a class that is never observed in a cell gets probability 0. With n rows
    there are at most n / `min_size` values, so use it for few classes or many rows.

    Parameters
    ----------
    partition : {"median-variance", "simplex-grid"}, default="median-variance"
        Cells are the leaves of a tree, in which the axis of largest variance is split at its median, or those of a
        grid.
    min_size : int, default=10
        Smallest number of rows in a leaf of the tree.
    bins : int, default=15
        Number of bins per axis of the grid.

    Notes
    -----
    .. math:: \hat r(p) = \frac{\sum_{i:\, p_i \in C(p)} w_i\, y_i}{\sum_{i:\, p_i \in C(p)} w_i}

    A row in a cell of the grid that was empty in the fit stays unchanged: nothing is known about it, and the center of
    the cell is no better estimate than the row itself. A note reports how many such rows to expect. Two classes have
    cells of the one probability. Weights that are not counts are scaled to sum to the number of rows.

    Cost: O(nK log n).

    References
    ----------
    .. [1] Vaicenavicius et al. (2019).
    .. [2] Widmann et al. (2019), for the tree.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> m = SimplexHistogramSpec(min_size=2).fit(P, np.eye(2)[[0, 1, 1, 1]], np.ones(4))
    >>> m.apply(np.array([[0.7, 0.3], [0.3, 0.7]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    name, map_type = "simplex_histogram", SimplexHistogramMap
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "of axes with equal variances, the first is split",
        "two classes swapped": "a score on an edge or median changes sides when mirrored",
    }
    partition: Annotated[str, OneOf(_PARTITIONS)] = "median-variance"
    min_size: Count = 10
    bins: Annotated[int, Range(1, MAX_BINS)] = 15

    def fit(self, P: Array, Y: Array, w: Array) -> SimplexHistogramMap:
        P, Y, w = rows_with_weight(P, Y, w)
        x = _cell_coordinates(P)
        cells: TreeLeaves | OccupiedGridCells = (
            OccupiedGridCells.from_rows(x, self.bins)
            if self.partition == "simplex-grid"
            else TreeLeaves.from_tree(grow_tree(x, effective_rows(w)[1], self.min_size))
        )
        cell = cells.index(x)
        outcome_sums = sums_by_cell(cell, Y, cells.size, w)
        return SimplexHistogramMap(self.partition, cells, outcome_sums / outcome_sums.sum(axis=1, keepdims=True))

    def notes(self, calibration_map: SimplexHistogramMap, P: Array, Y: Array, w: Array) -> list[Note]:
        fit_notes = []
        if isinstance(calibration_map.cells, OccupiedGridCells):
            row_counts = w if are_counts(w) else np.ones(len(w))
            cell_weights = np.bincount(calibration_map.cells.index(_cell_coordinates(P)), row_counts)
            # Good-Turing: the share of rows alone in their cell estimates the share of new rows in empty cells.
            singleton_share = float((cell_weights == 1).sum() / cell_weights.sum())
            if singleton_share >= _MIN_NOTED_SHARE:
                fit_notes.append(
                    Note(
                        "TN524",
                        f"About {format_percent(round(singleton_share, 3))} of new rows will fall into empty cells and"
                        " stay unchanged, estimated by the share of rows that are alone in their cell.",
                    )
                )
        return fit_notes + zero_probability_notes(calibration_map.apply(P))


def _cell_coordinates(P: Array) -> Array:
    """The coordinates (n, axes) by which rows of P (n, K) are assigned to cells: all columns, or the second of two."""
    return P[:, 1:].astype(np.float64) if P.shape[1] == 2 else P.astype(np.float64, copy=False)
