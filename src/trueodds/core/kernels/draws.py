"""Labels drawn from the predictions, and what falls into which cell when they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, draws_at_once, in_blocks

Array = NDArray[Any]


@compiled
def mix(z):  # type: ignore[no-untyped-def]
    """The splitmix64 finalizer: a counter becomes 64 random bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def uniform(row_key, draw):  # type: ignore[no-untyped-def]
    """A number in [0, 1) that depends on nothing but the row's key and the number of the draw."""
    bits = mix(row_key + np.uint64(draw + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def row_key(key, row):  # type: ignore[no-untyped-def]
    """The stream of one row."""
    return mix(np.uint64(key) + np.uint64(row + 1) * np.uint64(0xD1B54A32D192ED03))


@compiled
def pick(cumulative, k, u):  # type: ignore[no-untyped-def]
    """The first class whose cumulative probability exceeds u; the last occupied one where rounding falls short."""
    if k <= 16:
        for c in range(k - 1):
            if u < cumulative[c]:
                return c
        return k - 1
    low, high = 0, k - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _accumulate(P, i, cumulative):  # type: ignore[no-untyped-def]
    total = 0.0
    last = 0
    k = P.shape[1]
    for c in range(k):
        total += np.float64(P[i, c])
        cumulative[c] = total
        if P[i, c] > 0:
            last = c
    for c in range(k):
        cumulative[c] /= total
    for c in range(last, k):
        cumulative[c] = 1.0  # no label is ever drawn that was said to be impossible
    return total


@compiled
def chance(stream, cluster_stream, share, draw):  # type: ignore[no-untyped-def]
    """The row's own number, or with probability `share` the one that all rows of its cluster have in this draw."""
    if share > 0.0 and uniform(mix(cluster_stream), draw) < share:
        return uniform(cluster_stream, draw)
    return uniform(stream, draw)


@compiled
def _labels(P, cluster, share, key, start, stop, out):  # type: ignore[no-untyped-def]
    cumulative = np.empty(P.shape[1])
    for i in range(P.shape[0]):
        _accumulate(P, i, cumulative)
        stream = row_key(key, i)
        together = row_key(~np.uint64(key), cluster[i]) if share > 0.0 else stream
        for r in range(start, stop):
            out[r - start, i] = pick(cumulative, P.shape[1], chance(stream, together, share, r))


@compiled
def _sums(P, w, tables, cluster, share, key, start, stop, out):  # type: ignore[no-untyped-def]
    cumulative = np.empty(P.shape[1])
    for i in range(P.shape[0]):
        _accumulate(P, i, cumulative)
        stream = row_key(key, i)
        together = row_key(~np.uint64(key), cluster[i]) if share > 0.0 else stream
        for r in range(start, stop):
            c = pick(cumulative, P.shape[1], chance(stream, together, share, r))
            for t in range(tables.shape[0]):
                slot = tables[t, i, c]
                if slot >= 0:
                    out[slot, r - start] += w[i]


@compiled
def _sums_of_few(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """The same for few classes and independent rows, many draws at a time.

    A label lies at or below c where u < cumulative[c]. Every draw begins at the last class; where u lies below, the
    row's weight moves on to the slot of the class before, and nothing moves between classes that share a slot.
    """
    k = P.shape[1]
    cumulative = np.empty(k)
    draws = stop - start
    u, moved = np.empty(draws), np.empty(draws, dtype=out.dtype)
    last = np.zeros(out.shape[0], dtype=out.dtype)
    for i in range(P.shape[0]):
        _accumulate(P, i, cumulative)
        stream = row_key(key, i)
        for r in range(draws):
            u[r] = uniform(stream, start + r)
        weight = out.dtype.type(w[i])
        for t in range(tables.shape[0]):
            if tables[t, i, k - 1] >= 0:
                last[tables[t, i, k - 1]] += weight
        for c in range(k - 2, -1, -1):
            apart = False
            for t in range(tables.shape[0]):
                apart |= tables[t, i, c] != tables[t, i, c + 1]
            if not apart:
                continue
            bound = cumulative[c]
            for r in range(draws):
                moved[r] = weight if u[r] < bound else out.dtype.type(0)
            for t in range(tables.shape[0]):
                to, off = tables[t, i, c], tables[t, i, c + 1]
                if to == off:
                    continue
                if to >= 0:
                    here = out[to]
                    for r in range(draws):
                        here[r] += moved[r]
                if off >= 0:
                    here = out[off]
                    for r in range(draws):
                        here[r] -= moved[r]
    for slot in range(out.shape[0]):
        for r in range(draws):
            out[slot, r] += last[slot]


@compiled
def _separate_sums(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    k = P.shape[1]
    for i in range(P.shape[0]):
        for c in range(k):
            stream = row_key(key, i * k + c)
            for r in range(start, stop):
                if uniform(stream, r) < P[i, c]:
                    for t in range(tables.shape[0]):
                        slot = tables[t, i, c]
                        if slot >= 0:
                            out[slot, r - start] += w[i]


FEW = 32  # classes up to which comparing with every threshold is faster than a search
NO_CLUSTERS = np.empty(0, dtype=np.int64)


def labels(P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, share: float = 0.0) -> Array:
    """One label per row and draw, (stop − start, n), each with its stated probability.

    With `share`, the rows of a cluster use one random number in that share of the draws, each its own in the others.
    """
    P = np.ascontiguousarray(P)
    of = NO_CLUSTERS if cluster is None else cluster

    def work(a: int, b: int) -> Array:
        out = np.empty((b - a, len(P)), dtype=np.int64)
        _labels(P, of, share, key, a + start, b + start, out)
        return out

    return np.concatenate(list(in_blocks(work, stop - start, 32)))


def sums(
    P: Array,
    w: Array,
    tables: Array,
    size: int,
    key: int,
    start: int,
    stop: int,
    *,
    separate: bool = False,
    cluster: Array | None = None,
    share: float = 0.0,
) -> Array:
    """Weight per slot and draw, (stop − start, size), when labels are drawn from the predictions.

    `tables[t, i, c]` is the slot that row i adds its weight to if label c is drawn, or −1. With `separate` each
    label is a yes/no of its own (multilabel). `share` as for `labels`.
    """
    P, tables = np.ascontiguousarray(P), np.ascontiguousarray(tables)
    of = NO_CLUSTERS if cluster is None else cluster
    few = P.shape[1] <= FEW and size <= 2**16 and share == 0 and not separate
    counted = few and bool((w == 1).all())  # whole numbers: exact, and half as wide

    def work(a: int, b: int) -> Array:
        out = np.zeros((size, b - a), dtype=np.int32 if counted else np.float64)
        if few:
            _sums_of_few(P, w, tables, key, a + start, b + start, out)
        elif separate:
            _separate_sums(P, w, tables, key, a + start, b + start, out)
        else:
            _sums(P, w, tables, of, share, key, a + start, b + start, out)
        return out.T

    return np.concatenate(in_blocks(work, stop - start, draws_at_once(size))).astype(np.float64, copy=False)
