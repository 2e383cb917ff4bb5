"""Calls of scipy.stats.bootstrap; SciPy has no calibration error, so the statistic is provided by the user.

`plain` is the one that most would write: paired arrays, NumPy's digitize and bincount in each resample. The other is
the fastest that we found: row numbers are resampled in batches of 10, and a vectorized statistic looks up bins and
residuals that were worked out before (also tried: paired residuals, counts of rows as weights, batches of 1 and 100).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import bootstrap

from benchmarks.data import Arrays
from benchmarks.timed import Timed

DISTRIBUTION = "scipy"


def resampled(arrays: Arrays) -> dict[str, Timed]:
    """The percentile interval of top-label ECE from 1,000 resamples."""

    def tuned() -> list[float]:
        P, y = arrays["P"], arrays["y"]
        top_class = P.argmax(axis=1)
        confidence = P[np.arange(len(P)), top_class].astype(np.float64)
        cell = np.clip(np.ceil(confidence * 15).astype(np.int64) - 1, 0, 14)
        residual = (top_class == y) - confidence
        n = len(P)

        def error(rows: np.ndarray, axis: int = -1) -> np.ndarray:  # noqa: ARG001 - SciPy passes it
            rows = np.atleast_2d(rows)
            slots = cell[rows] + 15 * np.arange(len(rows))[:, None]
            sums = np.bincount(slots.ravel(), residual[rows].ravel(), 15 * len(rows))
            return np.abs(sums.reshape(len(rows), 15)).sum(axis=1) / n

        interval = bootstrap(
            (np.arange(n),), error, n_resamples=1000, batch=10, vectorized=True, method="percentile", rng=0
        ).confidence_interval
        return [interval.low, interval.high]

    def plain() -> list[float]:
        P, y = arrays["P"], arrays["y"]
        top_class = P.argmax(axis=1)
        confidence, correct = P.max(axis=1).astype(np.float64), (top_class == y).astype(np.float64)
        edges = np.arange(16) / 15

        def error(p: np.ndarray, z: np.ndarray) -> float:
            cell = np.clip(np.digitize(p, edges, right=True) - 1, 0, 14)
            return np.abs(np.bincount(cell, z - p, 15)).sum() / len(p)

        interval = bootstrap(
            (confidence, correct), error, n_resamples=1000, paired=True, batch=10, method="percentile", rng=0
        ).confidence_interval
        return [interval.low, interval.high]

    return {"": Timed(tuned), "a plain statistic": Timed(plain)}


ANSWERS = {"bootstrap": resampled}
