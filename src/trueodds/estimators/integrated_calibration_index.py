"""Integrated calibration index and quantiles of the distance to a smooth calibration curve (ICI, E50, E90, Emax)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.estimators._smoothing.local_regression import SMOOTHERS, LocalFit, LocalSmoother
from trueodds.estimators.distinct_scores import MAX_DISTINCT_SCORES, DistinctScoreError, ScoreStatistic
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.effective_sample_size import unit_weight
from trueodds.lenses.view import View

KINDS = (*SMOOTHERS, "isotonic")
# Of 300 to 20,000 rows, the interval differs by less than .005 of its width from that with 4,096 scores.
DRAWN_SCORES_PER_WINDOW = 128
MIN_STABLE_OUTCOMES = 200  # outcomes of each kind from which flexible curves are steady


@dataclass(frozen=True)
class IntegratedIndex(DistinctScoreError):
    r"""Integrated calibration index (ICI, Eavg): mean distance between predictions and a smooth calibration curve.

    Parameters
    ----------
    smoother : {"loess", "lowess", "isotonic"}, default="loess"
        The calibration curve. "loess" fits a parabola by least squares with tricube weights. "lowess" fits straight
        lines without robustness iterations, as R's `val.prob` does. "isotonic" is isotonic regression.
    span : float, optional
        Share of the weight in each window of "loess" (default 0.75) or "lowess" (default 2/3).

    See Also
    --------
    e50 : Median of the distance (E50).
    e90 : 90th percentile of the distance (E90).
    emax : Maximum of the distance (Emax).

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, |\hat r(p_i) - p_i|

    The curve :math:`\hat r` uses no bins. Both local curves are linear in the outcomes and reproduce straight lines, so
    the residuals y − p are smoothed: the value is 0 if all residuals are 0, and the interval uses the norm of their
    noise. Beyond 200 scores the loess curve is computed at 200 of them and interpolated linearly. (R interpolates
    between the vertices of a tree by default, which changes the third digit. Its ``surface="direct"`` agrees.) Weights
    multiply the tricube weights, and integer weights count rows. More than 16,384 scores form cells, up to about as
    many, which changes the values by up to 0.1 %, mostly far less. The interval is for the distance of the smooth
    curve. It does not include what a wide span flattens. Shapes: a binary view (n,).

    Units: probability, in [0, 1] (a parabola may exceed it slightly); 0 is best.

    Bias: upward, about 1.6 sqrt(mean p(1-p) / n) for a calibrated model (1.3 for "lowess"), which `noise_floor`
    reports. Downward if the true curve has sharp bends.

    Cost: O(n log n) time, O(n) memory. Draws distinguish 128 scores in each window, and 4,096 of the isotonic curve.
    Tallies merge from sums per distinct score, at the resolution of their grid.

    References
    ----------
    .. [1] Austin & Steyerberg (2019).
    .. [2] Harrell (2015).
    .. [3] Cleveland (1979).

    Examples
    --------
    With two scores each window of 0.75 holds one of them, so the curve equals the outcome.

    >>> import trueodds as to
    >>> round(to.measure([0, 1], [0.2, 0.8], "ici", interval=None).value, 4)
    0.2
    """

    name: ClassVar[str] = "ici"
    exemptions: ClassVar[dict[str, str]] = {
        "cells": "a smooth curve moves with each score, and cells keep only their mean"
    }
    smoother: Annotated[str, OneOf(KINDS)] = "loess"
    span: Annotated[float, Range(0, 1, closed="right")] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.span is not None and self.smoother == "isotonic":
            raise InputError("TO203", "The isotonic curve has no span.", repr(self.span), "Leave span out.")
        if self.smoother == "isotonic":  # this fit is repeated for every draw and is not linear in the outcomes
            object.__setattr__(self, "is_norm", False)
            object.__setattr__(self, "interval", "noise-floor")

    @property
    def max_drawn_scores(self) -> int:
        """So many that each window has `DRAWN_SCORES_PER_WINDOW`."""
        if self.smoother == "isotonic":
            return MAX_DISTINCT_SCORES
        return min(MAX_DISTINCT_SCORES, math.ceil(DRAWN_SCORES_PER_WINDOW / self._local_smoother().span))

    def summarize(self, gap: Array, share: Array, row_share: float) -> Array:
        """Summary of the distances at each score (…, m), which holds a share of the rows (…, m).

        `row_share` is the share of a single row, or 0 if the weights do not count rows.
        """
        return (share * gap).sum(axis=-1)

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        row_share = _single_row_share(view)
        if self.smoother == "isotonic":
            return lambda w, _wp, wy: self.summarize(np.abs(isotonic_means(w, wy) - s), w, row_share)
        curve = LocalFit(self._local_smoother(), s, share, row_share)
        return lambda _w, wp, wy: self.summarize(np.abs(curve(wy - wp)), share, row_share)

    def _local_smoother(self) -> LocalSmoother:
        """Settings of the local regression, with the span of this estimator if given."""
        smoother = SMOOTHERS[self.smoother]
        return smoother if self.span is None else replace(smoother, span=float(self.span))

    def settings_used(self, view: View) -> dict[str, Any]:
        return {
            "smoother": self.smoother,
            **({} if self.smoother == "isotonic" else {"span": self._local_smoother().span}),
        }

    def notes(self, view: View) -> list[Note]:
        n_events = float((view.n * view.y).sum())
        rarer = round(min(n_events, view.n_rows - n_events))
        if rarer >= MIN_STABLE_OUTCOMES:
            return []
        kind = "events" if n_events <= view.n_rows - n_events else "nonevents"
        text = (
            f"With {rarer:,} {kind}, a smooth curve is unstable. It is stable from about {MIN_STABLE_OUTCOMES} events"
            " and as many nonevents."
        )
        return [Note("TN126", text)]


@dataclass(frozen=True)
class Quantile(IntegratedIndex):
    """Base class of quantiles over rows of the distance between predictions and a smooth calibration curve.

    A quantile is not a norm, but its interval is computed as if it were: if the noise of the curve has the same
    standard deviation at all scores, the quantile of the noise bounds its contribution to the value. The coverage was
    measured in simulations. An interval from null draws would be too short for overconfident predictions.
    """

    is_smooth: ClassVar[bool] = False
    quantile_level: ClassVar[float]

    @property
    def max_drawn_scores(self) -> int:
        """As many as in general: a quantile of few scores has steps."""
        return MAX_DISTINCT_SCORES

    def summarize(self, gap: Array, share: Array, row_share: float) -> Array:
        """The quantile of the distances, rows in proportion to their weight."""
        return weighted_quantile(gap, share, self.quantile_level, row_share)


@dataclass(frozen=True)
class MedianDistance(Quantile):
    r"""E50: median distance between predictions and a smooth calibration curve.

    See Also
    --------
    ici : Mean of the distance (ICI).

    Notes
    -----
    .. math:: \operatorname{median}_i |\hat r(p_i) - p_i|

    Rows of integer weight count as that many rows, and the quantile is interpolated between two of them (type 7). Other
    weights give the smallest distance that half of the weight does not exceed. With "isotonic" there is no interval.

    Units: probability, in [0, 1]; 0 is best. Bias: upward, as for `ici`.

    Cost: O(n log n) time, O(n) memory. Tallies merge at the resolution of their grid.

    References
    ----------
    .. [1] Austin & Steyerberg (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([0, 1], [0.2, 0.7], "e50", interval=None).value, 4)
    0.25
    """

    name: ClassVar[str] = "e50"
    quantile_level: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoother == "isotonic":  # intervals of 95 % covered 82 %: a flat step's median distance falls short
            object.__setattr__(self, "interval", None)


@dataclass(frozen=True)
class NinthDecile(Quantile):
    r"""E90: 90th percentile of the distance between predictions and a smooth calibration curve.

    See Also
    --------
    ici : Mean of the distance (ICI).

    Notes
    -----
    .. math:: q_{.9}\{|\hat r(p_i) - p_i|\}

    The quantile is computed as for `e50`.

    Units: probability, in [0, 1]; 0 is best. Bias: upward, as for `ici`.

    Cost: O(n log n) time, O(n) memory. Tallies merge at the resolution of their grid.

    References
    ----------
    .. [1] Harrell (2015).
    .. [2] Austin & Steyerberg (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([0, 1], [0.2, 0.7], "e90", interval=None).value, 4)
    0.29
    """

    name: ClassVar[str] = "e90"
    quantile_level: ClassVar[float] = 0.9


@dataclass(frozen=True)
class WorstDistance(IntegratedIndex):
    r"""Emax: largest distance between predictions and a smooth calibration curve.

    See Also
    --------
    ici : Mean of the distance (ICI).

    Notes
    -----
    .. math:: \max_i |\hat r(p_i) - p_i|

    Units: probability, in [0, 1] (a parabola may exceed it slightly); 0 is best.

    Bias: strongly upward. The ends of the curve, where few rows are, often determine the maximum.

    Cost: O(n log n) time, O(n) memory. Tallies merge at the resolution of their grid.

    References
    ----------
    .. [1] Harrell (2015).
    .. [2] Austin & Steyerberg (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([0, 1], [0.2, 0.7], "emax", interval=None).value, 4)
    0.3
    """

    name: ClassVar[str] = "emax"
    is_smooth: ClassVar[bool] = False

    @property
    def max_drawn_scores(self) -> int:
        """As many as in general: the ends of the curve have few rows."""
        return MAX_DISTINCT_SCORES

    def summarize(self, gap: Array, share: Array, row_share: float) -> Array:
        """The maximum over scores that hold any weight."""
        return np.where(share > 0, gap, 0.0).max(axis=-1)


def _single_row_share(view: View) -> float:
    """Share of one row if weights are multiples of one row's weight, else 0."""
    return (unit_weight(view) or 0.0) / view.total


def weighted_quantile(x: Array, share: Array, level: float, row_share: float) -> Array:
    """Weighted quantile (…) of x (…, m), whose entries hold a `share` (…, m) of the rows.

    If the weights count rows, `row_share` is the share of one row, and the quantile is interpolated between two rows
    (type 7). Otherwise it is 0, and the quantile is the smallest x up to which the shares add up to `level`.

    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([0.5, 0.5]), 0.5, 0.5).tolist()
    2.0
    """
    order = np.argsort(x, axis=-1)
    sorted_values = np.take_along_axis(x, order, axis=-1)
    cumulative_share = np.cumsum(np.take_along_axis(np.broadcast_to(share, x.shape), order, axis=-1), axis=-1)
    if row_share == 0:
        return _value_at_share(sorted_values, cumulative_share, level - 1e-12)
    rank = level * (1 / row_share - 1)  # of the quantile among the rows, from 0
    lower_rank = np.floor(rank + 1e-9)
    lower_share = (lower_rank + 0.5) * row_share  # in the middle of a row, so that the sums may be rounded
    lower_value = _value_at_share(sorted_values, cumulative_share, lower_share)
    if rank - lower_rank < 1e-9:
        return lower_value
    upper_value = _value_at_share(sorted_values, cumulative_share, lower_share + row_share)
    return lower_value + (rank - lower_rank) * (upper_value - lower_value)


def _value_at_share(sorted_values: Array, cumulative_share: Array, share: float) -> Array:
    """Smallest of the sorted values (…, m) whose `cumulative_share` (…, m) is at least `share`, (…,)."""
    position = np.minimum((cumulative_share < share).sum(axis=-1, keepdims=True), sorted_values.shape[-1] - 1)
    return np.take_along_axis(sorted_values, position, axis=-1)[..., 0]
