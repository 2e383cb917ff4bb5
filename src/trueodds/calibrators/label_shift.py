"""Estimate class frequencies of unlabeled rows under label shift: maximum likelihood (EM), BBSE and soft BBSE.

Each estimator minimizes a convex function of nonnegative frequencies. The second half of the module is the solver that
they share, `minimize_nonnegative`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg.lapack import dposv

from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

_MAX_EVALUATIONS = 200  # of the likelihood and its derivatives
_ROWS_PER_BLOCK = 4096  # so that temporaries stay in cache
_MAX_CONDITION_NUMBER = 100.0  # above it, a confusion matrix is nearly singular

# Of `minimize_nonnegative`:
GRADIENT_TOLERANCE = 1e-12  # of the gradient, which the caller scales to about 1
MAX_EVALUATIONS = 200  # of the function and its derivatives together
_CURVATURE_DAMPING = 1e-8  # share of its curvature that is added to each diagonal entry
_MIN_STEP_FRACTION = 2.0**-40  # fraction of a step below which no decrease is expected
_MIN_DECREASE_SHARE = 1e-4  # share of the predicted decrease that a step must attain (Armijo's rule)
_VALUE_ROUNDING = 1e-14  # rounding error of a value, relative to 1 + its size
_MAX_BLOCK_EXCHANGES = 3  # block exchanges without progress before single exchanges


@dataclass(frozen=True, slots=True, eq=False)
class ClassFrequencies:
    """Estimated class frequencies of the target rows, and why they may be unreliable."""

    shares: Array  # (K,) summing to 1
    n_passes: int = 0  # over the target rows
    converged: bool = True  # whether the estimate is a solution
    doubts: tuple[str, ...] = ()  # reasons why the estimate may be unreliable, each a sentence without its full stop


def maximum_likelihood_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:  # noqa: ARG001 - the signature that all estimators share
    r"""Class frequencies that maximize the likelihood of the target's predictions T (m, K).

    P (n, K), Y (n, K) and w (n,) are predictions, outcome shares and weights of the labeled source rows.

    .. math:: \max_\pi \frac1m \sum_i \log \sum_k \frac{p_{ik}}{\pi^s_k} \pi_k

    EM multiplies :math:`\pi_k` by :math:`d_k = \frac1m \sum_i \frac{p_{ik} / \pi^s_k}{\sum_l
    (p_{il} / \pi^s_l) \pi_l}` until these are 1, in hundreds of passes if the classes are hard to distinguish. The
    likelihood is concave, so Newton's method finds the same frequencies, in about ten passes and to the last digits; a
    class that vanished has frequency 0. Source: Saerens, Latinne & Decaestecker (2002).
    """
    source_shares = (w @ Y) / w.sum()
    observed = source_shares > 0
    R = T[:, observed] / source_shares[observed]
    is_possible = R.sum(axis=1) > 0
    n_impossible = int(np.count_nonzero(~is_possible))
    doubts = (
        [f"{n_impossible:,} target rows predict only classes that were never observed in the source, and were left out"]
        if n_impossible
        else []
    )
    if n_impossible == len(T):
        return ClassFrequencies(source_shares, 0, False, tuple(doubts))
    optimum = _maximize_mixture_likelihood(R[is_possible], source_shares[observed])
    n_passes = optimum.n_evaluations
    if not optimum.converged:
        doubts.append(f"The likelihood still increases after {n_passes:,} passes: the classes are hard to distinguish")
    shares = np.zeros(len(source_shares))
    shares[observed] = optimum.x / optimum.x.sum()
    return ClassFrequencies(shares, n_passes, optimum.converged, tuple(doubts))


def _maximize_mixture_likelihood(R: Array, start: Array) -> NonnegativeMinimum:
    """Frequencies π (k,) that maximize mean log(Rπ), as the minimum of −mean log(Rπ) + Σπ, where Σπ = 1.

    R (m, k) are the predicted probabilities of the target rows divided by the source frequencies.
    """

    def negative_log_likelihood(pi: Array) -> float:
        """−mean log(Rπ) + Σπ; infinite where a row is impossible."""
        likelihoods = R @ pi
        return float(pi.sum() - np.log(likelihoods).mean()) if likelihoods.min() > 0 else np.inf

    def derivatives(pi: Array) -> tuple[Array, Array]:
        """Gradient (k,) and Hessian (k, k) of the negative log-likelihood."""
        likelihoods, k = R @ pi, len(pi)
        gradient, hessian = np.ones(k), np.zeros((k, k))
        for start in range(0, len(R), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            ratio = R[block] / likelihoods[block, None]
            gradient -= ratio.sum(axis=0) / len(R)
            hessian += ratio.T @ ratio / len(R)
        return gradient, hessian

    return minimize_nonnegative(negative_log_likelihood, derivatives, start, max_evaluations=_MAX_EVALUATIONS)


def bbse_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:
    r"""Class frequencies that solve the confusion matrix for the target's frequencies of predicted classes (BBSE).

    .. math:: \min_{\omega \ge 0} \lVert C\omega - \mu \rVert, \quad C_{ij} = P_s(\hat y = i, y = j), \quad
        \mu_i = P_t(\hat y = i), \quad \pi_k = \pi^s_k \omega_k

    Source: Lipton, Wang & Smola (2018), without their negative weights.
    """
    k = P.shape[1]
    return _solve_confusion_matrix(np.eye(k)[P.argmax(axis=1)], Y, w, np.eye(k)[T.argmax(axis=1)])


def soft_bbse_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:
    """BBSE with probabilities in place of predicted classes, which uses more of their information."""
    return _solve_confusion_matrix(P, Y, w, T)


def _solve_confusion_matrix(predicted: Array, Y: Array, w: Array, target_predicted: Array) -> ClassFrequencies:
    """Solve C ω = μ for ω ≥ 0, and return the frequencies π = π^s ω, as `bbse_frequencies` defines these.

    `predicted` (n, K) and `target_predicted` (m, K) are predicted probabilities or one-hot predicted classes of the
    source and the target.
    """
    C = (predicted * w[:, None]).T @ Y / w.sum()
    source_shares = C.sum(axis=0)
    observed = source_shares > 0
    shares = np.zeros(len(source_shares))
    shares[observed] = (
        _nonnegative_least_squares(C[:, observed], target_predicted.mean(axis=0)) * source_shares[observed]
    )
    condition = float(np.linalg.cond(C[:, observed] / source_shares[observed]))
    doubts = []
    if not condition < _MAX_CONDITION_NUMBER:
        doubts.append(
            f"The confusion matrix is nearly singular (condition {format_number(condition)}), so the frequencies are"
            " imprecise"
        )
    total = shares.sum()
    return ClassFrequencies(shares / total if total > 0 else source_shares, 0, bool(total > 0), tuple(doubts))


def _nonnegative_least_squares(C: Array, mu: Array) -> Array:
    """The ω ≥ 0 that minimizes |Cω − μ|²."""
    H, c = C.T @ C, C.T @ mu
    scale = float(c.max())
    if scale <= 0:  # no class of the target was predicted in the source
        return np.zeros(len(c))
    H, c = H / scale, c / scale
    optimum = minimize_nonnegative(
        lambda x: float(x @ H @ x) / 2 - float(c @ x), lambda x: (H @ x - c, H), np.ones(len(c))
    )
    return optimum.x


FREQUENCY_ESTIMATORS: dict[str, Callable[[Array, Array, Array, Array], ClassFrequencies]] = {
    "em": maximum_likelihood_frequencies,
    "bbse": bbse_frequencies,
    "bbse-soft": soft_bbse_frequencies,
}
FrequencyMethod = Annotated[str, OneOf(tuple(FREQUENCY_ESTIMATORS))]


@dataclass(frozen=True, slots=True, eq=False)
class NonnegativeMinimum:
    """Result of Newton's method under nonnegativity bounds."""

    x: Array  # (m,) ≥ 0
    n_evaluations: int  # of the function, and of its derivatives
    converged: bool  # whether the optimality conditions hold


def minimize_nonnegative(
    value: Callable[[Array], float],
    derivatives: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    max_evaluations: int = MAX_EVALUATIONS,
) -> NonnegativeMinimum:
    r"""Minimize f(x) over x ≥ 0, given its values and its derivatives :math:`(\nabla f, \nabla^2 f)`.

    Projected Newton's method: each step minimizes the local quadratic approximation over x ≥ 0 and is halved until f
    decreases. A slight damping keeps directions without curvature at their start. Convergence is quadratic and its
    limit does not depend on the path, so rounding affects only the last digits. The search has converged if no entry
    of the gradient is negative and none is positive at a positive entry of x, up to `GRADIENT_TOLERANCE`.

    >>> A, b = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    >>> f, df = lambda x: x @ A @ x / 2 - b @ x, lambda x: (A @ x - b, A)
    >>> minimize_nonnegative(f, df, np.ones(2)).x.round(9).tolist()
    [0.5, 0.0]
    """
    x = np.array(start, dtype=np.float64)
    current_value, n_evaluations = value(x), 1
    while True:
        gradient, hessian = derivatives(x)
        n_evaluations += 1
        violation = float(np.abs(x - np.maximum(x - gradient, 0.0)).max(initial=0.0))
        if violation <= GRADIENT_TOLERANCE or n_evaluations >= max_evaluations:
            break
        curvature = hessian.diagonal()
        damped_hessian = hessian + np.diag(np.where(curvature > 0, _CURVATURE_DAMPING * curvature, 1.0))
        step = minimize_quadratic(damped_hessian, damped_hessian @ x - gradient, x > 0) - x
        decrease, length = -float(gradient @ step), 1.0
        while length >= _MIN_STEP_FRACTION and n_evaluations < max_evaluations:
            candidate = x + length * step
            candidate_value = value(candidate)
            n_evaluations += 1
            # A difference within rounding error counts as a decrease.
            if candidate_value <= (
                current_value - _MIN_DECREASE_SHARE * length * decrease + _VALUE_ROUNDING * (1 + abs(current_value))
            ):
                x, current_value = candidate, candidate_value
                break
            length /= 2
        else:
            break
    # A search that stopped at the rounding error has converged too.
    return NonnegativeMinimum(x, n_evaluations, violation <= 100 * GRADIENT_TOLERANCE)


def minimize_quadratic(H: Array, c: Array, is_positive: Array) -> Array:
    r"""Minimize :math:`x^\top H x / 2 - c^\top x` over x ≥ 0, H positive definite.

    Block principal pivoting: solve for the entries that are taken to be positive, then exchange all entries that
    violate their optimality condition between the positive ones and the zeros. Where this makes no progress, exchange
    only the last of them (Murty's rule), which always terminates. `is_positive` (m,) is the first guess. Source: Júdice
    & Pires (1994); Murty (1974).
    """
    scale = 1 / np.sqrt(H.diagonal())
    H, c, is_positive = H * scale[:, None] * scale, c * scale, is_positive.copy()
    tolerance = 1e-15 * float(np.abs(c).max(initial=0.0))
    fewest_violations, exchanges_left = len(c) + 1, _MAX_BLOCK_EXCHANGES
    for _ in range(100 + 10 * len(c)):
        x, indices = np.zeros(len(c)), np.flatnonzero(is_positive)
        if len(indices):
            x[indices] = dposv(H[np.ix_(indices, indices)], c[indices])[1]
        violations = np.flatnonzero(np.where(is_positive, x < 0, H @ x - c < -tolerance))
        if not len(violations):
            break
        if len(violations) < fewest_violations:
            fewest_violations, exchanges_left = len(violations), _MAX_BLOCK_EXCHANGES
        elif exchanges_left:
            exchanges_left -= 1
        else:
            violations = violations[-1:]
        is_positive[violations] = ~is_positive[violations]
    return np.maximum(x, 0.0) * scale
