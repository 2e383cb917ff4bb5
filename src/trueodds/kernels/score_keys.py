"""Encode scores and their outcomes as integers (keys), which are sorted faster than rows."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

_ROWS_PER_TASK = 2**17  # minimum number of rows per thread task


@compile_kernel
def _encode_keys(bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the bits of each score followed by its outcome to `keys`; return the number of invalid outcomes.

    An outcome is invalid if it is neither 0 nor 1.
    """
    n_invalid = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        n_invalid += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return n_invalid


def encode_and_sort(p: Array, y: Array) -> Array | None:
    """Return the sorted keys of scores p (n,) ≥ 0 with their outcomes, or None if an outcome is neither 0 nor 1.

    A key has the bits of the score, followed by one bit for the outcome. The bits of a nonnegative float have the same
    order as the float, and integers are sorted several times as fast as rows.
    """
    keys = encode_rows(p, y)
    if keys is not None:
        keys.sort()
    return keys


def encode_rows(p: Array, y: Array) -> Array | None:
    """Return the keys of `encode_and_sort` in the order of the rows, or None if an outcome is neither 0 nor 1."""
    bits = score_bits(p)
    y = as_plain_array(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    keys = np.empty(len(bits), dtype=bits.dtype)
    n_invalid = sum(map_blocks(lambda a, b: _encode_keys(bits[a:b], y[a:b], keys[a:b]), len(bits), _ROWS_PER_TASK))
    return None if n_invalid else keys


def scores_of_keys(keys: Array) -> Array:
    """Return the score of each key as float64."""
    return decode_scores(keys).astype(np.float64, copy=False)


def argsort_scores(p: Array) -> Array:
    """Return the indices that sort the scores, (n,) int64; the sort is stable for float32 scores."""
    bits = score_bits(p)
    if bits.dtype == np.uint64:
        return np.argsort(p)
    bits_and_rows = (bits & np.uint32(2**31 - 1)).astype(np.uint64)  # without the sign, as −0 is 0
    bits_and_rows <<= np.uint64(32)
    bits_and_rows |= np.arange(len(p), dtype=np.uint64)
    bits_and_rows.sort()
    bits_and_rows &= np.uint64(2**32 - 1)
    return bits_and_rows.view(np.int64)


def score_bits(p: Array) -> Array:
    """Return the bits of scores as unsigned integers, which have the same order as nonnegative scores."""
    x = as_plain_array(p)
    return x.view(np.uint64 if x.dtype == np.float64 else np.uint32)


def decode_scores(keys: Array) -> Array:
    """Return the score of each key, in its original precision."""
    return floats_of_bits(keys >> keys.dtype.type(1))


def floats_of_bits(bits: Array) -> Array:
    """Return the floats that have these bits, in the precision of their size."""
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)
