"""Which cells are occupied, and which are those of two tables together? Cells by rising number, with their sums."""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compiled


@compiled
def occupied(table_n, table):  # type: ignore[no-untyped-def]
    """The rows of a table with table_n > 0: their numbers, that count and their sums; leaves zeros."""
    size = 0
    for i in range(table_n.shape[0]):
        size += table_n[i] > 0
    index, n = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    sums = np.empty((size, table.shape[1]))
    m = 0
    for i in range(table_n.shape[0]):
        if table_n[i] > 0:
            index[m], n[m] = i, table_n[i]
            table_n[i] = 0
            for c in range(table.shape[1]):
                sums[m, c] = table[i, c]
                table[i, c] = 0.0
            m += 1
    return index, n, sums


@compiled
def merged(a, a_n, a_sums, b, b_n, b_sums):  # type: ignore[no-untyped-def]
    """Two tables with rising numbers as one; rows of the same number are added."""
    at_a, at_b = np.empty(a.shape[0], dtype=np.uint32), np.empty(b.shape[0], dtype=np.uint32)
    i = j = m = 0
    while i < a.shape[0] and j < b.shape[0]:  # without a branch, since nobody can guess which number comes next
        x, y = a[i], b[j]
        at_a[i], at_b[j] = m, m
        i += x <= y
        j += y <= x
        m += 1
    for rest in range(i, a.shape[0]):
        at_a[rest] = m + rest - i
    for rest in range(j, b.shape[0]):
        at_b[rest] = m + rest - j
    size = m + a.shape[0] - i + b.shape[0] - j
    index, n = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    sums = np.zeros((size, a_sums.shape[1]))
    _put(at_a, a, a_n, a_sums, index, n, sums)
    _put(at_b, b, b_n, b_sums, index, n, sums)
    return index, n, sums


@compiled
def _put(at, index, n, sums, into_index, into_n, into_sums):  # type: ignore[no-untyped-def]
    for i in range(at.shape[0]):
        m = at[i]
        into_index[m] = index[i]
        into_n[m] += n[i]
        for c in range(sums.shape[1]):
            into_sums[m, c] += sums[i, c]
