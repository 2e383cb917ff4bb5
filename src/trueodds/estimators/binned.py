"""Binned calibration errors: expected, maximum and root mean square (ECE, MCE, RMSCE)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.distance import Distance, as_distance, power_mean
from trueodds.binning.partition import BIN_RULES, Partition
from trueodds.binning.partition_by_name import as_partition, default_for
from trueodds.binning.selections import Selections
from trueodds.core.errors import Note
from trueodds.core.registry import settings_of
from trueodds.core.settings import Count, Order
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Linear
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.rows import Classes, OneOfClasses
from trueodds.lenses.view import View

PARTITION_SETTINGS = ("bins", "partition", "min_size", "closed", "range")


@dataclass(frozen=True)
class BinnedError(Estimator):
    r"""Distance between mean prediction and outcome rate, averaged over bins (ECE).

    Answers: how far, on average, are the stated probabilities from the frequencies that came?

    .. math:: \Big(\sum_b \tfrac{w_b}{w}\, d(\bar p_b, \bar y_b)^{q}\Big)^{1/q}

    Shapes: a binary view (n,), or a joint view (n, m). Units: probability, in [0, 1] for `tv`; 0 is best.
    Bias: upward, a calibrated model with k bins and n rows scores about 0.3 sqrt(k/n), which `noise_floor`
    reports; with fixed bins and growing n it converges to a lower bound of the true error.
    Cost: O(n log k) time, O(k) memory. Merges exactly. Empty bins are absent.
    Raises TO203 for an unknown distance or partition, TO205 where bins of one score meet a joint view.
    Source: Naeini, Cooper & Hauskrecht (2015); Guo et al. (2017); for vectors Vaicenavicius et al. (2019).

    Parameters
    ----------
    partition : Partition, optional
        15 uniform bins for a binary view, the median-variance tree for a joint one.
    distance : str or callable
        `tv`, `l1`, `l2`, `sq-euclidean`, `max`, `kl`, `lp:3`, or a callable d(said, seen) of two vectors.
    order : float
        The power q; infinity takes the worst bin.
    min_count : int
        Bins with fewer rows are left out of the worst-bin search (they stay in averages).

    >>> from trueodds.binning.partition import Uniform
    >>> float(BinnedError(Uniform(5))(View(p=[0.9, 0.8], y=[1, 0])))
    0.45
    """

    name: ClassVar[str] = "ece"
    lower_bound: ClassVar[float] = 0.0
    interval: ClassVar[str | None] = "residual-norm"
    partition: Partition | None = None
    distance: str | Distance | Callable[[Array, Array], float] = "tv"
    order: Order = 1.0
    min_count: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        as_distance(self.distance, self.order)

    @property
    def max_value(self) -> float:
        """1 for total variation."""
        return 1.0 if self.distance == "tv" else math.inf

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *(name for name in settings_of(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> BinnedError:
        """The estimator from the façade's settings, where bins and partition are words."""
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        return cls(partition=as_partition(**partition_settings), **settings)

    def bins(self, view: View) -> BinSums:
        """The bins of this view."""
        return BinSums(self, view, self.cells(view))

    def cells(self, view: View) -> FittedPartition:
        """The partition as this view fixes it."""
        partition = self.partition_for(view)
        return view.once(partition, lambda: partition.freeze(view))

    def partition_for(self, view: View) -> Partition:
        """The partition asked for, or the view's own."""
        return self.partition or default_for(view)

    def value(self, view: View) -> float:
        """The error over the view's bins."""
        return self.bins(view).value()

    def values(self, views: Sequence[View]) -> Array:
        """The errors of several views; of all classes at once where their bins are the same."""
        grouped = shared_classes(views) if len(views) > 1 and self.partition_for(views[0]).blind else None
        if grouped is None:
            return super().values(views)
        classes, labels = grouped
        one = self.bins(views[0])
        assert isinstance(one.cells, Bins)
        table = classes.sums(one.cells.edges, one.cells.closed)[labels]
        n, wp, wy = table[..., 0], table[..., 1], table[..., 2]
        return one.cut_anew(n, wp, wy, n >= self.min_count)

    def evaluate_selections(self, of: Selections) -> Array:
        """The errors of all selections, each in bins of its own; side by side where the partition can cut them so."""
        sums = self.partition_for(of.view).sums(of) if of.alike else None
        if sums is None:
            return super().evaluate_selections(of)
        n, wp, wy = sums
        return self.bins(of.first).cut_anew(n, wp, wy, n >= self.min_count)

    def linear(self, view: View) -> Linear | None:
        """The error with the bins held fixed; None where the labels choose the bins."""
        if self.partition_for(view).uses_outcomes:
            return None
        return self.bins(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Partition, distance and order as used."""
        partition = self.partition_for(view)
        bin_sums = self.bins(view)
        binned = bin_sums.binned
        worst = np.isinf(self.order)
        ruled = getattr(partition, "bins", None) in BIN_RULES
        return {
            "partition": str(partition),
            **({"bins": bin_sums.size} if ruled else {}),
            "distance": str(as_distance(self.distance, self.order)),
            "order": "inf" if worst else self.order,
            **({"min_count": self.min_count} if worst else {}),
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min()),
        }

    def parts(self, view: View) -> dict[str, float]:
        """How much of the average is overconfidence (said above seen) and how much underconfidence."""
        if view.joint or self.order != 1 or str(as_distance(self.distance)) != "tv":
            return {}
        binned = self.bins(view).binned
        gap = binned.w / binned.w.sum() * (binned.p - binned.y)
        return {"over": float(gap[gap > 0].sum()), "under": float(-gap[gap < 0].sum())}

    def notes(self, view: View) -> list[Note]:
        """A word where bins hold few rows."""
        binned = self.bins(view).binned
        note_list = []
        if n_small := int((binned.n < 10).sum()):
            text = f"{n_small} of {len(binned.n)} occupied bins hold fewer than 10 rows; the noise floor tells what that adds."
            note_list.append(Note("TN105", text))
        if np.isinf(self.order) and (binned.n < self.min_count).all():
            note_list.append(Note("TN107", f"No bin holds {self.min_count} rows, so there is no worst bin to report."))
        return [*note_list, *single_bin_note(view, binned)]


def single_bin_note(view: View, binned: View) -> list[Note]:
    """A word where predictions that differ share a single bin, in which over- and underconfidence cancel."""
    if len(binned.w) > 1 or len(view) < 2 or (view.p == view.p[:1]).all():
        return []
    rows = f"All {view.n_rows:,} rows share one bin"
    return [
        Note("TN109", f"{rows}, so this is the mean prediction beside the event rate; use more bins, or smaller ones.")
    ]


class BinSums:
    """One view's bins for one error: the formula lives here, for rows, tallies and draws alike."""

    def __init__(self, error: BinnedError, view: View, cells: FittedPartition) -> None:
        self.error, self.view, self.cells, self.size = error, view, cells, cells.size
        self.distance = as_distance(error.distance, error.order)

    @cached_property
    def binned(self) -> View:
        """The occupied bins."""
        return self.view.binned(self.cells)

    @cached_property
    def index(self) -> Array:
        """The bin of each row."""
        return self.cells.index(self.view.at)

    @cached_property
    def enough(self) -> Array:
        """Which bins hold as many rows as a worst bin must."""
        enough = np.zeros(self.size, dtype=bool)
        enough[self.binned.bin_index] = self.binned.n >= self.error.min_count
        return enough

    @cached_property
    def bin_weight(self) -> Array:
        """The weight of each bin."""
        weights = np.zeros(self.size)
        weights[self.binned.bin_index] = self.binned.w
        return weights

    def gap_weights(self) -> Array | None:
        """The weight of each bin where the error is a weighted mean of absolute gaps; else None."""
        return self.bin_weight / self.bin_weight.sum() if self._is_mean_gap else None

    @property
    def _is_mean_gap(self) -> bool:
        return self.error.order == 1 and not self.view.joint and str(self.distance) == "tv"

    def value(self) -> float:
        """The error of the view itself."""
        w, y, p = self.binned.w, self.binned.y, self.binned.p
        enough = self.binned.n >= self.error.min_count
        return float(self._average(w[None], self.distance(p[None], y[None], self.view.joint), enough)[0])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per bin; bins without weight are absent."""
        return self.cut_anew(w, wp, wy, self.enough)

    def cut_anew(self, w: Array, wp: Array, wy: Array, enough: Array) -> Array:
        """The same from sums over bins that may be others than this view's; `enough` are those that may be the worst."""
        return self._average(w, self._gap(w, wp, wy), enough)

    def _gap(self, w: Array, wp: Array, wy: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = w[..., None] if self.view.joint else w
            gap = self.distance(wp / mass, wy / mass, self.view.joint)
        return np.where(w > 0, gap, 0.0)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """The error's own norm of (residual of the draw − observed residual), bins weighted as observed."""
        if not self.distance.norm:
            return None
        dw, dwp, dwy = draws
        with np.errstate(divide="ignore", invalid="ignore"):
            mass, dmass = (w[..., None], dw[..., None]) if self.view.joint else (w, dw)
            gap = self.distance((dwp - dwy) / dmass, np.broadcast_to((wp - wy) / mass, dwp.shape), self.view.joint)
        return self._average(np.broadcast_to(w, dw.shape), np.where((w > 0) & (dw > 0), gap, 0.0), self.enough)

    def _average(self, w: Array, gap: Array, enough: Array) -> Array:
        q = self.error.order
        if np.isinf(q):
            worst = np.where(enough & (w > 0), gap, 0.0).max(axis=-1)
            return np.asarray(np.where(enough.any(axis=-1), worst, np.nan))  # no bin to judge by is not perfect
        with np.errstate(invalid="ignore"):  # of a view without a row in a resample there is no error
            weights = w / w.sum(axis=-1, keepdims=True)
        if q == 1:
            return np.asarray((weights * gap).sum(axis=-1))
        return power_mean(weights, gap, q)


@dataclass(frozen=True)
class MaxError(BinnedError):
    r"""The worst bin's distance between mean prediction and outcome rate (MCE).

    .. math:: \max_b d(\bar p_b, \bar y_b)

    Units: probability, in [0, 1]; 0 is best. Bias: strongly upward, the smallest bin decides; give
    `min_count` of at least 10 for a report. Cost and source as for ECE.

    >>> float(MaxError()(View(p=[0.9, 0.8], y=[1, 0])))
    0.8
    """

    name: ClassVar[str] = "mce"
    order: Order = float("inf")


@dataclass(frozen=True)
class RootMeanSquareError(BinnedError):
    r"""The root of the mean squared distance over bins (RMSCE, plug-in L2).

    .. math:: \Big(\sum_b \tfrac{w_b}{w}\, d(\bar p_b, \bar y_b)^2\Big)^{1/2}

    Units: probability, in [0, 1]; 0 is best; never below ECE on the same bins. Bias: upward; the debiased
    value beside it is unbiased for the square on these bins. Cost as for ECE.
    Source: Nguyen & O'Connor (2015).

    >>> round(float(RootMeanSquareError()(View(p=[0.9, 0.8], y=[1, 0]))), 4)
    0.5701
    """

    name: ClassVar[str] = "rmsce"
    order: Order = 2.0


def shared_classes(views: Sequence[View]) -> tuple[Classes, list[int]] | None:
    """The classes whose sums are made in one pass, and which of them these views are; None for other views."""
    rows = [view.rows for view in views if isinstance(view.rows, OneOfClasses)]
    if len(rows) < len(views) or len({id(column.classes) for column in rows}) > 1:
        return None
    return rows[0].classes, [column.label for column in rows]
