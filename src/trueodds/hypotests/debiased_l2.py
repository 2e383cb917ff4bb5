"""The debiased L2 test: the bias-corrected squared calibration error over its exact null standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from trueodds.binning.partition import Partition
from trueodds.core.errors import Note
from trueodds.core.registry import settings_of
from trueodds.core.typing import Array
from trueodds.estimators._pairwise.pairs_in_bins import Pairs, divide_or_zero, has_pairs, mean_square
from trueodds.estimators.adaptive import with_partition
from trueodds.estimators.binned import PARTITION_SETTINGS
from trueodds.estimators.debiased import AUTO, DebiasedL2
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ScaledCells, ViewResult
from trueodds.lenses.view import View

MAX_TYPE_I_ERROR = 0.06  # what a test at 5 % may reject before its reader is told


@dataclass(frozen=True)
class DebiasedL2Test(ViewTest):
    r"""The debiased squared error of bins against its exact null variance.

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: z = \frac{T}{\sqrt{V_0}}, \quad T = \sum_b \frac{w_b}{w}
        \frac{(\sum w u)^2 - \sum w^2 u^2}{w_b^2 - \sum w^2}, \quad
        V_0 = \sum_b \Big(\frac{w_b}{w}\Big)^2
        \frac{2 \big[(\sum w^2 v)^2 - \sum w^4 v^2\big]}{\big(w_b^2 - \sum w^2\big)^2}

    with u = y − p, v = p(1 − p) and sums within bins: T is a sum over pairs of different rows, of mean 0 under the
    null, and V₀ is its variance given the predictions, not one that presumes how scores are spread. One-sided normal:
    only T above 0 speaks against the model.

    Shapes: binary views. Statistic: z, any size. Effect: the signed root of T, sign(T) √|T|, the debiased L2 error in
    probability units within [−1, 1]. With few bins the null law is a sum of few χ² and skewed to the right, so that the
    normal one rejects 6 to 7 % at 5 %: note TN212 then says how much. Where no bin holds two rows it is undefined
    (NaN, note TN224); where every probability is 0 or 1 nothing is left to chance (note TN223).
    Cost: O(n log n); with redraws O(n) per draw. From a tally rows of a cell share its mean variance.
    Raises TO203 for bins that the outcomes chose, TO205 for a lens with a vector per row.
    Source: Lee et al. (2023), Sun et al. (2024) for T; the exact variance is our own.

    Parameters
    ----------
    partition : Partition
        ⌈n^(2/5)⌉ equal-mass bins; it must not look at the outcomes.

    >>> from trueodds.binning.partition import Uniform
    >>> view = View(p=[0.5, 0.5, 0.5], y=[1, 1, 1])  # T = (1.5² − .75)/6 = .25, V₀ = 2(.75² − .1875)/36 = 1/48
    >>> result = DebiasedL2Test(partition=Uniform(1)).on(view)
    >>> round(result.statistic, 4), result.effect
    (1.7321, 0.5)
    """

    name: ClassVar[str] = "debiased_l2"
    asymptotic_null: ClassVar[str] = "the debiased squared error over its exact standard error is standard normal"
    exempt: ClassVar[dict[str, str]] = DebiasedL2.exempt
    partition: Partition = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        self.error()  # refuses what is no partition, or looks at the outcomes

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *(name for name in settings_of(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> DebiasedL2Test:
        """The test from the façade's settings; bins are equal-mass unless the partition is said."""
        return cls(**with_partition(settings, "equal-mass"))

    def error(self) -> DebiasedL2:
        """What T is the square of."""
        return DebiasedL2(self.partition)

    def on(self, view: View) -> ViewResult:
        """z, its one-sided p, and the signed root of T."""
        error = self.error()
        theta, settings = error.signed(view), error.settings_used(view)
        del settings["form"]
        if np.isnan(theta):
            note = Note("TN224", "No bin holds two rows, and one row cannot tell noise from error: z is undefined.")
            return ViewResult(theta, theta, theta, settings_used=settings, notes=(note,))
        effect, spreads = float(np.sign(theta) * abs(theta) ** 0.5), self._spreads(view)
        parts = {"error": error.parts(view)}
        if not (spreads > 0).any():
            z = float("nan") if theta == 0 else float(np.copysign(np.inf, theta))
            note = Note("TN223", "Every probability is 0 or 1, so chance has no part: an error beyond it makes p = 0.")
            return ViewResult(z, float(theta <= 0), effect, parts, settings, (note,))
        unit = float(np.sqrt(2 * (spreads**2).sum()))
        return ViewResult(theta / unit, float(ndtr(-theta / unit)), effect, parts, settings, doubts=_doubts(spreads))

    def cells(self, view: View) -> ScaledCells:
        """T over its standard error, on rows in the order of their bins."""
        binned, unit = self.error().binned(view), float(np.sqrt(2 * (self._spreads(view) ** 2).sum()))
        if not has_pairs(binned.w, binned.sums("ww")).any():
            unit = float("nan")
        return ScaledCells(Pairs(view, self.partition, mean_square), unit)

    def _spreads(self, view: View) -> Array:
        """Of each bin the λ such that its part of T varies as λ(χ² − 1): its variance is 2λ²."""
        binned = self.error().binned(view)
        frozen = view.once(self.partition, lambda: self.partition.freeze(view))
        v = np.maximum(view.sums("wwv"), 0.0)
        alike = divide_or_zero(v * v, view.n)  # Σw⁴v² of rows; in a cell of a tally all rows vary alike
        total_variance, squares = (
            np.bincount(frozen.index(view.at), x, frozen.size)[binned.bin_index] for x in (v, alike)
        )
        w, ww = binned.w, binned.sums("ww")
        pairs = np.where(has_pairs(w, ww), np.sqrt(np.maximum(total_variance**2 - squares, 0.0)), 0.0)
        return w / w.sum() * divide_or_zero(pairs, w**2 - ww)


def _doubts(spreads: Array) -> tuple[str, ...]:
    """What a test at 5 % rejects if the null law is the χ² of its skewness: 8/skewness² degrees of freedom."""
    df = 8 / float(8 * (spreads**3).sum() / (2 * (spreads**2).sum()) ** 1.5) ** 2
    rejects = float(chdtrc(df, df + ndtri(0.95) * np.sqrt(2 * df)))
    if rejects <= MAX_TYPE_I_ERROR:
        return ()
    return (f"Bins this few make a skewed null law: at 5 % the normal one rejects about {rejects:.1%} of the time.",)
