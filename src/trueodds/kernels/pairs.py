"""How far are rows from each other, and what do all pairs on a line add up to?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain, reordered


@compiled
def _pairwise_distances(P, Q, absolute, out):  # type: ignore[no-untyped-def]
    for i in range(P.shape[0]):
        row = out[i]
        row[:] = 0.0
        for c in range(P.shape[1]):
            x = P[i, c]
            # The innermost loop runs along memory and adds to no single number, so that it is done several at a time.
            if absolute:
                for j in range(row.shape[0]):
                    row[j] += abs(x - Q[c, j])
            else:
                for j in range(row.shape[0]):
                    row[j] += (x - Q[c, j]) * (x - Q[c, j])


@compiled
def _along(e, decay, out):  # type: ignore[no-untyped-def]
    for b in range(e.shape[0]):
        behind = before = total = 0.0
        for i in range(e.shape[1]):
            behind = decay[i] * (behind + before)
            before = e[b, i]
            total += before * behind
        out[b] = 2 * total


@reordered
def _pulls(k, XT, top, out):  # type: ignore[no-untyped-def]
    for r in range(k.shape[0]):
        i = top + r
        row = k[r, :i]
        for c in range(XT.shape[0]):
            before, to, x_i = XT[c, :i], out[c, :i], XT[c, i]
            total = 0.0
            for j in range(i):
                total += row[j] * before[j]
            out[c, i] += total
            for j in range(i):
                to[j] += row[j] * x_i


@reordered
def _product(k, XT, top):  # type: ignore[no-untyped-def]
    total = 0.0
    for r in range(k.shape[0]):
        i = top + r
        row = k[r, :i]
        for c in range(XT.shape[0]):
            before = XT[c, :i]
            pull = 0.0
            for j in range(i):
                pull += row[j] * before[j]
            total += pull * XT[c, i]
    return total


def pairwise_distances(P: Array, Q: Array, *, absolute: bool) -> Array:
    """Σ|p − q| or Σ(p − q)² of each row of P (a, m) and of Q (b, m), as (a, b); equal rows are exactly 0 apart."""
    out = np.empty((len(P), len(Q)))
    _pairwise_distances(np.ascontiguousarray(P), np.ascontiguousarray(Q.T), absolute, out)
    return out


def along(e: Array, decay: Array) -> Array:
    """Σ over i ≠ j of e_i e_j k_ij for each row of e (draws, n), where k is the product of the decays between i and j.

    That is the exponential kernel of sorted numbers: O(n) where the pairs are O(n²). `decay[i]` lies between i − 1
    and i.
    """
    e = np.ascontiguousarray(e)

    def work(a: int, b: int) -> Array:
        out = np.empty(b - a)
        _along(e[a:b], decay, out)
        return out

    return np.concatenate(list(in_blocks(work, len(e), 16)))


def pulls(k: Array, XT: Array, top: int) -> Array:
    """Σ_j k_ij x_j of each row of a strip, (m, n), x being the columns of XT (m, n): each pair is felt by both rows.

    `k` (rows, n) holds the similarities of rows `top`, `top` + 1, …; those with the rows before each of them are read.
    """
    out = np.zeros(XT.shape)
    _pulls(plain(k), plain(XT), top, out)
    return out


def product(k: Array, XT: Array, top: int) -> float:
    """Σ k_ij x_i·x_j over the same pairs, each once."""
    return float(_product(plain(k), plain(XT), top))
