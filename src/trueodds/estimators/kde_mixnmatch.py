"""Calibration error from two kernel densities of the scores, as computed by the Mix-n-Match reference program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Polynomial

from trueodds.binning.sorted_scores import LinearShares, weighted_std
from trueodds.core.errors import Note
from trueodds.core.settings import FiniteOrder
from trueodds.core.typing import Array
from trueodds.estimators._smoothing.kernel_density import KERNELS
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.smoothing import cell_moments
from trueodds.lenses.effective_sample_size import effective_n
from trueodds.lenses.view import View

GRID_START, GRID_END, N_GRID_POINTS = -0.6, 1.6, 2**14  # the grid of the value, as published
N_DRAW_CELLS = 1024  # cells of [0, 1] in draws
MIN_DENSITY = 1e-6  # smaller densities count as 0
MIN_BANDWIDTH = 1e-3  # bandwidth if the scores of the events are almost equal
MAX_BLOCK_VALUES = 2**18  # values of draws smoothed at once
TRIWEIGHT = Polynomial([1, 0, -3, 0, 3, 0, -1])  # (1 − u²)³


@dataclass(frozen=True)
class MixNMatchError(DistinctScoreError):
    r"""Calibration error by two kernel densities, as computed by the Mix-n-Match reference program.

    Use it to compare with published values. Prefer `ece_kde` otherwise, because its bandwidth does not depend on the
    outcomes.

    Parameters
    ----------
    order : float, default=1.0
        Power q, 1 or 2 in the paper.

    See Also
    --------
    ece_kde : Calibration error by kernel regression.

    Notes
    -----
    .. math:: \int |x - \hat r(x)|^q f(x)\,dx \Big/ \int f(x)\,dx, \qquad \hat r = \min(1, \hat\pi f_1 / f)

    f is the density of all scores, f_1 the density of the scores of the events, and π̂ the event rate. Both use the
    triweight kernel with standard deviation sd(scores of the events) · (2n)^(−1/5), so its half-width is three times
    that. Scores below 1/2 are reflected at 0, the others at 1. The value is the q-th power, **without a root**, as
    published. Locations without density contribute nothing. The published program repeats the previous location there,
    which can exceed 1 if the scores are far apart. Shapes: a binary view (n,).

    Units: probability to the power q, in [0, 1]; 0 is best.

    Bias: upward by noise, which `noise_floor` reports, and toward smooth curves, especially if many scores lie at the
    ends. The bandwidth depends on the outcomes, so it is recomputed for every draw. Draws use 1,024 cells and
    distinguish 4,096 scores.

    Cost: O(n log n + G log G) time with G = 2^14 grid points. Kernel sums are exact to about 1e-10. Tallies merge,
    exact up to the width of their cells.

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0, 1], [0.3] * 3, "kde_mixnmatch", interval=None).value, 4)
    0.3667
    """

    name: ClassVar[str] = "kde_mixnmatch"
    interval: ClassVar[str | None] = "noise-floor"
    is_norm: ClassVar[bool] = False
    exemptions: ClassVar[dict[str, str]] = {
        "cells": "scores within a cell are seen at their mean",
        "weight two": "the bandwidth follows what the weights are worth, not how many rows they might stand for",
    }
    order: FiniteOrder = 1.0

    @property
    def norm_power(self) -> float:  # type: ignore[override]
        """`order`: the value is the norm to this power, because no root is taken."""
        return float(self.order)

    def score_statistic(self, view: View) -> MixNMatchScores:
        """The integral on the published grid from exact kernel sums; on a coarser grid for draws."""
        return MixNMatchScores(self, view)

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """The integral on the grid for draws."""
        grid, n = DrawGrid(s), effective_n(view)

        def statistic(w: Array, _wp: Array, wy: Array) -> Array:
            w, wy = np.atleast_2d(w), np.atleast_2d(wy)
            block_size = max(1, MAX_BLOCK_VALUES // N_DRAW_CELLS)
            return np.concatenate([self._draw_errors(grid, n, *sums) for sums in _blocks_of_draws(w, wy, block_size)])

        return statistic

    def _draw_errors(self, grid: DrawGrid, n: float, w: Array, wy: Array) -> Array:
        """The error of each draw (draws,) from Σw and Σwy by score, (1 or draws, m), of n effective rows."""
        event_weights = np.maximum(wy, 0.0)  # negative in draws that flip the sign of residuals
        event_weight = np.maximum(event_weights.sum(axis=-1), 1e-300)
        mean = (event_weights * grid.scores).sum(axis=-1) / event_weight
        variance = (event_weights * (grid.scores - mean[:, None]) ** 2).sum(axis=-1) / event_weight
        width = np.maximum(np.sqrt(variance) * (2 * n) ** -0.2, MIN_BANDWIDTH)
        density, event_density = grid.kernel_sums((w, wy), width)
        density = np.maximum(density, 0.0)  # for a narrow kernel the Fourier series oscillates around 0
        gap = np.abs(grid.s * density - np.clip(event_density, 0.0, density))
        if self.order != 1:
            gap = (gap / np.maximum(density, MIN_DENSITY / N_DRAW_CELLS)) ** self.order * density
        moment = (w * grid.scores**self.order).sum(axis=-1)  # the error without events
        return np.where(event_weights.sum(axis=-1) > 0, _trapezoid(gap) / _trapezoid(density), moment)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"kernel": "triweight", "order": self.order, "draws": f"{N_DRAW_CELLS} cells"}

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth, if any event was observed."""
        bandwidth = MixNMatchScores(self, view).bandwidth
        return {} if bandwidth is None else {"bandwidth": bandwidth}

    def notes(self, view: View) -> list[Note]:
        bandwidth = MixNMatchScores(self, view).bandwidth
        if bandwidth is None:
            return [Note("TN117", "No event was observed, so there is no bandwidth. The error is the mean prediction.")]
        if bandwidth == MIN_BANDWIDTH:
            return [
                Note(
                    "TN117",
                    f"The scores of the events are almost equal, so the bandwidth is the minimum, {MIN_BANDWIDTH}.",
                )
            ]
        return []


class MixNMatchScores(DistinctScores):
    """Sums of one view at its distinct scores, with the published grid for the value and a coarser one for draws."""

    error: MixNMatchError  # the settings of the error

    @property
    def bandwidth(self) -> float | None:
        """Standard deviation of the kernel, from the scores of the events; None without events."""
        s, _, _, wy = self.shares()
        return self._bandwidth_of_events(s, wy)

    def _bandwidth_of_events(self, s: Array, wy: Array) -> float | None:
        """Bandwidth from the scores s (m,) and their events Σwy (m,); None without events."""
        return max(weighted_std(s, wy) * (2 * effective_n(self.view)) ** -0.2, MIN_BANDWIDTH) if wy.sum() > 0 else None

    def value(self) -> float:
        """Return the error by the trapezoidal rule on the published grid. Points without density contribute nothing."""
        scores, w, _, wy = self.shares()
        order, width = self.error.order, self._bandwidth_of_events(scores, wy)
        if width is None:
            return float((w * scores**order).sum())
        points = np.linspace(GRID_START, GRID_END, N_GRID_POINTS)
        inside = np.flatnonzero((points >= 0) & (points <= 1))
        s, event_rate = points[inside], wy.sum()
        density, event_density = (_kernel_sums(scores, x, 3 * width)[inside] for x in (w, wy / event_rate))
        has_density = np.maximum(density, event_density) > MIN_DENSITY
        # Beside scores of little weight the density of all scores can round to 0, where that of the events does not.
        divisor = np.where(has_density & (density != 0), density, 1.0)
        observed = np.minimum(1.0, event_rate * event_density / divisor)
        return float(
            _trapezoid(np.where(has_density, np.abs(s - observed) ** order * density, 0.0)) / _trapezoid(density)
        )


def _kernel_sums(x: Array, mass: Array, radius: float) -> Array:
    """Return Σ mass · K(s − x) at every point s of the published grid, (N_GRID_POINTS,).

    x (m,) are the scores, `mass` (m,) their weights, and K is the triweight kernel of half-width `radius`. Scores below
    1/2 are reflected at 0 and the others at 1. The kernel is a polynomial, so the contribution of a score to all grid
    points is a sum over powers of its distance to the nearest point. The result is exact, with one convolution per
    power.
    """
    spacing = (GRID_END - GRID_START) / (N_GRID_POINTS - 1)
    powers = TRIWEIGHT.degree() + 1
    range_of_cells: Any = {"first": GRID_START - spacing / 2, "last": GRID_END + spacing / 2, "middle": 0.5}
    moments = np.zeros((N_GRID_POINTS, powers))
    for image in (x, np.where(x < 0.5, -x, 2 - x)):
        moments += cell_moments(image, lambda a, b: mass[a:b], N_GRID_POINTS, powers, **range_of_cells)
    moments *= (-spacing / radius) ** np.arange(powers)  # from positions in a cell to distances from a score
    lags = np.arange(N_GRID_POINTS)
    u = np.concatenate([lags, lags - N_GRID_POINTS]) * spacing / radius
    is_within = np.abs(u) < 1
    spectrum: Any = 0.0
    derivative = TRIWEIGHT
    for power in range(powers):
        kernel = np.where(is_within, derivative(u), 0.0)
        spectrum = spectrum + np.fft.rfft(moments[:, power], 2 * N_GRID_POINTS) * np.fft.rfft(kernel)
        derivative = derivative.deriv() / (power + 1)
    return np.fft.irfft(spectrum, 2 * N_GRID_POINTS)[:N_GRID_POINTS] * (35 / 32 / radius)  # ∫(1 − u²)³ du = 32/35


class DrawGrid:
    """The grid 0, 1/G, … 1 with G = N_DRAW_CELLS on which draws are smoothed, each with its own bandwidth.

    `scores` (m,) are the sorted distinct scores. Smoothing is a multiplication of Fourier coefficients on the periodic
    interval from −1 to 2, which holds the reflected scores from −1/2 to 3/2 and the kernels around them.
    """

    def __init__(self, scores: Array) -> None:
        self.scores = scores
        self.s = np.arange(N_DRAW_CELLS + 1) / N_DRAW_CELLS
        # Linear binning: score i lies between grid points c and c + 1, and `upper_share` of its mass goes to c + 1.
        position = np.clip(scores, 0.0, 1.0) * N_DRAW_CELLS
        lower_point = np.minimum(np.maximum.accumulate(position.astype(np.int64)), N_DRAW_CELLS - 1)
        self.shares = LinearShares(lower_point, position - lower_point, N_DRAW_CELLS + 1)
        self.frequency = 2 * np.pi * np.arange(3 * N_DRAW_CELLS // 2 + 1) / 3
        # Linear binning multiplies the coefficients by sinc² on average, which dividing by it undoes.
        self.correction = np.sinc(np.arange(3 * N_DRAW_CELLS // 2 + 1) / (3 * N_DRAW_CELLS)) ** -2

    def kernel_sums(self, masses: tuple[Array, ...], width: Array) -> list[Array]:
        """Return the kernel sums of each mass (draws, m) at the grid points, (draws, G + 1), by bandwidth (draws,)."""
        damping = KERNELS["triweight"].transform(self.frequency * width[:, None]) * self.correction
        smoothed = (np.fft.irfft(np.fft.rfft(self._reflect(mass)) * damping, 3 * N_DRAW_CELLS) for mass in masses)
        return [values[:, N_DRAW_CELLS : 2 * N_DRAW_CELLS + 1] for values in smoothed]

    def _reflect(self, mass: Array) -> Array:
        """Mass (draws, m) at points from −1 to 2, (draws, 3 · N_DRAW_CELLS): binned, and reflected at 0 and 1."""
        binned = self.shares.sums(mass)
        reflected = np.zeros((len(mass), 3 * N_DRAW_CELLS))
        half = N_DRAW_CELLS // 2
        reflected[:, N_DRAW_CELLS : 2 * N_DRAW_CELLS + 1] = binned
        reflected[:, N_DRAW_CELLS - half + 1 : N_DRAW_CELLS + 1] += binned[:, half - 1 :: -1]
        reflected[:, 2 * N_DRAW_CELLS : 3 * N_DRAW_CELLS - half + 1] += binned[:, : half - 1 : -1]
        return reflected


def _blocks_of_draws(w: Array, wy: Array, block_size: int) -> Iterator[tuple[Array, Array]]:
    """Blocks of Σw (1 or draws, m) and Σwy (draws, m) by score, with at most `block_size` draws each."""
    for start in range(0, len(wy), block_size):
        yield (w if len(w) == 1 else w[start : start + block_size]), wy[start : start + block_size]


def _trapezoid(x: Array) -> Array:
    """Trapezoidal sum of values (…, m) at equally spaced points, in units of their distance."""
    return np.asarray(x.sum(axis=-1) - (x[..., 0] + x[..., -1]) / 2)
