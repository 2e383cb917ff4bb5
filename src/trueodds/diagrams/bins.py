"""Bins of a view with their means, and their consistency bars and confidence intervals."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import default_partition
from trueodds.binning.uniform import Uniform, edge_rounding_notes, sample_scores
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import TALLY_NOTE
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.table_columns import Columns
from trueodds.kernels import random_labels
from trueodds.kernels.bins import Bins
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.lenses.view import View
from trueodds.resampling.intervals.closed_form import clopper_pearson_limits, wilson_limits
from trueodds.resampling.poisson_binomial import MAX_CONVOLVED_ROWS, poisson_binomial_pmf

# Equal cells of the histogram strip if the bins differ in width. Their edges are edges of a tally's cells, too, so that
# no cell of a tally is split.
N_STRIP_CELLS = 30


class BinnedView:
    """The bins of one view, lowest first. Bins without weight are omitted.

    Parameters
    ----------
    view : View
        The rows or the cells of a tally.
    partition : Partition or None
        The bins; None is the default partition.

    Attributes
    ----------
    fitted_partition : FittedPartition
        The partition fitted to the view.
    bin_index : ndarray (n,)
        The bin of each row, from 0 to n_bins − 1.
    n_bins : int
        Number of bins, empty ones included.
    order : ndarray (occupied bins,)
        The occupied bins by increasing lower edge, as positions among those in the order of the partition.
    columns : dict of str to ndarray
        The bins as columns of a table, in the order `order`: name of the view, number and edges of the bin, number of
        rows, weight, share of the weight, mean prediction, event rate, and their difference (`deviation`).
    """

    def __init__(self, view: View, partition: Partition | None) -> None:
        self.view = view
        self.partition = partition or default_partition(view)
        self.fitted_partition = self.partition.fit(view)
        self.bin_index = np.asarray(view.assign(self.fitted_partition))
        self.n_bins = self.fitted_partition.size
        binned = view.pool(self.bin_index, self.n_bins)
        occupied = np.flatnonzero(np.bincount(self.bin_index, view.w, self.n_bins) > 0)
        low, high = self._edges(occupied)
        self.order = np.argsort(low, kind="stable")
        columns = {
            "view": np.full(len(occupied), view.name, dtype=object),
            "bin": occupied,
            "low": low,
            "high": high,
            "n": binned.n.astype(np.int64),
            "weight": binned.w,
            "share": binned.w / binned.w.sum(),
            "mean_prediction": binned.p,
            "outcome_rate": binned.y,
            "deviation": binned.y - binned.p,
        }
        self.columns: Columns = {name: column[self.order] for name, column in columns.items()}

    def _edges(self, occupied: Array) -> tuple[Array, Array]:
        """Lower and upper edges of the `occupied` bins, given by their numbers, (occupied bins,) each.

        The bins of a tree have no edges: those of a leaf are its smallest and its largest prediction.
        """
        if isinstance(self.fitted_partition, Bins):
            return self.fitted_partition.edges[:-1][occupied], self.fitted_partition.edges[1:][occupied]
        low, high = np.full(self.n_bins, np.inf), np.full(self.n_bins, -np.inf)
        np.minimum.at(low, self.bin_index, self.view.partition_values)
        np.maximum.at(high, self.bin_index, self.view.partition_values)
        return low[occupied], high[occupied]

    def intervals_by_level(self, bar_function: BarFunction, levels: Sequence[float]) -> tuple[BinIntervals, ...]:
        """Return the intervals of the bins at each level, lowest bin first, computed by `bar_function`."""
        return tuple(
            BinIntervals(bars.low[self.order], bars.high[self.order], tuple(bars.method[i] for i in self.order))
            for bars in bar_function(self.view, self.bin_index, self.n_bins, levels)
        )

    @property
    def has_equal_widths(self) -> bool:
        """Whether all bins have equal width, so that heights in a histogram are proportional to areas."""
        if not isinstance(self.fitted_partition, Bins):
            return False
        width = np.diff(self.fitted_partition.edges)
        return bool((width > 0).all() and np.ptp(width) < 1e-9)

    @property
    def strip_shares(self) -> Array:
        """The histogram of the scores for the strip below the diagram: shares of the weight in equal cells.

        Its `N_STRIP_CELLS` cells do not depend on the bins, whose widths may differ.
        """
        cells = Uniform(N_STRIP_CELLS).fit(self.view)
        cell_weights = np.bincount(cells.index(self.view.partition_values), self.view.w, N_STRIP_CELLS)
        return np.asarray(cell_weights / cell_weights.sum())

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: the mean of |deviation| over bins, weighted by their share of rows."""
        return float(self.columns["share"] @ np.abs(self.columns["deviation"]))


def pool_rows(view: View) -> View:
    """Return a view with a single cell, which has the mean prediction and the event rate of all rows."""
    return view.pool(np.zeros(len(view.w), dtype=np.intp), 1)


# Numbers of bins from 5 to 40 whose edges are edges of a tally's cells too: the divisors of 3,840.
NESTED_BIN_COUNTS = (5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 32, 40)


def score_histogram(view: View, n_bins: int) -> dict[str, Array]:
    """The histogram of the scores in `n_bins` equal bins: edges (`x_low`, `x_high`), n, weight and share of each."""
    columns = BinnedView(view, Uniform(n_bins)).columns
    source_columns = {"x_low": "low", "x_high": "high", "n": "n", "weight": "weight", "share": "share"}
    return {name: columns[column] for name, column in source_columns.items()}


def freedman_diaconis_bin_count(score_sums: DistinctScoreSums) -> int:
    """Freedman and Diaconis's number of bins on [0, 1], from 5 to 40; 20 if half of the rows share a score.

    Their bins have the width 2 IQR n^(−1/3), where IQR is the interquartile range of the scores. The number is rounded
    up to one whose edges are edges of a tally's cells.
    """
    cumulative_share = np.cumsum(score_sums.w) / score_sums.w.sum()
    # The tolerance 1e-12 lets a cumulative share that rounding puts below a quartile reach it.
    lower, upper = score_sums.score[np.searchsorted(cumulative_share, (0.25 - 1e-12, 0.75 - 1e-12))]
    min_bins = np.cbrt(score_sums.n.sum()) / (2 * (upper - lower)) if upper > lower else 20
    return next((n_bins for n_bins in NESTED_BIN_COUNTS if n_bins >= min_bins), NESTED_BIN_COUNTS[-1])


_QUANTILE_TOLERANCE = 1e-12  # probabilities and rates whose absolute difference is smaller count as equal
_SUM_TOLERANCE = 1e-9  # sums of weights whose relative difference is smaller count as equal: it is a rounding error


@dataclass(frozen=True, slots=True)
class BinIntervals:
    """Interval of the event rate of each bin, and the method that gave it.

    Attributes
    ----------
    low, high : ndarray (bins,)
        The ends of the intervals, event rates.
    method : tuple of str (bins,)
        Of `consistency_bars`: ``"exact"``, ``"refined normal"``, ``"normal"``, or ``"residuals"`` for shares of votes.
        Of `resampled_consistency_bars`: ``"redrawn"`` for labels, ``"flipped"`` for signs of residuals of vote shares.
        Of confidence intervals: ``"wilson"`` or ``"clopper-pearson"``.
    """

    low: Array
    high: Array
    method: tuple[str, ...]

    def excludes(self, rate: Array) -> Array:
        """Whether each rate lies outside its interval. Ends belong to the interval, up to rounding.

        >>> BinIntervals(np.array([0.0]), np.array([2 / 3]), ("exact",)).excludes(np.array([0.6 / 0.9])).tolist()
        [False]
        """
        return (rate < self.low - _QUANTILE_TOLERANCE) | (rate > self.high + _QUANTILE_TOLERANCE)


# (view, bin_index, n_bins, levels) -> the intervals of the occupied bins at each level
BarFunction = Callable[[View, Array, int, Sequence[float]], tuple[BinIntervals, ...]]


def is_significant(p: Array, level: float) -> Array:
    """Whether p-values are at most 1 − level, up to the rounding of the subtraction.

    >>> is_significant(np.array([0.1, 0.10001]), 0.9).tolist()
    [True, False]
    """
    return np.asarray(p <= 1 - level + _QUANTILE_TOLERANCE)


def consistency_bars(view: View, bin_index: Array, n_bins: int, level: float) -> BinIntervals:
    """Range of the observed event rate of each occupied bin with probability `level` if the model is calibrated.

    The ends are the quantiles (1 ± level)/2 of Σy/n, the smallest k with P[Σy ≤ k] ≥ q, where each label is drawn with
    its predicted probability. For rows of equal weight Σy has a Poisson-binomial distribution. It is computed exactly
    up to 2,000 rows, and beyond by the refined normal approximation :math:`Φ(x) + γ(1 − x²)φ(x)/6` at x = (k + ½ − μ)/σ
    with skewness γ. Rows of unequal weight use a normal approximation with variance Σw²p(1−p)/(Σw)². Outcomes that are
    shares of votes, whose distribution the predictions do not determine, use a normal one with variance
    Σw²(y−p)²/(Σw)².

    Units: probability. Cost: O(Σ min(n_b, 2000)²) over bins. Bins without weight are omitted. Source: Bröcker & Smith
    (2007), with the exact distribution instead of the binomial, which is wider where predictions differ.

    >>> bars = consistency_bars(View(p=[0.0, 0.5, 1.0], y=[0, 1, 1]), np.array([0, 1, 2]), 3, 0.9)
    >>> bars.low.tolist(), bars.high.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    (bars,) = consistency_bars_at_levels(view, bin_index, n_bins, (level,))
    return bars


def consistency_bars_at_levels(
    view: View, bin_index: Array, n_bins: int, levels: Sequence[float]
) -> tuple[BinIntervals, ...]:
    """`consistency_bars` at several levels; the distribution of each bin, the costly part, is computed once."""
    tails = [(1 - level) / 2 for level in levels]
    rows = np.flatnonzero(view.w > 0)
    rows = rows[argsort_bins(bin_index[rows], n_bins)]
    starts = np.searchsorted(bin_index[rows], np.arange(n_bins + 1))
    y, sums = view.outcomes, cache(view.sums)  # each of the sums is computed if a bin needs it
    bin_ranges = [
        _bin_limits(view, y, rows[start:stop], sums, tails) for start, stop in pairwise(starts) if stop > start
    ]
    limits_by_bin = np.array([limits for limits, _ in bin_ranges]).reshape(-1, len(tails), 2)
    methods = tuple(method for _, method in bin_ranges)
    return tuple(BinIntervals(limits_by_bin[:, i, 0], limits_by_bin[:, i, 1], methods) for i in range(len(tails)))


def wilson_intervals(view: View, bin_index: Array, n_bins: int, level: float) -> BinIntervals:
    """Wilson interval of the event rate of each occupied bin, with effective sample size n = (Σw)²/Σw².

    Equal weights, whatever their size, leave n at the number of rows, because weights are importance weights and not
    counts. Units: probability. Source: Wilson (1927); Kish (1965) for the effective sample size.

    >>> bars = wilson_intervals(View(p=[0.5] * 4, y=[0, 0, 0, 0]), np.zeros(4, dtype=int), 1, 0.95)
    >>> bars.low.tolist(), bars.high.round(4).tolist()
    ([0.0], [0.4899])
    """
    binned = view.pool(bin_index, n_bins)
    n, rate = binned.w**2 / binned.sums("ww"), np.clip(binned.y, 0, 1)
    low, high = wilson_limits(rate, n, float(ndtri((1 + level) / 2)))
    return BinIntervals(low, high, ("wilson",) * len(n))


def clopper_pearson_intervals(view: View, bin_index: Array, n_bins: int, level: float) -> BinIntervals:
    r"""Clopper-Pearson interval of each occupied bin: the event rates that neither one-sided test rejects.

    .. math:: B^{-1}_{(1-c)/2}(k,\, n-k+1) \quad\text{to}\quad B^{-1}_{(1+c)/2}(k+1,\, n-k)

    for k events in n rows at level c. Its coverage is at least c for rows of equal weight and equal probability. Rows
    with different probabilities make the count less variable. Unequal weights give the effective sample size n =
    (Σw)²/Σw² and k = n·rate, as in `wilson_intervals`, and so do shares of votes. The interval is then approximate.

    Units: probability. Cost: O(n). Source: Clopper & Pearson (1934); Kish (1965) for the effective sample size.

    >>> bars = clopper_pearson_intervals(View(p=[0.5] * 4, y=[0, 0, 0, 0]), np.zeros(4, dtype=int), 1, 0.95)
    >>> bars.low.tolist(), bars.high.round(4).tolist()
    ([0.0], [0.6024])
    """
    binned = view.pool(bin_index, n_bins)
    n, rate = binned.w**2 / binned.sums("ww"), np.clip(binned.y, 0, 1)
    low, high = clopper_pearson_limits(n * rate, n, (1 - level) / 2)
    return BinIntervals(np.minimum(low, rate), np.maximum(high, rate), ("clopper-pearson",) * len(n))


def collect_bar_notes(methods: Sequence[str], views: Sequence[View], partition: Partition, unit: str) -> list[Note]:
    """Notes on how the bars were computed, where that is not the exact distribution for rows.

    `methods` are those of all bars of the views, and `unit` is what a bar stands for in the text, `bins` or `views`.
    """
    notes: list[Note] = []
    for view in views:
        if view.is_rows and not view.joint and partition.ignores_scores:
            all_scores = partial(np.asarray, view.partition_values)
            notes += edge_rounding_notes(sample_scores(view), all_scores, partition.fit(view))
    n_approximate = sum(method == "refined normal" for method in methods)
    if n_approximate:
        notes.append(
            Note(
                "TN241",
                f"For {n_approximate} of {len(methods)} {unit} (more than {MAX_CONVOLVED_ROWS:,} rows each) the"
                " consistency range is a refined normal approximation instead of exact.",
            )
        )
    if "normal" in methods:
        notes.append(
            Note(
                "TN242",
                "Rows of a bin have unequal weights; its range uses a normal approximation with variance"
                " Σw²p(1−p)/(Σw)².",
            )
        )
    if "residuals" in methods:
        notes.append(
            Note(
                "TN243",
                "Outcomes are shares of votes; ranges use a normal approximation with variance Σw²(y−p)²/(Σw)².",
            )
        )
    if methods and not {"wilson", "clopper-pearson"} & set(methods) and not all(view.is_rows for view in views):
        notes.append(TALLY_NOTE)
    if methods and partition.uses_outcomes:
        notes.append(
            Note(
                "TN247",
                f"The bins depend on the outcomes ({partition}); bars that treat the bins as fixed are too narrow.",
            )
        )
    return notes


def _bin_limits(
    view: View, y: Array, rows: Array, sums: Callable[[str], Array], tails: Sequence[float]
) -> tuple[list[tuple[float, float]], str]:
    """Consistency range of one bin at each tail probability, a list of (low, high), and the method that gave it.

    `rows` are the numbers of its rows. `y` (n,) are the outcomes of all rows of the view, and `sums` returns one of
    their further sums (see `View.sums`).
    """
    p = np.clip(view.p[rows].astype(np.float64), 0, 1)  # rounding may put a softmax above 1
    w, n = view.w[rows], view.n[rows]
    total_weight, n_rows = float(w.sum()), round(float(n.sum()))
    # Only outcomes of 0 and 1 have Σwy² = Σwy; others are shares of votes.
    has_binary_outcomes = math.isclose(
        sums("wyy")[rows].sum(),
        float(weighted_sum(w, y[rows])),
        rel_tol=_SUM_TOLERANCE,
        abs_tol=_SUM_TOLERANCE * total_weight,
    )
    # Cauchy–Schwarz: (Σw)² = n Σw² if and only if all weights are equal.
    has_equal_weights = math.isclose(
        total_weight * total_weight, n_rows * sums("ww")[rows].sum(), rel_tol=_SUM_TOLERANCE
    )
    if not has_binary_outcomes or not has_equal_weights:
        variance_sum, method = ("wwv", "normal") if has_binary_outcomes else ("wwr", "residuals")
        mean = float(weighted_sum(w, p)) / total_weight
        variance = float(sums(variance_sum)[rows].sum()) / total_weight**2
        return [_normal_limits(mean, variance, tail) for tail in tails], method
    if n_rows <= MAX_CONVOLVED_ROWS:
        distribution = np.cumsum(poisson_binomial_pmf(np.repeat(p, n.astype(np.int64)))) + _QUANTILE_TOLERANCE
        exact_limits = [np.minimum(np.searchsorted(distribution, (tail, 1 - tail)), n_rows) / n_rows for tail in tails]
        return [(float(low), float(high)) for low, high in exact_limits], "exact"
    mean = float(weighted_sum(n, p))
    variance = float(sums("wwv")[rows].sum()) * (n_rows / total_weight) ** 2
    third_moment = float((n * p * (1 - p) * (1 - 2 * p)).sum())
    refined_limits = [
        (
            _refined_normal_quantile(mean, variance, third_moment, n_rows, tail) / n_rows,
            _refined_normal_quantile(mean, variance, third_moment, n_rows, 1 - tail) / n_rows,
        )
        for tail in tails
    ]
    return refined_limits, "refined normal"


def _normal_limits(mean: float, variance: float, tail: float) -> tuple[float, float]:
    """Normal limits of an event rate, within [0, 1]."""
    half_width = -ndtri(tail) * math.sqrt(max(variance, 0.0))
    return max(mean - half_width, 0.0), min(mean + half_width, 1.0)


def _refined_normal_quantile(mean: float, variance: float, third_moment: float, n_rows: int, q: float) -> int:
    """The smallest count k at which the refined normal distribution function of Σy reaches q.

    Mean, variance and third central moment are those of the number of events Σy among `n_rows` rows.
    """
    if variance <= 0:
        return round(mean)
    sigma = math.sqrt(variance)

    def distribution_function(k: int) -> float:
        # Edgeworth expansion with continuity correction: Φ(x) + γ(1 − x²)φ(x)/6 with skewness γ.
        x = (k + 0.5 - mean) / sigma
        correction = third_moment / sigma**3 * (1 - x * x) * math.exp(-x * x / 2) / (6 * math.sqrt(2 * math.pi))
        return float(ndtr(x)) + correction + _QUANTILE_TOLERANCE

    return min(bisect_left(range(n_rows + 1), q, key=distribution_function), n_rows)


_MAX_CELL_DRAWS = 2**22  # draws of cells in memory at a time


def resampled_consistency_bars(
    view: View, bin_index: Array, n_bins: int, levels: Sequence[float], resamples: int, rng: np.random.Generator
) -> tuple[BinIntervals, ...]:
    r"""Consistency range of the event rate of each occupied bin by resampling labels, at each level.

    Each label is drawn with its predicted probability, with predictions and bins fixed. The ends are the smallest
    :math:`v` with :math:`\#\{r^*_b \le v\} \ge qB` at q = (1 ± level)/2. Unlike `consistency_bars` this needs no
    approximation for rows of unequal weight. The labels of a tally's cell are drawn together, with a normal sum if the
    weights inside differ. Shares of votes keep the size of their residual and have its sign flipped, which is
    approximate.

    Units: probability. Cost: one draw per row (or cell) and resample. Bins without weight are omitted.
    Source: Bröcker & Smith (2007), with the predictions fixed.

    >>> view = View(p=[0.0, 0.5, 1.0], y=[0, 1, 1])
    >>> (bars,) = resampled_consistency_bars(view, np.array([0, 1, 2]), 3, (0.9,), 99, np.random.default_rng(0))
    >>> bars.low.tolist(), bars.high.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    draws = _OutcomeDraws(view, bin_index, n_bins, resamples, rng)
    bin_weight = np.bincount(bin_index, view.w, n_bins)
    occupied = bin_weight > 0
    has_vote_shares, is_single_row = draws.has_vote_shares, view.n == 1
    sums = np.zeros((resamples, n_bins))  # Σwy of each bin in each resample
    for mask, sum_draws in (
        (is_single_row & ~has_vote_shares, draws.sum_labels),
        (is_single_row & has_vote_shares, draws.sum_flipped_residuals),
        (~is_single_row, draws.sum_cells),
    ):
        if mask.any():
            sums += sum_draws(np.flatnonzero(mask))
    rates = np.sort(np.clip(sums[:, occupied] / bin_weight[occupied], 0, 1), axis=0)
    has_flipped_residuals = np.bincount(bin_index, has_vote_shares & (view.w > 0), n_bins)[occupied] > 0
    method = tuple("flipped" if is_flipped else "redrawn" for is_flipped in has_flipped_residuals)
    return tuple(
        BinIntervals(_empirical_quantile(rates, (1 - level) / 2), _empirical_quantile(rates, (1 + level) / 2), method)
        for level in levels
    )


def _empirical_quantile(rates: Array, q: float) -> Array:
    """The smallest rate of each bin that at least the share q of the resamples does not exceed.

    `rates` (resamples, bins) are sorted by resample.
    """
    return np.asarray(rates[max(math.ceil(q * len(rates) - 1e-9) - 1, 0)])


@dataclass(frozen=True)
class _OutcomeDraws:
    """Outcomes drawn with the predicted probabilities; a method sums those of some rows by bin, (resamples, n_bins)."""

    view: View
    bin_index: Array  # (n,)
    n_bins: int
    resamples: int
    rng: np.random.Generator

    @cached_property
    def p(self) -> Array:
        """Predicted probabilities in double precision, (n,)."""
        return np.clip(self.view.p.astype(np.float64), 0, 1)

    @cached_property
    def has_vote_shares(self) -> Array:
        """Mask (n,) of the rows, or cells of a tally, whose outcomes are shares of votes."""
        return np.abs(self.view.sums("wyy") - self.view.w * self.view.y) > _SUM_TOLERANCE * self.view.w

    def sum_labels(self, rows: Array) -> Array:
        """Single rows with one label, which is drawn."""
        row_bins = self.bin_index[rows].astype(np.int32).reshape(1, -1, 1)
        return random_labels.sum_label_weights(
            self.p[rows, None], self.view.w[rows], row_bins, self.n_bins, stream_key(self.rng), 0, self.resamples,
            independent=True,
        )  # fmt: skip

    def sum_flipped_residuals(self, rows: Array) -> Array:
        """Single rows with votes, whose residuals get random signs."""
        w, predicted, observed = self.view.w[rows], self.p[rows], self.view.y[rows]
        row_bins = self.bin_index[rows].astype(np.int32)[:, None]
        predicted_sums = np.bincount(self.bin_index[rows], w * predicted, self.n_bins)
        residuals = (w * (observed - predicted))[:, None]
        return predicted_sums + random_labels.sum_sign_flips(
            np.arange(len(rows)), row_bins, residuals, self.n_bins, stream_key(self.rng), 0, self.resamples
        )

    def sum_cells(self, cells: Array) -> Array:
        """Cells of a tally, given by their numbers: binomial if possible, else normal."""
        view, rng, bin_index, has_vote_shares = self.view, self.rng, self.bin_index[cells], self.has_vote_shares[cells]
        n, w, predicted = view.n[cells].astype(np.int64), view.w[cells], self.p[cells]
        # Cauchy–Schwarz: (Σw)² = n Σw² if and only if all weights of a cell are equal, and only then Σwy is binomial.
        has_equal_weights = np.isclose(w * w, n * view.sums("ww")[cells], rtol=_SUM_TOLERANCE, atol=0)
        is_binomial = has_equal_weights & ~has_vote_shares
        variance = np.where(has_vote_shares, view.sums("wwr")[cells], view.sums("wwv")[cells])
        std = np.sqrt(np.maximum(variance, 0))
        order = np.argsort(bin_index, kind="stable")
        occupied_bins, first_cells = np.unique(bin_index[order], return_index=True)
        sums = np.zeros((self.resamples, self.n_bins))
        draws_per_block = max(1, _MAX_CELL_DRAWS // len(cells))
        for start in range(0, self.resamples, draws_per_block):
            n_draws = min(draws_per_block, self.resamples - start)
            draws = w * predicted + std * rng.standard_normal((n_draws, len(cells)))
            n_events = rng.binomial(n[is_binomial], predicted[is_binomial], (n_draws, int(is_binomial.sum())))
            draws[:, is_binomial] = n_events * (w / np.maximum(n, 1))[is_binomial]
            sums[start : start + n_draws, occupied_bins] = np.add.reduceat(draws[:, order], first_cells, axis=1)
        return sums
