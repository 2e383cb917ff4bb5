"""How far are rows from each other, and what do all pairs on a line add up to?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, in_blocks

Array = NDArray[Any]


@compiled
def _apart(P, Q, absolute, out):  # type: ignore[no-untyped-def]
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


def apart(P: Array, Q: Array, *, absolute: bool) -> Array:
    """Σ|p − q| or Σ(p − q)² of each row of P (a, m) and of Q (b, m), as (a, b); equal rows are exactly 0 apart."""
    out = np.empty((len(P), len(Q)))
    _apart(np.ascontiguousarray(P), np.ascontiguousarray(Q.T), absolute, out)
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
