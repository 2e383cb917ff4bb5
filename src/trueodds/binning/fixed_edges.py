"""Bins between user-defined edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition, require_binary, sums_in_fixed_bins
from trueodds.binning.row_selections import RowSelections
from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, Closed, FittedPartition
from trueodds.lenses.view import View


@dataclass(frozen=True)
class FixedEdges(Partition):
    """Bins between user-defined edges from 0 to 1."""

    edges: tuple[float, ...]
    closed: Closed = "right"  # the side on which a bin includes its edge
    ignores_scores = True

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = np.asarray(self.edges, dtype=np.float64)
        if len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] != 0 or edges[-1] != 1:
            raise InputError(
                "TO203",
                "Edges must increase from 0 to 1.",
                describe(self.edges),
                "For instance ⟨bins=[0, 0.5, 0.9, 1]⟩.",
            )

    def fit(self, view: View) -> FittedPartition:
        require_binary(view, "given")
        return Bins(np.asarray(self.edges, dtype=np.float64), self.closed)

    def sums_by_selection(self, selections: RowSelections) -> Array:
        return sums_in_fixed_bins(self.fit(selections.first_view), selections)

    def __str__(self) -> str:
        return (
            "edges "
            + " ".join(f"{edge:.12g}" for edge in self.edges)
            + (", left-closed" if self.closed == "left" else "")
        )
