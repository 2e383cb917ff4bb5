"""Compute the path of near-isotonic regression: its fits for all penalties λ on decreases.

Source: Tibshirani, Hoefling & Tibshirani (2011). At λ = 0 the fit is the data. As λ grows, the levels of neighboring
blocks approach each other and merge when they meet, up to isotonic regression.
"""

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
    """All blocks of the path of near-isotonic fits.

    A block of weight W and mean M/W, with M = Σwy, has the level (M + λc)/W. Blocks are numbered in the order of their
    creation, so the parts of a block have lower numbers than the block.
    """

    mass: Array  # (blocks,) W
    events: Array  # (blocks,) M = Σwy
    # (blocks,) c, the slope of M in λ: 1 if the left neighbor is higher, minus 1 if the right neighbor is lower
    slope: Array
    parent: Array  # (blocks,) int64, the block into which it was merged; −1 if none
    first_model: Array  # (blocks,) int64, the first model that contains it
    end_model: Array  # (blocks,) int64, the first later model that does not contain it
    lambdas: Array  # (models,) sorted penalties, from 0
    initial_block: Array  # (m,) int64, the block of each value at λ = 0

    @property
    def n_blocks(self) -> Array:
        n_models = len(self.lambdas)
        changes = np.bincount(self.first_model, minlength=n_models + 1) - np.bincount(
            self.end_model, minlength=n_models + 1
        )
        return np.cumsum(changes)[:n_models]

    def levels(self, model: int) -> tuple[Array, Array]:
        """Return the blocks of one model and their levels, clipped to [0, 1]."""
        alive = np.flatnonzero((self.first_model <= model) & (self.end_model > model))
        level = (self.events[alive] + self.lambdas[model] * self.slope[alive]) / self.mass[alive]
        return alive, np.clip(level, 0.0, 1.0)


@compile_kernel
def _meeting_penalty(left, right, current_lambda, mass, events, slope):  # type: ignore[no-untyped-def]
    """Return the λ ≥ `current_lambda` at which two neighboring blocks reach the same level, or ∞ if they never do."""
    gap = events[right] / mass[right] - events[left] / mass[left]
    closing_rate = slope[left] / mass[left] - slope[right] / mass[right]
    gap_now = gap - current_lambda * closing_rate
    if abs(gap_now) <= LEVEL_TOLERANCE:
        return current_lambda
    if closing_rate != 0 and gap_now / closing_rate > 0:
        return max(gap / closing_rate, current_lambda)
    return np.inf


@compile_kernel
def _push_meeting(heap, left, right, current_lambda, mass, events, slope):  # type: ignore[no-untyped-def]
    heappush(heap, (_meeting_penalty(left, right, current_lambda, mass, events, slope), left, right))


@compile_kernel
def _fill_initial_slopes(mass, events, slope, n_blocks):  # type: ignore[no-untyped-def]
    """Add to `slope` the pull of the penalty, which moves the two blocks of every decrease toward each other."""
    for a in range(n_blocks - 1):
        if events[a] / mass[a] > events[a + 1] / mass[a + 1]:
            slope[a] -= 1.0
            slope[a + 1] += 1.0


@compile_kernel
def _merge_blocks(mass, events, slope, parent, first_model, end_model, lambdas, n_blocks):  # type: ignore[no-untyped-def]
    """Merge neighboring blocks in the order of their λ; return the numbers of blocks and models.

    The arrays are those of `NearIsotonicPath`, with room for the merged blocks, (2m,); the first n_blocks are filled.
    """
    left_neighbor, right_neighbor = np.empty(2 * n_blocks, np.int64), np.empty(2 * n_blocks, np.int64)
    for a in range(n_blocks):
        left_neighbor[a], right_neighbor[a] = a - 1, a + 1 if a + 1 < n_blocks else -1
    _fill_initial_slopes(mass, events, slope, n_blocks)
    heap = [(_meeting_penalty(a, a + 1, 0.0, mass, events, slope), a, a + 1) for a in range(n_blocks - 1)]
    heapify(heap)
    model, lambdas[0] = 0, 0.0
    while len(heap) > 0:
        penalty, left, right = heappop(heap)
        if penalty == np.inf:
            break
        if parent[left] >= 0 or parent[right] >= 0:
            continue  # one of them has been merged since
        if penalty > lambdas[model] * (1.0 + PENALTY_TOLERANCE):
            model += 1
            lambdas[model] = penalty
        new = n_blocks
        n_blocks += 1
        mass[new], events[new] = mass[left] + mass[right], events[left] + events[right]
        # The penalty of a decrease between the two pulled them in opposite directions, which cancels in the sum.
        slope[new] = slope[left] + slope[right]
        first_model[new], end_model[left], end_model[right] = model, model, model
        parent[left] = parent[right] = new
        before, after = left_neighbor[left], right_neighbor[right]
        left_neighbor[new], right_neighbor[new] = before, after
        if before >= 0:
            right_neighbor[before] = new
            _push_meeting(heap, before, new, penalty, mass, events, slope)
        if after >= 0:
            left_neighbor[after] = new
            _push_meeting(heap, new, after, penalty, mass, events, slope)
    return n_blocks, model + 1


@compile_kernel
def _merge_equal(mass, events, block_mass, block_events, initial_block):  # type: ignore[no-untyped-def]
    """Merge neighboring values with equal means; `initial_block` receives the block of each value."""
    n_blocks = 0
    for i in range(mass.shape[0]):
        if (
            n_blocks > 0
            and abs(block_events[n_blocks - 1] / block_mass[n_blocks - 1] - events[i] / mass[i]) <= LEVEL_TOLERANCE
        ):
            block_mass[n_blocks - 1] += mass[i]
            block_events[n_blocks - 1] += events[i]
        else:
            block_mass[n_blocks], block_events[n_blocks] = mass[i], events[i]
            n_blocks += 1
        initial_block[i] = n_blocks - 1
    return n_blocks


@compile_kernel
def _add_parent_values(values, parent):  # type: ignore[no-untyped-def]
    """Add to the value of each block those of all blocks into which it was merged.

    A parent has a higher number than its parts, so its value is complete before it is passed on.
    """
    for block in range(values.shape[0] - 1, -1, -1):
        if parent[block] >= 0:
            values[block] += values[parent[block]]


def near_isotonic_path(mass: Array, events: Array) -> NearIsotonicPath:
    r"""Compute the whole path of nearly isotonic fits.

    The problem is :math:`\min_f \tfrac12\sum_i w_i(y_i - f_i)^2 + \lambda\sum_i (f_i - f_{i+1})_+`, λ ≥ 0. `mass` (m,)
    > 0 has the weights and `events` (m,) the sums Σwy of values in [0, 1], in order. Merged levels never split, so
    there are less than 2m blocks. There is one model for λ = 0 and for every λ at which levels merge. Cost: O(m log m).
    """
    n = len(mass)
    block_mass, block_events, initial_block = np.zeros(2 * n), np.zeros(2 * n), np.empty(n, np.int64)
    slope, parent = np.zeros(2 * n), np.full(2 * n, -1)
    first_model, end_model, lambdas = np.zeros(2 * n, np.int64), np.full(2 * n, -1), np.empty(n)
    n_blocks = _merge_equal(
        as_plain_array(mass.astype(np.float64, copy=False)),
        as_plain_array(events.astype(np.float64, copy=False)),
        block_mass,
        block_events,
        initial_block,
    )
    n_blocks, n_models = _merge_blocks(
        block_mass, block_events, slope, parent, first_model, end_model, lambdas, n_blocks
    )
    end_model[end_model < 0] = n_models
    return NearIsotonicPath(
        block_mass[:n_blocks],
        block_events[:n_blocks],
        slope[:n_blocks],
        parent[:n_blocks],
        first_model[:n_blocks],
        end_model[:n_blocks],
        lambdas[:n_models],
        initial_block,
    )


def average_levels(path: NearIsotonicPath, weights: Array) -> Array:
    """Return the weighted mean of the models' levels at each value, (m,), for weights (models,) that sum to 1.

    The contribution of each block is passed on to its parts, so no single model is expanded. Cost: O(m).
    """
    cumulative_weight, cumulative_lambda = (
        np.concatenate([[0.0], np.cumsum(x)]) for x in (weights, weights * path.lambdas)
    )
    first_model, end_model = path.first_model, path.end_model
    block_levels = (
        path.events * (cumulative_weight[end_model] - cumulative_weight[first_model])
        + path.slope * (cumulative_lambda[end_model] - cumulative_lambda[first_model])
    ) / path.mass
    _add_parent_values(block_levels, path.parent)
    return np.asarray(np.clip(block_levels[path.initial_block], 0.0, 1.0))
