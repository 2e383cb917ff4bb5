"""Regret of acting on the predicted instead of recalibrated probabilities, at the costs of one decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import CHECKED_BY_CLASS, Integer
from trueodds.core.typing import Array
from trueodds.data.probabilities import prob_columns
from trueodds.estimators._decision.costs import Cost, Costs, check_cost
from trueodds.estimators._decision.out_of_sample import OutOfFoldRows, OutOfSampleGain
from trueodds.lenses.view import View


@dataclass(frozen=True)
class CostRegret(OutOfSampleGain):
    r"""Regret of acting on the predicted instead of recalibrated probabilities, at the costs of one decision.

    It is `decision_regret` with the setting `cost`. The predicted probabilities select one action for each row, the
    probabilities of a calibrator fitted on other rows another, and the outcome of the row determines the cost of both:

    .. math:: \tfrac1w \sum_i w_i \big[c(a(p_i), y_i) - c(a(\hat r_{-i}(p_i)), y_i)\big], \quad
        a(q) = \arg\min_a \sum_k c(a, k)\, q_k

    In a tie between actions, the original action is chosen. The full regret is the supremum over all recalibration maps
    r, so the expectation is a lower bound of it. The value is negative if the calibrator increases the cost. For a
    calibrated model the expectation is at most 0 (no map reduces the cost), so the noise floor is 0.

    Shapes: a binary view (n,), with the outcomes (no event, event), or a joint view (n, m). Units: those of the costs,
    in [−(max c − min c), max c − min c]; 0 is best. Bias: downward. The interval holds the fits fixed (BCa over rows).
    `parts`: the mean cost as `stated` and as `recalibrated`; the share of rows whose action `changed`; for each action
    the share of rows and their part of the regret, which add up to it; and for two outcomes each `threshold` implied by
    the costs, with the event rate there by a calibrator fitted on all rows. Cost: `folds` fits and one more. Rows are
    required, and their order determines the folds. Raises TO201 for an unknown calibrator, TO203 for other settings,
    TO205 for costs that do not match the outcomes. Source: the decision form of a cross-fitted error; regret after Hu &
    Wu (2024). Posocco & Bonnefoy (2021) suggest weighting calibration errors by the cost of mistakes.

    Parameters
    ----------
    cost : table (actions, K), table per row (n, actions, K), or callable
        `cost[action][true class]` for any number of actions. A callable of P (n, K) may return (n, actions, K). By
        default every wrong class costs 1.
    actions : sequence of str, optional
        Names of the actions. The default is their numbers.
    calibrator, folds, fit_on, rng
        As for `cross_fitted`. The default calibrator is `isotonic`, class by class for vectors.

    Examples
    --------
    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> float(CostRegret(cost=[[0, 1], [1, 0]], folds=2).value(view))  # each decision was wrong and is reversed
    1.0
    """

    name: ClassVar[str] = "decision_regret"
    lens: ClassVar[str | None] = "canonical"
    recovered_quantity_text: ClassVar[str] = "regret"
    expected_value_text: ClassVar[str] = "at most 0"
    default_vector_calibrator: ClassVar[str] = (
        "isotonic"  # a temperature keeps every answer, so at 0-1 costs it could save nothing
    )
    cost: Annotated[Cost | None, CHECKED_BY_CLASS] = None
    actions: tuple[str | Integer | float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None:
            object.__setattr__(self, "cost", check_cost(self.cost))
        if self.actions is not None:
            names = tuple(map(str, self.actions))
            if len(set(names)) < len(names):
                raise InputError(
                    "TO203", "actions must be distinct names.", describe(self.actions), "Give one name per row of cost."
                )
            object.__setattr__(self, "actions", names)

    def values_by_outcome(self, out_of_fold: OutOfFoldRows, view: View) -> Array:
        """Cost saved by the recalibrated action, for each row and possible outcome."""
        costs = self._costs(out_of_fold, view)
        stated, recalibrated = _optimal_actions(costs, out_of_fold)
        return costs.outcome_costs(stated) - costs.outcome_costs(recalibrated)

    def parts(self, view: View) -> dict[str, float]:
        """Both costs, the share of rows whose action changes, the regret by action and the thresholds."""
        out_of_fold = self.out_of_fold(view)
        share = out_of_fold.scale * view.w[out_of_fold.row] / view.total
        costs = self._costs(out_of_fold, view)
        stated, recalibrated = _optimal_actions(costs, out_of_fold)
        stated_costs = costs.row_costs(stated, out_of_fold.Y)
        recalibrated_costs = costs.row_costs(recalibrated, out_of_fold.Y)
        names = self._action_names(costs.n_actions)
        regret = np.bincount(stated, share * (stated_costs - recalibrated_costs), costs.n_actions)
        action_shares = np.bincount(stated, share, costs.n_actions)
        return {
            "stated": float(share @ stated_costs),
            "recalibrated": float(share @ recalibrated_costs),
            "changed": float(share @ (stated != recalibrated)),
            **{f"action:{name}": float(value) for name, value in zip(names, regret, strict=True)},
            **{f"called for:{name}": float(value) for name, value in zip(names, action_shares, strict=True)},
            **self._thresholds(costs, names, view),
        }

    def _thresholds(self, costs: Costs, names: tuple[str, ...], view: View) -> dict[str, float]:
        """Thresholds at which the costs change the action, and the event rate there by the calibrator."""
        changes = [] if view.joint else costs.action_thresholds()
        if not changes:
            return {}
        mask = view.w > 0
        calibrator = self.calibrator_spec(view).fit(view.P[mask], view.Y[mask], view.w[mask])
        rates = calibrator.apply(prob_columns(np.array([threshold for threshold, _, _ in changes])))[:, 1]
        parts = {}
        for (threshold, first_action, second_action), rate in zip(changes, rates, strict=True):
            change = f"{names[first_action]} → {names[second_action]}"
            parts[f"threshold:{change}"] = float(threshold)
            parts[f"rate there:{change}"] = float(rate)
        return parts

    def settings_used(self, view: View) -> dict[str, Any]:
        cost = getattr(self.cost, "__name__", "a function") if callable(self.cost) else self.cost
        if isinstance(cost, np.ndarray):
            cost = "a table per row, {} actions, {} classes".format(*cost.shape[1:])
        settings = {"cost": cost if cost is not None else "1 for every wrong class"}
        return settings | ({"actions": self.actions} if self.actions else {}) | super().settings_used(view)

    def notes(self, view: View) -> list[Note]:
        note_list = super().notes(view)
        if view.n_rows > 1 and self.parts(view)["changed"] == 0:
            note_list.append(Note("TN138", "Recalibration changes no action, so the regret is 0."))
        return note_list

    def _costs(self, out_of_fold: OutOfFoldRows, view: View) -> Costs:
        """Costs of the evaluated rows."""
        return Costs(self.cost, out_of_fold.P, view, self.name, out_of_fold.row)

    def _action_names(self, n_actions: int) -> tuple[str, ...]:
        """Names of the actions, by default their numbers; raises InputError if their number is wrong."""
        names = tuple(map(str, self.actions or range(n_actions)))
        if len(names) != n_actions:
            raise InputError(
                "TO205", f"The costs have {n_actions} actions.", f"{len(names)} names", "Give one name per row of cost."
            )
        return names


def _optimal_actions(costs: Costs, out_of_fold: OutOfFoldRows) -> tuple[Array, Array]:
    """The optimal action of each row under the predicted and the recalibrated probabilities."""
    stated = costs.optimal_actions(out_of_fold.P)
    return stated, costs.optimal_actions(out_of_fold.recalibrated, stated)
