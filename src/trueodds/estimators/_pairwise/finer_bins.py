"""Note on errors that cancel within bins, from a comparison of the debiased error with that of finer bins."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from trueodds.binning.equal_mass import EqualMass
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.typing import Array
from trueodds.estimators._pairwise.pairs_in_bins import divide_or_zero, mean_square
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.view import View

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
    """Return the estimated variance of the gap of each bin."""
    ww = binned.sums("ww")
    squares = np.maximum(binned.sums("wwr") - (binned.y - binned.p) ** 2 * ww, binned.sums("wwv"))
    return np.asarray(squares / binned.w**2)


def _debiased_square(binned: View) -> float:
    """Return the debiased square T_mn of the gaps of the bins."""
    return float(mean_square(binned.w, binned.w * (binned.y - binned.p), binned.sums("wwr"), binned.sums("ww")))
