"""Shift of the log-probabilities: a bias for each class, and no slope (intercept-only recalibration)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_linear import (
    Biases,
    LogLinearRows,
    LogLinearSpec,
    fit_log_linear,
    format_range,
    prepare_rows,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, Probabilities, softmax, to_logs
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.saved_parameters import PassCount
from trueodds.core.typing import Array


class ShiftMap(CalibrationMap):
    """Rows proportional to e^b p; an exact zero stays zero."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"b": "bias"}
    bias: Biases  # with sum 0
    n_passes: PassCount = 0
    converged: bool = True  # whether a finite optimum was found without a slight ridge

    def apply(self, P: Probabilities) -> Array:
        return softmax(to_logs(P) + self.bias)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        return (SoftmaxTerm(1.0, np.ones(k), self.bias),)

    def describe(self) -> str:
        """The shift of the log odds, such as `log odds -0.41`, or the range of the biases of more than two classes."""
        if len(self.bias) == 2:
            return f"log odds {self.bias[1] - self.bias[0]:+.3g}"
        return f"biases {format_range(self.bias)}"


class ShiftSpec(LogLinearSpec):
    r"""Shift of the log-probabilities by a bias for each class, fitted by maximum likelihood.

    Also known as intercept-only recalibration, recalibration in the large, or an update of the intercept. It corrects
    classes that the model predicts too often or too rarely, as after a change of the class frequencies, and leaves the
    odds ratios between rows as they are: it corrects neither over- nor underconfidence. The recalibrated probabilities
    of each class have the observed class frequency as their mean. For two classes it keeps the order of the scores.
    Predicted classes may change.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. The fitted map has no such limit.

    See Also
    --------
    bias_corrected_temperature : The same with a temperature.
    llo : The same with a slope, for two classes.
    prior_shift : Biases that follow from class frequencies which are known, or estimated without labels.

    Notes
    -----
    .. math:: q_{ik} \propto e^{b_k} p_{ik}, \quad \sum_k b_k = 0, \qquad
        \min_b \sum_i w_i\,[\mathrm{lse}(\log p_i + b) - y_i\cdot(\log p_i + b)]

    For two classes, the log odds are shifted by :math:`b_1 - b_0`, the calibration intercept with the slope 1. The loss
    is convex in b, and a finite optimum exists if every class is observed; otherwise a slight penalty toward the
    identity is used, and `converged` is False. `auto` does not try it by default; name it in `candidates`.

    Cost: O(nK²) per pass, about 5 passes.

    References
    ----------
    .. [1] Steyerberg, Borsboom, van Houwelingen, Eijkemans & Habbema (2004).
    .. [2] Vergouwe et al. (2017).

    Examples
    --------
    >>> P = np.array([[0.5, 0.5]] * 4)
    >>> m = ShiftSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4))
    >>> m.apply(np.array([[0.5, 0.5], [0.75, 0.25]])).round(6).tolist()  # the odds become three times as large
    [[0.25, 0.75], [0.5, 0.5]]
    """

    name, map_type = "shift", ShiftMap
    candidate = False
    min_prob: MinProb = MIN_PROB

    def fit_from_sums(self, data: SummableRows) -> ShiftMap:
        identity = np.zeros((data.summary.k, 1))
        optimum = fit_log_linear(data.map_rows(_prepare_offset), identity, identity, identity, shared_features=True)
        bias = optimum.theta - optimum.theta.mean()
        return ShiftMap(bias, optimum.n_passes, optimum.converged)

    def n_parameters(self, k: int) -> int:
        return k - 1


def _prepare_offset(data: FitData) -> LogLinearRows:
    """The rows with the logarithms as offset, and without features."""
    rows = prepare_rows(data, subtract_max=True)
    return LogLinearRows(np.empty((len(rows.w), 0)), rows.Y, rows.w, rows.x)
