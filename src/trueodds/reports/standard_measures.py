"""Standard measures of clinical and credit-risk reports: calibration intercept and slope, O:E ratio, ICI and AUC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from trueodds.core.errors import InputError, Note
from trueodds.core.json_files import strict_json
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import exact_zeros, log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.nested_cells import has_vote_shares
from trueodds.kernels import map_rows_in_blocks
from trueodds.lenses.lens import default_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.intervals.normal import normal_interval, t_interval
from trueodds.resampling.noise_floor import noise_floor_draws

ICI_RESAMPLES = 199  # bootstrap resamples of the ICI; the smoother is fitted in each
MAX_ICI_ROWS = 50_000  # with more rows the smoother of the ICI takes longer than the rest of the audit
MAX_NEWTON_ITER = 60
MIN_LOG_PROB = -1e4  # lower limit of log-probabilities, such as that of an exact zero; the fit does not depend on it
LOG_PROB_TOLERANCE = 1e-12  # log-probabilities closer than this are tied


@dataclass(frozen=True)
class Measure:
    """One measure with its interval."""

    name: str
    value: float | None
    interval: Interval | None
    ideal: float | None = None  # value of a calibrated model

    def to_dict(self) -> dict[str, Any]:
        """The measure as a JSON object."""
        interval = None if self.interval is None else self.interval.to_dict()
        return {"name": self.name, "value": strict_json(self.value), "interval": interval, "ideal": self.ideal}

    def distance_in_se(self, point: float) -> float:
        """Difference of the value from a point in standard errors, derived from the interval; 0 if unknown."""
        if self.interval is None or self.value is None:
            return 0.0
        half_width = (self.interval.high - self.interval.low) / 2
        z = float(ndtri((1 + self.interval.level) / 2))
        return (self.value - point) * z / half_width if half_width > 0 else 0.0


def standard_measures(preds: Predictions, level: float, rng: np.random.Generator) -> tuple[Measure, ...]:
    """For two classes calibration intercept and slope, O:E ratio, ICI and AUC; otherwise level and slope."""
    if preds.kind == "multilabel" or preds.w.sum() <= 0:
        return ()
    (view,) = default_lens(preds).views(preds)
    cluster = preds.cluster
    wald = _WaldIntervals(level, None if cluster is None else len(np.unique(cluster)) - 1)
    if preds.kind == "classes" and preds.k > 2:
        return _in_the_large_measure(view, cluster, wald), wald.measure(
            "calibration_slope", *calibration_exponent(preds), 1.0
        )
    try:
        coefficients = Cox().coefficients(view, cluster)
    except InputError:  # a probability of 0 or 1 has no logit
        coefficients = dict.fromkeys(("in_the_large", "slope"), (np.nan, np.nan))
    slope = wald.measure("calibration_slope", *coefficients["slope"], 1.0)
    if preds.kind != "classes":
        return _in_the_large_measure(view, cluster, wald), slope
    intercept = wald.measure("calibration_intercept", *coefficients["in_the_large"], 0.0)
    others = [_observed_to_expected(view, intercept, cluster, wald)]
    if preds.n <= MAX_ICI_ROWS:
        estimands = [Estimand.from_predictions(ESTIMATORS.make("ici", {}), default_lens(preds), preds)]
        interval_spec = IntervalSpec(level=level, resamples=ICI_RESAMPLES)
        (ici,) = estimate_all(
            preds, estimands, interval_spec, rng, lambda every: noise_floor_draws(preds, every, rng, ICI_RESAMPLES)
        )
        others.append(Measure("ici", ici.value, ici.interval, 0.0))
    return intercept, slope, *others, _auc_measure(*auc_with_se(view, cluster), wald)


def standard_notes(preds: Predictions) -> list[Note]:
    """A note if the calibration intercept or slope is undefined."""
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
    text = (
        f"Of {preds.n:,} probabilities {extreme:,} are exactly 0 or 1 and have no log odds, so the calibration"
        " intercept and slope are undefined. The test cox estimates both with limited probabilities, for example with"
        " min_prob=1e-6."
    )
    return [Note("TN268", text)]


def measures_by_name(measures: tuple[Measure, ...]) -> Mapping[str, Measure]:
    """The measures by name."""
    return {measure.name: measure for measure in measures}


@dataclass(frozen=True)
class _WaldIntervals:
    """Wald intervals from standard errors: normal, or Student's t with clusters."""

    level: float
    degrees: int | None  # number of clusters minus one; None if rows are independent

    def interval(self, value: float, se: float) -> Interval | None:
        """The interval; None if the standard error is unknown, or 0 because there are too few rows."""
        if not np.isfinite(se) or se <= 0 or self.degrees == 0:
            return None
        return (
            normal_interval(value, se, self.level)
            if self.degrees is None
            else t_interval(value, se, self.degrees, self.level)
        )

    def measure(self, name: str, value: float, se: float, ideal: float | None) -> Measure:
        """A measure with its interval."""
        if not np.isfinite(value):
            return Measure(name, None, None, ideal)
        return Measure(name, value, self.interval(value, se), ideal)


def _observed_to_expected(view: View, intercept: Measure, cluster: Array | None, wald: _WaldIntervals) -> Measure:
    """Observed over expected number of events (O:E ratio), with an interval from that of the calibration intercept.

    Shifting the log odds by the calibration intercept makes the expected number of events equal to the observed number.
    The limits of its interval are therefore converted to limits of the ratio, and both intervals exclude the ideal
    value in the same cases. Without an intercept, because a probability of 0 or 1 has no log odds, the interval is that
    of the logarithm of the ratio.
    """
    expected = float(view.w @ view.p)
    if expected <= 0:
        return Measure("observed_to_expected", None, None, 1.0)
    value = float(view.w @ view.y) / expected
    if intercept.interval is not None:
        log_odds = np.log(view.p.astype(np.float64)) - np.log(view.q)
        low, high = (
            float(view.w @ expit(log_odds + end)) / expected
            for end in (intercept.interval.low, intercept.interval.high)
        )
        return Measure("observed_to_expected", value, replace(intercept.interval, low=low, high=high), 1.0)
    interval = None
    if value > 0 and intercept.value is None:
        residual = view.w * (view.y - value * view.p) / (expected * value)
        interval = wald.interval(float(np.log(value)), float(np.sqrt(sum_variance(residual, cluster))))
    if interval is not None:
        interval = replace(interval, low=float(np.exp(interval.low)), high=float(np.exp(interval.high)))
    return Measure("observed_to_expected", value, interval, 1.0)


def _in_the_large_measure(view: View, cluster: Array | None, wald: _WaldIntervals) -> Measure:
    """Calibration-in-the-large: mean observed minus mean predicted, with a standard error from the residuals.

    If the standard error under calibration does not exclude a difference of 0, the larger of the two is used, because
    outcomes that are all correct have residuals without variance.
    """
    share = view.w / view.total
    residual = share * (view.y - view.p)
    mean = float(residual.sum())
    se = float(np.sqrt(sum_variance(residual - share * mean, cluster)))
    if cluster is None and not has_vote_shares(view):
        null_se = float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum())) / view.total
        null_interval = wald.interval(mean, null_se)
        if null_interval is not None and null_interval.low <= 0 <= null_interval.high:
            se = float(np.fmax(se, null_se))
    return wald.measure("calibration_in_the_large", mean, se, 0.0)


def sum_variance(terms: Array, cluster: Array | None) -> float:
    """Variance of a sum over independent rows or clusters with mean 0; NaN for fewer than two of them."""
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        terms = np.bincount(unit, terms)
    n_units = len(terms)
    return float((terms**2).sum()) * n_units / (n_units - 1) if n_units > 1 else float("nan")


def contradicted_rows(preds: Predictions) -> Array:
    """Rows of positive weight in which an observed class has predicted probability 0."""
    return np.asarray((exact_zeros(preds) & (preds.Y > 0)).any(axis=1) & (preds.w > 0))


def calibration_exponent(preds: Predictions) -> tuple[float, float]:
    """Maximum-likelihood exponent β = 1/T of the probabilities with its standard error; NaN if it is not finite.

    Below 1 the probabilities are too extreme, above 1 too moderate. Newton's method maximizes the concave
    log-likelihood of p^β / Σ p^β. The standard error is the sandwich estimate, summed within clusters. There is no
    finite maximum if every observed class is the most probable one of its row, or the least probable one, or if one has
    probability 0.
    """
    counted = preds.w > 0
    Y, w, cluster = preds.Y[counted], preds.w[counted], None if preds.cluster is None else preds.cluster[counted]
    if contradicted_rows(preds).any():
        return float("nan"), float("nan")
    log_probs = np.maximum(log_probabilities(preds)[counted], MIN_LOG_PROB)
    largest, smallest = log_probs.max(axis=1, keepdims=True), log_probs.min(axis=1, keepdims=True)
    is_largest, is_smallest = largest - log_probs <= LOG_PROB_TOLERANCE, log_probs - smallest <= LOG_PROB_TOLERANCE
    if is_largest[Y > 0].all() or is_smallest[Y > 0].all():
        return float("nan"), float("nan")

    def evaluate_log_likelihood(beta: float) -> tuple[Array, Array, float]:
        def evaluate_rows(logs: Array, Y: Array) -> tuple[Array, Array, Array]:
            eta = beta * logs
            eta = eta - eta.max(axis=1, keepdims=True)
            q = np.exp(eta)
            total = q.sum(axis=1, keepdims=True)
            q /= total
            mean = (q * logs).sum(axis=1)
            residual = (Y * logs).sum(axis=1) - mean
            curvature = (q * (logs - mean[:, None]) ** 2).sum(axis=1)
            return residual, curvature, (Y * (eta - np.log(total))).sum(axis=1)

        residual, curvature, log_likelihood = map_rows_in_blocks(evaluate_rows, log_probs, Y)
        return residual, curvature, float(w @ log_likelihood)

    beta, (residual, curvature, likelihood) = 1.0, evaluate_log_likelihood(1.0)
    for _ in range(MAX_NEWTON_ITER):
        information = float(w @ curvature)
        if information <= 0:
            return float("nan"), float("nan")
        step = float(w @ residual) / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            there = evaluate_log_likelihood(beta + step)
            if there[2] >= likelihood:
                break
            step /= 2
        else:
            break
        beta, (residual, curvature, likelihood) = beta + step, there
    else:
        return float("nan"), float("nan")
    return beta, float(np.sqrt(sum_variance(w * residual, cluster)) / (w @ curvature))


def auc_with_se(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """The area under the ROC curve and its standard error; NaN if only one class occurs.

    The standard error is that of DeLong, DeLong & Clarke-Pearson (1988), from the share of the other class that each
    row is ranked above. It is NaN with fewer than two rows of either class. Rows count by weight; with votes, each row
    belongs partly to both classes.
    """
    event_weights, nonevent_weights = view.w * view.y, view.w * (1 - view.y)
    event_weight, nonevent_weight = float(event_weights.sum()), float(nonevent_weights.sum())
    if event_weight <= 0 or nonevent_weight <= 0:
        return float("nan"), float("nan")
    _, position = np.unique(view.p, return_inverse=True)
    below, above = (np.bincount(position, x) for x in (nonevent_weights, event_weights))
    # Shares of the other class below an event and above a nonevent, with ties by half.
    share_below = (np.cumsum(below) - below / 2)[position] / nonevent_weight
    share_above = (above.sum() - np.cumsum(above) + above / 2)[position] / event_weight
    area = float(event_weights @ share_below) / event_weight
    influence = [
        _unbiased_weights(event_weights) * (share_below - area) / event_weight,
        _unbiased_weights(nonevent_weights) * (share_above - area) / nonevent_weight,
    ]
    if cluster is None:
        return area, float(np.sqrt((sum(influence) ** 2).sum()))
    return area, float(np.sqrt(sum_variance(sum(influence), cluster)))


def _unbiased_weights(weight: Array) -> Array:
    """The weights, scaled so that a variance has the denominator n − 1 instead of n; NaN for fewer than two rows."""
    number = float(weight.sum() ** 2 / (weight**2).sum())
    return weight * np.sqrt(number / (number - 1)) if number > 1 + 1e-9 else np.full(len(weight), np.nan)


def _auc_measure(area: float, se: float, wald: _WaldIntervals) -> Measure:
    """The area with an interval computed on the logit scale, which stays in [0, 1]."""
    measure = wald.measure("auc", area, float("nan"), None)
    logit_interval = wald.interval(float(logit(area)), se / (area * (1 - area))) if 0 < area < 1 else None
    if logit_interval is None:
        return measure
    low, high = float(expit(logit_interval.low)), float(expit(logit_interval.high))
    return replace(measure, interval=replace(logit_interval, low=low, high=high))
