"""Calibration error by a kernel estimate of the calibration curve, with Silverman's bandwidth (ECE-KDE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from trueodds.binning.partition import lower_limit
from trueodds.binning.selections import Selections
from trueodds.binning.sorted_scores import by_score, weighted_quantiles, weighted_std
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Order, Probability, Range
from trueodds.core.typing import Array
from trueodds.estimators._smoothing.kernel_density import (
    COARSE,
    FINE,
    KERNELS,
    Beta,
    CosineTransform,
    Mirrored,
    smooth_selections,
)
from trueodds.estimators.base import one_score
from trueodds.estimators.unbinned import Reader, Scores, UnbinnedError
from trueodds.kernels.sort import find_score
from trueodds.lenses.view import View

AT_ONCE = 2**20  # numbers held together while draws are smoothed: 8 MB
BELOW = 2e-3  # how far under 1/K a largest probability may lie: row sums may be off by as much


@dataclass(frozen=True)
class KernelDensityError(UnbinnedError):
    r"""Distance between said and seen at every score, averaged over the scores (ECE by kernel density estimation).

    Answers: how far off are the probabilities on average, if neighboring scores lend each other strength instead of
    sharing a bin? The calibration curve r(s) is a weighted mean of the outcomes near s.

    .. math:: \int \Big|\tfrac1w \sum_i w_i (y_i - s)\, K(s, p_i)\Big|\, ds
              = \int |r(s) - s|\, f(s)\, ds, \quad r(s) = \frac{\sum_i w_i y_i K(s, p_i)}{\sum_i w_i K(s, p_i)}

    K is mirrored at both ends of the range and f is the density of the scores. The first form divides by nothing.
    Order q gives :math:`(\int |r - s|^q f\,ds)^{1/q}`, infinity the worst place (a continuous MCE).
    Shapes: a binary view (n,). Units: probability, in [0, 1]; 0 is best.
    Bias: upward by noise, about 0.4 sqrt(p(1-p) / (n h)) for a calibrated model of evenly spread scores at bandwidth h,
    and by smoothing: what varies within a bandwidth is not seen, and a score next to 0 or 1 is seen up to 0.8 bandwidths
    further in, so where scores pile up there give a small bandwidth. `noise_floor` reports both, but a real error can
    hide behind the second. Orders above 1 hold f as it was seen while rows are resampled.
    Cost: O(n log n + G log G) time for a grid of G = 1,024 cells or more, 8 in a bandwidth, error about 1e-6; O(4,096 G)
    with the beta kernel. Draws tell 4,096 scores apart, on a coarser grid. It merges from tallies, exact up to the width
    of their cells.
    Raises TO203 for a setting that cannot be, TO205 for a lens with a vector per row and for scores under the range.
    Source: Posocco & Bonnefoy (2021); the beta kernel Chen (1999).

    Parameters
    ----------
    bandwidth : "silverman" or float
        The kernel's standard deviation, at least 0.002. Silverman's rule looks at each view's scores, never at outcomes.
        For `beta` it is Chen's b, where the kernel's variance is about b p(1 − p); the rule then matches h² on average.
    kernel : {"triweight", "gaussian", "epanechnikov", "beta"}
        `beta` is Chen's second kernel, slower and with little weight on scores next to 0 and 1.
    range : None or "1/K"
        Scores lie in [0, 1], or in [1/K, 1] as the largest of K probabilities do.
    order : float
        The power q; infinity takes the worst place.
    floor : float
        With orders above 1, places where the density of the scores (1 on average over [0, 1]) is lower are left out.

    >>> round(float(KernelDensityError(bandwidth=0.05)(View(p=[0.3, 0.7], y=[1, 0]))), 4)
    0.7
    """

    name: ClassVar[str] = "ece_kde"
    exempt: ClassVar[dict[str, str]] = {
        "cells": "scores within a cell are seen at their mean",
        "weight two": "the bandwidth follows what the weights are worth, not how many rows they might stand for",
    }
    bandwidth: Annotated[float, Range(NARROWEST, 1)] | Literal["silverman"] = "silverman"
    kernel: Annotated[str, OneOf((*KERNELS, "beta"))] = "triweight"
    range: Literal["1/K"] | None = None
    order: Order = 1.0
    min_density: Probability = 1e-3

    def span(self, view: View) -> tuple[float, float]:
        """The interval in which the view's scores lie."""
        one_score(view, self.name)
        low = lower_limit(view, self.range)
        if not low:
            return 0.0, 1.0
        min_score = float(view.p[view.w > 0].min())
        if min_score < low - BELOW:
            raise InputError(
                "TO205",
                "range='1/K' is for the largest of K probabilities, which cannot lie below 1/K.",
                f"{min_score:.6g} through {view.name or 'a view'} with K = {view.classes}",
                "Leave range out, or use lens='confidence'.",
            )
        return low, 1.0

    def width(self, view: View) -> float:
        """The bandwidth for this view."""
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        h = silverman(view)
        if self.kernel != "beta":
            return h
        low, high = self.span(view)
        u = (view.p.astype(np.float64) - low) / (high - low)
        variance = float((view.w * u * (1 - u)).sum()) / view.total
        return min(max((h / (high - low)) ** 2 / max(variance, 1e-12), NARROWEST), 1.0)

    def smoother(self, scores: Array, view: View, grid: tuple[int, int] = FINE) -> Mirrored | Beta:
        """The kernel at these rising scores, with the view's bandwidth and range."""
        low, high = self.span(view)
        width = self.width(view)
        if self.kernel == "beta":
            return Beta(scores, width, low, high, grid)
        return Mirrored(scores, KERNELS[self.kernel], width, low, high, grid)

    def scores(self, view: View) -> Curve:
        """The integral, over a fine grid; for draws over a coarser one."""
        return Curve(self, view)

    def evaluate_selections(self, of: Selections) -> Array:
        """The errors of all selections on the same grids, each with a bandwidth of its own."""
        if not of.alike or self.kernel == "beta":
            return super().evaluate_selections(of)
        low, high = self.span(of.view_of(int(np.argmin(of.sorted_scores[0][:, 0]))))  # of all, it reaches lowest
        widths = (
            silverman_of_selections(of) if isinstance(self.bandwidth, str) else np.full(len(of), float(self.bandwidth))
        )

        def read(density: Array, event_density: Array, waves: CosineTransform) -> Array:
            gap, cell = self._places(waves)[waves.order] * density, (high - low) / waves.size
            np.abs(np.subtract(event_density, gap, out=gap), out=gap)
            total = density.sum(axis=-1)
            if self.order == 1:
                return self._norm(gap, density, cell) / total
            shares = zip(gap / total[:, None], density / total[:, None], strict=True)
            return np.array([self._norm(*share, cell) for share in shares])

        return smooth_selections(of, KERNELS[self.kernel], widths, (low, high), read)

    def reads(self, s: Array, share: Array, view: View, grid: tuple[int, int] = COARSE) -> Reader:
        """The integral over a grid; the density of the observed scores is fixed, which keeps it a norm."""
        smooth = self.smoother(s, view, grid)
        density = smooth(share)
        total = density.sum()
        if not total > 0:
            raise InputError(
                "TO205",
                "The beta kernel gives no weight to scores of exactly 0 or 1, and all are.",
                view.name or "a view",
                "Use kernel='triweight'.",
            )
        mass = density / total
        centers = self._places(smooth.waves) if isinstance(smooth, Mirrored) else smooth.s

        def error(w: Array, wy: Array) -> Array:
            gap = np.abs(smooth(wy) - centers * (density if w is share else smooth(w))) / total
            return self._norm(gap, mass, (smooth.high - smooth.low) / len(mass))

        def reader(w: Array, _wp: Array, wy: Array) -> Array:
            if w.ndim == wy.ndim == 1:
                return error(w, wy)
            w, wy = np.atleast_2d(w), np.atleast_2d(wy)
            step = max(1, AT_ONCE // max(len(s), len(mass)))
            spans = (slice(start, start + step) for start in np.arange(0, len(wy), step))
            return np.concatenate([error(w if len(w) == 1 else w[some], wy[some]) for some in spans])

        return reader

    def _places(self, waves: CosineTransform) -> Array:
        """The score that each cell stands for."""
        centers = waves.s.copy()
        if np.isinf(self.order):
            centers[[0, -1]] = waves.low, waves.high  # a mirrored curve is flat at the ends, where the worst often lies
        return centers

    def _norm(self, gap: Array, mass: Array, cell: float) -> Array:
        """The norm of order q of gap/here, weighted by `mass`, the share of the scores in each cell."""
        if self.order == 1:
            return np.asarray(gap.sum(axis=-1))
        dense = mass > self.min_density * cell
        ratio = gap[..., dense] / mass[dense]
        worst = np.asarray(ratio.max(axis=-1))
        if np.isinf(self.order):
            return worst
        scale = np.maximum(worst, 1e-300)  # taken out, or high powers overflow
        powers = ((ratio / scale[..., None]) ** self.order * mass[dense]).sum(axis=-1)
        return np.asarray(scale * powers ** (1 / self.order))

    def settings_used(self, view: View) -> dict[str, Any]:
        """Bandwidth as asked, kernel, range and order."""
        low, high = self.span(view)
        return {
            "bandwidth": self.bandwidth,
            "kernel": self.kernel,
            "range": f"[{low:.6g}, {high:g}]",
            "order": "inf" if np.isinf(self.order) else self.order,
            **({"min_density": self.min_density} if self.order > 1 else {}),
        }

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth that the rule chose for this view."""
        return {"bandwidth": self.width(view)} if isinstance(self.bandwidth, str) else {}

    def notes(self, view: View) -> list[Note]:
        """A word where Silverman's rule gives too little, or the beta kernel loses rows."""
        note_list = []
        if self.bandwidth == "silverman" and silverman(view) == NARROWEST:
            text = f"The scores lie so close together that Silverman's bandwidth is the least, {NARROWEST}: it smooths little where scores are few."
            note_list.append(Note("TN115", text))
        if self.kernel == "beta":
            scores = by_score(view).sums()[0]
            smooth = self.smoother(scores, view)
            assert isinstance(smooth, Beta)
            faint = int((view.n * (smooth.masses() < 0.5)[find_score(view.p, scores)]).sum())
            if faint:
                text = f"{faint:,} {'row' if faint == 1 else 'rows'} next to 0 or 1 count less than half in the beta kernel; kernel='triweight' counts all fully."
                note_list.append(Note("TN116", text))
        return note_list


class Curve(Scores):
    """One view's scores: a fine grid for the value, a coarser one for draws, moved to agree on what was observed."""

    error: KernelDensityError

    def value(self) -> float:
        """The error of the view itself, every distinct score told apart."""
        s, *shares = self.shares()
        return float(self.error.reads(s, shares[0], self.view, FINE)(*shares))


def calibration_curve(view: View, at: ArrayLike, error: KernelDensityError | None = None) -> Array:
    """How often what was said at each of these scores came, r(s), as `error` smooths; NaN where no row is near.

    >>> calibration_curve(View(p=[0.3, 0.7], y=[1, 0]), [0.3, 0.5, 0.7], KernelDensityError(bandwidth=0.1))
    array([1. , 0.5, 0. ])
    """
    error = error or KernelDensityError()
    error.span(view)  # refuses a view that has no one score
    scores, w, wy = by_score(view).sums()
    places = np.asarray(at, dtype=np.float64)
    density, event_density = error.smoother(scores, view).at(places.ravel(), np.stack([w, wy]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(density > 0, event_density / density, np.nan).reshape(places.shape)


def local_calibration_error(view: View, at: ArrayLike, error: KernelDensityError | None = None) -> Array:
    """Seen minus said at each of these scores, r(s) − s: above 0 the model promises too little.

    >>> local_calibration_error(View(p=[0.3, 0.7], y=[1, 0]), [0.3, 0.7], KernelDensityError(bandwidth=0.1))
    array([ 0.7, -0.7])
    """
    return calibration_curve(view, at, error) - np.asarray(at, dtype=np.float64)


NARROWEST = 0.002
"""The smallest standard deviation of a kernel: what the finest grid resolves."""


def silverman(view: View) -> float:
    r"""Silverman's rule for one view, on that view's own scores.

    .. math:: h = \min\Big(\mathrm{sd}, \frac{\mathrm{IQR}}{1.349}\Big) \Big(\frac{3n}{4}\Big)^{-1/5}

    At least 0.002, which is the answer for one row, and where half of the scores are all but equal: scores that pile up
    need a narrow kernel, for a wide one would carry them off. Source: Silverman (1986).
    """
    n = view.effective_n
    if n <= 1:
        return NARROWEST
    s, w, _ = by_score(view).sums()
    return float(_silverman_rule(s, w * (n / w.sum()), n))


def silverman_of_selections(of: Selections) -> Array:
    """The same for each of selections that are alike."""
    p, _ = of.sorted_scores
    n = p.shape[1]
    return np.full(len(of), NARROWEST) if n <= 1 else _silverman_rule(p, np.ones(n), n)


def _silverman_rule(s: Array, w: Array, n: float) -> Array:
    lower, upper = weighted_quantiles(s, w, (0.25, 0.75))
    sd = weighted_std(s, w) * np.sqrt(n / (n - 1))
    middle = (upper - lower) / (2 * ndtri(0.75))  # the same number for a normal law
    return np.maximum(np.minimum(sd, middle) * (3 * n / 4) ** -0.2, NARROWEST)
