"""Matrix scaling, and the penalized full-matrix map that it shares with Dirichlet calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.calibrators._glm.log_linear import (
    MANY,
    LogLinearMap,
    fit_log_linear,
    initial_beta,
    not_converged_notes,
    odir_penalty,
    prepare_rows,
    ridge_penalty,
    scaled_penalty,
    small_sample_notes,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb
from trueodds.calibrators._glm.newton import Minimum
from trueodds.calibrators._glm.row_sums import RowSums
from trueodds.calibrators.base import CalibrationMap, SummedSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import NonNegative
from trueodds.core.typing import Array

PENALTY_GRID = (10.0, 3.0, 1.0, 0.3, 0.1)  # times the scaled penalty; less of it follows the noise of few rows


@dataclass(frozen=True, eq=False)
class FullMatrixMap(LogLinearMap):
    """Rows softmax(W log p + b)."""

    chosen: float | None = None  # of the grid, by penalty="auto"; a note tells it, and it is not saved


@dataclass(frozen=True)
class FullMatrixSpec(SummedSpec):
    """A weight of every class's log for every class, pulled towards the map that changes nothing."""

    map_type: ClassVar[type[CalibrationMap] | None] = FullMatrixMap
    keeps_argmax: ClassVar[bool] = False
    penalty: NonNegative | Literal["scaled", "auto"] = "scaled"
    bias_penalty: NonNegative | None = None
    shrink: Literal["odir", "l2"] = "odir"
    target: Literal["identity", "zero"] = "identity"
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.penalty, str) and (self.bias_penalty, self.shrink, self.target) != (
            None,
            "odir",
            "identity",
        ):
            raise InputError(
                "TO203",
                f"penalty={self.penalty!r} says all there is to say about penalties.",
                f"bias_penalty={self.bias_penalty!r}, shrink={self.shrink!r}, target={self.target!r}",
                "Leave these out, or pass a number as penalty.",
            )

    @property
    def _takes_logits(self) -> bool:
        return bool(getattr(self, "logits", False))

    def check_classes(self, k: int) -> None:
        """Refuse a search of the penalty where the curvature is too large to look at."""
        super().check_classes(k)
        if self.penalty == "auto" and k * (k + 1) > MANY:
            raise InputError(
                "TO522",
                "penalty='auto' needs the curvature of all parameters, which takes at most 31 classes.",
                f"{k} classes",
                "Leave penalty out.",
            )

    def fit_data(self, data: RowSums) -> Any:
        """The matrix and the biases of these rows."""
        k = data.facts.k
        self.check_classes(k)
        target = np.eye(k, k + 1) if self.target == "identity" else np.zeros((k, k + 1))
        start = np.eye(k, k + 1) * initial_beta(data, self.min_prob, self._takes_logits)
        prepared = data.prepared(prepare_rows)
        if self.penalty == "auto":
            optimum, chosen = _fit_by_aic(prepared, target, start)
        else:
            optimum, chosen = (
                fit_log_linear(prepared, self._strength(k, prepared.facts.mass), target, start, shared=True),
                None,
            )
        theta = optimum.theta.reshape(k, k + 1)
        weights, bias = theta[:, :k].copy(), theta[:, k].copy()
        if self.penalty == 0 or self.bias_penalty == 0:
            bias -= bias.mean()
        made: Any = self.map_type
        logits = self._takes_logits
        return made(weights, bias, self.min_prob, optimum.n_passes, optimum.converged, logits, chosen)

    def _strength(self, k: int, mass: float) -> Array:
        if isinstance(self.penalty, str):
            return scaled_penalty(k, mass)
        bias_penalty = self.penalty if self.bias_penalty is None else self.bias_penalty
        return (odir_penalty if self.shrink == "odir" else ridge_penalty)(k, self.penalty, bias_penalty)

    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Floored values, no finite best fit, the penalty that was chosen, and few rows without one."""
        assert isinstance(calibration_map, FullMatrixMap)
        notes = [*data.facts.floored.notes(), *not_converged_notes(calibration_map)]
        if calibration_map.chosen is not None:
            notes.append(
                Note("TN534", f"Of the grid of penalties, {calibration_map.chosen:g} times the scaled one was chosen.")
            )
        k = data.facts.k
        return notes + (small_sample_notes(data.facts.n, (k - 1) * (k + 1)) if self.penalty == 0 else [])


def _fit_by_aic(data: RowSums, target: Array, start: Array) -> tuple[Minimum, float]:
    """The fit of least −log-likelihood + effective parameters along the grid, each begun where the last one ended."""
    k, selected, n_passes = len(target), None, 0
    for factor in PENALTY_GRID:
        strength = scaled_penalty(k, data.facts.mass, factor)
        optimum = fit_log_linear(data, strength, target, start, shared=True)
        start, n_passes = optimum.theta, n_passes + optimum.n_passes
        hessian = optimum.at.hessian
        penalized_hessian = hessian + 2 * data.facts.mass * np.diag(strength.reshape(-1))
        criterion = optimum.at.value + float(np.trace(np.linalg.solve(penalized_hessian, hessian)))
        if selected is None or criterion < selected[0]:
            selected = criterion, optimum, factor
    assert selected is not None
    _, optimum, factor = selected
    return Minimum(optimum.theta, optimum.at, n_passes, optimum.converged, optimum.slope), factor


@dataclass(frozen=True, eq=False)
class MatrixMap(FullMatrixMap):
    """Rows softmax(W x + b) of logits, or of log probabilities."""

    name: ClassVar[str] = "matrix"


@dataclass(frozen=True)
class MatrixSpec(FullMatrixSpec):
    r"""A matrix on the logits, or on the log probabilities, and a bias for each class.

    .. math:: q_i = \mathrm{softmax}(W x_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    x are the logits with `logits=True`, whose constant per row is then part of the model; else log p, and then it is
    `dirichlet`, where `penalty`, `bias_penalty`, `shrink` and `target` are explained. Labels may change. Of the K² + K
    parameters K² − 1 are told apart: without a penalty it needs thousands of rows. Fits take log(max(p, `floor`)), and
    so does the map, since every class's log counts for all. Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31
    classes O(nK²), some hundred passes. Sources: Guo et al. (2017); Kull et al. (2019) for the penalty.

    >>> z = np.array([[2.0, 0.0], [0.0, 1.0]] * 50)
    >>> m = MatrixSpec(logits=True).fit(z, np.eye(2)[[0, 1] * 50], np.ones(100))
    >>> m.logits, m.weights.shape
    (True, (2, 2))
    """

    name: ClassVar[str] = "matrix"
    complexity: ClassVar[int] = 14
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = MatrixMap
    candidate: ClassVar[bool] = False
    logits: bool = False
