"""How dense are the predictions around a point of the simplex, said by Dirichlet kernels around the others?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln

from trueodds.core.typing import Array
from trueodds.estimators.smoothing.hashed import evenly, hashed_order

BANDWIDTHS: Array = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1.0, 5)])
MAX_BANDWIDTH_ROWS = 1_000  # rows by which the bandwidth is chosen
STRIP = 256
MIN_EXPONENT = -60.0  # exp of less, over the number of rows, is no number above 0 in single precision


class DirichletKernel:
    r"""Densities of parameters p_i / b + 1 around the rows p_i, at the rows themselves; each integrates to one.

    .. math:: \log k(x; p_i) = \sum_c \tfrac{p_{ic}}{b} \log x_c + \log\Gamma\Big(\sum_c \alpha_{ic}\Big)
        - \sum_c \log\Gamma(\alpha_{ic})

    One column p is the pair (p, 1 − p): the beta kernel.
    """

    def __init__(self, P: Array, bandwidth: float, min_prob: float) -> None:
        self.P, self.bandwidth = _pairs(P), bandwidth
        self.log = np.log(np.maximum(self.P, min_prob))

    def constants(self, bandwidth: float) -> Array:
        """What a bandwidth adds to the logarithm of each kernel, (n,)."""
        alpha = np.maximum(self.P, 0.0) / bandwidth + 1
        return np.asarray(gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1))

    def strips(self) -> Iterator[tuple[slice, Array]]:
        """For some rows at a time, the kernels of all others there, (rows, n), the largest of each row scaled to 1."""
        added = self.constants(self.bandwidth)
        scaled = (np.maximum(self.P, 0.0) / self.bandwidth).T
        n = len(self.P)
        for start in range(0, n, STRIP):
            at = slice(start, min(start + STRIP, n))
            k = self.log[at] @ scaled
            k += added
            own = (np.arange(at.stop - start), np.arange(start, at.stop))
            k[own] = -np.inf
            k -= k.max(axis=1, keepdims=True)
            # Far rows keep a trace, for the draws in which no near row came.
            np.maximum(k, MIN_EXPONENT, out=k)
            np.exp(k, out=k)
            k[own] = 0.0
            yield at, k


def below(P: Array, min_prob: float) -> int:
    """Rows with a probability under the floor."""
    return int((_pairs(P) < min_prob).any(axis=1).sum())


def _pairs(P: Array) -> Array:
    return np.concatenate([P, 1 - P], axis=1) if P.shape[1] == 1 else P


def likeliest(P: Array, w: Array, min_prob: float) -> float:
    """The bandwidth under which the rows, each left out of its own density, are the likeliest.

    Above 1,000 rows judged by 1,000 of them, whatever the order of the rows.
    """
    if len(P) > MAX_BANDWIDTH_ROWS:
        rows = hashed_order(P, w)[evenly(len(P), MAX_BANDWIDTH_ROWS)]
        P, w = P[rows], w[rows]
    kernel = DirichletKernel(P, 1.0, min_prob)
    products = kernel.log @ np.maximum(kernel.P, 0.0).T
    others = np.log(w.sum() - w)
    scores = []
    for b in BANDWIDTHS:
        k = products / b
        k += kernel.constants(b) + np.log(w)
        np.fill_diagonal(k, -np.inf)
        top = k.max(axis=1)
        scores.append(float(w @ (top + np.log(np.exp(k - top[:, None]).sum(axis=1)) - others)))
    max_score = max(scores)
    # The smallest of those that rounding cannot tell apart, so that no order of the rows can.
    tolerance = 1e-9 * float(w.sum())
    return float(BANDWIDTHS[next(i for i, score in enumerate(scores) if score >= max_score - tolerance)])
