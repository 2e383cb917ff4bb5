"""Dirichlet calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.matrix import FullMatrixMap, FullMatrixSpec

_MAX_CLASSES = 30  # classes up to which `auto` tries it unasked


@dataclass(frozen=True, eq=False)
class DirichletMap(FullMatrixMap):
    """Rows softmax(W log p + b)."""

    name: ClassVar[str] = "dirichlet"


@dataclass(frozen=True)
class DirichletSpec(FullMatrixSpec):
    r"""A matrix on the log probabilities and a bias for each class: right where each class's p is Dirichlet.

    .. math:: q_i = \mathrm{softmax}(W \log p_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    `penalty` is one of

    * "scaled": K(K−1) W_ij² for each pair, K b_j² and (W_jj − 1)²/2, in nats over all rows, so that it matters less
      with more of them (after Berta et al., 2025);
    * "auto": that times 10, 3, 1, 0.3 or 0.1, whichever has the least Akaike criterion with tr H(H + 2A)⁻¹ effective
      parameters, H being the curvature without the penalty A. On a few hundred rows that is too bold; from a few
      thousand on it gains a little over "scaled". Up to 31 classes;
    * a number λ in nats per row, with `bias_penalty` μ (left out: the same). `shrink="odir"` is the published
      λ/(K(K−1)) Σ_{i≠j} W_ij² + μ/K Σ b_j², which leaves the diagonal free; `shrink="l2"` is
      λ Σ (W_ij − target)² + μ Σ b_j² with the `target` "identity" or "zero". 0 is maximum likelihood.

    None of them depends on the order of the classes, and with the target "identity" the map that changes nothing costs
    nothing. Labels may change. Biased towards the identity. Fits take log(max(p, `floor`)), and so does the map, since
    every class's log counts for all. Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31 classes O(nK²), some hundred
    passes. Source: Kull et al. (2019).

    >>> P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]] * 50)
    >>> DirichletSpec().fit(P, P, np.ones(150)).apply(P[:1]).round(6).tolist()
    [[0.7, 0.2, 0.1]]
    """

    name: ClassVar[str] = "dirichlet"
    complexity: ClassVar[int] = 13
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = DirichletMap

    def suits(self, n: int, k: int) -> bool:
        """Where there are few classes."""
        return super().suits(n, k) and k <= _MAX_CLASSES
