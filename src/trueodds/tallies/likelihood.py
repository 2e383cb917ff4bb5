"""How well parameters of a softmax fit, as sums that add: one Newton step is one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trueodds.core.typing import Array

_BLOCK = 1 << 14  # probabilities per block, so that the temporaries stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Minus the log-likelihood of some rows with its derivatives; those of more rows are the sum.

    >>> X, Y = np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.0]])
    >>> one = softmax_linear(X, Y, np.ones(1), np.zeros(1))
    >>> (one + one).n, round((one + one).value, 4)
    (2, 1.3863)
    """

    value: float  # −Σ w log q of what came, in nats
    gradient: Array  # (m,)
    hessian: Array  # (m, m), positive semidefinite; the outcomes do not enter it
    weight: float
    n: int
    beyond: Array = field(default_factory=lambda: np.zeros(4))  # third to sixth derivative by a single parameter

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.weight + other.weight,
            self.n + other.n,
            self.beyond + other.beyond,
        )


def softmax_linear(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None = None) -> Likelihood:
    r"""The sums of the model :math:`q_i = \mathrm{softmax}(o_i + X_i\theta)`.

    .. math:: F = \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i], \quad
        \nabla F = \sum_i w_i X_i^\top (q_i - y_i), \quad
        \nabla^2 F = \sum_i w_i X_i^\top(\mathrm{diag}\,q_i - q_i q_i^\top)X_i

    Convex in θ. X is (n, K, m), Y (n, K) outcome shares with rows summing to 1, w (n,), θ (m,), o (n, K).
    Cost: O(nKm²) time, O(m²) memory beyond a block. The blocks are fixed, so the sums do not depend on the number of
    threads. A single parameter, the common case, has a compiled loop of its own, which gives higher derivatives too.
    """
    if X.shape[2] == 1:
        from trueodds.kernels.softmax import linear  # fits of several parameters load no compiler

        return _single(linear(X[:, :, 0], Y, w, float(theta[0]), offset), w)
    m, rows = X.shape[2], max(1, _BLOCK // (X.shape[1] * X.shape[2]))
    total = Likelihood(0.0, np.zeros(m), np.zeros((m, m)), 0.0, 0)
    for start in range(0, len(X), rows):
        part = slice(start, start + rows)
        total = total + _block(X[part], Y[part], w[part], theta, None if offset is None else offset[part])
    return total


def tempered(P: Array, Y: Array, w: Array, beta: float, min_prob: float, *, every: int = 1) -> Likelihood:
    r"""The sums of the model :math:`q_{ik} \propto \max(p_{ik}, \text{floor})^\beta`, one parameter β > 0 for all.

    The same as `softmax_linear` of the logs, which are never kept. P is (n, K) of any float type, Y (n, K) outcome
    shares or (n,) class numbers, w (n,); `every` takes one row of so many. Cost: O(nK) time, no memory beyond a block.

    >>> P, y = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])
    >>> round(tempered(P, y, np.ones(2), 1.0, 1e-12).value, 6) == round(float(-np.log(0.9 * 0.5)), 6)
    True
    """
    from trueodds.kernels.softmax import tempered as sums

    return _single(sums(P, Y, w, beta, min_prob, every), w[::every])


def _single(sums: Array, w: Array) -> Likelihood:
    return Likelihood(float(sums[0]), sums[1:2], sums[2:3, None], float(w.sum()), len(w), sums[3:])


def _block(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None) -> Likelihood:
    eta = X @ theta
    if offset is not None:
        eta += offset
    eta -= eta.max(axis=1, keepdims=True)
    observed = np.einsum("nk,nk->n", Y, eta)
    q = np.exp(eta, out=eta)
    sums = q.sum(axis=1)
    value, weight = float(w @ (np.log(sums) - observed)), float(w.sum())
    wide = X.reshape(-1, X.shape[2])
    q /= sums[:, None]
    wq = w[:, None] * q
    means = np.einsum("nk,nkm->nm", q, X)
    gradient = (wq - w[:, None] * Y).reshape(-1) @ wide
    hessian = (wq.reshape(-1, 1) * wide).T @ wide - (w[:, None] * means).T @ means
    return Likelihood(value, gradient, hessian, weight, len(w))
