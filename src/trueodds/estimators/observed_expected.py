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
    r"""Outcomes that came, divided by the sum of the probabilities (O:E ratio, standardized event ratio).

    Answers: over everybody, did the model promise too few outcomes (above 1) or too many (below 1)?

    .. math:: \frac{\sum_i w_i y_i}{\sum_i w_i p_i}

    `parts` holds the rates `observed` and `expected`. It sees only totals: errors that cancel leave it at 1, so
    read it beside a curve or `ici`. Shapes: a binary view (n,). Units: a ratio, in [0, ∞]; 1 is best, .8 means a
    fifth fewer outcomes than promised. Where nothing was expected it is infinite, or undefined if nothing came
    either; a note says so.
    Bias: none for a calibrated model given its predictions, so its noise floor is 1. Cost: O(n). Merges exactly. The
    interval is BCa over resampled rows. Raises TO205 for a lens with a vector per row.
    Source: Van Calster et al. (2016); Debray et al. (2017).

    >>> round(float(ObservedExpected()(View(p=[0.5, 0.7], y=[1, 0]))), 4)
    0.8333
    """

    name: ClassVar[str] = "o_e"
    lower_bound: ClassVar[float] = 0.0
    interval: ClassVar[str | None] = "bca"
    averages: ClassVar[bool] = False  # ratios above and below 1 would cancel
    best_value: ClassVar[float] = 1.0

    def value(self, view: View) -> float:
        """Observed over expected."""
        observed, expected = _rates(self, view)
        return float(_ratio(np.array(observed), np.array(expected)))

    def linear(self, view: View) -> Totals:
        """The same from the totals: one cell holds all rows."""
        return Totals(self, view)

    def expected(self, view: View) -> float | None:
        """1: what comes if every probability is right has the promised mean."""
        return 1.0 if _rates(self, view)[1] > 0 else None

    def parts(self, view: View) -> dict[str, float]:
        """The two rates."""
        observed, expected = _rates(self, view)
        return {"observed": observed, "expected": expected}

    def notes(self, view: View) -> list[Note]:
        """A word where nothing was expected."""
        observed, expected = _rates(self, view)
        if expected > 0:
            return []
        if observed > 0:
            return [Note("TN125", "Outcomes came, and none was expected: observed over expected is infinite.")]
        return [Note("TN125", "No outcome was expected and none came: observed over expected is undefined.")]


class Totals:
    """All rows of a view in one cell."""

    def __init__(self, error: ObservedExpected, view: View) -> None:
        self.error, self.view = error, view
        self.index = np.zeros(len(view.p), dtype=np.int64)
        self.size = 1

    def value(self) -> float:
        """The ratio of the view itself."""
        return self.error.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The ratio of each draw."""
        return _ratio(wy[..., 0], wp[..., 0])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: a ratio is no norm."""
        return None


def _rates(error: ObservedExpected, view: View) -> tuple[float, float]:
    one_score(view, error.name)
    p = view.p.astype(np.float64, copy=False)
    return float((view.w * view.y).sum() / view.total), float((view.w * p).sum() / view.total)


def _ratio(observed: Array, expected: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return observed / expected
