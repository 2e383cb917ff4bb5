"""Ensemble temperature scaling: a mixture of tempered, unchanged and uniform probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks, one_hot_shares
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    replacement_notes,
    to_logs,
    to_probabilities,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.saved_parameters import Numbers, PassCount, invalid_value_error
from trueodds.calibrators.temperature import (
    MAX_BETA,
    MIN_BETA,
    InverseTemperature,
    TemperatureMap,
    TemperatureSpec,
    boundary_notes,
    format_temperature,
    local_minimum_beta,
)
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

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


class EnsembleTemperatureMap(CalibrationMap, eq=True):
    """The mixture v₁ p^β/Σp^β + v₂ p + v₃/K of tempered, unchanged and uniform probabilities."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature", "w": "weights"}
    beta: InverseTemperature  # of the tempered component
    shares: Annotated[MixtureShares, Numbers(0, 1, (3,))]
    n_passes: PassCount = 0  # of the fit of β

    @property
    def temperature(self) -> float:
        return 1 / self.beta

    @property
    def weights(self) -> Array:
        """The shares of the tempered, the unchanged and the uniform component, (3,)."""
        return np.array(self.shares)

    @property
    def converged(self) -> bool:  # type: ignore[override]
        return MIN_BETA < self.beta < MAX_BETA

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
            fit_notes.append(
                Note(
                    "TN511",
                    f"No mixture is better than the uniform distribution; a weight of {_MIN_UNCHANGED_WEIGHT:g} stays"
                    " on the predictions, so that the order within each row is kept.",
                )
            )
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
