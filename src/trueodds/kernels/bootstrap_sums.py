"""Sum weights, predictions and outcomes per cell of each bootstrap resample, given the multiplicities of the rows."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel


def argsort_bins(bin_index: Array, n_bins: int) -> Array:
    """Return the stable sort order of bin indices below `n_bins`; 16-bit integers are sorted ten times as fast."""
    return np.argsort(bin_index.astype(np.uint16) if n_bins <= 2**16 else bin_index, kind="stable")


class Resampler:
    """Bootstrap sums Σw, Σwp and Σwy per cell, from the multiplicity of each unit (a row or a cluster).

    The values `w`, `wp` and `wy` (n, columns) of each row are added to the cells with the indices `cells` (n, columns),
    times the multiplicity of the row's unit. `unit` (n,) has the unit of each row; by default each row is one. `size`
    is the number of cells. Entries are sorted by cell, so that the sums of a cell stay in the cache.
    """

    def __init__(self, cells: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> None:
        nonzero = np.flatnonzero((w != 0).ravel())  # a row outside a subgroup adds nothing
        bin_index = cells.ravel()[nonzero]
        order = argsort_bins(bin_index, size)
        entries = nonzero[order]
        rows = entries // cells.shape[1]
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)
        self.bin_index = bin_index[order].astype(np.uint32)
        self.entry_sums = np.stack([x.ravel()[entries] for x in (w, wp, wy)], axis=1).astype(np.float64)
        self.size = size

    def sum_cells(self, times: Array) -> Array:
        """Return Σw, Σwp and Σwy (3, resamples, size) for the multiplicities `times` (units, resamples) uint8."""
        out = np.zeros((self.size, 3, times.shape[1]))
        _add_cells(np.ascontiguousarray(times), self.unit, self.bin_index, self.entry_sums, out)
        return out.transpose(1, 2, 0)


def _sum_cells(times, unit, bin_index, entry_sums, out):  # type: ignore[no-untyped-def]
    """Add each entry to all resamples; four entries of one cell are added at once, so its sums are written once."""
    entry, n_entries = 0, unit.shape[0]
    while entry < n_entries:
        sum_w, sum_wp, sum_wy = out[bin_index[entry], 0], out[bin_index[entry], 1], out[bin_index[entry], 2]
        times0, w0, wp0, wy0 = times[unit[entry]], entry_sums[entry, 0], entry_sums[entry, 1], entry_sums[entry, 2]
        if entry + 3 < n_entries and bin_index[entry + 3] == bin_index[entry]:
            times1, w1, wp1, wy1 = (
                times[unit[entry + 1]],
                entry_sums[entry + 1, 0],
                entry_sums[entry + 1, 1],
                entry_sums[entry + 1, 2],
            )
            times2, w2, wp2, wy2 = (
                times[unit[entry + 2]],
                entry_sums[entry + 2, 0],
                entry_sums[entry + 2, 1],
                entry_sums[entry + 2, 2],
            )
            times3, w3, wp3, wy3 = (
                times[unit[entry + 3]],
                entry_sums[entry + 3, 0],
                entry_sums[entry + 3, 1],
                entry_sums[entry + 3, 2],
            )
            for r in range(times.shape[1]):
                t0, t1, t2, t3 = (
                    np.float64(times0[r]),
                    np.float64(times1[r]),
                    np.float64(times2[r]),
                    np.float64(times3[r]),
                )
                sum_w[r] = sum_w[r] + t0 * w0 + t1 * w1 + t2 * w2 + t3 * w3
                sum_wp[r] = sum_wp[r] + t0 * wp0 + t1 * wp1 + t2 * wp2 + t3 * wp3
                sum_wy[r] = sum_wy[r] + t0 * wy0 + t1 * wy1 + t2 * wy2 + t3 * wy3
            entry += 4
        else:
            for r in range(times.shape[1]):
                multiplicity = np.float64(times0[r])
                sum_w[r] += multiplicity * w0
                sum_wp[r] += multiplicity * wp0
                sum_wy[r] += multiplicity * wy0
            entry += 1


_add_cells = compile_kernel(_sum_cells, fastmath={"contract"})  # allow fused multiply-add instructions


_ROWS_PER_TILE = 64  # number of rows whose multiplicities are transposed at a time


def sort_rows_by_cell(cell: Array, w: Array, size: int) -> tuple[Array, Array]:
    """Return the rows of nonzero weight in the order of their cells, and the start of each cell, (size + 1,)."""
    nonzero = np.flatnonzero(w != 0)  # a row outside a subgroup adds nothing
    rows = nonzero[argsort_bins(cell[nonzero], size)]
    return rows, np.searchsorted(cell[rows], np.arange(size + 1))


class VectorResampler:
    """Bootstrap sums Σw, Σwp and Σwy per cell for vectors p and y, from the multiplicity of each unit.

    A unit is a row or a cluster. The weight `w` (n,) and the vectors `wp` and `wy` (n, m) of each row are added to the
    cell `cell` (n,), times the multiplicity of the row's unit. `unit` (n,) has the unit of each row; by default each
    row is one. Rows are sorted by cell, and the values of a row are contiguous. Use this class for many cells with few
    rows each, and `Resampler` for few cells with many rows.
    """

    def __init__(self, cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> None:
        rows, self.first = sort_rows_by_cell(cell, w, size)
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)
        self.vectors = np.concatenate([w[rows, None], wp[rows], wy[rows]], axis=1, dtype=np.float64)

    @property
    def n_sums(self) -> int:
        """Number of sums per resample."""
        return (len(self.first) - 1) * self.vectors.shape[1]

    def sort_multiplicities(self, times: Array) -> Array:
        """Return the multiplicities of the rows in sorted order, (resamples, rows) uint8.

        `times` (units, resamples) uint8 are the multiplicities of the units.
        """
        out = np.empty((times.shape[1], len(self.unit)), dtype=np.uint8)
        _gather_multiplicities(np.ascontiguousarray(times), self.unit, out)
        return out

    def sum_vectors(self, times: Array) -> tuple[Array, Array, Array]:
        """Return Σw (resamples, size), Σwp and Σwy (resamples, size, m).

        `times` comes from `sort_multiplicities`.
        """
        m = self.vectors.shape[1] // 2
        out = np.zeros((len(times), len(self.first) - 1, 2 * m + 1))
        _add_vectors(times, self.first, self.vectors, out)
        return out[..., 0], out[..., 1 : m + 1], out[..., m + 1 :]


@compile_kernel
def _gather_multiplicities(times, unit, out):  # type: ignore[no-untyped-def]
    """Write times[unit[i], r] to out[r, i], tile by tile, so that both arrays stay in the cache."""
    tile = np.empty((out.shape[0], _ROWS_PER_TILE), dtype=np.uint8)
    for start in range(0, unit.shape[0], _ROWS_PER_TILE):
        m = min(_ROWS_PER_TILE, unit.shape[0] - start)
        for i in range(m):
            row = times[unit[start + i]]
            for r in range(row.shape[0]):
                tile[r, i] = row[r]
        for r in range(out.shape[0]):
            for i in range(m):
                out[r, start + i] = tile[r, i]


def _sum_vectors(times, first, vectors, out):  # type: ignore[no-untyped-def]
    """Add all resamples of one cell before the next cell, so that its rows stay in the L1 cache."""
    for cell in range(first.shape[0] - 1):
        for r in range(times.shape[0]):
            sums = out[r, cell]
            for i in range(first[cell], first[cell + 1]):
                multiplicity, vector = np.float64(times[r, i]), vectors[i]
                for k in range(vectors.shape[1]):
                    sums[k] += multiplicity * vector[k]


_add_vectors = compile_kernel(_sum_vectors, fastmath={"contract"})  # allow fused multiply-add instructions


class ResidualResampler:
    """Bootstrap of Σ|Σw(p − y)| over cells for vectors p and y, from the multiplicity of each unit.

    The arguments are those of `VectorResampler`. The sums of a cell exist only while the cell is processed, for all
    resamples at once, so the memory does not depend on the number of cells.
    """

    def __init__(self, cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> None:
        rows, self.first = sort_rows_by_cell(cell, w, size)
        self.unit = (rows if unit is None else unit[rows]).astype(np.uint32)
        self.columns = np.concatenate([w[rows, None], wp[rows] - wy[rows]], axis=1, dtype=np.float64)
        sums = np.stack([np.bincount(cell[rows], column, size) for column in self.columns.T], axis=1)
        self.weight, self.means = sums[:, 0], np.zeros_like(sums[:, 1:])
        np.divide(sums[:, 1:], sums[:, :1], out=self.means, where=sums[:, :1] > 0)

    def residual_norms(self, times: Array) -> tuple[Array, Array]:
        """Return the mean norm of the residuals of a cell, and that of their difference from the observed residuals.

        Both are (resamples,), for the multiplicities `times` (units, resamples) uint8. The norm is the sum of absolute
        values. The first mean has the resampled weights of the cells, the second one the observed weights.
        """
        out = np.zeros((3, times.shape[1]))
        _add_norms(np.ascontiguousarray(times), self.unit, self.first, self.columns, self.weight, self.means, out)
        with np.errstate(invalid="ignore"):  # a resample without rows has no mean
            return out[1] / out[0], out[2] / self.weight.sum()


def _sum_norms(times, unit, first, columns, weight, means, out):  # type: ignore[no-untyped-def]
    """Add Σw, |Σw(p − y)| and the weighted norm of the centered residuals of every cell to `out` (3, resamples)."""
    draws, m = times.shape[1], columns.shape[1]
    sums, inverse_weight, deviation = np.empty((m, draws)), np.empty(draws), np.empty(draws)
    counts0, counts1, counts2, counts3 = np.empty(draws), np.empty(draws), np.empty(draws), np.empty(draws)
    for cell in range(first.shape[0] - 1):
        sums[:] = 0.0
        i = first[cell]
        while i < first[cell + 1]:
            times0, row0 = times[unit[i]], columns[i]
            if i + 3 < first[cell + 1]:
                times1, row1 = times[unit[i + 1]], columns[i + 1]
                times2, row2 = times[unit[i + 2]], columns[i + 2]
                times3, row3 = times[unit[i + 3]], columns[i + 3]
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


_add_norms = compile_kernel(_sum_norms, fastmath={"contract"})  # allow fused multiply-add instructions
