"""Adaptive calibration error (ACE): mean distance over equal-mass ranges of the scores of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import Partition
from trueodds.core.typing import Array
from trueodds.estimators.average_error import AverageError, EqualWeightSums
from trueodds.estimators.binned import BinSums
from trueodds.lenses.view import View

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
    distance, order, min_count : as in `BinnedError`

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
        """The ranges of this view, with equal weights."""
        return RangeSums(self, view, self.cells(view))

    def partition_for(self, view: View) -> Partition:
        return self.partition or DEFAULT_RANGES
