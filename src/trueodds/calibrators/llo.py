"""Linear in log odds (LLO) recalibration of two classes: a shift and a slope of the log odds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    log_ratio,
    logs_for_slopes,
    probability_pair,
    to_logs,
)
from trueodds.calibrators._glm.logistic_regression import (
    Coefficient,
    LogisticFit,
    LogisticRows,
    curve_notes,
    fit_finite_from_sums,
    intercept_and_score,
    logistic_likelihood,
)
from trueodds.calibrators._glm.parameter_covariance import ScoreVectors
from trueodds.calibrators._glm.parameter_table import MAX_EXPONENT, ParameterTable
from trueodds.calibrators._glm.parameter_uncertainty import FitEvidence, ParameterUncertainty
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Key, PassCount, ZeroOrOne, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
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
