"""How wide should a kernel be, judging by the scores alone?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trueodds.problem.view import View

Array = NDArray[Any]

NARROWEST = 0.002
"""The smallest standard deviation of a kernel: what the finest grid resolves."""


def silverman(view: View) -> float:
    r"""Silverman's rule for one view, on that view's own scores.

    .. math:: h = \min\Big(\mathrm{sd}, \frac{\mathrm{IQR}}{1.349}\Big) \Big(\frac{3n}{4}\Big)^{-1/5}

    At least 0.002, which is the answer for one row, and where half of the scores are all but equal: scores that pile up
    need a narrow kernel, for a wide one would carry them off. Source: Silverman (1986).
    """
    n = view.worth
    if n <= 1:
        return NARROWEST
    kept = view.w > 0
    p, w = view.p[kept].astype(np.float64), view.w[kept]
    lower, upper = quantiles(p, w * (n / w.sum()), (0.25, 0.75))
    sd = spread(p, w) * np.sqrt(n / (n - 1))
    middle = (upper - lower) / (2 * ndtri(0.75))  # the same number for a normal law
    return float(max(min(sd, middle) * (3 * n / 4) ** -0.2, NARROWEST))


def spread(x: Array, w: Array) -> float:
    """The standard deviation with the weights as shares."""
    mean = (w * x).sum() / w.sum()
    return float(np.sqrt((w * (x - mean) ** 2).sum() / w.sum()))


def quantiles(x: Array, w: Array, at: tuple[float, ...]) -> list[float]:
    """Quantiles with linear interpolation between neighbors, where a row of weight two is two rows.

    The quantile q of n rows is the mean of the sorted rows from place q(n − 1) to one row further, which for equal
    weights is the usual interpolation.
    """
    n = float(w.sum())
    if (w == 1).all():
        return [float(value) for value in np.quantile(x, at)]
    order = np.argsort(x, kind="stable")
    ends = np.concatenate(([0.0], np.cumsum(w[order])))
    held = np.concatenate(([0.0], np.cumsum((w * x)[order])))
    start = np.asarray(at) * (n - 1)
    return [float(value) for value in np.interp(start + 1, ends, held) - np.interp(start, ends, held)]
