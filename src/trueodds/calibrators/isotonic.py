"""Isotonic calibration: non-decreasing curves, piecewise linear or steps, fitted by isotonic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from trueodds.calibrators._curves.one_vs_rest import (
    OneVsRest,
    describe_knots,
    fit_by_class,
    zero_probability_notes,
    zero_probability_notes_of_cells,
)
from trueodds.calibrators._curves.score_scale import (
    PROBABILITY,
    KnotScores,
    Scale,
    check_knots,
    score_scale,
)
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities
from trueodds.calibrators.base import CalibrationMap, TalliedSpec
from trueodds.calibrators.saved_parameters import Numbers, Saved
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.kernels import isotonic, score_keys
from trueodds.kernels.piecewise_functions import Knots, are_all_or_none_below
from trueodds.lenses.view import View

_INTERPOLATIONS = ("linear", "step")


@dataclass(frozen=True, eq=False)
class MonotoneCurve(Saved):
    """A non-decreasing curve of the score through knots, constant beyond the first and the last."""

    x: KnotScores  # (m,)
    y: Annotated[Array, Numbers(0, 1, increasing="weakly")]  # (m,)
    between: Annotated[str, OneOf(_INTERPOLATIONS)] = "linear"  # the values between the knots
    scale: Scale = PROBABILITY  # of the knots; "logit" for a fit on logits

    def __call__(self, x: Array) -> Array:
        """The values at x (n,)."""
        if self.between == "linear":
            return self._spline_knots.interpolate(x, self.y)
        return self._spline_knots.evaluate_steps(x, np.append(self.y[0], self.y), right=True)

    @cached_property
    def _spline_knots(self) -> Knots:
        """The knots with a lookup table for fast evaluation."""
        return Knots(self.x)

    @property
    def zero_up_to(self) -> float:
        """The largest score at which the curve is exactly 0; −1 if there is none."""
        if self.y[0] > 0:
            return -1.0
        first_positive = int(np.searchsorted(self.y, 0.0, "right"))
        if first_positive == len(self.y):
            return np.inf
        if self.between == "linear":
            return float(self.x[first_positive - 1])
        return float(np.nextafter(self.x[first_positive], 0))

    def check_saved(self, k: int) -> None:
        """Check that the knots are on the scale."""
        check_knots("x", self.x, self.scale)


@dataclass(frozen=True, eq=False)
class IsotonicMap(OneVsRest):
    """A non-decreasing curve for the second of two classes, or for every class."""

    name: ClassVar[str] = "isotonic"
    takes_logs: ClassVar[bool] = True
    curves: tuple[MonotoneCurve, ...]

    def rows_without_zero(self, P: Probabilities) -> Array:
        """Mask (n,) of the rows of P (n, K) in which no class gets probability 0."""
        if len(self.curves) == 1 or isinstance(P, LogProbabilities):
            return np.asarray((self.apply(P) > 0).all(axis=1))
        # A row in which every curve is 0 becomes uniform, so it has no zero either.
        return are_all_or_none_below(P, np.array([curve.zero_up_to for curve in self.curves]))

    def describe(self) -> str:
        """The number of knots."""
        return describe_knots(self.curves)


@dataclass(frozen=True)
class IsotonicSpec(TalliedSpec):
    r"""Isotonic regression: the non-decreasing curve with the smallest squared error.

    The same curve maximizes the likelihood. Two classes have one curve, for the second class. With more classes each
    has a curve against the rest, and the rows are normalized. Probabilities may become exactly 0 or 1, and predicted
    classes may change.

    Parameters
    ----------
    between : {"linear", "step"}, default="linear"
        Values between the knots: a straight line, or the value of the left knot.

    Notes
    -----
    .. math:: \min_f \sum_i w_i\,(y_i - f(p_i))^2, \quad f \text{ non-decreasing}

    Tied scores are pooled first, so the result does not depend on the order of the rows. Where logits are known
    (`Predictions.from_logits`), the knots are log odds: the result depends neither on the unit of the scores nor on the
    rounding of probabilities near 1. About 1,000 rows are needed to avoid overfitting.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Zadrozny & Elkan (2002).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = IsotonicSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> m.apply(np.array([[0.75, 0.25], [0.65, 0.35]]))[:, 1].round(2).tolist()
    [0.5, 0.75]
    """

    name: ClassVar[str] = "isotonic"
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = IsotonicMap
    accepts_raw_arrays: ClassVar[bool] = True
    takes_logs: ClassVar[bool] = True
    between: Annotated[str, OneOf(_INTERPOLATIONS)] = "linear"

    def fit(self, P: Probabilities, Y: Array, w: Array) -> IsotonicMap:
        """Fit the curves."""
        blocks = fit_by_class(P, Y, w, isotonic.fit_sorted_keys, isotonic.fit_rows)
        return IsotonicMap(tuple(_curve_from_blocks(block, self.between, score_scale(P)) for block in blocks))

    def fit_from_views(self, views: Sequence[View]) -> IsotonicMap:
        """Fit the curves to cells, each at its mean score."""
        return IsotonicMap(tuple(fit_monotone(view.p, view.y, view.w, self.between) for view in views))

    def notes_from_views(self, calibration_map: CalibrationMap, views: Sequence[View]) -> list[Note]:
        """Note on exact zeros."""
        assert isinstance(calibration_map, IsotonicMap)
        return zero_probability_notes_of_cells(calibration_map.curves, views)

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Note on exact zeros."""
        return isotonic_notes(calibration_map, P)


def isotonic_notes(calibration_map: CalibrationMap, P: Probabilities) -> list[Note]:
    """Note on the rows of P (n, K) that isotonic curves give an exact zero."""
    assert isinstance(calibration_map, IsotonicMap)
    return zero_probability_notes(calibration_map.rows_without_zero(P)[:, None])


def fit_monotone(x: Array, y: Array, w: Array, between: str = "linear") -> MonotoneCurve:
    """Non-decreasing least squares curve through scores x (n,) ≥ 0, outcomes y in [0, 1] and weights w ≥ 0.

    Tied scores are pooled first. At least one weight must be positive. Cost: O(n log n).

    >>> curve = fit_monotone(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 1.0])
    """
    keys = score_keys.encode_and_sort(x, y) if (w == 1).all() else None
    return _curve_from_blocks(isotonic.fit_rows(x, y, w) if keys is None else isotonic.fit_sorted_keys(keys), between)


def _curve_from_blocks(blocks: isotonic.PooledBlocks, between: str, scale: str = PROBABILITY) -> MonotoneCurve:
    """The curve whose knots are the two ends of every block of pooled scores."""
    # Rounded means of weighted rows may slightly exceed 1 or fall below the previous one.
    levels = np.minimum(np.maximum.accumulate(blocks.events / blocks.mass), 1.0)
    x, y = np.stack([blocks.low, blocks.high], axis=1).ravel(), np.repeat(levels, 2)
    is_new = np.append(True, x[1:] != x[:-1])  # a block of a single score has one knot
    x, y = x[is_new], y[is_new]
    # Knots inside a flat segment are dropped; its two ends are kept.
    is_knot = np.ones(len(x), dtype=bool)
    is_knot[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
    return MonotoneCurve(x[is_knot], y[is_knot], between, scale)
