"""Calibration errors over equal-mass ranges of the scores of each class: adaptive and thresholded (ACE, TACE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.estimators.binned import AverageError, BinSums, EqualWeightSums, small_bins_note
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View, count_views

DEFAULT_RANGES = EqualMass(15)
MIN_RANGE_ROWS = 25  # rows per range from which its edges vary little between samples


class RangeSums(EqualWeightSums):
    """Sums per equal-mass range, in which all ranges have equal weight.

    In a resample, new equal-mass ranges would have other edges. Instead, the ranges are fixed, and the weight of each
    is the ratio of its mass in the resample and in the view. With equal weights, resamples would vary too little (the
    interval covered 85 % of the errors of a strongly miscalibrated model).
    """

    def gap_weights(self) -> Array | None:
        """None for ranges of few rows, because their variation between samples exceeds the noise of their gaps."""
        return super().gap_weights() if self.binned.n.min() >= MIN_RANGE_ROWS else None

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        if not (self.bin_weight > 0).all():
            return super().statistic(w, wp, wy)
        return BinSums._average_gaps(self, w / self.bin_weight, self._bin_gaps(w, wp, wy), self.has_min_count)


@dataclass(frozen=True)
class AdaptiveError(AverageError):
    r"""Adaptive calibration error (ACE): mean distance over equal-mass ranges, averaged over classes.

    As SCE, but the bins follow the predictions: they are narrow where most scores are and wide elsewhere.

    Parameters
    ----------
    partition : Partition, default=EqualMass(15)
        The ranges of each class.

    Raises
    ------
    InputError
        TO205 if the view has a vector per row.

    Notes
    -----
    .. math:: \frac1K \sum_k \frac1R \sum_{r} |\bar p_{kr} - \bar y_{kr}|

    Tied scores are never split, so there may be fewer ranges than requested. R counts the occupied ranges of each
    class, and all of them have the same weight, as in the paper. Shapes: (n,) per class.

    Units: probability, in [0, 1]; 0 is best. Bias: upward, about as for ECE with the same number of bins. `noise_floor`
    reports it. Cost: O(nK log n) time, O(n) memory. With a tally, the ranges are cut between its cells.

    The code of [1]_ differs from the paper: it weights ranges by rows and starts range r at the score of rank
    round(rn/R), closed on the left. This changes the value in the third digit.

    References
    ----------
    .. [1] Nixon et al. (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> ace = to.measure([0, 1, 0, 1], [0.1, 0.3, 0.5, 0.6], "ace", lens="positive", bins=2, interval=None)
    >>> round(ace.value, 4)  # (|.2 − .5| + |.55 − .5|) / 2
    0.175
    """

    name: ClassVar[str] = "ace"
    lens: ClassVar[str | None] = "classwise"
    exemptions: ClassVar[dict[str, str]] = {"cells": "ranges are cut between cells and not between rows"}
    has_equal_mass_bins: ClassVar[bool] = True
    partition: Partition | None = DEFAULT_RANGES

    def bin_sums(self, view: View) -> BinSums:
        return RangeSums(self, view)

    def partition_for(self, view: View) -> Partition:
        return self.partition or DEFAULT_RANGES


@dataclass(frozen=True)
class ThresholdedError(HasPartition, Estimator):
    r"""Thresholded adaptive calibration error (TACE): error over scores above a threshold, averaged over classes.

    With many classes most probabilities are almost zero. The threshold removes them from the average.

    Parameters
    ----------
    partition : Partition, default=EqualMass(15)
        The ranges. Uniform bins give the thresholded class-wise ECE.
    threshold : float or "1/K", default=0.01
        Scores at or below the threshold are excluded.
    normalize : {"kept", "all"}, default="kept"
        Denominator of the weight of a range: the weight of the scores above the threshold, as in the authors' code, or
        of all rows.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view has a vector per row.

    Notes
    -----
    .. math:: \frac1K \sum_k \sum_{r} \frac{w_{kr}}{w_k} |\bar p_{kr} - \bar y_{kr}|

    The sum is over equal-mass ranges of the scores strictly above `threshold`, and :math:`w_k` is the weight selected
    by `normalize`. A class without such a score contributes 0, and a note says so. Shapes: (n,) per class.

    Units: probability, in [0, 1]; 0 is best. The value jumps when the threshold passes a score, so report the threshold
    with the value. Bias: upward. `noise_floor` reports it. Cost: O(nK log n) time, O(n) memory. With a tally, whole
    cells are kept or excluded. The code of [1]_ starts range r at the kept score of rank round(rn/R), closed on the
    left. This changes the value in the third digit.

    References
    ----------
    .. [1] Nixon et al. (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> tace = to.measure([0, 1, 0, 1], [0.001, 0.3, 0.5, 0.6], "tace", lens="positive", bins=1, interval=None)
    >>> round(tace.value, 4)  # |1.4/3 − 2/3|; 3/4 of it with normalize="all"
    0.2
    """

    name: ClassVar[str] = "tace"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    lens: ClassVar[str | None] = "classwise"
    interval: ClassVar[str | None] = "residual-norm"
    exemptions: ClassVar[dict[str, str]] = {"cells": "the threshold and the ranges fall between rows of one cell"}
    has_equal_mass_bins: ClassVar[bool] = True
    partition: Partition = DEFAULT_RANGES
    threshold: Annotated[float, Range(0, 1, closed="left")] | Literal["1/K"] = 0.01
    normalize: Literal["kept", "all"] = "kept"

    def value(self, view: View) -> float:
        return ThresholdedSums(self, view).value()

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The error with fixed ranges; None if they depend on the labels."""
        return None if self.partition.uses_outcomes else ThresholdedSums(self, view)

    def settings_used(self, view: View) -> dict[str, Any]:
        binned = ThresholdedSums(self, view).binned
        return {
            "partition": str(self.partition),
            "threshold": self.threshold,
            "normalize": self.normalize,
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min(initial=view.n_rows)),
        }

    def parts(self, view: View) -> dict[str, float]:
        """Share of the weight above the threshold."""
        return {"kept": float(ThresholdedSums(self, view).binned.w.sum() / view.total)}

    def notes(self, view: View) -> list[Note]:
        binned = ThresholdedSums(self, view).binned
        if n_small := int((binned.n < 10).sum()):
            return [small_bins_note(n_small, len(binned.n))]
        return self.joint_notes([view])

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        empty_views = [view.name or "the view" for view in views if len(ThresholdedSums(self, view).binned.w) == 0]
        if not empty_views:
            return []
        view_names = ", ".join(empty_views[:3]) + (", …" if len(empty_views) > 3 else "")
        suffix = "" if len(views) == 1 else f" in {len(empty_views)} of {count_views(views)}"
        text = f"No score lies above the threshold {self.threshold}{suffix} ({view_names}), which adds 0."
        return [Note("TN111", text)]


class ThresholdedSums(CellStatistic):
    """Sums per range of the scores above the threshold. The last cell holds all other rows and is ignored."""

    def __init__(self, error: ThresholdedError, view: View) -> None:
        require_one_score(view, error.name)
        threshold = 1 / view.classes if error.threshold == "1/K" and view.classes > 1 else error.threshold
        if isinstance(threshold, str):
            raise InputError(
                "TO205",
                "threshold='1/K' needs the number of classes, which confidences alone do not provide.",
                "threshold='1/K'",
                "Give the threshold as a number.",
            )
        self.normalizes_above_threshold = error.normalize == "kept"
        rows = np.flatnonzero((view.partition_values.astype(np.float64, copy=False) > threshold) & (view.w > 0))
        p, y, w, n, scores = (x[rows] for x in (view.p, view.y, view.w, view.n, view.partition_values))
        if view.is_rows:  # the rows with their log odds, if known
            above_threshold = view.take(rows)
        else:
            above_threshold = View(p, y, w, n=n, partition_values=scores, classes=view.classes)
        cells = error.partition.fit(above_threshold) if len(rows) else Bins(np.array([0.0, 1.0]))
        self.size = cells.size + 1
        self.index = np.full(len(view), cells.size)
        self.index[rows] = above_threshold.assign(cells)
        self.sums = tuple(np.bincount(self.index, x, self.size) for x in (view.w, view.w * view.p, view.w * view.y))
        ranges = np.flatnonzero(self.sums[0][:-1] > 0)
        w, wp, wy = (x[ranges] for x in self.sums)
        self.binned = View(wp / w, wy / w, w, n=np.bincount(self.index, view.n, self.size)[ranges], name=view.name)

    def gap_weights(self) -> Array:
        """Weight of each range in the error; 0 for the cell of the excluded rows."""
        w: Array = self.sums[0].astype(np.float64)
        total_weight, w[-1] = w.sum(), 0.0
        return w / (max(float(w.sum()), 1e-300) if self.normalizes_above_threshold else total_weight)

    def value(self) -> float:
        return float(self.statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self._normalize(w, np.abs(wp - wy)[..., :-1].sum(axis=-1))

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array:
        """The error of (residual of the draw − observed residual), with the observed weights of the ranges."""
        dw, dwp, dwy = draws
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = w * np.abs((dwp - dwy) / dw - (wp - wy) / w)
        return self._normalize(w, np.where((w > 0) & (dw > 0), gap, 0.0)[..., :-1].sum(axis=-1))

    def _normalize(self, w: Array, gap_sum: Array) -> Array:
        """Divide the sum of gaps (…,) by the total weight, or by that above the threshold, from w (…, cells)."""
        denominator = (w[..., :-1] if self.normalizes_above_threshold else w).sum(axis=-1)
        return np.asarray(np.where(denominator > 0, gap_sum / np.where(denominator > 0, denominator, 1.0), 0.0))
