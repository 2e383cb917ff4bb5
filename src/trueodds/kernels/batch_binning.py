"""Bin many sets of sorted scores at once, between edges or linearly between grid points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

_BLOCK = 2**16  # minimum number of scores per thread task


def upper_share(x: Any, low: Any, high: Any, swapped: bool) -> Any:
    """Return the share of a score between two bin centers that is assigned to the upper one; for scalars or arrays."""
    u = (x - low) / (high - low)
    return 1 - u if swapped else u


_upper_share = compile_kernel(upper_share)


@compile_kernel
def _is_beyond_edge(x, edge, right):  # type: ignore[no-untyped-def]
    return x > edge if right else x >= edge


@compile_kernel
def _bin_between_edges(p, y, inner, right, out):  # type: ignore[no-untyped-def]
    for r in range(p.shape[0]):
        edges, b = inner[min(r, inner.shape[0] - 1)], 0
        for i in range(p.shape[1]):
            while b < edges.shape[0] and _is_beyond_edge(p[r, i], edges[b], right):
                b += 1
            out[0, r, b] += 1.0
            out[1, r, b] += p[r, i]
            out[2, r, b] += y[r, i]


@compile_kernel
def _share_linearly(p, y, centers, right, swapped, out):  # type: ignore[no-untyped-def]
    c = np.empty(centers.shape[1])
    for r in range(p.shape[0]):
        m = 0  # number of distinct centers
        for center in centers[min(r, centers.shape[0] - 1)]:
            if m == 0 or center > c[m - 1]:
                c[m] = center
                m += 1
        a = 0  # number of centers below the score
        for i in range(p.shape[1]):
            while a < m and _is_beyond_edge(p[r, i], c[a], right):
                a += 1
            residual = y[r, i] - p[r, i]
            if a == 0 or a == m:
                out[r, max(a - 1, 0)] += residual
            else:
                above = residual * _upper_share(p[r, i], c[a - 1], c[a], swapped)
                out[r, a - 1] += residual - above
                out[r, a] += above


@compile_kernel
def _bin_linearly(p, y, low, high, place, out):  # type: ignore[no-untyped-def]
    size = place.shape[0]
    for r in range(p.shape[0]):
        for i in range(p.shape[1]):
            t = (min(max(p[r, i], low), high) - low) / (high - low) * size - 0.5
            cell = np.int64(np.floor(t))
            u = t - cell
            # Shares beyond the outer midpoints are reflected into the outer cells.
            below, above = place[max(cell, 0)], place[min(cell + 1, size - 1)]
            out[r, 0, below] += 1.0 - u
            out[r, 0, above] += u
            out[r, 1, below] += y[r, i] * (1.0 - u)
            out[r, 1, above] += y[r, i] * u


def sum_between_edges(p: Array, y: Array, inner: Array, closed: str) -> Array:
    """Return n, Σp and Σy per bin for each set of sorted scores, (3, sets, bins).

    p and y are (sets, m), sorted by p. The sorted inner edges `inner` are (sets, bins − 1), or (1, bins − 1) if all
    sets share them. A bin above an infinite edge is empty.
    """
    out = np.zeros((3, len(p), inner.shape[1] + 1))
    _side_by_side(
        p, lambda a, b: _bin_between_edges(p[a:b], y[a:b], _slice_draws(inner, a, b), closed == "right", out[:, a:b])
    )
    return out


def sum_linear_shares(p: Array, y: Array, centers: Array, closed: str, swapped: bool) -> Array:
    """Return Σ(y − p) per bin for each set of sorted scores, with linear binning between bin centers, (sets, bins).

    A score between two centers is split between their bins (see `upper_share`). p and y are (sets, m), sorted by p. The
    sorted centers are (sets, bins), or (1, bins) if all sets share them. Bins with equal centers are merged.
    """
    out = np.zeros((len(p), centers.shape[1]))
    _side_by_side(
        p,
        lambda a, b: _share_linearly(p[a:b], y[a:b], _slice_draws(centers, a, b), closed == "right", swapped, out[a:b]),
    )
    return out


def bin_linearly(p: Array, y: Array, low: float, high: float, place: Array) -> Array:
    """Return the linearly binned counts of rows and events of each set in equal cells of [low, high], (sets, 2, cells).

    Each score is split between the cells with the two nearest midpoints. Cell j is stored at index `place[j]`.
    """
    out = np.zeros((len(p), 2, len(place)))
    _side_by_side(p, lambda a, b: _bin_linearly(p[a:b], y[a:b], low, high, place, out[a:b]))
    return out


def _slice_draws(x: Array, start: int, stop: int) -> Array:
    return x if len(x) == 1 else x[start:stop]


def _side_by_side(p: Array, work: Callable[[int, int], None]) -> None:
    map_blocks(work, len(p), max(32, _BLOCK // max(1, p.shape[1])))
