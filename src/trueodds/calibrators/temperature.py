"""Temperature scaling, the map p^(1/T) fitted by maximum likelihood, and its mixture with unchanged probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows, apply_in_blocks, iterate_blocks, one_hot_shares
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    floored_logs,
    replacement_notes,
    softmax,
    to_logs,
    to_probabilities,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import Numbers, PassCount, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Range
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


class TemperedMap(CalibrationMap):
    """Base class of the maps that begin with a temperature T = 1/β."""

    takes_logs = True
    beta: InverseTemperature

    @property
    def temperature(self) -> float:
        return 1 / self.beta

    @property
    def converged(self) -> bool:  # type: ignore[override]
        return MIN_BETA < self.beta < MAX_BETA


class TemperatureMap(TemperedMap, eq=True):
    """Rows proportional to p^β with β = 1/T; an exact zero stays zero."""

    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature"}
    n_passes: PassCount = 0

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
        text = (
            "All or nearly all predicted classes are correct: no finite temperature is optimal. T stopped at"
            f" {1 / MAX_BETA:g}, which makes almost every probability 0 or 1."
        )
        return [Note("TN503", text)]
    if beta <= MIN_BETA:
        text = (
            "The predictions are no more informative than chance, or their ranking is reversed: T stopped at"
            f" {1 / MIN_BETA:g}, which makes every row uniform."
        )
        return [Note("TN504", text)]
    return []


_LOSS_NAMES = ("log", "brier")
# Weight of the predicted probabilities where the uniform alone is optimal, so that predicted classes stay.
_MIN_UNCHANGED_WEIGHT = 1e-6

# Of the search for the mixture weights:
_OPTIMALITY_TOLERANCE = 1e-10  # relative gain from which another component is added
_MAX_NEWTON_STEPS = 100  # for the weights of one subset of the components
_GRADIENT_TOLERANCE = 1e-13  # largest remaining gradient, relative to the total weight
_BOUNDARY_FRACTION = 0.99  # part of the way to the boundary of the simplex that a step may go
_MIN_STEP_FRACTION = 1e-12  # fraction of a step below which no increase is expected
_VALUE_ROUNDING = 1e-15  # relative rounding error of the log-likelihood
_MIN_WEIGHT_CHANGE = 1e-16  # largest change of a weight that ends the search


class MixtureShares(NamedTuple):
    """Weights of the components of the mixture, in the order in which the fits stack them; their sum is 1."""

    tempered: float  # of the tempered row
    unchanged: float  # of the predicted row
    uniform: float  # of the uniform distribution


class EnsembleTemperatureMap(TemperedMap, eq=True):
    """The mixture v₁ p^β/Σp^β + v₂ p + v₃/K of tempered, unchanged and uniform probabilities."""

    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature", "w": "weights"}
    shares: Annotated[MixtureShares, Numbers(0, 1, (3,))]
    n_passes: PassCount = 0  # of the fit of β

    @property
    def weights(self) -> Array:
        """The shares of the tempered, the unchanged and the uniform component, (3,)."""
        return np.array(self.shares)

    def apply(self, P: Probabilities) -> Array:
        return apply_in_blocks(self._mix_rows, P)

    def _mix_rows(self, P: Probabilities) -> Array:
        tempered, unchanged, uniform = self.shares
        Q, p = TemperatureMap(self.beta).apply(P), to_probabilities(P)
        Q *= tempered
        Q += p * (unchanged / p.sum(axis=1, keepdims=True, dtype=np.float64))
        Q += uniform / P.shape[1]
        return Q

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        """softmax(β log p), softmax(log p), softmax(0)."""
        powers = (self.beta, 1.0, 0.0)
        return tuple(SoftmaxTerm(v, np.full(k, b), np.zeros(k)) for v, b in zip(self.shares, powers, strict=True))

    def describe(self) -> str:
        """The shares, such as `a mixture: 63 % temperature scaling (T = 3.02), 24 % the original, 13 % uniform`."""
        names = (f"temperature scaling ({format_temperature(self.beta)})", "the original", "uniform")
        percentages = [round(100 * share) for share in self.shares]
        order = sorted(range(len(names)), key=lambda i: -percentages[i])
        return f"a mixture: {', '.join(f'{percentages[i]} % {names[i]}' for i in order)}"

    def check_saved(self, k: int) -> None:
        if abs(sum(self.shares) - 1) > 1e-9:
            raise invalid_value_error("shares", "numbers that sum to 1", list(self.shares))


class EnsembleTemperatureSpec(CalibratorSpec):
    r"""Ensemble temperature scaling: a mixture of the tempered row, the unchanged row and the uniform distribution.

    The uniform component bounds the loss of very improbable outcomes. Temperature scaling alone can reduce their loss
    only by making every row less confident. For a model that is only overconfident the mixture weights are (1, 0, 0).
    The order within each row is kept, and with it every predicted class.

    Parameters
    ----------
    loss : {"log", "brier"}, default="log"
        Loss that both β and the mixture weights minimize. With `"log"` both problems are convex. With `"brier"`, β is
        the local minimum reached downhill from the maximum likelihood estimate, and the weights are exact.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit of β by log loss takes log(max(p, `min_prob`)). Where
        log-probabilities are known (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: q_i = v_1\,\frac{p_i^\beta}{\sum_k p_{ik}^\beta} + v_2\,p_i + \frac{v_3}{K}, \quad
        v \ge 0, \; v_1 + v_2 + v_3 = 1

    β = 1/T is fitted first, then the weights v given β. Where several weight vectors are optimal, the one with the
    fewest components is taken.

    Cost: O(nK) per pass, that of `temperature` and one more pass; with `"brier"` about 10 passes.

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020). Their code uses the Brier score throughout.

    Examples
    --------
    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> EnsembleTemperatureSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4)).describe()
    'a mixture: 100 % temperature scaling (T = 2.00), 0 % the original, 0 % uniform'
    """

    name, map_type = "ensemble_temperature", EnsembleTemperatureMap
    keeps_argmax = True
    takes_logs = True
    accepts_raw_arrays = True
    loss: Annotated[str, OneOf(_LOSS_NAMES)] = "log"
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EnsembleTemperatureMap:
        temperature_map = TemperatureSpec(self.min_prob).fit(P, Y, w)
        beta, n_passes = temperature_map.beta, temperature_map.n_passes
        if self.loss == "brier":
            beta, n_evaluations = local_minimum_beta(partial(_brier_derivatives, P, Y, w), beta)
            n_passes += n_evaluations
        fit_weights = _fit_weights_by_likelihood if self.loss == "log" else _fit_weights_by_brier
        shares = MixtureShares(*fit_weights(P, Y, w, beta).tolist())
        if shares.uniform > 1 - _MIN_UNCHANGED_WEIGHT:
            shares = MixtureShares(0.0, _MIN_UNCHANGED_WEIGHT, 1 - _MIN_UNCHANGED_WEIGHT)
        return EnsembleTemperatureMap(beta, shares, n_passes)

    def notes(self, calibration_map: EnsembleTemperatureMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob) if self.loss == "log" else []
        if calibration_map.shares.uniform == 1 - _MIN_UNCHANGED_WEIGHT:
            text = (
                f"No mixture is better than the uniform distribution; a weight of {_MIN_UNCHANGED_WEIGHT:g} stays on"
                " the predictions, so that the order within each row is kept."
            )
            fit_notes.append(Note("TN511", text))
        return fit_notes + (boundary_notes(calibration_map.beta) if calibration_map.shares.tempered > 0 else [])


def _fit_weights_by_likelihood(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """Mixture weights (3,) of maximum likelihood: the components' probabilities of each observed outcome are mixed."""
    likelihoods, outcome_weights = [], []
    for p, y, weights in iterate_blocks(P, Y, w):
        # One entry per row with a label, or per class with a positive share.
        rows, classes = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)
        tempered = TemperatureMap(beta).apply(p)[rows, classes]
        predicted = to_probabilities(p)
        unchanged = predicted[rows, classes] / predicted.sum(axis=1)[rows]
        likelihoods.append(np.stack([tempered, unchanged, np.full(len(rows), 1 / P.shape[1])], axis=1))
        outcome_weights.append(weights if y.ndim == 1 else weights[rows] * y[rows, classes])
    return maximum_likelihood_weights(np.concatenate(likelihoods), np.concatenate(outcome_weights))


def _fit_weights_by_brier(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """Mixture weights (3,) of least Brier score, which is quadratic in them."""
    k = P.shape[1]
    # Sums of products of each two components, of which the lower triangle is computed, and of each with the outcomes.
    G, c = np.zeros((3, 3)), np.zeros(3)
    for p, y, weights in iterate_blocks(P, Y, w):
        outcomes = one_hot_shares(y, k)
        predicted = to_probabilities(p)
        unchanged = predicted / predicted.sum(axis=1, keepdims=True)
        components = [TemperatureMap(beta).apply(p), unchanged, np.full(p.shape, 1 / k)]
        for i, component in enumerate(components):
            c[i] += weighted_sum(weights, (component * outcomes).sum(axis=1))
            for j, other_component in enumerate(components[: i + 1]):
                G[i, j] += weighted_sum(weights, (component * other_component).sum(axis=1))
    return least_squares_weights(np.tril(G) + np.tril(G, -1).T, c)


def _brier_derivatives(P: Probabilities, Y: Array, w: Array, beta: float) -> tuple[float, float]:
    """First and second derivative of the summed Brier score with respect to β."""
    first = second = 0.0
    for p, y, weights in iterate_blocks(P, Y, w):
        q = TemperatureMap(beta).apply(p)
        logs = to_logs(p)
        logs = np.where(np.isneginf(logs), 0.0, logs)  # of a zero, q is 0 for every β, so that its log does not matter
        residual = q - one_hot_shares(y, p.shape[1])
        centered_logs = logs - (q * logs).sum(axis=1, keepdims=True)
        slope = q * centered_logs
        curvature = slope * centered_logs - q * (slope * centered_logs).sum(axis=1, keepdims=True)
        first += 2 * float(weighted_sum(weights, (residual * slope).sum(axis=1)))
        second += 2 * float(weighted_sum(weights, (slope * slope + residual * curvature).sum(axis=1)))
    return first, second


def maximum_likelihood_weights(A: Array, w: Array) -> Array:
    r"""Mixture weights v (m,) ≥ 0 with sum 1 that maximize :math:`\sum_r w_r \log(A_r v)`, A (r, m) ≥ 0, w (r,).

    The likelihood is concave: v is optimal if Σ w a/(A v) ≤ Σ w for the column a of every component. Components are
    tried alone, then in pairs, and so on; of several optima the first one with the fewest components is taken.

    >>> maximum_likelihood_weights(np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]]), np.ones(3)).round(6).tolist()
    [0.416667, 0.583333]
    """
    has_weight = w > 0
    A, w = A[has_weight], w[has_weight]
    total_weight = float(w.sum())
    smallest_gain, optimal = np.inf, np.full(A.shape[1], 1 / A.shape[1])
    for subset in _nonempty_subsets(A.shape[1]):
        shares = _newton_on_simplex(A[:, subset], w)
        q = A[:, subset] @ shares
        if not (q > 0).all():
            continue
        with np.errstate(over="ignore"):  # an overflow means that these components are not optimal
            possible_gain = float(weighted_sum(w, A / q[:, None]).max(initial=total_weight)) / total_weight - 1
        if possible_gain < smallest_gain:
            smallest_gain, optimal = possible_gain, _expand_to_all_components(shares, subset, A.shape[1])
        if possible_gain <= _OPTIMALITY_TOLERANCE:
            break
    return optimal


def least_squares_weights(G: Array, c: Array) -> Array:
    r"""Mixture weights v (m,) ≥ 0 with sum 1 that minimize :math:`v^\top G v - 2c^\top v`, G (m, m), c (m,).

    G is positive semidefinite. As in `maximum_likelihood_weights`, subsets of the components are tried, from the
    smallest ones; those with a negative solution of the equality-constrained problem are skipped.

    >>> least_squares_weights(np.eye(2), np.array([0.7, 0.5])).round(6).tolist()
    [0.6, 0.4]
    """
    scale = max(float(np.abs(G).max()), float(np.abs(c).max()))
    smallest_gain, optimal = np.inf, np.full(len(c), 1 / len(c))
    for subset in _nonempty_subsets(len(c)):
        m = len(subset)
        kkt_matrix = np.ones((m + 1, m + 1))
        kkt_matrix[:m, :m], kkt_matrix[m, m] = G[np.ix_(subset, subset)], 0.0
        shares = np.linalg.lstsq(kkt_matrix, np.append(c[subset], 1.0), rcond=1e-14)[0][:m]
        if (shares < 0).any():
            continue
        v = _expand_to_all_components(shares / shares.sum(), subset, len(c))
        gradient = G @ v - c
        possible_gain = (float(gradient[subset].min()) - float(gradient.min())) / scale if scale else 0.0
        if possible_gain < smallest_gain:
            smallest_gain, optimal = possible_gain, v
        if possible_gain <= _OPTIMALITY_TOLERANCE:
            break
    return optimal


def _nonempty_subsets(m: int) -> list[list[int]]:
    """The nonempty subsets of the components 0 to m − 1, from the smallest to the largest."""
    return [list(subset) for size in range(1, m + 1) for subset in combinations(range(m), size)]


def _expand_to_all_components(shares: Array, subset: list[int], m: int) -> Array:
    """The weights (m,) of all components from those of the components in `subset`; the others are 0."""
    v = np.zeros(m)
    v[subset] = shares
    return v


def _newton_on_simplex(A: Array, w: Array) -> Array:
    """Weights (m,) of maximum likelihood for A (r, m) and w (r,), by Newton's method where every weight is positive."""
    m = A.shape[1]
    v = np.full(m, 1 / m)
    directions = np.eye(m)[:, :-1] - np.eye(m)[:, -1:]  # directions in which the sum stays 1
    if m == 1:
        return v
    differences = A @ directions  # (r, m − 1) change of q along each direction
    q = A @ v
    if not (q > 0).all():
        return v
    value = float(weighted_sum(w, np.log(q)))
    for _ in range(_MAX_NEWTON_STEPS):
        # Ratios, because the square of a tiny q underflows.
        ratios = differences / q[:, None]
        gradient = weighted_sum(w, ratios)
        if np.abs(gradient).max() <= _GRADIENT_TOLERANCE * w.sum():
            break
        hessian = np.array([weighted_sum(w * ratio, ratios) for ratio in ratios.T])
        step = directions @ np.linalg.lstsq(hessian, gradient, rcond=1e-15)[0]
        is_decreasing = step < 0
        distance_to_boundary = float((v[is_decreasing] / -step[is_decreasing]).min(initial=np.inf))
        length = min(1.0, _BOUNDARY_FRACTION * distance_to_boundary)
        while length > _MIN_STEP_FRACTION:
            candidate = v + length * step
            candidate_value = float(weighted_sum(w, np.log(A @ candidate)))
            if candidate_value >= value - _VALUE_ROUNDING * abs(value):
                break
            length /= 2
        else:
            break
        if np.abs(candidate - v).max() <= _MIN_WEIGHT_CHANGE:
            break
        v, q, value = candidate / candidate.sum(), A @ candidate, candidate_value
    return v
