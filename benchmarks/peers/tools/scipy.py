"""Calls of SciPy: the bootstrap of the top-label ECE, with two versions of the statistic, which the user provides.

The version "a plain statistic" is what most users would write: paired arrays, with NumPy's digitize and bincount in
each resample. The other one is the fastest that we know: row numbers are resampled in batches of 10, and a vectorized
statistic looks up bins and residuals that were computed before. (Paired residuals, counts of rows as weights, and
batches of 1 and 100 were slower.)
"""

from __future__ import annotations

import numpy as np
from scipy.stats import bootstrap

from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall

DISTRIBUTION = "scipy"
N_BINS = 15


def prepare_bootstraps(arrays: Arrays) -> dict[str, TimedCall]:
    """Return the calls of both versions; the value is the percentile interval from 1,000 resamples."""
    P, y = arrays["P"], arrays["y"]
    return {
        "": TimedCall(lambda: bootstrap_vectorized(P, y)),
        "a plain statistic": TimedCall(lambda: bootstrap_plain(P, y)),
    }


def bootstrap_vectorized(P: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the interval from resampled row numbers, whose bins and residuals are computed once."""
    n = len(P)
    top_class = P.argmax(axis=1)
    confidence = P[np.arange(n), top_class].astype(np.float64)
    bin_index = np.clip(np.ceil(confidence * N_BINS).astype(np.int64) - 1, 0, N_BINS - 1)
    residual = (top_class == y) - confidence

    def ece_of_resamples(rows: np.ndarray, axis: int = -1) -> np.ndarray:  # noqa: ARG001 - SciPy passes axis
        """Return the ECE of each resample of row numbers (n_resamples, n), from one call of bincount."""
        rows = np.atleast_2d(rows)
        n_resamples = len(rows)
        bin_of_resample = bin_index[rows] + N_BINS * np.arange(n_resamples)[:, None]
        sums = np.bincount(bin_of_resample.ravel(), residual[rows].ravel(), N_BINS * n_resamples)
        return np.abs(sums.reshape(n_resamples, N_BINS)).sum(axis=1) / n

    interval = bootstrap(
        (np.arange(n),), ece_of_resamples, n_resamples=1000, batch=10, vectorized=True, method="percentile", rng=0
    ).confidence_interval
    return [interval.low, interval.high]


def bootstrap_plain(P: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the interval from resampled pairs of confidence and correctness."""
    confidence = P.max(axis=1).astype(np.float64)
    is_correct = (P.argmax(axis=1) == y).astype(np.float64)
    edges = np.arange(N_BINS + 1) / N_BINS

    def ece(confidence: np.ndarray, is_correct: np.ndarray) -> float:
        bin_index = np.clip(np.digitize(confidence, edges, right=True) - 1, 0, N_BINS - 1)
        return np.abs(np.bincount(bin_index, is_correct - confidence, N_BINS)).sum() / len(confidence)

    interval = bootstrap(
        (confidence, is_correct), ece, n_resamples=1000, paired=True, batch=10, method="percentile", rng=0
    ).confidence_interval
    return [interval.low, interval.high]


CALLS_BY_TASK = {"bootstrap": prepare_bootstraps}
