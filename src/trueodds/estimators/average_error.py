"""Average calibration error: unweighted mean distance between predicted and observed rates over occupied bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError, BinSums
from trueodds.lenses.view import View


@dataclass(frozen=True)
class AverageError(BinnedError):
    r"""Average calibration error: unweighted mean distance over occupied bins.

    Every occupied bin has the same weight. A bin of three rows changes the value as much as a bin of one thousand.

    Parameters
    ----------
    partition, distance, order, min_count : as in `BinnedError`

    Raises
    ------
    InputError : as in `BinnedError`

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
    """Sums per bin for an error in which all occupied bins have equal weight."""

    def gap_weights(self) -> Array | None:
        """Equal weight for every occupied bin."""
        return (self.bin_weight > 0) / (self.bin_weight > 0).sum() if self._is_mean_gap else None

    def mean_gap_share(self) -> float:
        r"""Weight of the bin that is most underweighted, relative to its share s of the rows.

        For R bins, :math:`|\sum_b s_b g_b| \le R \max_b s_b \cdot \frac1R \sum_b |g_b|`.
        """
        return super().mean_gap_share() * self.binned.w.mean() / self.binned.w.max()

    def _average_gaps(self, w: Array, gap: Array, eligible: Array) -> Array:
        """Average of the gaps (…, bins) over the bins of positive weight."""
        return super()._average_gaps((w > 0).astype(np.float64), gap, eligible)
