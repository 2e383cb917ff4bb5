"""Condense the rows of a view into few cells on which calibration curves in the log odds have the same likelihood."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.hypotests._glm.logits import Logits
from trueodds.lenses.view import View

MAX_CELLS = 1024  # largest number of cells, and of distinct scores each of which is a cell
_N_INTERVALS = MAX_CELLS // 4  # intervals of the log odds, each with two nodes for events and two for non-events
_LINEAR_WIDTH = 2.0  # absolute log odds beyond which intervals widen, because the likelihood is flat there


def condense_view(view: View, logits: Logits) -> View:
    r"""Return a view of at most 1,024 cells on which curves of the log odds x fit as on the rows.

    The log-likelihood is a sum of smooth functions of x, :math:`-\sum wy \log(1 + e^{-\eta(x)})` over events and
    :math:`-\sum w(1 - y) \log(1 + e^{\eta(x)})` over non-events. Up to 1,024 distinct scores each one is a cell.
    Beyond, [min x, max x] is cut into intervals of length h, and in each interval either sum is replaced by its Gauss
    quadrature: two nodes that preserve the weight and the first three moments of x, with an error of h⁴/4320 times the
    fourth derivative. Cost: O(n), and a sort if the first rows share few scores.

    >>> view = View(p=[0.2, 0.2, 0.7], y=[0, 1, 1])
    >>> condensed_view = condense_view(view, Logits.from_view(view, 0.0, "calibration_belt"))
    >>> condensed_view.p.tolist(), condensed_view.y.tolist(), condensed_view.w.tolist()
    ([0.2, 0.7], [0.5, 1.0], [2.0, 1.0])
    """
    mask = logits.w > 0
    p, x, w, ww, y, n = (column[mask] for column in (logits.p, logits.x, logits.w, logits.ww, view.y, view.n))
    if len(np.unique(p[: 4 * MAX_CELLS])) <= MAX_CELLS:  # avoids sorting all rows if already the first have too many
        scores, cell = np.unique(p, return_inverse=True)
        if len(scores) <= MAX_CELLS:
            cell_w, cell_ww, cell_wy, cell_n = (np.bincount(cell, column) for column in (w, ww, w * y, n))
            return _view_of_cells(scores, cell_wy / cell_w, cell_w, cell_ww, cell_n)
    scaled_x = np.arcsinh(x / _LINEAR_WIDTH)
    low, high = scaled_x.min(), scaled_x.max()
    interval = np.minimum((_N_INTERVALS * (scaled_x - low) / (high - low)).astype(np.intp), _N_INTERVALS - 1)
    interval_w, interval_ww, interval_n = (np.bincount(interval, column, _N_INTERVALS) for column in (w, ww, n))
    occupied = interval_w > 0
    mean_x = np.divide(
        np.bincount(interval, w * x, _N_INTERVALS), interval_w, out=np.zeros(_N_INTERVALS), where=occupied
    )
    offset = x - mean_x[interval]
    nonevent_intervals, nonevent_offsets, nonevent_w = _quadrature_nodes(interval, offset, w * (1 - y))
    event_intervals, event_offsets, event_w = _quadrature_nodes(interval, offset, w * y)
    node_interval = np.concatenate([nonevent_intervals, event_intervals])
    node_x = np.concatenate([mean_x[nonevent_intervals] + nonevent_offsets, mean_x[event_intervals] + event_offsets])
    node_w = np.concatenate([nonevent_w, event_w])
    node_y = np.concatenate([np.zeros(len(nonevent_w)), np.ones(len(event_w))])
    # expit rounds to 1 for the largest log odds.
    node_p = np.clip(expit(node_x), np.nextafter(0, 1), np.nextafter(1, 0))
    node_ww, node_n = (
        node_w * (total / np.where(occupied, interval_w, 1.0))[node_interval] for total in (interval_ww, interval_n)
    )
    return _view_of_cells(node_p, node_y, node_w, node_ww, node_n)


def _quadrature_nodes(interval: Array, offset: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the two nodes that preserve Σw, Σwz, Σwz² and Σwz³ of each interval.

    The arguments, each (n,), are the interval of each row, its offset z of the log odds, and its weight w. The results,
    each (nodes,), are the interval, offset and weight of each node.
    """
    total_weight = np.bincount(interval, weight, _N_INTERVALS)
    occupied = np.flatnonzero(total_weight > 0)

    def interval_means(values: Array) -> Array:
        """The weighted mean of `values` in each occupied interval."""
        means: Array = np.bincount(interval, weight * values, _N_INTERVALS)[occupied] / total_weight[occupied]
        return means

    mean = interval_means(offset)
    centered = offset - np.bincount(occupied, mean, _N_INTERVALS)[interval]
    std = np.sqrt(interval_means(centered**2))
    skewness = np.divide(interval_means(centered**3), std**3, out=np.zeros(len(occupied)), where=std > 1e-9)
    root = np.sqrt(1 + skewness**2 / 4)
    upper_fraction = (1 - skewness / 2 / root) / 2  # of the weight, at the upper node
    intervals = np.concatenate([occupied, occupied])
    offsets = np.concatenate([mean + std * (skewness / 2 + root), mean + std * (skewness / 2 - root)])
    weights = np.concatenate([total_weight[occupied] * upper_fraction, total_weight[occupied] * (1 - upper_fraction)])
    mask = weights > 0
    return intervals[mask], offsets[mask], weights[mask]


def _view_of_cells(p: Array, y: Array, w: Array, ww: Array, n: Array) -> View:
    """Return the view of cells with score p, event rate y, Σw, Σw² and n rows, each (cells,)."""
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
