"""Local polynomial regression (loess, lowess) at fixed scores, as a linear function of the outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

MAX_EVALUATED_SCORES = 200  # maximum number of scores at which a curve is computed; between them it is interpolated
MAX_CACHED_WEIGHTS = 2**22  # maximum number of elements of a cached weight matrix: 32 MB
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

    `s` (m,) are the distinct scores in increasing order and `share` (m,) their shares of the total weight.
    `row_share` is the share of one row, or 0 if the weights do not count rows.
    """

    def __init__(self, smoother: LocalSmoother, s: Array, share: Array, row_share: float) -> None:
        self.s, self.share = np.ascontiguousarray(s), np.ascontiguousarray(share)
        # A window ends at the score with which its weight reaches `span`, less a tolerance for rounded sums.
        self.span = smoother.span - 1e-12
        if row_share > 0:  # weights that count rows: a whole number of them, as in R
            self.span = np.floor(smoother.span / row_share + 1e-5) * row_share - row_share / 2
        self.degree, self.min_std = smoother.degree, smoother.min_relative_std * float(s[-1] - s[0])
        self.evaluated_index = _select_evaluated_scores(self.s, self.share, smoother.relative_spacing)
        # Each score lies between the evaluated scores number `left` and `right`, from which it is interpolated.
        evaluated, last = s[self.evaluated_index], len(self.evaluated_index) - 1
        self.left = np.clip(np.searchsorted(evaluated, s, "right") - 1, 0, max(last - 1, 0))
        self.right = np.minimum(self.left + 1, last)
        gap_widths = evaluated[self.right] - evaluated[self.left]
        has_gap = gap_widths > 0
        self.interpolation_fraction = np.where(
            has_gap, (s - evaluated[self.left]) / np.where(has_gap, gap_widths, 1.0), 0.0
        )
        self.block_size = max(1, MAX_CACHED_WEIGHTS // len(s))  # weights of a long curve are recomputed in each call
        self._cached_weights = self._weights(0) if self.block_size >= len(self.evaluated_index) else None

    def __call__(self, sums: Array) -> Array:
        """Return the curve at each score, (…, m), given Σw·x of each score divided by the total weight, (…, m)."""
        rows = np.ascontiguousarray(sums).reshape(-1, sums.shape[-1])
        block_starts = range(0, len(self.evaluated_index), self.block_size)
        fit = np.concatenate(
            [_multiply_in_blocks(rows, self._weights_of_block(start)) for start in block_starts], axis=-1
        )
        fit = fit.reshape(*sums.shape[:-1], len(self.evaluated_index))
        fraction = self.interpolation_fraction
        return fit[..., self.left] * (1 - fraction) + fit[..., self.right] * fraction

    def _weights_of_block(self, start: int) -> Array:
        """Cached or computed weights (m, block) of all scores for the evaluated scores from number `start` on."""
        return self._weights(start) if self._cached_weights is None else self._cached_weights

    def _weights(self, start: int) -> Array:
        """Compute the weights (m, block) of all scores for the evaluated scores from number `start` on."""
        evaluated = self.evaluated_index[start : start + self.block_size]
        weights = np.zeros((len(self.s), len(evaluated)))
        _local_weights(self.s, self.share, evaluated, self.span, self.degree, self.min_std, weights)
        return weights


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
def _find_window(s, share, i, span):  # type: ignore[no-untyped-def]
    """Nearest scores to s[i] that make up `span` of the weight: first and last index, and the largest distance."""
    first, last, mass, half_width = i, i, share[i], 0.0
    while mass < span and (first > 0 or last < s.shape[0] - 1):
        if last == s.shape[0] - 1 or (first > 0 and s[i] - s[first - 1] <= s[last + 1] - s[i]):
            first -= 1
            half_width = s[i] - s[first]
            mass += share[first]
        else:
            last += 1
            half_width = s[last] - s[i]
            mass += share[last]
    return first, last, half_width


@compile_kernel
def _local_weights(s, share, evaluated, span, degree, min_std, weights):  # type: ignore[no-untyped-def]
    """Fill `weights` (m, k): the fit at s[evaluated[column]] is Σ_j weights[j, column] · share[j] · value[j].

    With u = (s_j − s_i) / half_width, the polynomials 1, u − mean and (u − skew)(u − mean) − variance are orthogonal
    in the window, so that no ill-conditioned system is solved.
    """
    tricube = np.empty(s.shape[0])
    for column in range(evaluated.shape[0]):
        i = evaluated[column]
        first, last, half_width = _find_window(s, share, i, span)
        if half_width == 0.0:
            weights[i, column] = 1.0 / share[i]
            continue
        total = mean = 0.0
        for j in range(first, last + 1):
            r = abs(s[j] - s[i]) / half_width
            tricube[j] = 1.0 if r <= MAX_TRICUBE_ONE else (0.0 if r > MIN_TRICUBE_ZERO else (1.0 - r * r * r) ** 3)
            total += share[j] * tricube[j]
            mean += share[j] * tricube[j] * (s[j] - s[i]) / half_width
        mean /= total
        sum_squares = sum_cubes = 0.0
        for j in range(first, last + 1):
            linear = (s[j] - s[i]) / half_width - mean
            squared = share[j] * tricube[j] * linear * linear
            sum_squares += squared
            sum_cubes += squared * (linear + mean)
        has_slope = sum_squares > MIN_SQUARES * total and sum_squares > (min_std / half_width) ** 2 * total
        sum_quadratic = skew = variance = 0.0
        if has_slope and degree == 2:
            skew, variance = sum_cubes / sum_squares, sum_squares / total
            for j in range(first, last + 1):
                u = (s[j] - s[i]) / half_width
                quadratic = (u - skew) * (u - mean) - variance
                sum_quadratic += share[j] * tricube[j] * quadratic * quadratic
        has_curvature = sum_quadratic > MIN_SQUARES * total
        for j in range(first, last + 1):
            u = (s[j] - s[i]) / half_width
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
