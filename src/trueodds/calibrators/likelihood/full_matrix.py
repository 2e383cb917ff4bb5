"""How much of each class belongs to another? What matrix scaling and Dirichlet calibration share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators.base import Map, SummedRule
from trueodds.calibrators.likelihood.likeliest import MANY, few, fitted, laid_out, sureness, unfinished
from trueodds.calibrators.likelihood.log_linear import LogLinearMap
from trueodds.calibrators.likelihood.logs import FLOOR, Floor
from trueodds.calibrators.likelihood.newton import Minimum
from trueodds.calibrators.likelihood.passes import Passes
from trueodds.calibrators.likelihood.penalties import odir, ridge, scaled
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import NonNegative

Array = NDArray[Any]

GRID = (10.0, 3.0, 1.0, 0.3, 0.1)  # times the scaled penalty; less of it follows the noise of few rows


@dataclass(frozen=True, eq=False)
class FullMatrixMap(LogLinearMap):
    """Rows softmax(W log p + b)."""

    chosen: float | None = None  # of the grid, by penalty="auto"; a note tells it, and it is not saved


@dataclass(frozen=True)
class FullMatrixRule(SummedRule):
    """A weight of every class's log for every class, pulled towards the map that changes nothing."""

    map: ClassVar[type[Map] | None] = FullMatrixMap
    keeps_argmax: ClassVar[bool] = False
    penalty: NonNegative | Literal["scaled", "auto"] = "scaled"
    bias_penalty: NonNegative | None = None
    shrink: Literal["odir", "l2"] = "odir"
    target: Literal["identity", "zero"] = "identity"
    floor: Floor = FLOOR

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

    def over(self, data: Passes) -> Any:
        """The matrix and the biases of these rows."""
        k = data.facts.k
        self.check_classes(k)
        target = np.eye(k, k + 1) if self.target == "identity" else np.zeros((k, k + 1))
        start = np.eye(k, k + 1) * sureness(data, self.floor, self._takes_logits)
        seen = data.prepared(laid_out)
        if self.penalty == "auto":
            found, chosen = _least_criterion(seen, target, start)
        else:
            found, chosen = fitted(seen, self._strength(k, seen.facts.mass), target, start, shared=True), None
        theta = found.theta.reshape(k, k + 1)
        weights, bias = theta[:, :k].copy(), theta[:, k].copy()
        if self.penalty == 0 or self.bias_penalty == 0:
            bias -= bias.mean()
        made: Any = self.map
        logits = self._takes_logits
        return made(weights, bias, self.floor, found.passes, found.converged, logits, chosen)

    def _strength(self, k: int, mass: float) -> Array:
        if isinstance(self.penalty, str):
            return scaled(k, mass)
        given = self.penalty if self.bias_penalty is None else self.bias_penalty
        return (odir if self.shrink == "odir" else ridge)(k, self.penalty, given)

    def told(self, fitted: Map, data: Passes) -> list[Note]:
        """Floored values, no finite best fit, the penalty that was chosen, and few rows without one."""
        assert isinstance(fitted, FullMatrixMap)
        told = [*data.facts.floored.notes(), *unfinished(fitted)]
        if fitted.chosen is not None:
            told.append(Note("TN534", f"Of the grid of penalties, {fitted.chosen:g} times the scaled one was chosen."))
        k = data.facts.k
        return told + (few(data.facts.n, (k - 1) * (k + 1)) if self.penalty == 0 else [])


def _least_criterion(seen: Passes, target: Array, start: Array) -> tuple[Minimum, float]:
    """The fit of least −log-likelihood + effective parameters along the grid, each begun where the last one ended."""
    k, best, passes = len(target), None, 0
    for factor in GRID:
        strength = scaled(k, seen.facts.mass, factor)
        found = fitted(seen, strength, target, start, shared=True)
        start, passes = found.theta, passes + found.passes
        bend = found.at.hessian
        held = bend + 2 * seen.facts.mass * np.diag(strength.reshape(-1))
        criterion = found.at.value + float(np.trace(np.linalg.solve(held, bend)))
        if best is None or criterion < best[0]:
            best = criterion, found, factor
    assert best is not None
    _, found, factor = best
    return Minimum(found.theta, found.at, passes, found.converged, found.slope), factor
