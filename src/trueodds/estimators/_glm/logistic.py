"""Logistic regression of many outcome vectors by Newton's method, with likelihood-ratio and score statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators._glm.logits import LogitPolynomials, Logits

LogisticForm = Literal["likelihood-ratio", "score"]
CONVERGENCE_TOLERANCE = 1e-11  # predicted gain in log-likelihood of the next Newton step, in units of `weight_scale`
STALLED_TOLERANCE = 1e-3  # the same tolerance if the log-likelihood stops increasing because of rounding errors
MIN_RELATIVE_GAIN = 1e-13  # relative increase of the log-likelihood below which it has stopped increasing
MAX_ITER, MAX_HALVINGS = 120, 60  # maximum number of Newton steps, and of halvings of one step
MAX_RELATIVE_STEP = 4.0  # maximum step, as a multiple of the largest log odds
MIN_HESSIAN_EIGENVALUE = 1e-15  # lower limit of the eigenvalues of the scaled Hessian
MIN_CURVATURE = 1e-100  # lower limit of the curvature along an axis
# Share of the null information along a direction below which the maximum counts as infinite.
MIN_INFORMATION_SHARE = 1e-6


def logistic_statistics(logits: Logits, powers: LogitPolynomials, wy: Array, degree: int, form: str) -> Array:
    """Return the χ² statistics (draws,) of a polynomial in the logit of this degree against the logit itself.

    `wy` (draws, n) are the weighted outcomes, and `form` is "likelihood-ratio" or "score".

    With weights the likelihood ratio is multiplied by the score statistic standardized by the variance of the scores,
    divided by the one standardized by their information, which restores the χ² distribution. Source: Pace, Salvan &
    Sartori (2011).
    """
    information_statistics, variance_statistics = (
        scores[:, : degree + 1].sum(1) for scores in powers.scores(wy - logits.w * logits.p)
    )
    if form == "score":
        return variance_statistics
    gain = fit_logit_regression(powers.columns[:, : degree + 1], logits.x, logits.w, wy).gain
    ones, is_defined = np.ones_like(variance_statistics), information_statistics > 0
    return 2 * gain * np.divide(variance_statistics, information_statistics, out=ones, where=is_defined)


@dataclass(frozen=True, eq=False, slots=True)
class LogitRegressionFit:
    """Maximum likelihood fits of log odds o + Xβ for many outcome vectors."""

    gain: Array  # (draws,) log-likelihood minus that of β = 0; the supremum if no maximum exists
    beta: Array  # (draws, m) estimates; the last iterate if no maximum exists
    has_maximum: Array  # (draws,) whether a finite maximum exists, which is false under separation

    def probabilities(self, columns: Array, offset: Array, draw: int = 0) -> Array:
        """Fitted probability of each row."""
        return expit(offset + columns[:, : self.beta.shape[1]] @ self.beta[draw])

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note if the first fit has no finite coefficients."""
        if self.has_maximum[0]:
            return ()
        text = (
            "No finite maximum likelihood estimate exists, because the predictions separate the outcomes or all"
            " outcomes are equal. The likelihood is evaluated at its limit."
        )
        return (Note("TN217", text),)


def fit_logit_regression(columns: Array, offset: Array, w: Array, wy: Array) -> LogitRegressionFit:
    r"""Maximize the log-likelihood by Newton's method with step halving, for each row of the weighted outcomes `wy`.

    The outcomes wy (draws, n) share the design matrix X = `columns` (n, m) and the `offset` o (n,). The weights w are
    (n,), or (draws, n) for resamples:

    .. math:: \ell(\beta) = \sum_i (wy)_i\,\eta_i - w_i \log(1 + e^{\eta_i}), \quad \eta = o + X\beta

    The columns are orthonormal in the information at β = 0. The iteration starts there, or where all log odds are 0 if
    that has a higher likelihood, because extreme predictions that are miscalibrated leave almost no curvature at β = 0.
    The log-likelihood is concave. Under separation each step gains a constant factor of the remainder, so the supremum
    is computed with the same precision as a maximum while β diverges. Outcomes outside [0, 1], as from flipped
    residuals, can make the likelihood unbounded; the gain is then infinite.
    """
    draws, m = len(wy), columns.shape[1]
    row, column = np.triu_indices(m)  # the upper triangle of the symmetric Hessian
    column_products = columns[:, row] * columns[:, column]
    null_loss, tolerance_unit = w * _softplus(offset), weight_scale(w)
    has_maximum = np.zeros(draws, dtype=bool)
    active, unconverged = np.arange(draws), np.arange(0)  # draws that are iterated, and that stay far from a maximum
    beta, gain, eta = _starting_values(columns, offset, w, wy)
    for _ in range(MAX_ITER):
        active_wy = wy[active]
        active_w, active_loss = (w, null_loss) if w.ndim == 1 else (w[active], null_loss[active])
        q = expit(eta)
        gradient = weighted_sum(active_wy - active_w * q, columns)
        packed_hessian = weighted_sum(active_w * q * (1 - q), column_products)
        hessian = np.empty((len(active), m, m))
        hessian[:, row, column] = hessian[:, column, row] = packed_hessian
        newton_step = _newton_step(gradient, hessian)
        predicted_gain = np.einsum("dm,dm->d", gradient, newton_step)
        eta_step = newton_step @ columns.T
        max_eta = np.abs(eta).max(axis=1, initial=1.0)
        step_size = np.minimum(
            1.0, MAX_RELATIVE_STEP * max_eta / np.maximum(np.abs(eta_step).max(axis=1, initial=0.0), 1e-300)
        )
        for _halving in range(MAX_HALVINGS):
            new_eta = eta + step_size[:, None] * eta_step
            new_gain = (active_wy * (new_eta - offset) - (active_w * _softplus(new_eta) - active_loss)).sum(1)
            too_long = ~(new_gain >= gain[active] - CONVERGENCE_TOLERANCE * (tolerance_unit + gain[active]))
            if not too_long.any():
                break
            step_size = np.where(too_long, step_size / 2, step_size)
        beta[active] += step_size[:, None] * newton_step
        has_stalled = new_gain <= gain[active] * (1 + MIN_RELATIVE_GAIN)
        gain[active] = np.maximum(gain[active], new_gain)
        is_nearly_converged = predicted_gain <= STALLED_TOLERANCE * tolerance_unit
        converged = (predicted_gain <= CONVERGENCE_TOLERANCE * tolerance_unit) | (has_stalled & is_nearly_converged)
        has_maximum[active[converged]] = np.linalg.eigvalsh(hessian[converged])[:, 0] > MIN_INFORMATION_SHARE
        eta, unconverged, active = new_eta[~converged], active[~converged & ~is_nearly_converged], active[~converged]
        if not len(active):
            break
    largest_wy = w if w.ndim == 1 else w[unconverged]
    has_impossible_outcome = ((wy[unconverged] < 0) | (wy[unconverged] > largest_wy)).any(axis=1)
    gain[unconverged[has_impossible_outcome]] = np.inf
    return LogitRegressionFit(gain, beta, has_maximum)


def _newton_step(gradient: Array, hessian: Array) -> Array:
    """Newton steps (draws, m) from gradients (draws, m) and negative Hessians (draws, m, m)."""
    scale = 1 / np.sqrt(np.maximum(np.einsum("dii->di", hessian), MIN_CURVATURE))  # equal curvature along every axis
    eigenvalues, eigenvectors = np.linalg.eigh(hessian * scale[:, :, None] * scale[:, None])
    eigenvalues = np.maximum(eigenvalues, MIN_HESSIAN_EIGENVALUE)
    return np.asarray(
        scale * np.einsum("dij,dj,dkj,dk->di", eigenvectors, 1 / eigenvalues, eigenvectors, scale * gradient)
    )


def weight_scale(w: Array) -> float:
    """Scale of tolerances in units of weight: 1 for weights of that order, else the largest weight.

    Counts of rows, up to 2³⁰, and weights of at least a tenth are of that order.
    """
    largest = float(w.max(initial=0.0))
    return 1.0 if largest == 0 or 0.1 <= largest <= 2**30 else largest


def _starting_values(columns: Array, offset: Array, w: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Return starting values of each draw: β (draws, m), the gain (draws,) and the log odds η (draws, n).

    β is 0, or where all log odds are 0 if that has a higher likelihood.
    """
    beta, gain = np.zeros((len(wy), columns.shape[1])), np.zeros(len(wy))
    eta = np.broadcast_to(offset, wy.shape).copy()
    scale = np.abs(columns).max(axis=0, initial=1e-300)
    beta_of_zero_logits = -np.linalg.lstsq(columns / scale, offset, rcond=None)[0] / scale
    zero_logits = offset + columns @ beta_of_zero_logits
    if len(offset) and np.abs(zero_logits).max() <= 1e-6 * np.abs(offset).max():  # the columns span the offset
        loss = w * (_softplus(zero_logits) - _softplus(offset))
        gain_of_zero_logits = weighted_sum(wy, zero_logits - offset) - loss.sum(axis=-1)
        better = gain_of_zero_logits > 0
        beta[better], gain[better], eta[better] = beta_of_zero_logits, gain_of_zero_logits[better], zero_logits
    return beta, gain, eta


def _softplus(eta: Array) -> Array:
    """log(1 + e^η) without overflow."""
    return np.logaddexp(0.0, eta)
