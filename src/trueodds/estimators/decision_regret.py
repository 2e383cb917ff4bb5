"""Regret of acting on the stated probabilities, in the worst decision task or at given costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import as_partition, default_for
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import settings_of
from trueodds.core.settings import OWN, Integer
from trueodds.core.typing import Array
from trueodds.estimators._decision.costs import Cost, Costs, as_vectors, check_cost
from trueodds.estimators._decision.out_of_sample import OutOfFold, OutOfSample
from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.estimators.binned import PARTITION_SETTINGS
from trueodds.kernels.concave_envelope import envelope_at_half
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
    envelope_at_half(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), height, slope, out)
    return out


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
            object.__setattr__(self, "cost", check_cost(self.cost))
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
        rates = calibrator.apply(as_vectors(at))[:, 1]
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
