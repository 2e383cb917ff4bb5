"""Local polynomial regression (loess, lowess) as fixed weights on the outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

MAX_EVALUATED_SCORES = 200  # scores at which a long curve is computed; straight lines join them
MAX_CACHED_WEIGHTS = 2**22  # entries of a matrix of weights that is kept: 32 MB


@dataclass(frozen=True)
class LocalSmoother:
    """Settings of a local polynomial regression: degree, window, and the scores at which it is evaluated."""

    degree: int
    span: float  # the share of all rows in each window
    min_relative_std: (
        float  # below this standard deviation of its scores, relative to the range, a window gets a constant
    )
    relative_spacing: (
        float | None
    )  # of evaluated scores, as a share of the range; None: at most MAX_EVALUATED_SCORES scores


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
        span = smoother.span
        if row_share > 0:  # weights that count rows: a whole number of them, as in R
            span = np.floor(smoother.span / row_share + 1e-5) * row_share
        self.span = span - (row_share / 2 if row_share > 0 else 1e-12)  # sums of shares round
        self.degree, self.min_std = smoother.degree, smoother.min_relative_std * float(s[-1] - s[0])
        self.evaluated_index = _select_evaluated_scores(self.s, self.share, smoother.relative_spacing)
        self.left = np.clip(
            np.searchsorted(s[self.evaluated_index], s, "right") - 1, 0, max(len(self.evaluated_index) - 2, 0)
        )
        self.right = np.minimum(self.left + 1, len(self.evaluated_index) - 1)
        between = s[self.evaluated_index][self.right] - s[self.evaluated_index][self.left]
        self.interpolation_fraction = np.where(
            between > 0, (s - s[self.evaluated_index][self.left]) / np.where(between > 0, between, 1.0), 0.0
        )
        self.block_size = max(1, MAX_CACHED_WEIGHTS // len(s))  # a long curve's weights are made in passing, not kept
        self._cached_weights = self._weights(0) if self.block_size >= len(self.evaluated_index) else None

    def __call__(self, sums: Array) -> Array:
        """Return the curve at each score, (…, m), given Σw·x of each score divided by the total weight, (…, m)."""
        rows = np.ascontiguousarray(sums).reshape(-1, sums.shape[-1])
        fit = np.concatenate(
            [
                _multiply_in_blocks(rows, self._weights_of_block(i))
                for i in range(0, len(self.evaluated_index), self.block_size)
            ],
            axis=-1,
        )
        fit = fit.reshape(*sums.shape[:-1], len(self.evaluated_index))
        return (
            fit[..., self.left] * (1 - self.interpolation_fraction) + fit[..., self.right] * self.interpolation_fraction
        )

    def _weights_of_block(self, start: int) -> Array:
        return self._weights(start) if self._cached_weights is None else self._cached_weights

    def _weights(self, start: int) -> Array:
        at = self.evaluated_index[start : start + self.block_size]
        out = np.zeros((len(self.s), len(at)))
        _local_weights(self.s, self.share, at, self.span, self.degree, self.min_std, out)
        return out


def _multiply_in_blocks(rows: Array, weights: Array) -> Array:
    """Product of rows (B, m) and weights (m, e) without BLAS, whose threads block each other on a busy machine."""

    def work(start: int, stop: int) -> Array:
        out = np.zeros((stop - start, weights.shape[1]))
        _multiply_block(rows[start:stop], weights, out)
        return out

    return np.concatenate(list(map_blocks(work, len(rows), 16)))


def _select_evaluated_scores(s: Array, share: Array, step: float | None) -> Array:
    """Indices of the scores at which the curve is computed, including the first and the last."""
    if step is not None:
        return _next_scores(s, step * float(s[-1] - s[0]))
    if len(s) <= MAX_EVALUATED_SCORES:
        return np.arange(len(s))
    # Half of them evenly by score and half by weight: neither sparse nor crowded stretches are cut short.
    even = np.linspace(0, 1, MAX_EVALUATED_SCORES // 2)
    by_score = np.searchsorted(s, s[0] + even * (s[-1] - s[0]))
    by_weight = np.searchsorted(np.cumsum(share), even * share.sum())
    return np.unique(np.concatenate((by_score, by_weight, [0, len(s) - 1])).clip(0, len(s) - 1))


def _next_scores(s: Array, delta: float) -> Array:
    """Next score of each: the furthest one within delta, or the following one."""
    at = [0]
    while at[-1] < len(s) - 1:
        at.append(max(at[-1] + 1, int(np.searchsorted(s, s[at[-1]] + delta, "right")) - 1))
    return np.array(at)


@compile_kernel
def _local_weights(s, share, at, span, degree, flat, out):  # type: ignore[no-untyped-def]
    m = s.shape[0]
    kernel = np.empty(m)
    for e in range(at.shape[0]):
        i = at[e]
        x = s[i]
        first, last, mass, h = i, i, share[i], 0.0
        while mass < span and (first > 0 or last < m - 1):
            if last == m - 1 or (first > 0 and x - s[first - 1] <= s[last + 1] - x):
                first -= 1
                h = x - s[first]
                mass += share[first]
            else:
                last += 1
                h = s[last] - x
                mass += share[last]
        if h == 0.0:
            out[i, e] = 1.0 / share[i]
            continue
        total = mean = 0.0
        for j in range(first, last + 1):
            r = abs(s[j] - x) / h
            tricube = 1.0 if r <= 0.001 else (0.0 if r > 0.999 else (1.0 - r * r * r) ** 3)
            kernel[j] = tricube
            total += share[j] * tricube
            mean += share[j] * tricube * (s[j] - x) / h
        mean /= total
        # Polynomials that are orthogonal in the window, one degree after the other: nothing ill-conditioned is solved.
        sum_squares = skew = 0.0
        for j in range(first, last + 1):
            q = (s[j] - x) / h - mean
            weight = share[j] * kernel[j] * q * q
            sum_squares += weight
            skew += weight * (q + mean)
        line = sum_squares > 1e-20 * total and sum_squares > (flat / h) ** 2 * total
        curve = 0.0
        turn, level = 0.0, 0.0
        if line and degree == 2:
            turn, level = skew / sum_squares, sum_squares / total
            for j in range(first, last + 1):
                u = (s[j] - x) / h
                q = (u - turn) * (u - mean) - level
                curve += share[j] * kernel[j] * q * q
        quadratic = curve > 1e-20 * total
        for j in range(first, last + 1):
            u = (s[j] - x) / h
            pull = 1.0 / total
            if line:
                pull -= mean * (u - mean) / sum_squares
            if quadratic:
                pull += (turn * mean - level) * ((u - turn) * (u - mean) - level) / curve
            out[j, e] = kernel[j] * pull


@compile_kernel
def _multiply_block(rows, weights, out):  # type: ignore[no-untyped-def]
    for j in range(weights.shape[0]):
        for b in range(rows.shape[0]):
            x = rows[b, j]
            for e in range(weights.shape[1]):
                out[b, e] += x * weights[j, e]
