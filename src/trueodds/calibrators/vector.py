"""Vector scaling: a weight and a bias for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.calibrators._glm.log_linear import (
    LogLinearMap,
    fit_log_linear,
    initial_beta,
    negative_slope_notes,
    not_converged_notes,
    prepare_rows,
    small_sample_notes,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb
from trueodds.calibrators._glm.row_sums import RowSums
from trueodds.calibrators.base import CalibrationMap, SummedSpec
from trueodds.core.errors import Note
from trueodds.core.settings import NonNegative

_MAX_CLASSES = 30  # classes up to which `auto` tries it unasked


@dataclass(frozen=True, eq=False)
class VectorMap(LogLinearMap):
    """Rows proportional to e^b p^a, with a slope a and a bias b of its own for each class."""

    name: ClassVar[str] = "vector"


@dataclass(frozen=True)
class VectorSpec(SummedSpec):
    r"""A slope and a bias for each class's log probability, or logit.

    .. math:: q_{ik} \propto \exp(a_k x_{ik} + b_k), \quad
        \min_{a, b} \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \lambda \sum_k [(a_k - 1)^2 + b_k^2]

    x is log p, or with `logits=True` the logits, whose constant per row is then part of the model: the two are
    different models. λ = `penalty` in nats over all rows: 0.5 says that slopes lie about 1 and biases about 0 with a
    standard deviation of 1, unless the rows say otherwise, so that the map always exists. The published method is
    `penalty=0`, with biases that sum to 0: as good from some 4,000 rows on, but fitted to 300 rows of real image
    classifiers with ten classes it did worse than no calibration, by up to 0.1 nats per row. Labels may change, as
    slopes differ. Fits take log(max(p, `min_prob`)). Cost: O(nK²) per pass, about 5 passes after those of the
    temperature. Source: Guo et al. (2017).

    >>> P = np.array([[0.9, 0.1], [0.6, 0.4]] * 20)
    >>> VectorSpec(penalty=0).fit(P, P, np.ones(40)).weights.round(6).tolist()
    [1.0, 1.0]
    """

    name: ClassVar[str] = "vector"
    complexity: ClassVar[int] = 12
    keeps_argmax: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = VectorMap
    logits: bool = False
    penalty: NonNegative = 0.5
    min_prob: MinProb = MIN_PROB

    def suits(self, n: int, k: int) -> bool:
        """Where there are few classes."""
        return super().suits(n, k) and k <= _MAX_CLASSES

    def fit_data(self, data: RowSums) -> VectorMap:
        """The slopes and biases of these rows."""
        k = data.facts.k
        target = np.tile([1.0, 0.0], (k, 1))
        start = target * initial_beta(data, self.min_prob, self.logits)
        pull = np.full((k, 2), self.penalty / data.facts.mass)
        optimum = fit_log_linear(data.prepared(prepare_rows), pull, target, start, shared=False)
        slopes, bias = optimum.theta.reshape(k, 2).T
        if self.penalty == 0:
            bias = bias - bias.mean()
        return VectorMap(slopes.copy(), bias.copy(), self.min_prob, optimum.n_passes, optimum.converged, self.logits)

    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Floored values, no finite best fit, slopes below 0, and few rows without a penalty."""
        assert isinstance(calibration_map, VectorMap)
        return [
            *data.facts.floored.notes(),
            *not_converged_notes(calibration_map),
            *negative_slope_notes(calibration_map.weights),
            *(small_sample_notes(data.facts.n, 2 * data.facts.k - 1) if self.penalty == 0 else []),
        ]
