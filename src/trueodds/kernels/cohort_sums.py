"""Sums of likelihood ratios by the key of a row, which is its cohort and group in monitoring.

A row with probability p and outcome y has the likelihood exp(yt)/(1 − p + p e^t) under a tilt t of its log odds,
relative to p. The factors 1 + p(e^t − 1) are multiplied, and their product becomes a logarithm every
`ROWS_PER_LOGARITHM` rows, or before it leaves the range of float64. Sums of log(1 − p + p e^u) on a grid of tilts u
integrate a shock that rows share.

The states of monitors hold these sums, and their level depends on each factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, map_blocks

ROWS_PER_LOGARITHM = 64  # factors are at most e^±3 for tilts, so that 64 of them neither overflow nor underflow
NOT_OBSERVED, OBSERVED, UNKNOWN, LEFT_OUT = 0, 1, 2, 3  # what is known of the event of a row
# Saved: sums of each cell, before its logarithms. The first four are those of the rows with a known outcome, the last
# two those of the others, which are left out or unknown.
CELL_COLUMNS = ("rows", "events", "expected", "variance", "unknown", "unlabeled", "unlabeled_expected")
CERTAIN_COLUMNS = ("rows", "events", "expected", "unknown", "impossible")  # Saved: sums of the rows with p = 0 or 1
_MIN_PRODUCT, _MAX_PRODUCT = 1e-200, 1e200
_MIN_ROWS_PER_TASK = 2**17
_MAX_TASKS = 16


@dataclass(frozen=True)
class LikelihoodRatioSums:
    """Sums by key: of each score cell, of the slopes, and of the rows with probability 0 or 1."""

    cells: Array  # (keys, cells, 7 + tilts): CELL_COLUMNS, and the sums of log(1 + p(e^t − 1)) for each tilt
    slopes: Array  # (keys, slopes × centers): log-likelihood ratios beyond the margin
    certain: Array  # (keys, 5): CERTAIN_COLUMNS


def sum_likelihood_ratios(
    p: Array,
    outcome: Array,
    w: Array | None,
    key: Array,
    n_keys: int,
    *,
    squared_weights: bool,
    counts_nonevents: bool,
    edges: Array,
    tilts: Array,
    slopes: Array,
    centers: Array,
    margin: float,
) -> LikelihoodRatioSums:
    """Sum rows by key, in blocks that depend only on the number of rows.

    Parameters
    ----------
    p : array (n,)
        Probabilities.
    outcome : array (n,) of uint8
        NOT_OBSERVED, OBSERVED, UNKNOWN (for each alternative the outcome that is worse for it), or LEFT_OUT.
    w : array (n,), optional
        Weights.
    key : array (n,) of int64
        Key of each row, 0..n_keys−1.
    n_keys : int
        Number of keys.
    squared_weights : bool
        Whether a variance is multiplied by w², not w.
    counts_nonevents : bool
        Whether a nonevent with probability 1 is counted as impossible. For views of the classes of the same rows it is
        not, because the class that occurred has probability 0 then.
    edges : array
        Inner edges of the score cells; a value on an edge belongs to the upper cell.
    tilts : array
        The tilts.
    slopes, centers : array
        Slopes minus 1, and the log odds about which they turn.
    margin : float
        Largest error of the log odds that is no error.
    """
    p, outcome, key = as_plain_array(p), as_plain_array(outcome), as_plain_array(key)
    weights = as_plain_array(np.empty(0) if w is None else w)
    n_cells, n_slopes = len(edges) + 1, len(slopes) * len(centers)
    widths = (n_cells * (len(CELL_COLUMNS) + len(tilts)), n_slopes, len(CERTAIN_COLUMNS))
    total = [np.zeros((n_keys, width)) for width in widths]
    growth = np.expm1(tilts)

    def sum_task(start: int, stop: int) -> tuple[int, list[Array]]:
        rows = slice(start, stop)
        first, last = int(key[rows].min()), int(key[rows].max())
        cells = np.zeros((last - first + 1, n_cells, len(CELL_COLUMNS) + len(tilts)))
        out = [cells, *(np.zeros((last - first + 1, width)) for width in widths[1:])]
        _add_rows(
            p[rows], outcome[rows], weights[rows], key[rows], first, squared_weights, counts_nonevents, edges,
            growth, slopes, centers, margin, *out,
        )  # fmt: skip
        return first, out

    block = max(_MIN_ROWS_PER_TASK, -(-len(p) // _MAX_TASKS))
    for first, parts in map_blocks(sum_task, len(p), block):
        for whole, part in zip(total, parts, strict=True):
            whole[first : first + len(part)] += part.reshape(len(part), -1)
    return LikelihoodRatioSums(total[0].reshape(n_keys, n_cells, -1), total[1], total[2])


@compile_kernel
def _add_rows(  # type: ignore[no-untyped-def]
    p,
    outcome,
    w,
    key,
    first,
    squared_weights,
    counts_nonevents,
    edges,
    growth,
    slopes,
    centers,
    margin,
    cells,
    slope_sums,
    certain,
):
    n_keys, n_cells, n_growth = cells.shape[0], cells.shape[1], growth.shape[0]
    n_slopes, n_centers = slopes.shape[0], centers.shape[0]
    products = np.ones((n_keys, n_cells, n_growth))
    counts = np.zeros((n_keys, n_cells), dtype=np.int64)
    slope_products = np.ones((n_keys, n_slopes * n_centers))
    slope_counts = np.zeros(n_keys, dtype=np.int64)
    up, down = np.expm1(margin), np.expm1(-margin)
    shift = np.empty((n_slopes, n_centers))
    for a in range(n_slopes):
        for b in range(n_centers):
            shift[a, b] = np.exp(-slopes[a] * centers[b])
    has_weights = w.shape[0] > 0
    for i in range(p.shape[0]):
        state, k, x = outcome[i], key[i] - first, np.float64(p[i])
        weight = w[i] if has_weights else 1.0
        cell = 0
        for edge in edges:
            cell += x >= edge
        sums = cells[k, cell]
        if state in (LEFT_OUT, UNKNOWN):
            sums[5] += weight
            sums[6] += weight * x
        if state == LEFT_OUT:
            continue
        event, unknown = weight * (state == OBSERVED), weight * (state == UNKNOWN)
        known = weight - unknown
        if x <= 0.0 or x >= 1.0:
            certain[k, 0] += known
            certain[k, 1] += event
            certain[k, 2] += known * min(max(x, 0.0), 1.0)
            certain[k, 3] += unknown
            if (x <= 0.0 and state == OBSERVED) or (x >= 1.0 and state == NOT_OBSERVED and counts_nonevents):
                certain[k, 4] += (1.0 if weight > 0.0 else 0.0) if squared_weights else weight
            continue
        sums[0] += known
        sums[1] += event
        sums[2] += known * x
        sums[3] += (known * known if squared_weights else known) * x * (1.0 - x)
        sums[4] += unknown
        if has_weights:
            for j in range(n_growth):
                sums[7 + j] += weight * np.log1p(x * growth[j])
        else:
            product = products[k, cell]
            for j in range(n_growth):
                product[j] *= 1.0 + x * growth[j]
            counts[k, cell] += 1
            if counts[k, cell] == ROWS_PER_LOGARITHM:
                counts[k, cell] = 0
                _take_logarithms(product, sums[7:])
        log_odds = np.log(x / (1.0 - x))
        slope_product, slope_sum = slope_products[k], slope_sums[k]
        for a in range(n_slopes):
            power = np.exp(slopes[a] * log_odds)
            for b in range(n_centers):
                tilt = slopes[a] * (log_odds - centers[b])
                if abs(tilt) > margin:
                    j = a * n_centers + b
                    factor = (1.0 + x * (up if tilt > 0.0 else down)) / ((1.0 - x) + x * (power * shift[a, b]))
                    beyond = tilt - margin if tilt > 0.0 else tilt + margin
                    slope_sum[j] += beyond * (event + (unknown if tilt < 0.0 else 0.0))
                    if has_weights:
                        slope_sum[j] += weight * np.log(factor)
                    else:
                        slope_product[j] *= factor
                        if not _MIN_PRODUCT < slope_product[j] < _MAX_PRODUCT:
                            slope_sum[j] += np.log(slope_product[j])
                            slope_product[j] = 1.0
        slope_counts[k] += 1
        if slope_counts[k] == ROWS_PER_LOGARITHM:
            slope_counts[k] = 0
            _take_logarithms(slope_product, slope_sum)
    for k in range(n_keys):
        _take_logarithms(slope_products[k], slope_sums[k])
        for cell in range(n_cells):
            _take_logarithms(products[k, cell], cells[k, cell, 7:])


@compile_inline
def _take_logarithms(products, sums):  # type: ignore[no-untyped-def]
    """Add the logarithm of each product to its sum, and begin new products."""
    for j in range(products.shape[0]):
        sums[j] += np.log(products[j])
        products[j] = 1.0


TILT_STEP = 0.1  # Saved, as the grid
TILT_GRID: Array = np.arange(-40, 41) * TILT_STEP  # 64 factors of at most e^±4 neither overflow nor underflow
TILT_GRID.flags.writeable = False
_MIN_TILTED_ROWS_PER_TASK = 2**16
_MAX_TILTED_TASKS = 8


def sum_tilted(p: Array, outcome: Array, w: Array | None, key: Array, n_keys: int, edges: Array) -> Array:
    """Return Σ w log(1 − p + p e^u) of each key, cell and tilt u of `TILT_GRID`, (keys, cells, tilts).

    Rows with probability 0 or 1 are left out. The arguments are those of `sum_likelihood_ratios`.
    """
    p, outcome, key = as_plain_array(p), as_plain_array(outcome), as_plain_array(key)
    weights = as_plain_array(np.empty(0) if w is None else w)
    growth, total = np.expm1(TILT_GRID), np.zeros((n_keys, len(edges) + 1, len(TILT_GRID)))

    def sum_task(start: int, stop: int) -> tuple[int, Array]:
        rows = slice(start, stop)
        first, last = int(key[rows].min()), int(key[rows].max())
        out = np.zeros((last - first + 1, *total.shape[1:]))
        _add_tilted(p[rows], outcome[rows], weights[rows], key[rows], first, edges, growth, out)
        return first, out

    for first, part in map_blocks(sum_task, len(p), max(_MIN_TILTED_ROWS_PER_TASK, -(-len(p) // _MAX_TILTED_TASKS))):
        total[first : first + len(part)] += part
    return total


@compile_kernel
def _add_tilted(p, outcome, w, key, first, edges, growth, out):  # type: ignore[no-untyped-def]
    products, counts = np.ones(out.shape), np.zeros(out.shape[:2], dtype=np.int64)
    for i in range(p.shape[0]):
        x, k = np.float64(p[i]), key[i] - first
        if outcome[i] == LEFT_OUT or x <= 0.0 or x >= 1.0:
            continue
        cell = 0
        for edge in edges:
            cell += x >= edge
        if w.shape[0] > 0:
            for j in range(growth.shape[0]):
                out[k, cell, j] += w[i] * np.log1p(x * growth[j])
            continue
        product = products[k, cell]
        for j in range(growth.shape[0]):
            product[j] *= 1.0 + x * growth[j]
        counts[k, cell] += 1
        if counts[k, cell] == ROWS_PER_LOGARITHM:
            counts[k, cell] = 0
            for j in range(growth.shape[0]):
                out[k, cell, j] += np.log(product[j])
                product[j] = 1.0
    for k in range(out.shape[0]):
        for cell in range(out.shape[1]):
            for j in range(growth.shape[0]):
                out[k, cell, j] += np.log(products[k, cell, j])
