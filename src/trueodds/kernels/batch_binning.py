"""Bin many sets of sorted scores side by side, between edges or linearly between grid points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks

_BLOCK = 2**16  # scores worth a thread's while


def upper_share(x: Any, low: Any, high: Any, swapped: bool) -> Any:
    """Return the share of a score between two bin centers that belongs to the upper one; for a number or for arrays."""
    u = (x - low) / (high - low)
    return 1 - u if swapped else u


_upper_share = compiled(upper_share)


@compiled
def _beyond(x, edge, right):  # type: ignore[no-untyped-def]
    return x > edge if right else x >= edge


@compiled
def _between(p, y, inner, right, out):  # type: ignore[no-untyped-def]
    for r in range(p.shape[0]):
        edges, b = inner[min(r, inner.shape[0] - 1)], 0
        for i in range(p.shape[1]):
            while b < edges.shape[0] and _beyond(p[r, i], edges[b], right):
                b += 1
            out[0, r, b] += 1.0
            out[1, r, b] += p[r, i]
            out[2, r, b] += y[r, i]


@compiled
def _shared(p, y, centers, right, swapped, out):  # type: ignore[no-untyped-def]
    c = np.empty(centers.shape[1])
    for r in range(p.shape[0]):
        m = 0  # equal centers are one
        for center in centers[min(r, centers.shape[0] - 1)]:
            if m == 0 or center > c[m - 1]:
                c[m] = center
                m += 1
        a = 0  # how many centers lie below
        for i in range(p.shape[1]):
            while a < m and _beyond(p[r, i], c[a], right):
                a += 1
            residual = y[r, i] - p[r, i]
            if a == 0 or a == m:
                out[r, max(a - 1, 0)] += residual
            else:
                above = residual * _upper_share(p[r, i], c[a - 1], c[a], swapped)
                out[r, a - 1] += residual - above
                out[r, a] += above


@compiled
def _bin_linearly(p, y, low, high, place, out):  # type: ignore[no-untyped-def]
    size = place.shape[0]
    for r in range(p.shape[0]):
        for i in range(p.shape[1]):
            t = (min(max(p[r, i], low), high) - low) / (high - low) * size - 0.5
            cell = np.int64(np.floor(t))
            u = t - cell
            # Beyond the outer midpoints lie the mirror images of the outer cells.
            below, above = place[max(cell, 0)], place[min(cell + 1, size - 1)]
            out[r, 0, below] += 1.0 - u
            out[r, 0, above] += u
            out[r, 1, below] += y[r, i] * (1.0 - u)
            out[r, 1, above] += y[r, i] * u


def sum_between_edges(p: Array, y: Array, inner: Array, closed: str) -> Array:
    """n, Σp and Σy of the bins of each set (3, sets, bins), cut by its own rising inner edges or by those of all.

    p and y are (sets, m) by rising p, inner (1 or sets, bins − 1); a bin above an infinite edge is empty.
    """
    out = np.zeros((3, len(p), inner.shape[1] + 1))
    _side_by_side(p, lambda a, b: _between(p[a:b], y[a:b], _own(inner, a, b), closed == "right", out[:, a:b]))
    return out


def sum_linear_shares(p: Array, y: Array, centers: Array, closed: str, swapped: bool) -> Array:
    """Σ(y − p) of the bins of each set (sets, bins), a score between two centers shared by their bins (see `upper_share`).

    The rising centers (1 or sets, bins) are those of each set or of all; bins of one center are one.
    """
    out = np.zeros((len(p), centers.shape[1]))
    _side_by_side(p, lambda a, b: _shared(p[a:b], y[a:b], _own(centers, a, b), closed == "right", swapped, out[a:b]))
    return out


def bin_linearly(p: Array, y: Array, low: float, high: float, place: Array) -> Array:
    """Linear binning: count rows and events of each set in equal cells of [low, high], (sets, 2, cells).

    Each score is shared by the two nearest midpoints; cell j is stored at place[j].
    """
    out = np.zeros((len(p), 2, len(place)))
    _side_by_side(p, lambda a, b: _bin_linearly(p[a:b], y[a:b], low, high, place, out[a:b]))
    return out


def _own(x: Array, start: int, stop: int) -> Array:
    return x if len(x) == 1 else x[start:stop]


def _side_by_side(p: Array, work: Callable[[int, int], None]) -> None:
    in_blocks(work, len(p), max(32, _BLOCK // max(1, p.shape[1])))
