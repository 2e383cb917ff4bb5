"""What increasing curve fits best? Isotonic regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from trueodds.calibrators import wire
from trueodds.calibrators.base import Map, Rule
from trueodds.calibrators.one_vs_rest import Curve, OneVsRest, each_class, exact_zeros
from trueodds.core.errors import InputError, Note
from trueodds.problem.by_score import ByScore

Array = NDArray[Any]

_BETWEEN = ("linear", "step")


@dataclass(frozen=True, eq=False)
class Monotone:
    """A non-decreasing curve through knots, flat beyond the first and the last."""

    x: Array  # (m,) strictly rising
    y: Array  # (m,) in [0, 1], not falling
    between: str = "linear"

    def __call__(self, x: Array) -> Array:
        """The values at x."""
        if self.between == "linear":
            return np.interp(x, self.x, self.y)
        return self.y[np.maximum(np.searchsorted(self.x, x, "right") - 1, 0)]

    def to_dict(self) -> dict[str, Any]:
        """The knots and what lies between them."""
        return {"x": self.x.tolist(), "y": self.y.tolist(), "between": self.between}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Monotone:
        """Knots that rise, values that do not fall."""
        wire.keys(given, ("x", "y", "between"), "a curve")
        x = wire.vector(given, "x", 0, 2, rising="strictly")  # float16 may say a little more than 1
        y = wire.vector(given, "y", 0, 1, size=len(x), rising="weakly")
        if given["between"] not in _BETWEEN:
            raise InputError(
                "TO505",
                "In a saved calibrator between must be linear or step.",
                repr(given["between"])[:40],
                "Fit it again and save it with .save(path).",
            )
        return cls(x, y, given["between"])


@dataclass(frozen=True, eq=False)
class IsotonicMap(OneVsRest):
    """A non-decreasing curve for the second of two classes, or for every class."""

    name: ClassVar[str] = "isotonic"
    curve: ClassVar[Callable[[Mapping[str, Any]], Curve]] = Monotone.from_dict

    def said(self) -> str:
        """How many knots."""
        knots = sum(len(curve.x) for curve in self.curves)
        return f"{knots:,} {'knot' if knots == 1 else 'knots'}" + (
            f" in {len(self.curves)} curves" if len(self.curves) > 1 else ""
        )


@dataclass(frozen=True)
class IsotonicRule(Rule):
    r"""The non-decreasing curve with the least squared error, which also has the largest likelihood.

    .. math:: \min_f \sum_i w_i\,(y_i - f(p_i))^2, \quad f \text{ non-decreasing}

    Equal scores are pooled first, so row order never matters. Between the knots the curve is a straight line
    (`between="linear"`) or keeps the left knot's value (`"step"`). Two classes: the curve of the second; more: one
    per class against the rest, then each row over its sum. May say exactly 0 or 1, and labels may change. Needs
    about 1,000 rows not to overfit. Cost: O(K n log n). Source: Zadrozny & Elkan (2002).

    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = IsotonicRule().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> m.apply(np.array([[0.75, 0.25], [0.65, 0.35]]))[:, 1].round(2).tolist()
    [0.5, 0.75]
    """

    name: ClassVar[str] = "isotonic"
    complexity: ClassVar[int] = 10
    keeps_argmax: ClassVar[bool] = False
    map: ClassVar[type[Map] | None] = IsotonicMap
    between: str = "linear"

    def __post_init__(self) -> None:
        if self.between not in _BETWEEN:
            raise InputError("TO203", "between is 'linear' or 'step'.", repr(self.between), "Leave it out for linear.")

    def fit(self, P: Array, Y: Array, w: Array) -> IsotonicMap:
        """The curves of these rows."""
        return IsotonicMap(each_class(partial(_curve, between=self.between), P, Y, w))

    def notes(self, fitted: Map, P: Array, Y: Array, w: Array) -> list[Note]:
        """Exact zeros."""
        return exact_zeros(fitted.apply(P))


def _curve(x: Array, y: Array, w: Array, between: str) -> Monotone:
    knots, mass, came = ByScore(x, y, w).sums()
    rate = came / mass
    # Rounding may leave a mean of ones a hair above 1.
    level = np.clip(isotonic_regression(rate, weights=mass).x, 0.0, 1.0)
    # Inside a flat stretch a knot changes nothing; its two ends are kept.
    keep = np.ones(len(knots), dtype=bool)
    keep[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    return Monotone(knots[keep], level[keep], between)
