"""How densely do scores lie along an interval, seen through a kernel that loses nothing at the ends?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, spherical_jn

Array = NDArray[Any]

FINE, COARSE = (1024, 8), (256, 4)  # at least so many cells of a grid, and so many by one bandwidth
GROUPS = 4096  # scores that the beta kernel tells apart
AT_ONCE = 2**21  # kernel values made together: 16 MB


@dataclass(frozen=True)
class Kernel:
    """A symmetric density of standard deviation 1."""

    reach: float  # where it has become 0
    profile: Callable[[Array], Array]  # its value at u, |u| ≤ reach
    transform: Callable[[Array], Array]  # the mean of cos(zU)
    finer: int = 1  # how many times finer a grid it needs: a kink leaves a transform that falls slowly


def _bessel(order: int, factor: float) -> Callable[[Array], Array]:
    """factor · j_order(z) / z^order, which is 1 at 0."""

    def transform(z: Array) -> Array:
        safe = np.where(z == 0, 1.0, z)
        return np.where(z == 0, 1.0, factor * spherical_jn(order, safe) / safe**order)

    return transform


_triweight, _parabola = _bessel(3, 105), _bessel(1, 3)
KERNELS = {
    # The bandwidth is the standard deviation, so the triweight reaches 3 of them: its variance is 1/9.
    "triweight": Kernel(3.0, lambda u: 35 / 96 * (1 - (u / 3) ** 2) ** 3, lambda z: _triweight(3 * z)),
    "epanechnikov": Kernel(
        math.sqrt(5), lambda u: 0.15 * math.sqrt(5) * (1 - u**2 / 5), lambda z: _parabola(math.sqrt(5) * z), 4
    ),
    "gaussian": Kernel(9.0, lambda u: np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi), lambda z: np.exp(-(z**2) / 2)),
}


class Mirrored:
    """Kernel sums of rising scores on [low, high], mirrored at both ends without end.

    On a grid of cell midpoints by linear binning and a cosine transform, in which mirroring is free; at any other
    place by direct sums.
    """

    def __init__(
        self, scores: Array, kernel: Kernel, width: float, low: float, high: float, grid: tuple[int, int] = FINE
    ) -> None:
        self.kernel, self.width, self.low, self.high = kernel, width, low, high
        size = _cells(width / (high - low) / kernel.finer, grid)
        self.s = low + (high - low) * (np.arange(size) + 0.5) / size
        self.scores = scores
        place = np.clip((scores - low) / (high - low) * size, 0.0, size) + 0.5  # cell 0 is the mirror image of cell 1
        cell = np.maximum.accumulate(place.astype(np.int64))
        self.upper = place - cell
        self.starts = np.flatnonzero(np.diff(cell, prepend=-1))
        self.cell = cell[self.starts]
        k = np.arange(size // 2 + 1)
        frequency = np.pi * np.arange(size + 1) * width / (high - low)
        # Dividing by sinc² takes out, on average, what linear binning smears.
        factor = kernel.transform(frequency) / np.sinc(np.arange(size + 1) / (2 * size)) ** 2
        self.falling, self.rising = factor[k], factor[size - k]
        self.turn = np.exp(-0.5j * np.pi * k / size)

    def binned(self, mass: Array) -> Array:
        """Mass by score (…, m) as mass by cell (…, size), each score shared between the two nearest midpoints."""
        size = len(self.s)
        out = np.zeros((*mass.shape[:-1], size + 2))
        above = mass * self.upper
        out[..., self.cell] = np.add.reduceat(mass - above, self.starts, axis=-1)
        out[..., self.cell + 1] += np.add.reduceat(above, self.starts, axis=-1)
        out[..., 1] += out[..., 0]
        out[..., size] += out[..., size + 1]
        return out[..., 1:-1]

    def __call__(self, mass: Array) -> Array:
        """The smoothed mass in each cell, (…, size)."""
        cells = self.binned(mass)
        size = cells.shape[-1]
        # A cosine transform is the Fourier transform of the even cells followed by the odd ones backwards.
        wave = np.fft.rfft(np.concatenate([cells[..., ::2], cells[..., ::-2]], axis=-1)) * self.turn
        wave = wave.real * self.falling + 1j * (wave.imag * self.rising)
        back = np.fft.irfft(wave * self.turn.conj(), size)
        out = np.empty_like(cells)
        out[..., ::2], out[..., ::-2] = back[..., : size // 2], back[..., size // 2 :]
        return out

    def at(self, places: Array, mass: Array) -> Array:
        """The kernel sums themselves (…, places), per unit of score: a place and its mirror images, score by score."""
        length, reach = self.high - self.low, self.kernel.reach * self.width
        images = math.ceil((reach + length) / (2 * length))
        shifts = 2 * length * np.arange(-images, images + 1)
        out = np.zeros((*mass.shape[:-1], len(places)))
        for i, s in enumerate(places):
            centers = np.concatenate([s + shifts, 2 * self.low - s + shifts])
            spans = np.searchsorted(self.scores, [centers - reach, centers + reach])
            for center, start, stop in zip(centers, *spans, strict=True):
                if start < stop:
                    near = self.kernel.profile((self.scores[start:stop] - center) / self.width)
                    out[..., i] += (mass[..., start:stop] * near).sum(axis=-1)
        return out / self.width


class Beta:
    """Chen's second kernel on [low, high]: a beta density of the score whose shape follows the place where it is seen.

    It needs no mirror, but does not give every score the same mass. Beyond 4,096 scores neighbors are seen at their
    mean. Source: Chen (1999).
    """

    def __init__(self, scores: Array, width: float, low: float, high: float, grid: tuple[int, int] = FINE) -> None:
        self.width, self.low, self.high = width, low, high
        size = _cells(width, grid) // 2
        self.s = low + (high - low) * (np.arange(size) + 0.5) / size
        m = len(scores)
        self.starts = np.unique(np.arange(m) * min(m, GROUPS) // m, return_index=True)[1]
        self.counts = np.diff(self.starts, append=m)
        x = np.clip((np.add.reduceat(scores, self.starts) / self.counts - low) / (high - low), 0.0, 1.0)
        with np.errstate(divide="ignore"):  # 0 · log 0 is 0 here, so log 0 is a finite number without limit
            self.logs = np.maximum(np.log(x), -1e300)[:, None], np.maximum(np.log1p(-x), -1e300)[:, None]

    def __call__(self, mass: Array) -> Array:
        """The smoothed mass in each cell, (…, size)."""
        return np.add.reduceat(mass, self.starts, axis=-1) @ self._on_grid

    def at(self, places: Array, mass: Array) -> Array:
        """The kernel sums themselves (…, places), per unit of score."""
        return np.add.reduceat(mass, self.starts, axis=-1) @ self._values(places)

    def masses(self) -> Array:
        """How much of each score's mass the kernel keeps, (m,)."""
        return np.repeat(self._on_grid.sum(axis=1), self.counts)

    @cached_property
    def _on_grid(self) -> Array:
        blocks = [self._values(s) for s in np.array_split(self.s, max(1, len(self.s) * len(self.counts) // AT_ONCE))]
        return np.concatenate(blocks, axis=1) * ((self.high - self.low) / len(self.s))

    def _values(self, places: Array) -> Array:
        u = (places - self.low) / (self.high - self.low)
        a, b = self._shape(u), self._shape(1 - u)
        logs = self.logs[0] * (a - 1)
        logs += self.logs[1] * (b - 1)
        logs -= betaln(a, b)
        return np.exp(logs, out=logs) / (self.high - self.low)

    def _shape(self, u: Array) -> Array:
        b = self.width
        near = np.minimum(u, 2 * b)
        edge = 2 * b**2 + 2.5 - np.sqrt(4 * b**4 + 6 * b**2 + 2.25 - near**2 - near / b)
        return np.where(u >= 2 * b, u / b, edge)


def _cells(width: float, grid: tuple[int, int]) -> int:
    """The cells of a grid on [0, 1] for a kernel of this standard deviation: a power of 2."""
    least, by_width = grid
    return max(least, 2 ** math.ceil(math.log2(by_width / width) - 1e-9))
