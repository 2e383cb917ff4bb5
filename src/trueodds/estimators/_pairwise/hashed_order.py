"""Order and subsample of rows fixed by hashing their values, independent of the order of the input."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

# First of the evenly spaced positions, in units of their distance. An irrational number keeps the positions off the
# ends of rows of integer weight, where rounding would decide.
FIRST_OFFSET = (3 - 5**0.5) / 2


def hashed_order(P: Array, *tie_breakers: Array) -> Array:
    """Pseudo-random order of the rows (n, m) that depends on their values only, not on their order in the file.

    Rows with the same numbers in other columns are adjacent, so that a different class order changes almost nothing.
    `tie_breakers` (each (n, …)) order equal rows. Values are first rounded to single precision, because the last digits
    of a softmax differ between processors.
    """
    rounded = P.astype(np.float32)
    keys = [_hash(rounded, use_order=True), _hash(rounded, use_order=False)]
    return np.lexsort(
        [_hash(P, use_order=True), *(_hash(x.reshape(len(x), -1), use_order=True) for x in tie_breakers[::-1]), *keys]
    )


def evenly_spaced_positions(n: int, count: int) -> Array:
    """`count` positions evenly spaced from 0 to n − 1, (count,)."""
    return ((np.arange(count) + FIRST_OFFSET) * (n / count)).astype(np.int64)


def positions_by_weight(w: Array, count: int) -> Array:
    """Indices (count,) of the rows at evenly spaced values of the cumulative weight of `w` (n,)."""
    cumulative = np.cumsum(w)
    return np.searchsorted(cumulative, (np.arange(count) + FIRST_OFFSET) * (cumulative[-1] / count), side="right")


def _hash(x: Array, *, use_order: bool) -> Array:
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
