"""Debiased L2 and L1 calibration errors, with the bias from sampling noise removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import chdtrc, ndtr

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BIN_RULES, Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.arithmetic import divide_or_zero
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators.base import BinCells, BinStatistic, CellStatistic, Estimator, require_one_score
from trueodds.estimators.binned import BinnedError, RootMeanSquareError, single_bin_note
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.view import View, count_views

FORMS = ("t_mn", "kumar", "dpe")
MIN_ROWS_FOR_BIN_DRAWS = 50_000  # number of rows from which draws use bin sums instead of single rows
DEFAULT_PARTITION = EqualMass("auto")  # ⌈n^(2/5)⌉ bins: as few as keep the noise low, as many as follow a smooth error


@dataclass(frozen=True)
class _DebiasedError(HasPartition, Estimator):
    """Base class of the debiased errors: bins of one score, with importance weights.

    Parameters
    ----------
    partition : Partition, default=EqualMass("auto")
        The bins: ⌈n^(2/5)⌉ equal-mass bins by default. They must not depend on the outcomes.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view has a vector per row.
    """

    upper_bound: ClassVar[float] = 1.0
    interval: ClassVar[str | None] = "debiased"  # the reported interval is that of the plug-in estimator
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "debiasing takes a weight of two as one row that counts double, not as two independent rows",
        "cells": "equal-mass bins are cut between cells and not between rows",
    }
    negative_value_text: ClassVar[str] = "The debiased error is {:.3g}"
    has_equal_mass_bins: ClassVar[bool] = True
    partition: Partition = DEFAULT_PARTITION  # must not depend on the outcomes

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partition.uses_outcomes:
            raise InputError(
                "TO203",
                "Debiasing needs bins that do not depend on the outcomes.",
                f"partition {self.partition}",
                "Use equal-mass or uniform bins.",
            )

    def binned(self, view: View) -> View:
        """The bins of this view with their sums."""
        require_one_score(view, self.name)
        return view.binned(view.cached(self.partition, lambda: self.partition.fit(view)))

    def cell_statistic(self, view: View) -> CellStatistic:
        require_one_score(view, self.name)
        return BinCells(view, self.partition, self.statistic_from_bins)

    def statistic_from_bins(self, w: Array, wp: Array, wy: Array, ww: Array) -> Array:
        """The statistic from Σw, Σwp, Σwy and Σw² of bins, all broadcast, along the last axis."""
        raise NotImplementedError

    def signed_value(self, view: View) -> float:
        """The value before negative values are set to 0."""
        return self.value(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        binned = self.binned(view)
        settings: dict[str, Any] = {"partition": str(self.partition)}
        if getattr(self.partition, "bins", None) in BIN_RULES:
            settings["bins"] = len(binned.w)
        return settings | {"occupied_bins": len(binned.w), "smallest_bin": int(binned.n.min())}

    def notes(self, view: View) -> list[Note]:
        binned, note_list = self.binned(view), []
        if n_single := int((~has_pairs(binned.w, binned.sums("ww"))).sum()):
            text = f"{n_single} of {len(binned.w)} occupied bins hold a single row, which does not separate noise"
            note_list.append(Note("TN112", f"{text} from error."))
        if (error := self.signed_value(view)) < 0:
            note_list.append(
                Note(
                    "TN110",
                    f"{self.negative_value_text.format(error)}: no miscalibration is detected in these bins. Errors"
                    " that cancel within a bin are not detected.",
                )
            )
        return [*note_list, *single_bin_note(view, binned)]

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        errors, notes = np.array([self.signed_value(view) for view in views]), []
        if n_undefined := int(np.isnan(errors).sum()):
            text = f"In {n_undefined} of {count_views(views)} no bin holds two rows, so the value is undefined."
            notes.append(Note("TN112", text))
        if n_negative := int((errors < 0).sum()):
            notes.append(
                Note(
                    "TN110",
                    f"No miscalibration is detected in the bins of {n_negative} of {count_views(views)}. Errors that"
                    " cancel within a bin are not detected.",
                )
            )
        return notes


@dataclass(frozen=True)
class DebiasedL2(_DebiasedError):
    r"""Debiased root mean square calibration error (debiased L2, T_mn): RMSCE without the part that noise adds.

    The square of the error is estimated from pairs of different rows. For a calibrated model this estimate is negative
    about as often as positive.

    Parameters
    ----------
    form : {"t_mn", "kumar", "dpe"}, default="t_mn"
        Estimate of the square, see Notes.

    See Also
    --------
    rmsce : The plug-in estimate.

    Notes
    -----
    .. math:: \theta = \sum_b \tfrac{w_b}{w}
        \frac{(\sum w u)^2 - \sum w^2 u^2}{(\sum w)^2 - \sum w^2}, \quad u = y - p, \qquad \sqrt{\max(0, \theta)}

    `parts` holds the signed θ (`squared`), its signed root and the plug-in estimate. The sum over pairs of different
    rows is unbiased for the mean squared expected residual per bin, also if predictions vary within a bin. Bins of one
    row have no pair and contribute 0. ``form="kumar"`` is the estimate of Kumar and Bröcker,

    .. math:: \sum_b \tfrac{w_b}{w} \Big[(\bar p_b - \bar y_b)^2 - \frac{\bar y_b (1 - \bar y_b)}{n_b - 1}\Big]

    which subtracts slightly too much if the true probabilities vary within a bin. ``form="dpe"`` is the estimate of
    T-Cal, which is T_mn shrunk by :math:`(n_b - 1)/n_b`. With weights, :math:`n_b = (\sum w)^2 / \sum w^2`. Shapes: one
    score per row, (n,).

    Units: probability, in [0, 1]; 0 is best. The value is NaN, with a note, if no bin has two rows.

    Bias: θ is unbiased for the error of these bins, which is at most the true error. The root is biased toward 0 if θ
    is sometimes negative. The default number of bins grows with n as the interval requires. The interval is that of
    `rmsce` on the same bins (Sun et al.).

    Cost: O(n log n) time, O(bins) memory. Tallies merge exactly on uniform bins.

    References
    ----------
    .. [1] Lee et al. (2023).
    .. [2] Sun et al. (2024).
    .. [3] Bröcker (2012).
    .. [4] Kumar, Liang & Ma (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [0, 0, 1], [0.6, 0.8, 0.8]  # u = −.6, −.8, .2: ((−1.2)² − 1.04)/(9 − 3) = .4/6
    >>> error = to.measure(y, p, "debiased_l2", partition="uniform", bins=1, interval=None)
    >>> round(error.parts["squared"], 4), round(error.value, 4)
    (0.0667, 0.2582)
    """

    name: ClassVar[str] = "debiased_l2"
    negative_value_text: ClassVar[str] = "The debiased square is {:.3g} and its root shown as 0"
    form: Annotated[str, OneOf(FORMS)] = "t_mn"

    def signed_value(self, view: View) -> float:
        """Estimated squared error θ, which is negative if the gaps are smaller than expected from noise."""
        binned = self.binned(view)
        w, ww = binned.w, binned.sums("ww")
        if self.form == "kumar":
            return float(self._kumar_theta(w, w * binned.p, w * binned.y, ww))
        return float(self._theta_from_pairs(w, w * (binned.y - binned.p), binned.sums("wwr"), ww))

    def value(self, view: View) -> float:
        """The root of θ, 0 where θ is negative."""
        return float(_clipped_root(np.asarray(self.signed_value(view))))

    def notes(self, view: View) -> list[Note]:
        note_list = super().notes(view)
        if self.form == "t_mn" and self.partition == DEFAULT_PARTITION and len(view):
            note_list += finer_bins_note(view, view.cached(self.partition, lambda: self.partition.fit(view)))
        return note_list

    def cell_statistic(self, view: View) -> CellStatistic:
        """The statistic for draws: on bins for Kumar's form, else by rows, because pairs need each row's square."""
        require_one_score(view, self.name)
        if self.form == "kumar":
            return super().cell_statistic(view)
        if view.n_rows >= MIN_ROWS_FOR_BIN_DRAWS and view.is_rows and _has_hard_labels(view):
            return BinCells(view, self.partition, self._statistic_from_bin_sums(view))
        return RowCells(view, self.partition, self.statistic_from_pairs)

    def _statistic_from_bin_sums(self, view: View) -> BinStatistic:
        """The statistic from sums of bins, for draws of many rows of weight 1 with one label each.

        Σu² = Σy(1 − 2p) + Σp² needs Σyp, which the sums of bins do not have. It is approximated by Σy·p̄ plus n times
        the variance of p within the bin, its mean if labels are drawn from p. With hundreds of rows per bin the error
        is a few per cent of a term that varies much less than the square from which it is subtracted.
        """
        cells = view.cached(self.partition, lambda: self.partition.fit(view))
        binned = view.binned(cells)
        assert binned.bin_index is not None
        mean, p_variance = np.zeros((2, cells.size))
        mean[binned.bin_index] = binned.p
        p_variance[binned.bin_index] = binned.sums("wpp") / binned.w - binned.p**2

        def statistic(w: Array, wp: Array, wy: Array, ww: Array) -> Array:
            squares = wy * (1 - 2 * mean) + w * (mean**2 - p_variance)
            return self.statistic_from_pairs(w, wy - wp, squares, ww)

        return statistic

    def interval_estimator(self) -> Estimator:
        return RootMeanSquareError(self.partition)

    def statistic_from_bins(self, w: Array, wp: Array, wy: Array, ww: Array) -> Array:
        """Kumar's form from Σw, Σwp, Σwy and Σw² of bins (…, bins), (…)."""
        return _clipped_root(self._kumar_theta(w, wp, wy, ww))

    def _kumar_theta(self, w: Array, wp: Array, wy: Array, ww: Array) -> Array:
        """Kumar's estimate of θ from Σw, Σwp, Σwy and Σw² of bins (…, bins), (…)."""
        rate, gap = divide_or_zero(wy, w), divide_or_zero(wp - wy, w)
        return _average_bins(w, ww, gap**2 - rate * (1 - rate) * divide_or_zero(ww, w**2 - ww))

    def statistic_from_pairs(self, w: Array, residual: Array, squares: Array, ww: Array) -> Array:
        """T_mn's or DPE's root from Σw, Σwu, Σw²u² and Σw² of bins (…, bins), (…)."""
        return _clipped_root(self._theta_from_pairs(w, residual, squares, ww))

    def _theta_from_pairs(self, w: Array, residual: Array, squares: Array, ww: Array) -> Array:
        """T_mn's or DPE's estimate of θ from Σw, Σwu, Σw²u² and Σw² of bins (…, bins), (…)."""
        return _average_bins(w, ww, divide_or_zero(residual**2 - squares, w**2 if self.form == "dpe" else w**2 - ww))

    def settings_used(self, view: View) -> dict[str, Any]:
        return {**super().settings_used(view), "form": self.form}

    def parts(self, view: View) -> dict[str, float]:
        """θ, its signed root, and the plug-in value."""
        theta, plug_in = self.signed_value(view), self.interval_estimator().value(view)
        return {"squared": theta, "signed_root": float(np.sign(theta) * abs(theta) ** 0.5), "plug_in": plug_in}


@dataclass(frozen=True)
class DebiasedL1(_DebiasedError):
    r"""Debiased expected calibration error: ECE minus an estimate of the part that noise adds.

    The estimate assumes that the event rate of a bin is normal around its observed value and computes how much larger
    the distance would be on average.

    See Also
    --------
    ece : The plug-in estimate.

    Notes
    -----
    .. math:: 2 \sum_b \tfrac{w_b}{w} |\Delta_b| - \sum_b \tfrac{w_b}{w} E|N(\Delta_b, s_b^2)|, \quad
        s_b^2 = \frac{\bar y_b (1 - \bar y_b)}{n_b}, \quad
        E|N(\mu, s^2)| = s \sqrt{2/\pi}\, e^{-\mu^2 / 2 s^2} + \mu (1 - 2 \Phi(-\mu / s))

    where :math:`\Delta_b = \bar y_b - \bar p_b` and :math:`n_b = (\sum w)^2 / \sum w^2`. The authors draw 1,000 normal
    numbers. This closed form is the limit of their estimate. A bin of one row has s = 0. Shapes: one score per row,
    (n,).

    Units: probability, at most 1; 0 is best. The value is negative if noise explains more than the observed error. It
    is never clipped.

    Bias: smaller than that of ECE, but still upward near calibration: of a calibrated model's ECE about 2 − √2 = 0.59
    remains, so two fifths are removed. `noise_floor` reports it. The interval is that of `ece` on the same bins.

    Cost: O(n log n) time, O(bins) memory. Tallies merge exactly on uniform bins.

    References
    ----------
    .. [1] Kumar, Liang & Ma (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 1, 0, 0], [0.5] * 4  # no gap, s = 1/4: minus the mean of |N(0, 1/16)|
    >>> round(to.measure(y, p, "debiased_l1", partition="uniform", bins=1, interval=None).value, 4)
    -0.1995
    """

    name: ClassVar[str] = "debiased_l1"

    def value(self, view: View) -> float:
        """Twice the plug-in error minus its expected value under normal noise."""
        return self.cell_statistic(view).value()

    def interval_estimator(self) -> Estimator:
        return BinnedError(self.partition)

    def statistic_from_bins(self, w: Array, wp: Array, wy: Array, ww: Array) -> Array:
        """The closed form from Σw, Σwp, Σwy and Σw² of bins (…, bins), (…)."""
        rate, gap = divide_or_zero(wy, w), np.abs(divide_or_zero(wy - wp, w))
        rate_variance = np.where(has_pairs(w, ww), rate * (1 - rate) * divide_or_zero(ww, w**2), 0.0)
        s = np.sqrt(np.maximum(rate_variance, 0.0))  # negative if flipped residuals give a rate outside [0, 1]
        z = divide_or_zero(gap, s)
        expected_distance = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * np.where(s > 0, 1 - 2 * ndtr(-z), 1.0)
        return np.asarray((w * (2 * gap - expected_distance)).sum(axis=-1) / w.sum(axis=-1))

    def parts(self, view: View) -> dict[str, float]:
        """The plug-in value and the subtracted term."""
        plug_in = self.interval_estimator().value(view)
        return {"plug_in": plug_in, "bias": plug_in - self.value(view)}


def _has_hard_labels(view: View) -> bool:
    """Whether every row has weight 1 and one label."""
    return bool((view.is_unweighted or (view.w == 1).all()) and ((view.y == 0) | (view.y == 1)).all())


def _average_bins(w: Array, ww: Array, square: Array) -> Array:
    """Mean over bins. Bins of one row contribute 0, and the value is undefined without a pair of rows."""
    return np.asarray(np.where(has_pairs(w, ww).any(axis=-1), mean_of_bins(w, ww, square), np.nan))


def _clipped_root(theta: Array) -> Array:
    """Root of θ, and 0 where θ is negative."""
    return np.asarray(np.sqrt(np.maximum(theta, 0.0)))


FINER_BINS_FACTOR = 4  # number of finer bins per bin
MIN_ROWS_PER_FINER_BIN = 5  # minimum mean number of rows of these finer bins
MAX_PVALUE = 0.05  # largest adjusted p-value at which the gaps of the finer bins count as different
# Smallest difference of the squared errors that matters, in standard errors: half of the half-width of a 95 %
# confidence interval. A bias of this size lowers its coverage to 83 %.
MIN_STANDARD_ERRORS = 0.5 * 1.96


def finer_bins_note(view: View, bins: FittedPartition) -> list[Note]:
    """Return the note TN114 if the error in four times as many equal-mass bins is clearly larger than in these bins.

    Two conditions must hold: the gaps (mean outcome minus mean prediction) of the finer bins of some bin differ
    significantly, and the squared error grows by at least half of the half-width of its 95 % confidence interval. The
    variance of the squared error is that of a sum of squares of independent normal gaps.
    """
    binned = view.binned(bins)
    n_bins = len(binned.w)
    if view.n_rows < MIN_ROWS_PER_FINER_BIN * FINER_BINS_FACTOR * n_bins:
        return []
    finer_bins = EqualMass(FINER_BINS_FACTOR * n_bins).fit(view)
    finer = view.binned(finer_bins)
    square, finer_square = _debiased_square(binned), _debiased_square(finer)
    gap, variance, share = binned.y - binned.p, _gap_variance(binned), binned.w / binned.w.sum()
    variance_of_square = share**2 @ (4 * np.maximum(gap**2 - variance, 0.0) * variance + 2 * variance**2)
    is_material = finer_square - square >= MIN_STANDARD_ERRORS * variance_of_square**0.5
    if not is_material or _equal_gaps_pvalue(finer, _bins_of_finer_bins(view, bins, finer_bins, finer)) > MAX_PVALUE:
        return []
    text = (
        f"The debiased error is {format_number(max(square, 0.0) ** 0.5)} in {n_bins} bins and"
        f" {format_number(finer_square**0.5)} in {len(finer.w)}, because the calibration error varies within the"
        f" {n_bins} bins. The interval is for the error in {n_bins} bins and covers the full error too rarely."
    )
    return [Note("TN114", text)]


def _bins_of_finer_bins(view: View, bins: FittedPartition, finer_bins: FittedPartition, finer: View) -> Array:
    """The bin of each finer bin: that of its mean prediction, or between log odds that of one of its rows."""
    if not isinstance(bins, Bins) or bins.log_odds_edges is None:
        return bins.index(finer.p)
    bin_index = np.zeros(finer_bins.size, dtype=np.int64)
    bin_index[view.assign(finer_bins)] = view.assign(bins)
    return np.asarray(bin_index[finer.bin_index])


def _equal_gaps_pvalue(finer: View, bin_index: Array) -> float:
    """Bonferroni p-value of the hypothesis that the finer bins of a bin have the same gap.

    `bin_index` is the bin of each finer bin. In each bin the squared deviations of the gaps from their mean, over their
    variances, are chi-squared under the hypothesis.
    """
    gap, precision = finer.y - finer.p, divide_or_zero(np.ones(len(finer.w)), _gap_variance(finer))
    mean = divide_or_zero(np.bincount(bin_index, precision * gap), np.bincount(bin_index, precision))
    x, df = np.bincount(bin_index, precision * (gap - mean[bin_index]) ** 2), np.bincount(bin_index) - 1
    p = np.where(df > 0, chdtrc(np.maximum(df, 1), x), 1.0)
    return float(p.min() * len(p))


def _gap_variance(binned: View) -> Array:
    ww = binned.sums("ww")
    squares = np.maximum(binned.sums("wwr") - (binned.y - binned.p) ** 2 * ww, binned.sums("wwv"))
    return np.asarray(squares / binned.w**2)


def _debiased_square(binned: View) -> float:
    """Return the debiased square T_mn of the gaps of the bins."""
    return float(mean_square(binned.w, binned.w * (binned.y - binned.p), binned.sums("wwr"), binned.sums("ww")))


MIN_PAIR_WEIGHT = 1e-12  # (Σw)² − Σw² relative to (Σw)² up to which it is a rounding error, and a bin holds one row


class RowCells(CellStatistic):
    """Cell statistic whose cells are rows (or cells of a tally), for a function of Σw, Σwu, Σw²u² and Σw² by bin.

    u = y − p is the residual of a row. The sum of w_i u_i w_j u_j over the pairs i ≠ j of rows of a bin is (Σwu)² minus
    Σw²u², so a draw needs the sums of each row.
    """

    def __init__(self, view: View, partition: Partition, bin_statistic: BinStatistic) -> None:
        self.bin_statistic = bin_statistic
        bin_of_row = view.assign(view.cached(partition, lambda: partition.fit(view)))
        order = np.argsort(bin_of_row, kind="stable")
        self.size = len(bin_of_row)
        self.index = np.empty(self.size, dtype=np.int64)
        self.index[order] = np.arange(self.size)
        self.starts = np.flatnonzero(np.diff(bin_of_row[order], prepend=-1))
        sums = (view.w, view.w * (view.y - view.p), view.sums("wwr"), view.sums("ww"))
        self.sums = tuple(self._sum_by_bin(x[order]) for x in sums)
        w = view.w[order]
        self.row_weight = divide_or_zero(view.sums("ww")[order], w)  # the weight of one row of a cell
        self.is_rows = view.is_rows
        if not self.is_rows:
            self.has_hard_labels = np.allclose(view.sums("wyy"), view.w * view.y, rtol=1e-9, atol=0)
            # Σwp² and Σw²u² of each cell as multiples of its Σw, which a draw keeps.
            self.wpp_per_weight, self.wwr_per_weight = (
                divide_or_zero(view.sums(name)[order], w) for name in ("wpp", "wwr")
            )

    def value(self) -> float:
        return float(self.bin_statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        residual = wy - wp
        squares = (
            residual * residual * divide_or_zero(self.row_weight, w)
            if self.is_rows
            else self._squared_residuals(w, wp, wy)
        )
        return self.bin_statistic(*(self._sum_by_bin(x) for x in (w, residual, squares, w * self.row_weight)))

    def _squared_residuals(self, w: Array, wp: Array, wy: Array) -> Array:
        """Σw²u² of cells. Binary outcomes have y² = y, and shares of votes keep their squares."""
        if not self.has_hard_labels:
            return self.wwr_per_weight * w
        return self.row_weight * (wy - 2 * divide_or_zero(wp, w) * wy + self.wpp_per_weight * w)

    def _sum_by_bin(self, x: Array) -> Array:
        """Sum over the rows of each bin, from (…, n) in the order of the bins to (…, bins)."""
        return np.asarray(np.add.reduceat(x, self.starts, axis=-1))


def mean_of_bins(w: Array, ww: Array, square: Array) -> Array:
    """Return the mean over bins (…) of a `square` by bin (…, bins), which needs pairs: bins of one row contribute 0."""
    return np.asarray((w * np.where(has_pairs(w, ww), square, 0.0)).sum(axis=-1) / w.sum(axis=-1))


def mean_square(w: Array, residual: Array, squares: Array, ww: Array) -> Array:
    """Return T_mn, the mean over bins of ((Σwu)² − Σw²u²) / ((Σw)² − Σw²), from these sums (…, bins), (…).

    This is the debiased squared calibration error of the bins (see `DebiasedL2`). `residual` is Σwu, and `squares` is
    Σw²u².
    """
    return mean_of_bins(w, ww, divide_or_zero(residual**2 - squares, w**2 - ww))


def has_pairs(w: Array, ww: Array) -> Array:
    """Return whether each bin holds more than one row: whether (Σw)² is larger than Σw²."""
    return np.asarray(w**2 - ww > MIN_PAIR_WEIGHT * w**2)
