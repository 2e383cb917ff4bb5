"""How wide should a kernel be, judging by the scores alone?"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueodds.binning.by_score import by_score
from trueodds.binning.quantiles import quantiles, weighted_std
from trueodds.binning.selections import Selections
from trueodds.core.typing import Array
from trueodds.lenses.view import View

NARROWEST = 0.002
"""The smallest standard deviation of a kernel: what the finest grid resolves."""


def silverman(view: View) -> float:
    r"""Silverman's rule for one view, on that view's own scores.

    .. math:: h = \min\Big(\mathrm{sd}, \frac{\mathrm{IQR}}{1.349}\Big) \Big(\frac{3n}{4}\Big)^{-1/5}

    At least 0.002, which is the answer for one row, and where half of the scores are all but equal: scores that pile up
    need a narrow kernel, for a wide one would carry them off. Source: Silverman (1986).
    """
    n = view.effective_n
    if n <= 1:
        return NARROWEST
    s, w, _ = by_score(view).sums()
    return float(_silverman_rule(s, w * (n / w.sum()), n))


def silverman_of_selections(of: Selections) -> Array:
    """The same for each of selections that are alike."""
    p, _ = of.sorted_scores
    n = p.shape[1]
    return np.full(len(of), NARROWEST) if n <= 1 else _silverman_rule(p, np.ones(n), n)


def _silverman_rule(s: Array, w: Array, n: float) -> Array:
    lower, upper = quantiles(s, w, (0.25, 0.75))
    sd = weighted_std(s, w) * np.sqrt(n / (n - 1))
    middle = (upper - lower) / (2 * ndtri(0.75))  # the same number for a normal law
    return np.maximum(np.minimum(sd, middle) * (3 * n / 4) ** -0.2, NARROWEST)
