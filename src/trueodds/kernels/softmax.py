"""How likely is what came under rows proportional to exp(θx), and how does that change with θ?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import in_blocks, plain
from trueodds.kernels.powers import logs, loop, powers
from trueodds.kernels.tilted import add, fetch, level

SUMS = 7  # the value and six derivatives
BLOCK = 2**18  # numbers that one call works through
_TILE = 2**12  # of which so many lie in a core's nearest cache at a time
_LN2 = math.log(2)
_NORMAL, _NOTHING = 2.0**-1022, -1e300


def tempered(P: Array, Y: Array, w: Array, beta: float, min_prob: float, every: int = 1) -> Array:
    r"""Minus the log-likelihood of rows proportional to max(p, floor)^β, and its first six derivatives by β, (7,).

    P (n, K) are probabilities of any float type, Y (n, K) shares of what came or (n,) class numbers, w (n,) weights;
    `every` takes one row of so many, from the first on. The logs are taken anew in every pass: that takes about as
    long as reading them from memory, and no memory.
    """
    p, (n, k) = plain(P).reshape(-1), P.shape
    outcomes, mass = _outcomes(Y), _wide(w)

    def some(start: int, stop: int, out: Array) -> None:
        _tempered(p, k, every, outcomes, mass, beta, min_prob, start, stop, out)

    return _sum_blocks(some, -(-n // every), k) * _LN2 ** np.arange(SUMS)


def linear(X: Array, Y: Array, w: Array, theta: float, offset: Array | None = None) -> Array:
    """The same for rows proportional to exp(o + θx), with derivatives by θ; X and o are (n, K)."""
    x, (n, k) = plain(X).reshape(-1), X.shape
    outcomes, mass = _outcomes(Y), _wide(w)
    o = _wide(np.empty(0) if offset is None else offset).reshape(-1)

    def some(start: int, stop: int, out: Array) -> None:
        _linear(x, k, outcomes, mass, theta, o, start, stop, out)

    return _sum_blocks(some, n, k)


def powered(P: Array, beta: float) -> Array:
    """Rows proportional to p^β, (n, K) float64; an exact zero stays one."""
    p, (n, k) = plain(P).reshape(-1), P.shape
    out = np.empty((n, k))
    flat = out.reshape(-1)

    def work(start: int, stop: int) -> None:
        _powered(p, k, beta, start, stop, flat)

    in_blocks(work, n, max(1, BLOCK // k))
    return out


def _outcomes(Y: Array) -> Array:
    return plain(Y[:, None].astype(np.int64, copy=False)) if Y.ndim == 1 else plain(Y)


def _wide(x: Array) -> Array:
    return plain(x.astype(np.float64, copy=False))


def _sum_blocks(some: Callable[[int, int, Array], None], n: int, k: int) -> Array:
    """The sums over all rows, block after block, whoever worked on them."""

    def work(start: int, stop: int) -> Array:
        out = np.zeros(SUMS)
        some(start, stop, out)
        return out

    return np.sum([np.zeros(SUMS), *in_blocks(work, n, max(1, BLOCK // k))], axis=0)


@loop
def _tempered(P, k, every, Y, w, beta, min_prob, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    left, right = np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, e = left[:m], right[:m]
        for row in range(m // k):
            fetch(P, (first + row) * every * k, k, e, row * k)
        logs(e, min_prob, x)
        level(x, x.view(np.int64), k)
        powers(x, beta, e)
        add(x, x, beta, e, k, Y, w, first, every, out)


@loop
def _powered(P, k, beta, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    x = np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        e = out[first * k : first * k + m]
        fetch(P, first * k, m, e, 0)
        logs(e, _NORMAL, x[:m])
        for t in range(m):
            x[t] = x[t] if e[t] > 0.0 else _NOTHING
        level(x[:m], x[:m].view(np.int64), k)
        powers(x[:m], beta, e)
        for row in range(m // k):
            begin, end = np.uint64(row * k), np.uint64((row + 1) * k)
            total = 0.0
            for t in range(begin, end):
                total += e[t]
            share = 1.0 / total
            for t in range(begin, end):
                e[t] *= share


@loop
def _linear(X, k, Y, w, theta, offset, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    left, middle, right = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, y, e = left[:m], middle[:m], right[:m]
        fetch(X, first * k, m, x, 0)
        if offset.shape[0] > 0:
            fetch(offset, first * k, m, y, 0)
        else:
            y[:] = 0.0
        for t in range(m):
            y[t] = (y[t] + theta * x[t]) / _LN2
        level(y, y.view(np.int64), k)
        powers(y, 1.0, e)
        add(x, y, 1.0, e, k, Y, w, first, 1, out)
