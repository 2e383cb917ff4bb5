"""Is the Brier score larger than the probabilities themselves promise? Spiegelhalter's z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from trueodds.core.errors import Note
from trueodds.hypotests.by_view import Cells, Found, ViewTest
from trueodds.problem.view import View

Array = NDArray[Any]


@dataclass(frozen=True)
class Spiegelhalter(ViewTest):
    r"""Spiegelhalter's z: do the outcomes scatter around the stated probabilities as these say they will?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is the Brier score minus the one that the probabilities promise, in standard errors; two-sided normal. It sees
    probabilities that are too extreme (z > 0) or too timid (z < 0), and is blind to what cancels in that direction,
    such as a shift of probabilities around ½.

    Shapes: binary views. Statistic: z, any size. Effect: the mean of y − p toward ½, with weights |1 − 2p|: positive
    for overconfidence, in probability units within [−1, 1]. Undefined (NaN, note TN214) where every p is 0, ½ or 1.
    Cost: O(n); with redraws O(n) per draw. From a tally p is the mean of its cell.
    Raises TO205 for a lens with a vector per row; `score` is the test for those.
    Source: Spiegelhalter (1986).

    >>> view = View(p=[0.9, 0.9, 0.8, 0.1], y=[1, 0, 1, 0])
    >>> round(Spiegelhalter().on(view).statistic, 4)
    0.9167
    """

    name: ClassVar[str] = "spiegelhalter"
    law: ClassVar[str] = "z is standard normal"

    def on(self, view: View) -> Found:
        """z, its two-sided p, and the mean residual toward ½."""
        p, r = view.p.astype(np.float64), view.y - view.p
        pull = view.w * (1 - 2 * p)
        spread = _spread(view)
        if spread == 0:
            note = Note(
                "TN214", "Every probability is 0, ½ or 1: the promised Brier score cannot be missed, so z is undefined."
            )
            return Found(float("nan"), float("nan"), float("nan"), notes=(note,))
        z = float((pull * r).sum() / spread)
        return Found(z, float(2 * ndtr(-abs(z))), float((pull * r).sum() / np.abs(pull).sum()))

    def cells(self, view: View) -> Cells:
        """|z|, each row by itself."""
        pull, spread = 1 - 2 * view.p.astype(np.float64), _spread(view)

        def reader(_w: Array, wp: Array, wy: Array) -> Array:
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.abs((wy - wp) @ pull) / (spread or np.nan)

        return Cells.of_rows(view, reader)


def _spread(view: View) -> float:
    p = view.p.astype(np.float64)
    return float(np.sqrt(((1 - 2 * p) ** 2 * view.sums("wwv")).sum()))
