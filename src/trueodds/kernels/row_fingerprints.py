"""Sum hashes of rows, so that sets of rows can be compared in any order, and count their labels, by key."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

_MIN_ROWS_PER_TASK = 2**17
_MAX_TASKS = 16


def sum_fingerprints(
    P: Array, labels: Array, w: Array | None, key: Array, n_keys: int, k: int, *, counts_weights: bool
) -> tuple[Array, Array]:
    """Return a fingerprint of the rows of each key, and how many have each label.

    A fingerprint is a sum of hashes modulo 2⁶⁴, so that those of two parts add up to that of all rows.

    Parameters
    ----------
    P : array (n,) or (n, K)
        Probabilities.
    labels : array (n,) of int64
        Labels, −1 for none.
    w : array (n,), optional
        Weights.
    key : array (n,) of int64
        Key of each row, 0..n_keys−1.
    n_keys, k : int
        Number of keys, and of classes.
    counts_weights : bool
        Whether a row counts as often as its weight.

    Returns
    -------
    fingerprints : array (keys,) of uint64
        The fingerprints.
    counts : array (keys, 1 + k) of int64
        Number of rows without a label, and with each label.
    """
    table = as_plain_array(P.reshape(len(P), -1))
    labels, key = as_plain_array(labels), as_plain_array(key)
    weights = as_plain_array(np.empty(0) if w is None else w)
    fingerprints, counts = np.zeros(n_keys, dtype=np.uint64), np.zeros((n_keys, k + 1), dtype=np.int64)

    def sum_task(start: int, stop: int) -> tuple[int, Array, Array]:
        rows = slice(start, stop)
        first, last = int(key[rows].min()), int(key[rows].max())
        out = np.zeros(last - first + 1, dtype=np.uint64), np.zeros((last - first + 1, k + 1), dtype=np.int64)
        _add_fingerprints(table[rows], labels[rows], weights[rows], key[rows], first, counts_weights, *out)
        return first, *out

    for first, *parts in map_blocks(sum_task, len(P), max(_MIN_ROWS_PER_TASK, -(-len(P) // _MAX_TASKS))):
        for whole, part in zip((fingerprints, counts), parts, strict=True):
            whole[first : first + len(part)] += part
    return fingerprints, counts


@compile_kernel
def _add_fingerprints(P, labels, w, key, first, counts_weights, fingerprints, counts):  # type: ignore[no-untyped-def]
    multiplier, increment = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(P.shape[0]):
        k = key[i] - first
        state = np.uint64(labels[i] + 1) * increment + increment
        if w.shape[0] > 0:
            number[0] = w[i]
            state = (state ^ bits[0]) * multiplier
            state ^= state >> np.uint64(29)
        for c in range(P.shape[1]):
            number[0] = np.float64(P[i, c]) + 0.0  # −0 becomes 0
            state = (state ^ bits[0]) * multiplier + increment
            state ^= state >> np.uint64(29)
        state *= np.uint64(0x94D049BB133111EB)
        fingerprints[k] += state ^ (state >> np.uint64(32))
        counts[k, labels[i] + 1] += np.int64(w[i]) if counts_weights else 1
