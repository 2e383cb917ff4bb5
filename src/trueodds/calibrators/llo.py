"""Linear in log odds (LLO) recalibration of two classes, and boldness-recalibration, which chooses another such map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from trueodds.calibrators._glm.fit_data import FitData, InMemory, SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    log_ratio,
    logs_for_slopes,
    probability_pair,
    replacement_notes,
    to_logs,
)
from trueodds.calibrators._glm.logistic_regression import (
    Coefficient,
    LikelihoodSurface,
    LogisticFit,
    LogisticRows,
    ScoreCells,
    curve_notes,
    fit_finite_from_sums,
    fit_logistic,
    group_by_score,
    intercept_and_score,
    logistic_likelihood,
    smoothed_targets,
    unit_vectors,
)
from trueodds.calibrators._glm.parameter_covariance import ScoreVectors
from trueodds.calibrators._glm.parameter_uncertainty import (
    MAX_EXPONENT,
    FitEvidence,
    ParameterTable,
    ParameterUncertainty,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Key, PassCount, ZeroOrOne, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import Probability
from trueodds.core.typing import Array

IDENTITY_PARAMETERS = np.array([0.0, 1.0])  # τ and γ of the identity


class LloMap(CalibrationMap, eq=True):
    """The map τ + γ · log odds; with γ > 0 an exact zero stays zero, with γ < 0 `min_prob` replaces it."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"delta": "delta", "gamma": "gamma"}
    tau: Coefficient  # shift of the log odds, log δ
    gamma: Coefficient  # slope of the log odds
    n_passes: PassCount = 0
    converged: ZeroOrOne = True  # whether the optimum is finite without smoothed targets
    # Smallest probability of the fit; used if γ < 0.
    min_prob: Annotated[MinProb, OMIT_DEFAULT] = field(default=MIN_PROB, compare=False)
    # Of τ and γ, by the rows of the fit.
    uncertainty: Annotated[ParameterUncertainty | None, Key("certainty"), OMIT_DEFAULT] = field(
        default=None, compare=False
    )

    def __post_init__(self) -> None:
        if not self.gamma < 0:  # then `min_prob` is not used, nor saved
            object.__setattr__(self, "min_prob", MIN_PROB)

    @property
    def delta(self) -> float:
        """exp τ: the factor of the odds where the predicted odds are even."""
        return math.exp(min(self.tau, MAX_EXPONENT))

    @property
    def nonincreasing(self) -> bool:
        return self.gamma <= 0

    def apply(self, P: Probabilities) -> Array:
        """Both probabilities computed separately, so that small ones keep their digits."""
        logs = logs_for_slopes(to_logs(P), self.gamma, self.min_prob)
        eta = np.full(len(P), self.tau)
        if self.gamma != 0:
            eta += self.gamma * (logs[:, 1] - logs[:, 0])
        return probability_pair(eta)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        """Powers γ, with the shift on the second class."""
        return (SoftmaxTerm(1.0, np.full(2, self.gamma), np.array([0.0, self.tau]), self.min_prob),)

    def describe(self) -> str:
        """The parameters, such as `δ = 0.64, γ = 0.57`."""
        return f"δ = {format_number(self.delta)}, γ = {format_number(self.gamma)}"

    def named_intervals(self) -> dict[str, Array]:
        """Those of δ and γ, as `table` shows them."""
        if self.name != LloMap.name or self.uncertainty is None or self.uncertainty.covariance is None:
            return {}
        delta, gamma = self._parameter_table((0, 1)).intervals()
        return {"delta": delta[0], "gamma": gamma[0]}

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """δ and γ with standard errors, their meaning in words, and the test against the identity."""
        if self.name != LloMap.name:  # a subclass, whose method has no standard errors
            return []
        return self._parameter_table(classes).lines()

    def _parameter_table(self, classes: tuple[Any, ...]) -> ParameterTable:
        tau, gamma = np.array([self.tau]), np.array([self.gamma])
        return ParameterTable(classes, baseline=0, tau=tau, gamma=gamma, uncertainty=self.uncertainty, method=self.name)

    def check_saved(self, k: int) -> None:
        if k != 2:
            raise invalid_value_error("classes", "two names", k)


class LloSpec(SummedSpec):
    r"""Linear in log odds (LLO): a shift τ = log δ and a slope γ of the log odds, fitted by maximum likelihood.

    For two classes. δ > 1 means that the event is underpredicted. γ < 1 means that the model is overconfident, γ > 1
    that it is underconfident, and γ < 0 that its ranking is reversed. δ = γ = 1 leaves the probabilities unchanged.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. The fitted map has no such limit.

    See Also
    --------
    beta : A curve with one more parameter.
    mcllo : The same model for several classes.

    Notes
    -----
    .. math:: \frac{q}{1 - q} = \delta \Big(\frac{p}{1 - p}\Big)^{\gamma}, \qquad
        \min_{\tau, \gamma} \sum_i w_i\,[\log(1 + e^{\eta_i}) - y_i \eta_i], \quad
        \eta = \tau + \gamma \log\tfrac{p}{1-p}

    The loss is convex in τ, though not in δ. If the scores separate the outcomes, no finite τ and γ are optimal: the
    targets are then smoothed by one added outcome of either kind, and `converged` is False. A straight line in the log
    odds cannot correct any other curvature.

    `summary()` of the fit prints confidence intervals of δ and γ, the likelihood ratio against the identity and the
    posterior probability of calibration. They are computed from the rows of the fit, as for `mcllo`, of which this is
    the case of two classes. The test `cox` tests the same model on other rows.

    Cost: O(n) per pass, about 7 passes.

    References
    ----------
    .. [1] Turner et al. (2014).
    .. [2] Guthrie & Franck (2024).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> LloSpec().fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8)).describe()
    'δ = 1, γ = 0.5'
    """

    name, map_type = "llo", LloMap
    two_classes = True
    min_prob: MinProb = MIN_PROB

    def fit_from_sums(self, data: SummableRows) -> LloMap:
        rows = data.map_rows(_logistic_rows)
        optimum = fit_finite_from_sums(rows, IDENTITY_PARAMETERS)
        uncertainty = _estimate_uncertainty(optimum, rows) if optimum.converged else ParameterUncertainty("infinite")
        tau, gamma = optimum.theta.tolist()
        return LloMap(tau, gamma, optimum.n_passes, optimum.converged, self.min_prob, uncertainty)

    def notes_from_sums(self, calibration_map: LloMap, data: SummableRows) -> list[Note]:
        return data.summary.replaced_counts.notes() + curve_notes([calibration_map])


def _logistic_rows(data: FitData) -> LogisticRows:
    """The rows of a logistic model of the log odds of the second class."""
    return LogisticRows(intercept_and_score(log_ratio(data.P, data.min_prob)), data.Y[:, 1], data.w)


@dataclass(frozen=True, slots=True, eq=False)
class _EvidenceSums:
    """Sums at the fitted τ and γ from which their uncertainty is computed; sums of batches add up."""

    hessian: Array  # (2, 2) of (γ, τ′), where τ′ = τ + γ mean is the shift at the mean log odds
    squared_weight_hessian: Array  # (2, 2) the same with squared weights; zeros where it is not needed
    identity_loss: float  # minus the log-likelihood of the identity; 0 where it is not needed
    min_log_odds: float
    max_log_odds: float

    @classmethod
    def from_rows(cls, rows: LogisticRows, theta: Array, mean: float, has_weights: bool) -> _EvidenceSums:
        """The sums over these rows at θ = (τ, γ), with log odds centered at `mean`.

        With `has_weights` there is no likelihood ratio, so the loss of the identity is not needed.
        """
        x = rows.X[:, 1]
        centered_X, centered_theta = intercept_and_score(x - mean), np.array([theta[0] + theta[1] * mean, theta[1]])

        def weighted_hessian(w: Array) -> Array:
            """Hessian of (γ, τ′) with these weights, (2, 2)."""
            return logistic_likelihood(centered_X, rows.y, w, centered_theta).hessian[::-1, ::-1]

        squared_weight_hessian = weighted_hessian(rows.w**2) if has_weights else np.zeros((2, 2))
        identity_loss = 0.0 if has_weights else logistic_likelihood(rows.X, rows.y, rows.w, IDENTITY_PARAMETERS).value
        return cls(weighted_hessian(rows.w), squared_weight_hessian, identity_loss, float(x.min()), float(x.max()))

    def __add__(self, other: _EvidenceSums) -> _EvidenceSums:
        return _EvidenceSums(
            self.hessian + other.hessian,
            self.squared_weight_hessian + other.squared_weight_hessian,
            self.identity_loss + other.identity_loss,
            min(self.min_log_odds, other.min_log_odds),
            max(self.max_log_odds, other.max_log_odds),
        )


def _estimate_uncertainty(optimum: LogisticFit, data: SummableRows) -> ParameterUncertainty:
    """Uncertainty of shift and slope at the optimum, from one more pass over the rows of `_logistic_rows`."""
    assert optimum.means is not None
    mean, summary = float(optimum.means[1]), data.summary
    has_weights = summary.std_error_method == "weights"
    sums: _EvidenceSums = data.sum(
        partial(_EvidenceSums.from_rows, theta=optimum.theta, mean=mean, has_weights=has_weights)
    )

    def score_vectors() -> ScoreVectors:
        (tau, gamma), rows = optimum.theta, data.rows
        x = rows.X[:, 1]
        return ScoreVectors((x - mean)[:, None], expit(tau + gamma * x)[:, None], rows.y[:, None], rows.w)

    return FitEvidence(
        summary=summary,
        hessian=sums.hessian,
        means=np.array([mean]),
        both_signs=np.array([sums.min_log_odds <= 0 <= sums.max_log_odds]),
        penalty=0.0,
        scores=None if data.rows is None else score_vectors,
        squared_weight_hessian=lambda: sums.squared_weight_hessian,
        likelihood_ratio=lambda: max(2 * (sums.identity_loss - optimum.value), 0.0),
        rank=optimum.rank,
    ).uncertainty()


_LOG_LIKELIHOOD_ROUNDING = 1e-12  # rounding error in nats
_N_ANGLES = 64  # of points on the contour in each of three increasingly fine searches
_TIE_TOLERANCE = 1e-9  # relative difference up to which two standard deviations are tied
_MAX_NEWTON_STEPS = 20
_MAX_RELATIVE_MOVE = 0.1  # largest move from the start, relative to 1 + |θ|; beyond it Newton's method has diverged
_STEP_TOLERANCE = 1e-10  # relative to 1 + |θ|: a smaller step ends the search


class BoldnessMap(LloMap):
    """The boldest shift and slope that keep the required posterior probability of calibration."""


class BoldnessSpec(CalibratorSpec):
    r"""Boldness-recalibration: the largest spread of the probabilities that is still probably calibrated.

    For two classes. It trades likelihood for spread on purpose: for the most accurate probabilities use `llo`.

    Parameters
    ----------
    posterior : float, default=0.95
        Posterior probability t of calibration that the recalibrated probabilities must keep. It can be reached only
        with enough rows, 19 for 0.95; with fewer rows the fit is refused (TO514).
    prior : float, default=0.5
        Prior probability π of calibration.

    Notes
    -----
    .. math:: \max_{\tau, \gamma}\ \mathrm{sd}(q), \quad \mathrm{logit}\,q = \tau + \gamma\,\mathrm{logit}\,p, \qquad
        P(\text{calibrated} \mid y, q) \ge t

    The posterior probability is approximated by BIC. Such maps form a group, so the maximum likelihood of the
    recalibrated predictions equals that of the original ones, and the constraint is a convex set, :math:`\ell(\tau,
    \gamma) \ge \ell_{\max} - [\log n - \mathrm{logit}\,t + \mathrm{logit}\,\pi]`. It takes one fit and a search along
    the contour instead of a fit per candidate. Weights are numbers of rows and n is their sum; sd divides by n − 1. If
    the scores separate the outcomes, the targets are smoothed by one added outcome of either kind, and `converged` is
    False. Of two equally bold maps the one with the larger slope is taken.

    Cost: O(n log n), some 15 passes.

    References
    ----------
    .. [1] Guthrie & Franck (2024).

    Examples
    --------
    >>> P = np.array([[0.3, 0.7], [0.7, 0.3]] * 40)
    >>> BoldnessSpec().fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1] * 10], np.ones(80)).describe()
    'δ = 1, γ = 1.8345'
    """

    name, map_type = "boldness", BoldnessMap
    takes_logs = True
    two_classes = True
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "of two equally bold maps that mirror each other, one is taken"
    }
    posterior: Probability = 0.95
    prior: Probability = 0.5
    min_prob: MinProb = MIN_PROB

    def max_log_likelihood_loss(self, n: float) -> float:
        """Allowed loss of log-likelihood for n rows; raises TO514 if the posterior probability cannot be reached."""
        max_loss = float(np.log(n) - logit(self.posterior) + logit(self.prior))
        if max_loss < -_LOG_LIKELIHOOD_ROUNDING:
            max_posterior = float(expit(np.log(n) + logit(self.prior)))
            raise InputError(
                "TO514",
                f"With {n:g} rows the posterior probability of calibration is at most {format_number(max_posterior)}.",
                f"posterior={self.posterior:g}",
                "Choose a smaller posterior, or use more rows.",
            )
        # 19 rows for .95 allow a loss of exactly 0: the square root of a rounding error would show in the slope.
        return max_loss if max_loss > _LOG_LIKELIHOOD_ROUNDING else 0.0

    def fit(self, P: Probabilities, Y: Array, w: Array) -> BoldnessMap:
        """Fit shift and slope by maximum likelihood, then find the boldest ones on the contour of the allowed loss."""
        max_loss = self.max_log_likelihood_loss(float(w.sum()))
        x, y = log_ratio(P, self.min_prob), Y[:, 1]
        optimum = fit_finite_from_sums(InMemory(LogisticRows(intercept_and_score(x), y, w)), IDENTITY_PARAMETERS)
        if not optimum.converged:
            y = smoothed_targets(y, w)
        theta = optimum.theta
        if optimum.rank == 2 and max_loss > 0:
            theta = _boldest_on_contour(group_by_score(x, y, w), theta, max_loss)
        return BoldnessMap(float(theta[0]), float(theta[1]), optimum.n_passes, optimum.converged, self.min_prob)

    def notes(self, calibration_map: BoldnessMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob) + curve_notes([calibration_map])
        rows = group_by_score(log_ratio(P, self.min_prob), Y[:, 1], w)
        optimum = fit_logistic(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, IDENTITY_PARAMETERS)
        spreads = [
            format_number(_std_of_probabilities(rows, theta))
            for theta in (np.array([calibration_map.tau, calibration_map.gamma]), IDENTITY_PARAMETERS, optimum.theta)
        ]
        text = (
            "The standard deviation of the probabilities is {} after and {} before recalibration, and {} at maximum"
            " likelihood".format(*spreads)
        )
        if calibration_map.converged:
            text += (
                "; the posterior probability of calibration is"
                f" {format_number(self._posterior_probability(rows, calibration_map, optimum.value))}"
            )
        return [*fit_notes, Note("TN518", text + ".")]

    def _posterior_probability(self, rows: ScoreCells, calibration_map: BoldnessMap, min_loss: float) -> float:
        """Posterior probability of calibration of the recalibrated rows, given the loss at maximum likelihood."""
        loss = logistic_likelihood(
            intercept_and_score(rows.x),
            rows.wy / rows.w,
            rows.w,
            np.array([calibration_map.tau, calibration_map.gamma]),
        ).value
        return float(expit(np.log(rows.w.sum()) + logit(self.prior) - (loss - min_loss)))


def _std_of_probabilities(rows: ScoreCells, theta: Array) -> float:
    """Standard deviation of the recalibrated probabilities, with divisor n − 1."""
    q, n = expit(theta[0] + theta[1] * rows.x), float(rows.w.sum())
    centered = q - weighted_sum(rows.w, q) / n
    return float(np.sqrt(weighted_sum(rows.w, centered**2) / (n - 1))) if n > 1 else 0.0


def _boldest_on_contour(rows: ScoreCells, theta: Array, loss_increase: float) -> Array:
    """The τ and γ (2,) of largest standard deviation on a contour of the loss, `loss_increase` above its minimum.

    `theta` (2,) is the minimum. The contour is searched on three increasingly fine grids of angles, with scores pooled
    in groups, and the result is refined by Newton's method.
    """
    groups = rows.pool_neighbors()
    surface = LikelihoodSurface.around_minimum(groups, theta)
    center_angle, half_width = 0.0, np.pi
    for _ in range(3):
        angles = center_angle + half_width * np.linspace(-1, 1, _N_ANGLES + 1)
        radii = np.sqrt(2 * loss_increase) * surface.radii(angles, loss_increase)
        points = surface.to_tau_gamma(radii[:, None] * unit_vectors(angles))
        stds = np.array([_std_of_probabilities(groups, point) for point in points])
        is_boldest = stds >= stds.max() * (1 - _TIE_TOLERANCE)
        boldest = int(np.argmax(np.where(is_boldest, points[:, 1], -np.inf)))
        center_angle, half_width = float(angles[boldest]), 2 * half_width / _N_ANGLES
    min_loss = logistic_likelihood(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, theta).value
    return _refine_by_newton(rows, points[boldest], min_loss + loss_increase)


def _refine_by_newton(rows: ScoreCells, theta: Array, target_loss: float) -> Array:
    r"""The point near θ (2,) where the variance V of the probabilities is largest on the contour F = `target_loss`.

    F is the loss. At this point the gradients of F and V are parallel. Newton's method solves :math:`F = c` and
    :math:`V_\tau F_\gamma = V_\gamma F_\tau`; one step is one pass. θ itself is returned if the method diverges.
    """
    X, y = intercept_and_score(rows.x), rows.wy / rows.w
    start, scale = theta, np.abs(theta) + 1
    for _ in range(_MAX_NEWTON_STEPS):
        likelihood = logistic_likelihood(X, y, rows.w, theta)
        # Derivatives of F (gradient ft, fg; Hessian H) and of V (gradient vt, vg; Hessian B) by τ and γ.
        (ft, fg), H = likelihood.gradient, likelihood.hessian
        (vt, vg), B = _variance_derivatives(rows, theta)
        residuals = np.array([likelihood.value - target_loss, vt * fg - vg * ft])
        parallelism_gradient = [
            B[0, 0] * fg + vt * H[0, 1] - B[0, 1] * ft - vg * H[0, 0],
            B[0, 1] * fg + vt * H[1, 1] - B[1, 1] * ft - vg * H[0, 1],
        ]
        try:
            step = np.linalg.solve(np.array([[ft, fg], parallelism_gradient]), residuals)
        except np.linalg.LinAlgError:
            return start
        theta = theta - step
        if not (np.abs(theta - start) < _MAX_RELATIVE_MOVE * scale).all():
            return start  # diverged to another point where the two gradients are parallel
        if (np.abs(step) <= _STEP_TOLERANCE * scale).all():
            break
    return theta


def _variance_derivatives(rows: ScoreCells, theta: Array) -> tuple[Array, Array]:
    """Gradient (2,) and Hessian (2, 2) by (τ, γ) of n times the variance of the recalibrated probabilities."""
    X, n = intercept_and_score(rows.x), float(rows.w.sum())
    q = expit(X @ theta)
    derivative = q * expit(-(X @ theta))
    centered = q - weighted_sum(rows.w, q) / n
    mean = weighted_sum(rows.w * derivative, X) / n
    gradient = 2 * (rows.w * centered * derivative) @ X
    curvature = rows.w * (derivative * derivative + centered * derivative * (1 - 2 * q))
    return gradient, 2 * ((X * curvature[:, None]).T @ X - n * np.outer(mean, mean))
