"""Kernel density estimation of scores on an interval: kernels reflected at both ends, and the beta kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, spherical_jn

from trueodds.binning.sorted_scores import LinearShares, RowSelections
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.smoothing import bin_linearly, cell_moments, triweight_transform, triweight_transform_of_multiples


class CosineTransform:
    """Cosine transform of masses in uniform cells on [low, high], for which reflection at both ends is implicit.

    The number of cells, `size`, is a power of 2. The transform is computed as the Fourier transform of the even cells
    followed by the reversed odd cells. Masses are passed and returned in this order: `order` (size,) is the cell at
    each position, and `position_of_cell` (size,) the inverse. `midpoints` (size,) are those of the cells in increasing
    order.

    Coefficient k is Σ mass · cos(πku), with u the position of a cell in [low, high] as a share of its length. Smoothing
    multiplies it by a damping factor: the mean of cos(πkU/(high − low)) for a variable U with the kernel's density.
    """

    def __init__(self, low: float, high: float, size: int) -> None:
        self.low, self.high, self.size = low, high, size
        self.midpoints = low + (high - low) * (np.arange(size) + 0.5) / size
        self.order = np.concatenate([np.arange(0, size, 2), np.arange(size - 1, 0, -2)])
        self.position_of_cell = np.argsort(self.order)  # position of each cell in this order
        # Linear binning multiplies the coefficients by sinc² on average, which dividing by it undoes.
        self._binning_attenuation = np.sinc(np.arange(size + 1) / (2 * size)) ** 2
        self._phase_shift = np.exp(-0.5j * np.pi * np.arange(size // 2 + 1) / size)

    def damping(self, kernel: Callable[[Array, int], Array], width: Any) -> Array:
        """Return the damping factors of the coefficients for a kernel of each `width` (…), (…, size + 1).

        `kernel(z, count)` returns the mean of cos(kzU) for k = 0 … count, for a variable U with the kernel's density.
        """
        return kernel(np.asarray(np.pi * width / (self.high - self.low)), self.size) / self._binning_attenuation

    def transform(self, mass: Array) -> Array:
        """Return the coefficients of the masses (…, size) as complex numbers, (…, size / 2 + 1).

        The real part of number k is coefficient k, and the imaginary part is minus coefficient `size` − k.
        """
        coefficients = np.fft.rfft(mass)
        coefficients *= self._phase_shift
        return coefficients

    def invert_damped(self, coefficients: Array, damping: Array) -> Array:
        """Return the smoothed masses (…, size) from the result of `transform` and damping factors (…, size + 1)."""
        half = self.size // 2 + 1
        damped = np.empty(np.broadcast_shapes(coefficients.shape, (*damping.shape[:-1], half)), dtype=np.complex128)
        np.multiply(coefficients.real, damping[..., :half], out=damped.real)
        np.multiply(coefficients.imag, damping[..., : half - 2 : -1], out=damped.imag)
        damped *= self._phase_shift.conj()
        return np.fft.irfft(damped, self.size)


class GridResolution(NamedTuple):
    """Resolution of the grid on which a smoothed curve is computed."""

    min_cells: int  # minimum number of cells
    cells_per_bandwidth: int  # minimum number of cells per bandwidth


# Resolution for the value of an estimator, and the coarser one for draws, which is faster.
VALUE_GRID, DRAWS_GRID = GridResolution(1024, 8), GridResolution(256, 4)
MAX_BETA_SCORES = 4096  # maximum number of groups of scores for the beta kernel, whose cost is scores times cells
MAX_BLOCK_KERNEL_VALUES = 2**21  # maximum number of kernel values computed at once: 16 MB


@dataclass(frozen=True)
class SmoothingKernel:
    """A smoothing kernel: a symmetric density of standard deviation 1."""

    radius: float  # the density is 0, or negligible, beyond this distance
    density: Callable[[Array], Array]  # its value at u, |u| ≤ radius
    transform: Callable[[Array], Array]  # characteristic function: the mean of cos(zU)
    grid_factor: int = 1  # factor by which its grid is finer, because the transform of a kink decreases slowly
    transform_of_multiples: Callable[[Array, int], Array] | None = None  # fast evaluation of `at_multiples`, if any

    def at_multiples(self, z: Array, count: int) -> Array:
        """Return the characteristic function at 0, z, 2z … count · z for each z (…), (…, count + 1)."""
        if self.transform_of_multiples is not None:
            return self.transform_of_multiples(z, count)
        return self.transform(np.multiply.outer(z, np.arange(count + 1)))


def _parabola_transform(z: Array) -> Array:
    """Characteristic function of the density proportional to 1 − u²: 3 j₁(z) / z, which is 1 at 0."""
    nonzero_z = np.where(z == 0, 1.0, z)
    return np.where(z == 0, 1.0, 3 * spherical_jn(1, nonzero_z) / nonzero_z)


KERNELS = {
    # The bandwidth is the standard deviation, so the triweight reaches 3 of them: its variance is 1/9.
    "triweight": SmoothingKernel(
        3.0,
        lambda u: 35 / 96 * (1 - (u / 3) ** 2) ** 3,
        lambda z: triweight_transform(3 * z),
        transform_of_multiples=lambda z, count: triweight_transform_of_multiples(3 * z, count),
    ),
    "epanechnikov": SmoothingKernel(
        math.sqrt(5), lambda u: 0.15 * math.sqrt(5) * (1 - u**2 / 5), lambda z: _parabola_transform(math.sqrt(5) * z), 4
    ),
    "gaussian": SmoothingKernel(
        9.0, lambda u: np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi), lambda z: np.exp(-(z**2) / 2)
    ),
}


class ReflectedKernelSums:
    """Kernel sums of sorted scores on [low, high], with all reflections at both ends.

    Calling it returns the sums on a grid of cell midpoints, by linear binning and a cosine transform. `evaluate` sums
    directly at any points.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Sorted scores. Those outside [low, high] are moved to its ends.
    kernel : SmoothingKernel
        The kernel.
    width : float
        Bandwidth: the standard deviation of the kernel, in units of the score.
    low, high : float
        Ends of the interval.
    grid : GridResolution, optional
        Resolution of the grid.
    """

    def __init__(
        self,
        scores: Array,
        kernel: SmoothingKernel,
        width: float,
        low: float,
        high: float,
        grid: GridResolution = VALUE_GRID,
    ) -> None:
        self.kernel, self.width, self.low, self.high = kernel, width, low, high
        self.cosine_transform = CosineTransform(low, high, grid_size(width / (high - low) / kernel.grid_factor, grid))
        self.s = self.cosine_transform.midpoints  # (size,) scores at which the sums are computed
        self.scores = np.clip(scores, low, high)
        self._damping = self.cosine_transform.damping(kernel.at_multiples, width)

    def bin_masses(self, mass: Array) -> Array:
        """Return the mass by cell (…, size) of the mass by score (…, m), by linear binning.

        The mass of a score is shared between the two nearest midpoints in proportion to its distance from the other.
        """
        size = len(self.s)
        if mass.ndim == 1:
            masses, half = np.zeros(size + 2), (self.high - self.low) / size / 2
            moments = cell_moments(
                self.scores, lambda a, b: mass[a:b], size + 1, 2, first=self.low - half, last=self.high + half
            )
            masses[:-1] = moments[:, 0] - moments[:, 1]
            masses[1:] += moments[:, 1]
        else:
            masses = self._linear_shares.sums(mass)
        masses[..., 1] += masses[..., 0]  # the outer cells are mirror images of their neighbors
        masses[..., size] += masses[..., size + 1]
        return masses[..., 1:-1]

    @cached_property
    def _linear_shares(self) -> LinearShares:
        position = (self.scores - self.low) / (self.high - self.low) * len(self.s) + 0.5
        cell = np.maximum.accumulate(position.astype(np.int64))
        return LinearShares(cell, position - cell, len(self.s) + 2)

    def __call__(self, mass: Array) -> Array:
        """Return the smoothed mass in each cell, (…, size), from the mass by score (…, m)."""
        transform = self.cosine_transform
        coefficients = transform.transform(np.take(self.bin_masses(mass), transform.order, axis=-1))
        smoothed = transform.invert_damped(coefficients, self._damping)
        return np.take(smoothed, transform.position_of_cell, axis=-1)

    def evaluate(self, points: Array, mass: Array) -> Array:
        """Return the kernel sums at `points` (k,) from the mass by score (…, m), (…, k), per unit of score.

        All reflections at both ends are included.
        """
        length, radius = self.high - self.low, self.kernel.radius * self.width
        images = math.ceil((radius + length) / (2 * length))
        shifts = 2 * length * np.arange(-images, images + 1)
        sums = np.zeros((*mass.shape[:-1], len(points)))
        for i, point in enumerate(points):
            centers = np.concatenate([point + shifts, 2 * self.low - point + shifts])
            spans = np.searchsorted(self.scores, [centers - radius, centers + radius])
            for center, start, stop in zip(centers, *spans, strict=True):
                if start < stop:
                    kernel_values = self.kernel.density((self.scores[start:stop] - center) / self.width)
                    sums[..., i] += (mass[..., start:stop] * kernel_values).sum(axis=-1)
        return sums / self.width


class BetaKernelSums:
    """Kernel sums of sorted scores on [low, high] with Chen's second kernel, a beta density.

    The shape of the density depends on the location. It needs no reflection, but does not give every score the same
    mass. With more than 4,096 scores, groups of neighboring scores are replaced by their mean. The arguments are as for
    `ReflectedKernelSums`, except that `width` is Chen's b, for an interval of length 1. Source: Chen (1999).
    """

    def __init__(self, scores: Array, width: float, low: float, high: float, grid: GridResolution = VALUE_GRID) -> None:
        self.width, self.low, self.high = width, low, high
        size = grid_size(width, grid) // 2
        self.s = low + (high - low) * (np.arange(size) + 0.5) / size
        m = len(scores)
        self.starts = np.unique(np.arange(m) * min(m, MAX_BETA_SCORES) // m, return_index=True)[1]
        self.counts = np.diff(self.starts, append=m)
        x = np.clip((np.add.reduceat(scores, self.starts) / self.counts - low) / (high - low), 0.0, 1.0)
        with np.errstate(divide="ignore"):  # 0 · log 0 is 0 here, so log 0 is replaced by a very negative number
            self.log_scores = np.maximum(np.log(x), -1e300)[:, None]
            self.log_complements = np.maximum(np.log1p(-x), -1e300)[:, None]

    def __call__(self, mass: Array) -> Array:
        """Return the smoothed mass in each cell, (…, size), from the mass by score (…, m)."""
        return np.add.reduceat(mass, self.starts, axis=-1) @ self._grid_masses

    def evaluate(self, points: Array, mass: Array) -> Array:
        """Return the kernel sums at `points` (k,) from the mass by score (…, m), (…, k), per unit of score."""
        return np.add.reduceat(mass, self.starts, axis=-1) @ self._kernel_values(points)

    def score_masses(self) -> Array:
        """Return the total mass on the grid of the kernel of each score, (m,): 1 for a kernel that loses nothing."""
        return np.repeat(self._grid_masses.sum(axis=1), self.counts)

    @cached_property
    def _grid_masses(self) -> Array:
        """Mass that each group of scores contributes to each cell of the grid, (groups, cells)."""
        n_blocks = max(1, len(self.s) * len(self.counts) // MAX_BLOCK_KERNEL_VALUES)
        blocks = [self._kernel_values(points) for points in np.array_split(self.s, n_blocks)]
        return np.concatenate(blocks, axis=1) * ((self.high - self.low) / len(self.s))

    def _kernel_values(self, points: Array) -> Array:
        """Kernel values of each group of scores at `points` (k,), (groups, k)."""
        u = (points - self.low) / (self.high - self.low)
        alpha, beta = self._shape_parameter(u), self._shape_parameter(1 - u)
        logs = self.log_scores * (alpha - 1)
        logs += self.log_complements * (beta - 1)
        logs -= betaln(alpha, beta)
        return np.exp(logs, out=logs) / (self.high - self.low)

    def _shape_parameter(self, u: Array) -> Array:
        """Shape parameter of the beta density at u in [0, 1], with Chen's correction within two bandwidths of 0."""
        b = self.width
        boundary_u = np.minimum(u, 2 * b)
        boundary_shape = 2 * b**2 + 2.5 - np.sqrt(4 * b**4 + 6 * b**2 + 2.25 - boundary_u**2 - boundary_u / b)
        return np.where(u >= 2 * b, u / b, boundary_shape)


def grid_size(width: float, grid: GridResolution = VALUE_GRID) -> int:
    """Return the number of cells on [0, 1] for a kernel of this standard deviation, a power of 2."""
    return max(grid.min_cells, 2 ** math.ceil(math.log2(grid.cells_per_bandwidth / width) - 1e-9))


# From smoothed masses of rows and of events (selections, cells), in the order of the transform, to (selections,).
CellSummary = Callable[[Array, Array, CosineTransform], Array]

MAX_CACHED_CELLS = 2**22  # maximum number of cells of all selections whose transforms are cached: 64 MB
BLOCK_CELLS = 2**14  # number of cells of the selections smoothed at once, which fit into the cache of a core


def smooth_selections(
    selections: RowSelections,
    kernel: SmoothingKernel,
    widths: Array,
    span: tuple[float, float],
    summarize_cells: CellSummary,
) -> Array:
    """Smooth the scores of each selection of rows, and return a summary of each, (selections,).

    Parameters
    ----------
    selections : RowSelections
        The selections, which must be vectorizable.
    kernel : SmoothingKernel
        The kernel, which is reflected at both ends.
    widths : ndarray of shape (selections,)
        Bandwidth of each selection.
    span : tuple of float
        Ends of the interval of the scores.
    summarize_cells : callable
        Returns the summary, such as an integral, of some selections: from the smoothed numbers of rows and of events in
        each cell of a grid, (some selections, cells) in the order of the transform, and the transform itself.
    """
    low, high = span
    sizes = np.array([grid_size(width / (high - low) / kernel.grid_factor) for width in widths])
    values = np.empty(len(selections))
    for size in np.unique(sizes):
        selected = np.flatnonzero(sizes == size)
        values[selected] = _smooth_on_one_grid(
            selections, selected, kernel, widths[selected], CosineTransform(low, high, size), summarize_cells
        )
    return values


def _smooth_on_one_grid(
    selections: RowSelections,
    selected: Array,
    kernel: SmoothingKernel,
    widths: Array,
    cosine_transform: CosineTransform,
    summarize_cells: CellSummary,
) -> Array:
    """Return the summaries (k,) of the `selected` selections (k,), with bandwidths `widths` (k,), on one grid."""
    block = max(1, BLOCK_CELLS // cosine_transform.size)

    def transform_rows(rows: Any) -> Array:
        p, y = (x[rows] for x in selections.sorted_scores)
        return cosine_transform.transform(
            bin_linearly(p, y, cosine_transform.low, cosine_transform.high, cosine_transform.position_of_cell)
        )

    def transform_all() -> Array:
        transformed_selections = np.empty((len(selections), 2, cosine_transform.size // 2 + 1), dtype=np.complex128)
        for start in range(0, len(selections), block):
            transformed_selections[start : start + block] = transform_rows(slice(start, start + block))
        return transformed_selections

    cache = (
        selections.cached((CosineTransform, cosine_transform.low, cosine_transform.size), transform_all)
        if len(selections) * cosine_transform.size <= MAX_CACHED_CELLS
        else None
    )
    has_equal_widths = bool((widths == widths[0]).all())
    damping = cosine_transform.damping(kernel.at_multiples, widths[0]) if has_equal_widths else None

    def summarize_block(start: int, stop: int) -> Array:
        rows = slice(start, stop) if len(selected) == len(selections) else selected[start:stop]
        own_damping = (
            cosine_transform.damping(kernel.at_multiples, widths[start:stop, None]) if damping is None else damping
        )
        smooth = cosine_transform.invert_damped(transform_rows(rows) if cache is None else cache[rows], own_damping)
        return summarize_cells(smooth[:, 0], smooth[:, 1], cosine_transform)

    return np.concatenate(map_blocks(summarize_block, len(selected), block))
