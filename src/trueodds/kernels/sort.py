"""What are the sums at each score, from the lowest to the highest? Keys are sorted, or rows put in order."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain

_BLOCK = 2**17
_BUCKETS = 4096  # a power of two, so that a score's bucket is exact


@compiled
def _key(bits, y, keys):  # type: ignore[no-untyped-def]
    """The bits of each score followed by its outcome; returns how many outcomes are neither 0 nor 1."""
    others = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        others += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return others


@compiled
def _distinct(keys):  # type: ignore[no-untyped-def]
    count = 1
    for i in range(1, keys.shape[0]):
        count += (keys[i] >> 1) != (keys[i - 1] >> 1)
    return count


@compiled
def _counts(keys, bits, n, events):  # type: ignore[no-untyped-def]
    j, total, before = 0, 0, keys[0] >> 1
    for i in range(keys.shape[0]):
        score = keys[i] >> 1
        j += score != before
        total += keys[i] & 1
        bits[j], n[j], events[j] = score, i + 1, total
        before = score
    for j in range(n.shape[0] - 1, 0, -1):
        n[j] -= n[j - 1]
        events[j] -= events[j - 1]


@compiled
def _sums(p, y, w, order, s, mass, events):  # type: ignore[no-untyped-def]
    m = 0
    for k in range(order.shape[0]):
        i = order[k]
        if w[i] > 0:
            x = np.float64(p[i]) + 0.0
            if m == 0 or x != s[m - 1]:
                s[m], mass[m], events[m] = x, 0.0, 0.0
                m += 1
            mass[m - 1] += w[i]
            events[m - 1] += w[i] * y[i]
    return m


@compiled
def _starts(s, starts):  # type: ignore[no-untyped-def]
    """The first of the rising scores in each bucket or beyond."""
    b = 0
    for j in range(s.shape[0]):
        bucket = int(min(s[j] * _BUCKETS, _BUCKETS - 1))
        while b <= bucket:
            starts[b] = j
            b += 1
    starts[b:] = s.shape[0]


@compiled
def _placed(p, s, starts, out):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        x = np.float64(p[i])
        b = int(min(x * _BUCKETS, _BUCKETS - 1))
        low, high = max(starts[b] - 1, 0), starts[b + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if s[middle] <= x:
                low = middle
            else:
                high = middle
        out[i] = low


def keys(p: Array, y: Array) -> Array | None:
    """The scores p (n,) ≥ 0 with their outcomes, as numbers that rise with them; None if an outcome is no 0 or 1.

    The bits of a float that is not negative rise with it, and numbers are sorted several times as fast as rows.
    """
    encoded = row_keys(p, y)
    if encoded is not None:
        encoded.sort()
    return encoded


def row_keys(p: Array, y: Array) -> Array | None:
    """The same in the order of the rows."""
    bits = bits_of(p)
    y = plain(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    encoded = np.empty(len(bits), dtype=bits.dtype)
    others = sum(in_blocks(lambda a, b: _key(bits[a:b], y[a:b], encoded[a:b]), len(bits), _BLOCK))
    return None if others else encoded


def scores(keys: Array) -> Array:
    """The score of each key, float64."""
    return decode_scores(keys).astype(np.float64, copy=False)


def counts(keys: Array) -> tuple[Array, Array, Array]:
    """The rising distinct scores of sorted keys, how many rows have each, and how many of these came; float64."""
    if not len(keys):
        return np.empty(0), np.empty(0), np.empty(0)
    keys = plain(keys)
    m = int(_distinct(keys))
    bits, n, events = np.empty(m, dtype=keys.dtype), np.empty(m), np.empty(m)
    _counts(keys, bits, n, events)
    return _floats(bits).astype(np.float64, copy=False), n, events


def sums(p: Array, y: Array, w: Array, order: Array) -> tuple[Array, Array, Array]:
    """The rising distinct scores of the rows that have weight, Σw and Σwy at each, given their order; float64."""
    s, mass, events = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    rows = [plain(x) for x in (p, y.astype(np.float64, copy=False), w.astype(np.float64, copy=False), order)]
    m = int(_sums(*rows, s, mass, events))
    return (s, mass, events) if m == len(p) else (s[:m].copy(), mass[:m].copy(), events[:m].copy())


def placed(p: Array, s: Array) -> Array:
    """The last of the rising scores `s` (m,) that each of `p` (n,) reaches, (n,) int64; the first where it reaches none."""
    starts, out = np.empty(_BUCKETS + 1, dtype=np.int64), np.empty(len(p), dtype=np.int64)
    p, s = plain(p), plain(s)
    _starts(s, starts)
    in_blocks(lambda a, b: _placed(p[a:b], s, starts, out[a:b]), len(p), _BLOCK)
    return out


def order(p: Array) -> Array:
    """The numbers of the rows by rising score, int64; of float32 scores in the order of the rows among equals."""
    bits = bits_of(p)
    if bits.dtype == np.uint64:
        return np.argsort(p)
    encoded = (bits & np.uint32(2**31 - 1)).astype(np.uint64)  # without the sign, as −0 is 0
    encoded <<= np.uint64(32)
    encoded |= np.arange(len(p), dtype=np.uint64)
    encoded.sort()
    encoded &= np.uint64(2**32 - 1)
    return encoded.view(np.int64)


def bits_of(p: Array) -> Array:
    """Scores as whole numbers, which rise with those that are not negative."""
    x = plain(p)
    return x.view(np.uint64 if x.dtype == np.float64 else np.uint32)


def decode_scores(keys: Array) -> Array:
    """The score of each key as it was given."""
    return _floats(keys >> keys.dtype.type(1))


def _floats(bits: Array) -> Array:
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)
