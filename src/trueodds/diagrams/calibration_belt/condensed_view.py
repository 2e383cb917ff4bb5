"""Condense the rows of a view into few cells on which calibration curves in the log odds have the same likelihood."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.hypotests._glm.logits import Logits
from trueodds.lenses.view import View

MAX_CELLS = 1024  # up to so many distinct scores each one is a cell
_SPANS = MAX_CELLS // 4  # intervals of log odds, each with two nodes for events and two for non-events
_LINEAR_WIDTH = 2.0  # log odds beyond which intervals widen, since the likelihood is flat there


def condense_view(view: View, logits: Logits) -> View:
    r"""A view of at most 1,024 cells on which curves of the log odds x fit as on the rows.

    The log-likelihood is a sum of smooth functions of x, :math:`-\sum wy \log(1 + e^{-\eta(x)})` over events and
    :math:`-\sum w(1 - y) \log(1 + e^{\eta(x)})` over non-events. Up to 1,024 distinct scores each one is a cell.
    Beyond, [min x, max x] is cut into intervals of length h, and in each interval either sum is replaced by its Gauss
    quadrature: two nodes that preserve the weight and the first three moments of x, with an error of h⁴/4320 times the
    fourth derivative. Cost: O(n), and a sort if the first rows share few scores.

    >>> view = View(p=[0.2, 0.2, 0.7], y=[0, 1, 1])
    >>> condensed_view = condense_view(view, Logits.of(view, 0.0, "calibration_belt"))
    >>> condensed_view.p.tolist(), condensed_view.y.tolist(), condensed_view.w.tolist()
    ([0.2, 0.7], [0.5, 1.0], [2.0, 1.0])
    """
    mask = logits.w > 0
    p, x, w, ww, y, n = (column[mask] for column in (logits.p, logits.x, logits.w, logits.ww, view.y, view.n))
    if len(np.unique(p[: 4 * MAX_CELLS])) <= MAX_CELLS:  # avoids sorting all rows if already the first have too many
        at, where = np.unique(p, return_inverse=True)
        if len(at) <= MAX_CELLS:
            mass, square, outcomes, rows = (np.bincount(where, column) for column in (w, ww, w * y, n))
            return _cells_view(at, outcomes / mass, mass, square, rows)
    scaled_x = np.arcsinh(x / _LINEAR_WIDTH)
    low, high = scaled_x.min(), scaled_x.max()
    span = np.minimum((_SPANS * (scaled_x - low) / (high - low)).astype(np.intp), _SPANS - 1)
    mass, square, rows = (np.bincount(span, column, _SPANS) for column in (w, ww, n))
    middle = np.divide(np.bincount(span, w * x, _SPANS), mass, out=np.zeros(_SPANS), where=mass > 0)
    nodes = [
        (*_quadrature_nodes(span, x - middle[span], part), outcome)
        for part, outcome in ((w * (1 - y), 0.0), (w * y, 1.0))
    ]
    node_spans = np.concatenate([spans for spans, _, _, _ in nodes])
    odds = np.concatenate([middle[spans] + offset for spans, offset, _, _ in nodes])
    weight = np.concatenate([weight for _, _, weight, _ in nodes])
    outcomes = np.concatenate([np.full(len(spans), outcome) for spans, _, _, outcome in nodes])
    # expit rounds to 1 for the largest log odds.
    at = np.clip(expit(odds), np.nextafter(0, 1), np.nextafter(1, 0))
    square, rows = (weight * (total / np.where(mass > 0, mass, 1.0))[node_spans] for total in (square, rows))
    return _cells_view(at, outcomes, weight, square, rows)


def _quadrature_nodes(span: Array, offset: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Intervals, offsets and weights of the nodes that preserve Σw, Σwz, Σwz² and Σwz³ of each interval."""
    mass = np.bincount(span, weight, _SPANS)
    some = np.flatnonzero(mass > 0)

    def mean(values: Array) -> Array:
        means: Array = np.bincount(span, weight * values, _SPANS)[some] / mass[some]
        return means

    center = mean(offset)
    shifted = offset - np.bincount(some, center, _SPANS)[span]
    std = np.sqrt(mean(shifted**2))
    skew = np.divide(mean(shifted**3), std**3, out=np.zeros(len(some)), where=std > 1e-9)
    root = np.sqrt(1 + skew**2 / 4)
    share = (1 - skew / 2 / root) / 2  # of the upper node
    spans = np.concatenate([some, some])
    places = np.concatenate([center + std * (skew / 2 + root), center + std * (skew / 2 - root)])
    weights = np.concatenate([mass[some] * share, mass[some] * (1 - share)])
    mask = weights > 0
    return spans[mask], places[mask], weights[mask]


def _cells_view(p: Array, y: Array, w: Array, ww: Array, n: Array) -> View:
    v = p * (1 - p)
    sums = {
        "ww": ww,
        "wpp": w * p * p,
        "wpy": w * p * y,
        "wyy": w * y * y,
        "wwv": ww * v,
        "wwr": ww * (y - p) ** 2,
    }
    return View(p, y, w, n=n, sums=sums)
