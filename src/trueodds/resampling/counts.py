"""How many outcomes come when each comes with a probability of its own, independently of the others?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import betaincinv

from trueodds.core.typing import Array

MAX_EXACT_VARIANCE = 25.0  # variance up to which the exact law is made; beyond, the count is as good as normal
EXACT_ROWS = 2000  # rows up to which the law is convolved, which costs O(rows²) and keeps the digits of its tails
WINDOW = 128  # counts looked at around the mean: with a variance of 25 others have probability 1e-17 (Bernstein)
_CELLS = 4096  # cells whose characteristic functions are held at a time


def poisson_binomial(p: Array) -> Array:
    """P[Σy = k] for k = 0..n where y_i is 1 with probability p_i, by convolution; O(n²) time.

    >>> poisson_binomial(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    pmf = np.zeros(len(p) + 1)
    pmf[0] = 1.0
    for i, prob in enumerate(p, start=1):
        come = pmf[:i] * prob
        pmf[:i] -= come
        pmf[1 : i + 1] += come
    return pmf


def quantiles(bins: Array, n: Array, p: Array, u: Array) -> Array:
    """The counts of bins at the levels u (draws, B); bin b sums Binomial(n, p) over the cells with `bins` = b."""
    counts = np.empty(u.shape)
    for start, first, pmf in count_pmfs(bins, n, p, u.shape[1]):
        upto = np.cumsum(pmf, axis=1)
        for b, (lowest, reached) in enumerate(zip(first, upto, strict=True), start):
            counts[:, b] = lowest + np.searchsorted(reached, u[:, b] * reached[-1])
    return counts


def count_pmfs(bins: Array, n: Array, p: Array, size: int) -> Iterator[tuple[int, Array, Array]]:
    r"""The law of the count of each bin, some bins at a time: the first bin, their lowest counts, P (bins, WINDOW).

    Bin b sums Binomial(n, p) over the cells with `bins` = b, and its variance is at most MAX_EXACT_VARIANCE. The law is the
    Fourier transform of its characteristic function,

    .. math:: \prod_c \big(1 - p_c + p_c e^{i\theta}\big)^{n_c},

    with the complement counted where p > 1/2, so that the count stays near its mean. `bins` (cells,) rises from 0.
    """
    p = np.clip(p, 0.0, 1.0)
    sign = np.where(p > 0.5, -1.0, 1.0)
    q = np.where(p > 0.5, 1 - p, p)
    shift = np.bincount(bins, np.where(p > 0.5, n, 0.0), size)
    center = np.rint(np.bincount(bins, sign * n * q, size))
    theta = 2 * np.pi / WINDOW * np.arange(WINDOW // 2 + 1)
    first = np.searchsorted(bins, np.arange(size + 1))
    start = 0
    while start < size:
        stop = max(start + 1, int(np.searchsorted(first, first[start] + _CELLS, "right")) - 1)
        cells = slice(first[start], first[stop])
        log = _log(n[cells], q[cells], sign[cells], theta)
        log = np.add.reduceat(log, first[start:stop] - first[start], axis=0)
        # Only the real part of the transform is meant, so its conjugate serves, which is what irfft takes.
        pmf = np.fft.irfft(np.conj(np.exp(log - 1j * theta * center[start:stop, None])), WINDOW)
        lowest = shift[start:stop] + center[start:stop] - WINDOW // 2
        yield start, lowest, np.maximum(np.roll(pmf, WINDOW // 2, axis=1), 0.0)
        start = stop


def _log(n: Array, q: Array, sign: Array, theta: Array) -> Array:
    """n log(1 − q + q e^{±iθ}), (cells, angles)."""
    drop = q[:, None] * (1 - np.cos(theta))
    with np.errstate(divide="ignore"):  # a fair coin's function is 0 at π
        modulus = 0.5 * np.log1p(-2 * (1 - q[:, None]) * drop)
    angle = np.arctan2((sign * q)[:, None] * np.sin(theta), 1 - drop)
    return np.asarray(n[:, None] * modulus + 1j * (n[:, None] * angle))


def exact_limits(k: Array | float, n: Array | float, tail: float) -> tuple[Array, Array]:
    """The rates that k of n do not speak against: each end is passed by chance with probability `tail` at most.

    k and n may be arrays, and fractions where rows are effective ones. Source: Clopper & Pearson (1934).

    >>> low, high = exact_limits(0.0, 10.0, 0.025)
    >>> float(low), round(float(high), 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    # A beta law of parameter 0 has no quantiles: there the end is the end of the scale.
    none, every = k <= 0, k >= n
    low = np.where(none, 0.0, betaincinv(np.where(none, 1.0, k), n - k + 1, tail))
    high = np.where(every, 1.0, betaincinv(k + 1, np.where(every, 1.0, n - k), 1 - tail))
    return low, high
