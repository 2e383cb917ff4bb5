"""What do the rows of a fit tell about shift and slope? From their curvature and scores to how sure both are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.calibrators.likelihood.certainty import PAIR, STD_ERROR_METHODS, Certainty, proper
from trueodds.calibrators.likelihood.fit_data import Facts, FitData
from trueodds.calibrators.likelihood.parameter_covariance import ParameterCovariance, Scores, by_model, by_units
from trueodds.calibrators.likelihood.units import Units
from trueodds.calibrators.likelihood.whitening import RANK_TOLERANCE
from trueodds.core.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Finite best parameters (γ, τ′) of each class in turn, with x around `means` and so τ = τ′ − γ mean.

    Around their means the two are all but uncorrelated. Weights say which rows matter, whatever numbers they are:
    those that are all equal say nothing, and with others χ² is no law for the likelihood ratio.
    """

    facts: FitData | Facts
    curvature: Array  # (d, d) of minus the log-likelihood
    means: Array  # (m,)
    even: Array  # (m,) whether the log odds reach both sides of 0
    penalty: float  # λ, which pulls by λθ²
    scores: Callable[[], Scores] | None  # None where the rows are far
    squares: Callable[[], Array]  # the curvature with squared weights
    ratio: Callable[[], float]
    rank: int | None = None  # in how many directions the rows say something, where that is known

    def certainty(self) -> Certainty:
        """How sure the parameters are."""
        H, d = self.curvature, len(self.curvature)
        own = np.sqrt(H.diagonal())
        unit = np.divide(1.0, own, out=np.zeros(d), where=own > 0)
        values = np.linalg.eigvalsh(H * np.outer(unit, unit))
        numerical_rank = int((values > RANK_TOLERANCE * max(float(values[-1]), 1e-300)).sum())
        rank = min(d if self.rank is None else self.rank, numerical_rank)
        errors, pulled = self.facts.errors, self.penalty > 0
        # Equal weights of any size: those of 1 are meant.
        gain = self.ratio() / self.facts.weight if rank and errors == "curvature" and not pulled else None

        def make_certainty(errors: str, V: Array | None = None, units: float | None = None) -> Certainty:
            even = None if V is None else self.even
            return Certainty(errors, V, gain, rank, float(self.facts.n), pulled, units, even)

        if rank < d and not pulled:
            return make_certainty("untold")
        if errors in ("votes", "clusters") and self.scores is None:
            return make_certainty("far")
        parameter_covariance = self._parameter_covariance(errors)
        if parameter_covariance is None or (
            parameter_covariance.units is not None and not parameter_covariance.units > PAIR
        ):
            return make_certainty("few")
        V = self._pairs(parameter_covariance.covariance)
        # Scores that are all 0, of shares that are met or slopes that only the penalty holds, have no variance.
        return (
            make_certainty(errors, V, parameter_covariance.units)
            if proper(V)
            else Certainty("untold", None, None, rank, 0.0, pulled)
        )

    def _parameter_covariance(self, errors: str) -> ParameterCovariance | None:
        """The covariance of all parameters; None where units are fewer than these."""
        assert errors in STD_ERROR_METHODS
        d = len(self.curvature)
        hessian = self.curvature + 2 * self.penalty * np.eye(d)
        unit = 1 / np.sqrt(hessian.diagonal())
        bread = np.linalg.inv(hessian * np.outer(unit, unit)) * np.outer(unit, unit)
        if errors == "curvature":
            return ParameterCovariance(bread * self.facts.weight)
        if errors == "weights":
            return by_model(bread, self.squares()) if self.facts.n > d else None
        assert isinstance(self.facts, FitData)
        assert self.scores is not None
        w, cluster = self.facts.w, self.facts.cluster
        units = Units.of_rows(w) if cluster is None else Units.of_clusters(w, cluster)
        return by_units(bread, hessian, self.scores(), units) if units.count > d else None

    def _pairs(self, V: Array) -> Array:
        """(m, 2, 2) of (τ, γ) of each class."""
        m = len(self.means)
        pairs = V.reshape(m, 2, m, 2)[np.arange(m), :, np.arange(m)]
        turn = np.zeros((m, 2, 2))  # (γ, τ′) → (τ, γ)
        turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0] = -self.means, 1.0, 1.0
        pairs = turn @ pairs @ turn.transpose(0, 2, 1)
        return np.asarray((pairs + pairs.transpose(0, 2, 1)) / 2)
