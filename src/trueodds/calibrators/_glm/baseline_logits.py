"""The baseline-category logit model of MCLLO: a slope and a shift of each class's log odds against a baseline class.

In the model, log q_k/q_b = τ_k + γ_k log p_k/p_b for every class k but the baseline b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueodds.calibrators._glm.fit_data import SummableRows
from trueodds.calibrators._glm.log_linear import MAX_NEWTON_PARAMETERS, LogLinearRows
from trueodds.calibrators._glm.log_probabilities import softmax
from trueodds.calibrators._glm.newton import Minimum, Ridge, minimize_lbfgs, minimize_newton, minimize_with_fallback
from trueodds.calibrators._glm.parameter_covariance import ScoreVectors
from trueodds.calibrators._glm.parameter_uncertainty import FitEvidence, ParameterUncertainty
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class

_EQUALITY_TOLERANCE = 1e-12  # tolerance within which log odds are equal
_CLASS_NAME_PREFIX = "class:"  # as in lens="class:cat"
_MAX_LISTED_CLASSES = 20  # in an error message


@dataclass(frozen=True, slots=True, eq=False)
class LogOddsRange:
    """Weighted sums and ranges of the log odds x of each class against the baseline; those of batches add up."""

    total: Array  # (K,) Σwx
    low: Array  # (K,) smallest x
    high: Array  # (K,) largest x

    @classmethod
    def from_rows(cls, rows: LogLinearRows) -> LogOddsRange:
        return cls(
            weighted_sum(rows.w, rows.x), rows.x.min(axis=0, initial=np.inf), rows.x.max(axis=0, initial=-np.inf)
        )

    def __add__(self, other: LogOddsRange) -> LogOddsRange:
        return LogOddsRange(
            self.total + other.total, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


@dataclass(frozen=True, slots=True, eq=False)
class BaselineLogitFit:
    """Maximum likelihood fit of the baseline-category logit model, with the centered log odds it was fitted to."""

    data: SummableRows  # of `LogLinearRows` with x (n, K) minus the means
    has_parameters: Array  # (K,) bool: True for every class but the baseline
    means: Array  # (K − 1,) by which the log odds were centered
    both_signs: Array  # (K − 1,) bool: whether the log odds take both signs
    penalty: float  # λ in nats over all rows
    optimum: Minimum  # (γ, τ′) of each class but the baseline, where τ = τ′ − γ mean
    identity_loss: float  # minus the log-likelihood of γ = 1, τ = 0

    @property
    def slopes(self) -> Array:
        """γ of each class but the baseline."""
        return self.optimum.theta[::2]

    @property
    def shifts(self) -> Array:
        """τ of each class but the baseline."""
        return self.optimum.theta[1::2] - self.slopes * self.means

    def uncertainty(self) -> ParameterUncertainty:
        """Compute the uncertainty of the parameters.

        Cost: O(nK + K³), little compared with the fit; with unequal weights (the sandwich estimator) O(nK²).
        """
        if not self.optimum.converged:
            return ParameterUncertainty("infinite")
        if not self.optimum.likelihood.hessian.size:
            return ParameterUncertainty("many")
        return FitEvidence(
            summary=self.data.summary,
            hessian=self.optimum.likelihood.hessian,
            means=self.means,
            both_signs=self.both_signs,
            penalty=self.penalty,
            scores=None if self.data.rows is None else self._score_vectors,
            squared_weight_hessian=self._squared_weight_hessian,
            likelihood_ratio=self._likelihood_ratio,
        ).uncertainty()

    def _likelihood_ratio(self) -> float:
        return max(2 * (self.identity_loss - self.optimum.likelihood.value), 0.0)

    def _squared_weight_hessian(self) -> Array:
        """Hessian at the optimum with squared weights, (d, d), for the sandwich estimator."""
        tying = _tying_matrix(self.has_parameters)
        hessian: Array = self.data.sum(partial(_squared_weight_hessian_of_rows, theta=self.optimum.theta, tying=tying))
        return hessian

    def _score_vectors(self) -> ScoreVectors:
        rows, mask = self.data.rows, self.has_parameters
        eta = np.zeros_like(rows.x)
        eta[:, mask] = rows.x[:, mask] * self.slopes + self.optimum.theta[1::2]
        return ScoreVectors(rows.x[:, mask], softmax(eta)[:, mask], rows.Y[:, mask], rows.w)


def fit_baseline_logits(data: SummableRows, has_parameters: Array, penalty: float) -> BaselineLogitFit:
    """Fit slope and shift of every class but the baseline.

    `data` are sums over `LogLinearRows` with log odds (n, K) against the baseline. `has_parameters` (K,) is False for
    the baseline only. `penalty` is λ, in nats over all rows, of the ridge λ|θ − (1, 0)|².
    """
    k, total_weight = len(has_parameters), data.summary.total_weight
    log_odds_range: LogOddsRange = data.sum(LogOddsRange.from_rows)
    # Centered without a penalty: log odds that are all equal then leave the slope unchanged.
    means = np.zeros(k) if penalty else log_odds_range.total / total_weight
    is_constant = np.maximum(log_odds_range.high - means, means - log_odds_range.low) <= _EQUALITY_TOLERANCE * (
        1 + np.abs(means)
    )
    low = np.where(is_constant, means, log_odds_range.low)[has_parameters]
    high = np.where(is_constant, means, log_odds_range.high)[has_parameters]
    centered = data.map_rows(partial(_center_log_odds, means=means, is_constant=is_constant))
    identity = np.column_stack([np.ones(k), means])[has_parameters].reshape(-1)  # (γ, τ′) of each class
    tying = _tying_matrix(has_parameters)
    losses: list[float] = []  # of all evaluations, in their order

    def likelihood_of_rows(theta: Array, *, with_hessian: bool = True) -> Callable[[LogLinearRows], Likelihood]:
        return partial(_likelihood_of_rows, theta=theta, tying=tying, with_hessian=with_hessian)

    def sums(theta: Array, *, with_hessian: bool = True) -> Likelihood:
        """Evaluate the likelihood of θ in one pass, and record its value."""
        likelihood: Likelihood = centered.sum(likelihood_of_rows(theta, with_hessian=with_hessian))
        losses.append(likelihood.value)
        return likelihood

    def minimize(ridge: float, min_gain: float) -> Minimum:
        """Minimize the loss with this ridge added to the penalty, in nats over all rows, from the identity."""
        strengths = np.full(len(identity), (penalty + ridge) / total_weight)
        if len(identity) <= MAX_NEWTON_PARAMETERS:
            return minimize_newton(
                sums, identity, Ridge(strengths, identity), min_gain=min_gain, fallback=np.zeros(len(identity)),
                sums_at_points=lambda points: centered.sums(map(likelihood_of_rows, points)),
            )  # fmt: skip
        curvature = centered.sum(partial(_hessian_diagonal, means=means)) @ tying / total_weight
        return minimize_lbfgs(partial(sums, with_hessian=False), identity, Ridge(strengths, identity), curvature)

    return BaselineLogitFit(
        data=centered,
        has_parameters=has_parameters,
        means=means[has_parameters],
        both_signs=(low <= 0) & (high >= 0),
        penalty=penalty,
        optimum=minimize_with_fallback(minimize),
        identity_loss=losses[0],  # both searches start at the identity
    )


def _tying_matrix(has_parameters: Array) -> Array:
    """Matrix (2K, d) from slope and shift of the classes with parameters to those of all classes, else 0."""
    return np.eye(2 * len(has_parameters))[:, np.repeat(has_parameters, 2)]


def _center_log_odds(rows: LogLinearRows, means: Array, is_constant: Array) -> LogLinearRows:
    """The rows with log odds minus their means (K,), exactly 0 for a class whose log odds are all equal."""
    x = rows.x - means
    x[:, is_constant] = 0.0
    return LogLinearRows(np.asfortranarray(x), np.asfortranarray(rows.Y), rows.w)


def _likelihood_of_rows(rows: LogLinearRows, theta: Array, tying: Array, with_hessian: bool) -> Likelihood:
    """Likelihood of slopes and shifts θ (d,) and its derivatives, summed over these rows.

    `tying` (2K, d) maps them to slope and shift of every class, which are 0 for the baseline.
    """
    return softmax_by_class(rows.x[:, :, None], rows.Y, rows.w, theta, tying=tying, with_hessian=with_hessian)


def _squared_weight_hessian_of_rows(rows: LogLinearRows, theta: Array, tying: Array) -> Array:
    return softmax_by_class(rows.x[:, :, None], rows.Y, rows.w**2, theta, tying=tying).hessian


def _hessian_diagonal(rows: LogLinearRows, means: Array) -> Array:
    """Diagonal of the Hessian at the identity, (2K,) with slope and shift of each class in turn."""
    q = softmax(rows.x + means)
    variance = q * (1 - q)
    return np.asarray(weighted_sum(rows.w, np.stack([variance * rows.x**2, variance], axis=2).reshape(len(q), -1)))


def check_baseline(baseline: Any) -> None:
    """Raise TO203 for a value that cannot name a class."""
    if baseline is None or (isinstance(baseline, str) and baseline.startswith(_CLASS_NAME_PREFIX)):
        return
    if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
        raise InputError(
            "TO203", "baseline must be the number of a class, or 'class:' and its name.", describe(baseline),
            "For instance -1, or 'class:cat'.",
        )  # fmt: skip


def resolve_class_name(baseline: Any, classes: Sequence[Any]) -> Any:
    """The class number for a name such as `class:cat`; numbers stay unchanged.

    >>> resolve_class_name("class:dog", ["cat", "dog"]), resolve_class_name(-1, ["cat", "dog"])
    (1, -1)
    """
    if not isinstance(baseline, str):
        return baseline
    class_names = [str(name) for name in classes]
    if (name := baseline.removeprefix(_CLASS_NAME_PREFIX)) in class_names:
        return class_names.index(name)
    known = ", ".join(f"{j} is {label}" for j, label in enumerate(class_names[:_MAX_LISTED_CLASSES]))
    more = f" and {len(class_names) - _MAX_LISTED_CLASSES:,} more" if len(class_names) > _MAX_LISTED_CLASSES else ""
    raise InputError("TO203", f"baseline must name a class: {known}{more}.", describe(baseline), "Pass one of these.")


def baseline_index(baseline: Any, k: int) -> int:
    """The baseline's number from 0 to k − 1; by default the last class, of two classes the first.

    >>> baseline_index(None, 2), baseline_index(None, 5), baseline_index(-2, 5)
    (0, 4, 3)
    """
    if baseline is None:
        return 0 if k == 2 else k - 1
    if isinstance(baseline, str):
        raise InputError(
            "TO203",
            "Class names are not known here.",
            describe(baseline),
            f"Pass the number of the class: 0 to {k - 1}.",
        )
    if not -k <= baseline < k:
        got = f"{baseline} of {k} classes"
        raise InputError(
            "TO203", "baseline must be the number of a class.", got, f"Pass a number from {-k} to {k - 1}."
        )
    return int(baseline) % k
