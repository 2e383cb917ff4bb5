"""Centered isotonic regression: isotonic regression without flat segments, so that different scores stay different."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from trueodds.calibrators._curves.one_vs_rest import fit_curves_from_counts
from trueodds.calibrators._curves.score_scale import PROBABILITY, score_scale
from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.isotonic import IsotonicMap, MonotoneCurve, isotonic_notes
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS
from trueodds.kernels.isotonic import isotonic_means


@dataclass(frozen=True, eq=False)
class CenteredIsotonicMap(IsotonicMap):
    """A curve for the second of two classes, or for every class, without flat segments between its outermost centers.

    Only where it is exactly 0 or 1 it may be flat between them.
    """

    name: ClassVar[str] = "centered_isotonic"


@dataclass(frozen=True)
class CenteredIsotonicSpec(CalibratorSpec):
    r"""Centered isotonic regression: isotonic regression whose flat segments shrink to their centers.

    The centers are joined by straight lines, so the curve increases strictly between the first and the last one, and
    different scores stay different where isotonic regression makes them equal. It is more accurate than `isotonic` if
    the true curve increases strictly. Two classes have one curve, for the second class. With more classes each has a
    curve against the rest, and rows are divided by their sums. Probabilities may become exactly 0 or 1, and predicted
    classes may change.

    Notes
    -----
    .. math:: \Big(\bar p_b, \bar y_b\Big), \quad
        \bar p_b = \frac{\sum_{i \in b} w_i p_i}{\sum_{i \in b} w_i}, \quad
        \bar y_b = \frac{\sum_{i \in b} w_i y_i}{\sum_{i \in b} w_i}

    for the blocks b that isotonic regression pools; neighboring blocks of equal rate are joined. Segments at exactly 0
    or 1 stay flat, and so does the curve beyond the outermost centers. Some hundred rows are needed to avoid
    overfitting.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Oron & Flournoy (2017).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> curve = CenteredIsotonicSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4)).curves[0]
    >>> curve.x.round(2).tolist(), curve.y.tolist()
    ([0.1, 0.25, 0.4], [0.0, 0.5, 1.0])
    """

    name: ClassVar[str] = "centered_isotonic"
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = CenteredIsotonicMap
    accepts_raw_arrays: ClassVar[bool] = True
    takes_logs: ClassVar[bool] = True

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CenteredIsotonicMap:
        """Fit the curves."""
        fit_curve = partial(fit_centered_isotonic, scale=score_scale(P))
        return CenteredIsotonicMap(fit_curves_from_counts(P, Y, w, fit_curve))

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Note on exact zeros."""
        return isotonic_notes(calibration_map, P)


def fit_centered_isotonic(s: Array, mass: Array, events: Array, scale: str = PROBABILITY) -> MonotoneCurve:
    """Fit the curve through the centers of the isotonic blocks of increasing scores s (m,).

    `mass` (m,) is Σw and `events` (m,) is Σwy at each score. A block whose event rate is 0 or 1 stays flat: its knots
    are its first and its last score instead of its center.
    """
    # Rounded means of weighted rows may slightly exceed 1 or fall below the previous one.
    levels = np.minimum(np.maximum.accumulate(isotonic_means(mass, events)), 1.0)
    starts = np.flatnonzero(np.append(True, levels[1:] != levels[:-1]))
    ends = np.append(starts[1:], len(s)) - 1
    finite_mass = np.where(np.abs(s) < MAX_LOG_ODDS, mass, 0.0)  # the log odds of an exact zero have no mean
    center_mass = np.add.reduceat(finite_mass, starts)
    centers = np.divide(
        np.add.reduceat(finite_mass * s, starts), center_mass, out=s[starts].astype(np.float64), where=center_mass > 0
    )
    centers = np.clip(centers, s[starts], s[ends])  # its rounding must not reach the next block
    levels = levels[starts]
    is_extreme = (levels == 0) | (levels == 1)
    x = np.stack([np.where(is_extreme, s[starts], centers), np.where(is_extreme, s[ends], centers)], axis=1).ravel()
    y = np.repeat(levels, 2)
    is_new = np.append(True, x[1:] != x[:-1])
    return MonotoneCurve(x[is_new], y[is_new], scale=scale)
