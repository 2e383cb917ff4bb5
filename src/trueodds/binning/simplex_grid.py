"""Cells of a grid on the probability simplex, and one cell per distinct prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.errors import InputError
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, Closed, FittedPartition
from trueodds.lenses.view import View


@dataclass(frozen=True)
class SimplexGrid(Partition):
    """A grid on all axes of the simplex: rows whose every probability falls into the same uniform bin."""

    bins: BinCount = 15
    closed: Closed = "right"

    def freeze(self, view: View) -> FittedPartition:
        """The grid; a binary view is the line."""
        line = Bins(np.arange(self.bins + 1) / self.bins, self.closed)
        return OccupiedCells(grid_key(line), view.at) if view.joint else line

    def __str__(self) -> str:
        return f"simplex-grid {self.bins}" + (", left-closed" if self.closed == "left" else "")


@dataclass(frozen=True)
class Distinct(Partition):
    """One cell for each prediction that was made: rows with the same score, or the same vector, are pooled."""

    def freeze(self, view: View) -> FittedPartition:
        """The predictions of this view."""
        return OccupiedCells(prediction_key, view.at)

    def __str__(self) -> str:
        return "distinct"


Key = Callable[[Array], Array]


class OccupiedCells:
    """The cells that held a row when they were fixed; `key` says of each row which cell it is in."""

    def __init__(self, key: Key, at: Array) -> None:
        self.key = key
        self.keys = np.unique(key(at))
        self.size = len(self.keys)

    def index(self, at: Array) -> Array:
        """The cell of each row; one that falls into a cell not met before is refused, never moved."""
        keys = self.key(at)
        where = np.minimum(np.searchsorted(self.keys, keys), self.size - 1)
        strange = self.keys[where] != keys
        if strange.any():
            raise InputError(
                "TO205",
                "A row falls into a cell that held no row when the cells were fixed.",
                f"{int(strange.sum()):,} such rows, the first is row {int(np.argmax(strange))}",
                "Freeze the partition on all rows.",
            )
        return where


def grid_key(line: Bins) -> Key:
    """The key of a grid on the simplex: the bin of every coordinate."""
    return lambda at: _bytes(np.stack([line.index(column) for column in at.T], axis=1).astype(">u4"))


def prediction_key(at: Array) -> Array:
    """The key of a prediction itself: equal numbers are equal keys, in whichever float type."""
    same = at.astype(np.float64) + 0.0  # −0 is 0
    return same if same.ndim == 1 else _bytes(same)


def _bytes(rows: Array) -> Array:
    """One sortable key per row."""
    return np.ascontiguousarray(rows).view(f"S{rows.dtype.itemsize * rows.shape[1]}")[:, 0]
