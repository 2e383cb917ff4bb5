"""Calibration decision loss: regret of acting on the predicted probabilities in the worst decision task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import PARTITION_SETTINGS, as_partition, default_partition
from trueodds.core.errors import InputError
from trueodds.core.registry import dataclass_settings
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.estimators.cost_regret import CostRegret
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


class WorstTaskCells:
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
