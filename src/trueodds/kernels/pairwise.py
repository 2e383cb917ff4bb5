"""Compute distances and quadratic forms Σ k_ij x_i·x_j over pairs of rows, and similarities of pairs with equal labels.

A similarity matrix k is processed in strips, which limits the memory that it needs: a strip consists of consecutive
rows of its lower triangle, `first_row`, `first_row` + 1, …, with the columns of all preceding rows.

Kernel statistics, such as the squared kernel calibration error, sum the similarities of pairs with the same label for
every null draw of the labels. They are added as integers, so that the result does not depend on the order of the pairs:
a similarity in [0, 1] is rounded to a multiple of 2⁻⁴², and its upper and lower 21 bits (halves) are added separately.
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


HALF_SCALE = 2**21  # each half of a similarity has 21 bits
PAIRS_PER_RUN = 512  # number of pairs whose halves sum to less than 2³¹
DRAWS_PER_TILE = 1024  # number of draws whose sums stay in the L1 cache
ZERO = np.int32(0)


@compile_kernel
def _value_if(condition, value):  # type: ignore[no-untyped-def]
    return value if condition else ZERO


@compile_kernel
def _add_run_of_pairs(own_labels, labels, start, stop, first, last, high_halves, low_halves, upper, lower):  # type: ignore[no-untyped-def]
    """Add the halves of the pairs of a row with the rows start..stop−1 that have the same label.

    `own_labels` are the labels of the row in the draws first..last−1. `high_halves` and `low_halves` belong to the
    pairs, and `upper` and `lower` are the sums per draw.
    """
    j = start
    while j + 4 <= stop:  # four rows at a time, so that the sums are read and written once for four
        labels0, labels1, labels2, labels3 = (
            labels[j, first:last],
            labels[j + 1, first:last],
            labels[j + 2, first:last],
            labels[j + 3, first:last],
        )
        pair = j - start
        high0, high1, high2, high3 = (
            high_halves[pair],
            high_halves[pair + 1],
            high_halves[pair + 2],
            high_halves[pair + 3],
        )
        low0, low1, low2, low3 = low_halves[pair], low_halves[pair + 1], low_halves[pair + 2], low_halves[pair + 3]
        for r in range(last - first):
            own_label = own_labels[r]
            same0, same1, same2, same3 = (
                labels0[r] == own_label,
                labels1[r] == own_label,
                labels2[r] == own_label,
                labels3[r] == own_label,
            )
            upper[r] += (
                _value_if(same0, high0) + _value_if(same1, high1) + _value_if(same2, high2) + _value_if(same3, high3)
            )
            lower[r] += (
                _value_if(same0, low0) + _value_if(same1, low1) + _value_if(same2, low2) + _value_if(same3, low3)
            )
        j += 4
    while j < stop:
        labels0 = labels[j, first:last]
        high0, low0 = high_halves[j - start], low_halves[j - start]
        for r in range(last - first):
            upper[r] += _value_if(labels0[r] == own_labels[r], high0)
            lower[r] += _value_if(labels0[r] == own_labels[r], low0)
        j += 1


@compile_kernel
def _add_label_matches(k, first_row, first_partner, blocks, labels, out):  # type: ignore[no-untyped-def]
    high_halves, low_halves = np.empty(PAIRS_PER_RUN, dtype=np.int32), np.empty(PAIRS_PER_RUN, dtype=np.int32)
    upper, lower = np.empty(DRAWS_PER_TILE, dtype=np.int32), np.empty(DRAWS_PER_TILE, dtype=np.int32)
    last_row = first_row + k.shape[0]
    # The labels of a tile stay in the cache for all rows of the strip.
    for tile in range(first_partner, last_row, PAIRS_PER_RUN):
        for first in range(0, labels.shape[1], DRAWS_PER_TILE):
            last = min(first + DRAWS_PER_TILE, labels.shape[1])
            for i in range(max(first_row, tile + 1), last_row):
                pairs_start, pairs_stop = max(tile, blocks[i]), min(tile + PAIRS_PER_RUN, i)
                if pairs_start >= pairs_stop:
                    continue
                for j in range(pairs_start, pairs_stop):
                    scaled = k[i - first_row, j - first_partner] * HALF_SCALE
                    integer_part = np.int32(scaled)
                    high_halves[j - pairs_start] = integer_part
                    low_halves[j - pairs_start] = np.int32((scaled - integer_part) * HALF_SCALE + 0.5)
                upper[:] = 0
                lower[:] = 0
                _add_run_of_pairs(
                    labels[i, first:last],
                    labels,
                    pairs_start,
                    pairs_stop,
                    first,
                    last,
                    high_halves,
                    low_halves,
                    upper,
                    lower,
                )
                for r in range(last - first):
                    out[0, first + r] += upper[r]
                    out[1, first + r] += lower[r]


@compile_kernel
def _sum_label_differences(table, labels, first, last, out):  # type: ignore[no-untyped-def]
    """Add Σ_i table[i, label] of the draws first..last−1, minus that of draw 0, to `out` (last − first,)."""
    for i in range(labels.shape[0]):
        observed = table[i, labels[i, 0]]
        for r in range(first, last):
            out[r - first] += table[i, labels[i, r]] - observed


def add_label_matches(k: Array, first_row: int, first_partner: int, blocks: Array, labels: Array, out: Array) -> None:
    """Add the similarities of pairs with the same label to `out`, for the rows of one strip of the similarity matrix.

    `k` are the similarities in [0, 1] of the rows from `first_row` on (rows) with those from `first_partner` on. Row i
    is paired with the rows from `blocks[i]` to i − 1. The labels (n, draws) are small integers. `out` (2, draws) int64
    receives the sums of the upper and of the lower halves, for `match_differences`.
    """
    _add_label_matches(as_plain_array(k), first_row, first_partner, blocks, as_plain_array(labels), out)


def match_differences(sums: Array) -> Array:
    """Return the similarity of each draw minus that of the first; exactly 0 if the same pairs have equal labels."""
    upper, lower = (half[1:] - half[0] for half in sums)
    return np.asarray((upper * float(HALF_SCALE) + lower) / float(HALF_SCALE) ** 2)


def label_differences(table: Array, labels: Array) -> Array:
    """Return Σ_i table[i, label] of each draw minus that of the first draw, (draws − 1,), for labels (n, draws)."""
    table, labels = as_plain_array(table), as_plain_array(labels)

    def sum_draws(first: int, last: int) -> Array:
        out = np.zeros(last - first)
        _sum_label_differences(table, labels, first + 1, last + 1, out)
        return out

    return np.concatenate([np.empty(0), *map_blocks(sum_draws, labels.shape[1] - 1, 256)])
