"""Draw how often each unit occurs in each bootstrap resample, and sum weights, predictions and outcomes per cell.

A unit is a row or a cluster of rows. There is one class of sums for a single probability per row, one for vectors of
probabilities, and one for the norms of their residuals.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_inline, compile_kernel, map_blocks
from trueodds.kernels.bins import sums_by_cell
from trueodds.kernels.random_labels import random_bits

N_SHORT_COUNTS = 6  # 16 random bits decide multiplicities 0..5; in 1 of 1,500 cases, 32 further bits are needed
N_COUNTS = 16  # a Poisson(1) variable is 16 or more with probability 2e-14
WEYL_INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # step of the counter of splitmix64, 2^64 over the golden ratio
_LOW_32_BITS = np.uint64(0xFFFFFFFF)
# Number of rows whose multiplicities are summed in 16 bits: the sum is at most 4096 (N_COUNTS − 1), below 2^16.
_ROWS_PER_PARTIAL_TOTAL = 4096


class BootstrapMultiplicities:
    """How often each of n rows occurs in each resample, by (key, row, resample), with random access to any resample.

    The multiplicities of a resample are multinomial: n draws from n rows.
    They are generated from Poisson counts, which are multinomial given their total. Their mean is slightly below 1, and
    the missing draws up to n are added one by one. If the total exceeds n (one resample in 700), the counts are drawn
    again, which preserves their distribution given the total. The Poisson distribution is exact to 48 bits.
    """

    def __init__(self, n: int, key: int) -> None:
        self.n, self.key = n, key
        self.rows = _random_words(key, np.arange(n, dtype=np.uint64))  # (2, n) random words of the rows
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
        _add_missing_draws(self._draw_words(pairs, -1), total, out)
        return out[:, start - 2 * first : stop - 2 * first]

    def _draw_poisson(self, pairs: Array, attempt: int) -> tuple[Array, Array]:
        """Draw Poisson counts for these pairs of resamples, (n, 2 · pairs), and their totals, (2 · pairs,)."""
        out = np.empty((self.n, 2 * len(pairs)), dtype=np.uint8)
        total = np.zeros(2 * len(pairs), dtype=np.int64)
        words, count = np.empty(len(pairs), dtype=np.uint32), np.zeros(len(total), dtype=np.uint16)
        buffers = words, words.view(np.uint16), count
        _fill_poisson_counts(self.rows, self._draw_words(pairs, attempt), self.levels, self.tail, *buffers, out, total)
        return out, total

    def _draw_words(self, pairs: Array, attempt: int) -> Array:
        return _random_words(~self.key % 2**64, pairs + np.uint64((attempt + 1) << 40))


def _random_words(key: int, numbers: Array) -> Array:
    stream = random_bits(np.full(1, key, dtype=np.uint64) + WEYL_INCREMENT)
    bits = random_bits(stream + (numbers + np.uint64(1)) * WEYL_INCREMENT)
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
def _fill_poisson_counts(rows, pairs, levels, tail, words, halves, count, out, total):  # type: ignore[no-untyped-def]
    """Draw a Poisson count for each row and resample into `out` (n, m) uint8, and add up the counts in `total` (m,).

    `rows` (2, n) and `pairs` (2, m / 2) are the random words of the rows and of the pairs of resamples. Each pair
    shares 32 random bits, of which each resample uses 16. `words` (m / 2,), the `halves` (m,) of these words, and
    `count` (m,), zero before, are buffers.
    """
    l0, l1, l2, l3, l4, l5 = levels[0], levels[1], levels[2], levels[3], levels[4], levels[5]
    n, m = out.shape
    draw_words1, draw_words2 = pairs[0], pairs[1]
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
                        scramble(
                            np.uint32(row_word2 ^ np.uint32(r % 2)), row_word1, draw_words2[r // 2], draw_words1[r // 2]
                        ),
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
def _add_missing_draws(pairs, total, out):  # type: ignore[no-untyped-def]
    """Draw random rows until the total of each resample is n."""
    n = out.shape[0]
    for r in range(out.shape[1]):
        for missing_draw in range(n - total[r]):
            bits = scramble(np.uint32(missing_draw), np.uint32(r % 2), pairs[0, r // 2], pairs[1, r // 2])
            i = (np.uint64(bits) * np.uint64(n)) >> np.uint64(32)
            out[i, r] += np.uint8(1)


_compile_with_fma = partial(compile_kernel, fastmath={"contract"})  # allow fused multiply-add instructions


def argsort_bins(bin_index: Array, n_bins: int) -> Array:
    """Return the stable sort order of bin indices below `n_bins`; 16-bit integers are sorted ten times as fast."""
    return np.argsort(bin_index.astype(np.uint16) if n_bins <= 2**16 else bin_index, kind="stable")


class CellSums:
    """Bootstrap sums Σw, Σwp and Σwy per cell, from the multiplicity of each unit (a row or a cluster).

    The values `w`, `wp` and `wy` (n,) or (n, columns) of each row are added to its cells `cell_index`, of the same
    shape, which are below `n_cells`, times the multiplicity of the row's unit. `unit` (n,) has the unit of each row; by
    default each row is one. An entry is one value of nonzero weight. Entries are sorted by cell, so that the sums of a
    cell stay in the cache.
    """

    def __init__(
        self, cell_index: Array, w: Array, wp: Array, wy: Array, n_cells: int, unit: Array | None = None
    ) -> None:
        nonzero = np.flatnonzero((w != 0).ravel())  # a row outside a subgroup adds nothing
        nonzero_index = cell_index.ravel()[nonzero]
        order = argsort_bins(nonzero_index, n_cells)
        entries = nonzero[order]
        rows = entries // max(1, cell_index.size // max(1, len(cell_index)))
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)  # (entries,) unit of each entry
        self.cell_index = nonzero_index[order].astype(np.uint32)  # (entries,) cell of each entry, increasing
        # (entries, 3) w, wp and wy of each entry
        self.entry_values = np.stack([x.ravel()[entries] for x in (w, wp, wy)], axis=1).astype(np.float64, copy=False)
        self.n_cells = n_cells

    @property
    def n_sums(self) -> int:
        return 3 * self.n_cells

    def sum_cells(self, multiplicities: Array) -> Array:
        """Return Σw, Σwp and Σwy (3, resamples, n_cells) for the `multiplicities` (units, resamples) uint8."""
        out = np.zeros((self.n_cells, 3, multiplicities.shape[1]))
        _sum_cells(np.ascontiguousarray(multiplicities), self.unit, self.cell_index, self.entry_values, out)
        return out.transpose(1, 2, 0)


@compile_inline
def _entry(multiplicities, unit, entry_values, entry):  # type: ignore[no-untyped-def]
    """Return the multiplicities of the unit of an entry, (resamples,), and its w, wp and wy."""
    return multiplicities[unit[entry]], entry_values[entry, 0], entry_values[entry, 1], entry_values[entry, 2]


@_compile_with_fma
def _sum_cells(multiplicities, unit, cell_index, entry_values, out):  # type: ignore[no-untyped-def]
    """Add each entry to all resamples; up to four entries of a cell are added at once, to write its sums less often.

    `multiplicities` is (units, resamples), `unit` and `cell_index` are (entries,), `entry_values` (entries, 3) and
    `out` (cells, 3, resamples).
    """
    entry, n_entries = 0, unit.shape[0]
    while entry < n_entries:
        sum_w, sum_wp, sum_wy = out[cell_index[entry], 0], out[cell_index[entry], 1], out[cell_index[entry], 2]
        times0, w0, wp0, wy0 = _entry(multiplicities, unit, entry_values, entry)
        if entry + 3 < n_entries and cell_index[entry + 3] == cell_index[entry]:
            times1, w1, wp1, wy1 = _entry(multiplicities, unit, entry_values, entry + 1)
            times2, w2, wp2, wy2 = _entry(multiplicities, unit, entry_values, entry + 2)
            times3, w3, wp3, wy3 = _entry(multiplicities, unit, entry_values, entry + 3)
            for r in range(multiplicities.shape[1]):
                t0, t1 = np.float64(times0[r]), np.float64(times1[r])
                t2, t3 = np.float64(times2[r]), np.float64(times3[r])
                sum_w[r] = sum_w[r] + t0 * w0 + t1 * w1 + t2 * w2 + t3 * w3
                sum_wp[r] = sum_wp[r] + t0 * wp0 + t1 * wp1 + t2 * wp2 + t3 * wp3
                sum_wy[r] = sum_wy[r] + t0 * wy0 + t1 * wy1 + t2 * wy2 + t3 * wy3
            entry += 4
        else:
            for r in range(multiplicities.shape[1]):
                multiplicity = np.float64(times0[r])
                sum_w[r] += multiplicity * w0
                sum_wp[r] += multiplicity * wp0
                sum_wy[r] += multiplicity * wy0
            entry += 1


_ROWS_PER_GATHER = 2**14  # number of rows that are put in the order of the cells at a time
_ROWS_PER_TILE = 64  # number of rows whose multiplicities are transposed at a time


def sort_rows_by_cell(cell_index: Array, w: Array, n_cells: int) -> tuple[Array, Array]:
    """Return the rows of nonzero weight in the order of their cells, and the start of each cell, (n_cells + 1,)."""
    nonzero = np.flatnonzero(w != 0)  # a row outside a subgroup adds nothing
    rows = nonzero[argsort_bins(cell_index[nonzero], n_cells)]
    return rows, np.searchsorted(cell_index[rows], np.arange(n_cells + 1))


class VectorCellSums:
    """Bootstrap sums Σw, Σwp and Σwy per cell for vectors p and y, from the multiplicity of each unit.

    A unit is a row or a cluster. The weight `w` (n,) and the vectors `wp` and `wy` (n, m) of each row are added to the
    cell `cell_index` (n,), times the multiplicity of the row's unit. `unit` (n,) has the unit of each row; by default
    each row is one. Rows are sorted by cell, and the values of a row are contiguous. Use this class for many cells with
    few rows each, and `CellSums` for few cells with many rows.
    """

    def __init__(
        self, cell_index: Array, w: Array, wp: Array, wy: Array, n_cells: int, unit: Array | None = None
    ) -> None:
        # The rows of cell c are cell_starts[c] to cell_starts[c + 1], (n_cells + 1,).
        rows, self.cell_starts = sort_rows_by_cell(cell_index, w, n_cells)
        # (rows,) unit of each row, in the order of the cells
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)
        # (rows, 2m + 1) w, wp and wy of each row
        self.vectors = np.concatenate([w[rows, None], wp[rows], wy[rows]], axis=1, dtype=np.float64)

    @property
    def n_sums(self) -> int:
        return (len(self.cell_starts) - 1) * self.vectors.shape[1]

    def sum_cells(self, multiplicities: Array) -> tuple[Array, Array, Array]:
        """Return Σw (resamples, n_cells), Σwp and Σwy (…, m), from multiplicities (units, resamples)."""
        return self.sum_vectors(self.sort_multiplicities(multiplicities))

    def sort_multiplicities(self, multiplicities: Array) -> Array:
        """Return the multiplicities of the rows in sorted order, (resamples, rows), from (units, resamples)."""
        out = np.empty((multiplicities.shape[1], len(self.unit)), dtype=np.uint8)
        _gather_multiplicities(np.ascontiguousarray(multiplicities), self.unit, out)
        return out

    def sum_vectors(self, sorted_multiplicities: Array) -> tuple[Array, Array, Array]:
        """Return Σw (resamples, n_cells), Σwp and Σwy (resamples, n_cells, m), from sorted multiplicities."""
        m = self.vectors.shape[1] // 2
        out = np.zeros((len(sorted_multiplicities), len(self.cell_starts) - 1, 2 * m + 1))
        _sum_vectors(sorted_multiplicities, self.cell_starts, self.vectors, out)
        return out[..., 0], out[..., 1 : m + 1], out[..., m + 1 :]


@compile_kernel
def _gather_multiplicities(multiplicities, unit, out):  # type: ignore[no-untyped-def]
    """Write multiplicities[unit[i], r] to out[r, i], tile by tile, so that both arrays stay in the cache."""
    tile = np.empty((out.shape[0], _ROWS_PER_TILE), dtype=np.uint8)
    for start in range(0, unit.shape[0], _ROWS_PER_TILE):
        m = min(_ROWS_PER_TILE, unit.shape[0] - start)
        for i in range(m):
            row = multiplicities[unit[start + i]]
            for r in range(row.shape[0]):
                tile[r, i] = row[r]
        for r in range(out.shape[0]):
            for i in range(m):
                out[r, start + i] = tile[r, i]


@_compile_with_fma
def _sum_vectors(sorted_multiplicities, cell_starts, vectors, out):  # type: ignore[no-untyped-def]
    """Add all resamples of one cell before the next cell, so that its rows stay in the L1 cache.

    `sorted_multiplicities` is (resamples, rows), `cell_starts` (cells + 1,), `vectors` (rows, 2m + 1) and `out`
    (resamples, cells, 2m + 1).
    """
    for cell in range(cell_starts.shape[0] - 1):
        for r in range(sorted_multiplicities.shape[0]):
            sums = out[r, cell]
            for i in range(cell_starts[cell], cell_starts[cell + 1]):
                multiplicity, vector = np.float64(sorted_multiplicities[r, i]), vectors[i]
                for k in range(vectors.shape[1]):
                    sums[k] += multiplicity * vector[k]


class ResidualNorms:
    """Bootstrap of Σ|Σw(p − y)| over cells for vectors p and y (n, m), from the multiplicity of each unit.

    The other arguments are those of `VectorCellSums`. The sums of a cell exist only while the cell is processed, for
    all resamples at once, so the memory does not depend on the number of cells.
    """

    def __init__(
        self, cell_index: Array, w: Array, p: Array, y: Array, n_cells: int, unit: Array | None = None
    ) -> None:
        # The rows of cell c are cell_starts[c] to cell_starts[c + 1], (n_cells + 1,).
        rows, self.cell_starts = sort_rows_by_cell(cell_index, w, n_cells)
        # (rows,) unit of each row, in the order of the cells
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)
        # (rows, m + 1) w and wp − wy of each row
        self.weight_and_residuals = np.empty((len(rows), p.shape[1] + 1))

        def fill_rows(start: int, stop: int) -> None:
            block = rows[start:stop]
            weight = w[block, None]
            self.weight_and_residuals[start:stop, :1] = weight
            self.weight_and_residuals[start:stop, 1:] = weight * p[block] - weight * y[block]

        map_blocks(fill_rows, len(rows), _ROWS_PER_GATHER)
        sums = sums_by_cell(cell_index[rows], self.weight_and_residuals, n_cells)
        # Observed weight (n_cells,) and mean residual (n_cells, m) of each cell.
        self.weight, self.means = sums[:, 0], np.zeros_like(sums[:, 1:])
        np.divide(sums[:, 1:], sums[:, :1], out=self.means, where=sums[:, :1] > 0)

    def residual_norms(self, multiplicities: Array) -> tuple[Array, Array]:
        """Return the mean norm of the residuals of a cell, and that of their difference from the observed residuals.

        Both are (resamples,), for the `multiplicities` (units, resamples) uint8. The norm is the sum of absolute
        values. The first mean has the resampled weights of the cells, the second one the observed weights.
        """
        out = np.zeros((3, multiplicities.shape[1]))
        _sum_norms(
            np.ascontiguousarray(multiplicities),
            self.unit,
            self.cell_starts,
            self.weight_and_residuals,
            self.weight,
            self.means,
            out,
        )
        with np.errstate(invalid="ignore"):  # a resample without rows has no mean
            return out[1] / out[0], out[2] / self.weight.sum()


@_compile_with_fma
def _sum_norms(multiplicities, unit, cell_starts, weight_and_residuals, weight, means, out):  # type: ignore[no-untyped-def]
    """Add Σw, |Σw(p − y)| and the weighted norm of the centered residuals of every cell to `out` (3, resamples).

    `multiplicities` is (units, resamples), `unit` (rows,), `cell_starts` (cells + 1,), `weight_and_residuals` (rows,
    m + 1), `weight` (cells,) and `means` (cells, m).
    """
    draws, m = multiplicities.shape[1], weight_and_residuals.shape[1]
    sums, inverse_weight, deviation = np.empty((m, draws)), np.empty(draws), np.empty(draws)
    counts0, counts1, counts2, counts3 = np.empty(draws), np.empty(draws), np.empty(draws), np.empty(draws)
    for cell in range(cell_starts.shape[0] - 1):
        sums[:] = 0.0
        i = cell_starts[cell]
        while i < cell_starts[cell + 1]:
            times0, row0 = multiplicities[unit[i]], weight_and_residuals[i]
            if i + 3 < cell_starts[cell + 1]:
                times1, row1 = multiplicities[unit[i + 1]], weight_and_residuals[i + 1]
                times2, row2 = multiplicities[unit[i + 2]], weight_and_residuals[i + 2]
                times3, row3 = multiplicities[unit[i + 3]], weight_and_residuals[i + 3]
                for r in range(draws):  # all columns share the conversion to floating point
                    counts0[r], counts1[r], counts2[r], counts3[r] = times0[r], times1[r], times2[r], times3[r]
                for k in range(m):
                    row, x0, x1, x2, x3 = sums[k], row0[k], row1[k], row2[k], row3[k]
                    for r in range(draws):
                        row[r] = row[r] + counts0[r] * x0 + counts1[r] * x1 + counts2[r] * x2 + counts3[r] * x3
                i += 4
            else:
                for r in range(draws):
                    counts0[r] = times0[r]
                for k in range(m):
                    row, x0 = sums[k], row0[k]
                    for r in range(draws):
                        row[r] += counts0[r] * x0
                i += 1
        for r in range(draws):
            out[0, r] += sums[0, r]
            inverse_weight[r] = 1.0 / sums[0, r] if sums[0, r] > 0.0 else 0.0
            deviation[r] = 0.0
        for k in range(1, m):
            row, mean = sums[k], means[cell, k - 1]
            for r in range(draws):
                out[1, r] += abs(row[r])
                deviation[r] += abs(row[r] * inverse_weight[r] - mean)
        for r in range(draws):
            out[2, r] += weight[cell] * deviation[r] if sums[0, r] > 0.0 else 0.0
