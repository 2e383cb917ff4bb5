"""Log-likelihood of softmax regressions with its gradient and Hessian, as mergeable sums over rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels.likelihood import likelihood_by_class, linear_log_loss, tempered_log_loss

_PROBABILITIES_PER_BLOCK = 1 << 14  # probabilities per block, so that the temporaries stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Negative log-likelihood of some rows with its derivatives. Those of two batches of rows are merged with `+`.

    >>> X, Y = np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.0]])
    >>> one = softmax_linear(X, Y, np.ones(1), np.zeros(1))
    >>> (one + one).n, round((one + one).value, 4)
    (2, 1.3863)
    """

    value: float  # −Σ w log q of the observed outcomes, in nats
    gradient: Array  # (m,)
    hessian: Array  # (m, m), positive semidefinite; the outcomes do not enter it
    weight: float  # total weight of the rows
    n: int  # number of rows
    # (4,) third to sixth derivative by a single parameter; zeros for several parameters
    higher_derivatives: Array = field(default_factory=lambda: np.zeros(4))

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.weight + other.weight,
            self.n + other.n,
            self.higher_derivatives + other.higher_derivatives,
        )


def softmax_linear(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None = None) -> Likelihood:
    r"""Likelihood of the model :math:`q_i = \mathrm{softmax}(o_i + X_i\theta)`, with features by row and class.

    .. math:: F = \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i], \quad
        \nabla F = \sum_i w_i X_i^\top (q_i - y_i), \quad
        \nabla^2 F = \sum_i w_i X_i^\top(\mathrm{diag}\,q_i - q_i q_i^\top)X_i

    Convex in θ. X is (n, K, m), Y (n, K) outcome shares with rows summing to 1, w (n,), θ (m,), o (n, K).
    Cost: O(nKm²) time, O(m²) memory beyond a block. The blocks are fixed, so the sums do not depend on the number of
    threads. A compiled loop for a single parameter, the common case, also computes higher derivatives.
    """
    if X.shape[2] == 1:
        return _likelihood_of_one_parameter(linear_log_loss(X[:, :, 0], Y, w, float(theta[0]), offset), w)
    m, rows_per_block = X.shape[2], max(1, _PROBABILITIES_PER_BLOCK // (X.shape[1] * X.shape[2]))
    total = Likelihood(0.0, np.zeros(m), np.zeros((m, m)), 0.0, 0)
    for start in range(0, len(X), rows_per_block):
        block = slice(start, start + rows_per_block)
        total = total + _softmax_likelihood_of_block(
            X[block], Y[block], w[block], theta, None if offset is None else offset[block]
        )
    return total


def softmax_tempered(P: Array, Y: Array, w: Array, beta: float, min_prob: float, *, row_step: int = 1) -> Likelihood:
    r"""Likelihood of temperature scaling, :math:`q_{ik} \propto \max(p_{ik}, \text{min\_prob})^\beta`, β > 0.

    It is equal to `softmax_linear` of the logarithms of P, which are not stored. P is (n, K) of any float type, Y
    (n, K) outcome shares or (n,) class numbers, w (n,). Only every `row_step`-th row is used. Cost: O(nK) time and O(1)
    memory.

    >>> P, y = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])
    >>> round(softmax_tempered(P, y, np.ones(2), 1.0, 1e-12).value, 6) == round(float(-np.log(0.9 * 0.5)), 6)
    True
    """
    return _likelihood_of_one_parameter(tempered_log_loss(P, Y, w, beta, min_prob, row_step), w[::row_step])


def _likelihood_of_one_parameter(sums: Array, w: Array) -> Likelihood:
    return Likelihood(float(sums[0]), sums[1:2], sums[2:3, None], float(w.sum()), len(w), sums[3:])


def _softmax_likelihood_of_block(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None) -> Likelihood:
    """Return the likelihood of `softmax_linear` for a block of rows, whose temporary arrays are in memory at once."""
    eta = X @ theta
    if offset is not None:
        eta += offset
    eta -= eta.max(axis=1, keepdims=True)
    observed = np.einsum("nk,nk->n", Y, eta)
    q = np.exp(eta, out=eta)
    sums = q.sum(axis=1)
    value, weight = float(weighted_sum(w, np.log(sums) - observed)), float(w.sum())
    X_by_class = X.reshape(-1, X.shape[2])
    q /= sums[:, None]
    wq = w[:, None] * q
    mean_features = np.einsum("nk,nkm->nm", q, X)
    gradient = (wq - w[:, None] * Y).reshape(-1) @ X_by_class
    hessian = (wq.reshape(-1, 1) * X_by_class).T @ X_by_class - (w[:, None] * mean_features).T @ mean_features
    return Likelihood(value, gradient, hessian, weight, len(w))


def softmax_by_class(
    F: Array,
    Y: Array,
    w: Array,
    theta: Array,
    *,
    offset: Array | None = None,
    tying: Array | None = None,
    with_hessian: bool = True,
) -> Likelihood:
    r"""Likelihood of the model :math:`q_i = \mathrm{softmax}_k(o_{ik} + a_k\cdot F_{ik} + b_k)`.

    F is (n, K, d), features of each class, or (n, d), the same features for all classes; Y (n, K) outcome shares with
    rows summing to 1, w (n,), o (n, K). The parameters are :math:`\theta = (a_1, b_1, a_2, b_2, \ldots)`, (K(d + 1),).
    With a matrix `tying` T, the argument `theta` is a shorter vector φ with θ = Tφ, and derivatives are by φ. The value
    is convex. `with_hessian=False` omits the Hessian, which is then (0, 0).

    Cost: O(nK²d²/2) time for features by class, O(nK²d²/4) for shared ones, O(nKd) without the Hessian; least for
    features in column-major order (`np.asfortranarray`). The blocks are fixed, so no sum depends on the number of
    threads.

    >>> x, Y = np.log([[0.9, 0.1]]), np.array([[0.0, 1.0]])
    >>> at = softmax_by_class(x[:, :, None], Y, np.ones(1), np.array([1.0, 0.0, 1.0, 0.0]))
    >>> round(at.value, 4), at.gradient[[1, 3]].round(4).tolist()
    (2.3026, [0.9, -0.9])
    """
    coefficients = theta if tying is None else tying @ theta
    value, g, H = likelihood_by_class(F, Y, w, coefficients.reshape(Y.shape[1], -1), offset, with_hessian)
    if tying is not None:
        g = tying.T @ g
        H = tying.T @ H @ tying if with_hessian else H
    return Likelihood(value, g, H, float(w.sum()), len(w))
