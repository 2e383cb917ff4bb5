"""How do log odds against one class add up? Scores, information and fit of a shift and a slope for each other class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.calibrators.likelihood.baseline import baseline_of
from trueodds.calibrators.likelihood.logs import MIN_PROB_OF_LOGITS, LogProbabilities, floored, softmax
from trueodds.calibrators.likelihood.newton import Minimum, minimum
from trueodds.calibrators.likelihood.parameter_covariance import ParameterCovariance, Scores, by_model, by_units
from trueodds.calibrators.likelihood.units import Units
from trueodds.calibrators.likelihood.whitening import whitened
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.hypotests.likelihood.effective_sample_size import effective_n
from trueodds.lenses.view import View
from trueodds.tallies.by_class import by_class
from trueodds.tallies.likelihood import Likelihood

NEAR = 1e-9  # nats that may be missing from a supremum that no finite parameters reach


@dataclass(frozen=True, eq=False)
class Odds:
    """A view's log odds against the baseline; the parameters are (γ, τ) of each other class in turn, d = 2(K − 1)."""

    P: Array  # (n, K) what is tested: floored, rows summing to 1
    x: Array  # (n, K) log odds against the baseline; rows without weight are even
    Y: Array  # (n, K)
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    n: Array  # (n,) rows in each cell
    baseline: int
    touched: int  # rows that the floor moved
    missed: int  # rows in which something came that had probability 0
    units: Units | None = None  # by whose sums the scores' variance is estimated; None where the model says it

    @classmethod
    def of(cls, view: View, baseline: int | str | None, min_prob: float, name: str, units: Units | None = None) -> Odds:
        """The log odds of a view; where one is infinite a floor must be given. Two classes are against the first."""
        mask, Y = view.w > 0, view.Y
        k = Y.shape[1]
        base = baseline_of(baseline, k if view.joint else max(view.classes, 2))
        base = base if view.joint else 0
        logs = np.where(mask[:, None], view.log_P, -np.log(k))
        zero = np.isneginf(logs)
        certain = zero.any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"The log odds of a probability of 0 are infinite, and {name} needs them.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with a probability of 0",
                "Give min_prob=, for instance 1e-6, which a note then counts; or use the tests skce or consistency.",
            )
        missed = (zero & (Y > 0)).any(axis=1)
        moved = (logs < np.log(min_prob)).any(axis=1) if min_prob else certain
        logs = floored(LogProbabilities(logs), max(min_prob, MIN_PROB_OF_LOGITS))
        x = logs - logs[:, [base]]
        return cls(
            softmax(logs), x, Y, view.w, view.sums("ww"), view.n, base,
            int(view.n[moved].sum()), int(view.n[missed].sum()), units,
        )  # fmt: skip

    @property
    def others(self) -> list[int]:
        """The classes that have parameters."""
        return [j for j in range(self.P.shape[1]) if j != self.baseline]

    @cached_property
    def even(self) -> bool:
        """Whether every row weighs 1."""
        return bool((self.w == self.ww).all())

    @cached_property
    def identity(self) -> Array:
        """γ = 1, τ = 0."""
        return np.tile([1.0, 0.0], len(self.others))

    @cached_property
    def _free(self) -> Array:
        """Where the parameters stand among those of all classes."""
        return np.flatnonzero(np.repeat(np.arange(self.P.shape[1]) != self.baseline, 2))

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        """Features and outcomes with each column in one piece."""
        return np.asfortranarray(self.x)[:, :, None], np.asfortranarray(self.Y)

    def sums(self, theta: Array, *, squared: bool = False) -> Likelihood:
        """Minus the log-likelihood with its derivatives; `squared` weighs every row by Σw²."""
        full_theta = np.zeros(2 * self.P.shape[1])
        full_theta[self._free] = theta
        at = by_class(*self._columns, self.ww if squared else self.w, full_theta)
        hessian = at.hessian[self._free[:, None], self._free]
        return Likelihood(at.value, at.gradient[self._free], hessian, at.weight, at.n)

    @cached_property
    def null(self) -> Likelihood:
        """At the identity."""
        return self.sums(self.identity)

    @property
    def rank(self) -> int:
        """The degrees of freedom: in how many directions the predictions tell something."""
        return int(self.by_model.shape[1])

    @cached_property
    def identified(self) -> int:
        """How many parameters the predictions tell apart, however little the identity leaves to chance in some of them."""
        if self.rank == len(self.identity):
            return self.rank
        return max(self.rank, int(whitened(self.sums(np.zeros(len(self.identity))).hessian).shape[1]))

    @cached_property
    def enough(self) -> bool:
        """Whether the units are so many that the variance is told in each of those directions."""
        return self.units is None or (self.white.shape[1] == self.rank and self.units.count > self.rank)

    @cached_property
    def mle(self) -> Minimum:
        """The most likely parameters, or some on the way where none are."""
        return minimum(self.sums, self.identity, nothing=NEAR, fallback=np.zeros(len(self.identity)))

    @cached_property
    def white(self) -> Array:
        """(d, rank) that makes of scores independent ones of variance 1; what cannot be told is left out."""
        if self.units is None:
            return self.by_model
        S = self.units.sums(self.x[:, self.others], (self.w[:, None] * (self.Y - self.P))[:, self.others])
        return whitened(self.units.bias_correction * S.T @ S)

    @cached_property
    def by_model(self) -> Array:
        """The same by the variance that the model says."""
        return whitened(self.null.hessian if self.even else self.sums(self.identity, squared=True).hessian)

    @cached_property
    def fitted_probs(self) -> Array:
        """What the most likely map says of each row, (n, K)."""
        eta = np.zeros_like(self.x)
        eta[:, self.others] = self.x[:, self.others] * self.mle.theta[::2] + self.mle.theta[1::2]
        return softmax(eta)

    def scores(self, wy: Array) -> Array:
        """Σw(y − p)x and Σw(y − p) by class, for each of many outcomes (draws, n, K), (draws, d)."""
        both = np.stack([np.einsum("dnk,nk->dk", wy, self.x), wy.sum(axis=1)], axis=2)
        wp = self.w[:, None] * self.P
        both -= np.stack([(wp * self.x).sum(axis=0), wp.sum(axis=0)], axis=1)
        return both[:, self.others].reshape(len(wy), -1)

    def score(self, wy: Array) -> Array:
        """The score statistic of each of many outcomes, by the variance of scores, (draws,)."""
        return np.asarray(((self.scores(wy) @ self.white) ** 2).sum(axis=1))

    @cached_property
    def effective_n(self) -> float:
        """As many rows as chance rests on, by the model."""
        return effective_n(self)

    @property
    def covariance(self) -> Array | None:
        """The covariance of the most likely parameters; None where they or their variance are not told."""
        return None if self.scatter is None else self.scatter.covariance

    @cached_property
    def scatter(self) -> ParameterCovariance | None:
        """The same with the number of units that it rests on, by a sandwich where weights or units ask for it."""
        if not self.mle.converged or self.rank < len(self.identity) or not self.enough:
            return None
        hessian = self.mle.at.hessian
        bread = np.linalg.pinv(hessian, hermitian=True)
        if self.units is None:
            return (
                ParameterCovariance(bread)
                if self.even
                else by_model(bread, self.sums(self.mle.theta, squared=True).hessian)
            )
        x, q, Y = (columns[:, self.others] for columns in (self.x, self.fitted_probs, self.Y))
        sandwich = by_units(bread, hessian, Scores(x, q, Y, self.w), self.units)
        return sandwich if whitened(sandwich.covariance).shape[1] == self.rank else None
