"""What came where such rows were said? The calibration function itself, cell by cell of the simplex."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.tree import grow
from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.curves.one_vs_rest import as_rows, exact_zeros
from trueodds.calibrators.curves.simplex_cells import FINEST, Cells, Grid, Leaves, wrong
from trueodds.core.errors import Note
from trueodds.core.results import percent
from trueodds.core.settings import Count, OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts

_PARTITIONS = ("median-variance", "simplex-grid")


@dataclass(frozen=True, eq=False)
class SimplexHistogramMap(CalibrationMap):
    """The mean outcome of the cell that a row is in; a row in none stays as it is."""

    name: ClassVar[str] = "simplex_histogram"
    cells: Cells
    values: Array  # (cells, K), rows summing to 1

    def apply(self, P: Array) -> Array:
        """The values of the cells."""
        where = self.cells.index(_axes(P))
        return np.where(where[:, None] >= 0, self.values[where], P)

    def describe(self) -> str:
        """How many cells."""
        return f"{self.cells.size:,} {'cell' if self.cells.size == 1 else 'cells'}"

    def to_dict(self) -> dict[str, Any]:
        """The partition and its cells, and what each says."""
        partition = _PARTITIONS[isinstance(self.cells, Grid)]
        return {"partition": partition, "cells": self.cells.to_dict(), "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> SimplexHistogramMap:
        """Cells that can be, and probabilities for each."""
        wire.keys(parameters, ("partition", "cells", "values"), "parameters")
        saved_cells, axes = wire.table(parameters, "cells"), 1 if k == 2 else k
        if parameters["partition"] not in _PARTITIONS:
            raise wrong(f"partition must be one of {', '.join(_PARTITIONS)}", parameters["partition"])
        kind: Any = Grid if parameters["partition"] == "simplex-grid" else Leaves
        cells: Cells = kind.from_dict(saved_cells, axes)
        rows = parameters["values"]
        if not isinstance(rows, list) or len(rows) != cells.size:
            raise wrong(f"values must be {cells.size} rows", rows)
        values = np.stack([wire.vector({"values": row}, "values", 0, 1, size=k) for row in rows])
        if (np.abs(values.sum(axis=1) - 1) > 1e-9).any():
            raise wrong("values must sum to 1 in each row", rows[0])
        return cls(cells, values)


@dataclass(frozen=True)
class SimplexHistogramSpec(CalibratorSpec):
    r"""The mean outcome of all rows in the same cell of the simplex: no class is looked at by itself.

    .. math:: \hat r(p) = \frac{\sum_{i:\, p_i \in C(p)} w_i\, y_i}{\sum_{i:\, p_i \in C(p)} w_i}

    This is the estimate of the calibration function by which canonical calibration is measured, put to use. Cells
    are the leaves of a tree (`partition="median-variance"`: the axis of largest variance is split at its median
    while both halves keep `min_size` rows), or those of a grid with `bins` per axis (`"simplex-grid"`). A row in a
    cell of the grid that held none stays as it is: nothing is known about it, and the middle of its cell is no better
    guess than the row itself; a note says how many such rows to expect. Two classes: cells of the one probability.
    Rows in one cell become equal, labels may change, and exact zeros are said where a class never came; with K
    classes and n rows there are at most n / `min_size` answers, so use it for few classes or many rows. Weights that
    are not counts are scaled to sum to the number of rows. Cost: O(nK log n). Source: Vaicenavicius et al. (2019);
    the tree as by Widmann et al. (2019).

    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> m = SimplexHistogramSpec(min_size=2).fit(P, np.eye(2)[[0, 1, 1, 1]], np.ones(4))
    >>> m.apply(np.array([[0.7, 0.3], [0.3, 0.7]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    name: ClassVar[str] = "simplex_histogram"
    complexity: ClassVar[int] = 29
    keeps_argmax: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = SimplexHistogramMap
    exempt: ClassVar[Mapping[str, str]] = {
        "class order": "of axes with equal variances the first is split",
        "two classes swapped": "a score on an edge or median changes its side when mirrored",
    }
    partition: Annotated[str, OneOf(_PARTITIONS)] = "median-variance"
    min_size: Count = 10
    bins: Annotated[int, Range(1, FINEST)] = 15

    def fit(self, P: Array, Y: Array, w: Array) -> SimplexHistogramMap:
        """The mean outcomes of these rows."""
        P, Y, w = (array[w > 0] for array in (P, Y, w))
        x = _axes(P)
        cells: Cells = (
            Grid.of(x, self.bins) if self.partition == "simplex-grid" else Leaves(grow(x, as_rows(w)[1], self.min_size))
        )
        where = cells.index(x)
        outcome_sums = np.stack([np.bincount(where, w * y, cells.size) for y in Y.T], axis=1)
        return SimplexHistogramMap(cells, outcome_sums / outcome_sums.sum(axis=1, keepdims=True))

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Rows that will stay as they are, and exact zeros."""
        assert isinstance(calibration_map, SimplexHistogramMap)
        fit_notes = []
        if isinstance(calibration_map.cells, Grid):
            P, w = P[w > 0], w[w > 0]
            rows = w if are_counts(w) else np.ones(len(w))
            cell_weights = np.bincount(calibration_map.cells.index(_axes(P)), rows)
            # Good and Turing: as often as a row is alone in its cell a new one finds a cell where there was none.
            alone = float((cell_weights == 1).sum() / cell_weights.sum())
            if alone >= 0.0005:
                fit_notes.append(
                    Note(
                        "TN524",
                        f"About {percent(round(alone, 3))} of new rows will fall into cells that held none and stay as they are: as many are alone in their cell here.",
                    )
                )
        return fit_notes + exact_zeros(calibration_map.apply(P))


def _axes(P: Array) -> Array:
    """The coordinates by which a row is placed: all, or the second of two."""
    return P[:, 1:].astype(np.float64) if P.shape[1] == 2 else P.astype(np.float64, copy=False)
