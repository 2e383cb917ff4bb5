"""How far does the outcome rate of a bin stray when its labels are drawn again and again?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.diagrams.binned.chance import Bars
from trueodds.kernels import draws, flips
from trueodds.lenses.view import View

_BLOCK_SIZE = 2**22  # draws of cells that are held at a time


def ranges(
    view: View, index: Array, size: int, levels: Sequence[float], resamples: int, rng: np.random.Generator
) -> tuple[Bars, ...]:
    r"""Where the outcome rate of each occupied bin fell in the middle `level` of redraws, one Bars for each level.

    Every label is drawn with its stated probability, predictions and bins kept fixed; the ends are the smallest
    :math:`v` with :math:`\#\{r^*_b \le v\} \ge qB` at q = (1 ± level)/2. Unlike the laws of `chance.consistency` this
    needs no approximation for rows that weigh differently. Cells of a tally draw all their labels at once, those with
    unequal weights inside as a normal sum. Shares of votes keep the size of their residual and have its sign flipped,
    which is approximate.

    Units: probability. Cost: one draw per row (or cell) and redraw. Bins without weight are absent.
    Source: Bröcker & Smith (2007), with the predictions kept as they are.

    >>> view = View(p=[0.0, 0.5, 1.0], y=[0, 1, 1])
    >>> (bars,) = ranges(view, np.array([0, 1, 2]), 3, (0.9,), 99, np.random.default_rng(0))
    >>> bars.low.tolist(), bars.high.tolist()
    ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    p = np.clip(view.p.astype(np.float64), 0, 1)
    voted = np.abs(view.sums("wyy") - view.w * view.y) > 1e-9 * view.w
    single = view.n == 1
    mass = np.bincount(index, view.w, size)
    occupied = mass > 0
    sums = np.zeros((resamples, size))
    for rows, drawn in ((single & ~voted, _labels), (single & voted, _flips), (~single, _cells)):
        if rows.any():
            sums += drawn(view, p, index, size, np.flatnonzero(rows), voted, resamples, rng)
    rates = np.sort(np.clip(sums[:, occupied] / mass[occupied], 0, 1), axis=0)
    flipped = np.bincount(index, voted & (view.w > 0), size)[occupied] > 0
    method = tuple("flipped" if is_flipped else "redrawn" for is_flipped in flipped)
    return tuple(Bars(_reached(rates, (1 - level) / 2), _reached(rates, (1 + level) / 2), method) for level in levels)


def _reached(rates: Array, q: float) -> Array:
    """The smallest rate that the share q of the sorted redraws does not exceed."""
    return np.asarray(rates[max(math.ceil(q * len(rates) - 1e-9) - 1, 0)])


def _labels(
    view: View, p: Array, index: Array, size: int, rows: Array, _voted: Array, resamples: int, rng: np.random.Generator
) -> Array:
    table = index[rows].astype(np.int32).reshape(1, -1, 1)
    return draws.sums(p[rows, None], view.w[rows], table, size, stream_key(rng), 0, resamples, separate=True)


def _flips(
    view: View, p: Array, index: Array, size: int, rows: Array, _voted: Array, resamples: int, rng: np.random.Generator
) -> Array:
    w, predicted, observed = view.w[rows], p[rows], view.y[rows]
    slots = index[rows].astype(np.int32)[:, None]
    base = np.bincount(index[rows], w * predicted, size)
    clusters = np.arange(len(rows))
    return base + flips.sums(
        clusters, slots, (w * (observed - predicted))[:, None], size, stream_key(rng), 0, resamples
    )


def _cells(
    view: View, p: Array, index: Array, size: int, rows: Array, voted: Array, resamples: int, rng: np.random.Generator
) -> Array:
    n, w, predicted = view.n[rows].astype(np.int64), view.w[rows], p[rows]
    # Cauchy–Schwarz: only where all weights of a cell are equal is its count of outcomes all that matters.
    equal = np.isclose(w * w, n * view.sums("ww")[rows], rtol=1e-9, atol=0) & ~voted[rows]
    std = np.sqrt(np.maximum(np.where(voted[rows], view.sums("wwr")[rows], view.sums("wwv")[rows]), 0))
    order = np.argsort(index[rows], kind="stable")
    slots, first = np.unique(index[rows][order], return_index=True)
    sums = np.zeros((resamples, size))
    block = max(1, _BLOCK_SIZE // len(rows))
    for start in range(0, resamples, block):
        count = min(block, resamples - start)
        drawn = w * predicted + std * rng.standard_normal((count, len(rows)))
        drawn[:, equal] = (
            rng.binomial(n[equal], predicted[equal], (count, int(equal.sum()))) * (w / np.maximum(n, 1))[equal]
        )
        sums[start : start + count, slots] = np.add.reduceat(drawn[:, order], first, axis=1)
    return sums
