"""What can trusting the probabilities cost somebody? The regret of acting on them, in the worst decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition, as_partition, default_for
from trueodds.core.errors import InputError
from trueodds.core.registry import settings_of
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.estimators.binned import PARTITION_SETTINGS
from trueodds.estimators.cost_regret import CostRegret
from trueodds.kernels.envelope import at_half
from trueodds.lenses.view import View


@dataclass(frozen=True)
class DecisionRegret(Estimator):
    r"""What whoever acts on the probabilities would gain if they were recalibrated, in the worst decision (CDL).

    Answers: how much can trusting these probabilities cost somebody? With `cost=` (see `CostRegret`) at the costs of
    one decision. Without, over every decision task whose payoffs lie in [0, 1], on bins with mean prediction p and
    outcome rate q, the calibration decision loss (maximum swap regret):

    .. math:: \max_{S} \sum_b \tfrac{w_b}{w} \big[S(q_b; q_b) - S(p_b; q_b)\big]
        = 2\, \widehat D(\tfrac12), \quad
        D(t) = \sum_b \tfrac{w_b}{w} |q_b - t|\, \mathbf 1\{t \text{ between } p_b \text{ and } q_b\}

    over proper scores S with values in [0, 1], where S(p; q) is the mean payoff of acting on p when the rate is q.
    D(t) is the regret of the two-action task with threshold t, and a hat marks the least concave function above it.
    The second form is exact: a proper score is a mixture of such tasks whose weights m satisfy ∫t dm ≤ 1 and
    ∫(1−t) dm ≤ 1, a linear program whose dual is the least line above D, read at 1/2. `parts`: `two_actions`, the
    worst task of two actions, max D(t) / max(t, 1−t), between half of the value and all of it, and its `threshold`.

    Shapes: a binary view (n,). Units: payoff, in [0, 1]; 0 is best; at most twice the ECE on the same bins.
    Bias: upward, the worst task is chosen with the same outcomes: `noise_floor` reports what a calibrated model
    scores. Swap regret without bins cannot be estimated from single scores, so it depends on them.
    Cost: O(n log k) time, O(k log k) per draw. Merges exactly on fixed bins.
    Raises TO203 for an unknown partition or cost, TO205 for a vector per row without `cost`.
    Source: Hu & Wu (2024), arXiv 2404.13503; the envelope is worked out here.

    Parameters
    ----------
    partition : Partition, optional
        15 uniform bins if not said.

    >>> view = View(p=[0.8, 0.8, 0.8, 0.8], y=[1, 0, 0, 0])
    >>> round(float(DecisionRegret()(view)), 4)  # at t just under .8: act for .55 less; / .8
    0.6875
    """

    name: ClassVar[str] = "decision_regret"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    interval: ClassVar[str | None] = "residual-norm"
    partition: Partition | None = None

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *settings_of(CostRegret))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> DecisionRegret | CostRegret:
        """The worst task, or the one whose costs are given."""
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        if settings.get("cost") is None:
            settings.pop("cost", None)
            settings.pop("rng", None)  # the seed of the call; nothing is dealt here
            if settings:
                raise InputError(
                    "TO203",
                    "The worst decision is found on bins; a calibrator is for a decision whose costs are given.",
                    ", ".join(settings),
                    "Pass cost=, or leave them out.",
                )
            return cls(as_partition(**partition_settings))
        if partition_settings:
            raise InputError(
                "TO203",
                "With given costs there are no bins.",
                ", ".join(partition_settings),
                "Leave them out, or leave cost out.",
            )
        return CostRegret(**settings)

    def value(self, view: View) -> float:
        """The regret in the worst task."""
        return self._bins(view).value()

    def linear(self, view: View) -> Linear | None:
        """The same with the bins held fixed; None where the labels choose the bins."""
        return None if (self.partition or default_for(view)).uses_outcomes else self._bins(view)

    def parts(self, view: View) -> dict[str, float]:
        """The worst task of two actions."""
        _, regret, threshold = self._bins(view).tasks()[:3]
        return {"two_actions": float(regret)} | ({"threshold": float(threshold)} if regret > 0 else {})

    def settings_used(self, view: View) -> dict[str, Any]:
        """The partition, and the thresholds that the worst task is made of."""
        bins = self._bins(view)
        _, regret, _, low, high = bins.tasks()
        inner = [float(t) for t in (low, high) if 0 < t < 1] if regret > 0 else []
        return {
            "partition": str(self.partition or default_for(view)),
            "occupied_bins": len(np.unique(bins.index[view.w > 0])),
            "worst_thresholds": sorted(set(inner)),
        }

    def _bins(self, view: View) -> Tasks:
        if view.joint:
            one_score(view, f"{self.name} without cost=")
        frozen = (self.partition or default_for(view)).freeze(view)
        return Tasks(view, frozen.index(view.at), frozen.size)


class Tasks:
    """One view's bins, and the worst decision task on them."""

    def __init__(self, view: View, index: Array, size: int) -> None:
        self.view, self.index, self.size = view, index, size

    def tasks(self) -> Array:
        """The regret in the worst task, the worst task of two actions and its threshold, the worst task's thresholds."""
        view, p = self.view, self.view.p.astype(np.float64, copy=False)
        sums = [np.bincount(self.index, x, self.size)[None] for x in (view.w, view.w * p, view.w * view.y)]
        return np.asarray(_worst(*_rates(*sums))[0])

    def value(self) -> float:
        """The regret of the view itself."""
        return float(self.tasks()[0])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The regret of each draw from its sums per bin."""
        return np.asarray(_worst(*_rates(w, wp, wy))[:, 0])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """By how much the regret can change in any task when the rates move as the draw's residuals did.

        A bin's rate moved by δ changes the regret at thresholds between its probability and either rate, by δ at most.
        """
        share, p, q = _rates(w[None], wp[None], wy[None])
        _, dp, dq = _rates(*draws)
        shift = np.nan_to_num((dq - dp) - (q - p))  # a bin without rows in a draw moved nowhere
        ends = np.stack([np.broadcast_to(p, shift.shape), np.broadcast_to(q, shift.shape), q + shift])
        return np.asarray(
            _envelope(ends.min(axis=0), ends.max(axis=0), share * np.abs(shift), np.zeros_like(shift))[:, 0]
        )


def _rates(w: Array, wp: Array, wy: Array) -> tuple[Array, Array, Array]:
    """The share of each bin, what was said there and how often it came; a bin without weight says NaN."""
    w, wp, wy = np.broadcast_arrays(w, wp, wy)
    with np.errstate(divide="ignore", invalid="ignore"):
        return w / w.sum(axis=-1, keepdims=True), wp / w, wy / w


def _worst(share: Array, p: Array, q: Array) -> Array:
    # What differs by rounding only is right: between p and q there is no threshold.
    wrong = np.abs(q - p) > 1e-14
    up = np.where(q > p, share, -share)
    low, high = np.where(wrong, np.minimum(p, q), 0.0), np.where(wrong, np.maximum(p, q), 0.0)
    return _envelope(low, high, np.where(wrong, up * q, 0.0), np.where(wrong, -up, 0.0))


def _envelope(*intervals: Array) -> Array:
    out = np.zeros((len(intervals[0]), 5))
    # Thresholds lie in [0, 1]: a probability above 1 by rounding ends there, and so does a rate that was moved.
    low, high, height, slope = (np.ascontiguousarray(np.nan_to_num(x)) for x in intervals)
    at_half(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), height, slope, out)
    return out
