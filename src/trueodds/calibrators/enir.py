"""Ensemble of near-isotonic regressions (ENIR): their average along the path of the penalty, weighted by BIC."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from scipy.special import xlogy

from trueodds.binning.sorted_scores import SortedScores
from trueodds.calibrators._curves.one_vs_rest import (
    OneVsRest,
    describe_sizes,
    effective_rows,
    fit_curves,
    zero_probability_notes,
)
from trueodds.calibrators._curves.score_scale import (
    PROBABILITY,
    KnotScores,
    Scale,
    check_knots,
    is_outside_flat_segments,
    score_scale,
)
from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.saved_parameters import Numbers, Saved
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.kernels.isotonic import NearIsotonicPath, average_levels, near_isotonic_path

_SUM_ROUNDING = 1e-12  # relative rounding error of a sum of weights
_MAX_BIC_DIFFERENCE = 88.0  # difference in BIC from which a model has weight e^−44: 10⁵ of them do not change a digit


class PiecewiseLinearCurve(Saved):
    """A piecewise linear curve through knots, constant beyond the first and the last; it may decrease."""

    x: KnotScores  # (m,)
    y: Annotated[Array, Numbers(0, 1)]  # (m,)
    scale: Scale = PROBABILITY  # of the knots; "logit" for a fit on logits

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.x, self.y)

    def check_saved(self, k: int) -> None:
        check_knots("x", self.x, self.scale)


class EnirMap(OneVsRest):
    """A nearly monotone curve for the second of two classes, or for every class."""

    curves: tuple[PiecewiseLinearCurve, ...]

    def describe(self) -> str:
        return describe_sizes([len(curve.x) for curve in self.curves], "knot")


class EnirSpec(CalibratorSpec):
    r"""ENIR: the average of all near-isotonic regressions, weighted by BIC.

    Unlike that of `isotonic`, the curve may decrease where many rows support it; a single decrease among few distinct
    scores is smoothed away. Two classes have one curve, for the second class. With more classes each has a curve
    against the rest, and rows are divided by their sums. Probabilities may become exactly 0 or 1, and predicted classes
    may change.

    Notes
    -----
    .. math:: \min_f \tfrac12 \sum_i w_i (y_i - f_i)^2 + \lambda \sum_i (f_i - f_{i+1})_+, \quad
        \omega_\lambda \propto e^{-\mathrm{BIC}_\lambda/2}, \quad
        \mathrm{BIC}_\lambda = -2 \ell_\lambda + d_\lambda \log n

    over the sorted scores, with equal scores pooled first. d is the number of levels of the curve and ℓ its
    log-likelihood. As λ grows, decreases disappear until isotonic regression is left. Every λ at which levels merge
    gives a model, except λ = 0, which repeats the outcomes. The curve is linear between the scores. Weights that are
    not counts are scaled to sum to the number of rows. The authors' package adds log 2π to log n, which favors fewer
    levels.

    Cost: O(K n log n), memory O(n).

    References
    ----------
    .. [1] Naeini & Cooper (2016).
    .. [2] Tibshirani, Hoefling & Tibshirani (2011), for the path of λ.

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = EnirSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> m.apply(np.array([[0.75, 0.25], [0.65, 0.35]]))[:, 1].round(2).tolist()
    [0.5, 0.75]
    """

    name, map_type = "enir", EnirMap
    candidate = False
    takes_logs = True

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EnirMap:
        return EnirMap(fit_curves(partial(_fit_curve, scale=score_scale(P)), P, Y, w))

    def notes(self, calibration_map: EnirMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return zero_probability_notes(calibration_map.apply(P))


def _fit_curve(x: Array, y: Array, w: Array, scale: str) -> PiecewiseLinearCurve:
    n, w = effective_rows(w)
    knots, mass, events = SortedScores(x, y, w).sums_by_score()
    path = near_isotonic_path(mass, events)
    levels = average_levels(path, bic_weights(path, np.log(n)))
    is_knot = is_outside_flat_segments(levels)
    return PiecewiseLinearCurve(knots[is_knot], levels[is_knot], scale)


def bic_weights(path: NearIsotonicPath, cost_per_level: float) -> Array:
    """Weights exp(−BIC/2) of the models of the path, divided by their sum, if each level costs `cost_per_level`.

    Most models have a negligible weight, and their likelihoods are not computed. Along the path both the likelihood and
    the number of levels decrease, so the BIC of a model between two others is at least that of a model with the larger
    likelihood of the first and the fewer levels of the last. Where even this bound is too large, the models between
    the two get weight 0; otherwise the interval is bisected.
    """
    last, n_levels = len(path.lambdas) - 1, path.n_blocks
    bic = np.full(last + 1, np.inf)
    first = min(1, last)  # model 0, with λ = 0, repeats the outcomes; it is used only if it is the only one
    log_likelihoods = {model: model_log_likelihood(path, model) for model in (first, last)}
    intervals = [(first, last)]  # of models; the BIC of both ends is known
    bic[[first, last]] = [n_levels[model] * cost_per_level - 2 * log_likelihoods[model] for model in (first, last)]
    while intervals:
        lower, upper = intervals.pop()
        if upper - lower < 2:
            continue
        min_bic_between = n_levels[upper - 1] * cost_per_level - 2 * log_likelihoods[lower]
        if min_bic_between > bic.min() + _MAX_BIC_DIFFERENCE:
            continue
        middle = (lower + upper) // 2
        log_likelihoods[middle] = model_log_likelihood(path, middle)
        bic[middle] = n_levels[middle] * cost_per_level - 2 * log_likelihoods[middle]
        intervals += [(lower, middle), (middle, upper)]  # the second, of simpler models, which are better, is next
    bic_difference = bic - bic.min()
    weights = np.where(
        bic_difference > _MAX_BIC_DIFFERENCE, 0.0, np.exp(-np.minimum(bic_difference, _MAX_BIC_DIFFERENCE) / 2)
    )
    return np.asarray(weights / weights.sum())


def model_log_likelihood(path: NearIsotonicPath, model: int) -> float:
    """Log-likelihood of one model; −∞ if it gives an observed outcome probability 0."""
    blocks, levels = path.levels(model)
    mass, events = path.mass[blocks], path.events[blocks]
    return float(
        xlogy(_zero_rounding_errors(events, mass), levels).sum()
        + xlogy(_zero_rounding_errors(mass - events, mass), 1 - levels).sum()
    )


def _zero_rounding_errors(values: Array, mass: Array) -> Array:
    """The values (m,), parts of the weights `mass` (m,), with 0 instead of the rounding error of a sum."""
    return np.where(values > _SUM_ROUNDING * mass, values, 0.0)
