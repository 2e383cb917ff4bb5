"""Which classes does the model take for which? Matrix scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np  # noqa: F401 - of the example

from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.likelihood.full_matrix import FullMatrixMap, FullMatrixSpec


@dataclass(frozen=True, eq=False)
class MatrixMap(FullMatrixMap):
    """Rows softmax(W x + b) of logits, or of log probabilities."""

    name: ClassVar[str] = "matrix"


@dataclass(frozen=True)
class MatrixSpec(FullMatrixSpec):
    r"""A matrix on the logits, or on the log probabilities, and a bias for each class.

    .. math:: q_i = \mathrm{softmax}(W x_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    x are the logits with `logits=True`, whose constant per row is then part of the model; else log p, and then it is
    `dirichlet`, where `penalty`, `bias_penalty`, `shrink` and `target` are explained. Labels may change. Of the K² + K
    parameters K² − 1 are told apart: without a penalty it needs thousands of rows. Fits take log(max(p, `floor`)), and
    so does the map, since every class's log counts for all. Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31
    classes O(nK²), some hundred passes. Sources: Guo et al. (2017); Kull et al. (2019) for the penalty.

    >>> z = np.array([[2.0, 0.0], [0.0, 1.0]] * 50)
    >>> m = MatrixSpec(logits=True).fit(z, np.eye(2)[[0, 1] * 50], np.ones(100))
    >>> m.logits, m.weights.shape
    (True, (2, 2))
    """

    name: ClassVar[str] = "matrix"
    complexity: ClassVar[int] = 14
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = MatrixMap
    candidate: ClassVar[bool] = False
    logits: bool = False
