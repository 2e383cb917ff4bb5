"""Draw the bootstrap multiplicities: how often each row occurs in each resample."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_inline, compile_kernel
from trueodds.kernels.random_streams import mix_bits

N_SHORT_COUNTS = 6  # 16 random bits decide multiplicities 0..5; in 1 of 1,500 cases, 32 further bits are needed
N_COUNTS = 16  # a Poisson(1) variable is 16 or more with probability 2e-14
_WEYL_INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # step of the counter of splitmix64, 2^64 over the golden ratio
_LOW_32_BITS = np.uint64(0xFFFFFFFF)
# Number of rows whose multiplicities are summed in 16 bits: the sum is at most 4096 (N_COUNTS − 1), below 2^16.
_ROWS_PER_PARTIAL_TOTAL = 4096


class BootstrapMultiplicities:
    """How often each of n rows occurs in each resample, by (key, row, resample), with random access to any resample.

    The rows are returned in this `order` (n,). The multiplicities of a resample are multinomial: n draws from n rows.
    They are generated from Poisson counts, which are multinomial given their total. Their mean is slightly below 1, and
    the missing draws up to n are added one by one. If the total exceeds n (one resample in 700), the counts are drawn
    again, which preserves their distribution given the total. The Poisson distribution is exact to 48 bits.
    """

    def __init__(self, n: int, key: int, order: Array | None = None) -> None:
        self.n, self.key = n, key
        order = np.arange(n) if order is None else order
        self.rows = _random_words(key, order.astype(np.uint64))  # (2, n) random words of the rows, in this order
        self.position = np.empty(n, dtype=np.uint32)  # (n,) place of each row in this order
        self.position[order] = np.arange(n, dtype=np.uint32)
        self.levels, self.tail = _count_thresholds(n)

    def draw(self, start: int, stop: int) -> Array:
        """Return the multiplicities in the resamples start..stop−1, (n, stop − start) uint8."""
        first, last = start // 2, -(-stop // 2)  # two resamples share a 32-bit number
        pairs = np.arange(first, last, dtype=np.uint64)
        out, total = self._draw_poisson(pairs, 0)
        for r in np.flatnonzero(total > self.n):
            attempt = 0
            while total[r] > self.n:
                attempt += 1
                retry, retry_total = self._draw_poisson(pairs[r // 2 : r // 2 + 1], attempt)
                out[:, r], total[r] = retry[:, r % 2], retry_total[r % 2]
        _add_missing_draws(self._draw_words(pairs, -1), total, self.position, out)
        return out[:, start - 2 * first : stop - 2 * first]

    def _draw_poisson(self, pairs: Array, attempt: int) -> tuple[Array, Array]:
        """Draw Poisson counts for these pairs of resamples, (n, 2 · pairs), and their totals, (2 · pairs,)."""
        out = np.empty((self.n, 2 * len(pairs)), dtype=np.uint8)
        total = np.zeros(2 * len(pairs), dtype=np.int64)
        _fill_poisson_counts(self.rows, self._draw_words(pairs, attempt), self.levels, self.tail, out, total)
        return out, total

    def _draw_words(self, pairs: Array, attempt: int) -> Array:
        return _random_words(~self.key % 2**64, pairs + np.uint64((attempt + 1) << 40))


def _random_words(key: int, numbers: Array) -> Array:
    bits = mix_bits(
        mix_bits(np.full(1, key, dtype=np.uint64) + _WEYL_INCREMENT) + (numbers + np.uint64(1)) * _WEYL_INCREMENT
    )
    return np.stack([bits & _LOW_32_BITS, bits >> np.uint64(32)]).astype(np.uint32)


def _count_thresholds(n: int) -> tuple[Array, Array]:
    """Return the thresholds of each Poisson count 1, 2, …: of 16 random bits, and of 32 more where those do not decide.

    The first bits, (N_SHORT_COUNTS,) uint16, do not decide at or above their last threshold; the others are (N_COUNTS,)
    uint64. The counts have the mean μ for which their mean total nμ is three standard deviations √(nμ) below n.
    """
    mean = ((math.sqrt(9 + 4 * n) - 3) / 2) ** 2 / n
    pmf = np.array([math.exp(-mean) * mean**k / math.factorial(k) for k in range(N_COUNTS)])
    truncated = np.concatenate([np.floor(pmf[:N_SHORT_COUNTS] * 2**16), np.zeros(N_COUNTS - N_SHORT_COUNTS)])
    remaining_cdf = np.cumsum(pmf - truncated / 2**16)
    return np.cumsum(truncated[:N_SHORT_COUNTS]).astype(np.uint16), np.rint(
        remaining_cdf / remaining_cdf[-1] * 2**32
    ).astype(np.uint64)


@compile_kernel
def scramble(row_word1, row_word2, draw_word1, draw_word2):  # type: ignore[no-untyped-def]
    """Return 32 random bits from two pairs of 32-bit words; no product exceeds 64 bits."""
    bits = np.uint32(row_word1 ^ draw_word1)
    bits = np.uint32(bits ^ (bits >> np.uint32(16)))
    bits = np.uint32((np.uint64(bits) * np.uint64(0x7FEB352D)) & np.uint64(0xFFFFFFFF))
    bits = np.uint32(bits ^ (bits >> np.uint32(15)) ^ row_word2 ^ draw_word2)
    bits = np.uint32((np.uint64(bits) * np.uint64(0x846CA68B)) & np.uint64(0xFFFFFFFF))
    return np.uint32(bits ^ (bits >> np.uint32(16)))


@compile_kernel
def _fill_poisson_counts(rows, pairs, levels, tail, out, total):  # type: ignore[no-untyped-def]
    """Draw a Poisson count for each row and resample into `out` (n, m) uint8, and add up the counts in `total` (m,).

    `rows` (2, n) and `pairs` (2, m / 2) are the random words of the rows and of the pairs of resamples. Each pair
    shares 32 random bits, of which each resample uses 16.
    """
    l0, l1, l2, l3, l4, l5 = levels[0], levels[1], levels[2], levels[3], levels[4], levels[5]
    n, m = out.shape
    draw_words1, draw_words2 = pairs[0], pairs[1]
    words, count = np.empty(m // 2, dtype=np.uint32), np.zeros(m, dtype=np.uint16)
    halves = words.view(np.uint16)
    for i in range(n):
        row_word1, row_word2, row = rows[0, i], rows[1, i], out[i]
        for r in range(m // 2):
            words[r] = scramble(row_word1, row_word2, draw_words1[r], draw_words2[r])
        largest = np.uint8(0)
        for r in range(m):
            short_bits = halves[r]
            n_below_3 = np.uint8(np.uint8(short_bits >= l0) + np.uint8(short_bits >= l1) + np.uint8(short_bits >= l2))
            count_of_row = np.uint8(
                n_below_3
                + np.uint8(np.uint8(short_bits >= l3) + np.uint8(short_bits >= l4) + np.uint8(short_bits >= l5))
            )
            row[r] = count_of_row
            largest = max(largest, count_of_row)
        if largest == N_SHORT_COUNTS:
            for r in range(m):
                if row[r] == N_SHORT_COUNTS:
                    row[r] = _count_from_tail(
                        scramble(row_word2 ^ np.uint32(r % 2), row_word1, draw_words2[r // 2], draw_words1[r // 2]),
                        tail,
                    )
        for r in range(m):
            count[r] = np.uint16(count[r] + np.uint16(row[r]))
        if i % _ROWS_PER_PARTIAL_TOTAL == _ROWS_PER_PARTIAL_TOTAL - 1 or i == n - 1:
            for r in range(m):
                total[r] += np.int64(count[r])
                count[r] = np.uint16(0)


@compile_inline
def _count_from_tail(bits, tail):  # type: ignore[no-untyped-def]
    count = 0
    while np.uint64(bits) >= tail[count]:
        count += 1
    return np.uint8(count)


@compile_kernel
def _add_missing_draws(pairs, total, position, out):  # type: ignore[no-untyped-def]
    """Draw random rows until the total of each resample is n; `position` (n,) is the place of each row in `out`."""
    n = out.shape[0]
    for r in range(out.shape[1]):
        for missing_draw in range(n - total[r]):
            bits = scramble(np.uint32(missing_draw), np.uint32(r % 2), pairs[0, r // 2], pairs[1, r // 2])
            i = (np.uint64(bits) * np.uint64(n)) >> np.uint64(32)
            out[position[i], r] += np.uint8(1)
