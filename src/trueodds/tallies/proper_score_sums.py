"""Brier score and log loss of each row, and their mergeable sums."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import map_rows_in_blocks

SCORES = ("brier", "log_loss")


@dataclass(frozen=True, slots=True)
class ProperScoreSums:
    """Sums over rows that determine the weighted mean of a score and its standard error.

    The sums of two batches are merged with `+`. Infinite scores are counted separately.

    >>> sums = ProperScoreSums.from_scores(np.array([0.0, 1.0])) + ProperScoreSums.from_scores(np.array([0.5, 0.5]))
    >>> sums.mean, round(sums.standard_error, 4)
    (0.5, 0.1768)
    """

    w: float = 0.0  # Σw, as the next four over the rows with a finite score s
    ww: float = 0.0  # Σw²
    ws: float = 0.0  # Σws
    wws: float = 0.0  # Σw²s
    wwss: float = 0.0  # Σw²s²
    infinite: int = 0  # number of rows with an infinite score, whatever their weight
    infinite_w: float = 0.0  # their total weight

    @classmethod
    def from_scores(cls, s: Array, w: Array | None = None) -> ProperScoreSums:
        """Sums of one score per row. Without weights each row counts once."""
        finite = np.isfinite(s)
        n_infinite = len(s) - int(finite.sum())
        infinite_weight = float(n_infinite if w is None else w[~finite].sum())
        if n_infinite:
            s, w = s[finite], None if w is None else w[finite]
        # no dot products: BLAS splits them over threads, and the sum would depend on their number
        w_sum, ww, ws, wws, wwss = score_terms(s, w).sum(axis=1).tolist()
        return cls(w_sum, ww, ws, wws, wwss, n_infinite, infinite_weight)

    def __add__(self, other: ProperScoreSums) -> ProperScoreSums:
        return ProperScoreSums(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def mean(self) -> float:
        """Weighted mean; infinite if a row of positive weight has an infinite score."""
        if self.infinite_w > 0:
            return math.inf
        return self.ws / self.w if self.w > 0 else math.nan

    @property
    def standard_error(self) -> float:
        """√Σw²(s − mean)² / Σw, for independent rows; NaN if the mean is infinite."""
        m = self.mean
        if not math.isfinite(m):
            return math.nan
        return math.sqrt(max(0.0, self.wwss - 2 * m * self.wws + m * m * self.ww)) / self.w


def score_terms(s: Array, w: Array | None) -> Array:
    """Contribution of each row to the first five fields of `ProperScoreSums`, (5, n), given its finite score s (n,)."""
    if w is None:
        one, ss = np.ones(len(s)), s * s
        return np.stack([one, one, s, s, ss])
    ww = w * w
    return np.stack([w, ww, w * s, ww * s, ww * s * s])


def brier(p: Array, y: Array) -> Array:
    """Brier score of each row: (p − y)² for a binary view, the sum over classes for a joint view.

    A vote share of 0.7 counts as 0.7 of a row with the event and 0.3 without.

    >>> brier(np.array([0.5]), np.array([0.7])).round(4).tolist()
    [0.25]
    """
    if p.ndim == 1:
        p = p.astype(np.float64, copy=False)
        return (p - y) ** 2 + y * (1 - y)  # p² − 2py + y, without its cancellation near p = 1

    def score_rows(p: Array, y: Array) -> tuple[Array]:
        return (((p.astype(np.float64, copy=False) - y) ** 2 + y * (1 - y)).sum(axis=1),)

    (score,) = map_rows_in_blocks(score_rows, p, y)
    return score


def squared_norm(p: Array) -> Array:
    """Sum of the squared probabilities of each row, (n,), for p (n, m).

    >>> squared_norm(np.array([[0.5, 0.5]])).tolist()
    [0.5]
    """
    (norm,) = map_rows_in_blocks(lambda rows: (np.square(rows, dtype=np.float64).sum(axis=1),), p)
    return norm


def log_loss(p: Array, y: Array, min_prob: float = 0.0) -> Array:
    """Log loss −Σ y log p of each row in nats; infinite if an outcome of probability 0 is observed, unless clipped.

    For a single column (n,) the complement is 1 − p. Use `log_loss_from_logs` if both logarithms are known.

    >>> log_loss(np.array([0.0, 1.0]), np.array([1.0, 1.0])).tolist()
    [inf, 0.0]
    """
    if p.ndim == 1:
        p, y = (np.stack([1 - values.astype(np.float64), values], axis=1) for values in (p, y))

    def score_rows(p: Array, y: Array) -> tuple[Array]:
        with np.errstate(divide="ignore"):
            return (log_loss_from_logs(np.log(np.maximum(p, 0.0, dtype=np.float64)), y, min_prob),)

    (score,) = map_rows_in_blocks(score_rows, p, y)
    return score


def log_loss_from_logs(logs: Array, y: Array, min_prob: float = 0.0) -> Array:
    """−Σ y log p of each row from log-probabilities (n, m) and shares of outcomes (n, m).

    >>> log_loss_from_logs(np.array([[-5681.0, 0.0]]), np.array([[1.0, 0.0]])).tolist()
    [5681.0]
    """

    def score_rows(logs: Array, y: Array) -> tuple[Array]:
        if min_prob:
            logs = np.maximum(logs, np.log(min_prob))
        with np.errstate(invalid="ignore"):
            return (np.where(y > 0, y * -logs, 0.0).sum(axis=1),)

    (score,) = map_rows_in_blocks(score_rows, logs, y)
    return score


def count_rows_below(logs: Array, min_prob: float) -> int:
    """Return the number of rows of log-probabilities (n, m) with a probability below `min_prob`."""
    return int((logs < np.log(min_prob)).any(axis=1).sum())
