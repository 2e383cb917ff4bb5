"""Shifts of the log odds by group, shrunken toward the terms above them, with their variance estimated from scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from trueodds.calibrators._groups.rows_with_columns import Levels
from trueodds.core.typing import Array

_N_CYCLES = 6  # over several factors, each of which has the others as offset
_MAX_STEPS = 100  # of Newton's method
_MAX_STEP = 2.0  # of the log odds, within which the quadratic approximation holds well enough to converge
_STEP_TOLERANCE = 1e-10


class BinaryRows(NamedTuple):
    """Rows of two classes."""

    log_odds: Array  # (n,)
    y: Array  # (n,) outcomes, or shares of them
    w: Array  # (n,) weights
    cluster: Array | None  # (n,) of rows that are not independent

    def select(self, rows: Array) -> BinaryRows:
        """Some of the rows, by a mask or their numbers."""
        return BinaryRows(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


class ShiftFit(NamedTuple):
    """The overall shift, and the terms of the factors in the order in which they were given."""

    overall: float
    taus: tuple[float, ...]  # for each factor the standard deviation of its shifts
    shifts: tuple[Array, ...]  # for each factor the shifts of its levels
    converged: bool  # whether the overall shift has a finite optimum

    def total_shifts(self, factors: Sequence[Levels]) -> Array | float:
        """Sum of the terms of each row, (n,)."""
        total: Array | float = self.overall
        for factor, shift in zip(factors, self.shifts, strict=True):
            total = total + shift[factor.level_of_row]
        return total


def fit_shifts(rows: BinaryRows, factors: Sequence[Levels]) -> ShiftFit:
    r"""Fit logit q = logit p + m + Σ d, with a term d for the level of each factor, shrunken toward 0 by its variance.

    The overall shift m is the root of Σ w (y − q) without other terms. The terms of a factor have the other terms as
    offset: a crossing is shrunken toward the sum of the terms above it.
    """
    overall, converged = _fit_overall_shift(rows)
    log_odds = rows.log_odds + overall
    shifts = [np.zeros(len(factor.labels)) for factor in factors]
    taus = [0.0] * len(factors)
    for _ in range(_N_CYCLES if len(factors) > 1 else 1):
        for f, factor in enumerate(factors):
            level = factor.level_of_row
            log_odds = log_odds - shifts[f][level] if shifts[f].any() else log_odds
            variance = _level_variance(rows, log_odds, level, len(factor.labels))
            taus[f] = float(np.sqrt(variance))
            if variance > 0:
                shifts[f] = _posterior_modes(rows, log_odds, level, len(factor.labels), 1 / variance)
                log_odds = log_odds + shifts[f][level]
            else:
                shifts[f] = np.zeros(len(factor.labels))
    return ShiftFit(overall, tuple(taus), tuple(shifts), converged)


def _fit_overall_shift(rows: BinaryRows) -> tuple[float, bool]:
    """The shift with which predicted and observed events agree in sum, and whether it is finite.

    If all outcomes are the same, a normal prior with standard deviation 1 keeps it finite.
    """
    has_weight = rows.w > 0
    is_finite = bool(((rows.y > 0) & has_weight).any() and ((rows.y < 1) & has_weight).any())
    one_level = np.zeros(len(rows.y), dtype=np.int64)
    return float(_posterior_modes(rows, rows.log_odds, one_level, 1, 0.0 if is_finite else 1.0)[0]), is_finite


def _level_variance(rows: BinaryRows, log_odds: Array, level: Array, n_levels: int) -> float:
    """Variance of the shifts of the levels, by moments of the scores at the shift 0."""
    q = expit(log_odds)
    residual, information = rows.w * (rows.y - q), rows.w * q * (1 - q)
    score_variance = None
    if rows.cluster is not None:
        pairs, pair_of_row = np.unique(rows.cluster * n_levels + level, return_inverse=True)
        pair_scores = np.bincount(pair_of_row.reshape(-1), residual)
        score_variance = np.bincount(pairs % n_levels, pair_scores**2, n_levels)
    elif (rows.w != 1).any():
        score_variance = np.bincount(level, rows.w * information, n_levels)
    return moment_variance(
        np.bincount(level, residual, n_levels), np.bincount(level, information, n_levels), score_variance
    )


def moment_variance(score: Array, information: Array, score_variance: Array | None = None) -> float:
    r"""The variance τ² of shifts, by the moments of DerSimonian and Laird, applied to scores instead of fitted shifts.

    .. math:: \tau^2 = \max\Big(0, \frac{\sum_g U_g^2 / I_g - \sum_g (V_g / I_g) (1 - 1/G)}
        {\sum_g I_g - \sum_g I_g^2 / \sum_g I_g}\Big)

    `score` (G,) are U, `information` (G,) I, and `score_variance` (G,) V, which is I by default. Levels without events
    have a score, though no finite shift fits them.

    >>> moment_variance(np.array([6.0, -6.0]), np.array([4.0, 4.0]))
    4.25
    """
    has_information = information > 0
    U, info = score[has_information], information[has_information]
    n_levels = len(info)
    if n_levels < 2:
        return 0.0
    V = info if score_variance is None else score_variance[has_information]
    expected = float((V / info).sum()) * (1 - 1 / n_levels)
    return max(0.0, (float((U**2 / info).sum()) - expected) / float(info.sum() - (info**2).sum() / info.sum()))


def _posterior_modes(rows: BinaryRows, log_odds: Array, level: Array, n_levels: int, precision: float) -> Array:
    """For each level the root d of Σ w (y − σ(log_odds + d)) = `precision` · d, (levels,), all by Newton's method."""
    shift = np.zeros(n_levels)
    for _ in range(_MAX_STEPS):
        q = expit(log_odds + shift[level])
        residual = rows.y - q
        residual *= rows.w
        q *= (1 - q) * rows.w
        gradient = np.bincount(level, residual, n_levels) - precision * shift
        curvature = np.bincount(level, q, n_levels) + precision
        step = np.divide(gradient, curvature, out=np.zeros(n_levels), where=curvature > 0)
        shift += np.clip(step, -_MAX_STEP, _MAX_STEP)
        if np.abs(step).max() <= _STEP_TOLERANCE:
            break
    return shift
