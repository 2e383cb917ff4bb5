"""The baseline-category logit model: a slope and a shift of each class's log odds against a baseline class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_linear import FALLBACK_RIDGE, MAX_NEWTON_PARAMETERS, LogLinearRows
from trueodds.calibrators._glm.log_probabilities import softmax
from trueodds.calibrators._glm.newton import Minimum, Ridge, minimize_lbfgs, minimize_newton
from trueodds.calibrators._glm.parameter_covariance import ScoreVectors
from trueodds.calibrators._glm.parameter_uncertainty import FitEvidence, ParameterUncertainty
from trueodds.calibrators._glm.row_sums import SummableRows
from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class

_EQUAL = 1e-12  # tolerance within which log odds are equal


@dataclass(frozen=True, slots=True, eq=False)
class LogOddsRange:
    """Sums and ranges of log odds; those of batches add up."""

    total: Array  # (K,) Σwx
    low: Array  # (K,)
    high: Array  # (K,)

    @classmethod
    def of(cls, rows: LogLinearRows) -> LogOddsRange:
        """Return the sums and ranges of the log odds of these rows."""
        return cls(rows.w @ rows.x, rows.x.min(axis=0, initial=np.inf), rows.x.max(axis=0, initial=-np.inf))

    def __add__(self, other: LogOddsRange) -> LogOddsRange:
        return LogOddsRange(
            self.total + other.total, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Centered log odds, with fitted slopes and shifts."""

    data: SummableRows  # over Rows with x (n, K) less the means
    free: Array  # (K,) whether a class has parameters: all but the baseline
    means: Array  # (K − 1,)
    even: Array  # (K − 1,) whether the log odds reach both sides of 0
    penalty: float  # λ in nats over all rows
    optimum: Minimum  # (γ, τ′) of each free class, with τ = τ′ − γ mean
    before: float  # minus the log-likelihood of γ = 1, τ = 0

    @property
    def slopes(self) -> Array:
        """γ of each class but the baseline."""
        return self.optimum.theta[::2]

    @property
    def shifts(self) -> Array:
        """τ of each class but the baseline."""
        return self.optimum.theta[1::2] - self.slopes * self.means

    def uncertainty(self) -> ParameterUncertainty:
        """Uncertainty of the parameters. Cost: O(nK + K³), little compared with the fit; the sandwich O(nK²)."""
        if not self.optimum.converged:
            return ParameterUncertainty("infinite")
        if not self.optimum.likelihood.hessian.size:
            return ParameterUncertainty("many")
        return FitEvidence(
            self.data.summary, self.optimum.likelihood.hessian, self.means, self.even, self.penalty,
            None if self.data.rows is None else self._scores, self._squares, self._ratio,
        ).uncertainty()  # fmt: skip

    def _ratio(self) -> float:
        return max(2 * (self.before - self.optimum.likelihood.value), 0.0)

    def _squares(self) -> Array:
        ties = np.eye(2 * len(self.free))[:, np.repeat(self.free, 2)]
        squares: Array = self.data.sum(partial(_squared, theta=self.optimum.theta, ties=ties))
        return squares

    def _scores(self) -> ScoreVectors:
        rows, free = self.data.rows, self.free
        eta = np.zeros_like(rows.x)
        eta[:, free] = rows.x[:, free] * self.slopes + self.optimum.theta[1::2]
        return ScoreVectors(rows.x[:, free], softmax(eta)[:, free], rows.Y[:, free], rows.w)


def fit_contrasts(data: SummableRows, free: Array, penalty: float) -> Contrasts:
    """Fit slope and shift of each free class from sums over log odds (n, K) against the baseline."""
    k, mass = len(free), data.summary.total_weight
    log_odds_range: LogOddsRange = data.sum(LogOddsRange.of)
    # Centered without a penalty: log odds that are all equal then leave the slope unchanged.
    means = np.zeros(k) if penalty else log_odds_range.total / mass
    equal = np.maximum(log_odds_range.high - means, means - log_odds_range.low) <= _EQUAL * (1 + np.abs(means))
    low, high = (np.where(equal, means, end)[free] for end in (log_odds_range.low, log_odds_range.high))
    centered = data.map_rows(partial(_center, means=means, equal=equal))
    target = np.column_stack([np.ones(k), means])[free].reshape(-1)
    ties, values = np.eye(2 * k)[:, np.repeat(free, 2)], []

    def step(theta: Array, *, curved: bool = True) -> Callable[[LogLinearRows], Likelihood]:
        return partial(_sums, theta=theta, ties=ties, curved=curved)

    def sums(theta: Array, *, curved: bool = True) -> Likelihood:
        at: Likelihood = centered.sum(step(theta, curved=curved))
        values.append(at.value)
        return at

    def minimize(strength: float, nothing: float) -> Minimum:
        pull = np.full(len(target), strength / mass)
        if len(target) <= MAX_NEWTON_PARAMETERS:
            return minimize_newton(
                sums, target, Ridge(pull, target), min_gain=nothing, fallback=np.zeros(len(target)),
                sums_at_points=lambda places: centered.sums(map(step, places)),
            )  # fmt: skip
        curvature = centered.sum(partial(_curvature, means=means)) @ ties / mass
        scale = 1 / np.sqrt(curvature + 2 * pull + 1e-9 * curvature.max())
        return minimize_lbfgs(partial(sums, curved=False), target, Ridge(pull, target), scale)

    optimum = minimize(penalty, 1e-2)
    if not optimum.converged:
        slight = minimize(penalty + FALLBACK_RIDGE, 0.0)
        optimum = Minimum(
            slight.theta, slight.likelihood, optimum.n_passes + slight.n_passes, False, slight.max_gradient
        )
    even = (low <= 0) & (high >= 0)
    return Contrasts(
        centered, free, means[free], even, penalty, optimum, values[0]
    )  # both searches start at the identity


def _center(rows: LogLinearRows, means: Array, equal: Array) -> LogLinearRows:
    x = rows.x - means
    x[:, equal] = 0.0
    return LogLinearRows(np.asfortranarray(x), np.asfortranarray(rows.Y), rows.w)


def _sums(rows: LogLinearRows, theta: Array, ties: Array, curved: bool) -> Likelihood:
    return softmax_by_class(rows.x[:, :, None], rows.Y, rows.w, theta, tying=ties, with_hessian=curved)


def _squared(rows: LogLinearRows, theta: Array, ties: Array) -> Array:
    """The Hessian with squared weights."""
    return softmax_by_class(rows.x[:, :, None], rows.Y, rows.w**2, theta, tying=ties).hessian


def _curvature(rows: LogLinearRows, means: Array) -> Array:
    """The diagonal of the Hessian at the identity, by each slope and shift."""
    q = softmax(rows.x + means)
    variance = q * (1 - q)
    return np.asarray(rows.w @ np.stack([variance * rows.x**2, variance], axis=2).reshape(len(q), -1))


_NAMED = "class:"  # as in lens="class:cat"
_LISTED = 20


def check_baseline(baseline: Any) -> None:
    """Raise TO203 for a value that cannot name a class."""
    if baseline is None or (isinstance(baseline, str) and baseline.startswith(_NAMED)):
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
    named = [str(name) for name in classes]
    if (name := baseline.removeprefix(_NAMED)) in named:
        return named.index(name)
    known = ", ".join(f"{j} is {label}" for j, label in enumerate(named[:_LISTED]))
    more = f" and {len(named) - _LISTED:,} more" if len(named) > _LISTED else ""
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
