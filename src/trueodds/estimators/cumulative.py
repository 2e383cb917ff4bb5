"""Errors of cumulative residuals in order of the score: Kolmogorov-Smirnov error, ECCE-MAD and ECCE-R."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import CELL_EXEMPTION, DistinctScoreError, ScoreStatistic
from trueodds.lenses.view import View


@dataclass(frozen=True)
class CumulativeError(DistinctScoreError):
    r"""Maximum absolute cumulative residual over increasing scores (ECCE-MAD, KS error).

    It shows below which score the model overpredicts or underpredicts most in total. It needs no bins and no
    bandwidth.

    Parameters
    ----------
    start : {"below", "both"}, default="below"
        "below" sums from the lowest score upward, as the authors do. The complements 1 − p and 1 − y then give a
        different value. "both" takes the larger value of the sums from below and from above.

    Notes
    -----
    .. math:: \max_s |C(s)|, \quad C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i)

    The sum is evaluated only where the score changes, so the order of tied rows does not matter. `ks` and `ecce_mad`
    are two names of one quantity.

    Units: probability, in [0, 1]; 0 is best. The value is at least the absolute mean gap and at most the ECE over
    distinct scores.

    Bias: upward, about 1.25 sqrt(mean p(1-p) / n) for a calibrated model, which `noise_floor` reports. The factor is
    the mean of the largest absolute value of Brownian motion, sqrt(pi/2).

    Cost: O(n log n) time, O(n) memory. Draws distinguish 4,096 scores. Tallies merge at the resolution of their cells.

    References
    ----------
    .. [1] Gupta et al. (2021).
    .. [2] Arrieta-Ibarra et al. (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0, 1], [0.2, 0.9, 0.9], "ecce_mad", interval=None).value, 4)
    0.2667
    """

    name: ClassVar[str] = "ecce_mad"
    is_bounded_by_mean_gap: ClassVar[bool] = True
    by_rank: ClassVar[bool] = True
    start: Literal["below", "both"] = "below"
    exemptions: ClassVar[dict[str, str]] = CELL_EXEMPTION

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        def max_absolute_sum(_w: Array, wp: Array, wy: Array) -> Array:
            total_residual = (wy - wp).sum(axis=-1)
            largest_sum, negative_smallest_sum = _path_extremes(wy - wp)
            max_from_below = np.maximum(largest_sum, negative_smallest_sum)
            if self.start == "below":
                return np.asarray(max_from_below)
            # A sum from above is the total minus the sum from below.
            max_from_above = np.maximum(total_residual + negative_smallest_sum, largest_sum - total_residual)
            return np.asarray(np.maximum(max_from_below, max_from_above))

        return max_absolute_sum


@dataclass(frozen=True)
class KolmogorovSmirnov(CumulativeError):
    r"""Kolmogorov–Smirnov calibration error (KS error), the same quantity as `ecce_mad`.

    See Also
    --------
    ecce_mad : The same quantity, with details on ties and bias.

    Notes
    -----
    .. math:: \max_s |C(s)|, \quad C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i)

    Units: probability, in [0, 1]; 0 is best.

    Bias: upward, as for `ecce_mad`. The tables of the two-sample Kolmogorov–Smirnov test do not apply.

    Cost: O(n log n) time, O(n) memory. Tallies merge at the resolution of their cells.

    References
    ----------
    .. [1] Gupta et al. (2021).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0, 1], [0.2, 0.9, 0.9], "ks", interval=None).value, 4)
    0.2667
    """

    name: ClassVar[str] = "ks"
    quantity: ClassVar[str] = "Kolmogorov–Smirnov distance"


@dataclass(frozen=True)
class CumulativeRange(DistinctScoreError):
    r"""Range of the cumulative residuals (ECCE-R, cutoff calibration error).

    It is the largest absolute total residual over any interval of scores.

    Notes
    -----
    .. math:: \max_s C(s) - \min_s C(s) = \sup_{a < b} \Big|\tfrac1w \sum_{a < p_i \le b} w_i (y_i - p_i)\Big|

    where C is defined as for `ks` and C = 0 before the first score.

    Units: probability, in [0, 1]; 0 is best. The value lies between KS and twice KS.

    Bias: upward, about 1.6 sqrt(mean p(1-p) / n) for a calibrated model, which `noise_floor` reports. The factor is the
    mean range of Brownian motion, sqrt(8/pi).

    Cost: O(n log n) time, O(n) memory. Draws distinguish 4,096 scores. Tallies merge at the resolution of their cells.

    References
    ----------
    .. [1] Arrieta-Ibarra et al. (2022).
    .. [2] Rossellini et al. (2025), as cutoff calibration error, a supremum over intervals.

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0, 1], [0.2, 0.9, 0.9], "ecce_r", interval=None).value, 4)
    0.2667
    """

    name: ClassVar[str] = "ecce_r"
    is_bounded_by_mean_gap: ClassVar[bool] = True
    by_rank: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = CELL_EXEMPTION

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        return lambda _w, wp, wy: np.add(*_path_extremes(wy - wp))


def _path_extremes(residuals: Array) -> tuple[Array, Array]:
    """Maximum, and minus the minimum, of the cumulative sums of residuals (…, m), (…) each.

    The sums start at 0, so neither is negative. The array of residuals is overwritten.
    """
    path = np.cumsum(residuals, axis=-1, out=residuals)
    return np.maximum(path.max(axis=-1), 0.0), np.maximum(-path.min(axis=-1), 0.0)
