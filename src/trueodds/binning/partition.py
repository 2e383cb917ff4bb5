"""Base class of partitions, which assign rows to bins, and the rules for the number of bins and their range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from trueodds.binning.sorted_scores import RowSelections
from trueodds.core.errors import InputError
from trueodds.core.settings import BinCount, Described, OneOf, Settings
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.effective_sample_size import effective_n
from trueodds.lenses.view import View

BIN_RULES = ("auto", "sqrt")  # names of the rules by which the number of rows determines the number of bins
BinRule = Annotated[str, OneOf(BIN_RULES)]
BinsOrEdges = Annotated[
    BinCount | BinRule | Sequence[float], Described("a number of bins, a list of edges, 'auto' or 'sqrt'")
]


class Partition(Settings):
    """Base class of partitions: the settings of a rule that assigns rows to bins.

    `fit` applies the rule to a view and returns the bins with their edges.
    """

    ignores_scores = False  # whether the edges are the same whatever the scores are
    uses_outcomes = False  # whether the edges depend on the labels, so that they are fitted again for every redraw

    def fit(self, view: View) -> FittedPartition:
        raise NotImplementedError

    def sums_by_selection(self, selections: RowSelections) -> Array | None:
        """Return n, Σp and Σy (3, selections, bins), with bins fitted to each selection; None if not vectorized."""
        bins = self.fit(selections.first_view) if self.ignores_scores else None
        return selections.sums_by_bin(bins.edges[None, 1:-1], bins.closed) if isinstance(bins, Bins) else None


def require_binary(view: View, kind: str) -> None:
    """Raise TO205 for a joint view, because bins of this kind, such as "sweep", need one score per row."""
    if view.joint:
        raise InputError(
            "TO205",
            f"{kind} bins need one score per row, but the lens {view.name} has a vector per row.",
            f"partition {kind}",
            "Use ⟨partition='median-variance'⟩ or 'simplex-grid', or a lens such as 'classwise'.",
        )


def lowest_score(view: View, range: str | None) -> float:
    """Return the lower end of the range of scores: 0, or 1/K for the largest of K probabilities."""
    if range is None:
        return 0.0
    if view.classes < 2:
        raise InputError(
            "TO205",
            "⟨range='1/K'⟩ needs the number of classes, which confidences alone do not provide.",
            f"⟨range={range!r}⟩",
            "Leave range out, or give the edges of bins: ⟨bins=[0, 0.1, …, 1]⟩.",
        )
    return 1 / view.classes


def resolve_n_bins(bins: int | str, view: View) -> int:
    """Return the number of bins, from a number or a rule of BIN_RULES."""
    if bins not in BIN_RULES:
        return int(bins)
    # The effective number of rows is used: survey weights of several hundred do not represent that many rows.
    n = effective_n(view)
    # Where n^(2/5) is whole, its rounding error must not add a bin.
    return max(1, math.isqrt(round(n)) if bins == "sqrt" else math.ceil(n**0.4 - 1e-9))
