"""Fit isotonic regression by pooling adjacent violators, with an added row (Venn–Abers), and near-isotonic regression.

The path of near-isotonic regression has its fits for all penalties λ on decreases (Tibshirani, Hoefling & Tibshirani,
2011). At λ = 0 the fit is the data. As λ grows, the levels of neighboring blocks approach each other and merge when
they meet, up to isotonic regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel
from trueodds.kernels.parallel import MAX_NUMPY_VALUES
from trueodds.kernels.sorting import argsort_scores, count_by_score, scores_of_keys, sum_by_score


class PooledBlocks(NamedTuple):
    """Blocks of an isotonic fit: intervals of sorted scores with strictly increasing means; each (b,) float64."""

    low: Array  # first score of the block
    high: Array  # last score of the block
    mass: Array  # Σw
    events: Array  # Σwy


@compile_inline
def pool_block(mass, events, last, n_blocks):  # type: ignore[no-untyped-def]
    """Pool the last of the blocks with all preceding blocks whose mean is not lower; return the number of blocks left.

    Means are compared without division, so the result is exact for integers.
    """
    while n_blocks > 1 and events[n_blocks - 2] * mass[n_blocks - 1] >= events[n_blocks - 1] * mass[n_blocks - 2]:
        mass[n_blocks - 2] += mass[n_blocks - 1]
        events[n_blocks - 2] += events[n_blocks - 1]
        last[n_blocks - 2] = last[n_blocks - 1]
        n_blocks -= 1
    return n_blocks


@compile_kernel
def _pool_values(w, wy, mass, events, last):  # type: ignore[no-untyped-def]
    """Compute the isotonic blocks of values with Σw and Σwy, and return their number.

    Values without weight are skipped. `last` receives the index of the last value of each block.
    """
    n_blocks = 0
    for j in range(w.shape[0]):
        if w[j] > 0.0:
            mass[n_blocks], events[n_blocks], last[n_blocks] = w[j], wy[j], j
            n_blocks = pool_block(mass, events, last, n_blocks + 1)
    return n_blocks


@compile_kernel
def _fit_keys(keys, mass, events, last):  # type: ignore[no-untyped-def]
    """Compute the isotonic blocks of sorted keys and return their number; `last` receives the index of their last key.

    A block can begin only after a score that has a non-event, and at a score that has an event. Outcomes are sorted
    among equal scores, so the first key of a score shows whether all of its rows are events.
    """
    n, one_bit = keys.shape[0], keys.dtype.type(1)
    n_blocks, start, n_events = 0, 0, np.int64(0)
    previous_score, all_events = keys[0] >> one_bit, keys[0] & one_bit == one_bit
    for i in range(n):
        score, event = keys[i] >> one_bit, keys[i] & one_bit
        if score != previous_score:
            if not all_events and (event == one_bit or (i + 1 < n and keys[i + 1] >> one_bit == score)):
                mass[n_blocks], events[n_blocks], last[n_blocks] = i - start, n_events, i - 1
                n_blocks = pool_block(mass, events, last, n_blocks + 1)
                start, n_events = i, np.int64(0)
            previous_score, all_events = score, event == one_bit
        n_events += np.int64(event)
    mass[n_blocks], events[n_blocks], last[n_blocks] = n - start, n_events, n - 1
    return pool_block(mass, events, last, n_blocks + 1)


@compile_kernel
def _fit_means(w, wy, fit):  # type: ignore[no-untyped-def]
    """Write the isotonic fit of each draw to `fit` (draws, m), for Σw (draws, m) or (1, m) and Σwy (draws, m)."""
    m = wy.shape[1]
    mass, events, last = np.empty(m), np.empty(m), np.empty(m, dtype=np.int64)
    for draw in range(wy.shape[0]):
        weight_row = draw if w.shape[0] > 1 else 0
        n_blocks = _pool_values(w[weight_row], wy[draw], mass, events, last)
        if n_blocks == 0:
            fit[draw, :] = np.nan
            continue
        last[n_blocks - 1] = m - 1
        start = 0
        for block in range(n_blocks):
            mean = events[block] / mass[block]
            # Cells without weight take the mean of the preceding block, those before the first block that of the first.
            for j in range(start, last[block] + 1):
                fit[draw, j] = mean
            start = last[block] + 1
            while block + 1 < n_blocks and start < m and not w[weight_row, start] > 0.0:
                fit[draw, start] = mean
                start += 1


def fit_sorted_keys(keys: Array) -> PooledBlocks:
    """Return the isotonic blocks of rows of weight 1, given as sorted keys; exact, because sums are integers."""
    n = len(keys)
    if n <= MAX_NUMPY_VALUES:  # fewer kernels to compile
        return _fit_values(*count_by_score(keys))
    mass, events, last = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n_blocks = _fit_keys(as_plain_array(keys), mass, events, last)
    last = last[:n_blocks]
    first = np.append(0, last[:-1] + 1)
    return PooledBlocks(
        scores_of_keys(keys[first]),
        scores_of_keys(keys[last]),
        mass[:n_blocks].astype(float),
        events[:n_blocks].astype(float),
    )


def fit_rows(p: Array, y: Array, w: Array) -> PooledBlocks:
    """Return the isotonic blocks of scores p (n,) with outcome shares y (n,), ignoring rows of weight 0."""
    if len(p) == 0:
        return PooledBlocks(*np.empty((4, 0)))
    # Weights are scaled by a power of two, which does not round, so that products neither overflow nor underflow.
    exponent = int(np.frexp(w.max())[1])
    p_float32 = p.astype(np.float32)  # float32 is sorted several times as fast
    p = p_float32 if (p_float32 == p).all() else p
    scores, w, wy = sum_by_score(p, y, np.ldexp(w, -exponent, dtype=np.float64), argsort_scores(p))
    blocks = _fit_values(scores, w, wy)
    return blocks._replace(mass=np.ldexp(blocks.mass, exponent), events=np.ldexp(blocks.events, exponent))


def _fit_values(scores: Array, w: Array, wy: Array) -> PooledBlocks:
    (mass, events), last = np.empty((2, len(w))), np.empty(len(w), dtype=np.int64)
    n_blocks = _pool_values(as_plain_array(w), as_plain_array(wy), mass, events, last)
    first = np.append(0, last[: n_blocks - 1] + 1)[:n_blocks]
    return PooledBlocks(scores[first], scores[last[:n_blocks]], mass[:n_blocks].copy(), events[:n_blocks].copy())


def isotonic_means(w: Array, wy: Array) -> Array:
    r"""Return the isotonic least-squares fit of the means of ordered cells, (…, m), from Σw and Σwy (…, m).

    .. math:: \min_{r_1 \le \dots \le r_m} \sum_j w_j (y_j - r_j)^2

    The fit is optimal for every other proper score, too. Leading axes broadcast. Cells without weight do not affect
    the fit; they receive the value of the preceding cell, or of the first cell with weight, so that sums over cells
    can include them. Cost: O(m) per draw.
    Source: Ayer et al. (1955), pool adjacent violators.

    >>> isotonic_means(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    shape = np.broadcast_shapes(w.shape, wy.shape)
    w_rows = np.ascontiguousarray(w, dtype=np.float64).reshape(-1, shape[-1])
    wy_rows = np.ascontiguousarray(np.broadcast_to(wy, shape), dtype=np.float64).reshape(-1, shape[-1])
    if len(w_rows) not in (1, len(wy_rows)):  # axes that broadcast in the middle
        w_rows = np.ascontiguousarray(np.broadcast_to(w, shape), dtype=np.float64).reshape(-1, shape[-1])
    fit = np.empty(wy_rows.shape)
    _fit_means(as_plain_array(w_rows), as_plain_array(wy_rows), fit)  # read-only views
    return fit.reshape(shape)


@compile_kernel
def _cross_product(x1, y1, x2, y2, x3, y3):  # type: ignore[no-untyped-def]
    """Return the cross product of the vectors from point 1 to 2 and from 2 to 3, positive if the path turns left."""
    return (x2 - x1) * (y3 - y2) - (y2 - y1) * (x3 - x2)


@compile_kernel
def _fit_added_event(mass, events, rise, run):  # type: ignore[no-untyped-def]
    """Compute the isotonic mean (rise/run) of an added event of weight 1, just below each of the sorted scores.

    The cumulative sums (Σw, Σwy) are points, and the isotonic means are slopes of their greatest convex minorant. The
    added row is a step (1, 1). As it moves up by one score, one point changes. The slope over it never decreases, so
    corners on its left are not needed again.
    """
    m = mass.shape[0]
    x, y = np.empty(m + 1), np.empty(m + 1)  # corners of the minorant, eventually from right to left
    x[0], y[0] = -1.0, -1.0  # built from left to right, with the added row before all others
    n_corners, w, wy = 1, 0.0, 0.0
    for i in range(m):
        w += mass[i]
        wy += events[i]
        while (
            n_corners > 1
            and _cross_product(x[n_corners - 2], y[n_corners - 2], x[n_corners - 1], y[n_corners - 1], w, wy) <= 0.0
        ):
            n_corners -= 1
        x[n_corners], y[n_corners] = w, wy
        n_corners += 1
    for i in range(n_corners // 2):
        j = n_corners - 1 - i
        x[i], x[j], y[i], y[j] = x[j], x[i], y[j], y[i]
    w, wy = -1.0, -1.0
    for i in range(m):
        top = n_corners - 1
        rise[i], run[i] = y[top - 1] - y[top], x[top - 1] - x[top]
        w += mass[i]
        wy += events[i]
        if _cross_product(x[top], y[top], w, wy, x[top - 1], y[top - 1]) <= 0.0:
            continue  # the new point is not below the segment over the added row
        n_corners -= 1
        while (
            n_corners > 1
            and _cross_product(w, wy, x[n_corners - 1], y[n_corners - 1], x[n_corners - 2], y[n_corners - 2]) <= 0.0
        ):
            n_corners -= 1
        x[n_corners], y[n_corners] = w, wy
        n_corners += 1


def added_row_means(mass: Array, events: Array) -> tuple[Array, Array]:
    """Return the isotonic means of an added non-event and of an added event of weight 1, each (m,).

    Given Σw and Σwy at sorted scores s (m,). The first mean applies from s_j up to, but excluding, the next score, and
    is 0 below all scores; the second applies above the previous score up to and including s_j, and is 1 above all.
    Cost: O(m). Source: Vovk, Petej & Fedorova (2015), algorithms 1 to 4.
    """
    rise, run = _added_event_slopes(mass, events)
    high = rise / run
    # A non-event is an event of the complementary outcome, with the scores in reverse order.
    rise, run = _added_event_slopes(mass[::-1], (mass - events)[::-1])
    low = ((run - rise) / run)[::-1]
    # Weighted sums are rounded: keep the means nondecreasing and within [0, 1].
    low, high = (np.clip(np.maximum.accumulate(means), 0.0, 1.0) for means in (low, high))
    return np.minimum(low, high), high


def _added_event_slopes(mass: Array, events: Array) -> tuple[Array, Array]:
    rise, run = np.empty(len(mass)), np.empty(len(mass))
    _fit_added_event(as_plain_array(mass), as_plain_array(events), rise, run)
    return rise, np.maximum(run, 1.0)  # the added row is lost in rounding if weights exceed 2⁵³


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
