"""Logistic regression by Newton's method, with likelihood-ratio and score tests of many outcome vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.hypotests._glm.logits import LogitPolynomials, Logits

LogisticForm = Literal["likelihood-ratio", "score"]
CONVERGENCE_TOLERANCE = 1e-11  # convergence tolerance: predicted gain in log-likelihood of the next Newton step
MAX_ITER = 120
MAX_RELATIVE_STEP = 4.0  # maximum step, as a multiple of the largest log odds
STALLED_TOLERANCE = 1e-3  # tolerance if the log-likelihood stops increasing because of rounding errors
MIN_HESSIAN_EIGENVALUE = 1e-15  # smallest eigenvalue of the scaled Hessian
MIN_CURVATURE = 1e-100  # smallest curvature along an axis
MIN_INFORMATION_SHARE = (
    1e-6  # share of the null information along a direction below which the maximum counts as infinite
)


def logistic_statistics(logits: Logits, powers: LogitPolynomials, wy: Array, degree: int, form: str) -> Array:
    """χ² statistics of a polynomial of this degree against the logit itself, for many outcomes (draws, n).

    With weights the likelihood ratio is multiplied by the score statistic standardized by the variance of the scores,
    divided by the one standardized by their information, which restores the χ² distribution. Source: Pace, Salvan &
    Sartori (2011).
    """
    information_whitening, by_meat = (
        scores[:, : degree + 1].sum(1) for scores in powers.scores(wy - logits.w * logits.p)
    )
    if form == "score":
        return by_meat
    gain = fit_logistic(powers.columns[:, : degree + 1], logits.x, logits.w, wy).gain
    return (
        2 * gain * np.divide(by_meat, information_whitening, out=np.ones_like(by_meat), where=information_whitening > 0)
    )


@dataclass(frozen=True, eq=False, slots=True)
class LogitRegressionFit:
    """Maximum likelihood fits of log odds o + Xβ for many outcome vectors."""

    gain: Array  # (draws,) log-likelihood minus that of β = 0; the supremum if no maximum exists
    beta: Array  # (draws, m) estimates; the last iterate if no maximum exists
    finite: Array  # (draws,) whether a finite maximum exists, which is false under separation

    def probabilities(self, columns: Array, offset: Array, draw: int = 0) -> Array:
        """Fitted probability of each row."""
        return expit(offset + columns[:, : self.beta.shape[1]] @ self.beta[draw])

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note if the first fit has no finite coefficients."""
        if self.finite[0]:
            return ()
        text = (
            "No finite maximum likelihood estimate exists, because the predictions separate the outcomes or all"
            " outcomes are equal. The likelihood is evaluated at its limit."
        )
        return (Note("TN217", text),)


def fit_logistic(columns: Array, offset: Array, w: Array, wy: Array) -> LogitRegressionFit:
    r"""Newton's method with step halving, for outcomes wy (draws, n) that share X (n, m), o and w (n,).

    .. math:: \ell(\beta) = \sum_i (wy)_i\,\eta_i - w_i \log(1 + e^{\eta_i}), \quad \eta = o + X\beta

    The columns are orthonormal in the information at β = 0. The iteration starts there, or where all log odds are 0 if
    that has a higher likelihood, because extreme predictions that are miscalibrated leave almost no curvature at β = 0.
    The log-likelihood is concave. Under separation each step gains a constant factor of the remainder, so the supremum
    is computed with the same precision as a maximum while β diverges. Outcomes outside [0, 1], as from flipped
    residuals, can make the likelihood unbounded; the gain is then infinite.
    """
    draws, m = len(wy), columns.shape[1]
    first, second = np.triu_indices(m)
    pairs = columns[:, first] * columns[:, second]
    base, unit = w * _softplus(offset), weight_scale(w)
    finite, left, lost = np.zeros(draws, dtype=bool), np.arange(draws), np.arange(0)
    beta, gain, eta = _starting_values(columns, offset, w, wy)
    for _ in range(MAX_ITER):
        y = wy[left]
        q = expit(eta)
        slope = (y - w * q) @ columns
        packed = (w * q * (1 - q)) @ pairs
        hessian = np.empty((len(left), m, m))
        hessian[:, first, second] = hessian[:, second, first] = packed
        scale = 1 / np.sqrt(
            np.maximum(np.einsum("dii->di", hessian), MIN_CURVATURE)
        )  # equal curvature along every axis
        values, turns = np.linalg.eigh(hessian * scale[:, :, None] * scale[:, None])
        values = np.maximum(values, MIN_HESSIAN_EIGENVALUE)
        step = scale * np.einsum("dij,dj,dkj,dk->di", turns, 1 / values, turns, scale * slope)
        promise = np.einsum("dm,dm->d", slope, step)
        move = step @ columns.T
        max_eta = np.abs(eta).max(axis=1, initial=1.0)
        step_size = np.minimum(
            1.0, MAX_RELATIVE_STEP * max_eta / np.maximum(np.abs(move).max(axis=1, initial=0.0), 1e-300)
        )
        for _half in range(60):
            there = eta + step_size[:, None] * move
            risen = (y * (there - offset) - (w * _softplus(there) - base)).sum(1)
            worse = ~(risen >= gain[left] - 1e-11 * (unit + gain[left]))
            if not worse.any():
                break
            step_size = np.where(worse, step_size / 2, step_size)
        beta[left] += step_size[:, None] * step
        still = risen <= gain[left] * (1 + 1e-13)
        gain[left] = np.maximum(gain[left], risen)
        done = (promise <= CONVERGENCE_TOLERANCE * unit) | (still & (promise <= STALLED_TOLERANCE * unit))
        finite[left[done]] = np.linalg.eigvalsh(hessian[done])[:, 0] > MIN_INFORMATION_SHARE
        eta, left, lost = there[~done], left[~done], left[~done & ~(promise <= STALLED_TOLERANCE * unit)]
        if not len(left):
            break
    gain[lost[((wy[lost] < 0) | (wy[lost] > w)).any(axis=1)]] = np.inf
    return LogitRegressionFit(gain, beta, finite)


def weight_scale(w: Array) -> float:
    """Scale of tolerances in units of weight: 1 for weights of that order, else the largest weight."""
    largest = float(w.max(initial=0.0))
    return 1.0 if largest == 0 or 0.1 <= largest <= 2**30 else largest


def _starting_values(columns: Array, offset: Array, w: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Starting values: β, the gain and the log odds."""
    beta, gain = np.zeros((len(wy), columns.shape[1])), np.zeros(len(wy))
    eta = np.broadcast_to(offset, wy.shape).copy()
    scale = np.abs(columns).max(axis=0, initial=1e-300)
    even = -np.linalg.lstsq(columns / scale, offset, rcond=None)[0] / scale
    level = offset + columns @ even
    if len(offset) and np.abs(level).max() <= 1e-6 * np.abs(offset).max():
        risen = wy @ (level - offset) - float((w * (_softplus(level) - _softplus(offset))).sum())
        better = risen > 0
        beta[better], gain[better], eta[better] = even, risen[better], level
    return beta, gain, eta


def _softplus(eta: Array) -> Array:
    return np.logaddexp(0.0, eta)
