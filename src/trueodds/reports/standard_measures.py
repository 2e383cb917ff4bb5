"""Standard measures of clinical and credit-risk reports: calibration-in-the-large, slope, O:E ratio, ICI and AUC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from trueodds.core.arithmetic import variance_of_sum, weighted_sum
from trueodds.core.errors import Note
from trueodds.core.json_files import strict_json
from trueodds.core.results import Coefficient, Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators._glm.calibration_exponent import contradicted_rows
from trueodds.estimators.calibration_coefficients import (
    CLIPPING_LIMITS,
    certain_probabilities_text,
    contradiction_note,
    describe_clipped,
)
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View, has_vote_shares, rank_scores
from trueodds.reports.audit_sections import StandardMeasure
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws

RESAMPLED_MEASURES = {"o_e": "observed_to_expected", "ici": "ici"}  # by the estimator, see `resampled_estimands`
MAX_ICI_ROWS = 50_000  # with more rows the smoother of the ICI takes longer than the rest of the audit


def standard_measures(
    preds: Predictions,
    level: float,
    rng: np.random.Generator,
    resampled: Sequence[Estimate] | None = None,
    mean_gap: Estimate | None = None,
) -> tuple[StandardMeasure, ...]:
    """Estimate the standard measures of clinical and credit-risk reports, with intervals of this level.

    For two classes they are calibration intercept and slope, O:E ratio, ICI (up to 50,000 rows) and AUC, for several
    classes and for confidences calibration-in-the-large and calibration slope. There are none for independent labels.

    `resampled` has the estimates of the `resampled_estimands`, which are computed here if it is None, with `rng` as by
    `measure` with the same seed. `mean_gap` is calibration-in-the-large from `measure`; if it has no interval,
    because all predicted classes are correct, for example, the Wald interval is used.
    """
    if preds.kind == "multilabel" or preds.w.sum() <= 0:
        return ()
    (view,) = default_lens(preds).views(preds)
    cluster = preds.cluster

    def in_the_large() -> StandardMeasure:
        if mean_gap is None or mean_gap.interval is None:
            return calibration_in_the_large_measure(view, cluster, wald)
        return standard_measure("calibration_in_the_large", mean_gap.value, mean_gap.interval, 0.0)

    wald = WaldIntervals(level, None if cluster is None else len(np.unique(cluster)) - 1)
    if preds.kind == "classes" and preds.k > 2:
        lens = Canonical()
        return in_the_large(), _coefficient_measure("calibration_slope", preds, lens, lens.views(preds), level, rng)
    coefficient_data = (preds, default_lens(preds), (view,), level, rng)
    slope = _coefficient_measure("calibration_slope", *coefficient_data)
    if preds.kind != "classes":
        return in_the_large(), slope
    intercept = _coefficient_measure("calibration_intercept", *coefficient_data)
    if resampled is None:
        estimands = resampled_estimands(preds)
        resampled = estimate_all(
            preds, estimands, IntervalSpec(level=level), rng, lambda drawn: noise_floor_draws(preds, drawn, rng)
        )
    ratio_and_ici = [
        standard_measure(
            RESAMPLED_MEASURES[estimate.estimator],
            estimate.value,
            estimate.interval,
            ESTIMATORS.load(estimate.estimator).best_value,
        )
        for estimate in resampled
    ]
    return intercept, slope, *ratio_and_ici, _auc_measure(*auc_with_se(view, cluster), wald)


def resampled_estimands(preds: Predictions) -> list[Estimand]:
    """Return the standard measures of two classes whose intervals need resamples: O:E ratio, ICI up to 50,000 rows."""
    if preds.kind != "classes" or preds.k > 2:
        return []
    lens = default_lens(preds)
    views = tuple(lens.views(preds))
    names = [name for name in RESAMPLED_MEASURES if name != "ici" or preds.n <= MAX_ICI_ROWS]
    return [Estimand(ESTIMATORS.make(name, {}), lens, views) for name in names]


def standard_notes(preds: Predictions) -> list[Note]:
    """Return a note if the calibration intercept or slope is undefined."""
    if preds.kind == "multilabel":
        return []
    if preds.kind == "classes" and preds.k > 2:
        (view,) = Canonical().views(preds)
        n_contradicted = int(contradicted_rows(view).sum())
        return [contradiction_note(n_contradicted, preds.n)] if n_contradicted else []
    (view,) = default_lens(preds).views(preds)
    extreme = int(((view.p <= 0) | (view.q <= 0)).sum())
    if not extreme:
        return []
    low_values, high_values = describe_clipped(view, ("in_the_large", "slope"))
    low, high = CLIPPING_LIMITS
    text = (
        certain_probabilities_text(extreme, preds.n, "calibration intercept and slope are")
        + f" Clipped at {low:g}, they are {low_values}; clipped at {high:g}, {high_values}. The test cox with"
        " ⟨min_prob⟩ estimates them with intervals."
    )
    return [Note("TN268", text)]


def _coefficient_measure(
    name: str, preds: Predictions, lens: Lens, views: tuple[View, ...], level: float, rng: np.random.Generator
) -> StandardMeasure:
    """Return calibration slope or intercept of these views as `measure` estimates it, and as the test `cox` prints it.

    The interval is in closed form, so that `rng` is not used.
    """
    estimand = Estimand(ESTIMATORS.make(name, {}), lens, views)
    (coefficient,) = estimate_all(preds, [estimand], IntervalSpec(level=level), rng, lambda _: [None])
    return standard_measure(name, coefficient.value, coefficient.interval, estimand.estimator.best_value)


def _auc_measure(auc: float, se: float, wald: WaldIntervals) -> StandardMeasure:
    """Return the AUC with an interval computed on the logit scale, which stays in [0, 1]."""
    interval = wald.interval(float(logit(auc)), se / (auc * (1 - auc))) if 0 < auc < 1 else None
    if interval is not None:
        interval = replace(interval, low=float(expit(interval.low)), high=float(expit(interval.high)))
    return standard_measure("auc", auc, interval, None)


def auc_with_se(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """Return the area under the ROC curve of a view with two classes, and its standard error.

    The area is the probability that an event has a larger predicted probability than a nonevent, ties counted by half.
    It is NaN if only one class occurs. The standard error [1]_ is computed from the share of nonevents that each event
    is ranked above, and the share of events that each nonevent is ranked below; with clusters (n,), these terms are
    summed in each cluster. It is NaN with fewer than two rows of either class. Rows count by weight; with votes, each
    row belongs partly to both classes.

    References
    ----------
    .. [1] DeLong, DeLong & Clarke-Pearson (1988).
    """
    event_weights, nonevent_weights = view.w * view.y, view.w * (1 - view.y)
    event_weight, nonevent_weight = float(event_weights.sum()), float(nonevent_weights.sum())
    if event_weight <= 0 or nonevent_weight <= 0:
        return float("nan"), float("nan")
    _, rank_of_row = np.unique(rank_scores(view), return_inverse=True)
    nonevents_at_rank, events_at_rank = (np.bincount(rank_of_row, x) for x in (nonevent_weights, event_weights))
    # For each row, the share of nonevents below it and the share of events above it, with ties counted by half.
    share_below = (np.cumsum(nonevents_at_rank) - nonevents_at_rank / 2)[rank_of_row] / nonevent_weight
    share_above = (events_at_rank.sum() - np.cumsum(events_at_rank) + events_at_rank / 2)[rank_of_row] / event_weight
    auc = float(weighted_sum(event_weights, share_below)) / event_weight
    influence = [
        _correct_for_estimated_mean(event_weights) * (share_below - auc) / event_weight,
        _correct_for_estimated_mean(nonevent_weights) * (share_above - auc) / nonevent_weight,
    ]
    if cluster is None:
        return auc, float(np.sqrt((sum(influence) ** 2).sum()))
    return auc, float(np.sqrt(variance_of_sum(sum(influence), cluster)))


def _correct_for_estimated_mean(weight: Array) -> Array:
    """Scale weights (n,) so that a variance has the denominator n − 1 instead of n; NaN for fewer than two rows."""
    effective_n = float(weight.sum() ** 2 / (weight**2).sum())
    return weight * np.sqrt(effective_n / (effective_n - 1)) if effective_n > 1 + 1e-9 else np.full(len(weight), np.nan)


def calibration_in_the_large_of_rows(preds: Predictions) -> tuple[float | None, float | None]:
    """Return calibration-in-the-large through the default lens, and its z-score; with clusters, that of cluster sums.

    For two classes it is that of the second class, otherwise that of the predicted class. Both are None for independent
    labels.
    """
    if preds.kind == "multilabel":
        return None, None
    (view,) = default_lens(preds).views(preds)
    if preds.cluster is None:
        return calibration_in_the_large(view)
    weighted_residual = view.w * (view.y - view.p.astype(np.float64))
    mean = float(weighted_residual.sum() / view.total)
    se = float(np.sqrt((np.bincount(preds.cluster, weighted_residual) ** 2).sum())) / view.total
    return mean, _z_score(mean, se)


def calibration_in_the_large(view: View) -> tuple[float, float | None]:
    """Return calibration-in-the-large of a view, and its z-score for independent rows.

    The z-score is in standard errors of a calibrated model. With votes, they are computed from the residuals.
    """
    mean = float((view.w * (view.y - view.p.astype(np.float64))).sum() / view.total)
    # Σ w²r² of the residuals r with votes, and else Σ w²p(1 − p), the variance of the outcomes of a calibrated model.
    squares = view.sums("wwr") if has_vote_shares(view) else np.maximum(view.sums("wwv"), 0.0)
    return mean, _z_score(mean, float(np.sqrt(squares.sum())) / view.total)


def _z_score(mean: float, se: float) -> float | None:
    """Return the mean in standard errors; infinite if only the standard error is 0, None if both are."""
    if se > 0:
        return mean / se
    return math.copysign(math.inf, mean) if abs(mean) > 1e-12 else None


def calibration_in_the_large_measure(view: View, cluster: Array | None, wald: WaldIntervals) -> StandardMeasure:
    """Return calibration-in-the-large with the Wald interval from the residuals, which may be correlated in clusters.

    If the interval from the standard error of a calibrated model includes 0, the larger of the two standard errors is
    used, because residuals have hardly any variance if, for instance, all predicted classes are correct.
    """
    weight_share = view.w / view.total
    weighted_residual = weight_share * (view.y - view.p)
    mean = float(weighted_residual.sum())
    se = float(np.sqrt(variance_of_sum(weighted_residual - weight_share * mean, cluster)))
    if cluster is None and not has_vote_shares(view):
        null_se = float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum())) / view.total
        null_interval = wald.interval(mean, null_se)
        if null_interval is not None and null_interval.low <= 0 <= null_interval.high:
            se = float(np.fmax(se, null_se))
    return wald.measure("calibration_in_the_large", mean, se, 0.0)


@dataclass(frozen=True)
class WaldIntervals:
    """Wald intervals from standard errors: normal, or Student's t with clusters."""

    level: float  # confidence level
    degrees_of_freedom: float | None  # (effective) number of clusters minus one; None if rows are independent

    def interval(self, value: float, se: float) -> Interval | None:
        """Return the interval; None if the standard error is unknown, or 0 because there are too few rows."""
        units = None if self.degrees_of_freedom is None else self.degrees_of_freedom + 1
        return Coefficient(value, se, units).interval_at(self.level)

    def measure(self, name: str, value: float, se: float, ideal: float | None) -> StandardMeasure:
        """Return a measure with its interval; `se` is its standard error, and the value is None if it is not finite."""
        interval = self.interval(value, se) if np.isfinite(value) else None
        return standard_measure(name, value, interval, ideal)


def standard_measure(name: str, value: float, interval: Interval | None, ideal: float | None) -> StandardMeasure:
    """Return a measure with an interval; the value is None if it is not finite."""
    entry = {"name": name, "value": strict_json(float(value)), "ideal": ideal}
    return StandardMeasure.from_dict({**entry, "interval": None if interval is None else interval.to_dict()})
