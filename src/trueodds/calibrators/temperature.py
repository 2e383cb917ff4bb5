"""How much too sure, by one number? Temperature scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators import wire
from trueodds.calibrators.base import Map, Rule
from trueodds.calibrators.logs import FLOOR, check_floor, touched
from trueodds.core.errors import Note
from trueodds.tally.likelihood import Likelihood, softmax_linear

Array = NDArray[Any]

LOWEST, HIGHEST = 1e-3, 1e3  # the range of β = 1/T: beyond it rows are uniform, or all but 0 and 1


@dataclass(frozen=True)
class TemperatureMap(Map):
    """Rows proportional to p^β with β = 1/T; an exact zero stays zero."""

    name: ClassVar[str] = "temperature"
    beta: float
    passes: int = 0

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether β lies inside its range."""
        return LOWEST < self.beta < HIGHEST

    def apply(self, P: Array) -> Array:
        """The powers, divided by their sum, in logs so that nothing underflows on the way."""
        with np.errstate(divide="ignore"):
            q = np.log(P, dtype=np.float64)
        q -= q.max(axis=1, keepdims=True)
        q *= self.beta
        np.exp(q, out=q)
        q /= q.sum(axis=1, keepdims=True)
        return q

    def said(self) -> str:
        """`T = 1.60`."""
        t = 1 / self.beta
        return f"T = {t:.2f}" if 0.1 <= t < 100 else f"T = {t:,.0f}" if t >= 100 else f"T = {t:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """β, and the passes that finding it took."""
        return {"beta": self.beta, "passes": self.passes}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> TemperatureMap:  # noqa: ARG003 - any number of classes
        """β within its range."""
        wire.keys(parameters, ("beta", "passes"), "parameters")
        return cls(wire.number(parameters, "beta", LOWEST, HIGHEST), wire.count(parameters, "passes"))


@dataclass(frozen=True)
class TemperatureRule(Rule):
    r"""One temperature T > 0 for all rows and classes, by maximum likelihood.

    .. math:: q_{ik} \propto p_{ik}^{\beta}, \quad
        \beta = \arg\min_\beta \sum_i w_i\,[\mathrm{lse}(\beta \log p_i) - \beta\, y_i\cdot\log p_i], \quad T = 1/\beta

    T > 1 says the model was too sure, T < 1 not sure enough. The same from probabilities as from logits. Convex in
    β; Newton's method inside a bracket, so it always converges. Keeps the order within each row, hence every label
    (up to rounding). Fits take log(max(p, `floor`)); the map itself has no floor. Cost: O(nK) per pass, about 6
    passes. Source: Guo et al. (2017).

    >>> said = np.array([[0.1, 0.9]] * 4)
    >>> TemperatureRule().fit(said, np.eye(2)[[1, 1, 1, 0]], np.ones(4)).said()
    'T = 2.00'
    """

    name: ClassVar[str] = "temperature"
    complexity: ClassVar[int] = 1
    keeps_argmax: ClassVar[bool] = True
    map: ClassVar[type[Map] | None] = TemperatureMap
    floor: float = FLOOR

    def __post_init__(self) -> None:
        check_floor(self.floor)

    def fit(self, P: Array, Y: Array, w: Array) -> TemperatureMap:
        """The temperature of these rows."""
        logs = self.logs(P)
        seen = np.einsum("nk,nk->n", Y, logs)
        if not (w * logs.min(axis=1)).any():
            return TemperatureMap(1.0)  # every row is uniform: any temperature gives the same
        if not (w * seen).any():
            return TemperatureMap(HIGHEST)  # every row got its most probable class: the likelihood rises for ever
        return TemperatureMap(*steepness(lambda beta: softmax_linear(logs[:, :, None], Y, w, np.array([beta]))))

    def logs(self, P: Array) -> Array:
        """Floored logs relative to the largest of the row: the shift changes no softmax and keeps digits."""
        logs = np.log(np.maximum(P, self.floor, dtype=np.float64))
        logs -= logs.max(axis=1, keepdims=True)
        return logs

    def notes(self, fitted: Map, P: Array, Y: Array, w: Array) -> list[Note]:
        """Floored values, and a β at an end of its range."""
        assert isinstance(fitted, TemperatureMap)
        said = touched(P, Y, self.floor)
        if fitted.beta >= HIGHEST:
            said.append(
                Note(
                    "TN503",
                    f"Every row got its most probable class right, or nearly so: no finite temperature fits best. T stopped at {1 / HIGHEST:g}, which makes almost every probability 0 or 1.",
                )
            )
        if fitted.beta <= LOWEST:
            said.append(
                Note(
                    "TN504",
                    f"The predictions inform no better than chance, or point the wrong way: T stopped at {1 / LOWEST:g}, which makes every row uniform.",
                )
            )
        return said


def steepness(sums: Callable[[float], Likelihood]) -> tuple[float, int]:
    """The minimizing β and the passes taken, from sums that may come from anywhere: one call is one pass.

    Newton's step where it stays inside the bracket and, once the minimum is enclosed, at least halves the last one;
    else the bracket's middle in log β. The ends of the range are tried once, when a step leads beyond them.
    """
    low, high, beta, last = LOWEST, HIGHEST, 1.0, math.inf
    untried = {LOWEST, HIGHEST}
    for passes in range(1, 200):
        at = sums(beta)
        g, h = float(at.gradient[0]), float(at.hessian[0, 0])
        untried.discard(beta)
        if g == 0 and (h > 0 or beta == 1.0):
            return beta, passes
        if g >= 0 and h == 0 and beta > 1:  # underflow: the rows are all but certain already
            return HIGHEST, passes
        if (beta == LOWEST and g >= 0) or (beta == HIGHEST and g <= 0):
            return beta, passes
        low, high = (low, beta) if g > 0 else (beta, high)
        step = -g / h if h > 0 else -math.copysign(math.inf, g)
        if abs(step) <= 1e-9 * beta or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), passes  # quadratic: what remains is below rounding
        following, closed = beta + step, low > LOWEST and high < HIGHEST
        if following <= LOWEST and LOWEST in untried:
            following = LOWEST
        elif following >= HIGHEST and HIGHEST in untried:
            following = HIGHEST
        elif not low < following < high or (abs(step) > 0.5 * last and (closed or passes > 20)):
            following = math.sqrt(low * high)
        last, beta = abs(following - beta), following
    return beta, passes
