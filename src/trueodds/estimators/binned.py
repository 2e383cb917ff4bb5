"""Binned calibration errors: expected, class-wise, average, maximum and root mean square."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.distance import Distance, as_distance, power_mean
from trueodds.binning.partition import BIN_RULES, Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.binning.sorted_scores import RowSelections
from trueodds.core.errors import Note
from trueodds.core.settings import Count, Order
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.row_sources import ClassColumn, ClassColumns
from trueodds.lenses.view import View


@dataclass(frozen=True)
class BinnedError(HasPartition, Estimator):
    r"""Expected calibration error (ECE): mean distance between predicted and observed rates over bins.

    Predictions are grouped into bins. The mean prediction of each bin is compared with its event rate.

    Parameters
    ----------
    partition : Partition, optional
        The bins. The default is 15 uniform bins for a binary view; for a joint view of three outcomes a median-variance
        tree of 16 leaves, and of more outcomes cells by predicted class.
    distance : str or callable, default="tv"
        Distance between prediction and event rate: "tv", "l1", "l2", "sq-euclidean", "max", "kl", "lp:3", or a callable
        d(predicted, observed) of two vectors.
    order : float, default=1.0
        Power q of the average over bins. Infinity takes the worst bin.
    min_count : int, default=1
        Minimum number of rows of a bin in the search for the worst bin (``order=inf``). Averages use all bins.

    Raises
    ------
    InputError
        TO203 if the distance or the partition is unknown. TO205 if bins of one score are used with a joint view.

    See Also
    --------
    debiased_l1 : ECE minus a part of its upward bias: about two fifths for a calibrated model.
    smece : Calibration error without bins.

    Notes
    -----
    .. math:: \Big(\sum_b \tfrac{w_b}{w}\, d(\bar p_b, \bar y_b)^{q}\Big)^{1/q}

    Shapes: a binary view (n,) or a joint view (n, m). Empty bins are ignored.

    Units: probability. The range is [0, 1] for "tv", and 0 is best.

    Bias: upward. A calibrated model with k bins and n rows has at most about 0.4 sqrt(k/n), and less if most
    predictions are near 0 or 1; `noise_floor` estimates it.
    With fixed bins and growing n the estimate converges to a lower bound of the true error.

    Cost: O(n log k) time, O(k) memory. Tallies merge exactly.

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht (2015).
    .. [2] Guo et al. (2017).
    .. [3] Vaicenavicius et al. (2019), for probability vectors.

    Examples
    --------
    >>> import trueodds as to
    >>> to.measure([1, 0], [0.9, 0.8], "ece", bins=5, interval=None).value
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
        """Largest possible value: 1 for total variation, infinity for other distances."""
        return 1.0 if self.distance == "tv" else math.inf

    def bin_sums(self, view: View) -> BinSums:
        """The bins of this view with their sums."""
        return BinSums(self, view)

    def value(self, view: View) -> float:
        return self.bin_sums(view).value()

    def values(self, views: Sequence[View]) -> Array:
        """The errors of several views, computed in one pass for all classes if their bins are the same."""
        if len(views) == 1:
            return np.array([self.value(views[0])])
        columns = shared_classes(views) if self.partition_for(views[0]).ignores_scores else None
        if columns is None:
            return super().values(views)
        classes, labels = columns
        first_sums = self.bin_sums(views[0])
        assert isinstance(first_sums.cells, Bins)
        table = classes.sums(first_sums.cells.edges, first_sums.cells.closed)[labels]
        n, wp, wy = table[..., 0], table[..., 1], table[..., 2]
        return first_sums.error_from_sums(n, wp, wy, n >= self.min_count)

    def evaluate_selections(self, selections: RowSelections) -> Array:
        """The errors of all selections of rows, each with bins of its own, vectorized if the partition supports it."""
        sums = self.partition_for(selections.view).sums_by_selection(selections) if selections.is_vectorizable else None
        if sums is None:
            return super().evaluate_selections(selections)
        n, wp, wy = sums
        return self.bin_sums(selections.first_view).error_from_sums(n, wp, wy, n >= self.min_count)

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The error as a function of sums per bin, with fixed bins; None if the partition depends on the labels."""
        return None if self.partition_for(view).uses_outcomes else self.bin_sums(view)

    def mean_gap_share(self, view: View) -> float:
        return 0.0 if view.joint else self.bin_sums(view).mean_gap_share()

    def settings_used(self, view: View) -> dict[str, Any]:
        partition, bin_sums = self.partition_for(view), self.bin_sums(view)
        binned, is_maximum = bin_sums.binned, np.isinf(self.order)
        has_bin_rule = getattr(partition, "bins", None) in BIN_RULES
        return {
            "partition": str(partition),
            **({"bins": bin_sums.size} if has_bin_rule else {}),
            "distance": bin_sums.distance.name,
            "order": "inf" if is_maximum else self.order,
            **({"min_count": self.min_count} if is_maximum else {}),
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min()),
        }

    def parts(self, view: View) -> dict[str, float]:
        """Return the parts of the error from bins whose mean prediction is above and below the event rate."""
        bin_sums = self.bin_sums(view)
        if not bin_sums.is_mean_gap:
            return {}
        binned = bin_sums.binned
        gap = binned.w / binned.w.sum() * (binned.p - binned.y)
        return {"over": float(gap[gap > 0].sum()), "under": float(np.abs(gap[gap < 0]).sum())}

    def notes(self, view: View) -> list[Note]:
        binned = self.bin_sums(view).binned
        n_small = int((binned.n < 10).sum())
        note_list = [small_bins_note(n_small, len(binned.n))] if n_small else []
        if np.isinf(self.order) and (binned.n < self.min_count).all():
            note_list.append(Note("TN107", f"No bin holds {self.min_count} rows, so the worst bin is undefined."))
        return note_list if len(binned.w) > 1 else [*note_list, *single_bin_note(view, binned)]


def small_bins_note(n_small: int, n_bins: int) -> Note:
    """Note on bins with few rows, where noise makes the error larger."""
    subject = "The only occupied bin" if n_bins == 1 else f"{n_small} of {n_bins} occupied bins"
    contain = f"contain{'s' if n_small == 1 else ''} fewer than 10 rows, which biases the error upward"
    return Note("TN105", f"{subject} {contain}; compare it with the noise floor.")


def single_bin_note(view: View, binned: View) -> list[Note]:
    """Note if different predictions share a single bin, where over- and underconfidence cancel."""
    if len(binned.w) > 1 or len(view) < 2 or (view.p == view.p[:1]).all():
        return []
    text = (
        f"All {view.n_rows:,} rows share one bin, so only the mean prediction is compared with the event rate. Use more"
        " bins, or smaller ones."
    )
    return [Note("TN109", text)]


class BinSums(CellStatistic):
    """Sums per bin of one view, from which the error is computed for rows, tallies and draws."""

    def __init__(self, error: BinnedError, view: View) -> None:
        partition = error.partition_for(view)
        self.error, self.view = error, view
        self.cells: FittedPartition = view.cached(partition, lambda: partition.fit(view))  # fixed for this view
        self.size = self.cells.size
        self.binned = view.binned(self.cells)  # one cell per occupied bin
        self.distance = as_distance(error.distance, error.order)
        # Distance of predictions and observations: vectors (…, m) of a joint view, else single probabilities (…).
        self.gap_of = self.distance.vector_distance if view.joint else self.distance.score_distance
        is_mean = error.order == 1 and self.distance.name == "tv"
        # Whether the error is the weighted mean of the absolute gaps of one score, or of the distances of joint cells.
        self.is_mean_gap, self.is_mean_total_variation = is_mean and not view.joint, is_mean and view.joint

    @cached_property
    def index(self) -> Array:
        return self.view.assign(self.cells)

    @cached_property
    def has_min_count(self) -> Array:
        """Mask of the bins with at least `min_count` rows."""
        eligible = np.zeros(self.size, dtype=bool)
        eligible[self.binned.bin_index] = self.binned.n >= self.error.min_count
        return eligible

    @cached_property
    def bin_weight(self) -> Array:
        """Weight of each bin, (bins,), 0 for an empty bin."""
        weights = np.zeros(self.size)
        weights[self.binned.bin_index] = self.binned.w
        return weights

    def gap_weights(self) -> Array | None:
        """Weight of each bin if the error is a weighted mean of absolute gaps, else None."""
        return self.bin_weight / self.bin_weight.sum() if self.is_mean_gap else None

    def mean_gap_share(self) -> float:
        """1 if gaps of bins do not cancel in the error, as they do in the mean gap, and otherwise 0."""
        has_all_bins = np.isfinite(self.error.order) or bool((self.binned.n >= self.error.min_count).all())
        return float(self.distance.is_norm and has_all_bins)

    def value(self) -> float:
        binned = self.binned
        gap = self.gap_of(binned.p[None], binned.y[None])
        return float(self._average_gaps(binned.w[None], gap, binned.n >= self.error.min_count)[0])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw, from its sums per bin. Bins without weight are ignored."""
        return self.error_from_sums(w, wp, wy, self.has_min_count)

    def error_from_sums(self, w: Array, wp: Array, wy: Array, eligible: Array) -> Array:
        """The error from sums over bins that may differ from the bins of this view.

        `eligible` marks the bins that may be the worst bin.
        """
        return self._average_gaps(w, self._bin_gaps(w, wp, wy), eligible)

    def _bin_gaps(self, w: Array, wp: Array, wy: Array) -> Array:
        """Distance between mean prediction and event rate of each bin, (…, bins); 0 without weight."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = w[..., None] if self.view.joint else w
            gap = self.gap_of(wp / mass, wy / mass)
        return np.where(w > 0, gap, 0.0)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """Norm of (residuals of the draw − observed residuals), with the observed bin weights."""
        if not self.distance.is_norm:
            return None
        dw, dwp, dwy = draws
        with np.errstate(divide="ignore", invalid="ignore"):
            mass, dmass = (w[..., None], dw[..., None]) if self.view.joint else (w, dw)
            gap = self.gap_of((dwp - dwy) / dmass, np.broadcast_to((wp - wy) / mass, dwp.shape))
        return self._average_gaps(
            np.broadcast_to(w, dw.shape), np.where((w > 0) & (dw > 0), gap, 0.0), self.has_min_count
        )

    def _average_gaps(self, w: Array, gap: Array, eligible: Array) -> Array:
        """Average of the gaps (…, bins) with weights w (…, bins), by the power `order`."""
        order = self.error.order
        if np.isinf(order):
            largest_gap = np.where(eligible & (w > 0), gap, 0.0).max(axis=-1)
            return np.asarray(np.where(eligible.any(axis=-1), largest_gap, np.nan))  # undefined without such a bin
        with np.errstate(invalid="ignore"):  # the error is NaN for a view without a row in a resample
            weights = w / w.sum(axis=-1, keepdims=True)
        if order == 1:
            return np.asarray((weights * gap).sum(axis=-1))
        return power_mean(weights, gap, order)


@dataclass(frozen=True)
class MaxError(BinnedError):
    r"""Maximum calibration error (MCE): largest distance between predicted and observed rates over bins.

    Parameters
    ----------
    order : float, default=inf, as in `BinnedError`
    min_count : int, default=1
        Minimum number of rows of a bin in the search for the worst bin. Use at least 10 for a report.

    See Also
    --------
    emax : Largest distance from a smooth calibration curve (Emax).

    Notes
    -----
    .. math:: \max_b d(\bar p_b, \bar y_b)

    Units: probability, in [0, 1]; 0 is best.

    Bias: strongly upward, because the smallest bin often determines the maximum.

    Cost: O(n log k) time, O(k) memory. Tallies merge exactly.

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht (2015).

    Examples
    --------
    >>> import trueodds as to
    >>> to.measure([1, 0], [0.9, 0.8], "mce", interval=None).value
    0.8
    """

    name: ClassVar[str] = "mce"
    order: Order = float("inf")


@dataclass(frozen=True)
class RootMeanSquareError(BinnedError):
    r"""Root mean squared calibration error over bins (RMSCE, plug-in L2).

    Parameters
    ----------
    order : float, default=2.0, as in `BinnedError`

    See Also
    --------
    debiased_l2 : The same error with an unbiased estimate of the square.

    Notes
    -----
    .. math:: \Big(\sum_b \tfrac{w_b}{w}\, d(\bar p_b, \bar y_b)^2\Big)^{1/2}

    Units: probability, in [0, 1]; 0 is best. The value is never below ECE on the same bins.

    Bias: upward. The square of `DebiasedL2` is unbiased on the same bins.

    Cost: O(n log k) time, O(k) memory. Tallies merge exactly.

    References
    ----------
    .. [1] Nguyen & O'Connor (2015).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0], [0.9, 0.8], "rmsce", interval=None).value, 4)
    0.5701
    """

    name: ClassVar[str] = "rmsce"
    order: Order = 2.0


def shared_classes(views: Sequence[View]) -> tuple[ClassColumns, list[int]] | None:
    """Return the classes whose sums are computed in one pass, and the label of each view; None for other views."""
    rows = [view.rows for view in views if isinstance(view.rows, ClassColumn)]
    if len(rows) < len(views) or len({id(column.class_columns) for column in rows}) > 1:
        return None
    return rows[0].class_columns, [column.label for column in rows]


@dataclass(frozen=True)
class StaticError(BinnedError):
    r"""Static calibration error (SCE, class-wise ECE): mean over classes of the one-vs-rest ECE.

    Confidence covers only the predicted class. This error covers all classes, including small probabilities. It is ECE
    with the lens `classwise`. With another lens it is ECE under that lens.

    Parameters
    ----------
    partition : Partition, optional
        The bins of each class. The default is 15 uniform bins.

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
        return EqualWeightSums(self, view)

    def parts(self, view: View) -> dict[str, float]:
        """Overconfidence (mean prediction above the event rate) and underconfidence."""
        if not super().parts(view):
            return {}
        binned = self.bin_sums(view).binned
        gap = (binned.p - binned.y) / len(binned.w)
        return {"over": float(gap[gap > 0].sum()), "under": float(-gap[gap < 0].sum())}


class EqualWeightSums(BinSums):
    """Sums per bin for an error in which all occupied bins have equal weight."""

    def gap_weights(self) -> Array | None:
        """Equal weight for every occupied bin."""
        return (self.bin_weight > 0) / (self.bin_weight > 0).sum() if self.is_mean_gap else None

    def mean_gap_share(self) -> float:
        r"""Weight of the bin that is most underweighted, relative to its share s of the rows.

        For R bins, :math:`|\sum_b s_b g_b| \le R \max_b s_b \cdot \frac1R \sum_b |g_b|`.
        """
        return super().mean_gap_share() * self.binned.w.mean() / self.binned.w.max()

    def _average_gaps(self, w: Array, gap: Array, eligible: Array) -> Array:
        """Average of the gaps (…, bins) over the bins of positive weight."""
        return super()._average_gaps((w > 0).astype(np.float64), gap, eligible)
