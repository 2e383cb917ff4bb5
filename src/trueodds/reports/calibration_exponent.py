"""Calibration slope of several classes: the exponent β (the inverse temperature) that maximizes the likelihood."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.data.log_probabilities import exact_zeros, log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK
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
    if contradicted_rows(preds).any():
        return float("nan"), float("nan")
    rows = np.flatnonzero(preds.w > 0)
    Y, w = preds.Y if len(rows) == preds.n else preds.Y[rows], preds.w[rows]
    cluster = None if preds.cluster is None else preds.cluster[rows]
    log_probs, observed = np.empty((preds.k, len(rows))), np.empty(len(rows))

    def fill_rows(start: int, stop: int) -> None:
        """Store the logarithms of a block of rows, and that of the observed class."""
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
