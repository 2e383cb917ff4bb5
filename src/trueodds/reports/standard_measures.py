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
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.intervals.normal import normal_interval, t_interval
from trueodds.resampling.noise_floor import noise_floor_draws

RESAMPLES = 199  # bootstrap resamples of the ICI; the smoother is fitted in each
MAX_ROWS = 50_000  # with more rows the smoother of the ICI takes longer than the rest of the audit
MAX_ITER = 60
MIN_LOG_PROB = -1e4  # lower limit of log-probabilities, such as that of an exact zero; the fit does not depend on it
TIED = 1e-12  # log-probabilities closer than this are tied


@dataclass(frozen=True)
class Measure:
    """One measure with its interval."""

    name: str
    value: float | None
    interval: Interval | None
    ideal: float | None = None  # value of a calibrated model

    def to_dict(self) -> dict[str, Any]:
        """The measure as a JSON object."""
        ends = None if self.interval is None else self.interval.to_dict()
        return {"name": self.name, "value": strict_json(self.value), "interval": ends, "ideal": self.ideal}

    def distance(self, point: float) -> float:
        """Difference of the value from a point in standard errors, derived from the interval; 0 if unknown."""
        if self.interval is None or self.value is None:
            return 0.0
        half = (self.interval.high - self.interval.low) / 2
        z = float(ndtri((1 + self.interval.level) / 2))
        return (self.value - point) * z / half if half > 0 else 0.0


def standard_measures(preds: Predictions, level: float, rng: np.random.Generator) -> tuple[Measure, ...]:
    """For two classes calibration intercept and slope, O:E ratio, ICI and AUC; otherwise level and slope."""
    if preds.kind == "multilabel" or preds.w.sum() <= 0:
        return ()
    (view,) = default_lens(preds).views(preds)
    cluster = preds.cluster
    of = _WaldIntervals(level, None if cluster is None else len(np.unique(cluster)) - 1)
    if preds.kind == "classes" and preds.k > 2:
        return _in_the_large(view, cluster, of), of.measure("calibration_slope", *exponent(preds), 1.0)
    try:
        coefficients = Cox().coefficients(view, cluster)
    except InputError:  # a probability of 0 or 1 has no logit
        coefficients = dict.fromkeys(("in_the_large", "slope"), (np.nan, np.nan))
    slope = of.measure("calibration_slope", *coefficients["slope"], 1.0)
    if preds.kind != "classes":
        return _in_the_large(view, cluster, of), slope
    large = of.measure("calibration_intercept", *coefficients["in_the_large"], 0.0)
    others = [_o_e(view, large, cluster, of)]
    if preds.n <= MAX_ROWS:
        estimands = [Estimand.from_predictions(ESTIMATORS.make("ici", {}), default_lens(preds), preds)]
        interval_spec = IntervalSpec(level=level, resamples=RESAMPLES)
        (ici,) = estimate_all(
            preds, estimands, interval_spec, rng, lambda every: noise_floor_draws(preds, every, rng, RESAMPLES)
        )
        others.append(Measure("ici", ici.value, ici.interval, 0.0))
    return large, slope, *others, _area(*auc(view, cluster), of)


def standard_notes(preds: Predictions) -> list[Note]:
    """A note if the calibration intercept or slope is undefined."""
    if preds.kind == "multilabel":
        return []
    if preds.kind == "classes" and preds.k > 2:
        zeros = int(_contradicted_rows(preds).sum())
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

    def interval(self, value: float, error: float) -> Interval | None:
        """The interval; None if the standard error is unknown, or 0 because there are too few rows."""
        if not np.isfinite(error) or error <= 0 or self.degrees == 0:
            return None
        return (
            normal_interval(value, error, self.level)
            if self.degrees is None
            else t_interval(value, error, self.degrees, self.level)
        )

    def measure(self, name: str, value: float, error: float, ideal: float | None) -> Measure:
        """A measure with its interval."""
        if not np.isfinite(value):
            return Measure(name, None, None, ideal)
        return Measure(name, value, self.interval(value, error), ideal)


def _o_e(view: View, large: Measure, cluster: Array | None, of: _WaldIntervals) -> Measure:
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
    if large.interval is not None:
        odds = np.log(view.p.astype(np.float64)) - np.log(view.q)
        low, high = (float(view.w @ expit(odds + end)) / expected for end in (large.interval.low, large.interval.high))
        return Measure("observed_to_expected", value, replace(large.interval, low=low, high=high), 1.0)
    ends = None
    if value > 0 and large.value is None:
        residual = view.w * (view.y - value * view.p) / (expected * value)
        ends = of.interval(float(np.log(value)), float(np.sqrt(_variance(residual, cluster))))
    if ends is not None:
        ends = replace(ends, low=float(np.exp(ends.low)), high=float(np.exp(ends.high)))
    return Measure("observed_to_expected", value, ends, 1.0)


def _in_the_large(view: View, cluster: Array | None, of: _WaldIntervals) -> Measure:
    """Calibration-in-the-large: mean observed minus mean predicted, with a standard error from the residuals.

    If the standard error under calibration does not exclude a difference of 0, the larger of the two is used, because
    outcomes that are all correct have residuals without variance.
    """
    share = view.w / view.total
    residual = share * (view.y - view.p)
    mean = float(residual.sum())
    error = float(np.sqrt(_variance(residual - share * mean, cluster)))
    if cluster is None and not has_vote_shares(view):
        null = float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum())) / view.total
        within = of.interval(mean, null)
        error = float(np.fmax(error, null)) if within is not None and within.low <= 0 <= within.high else error
    return of.measure("calibration_in_the_large", mean, error, 0.0)


def _variance(parts: Array, cluster: Array | None) -> float:
    """Variance of a sum over independent rows or clusters with mean 0; NaN for fewer than two of them."""
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        parts = np.bincount(unit, parts)
    number = len(parts)
    return float((parts**2).sum()) * number / (number - 1) if number > 1 else float("nan")


def _contradicted_rows(preds: Predictions) -> Array:
    """Rows of positive weight in which an observed class has predicted probability 0."""
    return np.asarray((exact_zeros(preds) & (preds.Y > 0)).any(axis=1) & (preds.w > 0))


def exponent(preds: Predictions) -> tuple[float, float]:
    """Maximum-likelihood exponent β = 1/T of the probabilities with its standard error; NaN if it is not finite.

    Below 1 the probabilities are too extreme, above 1 too moderate. Newton's method maximizes the concave
    log-likelihood of p^β / Σ p^β. The standard error is the sandwich estimate, summed within clusters. There is no
    finite maximum if every observed class is the most probable one of its row, or the least probable one, or if one has
    probability 0.
    """
    live = preds.w > 0
    Y, w, cluster = preds.Y[live], preds.w[live], None if preds.cluster is None else preds.cluster[live]
    if _contradicted_rows(preds).any():
        return float("nan"), float("nan")
    logs = np.maximum(log_probabilities(preds)[live], MIN_LOG_PROB)
    largest, worst = logs.max(axis=1, keepdims=True), logs.min(axis=1, keepdims=True)
    if (largest - logs <= TIED)[Y > 0].all() or (logs - worst <= TIED)[Y > 0].all():
        return float("nan"), float("nan")

    def at(beta: float) -> tuple[Array, Array, float]:
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

        residual, curvature, log_likelihood = map_rows_in_blocks(evaluate_rows, logs, Y)
        return residual, curvature, float(w @ log_likelihood)

    beta, (residual, curvature, likelihood) = 1.0, at(1.0)
    for _ in range(MAX_ITER):
        information = float(w @ curvature)
        if information <= 0:
            return float("nan"), float("nan")
        step = float(w @ residual) / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            there = at(beta + step)
            if there[2] >= likelihood:
                break
            step /= 2
        else:
            break
        beta, (residual, curvature, likelihood) = beta + step, there
    else:
        return float("nan"), float("nan")
    return beta, float(np.sqrt(_variance(w * residual, cluster)) / (w @ curvature))


def auc(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """The area under the ROC curve and its standard error; NaN if only one class occurs.

    The standard error is that of DeLong, DeLong & Clarke-Pearson (1988), from the share of the other class that each
    row is ranked above. It is NaN with fewer than two rows of either class. Rows count by weight; with votes, each row
    belongs partly to both classes.
    """
    events, others = view.w * view.y, view.w * (1 - view.y)
    ones, zeros = float(events.sum()), float(others.sum())
    if ones <= 0 or zeros <= 0:
        return float("nan"), float("nan")
    _, place = np.unique(view.p, return_inverse=True)
    below, above = (np.bincount(place, x) for x in (others, events))
    beaten = (np.cumsum(below) - below / 2)[place] / zeros  # share of the other class below, ties by half
    lost = (above.sum() - np.cumsum(above) + above / 2)[place] / ones
    area = float(events @ beaten) / ones
    influence = [_sample_weights(events) * (beaten - area) / ones, _sample_weights(others) * (lost - area) / zeros]
    if cluster is None:
        return area, float(np.sqrt((sum(influence) ** 2).sum()))
    return area, float(np.sqrt(_variance(sum(influence), cluster)))


def _sample_weights(weight: Array) -> Array:
    """The weights, scaled so that a variance has the denominator n − 1 instead of n; NaN for fewer than two rows."""
    number = float(weight.sum() ** 2 / (weight**2).sum())
    return weight * np.sqrt(number / (number - 1)) if number > 1 + 1e-9 else np.full(len(weight), np.nan)


def _area(area: float, error: float, of: _WaldIntervals) -> Measure:
    """The area with an interval computed on the logit scale, which stays in [0, 1]."""
    ends = of.interval(float(logit(area)), error / (area * (1 - area))) if 0 < area < 1 else None
    measure = of.measure("auc", area, float("nan"), None)
    return (
        measure
        if ends is None
        else replace(measure, interval=replace(ends, low=float(expit(ends.low)), high=float(expit(ends.high))))
    )
