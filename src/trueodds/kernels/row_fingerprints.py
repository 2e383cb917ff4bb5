"""Fingerprints of sets of rows, by which monitors find rows that were given twice.

A fingerprint is the sum of the hashes of rows, so that sets of rows can be compared in any order. The smallest hashes
of the rows without their labels are a random sample, by which two sets of rows show how many of them are the same.
Hashes of the sample are even; the lowest bit says that several rows have it.

These hashes are saved in the states of monitors. Do not change them: no saved row would be recognized.
"""

from __future__ import annotations

import hashlib

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, map_blocks

SAMPLED_HASHES = 64  # Saved: size of a sample
NO_HASH = 2**64 - 1  # Saved: fills samples of fewer rows
_MIN_ROWS_PER_TASK = 2**17
_MAX_TASKS = 16


def hash_ids(ids: Array) -> Array:
    """Return whole numbers unchanged, and a hash of the text of any other value, each a uint64 (n,).

    >>> hash_ids(np.array(["a", "b", "a"])).tolist()[0] == hash_ids(np.array(["a"])).tolist()[0]
    True
    """
    if ids.dtype.kind in "iu" or (ids.dtype.kind == "f" and (ids == np.rint(ids)).all() and abs(ids).max() < 2**53):
        return ids.astype(np.int64).astype(np.uint64) if ids.dtype.kind == "f" else ids.astype(np.uint64)
    texts, inverse = np.unique(ids.astype(np.str_), return_inverse=True)
    hashes = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts.tolist()
    ]
    return np.array(hashes, dtype=np.uint64)[inverse.reshape(-1)]


def sum_fingerprints(
    P: Array,
    labels: Array,
    w: Array | None,
    ids: Array,
    key: Array,
    n_keys: int,
    k: int,
    *,
    counts_weights: bool,
    hashes_ids_only: bool,
) -> tuple[Array, Array, Array]:
    """Return a fingerprint of the rows of each key, how many have each label, and a sample of hashes without labels.

    A fingerprint is a sum of hashes modulo 2⁶⁴, so that those of two parts add up to that of all rows.

    Parameters
    ----------
    P : array (n,) or (n, K)
        Probabilities.
    labels : array (n,) of int64
        Labels, −1 for none.
    w : array (n,), optional
        Weights.
    ids : array (n,) of uint64
        What identifies a row, with its probabilities unless `hashes_ids_only`.
    key : array (n,) of int64
        Key of each row, 0..n_keys−1.
    n_keys, k : int
        Number of keys, and of classes.
    counts_weights : bool
        Whether a row counts as often as its weight.
    hashes_ids_only : bool
        Whether the hashes of the sample are those of `ids`.

    Returns
    -------
    fingerprints : array (keys,) of uint64
        The fingerprints.
    counts : array (keys, 1 + k) of int64
        Number of rows without a label, and with each label.
    samples : array (keys, SAMPLED_HASHES) of uint64
        The smallest hashes, in order, and `NO_HASH` if there are fewer.
    """
    table = as_plain_array(P.reshape(len(P), -1))
    labels, key, ids = as_plain_array(labels), as_plain_array(key), as_plain_array(ids)
    weights = as_plain_array(np.empty(0) if w is None else w)
    fingerprints, counts = np.zeros(n_keys, dtype=np.uint64), np.zeros((n_keys, k + 1), dtype=np.int64)
    samples = np.full((n_keys, SAMPLED_HASHES), NO_HASH, dtype=np.uint64)

    def sum_task(start: int, stop: int) -> tuple[int, Array, Array, Array]:
        rows = slice(start, stop)
        first, last = int(key[rows].min()), int(key[rows].max())
        n = last - first + 1
        out = np.zeros(n, dtype=np.uint64), np.zeros((n, k + 1), dtype=np.int64), samples[:n].copy()
        out[2].fill(NO_HASH)
        _add_fingerprints(
            table[rows], labels[rows], weights[rows], ids[rows], key[rows], first, counts_weights, hashes_ids_only, *out
        )
        return first, *out

    for first, *parts in map_blocks(sum_task, len(P), max(_MIN_ROWS_PER_TASK, -(-len(P) // _MAX_TASKS))):
        for whole, part in zip((fingerprints, counts), parts, strict=False):
            whole[first : first + len(part)] += part
        _merge_samples(samples[first : first + len(parts[2])], parts[2])
    return fingerprints, counts, samples


def join_samples(a: Array, b: Array) -> Array:
    """Return the sample of the rows of two samples, each (hashes,) without `NO_HASH`.

    >>> join_samples(np.array([2, 6], dtype=np.uint64), np.array([4, 6], dtype=np.uint64)).tolist()
    [2, 4, 7]
    """
    joined = np.full((1, SAMPLED_HASHES), NO_HASH, dtype=np.uint64)
    for sample in (a, b):
        _merge_samples(joined, sample[None])
    return joined[0, joined[0] != NO_HASH]


@compile_inline
def _add_to_sample(sample, number):  # type: ignore[no-untyped-def]
    """Insert a hash, whose lowest bit says that several rows have it, unless it is larger than a full sample."""
    one = np.uint64(1)
    value, last = number & ~one, sample.shape[0] - 1
    if value > sample[last]:
        return
    low, high = 0, last
    while low < high:  # the first one that is not smaller
        middle = (low + high) >> 1
        if sample[middle] < value:
            low = middle + 1
        else:
            high = middle
    if sample[low] & ~one == value:
        sample[low] |= one
        return
    for i in range(last, low, -1):
        sample[i] = sample[i - 1]
    sample[low] = number


@compile_kernel
def _merge_samples(samples, others):  # type: ignore[no-untyped-def]
    for k in range(others.shape[0]):
        for number in others[k]:
            if number == np.uint64(NO_HASH):
                break
            _add_to_sample(samples[k], number)


@compile_kernel
def _add_fingerprints(  # type: ignore[no-untyped-def]
    P, labels, w, ids, key, first, counts_weights, hashes_ids_only, fingerprints, counts, samples
):
    # Saved: everything below that changes a hash.
    multiplier, increment = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
    last_multiplier, one = np.uint64(0x94D049BB133111EB), np.uint64(1)
    number = np.empty(1)
    bits = number.view(np.uint64)
    for i in range(P.shape[0]):
        k = key[i] - first
        state = increment
        for c in range(P.shape[1]):
            number[0] = np.float64(P[i, c]) + 0.0  # −0 becomes 0
            state = (state ^ bits[0]) * multiplier + increment
            state ^= state >> np.uint64(29)
        row = ((increment if hashes_ids_only else state) ^ ids[i]) * multiplier + increment
        row = (row ^ (row >> np.uint64(29))) * last_multiplier
        row ^= row >> np.uint64(32)
        _add_to_sample(samples[k], row & ~one)
        if w.shape[0] > 0:
            number[0] = w[i]
            state = (state ^ bits[0]) * multiplier
            state ^= state >> np.uint64(29)
        state = (state ^ (np.uint64(labels[i] + 1) * increment)) * last_multiplier
        fingerprints[k] += state ^ (state >> np.uint64(32))
        counts[k, labels[i] + 1] += np.int64(w[i]) if counts_weights else 1
