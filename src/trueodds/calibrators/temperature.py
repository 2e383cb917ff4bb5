"""Temperature scaling: the map p^(1/T), its maximum likelihood fit, and its notes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData
from trueodds.calibrators._glm.inverse_temperature import MAX_BETA, MIN_BETA, minimize_beta
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    floored_logs,
    softmax,
)
from trueodds.calibrators._glm.row_sums import SummableRows
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import PassCount
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear, softmax_tempered

_MIN_SAMPLE_SIZE = 2**16  # probabilities of a sample: with fewer, starting at its optimum saves no time
InverseTemperature = Annotated[float, Range(MIN_BETA, MAX_BETA)]  # β = 1/T
# Samples whose optimum is the start of the fit to all rows: each takes every `row_step`-th row and determines β up to a
# relative tolerance. From the smallest to the largest: (row_step, tolerance).
_SAMPLES = ((64, 1e-3), (8, 1e-4))


@dataclass(frozen=True)
class TemperatureMap(CalibrationMap):
    """Rows proportional to p^β with β = 1/T; an exact zero stays zero."""

    name: ClassVar[str] = "temperature"
    takes_logs: ClassVar[bool] = True
    beta: InverseTemperature
    n_passes: PassCount = 0

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether β lies inside its range."""
        return MIN_BETA < self.beta < MAX_BETA

    def apply(self, P: Probabilities) -> Array:
        """Powers divided by their row sums, computed in logarithms so that nothing underflows."""
        if isinstance(P, LogProbabilities):
            return softmax(self.beta * P.values)
        from trueodds.kernels.softmax_log_loss import temper_probabilities

        return temper_probabilities(P, self.beta)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        """softmax(β log p)."""
        return (SoftmaxTerm(1.0, np.full(k, self.beta), np.zeros(k)),)

    def describe(self) -> str:
        """The temperature, such as `T = 1.60`."""
        return format_temperature(self.beta)


@dataclass(frozen=True)
class TemperatureSpec(SummedSpec):
    r"""Temperature scaling: one temperature T > 0 for all rows and classes, fitted by maximum likelihood.

    T > 1 means that the model is overconfident, T < 1 that it is underconfident. The order of the probabilities within
    each row is kept, and with it every predicted class (up to rounding). Logits and the probabilities made of them give
    the same temperature.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. The fitted map has no such limit.

    Notes
    -----
    .. math:: q_{ik} \propto p_{ik}^{\beta}, \quad
        \beta = \arg\min_\beta \sum_i w_i\,[\mathrm{lse}(\beta \log p_i) - \beta\, y_i\cdot\log p_i], \quad T = 1/\beta

    The loss is convex in β. Newton's method inside a bracket, on a series of six derivatives where it holds, always
    converges. With many rows the search starts from the optimum of a sample; the result is that of all rows.

    Cost: O(nK) per pass, 4 passes over few rows and one or two over many.

    References
    ----------
    .. [1] Guo et al. (2017).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> TemperatureSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4)).describe()
    'T = 2.00'
    """

    name: ClassVar[str] = "temperature"
    keeps_argmax: ClassVar[bool] = True
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = TemperatureMap
    accepts_raw_arrays: ClassVar[bool] = True
    min_prob: MinProb = MIN_PROB

    def fit_from_sums(self, data: SummableRows) -> TemperatureMap:
        """Fit the temperature; if there are many rows, first to samples of them."""

        def likelihood_at_beta(beta: float, row_step: int = 1) -> Likelihood:
            """Likelihood of β and its derivatives over every `row_step`-th row, in one pass."""
            likelihood: Likelihood = data.sum(
                partial(_likelihood_of_rows, beta=beta, min_prob=self.min_prob, row_step=row_step)
            )
            return likelihood

        start = 1.0
        for row_step, tolerance in _SAMPLES:
            if data.n_probabilities >= row_step * _MIN_SAMPLE_SIZE:
                start, _ = minimize_beta(partial(likelihood_at_beta, row_step=row_step), start, tolerance=tolerance)
        return TemperatureMap(*minimize_beta(likelihood_at_beta, start))

    def notes_from_sums(self, calibration_map: CalibrationMap, data: SummableRows) -> list[Note]:
        """Notes on probabilities replaced by `min_prob`, and on a β at an end of its range."""
        assert isinstance(calibration_map, TemperatureMap)
        return data.summary.replaced_counts.notes() + boundary_notes(calibration_map.beta)


def _likelihood_of_rows(data: FitData, beta: float, min_prob: float, row_step: int) -> Likelihood:
    """The likelihood of β and its derivatives, summed over every `row_step`-th of these rows."""
    if isinstance(data.P, LogProbabilities):
        logs = floored_logs(data.P[::row_step], min_prob)
        return softmax_linear(logs[:, :, None], data.Y[::row_step], data.w[::row_step], np.array([beta]))
    return softmax_tempered(data.P, data.Y, data.w, beta, min_prob, row_step=row_step)


def format_temperature(beta: float) -> str:
    """The temperature T = 1/β as text, such as `T = 1.60`, and that it stopped at an end of its range.

    >>> format_temperature(0.5), format_temperature(MAX_BETA)
    ('T = 2.00', 'T = 0.001, its lower bound')
    """
    temperature = 1 / beta
    if temperature < 0.1:
        return f"T = {temperature:.3g}{', its lower bound' if beta >= MAX_BETA else ''}"
    bound = ", its upper bound" if beta <= MIN_BETA else ""
    return f"T = {temperature:.2f}" if temperature < 100 else f"T = {temperature:,.0f}{bound}"


def boundary_notes(beta: float) -> list[Note]:
    """Notes on a β that stopped at an end of its range."""
    if beta >= MAX_BETA:
        return [
            Note(
                "TN503",
                "All or nearly all predicted classes are correct: no finite temperature is optimal. T stopped at"
                f" {1 / MAX_BETA:g}, which makes almost every probability 0 or 1.",
            )
        ]
    if beta <= MIN_BETA:
        return [
            Note(
                "TN504",
                "The predictions are no more informative than chance, or their ranking is reversed: T stopped at"
                f" {1 / MIN_BETA:g}, which makes every row uniform.",
            )
        ]
    return []
