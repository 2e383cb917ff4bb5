"""The bootstrap of binned data: multinomial or normal draws of bin sums, at the cost of bins instead of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand, pooled_view

MAX_BLOCK_ACCUMULATORS = 2**24  # accumulators of each kind in memory, 128 MB
Draws = tuple[Array, Array, Array]  # Σw (draws, bins), Σwp and Σwy (draws, bins[, m])


@dataclass(frozen=True)
class BootstrapResult:
    """Bootstrap results of one estimand."""

    values: Array  # (views, draws): the statistic of each view
    centered_norms: (
        Array | None
    )  # (views, draws): norm of (residuals of the draw − observed residuals); None if no norm
    resampled_units: str  # what was drawn: "rows", "clusters" or "cells"


def bootstrap_cells(estimand: Estimand, resamples: int, rng: np.random.Generator) -> BootstrapResult:
    """Resample the bins of each view: multinomial counts over bins and outcomes, normal Σp with the observed moments.

    In weighted, fractional or joint bins the residual sums are normal with the observed (co)variance of the rows.
    """
    values, norms = [], []
    for view, cell_statistic in zip(estimand.views, estimand.cell_statistics or (), strict=True):
        binned = pooled_view(view, cell_statistic)
        observed = [
            scatter_to_bins(x[None], binned.bin_index, cell_statistic.size)[0] for x in _weighted_bin_sums(binned)
        ]
        block = max(1, MAX_BLOCK_ACCUMULATORS // (cell_statistic.size * (binned.p.shape[1] if view.joint else 1)))
        statistics, noise = [], []
        for start in range(0, resamples, block):
            n_draws = min(block, resamples - start)
            bin_draws = (
                _draw_joint_bins(view, cell_statistic, binned, n_draws, rng)
                if view.joint
                else _draw_binary_bins(binned, n_draws, rng)
            )
            w, wp, wy = (scatter_to_bins(x, binned.bin_index, cell_statistic.size) for x in bin_draws)
            statistics.append(cell_statistic.statistic(w, wp, wy))
            noise.append(cell_statistic.centered_norms(observed[0], observed[1], observed[2], (w, wp, wy)))
        values.append(np.concatenate(statistics))
        norms.append(None if noise[0] is None else np.concatenate([norm for norm in noise if norm is not None]))
    centered_norms = None if any(s is None for s in norms) else np.stack([s for s in norms if s is not None])
    return BootstrapResult(np.stack(values), centered_norms, "cells")


def _weighted_bin_sums(binned: View) -> tuple[Array, Array, Array]:
    """Σw (bins,), Σwp and Σwy (bins[, m]) of the occupied bins."""
    w = binned.w[:, None] if binned.joint else binned.w
    return binned.w, w * binned.p, w * binned.y


def scatter_to_bins(x: Array, bin_index: Array | None, size: int) -> Array:
    """Expand values of the occupied bins (draws, bins) to all bins, (draws, size)."""
    if x.shape[1] == size:
        return x
    scattered = np.zeros((len(x), size, *x.shape[2:]))
    scattered[:, bin_index] = x
    return scattered


def _draw_binary_bins(binned: View, resamples: int, rng: np.random.Generator) -> Draws:
    """Bin sums of each resample: multinomial for counts of rows, otherwise normal with the observed variance."""
    n, w, p, y = binned.n, binned.w, binned.p, binned.y
    wy = w * y
    is_count = np.array_equal(n, w) and np.allclose(wy, np.rint(wy), rtol=0, atol=1e-6)
    if not is_count:
        ww = binned.sums("ww")
        drawn_weights = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
        residual = w * (y - p)
        residual_variance = np.maximum(binned.sums("wwr") - residual**2 * ww / w**2, 0.0)
        drawn_residuals = residual * drawn_weights / w + np.sqrt(residual_variance) * rng.standard_normal(
            (resamples, len(w))
        )
        return drawn_weights, p * drawn_weights, p * drawn_weights + drawn_residuals
    event_counts = np.rint(wy)
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


def _draw_joint_bins(
    view: View, cell_statistic: CellStatistic, binned: View, resamples: int, rng: np.random.Generator
) -> Draws:
    """Residual sums of each cell, normal with the covariance of the residuals of the rows."""
    residual = view.w[:, None] * (view.y - view.p)
    order = np.flatnonzero(view.w > 0)
    order = order[np.argsort(cell_statistic.index[order], kind="stable")]
    starts = np.searchsorted(cell_statistic.index[order], np.asarray(binned.bin_index))
    w, ww = binned.w, binned.sums("ww")
    drawn_weights = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
    wy = drawn_weights[..., None] * binned.p
    for b, rows in enumerate(np.split(residual[order], starts[1:])):
        mean = rows.sum(axis=0)
        _, sizes, directions = np.linalg.svd(rows - mean / len(rows), full_matrices=False)
        # Use the symmetric root because it is unique; the signs of singular vectors differ between processors.
        root = (directions.T * sizes) @ directions
        noise = rng.standard_normal((resamples, len(mean))) @ root
        wy[:, b] += drawn_weights[:, b, None] / w[b] * mean + noise
    return drawn_weights, drawn_weights[..., None] * binned.p, wy
