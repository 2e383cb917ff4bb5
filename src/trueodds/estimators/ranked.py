"""How far along ordered classes do the predictions miss? The ranked probability score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class RankedProbability(ProperScore):
    r"""Squared distance of cumulative probabilities from the outcome: the ranked probability score (RPS).

    Answers: for classes with an order (mild, moderate, severe), how good are the probabilities, where a near miss
    costs less than a far one?

    .. math:: \tfrac1w \sum_i w_i \sum_{k < K} \big(F_{ik} - \mathbf 1\{y_i \le k\}\big)^2,
        \quad F_{ik} = \sum_{j \le k} p_{ij}

    The order is that of the columns, so it has a meaning for ordered classes only; another order gives another number,
    the reverse order the same one. Two conventions are in use: the sum (the default here) and, with `normalize`,
    its mean over the K − 1 cuts. Each cut is a Brier score of two classes, and for K = 2 both conventions are Brier's.

    Shapes: a binary view (n,), or a joint one (n, m). Units: squared probability, in [0, K − 1], normalized in [0, 1];
    0 is best. Strictly proper. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(nK). Needs rows;
    merges as any mean does. A calibrated model pays the mean of Σ F(1 − F), which `noise_floor` reports.
    Raises TO203 where `normalize` is no yes or no, TO205 for cells of many rows.
    Source: Epstein (1969); Murphy (1971), who divides by K − 1.

    >>> near, far = View([[0.0, 1.0, 0.0]], [[1, 0, 0]]), View([[0.0, 0.0, 1.0]], [[1, 0, 0]])
    >>> float(RankedProbability()(near)), float(RankedProbability()(far)), float(RankedProbability(normalize=True)(far))
    (1.0, 2.0, 1.0)
    """

    name: ClassVar[str] = "rps"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    exempt: ClassVar[dict[str, str]] = {"class order": "how far apart two classes lie is what the score measures"}
    normalize: bool = False

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return self._scaled(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        return float(view.w @ self._scaled(view, view.p) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Which of the two conventions."""
        return {"normalize": bool(self.normalize)}

    def _scaled(self, view: View, y: Array) -> Array:
        single_rows(view, self.name)
        cuts = view.p.shape[1] - 1 if view.joint else 1
        return _loss(view.p, y) / (cuts if self.normalize else 1)


def _loss(p: Array, y: Array) -> Array:
    """Σ (F − O)² + O(1 − O) over the cuts: the second term is 0 but for votes, which count one by one."""
    p, y = p.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if p.ndim == 1:
        predicted, observed = p[:, None], y[:, None]
    else:
        predicted, observed = np.cumsum(p[:, :-1], axis=1), np.cumsum(y[:, :-1], axis=1)
    total: Array = ((predicted - observed) ** 2 + observed * (1 - observed)).sum(axis=1)
    return total
