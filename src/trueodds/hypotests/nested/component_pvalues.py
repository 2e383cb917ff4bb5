"""What a statistic says by itself, on one scale for all: a p-value from a law fitted to its draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, log_ndtr, ndtri

from trueodds.core.typing import Array
from trueodds.estimators.pairing.pairs import mean_square
from trueodds.lenses.view import View
from trueodds.resampling.among import TIE


@dataclass(frozen=True)
class Component:
    """One statistic of several that judge a claim together."""

    name: str
    weight: float
    degrees: int = 0  # of χ²; 0 for a normal statistic of two sides
    squares: bool = False  # whether it is centered, as squares without their diagonal terms are
    among: int = 1  # of how many normal statistics it is the largest


def log_pvalues(pool: Array, component: Component) -> Array:
    """The log p-value of each entry of the pool (B,), observed and drawn alike.

    The law is normal or χ² with mean and variance those of the pool. It needs to be right only roughly: what is
    combined from it is judged among the same draws.
    """
    if component.squares:
        scale = pool.std()
        u = (pool - pool.mean()) / scale if scale > 0 else np.zeros_like(pool)
        x = np.maximum(component.degrees + np.sqrt(2.0 * component.degrees) * u, 0.0)
    elif component.degrees:
        mean = pool.mean()
        x = pool * (component.degrees / mean) if mean > 0 else np.zeros_like(pool)
    elif component.among > 1:
        middle, expected = np.median(pool), -ndtri(0.5 * (1 - 0.5 ** (1 / component.among)))
        z = pool * (expected / middle) if middle > 0 else np.zeros_like(pool)
        return np.minimum(np.log(2.0 * component.among) + log_ndtr(-z), 0.0)
    else:
        scale = np.sqrt((pool * pool).mean())
        z = np.abs(pool) / scale if scale > 0 else np.zeros_like(pool)
        return np.minimum(np.log(2.0) + log_ndtr(-z), 0.0)
    tail = chdtrc(component.degrees, x)
    return np.where(tail > 1e-300, np.log(np.maximum(tail, 1e-300)), -690.0 - 0.5 * (x - x.min()))


def surprise(pool: Array) -> Array:
    """Minus the log of the p-value of each entry among all, (…, B), smooth where ranks end.

    The upper tenth is taken as exponential with the median that it has, so that the largest entry says by how much
    it is the largest. All entries are treated alike.

    >>> surprise(np.arange(100.0))[[0, 50, 99]].round(2)
    array([-0.  ,  0.69,  3.69])
    """
    size = pool.shape[-1]
    upper = max(5, size // 10)
    if size <= upper:
        return pool
    sorted_pool = np.sort(pool, axis=-1)
    out = np.empty_like(pool)
    for where in np.ndindex(pool.shape[:-1]):
        values, order = pool[where], sorted_pool[where]
        rank = size - np.searchsorted(order, values - TIE * np.abs(values), "left")
        out[where] = -np.log(np.maximum(rank, 1) / size)
        cut = order[size - upper]
        scale = np.median(order[size - upper :] - cut) / np.log(2)
        if scale > 0:
            out[where] = np.where(values > cut, np.log(size / upper) + (values - cut) / scale, out[where])
    return np.where(np.isnan(pool), np.nan, out)


def combined(log_p: Array, weights: Array) -> Array:
    """Minus the log of the weighted harmonic mean of p-values, (…): the greater, the more surprising.

    `log_p` (claims, …) and `weights` (claims,); claims without a p-value (NaN) have no part.
    """
    defined = ~np.isnan(log_p)
    share = np.where(defined, np.reshape(weights, (-1, *[1] * (log_p.ndim - 1))), 0.0)
    total = share.sum(axis=0)
    evidence = np.where(defined, -log_p, 0.0)
    largest = evidence.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = largest + np.log((share * np.exp(evidence - largest)).sum(axis=0) / total)
    return np.where(total > 0, value, np.nan)


def root_mean_square(view: View, node: Array) -> float:
    """The debiased root-mean-square error between nodes, with the sign of its square.

    `node` (n,) names the node of each row.

    >>> view = View(p=[0.5, 0.5, 0.5, 0.5], y=[1, 1, 1, 0])
    >>> root_mean_square(view, np.zeros(4, dtype=int))  # ((1.5 − .5)² − 4 · .25) / (4² − 4) = 0
    0.0
    """
    size = int(node.max()) + 1

    def summed(x: Array) -> Array:
        return np.bincount(node, x, size)

    w, ww = view.w, view.w**2 if view.is_rows else view.sums("ww")
    residual = (view.y - view.p).reshape(len(view), -1)
    squares = ww[:, None] * residual**2 if view.is_rows else view.sums("wwr")[:, None]
    square = sum(
        float(mean_square(summed(w), summed(w * one), summed(own), summed(ww)))
        for one, own in zip(residual.T, squares.T, strict=True)
    )
    return float(np.sign(square) * np.sqrt(abs(square)))
