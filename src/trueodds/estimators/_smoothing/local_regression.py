"""Local polynomial regression (loess, lowess) at fixed scores, as a linear function of the outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.binning.sorted_scores import group_starts
from trueodds.core.typing import Array
from trueodds.kernels import compile_inline, compile_kernel, map_blocks

MAX_EVALUATED_SCORES = 200  # maximum number of scores at which a curve is computed; between them it is interpolated
MAX_CELLS = 2**14  # number of scores up to which each is a cell of its own, and about the largest number of cells
MIN_CELLS_PER_WINDOW = 256  # of a window with as many scores; one with fewer scores has a cell for each
MAX_TRICUBE_ONE = 0.001  # distance relative to the half-width of the window up to which the tricube weight is 1
MIN_TRICUBE_ZERO = 0.999  # distance relative to the half-width of the window above which the tricube weight is 0
ROWS_PER_BLOCK = 16  # number of rows that one thread multiplies at once
MIN_SQUARES = 1e-20  # sum of squares relative to the weight of the window below which a polynomial term is omitted


@dataclass(frozen=True)
class LocalSmoother:
    """Settings of a local polynomial regression: degree, window, and the scores at which it is evaluated."""

    degree: int  # degree of the local polynomial, 1 or 2
    span: float  # share of all rows in each window
    # A window whose scores have a smaller standard deviation, relative to the range of all scores, gets a constant.
    min_relative_std: float
    # Distance of evaluated scores relative to the range of all scores. None: at most MAX_EVALUATED_SCORES scores.
    relative_spacing: float | None


# The constants of the two procedures are those of Cleveland (1979) as R's lowess and loess have them.
SMOOTHERS = {
    "loess": LocalSmoother(degree=2, span=0.75, min_relative_std=0.0, relative_spacing=None),
    "lowess": LocalSmoother(degree=1, span=2 / 3, min_relative_std=0.001, relative_spacing=0.01),
}


class LocalFit:
    """Local polynomial regression at fixed scores, which is linear in the values and exact for straight lines.

    At each score the nearest rows that make up `span` of the weight get tricube weights of their distance, and a
    polynomial is fitted by least squares. A window with too few scores for the degree gets a lower one.

    Of more than 16,384 scores, neighbors form cells, and a polynomial is fitted to the means of the cells. The windows
    are those of the scores, and the curve is returned at each score.

    `s` (m,) are the distinct scores in increasing order and `share` (m,) their shares of the total weight.
    `row_share` is the share of one row, or 0 if the weights do not count rows.
    """

    def __init__(self, smoother: LocalSmoother, s: Array, share: Array, row_share: float) -> None:
        s, share = np.ascontiguousarray(s), np.ascontiguousarray(share)
        # A window ends at the score with which its weight reaches `span`, less a tolerance for rounded sums.
        span = smoother.span - 1e-12
        if row_share > 0:  # weights that count rows: a whole number of them, as in R
            span = np.floor(smoother.span / row_share + 1e-5) * row_share - row_share / 2
        evaluated_index = _select_evaluated_scores(s, share, smoother.relative_spacing)
        self.evaluated = s[evaluated_index]
        # Each score lies between the evaluated scores number `left` and `right`, from which it is interpolated.
        last = len(evaluated_index) - 1
        self.left = np.append(np.repeat(np.arange(last), np.diff(evaluated_index)), max(last - 1, 0))
        self.right = np.minimum(self.left + 1, last)
        gap_widths = np.diff(self.evaluated, append=self.evaluated[-1])[self.left]
        self.interpolation_fraction = (s - self.evaluated[self.left]) / np.where(gap_widths > 0, gap_widths, 1.0)
        half_widths = _half_widths(s, np.concatenate(([0.0], np.cumsum(share))), evaluated_index, span)
        self.starts = _cell_starts(s, share, self.evaluated, half_widths)
        cell_share, cell_mean = share, s
        if len(self.starts) < len(s):
            cell_share = np.add.reduceat(share, self.starts)
            cell_mean = np.add.reduceat(share * s, self.starts) / cell_share
        min_std = smoother.min_relative_std * float(s[-1] - s[0])
        self.weights = np.zeros((len(cell_mean), len(evaluated_index)))  # of each cell for each evaluated score
        windows = np.stack(  # (k, 3) the cell of each evaluated score, and the first and the last cell of its window
            [
                np.searchsorted(self.starts, evaluated_index, "right") - 1,
                np.searchsorted(cell_mean, self.evaluated - half_widths),
                np.searchsorted(cell_mean, self.evaluated + half_widths, "right") - 1,
            ],
            axis=1,
        )
        _local_weights(
            cell_mean, cell_share, self.evaluated, windows, half_widths, smoother.degree, min_std, self.weights
        )

    def __call__(self, sums: Array) -> Array:
        """Return the curve at each score, (…, m), given Σw·x of each score divided by the total weight, (…, m)."""
        fit, fraction = self.at_evaluated(sums), self.interpolation_fraction
        return fit[..., self.left] * (1 - fraction) + fit[..., self.right] * fraction

    def at_evaluated(self, sums: Array) -> Array:
        """Return the curve at the evaluated scores, (…, k), given the same sums of each score, (…, m)."""
        cell_sums = sums if len(self.starts) == sums.shape[-1] else np.add.reduceat(sums, self.starts, axis=-1)
        rows = np.ascontiguousarray(cell_sums).reshape(-1, cell_sums.shape[-1])
        return _multiply_in_blocks(rows, self.weights).reshape(*sums.shape[:-1], len(self.evaluated))


def _cell_starts(s: Array, share: Array, evaluated: Array, half_widths: Array) -> Array:
    """Index of the first score of each cell: a score each up to MAX_CELLS scores s (m,), else of small width and share.

    Half of the cuts are evenly spaced by weight and half by score. The windows of the evaluated scores (k,) with few
    cells, such as those beside a score of large weight, are divided into more, so that a cell is small relative to each
    window.
    """
    if len(s) <= MAX_CELLS:
        return np.arange(len(s))
    by_score = np.searchsorted(s, np.linspace(s[0], s[-1], MAX_CELLS // 2))
    starts = np.union1d(group_starts(share, MAX_CELLS // 2), by_score)
    first = np.searchsorted(s, evaluated - half_widths)
    stop = np.searchsorted(s, evaluated + half_widths, "right")
    n_cells = np.searchsorted(starts, stop) - np.searchsorted(starts, first)
    has_few = n_cells < np.minimum(MIN_CELLS_PER_WINDOW, stop - first + 1)
    windows = zip(first[has_few], stop[has_few], strict=True)
    finer = [np.linspace(i, j, min(MIN_CELLS_PER_WINDOW, j - i) + 1).astype(np.int64) for i, j in windows]
    starts = np.unique(np.concatenate([starts, *finer]))
    return starts[starts < len(s)]


def _multiply_in_blocks(rows: Array, weights: Array) -> Array:
    """Product (B, k) of rows (B, m) and weights (m, k), without BLAS, whose threads block each other."""

    def multiply_rows(start: int, stop: int) -> Array:
        product = np.zeros((stop - start, weights.shape[1]))
        _multiply_block(rows[start:stop], weights, product)
        return product

    return np.concatenate(list(map_blocks(multiply_rows, len(rows), ROWS_PER_BLOCK)))


def _select_evaluated_scores(s: Array, share: Array, relative_spacing: float | None) -> Array:
    """Indices of the scores s (m,) at which the curve is computed, including the first and the last."""
    if relative_spacing is not None:
        return _next_scores(s, relative_spacing * float(s[-1] - s[0]))
    if len(s) <= MAX_EVALUATED_SCORES:
        return np.arange(len(s))
    # Half of them are evenly spaced by score and half by weight, so that sparse and dense ranges both have enough.
    fractions = np.linspace(0, 1, MAX_EVALUATED_SCORES // 2)
    by_score = np.searchsorted(s, s[0] + fractions * (s[-1] - s[0]))
    by_weight = np.searchsorted(np.cumsum(share), fractions * share.sum())
    return np.unique(np.concatenate((by_score, by_weight, [0, len(s) - 1])).clip(0, len(s) - 1))


def _next_scores(s: Array, max_distance: float) -> Array:
    """Indices of scores s (m,): each is the last one within `max_distance` of the previous one, or the next one."""
    indices = [0]
    while indices[-1] < len(s) - 1:
        indices.append(max(indices[-1] + 1, int(np.searchsorted(s, s[indices[-1]] + max_distance, "right")) - 1))
    return np.array(indices)


@compile_kernel
def _half_widths(s, cumulative_share, evaluated, span):  # type: ignore[no-untyped-def]
    """Distance (k,) from each evaluated score within which the nearest scores make up `span` of the weight.

    `cumulative_share` (m + 1,) is the share of the weight below each score s (m,), and 1.
    """
    half_widths = np.empty(evaluated.shape[0])
    last = s.shape[0] - 1
    for column in range(evaluated.shape[0]):
        i = evaluated[column]
        # The window ends at a score on the left or on the right: the nearest one that suffices, by bisection.
        low, high = 0, i + 1  # scores on the left before `low` suffice if any does; those from `high` on do not
        while low < high:
            middle = (low + high) // 2
            end = _last_within(s, i, s[i] - s[middle])
            if cumulative_share[end + 1] - cumulative_share[middle] >= span:
                low = middle + 1
            else:
                high = middle
        nearest_left = low - 1
        low, high = i, last + 1
        while low < high:
            middle = (low + high) // 2
            start = _first_within(s, i, s[middle] - s[i])
            if cumulative_share[middle + 1] - cumulative_share[start] >= span:
                high = middle
            else:
                low = middle + 1
        half_width = max(s[i] - s[0], s[last] - s[i])
        if nearest_left >= 0:
            half_width = min(half_width, s[i] - s[nearest_left])
        if low <= last:
            half_width = min(half_width, s[low] - s[i])
        half_widths[column] = half_width
    return half_widths


@compile_inline
def _last_within(s, i, distance):  # type: ignore[no-untyped-def]
    """Index of the largest of the scores s (m,) at most `distance` above s[i]."""
    low, high = i, s.shape[0] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if s[middle] - s[i] <= distance:
            low = middle
        else:
            high = middle - 1
    return low


@compile_inline
def _first_within(s, i, distance):  # type: ignore[no-untyped-def]
    """Index of the smallest of the scores s (m,) at most `distance` below s[i]."""
    low, high = 0, i
    while low < high:
        middle = (low + high) // 2
        if s[i] - s[middle] <= distance:
            high = middle
        else:
            low = middle + 1
    return low


@compile_kernel
def _local_weights(s, share, evaluated, windows, half_widths, degree, min_std, weights):  # type: ignore[no-untyped-def]
    """Fill `weights` (m, k): the fit at evaluated[column] is Σ_j weights[j, column] · share[j] · value[j].

    The cells (m,) have the mean scores `s` and the shares `share` of the weight. `windows` (k, 3) has the cell of each
    evaluated score, and the first and the last cell of its window. With u = (s_j − evaluated) / half_width, the
    polynomials 1, u − mean and (u − skew)(u − mean) − variance are orthogonal in the window, so that no ill-conditioned
    system is solved.
    """
    tricube = np.empty(s.shape[0])
    for column in range(evaluated.shape[0]):
        center, half_width = evaluated[column], half_widths[column]
        own_cell, first, last = windows[column, 0], windows[column, 1], windows[column, 2]
        if half_width == 0.0:
            weights[own_cell, column] = 1.0 / share[own_cell]
            continue
        total = mean = 0.0
        for j in range(first, last + 1):
            r = abs(s[j] - center) / half_width
            tricube[j] = 1.0 if r <= MAX_TRICUBE_ONE else (0.0 if r > MIN_TRICUBE_ZERO else (1.0 - r * r * r) ** 3)
            total += share[j] * tricube[j]
            mean += share[j] * tricube[j] * (s[j] - center) / half_width
        mean /= total
        sum_squares = sum_cubes = 0.0
        for j in range(first, last + 1):
            linear = (s[j] - center) / half_width - mean
            squared = share[j] * tricube[j] * linear * linear
            sum_squares += squared
            sum_cubes += squared * (linear + mean)
        has_slope = sum_squares > MIN_SQUARES * total and sum_squares > (min_std / half_width) ** 2 * total
        sum_quadratic = skew = variance = 0.0
        if has_slope and degree == 2:
            skew, variance = sum_cubes / sum_squares, sum_squares / total
            for j in range(first, last + 1):
                u = (s[j] - center) / half_width
                quadratic = (u - skew) * (u - mean) - variance
                sum_quadratic += share[j] * tricube[j] * quadratic * quadratic
        has_curvature = sum_quadratic > MIN_SQUARES * total
        for j in range(first, last + 1):
            u = (s[j] - center) / half_width
            weight = 1.0 / total
            if has_slope:
                weight -= mean * (u - mean) / sum_squares
            if has_curvature:
                weight += (skew * mean - variance) * ((u - skew) * (u - mean) - variance) / sum_quadratic
            weights[j, column] = tricube[j] * weight


@compile_kernel
def _multiply_block(rows, weights, product):  # type: ignore[no-untyped-def]
    """Add rows (B, m) times weights (m, k) to `product` (B, k)."""
    for j in range(weights.shape[0]):
        for row in range(rows.shape[0]):
            x = rows[row, j]
            for column in range(weights.shape[1]):
                product[row, column] += x * weights[j, column]
