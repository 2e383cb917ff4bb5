"""Bias-corrected temperature scaling: one temperature and a bias for each class."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueodds.calibrators._glm.fit_data import SummableRows
from trueodds.calibrators._glm.log_linear import LogLinearMap, LogLinearSpec, fit_log_linear, initial_beta, prepare_rows
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb
from trueodds.core.typing import Array


class BiasCorrectedTemperatureMap(LogLinearMap):
    """Rows proportional to e^b p^β, the same β for every class."""

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
            np.full(k, beta), bias - bias.mean(), self.min_prob, False, optimum.n_passes, optimum.converged
        )

    def n_parameters(self, k: int) -> int:
        return k

    def slopes(self, calibration_map: BiasCorrectedTemperatureMap) -> Array:
        return calibration_map.weights[:1]
