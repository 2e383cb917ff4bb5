"""Histogram binning of whole probability vectors, in the cells of a tree or a grid on the simplex."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from trueodds.binning.median_variance import Tree, grow_tree
from trueodds.binning.simplex_grid import grid_key_function
from trueodds.calibrators import saved_parameters
from trueodds.calibrators._curves.one_vs_rest import effective_rows, zero_probability_notes
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent
from trueodds.core.settings import Count, OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts
from trueodds.kernels.bins import Bins
from trueodds.kernels.sums_by_cell import sums_by_cell

_PARTITIONS = ("median-variance", "simplex-grid")
_MIN_NOTED_SHARE = 0.0005  # share of rows in empty cells from which a note is given; less rounds to 0 %
MAX_BINS = 100_000  # bins per axis; a file must not ask for more memory than that


class SimplexPartition(Protocol):
    """A partition of the simplex, or of a part of it, into cells that are numbered from 0."""

    @property
    def size(self) -> int:
        """Number of cells."""
        ...

    def index(self, x: Array) -> Array:
        """The cell of each row of x (n, axes), (n,) int64; −1 for a row in none."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The parameters that determine the cells."""
        ...


@dataclass(frozen=True, eq=False)
class TreeLeaves:
    """The leaves of a median-variance tree. Every row is in a leaf."""

    tree: Tree

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self.tree.size

    def index(self, x: Array) -> Array:
        """The leaf of each row."""
        return self.tree.index(x)

    def to_dict(self) -> dict[str, Any]:
        """The splits in the order in which they were made: for each its node, its axis and the cut on it."""
        low = np.array(self.tree.low)
        nodes = np.flatnonzero(np.array(self.tree.axis) >= 0)
        nodes = nodes[np.argsort(low[nodes])]  # children are numbered in the order of the splits
        return {
            "node": nodes.tolist(),
            "axis": [self.tree.axis[node] for node in nodes],
            "cut": [self.tree.cut[node] for node in nodes],
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], n_axes: int) -> TreeLeaves:
        """Repeat the saved splits; each node must be a leaf."""
        saved_parameters.check_keys(parameters, ("node", "axis", "cut"), "cells")
        cuts = _read_cuts(parameters, "cut")
        nodes, split_axes = (_read_integers(parameters, key, len(cuts)) for key in ("node", "axis"))
        tree = Tree()
        for node, axis, cut in zip(nodes, split_axes, cuts, strict=True):
            if node >= len(tree.axis) or tree.axis[node] >= 0:
                raise _invalid_value_error("node must name a leaf at the time of its split", node)
            if axis >= n_axes:
                raise _invalid_value_error(f"axis must be below {n_axes}", axis)
            tree.split(node, axis, cut)
        return cls(tree)


@dataclass(frozen=True, eq=False)
class OccupiedGridCells:
    """The cells of a regular grid that contained a row in the fit."""

    bins: int  # per axis
    cells: Array  # (cells, axes) int64, the bin on each axis, rows sorted and distinct

    @classmethod
    def from_rows(cls, x: Array, bins: int) -> OccupiedGridCells:
        """The cells that contain a row of x (n, axes)."""
        keys = np.unique(_grid_keys(x, bins))
        return cls(bins, np.frombuffer(keys.tobytes(), dtype=">u4").reshape(len(keys), -1).astype(np.int64))

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.cells)

    def index(self, x: Array) -> Array:
        """The cell of each row; −1 for a cell without rows in the fit."""
        cell_keys, keys = _cells_as_bytes(self.cells), _grid_keys(x, self.bins)
        cell = np.minimum(np.searchsorted(cell_keys, keys), len(cell_keys) - 1)
        return np.where(cell_keys[cell] == keys, cell, -1)

    def to_dict(self) -> dict[str, Any]:
        """Number of bins per axis, and the bin of each cell on each axis."""
        return {"bins": self.bins, "cells": self.cells.tolist()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], n_axes: int) -> OccupiedGridCells:
        """Read sorted, distinct cells within the grid."""
        saved_parameters.check_keys(parameters, ("bins", "cells"), "cells")
        bins, saved_cells = saved_parameters.read_count(parameters, "bins"), parameters["cells"]
        if not 1 <= bins <= MAX_BINS:
            raise _invalid_value_error(f"bins must be a whole number from 1 to {MAX_BINS}", bins)
        if not isinstance(saved_cells, list) or not saved_cells:
            raise _invalid_value_error("cells must be some rows of numbers", saved_cells)
        cells = np.array([_read_integers({"cells": cell}, "cells", n_axes) for cell in saved_cells], dtype=np.int64)
        keys = _cells_as_bytes(cells)
        if (cells >= bins).any() or (keys[:-1] >= keys[1:]).any():
            raise _invalid_value_error(f"cells must be sorted and lie below {bins} on each axis", cells[0].tolist())
        return cls(bins, cells)


def _grid_keys(x: Array, bins: int) -> Array:
    """One sortable key per row of x (n, axes), which identifies its cell of the grid."""
    # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
    return grid_key_function(Bins(np.arange(bins + 1) / bins))(x)


def _cells_as_bytes(cells: Array) -> Array:
    """One sortable key per cell of `cells` (cells, axes), equal to the key that `grid_key_function` gives its rows."""
    return np.ascontiguousarray(cells.astype(">u4")).view(f"S{4 * cells.shape[1]}")[:, 0]


def _read_cuts(mapping: Mapping[str, Any], key: str) -> list[float]:
    """Read the saved cuts of a tree, of which there may be none."""
    numbers: list[float] = [] if mapping[key] == [] else saved_parameters.read_vector(mapping, key, 0, 2).tolist()
    return numbers


def _read_integers(mapping: Mapping[str, Any], key: str, size: int) -> list[int]:
    """Read a saved list of whole numbers of this size."""
    values = mapping[key]
    if not isinstance(values, list) or len(values) != size:
        raise _invalid_value_error(f"{key} must be {size} whole numbers", values)
    return [saved_parameters.read_count({key: value}, key) for value in values]


def _invalid_value_error(requirement: str, got: Any) -> InputError:
    """The error TO505 for a saved value that is invalid."""
    return InputError(
        "TO505", f"In a saved calibrator {requirement}.", repr(got)[:60], "Fit it again and save it with .save(path)."
    )


@dataclass(frozen=True, eq=False)
class SimplexHistogramMap(CalibrationMap):
    """The mean outcome of the cell of a row; a row in no cell stays unchanged."""

    name: ClassVar[str] = "simplex_histogram"
    cells: SimplexPartition
    values: Array  # (cells, K) mean outcomes; rows sum to 1

    def apply(self, P: Array) -> Array:
        """The values of the cells."""
        cell = self.cells.index(_cell_coordinates(P))
        return np.where(cell[:, None] >= 0, self.values[cell], P)

    def describe(self) -> str:
        """The number of cells."""
        return f"{self.cells.size:,} {'cell' if self.cells.size == 1 else 'cells'}"

    def to_dict(self) -> dict[str, Any]:
        """Partition, cells and values."""
        partition = "simplex-grid" if isinstance(self.cells, OccupiedGridCells) else "median-variance"
        return {"partition": partition, "cells": self.cells.to_dict(), "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> SimplexHistogramMap:
        """Read valid cells and probabilities for each."""
        saved_parameters.check_keys(parameters, ("partition", "cells", "values"), "parameters")
        saved_cells, n_axes = saved_parameters.read_table(parameters, "cells"), 1 if k == 2 else k
        if parameters["partition"] not in _PARTITIONS:
            raise _invalid_value_error(f"partition must be one of {', '.join(_PARTITIONS)}", parameters["partition"])
        cells_type: Any = OccupiedGridCells if parameters["partition"] == "simplex-grid" else TreeLeaves
        cells: SimplexPartition = cells_type.from_dict(saved_cells, n_axes)
        saved_values = parameters["values"]
        if not isinstance(saved_values, list) or len(saved_values) != cells.size:
            raise _invalid_value_error(f"values must be {cells.size} rows", saved_values)
        values = np.stack(
            [saved_parameters.read_vector({"values": row}, "values", 0, 1, size=k) for row in saved_values]
        )
        if (np.abs(values.sum(axis=1) - 1) > 1e-9).any():
            raise _invalid_value_error("values must sum to 1 in each row", saved_values[0])
        return cls(cells, values)


@dataclass(frozen=True)
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

    name: ClassVar[str] = "simplex_histogram"
    keeps_argmax: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = SimplexHistogramMap
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "of axes with equal variances, the first is split",
        "two classes swapped": "a score on an edge or median changes sides when mirrored",
    }
    partition: Annotated[str, OneOf(_PARTITIONS)] = "median-variance"
    min_size: Count = 10
    bins: Annotated[int, Range(1, MAX_BINS)] = 15

    def fit(self, P: Array, Y: Array, w: Array) -> SimplexHistogramMap:
        """Compute the mean outcomes of the cells."""
        P, Y, w = (array[w > 0] for array in (P, Y, w))
        x = _cell_coordinates(P)
        cells: SimplexPartition = (
            OccupiedGridCells.from_rows(x, self.bins)
            if self.partition == "simplex-grid"
            else TreeLeaves(grow_tree(x, effective_rows(w)[1], self.min_size))
        )
        cell = cells.index(x)
        outcome_sums = sums_by_cell(cell, Y, cells.size, w)
        return SimplexHistogramMap(cells, outcome_sums / outcome_sums.sum(axis=1, keepdims=True))

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Notes on the share of rows that will stay unchanged, and on exact zeros."""
        assert isinstance(calibration_map, SimplexHistogramMap)
        fit_notes = []
        if isinstance(calibration_map.cells, OccupiedGridCells):
            P, w = P[w > 0], w[w > 0]
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
