"""Equal-mass bins: a number of bins with equally many rows, or of rows per bin, or the largest one of a sweep.

A monotonic sweep has the largest number of bins whose event rates do not decrease with the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.binning.partition import BinRule, Partition, require_binary, resolve_n_bins
from trueodds.binning.sorted_scores import RowSelections, SortedLogOdds, SortedScores, sort_by_partition_value
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import BinCount, Count, parse_digits
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS
from trueodds.kernels.bins import Bins, Closed, FittedPartition
from trueodds.kernels.partitions import monotonic_sweep
from trueodds.lenses.effective_sample_size import effective_n, has_integer_weights, n_represented, unit_weight
from trueodds.lenses.view import View


@dataclass(frozen=True)
class EqualMass(Partition):
    """Bins with equally many rows. Tied scores are never split, so there may be fewer bins than requested.

    Group sizes differ by at most one row, with larger groups first. The edge between two groups is the midpoint of the
    neighboring scores. A weight of two counts as two rows.
    """

    bins: BinCount | BinRule = 15  # number of bins, or the rule for it
    closed: Closed = "right"  # the side on which a bin includes its edge
    # "first" makes the first groups the larger ones; "floor" ends group i after ⌊n i / bins⌋ rows (histogram binning).
    cut: Literal["first", "floor"] = "first"

    def fit(self, view: View) -> FittedPartition:
        require_binary(view, "equal-mass")
        k = resolve_n_bins(self.bins, view)
        return bins_at_cuts(sort_by_partition_value(view), cut_weights(view, k, self.cut), self.closed)

    def sums_by_selection(self, selections: RowSelections) -> Array:
        k = resolve_n_bins(self.bins, selections.first_view)
        return _sums_between_cuts(selections, cut_weights(selections.first_view, k, self.cut), self.closed)

    def __str__(self) -> str:
        return f"equal-mass {self.bins}" + (", left-closed" if self.closed == "left" else "")


def cut_weights(view: View, k: int, rounding: str) -> Array:
    """Return the weight up to the end of each of k groups but the last, (k − 1,), in whole rows if possible.

    `rounding` says where group i ends: after ⌊n i / k⌋ rows ("floor"), after ⌈n i / k⌉ rows ("ceil"), so that row r
    is in group ⌊r k / n⌋, or so that the first groups have one row more than the others ("first").
    """
    i, unit = np.arange(1, k), unit_weight(view)
    if unit is None:
        return i * view.total / k
    n = round(view.total / unit)
    if rounding == "first":
        return (i * (n // k) + np.minimum(i, n % k)) * unit
    # n i / k is computed as i (n // k) + i (n % k) / k, because n i may be beyond 64 bits.
    quotients, remainder = i * (n // k), i * (n % k)
    rounded_remainder = remainder // k if rounding == "floor" else -(-remainder // k)
    return (quotients + rounded_remainder) * unit


def bins_at_cuts(by_score: SortedScores, cumulative_weight: Array, closed: Closed = "right") -> Bins:
    """Return the bins from 0 to 1 that are cut at each `cumulative_weight` (cuts,).

    An edge lies midway between the row that completes the weight and the next row. Equal edges count once. Rows that
    are sorted by log odds are cut between these, also where their probabilities are equal.
    """
    if isinstance(by_score, SortedLogOdds):
        last, following = by_score.log_odds_at_weight(cumulative_weight)
        inner_edges = np.unique(np.where(last < following, (last + following) / 2, last))
        log_odds_edges = np.concatenate(([-MAX_LOG_ODDS], inner_edges, [MAX_LOG_ODDS]))
        return Bins(expit(log_odds_edges), closed, log_odds_edges)
    inner_edges = np.unique(midpoints_at_cuts(by_score, cumulative_weight))
    inner_edges = inner_edges[inner_edges < 1]  # an edge at 0 is kept, so that many exact zeros form a bin
    return Bins(np.concatenate(([0.0], inner_edges, [1.0])), closed)


def midpoints_at_cuts(by_score: SortedScores | RowSelections, cumulative_weight: Array) -> Array:
    """Midpoints between the row that completes each weight and the next row, (cuts,) or (selections, cuts)."""
    last_score, next_score = by_score.scores_at_weight(cumulative_weight)
    return np.asarray((last_score + next_score) / 2)


def _sums_between_cuts(selections: RowSelections, cumulative_weight: Array, closed: Closed) -> Array:
    """n, Σp and Σy (3, selections, bins) of bins that are cut at each `cumulative_weight` of each selection."""
    inner_edges = midpoints_at_cuts(selections, cumulative_weight)
    # An edge at 1 would split off an empty bin, as in `bins_at_cuts`. At infinity no score lies beyond it.
    return selections.sums_by_bin(np.where(inner_edges < 1, inner_edges, np.inf), closed)


@dataclass(frozen=True)
class FixedMass(Partition):
    """Bins with a fixed number of rows each, in order of increasing score.

    The last bin also takes the remainder, so it may hold nearly twice as many rows. The estimator `rmsce` with
    `partition="mass:100"` is the calibration error that benchmarks of language models report. Tied scores are never
    split, and the edge between two groups is the midpoint of the neighboring scores. If many rows have the same score,
    bins hold more rows than requested. A weight of two counts as two rows. If weights are not counts, the number of
    rows is the effective sample size.

    >>> str(FixedMass(100)), FixedMass(2).fit(View(p=[0.1, 0.2, 0.4, 0.5, 0.9], y=[0, 0, 1, 0, 1])).size
    ('mass 100', 2)
    """

    rows: Count = 100  # per bin
    closed: Closed = "right"  # the side on which a bin includes its edge

    def fit(self, view: View) -> FittedPartition:
        require_binary(view, "mass")
        by_score, n = sort_by_partition_value(view), self._n_rows_of_mass(view)
        if n // self.rows <= len(view):
            return bins_at_cuts(by_score, self._cut_weights(view), self.closed)
        # With more groups than rows, only the last two groups that each row completes matter: of these, one may end
        # with the row, and the other one then ends within it.
        group_weight = self.rows * view.total / n
        _, w, _ = by_score.sums_by_score()
        completed_groups = np.floor(np.cumsum(w) / group_weight)
        groups = np.unique(np.clip([completed_groups - 1, completed_groups], 1, n // self.rows - 1))
        return bins_at_cuts(by_score, groups * group_weight, self.closed)

    def sums_by_selection(self, selections: RowSelections) -> Array:
        return _sums_between_cuts(selections, self._cut_weights(selections.first_view), self.closed)

    def _cut_weights(self, view: View) -> Array:
        """Return the weight up to the end of each group but the last, (groups − 1,)."""
        n = self._n_rows_of_mass(view)
        k = max(1, int(n // self.rows))
        return np.arange(1, k) * (self.rows * view.total / n)

    def _n_rows_of_mass(self, view: View) -> float:
        return round(view.total) if has_integer_weights(view) else effective_n(view)

    def __str__(self) -> str:
        return f"mass {self.rows}" + (", left-closed" if self.closed == "left" else "")


def parse_mass(name: str, closed: Closed) -> FixedMass:
    rows = parse_digits(name.removeprefix("mass:"))
    if rows is None:
        raise InputError(
            "TO203", "mass:ROWS needs the number of rows per bin.", describe(name), "For instance mass:100."
        )
    return FixedMass(rows, closed)


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
        max_bins = round(n_represented(view)) - 1
        _, n_bins = monotonic_sweep(w[None], w[None] * s, wy[None], s, max_bins=max_bins, by_mass=by_mass, order=1.0)
        k = int(n_bins[0])
        if by_mass:
            return bins_at_cuts(by_score, cut_weights(view, k, "ceil"))
        return Bins(np.arange(k + 1) / k)

    def __str__(self) -> str:
        return f"sweep over {self.base}"
