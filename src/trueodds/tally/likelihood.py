"""How well parameters of a softmax fit, as sums that add: one Newton step is one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

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

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.weight + other.weight,
            self.n + other.n,
        )


def softmax_linear(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None = None) -> Likelihood:
    r"""The sums of the model :math:`q_i = \mathrm{softmax}(o_i + X_i\theta)`.

    .. math:: F = \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i], \quad
        \nabla F = \sum_i w_i X_i^\top (q_i - y_i), \quad
        \nabla^2 F = \sum_i w_i X_i^\top(\mathrm{diag}\,q_i - q_i q_i^\top)X_i

    Convex in θ. X is (n, K, m), Y (n, K) outcome shares with rows summing to 1, w (n,), θ (m,), o (n, K).
    Cost: O(nKm²) time, O(m²) memory beyond a block. The blocks are fixed, so the sums do not depend on the machine.
    """
    m, rows = X.shape[2], max(1, _BLOCK // (X.shape[1] * X.shape[2]))
    total = Likelihood(0.0, np.zeros(m), np.zeros((m, m)), 0.0, 0)
    for start in range(0, len(X), rows):
        part = slice(start, start + rows)
        total = total + _block(X[part], Y[part], w[part], theta, None if offset is None else offset[part])
    return total


def _block(X: Array, Y: Array, w: Array, theta: Array, offset: Array | None) -> Likelihood:
    # One parameter is temperature scaling, the common case: without the trailing axis it runs near the speed of exp.
    single = X.shape[2] == 1
    x = X[:, :, 0]
    eta = x * theta[0] if single else X @ theta
    if offset is not None:
        eta += offset
    eta -= eta.max(axis=1, keepdims=True)
    seen = np.einsum("nk,nk->n", Y, eta)
    q = np.exp(eta, out=eta)
    sums = q.sum(axis=1)
    value, weight = float(w @ (np.log(sums) - seen)), float(w.sum())
    if single:
        qx = np.multiply(q, x, out=q)
        mean, square = qx.sum(axis=1) / sums, np.einsum("nk,nk->n", qx, x) / sums
        gradient = np.array([w @ (mean - np.einsum("nk,nk->n", Y, x))])
        # With x relative to each row's largest, as the fit passes it, the difference loses no digits that matter.
        return Likelihood(value, gradient, np.array([[w @ np.maximum(square - mean * mean, 0.0)]]), weight, len(w))
    wide = X.reshape(-1, X.shape[2])
    q /= sums[:, None]
    wq = w[:, None] * q
    means = np.einsum("nk,nkm->nm", q, X)
    gradient = (wq - w[:, None] * Y).reshape(-1) @ wide
    hessian = (wq.reshape(-1, 1) * wide).T @ wide - (w[:, None] * means).T @ means
    return Likelihood(value, gradient, hessian, weight, len(w))
