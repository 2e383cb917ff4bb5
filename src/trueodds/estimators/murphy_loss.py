"""Murphy loss: the elementary score of decisions at one probability threshold, a point of the Murphy curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Probability
from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.estimators.base import ProperScore, require_one_score, require_single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MurphyLoss(ProperScore):
    r"""Elementary score: mean cost of decisions at a probability threshold, a point of the Murphy curve.

    The decision is to act above θ. A false alarm costs θ and a miss 1 − θ.

    Parameters
    ----------
    threshold : float, default=0.5
        θ in (0, 1).

    Raises
    ------
    InputError
        TO203 if the threshold is outside (0, 1). TO205 if the view has a vector per row or cells of many rows.

    Notes
    -----
    .. math:: S_\theta(p, y) = 2\theta\, \mathbf 1\{p > \theta, y = 0\} + 2(1 - \theta)\, \mathbf 1\{p < \theta, y = 1\}

    A score equal to the threshold costs half of either cost, the mean of the two one-sided limits, and a note reports
    the number of such rows. θ = 1/2 gives the misclassification rate. Every proper score of a binary outcome is a
    mixture of these scores over θ: the area under the curve is the Brier score, and the weight 1/(2θ(1 − θ)) gives log
    loss. A model with a lower score at every θ is better for every user. If curves cross, the better model depends on
    the costs. The factor 2 follows [2]_ and makes the area the Brier score. [1]_ defines the elementary score without
    it. A vote share of 0.7 counts as a row of weight 0.7 and one of 0.3. Shapes: a binary view (n,).

    Units: cost, in [0, 2 max(θ, 1 − θ)]; 0 is best. The score is proper but not strictly proper, because only the side
    of the threshold counts.

    Bias: none. A calibrated model scores the mean of 2 min(θ(1 − p), (1 − θ)p), which `noise_floor` reports.

    Cost: O(n). Rows are required. Values merge as any mean does.

    References
    ----------
    .. [1] Ehm, Gneiting, Jordan & Krüger (2016).
    .. [2] Dimitriadis, Gneiting, Jordan & Vogel (2024).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 0], [0.1, 0.3, 0.9, 0.9]
    >>> round(to.measure(y, p, "murphy_loss", threshold=0.2, interval=None).value, 4)  # (1.6 + .4 + 0 + .4) / 4
    0.6
    """

    name: ClassVar[str] = "murphy_loss"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    threshold: Probability = 0.5

    def row_scores(self, view: View) -> Array:
        """The loss of each row, (n,)."""
        return self._cost(view, view.y)

    def expected_if_calibrated(self, view: View) -> float:
        """Expected score of a calibrated model with these predictions."""
        return float(weighted_sum(view.w, self._cost(view, _float64_scores(view))) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"threshold": float(self.threshold)}

    def notes(self, view: View) -> list[Note]:
        n_equal = int(((_float64_scores(view) == self.threshold) & (view.w > 0)).sum())
        text = (
            f"{n_equal:,} {'prediction equals' if n_equal == 1 else 'predictions equal'} the threshold"
            f" {self.threshold:g} and {'incurs' if n_equal == 1 else 'incur'} half of either cost."
        )
        return [Note("TN129", text)] if n_equal else []

    def _cost(self, view: View, y: Array) -> Array:
        """Loss of each row at outcomes y, (n,)."""
        require_one_score(view, self.name)
        require_single_rows(view, self.name)
        theta = float(self.threshold)
        acts = (np.sign(_float64_scores(view) - theta) + 1) / 2  # 1/2 at the threshold
        cost: Array = 2 * (theta * acts * (1 - y) + (1 - theta) * (1 - acts) * y)
        return cost


def _float64_scores(view: View) -> Array:
    """Scores in double precision, so that the threshold is not rounded to their type."""
    return view.p.astype(np.float64, copy=False)
