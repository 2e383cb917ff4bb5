"""How many outcomes come when each comes with a probability of its own, independently of the others?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

AT_MOST = 25.0  # variance up to which the exact law is made; beyond, the count is as good as normal
_WINDOW = 128  # counts looked at around the mean: with a variance of 25 others have probability 1e-17 (Bernstein)
_CELLS = 4096  # cells whose characteristic functions are held at a time


def quantiles(bins: Array, n: Array, p: Array, u: Array) -> Array:
    r"""The counts of bins at the levels u (draws, B); bin b sums Binomial(n, p) over the cells with `bins` = b.

    The law is the Fourier transform of its characteristic function,

    .. math:: \prod_c \big(1 - p_c + p_c e^{i\theta}\big)^{n_c},

    with the complement counted where p > 1/2, so that the count stays near its mean. `bins` (cells,) rises from 0.
    """
    p = np.clip(p, 0.0, 1.0)
    sign = np.where(p > 0.5, -1.0, 1.0)
    q = np.where(p > 0.5, 1 - p, p)
    size = u.shape[1]
    shift = np.bincount(bins, np.where(p > 0.5, n, 0.0), size)
    center = np.rint(np.bincount(bins, sign * n * q, size))
    theta = 2 * np.pi / _WINDOW * np.arange(_WINDOW // 2 + 1)
    first = np.searchsorted(bins, np.arange(size + 1))
    found = np.empty(u.shape)
    start = 0
    while start < size:
        stop = max(start + 1, int(np.searchsorted(first, first[start] + _CELLS, "right")) - 1)
        cells = slice(first[start], first[stop])
        log = _log(n[cells], q[cells], sign[cells], theta)
        log = np.add.reduceat(log, first[start:stop] - first[start], axis=0)
        # Only the real part of the transform is meant, so its conjugate serves, which is what irfft takes.
        law = np.fft.irfft(np.conj(np.exp(log - 1j * theta * center[start:stop, None])), _WINDOW)
        upto = np.cumsum(np.maximum(np.roll(law, _WINDOW // 2, axis=1), 0.0), axis=1)
        for b in range(start, stop):
            level = u[:, b] * upto[b - start, -1]
            found[:, b] = shift[b] + center[b] - _WINDOW // 2 + np.searchsorted(upto[b - start], level)
        start = stop
    return found


def _log(n: Array, q: Array, sign: Array, theta: Array) -> Array:
    """n log(1 − q + q e^{±iθ}), (cells, angles)."""
    off = q[:, None] * (1 - np.cos(theta))
    with np.errstate(divide="ignore"):  # a fair coin's function is 0 at π
        modulus = 0.5 * np.log1p(-2 * (1 - q[:, None]) * off)
    angle = np.arctan2((sign * q)[:, None] * np.sin(theta), 1 - off)
    return np.asarray(n[:, None] * modulus + 1j * (n[:, None] * angle))
