"""Bins whose edges do not depend on the scores: of equal width, or between user-defined edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueodds.binning.partition import (
    BinRule,
    Partition,
    lower_limit,
    require_binary,
    resolve_n_bins,
    sums_in_fixed_bins,
)
from trueodds.binning.row_selections import RowSelections
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, Closed, FittedPartition
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Uniform(Partition):
    """Bins of equal width on [0, 1], or on [1/K, 1] with `range="1/K"`.

    `bins="sqrt"` uses ⌊√n⌋ bins, and `"auto"` uses ⌈n^(2/5)⌉, so that their noise decreases as n grows.
    """

    bins: BinCount | BinRule = 15  # number of bins, or the rule for it
    closed: Closed = "right"  # the side on which a bin includes its edge
    range: Literal["1/K"] | None = None  # of the bins; None is [0, 1]
    ignores_scores = True

    def fit(self, view: View) -> FittedPartition:
        k = resolve_n_bins(self.bins, view)
        if view.joint:
            if self.range:
                raise InputError(
                    "TO205", "⟨range='1/K'⟩ is for one score per row.", f"the lens {view.name}", "Leave range out."
                )
            return SimplexGrid(k, self.closed).fit(view)
        # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
        edges = np.arange(k + 1) / k
        if self.range is None:
            return Bins(edges, self.closed)
        low = lower_limit(view, self.range)
        return Bins(low + edges * (1 - low), self.closed)

    def sums_by_selection(self, selections: RowSelections) -> Array:
        return sums_in_fixed_bins(self.fit(selections.first_view), selections)

    def __str__(self) -> str:
        text = f"uniform {self.bins}" + (" on [1/K, 1]" if self.range else "")
        return text + (", left-closed" if self.closed == "left" else "")


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
