"""What are the sums of every class against the rest, bin by bin, straight from the rows?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain, summed
from trueodds.kernels.ahead import LINE, fetch
from trueodds.kernels.edges import folded, placed, scale, thresholds

_BUFFER = 512  # values placed at a time: they stay in the nearest cache
_MANY = 256  # classes beyond which most values lie in the first bin, where nothing has to be looked up
_RUN = 128  # values looked at together for one beyond the first bin
_BLOCK = 2**18  # values worth a thread's while
_VALUES = 2**18  # copied at a time where the rows do not lie one behind the other


@compiled
def _every(P, y, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """n, Σp, Σy and Σpy of every class and bin into out (K·(bins + 2), 4)."""
    n, k = P.shape
    size = bins + 2
    values = P.reshape(-1)
    rows = max(1, _BUFFER // k)
    base, bin_index = np.empty(rows * k, dtype=np.int32), np.empty(rows * k, dtype=np.int32)
    count, total = np.zeros(k * size, dtype=np.int64), np.zeros(k * size)
    for j in range(rows * k):
        base[j] = (j % k) * size
    for start in range(0, n, rows):
        m = min(rows, n - start)
        block = values[start * k : (start + m) * k]
        for j in range((start + 2 * m) * k, (start + 3 * m) * k, LINE // P.itemsize):  # the rows after the next
            fetch(values, j)
        placed(block, m * k, bounds, bins, by, base, bin_index)
        for j in range(m * k):
            s = np.uint32(bin_index[j])
            count[s] += 1
            total[s] += np.float64(block[j])
        for i in range(m):
            j = i * k + y[start + i]
            s = np.uint32(bin_index[j])
            out[s, 2] += 1.0
            out[s, 3] += np.float64(block[j])
    for t in range(k * size):
        out[t, 0] += np.float64(count[t])
        out[t, 1] += total[t]


@compiled
def _bin(x, bounds):  # type: ignore[no-untyped-def]
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x > bounds[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _every_of_many(P, bits, y, bounds, limit, bins, out):  # type: ignore[no-untyped-def]
    """The same where few values of a row lie beyond the first bin: `limit` are the bits of its upper bound."""
    n, k = P.shape
    size = bins + 2
    low, beyond_first = np.zeros(k), np.zeros(k, dtype=np.int64)
    for i in range(n):
        row, word = P[i], bits[i]
        for c in range(k):
            low[c] += np.float64(row[c]) if word[c] <= limit else 0.0
        for first in range(0, k, _RUN):
            last = min(k, first + _RUN)
            largest = limit
            for c in range(first, last):
                largest = max(largest, word[c])
            if largest > limit:
                for c in range(first, last):
                    if word[c] > limit:
                        t = c * size + 1 + _bin(row[c], bounds)
                        out[t, 0] += 1.0
                        out[t, 1] += np.float64(row[c])
                        beyond_first[c] += 1
        t = y[i] * size + 1 + _bin(row[y[i]], bounds)
        out[t, 2] += 1.0
        out[t, 3] += np.float64(row[y[i]])
    for c in range(k):
        out[c * size + 1, 0] += np.float64(n - beyond_first[c])
        out[c * size + 1, 1] += low[c]


def class_sums(P: Array, y: Array, edges: Array, closed: str) -> Array:
    """n, Σp, Σy and Σpy of every class and bin, (K, bins, 4), for P (n, K) and labels y (n,) int64."""
    n, k = P.shape
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    bounds, by, bins = thresholds(edges, closed, dtype), scale(edges, closed, dtype), len(edges) - 1
    words = np.int64 if dtype == np.float64 else np.int32
    limit = bounds[:1].view(words)[0] if len(bounds) else None
    ready = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    step = n if ready else max(1, _VALUES // k)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, step):
            b = min(a + step, stop)
            block, labels = plain(P[a:b]), plain(y[a:b])
            if k > _MANY and limit is not None and limit >= 0:
                _every_of_many(block, plain(block.view(words)), labels, bounds, limit, bins, out)
            else:
                _every(block, labels, bounds, bins, by, out)

    return folded(summed(add, n, (k * (bins + 2), 4), block=max(1, _BLOCK // k)).reshape(k, bins + 2, 4))
