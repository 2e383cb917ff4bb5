"""p-values of the outcomes in each bin: two-sided tails of event counts, and χ² for vectors of outcomes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import chdtrc, gammainc, gammaincc, gammaln, log_ndtr, ndtr

from trueodds.core.typing import Array
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import (
    MAX_CONVOLVED_ROWS,
    MAX_EXACT_VARIANCE,
    count_pmfs,
    poisson_binomial_pmf,
)

MIN_TAIL_PROB = 1e-14  # smaller probabilities are below the rounding error of the Fourier transform
MIN_GAMMA_SKEWNESS = 1e-3  # skewness below which the normal distribution is used


class CountTails:
    """Two-sided p-value of the event count of each occupied bin of a binary view: twice the smaller tail, at most 1.

    Rows of equal weight have the Poisson-binomial distribution: by convolution up to 2,000 rows, by Fourier transform
    beyond if the variance is at most 25 (p not below 1e-14), otherwise as a gamma distribution with the same mean,
    variance and skewness. Rows of unequal weight are normal with variance Σw²p(1−p), and shares of votes with a
    multiple of it, the dispersion, which is estimated from all bins together. `index` (n,) is the bin of each row.
    """

    def __init__(self, view: View, index: Array, size: int) -> None:
        binned = view.pool(index, size)
        self.bin_index, self.binned = np.asarray(binned.bin_index), binned
        has_single_outcomes = np.isclose(binned.sums("wyy"), binned.w * binned.y, rtol=1e-9, atol=1e-9 * binned.w)
        variance = binned.sums("wwv") * np.where(has_single_outcomes, 1.0, _dispersion(binned, ~has_single_outcomes))
        self.standard_error = np.sqrt(np.maximum(variance, 0.0))
        # Cauchy–Schwarz: (Σw)² = n Σw² where, and only where, all weights are equal.
        has_equal_weights = has_single_outcomes & np.isclose(
            binned.w**2, binned.n * binned.sums("ww"), rtol=1e-9, atol=0
        )
        self.row_weight = np.where(has_equal_weights, binned.w / np.maximum(binned.n, 1.0), 1.0)
        is_small = binned.n <= MAX_CONVOLVED_ROWS
        has_small_variance = ~is_small & (variance <= MAX_EXACT_VARIANCE * self.row_weight**2)
        self.exact_bins = np.flatnonzero(has_equal_weights & (is_small | has_small_variance))
        self.gamma_bins = np.flatnonzero(has_equal_weights & ~is_small & ~has_small_variance)
        self.normal_bins = np.flatnonzero(~has_equal_weights)
        self._tabulate_log_p(view, index, size, is_small)
        self._set_gamma_moments(view, index, size)

    def statistic(self, wy: Array) -> Array:
        """z of each bin from Σwy (…, bins): the residual sum over its standard error."""
        residual = wy - self.binned.w * self.binned.p
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(residual == 0, 0.0, residual / self.standard_error))

    def log_p(self, wy: Array) -> Array:
        """log p of each bin from Σwy (…, bins)."""
        log_p = np.empty(wy.shape)
        count = wy / self.row_weight
        table_offset = np.rint(count[..., self.exact_bins]).astype(np.int64) - self.lowest_count
        log_p[..., self.exact_bins] = self.log_p_table[
            self.table_start + np.clip(table_offset, 0, self.table_length - 1)
        ]
        log_p[..., self.normal_bins] = np.log(2) + log_ndtr(-np.abs(self.statistic(wy)[..., self.normal_bins]))
        log_p[..., self.gamma_bins] = self._gamma_log_p(count[..., self.gamma_bins])
        return np.minimum(log_p, 0.0)

    def _tabulate_log_p(self, view: View, index: Array, size: int, is_small: Array) -> None:
        """Tabulate log p of every count of the exact bins, concatenated in `log_p_table`."""
        rows = np.flatnonzero(view.w > 0)
        rows = rows[argsort_bins(index[rows], size)]
        starts = np.searchsorted(index[rows], self.bin_index[self.exact_bins])
        stops = np.searchsorted(index[rows], self.bin_index[self.exact_bins], "right")
        tables, lowest = [], []
        for b, start, stop in zip(self.exact_bins, starts, stops, strict=True):
            n, p = view.n[rows[start:stop]], np.clip(view.p[rows[start:stop]].astype(np.float64), 0.0, 1.0)
            if is_small[b]:
                tables.append(_log_two_sided_pvalues(poisson_binomial_pmf(np.repeat(p, n.astype(np.int64)))))
                lowest.append(0)
            else:
                ((_, low, pmf),) = count_pmfs(np.zeros(len(p), dtype=np.int64), n, p, 1)
                tables.append(np.maximum(_log_two_sided_pvalues(pmf[0]), np.log(MIN_TAIL_PROB)))
                lowest.append(int(low[0]))
        self.table_length = np.array([len(table) for table in tables], dtype=np.int64)
        self.table_start = np.cumsum(self.table_length) - self.table_length
        self.lowest_count = np.array(lowest, dtype=np.int64)
        self.log_p_table = np.concatenate(tables) if tables else np.empty(0)

    def _set_gamma_moments(self, view: View, index: Array, size: int) -> None:
        p = np.clip(view.p.astype(np.float64), 0.0, 1.0)
        third_moments = np.bincount(index, view.n * p * (1 - p) * (1 - 2 * p), size)[self.bin_index[self.gamma_bins]]
        self.mean = (self.binned.n * self.binned.p)[self.gamma_bins]
        self.sd = (self.standard_error / self.row_weight)[self.gamma_bins]
        self.skewness = third_moments / self.sd**3

    def _gamma_log_p(self, count: Array) -> Array:
        """log p of the bins with a gamma distribution, from their counts (…, bins); normal where its tail underflows.

        Tails have the continuity correction of ½.
        """
        upper_z, lower_z = (count - 0.5 - self.mean) / self.sd, (count + 0.5 - self.mean) / self.sd
        with np.errstate(divide="ignore"):
            log_tail = np.log(
                np.minimum(_gamma_upper_tail(upper_z, self.skewness), _gamma_upper_tail(-lower_z, -self.skewness))
            )
        normal_log_p = np.log(2) + log_ndtr(-np.abs(count - self.mean) / self.sd)
        return np.asarray(np.where(np.isfinite(log_tail), np.log(2) + log_tail, normal_log_p))


class VectorTails:
    """p-value of the outcome vector of each occupied cell of a joint view, by χ² with its exact covariance.

    With d = Σw(y − p) and V = Σw²(diag p − ppᵀ), without the most probable class, X² = dᵀV⁺d has rank(V) degrees of
    freedom. It is infinite if the sum of an outcome without variance differs from its prediction.
    """

    def __init__(self, view: View, index: Array, size: int) -> None:
        binned = view.pool(index, size)
        self.bin_index, self.binned = np.asarray(binned.bin_index), binned
        rows = np.flatnonzero(view.w > 0)
        rows = rows[argsort_bins(index[rows], size)]
        root = np.sqrt(view.sums("ww"))[rows]
        stops = np.append(np.searchsorted(index[rows], self.bin_index), len(rows))
        P = np.clip(view.p[rows].astype(np.float64), 0.0, 1.0)
        cells, m = len(self.bin_index), P.shape[1]
        covariance = np.zeros((cells, m, m))
        for c, (start, stop) in enumerate(pairwise(stops)):
            wp = root[start:stop, None] * P[start:stop]
            covariance[c] = np.diag((root[start:stop, None] * wp).sum(axis=0)) - wp.T @ wp
        largest_class = np.argmax(binned.p, axis=1)
        variances = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0)
        self.has_no_variance = variances <= 0
        scale = np.where(self.has_no_variance, 0.0, 1 / np.sqrt(np.where(self.has_no_variance, 1.0, variances)))
        scale[np.arange(cells), largest_class] = 0.0
        values, vectors = np.linalg.eigh(scale[:, :, None] * covariance * scale[:, None, :])
        positive = values > 1e-10
        self.df = positive.sum(axis=1)
        self.inverse_root = (
            scale[:, :, None] * vectors * np.where(positive, 1 / np.sqrt(np.where(positive, values, 1.0)), 0.0)[:, None]
        )

    def statistic(self, wy: Array) -> Array:
        """X² of each cell from Σwy (…, cells, m)."""
        residual_sums = wy - self.binned.w[:, None] * self.binned.p
        shape = residual_sums.shape[:-1]
        whitened = np.moveaxis(residual_sums.reshape(-1, *residual_sums.shape[-2:]), 1, 0) @ self.inverse_root
        chi2 = np.moveaxis((whitened**2).sum(axis=-1), 0, 1).reshape(shape)
        is_impossible = ((np.abs(residual_sums) > 1e-9 * self.binned.w[:, None]) & self.has_no_variance).any(axis=-1)
        return np.asarray(np.where(is_impossible, np.inf, chi2))

    def log_p(self, wy: Array) -> Array:
        """log p of each cell from Σwy (…, cells, m)."""
        x, a = self.statistic(wy) / 2, np.maximum(self.df, 1) / 2
        with np.errstate(divide="ignore"):
            log_tail = np.log(chdtrc(2 * a, 2 * x))
            # The first term of the asymptotic expansion of the incomplete gamma function, where the tail underflows.
            log_asymptotic_tail = (a - 1) * np.log(np.where(np.isfinite(x) & (x > 0), x, 1.0)) - x - gammaln(a)
        log_p = np.where(np.isfinite(log_tail), log_tail, log_asymptotic_tail)
        return np.asarray(np.where((self.df == 0) & (x == 0), 0.0, log_p))


def _dispersion(binned: View, selected: Array) -> float:
    """Return Σw²(y−p)² / Σw²p(1−p) of the selected bins, the variance of shares relative to that of single labels.

    A bin without events has small residuals by itself, so it is not estimated bin by bin.
    """
    label_variance = float(binned.sums("wwv")[selected].sum())
    return float(binned.sums("wwr")[selected].sum()) / label_variance if label_variance > 0 else 1.0


def _log_two_sided_pvalues(pmf: Array) -> Array:
    """log of twice the smaller tail probability at each count; each tail is summed from its own end."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(2 * np.minimum(np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1])))


def _gamma_upper_tail(x: Array, skewness: Array) -> Array:
    """P[X > x] of a standardized gamma distribution with this skewness, reflected if negative, normal if 0."""
    is_skewed = np.abs(skewness) > MIN_GAMMA_SKEWNESS
    a = 4 / np.where(is_skewed, skewness, 1.0) ** 2
    right = gammaincc(a, np.maximum(a + x * np.sqrt(a), 0.0))
    left = gammainc(a, np.maximum(a - x * np.sqrt(a), 0.0))
    return np.asarray(np.where(is_skewed, np.where(skewness > 0, right, left), ndtr(-x)))
