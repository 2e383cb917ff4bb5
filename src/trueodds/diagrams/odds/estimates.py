"""How sure are the shift and the slope of each class? Intervals, ellipses, and what they leave out."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, ndtri

from trueodds.core.typing import Array

_CORNERS = 72  # of an ellipse
_MIN_SPAN = 0.02  # of log δ and of γ: what the picture spans at least
_FARTHEST = 300.0  # of log δ: its axis is one of floating-point numbers, with margins
_STEEPEST = 1e6  # of γ, with what it may be off by


def drawable(theta: Array, covariance: Array, level: float) -> bool:
    """Whether each θ = (γ, τ) is told so well that its ellipse has a place on an axis of δ.

    >>> drawable(np.array([[1.0, 0.0]]), np.eye(2)[None], 0.95), drawable(np.array([[1.0, 0.0]]), 1e8 * np.eye(2)[None], 0.95)
    (True, False)
    """
    if not (np.isfinite(theta).all() and np.isfinite(covariance).all()):
        return False
    extent = np.abs(theta) + _radius(level) * np.sqrt(np.einsum("mii->mi", covariance))
    return bool((extent <= [_STEEPEST, _FARTHEST]).all())


def estimates(name: str, labels: list[str], theta: Array, covariance: Array, level: float) -> dict[str, Array]:
    """A row for each class, and the outlines of the ellipses below them; θ is (γ, τ) of each."""
    m = len(theta)
    se = np.sqrt(np.einsum("mii->mi", covariance))
    z, radius = float(ndtri((1 + level) / 2)), _radius(level)
    low, high = theta - z * se, theta + z * se
    away = np.array([1.0, 0.0]) - theta
    statistic = np.einsum("mi,mi->m", away, np.linalg.solve(covariance, away[..., None])[..., 0]) if m else np.zeros(0)
    angles = np.linspace(0, 2 * np.pi, _CORNERS + 1)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    outline = (
        theta[:, None, :] + np.swapaxes(np.linalg.cholesky(covariance) @ circle, 1, 2) if m else np.empty((0, 0, 2))
    )
    outline, corners = outline.reshape(-1, 2), len(angles) if m else 0
    gaps = np.full(len(outline), np.nan)
    names = np.array(labels, dtype=object)

    def column(values: Array, below: Array = gaps) -> Array:
        return np.concatenate([values, below])

    outside, tau = statistic > radius**2, column(theta[:, 1], outline[:, 1])
    return {
        "view": np.full(m + len(outline), name, dtype=object),
        "class": column(names, np.repeat(names, corners)),
        "kind": np.array(["estimate"] * m + ["ellipse"] * len(outline), dtype=object),
        "tau": tau,
        "delta": np.exp(tau),
        "gamma": column(theta[:, 0], outline[:, 0]),
        "delta_low": column(np.exp(low[:, 1])),
        "delta_high": column(np.exp(high[:, 1])),
        "gamma_low": column(low[:, 0]),
        "gamma_high": column(high[:, 0]),
        "statistic": column(statistic),
        "pvalue": column(chdtrc(2, statistic)),
        "outside": column(outside, np.repeat(outside, corners)).astype(bool),
    }


def axis_limits(tables: list[dict[str, Array]]) -> dict[str, float]:
    """The corners of the picture: all estimates and (1, 1), and every ellipse that is not far wider than most."""
    theta, ends = [np.array([[0.0, 1.0]])], [np.zeros((0, 2, 2))]
    for table in tables:
        own = table["kind"] == "estimate"
        if not own.any():
            continue
        both = np.stack([table["tau"], table["gamma"]], axis=1)
        outlines = both[~own].reshape(int(own.sum()), -1, 2)
        theta.append(both[own])
        ends.append(np.stack([outlines.min(axis=1), outlines.max(axis=1)], axis=1))
    points, outer = np.concatenate(theta), np.concatenate(ends)
    low, high = points.min(axis=0), points.max(axis=0)
    if len(outer):
        margin = np.maximum(high - low, np.median(outer[:, 1] - outer[:, 0], axis=0))
        low = np.minimum(low, np.maximum(outer[:, 0].min(axis=0), low - margin))
        high = np.maximum(high, np.minimum(outer[:, 1].max(axis=0), high + margin))
    wide = np.maximum(high - low, _MIN_SPAN)
    middle = (low + high) / 2
    low, high = middle - 0.57 * wide, middle + 0.57 * wide
    return {
        "delta_low": float(np.exp(low[0])),
        "delta_high": float(np.exp(high[0])),
        "gamma_low": float(low[1]),
        "gamma_high": float(high[1]),
    }


def _radius(level: float) -> float:
    """Of an ellipse, in standard deviations: χ² with 2 d.f. is exponential."""
    return float(np.sqrt(-2 * np.log1p(-level)))


def sides_of(table: dict[str, Array], own: Array, name: str) -> Array:
    """+1 and −1 where the interval lies above and below 1, else 0."""
    low, high = table[f"{name}_low"][own], table[f"{name}_high"][own]
    return np.asarray((low > 1).astype(int) - (high < 1))
