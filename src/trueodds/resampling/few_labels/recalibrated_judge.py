"""Recalibrate the scores of a judge by cross-fitted ridge logistic regression, with one prediction for every row."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.resampling.few_labels.judged_rows import SampledRows

FOLDS = 5
SLOPE_PENALTY, INTERCEPT_PENALTY = 1.0, 0.1  # ridge, in nats per squared coefficient, times two
MAX_STEPS, STEP_TOLERANCE = 50, 1e-10
MIN_DISTANCE, MAX_DISTANCE = 1e-6, 0.25  # of scores of exactly 0 and 1 from these ends, where logits are taken


def standardized_logits(scores: Array) -> Array | None:
    """Return the logits of the scores with mean 0 and variance 1; None if all scores are equal.

    Scores of 0 and 1 count as half as far from the end as the nearest other score.

    >>> standardized_logits(np.array([0.0, 1.0, 1.0, 0.0])).tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """
    distances = np.minimum(scores, 1 - scores)
    nearest = float(distances.min(initial=1.0, where=distances > 0))
    distance = min(max(nearest / 2, MIN_DISTANCE), MAX_DISTANCE)
    p = np.clip(scores, distance, 1 - distance)
    logits: Array = np.log(p / (1 - p))
    logits -= logits.mean()
    sd = float(np.sqrt(logits @ logits / len(logits)))
    return None if sd < 1e-9 else logits / sd


def recalibrate_judge(scores: Array, y: Array, rows: SampledRows, rng: np.random.Generator) -> Array | None:
    """Return the recalibrated score of every row; None if all scores are equal.

    Each row is in a fold, with its cluster, and its score is recalibrated on labeled rows outside this fold, so that
    labeled and other rows are alike.
    """
    x = standardized_logits(scores)
    if x is None:
        return None
    fold = _assign_folds(rows, rng)
    is_fitted = fold[rows.labeled] != np.arange(FOLDS)[:, None]
    intercept, slope = _fit_ridge_logistic(x[rows.labeled], y, is_fitted.astype(np.float64))
    return np.asarray(expit(intercept[fold] + slope[fold] * x))


def _assign_folds(rows: SampledRows, rng: np.random.Generator) -> Array:
    """Return the fold (n,) of each row; the labeled rows, or clusters with a label, are divided evenly."""
    unit = np.arange(rows.n) if rows.cluster is None else rows.cluster
    labeled_units = np.unique(unit[rows.labeled])
    fold = rng.integers(FOLDS, size=rows.n if rows.cluster is None else int(unit.max()) + 1)
    fold[labeled_units] = rng.permutation(np.arange(len(labeled_units)) % FOLDS)
    return fold if rows.cluster is None else fold[unit]


def _fit_ridge_logistic(x: Array, y: Array, w: Array) -> tuple[Array, Array]:
    """Return intercepts and slopes (fits,) of logistic regressions on x (m,) with weights w (fits, m), by Newton."""
    a, b = np.zeros(len(w)), np.zeros(len(w))
    for _ in range(MAX_STEPS):
        q = expit(a[:, None] + b[:, None] * x)
        residual, curvature = w * (y - q), w * q * (1 - q)
        gradient_a, gradient_b = residual.sum(axis=1) - INTERCEPT_PENALTY * a, residual @ x - SLOPE_PENALTY * b
        h_aa, h_ab = curvature.sum(axis=1) + INTERCEPT_PENALTY, curvature @ x
        h_bb = curvature @ (x * x) + SLOPE_PENALTY
        determinant = h_aa * h_bb - h_ab**2
        step_a = (h_bb * gradient_a - h_ab * gradient_b) / determinant
        step_b = (h_aa * gradient_b - h_ab * gradient_a) / determinant
        # A step of more than two in a log odds could overshoot where the curvature is small.
        scale = 1 / np.maximum(1, np.abs(step_a[:, None] + step_b[:, None] * x).max(axis=1) / 2)
        a, b = a + scale * step_a, b + scale * step_b
        if max(np.abs(step_a).max(), np.abs(step_b).max()) < STEP_TOLERANCE:
            break
    return a, b
