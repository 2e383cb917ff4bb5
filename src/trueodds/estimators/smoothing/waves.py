"""What do masses in even cells become under a kernel that both ends mirror? Cosine waves, damped one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array


class Waves:
    """A power of 2 of even cells on [low, high], and the cosine transform of what is in them: mirroring is free.

    The transform is the Fourier transform of the even cells followed by the odd ones backwards, so masses are put in
    and come out in that order; `order` says which cell stands where.
    """

    def __init__(self, low: float, high: float, size: int) -> None:
        self.low, self.high, self.size = low, high, size
        self.s = low + (high - low) * (np.arange(size) + 0.5) / size  # the midpoints
        self.order = np.concatenate([np.arange(0, size, 2), np.arange(size - 1, 0, -2)])
        self.place = np.argsort(self.order)  # where each cell stands
        # Dividing by sinc² takes out, on average, what linear binning smears.
        self._smeared = np.sinc(np.arange(size + 1) / (2 * size)) ** 2
        self._turn = np.exp(-0.5j * np.pi * np.arange(size // 2 + 1) / size)

    def damping(self, kernel: Callable[[Array, int], Array], width: Any) -> Array:
        """What a kernel of this width, or of each of these (…), leaves of each wave, (…, size + 1).

        `kernel(z, count)` is the mean of cos(kzU) for k = 0 … count.
        """
        return kernel(np.asarray(np.pi * width / (self.high - self.low)), self.size) / self._smeared

    def of(self, mass: Array) -> Array:
        """The waves of the masses in the cells, (…, size) to (…, size / 2 + 1): two in one complex number."""
        waves = np.fft.rfft(mass)
        waves *= self._turn
        return waves

    def damped(self, waves: Array, damping: Array) -> Array:
        """The smoothed masses in the cells, (…, size)."""
        half = self.size // 2 + 1
        left = np.empty(np.broadcast_shapes(waves.shape, (*damping.shape[:-1], half)), dtype=np.complex128)
        np.multiply(waves.real, damping[..., :half], out=left.real)
        np.multiply(waves.imag, damping[..., : half - 2 : -1], out=left.imag)
        left *= self._turn.conj()
        return np.fft.irfft(left, self.size)
