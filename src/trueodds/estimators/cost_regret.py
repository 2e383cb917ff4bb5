"""What would recalibrated probabilities have saved whoever acts at given costs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import OWN, Integer
from trueodds.core.typing import Array
from trueodds.estimators.acting.actions import Cost, Costs, checked, vectors
from trueodds.estimators.acting.out_of_sample import OutOfFold, OutOfSample
from trueodds.lenses.view import View


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
    over rows). `parts`: the mean cost as `stated` and as `recalibrated`; the share of rows whose action has `changed`;
    per action that was called for, the share of rows and how much of the regret these make (they add up to it); and, for two outcomes,
    each `threshold` that the costs imply with the rate that the calibrator, fitted on all rows, finds there.
    Cost: `folds` fits and one more. Needs rows, and their order decides the folds, so nothing merges. Raises TO201 for
    an unknown calibrator, TO203 for other settings, TO205 for costs that do not fit the outcomes.
    Source: the decision form of a cross-fitted error; regret after Hu & Wu (2024); that calibration errors should be
    weighed by what mistakes cost is asked for by Posocco & Bonnefoy (2021).

    Parameters
    ----------
    cost : table (actions, K), table per row (n, actions, K), or callable
        `cost[action][true class]`, with as many actions as there are; a callable of P (n, K) may give (n, actions, K).
        Left out, every wrong class costs 1.
    actions : sequence of str, optional
        Their names; numbers if not said.
    calibrator, folds, fit_on, rng
        As for `cross_fitted`; `isotonic` if not said, class by class for vectors.

    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> float(CostRegret(cost=[[0, 1], [1, 0]], folds=2).value(view))  # every yes was wrong and is taken back
    1.0
    """

    name: ClassVar[str] = "decision_regret"
    lens: ClassVar[str | None] = "canonical"
    recovers: ClassVar[str] = "regret"
    at_calibration: ClassVar[str] = "at most 0"
    of_vectors: ClassVar[str] = "isotonic"  # a temperature keeps every answer, so at 0-1 costs it could save nothing
    cost: Annotated[Cost | None, OWN] = None
    actions: tuple[str | Integer | float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None:
            object.__setattr__(self, "cost", checked(self.cost))
        if self.actions is not None:
            named = tuple(map(str, self.actions))
            if len(set(named)) < len(named):
                raise InputError(
                    "TO203", "actions are names that differ.", describe(self.actions), "One per row of cost."
                )
            object.__setattr__(self, "actions", named)

    def by_outcome(self, out_of_fold: OutOfFold, view: View) -> Array:
        """What each row's recalibrated action saves, should the outcome come."""
        costs = self._costs(out_of_fold, view)
        stated, recalibrated = _called(costs, out_of_fold)
        return costs.of(stated) - costs.of(recalibrated)

    def parts(self, view: View) -> dict[str, float]:
        """Both costs, the share of rows whose action changes, the regret by action and the thresholds."""
        out_of_fold = self.out_of_fold(view)
        share = out_of_fold.scale * view.w[out_of_fold.row] / view.total
        costs = self._costs(out_of_fold, view)
        stated, recalibrated = _called(costs, out_of_fold)
        before, after = costs.paid(stated, out_of_fold.Y), costs.paid(recalibrated, out_of_fold.Y)
        names = self._names(costs.actions)
        regret = np.bincount(stated, share * (before - after), costs.actions)
        called = np.bincount(stated, share, costs.actions)
        return {
            "stated": float(share @ before),
            "recalibrated": float(share @ after),
            "changed": float(share @ (stated != recalibrated)),
            **{f"action:{name}": float(value) for name, value in zip(names, regret, strict=True)},
            **{f"called for:{name}": float(value) for name, value in zip(names, called, strict=True)},
            **self._thresholds(costs, names, view),
        }

    def _thresholds(self, costs: Costs, names: tuple[str, ...], view: View) -> dict[str, float]:
        """Where the costs change the action, and how often it comes there by the calibrator."""
        changes = [] if view.joint else costs.switches()
        if not changes:
            return {}
        row = view.w > 0
        calibrator = self.spec_for(view).fit(view.P[row], view.Y[row], view.w[row])
        at = np.array([where for where, _, _ in changes])
        rates = calibrator.apply(vectors(at))[:, 1]
        thresholds = {}
        for (where, one, other), rate in zip(changes, rates, strict=True):
            thresholds[f"threshold:{names[one]} → {names[other]}"] = float(where)
            thresholds[f"rate there:{names[one]} → {names[other]}"] = float(rate)
        return thresholds

    def settings_used(self, view: View) -> dict[str, Any]:
        """The costs, calibrator and folds."""
        cost = getattr(self.cost, "__name__", "a function") if callable(self.cost) else self.cost
        if isinstance(cost, np.ndarray):
            cost = "a table per row, {} actions, {} classes".format(*cost.shape[1:])
        settings = {"cost": cost if cost is not None else "1 for every wrong class"}
        return settings | ({"actions": self.actions} if self.actions else {}) | super().settings_used(view)

    def notes(self, view: View) -> list[Note]:
        """As for every cross-fit, and a word where no action changes."""
        note_list = super().notes(view)
        if view.n_rows > 1 and self.parts(view)["changed"] == 0:
            note_list.append(Note("TN138", "Recalibration changes no action, so nothing was gained or lost by it."))
        return note_list

    def _costs(self, out_of_fold: OutOfFold, view: View) -> Costs:
        return Costs(self.cost, out_of_fold.P, view, self.name, out_of_fold.row)

    def _names(self, actions: int) -> tuple[str, ...]:
        named = tuple(map(str, self.actions or range(actions)))
        if len(named) != actions:
            raise InputError(
                "TO205", f"The costs have {actions} actions.", f"{len(named)} names", "Give one name per row of cost."
            )
        return named


def _called(costs: Costs, out_of_fold: OutOfFold) -> tuple[Array, Array]:
    """The action that each row's stated and recalibrated probabilities call for."""
    stated = costs.called_for(out_of_fold.P)
    return stated, costs.called_for(out_of_fold.Q, stated)
