"""Bin many sets of scores at once, such as the scores of many bootstrap resamples.

Scores are counted between edges, or each score is split between the two nearest bin centers or grid points (linear
binning).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

_SCORES_PER_TASK = 2**16  # minimum number of scores per thread task


def upper_share(x: Any, low: Any, high: Any, swapped: bool) -> Any:
    """Share of a score x between two bin centers that belongs to the upper one, or 1 minus it if `swapped`."""
    share = (x - low) / (high - low)
    return 1 - share if swapped else share


_upper_share = compile_kernel(upper_share)


@compile_kernel
def _is_beyond_edge(x, edge, right):  # type: ignore[no-untyped-def]
    return x > edge if right else x >= edge


@compile_kernel
def _add_between_edges(p, y, inner, right, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σy per bin of the sorted scores p (sets, m) to `out` (3, sets, bins), in one pass over each set.

    `inner` (sets, bins − 1), or (1, bins − 1) for all sets, are the inner edges. `right` says that bins are
    right-closed.
    """
    for r in range(p.shape[0]):
        edges, bin_index = inner[min(r, inner.shape[0] - 1)], 0
        for i in range(p.shape[1]):
            while bin_index < edges.shape[0] and _is_beyond_edge(p[r, i], edges[bin_index], right):
                bin_index += 1
            out[0, r, bin_index] += 1.0
            out[1, r, bin_index] += p[r, i]
            out[2, r, bin_index] += y[r, i]


@compile_kernel
def _add_linear_shares(p, y, centers, right, swapped, out):  # type: ignore[no-untyped-def]
    """Add the shares of each residual y − p to the bins with the two nearest centers, in `out` (sets, bins).

    `centers` is (sets, bins), or (1, bins) for all sets. `right` assigns a score at a center to the interval below it.
    """
    distinct = np.empty(centers.shape[1])
    for r in range(p.shape[0]):
        n_distinct = 0  # number of distinct centers
        for center in centers[min(r, centers.shape[0] - 1)]:
            if n_distinct == 0 or center > distinct[n_distinct - 1]:
                distinct[n_distinct] = center
                n_distinct += 1
        n_below = 0  # number of centers below the score
        for i in range(p.shape[1]):
            while n_below < n_distinct and _is_beyond_edge(p[r, i], distinct[n_below], right):
                n_below += 1
            residual = y[r, i] - p[r, i]
            if n_below == 0 or n_below == n_distinct:
                out[r, max(n_below - 1, 0)] += residual
            else:
                above = residual * _upper_share(p[r, i], distinct[n_below - 1], distinct[n_below], swapped)
                out[r, n_below - 1] += residual - above
                out[r, n_below] += above


@compile_kernel
def _add_linearly_binned(p, y, low, high, cell_index, out):  # type: ignore[no-untyped-def]
    size = cell_index.shape[0]
    for r in range(p.shape[0]):
        for i in range(p.shape[1]):
            cell_position = (min(max(p[r, i], low), high) - low) / (high - low) * size - 0.5
            cell = np.int64(np.floor(cell_position))
            upper = cell_position - cell
            # Shares beyond the outer midpoints are reflected into the outer cells.
            below, above = cell_index[max(cell, 0)], cell_index[min(cell + 1, size - 1)]
            out[r, 0, below] += 1.0 - upper
            out[r, 0, above] += upper
            out[r, 1, below] += y[r, i] * (1.0 - upper)
            out[r, 1, above] += y[r, i] * upper


def sum_between_edges(p: Array, y: Array, inner: Array, closed: str) -> Array:
    """Return n, Σp and Σy per bin for each set of sorted scores, (3, sets, bins).

    p and y are (sets, m), sorted by p. The sorted inner edges `inner` are (sets, bins − 1), or (1, bins − 1) if all
    sets share them. A bin above an infinite edge is empty.
    """
    out = np.zeros((3, len(p), inner.shape[1] + 1))
    _map_sets(
        p,
        lambda start, stop: _add_between_edges(
            p[start:stop], y[start:stop], _slice_sets(inner, start, stop), closed == "right", out[:, start:stop]
        ),
    )
    return out


def sum_linear_shares(p: Array, y: Array, centers: Array, closed: str, swapped: bool) -> Array:
    """Return Σ(y − p) per bin for each set of sorted scores, with linear binning between bin centers, (sets, bins).

    A score between two centers is split between their bins (see `upper_share`). p and y are (sets, m), sorted by p. The
    sorted centers are (sets, bins), or (1, bins) if all sets share them. Bins with equal centers are merged.
    """
    out = np.zeros((len(p), centers.shape[1]))
    _map_sets(
        p,
        lambda start, stop: _add_linear_shares(
            p[start:stop], y[start:stop], _slice_sets(centers, start, stop), closed == "right", swapped, out[start:stop]
        ),
    )
    return out


def bin_linearly(p: Array, y: Array, low: float, high: float, cell_index: Array) -> Array:
    """Return the linearly binned counts of rows and events of each set in equal cells of [low, high], (sets, 2, cells).

    Each score is split between the cells with the two nearest midpoints. Cell j is stored at index `cell_index[j]`.
    """
    out = np.zeros((len(p), 2, len(cell_index)))
    _map_sets(
        p,
        lambda start, stop: _add_linearly_binned(p[start:stop], y[start:stop], low, high, cell_index, out[start:stop]),
    )
    return out


def _slice_sets(x: Array, start: int, stop: int) -> Array:
    return x if len(x) == 1 else x[start:stop]


def _map_sets(p: Array, work: Callable[[int, int], None]) -> None:
    map_blocks(work, len(p), max(32, _SCORES_PER_TASK // max(1, p.shape[1])))
