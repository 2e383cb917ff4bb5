"""How well do parameters fit in which every class has its own? Sums that add, as those of any softmax fit."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.by_class import sums
from trueodds.tallies.likelihood import Likelihood


def by_class(
    F: Array,
    Y: Array,
    w: Array,
    theta: Array,
    *,
    offset: Array | None = None,
    ties: Array | None = None,
    curved: bool = True,
) -> Likelihood:
    r"""The sums of the model :math:`q_i = \mathrm{softmax}_k(o_{ik} + a_k\cdot F_{ik} + b_k)`.

    F is (n, K, d), features of each class, or (n, d), the same for all of them; Y (n, K) outcome shares with rows
    summing to 1, w (n,), o (n, K). :math:`\theta = (a_1, b_1, a_2, b_2, \ldots)`, (K(d + 1),); with `ties` T it is
    Tφ, and φ is what is passed and what the derivatives are by. Convex. `curved=False` leaves the Hessian out, (0, 0).
    Cost: O(nK²d²/2) time for features by class, O(nK²d²/4) for shared ones, O(nKd) without the Hessian; columns that
    lie in one piece (`np.asfortranarray`) are not copied. The blocks are fixed, so no sum depends on the number of
    threads.

    >>> x, Y = np.log([[0.9, 0.1]]), np.array([[0.0, 1.0]])
    >>> at = by_class(x[:, :, None], Y, np.ones(1), np.array([1.0, 0.0, 1.0, 0.0]))
    >>> round(at.value, 4), at.gradient[[1, 3]].round(4).tolist()
    (2.3026, [0.9, -0.9])
    """
    full = theta if ties is None else ties @ theta
    value, gradient, own, across = sums(F, Y, w, full.reshape(Y.shape[1], -1), offset, curved)
    g, m = gradient.reshape(-1), len(full)
    H = (
        np.zeros((0, 0))
        if not curved
        else (_from_pairs(across, Y.shape[1]) if F.ndim == 2 else _assemble_hessian(own, across))
    )
    if ties is not None:
        g, H = ties.T @ g, ties.T @ H @ ties if curved else H
    assert not curved or ties is not None or H.shape == (m, m)
    return Likelihood(float(value[0]), g, H, float(w.sum()), len(w))


def _assemble_hessian(own: Array, across: Array) -> Array:
    """Minus Σ q_k q_l f_k f_lᵀ of two classes, and each class's own block."""
    k, d = own.shape[:2]
    upper = np.triu(across)  # what lies below is in part counted too
    H = -(upper + upper.T).reshape(k, d, k, d)
    H[np.arange(k), :, np.arange(k), :] = own
    return H.reshape(k * d, k * d)


def _from_pairs(across: Array, k: int) -> Array:
    """Minus Σ q_k q_l f fᵀ of two classes; of one with itself, the sum over its pairs with the others."""
    d = round((np.sqrt(8 * across.shape[1] + 1) - 1) / 2)
    (first, second), (row, column) = np.triu_indices(k, 1), np.triu_indices(d)
    H = np.zeros((k, k, d, d))
    blocks = np.empty((len(first), d, d))
    blocks[:, row, column] = blocks[:, column, row] = across
    H[first, second] = H[second, first] = -blocks
    H[np.arange(k), np.arange(k)] = -H.sum(axis=1)
    return H.transpose(0, 2, 1, 3).reshape(k * d, k * d)
