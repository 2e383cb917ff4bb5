"""The maximum-likelihood exponent 1/T of the probabilities, which is the calibration slope of several classes."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.log_probabilities import exact_zeros, log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_rows_in_blocks
from trueodds.reports.wald_intervals import sum_variance

MAX_NEWTON_ITER = 60
MIN_LOG_PROB = -1e4  # lower limit of log-probabilities, such as that of an exact zero; the fit does not depend on it
LOG_PROB_TOLERANCE = 1e-12  # log-probabilities closer than this are tied


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


def contradicted_rows(preds: Predictions) -> Array:
    """Rows of positive weight in which an observed class has predicted probability 0."""
    return np.asarray((exact_zeros(preds) & (preds.Y > 0)).any(axis=1) & (preds.w > 0))
