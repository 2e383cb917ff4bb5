"""Draws of the sums of cells, of rows or of a tally, at a cost that does not depend on the number of rows.

`CellBootstrap` resamples the rows of the cells, and `CellRedraw` draws their outcomes from the predicted probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from scipy.special import ndtr

from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.kernels import as_plain_array, sum_blocks
from trueodds.kernels.fine_grid import count_subcells
from trueodds.kernels.outcome_covariance import add_class_bin_covariances
from trueodds.lenses.view import View
from trueodds.resampling import poisson_binomial
from trueodds.resampling.draws import DrawnRows, Draws, EvaluateSums, Sums, views_and_statistics
from trueodds.resampling.estimand import Estimand, pooled_view

T = TypeVar("T")

MAX_BLOCK_ACCUMULATORS = 2**24  # accumulators of each kind in memory, 128 MB


class _CellDraws(Draws):
    """Draws of the sums of cells, of which the rows are unknown."""

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        name = estimands[0].estimator.name
        raise InputError(
            "TO403", f"{name} with these settings requires the rows.", "a tally", "Use ⟨mode='exact'⟩, or fixed bins."
        )


class CellBootstrap(_CellDraws):
    """Resamples of the sums of bins: multinomial counts over bins and outcomes, normal Σp with the observed moments.

    With weights, with shares of votes, and in joint views the residual sums are normal with the observed (co)variance
    of the rows.

    The draws come from a stream of their own, of which `rng` gives the key, so that other draws that continue with
    `rng`, or that begin with the same state, are independent of them.
    """

    def __init__(self, resamples: int, rng: np.random.Generator) -> None:
        self.n_resamples, self.key = resamples, stream_key(rng)

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        rng, by_view = np.random.default_rng(self.key), []
        for v, (view, statistic) in enumerate(views_and_statistics(estimands)):
            binned, results = pooled_view(view, statistic), []
            block = max(1, MAX_BLOCK_ACCUMULATORS // (statistic.size * (binned.p.shape[1] if view.joint else 1)))
            for start in range(0, self.n_resamples, block):
                n_draws = min(block, self.n_resamples - start)
                if view.joint:
                    sums = _resample_joint_bins(view, statistic, binned, n_draws, rng)
                else:
                    sums = _resample_binary_bins(binned, n_draws, rng)
                results.append(evaluate(v, *(scatter_to_bins(x, binned.bin_index, statistic.size) for x in sums)))
            by_view.append(results)
        return by_view


def pooled_sums(view: View, statistic: CellStatistic) -> Sums:
    """Observed Σw, Σwp and Σwy of all cells of a statistic, in the shape of a single draw without its axis."""
    binned = pooled_view(view, statistic)
    w = binned.w[:, None] if binned.joint else binned.w
    sums = binned.w, w * binned.p, w * binned.y
    w, wp, wy = (scatter_to_bins(x[None], binned.bin_index, statistic.size)[0] for x in sums)
    return w, wp, wy


def scatter_to_bins(x: Array, bin_index: Array | None, size: int) -> Array:
    """Expand values x of the occupied bins (draws, bins, …) to all bins, (draws, size, …), with 0 elsewhere."""
    if x.shape[1] == size:
        return x
    scattered = np.zeros((len(x), size, *x.shape[2:]))
    scattered[:, bin_index] = x
    return scattered


def _resample_binary_bins(binned: View, resamples: int, rng: np.random.Generator) -> Sums:
    """Bin sums of each resample: multinomial for counts of rows, otherwise normal with the observed variance."""
    event_counts = binned.w * binned.y
    is_count = np.array_equal(binned.n, binned.w) and np.allclose(
        event_counts, np.rint(event_counts), rtol=0, atol=1e-6
    )
    draw_sums = _resample_counts if is_count else _resample_normal_sums
    return draw_sums(binned, resamples, rng)


def _resample_normal_sums(binned: View, resamples: int, rng: np.random.Generator) -> Sums:
    """Normal Σw with variance Σw², and residual sums with their variance given Σw.

    The covariance of Σw and Σw(y − p) is that of a residual proportional to the weight. Given Σw, the residual sum
    therefore has the mean Σw(y − p) · (drawn Σw) / Σw and the variance Σw²(y − p)² − (Σw(y − p))² Σw² / (Σw)².
    """
    w, p, ww = binned.w, binned.p, binned.sums("ww")
    shape = (resamples, len(w))
    drawn_weights = np.maximum(w + np.sqrt(ww) * rng.standard_normal(shape), 0.0)
    residual_sums = w * (binned.y - p)
    residual_variance = np.maximum(binned.sums("wwr") - residual_sums**2 * ww / w**2, 0.0)
    drawn_residuals = residual_sums * drawn_weights / w + np.sqrt(residual_variance) * rng.standard_normal(shape)
    return drawn_weights, p * drawn_weights, p * drawn_weights + drawn_residuals


def _resample_counts(binned: View, resamples: int, rng: np.random.Generator) -> Sums:
    """Multinomial counts of events and nonevents per bin, and normal Σp given these counts.

    Σp has the mean predictions of the events and nonevents of the bin, and the variance within these two groups.
    """
    n, w, p = binned.n, binned.w, binned.p
    event_counts = np.rint(w * binned.y)
    nonevent_counts = n - event_counts
    total = round(float(n.sum()))
    counts = rng.multinomial(total, np.concatenate([event_counts, nonevent_counts]) / total, size=resamples).astype(
        np.float64
    )
    drawn_events, drawn_nonevents = counts[:, : len(n)], counts[:, len(n) :]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_p_events = np.where(event_counts > 0, binned.sums("wpy") / event_counts, 0.0)
        mean_p_nonevents = np.where(nonevent_counts > 0, (w * p - binned.sums("wpy")) / nonevent_counts, 0.0)
    variance_within = (
        np.maximum(binned.sums("wpp") - event_counts * mean_p_events**2 - nonevent_counts * mean_p_nonevents**2, 0.0)
        / n
    )
    drawn_weights = drawn_events + drawn_nonevents
    wp = (
        drawn_events * mean_p_events
        + drawn_nonevents * mean_p_nonevents
        + np.sqrt(variance_within * drawn_weights) * rng.standard_normal(drawn_weights.shape)
    )
    return drawn_weights, wp, drawn_events


def _resample_joint_bins(
    view: View, cell_statistic: CellStatistic, binned: View, resamples: int, rng: np.random.Generator
) -> Sums:
    """Normal Σw, and Σwy whose residual sums are normal with the covariance of the residuals of the rows."""
    row_residuals = view.w[:, None] * (view.y - view.p)
    order = np.flatnonzero(view.w > 0)
    order = order[np.argsort(cell_statistic.index[order], kind="stable")]
    starts = np.searchsorted(cell_statistic.index[order], np.asarray(binned.bin_index))
    w, ww = binned.w, binned.sums("ww")
    drawn_weights = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
    wy = drawn_weights[..., None] * binned.p
    for b, bin_residuals in enumerate(np.split(row_residuals[order], starts[1:])):
        residual_sum = bin_residuals.sum(axis=0)
        _, singular_values, directions = np.linalg.svd(
            bin_residuals - residual_sum / len(bin_residuals), full_matrices=False
        )
        # Use the symmetric root because it is unique; the signs of singular vectors differ between processors.
        root = (directions.T * singular_values) @ directions
        noise = rng.standard_normal((resamples, len(residual_sum))) @ root
        wy[:, b] += drawn_weights[:, b, None] / w[b] * residual_sum + noise
    return drawn_weights, drawn_weights[..., None] * binned.p, wy


class CellRedraw(_CellDraws):
    """Null draws of the outcome counts of bins, of rows or of a tally.

    The outcome count of a bin has mean Σwp and variance Σw²p(1−p). Large bins use the normal distribution, small ones
    the exact distribution of a sum of binomial fine cells. `covariance` (views · bins, views · bins) is the null
    covariance of class-wise bins: with it the classes have the correlation of the data (a normal copula), without it
    they are independent. With `flips_signs`, as for votes, the signs of residuals are flipped: Σ±w(y − p) has variance
    Σw²(y − p)². The outcomes of a cell of vectors are multinomial.
    """

    def __init__(
        self, redraws: int, rng: np.random.Generator, covariance: Array | None = None, *, flips_signs: bool = False
    ) -> None:
        self.n_redraws, self.rng, self.covariance, self.flips_signs = redraws, rng, covariance, flips_signs

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        pairs, start, by_view = views_and_statistics(estimands), 0, []
        scores = None
        if self.covariance is not None:
            scores = _draw_correlated_scores(self.covariance, self.n_redraws, self.rng)
        for v, (view, statistic) in enumerate(pairs):
            if view.joint:
                by_view.append([evaluate(v, *self._draw_joint_cells(view, statistic))])
                continue
            stop = start + statistic.size
            z = self.rng.standard_normal((self.n_redraws, statistic.size)) if scores is None else scores[:, start:stop]
            start, binned = stop, pooled_view(view, statistic)
            w, wp = (
                scatter_to_bins(x[None], binned.bin_index, statistic.size) for x in (binned.w, binned.w * binned.p)
            )
            wy = _draw_event_weights(view, statistic, binned, z, flips_signs=self.flips_signs)
            by_view.append([evaluate(v, w, wp, wy)])
        return by_view

    def _draw_joint_cells(self, view: View, statistic: CellStatistic) -> Sums:
        """The sums of a joint view, with the labels of a cell of the tally drawn from a multinomial distribution."""
        m, index = view.p.shape[1], statistic.index
        if self.flips_signs or not np.array_equal(view.w, view.n):
            data = "a tally of votes" if self.flips_signs else "a weighted tally"
            problem = f"Null draws of the complete vector of {data} require the rows."
            raise InputError("TO403", problem, data, "Use ⟨mode='exact'⟩.")
        wp, wy = np.zeros((1, statistic.size, m)), np.zeros((self.n_redraws, statistic.size, m))
        for cell, (count, p) in enumerate(zip(view.n.astype(np.int64), view.p, strict=True)):
            wy[:, index[cell]] += self.rng.multinomial(count, p / p.sum(), self.n_redraws)
            wp[0, index[cell]] += count * p
        return np.bincount(index, view.w, statistic.size)[None], wp, wy


def _draw_correlated_scores(covariance: Array, resamples: int, rng: np.random.Generator) -> Array:
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    divisor = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(divisor, divisor))
    values[values <= len(values) * np.finfo(float).eps * values[-1]] = 0.0  # rounding errors have a large square root
    # Use the symmetric root because it is unique. Eigenvectors differ between processors in their signs, and in their
    # choice for equal eigenvalues, and so would the draws.
    root = (vectors * np.sqrt(values)) @ vectors.T
    scores: Array = rng.standard_normal((resamples, len(values))) @ root
    return scores


def _draw_event_weights(
    view: View, cell_statistic: CellStatistic, binned: View, z: Array, *, flips_signs: bool
) -> Array:
    """Return the drawn Σwy (draws, size) of each bin from its normal scores z (draws, size)."""
    bin_index = binned.bin_index
    variance = np.maximum(binned.sums("wwr" if flips_signs else "wwv"), 0.0)
    event_weights = np.zeros(z.shape)
    event_weights[:, bin_index] = binned.w * binned.p + np.sqrt(variance) * z[:, bin_index]
    if flips_signs or not np.array_equal(binned.w, binned.n):
        return event_weights
    has_exact_counts = np.zeros(cell_statistic.size, dtype=bool)
    has_exact_counts[bin_index] = variance < poisson_binomial.MAX_EXACT_VARIANCE
    if has_exact_counts.any():
        bins, n, p = _fine_cells_of_bins(view, cell_statistic, has_exact_counts)
        exact_bins, bins = np.unique(bins, return_inverse=True)
        event_weights[:, exact_bins] = poisson_binomial.count_quantiles(bins, n, p, ndtr(z[:, exact_bins]))
    return event_weights


def _fine_cells_of_bins(view: View, cell_statistic: CellStatistic, chosen_bins: Array) -> tuple[Array, Array, Array]:
    """Return bin, number of rows and mean prediction of the fine cells, of rows or a tally, of the bins in the mask."""
    is_inside = chosen_bins[cell_statistic.index]
    if not view.is_unweighted:
        is_inside = is_inside & (view.n > 0)
    inside = np.flatnonzero(is_inside)
    index, p = cell_statistic.index[inside], view.p[inside]
    if view.is_rows:
        return count_subcells(p, index, cell_statistic.size)
    order = np.argsort(index, kind="stable")
    return index[order], view.n[inside][order], p[order]


def null_covariance(estimand: Estimand) -> Array:
    """Return the null covariance Σ w²(δ_kl p_k − p_k p_l) between the bins of mutually exclusive classes k and l.

    The sum is over the rows in both bins. The bins of all classes follow each other on both axes.
    """
    statistics = estimand.cell_statistics
    assert statistics is not None
    k, max_bins = len(estimand.views), max(statistic.size for statistic in statistics)
    n, first_view = len(statistics[0].index), estimand.views[0]

    def add_block(start: int, stop: int, out: Array) -> None:
        P = np.stack([view.p[start:stop] for view in estimand.views], axis=1)
        w = np.empty(0) if first_view.is_unweighted else first_view.w[start:stop]
        cells = np.stack([statistic.index[start:stop] for statistic in statistics]).astype(np.uint16)
        add_class_bin_covariances(as_plain_array(P), as_plain_array(w), as_plain_array(cells), out)

    class_pairs = sum_blocks(add_block, n, (k * (k + 1) // 2, max_bins, max_bins), block=2**16)
    covariance = np.zeros((k, max_bins, k, max_bins))
    row_class, column_class = np.triu_indices(k)
    covariance[row_class, :, column_class] = class_pairs
    covariance[column_class, :, row_class] = class_pairs.transpose(0, 2, 1)
    # Classes with fewer bins than others leave the remaining rows and columns empty.
    existing_bins = np.concatenate([c * max_bins + np.arange(statistic.size) for c, statistic in enumerate(statistics)])
    return covariance.reshape(k * max_bins, k * max_bins)[np.ix_(existing_bins, existing_bins)]
