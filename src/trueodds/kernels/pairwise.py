"""Compute distances between all pairs of rows, and quadratic forms Σ k_ij x_i·x_j of a similarity matrix k.

The matrix is processed in strips, which limits the memory that it needs: a strip consists of consecutive rows of its
lower triangle, `first_row`, `first_row` + 1, …, with the columns of all preceding rows.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, map_blocks


@compile_kernel
def _pairwise_distances(P, Q, absolute, out):  # type: ignore[no-untyped-def]
    """Write Σ|p − q| or Σ(p − q)² between the rows of P (a, m) and the columns of Q (m, b) to `out` (a, b)."""
    for i in range(P.shape[0]):
        row = out[i]
        row[:] = 0.0
        for c in range(P.shape[1]):
            p_ic = P[i, c]
            # The inner loop is contiguous and adds to separate numbers, so that it is vectorized.
            if absolute:
                for j in range(row.shape[0]):
                    row[j] += abs(p_ic - Q[c, j])
            else:
                for j in range(row.shape[0]):
                    row[j] += (p_ic - Q[c, j]) * (p_ic - Q[c, j])


@compile_kernel
def _sum_exponential_kernel(values, decay, out):  # type: ignore[no-untyped-def]
    for draw in range(values.shape[0]):
        kernel_sum = previous = total = 0.0
        for i in range(values.shape[1]):
            kernel_sum = decay[i] * (kernel_sum + previous)
            previous = values[draw, i]
            total += previous * kernel_sum
        out[draw] = 2 * total


@compile_reordering
def _strip_matrix_product(k, XT, first_row, out):  # type: ignore[no-untyped-def]
    """Add the products of similarities k (rows, n) with preceding rows to both rows of each pair, in `out` (m, n)."""
    for r in range(k.shape[0]):
        i = first_row + r
        row = k[r, :i]
        for c in range(XT.shape[0]):
            x_before, out_before, x_i = XT[c, :i], out[c, :i], XT[c, i]
            total = 0.0
            for j in range(i):
                total += row[j] * x_before[j]
            out[c, i] += total
            for j in range(i):
                out_before[j] += row[j] * x_i


@compile_reordering
def _sum_pair_products(k, XT, first_row):  # type: ignore[no-untyped-def]
    """Return Σ k_ij x_i·x_j over the pairs j < i of a strip k (rows, n), with x the columns of XT (m, n)."""
    total = 0.0
    for r in range(k.shape[0]):
        i = first_row + r
        row = k[r, :i]
        for c in range(XT.shape[0]):
            x_before = XT[c, :i]
            weighted_sum = 0.0
            for j in range(i):
                weighted_sum += row[j] * x_before[j]
            total += weighted_sum * XT[c, i]
    return total


def pairwise_distances(P: Array, Q: Array, *, absolute: bool) -> Array:
    """Return Σ|p − q| (`absolute`) or Σ(p − q)² between rows of P (a, m) and Q (b, m), (a, b); 0 for equal rows."""
    out = np.empty((len(P), len(Q)))
    _pairwise_distances(np.ascontiguousarray(P), np.ascontiguousarray(Q.T), absolute, out)
    return out


def sum_exponential_kernel(values: Array, decay: Array) -> Array:
    """Return Σ over i ≠ j of e_i e_j k_ij for each row e of `values` (draws, n).

    k_ij is the product of the decays between i and j, where `decay[i]` lies between i − 1 and i. This is the
    exponential kernel of sorted numbers, in O(n) instead of O(n²).
    """
    values = np.ascontiguousarray(values)

    def sum_draws(start: int, stop: int) -> Array:
        out = np.empty(stop - start)
        _sum_exponential_kernel(values[start:stop], decay, out)
        return out

    return np.concatenate(list(map_blocks(sum_draws, len(values), 16)))


def strip_matrix_product(k: Array, XT: Array, first_row: int) -> Array:
    """Return what the pairs of one strip contribute to the product Kx, (m, n) for all n rows, without the diagonal.

    `k` (rows, n) has the similarities of rows `first_row`, `first_row` + 1, …; those with preceding rows are used, and
    each pair contributes to both of its rows. Summed over all strips it is Σ_{j≠i} k_ij x_j, with x the columns of XT
    (m, n).
    """
    out = np.zeros(XT.shape)
    _strip_matrix_product(as_plain_array(k), as_plain_array(XT), first_row, out)
    return out


def sum_pair_products(k: Array, XT: Array, first_row: int) -> float:
    """Return Σ k_ij x_i·x_j over the pairs j < i of a strip, each counted once."""
    return float(_sum_pair_products(as_plain_array(k), as_plain_array(XT), first_row))
