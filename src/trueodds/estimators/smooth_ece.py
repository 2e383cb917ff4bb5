"""Smooth expected calibration error (smECE), by reflected Gaussian smoothing of the residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.unbinned import DistinctScores, ScoreStatistic, UnbinnedError
from trueodds.kernels.smoothing import cell_moments, residual_function
from trueodds.lenses.view import View

MAX_SORTED_ROWS = 2**15  # more rows are binned on a grid instead of sorted
N_GRID_CELLS = 4096  # cells of this grid on [0, 1]


@dataclass(frozen=True)
class SmoothError(UnbinnedError):
    r"""Smooth expected calibration error (smECE): mean absolute residual after kernel smoothing.

    Residuals y − p of neighboring scores are averaged with Gaussian weights of standard deviation σ, reflected at 0 and
    1. The error is the integral of what does not cancel. No bins are needed.

    Parameters
    ----------
    bandwidth : "auto" or float, default="auto"
        "auto" is the fixed point, which `parts` reports. A number is a fixed σ of at least 1e-5, for which the value is
        :math:`N_\sigma`.

    Raises
    ------
    InputError
        TO203 if the bandwidth is invalid. TO205 if the view has a vector per row.

    See Also
    --------
    interval_ce : Upper bound of the distance to calibration from random intervals.

    Notes
    -----
    .. math:: N_\sigma = \int_0^1 \Big|\tfrac1w \sum_i w_i (y_i - p_i)\, K_\sigma(t, p_i)\Big|\, dt, \quad
        \mathrm{smECE} = N_{\sigma^*} \text{ where } N_{\sigma^*} = \sigma^*

    :math:`N_\sigma` decreases in σ, so the fixed point is unique: the bandwidth equals the error. smECE is within
    constant factors of the distance to the nearest calibrated predictions, and small changes of the predictions change
    it little. Compared with [1]_, all images of the reflection are used, and the value is exact to 1e-6. Shapes: a
    binary view (n,).

    Units: probability, in [0, 1]; 0 is best. The value is at least the absolute mean gap and at most the ECE over
    distinct scores.

    Bias: upward. A calibrated model scores up to 0.56 (mean p(1-p)/n)^(1/3), which is 0.03 at n = 1,000. `noise_floor`
    reports it.

    Cost: O(n) time for many rows, O(n log n) for few rows or if σ is below 0.0004. Draws distinguish 4,096 scores.
    Tallies merge at the resolution of their cells.

    References
    ----------
    .. [1] Błasiok & Nakkiran (2024).

    Examples
    --------
    A single row with prediction 0.8 and an event: the residual 0.2 does not cancel at any bandwidth.

    >>> import trueodds as to
    >>> round(to.measure([1], [0.8], "smece", interval=None).value, 4)
    0.2
    """

    # Subadditive though it is a fixed point. N_σ is a seminorm of the residuals at each σ, and falls in σ because
    # reflected Gaussians form a semigroup of contractions of L1. With a = smECE(μ) and b = smECE(ν),
    #   N_{a+b}(μ + ν) ≤ N_{a+b}(μ) + N_{a+b}(ν) ≤ N_a(μ) + N_b(ν) = a + b,
    # and where N at a + b is at most a + b, the fixed point is too: smECE(μ + ν) ≤ a + b. So the triangle inequality
    # holds, which is all that the interval uses.
    name: ClassVar[str] = "smece"
    exemptions: ClassVar[dict[str, str]] = {
        "cells": "scores of one cell count as one score, so a tally has its resolution"
    }
    bandwidth: Annotated[float, Range(MIN_BANDWIDTH, MAX_BANDWIDTH)] | Literal["auto"] = "auto"

    def score_statistic(self, view: View) -> GriddedScores:
        """Sums for draws, with at most 4,096 groups of equal or neighboring scores."""
        return GriddedScores(self, view)

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Integral of the absolute smoothed residuals, at the fixed point or the given bandwidth."""

        def statistic(_w: Array, wp: Array, wy: Array) -> Array:
            residual = wy - wp
            rows = residual.reshape(-1, len(s))
            values = (
                fixed_point(s, rows) if self.bandwidth == "auto" else smoothed_norms(s, rows, float(self.bandwidth))
            )
            return values.reshape(residual.shape[:-1])

        return statistic

    def settings_used(self, view: View) -> dict[str, Any]:
        """The bandwidth setting."""
        return {"bandwidth": self.bandwidth}

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth of the fixed point, which equals the value up to rounding."""
        return {"bandwidth": self.value(view)} if self.bandwidth == "auto" else {}


class GriddedScores(DistinctScores):
    """Scores of one view. Many rows are binned on a grid without sorting."""

    error: SmoothError

    def value(self) -> float:
        """The error of the view, from sorted scores if there are few or if the error is too small for the grid."""
        view = self.view
        if view.is_rows and len(view) > MAX_SORTED_ROWS:
            bandwidth = self.error.bandwidth
            error = error_from_moments(self._moments() / view.total, None if bandwidth == "auto" else float(bandwidth))
            if error is not None:
                return error
        return super().value()

    def _moments(self) -> Array:
        """Σw(y − p)u^k in each cell."""
        view = self.view
        if view.rows is not None and not view.has_columns:
            return view.rows.moments(N_GRID_CELLS, 4)
        return cell_moments(
            view.p, residual_function(view.p, view.outcomes, None if view.is_unweighted else view.w), N_GRID_CELLS, 4
        )


MIN_BANDWIDTH = 1e-5  # smoothing over less than this tells scores apart that agree in the fifth digit
MAX_BANDWIDTH = 1e6  # far beyond the unit interval, where every score is smoothed into one
GRID_SIZES = tuple(
    2**i for i in range(10, 20, 2)
)  # nodes on which residuals are spread before their transform, by need
MIN_NODES_PER_SIGMA = 1.5  # nodes on a σ, at least: what is finer has been smoothed away, and aliasing stays below 1e-6
NODES_PER_FIXED_SIGMA = 8  # nodes on a σ that is given
FIXED_POINT_TOLERANCE = 1e-11  # where a fixed point is found
# The pieces of a cubic spline over four nodes, by the powers of the place u in the cell.
SPLINE_COEFFICIENTS = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]]) / 6
MAX_ARRAY_SIZE = 2**20  # numbers of one temporary array; draws beyond are taken in turn


def smoothed_norms(s: Array, residual: Array, sigma: float) -> Array:
    """N_σ, the absolute integral of each row of residuals (rows, m) at the scores `s` (m,), after smoothing by σ."""
    line, length = _shorten_gaps(s, sigma)
    scaled = np.array([sigma / length])
    grid = next((g for g in GRID_SIZES if scaled[0] * g >= NODES_PER_FIXED_SIGMA), GRID_SIZES[-1])
    norms = np.empty(len(residual))
    for rows in _row_batches(np.arange(len(residual)), max(len(s), 2 * grid)):
        norms[rows] = _smoothed_norms(_cosine_transform(line, residual[rows], grid), scaled.repeat(len(rows)), 16.0)
    return norms


def fixed_point(s: Array, residual: Array) -> Array:
    """The σ at which N_σ = σ, of each row of residuals (rows, m) at the scores `s` (m,)."""
    sigma, upper = np.abs(residual.sum(axis=1)), np.abs(residual).sum(axis=1)
    some = np.flatnonzero(upper > sigma * (1 + FIXED_POINT_TOLERANCE))  # the others have residuals of one sign
    bounds = 4 ** np.ceil(np.log2(np.maximum(upper[some], MIN_BANDWIDTH)) / 2)  # above σ, and the same for many rows
    for bound in np.unique(bounds):
        left = some[bounds == bound]
        line, length = _shorten_gaps(s, bound)
        for grid in GRID_SIZES:  # a finer one where σ is small
            for rows in _row_batches(left, max(len(s), 2 * grid)):
                sigma[rows] = _fixed_points(_cosine_transform(line, residual[rows], grid), upper[rows], length)
            left = left[sigma[left] * grid < MIN_NODES_PER_SIGMA * length]
    return sigma


def error_from_moments(moments: Array, sigma: float | None) -> float | None:
    """The fixed point, or N_σ, of residuals given by their moments in uniform cells of [0, 1] (cells, 4).

    None if the cells are too coarse.
    """
    cells = len(moments)
    node_sums, pieces = np.zeros((1, cells + 3)), moments @ SPLINE_COEFFICIENTS.T
    for j in range(len(SPLINE_COEFFICIENTS)):
        node_sums[0, j : j + cells] += pieces[:, j]
    cosines = _transform_nodes(node_sums)
    if sigma is None:
        solution = float(_fixed_points(cosines, np.ones(1), 1.0)[0])
        return solution if solution * cells >= MIN_NODES_PER_SIGMA else None
    return (
        float(_smoothed_norms(cosines, np.array([sigma]), 16.0)[0]) if sigma * cells >= NODES_PER_FIXED_SIGMA else None
    )


def _row_batches(rows: Array, size: int) -> list[Array]:
    """Batches of rows whose temporary arrays, of `size` numbers per row, fit into memory together."""
    step = max(1, MAX_ARRAY_SIZE // size)
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _shorten_gaps(s: Array, sigma: float) -> tuple[Array, float]:
    """The scores on a line of length 1 without long gaps, and its length in units of the score.

    A Gaussian is negligible beyond eight standard deviations, so wider gaps contribute nothing. The scores of a rare
    event, or of a very confident model, fill only a small part of [0, 1].
    """
    gaps = np.diff(s, prepend=0.0, append=1.0)
    if (gaps <= 16 * sigma).all():
        return s, 1.0
    line = np.cumsum(np.minimum(gaps, 16 * sigma))
    return line[:-1] / line[-1], float(line[-1])


def _fixed_points(cosines: Array, upper: Array, length: float) -> Array:
    """Fixed points by the secant method in log σ, within a bracket that each N_σ narrows.

    N_σ never exceeds `upper`, Σ|residual|, and is at least |Σ residual|.
    """
    low, high = np.abs(cosines[:, 0]), upper.copy()
    solution = low.copy()
    sigma = np.maximum(np.sqrt(np.maximum(low, 0.05 * high) * high), MIN_BANDWIDTH)
    slope = np.full(len(upper), -0.4)  # d log N / d log σ: −1/2 for noise, 0 where all residuals have one sign
    x_before, y_before = np.full(len(upper), np.nan), np.full(len(upper), np.nan)
    left, turn = np.arange(len(upper)), 0
    while len(left):
        at = sigma[left]
        norm = np.maximum(_smoothed_norms(cosines[left], at / length), low[left])
        x, y = np.log(at), np.log(np.maximum(norm, 1e-300))
        solution[left] = norm
        low[left] = np.maximum(low[left], np.minimum(norm, at))
        high[left] = np.minimum(high[left], np.maximum(norm, at))
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (y - y_before[left]) / (x - x_before[left])
        slope[left] = np.where(np.isfinite(secant), np.clip(secant, -2.0, 0.0), slope[left])
        x_before[left], y_before[left] = x, y
        step = np.exp(x + (y - x) / (1 - slope[left]))
        inside = (step > low[left]) & (step < high[left]) & (turn < 10)  # secants need six; then halve the bracket
        sigma[left] = np.maximum(np.where(inside, step, np.sqrt(low[left] * high[left])), MIN_BANDWIDTH)
        narrow = (at <= MIN_BANDWIDTH) & (norm <= at)
        done = (
            narrow | (np.abs(y - x) < FIXED_POINT_TOLERANCE) | (high[left] <= low[left] * (1 + FIXED_POINT_TOLERANCE))
        )
        left = left[~done]
        turn += 1
    return solution


def _cosine_transform(s: Array, residual: Array, grid: int) -> Array:
    """Σ residual cos(πks) for k = 0 … grid and each row of residuals (rows, m), by one fast transform.

    Each residual is spread over four nodes by a cubic spline, whose transform is divided out. The remaining error is
    aliasing, (k / 2 grid)⁴ of the noise of the residuals. Spreading over two nodes would leave (k / grid)².
    """
    cell = np.minimum((s * grid).astype(np.int64), grid - 1)
    u = s * grid - cell
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    at = cell[first]
    node_sums = np.zeros((len(residual), grid + 3))  # nodes −1 … grid + 1
    for j, (a, b, c, d) in enumerate(SPLINE_COEFFICIENTS):
        node_sums[:, at + j] += np.add.reduceat(residual * (a + u * (b + u * (c + u * d))), first, axis=1)
    return _transform_nodes(node_sums)


def _transform_nodes(node_sums: Array) -> Array:
    """Σ residual cos(πks) from the residuals on the nodes −1 … grid + 1, (rows, grid + 3)."""
    grid = node_sums.shape[1] - 3
    node_sums[:, 2] += node_sums[:, 0]  # reflected at 0 and 1, as the Gaussians are
    node_sums[:, grid] += node_sums[:, grid + 2]
    return np.fft.rfft(node_sums[:, 1 : grid + 2], 2 * grid, axis=1).real / _spline_transform(grid)


@lru_cache(maxsize=2)
def _spline_transform(grid: int) -> Array:
    """The spline's own transform, which repeated draws share."""
    return np.sinc(np.arange(grid + 1) / (2 * grid)) ** 4


def _smoothed_norms(cosines: Array, sigma: Array, per_sigma: float = 4.0) -> Array:
    """Return N_σ of each row at its own σ; rows with equal numbers of nodes are evaluated jointly but independently."""
    # The integral errs by about N (spacing / σ)³ / 100: small enough at a fixed point, where N is no more than σ.
    required = np.maximum(32 * np.minimum(sigma, 1) ** (-2 / 3), per_sigma / sigma)
    nodes = 2 ** np.ceil(np.log2(required)).astype(np.int64)
    out = np.empty(len(sigma))
    for count in set(nodes.tolist()):
        rows = np.flatnonzero(nodes == count)
        for some in _row_batches(rows, 2 * count):
            out[some] = _absolute_integral(_smooth_residuals(cosines[some], sigma[some], count))
    return out


def _smooth_residuals(cosines: Array, sigma: Array, nodes: int) -> Array:
    """The smoothed residual at i/nodes, i = 0 … nodes: reflected Gaussians are damped cosines, images and all."""
    waves = min(cosines.shape[1], int(7.5 / (np.pi * sigma.min())) + 2)  # the next is damped by e^−28
    damped = cosines[:, :waves] * np.exp(-0.5 * np.square(np.pi * sigma[:, None] * np.arange(waves)))
    return 2 * nodes * np.fft.irfft(damped, 2 * nodes, axis=1)[:, : nodes + 1]


def _absolute_integral(curve: Array) -> Array:
    """∫|curve| of smooth even curves (rows, nodes + 1), by the trapezoidal rule.

    The rule is exact to all orders except where the curve crosses 0: a crossing of slope c at the share θ of its cell
    adds c h² (θ(1 − θ) − 1/6), by Euler and Maclaurin, which is subtracted.
    """
    size = np.abs(curve)
    total = size.sum(axis=1) - (size[:, 0] + size[:, -1]) / 2
    row, cell = np.nonzero(curve[:, :-1] * curve[:, 1:] < 0)
    a, b = size[row, cell], size[row, cell + 1]
    total -= np.bincount(row, a * b / (a + b) - (a + b) / 6, len(curve))
    return total / (curve.shape[1] - 1)
