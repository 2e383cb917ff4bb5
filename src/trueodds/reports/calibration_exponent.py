"""Calibration slope of several classes: the exponent β (the inverse temperature) that maximizes the likelihood."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.data.log_probabilities import exact_zeros, log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_rows_in_blocks
from trueodds.reports.wald_intervals import variance_of_sum

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
    has_weight = preds.w > 0
    Y, w = preds.Y[has_weight], preds.w[has_weight]
    cluster = None if preds.cluster is None else preds.cluster[has_weight]
    if contradicted_rows(preds).any():
        return float("nan"), float("nan")
    log_probs = np.maximum(log_probabilities(preds)[has_weight], MIN_LOG_PROB)
    largest, smallest = log_probs.max(axis=1, keepdims=True), log_probs.min(axis=1, keepdims=True)
    is_largest, is_smallest = largest - log_probs <= LOG_PROB_TOLERANCE, log_probs - smallest <= LOG_PROB_TOLERANCE
    if is_largest[Y > 0].all() or is_smallest[Y > 0].all():
        return float("nan"), float("nan")
    beta, residual, curvature = _maximize_likelihood(log_probs, Y, w)
    return beta, float(np.sqrt(variance_of_sum(w * residual, cluster)) / float(weighted_sum(w, curvature)))


def _maximize_likelihood(log_probs: Array, Y: Array, w: Array) -> tuple[float, Array, Array]:
    """Maximize the log-likelihood by Newton's method, halving each step until the likelihood does not decrease.

    `log_probs` and `Y` are (n, K), `w` is (n,). Returns the exponent, and the first and negative second derivatives
    (n,) of the rows there; NaN if it does not converge.
    """
    beta = 1.0
    residual, curvature, log_likelihood = _evaluate_likelihood(beta, log_probs, Y, w)
    for _ in range(MAX_NEWTON_ITER):
        information = float(weighted_sum(w, curvature))
        if information <= 0:
            break
        step = float(weighted_sum(w, residual)) / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            trial_residual, trial_curvature, trial_log_likelihood = _evaluate_likelihood(beta + step, log_probs, Y, w)
            if trial_log_likelihood >= log_likelihood:
                break
            step /= 2
        else:  # the step has become too small to change β
            return beta, residual, curvature
        beta += step
        residual, curvature, log_likelihood = trial_residual, trial_curvature, trial_log_likelihood
    return float("nan"), np.full(len(w), np.nan), np.full(len(w), np.nan)


def _evaluate_likelihood(beta: float, log_probs: Array, Y: Array, w: Array) -> tuple[Array, Array, float]:
    """Return the derivatives of the log-likelihood at β.

    These are the first derivatives (n,) of the rows, their negative second derivatives (n,), and the log-likelihood of
    all rows.
    """

    def evaluate_rows(log_p: Array, Y: Array) -> tuple[Array, Array, Array]:
        """Return both derivatives and the log-likelihood of each row of a block, with q ∝ p^β."""
        eta = beta * log_p
        eta = eta - eta.max(axis=1, keepdims=True)
        q = np.exp(eta)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        mean = (q * log_p).sum(axis=1)
        residual = (Y * log_p).sum(axis=1) - mean
        curvature = (q * (log_p - mean[:, None]) ** 2).sum(axis=1)
        return residual, curvature, (Y * (eta - np.log(total))).sum(axis=1)

    residual, curvature, log_likelihoods = map_rows_in_blocks(evaluate_rows, log_probs, Y)
    return residual, curvature, float(weighted_sum(w, log_likelihoods))


def contradicted_rows(preds: Predictions) -> Array:
    """Return a mask (n,) of the rows of positive weight in which an observed class has predicted probability 0."""
    return np.asarray((exact_zeros(preds) & (preds.Y > 0)).any(axis=1) & (preds.w > 0))
