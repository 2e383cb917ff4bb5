"""Standard measures of clinical and credit-risk reports: calibration intercept and slope, O:E ratio, ICI and AUC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests._glm.calibration_regression import Coefficient
from trueodds.hypotests.cox import Cox
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View
from trueodds.reports.audit_results import StandardMeasure
from trueodds.reports.calibration_exponent import calibration_exponent, contradicted_rows
from trueodds.reports.calibration_in_the_large import calibration_in_the_large_measure
from trueodds.reports.wald_intervals import WaldIntervals, variance_of_sum
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.estimate_error import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws

ICI_RESAMPLES = 199  # bootstrap resamples of the ICI; the smoother is fitted in each
CLIPPING_LIMITS = (1e-6, 1e-3)  # two settings min_prob of Cox's test, to show how much the slope depends on clipping
MAX_ICI_ROWS = 50_000  # with more rows the smoother of the ICI takes longer than the rest of the audit


def standard_measures(
    preds: Predictions,
    level: float,
    rng: np.random.Generator,
    ratio_rng: np.random.Generator | None = None,
    mean_gap: Interval | None = None,
) -> tuple[StandardMeasure, ...]:
    """Estimate the standard measures of clinical and credit-risk reports, with intervals of this level.

    For two classes they are calibration intercept and slope, O:E ratio, ICI (up to 50,000 rows) and AUC, for several
    classes and for confidences calibration-in-the-large and calibration slope. There are none for independent labels.

    The intervals of the O:E ratio and the ICI are computed as by `measure`. The O:E ratio uses `ratio_rng`, by default
    `rng`: with a generator in the initial state of an audit its interval is equal to that of `measure` with the same
    seed. `mean_gap` is the interval of calibration-in-the-large from `measure`; if it is None, because all predicted
    classes are correct, for example, the Wald interval is used. The ICI has fewer resamples than in `measure`.
    """
    if preds.kind == "multilabel" or preds.w.sum() <= 0:
        return ()
    (view,) = default_lens(preds).views(preds)
    cluster = preds.cluster

    def in_the_large() -> StandardMeasure:
        """Return calibration-in-the-large."""
        measure = calibration_in_the_large_measure(view, cluster, wald)
        return measure if mean_gap is None else replace(measure, interval=mean_gap)

    wald = WaldIntervals(level, None if cluster is None else len(np.unique(cluster)) - 1)
    if preds.kind == "classes" and preds.k > 2:
        slope = wald.measure("calibration_slope", *calibration_exponent(preds), 1.0)
        return in_the_large(), slope
    try:
        coefficients = Cox().coefficients(view, cluster)
    except InputError:  # a probability of 0 or 1 has no logit
        coefficients = dict.fromkeys(("in_the_large", "slope"), Coefficient(np.nan, np.nan))
    slope = _coefficient_measure("calibration_slope", coefficients["slope"], 1.0, level)
    if preds.kind != "classes":
        return in_the_large(), slope
    intercept = _coefficient_measure("calibration_intercept", coefficients["in_the_large"], 0.0, level)
    ratio_and_ici = [_observed_to_expected(preds, level, rng if ratio_rng is None else ratio_rng)]
    if preds.n <= MAX_ICI_ROWS:
        estimands = [Estimand.from_predictions(ESTIMATORS.make("ici", {}), default_lens(preds), preds)]
        interval_spec = IntervalSpec(level=level, resamples=ICI_RESAMPLES)
        (ici,) = estimate_all(
            preds, estimands, interval_spec, rng, lambda drawn: noise_floor_draws(preds, drawn, rng, ICI_RESAMPLES)
        )
        ratio_and_ici.append(StandardMeasure("ici", ici.value, ici.interval, 0.0))
    return intercept, slope, *ratio_and_ici, _auc_measure(*auc_with_se(view, cluster), wald)


def standard_notes(preds: Predictions) -> list[Note]:
    """Return a note if the calibration intercept or slope is undefined."""
    if preds.kind == "multilabel":
        return []
    if preds.kind == "classes" and preds.k > 2:
        zeros = int(contradicted_rows(preds).sum())
        if not zeros:
            return []
        text = (
            f"In {zeros:,} of {preds.n:,} rows the observed class has predicted probability 0, so the calibration slope"
            " is undefined."
        )
        return [Note("TN268", text)]
    (view,) = default_lens(preds).views(preds)
    extreme = int(((view.p <= 0) | (view.q <= 0)).sum())
    if not extreme:
        return []
    (low, low_values), (high, high_values) = (
        (min_prob, _describe_clipped(view, min_prob)) for min_prob in CLIPPING_LIMITS
    )
    text = (
        f"{extreme:,} of {preds.n:,} probabilities {'is' if extreme == 1 else 'are'} exactly 0 or 1 and"
        f" {'has' if extreme == 1 else 'have'} no finite log odds, so the calibration intercept and slope are"
        f" undefined. Clipped at {low:g}, they are {low_values}; clipped at {high:g}, {high_values}. The test cox with"
        " min_prob estimates them with intervals."
    )
    return [Note("TN268", text)]


def _describe_clipped(view: View, min_prob: float) -> str:
    """Return calibration intercept and slope as text, with probabilities clipped to [min_prob, 1 − min_prob]."""
    coefficients = Cox(min_prob=min_prob).coefficients(view)
    values = (coefficients[name].value for name in ("in_the_large", "slope"))
    return " and ".join(f"{value:.2f}".replace("-", "−").replace("nan", "undefined") for value in values)


def _coefficient_measure(name: str, coefficient: Coefficient, ideal: float, level: float) -> StandardMeasure:
    """Return a coefficient of Cox's regression as a measure, with the interval that the test `cox` prints."""
    units = coefficient.effective_units
    wald = WaldIntervals(level, None if units is None else units - 1)
    return wald.measure(name, coefficient.value, coefficient.se, ideal)


def _observed_to_expected(preds: Predictions, level: float, rng: np.random.Generator) -> StandardMeasure:
    """Return the observed over expected number of events (O:E ratio) as `measure` estimates it with this generator."""
    estimator, lens = ESTIMATORS.make("o_e", {}), default_lens(preds)
    ratio = estimate_error(preds, estimator, lens, "mean", IntervalSpec(level=level), rng)
    value = ratio.value if np.isfinite(ratio.value) else None
    return StandardMeasure("observed_to_expected", value, ratio.interval, 1.0)


def _auc_measure(auc: float, se: float, wald: WaldIntervals) -> StandardMeasure:
    """Return the AUC with an interval computed on the logit scale, which stays in [0, 1]."""
    measure = wald.measure("auc", auc, float("nan"), None)
    logit_interval = wald.interval(float(logit(auc)), se / (auc * (1 - auc))) if 0 < auc < 1 else None
    if logit_interval is None:
        return measure
    low, high = float(expit(logit_interval.low)), float(expit(logit_interval.high))
    return replace(measure, interval=replace(logit_interval, low=low, high=high))


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
    _, rank_of_row = np.unique(view.rank_scores, return_inverse=True)
    nonevents_at_rank, events_at_rank = (np.bincount(rank_of_row, x) for x in (nonevent_weights, event_weights))
    # For each row, the share of nonevents below it and the share of events above it, with ties counted by half.
    share_below = (np.cumsum(nonevents_at_rank) - nonevents_at_rank / 2)[rank_of_row] / nonevent_weight
    share_above = (events_at_rank.sum() - np.cumsum(events_at_rank) + events_at_rank / 2)[rank_of_row] / event_weight
    auc = float(event_weights @ share_below) / event_weight
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
