"""Smooth expected calibration error (smECE), by reflected Gaussian smoothing of the residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import CELL_EXEMPTION, DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.smoothing import cell_moments, residual_function
from trueodds.lenses.view import View

MAX_SORTED_ROWS = 2**15  # maximum number of rows that are sorted; more are binned on a grid
N_GRID_CELLS = 4096  # number of cells of this grid on [0, 1]


@dataclass(frozen=True)
class SmoothError(DistinctScoreError):
    r"""Smooth expected calibration error (smECE): mean absolute residual after kernel smoothing.

    Residuals y − p of neighboring scores are averaged with Gaussian weights of standard deviation σ, reflected at 0 and
    1. The error is the integral of what does not cancel. No bins are needed.

    Parameters
    ----------
    bandwidth : "auto" or float, default="auto"
        "auto" is the fixed point, which `parts` reports. A number is a fixed σ of at least 1e-5, for which the value is
        :math:`N_\sigma`.

    See Also
    --------
    interval_ce : Upper bound of the distance to calibration from random intervals.

    Notes
    -----
    .. math:: N_\sigma = \int_0^1 \Big|\tfrac1w \sum_i w_i (y_i - p_i)\, K_\sigma(t, p_i)\Big|\, dt, \quad
        \mathrm{smECE} = N_{\sigma^*} \text{ where } N_{\sigma^*} = \sigma^*

    :math:`N_\sigma` decreases in σ, so the fixed point is unique: the bandwidth equals the error. With the
    smallest mean change d of the predictions that would calibrate them, smECE lies between d/2 and 2√d. Compared with
    [1]_, all images of the reflection are used. The numerical error is below 1e-6, and usually below 1e-7: a finer
    integral would slow the draws, and a draw with the observed outcomes must have the observed value. Shapes: a binary
    view (n,).

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
    quantity: ClassVar[str] = "smooth ECE with automatic bandwidth"
    is_bounded_by_mean_gap: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = CELL_EXEMPTION
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
        return {"bandwidth": self.bandwidth}

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth of the fixed point, which equals the value up to rounding."""
        return {"bandwidth": self.value(view)} if self.bandwidth == "auto" else {}


class GriddedScores(DistinctScores):
    """Sums of one view at its distinct scores, or for many rows on a grid, which needs no sorting."""

    error: SmoothError  # the settings of the error

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
        """Moments Σw(y − p)u^k in each cell, (cells, 4), for the position u in the cell and k = 0 … 3."""
        view = self.view
        if view.rows is not None and not view.has_columns:
            return view.rows.moments(N_GRID_CELLS, 4)
        return cell_moments(
            view.p, residual_function(view.p, view.outcomes, None if view.is_unweighted else view.w), N_GRID_CELLS, 4
        )


MIN_BANDWIDTH = 1e-5  # minimum σ, below which scores are distinguished that agree in the fifth digit
MAX_BANDWIDTH = 1e6  # maximum σ, at which all scores of the unit interval count as one
# Numbers of intervals on which residuals are spread before their transform; finer ones for smaller σ.
GRID_SIZES = tuple(2**i for i in range(10, 20, 2))
MAX_GAP = 16  # gaps between scores, in units of σ, beyond which Gaussians do not overlap
MAX_SECANT_STEPS = 10  # number of secant steps, of which six suffice; then the bracket is halved
MIN_NODES_PER_SIGMA = 1.5  # minimum number of nodes per σ at a fixed point, with which aliasing stays below 1e-6
NODES_PER_FIXED_SIGMA = 8  # minimum number of nodes per σ if the bandwidth is a setting
# Minimum numbers of nodes per σ in the integral: at a fixed point, and if the bandwidth is a setting.
INTEGRAL_NODES_PER_SIGMA, INTEGRAL_NODES_PER_FIXED_SIGMA = 4.0, 16.0
FIXED_POINT_TOLERANCE = 1e-11  # tolerance of log σ at a fixed point
# Polynomials of a cubic spline over four nodes, by the powers of the position u in the cell.
SPLINE_COEFFICIENTS = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]]) / 6
MAX_ARRAY_SIZE = 2**20  # maximum number of elements of one temporary array: 8 MB


def smoothed_norms(s: Array, residual: Array, sigma: float) -> Array:
    """N_σ, the absolute integral of each row of residuals (rows, m) at the scores `s` (m,), after smoothing by σ.

    `residual` holds Σw(y − p) of each score divided by the total weight, so that a norm is at most 1.
    """
    positions, length = _shorten_gaps(s, sigma)
    relative_sigma = np.array([sigma / length])
    n_intervals = next((g for g in GRID_SIZES if relative_sigma[0] * g >= NODES_PER_FIXED_SIGMA), GRID_SIZES[-1])
    norms = np.empty(len(residual))
    for rows in _row_batches(np.arange(len(residual)), max(len(s), 2 * n_intervals)):
        norms[rows] = _norms_from_cosines(
            _cosine_transform(positions, residual[rows], n_intervals),
            relative_sigma.repeat(len(rows)),
            INTEGRAL_NODES_PER_FIXED_SIGMA,
        )
    return norms


def fixed_point(s: Array, residual: Array) -> Array:
    """The σ at which N_σ = σ, of each row of residuals (rows, m) at the scores `s` (m,).

    `residual` is normalized as in `smoothed_norms`.
    """
    sigma, upper = np.abs(residual.sum(axis=1)), np.abs(residual).sum(axis=1)
    mixed_signs = np.flatnonzero(upper > sigma * (1 + FIXED_POINT_TOLERANCE))  # the others have residuals of one sign
    # Powers of 4 above σ, so that many rows have the same bound.
    bounds = 4 ** np.ceil(np.log2(np.maximum(upper[mixed_signs], MIN_BANDWIDTH)) / 2)
    for bound in np.unique(bounds):
        unsolved = mixed_signs[bounds == bound]
        positions, length = _shorten_gaps(s, bound)
        for n_intervals in GRID_SIZES:  # finer for rows whose σ is small
            for rows in _row_batches(unsolved, max(len(s), 2 * n_intervals)):
                sigma[rows] = _fixed_points_from_cosines(
                    _cosine_transform(positions, residual[rows], n_intervals), upper[rows], length
                )
            unsolved = unsolved[sigma[unsolved] * n_intervals < MIN_NODES_PER_SIGMA * length]
    return sigma


def error_from_moments(moments: Array, sigma: float | None) -> float | None:
    """The fixed point, or N_σ, of residuals given by their moments in uniform cells of [0, 1] (cells, 4).

    None if the cells are too coarse.
    """
    n_cells = len(moments)
    node_sums, spline_terms = np.zeros((1, n_cells + 3)), moments @ SPLINE_COEFFICIENTS.T
    for j in range(len(SPLINE_COEFFICIENTS)):
        node_sums[0, j : j + n_cells] += spline_terms[:, j]
    cosines = _transform_nodes(node_sums)
    if sigma is None:
        solution = float(_fixed_points_from_cosines(cosines, np.ones(1), 1.0)[0])
        return solution if solution * n_cells >= MIN_NODES_PER_SIGMA else None
    return (
        float(_norms_from_cosines(cosines, np.array([sigma]), INTEGRAL_NODES_PER_FIXED_SIGMA)[0])
        if sigma * n_cells >= NODES_PER_FIXED_SIGMA
        else None
    )


def _row_batches(numbers: Array, size: int) -> list[Array]:
    """Batches of row numbers whose temporary arrays, of `size` numbers per row, fit into memory together."""
    batch_size = max(1, MAX_ARRAY_SIZE // size)
    return [numbers[start : start + batch_size] for start in range(0, len(numbers), batch_size)]


def _shorten_gaps(s: Array, sigma: float) -> tuple[Array, float]:
    """The scores on a line of length 1 without long gaps, and its length in units of the score.

    A Gaussian is negligible beyond eight standard deviations, so wider gaps contribute nothing. The scores of a rare
    event, or of a very confident model, fill only a small part of [0, 1].
    """
    gaps = np.diff(s, prepend=0.0, append=1.0)
    if (gaps <= MAX_GAP * sigma).all():
        return s, 1.0
    positions = np.cumsum(np.minimum(gaps, MAX_GAP * sigma))
    return positions[:-1] / positions[-1], float(positions[-1])


def _fixed_points_from_cosines(cosines: Array, upper: Array, length: float) -> Array:
    """Fixed points (rows,) by the secant method in log σ, within a bracket that each N_σ narrows.

    `cosines` (rows, waves) are the cosine transforms of the residuals on a line of `length` in units of the score.
    N_σ never exceeds `upper` (rows,), Σ|residual|, and is at least |Σ residual|.
    """
    lower, upper_sigma = np.abs(cosines[:, 0]), upper.copy()
    solution = lower.copy()
    sigma = np.maximum(np.sqrt(np.maximum(lower, 0.05 * upper_sigma) * upper_sigma), MIN_BANDWIDTH)
    slope = np.full(len(upper), -0.4)  # d log N / d log σ: −1/2 for noise, 0 where all residuals have one sign
    previous_x, previous_y = np.full(len(upper), np.nan), np.full(len(upper), np.nan)
    active, iteration = np.arange(len(upper)), 0
    while len(active):
        current_sigma = sigma[active]
        norm = np.maximum(_norms_from_cosines(cosines[active], current_sigma / length), lower[active])
        x, y = np.log(current_sigma), np.log(np.maximum(norm, 1e-300))
        solution[active] = norm
        lower[active] = np.maximum(lower[active], np.minimum(norm, current_sigma))
        upper_sigma[active] = np.minimum(upper_sigma[active], np.maximum(norm, current_sigma))
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (y - previous_y[active]) / (x - previous_x[active])
        slope[active] = np.where(np.isfinite(secant), np.clip(secant, -2.0, 0.0), slope[active])
        previous_x[active], previous_y[active] = x, y
        next_sigma = np.exp(x + (y - x) / (1 - slope[active]))
        is_bracketed = (next_sigma > lower[active]) & (next_sigma < upper_sigma[active])
        use_secant = is_bracketed & (iteration < MAX_SECANT_STEPS)
        sigma[active] = np.maximum(
            np.where(use_secant, next_sigma, np.sqrt(lower[active] * upper_sigma[active])), MIN_BANDWIDTH
        )
        at_minimum = (current_sigma <= MIN_BANDWIDTH) & (norm <= current_sigma)
        converged = (
            at_minimum
            | (np.abs(y - x) < FIXED_POINT_TOLERANCE)
            | (upper_sigma[active] <= lower[active] * (1 + FIXED_POINT_TOLERANCE))
        )
        active = active[~converged]
        iteration += 1
    return solution


def _cosine_transform(s: Array, residual: Array, n_intervals: int) -> Array:
    """Σ residual cos(πks), k = 0 … n_intervals, for each row of residuals (rows, m) at the scores s (m,).

    Each residual is spread over four nodes by a cubic spline, whose transform is divided out. The remaining error is
    aliasing, (k / 2 n_intervals)⁴ of the noise of the residuals. Spreading over two nodes would leave
    (k / n_intervals)².
    """
    cell = np.minimum((s * n_intervals).astype(np.int64), n_intervals - 1)
    u = s * n_intervals - cell
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    first_node = cell[starts]
    node_sums = np.zeros((len(residual), n_intervals + 3))  # nodes −1 … n_intervals + 1
    for j, (c0, c1, c2, c3) in enumerate(SPLINE_COEFFICIENTS):
        node_sums[:, first_node + j] += np.add.reduceat(residual * (c0 + u * (c1 + u * (c2 + u * c3))), starts, axis=1)
    return _transform_nodes(node_sums)


def _transform_nodes(node_sums: Array) -> Array:
    """Σ residual cos(πks) from the residuals on the nodes −1 … n_intervals + 1, (rows, n_intervals + 3)."""
    n_intervals = node_sums.shape[1] - 3
    node_sums[:, 2] += node_sums[:, 0]  # reflected at 0 and 1, as the Gaussians are
    node_sums[:, n_intervals] += node_sums[:, n_intervals + 2]
    return np.fft.rfft(node_sums[:, 1 : n_intervals + 2], 2 * n_intervals, axis=1).real / _spline_transform(n_intervals)


@lru_cache(maxsize=2)
def _spline_transform(n_intervals: int) -> Array:
    """Transform of the spline that spreads the residuals, (n_intervals + 1,), cached for repeated draws."""
    return np.sinc(np.arange(n_intervals + 1) / (2 * n_intervals)) ** 4


def _norms_from_cosines(cosines: Array, sigma: Array, nodes_per_sigma: float = INTEGRAL_NODES_PER_SIGMA) -> Array:
    """N_σ of each row (rows,) at its own `sigma` (rows,), from cosine transforms (rows, waves).

    The integral uses at least `nodes_per_sigma` nodes per σ. Rows with equal numbers of nodes are evaluated together.
    """
    # The error of the integral is about N (spacing / σ)³ / 100: small at a fixed point, where N is at most σ.
    required = np.maximum(32 * np.minimum(sigma, 1) ** (-2 / 3), nodes_per_sigma / sigma)
    n_nodes = 2 ** np.ceil(np.log2(required)).astype(np.int64)
    norms = np.empty(len(sigma))
    for count in set(n_nodes.tolist()):
        rows = np.flatnonzero(n_nodes == count)
        for batch in _row_batches(rows, 2 * count):
            norms[batch] = _absolute_integral(_smooth_residuals(cosines[batch], sigma[batch], count))
    return norms


def _smooth_residuals(cosines: Array, sigma: Array, n_nodes: int) -> Array:
    """The smoothed residual at i/nodes, i = 0 … nodes: smoothing by a reflected Gaussian damps the cosines."""
    waves = min(cosines.shape[1], int(7.5 / (np.pi * sigma.min())) + 2)  # the next is damped by e^−28
    damped = cosines[:, :waves] * np.exp(-0.5 * np.square(np.pi * sigma[:, None] * np.arange(waves)))
    return 2 * n_nodes * np.fft.irfft(damped, 2 * n_nodes, axis=1)[:, : n_nodes + 1]


def _absolute_integral(curve: Array) -> Array:
    """∫|curve| of smooth even curves (rows, nodes + 1), by the trapezoidal rule.

    The rule is exact to all orders except where the curve crosses 0: a crossing of slope c at the share θ of its cell
    adds c h² (θ(1 − θ) − 1/6), by Euler and Maclaurin, which is subtracted.
    """
    absolute = np.abs(curve)
    integral = absolute.sum(axis=1) - (absolute[:, 0] + absolute[:, -1]) / 2
    row, cell = np.nonzero(curve[:, :-1] * curve[:, 1:] < 0)
    left, right = absolute[row, cell], absolute[row, cell + 1]
    integral -= np.bincount(row, left * right / (left + right) - (left + right) / 6, len(curve))
    return integral / (curve.shape[1] - 1)
