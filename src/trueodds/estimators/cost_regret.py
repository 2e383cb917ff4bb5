"""What would recalibrated probabilities have saved whoever acts at given costs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import Note
from trueodds.estimators.acting.actions import Cost, Costs, checked
from trueodds.estimators.acting.out_of_sample import Judged, OutOfSample
from trueodds.problem.view import View

Array = NDArray[Any]


@dataclass(frozen=True)
class CostRegret(OutOfSample):
    r"""What acting on the stated probabilities costs more than acting on recalibrated ones, at given costs.

    Answers: with my costs, how much would a recalibration have saved per decision? A calibrator fitted on other rows
    chooses each row's action afresh, and the row's own outcome says what each choice cost:

    .. math:: \tfrac1w \sum_i w_i \big[c(a(p_i), y_i) - c(a(\hat r_{-i}(p_i)), y_i)\big], \quad
        a(q) = \arg\min_a \sum_k c(a, k)\, q_k

    A tie between actions leaves the action as it is. The supremum over all maps r is the full regret, so the
    expectation is a lower bound of it; a calibrator that errs costs, and the value is negative. For a calibrated
    model the expectation is at most 0 (no map gains anything), which is what the noise floor of 0 says.

    Shapes: a binary view (n,), where the outcomes are (not, yes), or a joint one (n, m). Units: those of the costs, in
    [−(max c − min c), max c − min c]; 0 is best. Bias: downward, see above. The interval takes the fits as given (BCa
    over rows). `parts`: the mean cost as `stated` and as `recalibrated`, and the share of rows whose action changes.
    Cost: `folds` fits. Needs rows, and their order decides the folds, so nothing merges. Raises TO201 for an unknown
    calibrator, TO203 for other settings, TO205 for costs that do not fit the outcomes.
    Source: the decision form of a cross-fitted error; regret after Hu & Wu (2024).

    Parameters
    ----------
    cost : table (actions, K), or callable
        `cost[action][true class]`; a callable of P (n, K) may give (n, actions, K).
    calibrator, folds, fit_on, rng
        As for `cross_fitted`.

    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> float(CostRegret(cost=[[0, 1], [1, 0]], folds=2).value(view))  # every yes was wrong and is taken back
    1.0
    """

    name: ClassVar[str] = "decision_regret"
    lens: ClassVar[str | None] = "canonical"
    recovers: ClassVar[str] = "regret"
    at_calibration: ClassVar[str] = "at most 0"
    cost: Cost = ((0.0, 1.0), (1.0, 0.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cost", checked(self.cost))

    def gained(self, judged: Judged, view: View) -> Array:
        """What each row's recalibrated action saves."""
        stated, recalibrated, _ = self._paid(judged, view)
        return np.asarray(stated - recalibrated)

    def parts(self, view: View) -> dict[str, float]:
        """Both costs, and the share of rows whose action changes."""
        judged = self.judged(view)
        share = judged.scale * view.w[judged.row] / view.total
        stated, recalibrated, changed = self._paid(judged, view)
        return {
            "stated": float(share @ stated),
            "recalibrated": float(share @ recalibrated),
            "changed": float(share @ changed),
        }

    def said(self, view: View) -> dict[str, Any]:
        """The costs, calibrator and folds."""
        given = getattr(self.cost, "__name__", "a function") if callable(self.cost) else self.cost
        return {"cost": given, **super().said(view)}

    def notes(self, view: View) -> list[Note]:
        """As for every cross-fit, and a word where no action changes."""
        said = super().notes(view)
        if view.n_rows > 1 and self.parts(view)["changed"] == 0:
            said.append(Note("TN138", "Recalibration changes no action, so nothing was gained or lost by it."))
        return said

    def _paid(self, judged: Judged, view: View) -> tuple[Array, Array, Array]:
        if not len(judged.row):
            return np.zeros(0), np.zeros(0), np.zeros(0)
        costs = Costs(self.cost, judged.P, view, self.name)
        stated = costs.called_for(judged.P)
        again = costs.called_for(judged.Q, stated)
        return costs.paid(stated, judged.Y), costs.paid(again, judged.Y), (stated != again).astype(np.float64)
