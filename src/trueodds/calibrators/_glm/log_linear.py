"""The log-linear map softmax(W log p + b), its penalties, and its penalized maximum likelihood fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    LogProbabilities,
    MinProb,
    Probabilities,
    floored_logs,
    min_prob_for_slopes,
    normalized_logs,
    softmax,
)
from trueodds.calibrators._glm.newton import Minimum, Ridge, minimize_lbfgs, minimize_newton, minimize_with_fallback
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import Numbers, PassCount
from trueodds.calibrators.temperature import MAX_BETA, MIN_BETA, TemperatureSpec
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_softmax
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class

MAX_PARAMETER = 1e15  # of a saved weight or bias: larger than any fit gives, and no product overflows
# The diagonal of W, (K,), or W.
Weights = Annotated[Array, Numbers(-MAX_PARAMETER, MAX_PARAMETER, ("k",), or_shape=("k", "k"))]
Biases = Annotated[Array, Numbers(-MAX_PARAMETER, MAX_PARAMETER, ("k",))]
# Parameters from which limited-memory BFGS is faster than Newton's method. Texts on `dirichlet` and `matrix` state 31
# classes, the largest number with at most so many parameters, K (K + 1).
MAX_NEWTON_PARAMETERS = 1000
DIAGONAL_PENALTY = 0.5  # nats: a normal prior with standard deviation 1 around the identity


class LogLinearMap(CalibrationMap):
    """Rows softmax(W log p + b), or of logits instead of log p.

    With one weight per class an exact zero stays zero, and weight 0 makes it p⁰ = 1. For a class with a negative
    weight, `min_prob` limits p as in the fit. A full W mixes the logarithms of all classes, so all are limited.
    """

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"W": "weights", "b": "bias"}  # W (K, K), or its diagonal (K,)
    weights: Weights
    bias: Biases  # with sum 0 unless a penalty determines it
    min_prob: MinProb  # smallest probability inside a logarithm
    logits: bool = False  # whether x holds logits instead of log p
    n_passes: PassCount = 0
    converged: bool = True  # whether a finite optimum was found without a slight ridge

    def apply(self, P: Probabilities) -> Array:
        if self.weights.ndim == 2:
            return softmax(self._finite_scores(P) @ self.weights.T + self.bias)
        x: Any = P if self.logits else normalized_logs(P)
        if (is_limited := min_prob_for_slopes(self.weights, self.min_prob) > 0).any():
            x = np.where(is_limited, self._finite_scores(P), x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return softmax(np.where(self.weights == 0, 0.0, self.weights * x) + self.bias)

    def _finite_scores(self, P: Any) -> Array:
        """The logits or normalized logarithms (n, K), limited below as in the fit."""
        return clip_logits(P, self.min_prob) if self.logits else floored_logs(P, self.min_prob)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        return (SoftmaxTerm(1.0, self.weights, self.bias, self.min_prob, normalized=not self.logits),)

    def describe(self) -> str:
        if self.weights.ndim == 1:
            return f"slopes {format_range(self.weights)}, biases {format_range(self.bias)}"
        offdiagonal = self.weights[~np.eye(len(self.bias), dtype=bool)]
        return (
            f"diagonal {format_range(self.weights.diagonal())}, off-diagonal {format_range(offdiagonal)}, biases"
            f" {format_range(self.bias)}"
        )


class LogLinearSpec(SummedSpec):
    """Base class of the calibrators that fit a log-linear map, with the notes on its parameters."""

    @abstractmethod
    def n_parameters(self, k: int) -> int:
        """The number of parameters that rows of K classes identify."""

    def slopes(self, calibration_map: Any) -> Array:
        """The slopes of the fit that reverse the ranking where they are negative."""
        return np.zeros(0)

    def notes_from_sums(self, calibration_map: Any, data: SummableRows) -> list[Note]:
        return [
            *data.summary.replaced_counts.notes(),
            *not_converged_notes(self, calibration_map),
            *negative_slope_notes(self, self.slopes(calibration_map)),
            *small_sample_notes(self, data.summary.n, self.n_parameters(data.summary.k)),
        ]


def clip_logits(z: Any, min_prob: float) -> Array:
    """Logits (n, K) in which −∞, that of an exact zero, is replaced by the logit of the probability `min_prob`."""
    is_zero = np.isneginf(z)
    if not is_zero.any():
        return z
    row_max = z.max(axis=1, keepdims=True)
    log_total = row_max + np.log(np.exp(z - row_max).sum(axis=1, keepdims=True))
    return np.where(is_zero, log_total + np.log(min_prob), z)


def format_range(x: Array) -> str:
    """The range of the numbers x as text, such as `0.91 to 1.25`, or one number if both ends have the same digits."""
    low, high = f"{x.min():.3g}", f"{x.max():.3g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True, eq=False)
class LogLinearRows:
    """Rows of a log-linear model, in column-major arrays, which the compiled sums need."""

    x: Array  # (n, K) logs of probabilities, or logits; (n, 0) if only biases are fitted
    Y: Array  # (n, K) outcome shares
    w: Array  # (n,) weights above 0
    offset: Array | None = None  # (n, K) added to the log-linear scores


def prepare_rows(data: FitData, *, subtract_max: bool = False) -> LogLinearRows:
    """Convert rows to those of a log-linear model: logarithms of P limited below, or P itself if it holds logits.

    With `subtract_max`, each row's largest value is subtracted, which keeps digits where all slopes are equal.
    """
    x = clip_logits(data.P, data.min_prob) if data.logits else floored_logs(data.P, data.min_prob)
    if subtract_max:
        x = x - x.max(axis=1, keepdims=True)
    Y, w = np.asfortranarray(data.Y, dtype=np.float64), data.w.astype(np.float64, copy=False)
    return LogLinearRows(np.asfortranarray(x), Y, w)


def initial_beta(data: SummableRows, min_prob: float, logits: bool = False) -> float:
    """Start of a fit's slopes: β = 1/T of temperature scaling, from which Newton steps need no shortening.

    It is 1 where no finite temperature is optimal, and 0 where the predictions are not informative.
    """
    rows = data.map_rows(_logits_to_log_probabilities) if logits else data
    beta = TemperatureSpec(min_prob=min_prob).fit_from_sums(rows).beta
    if beta >= MAX_BETA:
        return 1.0
    return beta if beta > MIN_BETA else 0.0


def _logits_to_log_probabilities(data: FitData) -> FitData:
    return replace(data, P=LogProbabilities(log_softmax(data.P)), logits=False)


def fit_log_linear(
    data: SummableRows,
    strength: Array,
    target: Array,
    start: Array,
    *,
    shared_features: bool,
    tying: Array | None = None,
) -> Minimum:
    """Minimize the mean loss per row plus Σ strength (θ − target)², from sums over `LogLinearRows`.

    θ (K, d + 1) holds the weights of each class and its bias. With `shared_features` the features of every class are
    the logarithms of all classes (d = K, a full matrix W), or none (d = 0); without, its own logarithm is the only one
    (d = 1). `tying` (K (d + 1), m) is a matrix T by which θ = Tφ depends on fewer parameters φ (m,), which are then
    fitted instead of θ: first a slope that all classes share, then the K biases, with equal penalties.

    Parameters that the softmax does not identify (a number added to all biases or to a column of W) keep the target's
    value. If no finite optimum exists, a slight ridge around the target is added, and `converged` is False.
    """
    k, total_weight = data.summary.k, data.summary.total_weight
    center, initial = target.reshape(-1), start.reshape(-1)

    def likelihood_of_rows(theta: Array, *, with_hessian: bool = True) -> Callable[[LogLinearRows], Likelihood]:
        return partial(
            log_linear_likelihood, theta=theta, shared_features=shared_features, tying=tying, with_hessian=with_hessian
        )

    def minimize(ridge: float, min_gain: float) -> Minimum:
        """Minimize with this ridge added to the penalty, by Newton's method, or by BFGS for many parameters."""
        strengths = (strength + ridge / total_weight).reshape(-1)
        if len(strengths if tying is None else tying) <= MAX_NEWTON_PARAMETERS:
            penalty = Ridge(_add_identifying_penalty(strengths, k, shared_features, tying), center)
            return minimize_newton(
                lambda theta: data.sum(likelihood_of_rows(theta)), initial, penalty, min_gain=min_gain,
                sums_at_points=lambda points: data.sums(map(likelihood_of_rows, points)),
            )  # fmt: skip
        curvature = (data.sum(partial(_hessian_diagonal, shared_features=shared_features)) / total_weight).reshape(-1)
        if tying is not None:
            curvature = tying.T**2 @ curvature
        return minimize_lbfgs(
            lambda theta: data.sum(likelihood_of_rows(theta, with_hessian=False)),
            initial,
            Ridge(strengths, center),
            curvature,
        )

    return minimize_with_fallback(minimize)


def log_linear_likelihood(
    rows: LogLinearRows, theta: Array, shared_features: bool, tying: Array | None, with_hessian: bool = True
) -> Likelihood:
    """The likelihood of θ (or φ, with `tying`) and its derivatives, summed over rows; see `fit_log_linear`."""
    features = rows.x if shared_features else rows.x[:, :, None]
    return softmax_by_class(features, rows.Y, rows.w, theta, offset=rows.offset, tying=tying, with_hessian=with_hessian)


def _add_identifying_penalty(strengths: Array, k: int, shared_features: bool, tying: Array | None) -> Array:
    """The penalty matrix (m, m) with a penalty on directions that do not change any probability.

    A number added to all biases, or to a column of W, changes nothing. For such columns without a penalty, the squared
    mean over the classes is penalized, which leaves the minimum unchanged and gives every direction a curvature. With
    `tying` these are the biases, all parameters but the first (see `fit_log_linear`); an equal penalty of them has its
    minimum where their mean is that of the target, so the additional one leaves that minimum unchanged, too.
    """
    penalty: Array = np.diag(strengths)
    if tying is not None:
        penalty[1:, 1:] += 1 / k
        return penalty
    columns = strengths.reshape(k, -1)
    for j in range(0 if shared_features else 1, columns.shape[1]):  # weights of single classes are identifiable
        if not columns[:, j].any():
            column_indices = np.arange(k) * columns.shape[1] + j
            penalty[np.ix_(column_indices, column_indices)] += 1 / k
    return penalty


def _hessian_diagonal(rows: LogLinearRows, shared_features: bool) -> Array:
    """The diagonal of the Hessian at the identity, summed over rows, (K, d + 1)."""
    q = softmax(rows.x if rows.offset is None else rows.offset)
    features = rows.x if shared_features else rows.x[:, :, None]
    variances = rows.w[:, None] * q * (1 - q)
    weight_curvatures = (
        variances.T @ features**2 if features.ndim == 2 else np.einsum("nk,nkd->kd", variances, features**2)
    )
    return np.concatenate([weight_curvatures, variances.sum(axis=0)[:, None]], axis=1)


def not_converged_notes(spec: CalibratorSpec, calibration_map: CalibrationMap) -> list[Note]:
    if calibration_map.converged:
        return []
    remedy = "set a penalty" if hasattr(spec, "penalty") else "fit a calibrator with a penalty, such as vector,"
    text = (
        "No finite parameters are optimal: some classes were never observed, or the probabilities separate them"
        f" perfectly. A slight penalty toward the identity was used; {remedy} to choose its strength."
    )
    return [Note("TN532", text)]


def small_sample_notes(spec: CalibratorSpec, n_rows: int, n_parameters: int) -> list[Note]:
    if getattr(spec, "penalty", 0) != 0 or n_rows >= 10 * n_parameters:
        return []
    remedy = "Set a penalty, or use a simpler calibrator."
    if not hasattr(spec, "penalty"):
        remedy = "Use a simpler calibrator, or one with a penalty, such as vector."
    text = (
        f"{n_rows:,} rows for {n_parameters:,} parameters without a penalty: with fewer than ten rows per parameter,"
        f" the fit may be worse than no recalibration. {remedy}"
    )
    return [Note("TN535", text)]


def negative_slope_notes(spec: CalibratorSpec, slopes: Array) -> list[Note]:
    if (slopes >= 0).all():
        return []
    remedy = "check the order of the classes" + ", or set a penalty" * hasattr(spec, "penalty")
    text = (
        f"{int((slopes < 0).sum()):,} of {len(slopes):,} slopes are negative, so that the map reverses the ranking of"
        f" the model: {remedy}."
    )
    return [Note("TN533", text)]


def odir_penalty(k: int, penalty: float, bias_penalty: float) -> Array:
    """ODIR (off-diagonal and intercept regularization) per row, (K, K + 1).

    It is λ/(K(K−1)) for off-diagonal weights and μ/K for biases. Source: Kull et al. (2019).
    """
    return _penalty_matrix(penalty / (k * (k - 1)), 0.0, bias_penalty / k, k)


def ridge_penalty(k: int, penalty: float, bias_penalty: float) -> Array:
    """Ridge penalty per row: λ for weights and μ for biases, (K, K + 1)."""
    return _penalty_matrix(penalty, penalty, bias_penalty, k)


def scaled_penalty(k: int, total_weight: float, factor: float = 1.0, diagonal: float = DIAGONAL_PENALTY) -> Array:
    """Penalty per row that decreases with the total weight, (K, K + 1).

    In nats over all rows it is `factor` times K(K−1) for each weight off the diagonal and times K for each bias, and
    `diagonal` for each weight on the diagonal.
    """
    return _penalty_matrix(factor * k * (k - 1), diagonal, factor * k, k) / total_weight


def _penalty_matrix(cross_weight: float, diagonal: float, bias: float, k: int) -> Array:
    """Penalties of off-diagonal weights, diagonal weights and biases as a matrix (K, K + 1)."""
    return np.concatenate([np.where(np.eye(k, dtype=bool), diagonal, cross_weight), np.full((k, 1), bias)], axis=1)
