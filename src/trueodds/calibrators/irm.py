"""IRM: one isotonic regression of all pairs of class probability and outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.isotonic import MonotoneCurve, fit_monotone
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array

_LITTLE = 1e-6  # a class with less is all but ruled out


@dataclass(frozen=True, eq=False)
class IrmMap(CalibrationMap):
    """Rows proportional to g(p) + tilt · p."""

    name: ClassVar[str] = "irm"
    curve: MonotoneCurve
    tilt: float

    def apply(self, P: Array) -> Array:
        """The curve's values and the tilt, over their sum."""
        return apply_in_blocks(self._rows, P)

    def _rows(self, P: Array) -> Array:
        q: Array = self.curve(P.reshape(-1)).reshape(P.shape)
        q = q + self.tilt * P
        q /= q.sum(axis=1, keepdims=True)
        # Of scores that differ by less than the tilt can tell, the largest stays the largest.
        every, top = np.arange(len(P)), P.argmax(axis=1)
        lost = q.argmax(axis=1) != top
        q[every[lost], top[lost]] = q[lost].max(axis=1) * (1 + 1e-15)
        return q

    def describe(self) -> str:
        """How many knots."""
        knots = len(self.curve.x)
        return f"{knots:,} {'knot' if knots == 1 else 'knots'} for all classes"

    def to_dict(self) -> dict[str, Any]:
        """The curve and the tilt."""
        return {"curve": self.curve.to_dict(), "tilt": self.tilt}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> IrmMap:  # noqa: ARG003 - any number of classes
        """A curve that does not fall, a small tilt."""
        saved_parameters.check_keys(parameters, ("curve", "tilt"), "parameters")
        return cls(
            MonotoneCurve.from_dict(saved_parameters.read_table(parameters, "curve")),
            saved_parameters.read_number(parameters, "tilt", 1e-15, 1),
        )


@dataclass(frozen=True)
class IrmSpec(CalibratorSpec):
    r"""One non-decreasing curve g for the probabilities of all classes, and a little of the probabilities themselves.

    .. math:: \min_g \sum_{i,k} w_i\,(y_{ik} - g(p_{ik}))^2, \qquad
        q_{ik} = \frac{g(p_{ik}) + \varepsilon\,p_{ik}}{\sum_l [g(p_{il}) + \varepsilon\,p_{il}]}

    All n·K pairs fit one curve, so it needs K times fewer rows than one per class; what it cannot mend is an error of
    one class alone. Equal scores are pooled; between the knots the curve is a straight line. `tilt` is ε: it keeps
    the order within each row, hence every label, where the curve is flat. Classes that the curve rules out keep about
    ε p, which a note counts. Cost: O(nK log nK). Source: Zhang, Kailkhura & Han (2020), IRM.

    >>> P = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> m = IrmSpec().fit(P, np.eye(3)[[0, 1, 2]], np.ones(3))
    >>> m.apply(P[:1]).round(3).tolist()  # of .6 two of three events, of .3 one of three
    [[0.667, 0.333, 0.0]]
    """

    name: ClassVar[str] = "irm"
    complexity: ClassVar[int] = 20
    keeps_argmax: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = IrmMap
    tilt: Annotated[float, Range(1e-15, 1)] = 1e-9

    def fit(self, P: Array, Y: Array, w: Array) -> IrmMap:
        """The curve of these rows."""
        live = w > 0
        if not live.all():
            P, Y, w = P[live], Y[live], w[live]
        curve = fit_monotone(P.reshape(-1), Y.reshape(-1), np.repeat(w, P.shape[1]))
        return IrmMap(curve, float(self.tilt))

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Rows with a class that is all but ruled out."""
        rows = sum(int((calibration_map.apply(p) < _LITTLE).any(axis=1).sum()) for p, _, _ in iterate_blocks(P, Y, w))
        if rows == 0:
            return []
        text = f"The map gives some class less than {_LITTLE:g} in {rows:,} of the {len(P):,} rows it was fitted on"
        return [Note("TN513", f"{text}; should that class come, the log loss is above {-np.log(_LITTLE):.0f} nats.")]
