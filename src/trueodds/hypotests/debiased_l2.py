"""The debiased L2 test: the bias-corrected squared calibration error over its exact null standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.arithmetic import divide_or_zero
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.debiased import DEFAULT_PARTITION, DebiasedL2, RowCells, has_pairs, mean_square
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import StandardizedStatistic, ViewResult
from trueodds.lenses.view import View

MAX_TYPE_I_ERROR = 0.06  # type I error of a test at 5 % above which a note is added


@dataclass(frozen=True, kw_only=True)
class DebiasedL2Test(HasPartition, ViewTest):
    r"""Test of the debiased squared error of bins, standardized by its exact null variance.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    partition : Partition, optional
        Bins that do not depend on the outcomes. Default: ⌈n^(2/5)⌉ equal-mass bins.

    Raises
    ------
    InputError
        TO203 for bins that depend on the outcomes. TO205 for a lens with a probability vector per row.

    Notes
    -----
    .. math:: z = \frac{T}{\sqrt{V_0}}, \quad T = \sum_b \frac{w_b}{w}
        \frac{(\sum w u)^2 - \sum w^2 u^2}{w_b^2 - \sum w^2}, \quad
        V_0 = \sum_b \Big(\frac{w_b}{w}\Big)^2
        \frac{2 \big[(\sum w^2 v)^2 - \sum w^4 v^2\big]}{\big(w_b^2 - \sum w^2\big)^2}

    with u = y − p, v = p(1 − p) and sums within bins. T is a sum over pairs of different rows with mean 0 under the
    null. V₀ is its variance given the predictions, without an assumption about the distribution of the scores. The
    p-value is one-sided and normal: only T above 0 is evidence against calibration. The exact variance is this
    project's own.

    Statistic: z, unbounded. Effect: the signed root sign(T) √|T|, the debiased L2 error, in probability units within
    [−1, 1]. With few bins the null distribution is a sum of few χ² variables and right-skewed, so that the normal
    approximation rejects 6 to 7 % at 5 %; note TN212 reports the size. If no bin contains two rows, z is undefined
    (NaN, note TN224). If every probability is 0 or 1, the null variance is 0 (note TN223).

    Shapes: binary views. From a tally the rows of a cell share its mean variance.
    Cost: O(n log n); with redraws O(n) per draw.

    References
    ----------
    .. [1] Lee et al. (2023). The statistic T.
    .. [2] Sun et al. (2024). The statistic T.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 1, 1], [0.5, 0.5, 0.5]  # T = (1.5² − .75)/6 = .25, V₀ = 2(.75² − .1875)/36 = 1/48
    >>> verdict = to.test(y, p, "debiased_l2", partition="uniform", bins=1, null="asymptotic")
    >>> round(verdict.statistic, 4), verdict.effect
    (1.7321, 0.5)
    """

    name: ClassVar[str] = "debiased_l2"
    asymptotic_null: ClassVar[str] = "the debiased squared error over its exact standard error is standard normal"
    exemptions: ClassVar[dict[str, str]] = DebiasedL2.exemptions
    has_equal_mass_bins: ClassVar[bool] = True
    partition: Partition = DEFAULT_PARTITION

    def __post_init__(self) -> None:
        super().__post_init__()
        self.error_estimator()  # raises InputError for an invalid partition

    def error_estimator(self) -> DebiasedL2:
        return DebiasedL2(self.partition)

    def evaluate(self, view: View) -> ViewResult:
        """z, its one-sided p, and the signed root of T."""
        estimator = self.error_estimator()
        t, settings = estimator.signed_value(view), estimator.settings_used(view)
        del settings["form"]
        if np.isnan(t):
            note = Note("TN224", "z is undefined because no bin contains two rows.")
            return ViewResult(t, t, t, settings_used=settings, notes=(note,))
        effect, scales = float(np.sign(t) * abs(t) ** 0.5), self._bin_scales(view)
        parts = {"error": estimator.parts(view)}
        if not (scales > 0).any():
            z = float("nan") if t == 0 else float(np.copysign(np.inf, t))
            note = Note("TN223", "All probabilities are 0 or 1, so any positive error makes p = 0.")
            return ViewResult(z, float(t <= 0), effect, parts, settings, (note,))
        z = t / _null_std(scales)
        return ViewResult(
            statistic=z,
            pvalue=float(ndtr(-z)),
            effect=effect,
            parts=parts,
            settings_used=settings,
            asymptotic_warnings=_asymptotic_warnings(scales),
        )

    def cell_statistic(self, view: View) -> StandardizedStatistic:
        """T over its standard error, with rows sorted by bin."""
        binned = self.error_estimator().binned(view)
        is_defined = has_pairs(binned.w, binned.sums("ww")).any()
        null_std = _null_std(self._bin_scales(view)) if is_defined else float("nan")
        return StandardizedStatistic(RowCells(view, self.partition, mean_square), null_std)

    def _bin_scales(self, view: View) -> Array:
        """Scale λ of each occupied bin, (bins,): its term of T is approximately distributed as λ(χ²₁ − 1)."""
        binned = self.error_estimator().binned(view)
        fitted_bins = view.cached(self.partition, lambda: self.partition.fit(view))
        variance = np.maximum(view.sums("wwv"), 0.0)
        # Σw⁴v² of rows; all rows in a cell of a tally have the same variance.
        squares_by_row = divide_or_zero(variance * variance, view.n)
        total_variance, sum_of_squares = (
            np.bincount(view.assign(fitted_bins), x, fitted_bins.size)[binned.bin_index]
            for x in (variance, squares_by_row)
        )
        w, ww = binned.w, binned.sums("ww")
        root_pair_variance = np.where(
            has_pairs(w, ww), np.sqrt(np.maximum(total_variance**2 - sum_of_squares, 0.0)), 0.0
        )
        return w / w.sum() * divide_or_zero(root_pair_variance, w**2 - ww)


def _null_std(scales: Array) -> float:
    """Standard deviation of T under the null, √V₀, from the scales λ (bins,) of λ(χ²₁ − 1), whose variance is 2λ²."""
    return float(np.sqrt(2 * (scales**2).sum()))


def _asymptotic_warnings(scales: Array) -> tuple[str, ...]:
    """A warning with the actual size of the test at 5 % if it exceeds MAX_TYPE_I_ERROR.

    The size is that for a χ² distribution with the skewness of the null distribution, and therefore with 8/skewness²
    degrees of freedom. A sum of λ(χ²₁ − 1) over the scales λ (bins,) has variance 2 Σλ² and third central moment 8 Σλ³.
    """
    scales = scales / scales.max()  # of variances near 0 the third powers would underflow
    skewness = float(8 * (scales**3).sum() / (2 * (scales**2).sum()) ** 1.5)
    df = 8 / skewness**2
    rejection_rate = float(chdtrc(df, df + ndtri(0.95) * np.sqrt(2 * df)))
    if rejection_rate <= MAX_TYPE_I_ERROR:
        return ()
    return (
        f"With so few bins the null distribution is skewed: at 5 % the normal test rejects about {rejection_rate:.1%}.",
    )
