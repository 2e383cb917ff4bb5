"""Compute the path of near-isotonic regression over all penalties."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel

LEVEL_TOLERANCE = 1e-12  # levels that differ by less are considered equal
PENALTY_TOLERANCE = 1e-10  # merges whose λ differ by less than this share belong to the same model


@dataclass(frozen=True, slots=True, eq=False)
class NearIsotonicPath:
    """All blocks of the path of near-isotonic fits: a block of weight W and mean m/W has the level (m + λc)/W.

    Blocks are numbered in the order of their creation, so the parts of a block have lower numbers than the block.
    """

    mass: Array  # (blocks,) W
    events: Array  # (blocks,) m = Σwy
    slope: Array  # (blocks,) c: 1 if the left neighbor is higher, minus 1 if the right neighbor is lower
    parent: Array  # (blocks,) int64, the block into which it was merged; −1 if none
    first_model: Array  # (blocks,) int64, the first model that contains it
    end_model: Array  # (blocks,) int64, the first later model that does not contain it
    lambdas: Array  # (models,) sorted penalties, from 0
    initial_block: Array  # (m,) int64, the block of each value at λ = 0

    @property
    def n_blocks(self) -> Array:
        """Number of blocks of each model, (models,)."""
        models = len(self.lambdas)
        changes = np.bincount(self.first_model, minlength=models + 1) - np.bincount(
            self.end_model, minlength=models + 1
        )
        return np.cumsum(changes)[:models]

    def levels(self, model: int) -> tuple[Array, Array]:
        """Return the blocks of one model and their levels, clipped to [0, 1]."""
        alive = np.flatnonzero((self.first_model <= model) & (self.end_model > model))
        level = (self.events[alive] + self.lambdas[model] * self.slope[alive]) / self.mass[alive]
        return alive, np.clip(level, 0.0, 1.0)


@compile_kernel
def _meeting(a, b, now, mass, events, pull):  # type: ignore[no-untyped-def]
    """Return the λ ≥ `now` at which two neighboring blocks reach the same level; infinite if they never do."""
    gap = events[b] / mass[b] - events[a] / mass[a]
    closing = pull[a] / mass[a] - pull[b] / mass[b]
    left = gap - now * closing
    if abs(left) <= LEVEL_TOLERANCE:
        return now
    if closing != 0 and left / closing > 0:
        return max(gap / closing, now)
    return np.inf


@compile_kernel
def _merged(mass, events, pull, parent, born, died, lambdas, blocks):  # type: ignore[no-untyped-def]
    """Merge neighboring blocks in the order of their λ; return the numbers of blocks and models."""
    before, after = np.empty(2 * blocks, np.int64), np.empty(2 * blocks, np.int64)
    for a in range(blocks):
        before[a], after[a] = a - 1, a + 1 if a + 1 < blocks else -1
    for a in range(blocks - 1):
        if events[a] / mass[a] > events[a + 1] / mass[a + 1]:
            pull[a] -= 1.0
            pull[a + 1] += 1.0
    heap = [(_meeting(a, a + 1, 0.0, mass, events, pull), a, a + 1) for a in range(blocks - 1)]
    heapify(heap)
    model, lambdas[0] = 0, 0.0
    while len(heap) > 0:
        at, a, b = heappop(heap)
        if at == np.inf:
            break
        if parent[a] >= 0 or parent[b] >= 0:
            continue  # one of them has been merged since
        if at > lambdas[model] * (1.0 + PENALTY_TOLERANCE):
            model += 1
            lambdas[model] = at
        new = blocks
        blocks += 1
        # The penalty of a decrease between the two pulled them in opposite directions, which cancels in the sum.
        mass[new], events[new], pull[new] = mass[a] + mass[b], events[a] + events[b], pull[a] + pull[b]
        born[new], died[a], died[b], parent[a], parent[b] = model, model, model, new, new
        before[new], after[new] = before[a], after[b]
        if before[new] >= 0:
            after[before[new]] = new
            heappush(heap, (_meeting(before[new], new, at, mass, events, pull), before[new], new))
        if after[new] >= 0:
            before[after[new]] = new
            heappush(heap, (_meeting(new, after[new], at, mass, events, pull), new, after[new]))
    return blocks, model + 1


@compile_kernel
def _merge_equal(mass, events, w, m, start):  # type: ignore[no-untyped-def]
    """Merge neighboring values with equal means; return the number of blocks. `start` receives each value's block."""
    blocks = 0
    for i in range(mass.shape[0]):
        if blocks > 0 and abs(m[blocks - 1] / w[blocks - 1] - events[i] / mass[i]) <= LEVEL_TOLERANCE:
            w[blocks - 1] += mass[i]
            m[blocks - 1] += events[i]
        else:
            w[blocks], m[blocks] = mass[i], events[i]
            blocks += 1
        start[i] = blocks - 1
    return blocks


@compile_kernel
def _handed_down(own, parent):  # type: ignore[no-untyped-def]
    for a in range(own.shape[0] - 1, -1, -1):
        if parent[a] >= 0:
            own[a] += own[parent[a]]


def near_isotonic_path(mass: Array, events: Array) -> NearIsotonicPath:
    r"""Compute the whole path of nearly isotonic fits.

    The problem is :math:`\min_f \tfrac12\sum_i w_i(y_i - f_i)^2 + \lambda\sum_i (f_i - f_{i+1})_+`, λ ≥ 0. `mass` (m,)
    > 0 has the weights and `events` (m,) the sums Σwy of values in [0, 1], in order. Merged levels never split, so
    there are less than 2m blocks. There is one model for λ = 0 and for every λ at which levels merge. Cost: O(m log m).
    """
    n = len(mass)
    w, m, start = np.zeros(2 * n), np.zeros(2 * n), np.empty(n, np.int64)
    pull, parent = np.zeros(2 * n), np.full(2 * n, -1)
    born, died, lambdas = np.zeros(2 * n, np.int64), np.full(2 * n, -1), np.empty(n)
    blocks = _merge_equal(
        as_plain_array(mass.astype(np.float64, copy=False)),
        as_plain_array(events.astype(np.float64, copy=False)),
        w,
        m,
        start,
    )
    blocks, models = _merged(w, m, pull, parent, born, died, lambdas, blocks)
    died[died < 0] = models
    return NearIsotonicPath(
        w[:blocks], m[:blocks], pull[:blocks], parent[:blocks], born[:blocks], died[:blocks], lambdas[:models], start
    )


def average_levels(path: NearIsotonicPath, weights: Array) -> Array:
    """Return the weighted mean of the models' levels at each value, (m,), for weights (models,) that sum to 1.

    The contribution of each block is passed on to its parts, so no single model is expanded. Cost: O(m).
    """
    share, moved = (np.concatenate([[0.0], np.cumsum(x)]) for x in (weights, weights * path.lambdas))
    born, died = path.first_model, path.end_model
    own = (path.events * (share[died] - share[born]) + path.slope * (moved[died] - moved[born])) / path.mass
    _handed_down(own, path.parent)
    return np.asarray(np.clip(own[path.initial_block], 0.0, 1.0))
