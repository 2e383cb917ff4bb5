"""The bootstrap of binned data: the sums of the bins are drawn instead of rows, at a cost that does not depend on n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.estimators.observed_expected import CalibrationInTheLarge, Totals
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand, pooled_view

MAX_BLOCK_ACCUMULATORS = 2**24  # accumulators of each kind in memory, 128 MB
Draws = tuple[Array, Array, Array]  # Σw (draws, bins), Σwp and Σwy (draws, bins) or (draws, bins, m)


@dataclass(frozen=True)
class BootstrapResult:
    """Bootstrap results of one estimand."""

    values: Array  # (views, draws), the statistic of each view
    # (views, draws), norm of the residuals of each draw minus the observed residuals; None if the error is not a norm
    centered_norms: Array | None
    resampled_units: str  # what was drawn: "rows", "clusters", "cells" or "random groups"
    # (views, draws), mean outcome minus mean prediction; None unless the view is a single one with one score
    mean_gaps: Array | None = None


def bootstrap_cells(estimand: Estimand, resamples: int, rng: np.random.Generator) -> BootstrapResult:
    """Draw the bin sums of each view: multinomial counts over bins and outcomes, normal Σp with the observed moments.

    With weights, with shares of votes, and in joint views the residual sums are normal with the observed (co)variance
    of the rows.

    The draws come from a stream of their own, of which `rng` gives the key, so that other draws that continue with
    `rng`, or that begin with the same state, are independent of them.
    """
    key = stream_key(rng)
    rng = np.random.default_rng(key)
    values: list[Array] = []
    norms_by_view: list[Array | None] = []
    for view, cell_statistic in zip(estimand.views, estimand.cell_statistics or (), strict=True):
        binned = pooled_view(view, cell_statistic)
        observed = [
            scatter_to_bins(x[None], binned.bin_index, cell_statistic.size)[0] for x in _weighted_bin_sums(binned)
        ]
        block = max(1, MAX_BLOCK_ACCUMULATORS // (cell_statistic.size * (binned.p.shape[1] if view.joint else 1)))
        statistics, norms = [], []
        for start in range(0, resamples, block):
            n_draws = min(block, resamples - start)
            bin_draws = (
                _draw_joint_bins(view, cell_statistic, binned, n_draws, rng)
                if view.joint
                else _draw_binary_bins(binned, n_draws, rng)
            )
            w, wp, wy = (scatter_to_bins(x, binned.bin_index, cell_statistic.size) for x in bin_draws)
            with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no row of a view
                statistics.append(cell_statistic.statistic(w, wp, wy))
                norms.append(cell_statistic.centered_norms(observed[0], observed[1], observed[2], (w, wp, wy)))
        values.append(np.concatenate(statistics))
        defined_norms = [norm for norm in norms if norm is not None]
        norms_by_view.append(np.concatenate(defined_norms) if defined_norms else None)
    defined_views = [norm for norm in norms_by_view if norm is not None]
    centered_norms = np.stack(defined_views) if len(defined_views) == len(norms_by_view) else None
    mean_gaps = None
    if len(estimand.views) == 1 and not estimand.views[0].joint:
        # The draws of calibration-in-the-large from the same key, whose only cell has other draws than the bins.
        view = estimand.views[0]
        binned = pooled_view(view, Totals(CalibrationInTheLarge(), view))
        w, wp, wy = _draw_binary_bins(binned, resamples, np.random.default_rng(key))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_gaps = ((wy - wp) / w).T
    return BootstrapResult(np.stack(values), centered_norms, "cells", mean_gaps)


def _weighted_bin_sums(binned: View) -> tuple[Array, Array, Array]:
    """Σw (bins,), Σwp and Σwy (bins,) or (bins, m) of the occupied bins."""
    w = binned.w[:, None] if binned.joint else binned.w
    return binned.w, w * binned.p, w * binned.y


def scatter_to_bins(x: Array, bin_index: Array | None, size: int) -> Array:
    """Expand values x of the occupied bins (draws, bins, …) to all bins, (draws, size, …), with 0 elsewhere."""
    if x.shape[1] == size:
        return x
    scattered = np.zeros((len(x), size, *x.shape[2:]))
    scattered[:, bin_index] = x
    return scattered


def _draw_binary_bins(binned: View, resamples: int, rng: np.random.Generator) -> Draws:
    """Bin sums of each resample: multinomial for counts of rows, otherwise normal with the observed variance."""
    event_counts = binned.w * binned.y
    is_count = np.array_equal(binned.n, binned.w) and np.allclose(
        event_counts, np.rint(event_counts), rtol=0, atol=1e-6
    )
    draw_sums = _draw_counts if is_count else _draw_normal_sums
    return draw_sums(binned, resamples, rng)


def _draw_normal_sums(binned: View, resamples: int, rng: np.random.Generator) -> Draws:
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


def _draw_counts(binned: View, resamples: int, rng: np.random.Generator) -> Draws:
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


def _draw_joint_bins(
    view: View, cell_statistic: CellStatistic, binned: View, resamples: int, rng: np.random.Generator
) -> Draws:
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
