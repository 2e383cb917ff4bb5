"""The Poisson-binomial distribution of event counts: its probabilities, and the quantiles of bin counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueodds.core.typing import Array

MAX_EXACT_VARIANCE = 25.0  # variance up to which the exact distribution is used; beyond, the normal distribution
MAX_CONVOLVED_ROWS = 2000  # rows up to which convolution is used: O(rows²), with full relative precision in the tails
N_WINDOW_COUNTS = 128  # counts around the mean; with a variance of 25 all others have probability 1e-17 (Bernstein)
MAX_BLOCK_CELLS = 4096  # cells whose characteristic functions are in memory at once


def poisson_binomial_pmf(p: Array) -> Array:
    """P[Σy = k] for k = 0..n where y_i is 1 with probability p_i, by convolution; O(n²) time.

    All terms are positive, so that small probabilities in the tails keep their relative precision.

    >>> poisson_binomial_pmf(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    pmfs = np.stack([1.0 - p, p], axis=1)  # those of the single rows; then of twice as many rows in each step
    while len(pmfs) > 1:
        if len(pmfs) % 2:
            always_zero = np.eye(1, pmfs.shape[1])
            pmfs = np.concatenate([pmfs, always_zero])
        pmfs = _convolve_pairs(pmfs[::2], pmfs[1::2])
    return pmfs[0, : len(p) + 1] if len(p) else np.ones(1)


def _convolve_pairs(a: Array, b: Array) -> Array:
    pairs, m = a.shape
    if m > pairs:
        return np.stack([np.convolve(x, y) for x, y in zip(a, b, strict=True)])
    product = np.zeros((pairs, 2 * m - 1))
    for k in range(m):
        product[:, k : k + m] += a[:, k : k + 1] * b
    return product


def count_quantiles(bins: Array, n: Array, p: Array, u: Array) -> Array:
    """Return the quantiles of the event counts of B bins (see `count_pmfs`) at probabilities u (draws, B)."""
    counts = np.empty(u.shape)
    for start, first, pmf in count_pmfs(bins, n, p, u.shape[1]):
        cdf = np.cumsum(pmf, axis=1)
        for b, (lowest, bin_cdf) in enumerate(zip(first, cdf, strict=True), start):
            counts[:, b] = lowest + np.searchsorted(bin_cdf, u[:, b] * bin_cdf[-1])
    return counts


def count_pmfs(bins: Array, n: Array, p: Array, size: int) -> Iterator[tuple[int, Array, Array]]:
    r"""Yield the distributions of the event counts of `size` bins, for some consecutive bins at a time.

    Each item is the number of the first bin, the lowest counts (bins,), and the probabilities (bins, N_WINDOW_COUNTS)
    of the counts from the lowest on.

    The count of bin b is the sum of Binomial(n, p) over the cells with `bins` = b, with a variance of at most
    MAX_EXACT_VARIANCE. The distribution is the Fourier transform of its characteristic function,

    .. math:: \prod_c \big(1 - p_c + p_c e^{i\theta}\big)^{n_c},

    with the complement counted for p > 1/2, so that the count stays near its mean. `bins` (cells,) is sorted and starts
    at 0.
    """
    p = np.clip(p, 0.0, 1.0)
    counts_complement = p > 0.5
    sign = np.where(counts_complement, -1.0, 1.0)
    folded_p = np.where(counts_complement, 1 - p, p)
    shift = np.bincount(bins, np.where(counts_complement, n, 0.0), size)
    center = np.rint(np.bincount(bins, sign * n * folded_p, size))
    theta = 2 * np.pi / N_WINDOW_COUNTS * np.arange(N_WINDOW_COUNTS // 2 + 1)
    first_cell = np.searchsorted(bins, np.arange(size + 1))
    start = 0
    while start < size:
        stop = max(start + 1, int(np.searchsorted(first_cell, first_cell[start] + MAX_BLOCK_CELLS, "right")) - 1)
        cells = slice(first_cell[start], first_cell[stop])
        log_cf = _log_characteristic_function(n[cells], folded_p[cells], sign[cells], theta)
        log_cf = np.add.reduceat(log_cf, first_cell[start:stop] - first_cell[start], axis=0)
        # The transform is real, so its conjugate gives the same result, and irfft expects the conjugate.
        pmf = np.fft.irfft(np.conj(np.exp(log_cf - 1j * theta * center[start:stop, None])), N_WINDOW_COUNTS)
        lowest = shift[start:stop] + center[start:stop] - N_WINDOW_COUNTS // 2
        yield start, lowest, np.maximum(np.roll(pmf, N_WINDOW_COUNTS // 2, axis=1), 0.0)
        start = stop


def _log_characteristic_function(n: Array, folded_p: Array, sign: Array, theta: Array) -> Array:
    """n log(1 − q + q e^{±iθ}) for the folded probabilities q, (cells, angles); `sign` is that of the exponent."""
    real_decrease = folded_p[:, None] * (1 - np.cos(theta))
    with np.errstate(divide="ignore"):  # for q = 1/2 the characteristic function is 0 at π
        modulus = 0.5 * np.log1p(-2 * (1 - folded_p[:, None]) * real_decrease)
    angle = np.arctan2((sign * folded_p)[:, None] * np.sin(theta), 1 - real_decrease)
    return np.asarray(n[:, None] * modulus + 1j * (n[:, None] * angle))
