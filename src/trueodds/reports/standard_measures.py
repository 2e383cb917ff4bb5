"""Standard measures of clinical and credit-risk reports: calibration-in-the-large, slope, O:E ratio, ICI and AUC."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import with_minus_signs
from trueodds.core.json_files import strict_json
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.data.log_probabilities import exact_zeros, log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests._glm.calibration_regression import Coefficient
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.null_draws import has_vote_shares
from trueodds.kernels import map_blocks
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View, rank_scores
from trueodds.reports.audit_result import AuditInterval, StandardMeasure
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all, estimate_error
from trueodds.resampling.intervals.closed_form import normal_interval, t_interval
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws

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
        measure = calibration_in_the_large_measure(view, cluster, wald)
        return measure if mean_gap is None else replace(measure, interval=AuditInterval(**mean_gap.to_dict()))

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
        ratio_and_ici.append(standard_measure("ici", ici.value, ici.interval, 0.0))
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
        " ⟨min_prob⟩ estimates them with intervals."
    )
    return [Note("TN268", text)]


def _describe_clipped(view: View, min_prob: float) -> str:
    """Return calibration intercept and slope as text, with probabilities clipped to [min_prob, 1 − min_prob]."""
    coefficients = Cox(min_prob=min_prob).coefficients(view)
    values = (coefficients[name].value for name in ("in_the_large", "slope"))
    return " and ".join(with_minus_signs(f"{value:.2f}").replace("nan", "undefined") for value in values)


def _coefficient_measure(name: str, coefficient: Coefficient, ideal: float, level: float) -> StandardMeasure:
    """Return a coefficient of Cox's regression as a measure, with the interval that the test `cox` prints."""
    units = coefficient.effective_units
    wald = WaldIntervals(level, None if units is None else units - 1)
    return wald.measure(name, coefficient.value, coefficient.se, ideal)


def _observed_to_expected(preds: Predictions, level: float, rng: np.random.Generator) -> StandardMeasure:
    """Return the observed over expected number of events (O:E ratio) as `measure` estimates it with this generator."""
    estimator, lens = ESTIMATORS.make("o_e", {}), default_lens(preds)
    ratio = estimate_error(preds, estimator, lens, "mean", IntervalSpec(level=level), rng)
    return standard_measure("observed_to_expected", ratio.value, ratio.interval, 1.0)


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


MAX_NEWTON_ITER = 60  # maximum number of Newton steps; a concave function of one variable needs about ten
MIN_LOG_PROB = -1e4  # lower limit of log-probabilities, such as that of an exact zero; the fit does not depend on it
LOG_PROB_TOLERANCE = 1e-12  # log-probabilities closer than this are tied


def calibration_exponent(preds: Predictions) -> tuple[float, float]:
    """Return the maximum-likelihood exponent β = 1/T with its standard error; NaN if it is not finite.

    Below 1 the probabilities are too extreme, above 1 too moderate. Newton's method maximizes the concave
    log-likelihood of probabilities proportional to p^β. The standard error is the sandwich estimate, with residuals
    summed within clusters. There is no finite maximum if every observed class is the most probable one of its row, or
    every one the least probable, or if an observed class has probability 0.
    """
    if contradicted_rows(preds).any():
        return float("nan"), float("nan")
    rows = np.flatnonzero(preds.w > 0)
    Y, w = preds.Y if len(rows) == preds.n else preds.Y[rows], preds.w[rows]
    cluster = None if preds.cluster is None else preds.cluster[rows]
    log_probs, observed = np.empty((preds.k, len(rows))), np.empty(len(rows))

    def fill_rows(start: int, stop: int) -> None:
        block = np.maximum(log_probabilities(preds, rows[start:stop]).T, MIN_LOG_PROB, order="C")
        log_probs[:, start:stop] = block
        observed[start:stop] = np.einsum("kn,nk->n", block, Y[start:stop])

    map_blocks(fill_rows, len(rows), max(1, VALUES_PER_ROW_BLOCK // preds.k))
    if not _has_finite_maximum(log_probs, Y):
        return float("nan"), float("nan")
    beta, residual, curvature = _maximize_likelihood(log_probs, observed, w)
    return beta, float(np.sqrt(variance_of_sum(w * residual, cluster)) / float(weighted_sum(w, curvature)))


def _has_finite_maximum(log_probs: Array, Y: Array) -> bool:
    """Whether some observed class of `Y` (n, K) is not the most probable one of its row, and some not the least one.

    `log_probs` is (K, n).
    """
    largest, smallest = log_probs.max(axis=0), log_probs.min(axis=0)
    is_all_largest = is_all_smallest = True
    for log_p, y in zip(log_probs, Y.T, strict=True):
        is_observed = y > 0
        is_all_largest &= not (is_observed & (largest - log_p > LOG_PROB_TOLERANCE)).any()
        is_all_smallest &= not (is_observed & (log_p - smallest > LOG_PROB_TOLERANCE)).any()
    return not (is_all_largest or is_all_smallest)


def _maximize_likelihood(log_probs: Array, observed: Array, w: Array) -> tuple[float, Array, Array]:
    """Maximize the log-likelihood by Newton's method, halving each step until the likelihood does not decrease.

    `log_probs` is (K, n), `observed` and `w` are (n,). Returns the exponent, and the first and negative second
    derivatives (n,) of the rows there; NaN if it does not converge.
    """
    beta = 1.0
    residual, curvature, log_likelihood = _evaluate_likelihood(beta, log_probs, observed, w)
    for _ in range(MAX_NEWTON_ITER):
        information = float(weighted_sum(w, curvature))
        if information <= 0:
            break
        step = float(weighted_sum(w, residual)) / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            trial_residual, trial_curvature, trial_log_likelihood = _evaluate_likelihood(
                beta + step, log_probs, observed, w
            )
            if trial_log_likelihood >= log_likelihood:
                break
            step /= 2
        else:  # the step has become too small to change β
            return beta, residual, curvature
        beta += step
        residual, curvature, log_likelihood = trial_residual, trial_curvature, trial_log_likelihood
    return float("nan"), np.full(len(w), np.nan), np.full(len(w), np.nan)


def _evaluate_likelihood(beta: float, log_probs: Array, observed: Array, w: Array) -> tuple[Array, Array, float]:
    """Return the derivatives of the log-likelihood at β.

    `log_probs` (K, n) are the log-probabilities, one class after the other, so that sums over classes are vectorized.
    `observed` (n,) is that of the observed class. The derivatives are the first ones (n,) of the rows, their negative
    second ones (n,), and the log-likelihood of all rows.
    """
    n_classes, n = log_probs.shape
    residual, curvature, log_likelihoods = np.empty(n), np.empty(n), np.empty(n)

    def evaluate_rows(start: int, stop: int) -> None:
        """Store both derivatives and the log-likelihood of each row of a block, with q ∝ p^β."""
        log_p, rows = log_probs[:, start:stop], slice(start, stop)
        eta = beta * log_p
        largest = eta.max(axis=0)
        q = np.exp(np.subtract(eta, largest, out=eta), out=eta)
        total = q.sum(axis=0)
        q /= total
        mean = (q * log_p).sum(axis=0)
        residual[rows] = observed[rows] - mean
        curvature[rows] = (q * (log_p - mean) ** 2).sum(axis=0)
        log_likelihoods[rows] = beta * observed[rows] - (largest + np.log(total))

    map_blocks(evaluate_rows, n, max(1, VALUES_PER_ROW_BLOCK // n_classes))
    return residual, curvature, float(weighted_sum(w, log_likelihoods))


def contradicted_rows(preds: Predictions) -> Array:
    """Return a mask (n,) of the rows of positive weight in which an observed class has predicted probability 0."""
    zeros = exact_zeros(preds)
    if not zeros.any():
        return np.zeros(preds.n, dtype=bool)
    return np.asarray((zeros & (preds.Y > 0)).any(axis=1) & (preds.w > 0))


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
        if not np.isfinite(se) or se <= 0 or self.degrees_of_freedom == 0:
            return None
        return (
            normal_interval(value, se, self.level)
            if self.degrees_of_freedom is None
            else t_interval(value, se, self.degrees_of_freedom, self.level)
        )

    def measure(self, name: str, value: float, se: float, ideal: float | None) -> StandardMeasure:
        """Return a measure with its interval; `se` is its standard error, and the value is None if it is not finite."""
        interval = self.interval(value, se) if np.isfinite(value) else None
        return standard_measure(name, value, interval, ideal)


def standard_measure(name: str, value: float, interval: Interval | None, ideal: float | None) -> StandardMeasure:
    """Return a measure with an interval; the value is None if it is not finite."""
    entry = {"name": name, "value": strict_json(float(value)), "ideal": ideal}
    return StandardMeasure.from_dict({**entry, "interval": None if interval is None else interval.to_dict()})


def variance_of_sum(terms: Array, cluster: Array | None) -> float:
    """Return the variance of a sum of terms (n,) of mean 0, which are independent by row or by cluster (n,).

    With m rows or clusters it is m/(m − 1) times the sum of their squared totals; NaN for fewer than two.
    """
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        terms = np.bincount(unit, terms)
    n_units = len(terms)
    return float((terms**2).sum()) * n_units / (n_units - 1) if n_units > 1 else float("nan")
