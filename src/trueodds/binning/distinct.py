"""Partition with one cell for each distinct prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.simplex_grid import OccupiedCells, rows_as_bytes
from trueodds.core.typing import Array
from trueodds.kernels.bins import FittedPartition
from trueodds.lenses.view import View


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
