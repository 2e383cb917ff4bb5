"""Calibration by bins of the score: histogram binning, scaling-binning, and Bayesian binning into quantiles (BBQ)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import betaln, expit

from trueodds.binning.equal_mass import EqualMass, cut_weights, midpoints_at_cuts
from trueodds.binning.partition import BinRule, Partition, resolve_n_bins
from trueodds.binning.sorted_scores import SortedScores
from trueodds.binning.uniform import Uniform
from trueodds.calibrators._curves.one_vs_rest import (
    LOGIT,
    PROBABILITY,
    SCORE_RANGE,
    IterativeOneVsRest,
    OneVsRest,
    Scale,
    describe_sizes,
    effective_rows,
    fit_curves,
    fit_curves_of_logs,
    score_scale,
    zero_probability_notes,
    zero_probability_notes_of_cells,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    replacement_notes,
    to_probabilities,
)
from trueodds.calibrators._glm.logistic_regression import curve_notes, fit_logistic, intercept_and_score
from trueodds.calibrators.base import CalibratorSpec, TalliedSpec
from trueodds.calibrators.logistic import PlattSpec, Sigmoid
from trueodds.calibrators.saved_parameters import Key, Numbers, Saved, delegated, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.settings import BinCount, OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

_PARTITIONS: dict[str, Callable[[int | str], Partition]] = {
    "uniform": Uniform,
    "equal-mass": partial(EqualMass, cut="floor"),
}


class StepCurve(Saved):
    """A step function of the score, with one value per bin (a, b]; the first bin also contains its lower edge.

    Two first edges of 0 make a bin [0, 0] of exact zeros.
    """

    # (b + 1,) over the `SCORE_RANGE` of the scale, strictly increasing except for the first two
    edges: Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], ("b+1",), increasing="weakly")]
    values: Annotated[Array, Numbers(0, 1, ("b",))]
    n_empty: Annotated[int, Range(0), Key("empty")] = 0  # number of empty bins, which predict their midpoint
    scale: Scale = PROBABILITY  # of the edges; "logit" for equal-mass bins of logits

    def __call__(self, x: Array) -> Array:
        return self.values[Bins(self.edges).index(x)]

    def check_saved(self, k: int) -> None:
        low, high = SCORE_RANGE[self.scale]
        if self.edges[0] != low or self.edges[-1] != high or (np.diff(self.edges[1:]) <= 0).any():
            raise invalid_value_error("edges", f"increasing from {low:g} to {high:g}", self.edges.tolist())


class HistogramMap(OneVsRest):
    """The event rate of each bin, for the second of two classes, or for every class."""

    curves: tuple[StepCurve, ...]

    def describe(self) -> str:
        return format_bins(self.curves)


def format_bins(curves: Sequence[StepCurve]) -> str:
    """The number of bins as text, such as `15 bins`, or `12 to 15 bins in 4 curves`."""
    sizes = sorted({len(curve.values) for curve in curves})
    text = format_count(sizes[0], "bin") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} bins"
    return text + (f" in {len(curves)} curves" if len(curves) > 1 else "")


class HistogramSpec(TalliedSpec):
    r"""Histogram binning: the event rate of the bin of a score.

    Two classes have one set of bins, for the second class. With more classes each has bins against the rest, and rows
    are divided by their sums. Probabilities may become exactly 0 or 1, predicted classes may change, and scores in one
    bin become equal.

    Parameters
    ----------
    bins : int or str, default=15
        Number of bins, or the name of a rule that chooses it.
    partition : {"uniform", "equal-mass"}, default="uniform"
        Bins of equal width, where an empty bin predicts its midpoint, or of equal mass, where none is empty. Equal-mass
        group i ends after ⌊n i / bins⌋ rows; tied scores are never split, so there may be fewer bins than requested.

    Notes
    -----
    .. math:: \theta_b = \frac{\sum_{i \in b} w_i y_i}{\sum_{i \in b} w_i}

    Cost: O(nK), with equal-mass bins O(K n log n).

    References
    ----------
    .. [1] Zadrozny & Elkan (2001).
    .. [2] Guo et al. (2017).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0, 0, 0, 1])
    >>> HistogramSpec(bins=2).fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4)).curves[0].values.tolist()
    [0.0, 0.5]
    """

    name, map_type = "histogram", HistogramMap
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "bins are closed on the right, so a score on an edge changes its bin when mirrored"
    }
    bins: BinCount | BinRule = 15
    partition: Annotated[str, OneOf(tuple(_PARTITIONS))] = "uniform"
    takes_logs = True

    def _make_partition(self) -> Partition:
        return _PARTITIONS[self.partition](self.bins)

    def unit_free(self) -> HistogramSpec:
        """Bins of equal mass, because the probabilities in which uniform bins are equally wide depend on the unit."""
        return replace(self, partition="equal-mass")

    def fit(self, P: Probabilities, Y: Array, w: Array) -> HistogramMap:
        if self.partition == "uniform":  # whose edges are probabilities
            P = to_probabilities(P)
        elif score_scale(P) == LOGIT:
            return HistogramMap(fit_curves(partial(_fit_curve_to_log_odds, bins=self.bins), P, Y, w))
        return HistogramMap(fit_curves(partial(_fit_curve_to_rows, partition=self._make_partition()), P, Y, w))

    def fit_from_views(self, views: Sequence[View]) -> HistogramMap:
        """Event rates from cells; equal to those of the rows where edges of bins are edges of cells."""
        return HistogramMap(tuple(_fit_curve_to_view(view, self._make_partition()) for view in views))

    def notes(self, calibration_map: HistogramMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return [*self._empty_bin_notes(calibration_map), *zero_probability_notes(calibration_map.apply(P))]

    def notes_from_views(self, calibration_map: HistogramMap, views: Sequence[View]) -> list[Note]:
        return [
            *self._empty_bin_notes(calibration_map),
            *zero_probability_notes_of_cells(calibration_map.curves, views),
        ]

    def _empty_bin_notes(self, calibration_map: HistogramMap) -> list[Note]:
        n_empty = sum(curve.n_empty for curve in calibration_map.curves)
        n_bins = sum(len(curve.values) for curve in calibration_map.curves)
        text = f"{n_empty:,} of {n_bins:,} bins are empty and predict their midpoint."
        return [Note("TN506", text)] if n_empty else []


def _fit_curve_to_rows(x: Array, y: Array, w: Array, partition: Partition) -> StepCurve:
    """Event rates of the bins of scores x (n,) with outcome shares y (n,) and weights w (n,)."""
    return _fit_curve_to_view(View(x, y, w), partition)


def _fit_curve_to_log_odds(x: Array, y: Array, w: Array, bins: int | str) -> StepCurve:
    """Event rates of equal-mass bins of log odds x (n,) with outcome shares y (n,) and weights w (n,)."""
    view = View(x, y, w)
    n_bins = resolve_n_bins(bins, view)
    inner_edges = midpoints_at_cuts(SortedScores(x, y, w), cut_weights(view, n_bins, "floor"))
    low, high = SCORE_RANGE[LOGIT]
    edges = edges_between_scores(np.concatenate(([low], inner_edges, [high])), np.unique(x), low, high)
    bin_index = Bins(edges).index(x)
    values = np.bincount(bin_index, w * y, len(edges) - 1) / np.bincount(bin_index, w, len(edges) - 1)
    return StepCurve(edges, np.clip(values, 0.0, 1.0), scale=LOGIT)


def _fit_curve_to_view(view: View, partition: Partition) -> StepCurve:
    bins, x, y, w = partition.fit(view), view.partition_values, view.y, view.w
    assert isinstance(bins, Bins)
    if isinstance(partition, EqualMass):
        bins = Bins(edges_between_scores(bins.edges, np.unique(np.minimum(x, 1.0, dtype=np.float64))))
    bin_index = bins.index(x)
    mass = np.bincount(bin_index, w, bins.size)
    bin_midpoints = (bins.edges[:-1] + bins.edges[1:]) / 2
    values = np.divide(np.bincount(bin_index, w * y, bins.size), mass, out=bin_midpoints, where=mass > 0)
    return StepCurve(bins.edges, np.clip(values, 0.0, 1.0), int((mass == 0).sum()))


def edges_between_scores(edges: Array, scores: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Edges from `low` to `high` that group distinct scores (m,) as `edges` do, but lie midway between two scores.

    An edge on a score could put rows of that score into different bins, because computed scores have rounding errors.
    Edges between the same two scores, as after a tie that spans several groups, become one.

    >>> edges_between_scores(np.array([0, 0.2, 0.4, 0.6, 1]), np.array([0.2, 0.6])).tolist()
    [0.0, 0.4, 1.0]
    """
    upper_index = np.unique(np.searchsorted(scores, edges[1:-1], "right"))
    upper_index = upper_index[(upper_index > 0) & (upper_index < len(scores))]
    return np.concatenate(([low], midpoints_of_scores(scores[upper_index - 1], scores[upper_index]), [high]))


def midpoints_of_scores(low: Array, high: Array) -> Array:
    """Edges (m,) midway between pairs of neighboring scores, `low` (m,) and `high` (m,).

    A score on an edge belongs to the bin below, so the edge must be smaller than `high`.
    """
    midpoint = (low + high) / 2
    return np.where(midpoint < high, midpoint, low)  # of two neighboring floats it may be the upper one


class BinnedSigmoid(Saved):
    """A sigmoid of the log odds, replaced by its mean in each bin of its values."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {name: f"sigmoid.{path}" for name, path in Sigmoid.symbols.items()}
    sigmoid: Sigmoid
    steps: StepCurve  # from the value of the sigmoid to its mean in the bin

    n_passes = delegated("sigmoid", "n_passes")
    converged = delegated("sigmoid", "converged")
    nonincreasing = delegated("sigmoid", "nonincreasing")

    def __call__(self, x: Array) -> Array:
        return self.steps(self.sigmoid(x))

    def apply_to_logs(self, logs: Array) -> Array:
        q = self.steps(self.sigmoid.apply_to_logs(logs)[:, 1])
        return np.stack([1 - q, q], axis=1)


class ScalingBinningMap(IterativeOneVsRest):
    """A binned sigmoid for the second of two classes, or for every class."""

    curves: tuple[BinnedSigmoid, ...]

    def describe(self) -> str:
        return format_bins([curve.steps for curve in self.curves])


class ScalingBinningSpec(CalibratorSpec):
    r"""Scaling-binning: a sigmoid of the log odds, replaced by its mean in each of several equal-mass bins.

    The map has only a few values, so that its calibration error can be estimated. The means vary less than the event
    rates of `histogram`, at the price of the sigmoid's bias. Two classes have one curve, for the second class. With
    more classes each has a curve against the rest, and rows are divided by their sums, which the paper omits. Predicted
    classes may change, and scores in one bin become equal.

    Parameters
    ----------
    bins : int or {"auto"}, default=15
        Number of bins. `"auto"` is ⌈n^(2/5)⌉. Tied scores are never split.

    Notes
    -----
    .. math:: g = \arg\max_{s, b} \sum_i w_i\,\ell(y_i, \sigma(s \log\tfrac{p_i}{1-p_i} + b)), \qquad
        q = \frac{\sum_{i \in b} w_i\, g(p_i)}{\sum_{i \in b} w_i} \ \text{for } g(p) \in b

    The sigmoid is that of `platt` with `smooth=False`. The paper uses three sets of rows for sigmoid, bins and means.
    Here, as in the authors' program, all rows serve all three, so that nothing depends on row order or chance. For the
    guarantee of the paper, split the rows yourself.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Kumar, Liang & Ma (2019).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0.25, 0.25, 0.75, 0.75])
    >>> m = ScalingBinningSpec(bins=1).fit(np.stack([1 - p, p], axis=1), np.stack([1 - y, y], axis=1), np.ones(4))
    >>> m.apply(np.array([[0.99, 0.01]])).round(6).tolist()  # one bin predicts the base rate
    [[0.5, 0.5]]
    """

    name, map_type = "scaling_binning", ScalingBinningMap
    takes_logs = True
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "where rows do not divide by bins the lower bins are the larger ones"
    }
    bins: BinCount | BinRule = 15
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> ScalingBinningMap:
        return ScalingBinningMap(fit_curves_of_logs(partial(_fit_binned_sigmoid, spec=self), P, Y, w, 0.0))

    def notes(self, calibration_map: ScalingBinningMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob)
        fit_notes += curve_notes(calibration_map.curves)
        return fit_notes + zero_probability_notes(calibration_map.apply(P), Y)


def _fit_binned_sigmoid(logs: Array, y: Array, w: Array, spec: ScalingBinningSpec) -> BinnedSigmoid:
    """Fit the curve of one class to log(1 − p) and log p (n, 2), outcome shares y (n,) and weights w (n,)."""
    platt = PlattSpec(smooth=False, min_prob=spec.min_prob)
    sigmoid: Sigmoid = platt.fit(LogProbabilities(logs), np.stack([1 - y, y], axis=1), w).curves[0]
    sigmoid_values = sigmoid.apply_to_logs(logs)[:, 1]
    bins = EqualMass(spec.bins).fit(View(sigmoid_values, y, w))
    assert isinstance(bins, Bins)
    edges = edges_between_scores(bins.edges, np.unique(sigmoid_values))
    bin_index = Bins(edges).index(sigmoid_values)
    means = np.bincount(bin_index, w * sigmoid_values) / np.bincount(bin_index, w)
    return BinnedSigmoid(sigmoid, StepCurve(edges, np.clip(means, 0.0, 1.0)))


_BIN_COUNT_FACTOR = 10.0  # numbers of bins run from n^(1/3) / 10 to 10 n^(1/3)
_MIN_ROWS_PER_BIN = 5  # on average, in the binning with the most bins
_ROUNDING = 1e-9  # rounding error of a bound on the number of bins
_MAX_BINS = 3000  # reached by 2.7·10⁷ rows: counts as weights must not need more memory than rows could
_PRIOR_ROWS = 2.0  # weight of the prior of each bin, as a number of rows
_PRIOR_MEAN_RANGE = 0.005, 0.995  # the prior's mean is kept away from 0 and 1
_NEGLIGIBLE_WEIGHT = 1e-17  # share of the largest weight below which a binning does not change a digit


class BbqMap(OneVsRest):
    """Averaged step functions for the second of two classes, or for every class."""

    curves: tuple[StepCurve, ...]

    def describe(self) -> str:
        return describe_sizes([len(curve.values) for curve in self.curves], "step")


class BbqSpec(CalibratorSpec):
    r"""Bayesian binning into quantiles (BBQ): an average of equal-frequency histograms over numbers of bins.

    Histograms are weighted by their marginal likelihood. Two classes have one curve, for the second class, which is
    never exactly 0 or 1. With more classes each has a curve against the rest, and rows are divided by their sums.
    Predicted classes may change.

    Notes
    -----
    .. math:: \omega_B \propto \prod_{b=1}^{B} \frac{\Gamma(2)}{\Gamma(n_b + 2)}\,
        \frac{\Gamma(m_b + \alpha_b)}{\Gamma(\alpha_b)}\, \frac{\Gamma(n_b - m_b + \beta_b)}{\Gamma(\beta_b)}, \quad
        \theta_b = \frac{m_b + \alpha_b}{n_b + 2}, \quad \alpha_b = 2 \pi_b,\ \beta_b = 2 - \alpha_b

    where n_b and m_b are the rows and events in a bin, and π_b is the midpoint of the bin, limited to [.005, .995]; of
    logits, whose unit is unknown, it is that of their Platt scaling. The
    number of bins B runs from ⌊n^(1/3) / 10⌋, at least 1, to ⌈10 n^(1/3)⌉, at most ⌈n / 5⌉ and 3,000. Bin i of B ends
    after ⌊n i / B⌋ rows. Tied scores are never split, and numbers of bins that then give the same bins count once.
    Weights that are not counts are scaled to sum to the number of rows. The authors' program uses another value per bin
    than their paper, whose formula this is, and leaves out models of little weight.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht (2015).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0, 0, 0, 1])
    >>> m = BbqSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))  # one bin: (1 + 1) / (4 + 2)
    >>> m.apply(np.array([[0.5, 0.5]])).round(3).tolist()
    [[0.667, 0.333]]
    """

    name, map_type = "bbq", BbqMap
    candidate = False
    takes_logs = True
    exemptions = HistogramSpec.exemptions

    def fit(self, P: Probabilities, Y: Array, w: Array) -> BbqMap:
        return BbqMap(fit_curves(partial(_average_binnings, scale=score_scale(P)), P, Y, w))


@dataclass(frozen=True, slots=True, eq=False)
class BinningEnsemble:
    """All binnings that are averaged, with their bins concatenated; those of each binning are in increasing order."""

    first_bins: Array  # (binnings,) index of the first bin of each binning
    upper_edges: Array  # (bins,) upper edge of each bin
    values: Array  # (bins,) posterior mean of the event rate of each bin
    log_likelihoods: Array  # (binnings,) log marginal likelihoods up to a common constant

    @property
    def weights(self) -> Array:
        """Weight of each binning in the average, (binnings,)."""
        relative_likelihoods = np.exp(self.log_likelihoods - self.log_likelihoods.max())
        relative_likelihoods[relative_likelihoods < _NEGLIGIBLE_WEIGHT] = 0.0
        return np.asarray(relative_likelihoods / relative_likelihoods.sum())

    def average(self, scale: str = PROBABILITY) -> StepCurve:
        weights = self.weights
        weighted_binnings, ends = np.flatnonzero(weights), np.append(self.first_bins[1:], len(self.upper_edges))
        bins_of_binning = [slice(self.first_bins[i], ends[i]) for i in weighted_binnings]
        edges = np.unique(np.concatenate([self.upper_edges[bins] for bins in bins_of_binning]))
        values = np.zeros(len(edges))
        for i, bins in zip(weighted_binnings, bins_of_binning, strict=True):
            values += weights[i] * self.values[bins][np.searchsorted(self.upper_edges[bins], edges)]
        return StepCurve(np.append(SCORE_RANGE[scale][0], edges), np.clip(values, 0.0, 1.0), scale=scale)


def _average_binnings(x: Array, y: Array, w: Array, scale: str) -> StepCurve:
    return fit_binnings(x, y, w, scale).average(scale)


def fit_binnings(x: Array, y: Array, w: Array, scale: str = PROBABILITY) -> BinningEnsemble:
    """Fit all equal-mass binnings of scores x (n,) with outcomes y and weights w > 0, and compute their likelihoods.

    The bins of all binnings are processed together in arrays, because a loop over binnings would take most of the time.
    """
    n, w = effective_rows(w)
    low, high = SCORE_RANGE[scale]
    by_score = SortedScores(np.minimum(x, high, dtype=np.float64), y, w)
    scores, mass, events = by_score.sums_by_score()
    cuts_of_binning = _distinct_cuts(n, are_counts(w), by_score, scores)
    first_bins = np.cumsum([0, *(len(cuts) + 1 for cuts in cuts_of_binning)])[:-1]
    # For each bin the index of its first score and of the first score of the next bin.
    starts = np.concatenate([np.concatenate(([0], cuts)) for cuts in cuts_of_binning])
    ends = np.concatenate([np.concatenate((cuts, [len(scores)])) for cuts in cuts_of_binning])
    edges = np.concatenate(([low], midpoints_of_scores(scores[:-1], scores[1:]), [high]))
    probabilities = edges
    if scale == LOGIT:  # by Platt scaling, which does not depend on the unit of the scores
        X = intercept_and_score(scores)
        intercept, slope = fit_logistic(X, events / mass, mass, np.zeros(2), smooth=True).theta
        probabilities = expit(intercept + slope * edges)
    cumulative_mass, cumulative_events = (np.concatenate(([0.0], np.cumsum(values))) for values in (mass, events))
    n_rows = cumulative_mass[ends] - cumulative_mass[starts]
    n_events = np.clip(cumulative_events[ends] - cumulative_events[starts], 0.0, n_rows)
    alpha = _PRIOR_ROWS * np.clip((probabilities[starts] + probabilities[ends]) / 2, *_PRIOR_MEAN_RANGE)
    beta = _PRIOR_ROWS - alpha
    # Γ(2)/Γ(n + 2) · Γ(m + α)/Γ(α) · Γ(n − m + β)/Γ(β) is B(m + α, n − m + β)/B(α, β), as α + β = 2.
    log_likelihoods_of_bins = betaln(n_events + alpha, n_rows - n_events + beta) - betaln(alpha, beta)
    return BinningEnsemble(
        first_bins=first_bins,
        upper_edges=edges[ends],
        values=(n_events + alpha) / (n_rows + _PRIOR_ROWS),
        log_likelihoods=np.add.reduceat(log_likelihoods_of_bins, first_bins),
    )


def _distinct_cuts(n: float, integer_weights: bool, by_score: SortedScores, scores: Array) -> list[Array]:
    """The cuts of each distinct binning: the index in `scores` (m,) of the first score of every bin but the first.

    n is the number of rows, the total weight. With `integer_weights`, cut i of B bins is after ⌊n i / B⌋ rows, else
    after the weight n i / B.
    """
    bin_counts = np.array(_bin_counts(n))
    n_cuts = bin_counts - 1
    # The cuts of all binnings are concatenated. For each cut: the number of bins of its binning, the number of cuts of
    # the binnings before, and the weight of the rows below the cut.
    n_bins = np.repeat(bin_counts, n_cuts)
    n_cuts_before = np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)
    weight_up_to_cut = (np.arange(len(n_bins)) - n_cuts_before + 1) * n / n_bins
    last_scores, _ = by_score.scores_at_weight(np.floor(weight_up_to_cut) if integer_weights else weight_up_to_cut)
    cuts = np.searchsorted(scores, last_scores, "right")
    # Cuts within a tie move to its end. Cuts of one binning that then coincide count once, and one after the last score
    # does not count.
    is_distinct = cuts < len(scores)
    is_distinct[1:] &= (n_bins[1:] != n_bins[:-1]) | (cuts[1:] != cuts[:-1])
    n_distinct_cuts = np.bincount(n_bins[is_distinct], minlength=bin_counts[-1] + 1)[bin_counts]
    cuts_of_binning = np.split(cuts[is_distinct], np.cumsum(n_distinct_cuts)[:-1])
    return list({cuts.tobytes(): cuts for cuts in cuts_of_binning}.values())


def _bin_counts(n: float) -> range:
    """The numbers of bins that are averaged for n rows."""
    cube_root = float(np.cbrt(n))  # of a cube it may be off by a rounding error, hence the tolerance
    min_bins = min(max(1, math.floor(cube_root / _BIN_COUNT_FACTOR + _ROUNDING)), _MAX_BINS)
    max_bins = min(math.ceil(n / _MIN_ROWS_PER_BIN), math.ceil(_BIN_COUNT_FACTOR * cube_root - _ROUNDING), _MAX_BINS)
    return range(min_bins, max(min_bins, max_bins) + 1)
