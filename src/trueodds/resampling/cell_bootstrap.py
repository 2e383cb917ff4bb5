"""The bootstrap of binned data: multinomial or normal draws of bin sums, at the cost of bins instead of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand, pooled_view

NUMBERS = 2**24  # accumulators of each kind in memory, 128 MB
Draws = tuple[Array, Array, Array]  # Σw (draws, bins), Σwp and Σwy (draws, bins[, m])


@dataclass(frozen=True)
class BootstrapResult:
    """Bootstrap results of one estimand."""

    values: Array  # (views, draws): the statistic of each view
    centered_norms: Array | None  # (views, draws): the error's norm of (residuals of the draw − observed residuals)
    how: str


def bootstrap_cells(estimand: Estimand, resamples: int, rng: np.random.Generator) -> BootstrapResult:
    """Resample the bins of each view: multinomial counts over bins and outcomes, normal Σp with the observed moments.

    In weighted, fractional or joint bins the residual sums are normal with the observed (co)variance of the rows.
    """
    values, norms = [], []
    for view, one in zip(estimand.views, estimand.cell_statistics or (), strict=True):
        binned = pooled_view(view, one)
        observed = [scatter_to_bins(x[None], binned.bin_index, one.size)[0] for x in _sums(binned)]
        block = max(1, NUMBERS // (one.size * (binned.p.shape[1] if view.joint else 1)))
        statistics, noise = [], []
        for start in range(0, resamples, block):
            many = min(block, resamples - start)
            small = _joint_draws(view, one, binned, many, rng) if view.joint else _binary_draws(binned, many, rng)
            w, wp, wy = (scatter_to_bins(x, binned.bin_index, one.size) for x in small)
            statistics.append(one.statistic(w, wp, wy))
            noise.append(one.centered_norms(observed[0], observed[1], observed[2], (w, wp, wy)))
        values.append(np.concatenate(statistics))
        norms.append(None if noise[0] is None else np.concatenate([norm for norm in noise if norm is not None]))
    centered_norms = None if any(s is None for s in norms) else np.stack([s for s in norms if s is not None])
    return BootstrapResult(np.stack(values), centered_norms, "cells")


def _sums(binned: View) -> tuple[Array, Array, Array]:
    w = binned.w[:, None] if binned.joint else binned.w
    return binned.w, w * binned.p, w * binned.y


def scatter_to_bins(x: Array, slots: Array | None, size: int) -> Array:
    """Expand values of the occupied bins (draws, bins) to all bins, (draws, size)."""
    if x.shape[1] == size:
        return x
    out = np.zeros((len(x), size, *x.shape[2:]))
    out[:, slots] = x
    return out


def _binary_draws(binned: View, resamples: int, rng: np.random.Generator) -> Draws:
    n, w, p, y = binned.n, binned.w, binned.p, binned.y
    wy = w * y
    hard = np.array_equal(n, w) and np.allclose(wy, np.rint(wy), rtol=0, atol=1e-6)
    if not hard:
        ww = binned.sums("ww")
        mass = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
        residual = w * (y - p)
        left = np.maximum(binned.sums("wwr") - residual**2 * ww / w**2, 0.0)
        drawn = residual * mass / w + np.sqrt(left) * rng.standard_normal((resamples, len(w)))
        return mass, p * mass, p * mass + drawn
    yes = np.rint(wy)
    no = n - yes
    total = round(float(n.sum()))
    counts = rng.multinomial(total, np.concatenate([yes, no]) / total, size=resamples).astype(np.float64)
    yes_drawn, no_drawn = counts[:, : len(n)], counts[:, len(n) :]
    with np.errstate(divide="ignore", invalid="ignore"):
        p_yes = np.where(yes > 0, binned.sums("wpy") / yes, 0.0)
        p_no = np.where(no > 0, (w * p - binned.sums("wpy")) / no, 0.0)
    within = np.maximum(binned.sums("wpp") - yes * p_yes**2 - no * p_no**2, 0.0) / n
    mass = yes_drawn + no_drawn
    wp = yes_drawn * p_yes + no_drawn * p_no + np.sqrt(within * mass) * rng.standard_normal(mass.shape)
    return mass, wp, yes_drawn


def _joint_draws(view: View, one: CellStatistic, binned: View, resamples: int, rng: np.random.Generator) -> Draws:
    """Residual sums of each cell, normal with the covariance of the residuals of the rows."""
    residual = view.w[:, None] * (view.y - view.p)
    order = np.flatnonzero(view.w > 0)
    order = order[np.argsort(one.index[order], kind="stable")]
    starts = np.searchsorted(one.index[order], np.asarray(binned.bin_index))
    w, ww = binned.w, binned.sums("ww")
    mass = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
    wy = mass[..., None] * binned.p
    for b, rows in enumerate(np.split(residual[order], starts[1:])):
        mean = rows.sum(axis=0)
        _, sizes, directions = np.linalg.svd(rows - mean / len(rows), full_matrices=False)
        # Use the symmetric root because it is unique; the signs of singular vectors differ between processors.
        root = (directions.T * sizes) @ directions
        noise = rng.standard_normal((resamples, len(mean))) @ root
        wy[:, b] += mass[:, b, None] / w[b] * mean + noise
    return mass, mass[..., None] * binned.p, wy
