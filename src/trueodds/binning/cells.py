"""Which cells are occupied where a cell is known by a key, and where a row falls among them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.bin_index import Bins

Key = Callable[[Array], Array]


class Occupied:
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


def on_the_grid(line: Bins) -> Key:
    """The key of a grid on the simplex: the bin of every coordinate."""
    return lambda at: _bytes(np.stack([line.index(column) for column in at.T], axis=1).astype(">u4"))


def of_the_prediction(at: Array) -> Array:
    """The key of a prediction itself: equal numbers are equal keys, in whichever float type."""
    same = at.astype(np.float64) + 0.0  # −0 is 0
    return same if same.ndim == 1 else _bytes(same)


def _bytes(rows: Array) -> Array:
    """One sortable key per row."""
    return np.ascontiguousarray(rows).view(f"S{rows.dtype.itemsize * rows.shape[1]}")[:, 0]
