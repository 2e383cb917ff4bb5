"""Is the Brier score larger than the probabilities themselves promise? Spiegelhalter's z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.hypotests import surplus
from trueodds.hypotests.by_view import ViewTest
from trueodds.hypotests.statistics import Cells, ViewResult
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Spiegelhalter(ViewTest):
    r"""Spiegelhalter's z: do the outcomes scatter around the stated probabilities as these say they will?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is the Brier score minus the one that the probabilities promise, in standard errors; two-sided normal. It sees
    probabilities that are too extreme (z > 0) or too timid (z < 0), and is blind to what cancels in that direction,
    such as a shift of probabilities around ½.

    Shapes: binary views. Statistic: z, any size. Effect: the mean of y − p toward ½, with weights |1 − 2p|: positive
    for overconfidence, in probability units within [−1, 1]. Where every p is 0, ½ or 1, z is undefined (NaN, note
    TN214), and infinite where an outcome came that had probability 0 (note TN215). The normal law fails where few rows
    or rare outcomes carry the chance; a skewness of the promised sum beyond 1 is told. Weights are importance weights.
    Cost: O(n); with redraws O(n) per draw. From a tally p is the mean of its cell.
    Raises TO205 for a lens with a vector per row; `score` is the test for those.
    Source: Spiegelhalter (1986).

    >>> view = View(p=[0.9, 0.9, 0.8, 0.1], y=[1, 0, 1, 0])
    >>> round(Spiegelhalter().on(view).statistic, 4)
    0.9167
    """

    name: ClassVar[str] = "spiegelhalter"
    asymptotic_null: ClassVar[str] = "z is standard normal"
    exempt: ClassVar[dict[str, str]] = {"weight two": "weights are importance weights: chance grows with their squares"}

    def on(self, view: View) -> ViewResult:
        """z, its two-sided p, and the mean residual toward ½."""
        return surplus.z_test(view, "brier")

    def cells(self, view: View) -> Cells:
        """|z|, each row by itself."""
        return surplus.cells(view, "brier")
