"""Smooth expected calibration error (smECE), by reflected Gaussian smoothing of the residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.unbinned import Reader, Scores, UnbinnedError
from trueodds.kernels.smoothing import moments, residuals
from trueodds.lenses.view import View

MANY, CELLS = 2**15, 4096  # rows beyond which they are not sorted, and the cells of the grid on which they are spread


@dataclass(frozen=True)
class SmoothError(UnbinnedError):
    r"""Mean absolute residual after smoothing it over neighboring scores (smooth ECE).

    Answers: how far, on average, are stated probabilities from the frequencies that came, without the choice of bins?
    Residuals y − p of neighboring scores are averaged with Gaussian weights of standard deviation σ (scores beyond
    0 and 1 are reflected), and what does not cancel is added up:

    .. math:: N_\sigma = \int_0^1 \Big|\tfrac1w \sum_i w_i (y_i - p_i)\, K_\sigma(t, p_i)\Big|\, dt, \quad
        \mathrm{smECE} = N_{\sigma^*} \text{ where } N_{\sigma^*} = \sigma^*

    Wider smoothing cancels more, so :math:`N_\sigma` falls as σ grows and the fixed point is unique: the smoothing is
    as wide as the error it finds. smECE is within constant factors of the distance to the nearest calibrated
    predictions, and moves little where predictions move little.

    Shapes: a binary view (n,). Units: probability, in [0, 1]; 0 is best; never below the absolute mean gap nor above
    the ECE over distinct scores. Bias: upward, a calibrated model scores up to 0.56 (mean p(1-p)/n)^(1/3), 0.03 at
    n = 1,000, which `noise_floor` reports. Cost: O(n) time for many rows, O(n log n) for few or where σ is under 0.0004;
    draws tell 4,096 scores apart. From a tally it is the value at the tally's resolution.
    Raises TO203 for a bandwidth that is none, TO205 for a lens with a vector per row.
    Source: Błasiok & Nakkiran (2024), with all images of the reflection and exact to 1e-6.

    Parameters
    ----------
    bandwidth : "auto" or float
        The fixed point, which is given beside the value, or a fixed σ of at least 1e-5: then the value is
        :math:`N_\sigma`.

    One row said .8 and came: the residual .2 cancels with nothing at any bandwidth.

    >>> round(float(SmoothError()(View(p=[0.8], y=[1]))), 4)
    0.2
    """

    # Subadditive though it is a fixed point. N_σ is a seminorm of the residuals at each σ, and falls in σ because
    # reflected Gaussians form a semigroup of contractions of L1. With a = smECE(μ) and b = smECE(ν),
    #   N_{a+b}(μ + ν) ≤ N_{a+b}(μ) + N_{a+b}(ν) ≤ N_a(μ) + N_b(ν) = a + b,
    # and where N at a + b is at most a + b, the fixed point is too: smECE(μ + ν) ≤ a + b. So the triangle inequality
    # holds, which is all that the interval uses.
    name: ClassVar[str] = "smece"
    exempt: ClassVar[dict[str, str]] = {"cells": "scores of one cell count as one score, so a tally has its resolution"}
    bandwidth: Annotated[float, Range(NARROWEST, WIDEST)] | Literal["auto"] = "auto"

    def scores(self, view: View) -> GriddedScores:
        """The same, for draws: at most 4,096 groups of equal or neighboring scores."""
        return GriddedScores(self, view)

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The smoothed residuals' absolute integral, at the fixed point or the given bandwidth."""

        def reader(_w: Array, wp: Array, wy: Array) -> Array:
            residual = wy - wp
            rows = residual.reshape(-1, len(s))
            values = (
                fixed_point(s, rows) if self.bandwidth == "auto" else smoothed_norms(s, rows, float(self.bandwidth))
            )
            return values.reshape(residual.shape[:-1])

        return reader

    def settings_used(self, view: View) -> dict[str, Any]:
        """The bandwidth as asked."""
        return {"bandwidth": self.bandwidth}

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth that was found: the fixed point, so up to rounding the value itself."""
        return {"bandwidth": self.value(view)} if self.bandwidth == "auto" else {}


class GriddedScores(Scores):
    """One view's scores; many rows are spread over a grid as they come, which needs no order."""

    error: SmoothError

    def value(self) -> float:
        """The error of the view itself, from sorted scores where they are few or the error so small that it takes more."""
        view = self.view
        if view.is_rows and len(view) > MANY:
            bandwidth = self.error.bandwidth
            error = from_moments(self._moments() / view.total, None if bandwidth == "auto" else float(bandwidth))
            if error is not None:
                return error
        return super().value()

    def _moments(self) -> Array:
        """Σw(y − p)u^k in each cell."""
        view = self.view
        if view.rows is not None and not view.read:
            return view.rows.moments(CELLS, 4)
        return moments(view.p, residuals(view.p, view.outcomes, None if view.plain else view.w), CELLS, 4)


NARROWEST = 1e-5  # smoothing over less than this tells scores apart that agree in the fifth digit
WIDEST = 1e6  # far beyond the unit interval, where every score is smoothed into one
GRIDS = tuple(2**i for i in range(10, 20, 2))  # nodes on which residuals are spread before their transform, by need
PER_SIGMA = 1.5  # nodes on a σ, at least: what is finer has been smoothed away, and aliasing stays below 1e-6
FINE = 8  # nodes on a σ that is given
CLOSE = 1e-11  # where a fixed point is found
# The pieces of a cubic spline over four nodes, by the powers of the place u in the cell.
SPLINE = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]]) / 6
MAX_ARRAY_SIZE = 2**20  # numbers of one temporary array; draws beyond are taken in turn


def smoothed_norms(s: Array, residual: Array, sigma: float) -> Array:
    """N_σ, the absolute integral of each row of residuals (rows, m) at the scores `s` (m,), after smoothing by σ."""
    line, length = _without_gaps(s, sigma)
    scaled = np.array([sigma / length])
    grid = next((g for g in GRIDS if scaled[0] * g >= FINE), GRIDS[-1])
    norms = np.empty(len(residual))
    for rows in _in_turn(np.arange(len(residual)), max(len(s), 2 * grid)):
        norms[rows] = _norms(_cosines(line, residual[rows], grid), scaled.repeat(len(rows)), 16.0)
    return norms


def fixed_point(s: Array, residual: Array) -> Array:
    """The σ at which N_σ = σ, of each row of residuals (rows, m) at the scores `s` (m,)."""
    sigma, upper = np.abs(residual.sum(axis=1)), np.abs(residual).sum(axis=1)
    some = np.flatnonzero(upper > sigma * (1 + CLOSE))  # the others have residuals of one sign
    bounds = 4 ** np.ceil(np.log2(np.maximum(upper[some], NARROWEST)) / 2)  # above σ, and the same for many rows
    for bound in np.unique(bounds):
        left = some[bounds == bound]
        line, length = _without_gaps(s, bound)
        for grid in GRIDS:  # a finer one where σ is small
            for rows in _in_turn(left, max(len(s), 2 * grid)):
                sigma[rows] = _fixed_points(_cosines(line, residual[rows], grid), upper[rows], length)
            left = left[sigma[left] * grid < PER_SIGMA * length]
    return sigma


def from_moments(moments: Array, sigma: float | None) -> float | None:
    """The fixed point, or N_σ, of residuals by their moments in even cells of [0, 1] (cells, 4).

    None where these cells are too coarse to tell.
    """
    cells = len(moments)
    node_sums, pieces = np.zeros((1, cells + 3)), moments @ SPLINE.T
    for j in range(len(SPLINE)):
        node_sums[0, j : j + cells] += pieces[:, j]
    cosines = _transformed(node_sums)
    if sigma is None:
        solution = float(_fixed_points(cosines, np.ones(1), 1.0)[0])
        return solution if solution * cells >= PER_SIGMA else None
    return float(_norms(cosines, np.array([sigma]), 16.0)[0]) if sigma * cells >= FINE else None


def _in_turn(rows: Array, size: int) -> list[Array]:
    """Rows whose temporary arrays, each of `size` numbers a row, fit into the memory together."""
    step = max(1, MAX_ARRAY_SIZE // size)
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _without_gaps(s: Array, sigma: float) -> tuple[Array, float]:
    """The scores on a line of length 1 from which long gaps are cut out, and how long it is in units of the score.

    Nothing is left of a Gaussian eight standard deviations away, so wider gaps hold nothing; the scores of a rare
    event, or of a model that is nearly always sure, fill little of [0, 1].
    """
    gaps = np.diff(s, prepend=0.0, append=1.0)
    if (gaps <= 16 * sigma).all():
        return s, 1.0
    line = np.cumsum(np.minimum(gaps, 16 * sigma))
    return line[:-1] / line[-1], float(line[-1])


def _fixed_points(cosines: Array, upper: Array, length: float) -> Array:
    """By secants in log σ, kept inside the bracket that every N_σ narrows from the other side.

    N_σ never exceeds `upper`, Σ|residual|, and never falls below |Σ residual|.
    """
    low, high = np.abs(cosines[:, 0]), upper.copy()
    solution = low.copy()
    sigma = np.maximum(np.sqrt(np.maximum(low, 0.05 * high) * high), NARROWEST)
    slope = np.full(len(upper), -0.4)  # d log N / d log σ: −1/2 for noise, 0 where all residuals have one sign
    x_before, y_before = np.full(len(upper), np.nan), np.full(len(upper), np.nan)
    left, turn = np.arange(len(upper)), 0
    while len(left):
        at = sigma[left]
        norm = np.maximum(_norms(cosines[left], at / length), low[left])
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
        sigma[left] = np.maximum(np.where(inside, step, np.sqrt(low[left] * high[left])), NARROWEST)
        narrow = (at <= NARROWEST) & (norm <= at)
        done = narrow | (np.abs(y - x) < CLOSE) | (high[left] <= low[left] * (1 + CLOSE))
        left = left[~done]
        turn += 1
    return solution


def _cosines(s: Array, residual: Array, grid: int) -> Array:
    """Σ residual cos(πks) for k = 0 … grid and each row of residuals (rows, m), by one fast transform.

    Each residual is spread over four nodes by a cubic spline, whose own transform is divided out: what remains is
    aliasing, (k / 2 grid)⁴ of the residuals' noise, where spreading over two nodes would leave (k / grid)².
    """
    cell = np.minimum((s * grid).astype(np.int64), grid - 1)
    u = s * grid - cell
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    at = cell[first]
    node_sums = np.zeros((len(residual), grid + 3))  # nodes −1 … grid + 1
    for j, (a, b, c, d) in enumerate(SPLINE):
        node_sums[:, at + j] += np.add.reduceat(residual * (a + u * (b + u * (c + u * d))), first, axis=1)
    return _transformed(node_sums)


def _transformed(node_sums: Array) -> Array:
    """Σ residual cos(πks) from the residuals on the nodes −1 … grid + 1, (rows, grid + 3)."""
    grid = node_sums.shape[1] - 3
    node_sums[:, 2] += node_sums[:, 0]  # reflected at 0 and 1, as the Gaussians are
    node_sums[:, grid] += node_sums[:, grid + 2]
    return np.fft.rfft(node_sums[:, 1 : grid + 2], 2 * grid, axis=1).real / _of_spline(grid)


@lru_cache(maxsize=2)
def _of_spline(grid: int) -> Array:
    """The spline's own transform, which repeated draws share."""
    return np.sinc(np.arange(grid + 1) / (2 * grid)) ** 4


def _norms(cosines: Array, sigma: Array, per_sigma: float = 4.0) -> Array:
    """N_σ of each row at its own σ, a share of the line; rows of as many nodes go together, so none depends on others."""
    # The integral errs by about N (spacing / σ)³ / 100: small enough at a fixed point, where N is no more than σ.
    required = np.maximum(32 * np.minimum(sigma, 1) ** (-2 / 3), per_sigma / sigma)
    nodes = 2 ** np.ceil(np.log2(required)).astype(np.int64)
    out = np.empty(len(sigma))
    for count in set(nodes.tolist()):
        rows = np.flatnonzero(nodes == count)
        for some in _in_turn(rows, 2 * count):
            out[some] = _absolute_integral(_smoothed(cosines[some], sigma[some], count))
    return out


def _smoothed(cosines: Array, sigma: Array, nodes: int) -> Array:
    """The smoothed residual at i/nodes, i = 0 … nodes: reflected Gaussians are damped cosines, images and all."""
    waves = min(cosines.shape[1], int(7.5 / (np.pi * sigma.min())) + 2)  # the next is damped by e^−28
    damped = cosines[:, :waves] * np.exp(-0.5 * np.square(np.pi * sigma[:, None] * np.arange(waves)))
    return 2 * nodes * np.fft.irfft(damped, 2 * nodes, axis=1)[:, : nodes + 1]


def _absolute_integral(curve: Array) -> Array:
    """∫|curve| of smooth even curves (rows, nodes + 1), by trapezoids.

    Those are exact to all orders but where the curve crosses 0: a crossing of slope c at the share θ of its cell adds
    c h² (θ(1 − θ) − 1/6), by Euler and Maclaurin, which is taken off again.
    """
    size = np.abs(curve)
    total = size.sum(axis=1) - (size[:, 0] + size[:, -1]) / 2
    row, cell = np.nonzero(curve[:, :-1] * curve[:, 1:] < 0)
    a, b = size[row, cell], size[row, cell + 1]
    total -= np.bincount(row, a * b / (a + b) - (a + b) / 6, len(curve))
    return total / (curve.shape[1] - 1)
