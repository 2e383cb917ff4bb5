"""A bias for each class: alone (shift), with a temperature, or with a weight for each class (vector scaling)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_linear import (
    Biases,
    LogLinearMap,
    LogLinearRows,
    LogLinearSpec,
    fit_log_linear,
    format_range,
    initial_beta,
    prepare_rows,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, Probabilities, softmax, to_logs
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.saved_parameters import PassCount
from trueodds.core.settings import NonNegative
from trueodds.core.typing import Array

_MAX_AUTO_CLASSES = 30  # classes up to which `auto` tries it by default


class VectorMap(LogLinearMap):
    """Rows proportional to e^b p^a, with a slope a and a bias b of its own for each class."""


class VectorSpec(LogLinearSpec):
    r"""Vector scaling: a slope and a bias for the log-probability, or the logit, of each class.

    Slopes differ between classes, so predicted classes may change.

    Parameters
    ----------
    logits : bool, default=False
        Whether the inputs x are logits instead of log-probabilities. The constant that each row of logits has is then
        part of the model, so the two are different models.
    penalty : float, default=0.5
        Ridge penalty λ in nats over all rows. 0.5 is a normal prior with standard deviation 1, of slopes around 1 and
        of biases around 0; the optimum then always exists. The published method has none, on logits:
        ``logits=True, penalty=0``. A constant added to all biases changes no probability, so they are shown centered.

    Notes
    -----
    .. math:: q_{ik} \propto \exp(a_k x_{ik} + b_k), \quad
        \min_{a, b} \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \lambda \sum_k [(a_k - 1)^2 + b_k^2]

    Without a penalty the fit is as good from some 4,000 rows on. Fitted to 300 rows of real image classifiers with ten
    classes it was worse than no calibration, by up to 0.1 nats per row.

    Cost: O(nK²) per pass, about 5 passes after those of the temperature.

    References
    ----------
    .. [1] Guo et al. (2017).

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.6, 0.4]] * 20)
    >>> VectorSpec(penalty=0).fit(P, P, np.ones(40)).weights.round(6).tolist()
    [1.0, 1.0]
    """

    name, map_type = "vector", VectorMap
    logits: bool = False
    penalty: NonNegative = 0.5
    min_prob: MinProb = MIN_PROB

    def is_suitable(self, n: int, k: int) -> bool:
        return super().is_suitable(n, k) and k <= _MAX_AUTO_CLASSES

    def fit_from_sums(self, data: SummableRows) -> VectorMap:
        k = data.summary.k
        target = np.tile([1.0, 0.0], (k, 1))  # slope and bias of the identity
        start = target * initial_beta(data, self.min_prob, self.logits)
        penalty_strengths = np.full((k, 2), self.penalty / data.summary.total_weight)
        optimum = fit_log_linear(data.map_rows(prepare_rows), penalty_strengths, target, start, shared_features=False)
        slopes, bias = optimum.theta.reshape(k, 2).T
        if self.penalty == 0:
            bias = bias - bias.mean()
        return VectorMap(slopes.copy(), bias.copy(), self.min_prob, self.logits, optimum.n_passes, optimum.converged)

    def n_parameters(self, k: int) -> int:
        return 2 * k - 1

    def slopes(self, calibration_map: VectorMap) -> Array:
        return calibration_map.weights


class BiasCorrectedTemperatureMap(LogLinearMap):
    """Rows proportional to e^b p^β, the same β for every class."""

    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature", "b": "bias"}

    @property
    def temperature(self) -> float:
        """1/β, which is negative if the ranking is reversed, and infinite if every row is mapped to the same."""
        return math.inf if self.weights[0] == 0 else float(1 / self.weights[0])

    def describe(self) -> str:
        """The temperature and the range of the biases, such as `T = 1.96, biases -0.134 to 0.248`."""
        beta = float(self.weights[0])
        temperature_text = f"T = {1 / beta:.3g}" if beta > 0 else f"β = {beta:.3g}"
        return f"{temperature_text}, biases {self.bias.min():.3g} to {self.bias.max():.3g}"


class BiasCorrectedTemperatureSpec(LogLinearSpec):
    r"""Temperature scaling with a bias for each class, fitted by maximum likelihood.

    Unlike temperature scaling it can correct classes that the model predicts too rarely, as after a shift of the class
    frequencies. It is MCLLO with equal slopes. Logits and the probabilities made of them give the same fit, and the
    choice of a baseline class does not matter. Predicted classes may change.

    Notes
    -----
    .. math:: q_{ik} \propto e^{b_k} p_{ik}^{\beta}, \quad \sum_k b_k = 0

    There is no penalty, so that about ten rows per class are needed.

    Cost: O(nK²) per pass, about 5 passes.

    References
    ----------
    .. [1] Alexandari, Kundaje & Shrikumar (2020).

    Examples
    --------
    >>> P = np.array([[0.5, 0.5]] * 4)
    >>> m = BiasCorrectedTemperatureSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4))
    >>> m.apply(P[:1]).round(6).tolist()
    [[0.25, 0.75]]
    """

    name, map_type = "bias_corrected_temperature", BiasCorrectedTemperatureMap
    min_prob: MinProb = MIN_PROB

    def is_suitable(self, n: int, k: int) -> bool:
        """Whether there are more than two classes; for two it is `llo`."""
        return super().is_suitable(n, k) and k > 2

    def fit_from_sums(self, data: SummableRows) -> BiasCorrectedTemperatureMap:
        k = data.summary.k
        # The parameters are (β, b₁, …, b_K). Each class has the slope β and its own bias.
        tying = np.zeros((k, 2, k + 1))
        tying[:, 0, 0] = 1.0
        tying[np.arange(k), 1, np.arange(1, k + 1)] = 1.0
        target, start = np.zeros(k + 1), np.zeros(k + 1)
        target[0], start[0] = 1.0, initial_beta(data, self.min_prob)
        rows = data.map_rows(partial(prepare_rows, subtract_max=True))
        optimum = fit_log_linear(
            rows, np.zeros(k + 1), target, start, shared_features=False, tying=tying.reshape(2 * k, k + 1)
        )
        beta, bias = optimum.theta[0], optimum.theta[1:]
        return BiasCorrectedTemperatureMap(
            np.full(k, beta), bias - bias.mean(), self.min_prob, n_passes=optimum.n_passes, converged=optimum.converged
        )

    def n_parameters(self, k: int) -> int:
        return k

    def slopes(self, calibration_map: BiasCorrectedTemperatureMap) -> Array:
        return calibration_map.weights[:1]


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
