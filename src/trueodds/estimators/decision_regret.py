"""Regret of acting on the predicted probabilities, in the worst decision task or at the costs of one decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import PARTITION_SETTINGS, as_partition, default_partition
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import dataclass_settings
from trueodds.core.settings import CHECKED_BY_CLASS, Integer
from trueodds.core.typing import Array
from trueodds.data.probabilities import prob_columns
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.estimators.costs import Cost, Costs, check_cost
from trueodds.estimators.out_of_sample import OutOfFoldRows, OutOfSampleGain
from trueodds.kernels.concave_envelope import envelope_at_half
from trueodds.lenses.view import View


@dataclass(frozen=True)
class DecisionRegret(Estimator):
    r"""Calibration decision loss (CDL): gain from recalibration for a decision maker, in the worst decision task.

    With `cost=` the regret is computed at the costs of one decision (see `CostRegret`). Without it, the maximum is over
    all decision tasks with payoffs in [0, 1] (maximum swap regret).

    Parameters
    ----------
    partition : Partition, optional
        The bins. The default is 15 uniform bins.

    Raises
    ------
    InputError
        TO203 if the partition or the cost is unknown. TO205 if the view has a vector per row and no `cost` is given.

    Notes
    -----
    .. math:: \max_{S} \sum_b \tfrac{w_b}{w} \big[S(q_b; q_b) - S(p_b; q_b)\big]
        = 2\, \widehat D(\tfrac12), \quad
        D(t) = \sum_b \tfrac{w_b}{w} |q_b - t|\, \mathbf 1\{t \text{ between } p_b \text{ and } q_b\}

    Bins have mean prediction p and event rate q. The maximum is over proper scores S with values in [0, 1], where S(p;
    q) is the mean payoff of acting on p if the rate is q. D(t) is the regret of the two-action task with threshold t,
    and the hat denotes the least concave majorant. The second form is exact: a proper score is a mixture of such tasks
    whose weights m satisfy ∫t dm ≤ 1 and ∫(1−t) dm ≤ 1, a linear program whose dual is the lowest line above D,
    evaluated at 1/2. `parts` holds `two_actions`, the worst task with two actions, max D(t) / max(t, 1−t), which lies
    between half of the value and the value, and its `threshold`. Shapes: a binary view (n,).

    Units: payoff, in [0, 1]; 0 is best. The value is at most twice the ECE on the same bins.

    Bias: upward, because the worst task is selected with the same outcomes. `noise_floor` reports the score of a
    calibrated model. Swap regret without bins cannot be estimated from single scores, so the value depends on the bins.

    Cost: O(n log k) time, O(k log k) per draw. Tallies merge exactly on fixed bins.

    The concave majorant form is derived in this library.

    References
    ----------
    .. [1] Hu & Wu (2024). arXiv 2404.13503.

    Examples
    --------
    >>> import trueodds as to
    >>> regret = to.measure([1, 0, 0, 0], [0.8] * 4, "decision_regret", interval=None)
    >>> round(regret.value, 4)  # at t just under .8: act for .55 less; / .8
    0.6875
    """

    name: ClassVar[str] = "decision_regret"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    interval: ClassVar[str | None] = "residual-norm"
    partition: Partition | None = None

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return (*PARTITION_SETTINGS, *dataclass_settings(CostRegret))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> DecisionRegret | CostRegret:
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        if settings.get("cost") is None:
            settings.pop("cost", None)
            settings.pop("rng", None)  # the seed of the call; nothing is random here
            if settings:
                raise InputError(
                    "TO203",
                    "The worst decision is found on bins. A calibrator is used only if costs are given.",
                    ", ".join(settings),
                    "Pass cost=, or leave them out.",
                )
            return cls(as_partition(**partition_settings))
        if partition_settings:
            raise InputError(
                "TO203",
                "With given costs no bins are used.",
                ", ".join(partition_settings),
                "Leave them out, or leave cost out.",
            )
        return CostRegret(**settings)

    def value(self, view: View) -> float:
        return self._worst_task_cells(view).value()

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The regret with fixed bins; None if they depend on the labels."""
        return None if (self.partition or default_partition(view)).uses_outcomes else self._worst_task_cells(view)

    def parts(self, view: View) -> dict[str, float]:
        """The worst task with two actions."""
        worst = self._worst_task_cells(view).worst_tasks()
        regret, threshold = worst.two_action_regret, worst.two_action_threshold
        return {"two_actions": float(regret)} | ({"threshold": float(threshold)} if regret > 0 else {})

    def settings_used(self, view: View) -> dict[str, Any]:
        bins = self._worst_task_cells(view)
        worst = bins.worst_tasks()
        ends = (worst.lower_threshold, worst.upper_threshold)
        thresholds = [t for t in ends if 0 < t < 1] if worst.two_action_regret > 0 else []
        return {
            "partition": str(self.partition or default_partition(view)),
            "occupied_bins": len(np.unique(bins.index[view.w > 0])),
            "worst_thresholds": sorted(set(thresholds)),
        }

    def _worst_task_cells(self, view: View) -> WorstTaskCells:
        """The bins of the view; raises InputError for probability vectors."""
        if view.joint:
            require_one_score(view, f"{self.name} without cost=")
        fitted_partition = (self.partition or default_partition(view)).fit(view)
        return WorstTaskCells(view, view.assign(fitted_partition), fitted_partition.size)


class WorstTasks(NamedTuple):
    """The worst decision task, and the worst one with two actions."""

    regret: float  # regret of the worst task
    two_action_regret: float  # regret of the worst task with two actions
    two_action_threshold: float  # threshold of that task
    lower_threshold: float  # lower threshold of the worst task
    upper_threshold: float  # upper threshold of the worst task


REGRET = WorstTasks._fields.index("regret")  # its column in arrays of worst tasks (draws, 5)


class WorstTaskCells(CellStatistic):
    """Bins of one view as cells of draws, with the regret in the worst decision task on them.

    `index` (n,) is the bin of each row among `size` bins.
    """

    def __init__(self, view: View, index: Array, size: int) -> None:
        self.view, self.index, self.size = view, index, size

    def worst_tasks(self) -> WorstTasks:
        """Worst tasks of the observed outcomes."""
        view, p = self.view, self.view.p.astype(np.float64, copy=False)
        sums = [np.bincount(self.index, x, self.size)[None] for x in (view.w, view.w * p, view.w * view.y)]
        return WorstTasks(*_regret_envelope(*_bin_rates(*sums))[0].tolist())

    def value(self) -> float:
        return self.worst_tasks().regret

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return np.asarray(_regret_envelope(*_bin_rates(w, wp, wy))[:, REGRET])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """Bound on the change of the regret of any task if the rates move by the residuals of the draw.

        A change δ of the rate of a bin changes the regret by at most δ, at thresholds between its prediction and either
        rate.
        """
        share, p, q = _bin_rates(w[None], wp[None], wy[None])
        _, dp, dq = _bin_rates(*draws)
        shift = np.nan_to_num((dq - dp) - (q - p))  # 0 for a bin without rows in a draw
        probabilities = np.stack([np.broadcast_to(p, shift.shape), np.broadcast_to(q, shift.shape), q + shift])
        return np.asarray(
            _evaluate_envelope(
                probabilities.min(axis=0), probabilities.max(axis=0), share * np.abs(shift), np.zeros_like(shift)
            )[:, REGRET]
        )


def _bin_rates(w: Array, wp: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Weight, mean prediction and event rate of each bin; NaN for a bin without weight."""
    w, wp, wy = np.broadcast_arrays(w, wp, wy)
    with np.errstate(divide="ignore", invalid="ignore"):
        return w / w.sum(axis=-1, keepdims=True), wp / w, wy / w


def _regret_envelope(share: Array, p: Array, q: Array) -> Array:
    """`WorstTasks` (draws, 5) from share of the weight, mean prediction and event rate of the bins, (draws, bins)."""
    # If p and q differ by rounding only, there is no threshold between them.
    miscalibrated = np.abs(q - p) > 1e-14
    sign = np.where(q > p, share, -share)
    low, high = np.where(miscalibrated, np.minimum(p, q), 0.0), np.where(miscalibrated, np.maximum(p, q), 0.0)
    return _evaluate_envelope(low, high, np.where(miscalibrated, sign * q, 0.0), np.where(miscalibrated, -sign, 0.0))


def _evaluate_envelope(*intervals: Array) -> Array:
    """`WorstTasks` (draws, 5) from the ends of each bin's interval and its regret there, intercept + slope · t."""
    values = np.zeros((len(intervals[0]), len(WorstTasks._fields)))
    # Thresholds lie in [0, 1], which a probability can exceed by rounding, and a shifted rate in any case.
    low, high, intercept, slope = (np.ascontiguousarray(np.nan_to_num(x)) for x in intervals)
    envelope_at_half(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), intercept, slope, values)
    return values


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
