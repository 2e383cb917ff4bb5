"""Calibration tests of each cell of a probability simplex: chi-square, exact or self-normalized."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincc

from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.resampling.bin_pvalues import CountTails, VectorTails

MIN_EXPECTED = 5.0  # expected rows of an outcome, below which χ² is inaccurate
CHI2, BY_OUTCOME, VOTES = "chi-square", "exact by outcome", "votes"


@dataclass(frozen=True, slots=True)
class CellTests:
    """The calibration test of each occupied cell of a joint view."""

    binned: View  # the view with one row per occupied cell
    statistic: Array  # (cells,) X²
    df: Array  # (cells,) degrees of freedom
    log_p: Array  # (cells,) log of the p-value
    method: Array  # (cells,) null distribution: one of CHI2, BY_OUTCOME and VOTES
    lacks_exact_test: Array  # (cells,) whether χ² rejects where it is inaccurate, and no exact test replaces it


def evaluate_cell_tests(view: View, bin_index: Array, n_bins: int, alpha: float) -> CellTests:
    r"""Test calibration in each cell by X² = dᵀV⁺d, with d = Σw(y − p) and the exact covariance V = Σw²(diag p − ppᵀ).

    `bin_index` (n,) is the cell of each row, from 0 to `n_bins` − 1.

    `chi-square`: the null distribution is χ² with the rank of V as degrees of freedom. It is inaccurate if an outcome
    is expected fewer than 5 times. A p-value of at most `alpha` is then replaced, for rows of equal weight, by
    `exact by outcome`: m times the smallest two-sided Poisson-binomial p-value of the m outcomes (Bonferroni), which
    is valid for any n. `votes`: if outcomes are shares, V = Σw²(y − p)(y − p)ᵀ, and X²/n has the distribution
    Beta(r/2, (n − r)/2) for normal residuals.
    """
    if view.is_rows and ((view.y > 0) & (view.y < 1)).any():
        return _test_votes(view, bin_index, n_bins)
    tails = VectorTails(view, bin_index, n_bins)
    binned = tails.binned
    wy = binned.w[:, None] * binned.y
    log_p, method = tails.log_p(wy), np.full(len(binned.w), CHI2, dtype=object)
    ww = binned.sums("ww")
    expected = np.where(tails.has_no_variance, np.inf, binned.p * (binned.w**2 / ww)[:, None])
    small_expected = (
        (expected.min(axis=1) < MIN_EXPECTED * (1 - 1e-9)) & (log_p <= np.log(alpha + 1e-12)) & np.isfinite(log_p)
    )
    # Cauchy–Schwarz: (Σw)² = n Σw² where, and only where, all weights are equal.
    uses_exact_test = small_expected & np.isclose(binned.w**2, binned.n * ww, rtol=1e-9, atol=0)
    if uses_exact_test.any():
        rows = np.flatnonzero(np.isin(bin_index, np.asarray(binned.bin_index)[uses_exact_test]) & (view.w > 0))
        min_log_p = np.min([_outcome_log_p(view, rows, bin_index, n_bins, k) for k in range(view.p.shape[1])], axis=0)
        log_p[uses_exact_test] = np.minimum(min_log_p + np.log(view.p.shape[1]), 0.0)  # Bonferroni
        method[uses_exact_test] = BY_OUTCOME
    return CellTests(binned, tails.statistic(wy), tails.df, log_p, method, small_expected & ~uses_exact_test)


def _outcome_log_p(view: View, rows: Array, bin_index: Array, n_bins: int, outcome: int) -> Array:
    """Log p-value of one outcome in each cell that contains some of these rows."""
    p, y, w = view.p[rows, outcome].astype(np.float64), view.y[rows, outcome], view.w[rows]
    if view.is_rows:
        outcome_view = View(p, y, None if view.is_unweighted else w)
    else:  # all rows of a fine cell have its mean prediction
        ww = view.sums("ww")[rows]
        sums = {"ww": ww, "wpp": w * p * p, "wpy": w * p * y, "wyy": w * y}
        sums |= {"wwv": ww * p * (1 - p), "wwr": ww * np.maximum(y - 2 * p * y + p * p, 0.0)}
        outcome_view = View(p, y, w, n=view.n[rows], sums=sums)
    tails = CountTails(outcome_view, bin_index[rows], n_bins)
    return tails.log_p(tails.binned.w * tails.binned.y)


def _test_votes(view: View, bin_index: Array, n_bins: int) -> CellTests:
    """Test each cell by the empirical covariance of its residuals, for shares of votes."""
    binned = view.pool(bin_index, n_bins)
    rows = np.flatnonzero(view.w > 0)
    rows = rows[np.argsort(bin_index[rows], kind="stable")]
    residual = view.w[rows, None] * (view.y[rows] - view.p[rows])
    starts = np.searchsorted(bin_index[rows], np.asarray(binned.bin_index))
    tests = [_self_normalized_test(residuals_of_cell) for residuals_of_cell in np.split(residual, starts[1:])]
    statistic, df, log_p = (np.array(x) for x in zip(*tests, strict=True))
    method = np.full(len(df), VOTES, dtype=object)
    return CellTests(binned, statistic, df, log_p, method, np.zeros(len(df), dtype=bool))


def _self_normalized_test(residual: Array) -> tuple[float, int, float]:
    """X² of residuals (n, m), the rank of their second moments, and the log p-value."""
    d, n = residual.sum(axis=0), len(residual)
    second_moments = residual.T @ residual
    diagonal = np.diagonal(second_moments)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(scale[:, None] * second_moments * scale)
    is_positive = values > 1e-10
    rank = int(is_positive.sum())
    x = float((((d * scale) @ vectors[:, is_positive]) ** 2 / values[is_positive]).sum())
    if n <= rank:  # with so few rows X² always attains its maximum
        return x, rank, 0.0
    p = float(betaincc(rank / 2, (n - rank) / 2, min(x / n, 1.0))) if rank else 1.0
    return x, rank, float(np.log(p)) if p > 0 else -np.inf
