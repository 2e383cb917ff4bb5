"""Logistic regression by Newton's method, and likelihood-ratio and score statistics for many outcome vectors at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.hypotests._glm.logits import Logits, Powers

Form = Literal["likelihood-ratio", "score"]
EXACT = 1e-11  # what Newton's next step would add to the log-likelihood, at most, when it stops
MAX_ITER = 120
MAX_STEP = 4.0  # times the largest log odds, which no step exceeds
NOISE = 1e-3  # the same where the log-likelihood rises no more: rounding on the way to a maximum at infinity
ROUNDING = 1e-15  # of the curvature along an axis, below which another one is noise
NONE = 1e-100  # the curvature of what does not bend
FLAT = 1e-6  # the share of the null's information along some direction at which the maximum is taken to be at infinity


def logistic_statistics(logits: Logits, powers: Powers, wy: Array, degree: int, form: str) -> Array:
    """How far outcomes (draws, n) speak for a polynomial of this degree against the logit itself: χ² under the null.

    Where rows differ in weight the likelihood ratio is multiplied by the score statistic in the variance of the
    scores over the one in their information; that makes it χ² again. Source: Pace, Salvan & Sartori (2011).
    """
    by_bread, by_meat = (scores[:, : degree + 1].sum(1) for scores in powers.scores(wy - logits.w * logits.p))
    if form == "score":
        return by_meat
    gain = fit_logistic(powers.columns[:, : degree + 1], logits.x, logits.w, wy).gain
    return 2 * gain * np.divide(by_meat, by_bread, out=np.ones_like(by_meat), where=by_bread > 0)


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """The highest log-likelihood of log odds o + Xβ, for each of many outcomes."""

    gain: Array  # (draws,) above that of β = 0; its supremum where no β reaches it
    beta: Array  # (draws, m); where no β is best, one on the way there
    finite: Array  # (draws,) whether some β is best: not where the outcomes are separated

    def probabilities(self, columns: Array, offset: Array, draw: int = 0) -> Array:
        """What the fitted model says of each row."""
        return expit(offset + columns[:, : self.beta.shape[1]] @ self.beta[draw])

    @property
    def notes(self) -> tuple[Note, ...]:
        """Where the first fit has no finite coefficients."""
        if self.finite[0]:
            return ()
        text = "The predictions separate what came from what did not, or all outcomes are the same: no finite coefficients are best, and the likelihood is taken at its limit."
        return (Note("TN217", text),)


def fit_logistic(columns: Array, offset: Array, w: Array, wy: Array) -> Fit:
    r"""Newton's method with halved steps, for outcomes wy (draws, n) that share X (n, m), o and w (n,).

    .. math:: \ell(\beta) = \sum_i (wy)_i\,\eta_i - w_i \log(1 + e^{\eta_i}), \quad \eta = o + X\beta

    The columns are orthonormal in the information at β = 0. It starts there, or where all log odds are 0 if that is
    likelier: sharp predictions that are far off leave next to no curvature at β = 0. Concave; under separation each step
    gains a constant factor of what is left, so the supremum is reached as exactly as a maximum, with β on its way to
    infinity. Where outcomes outside [0, 1] leave no bound, as flipped residuals may, the gain is infinite.
    """
    draws, m = len(wy), columns.shape[1]
    first, second = np.triu_indices(m)
    pairs = columns[:, first] * columns[:, second]
    base, unit = w * _softplus(offset), weight_unit(w)
    finite, left, lost = np.zeros(draws, dtype=bool), np.arange(draws), np.arange(0)
    beta, gain, eta = _started(columns, offset, w, wy)
    for _ in range(MAX_ITER):
        y = wy[left]
        q = expit(eta)
        slope = (y - w * q) @ columns
        packed = (w * q * (1 - q)) @ pairs
        hessian = np.empty((len(left), m, m))
        hessian[:, first, second] = hessian[:, second, first] = packed
        scale = 1 / np.sqrt(np.maximum(np.einsum("dii->di", hessian), NONE))  # of equal curvature along every axis
        values, turns = np.linalg.eigh(hessian * scale[:, :, None] * scale[:, None])
        values = np.maximum(values, ROUNDING)
        step = scale * np.einsum("dij,dj,dkj,dk->di", turns, 1 / values, turns, scale * slope)
        promise = np.einsum("dm,dm->d", slope, step)
        move = step @ columns.T
        max_eta = np.abs(eta).max(axis=1, initial=1.0)
        step_size = np.minimum(1.0, MAX_STEP * max_eta / np.maximum(np.abs(move).max(axis=1, initial=0.0), 1e-300))
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
        done = (promise <= EXACT * unit) | (still & (promise <= NOISE * unit))
        finite[left[done]] = np.linalg.eigvalsh(hessian[done])[:, 0] > FLAT
        eta, left, lost = there[~done], left[~done], left[~done & ~(promise <= NOISE * unit)]
        if not len(left):
            break
    gain[lost[((wy[lost] < 0) | (wy[lost] > w)).any(axis=1)]] = np.inf
    return Fit(gain, beta, finite)


def weight_unit(w: Array) -> float:
    """What stands for the weight of one row in a tolerance: 1 where weights are of that order, else the largest."""
    largest = float(w.max(initial=0.0))
    return 1.0 if largest == 0 or 0.1 <= largest <= 2**30 else largest


def _started(columns: Array, offset: Array, w: Array, wy: Array) -> tuple[Array, Array, Array]:
    """β, the gain and the log odds that the search begins with."""
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
