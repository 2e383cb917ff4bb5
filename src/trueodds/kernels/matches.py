"""Which pairs of rows have the same label, in every draw of labels at once?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain

HALF = 2**21  # a similarity is a whole number of 2⁻⁴², held as two halves
RUN = 512  # pairs whose halves add up below 2³¹
DRAWS = 1024  # draws whose sums stay in the nearest cache
NOTHING = np.int32(0)


@compiled
def _if(same, x):  # type: ignore[no-untyped-def]
    return x if same else NOTHING


@compiled
def _run(own_labels, labels, start, stop, first, last, high, low, upper, lower):  # type: ignore[no-untyped-def]
    """Adds the halves of rows start to stop where a row's label is `own_labels`, to each draw from first to last."""
    j = start
    while j + 4 <= stop:  # four at a time, so that the sums are read and written once for four
        a, b, c, d = (
            labels[j, first:last],
            labels[j + 1, first:last],
            labels[j + 2, first:last],
            labels[j + 3, first:last],
        )
        q = j - start
        h0, h1, h2, h3 = high[q], high[q + 1], high[q + 2], high[q + 3]
        l0, l1, l2, l3 = low[q], low[q + 1], low[q + 2], low[q + 3]
        for r in range(last - first):
            y = own_labels[r]
            s0, s1, s2, s3 = a[r] == y, b[r] == y, c[r] == y, d[r] == y
            upper[r] += _if(s0, h0) + _if(s1, h1) + _if(s2, h2) + _if(s3, h3)
            lower[r] += _if(s0, l0) + _if(s1, l1) + _if(s2, l2) + _if(s3, l3)
        j += 4
    while j < stop:
        a = labels[j, first:last]
        h0, l0 = high[j - start], low[j - start]
        for r in range(last - first):
            upper[r] += _if(a[r] == own_labels[r], h0)
            lower[r] += _if(a[r] == own_labels[r], l0)
        j += 1


@compiled
def _matches(k, top, start, blocks, labels, out):  # type: ignore[no-untyped-def]
    high, low = np.empty(RUN, dtype=np.int32), np.empty(RUN, dtype=np.int32)
    upper, lower = np.empty(DRAWS, dtype=np.int32), np.empty(DRAWS, dtype=np.int32)
    bottom = top + k.shape[0]
    for tile in range(start, bottom, RUN):  # labels of so many rows stay near while all rows of the strip meet them
        for first in range(0, labels.shape[1], DRAWS):
            last = min(first + DRAWS, labels.shape[1])
            for i in range(max(top, tile + 1), bottom):
                begin, end = max(tile, blocks[i]), min(tile + RUN, i)
                if begin >= end:
                    continue
                for j in range(begin, end):
                    x = k[i - top, j - start] * HALF
                    integer_part = np.int32(x)
                    high[j - begin] = integer_part
                    low[j - begin] = np.int32((x - integer_part) * HALF + 0.5)
                upper[:] = 0
                lower[:] = 0
                _run(labels[i, first:last], labels, begin, end, first, last, high, low, upper, lower)
                for r in range(last - first):
                    out[0, first + r] += upper[r]
                    out[1, first + r] += lower[r]


@compiled
def _read(table, labels, first, last, out):  # type: ignore[no-untyped-def]
    for i in range(labels.shape[0]):
        observed = table[i, labels[i, 0]]
        for r in range(first, last):
            out[r - first] += table[i, labels[i, r]] - observed


def add_matches(k: Array, top: int, start: int, blocks: Array, labels: Array, out: Array) -> None:
    """Adds to `out` (2, draws), int64, the similarities of pairs with the same label, for the rows of one strip.

    `k` (rows, earlier) in [0, 1] holds the similarities of rows `top`, `top` + 1, … with rows `start`, `start` + 1, …;
    row i meets the rows from `blocks[i]` to i − 1. `labels` (n, draws) of small whole numbers. The sums are whole
    numbers, upper and lower halves apart (see `difference`): equal in any order, and equal labels give equal sums.
    """
    _matches(plain(k), top, start, blocks, plain(labels), out)


def differences(sums: Array) -> Array:
    """What halves (2, draws) say of each draw but the first, less the first: exactly 0 for the same pairs."""
    upper, lower = (half[1:] - half[0] for half in sums)
    return np.asarray((upper * float(HALF) + lower) / float(HALF) ** 2)


def read(table: Array, labels: Array) -> Array:
    """Σ_i table[i, label] of each draw but the first, less the first, for labels (n, draws)."""
    table, labels = plain(table), plain(labels)

    def work(first: int, last: int) -> Array:
        out = np.zeros(last - first)
        _read(table, labels, first + 1, last + 1, out)
        return out

    return np.concatenate([np.empty(0), *in_blocks(work, labels.shape[1] - 1, 256)])
