"""Monotonic sweep: the largest number of bins whose event rates do not decrease with the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueodds.binning.equal_mass import bins_at_cuts, cut_weights
from trueodds.binning.partition import Partition, require_binary
from trueodds.binning.sorted_scores import sort_by_partition_value
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.kernels.monotonic_sweep import monotonic_sweep
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Sweep(Partition):
    """The largest number of equal-mass (or uniform) bins for which event rates do not decrease with the score.

    The event rates of the occupied bins must not decrease for this and every smaller number of bins. The bins depend on
    the labels, so the search is repeated for every draw. Source: Roelofs et al. (2022).
    """

    base: Literal["equal-mass", "uniform"] = "equal-mass"  # kind of bins of which the number is searched
    uses_outcomes = True

    def fit(self, view: View) -> FittedPartition:
        require_binary(view, "sweep")
        by_score = sort_by_partition_value(view)
        s, w, wy = by_score.sums_by_score()
        if not len(s):
            return Bins(np.array([0.0, 1.0]))
        by_mass = self.base == "equal-mass"
        max_bins = round(view.n_represented) - 1
        _, n_bins = monotonic_sweep(w[None], w[None] * s, wy[None], s, max_bins=max_bins, by_mass=by_mass, order=1.0)
        k = int(n_bins[0])
        if by_mass:
            return bins_at_cuts(by_score, cut_weights(view, k, "ceil"))
        return Bins(np.arange(k + 1) / k)

    def __str__(self) -> str:
        return f"sweep over {self.base}"
