"""Dirichlet calibration: softmax(W log p + b) with a full, penalized matrix W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.matrix import FullMatrixMap, FullMatrixSpec

_MAX_CLASSES = 30  # classes up to which `auto` tries it by default


@dataclass(frozen=True, eq=False)
class DirichletMap(FullMatrixMap):
    """Rows softmax(W log p + b)."""

    name: ClassVar[str] = "dirichlet"


@dataclass(frozen=True)
class DirichletSpec(FullMatrixSpec):
    r"""Dirichlet calibration: a full matrix on the log-probabilities and a bias for each class.

    The map is exact if the predictions within each class follow a Dirichlet distribution. Predicted classes may change.

    Parameters
    ----------
    penalty : float or {"scaled", "auto"}, default="scaled"
        Penalty of the matrix and the biases. `"scaled"` is K(K−1) W_ij² for each pair, K b_j² and (W_jj − 1)²/2, in
        nats over all rows, so that it matters less with more rows. `"auto"` takes 10, 3, 1, 0.3 or 0.1 times that
        penalty, selected by AIC, for up to 31 classes; it is too weak on a few hundred rows and a little better than
        `"scaled"` from a few thousand on. A number λ is in nats per row; 0 is maximum likelihood.
    bias_penalty : float, optional
        Penalty μ of the biases, with a number as `penalty`. By default the same number.
    shrink : {"odir", "l2"}, default="odir"
        Form of a penalty λ. `"odir"` is the published λ/(K(K−1)) Σ_{i≠j} W_ij² + μ/K Σ b_j², which leaves the diagonal
        free. `"l2"` is λ Σ (W_ij − target)² + μ Σ b_j².
    target : {"identity", "zero"}, default="identity"
        Target of `"l2"` for the matrix. With the identity, the map that changes nothing has no penalty.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)), and so does the map, because
        every log-probability enters every class. Where log-probabilities are known (`Predictions.from_logits`), the
        default applies to exact zeros only.

    Notes
    -----
    .. math:: q_i = \mathrm{softmax}(W \log p_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    No penalty depends on the order of the classes. AIC uses tr H(H + 2A)⁻¹ effective parameters, where H is the Hessian
    without the penalty A. Biased towards the identity.

    Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31 classes O(nK²), some hundred passes.

    References
    ----------
    .. [1] Kull et al. (2019).
    .. [2] Berta et al. (2025), for the scaled penalty.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]] * 50)
    >>> DirichletSpec().fit(P, P, np.ones(150)).apply(P[:1]).round(6).tolist()
    [[0.7, 0.2, 0.1]]
    """

    name: ClassVar[str] = "dirichlet"
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = DirichletMap

    def is_suitable(self, n: int, k: int) -> bool:
        """Whether there are few enough classes."""
        return super().is_suitable(n, k) and k <= _MAX_CLASSES
