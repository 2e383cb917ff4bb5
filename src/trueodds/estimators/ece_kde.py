"""Calibration error from a kernel regression of the outcomes on the score, with Silverman's bandwidth (ECE-KDE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from trueodds.binning.partition import lowest_score
from trueodds.binning.sorted_scores import RowSelections, sort_by_score, weighted_quantiles, weighted_std
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Order, Probability, Range
from trueodds.core.typing import Array
from trueodds.estimators._smoothing.kernel_density import (
    DRAWS_GRID,
    KERNELS,
    VALUE_GRID,
    BetaKernelSums,
    CosineTransform,
    GridResolution,
    ReflectedKernelSums,
    smooth_selections,
)
from trueodds.estimators.base import require_one_score
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.sorting import find_scores
from trueodds.lenses.effective_sample_size import effective_n
from trueodds.lenses.view import View

MAX_BLOCK_VALUES = 2**20  # maximum size of the arrays of draws that are smoothed at once: 8 MB
MAX_RANGE_SHORTFALL = 2e-3  # largest distance of a largest probability below 1/K, as allowed by the check of row sums


@dataclass(frozen=True)
class KernelDensityError(DistinctScoreError):
    r"""ECE by kernel regression (ECE-KDE): mean distance between predictions and a smooth calibration curve.

    The calibration curve r(s) is a weighted mean of the outcomes near s. No bins are needed.

    Parameters
    ----------
    bandwidth : "silverman" or float, default="silverman"
        Standard deviation of the kernel, at least 0.002. Silverman's rule uses the scores of each view and never the
        outcomes. For "beta" it is Chen's b, where the variance of the kernel is about b p(1 − p). The rule then matches
        h² on average.
    kernel : {"triweight", "gaussian", "epanechnikov", "beta"}, default="triweight"
        "beta" is Chen's second kernel. It is slower and gives little weight to scores next to 0 and 1.
    range : "1/K", optional
        Scores lie in [1/K, 1], as the largest of K probabilities does. The default is [0, 1].
    order : float, default=1.0
        Power q. Infinity takes the largest distance.
    min_density : float, default=0.001
        For orders above 1, scores at which the density (1 on average over [0, 1]) is lower are excluded.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view has a vector per row or scores below the range.

    Notes
    -----
    .. math:: \int \Big|\tfrac1w \sum_i w_i (y_i - s)\, K(s, p_i)\Big|\, ds
              = \int |r(s) - s|\, f(s)\, ds, \quad r(s) = \frac{\sum_i w_i y_i K(s, p_i)}{\sum_i w_i K(s, p_i)}

    K is reflected at both ends of the range, and f is the density of the scores. The first form needs no division.
    Order q gives :math:`(\int |r - s|^q f\,ds)^{1/q}`, and infinity the largest distance (a continuous MCE). Shapes: a
    binary view (n,).

    Units: probability, in [0, 1]; 0 is best.

    Bias: upward by noise, about 0.4 sqrt(p(1-p) / (n h)) for a calibrated model with uniform scores and bandwidth h.
    Smoothing adds bias: variation within a bandwidth is not detected, and a score next to 0 or 1 is moved up to 0.8
    bandwidths inward, so use a small bandwidth if many scores lie there. `noise_floor` reports both parts, but a real
    error can be hidden by the second. For orders above 1, f is held fixed while rows are resampled.

    Cost: O(n log n + G log G) time for a grid of G = 1,024 cells or more, 8 per bandwidth, with an error of about 1e-6.
    The beta kernel needs O(4,096 G). Draws distinguish 4,096 scores on a coarser grid. Tallies merge, exact up to the
    width of their cells.

    References
    ----------
    .. [1] Posocco & Bonnefoy (2021).
    .. [2] Chen (1999), for the beta kernel.

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0], [0.3, 0.7], "ece_kde", bandwidth=0.05, interval=None).value, 4)
    0.7
    """

    name: ClassVar[str] = "ece_kde"
    exemptions: ClassVar[dict[str, str]] = {
        "cells": "scores within a cell are seen at their mean",
        "weight two": "the bandwidth follows what the weights are worth, not how many rows they might stand for",
    }
    bandwidth: Annotated[float, Range(MIN_BANDWIDTH, 1)] | Literal["silverman"] = "silverman"
    kernel: Annotated[str, OneOf((*KERNELS, "beta"))] = "triweight"
    range: Literal["1/K"] | None = None
    order: Order = 1.0
    min_density: Probability = 1e-3

    def span(self, view: View) -> tuple[float, float]:
        """Interval that contains the scores of the view."""
        require_one_score(view, self.name)
        low = lowest_score(view, self.range)
        if not low:
            return 0.0, 1.0
        min_score = float(view.p[view.w > 0].min())
        if min_score < low - MAX_RANGE_SHORTFALL:
            raise InputError(
                "TO205",
                "⟨range='1/K'⟩ is for the largest of K probabilities, which cannot lie below 1/K.",
                f"{min_score:.6g} through {view.name or 'a view'} with K = {view.classes}",
                "Leave range out, or use ⟨lens='confidence'⟩.",
            )
        return low, 1.0

    def width(self, view: View) -> float:
        """Bandwidth for this view."""
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        bandwidth = silverman_bandwidth(view)
        if self.kernel != "beta":
            return bandwidth
        low, high = self.span(view)
        u = (view.p.astype(np.float64) - low) / (high - low)
        variance = float((view.w * u * (1 - u)).sum()) / view.total
        return min(max((bandwidth / (high - low)) ** 2 / max(variance, 1e-12), MIN_BANDWIDTH), 1.0)

    def kernel_sums_at(
        self, scores: Array, view: View, grid: GridResolution = VALUE_GRID
    ) -> ReflectedKernelSums | BetaKernelSums:
        """The kernel at these sorted scores, with the bandwidth and range of the view."""
        low, high = self.span(view)
        width = self.width(view)
        if self.kernel == "beta":
            return BetaKernelSums(scores, width, low, high, grid)
        return ReflectedKernelSums(scores, KERNELS[self.kernel], width, low, high, grid)

    def score_statistic(self, view: View) -> SmoothedCurve:
        return SmoothedCurve(self, view)

    def evaluate_selections(self, selections: RowSelections) -> Array:
        """The errors of all selections on the same grids, each with its own bandwidth."""
        if not selections.is_vectorizable or self.kernel == "beta":
            return super().evaluate_selections(selections)
        lowest_scores = selections.sorted_scores[0][:, 0]
        low, high = self.span(selections.view_of_selection(int(np.argmin(lowest_scores))))  # raises for all others too
        widths = (
            silverman_bandwidths(selections)
            if isinstance(self.bandwidth, str)
            else np.full(len(selections), float(self.bandwidth))
        )

        def error_of_cells(density: Array, event_density: Array, cosine_transform: CosineTransform) -> Array:
            gap = self._cell_scores(cosine_transform)[cosine_transform.order] * density
            cell_width = (high - low) / cosine_transform.size
            np.abs(np.subtract(event_density, gap, out=gap), out=gap)
            total_density = density.sum(axis=-1)
            if self.order == 1:
                return self._error_norm(gap, density, cell_width) / total_density
            shares = zip(gap / total_density[:, None], density / total_density[:, None], strict=True)
            return np.array([self._error_norm(*arrays, cell_width) for arrays in shares])

        return smooth_selections(selections, KERNELS[self.kernel], widths, (low, high), error_of_cells)

    def evaluate_scores(self, s: Array, share: Array, view: View, grid: GridResolution = DRAWS_GRID) -> ScoreStatistic:
        """The integral over a grid. The density of the observed scores is held fixed, so that the error is a norm."""
        smooth = self.kernel_sums_at(s, view, grid)
        density = smooth(share)
        total = density.sum()
        if not total > 0:
            raise InputError(
                "TO205",
                "The beta kernel gives no weight to scores of exactly 0 or 1, and all scores are.",
                view.name or "a view",
                "Use kernel='triweight'.",
            )
        mass = density / total
        centers = self._cell_scores(smooth.cosine_transform) if isinstance(smooth, ReflectedKernelSums) else smooth.s

        def smoothed_error(w: Array, wy: Array) -> Array:
            gap = np.abs(smooth(wy) - centers * (density if w is share else smooth(w))) / total
            return self._error_norm(gap, mass, (smooth.high - smooth.low) / len(mass))

        def statistic(w: Array, _wp: Array, wy: Array) -> Array:
            if w.ndim == wy.ndim == 1:
                return smoothed_error(w, wy)
            w, wy = np.atleast_2d(w), np.atleast_2d(wy)
            block_size = max(1, MAX_BLOCK_VALUES // max(len(s), len(mass)))
            blocks = (slice(start, start + block_size) for start in np.arange(0, len(wy), block_size))
            return np.concatenate([smoothed_error(w if len(w) == 1 else w[rows], wy[rows]) for rows in blocks])

        return statistic

    def _cell_scores(self, cosine_transform: CosineTransform) -> Array:
        """Score that represents each cell."""
        centers = cosine_transform.midpoints.copy()
        if np.isinf(self.order):
            # A mirrored curve is flat at the ends, where the largest distance often lies.
            centers[[0, -1]] = cosine_transform.low, cosine_transform.high
        return centers

    def _error_norm(self, gap: Array, mass: Array, cell_width: float) -> Array:
        """Norm of order q of gap/mass, weighted by `mass`, the share of the scores in each cell."""
        if self.order == 1:
            return np.asarray(gap.sum(axis=-1))
        dense = mass > self.min_density * cell_width
        ratio = gap[..., dense] / mass[dense]
        largest_ratio = np.asarray(ratio.max(axis=-1))
        if np.isinf(self.order):
            return largest_ratio
        scale = np.maximum(largest_ratio, 1e-300)  # taken out, or high powers overflow
        powers = ((ratio / scale[..., None]) ** self.order * mass[dense]).sum(axis=-1)
        return np.asarray(scale * powers ** (1 / self.order))

    def settings_used(self, view: View) -> dict[str, Any]:
        low, high = self.span(view)
        return {
            "bandwidth": self.bandwidth,
            "kernel": self.kernel,
            "range": f"[{low:.6g}, {high:g}]",
            "order": "inf" if np.isinf(self.order) else self.order,
            **({"min_density": self.min_density} if self.order > 1 else {}),
        }

    def parts(self, view: View) -> dict[str, float]:
        """Bandwidth chosen by the rule for this view."""
        return {"bandwidth": self.width(view)} if isinstance(self.bandwidth, str) else {}

    def notes(self, view: View) -> list[Note]:
        note_list = []
        if self.bandwidth == "silverman" and silverman_bandwidth(view) == MIN_BANDWIDTH:
            text = (
                f"The scores are so concentrated that Silverman's bandwidth is the minimum, {MIN_BANDWIDTH}, which"
                " smooths little where scores are sparse."
            )
            note_list.append(Note("TN115", text))
        if self.kernel == "beta":
            scores = sort_by_score(view).sums_by_score()[0]
            smooth = self.kernel_sums_at(scores, view)
            assert isinstance(smooth, BetaKernelSums)
            n_faint = int((view.n * (smooth.score_masses() < 0.5)[find_scores(view.p, scores)]).sum())
            if n_faint:
                text = (
                    f"{n_faint:,} {'row' if n_faint == 1 else 'rows'} next to 0 or 1 have less than half their weight"
                    " in the beta kernel. kernel='triweight' gives all rows full weight."
                )
                note_list.append(Note("TN116", text))
        return note_list


class SmoothedCurve(DistinctScores):
    """Sums of one view at its distinct scores, with a fine grid for the value and a coarser one for draws.

    `DistinctScores` adds the difference of both grids for the observed outcomes to each draw.
    """

    error: KernelDensityError  # the settings of the error

    def value(self) -> float:
        s, w, wp, wy = self.shares()
        return float(self.error.evaluate_scores(s, w, self.view, VALUE_GRID)(w, wp, wy))


def calibration_curve(view: View, points: ArrayLike, error: KernelDensityError | None = None) -> Array:
    """Smoothed event rate r(s) at the given scores, with the kernel of `error`; NaN where no row is near.

    >>> calibration_curve(View(p=[0.3, 0.7], y=[1, 0]), [0.3, 0.5, 0.7], KernelDensityError(bandwidth=0.1))
    array([1. , 0.5, 0. ])
    """
    error = error or KernelDensityError()
    error.span(view)  # raises an error for probability vectors
    scores, w, wy = sort_by_score(view).sums_by_score()
    s = np.asarray(points, dtype=np.float64)
    density, event_density = error.kernel_sums_at(scores, view).evaluate(s.ravel(), np.stack([w, wy]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(density > 0, event_density / density, np.nan).reshape(s.shape)


MIN_BANDWIDTH = 0.002  # smallest standard deviation of a kernel that the finest grid resolves


def silverman_bandwidth(view: View) -> float:
    r"""Silverman's rule of thumb for the bandwidth, from the scores of one view.

    .. math:: h = \min\Big(\mathrm{sd}, \frac{\mathrm{IQR}}{1.349}\Big) \Big(\frac{3n}{4}\Big)^{-1/5}

    The minimum is 0.002, which is also the result for one row and if half of the scores are almost equal: concentrated
    scores need a narrow kernel. Source: Silverman (1986).
    """
    n = effective_n(view)
    if n <= 1:
        return MIN_BANDWIDTH
    s, w, _ = sort_by_score(view).sums_by_score()
    return float(_silverman_rule(s, w * (n / w.sum()), n))


def silverman_bandwidths(selections: RowSelections) -> Array:
    """Silverman's bandwidth of each selection, for selections of equal size."""
    p, _ = selections.sorted_scores
    n = p.shape[1]
    return np.full(len(selections), MIN_BANDWIDTH) if n <= 1 else _silverman_rule(p, np.ones(n), n)


def _silverman_rule(s: Array, w: Array, n: float) -> Array:
    """Silverman's bandwidth (…,) of sorted scores s (…, m) with weights w (m,) that add up to n."""
    lower_quartile, upper_quartile = weighted_quantiles(s, w, (0.25, 0.75))
    sd = weighted_std(s, w) * np.sqrt(n / (n - 1))
    std_by_quartiles = (upper_quartile - lower_quartile) / (2 * ndtri(0.75))  # equal to sd for a normal distribution
    return np.maximum(np.minimum(sd, std_by_quartiles) * (3 * n / 4) ** -0.2, MIN_BANDWIDTH)
