"""Sum the similarities of pairs of rows that have the same label, for many draws of the labels.

Kernel statistics, such as the squared kernel calibration error, need these sums for every null draw of the labels. They
are added as integers, so that the result does not depend on the order of the pairs: a similarity in [0, 1] is rounded
to a multiple of 2⁻⁴², and its upper and lower 21 bits (halves) are added separately.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

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
