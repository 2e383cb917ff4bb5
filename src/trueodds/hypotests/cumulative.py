"""The Kolmogorov-Smirnov test and the ECCE (Kuiper) test of calibration, by extremes of cumulative residuals.

Under the null hypothesis the cumulative residual over the sorted scores is approximately a Brownian motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtr

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeRange, KolmogorovSmirnov
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import StandardizedStatistic, ViewResult
from trueodds.lenses.view import View, rank_scores

MIN_EFFECTIVE_N = 5.0  # effective number of rows below which the cumulative residual is far from Brownian motion
# Share of the variance at one score above which the maximum decreases by more than a tenth of its standard deviation.
MAX_VARIANCE_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class _CumulativeResidualTest(ViewTest):
    """Base class of the two tests of cumulative residuals, standardized by their null standard error.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: that of Brownian motion, or labels drawn from the predicted probabilities.

    Raises
    ------
    InputError
        TO205 for a lens with a probability vector per row.
    """

    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "in the variance a weight of two is one row that counts double, not two independent rows",
        "cells": "the scores of a cell count as one score, so a tally has its resolution",
    }
    estimator: ClassVar[type[DistinctScoreError]]

    def error_estimator(self) -> DistinctScoreError:
        return self.estimator()

    def upper_tail(self, x: float) -> float:
        """Upper tail probability of the asymptotic null distribution."""
        raise NotImplementedError

    def evaluate(self, view: View) -> ViewResult:
        """The standardized error, its p-value, and the interval of scores where it is attained."""
        std_error, error = _null_standard_error(view), self.error_estimator().value(view)
        parts = self._largest_residual_segment(view)
        if std_error == 0:
            x = float("inf") if error > 0 else 0.0
            note = Note("TN223", "All probabilities are 0 or 1, so one contradicting outcome makes p = 0.")
            return ViewResult(statistic=x, pvalue=float(error == 0), effect=error, parts=parts, notes=(note,))
        x = error / std_error
        return ViewResult(
            statistic=x,
            pvalue=self.upper_tail(x),
            effect=error,
            parts=parts,
            asymptotic_warnings=_asymptotic_warnings(view),
        )

    def cell_statistic(self, view: View) -> StandardizedStatistic:
        return StandardizedStatistic(self.error_estimator().score_statistic(view), _null_standard_error(view))

    def _largest_residual_segment(self, view: View) -> dict[str, dict[str, float]]:
        """Interval of scores with the largest residual sum in absolute value, and this sum."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class KS(_CumulativeResidualTest):
    r"""Kolmogorov-Smirnov test of calibration: the largest cumulative residual.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    start : {"both", "below"}, default="both"
        Whether residuals are accumulated from both ends of the scores, or from the lowest score only.

    Notes
    -----
    .. math:: x = \frac{\max_s \max(|C(s)|, |C(1) - C(s)|)}{\sigma}, \quad
        C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i), \quad
        \sigma = \tfrac1w \sqrt{\textstyle\sum_i w_i^2 p_i (1 - p_i)}

    uses the sums from below and from above, so the complements 1 − p and 1 − y give the same p-value. For large n it is
    distributed as :math:`\max_t \max(|W(t)|, |W(1) - W(t)|)` of Brownian motion, with a tail of about :math:`16/3\,
    \Phi(-x)` (`brownian_both_ends_tail`). With ``start="below"`` it is :math:`\max_s |C(s)|` as in the literature, with
    the distribution

    .. math:: P[x > t] = 4 \sum_{k \ge 0} (-1)^k\, \Phi(-(2k + 1) t)

    The test needs no bins. It has the highest power against a shift of the probabilities over a range of scores, and
    little against errors whose sign alternates. (It is not a two-sample test, whose tables do not apply.)

    Statistic: x ≥ 0, in standard errors. Effect: the `ks` error, in probability units within [0, 1], biased upward as
    the estimator is. Parts: the interval of scores with the largest cumulative residual, and its sign. Equal scores
    form one step, regardless of row order, so ties make the asymptotic p-value conservative. It is inaccurate if the
    outcomes have a variance of only a few rows (note TN212, both). If every probability is 0 or 1, the null variance is
    0 (note TN223). p-values far below 1e-15 keep their relative precision. The distribution from both ends is this
    project's own.

    Shapes: binary views. From a tally: at its resolution.
    Cost: O(n log n); with redraws O(min(n, 4096)) per draw beside the labels.

    References
    ----------
    .. [1] Gupta et al. (2021). The error.
    .. [2] Arrieta-Ibarra et al. (2022). The distribution from below (ECCE-MAD).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 1, 1, 1], [0.2, 0.5, 0.5, 0.9]  # residuals .8 + 1.0 + .1 = 1.9, variance .16 + .5 + .09 = .75
    >>> verdict = to.test(y, p, "ks")
    >>> round(verdict.statistic, 4), round(verdict.effect, 4)
    (2.1939, 0.475)
    """

    name: ClassVar[str] = "ks"
    asymptotic_null: ClassVar[str] = (
        "the largest cumulative residual, from below or above, is distributed as that of Brownian motion"
    )
    estimator: ClassVar[type[DistinctScoreError]] = KolmogorovSmirnov
    start: Literal["both", "below"] = "both"

    def error_estimator(self) -> KolmogorovSmirnov:
        return KolmogorovSmirnov(start=self.start)

    def upper_tail(self, x: float) -> float:
        return brownian_both_ends_tail(x) if self.start == "both" else brownian_maximum_tail(x)

    def _largest_residual_segment(self, view: View) -> dict[str, dict[str, float]]:
        s, path = _cumulative_residuals(self.error_estimator(), view)
        path_from_above = path[-1] - path
        if self.start == "both" and np.abs(path_from_above).max() > np.abs(path).max():
            return _describe_segment(s, path, int(np.argmax(np.abs(path_from_above))), len(path) - 1)
        return _describe_segment(s, path, 0, int(np.argmax(np.abs(path))))


@dataclass(frozen=True, kw_only=True)
class ECCE(_CumulativeResidualTest):
    r"""Kuiper-type test of the range of cumulative residuals (ECCE-R).

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Notes
    -----
    .. math:: x = \frac{\max_s C(s) - \min_s C(s)}{\sigma}, \quad
        C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i), \quad
        \sigma = \tfrac1w \sqrt{\textstyle\sum_i w_i^2 p_i (1 - p_i)}

    with C = 0 before the first score. For large n it is distributed as the range of Brownian motion on [0, 1]:

    .. math:: P[x > t] = 8 \sum_{k \ge 1} (-1)^{k - 1} k\, \Phi(-k t)

    The range is the largest |residual sum| over any interval of scores. The test therefore also detects residuals whose
    sign changes once, as those of an overconfident model do; `ks` considers only intervals that begin at either end of
    the scores.

    Statistic: x ≥ 0, in standard errors. Effect: the `ecce_r` error, in probability units within [0, 1], biased upward
    as the estimator is. Parts: the interval of scores with the largest residual sum, and its sign. Equal scores form
    one step, regardless of row order, so ties make the asymptotic p-value conservative. It is inaccurate if the
    outcomes have a variance of only a few rows (note TN212, both). If every probability is 0 or 1, the null variance is
    0 (note TN223). p-values far below 1e-15 keep their relative precision.

    Shapes: binary views. From a tally: at its resolution.
    Cost: O(n log n); with redraws O(min(n, 4096)) per draw beside the labels.

    References
    ----------
    .. [1] Arrieta-Ibarra et al. (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 0], [0.2, 0.8], "ecce")  # up by .8, down by .8: C is .4, then 0; σ = √.32 / 2
    >>> round(verdict.statistic, 4), round(verdict.effect, 4)
    (1.4142, 0.4)
    """

    name: ClassVar[str] = "ecce"
    asymptotic_null: ClassVar[str] = "the range of the cumulative residuals is distributed as that of Brownian motion"
    estimator: ClassVar[type[DistinctScoreError]] = CumulativeRange

    def upper_tail(self, x: float) -> float:
        """P[max W − min W > x] on [0, 1]."""
        return brownian_range_tail(x)

    def _largest_residual_segment(self, view: View) -> dict[str, dict[str, float]]:
        s, path = _cumulative_residuals(self.error_estimator(), view)
        return _describe_segment(s, path, *sorted((int(np.argmin(path)), int(np.argmax(path)))))


def brownian_maximum_tail(x: float) -> float:
    """P[max |W| > x] for Brownian motion W on [0, 1], with full relative precision in the tail.

    For small x an equivalent series is used that converges faster there (Poisson summation).

    >>> round(brownian_maximum_tail(2.2414), 4)
    0.05
    """
    odd_numbers = 2 * np.arange(8) + 1
    sign = np.where(odd_numbers % 4 == 1, 1.0, -1.0)
    if x > 1:
        return float(4 * (sign * ndtr(-odd_numbers * x)).sum())
    if x <= 0:
        return 1.0
    return float(1 - 4 / np.pi * (sign / odd_numbers * np.exp(-((odd_numbers * np.pi / x) ** 2) / 8)).sum())


def brownian_both_ends_tail(x: float) -> float:
    r"""P[max_t max(|W(t)|, |W(1) − W(t)|) > x] for Brownian motion on [0, 1], with full relative precision in the tail.

    Given W(1) = b ≥ 0 the path must stay between b − x and x. By reflection its density there is
    :math:`\sum_k \varphi(b + 2kL) - \varphi((2k + 1)L)` with L = 2x − b, which is integrated over b term by term.

    >>> round(brownian_both_ends_tail(2.3504), 4)
    0.05
    """
    if x < 0.15:  # the tail differs from 1 by less than rounding, and the series needs more terms
        return 1.0
    k, odd_numbers = np.arange(1, 80), 2 * np.arange(80) + 1
    series = (2 * (ndtr(-odd_numbers * x) - ndtr(-2 * odd_numbers * x)) / odd_numbers).sum()
    series -= ((ndtr(-(2 * k + 1) * x) - ndtr(-4 * k * x)) / (2 * k - 1)).sum()
    series -= ((ndtr(-(2 * k - 1) * x) - ndtr(-4 * k * x)) / (2 * k + 1)).sum()
    return float(min(1.0, 2 * ndtr(-x) + 2 * series))


def brownian_range_tail(x: float) -> float:
    """P[max W − min W > x] for Brownian motion W on [0, 1], with full relative precision in the tail.

    For small x an equivalent series is used that converges faster there (Poisson summation). Source: Feller (1951).

    >>> round(brownian_range_tail(2.4977), 4)
    0.05
    """
    if x > 1:
        k = np.arange(1, 13)
        return float(8 * (np.where(k % 2 == 1, k, -k) * ndtr(-k * x)).sum())
    if x <= 0:
        return 1.0
    squared_half_integers = (np.arange(6) + 0.5) ** 2
    return float(
        1
        - (
            (8 / x**2 + 2 / (squared_half_integers * np.pi**2)) * np.exp(-2 * squared_half_integers * np.pi**2 / x**2)
        ).sum()
    )


def _null_standard_error(view: View) -> float:
    """Standard error of the mean residual under the null hypothesis."""
    return float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum()) / view.total)


def _cumulative_residuals(estimator: DistinctScoreError, view: View) -> tuple[Array, Array]:
    """Sorted scores and the cumulative residual up to each of them, (k + 1,) each, beginning with 0."""
    s, _, wp, wy = DistinctScores(estimator, view).shares()
    return np.concatenate((s[:1], s)), np.concatenate(([0.0], np.cumsum(wy - wp)))


def _describe_segment(s: Array, path: Array, start: int, stop: int) -> dict[str, dict[str, float]]:
    """The scores s after index `start` up to `stop`, with their sum of residuals from the cumulative `path`."""
    first_index = min(start + 1, len(s) - 1)
    return {
        "strongest": {"from": float(s[first_index]), "to": float(s[stop]), "residual": float(path[stop] - path[start])}
    }


def _asymptotic_warnings(view: View) -> tuple[str, ...]:
    reasons, variance = [], np.maximum(view.sums("wwv"), 0.0)
    squared_weight = np.divide(view.sums("ww"), view.n, where=view.n > 0, out=np.zeros(len(variance)))
    effective_n = float(variance.sum()) / float(squared_weight.max())
    if effective_n < MIN_EFFECTIVE_N:
        reasons.append(
            f"The variance of the outcomes has an effective size of {effective_n:.2g} rows, too few for the Brownian"
            " motion limit."
        )
    _, score_index = np.unique(rank_scores(view), return_inverse=True)
    largest_share = float(np.bincount(score_index, variance).max() / variance.sum())
    if largest_share > MAX_VARIANCE_SHARE:
        reasons.append(f"{largest_share:.0%} of the variance is at one score, so the p-value is too large.")
    return tuple(reasons)
