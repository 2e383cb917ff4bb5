"""What do decisions at one threshold cost? The elementary score under a Murphy curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Probability
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, one_score, single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MurphyLoss(ProperScore):
    r"""The mean cost of acting where the probability exceeds a threshold: a point of the Murphy curve.

    Answers: for one who acts above θ because a false alarm costs θ and a miss 1 − θ, what do these probabilities cost?

    .. math:: S_\theta(p, y) = 2\theta\, \mathbf 1\{p > \theta, y = 0\} + 2(1 - \theta)\, \mathbf 1\{p < \theta, y = 1\}

    A score that states the threshold itself leaves the choice open and pays half of either cost, the mean of the two
    one-sided limits; how many rows do so is noted. θ = 1/2 gives the misclassification rate. Every proper score of a
    binary outcome is a mixture of these over θ: the area under the curve is Brier's score, and with the weight
    1/(2θ(1 − θ)) log loss. So a model that is lower at every θ is better for everyone, and curves that cross say
    for whom. The factor 2, which makes the area Brier's, is that of Dimitriadis et al. (2024); Ehm et al. (2016)
    have the elementary score without it, half of this.

    Shapes: a binary view (n,). Units: cost, in [0, 2 max(θ, 1 − θ)]; 0 is best. Proper, not strictly: only the side of
    the threshold counts. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(n). Needs rows;
    merges as any mean does. A calibrated model pays the mean of 2 min(θ(1 − p), (1 − θ)p), which `noise_floor` reports.
    Raises TO203 for a threshold outside (0, 1), TO205 for a lens with a vector per row or cells of many rows.
    Source: Ehm, Gneiting, Jordan & Krüger (2016); Dimitriadis, Gneiting, Jordan & Vogel (2024).

    >>> float(MurphyLoss(threshold=0.2)(View(p=[0.1, 0.3, 0.9, 0.9], y=[1, 0, 1, 0])))  # (1.6 + .4 + 0 + .4) / 4
    0.6
    """

    name: ClassVar[str] = "murphy_loss"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    threshold: Probability = 0.5

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return self._cost(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        return float(view.w @ self._cost(view, _exact(view)) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": float(self.threshold)}

    def notes(self, view: View) -> list[Note]:
        """How many rows leave the decision open."""
        at = int(((_exact(view) == self.threshold) & (view.w > 0)).sum())
        text = f"{at:,} {'row states' if at == 1 else 'rows state'} the threshold {self.threshold:g} itself and {'pays' if at == 1 else 'pay'} half of either cost."
        return [Note("TN129", text)] if at else []

    def _cost(self, view: View, y: Array) -> Array:
        one_score(view, self.name)
        single_rows(view, self.name)
        theta = float(self.threshold)
        acts = (np.sign(_exact(view) - theta) + 1) / 2  # 1/2 at the threshold
        cost: Array = 2 * (theta * acts * (1 - y) + (1 - theta) * (1 - acts) * y)
        return cost


def _exact(view: View) -> Array:
    """The scores in double precision, so that the threshold is not rounded to their type."""
    return view.p.astype(np.float64, copy=False)
