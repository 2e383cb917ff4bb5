"""Ratio of observed to expected events (O:E ratio, calibration in the large)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, one_score
from trueodds.lenses.view import View


@dataclass(frozen=True)
class ObservedExpected(Estimator):
    r"""Ratio of observed to expected events (O:E ratio, standardized event ratio).

    A ratio above 1 means that the model under-predicts on average (calibration-in-the-large). A ratio below 1 means
    that it over-predicts.

    Raises
    ------
    InputError
        TO205 if the view has a vector per row.

    See Also
    --------
    IntegratedIndex : Mean distance from a smooth calibration curve (ICI).

    Notes
    -----
    .. math:: \frac{\sum_i w_i y_i}{\sum_i w_i p_i}

    `parts` holds the rates `observed` and `expected`. The ratio depends on totals only, and errors that cancel leave it
    at 1, so use it together with a calibration curve or `ici`. Shapes: a binary view (n,).

    Units: a ratio, in [0, ∞]; 1 is best. A ratio of 0.8 means a fifth fewer events than expected. If nothing was
    expected, the ratio is infinite, or undefined if no event was observed either, and a note says so.

    Bias: none for a calibrated model given its predictions, so the noise floor is 1. The interval is BCa over resampled
    rows.

    Cost: O(n). Tallies merge exactly.

    References
    ----------
    .. [1] Van Calster et al. (2016).
    .. [2] Debray et al. (2017).

    Examples
    --------
    >>> round(float(ObservedExpected()(View(p=[0.5, 0.7], y=[1, 0]))), 4)
    0.8333
    """

    name: ClassVar[str] = "o_e"
    lower_bound: ClassVar[float] = 0.0
    interval: ClassVar[str | None] = "bca"
    averages: ClassVar[bool] = False  # ratios above and below 1 would cancel
    best_value: ClassVar[float] = 1.0

    def value(self, view: View) -> float:
        """Observed over expected events."""
        observed, expected = _rates(self, view)
        return float(_ratio(np.array(observed), np.array(expected)))

    def linear(self, view: View) -> Totals:
        """The ratio from totals, with all rows in one cell."""
        return Totals(self, view)

    def expected(self, view: View) -> float | None:
        """The expected ratio of a calibrated model, which is 1."""
        return 1.0 if _rates(self, view)[1] > 0 else None

    def parts(self, view: View) -> dict[str, float]:
        """Observed and expected event rate."""
        observed, expected = _rates(self, view)
        return {"observed": observed, "expected": expected}

    def notes(self, view: View) -> list[Note]:
        """Note if no event was expected."""
        observed, expected = _rates(self, view)
        if expected > 0:
            return []
        if observed > 0:
            return [Note("TN125", "Events were observed but none was expected: the O:E ratio is infinite.")]
        return [Note("TN125", "No event was expected and none was observed: the O:E ratio is undefined.")]


class Totals:
    """All rows of a view in one cell."""

    def __init__(self, error: ObservedExpected, view: View) -> None:
        self.error, self.view = error, view
        self.index = np.zeros(len(view.p), dtype=np.int64)
        self.size = 1

    def value(self) -> float:
        """The ratio of the view."""
        return self.error.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The ratio of each draw."""
        return _ratio(wy[..., 0], wp[..., 0])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None, because a ratio is not a norm."""
        return None


def _rates(error: ObservedExpected, view: View) -> tuple[float, float]:
    one_score(view, error.name)
    p = view.p.astype(np.float64, copy=False)
    return float((view.w * view.y).sum() / view.total), float((view.w * p).sum() / view.total)


def _ratio(observed: Array, expected: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return observed / expected
