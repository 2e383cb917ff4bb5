"""Cells of equal predictions, or of a grid on the probability simplex whose axes have uniform bins."""

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
    """Grid on all axes of the simplex. Rows share a cell if all their probabilities lie in the same uniform bins."""

    bins: BinCount = 15  # per axis
    closed: Closed = "right"  # the side on which a bin includes its edge

    def fit(self, view: View) -> FittedPartition:
        axis_bins = Bins(np.arange(self.bins + 1) / self.bins, self.closed)
        return OccupiedCells(grid_key_function(axis_bins), view.partition_values) if view.joint else axis_bins

    def __str__(self) -> str:
        return f"simplex-grid {self.bins}" + (", left-closed" if self.closed == "left" else "")


# From predictions (n,) or (n, m) to keys (n,): rows in the same cell have equal keys.
CellKeyFunction = Callable[[Array], Array]


class OccupiedCells:
    """A fitted partition of the cells that the predictions of the fit occupy, numbered in the order of their keys."""

    def __init__(self, key_function: CellKeyFunction, values: Array) -> None:
        self.key_function = key_function
        self.keys = np.unique(key_function(values))  # (cells,)
        self.size = len(self.keys)  # number of cells

    def index(self, values: Array) -> Array:
        """Return the cell (n,) of each prediction (n,) or (n, m); raise TO205 for a cell that was empty in the fit."""
        keys = self.key_function(values)
        cell = np.minimum(np.searchsorted(self.keys, keys), self.size - 1)
        is_unknown = self.keys[cell] != keys
        if is_unknown.any():
            raise InputError(
                "TO205",
                "A row lies in a cell that was empty when the partition was fitted.",
                f"{int(is_unknown.sum()):,} such rows; the first is row {int(np.argmax(is_unknown))}",
                "Fit the partition on all rows.",
            )
        return cell


def grid_key_function(axis_bins: Bins) -> CellKeyFunction:
    """Function that returns the key of each row on a grid of the simplex: the bin of each coordinate."""
    return lambda P: rows_as_bytes(np.stack([axis_bins.index(column) for column in P.T], axis=1).astype(">u4"))


def rows_as_bytes(rows: Array) -> Array:
    """The rows (n, m) as byte strings (n,), which sort like the rows if the numbers are big-endian."""
    return np.ascontiguousarray(rows).view(f"S{rows.dtype.itemsize * rows.shape[1]}")[:, 0]


@dataclass(frozen=True)
class Distinct(Partition):
    """One cell for each distinct prediction: rows with equal scores or vectors are pooled."""

    def fit(self, view: View) -> FittedPartition:
        return OccupiedCells(prediction_keys, view.partition_values)

    def __str__(self) -> str:
        return "distinct"


def prediction_keys(p: Array) -> Array:
    """Return the key (n,) of each prediction (n,) or (n, m). Equal numbers have equal keys for all float types."""
    normalized = p.astype(np.float64) + 0.0  # −0 is 0
    return normalized if normalized.ndim == 1 else rows_as_bytes(normalized)
