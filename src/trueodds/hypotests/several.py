"""Several claims at once: Holm's correction, and the joint p of draws that all claims share."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.resampling.among import TIE


def family(observed: Array, draws: Array) -> float:
    """The p-value of the smallest p among claims that share their draws (min-p), exact for the joint null.

    `observed` (claims,), `draws` (claims, B). Draws and data are judged alike, each among all of them, so that
    no lens wins by the width of its null law; equal smallest p-values are ordered by the largest standardized
    statistic, so that many claims do not raise the floor 1/(1 + B). Source: Westfall & Young (1993).

    >>> family(np.array([9.0, 0.0]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    0.25
    """
    defined = ~np.isnan(observed)
    if not defined.any():
        return float("nan")
    pool = np.concatenate([observed[:, None], draws], axis=1)[defined]
    pool = np.where(np.isnan(pool), -np.inf, pool)
    smallest = np.full(pool.shape[1], np.inf)
    largest = np.full(pool.shape[1], -np.inf)
    for values in pool:
        order = np.sort(values)
        finite = np.isfinite(values)
        lower = np.where(finite, values - TIE * np.abs(np.where(finite, values, 0.0)), values)
        smallest = np.minimum(smallest, (len(order) - np.searchsorted(order, lower, "left")) / len(order))
        scale = values.std() if finite.all() else 0.0
        largest = np.maximum(largest, (values - values.mean()) / scale if scale > 0 else 0.0)
    first = smallest < smallest[0] * (1 - TIE)
    tied = np.abs(smallest - smallest[0]) <= TIE
    return float((first | (tied & (largest >= largest[0] - TIE * np.abs(largest[0])))).mean())


def exact(observed: Array, values: Array, chances: Array) -> tuple[list[float], float]:
    """The p-value of each claim, and of the smallest of them, where every outcome is known with its probability.

    `observed` (claims,), `values` (claims, outcomes), `chances` (outcomes,).

    >>> exact(np.array([2.0]), np.array([[0.0, 1.0, 2.0]]), np.array([0.5, 0.3, 0.2]))
    ([0.2], 0.2)
    """
    defined = ~np.isnan(observed)
    if not defined.any():
        return [float("nan")] * len(observed), float("nan")
    tails = []
    for at in np.concatenate([observed[:, None], values], axis=1)[defined]:
        drawn, order = at[1:], np.argsort(at[1:])
        above = np.append(np.cumsum(chances[order][::-1])[::-1], 0.0)
        tails.append(above[np.searchsorted(drawn[order], at - TIE * np.abs(at), "left")])
    smallest = np.min(tails, axis=0)
    joint = float(chances[smallest[1:] <= smallest[0] * (1 + TIE)].sum())
    pvalues = np.full(len(observed), np.nan)
    pvalues[defined] = [tail[0] for tail in tails]
    return [float(min(p, 1.0)) for p in pvalues], min(joint, 1.0)
