"""Which slope and shift of each class's log odds against one of them make what came most likely, and how surely?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from trueodds.calibrators.likelihood.certainty import Certainty
from trueodds.calibrators.likelihood.descent import descent
from trueodds.calibrators.likelihood.evidence import Evidence
from trueodds.calibrators.likelihood.likeliest import MANY, SLIGHT, Rows
from trueodds.calibrators.likelihood.logs import softmax
from trueodds.calibrators.likelihood.newton import Minimum, Ridge, minimum
from trueodds.calibrators.likelihood.parameter_covariance import Scores
from trueodds.calibrators.likelihood.row_sums import RowSums
from trueodds.core.typing import Array
from trueodds.tallies.by_class import by_class
from trueodds.tallies.likelihood import Likelihood

_EQUAL = 1e-12  # of log odds: those that lie so close together are equal


@dataclass(frozen=True, slots=True, eq=False)
class LogOddsRange:
    """Where log odds lie, in a form that adds."""

    total: Array  # (K,) Σwx
    low: Array  # (K,)
    high: Array  # (K,)

    @classmethod
    def of(cls, rows: Rows) -> LogOddsRange:
        """Those of some rows."""
        return cls(rows.w @ rows.x, rows.x.min(axis=0, initial=np.inf), rows.x.max(axis=0, initial=-np.inf))

    def __add__(self, other: LogOddsRange) -> LogOddsRange:
        return LogOddsRange(
            self.total + other.total, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Log odds around their means, and the slopes and shifts that are best for them."""

    data: RowSums  # over Rows with x (n, K) less the means
    free: Array  # (K,) whether a class has parameters: all but the baseline
    means: Array  # (K − 1,)
    even: Array  # (K − 1,) whether the log odds reach both sides of 0
    penalty: float  # λ in nats over all rows
    optimum: Minimum  # (γ, τ′) of each free class, with τ = τ′ − γ mean
    before: float  # minus the log-likelihood of γ = 1, τ = 0

    @property
    def slopes(self) -> Array:
        """γ of each free class."""
        return self.optimum.theta[::2]

    @property
    def shifts(self) -> Array:
        """τ of each free class."""
        return self.optimum.theta[1::2] - self.slopes * self.means

    def certainty(self) -> Certainty:
        """How sure they are. Cost: O(nK + K³), little beside the fit; the sandwich O(nK²)."""
        if not self.optimum.converged:
            return Certainty("infinite")
        if not self.optimum.at.hessian.size:
            return Certainty("many")
        return Evidence(
            self.data.facts, self.optimum.at.hessian, self.means, self.even, self.penalty,
            None if self.data.rows is None else self._scores, self._squares, self._ratio,
        ).certainty()  # fmt: skip

    def _ratio(self) -> float:
        return max(2 * (self.before - self.optimum.at.value), 0.0)

    def _squares(self) -> Array:
        ties = np.eye(2 * len(self.free))[:, np.repeat(self.free, 2)]
        squares: Array = self.data.sum(partial(_squared, theta=self.optimum.theta, ties=ties))
        return squares

    def _scores(self) -> Scores:
        rows, free = self.data.rows, self.free
        eta = np.zeros_like(rows.x)
        eta[:, free] = rows.x[:, free] * self.slopes + self.optimum.theta[1::2]
        return Scores(rows.x[:, free], softmax(eta)[:, free], rows.Y[:, free], rows.w)


def contrasts(data: RowSums, free: Array, penalty: float) -> Contrasts:
    """Slope and shift of each class that is free, from passes over log odds (n, K) against the baseline; its are 0."""
    k, mass = len(free), data.facts.mass
    log_odds_range: LogOddsRange = data.sum(LogOddsRange.of)
    # Around their means, where the rows alone decide: then log odds that are all equal leave the slope as it is.
    means = np.zeros(k) if penalty else log_odds_range.total / mass
    equal = np.maximum(log_odds_range.high - means, means - log_odds_range.low) <= _EQUAL * (1 + np.abs(means))
    low, high = (np.where(equal, means, end)[free] for end in (log_odds_range.low, log_odds_range.high))
    centered = data.prepared(partial(_around, means=means, equal=equal))
    target = np.column_stack([np.ones(k), means])[free].reshape(-1)
    ties, values = np.eye(2 * k)[:, np.repeat(free, 2)], []

    def step(theta: Array, *, curved: bool = True) -> Callable[[Rows], Likelihood]:
        return partial(_sums, theta=theta, ties=ties, curved=curved)

    def sums(theta: Array, *, curved: bool = True) -> Likelihood:
        at: Likelihood = centered.sum(step(theta, curved=curved))
        values.append(at.value)
        return at

    def minimize(strength: float, nothing: float) -> Minimum:
        pull = np.full(len(target), strength / mass)
        if len(target) <= MANY:
            return minimum(
                sums, target, Ridge(pull, target), nothing=nothing, fallback=np.zeros(len(target)),
                several=lambda places: centered.sums(map(step, places)),
            )  # fmt: skip
        curvature = centered.sum(partial(_curvature, means=means)) @ ties / mass
        scale = 1 / np.sqrt(curvature + 2 * pull + 1e-9 * curvature.max())
        return descent(partial(sums, curved=False), target, Ridge(pull, target), scale)

    optimum = minimize(penalty, 1e-2)
    if not optimum.converged:
        slight = minimize(penalty + SLIGHT, 0.0)
        optimum = Minimum(slight.theta, slight.at, optimum.n_passes + slight.n_passes, False, slight.slope)
    even = (low <= 0) & (high >= 0)
    return Contrasts(centered, free, means[free], even, penalty, optimum, values[0])  # both searches begin at no change


def _around(rows: Rows, means: Array, equal: Array) -> Rows:
    x = rows.x - means
    x[:, equal] = 0.0
    return Rows(np.asfortranarray(x), np.asfortranarray(rows.Y), rows.w)


def _sums(rows: Rows, theta: Array, ties: Array, curved: bool) -> Likelihood:
    return by_class(rows.x[:, :, None], rows.Y, rows.w, theta, ties=ties, curved=curved)


def _squared(rows: Rows, theta: Array, ties: Array) -> Array:
    """The curvature with squared weights."""
    return by_class(rows.x[:, :, None], rows.Y, rows.w**2, theta, ties=ties).hessian


def _curvature(rows: Rows, means: Array) -> Array:
    """The curvature by each slope and shift at no change."""
    q = softmax(rows.x + means)
    variance = q * (1 - q)
    return np.asarray(rows.w @ np.stack([variance * rows.x**2, variance], axis=2).reshape(len(q), -1))
