"""Bayesian binning into quantiles (BBQ): averages of equal-mass histograms, weighted by marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import betaln, expit

from trueodds.binning.sorted_scores import SortedScores
from trueodds.calibrators._curves.one_vs_rest import OneVsRest, describe_sizes, effective_rows, fit_curves
from trueodds.calibrators._curves.score_scale import LOGIT, PROBABILITY, SCORE_RANGE, score_scale
from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.calibrators._glm.logistic_regression import fit_logistic, intercept_and_score
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.histogram import StepCurve, midpoints_of_scores
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts

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
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "bins are closed on the right, so a score on an edge changes its bin when mirrored"
    }

    def fit(self, P: Probabilities, Y: Array, w: Array) -> BbqMap:
        return BbqMap(fit_curves(partial(_fit_curve, scale=score_scale(P)), P, Y, w))


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


def _fit_curve(x: Array, y: Array, w: Array, scale: str) -> StepCurve:
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
