"""The best exponent of probability vectors: the slope of calibration for several classes, by maximum likelihood."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.arithmetic import variance_of_sum, weighted_sum
from trueodds.core.results import Coefficient
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK
from trueodds.lenses.view import View

MAX_NEWTON_ITER = 60  # maximum number of Newton steps; a concave function of one variable needs about ten
MIN_LOG_PROB = -1e4  # lower limit of log-probabilities, such as that of an exact zero; the fit does not depend on it
MAX_EXPONENT_STEP = 10.0  # maximum change of the exponent in one step, where the likelihood has hardly any curvature
EXPONENT_TOLERANCE = 1e-10  # relative change of the exponent at which the iteration for many draws has converged
LOG_PROB_TOLERANCE = 1e-12  # log-probabilities closer than this are tied


def calibration_exponent(view: View, cluster: Array | None = None, min_prob: float = 0.0) -> Coefficient:
    """Return the maximum-likelihood exponent β = 1/T of a joint view; NaN if it is not finite.

    Below 1 the probabilities are too extreme, above 1 too moderate. Newton's method maximizes the concave
    log-likelihood of probabilities proportional to p^β. The standard error is the sandwich estimate; with clusters
    (`cluster`, (n,)), that of the jackknife to first order, and the effective number of clusters is the number of equal
    ones with the same information. There is no finite maximum if every observed class is the most probable one of its
    row, or every one the least probable, or if an observed class has probability 0. `min_prob` is the lower limit of
    the probabilities.
    """
    n_clusters = None if cluster is None else float(len(np.unique(cluster)))
    undefined = Coefficient(math.nan, math.nan, n_clusters)
    if not min_prob and contradicted_rows(view).any():
        return undefined
    rows = np.flatnonzero(view.w > 0)
    Y, w = view.y if len(rows) == len(view) else view.y[rows], view.w[rows]
    lowest = math.log(min_prob) if min_prob else MIN_LOG_PROB
    n_classes = view.p.shape[1]
    log_probs, observed = np.empty((n_classes, len(rows))), np.empty(len(rows))
    logs = view.log_P if view.has_logs else None

    def fill_rows(start: int, stop: int) -> None:
        block = _log_probabilities(view, rows[start:stop]) if logs is None else logs[rows[start:stop]]
        block = np.maximum(block.T, lowest, order="C")
        log_probs[:, start:stop] = block
        observed[start:stop] = np.einsum("kn,nk->n", block, Y[start:stop])

    map_blocks(fill_rows, len(rows), max(1, VALUES_PER_ROW_BLOCK // n_classes))
    if not _has_finite_maximum(log_probs, Y):
        return undefined
    beta, residual, curvature = _maximize_likelihood(log_probs, observed, w)
    information = float(weighted_sum(w, curvature))
    if cluster is None or not information > 0:
        std_error = float(np.sqrt(variance_of_sum(w * residual, None))) / information
        return Coefficient(beta, std_error, n_clusters)
    unit = np.unique(cluster[rows], return_inverse=True)[1]
    share = np.bincount(unit, w * curvature) / information  # of each cluster in the information
    with np.errstate(divide="ignore", invalid="ignore"):  # a single cluster has no standard error
        influence = np.bincount(unit, w * residual) / (information * (1 - share))
    return Coefficient(beta, float(np.sqrt((influence**2).sum())), float(1 / (share**2).sum()))


def _log_probabilities(view: View, rows: Array) -> Array:
    """Logarithms of the probabilities of some rows, (m, K) float64, of a view without logits."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(view.p[rows], 0.0), dtype=np.float64))


def contradicted_rows(view: View) -> Array:
    """Return a mask (n,) of the rows of positive weight in which an observed class has predicted probability 0."""
    zeros = np.isneginf(view.log_P) if view.has_logs else view.p == 0
    if not zeros.any():
        return np.zeros(len(view), dtype=bool)
    return np.asarray((zeros & (view.y > 0)).any(axis=1) & (view.w > 0))


def exponent_draws(view: View, w: Array, wy: Array, min_prob: float = 0.0) -> Array:
    r"""Return the exponents (draws,) of a joint view for many weighted outcomes `wy` (draws, n, K); NaN as for one.

    The weights `w` are (n,), or (draws, n) for resamples. The outcomes enter the likelihood through one sum,

    .. math:: \sum_i w_i \mathrm{E}_\beta[\log p_{ij}] = \sum_{ij} w_i y_{ij} \log p_{ij}

    whose left side increases with β, so that each equation is solved by Newton's method between two bounds.
    """
    log_probs = np.maximum(view.log_P.T, math.log(min_prob) if min_prob else MIN_LOG_PROB, order="C")
    log_ratios = log_probs - log_probs.max(axis=0)  # (K, n), to the most probable class of each row
    smallest = log_ratios.min(axis=0)
    target = np.einsum("dnk,kn->d", wy, log_ratios)
    w = np.broadcast_to(w, wy.shape[:2])
    tolerance = LOG_PROB_TOLERANCE * w.sum(axis=1)
    active = np.flatnonzero((target > weighted_sum(w, smallest) + tolerance) & (target < -tolerance))
    exponents, beta = np.full(len(wy), np.nan), np.ones(len(wy))
    low, high = np.full(len(wy), -np.inf), np.full(len(wy), np.inf)
    for _ in range(2 * MAX_NEWTON_ITER):
        if not len(active):
            break
        current = beta[active]
        mean, variance = _moments_of_log_ratios(log_ratios, smallest, current)
        gap = target[active] - (w[active] * mean).sum(axis=1)
        low[active], high[active] = np.where(gap > 0, current, low[active]), np.where(gap < 0, current, high[active])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = gap / (w[active] * variance).sum(axis=1)
        proposed = current + np.clip(step, -MAX_EXPONENT_STEP, MAX_EXPONENT_STEP)
        middle = (low[active] + high[active]) / 2
        is_outside = ~((proposed >= low[active]) & (proposed <= high[active]))
        proposed = np.where(is_outside & np.isfinite(middle), middle, proposed)
        has_converged = np.abs(proposed - current) <= EXPONENT_TOLERANCE * np.maximum(1.0, np.abs(proposed))
        beta[active] = proposed
        exponents[active[has_converged]] = proposed[has_converged]
        active = active[~has_converged]
    return exponents


def _moments_of_log_ratios(log_ratios: Array, smallest: Array, beta: Array) -> tuple[Array, Array]:
    """Mean and variance (draws, n) of the log-ratios (K, n) under probabilities proportional to p^β, β (draws,).

    `smallest` (n,) are the smallest log-ratios of each row, which are the most probable ones for β < 0.
    """
    total, first, second = np.zeros((3, len(beta), log_ratios.shape[1]))
    largest_eta = np.minimum(beta, 0.0)[:, None] * smallest
    for ratios in log_ratios:
        q = beta[:, None] * ratios
        q -= largest_eta
        np.exp(q, out=q)
        total += q
        q *= ratios
        first += q
        q *= ratios
        second += q
    mean = first / total
    return mean, np.maximum(second / total - mean**2, 0.0)


def exponent_influence(view: View, beta: float, min_prob: float = 0.0) -> Array:
    """Influence (n,) of each row on the exponent: what its residual at the maximum β adds to it, to first order."""
    lowest = math.log(min_prob) if min_prob else MIN_LOG_PROB
    log_probs = np.maximum(view.log_P.T, lowest, order="C")
    observed = np.einsum("kn,nk->n", log_probs, view.y)
    residual, curvature, _ = _evaluate_likelihood(beta, log_probs, observed, view.w)
    return np.asarray(view.w * residual / float(weighted_sum(view.w, curvature)))


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

    Near the maximum, where rounding hides the change of the likelihood, a smaller derivative counts too.

    `log_probs` is (K, n), `observed` and `w` are (n,). Returns the exponent, and the first and negative second
    derivatives (n,) of the rows there; NaN if it does not converge.
    """
    beta = 1.0
    residual, curvature, log_likelihood = _evaluate_likelihood(beta, log_probs, observed, w)
    for _ in range(MAX_NEWTON_ITER):
        information = float(weighted_sum(w, curvature))
        if information <= 0:
            break
        derivative = float(weighted_sum(w, residual))
        step = derivative / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            trial_residual, trial_curvature, trial_log_likelihood = _evaluate_likelihood(
                beta + step, log_probs, observed, w
            )
            if trial_log_likelihood >= log_likelihood or abs(weighted_sum(w, trial_residual)) < abs(derivative):
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
