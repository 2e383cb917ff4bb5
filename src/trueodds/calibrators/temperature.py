"""Temperature scaling: the map p^(1/T), the maximum likelihood fit of 1/T by Newton's method, and its notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    floored_logs,
    softmax,
)
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import PassCount
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear, softmax_tempered

MIN_BETA, MAX_BETA = 1e-3, 1e3  # the range of β = 1/T: beyond it rows are uniform, or all but 0 and 1
_BETA_TOLERANCE = 1e-11  # relative error of β
_LOCAL_BETA_TOLERANCE = 1e-8  # the same for a loss that may have several minima
_GRADIENT_TOLERANCE_FACTOR = 10  # times the tolerance of β: tolerance of the gradient per row
_MAX_BETA_EVALUATIONS = 200
_MIN_RELATIVE_BRACKET = 1e-15  # relative width of a bracket that contains no other float
_MIN_RELATIVE_CURVATURE = 1e-12  # relative to that at the start: a smaller curvature has underflowed
# Passes before a step that halves too slowly is replaced by bisection without a closed bracket.
_N_EVALUATIONS_BEFORE_BISECTION = 20
_NEWTON_ERROR_FACTOR = 1e3  # error of a Newton step, as a multiple of its square over β: an upper limit in practice
_MAX_SERIES_RATIO = 0.3  # ratio of the terms of a series up to which it is used
_MAX_SERIES_ITERATIONS = 50  # iterations for the zero of the series


def minimize_beta(
    sums: Callable[[float], Likelihood], start: float = 1.0, *, tolerance: float = _BETA_TOLERANCE
) -> tuple[float, int]:
    """The minimizing β of a convex loss, and the number of passes; one call of `sums` is one pass.

    The step is Newton's, or more accurate if `sums` gives higher derivatives. It is taken if it stays inside the
    bracket and, once the minimum is enclosed, is at most half as long as the step before. Otherwise the bracket is
    bisected in log β. An end of the range is tried once, when a step leads beyond it.
    """
    low, high, beta, last_step = MIN_BETA, MAX_BETA, start, math.inf
    untried_ends = {MIN_BETA, MAX_BETA}
    for n_passes in range(1, _MAX_BETA_EVALUATIONS):
        likelihood = sums(beta)
        gradient, curvature = float(likelihood.gradient[0]), float(likelihood.hessian[0, 0])
        untried_ends.discard(beta)
        if gradient == 0:
            if curvature > 0:
                return beta, n_passes
            # Without curvature the rows are either uniform, or so confident that derivatives underflow.
            return (1.0 if beta <= 1 else MAX_BETA), n_passes
        if (beta == MIN_BETA and gradient > 0) or (beta == MAX_BETA and gradient < 0):
            return beta, n_passes
        low, high = (low, beta) if gradient > 0 else (beta, high)
        step, error = _series_step(gradient, curvature, likelihood.higher_derivatives.tolist(), beta)
        max_gradient = _GRADIENT_TOLERANCE_FACTOR * tolerance * likelihood.weight
        converged = error <= tolerance * beta and curvature * error <= max_gradient
        if converged or high - low <= _MIN_RELATIVE_BRACKET * high:
            return min(max(beta + step, low), high), n_passes
        next_beta, is_enclosed = beta + step, low > MIN_BETA and high < MAX_BETA
        if n_passes == 1 and beta in (MIN_BETA, MAX_BETA):  # the start was an end of the range
            next_beta = 1.0
        elif next_beta <= MIN_BETA and MIN_BETA in untried_ends:
            next_beta = MIN_BETA
        elif next_beta >= MAX_BETA and MAX_BETA in untried_ends:
            next_beta = MAX_BETA
        elif not low < next_beta < high or (
            abs(step) > 0.5 * last_step and (is_enclosed or n_passes > _N_EVALUATIONS_BEFORE_BISECTION)
        ):
            next_beta = math.sqrt(low * high)
        last_step, beta = abs(next_beta - beta), next_beta
    return beta, n_passes


def _series_step(
    gradient: float, curvature: float, higher_derivatives: list[float], beta: float
) -> tuple[float, float]:
    """The step to the zero of the gradient, and an estimate of its error.

    With the gradient g, the curvature h and the higher derivatives b, the gradient after a step s is g + h s + b₀ s²/2!
    + b₁ s³/3! + …. Its terms decrease about geometrically, which bounds the remainder. Without higher derivatives, or
    if the terms decrease too slowly, it is the Newton step −g/h.
    """
    if curvature <= 0:
        return -math.copysign(math.inf, gradient), math.inf
    newton_step = -gradient / curvature
    coefficients = [b / curvature / math.factorial(j) for j, b in enumerate(higher_derivatives, 2)]
    if not any(coefficients):
        return newton_step, _NEWTON_ERROR_FACTOR * newton_step * newton_step / beta
    ratio = max((abs(a) ** (1 / j) for j, a in enumerate(coefficients, 1) if a), default=0.0) * abs(newton_step)
    if not ratio < _MAX_SERIES_RATIO:
        return newton_step, math.inf
    step = newton_step
    for _ in range(_MAX_SERIES_ITERATIONS):
        value = step - newton_step + sum(a * step ** (j + 1) for j, a in enumerate(coefficients, 1))
        slope = 1 + sum((j + 1) * a * step**j for j, a in enumerate(coefficients, 1))
        previous, step = step, step - value / slope
        if abs(step - previous) <= 2**-52 * abs(step):  # no float is closer
            break
    return step, abs(newton_step) * ratio ** (len(coefficients) + 1) / (1 - ratio)


class _Bracket(NamedTuple):
    """Values of β between which the derivative of a loss changes sign; low = high if the minimum is known."""

    low: float
    high: float
    beta: float  # the end at which the derivatives are known
    gradient: float  # first derivative of the loss at `beta`
    curvature: float  # second derivative of the loss at `beta`
    n_passes: int  # over the rows, so far


def local_minimum_beta(derivatives: Callable[[float], tuple[float, float]], start: float = 1.0) -> tuple[float, int]:
    """The local minimum reached downhill from the start, of a loss that may have several, and the number of passes.

    `derivatives` gives the first and second derivative of the loss. β is doubled or halved until the derivative changes
    sign, and Newton steps inside that bracket find its zero. If the sign never changes, the end of the range is
    returned.

    >>> local_minimum_beta(lambda b: (b - 3, 1.0))[0]
    3.0
    """
    low, high, beta, gradient, curvature, n_passes = _bracket_minimum(derivatives, start)
    if low == high:
        return beta, n_passes
    while n_passes < _MAX_BETA_EVALUATIONS:
        step = -gradient / curvature if curvature > 0 else math.inf
        if abs(step) <= _LOCAL_BETA_TOLERANCE * beta or high - low <= _MIN_RELATIVE_BRACKET * high:
            return min(max(beta + step, low), high), n_passes
        beta = beta + step if low < beta + step < high else math.sqrt(low * high)
        gradient, curvature = derivatives(beta)
        n_passes += 1
        if gradient == 0:
            break
        low, high = (beta, high) if gradient < 0 else (low, beta)
    return beta, n_passes


def _bracket_minimum(derivatives: Callable[[float], tuple[float, float]], start: float) -> _Bracket:
    """Enclose the local minimum downhill from the start by doubling or halving β."""
    beta, (gradient, curvature) = start, derivatives(start)
    n_passes, start_curvature = 1, abs(curvature)
    if gradient == 0:
        return _Bracket(beta, beta, beta, gradient, curvature, n_passes)
    is_increasing = gradient < 0  # the direction of β in which the loss decreases
    while True:
        next_beta = min(max(beta * (2.0 if is_increasing else 0.5), MIN_BETA), MAX_BETA)
        if next_beta == beta:
            return _Bracket(beta, beta, beta, gradient, curvature, n_passes)
        next_gradient, next_curvature = derivatives(next_beta)
        n_passes += 1
        if next_gradient == 0:
            # Without curvature too, the loss has underflowed and decreases further.
            if not abs(next_curvature) > _MIN_RELATIVE_CURVATURE * start_curvature:
                next_beta = MAX_BETA if is_increasing else MIN_BETA
            return _Bracket(next_beta, next_beta, next_beta, next_gradient, next_curvature, n_passes)
        if (next_gradient < 0) != is_increasing:
            low, high = (beta, next_beta) if is_increasing else (next_beta, beta)
            return _Bracket(low, high, beta, gradient, curvature, n_passes)
        beta, gradient, curvature = next_beta, next_gradient, next_curvature


_MIN_SAMPLE_SIZE = 2**16  # probabilities of a sample: with fewer, starting at its optimum saves no time
InverseTemperature = Annotated[float, Range(MIN_BETA, MAX_BETA)]  # β = 1/T
# Samples whose optimum is the start of the fit to all rows: each takes every `row_step`-th row and determines β up to a
# relative tolerance. From the smallest to the largest: (row_step, tolerance).
_SAMPLES = ((64, 1e-3), (8, 1e-4))


class TemperatureMap(CalibrationMap, eq=True):
    """Rows proportional to p^β with β = 1/T; an exact zero stays zero."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature"}
    beta: InverseTemperature
    n_passes: PassCount = 0

    @property
    def temperature(self) -> float:
        return 1 / self.beta

    @property
    def converged(self) -> bool:  # type: ignore[override]
        return MIN_BETA < self.beta < MAX_BETA

    def apply(self, P: Probabilities) -> Array:
        """Powers divided by their row sums, computed in logarithms so that nothing underflows."""
        if isinstance(P, LogProbabilities):
            return softmax(self.beta * P.values)
        from trueodds.kernels.likelihood import temper_probabilities

        return temper_probabilities(P, self.beta)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        return (SoftmaxTerm(1.0, np.full(k, self.beta), np.zeros(k)),)

    def describe(self) -> str:
        """The temperature, such as `T = 1.60`."""
        return format_temperature(self.beta)


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

    name, map_type = "temperature", TemperatureMap
    keeps_argmax = True
    accepts_raw_arrays = True
    min_prob: MinProb = MIN_PROB

    def fit_from_sums(self, data: SummableRows) -> TemperatureMap:
        """Fit the temperature; if there are many rows, first to samples of them."""

        def likelihood_at_beta(beta: float, row_step: int = 1) -> Likelihood:
            likelihood: Likelihood = data.sum(
                partial(_likelihood_of_rows, beta=beta, min_prob=self.min_prob, row_step=row_step)
            )
            return likelihood

        start = 1.0
        for row_step, tolerance in _SAMPLES:
            if data.n_probabilities >= row_step * _MIN_SAMPLE_SIZE:
                start, _ = minimize_beta(partial(likelihood_at_beta, row_step=row_step), start, tolerance=tolerance)
        return TemperatureMap(*minimize_beta(likelihood_at_beta, start))

    def notes_from_sums(self, calibration_map: TemperatureMap, data: SummableRows) -> list[Note]:
        return data.summary.replaced_counts.notes() + boundary_notes(calibration_map.beta)


def _likelihood_of_rows(data: FitData, beta: float, min_prob: float, row_step: int) -> Likelihood:
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
