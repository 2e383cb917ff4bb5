"""What are the sums of one column of probabilities against its outcomes, bin by bin?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain, summed
from trueodds.kernels.edges import folded, placed, scale, thresholds
from trueodds.kernels.sort import decode_scores

ROWS = 1024  # placed at a time
_BLOCK = 2**16  # rows worth a thread's while


@compiled
def _of_labels(p, y, label, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """n, Σp and Σp² of the rows of other labels and of this one, by bin, into out (2·(bins + 2), 3)."""
    bin_index, none, sums = np.empty(ROWS, dtype=np.int32), np.zeros(ROWS, dtype=np.int32), no_sums(out.shape[0])
    for start in range(0, p.shape[0], ROWS):
        block, labels = p[start : start + ROWS], y[start : start + ROWS]
        m = block.shape[0]
        placed(block, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(labels[i] == label)
        scattered(block, m, bin_index, sums)
    add_sums(sums, out)


@compiled
def _of_keys(keys, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """The same of rows that are keys (see `sort.row_keys`): those that did not come, and those that came."""
    bin_index, none, sums = np.empty(ROWS, dtype=np.int32), np.zeros(ROWS, dtype=np.int32), no_sums(out.shape[0])
    bits = np.empty(ROWS, dtype=keys.dtype)
    scores = bits.view(bounds.dtype)
    for start in range(0, keys.shape[0], ROWS):
        block = keys[start : start + ROWS]
        m = block.shape[0]
        for i in range(m):
            bits[i] = block[i] >> 1
        placed(scores, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(block[i] & 1)
        scattered(scores, m, bin_index, sums)
    add_sums(sums, out)


@compiled
def no_sums(size):  # type: ignore[no-untyped-def]
    """What `scattered` adds to: how many, Σp and Σp² in each of so many slots."""
    return np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)


@compiled
def scattered(p, m, bin_index, sums):  # type: ignore[no-untyped-def]
    """Adds each score to its slot."""
    count, one, two = sums
    for i in range(m):
        s, x = np.uint32(bin_index[i]), np.float64(p[i])
        count[s] += 1
        one[s] += x
        two[s] += x * x


@compiled
def add_sums(sums, out):  # type: ignore[no-untyped-def]
    """Adds what was scattered to out (slots, 3)."""
    count, one, two = sums
    for t in range(out.shape[0]):
        out[t, 0] += np.float64(count[t])
        out[t, 1] += one[t]
        out[t, 2] += two[t]


@compiled
def _of_rows(p, y, w, n, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """n, Σw, Σwp, Σwy and the sums of a View by bin, into out (bins + 2, 10)."""
    bin_index, none = np.empty(ROWS, dtype=np.int32), np.zeros(ROWS, dtype=np.int32)
    for start in range(0, p.shape[0], ROWS):
        m = min(ROWS, p.shape[0] - start)
        block = p[start : start + m]
        placed(block, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            s = np.uint32(bin_index[i])
            a, x, z = w[start + i], np.float64(block[i]), y[start + i]
            out[s, 0] += n[start + i]
            out[s, 1] += a
            out[s, 2] += a * x
            out[s, 3] += a * z
            out[s, 4] += a * a
            out[s, 5] += a * x * x
            out[s, 6] += a * x * z
            out[s, 7] += a * z * z
            out[s, 8] += a * a * x * (1.0 - x)
            out[s, 9] += a * a * (z - x) * (z - x)


def label_sums(p: Array, y: Array, label: int, edges: Array, closed: str) -> Array:
    """n, Σp and Σp², (bins, 2, 3): rows of another label than this, and its own. p (n,), y (n,) int64."""
    bounds, bins, by = _cells(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_labels(plain(p[a:b]), plain(y[a:b]), label, bounds, bins, by, out)

    table = summed(add, len(p), (2 * (bins + 2), 3), block=_BLOCK)
    return folded(table.reshape(bins + 2, 6)).reshape(bins, 2, 3)


def key_sums(keys: Array, edges: Array, closed: str) -> Array:
    """n, Σp and Σp², (bins, 2, 3): rows that did not come and rows that came, given as keys (see `sort.row_keys`) in any order."""
    bounds, bins, by = _cells(decode_scores(keys[:0]), edges, closed)
    keys = plain(keys)
    table = summed(
        lambda a, b, out: _of_keys(keys[a:b], bounds, bins, by, out), len(keys), (2 * (bins + 2), 3), block=_BLOCK
    )
    return folded(table.reshape(bins + 2, 6)).reshape(bins, 2, 3)


def row_sums(p: Array, y: Array, w: Array, n: Array, edges: Array, closed: str) -> Array:
    """n, Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)², (bins, 10); all but p float64."""
    bounds, bins, by = _cells(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _BLOCK):
            b = min(a + _BLOCK, stop)
            _of_rows(plain(p[a:b]), plain(y[a:b]), plain(w[a:b]), plain(n[a:b]), bounds, bins, by, out)

    return folded(summed(add, len(p), (bins + 2, 10), block=_BLOCK))


def _cells(p: Array, edges: Array, closed: str) -> tuple[Array, int, float]:
    dtype = np.float64 if p.dtype == np.float64 else np.float32
    return thresholds(edges, closed, dtype), len(edges) - 1, scale(edges, closed, dtype)
