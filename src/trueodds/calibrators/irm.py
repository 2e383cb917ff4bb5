"""Multiclass isotonic regression (IRM): one curve for all pairs of a class probability and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.isotonic import MonotoneCurve, fit_monotone
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array

_ROUNDING_MARGIN = 1 + 1e-15  # factor by which the predicted class stays above the next, against rounding
_NEARLY_ZERO_PROB = 1e-6  # a class below this is nearly ruled out


@dataclass(frozen=True, eq=False)
class IrmMap(CalibrationMap):
    """Rows proportional to g(p) + tilt · p, with one non-decreasing curve g for all classes."""

    name: ClassVar[str] = "irm"
    curve: MonotoneCurve  # g, the same for every class
    tilt: Annotated[float, Range(1e-15, 1)]  # factor of p

    def apply(self, P: Array) -> Array:
        """Values of the curve plus the tilt, normalized."""
        return apply_in_blocks(self._apply_to_rows, P)

    def _apply_to_rows(self, P: Array) -> Array:
        """Recalibrate one block of rows, (n, K)."""
        q: Array = self.curve(P.reshape(-1)).reshape(P.shape)
        q = q + self.tilt * P
        q /= q.sum(axis=1, keepdims=True)
        # Where rounding lets another class overtake the predicted class, the predicted class is raised above it.
        predicted_class = P.argmax(axis=1)
        overtaken_rows = np.flatnonzero(q.argmax(axis=1) != predicted_class)
        q[overtaken_rows, predicted_class[overtaken_rows]] = q[overtaken_rows].max(axis=1) * _ROUNDING_MARGIN
        return q

    def describe(self) -> str:
        """The number of knots."""
        knots = len(self.curve.x)
        return f"{knots:,} {'knot' if knots == 1 else 'knots'} for all classes"


@dataclass(frozen=True)
class IrmSpec(CalibratorSpec):
    r"""IRM: one isotonic regression for the probabilities of all classes, plus a small share of the probabilities.

    All n·K pairs of a class probability and its outcome fit one curve, so K times fewer rows are needed than with one
    curve per class. An error of a single class cannot be corrected. The order within each row is kept, and with it
    every predicted class.

    Parameters
    ----------
    tilt : float, default=1e-9
        Factor ε of the probabilities, in [1e-15, 1]. It keeps the order within each row where the curve is flat.
        Classes that the curve rules out keep about ε p, which a note counts.

    Notes
    -----
    .. math:: \min_g \sum_{i,k} w_i\,(y_{ik} - g(p_{ik}))^2, \qquad
        q_{ik} = \frac{g(p_{ik}) + \varepsilon\,p_{ik}}{\sum_l [g(p_{il}) + \varepsilon\,p_{il}]}

    g does not decrease. Equal scores are pooled. Between the knots the curve is linear.

    Cost: O(nK log nK).

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020), IRM.

    Examples
    --------
    >>> P = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> m = IrmSpec().fit(P, np.eye(3)[[0, 1, 2]], np.ones(3))
    >>> m.apply(P[:1]).round(3).tolist()  # event rate 2/3 at 0.6 and 1/3 at 0.3
    [[0.667, 0.333, 0.0]]
    """

    name: ClassVar[str] = "irm"
    keeps_argmax: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = IrmMap
    tilt: Annotated[float, Range(1e-15, 1)] = 1e-9

    def fit(self, P: Array, Y: Array, w: Array) -> IrmMap:
        """Fit the curve."""
        has_weight = w > 0
        if not has_weight.all():
            P, Y, w = P[has_weight], Y[has_weight], w[has_weight]
        curve = fit_monotone(P.reshape(-1), Y.reshape(-1), np.repeat(w, P.shape[1]))
        return IrmMap(curve, float(self.tilt))

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Note on rows with a nearly excluded class."""
        blocks = (calibration_map.apply(p) for p, _, _ in iterate_blocks(P, Y, w))
        n_rows = sum(int((q < _NEARLY_ZERO_PROB).any(axis=1).sum()) for q in blocks)
        if n_rows == 0:
            return []
        text = (
            f"The map gives some class less than {_NEARLY_ZERO_PROB:g} in {n_rows:,} of the {len(P):,} rows it was"
            f" fitted on; if that class is observed, the log loss is above {-np.log(_NEARLY_ZERO_PROB):.0f} nats."
        )
        return [Note("TN513", text)]
