"""Pseudo-random order of rows by hashes of their values, whatever the input order, and evenly spaced subsamples."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

# First of the evenly spaced positions, in units of their distance. With integer weights, a rational number could put a
# position exactly between two rows, where rounding would decide which one is chosen.
FIRST_OFFSET = (3 - 5**0.5) / 2


def hashed_order(P: Array, *tie_breakers: Array) -> Array:
    """Return the row numbers (n,) in a pseudo-random order that depends only on the values of the rows P (n, m).

    Rows are sorted by a hash that ignores the order of the columns, so that a different order of the classes changes
    the result only among rows with the same numbers. These are sorted by a hash in which the order counts, then by
    hashes of the `tie_breakers` (n, …), in their order. The first two hashes are of single precision, because the last
    digits of a softmax differ between processors; a hash of the full values decides remaining ties.
    """
    rounded = P.astype(np.float32)
    keys = [
        _hash_rows(rounded, use_order=False),
        _hash_rows(rounded, use_order=True),
        *(_hash_rows(x.reshape(len(x), -1), use_order=True) for x in tie_breakers),
        _hash_rows(P, use_order=True),
    ]
    return np.lexsort(keys[::-1])  # which sorts by its last key first


def evenly_spaced_positions(n: int, count: int) -> Array:
    """Return `count` positions that are evenly spaced from 0 to n − 1, (count,)."""
    return ((np.arange(count) + FIRST_OFFSET) * (n / count)).astype(np.int64)


def positions_by_weight(w: Array, count: int) -> Array:
    """Return the indices (count,) of the rows at evenly spaced values of the cumulative weight of `w` (n,)."""
    cumulative = np.cumsum(w)
    return np.searchsorted(cumulative, (np.arange(count) + FIRST_OFFSET) * (cumulative[-1] / count), side="right")


def _hash_rows(x: Array, *, use_order: bool) -> Array:
    """Hash of each row of x (n, m) from the bits of its values, (n,); with `use_order` their order counts."""
    hashes = np.zeros(len(x), dtype=np.uint64)
    for c, column in enumerate(x.T):
        bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: minus zero is zero
        hashes += _mix_bits(_mix_bits(bits) + np.uint64(c + 1)) if use_order else _mix_bits(bits)
    return hashes


def _mix_bits(z: Array) -> Array:
    """The finalizer of SplitMix64 (Steele, Lea & Flood 2014), which maps similar inputs to unrelated outputs."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
