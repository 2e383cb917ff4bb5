"""Where are the predictions? The share of rows in bins of their score, below a curve."""

from __future__ import annotations

import numpy as np

from trueodds.binning.partition import Uniform
from trueodds.core.typing import Array
from trueodds.diagrams.binned.bins import Binned
from trueodds.diagrams.monotone.scores import Scores
from trueodds.lenses.view import View

NESTED = (5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 32, 40)  # counts of bins whose edges are edges of a tally's cells too


def strip(view: View, count: int) -> dict[str, Array]:
    """The share of rows in so many bins of their score."""
    columns = Binned(view, Uniform(count)).columns
    names = {"x_low": "low", "x_high": "high", "n": "n", "weight": "weight", "share": "share"}
    return {name: columns[column] for name, column in names.items()}


def bins_for(scores: Scores) -> int:
    """Freedman & Diaconis's count of bins on [0, 1], 5 to 40; 20 where half of the rows share a score."""
    reached = np.cumsum(scores.w) / scores.w.sum()
    lower, upper = scores.at[np.searchsorted(reached, (0.25 - 1e-12, 0.75 - 1e-12))]
    wished = np.cbrt(scores.n.sum()) / (2 * (upper - lower)) if upper > lower else 20
    return next((count for count in NESTED if count >= wished), NESTED[-1])
