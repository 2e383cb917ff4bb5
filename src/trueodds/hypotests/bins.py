"""The bin-by-bin test: the outcomes of each bin against their null distribution, corrected for the number of bins.

The p-values of bins are two-sided tails of event counts, and χ² for vectors of outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc, gammainc, gammaincc, gammaln, log_ndtr, ndtr

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import holm, pvalue
from trueodds.core.typing import Array
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import (
    MAX_CONVOLVED_ROWS,
    MAX_EXACT_VARIANCE,
    count_pmfs,
    poisson_binomial_pmf,
)

MAX_LISTED_BINS = 100  # maximum number of bins listed in the parts
MAX_COVARIANCE_ELEMENTS = 2e7  # maximum number of elements of all covariance matrices, 160 MB
MIN_EXPECTED_ROWS = 5.0  # expected rows of a class below which χ² is inaccurate
MIN_TAIL_PROB = 1e-14  # smaller probabilities are below the rounding error of the Fourier transform
MIN_GAMMA_SKEWNESS = 1e-3  # skewness below which the normal distribution is used


@dataclass(frozen=True, kw_only=True)
class BinByBin(HasPartition, ViewTest):
    r"""Test of every bin's event count against its null distribution, corrected for the number of bins.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw", "asymptotic"}, default="redraw"
        Correction over the bins. "redraw" compares the smallest p-value with the smallest p-value of each null draw
        (min-p), which is exact for any bins and fills the column `joint` of the parts. "asymptotic" uses Holm's
        correction (column `holm`).
    partition : Partition, optional
        Bins. Default: as for `ece`, 15 uniform bins for a binary view, and for a joint one a median-variance tree of 16
        leaves (three outcomes) or cells by predicted class (more outcomes).

    Raises
    ------
    InputError
        TO203 for bins that depend on the outcomes. TO205 if the covariance matrices of all cells do not fit into
        memory.

    Notes
    -----
    .. math:: z_b = \frac{O_b - E_b}{\sqrt{\sum w^2 p (1 - p)}}, \quad O_b = \sum w y, \quad E_b = \sum w p

    The p-value of a bin is two-sided and uses the exact Poisson-binomial distribution of its count (normal if weights
    differ). A cell of vectors has :math:`X^2_b = d^\top V^+ d` with d = Σw(y − p) and the exact covariance
    V = Σw²(diag p − ppᵀ); X² is χ² with rank(V) degrees of freedom.

    Statistic: z, or X², of the bin with the smallest p-value. Effect: its gap, observed minus predicted, in probability
    units within [−1, 1]; for vectors the gap of the class with the largest gap. Parts: n, predicted, observed, gap,
    statistic, pvalue, holm and joint of each bin (the 100 smallest p-values if there are more bins, note TN225). If
    every probability of a bin is 0 or 1, one contradicting outcome makes its p-value 0 (note TN223). The χ²
    distribution is inaccurate in cells with fewer than 5 expected rows of a class, as is the normal distribution of few
    weighted rows (note TN212).

    Shapes: binary views (n,) and joint views (n, m). From a tally the rows of a fine cell share its mean.
    Cost: O(n log n + Σ min(n_b, 2000)²); with redraws, O(bins) per draw in addition to drawing the labels; for vectors
    O(cells · m²).

    References
    ----------
    .. [1] Bröcker & Smith (2007). Bins against their own null distribution.
    .. [2] Vaicenavicius et al. (2019). Cells of vectors.
    .. [3] Westfall & Young (1993). Min-p adjustment over bins.

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 1, 1, 1], [0.5, 0.5, 0.5, 0.9], "bins", bins=2)
    >>> verdict.parts["[0, 0.5]"]["pvalue"], verdict.effect  # three heads of three: 2/8
    (0.25, 0.5)
    """

    name: ClassVar[str] = "bins"
    accepts_joint_views: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = (
        "the outcomes of each bin have their exact distribution (approximated for large, weighted or vector bins)"
    )
    joint_null: ClassVar[str] = "; the smallest p-value of all bins is compared with the smallest of each draw"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "a row of weight two is one row that counts double, not two independent rows"
    }
    null: str = "redraw"
    partition: Partition | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partition is not None and self.partition.uses_outcomes:
            raise InputError(
                "TO203",
                "The test is invalid for bins that depend on the outcomes.",
                f"partition {self.partition}",
                "Use equal-mass or uniform bins.",
            )

    def evaluate(self, view: View) -> ViewResult:
        """Test every bin, and report the one with the smallest p-value."""
        fitted_bins, tails = self._null_tails(view)
        binned = tails.binned
        wy = (binned.w[:, None] if view.joint else binned.w) * binned.y
        log_p = tails.log_p(wy)
        p = np.exp(log_p)
        table = {**_bin_gaps(binned), "statistic": tails.statistic(wy), "pvalue": p, "holm": np.array(holm(list(p)))}
        order = np.lexsort((-np.abs(table["statistic"]), log_p))  # by p-value, equal p-values by statistic
        notes = []
        if len(order) > MAX_LISTED_BINS:
            notes.append(
                Note(
                    "TN225",
                    f"The parts list the {MAX_LISTED_BINS} bins with the smallest p-values of {len(order):,} bins.",
                )
            )
        if (p == 0).any() and np.isinf(table["statistic"]).any():
            text = "All probabilities of a bin are 0 or 1, so one contradicting outcome makes p = 0."
            notes.append(Note("TN223", text))
        names, strongest = _bin_names(fitted_bins, tails.bin_index), order[0]
        parts = {names[b]: {key: float(x[b]) for key, x in table.items()} for b in np.sort(order[:MAX_LISTED_BINS])}
        partition = self.partition_for(view)
        settings = {"partition": str(partition), "occupied_bins": len(order), "smallest_bin": int(binned.n.min())}
        return ViewResult(
            statistic=float(table["statistic"][strongest]),
            pvalue=float(table["holm"][strongest]),
            effect=float(table["gap"][strongest]),
            parts=parts,
            settings_used=settings,
            notes=tuple(notes),
            asymptotic_warnings=_asymptotic_warnings(tails),
        )

    def cell_statistic(self, view: View) -> CellFunction:
        """The negative log of the smallest p-value of all bins, as a function of redrawn outcomes."""
        fitted_bins, tails = self._null_tails(view)
        bin_axis = -2 if view.joint else -1

        def largest_surprisal(_w: Array, _wp: Array, wy: Array) -> Array:
            """−log of the smallest p-value of each draw."""
            return np.asarray(-tails.log_p(np.take(wy, tails.bin_index, axis=bin_axis)).min(axis=-1))

        return CellFunction(view, view.assign(fitted_bins), fitted_bins.size, largest_surprisal)

    def add_draw_results(self, result: ViewResult, _view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Add the min-p adjusted p-value of each bin: of its surprisal −log p among the largest ones of the draws."""
        parts: dict[str, Mapping[str, float]] = {}
        for name, result_of_bin in result.parts.items():
            surprisal = -np.log(result_of_bin["pvalue"]) if result_of_bin["pvalue"] > 0 else np.inf
            joint_pvalue = max(pvalue(float(surprisal), null_draws) for null_draws in draws)
            parts[name] = {**result_of_bin, "joint": joint_pvalue}
        return replace(result, parts=parts)

    def _null_tails(self, view: View) -> tuple[FittedPartition, CountTails | VectorTails]:
        """The bins of the view, and the null distribution of the outcomes in them."""
        partition = self.partition_for(view)
        fitted_bins = view.cached(partition, lambda: partition.fit(view))
        if view.joint and (n_elements := fitted_bins.size * view.p.shape[1] ** 2) > MAX_COVARIANCE_ELEMENTS:
            raise InputError(
                "TO205",
                "The covariance matrices of all cells do not fit into memory.",
                f"{fitted_bins.size:,} cells of {view.p.shape[1]} outcomes, {n_elements:,} elements",
                "Use a larger ⟨min_size⟩, or ⟨lens='classwise'⟩.",
            )
        tails_class = VectorTails if view.joint else CountTails
        return fitted_bins, tails_class(view, view.assign(fitted_bins), fitted_bins.size)


def _bin_gaps(binned: View) -> dict[str, Array]:
    """Columns n, predicted, observed and gap, (bins,); for vectors those of the class with the largest gap."""
    p, y = binned.p, binned.y
    class_column = {}
    if binned.joint:
        worst_class = np.argmax(np.abs(y - p), axis=1)
        class_column = {"class": worst_class}
        bins = np.arange(len(p))
        p, y = p[bins, worst_class], y[bins, worst_class]
    return {"n": binned.n, **class_column, "predicted": p, "observed": y, "gap": y - p}


def _bin_names(fitted_bins: FittedPartition, bin_index: Array) -> dict[int, str]:
    """Names of the occupied bins by position in `bin_index` (bins,), which has their numbers among all bins.

    A bin of one score is named by its interval, of log odds if the bins are cut between these, and a cell of vectors by
    its number.
    """
    if not isinstance(fitted_bins, Bins):
        return {b: f"cell {number}" for b, number in enumerate(bin_index)}
    edges, scale = fitted_bins.edges, ""
    if fitted_bins.log_odds_edges is not None:  # several probabilities may be equal
        edges, scale = np.concatenate(([-np.inf], fitted_bins.log_odds_edges[1:-1], [np.inf])), "log odds "
    bin_names = {}
    left_bracket, right_bracket = ("(", "]") if fitted_bins.closed == "right" else ("[", ")")
    for b, number in enumerate(bin_index):
        opening = "[" if number == 0 else left_bracket
        closing = "]" if number == fitted_bins.size - 1 else right_bracket
        bin_names[b] = f"{scale}{opening}{edges[number]:.6g}, {edges[number + 1]:.6g}{closing}"
    return bin_names


def _asymptotic_warnings(tails: CountTails | VectorTails) -> tuple[str, ...]:
    binned = tails.binned
    if isinstance(tails, VectorTails):
        expected = np.where(tails.has_no_variance, np.inf, binned.p) * (binned.w**2 / binned.sums("ww"))[:, None]
        n_small = int((expected.min(axis=1) < MIN_EXPECTED_ROWS).sum())
        text = f"{n_small} of {len(binned.w)} cells have fewer than 5 expected rows of some class, so χ² is inaccurate."
    else:
        effective_n = binned.w**2 / binned.sums("ww") * np.minimum(binned.p, 1 - binned.p)
        n_small = int((effective_n[tails.normal_bins] < MIN_EXPECTED_ROWS).sum())
        text = (
            f"{n_small} of {len(binned.w)} bins have fewer than 5 expected weighted events or non-events, so the normal"
            " distribution is inaccurate."
        )
    return (text,) if n_small else ()


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
