"""Null draws bin by bin: the outcome count of each bin is drawn from its distribution, at the cost of bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic
from trueodds.kernels import as_plain_array, sum_blocks
from trueodds.kernels.fine_grid import count_subcells
from trueodds.kernels.outcome_covariance import add_class_bin_covariances
from trueodds.lenses.classes import Classwise
from trueodds.lenses.ranked import TopLabel
from trueodds.lenses.subgroups import GroupLens
from trueodds.lenses.view import View
from trueodds.resampling import poisson_binomial
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS
from trueodds.resampling.cell_bootstrap import scatter_to_bins
from trueodds.resampling.estimand import Estimand, pooled_view

MAX_DRAWN_BINS = 8192  # with more bins there are only a few rows per bin, and drawing each label costs no more
MAX_CORRELATED_BINS = 2000  # total number of bins of all classes whose covariance is computed


def can_draw_by_bin(preds: Predictions, estimands: Sequence[Estimand], *, share_draws: bool = True) -> bool:
    """Whether to draw outcome counts per bin instead of labels: many rows, and an estimand that needs bin sums only.

    Estimands, and views of one estimand, that share their draws depend on the same labels, which must then be drawn.
    With `share_draws=False`, several views of one estimand are allowed if their joint distribution is known: views of
    disjoint rows, of independent labels, or of classes with few bins.
    """
    if preds.n <= MAX_RESAMPLED_ROWS or preds.cluster is not None or preds.votes is not None or len(estimands) > 1:
        return False
    (estimand,) = estimands
    views = estimand.views
    if (
        estimand.estimator.null_draws_of == "votes"
        or any(view.joint for view in views)
        or estimand.cell_statistics is None
    ):
        return False
    sizes = [cell_statistic.size for cell_statistic in estimand.cell_statistics]
    if max(sizes) > MAX_DRAWN_BINS:
        return False
    if len(views) > 1:
        are_independent = preds.kind == "multilabel" or isinstance(estimand.lens, TopLabel)
        have_covariance = _is_classwise(preds, estimand) and len(sizes) * max(sizes) <= MAX_CORRELATED_BINS
        if share_draws or not (are_independent or have_covariance):
            return False
    if preds.weight is None:
        return True
    # A sum dominated by a few rows with large weights is not normal, so labels are drawn row by row.
    variances = [
        pooled_view(view, cell_statistic).sums("wwv")
        for view, cell_statistic in zip(views, estimand.cell_statistics, strict=True)
    ]
    return all(
        ((v >= poisson_binomial.MAX_EXACT_VARIANCE * preds.weight.max() ** 2) | (v == 0)).all() for v in variances
    )


def draw_bin_statistics_of_rows(
    preds: Predictions, estimand: Estimand, resamples: int, rng: np.random.Generator
) -> Array:
    """Return null draws (views, draws) of an estimand on rows; classes are correlated by their null covariance."""
    is_correlated = len(estimand.views) > 1 and _is_classwise(preds, estimand)
    return draw_bin_statistics(estimand, resamples, rng, null_covariance(estimand) if is_correlated else None)


def _is_classwise(preds: Predictions, estimand: Estimand) -> bool:
    """Whether the views are the classes of predictions that exclude each other."""
    lens = estimand.lens.lens if isinstance(estimand.lens, GroupLens) else estimand.lens
    return preds.kind == "classes" and isinstance(lens, Classwise)


def draw_bin_statistics(
    estimand: Estimand,
    resamples: int,
    rng: np.random.Generator,
    covariance: Array | None = None,
    *,
    flips_signs: bool = False,
) -> Array:
    """Return null draws (views, draws) of an estimand on rows or on the cells of a tally, with outcomes drawn per bin.

    The outcome count of a bin has mean Σwp and variance Σw²p(1−p). Large bins use the normal distribution, small ones
    the exact distribution of a sum of binomial fine cells. `covariance` (views · bins, views · bins) is the null
    covariance of class-wise bins: with it the classes have the correlation of the data (a normal copula), without it
    they are independent. With `flips_signs`, as for votes, the signs of residuals are flipped: Σ±w(y − p) has variance
    Σw²(y − p)².
    """
    if estimand.cell_statistics is None:
        raise InputError(
            "TO403",
            f"{estimand.estimator.name} with these settings requires the rows.",
            "a tally",
            "Use ⟨mode='exact'⟩, or fixed bins.",
        )
    if any(view.joint for view in estimand.views):
        if flips_signs:
            raise _needs_rows_error("a tally of votes")
        return np.stack(
            [
                _draw_joint_cells(view, cell_statistic, resamples, rng)
                for view, cell_statistic in zip(estimand.views, estimand.cell_statistics, strict=True)
            ]
        )
    scores = None if covariance is None else _draw_correlated_scores(covariance, resamples, rng)
    statistics, start = [], 0
    for view, cell_statistic in zip(estimand.views, estimand.cell_statistics, strict=True):
        z = (
            rng.standard_normal((resamples, cell_statistic.size))
            if scores is None
            else scores[:, start : start + cell_statistic.size]
        )
        start += cell_statistic.size
        binned = pooled_view(view, cell_statistic)
        w, wp = (
            scatter_to_bins(x[None], binned.bin_index, cell_statistic.size) for x in (binned.w, binned.w * binned.p)
        )
        statistics.append(
            cell_statistic.statistic(
                w, wp, _draw_event_weights(view, cell_statistic, binned, z, flips_signs=flips_signs)
            )
        )
    return np.stack(statistics)


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


def _draw_joint_cells(view: View, cell_statistic: CellStatistic, resamples: int, rng: np.random.Generator) -> Array:
    """Return null draws (draws,) of a joint view, with the labels of a cell of the tally drawn from a multinomial."""
    m = view.p.shape[1]
    if not np.array_equal(view.w, view.n):
        raise _needs_rows_error("a weighted tally")
    wy = np.zeros((resamples, cell_statistic.size, m))
    wp = np.zeros((1, cell_statistic.size, m))
    for cell, (count, p) in enumerate(zip(view.n.astype(np.int64), view.p, strict=True)):
        wy[:, cell_statistic.index[cell]] += rng.multinomial(count, p / p.sum(), resamples)
        wp[0, cell_statistic.index[cell]] += count * p
    w = np.bincount(cell_statistic.index, view.w, cell_statistic.size)
    return cell_statistic.statistic(w[None], wp, wy)


def _needs_rows_error(data: str) -> InputError:
    problem = f"Null draws of the complete vector of {data} require the rows."
    return InputError("TO403", problem, data, "Use ⟨mode='exact'⟩.")


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
        cells = np.stack([statistic.index[start:stop] for statistic in statistics], axis=1).astype(np.uint16)
        add_class_bin_covariances(as_plain_array(P), as_plain_array(w), as_plain_array(cells), out)

    class_pairs = sum_blocks(add_block, n, (k * (k + 1) // 2, max_bins, max_bins), block=2**16)
    covariance = np.zeros((k, max_bins, k, max_bins))
    row_class, column_class = np.triu_indices(k)
    covariance[row_class, :, column_class] = class_pairs
    covariance[column_class, :, row_class] = class_pairs.transpose(0, 2, 1)
    # Classes with fewer bins than others leave the remaining rows and columns empty.
    existing_bins = np.concatenate([c * max_bins + np.arange(statistic.size) for c, statistic in enumerate(statistics)])
    return covariance.reshape(k * max_bins, k * max_bins)[np.ix_(existing_bins, existing_bins)]
