"""Class-wise and adaptive calibration errors: static, adaptive, thresholded and average (SCE, ACE, TACE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BinsOrEdges, Partition
from trueodds.binning.partition_by_name import as_partition
from trueodds.core.errors import InputError, Note
from trueodds.core.registry import dataclass_settings
from trueodds.core.settings import Range, check
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.estimators.binned import PARTITION_SETTINGS, BinnedError, BinSums, small_bins_note
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

DEFAULT_RANGES = EqualMass(15)
MIN_RANGE_ROWS = 25  # rows per range from which its edges vary little between samples


def merge_partition_settings(settings: dict[str, Any], default_partition: str) -> dict[str, Any]:
    """Combine the partition settings into one partition. `bins` alone uses the partition named `default_partition`."""
    partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
    has_edges = isinstance(check("bins", partition_settings.get("bins"), BinsOrEdges | None, 15), tuple)
    if partition_settings and "partition" not in partition_settings and not has_edges:
        partition_settings["partition"] = default_partition
    return settings | {"partition": as_partition(**partition_settings)} if partition_settings else settings


@dataclass(frozen=True)
class StaticError(BinnedError):
    r"""Static calibration error (SCE, class-wise ECE): mean over classes of the one-vs-rest ECE.

    Confidence covers only the predicted class. This error covers all classes, including small probabilities. It is ECE
    with the lens `classwise`. With another lens it is ECE under that lens.

    Parameters
    ----------
    partition : Partition, optional
        The bins of each class. The default is 15 uniform bins.
    distance : str or callable, default="tv"
        Distance between mean prediction and event rate, as for `BinnedError`.
    order : float, default=1.0
        Power of the average over bins. Infinity takes the worst bin.
    min_count : int, default=1
        Minimum number of rows of a bin in the search for the worst bin (``order=inf``).

    Raises
    ------
    InputError
        TO203 if the distance or the partition is unknown. TO205 if bins of one score are used with a joint view.

    Notes
    -----
    .. math:: \frac1K \sum_k \sum_b \tfrac{w_{kb}}{w} |\bar p_{kb} - \bar y_{kb}|

    Shapes: (n,) per class. Empty bins are ignored. A class that was never observed counts.

    Units: probability, in [0, 1]; 0 is best. With many classes the value is small because most probabilities are near
    0. Bias: upward for every class, about as for ECE. `noise_floor` reports it. Cost: O(nK log bins) time, O(K bins)
    memory. Tallies merge exactly. The code of [1]_ uses left-closed bins (``closed="left"``). The code of [2]_ makes 14
    bins if 15 are requested.

    References
    ----------
    .. [1] Nixon et al. (2019).
    .. [2] Kull et al. (2019), as class-wise ECE.

    Examples
    --------
    >>> import trueodds as to
    >>> to.measure([1, 0], [0.9, 0.8], "sce", lens="positive", interval=None).value  # 1/2 · .1 + 1/2 · .8
    0.45
    """

    name: ClassVar[str] = "sce"
    lens: ClassVar[str | None] = "classwise"


@dataclass(frozen=True)
class AverageError(BinnedError):
    r"""Average calibration error: unweighted mean distance over occupied bins.

    Every occupied bin has the same weight. A bin of three rows changes the value as much as a bin of one thousand.

    Parameters
    ----------
    partition : Partition, optional
        The bins. The default is 15 uniform bins for a binary view and the median-variance tree for a joint view.
    distance : str or callable, default="tv"
        Distance between mean prediction and event rate, as for `BinnedError`.
    order : float, default=1.0
        Power of the average over bins. Infinity takes the worst bin.
    min_count : int, default=1
        Minimum number of rows of a bin in the search for the worst bin (``order=inf``).

    Raises
    ------
    InputError
        TO203 if the distance or the partition is unknown. TO205 if bins of one score are used with a joint view.

    See Also
    --------
    ace : Nixon's ACE with equal-mass ranges.

    Notes
    -----
    .. math:: \frac1R \sum_{b : w_b > 0} |\bar p_b - \bar y_b|

    R is the number of occupied bins. An empty bin is ignored and never counts as 0. Shapes: a binary view (n,) or a
    joint view (n, m).

    Units: probability, in [0, 1]; 0 is best. The value is at most MCE on the same bins. Bias: upward and larger than
    for ECE, because the noise of small bins has full weight. `noise_floor` reports it. Cost: O(n log bins) time,
    O(bins) memory. Tallies merge exactly.

    References
    ----------
    .. [1] Neumann et al. (2018). netcal, where it is called ACE.

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1] * 4, [0.9, 0.9, 0.9, 0.2], "average_ce", interval=None).value, 4)  # (.1 + .8) / 2
    0.45
    """

    name: ClassVar[str] = "average_ce"

    def bin_sums(self, view: View) -> BinSums:
        """The bins of this view, with equal weights."""
        return EqualWeightSums(self, view, self.cells(view))

    def parts(self, view: View) -> dict[str, float]:
        """Overconfidence (mean prediction above the event rate) and underconfidence."""
        if not super().parts(view):
            return {}
        binned = self.bin_sums(view).binned
        gap = (binned.p - binned.y) / len(binned.w)
        return {"over": float(gap[gap > 0].sum()), "under": float(-gap[gap < 0].sum())}


class EqualWeightSums(BinSums):
    """Occupied bins with equal weights."""

    def gap_weights(self) -> Array | None:
        """Equal weight for every occupied bin."""
        return (self.bin_weight > 0) / (self.bin_weight > 0).sum() if self._is_mean_gap else None

    def _average(self, w: Array, gap: Array, eligible: Array) -> Array:
        return super()._average((w > 0).astype(np.float64), gap, eligible)


class RangeSums(EqualWeightSums):
    """Ranges with equal weights. In a resample the ranges are fixed and weighted by their change of mass.

    New equal-mass ranges would lie elsewhere, and the change of mass measures by how much. Without it resamples vary
    too little (the interval covered 85 % of the errors of a strongly miscalibrated model).
    """

    def gap_weights(self) -> Array | None:
        """None for ranges of few rows, because their variation between samples exceeds the noise of their gaps."""
        return super().gap_weights() if self.binned.n.min() >= MIN_RANGE_ROWS else None

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw on the ranges of the view."""
        if not (self.bin_weight > 0).all():
            return super().statistic(w, wp, wy)
        return BinSums._average(self, w / self.bin_weight, self._gap(w, wp, wy), self.has_min_count)


@dataclass(frozen=True)
class AdaptiveError(AverageError):
    r"""Adaptive calibration error (ACE): mean distance over equal-mass ranges, averaged over classes.

    As SCE, but the bins follow the predictions: they are narrow where most scores are and wide elsewhere.

    Parameters
    ----------
    partition : Partition, default=EqualMass(15)
        The ranges of each class.
    distance : str or callable, default="tv"
        Distance between mean prediction and event rate, as for `BinnedError`.
    order : float, default=1.0
        Power of the average over ranges. Infinity takes the worst range.
    min_count : int, default=1
        Minimum number of rows of a range in the search for the worst range (``order=inf``).

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
    partition: Partition | None = DEFAULT_RANGES

    def bin_sums(self, view: View) -> BinSums:
        """The ranges of this view, with equal weights."""
        return RangeSums(self, view, self.cells(view))

    def partition_for(self, view: View) -> Partition:
        """Equal-mass ranges by default."""
        return self.partition or DEFAULT_RANGES

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> AdaptiveError:
        """Create the estimator from public settings. Bins are equal-mass by default."""
        return cls(**merge_partition_settings(settings, "equal-mass"))


@dataclass(frozen=True)
class ThresholdedError(Estimator):
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
    partition: Partition = DEFAULT_RANGES
    threshold: Annotated[float, Range(0, 1, closed="left")] | Literal["1/K"] = 0.01
    normalize: Literal["kept", "all"] = "kept"

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Names of the settings that the public functions may pass."""
        return (*PARTITION_SETTINGS, *(name for name in dataclass_settings(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> ThresholdedError:
        """Create the estimator from public settings. Bins are equal-mass by default."""
        return cls(**merge_partition_settings(settings, "equal-mass"))

    def value(self, view: View) -> float:
        """The error over the ranges of the kept scores."""
        return ThresholdedSums(self, view).value()

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The error with fixed ranges; None if they depend on the labels."""
        return None if self.partition.uses_outcomes else ThresholdedSums(self, view)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Partition, threshold and normalization that were used."""
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
        """Note if no score is above the threshold, or if ranges hold few rows."""
        binned = ThresholdedSums(self, view).binned
        if n_small := int((binned.n < 10).sum()):
            return [small_bins_note(n_small, len(binned.n))]
        return self.joint_notes([view])

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """Note on views without a score above the threshold."""
        empty_views = [view.name or "the view" for view in views if len(ThresholdedSums(self, view).binned.w) == 0]
        if not empty_views:
            return []
        view_names = ", ".join(empty_views[:3]) + (", …" if len(empty_views) > 3 else "")
        suffix = "" if len(views) == 1 else f" in {len(empty_views)} of {len(views)} views"
        text = f"No score lies above the threshold {self.threshold}{suffix} ({view_names}), which adds 0."
        return [Note("TN111", text)]


class ThresholdedSums:
    """Ranges of the scores above the threshold as cells of draws, and a last cell, which is ignored, for other rows."""

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
        above_threshold = View(p, y, w, n=n, partition_values=scores, classes=view.classes)
        cells = error.partition.fit(above_threshold) if len(rows) else Bins(np.array([0.0, 1.0]))
        self.size = cells.size + 1
        self.index = np.full(len(view), cells.size)
        self.index[rows] = cells.index(scores)
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
        """The error of the observed outcomes."""
        return float(self.statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per range."""
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
