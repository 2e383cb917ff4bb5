"""Tests of cumulative residuals, Kolmogorov-Smirnov and ECCE (Kuiper), against the distribution of Brownian motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtr

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeRange, KolmogorovSmirnov
from trueodds.estimators.unbinned import Scores, UnbinnedError
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ScaledCells, ViewResult
from trueodds.lenses.view import View

MIN_EFFECTIVE_N = 5.0  # rows' worth of variance: below, the walk takes a step or two and is no Brownian motion yet
COARSE = 0.05  # share of the variance at one score: such steps lower the maximum by more than a tenth of its deviation


@dataclass(frozen=True)
class _Cumulative(ViewTest):
    """What both have: a walk of residuals, measured in standard errors of its end."""

    exempt: ClassVar[dict[str, str]] = {
        "weight two": "its variance takes a weight of two as one row that counts double, not as two independent rows",
        "cells": "scores of one cell count as one score, so a tally has its resolution",
    }
    estimator: ClassVar[type[UnbinnedError]]

    def error(self) -> UnbinnedError:
        """What the walk measures."""
        return self.estimator()

    def beyond(self, x: float) -> float:
        """How probable it is that Brownian motion reaches further than x."""
        raise NotImplementedError

    def on(self, view: View) -> ViewResult:
        """The error in standard errors, its p-value, and over which scores it was reached."""
        unit, error = _unit(view), self.error().value(view)
        if unit == 0:
            x = float("inf") if error > 0 else 0.0
            note = Note(
                "TN223", "Every probability is 0 or 1, so chance has no part: one outcome against it makes p = 0."
            )
            return ViewResult(x, float(error == 0), error, self._where(view), notes=(note,))
        return ViewResult(error / unit, self.beyond(error / unit), error, self._where(view), doubts=_doubts(view))

    def cells(self, view: View) -> ScaledCells:
        """The estimator's own scores."""
        return ScaledCells(self.error().scores(view), _unit(view))

    def _where(self, view: View) -> dict[str, dict[str, float]]:
        """The interval of scores over which the walk went farthest, and the residual over it."""
        raise NotImplementedError


@dataclass(frozen=True)
class KS(_Cumulative):
    r"""The Kolmogorov–Smirnov test of calibration: does the cumulative residual stray too far from 0?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: x = \frac{\max_s \max(|C(s)|, |C(1) - C(s)|)}{\sigma}, \quad
        C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i), \quad
        \sigma = \tfrac1w \sqrt{\textstyle\sum_i w_i^2 p_i (1 - p_i)}

    looks at sums from below and from above alike, so that the complements 1 − p and 1 − y give the same p. It is, for
    many rows, :math:`\max_t \max(|W(t)|, |W(1) - W(t)|)` of Brownian motion, about :math:`16/3\, \Phi(-x)` in the
    tail (`beyond_both`). With `start="below"` it is :math:`\max_s |C(s)|` as in the literature, and its law

    .. math:: P[x > t] = 4 \sum_{k \ge 0} (-1)^k\, \Phi(-(2k + 1) t)

    It needs no bins and sees a lasting shift of probabilities best; what changes sign from score to score escapes it.
    (It is no two-sample test: tables of that one do not apply.)

    Shapes: binary views. Statistic: x, in standard errors, ≥ 0. Effect: the `ks` error, in probability units within
    [0, 1], biased upward as the estimator is. Parts: from which score to which it was reached, with its sign.
    Equal scores make one step, whatever their order, so that ties make the asymptotic p conservative; it is coarse
    where the outcomes vary by less than a handful of rows (note TN212, both). Where every probability is 0 or 1
    nothing is left to chance (note TN223). p-values far below 1e-15 keep their digits.
    Cost: O(n log n); with redraws O(min(n, 4096)) per draw beside the labels. From a tally: at its resolution.
    Raises TO205 for a lens with a vector per row.
    Source: Gupta et al. (2021) for the error, Arrieta-Ibarra et al. (2022) for its law from below (ECCE-MAD); that from
    both ends is our own.

    Parameters
    ----------
    start : {"both", "below"}
        Whether sums from above count, too.

    >>> view = View(p=[0.2, 0.5, 0.5, 0.9], y=[1, 1, 1, 1])
    >>> result = KS().on(view)  # residuals .8 + 1.0 + .1 = 1.9, variance .16 + .5 + .09 = .75
    >>> round(result.statistic, 4), round(result.effect, 4)
    (2.1939, 0.475)
    """

    name: ClassVar[str] = "ks"
    asymptotic_null: ClassVar[str] = "the largest cumulative residual, from below or above, is that of Brownian motion"
    estimator: ClassVar[type[UnbinnedError]] = KolmogorovSmirnov
    start: Literal["both", "below"] = "both"

    def error(self) -> KolmogorovSmirnov:
        """The error from both ends, or from below."""
        return KolmogorovSmirnov(start=self.start)

    def beyond(self, x: float) -> float:
        """How probable it is that Brownian motion reaches further than x."""
        return beyond_both(x) if self.start == "both" else beyond_maximum(x)

    def _where(self, view: View) -> dict[str, dict[str, float]]:
        s, path = _cumulative_residuals(self.error(), view)
        rest = path[-1] - path
        if self.start == "both" and np.abs(rest).max() > np.abs(path).max():
            return _segment(s, path, int(np.argmax(np.abs(rest))), len(path) - 1)
        return _segment(s, path, 0, int(np.argmax(np.abs(path))))


@dataclass(frozen=True)
class ECCE(_Cumulative):
    r"""The cumulative test of the worst interval (ECCE-R, Kuiper's form): does any range of scores stray too far?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: x = \frac{\max_s C(s) - \min_s C(s)}{\sigma}, \quad C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i), \quad
        \sigma = \tfrac1w \sqrt{\textstyle\sum_i w_i^2 p_i (1 - p_i)}

    with C = 0 before the first score is, for many rows, the range of Brownian motion on [0, 1]:

    .. math:: P[x > t] = 8 \sum_{k \ge 1} (-1)^{k - 1} k\, \Phi(-k t)

    The range is the largest |residual| over any interval of scores, so it also sees residuals whose sign changes
    once, as those of an overconfident model do; `ks` looks at intervals that begin at 0 only.

    Shapes: binary views. Statistic: x, in standard errors, ≥ 0. Effect: the `ecce_r` error, in probability units
    within [0, 1], biased upward as the estimator is. Parts: from which score to which it was reached, with its sign.
    Equal scores make one step, whatever their order, so that ties make the asymptotic p conservative; it is coarse
    where the outcomes vary by less than a handful of rows (note TN212, both). Where every probability is 0 or 1
    nothing is left to chance (note TN223). p-values far below 1e-15 keep their digits.
    Cost: O(n log n); with redraws O(min(n, 4096)) per draw beside the labels. From a tally: at its resolution.
    Raises TO205 for a lens with a vector per row. Source: Arrieta-Ibarra et al. (2022).

    >>> view = View(p=[0.2, 0.8], y=[1, 0])  # up by .8, down by .8: C is .4, then 0; σ = √.32 / 2
    >>> result = ECCE().on(view)
    >>> round(result.statistic, 4), round(result.effect, 4)
    (1.4142, 0.4)
    """

    name: ClassVar[str] = "ecce"
    asymptotic_null: ClassVar[str] = "the range of the cumulative residuals is that of Brownian motion"
    estimator: ClassVar[type[UnbinnedError]] = CumulativeRange

    def beyond(self, x: float) -> float:
        """P[max W − min W > x] on [0, 1]."""
        return beyond_range(x)

    def _where(self, view: View) -> dict[str, dict[str, float]]:
        s, path = _cumulative_residuals(self.error(), view)
        return _segment(s, path, *sorted((int(np.argmin(path)), int(np.argmax(path)))))


def beyond_maximum(x: float) -> float:
    """P[max |W| > x] for Brownian motion on [0, 1]; small values keep their digits.

    >>> round(beyond_maximum(2.2414), 4)
    0.05
    """
    odd = 2 * np.arange(8) + 1
    sign = np.where(odd % 4 == 1, 1.0, -1.0)
    if x > 1:
        return float(4 * (sign * ndtr(-odd * x)).sum())
    if x <= 0:
        return 1.0
    return float(1 - 4 / np.pi * (sign / odd * np.exp(-((odd * np.pi / x) ** 2) / 8)).sum())


def beyond_both(x: float) -> float:
    r"""P[max_t max(|W(t)|, |W(1) − W(t)|) > x] for Brownian motion on [0, 1]; small values keep their digits.

    Given W(1) = b ≥ 0 the path has to stay between b − x and x. By reflections its density there is
    :math:`\sum_k \varphi(b + 2kL) - \varphi((2k + 1)L)` with L = 2x − b, which is integrated over b term by term.

    >>> round(beyond_both(2.3504), 4)
    0.05
    """
    if x < 0.15:
        return 1.0
    k, odd = np.arange(1, 80), 2 * np.arange(80) + 1
    total = (2 * (ndtr(-odd * x) - ndtr(-2 * odd * x)) / odd).sum()
    total -= ((ndtr(-(2 * k + 1) * x) - ndtr(-4 * k * x)) / (2 * k - 1)).sum()
    total -= ((ndtr(-(2 * k - 1) * x) - ndtr(-4 * k * x)) / (2 * k + 1)).sum()
    return float(min(1.0, 2 * ndtr(-x) + 2 * total))


def beyond_range(x: float) -> float:
    """P[max W − min W > x] for Brownian motion on [0, 1]; small values keep their digits.

    >>> round(beyond_range(2.4977), 4)
    0.05
    """
    if x > 1:
        k = np.arange(1, 13)
        return float(8 * (np.where(k % 2 == 1, k, -k) * ndtr(-k * x)).sum())
    if x <= 0:
        return 1.0
    half = (np.arange(6) + 0.5) ** 2
    return float(1 - ((8 / x**2 + 2 / (half * np.pi**2)) * np.exp(-2 * half * np.pi**2 / x**2)).sum())


def _unit(view: View) -> float:
    return float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum()) / view.total)


def _cumulative_residuals(error: UnbinnedError, view: View) -> tuple[Array, Array]:
    """The rising scores and the cumulative residual up to each, with 0 before the first."""
    s, _, wp, wy = Scores(error, view).shares()
    return np.concatenate((s[:1], s)), np.concatenate(([0.0], np.cumsum(wy - wp)))


def _segment(s: Array, path: Array, start: int, stop: int) -> dict[str, dict[str, float]]:
    """The scores after `start` up to `stop`."""
    first = min(start + 1, len(s) - 1)
    return {"strongest": {"from": float(s[first]), "to": float(s[stop]), "residual": float(path[stop] - path[start])}}


def _doubts(view: View) -> tuple[str, ...]:
    reasons, v = [], np.maximum(view.sums("wwv"), 0.0)
    effective_n = float(v.sum()) / float(
        (np.divide(view.sums("ww"), view.n, where=view.n > 0, out=np.zeros(len(v)))).max()
    )
    if effective_n < MIN_EFFECTIVE_N:
        reasons.append(
            f"The outcomes vary by {effective_n:.2g} rows' worth of variance, too few for the law of Brownian motion."
        )
    _, at = np.unique(view.p, return_inverse=True)
    largest_share = float(np.bincount(at, v).max() / v.sum())
    if largest_share > COARSE:
        reasons.append(f"{largest_share:.0%} of the variance lies at one score, so that this p is too large.")
    return tuple(reasons)
