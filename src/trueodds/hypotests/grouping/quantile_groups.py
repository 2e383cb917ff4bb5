"""Which rows are judged together? Groups of about equal size by rising score, equal scores never apart."""

from __future__ import annotations

import numpy as np

from trueodds.binning.by_score import ByScore
from trueodds.core.typing import Array
from trueodds.kernels.bin_index import Bins

ALIKE = 1e-12  # relative difference up to which weights count as equal


def quantile_groups(s: Array, w: Array, n: Array, count: int) -> tuple[Array, int]:
    """The group of each row and how many groups hold rows, cut at quantiles of the scores, right-closed.

    The cuts are the quantiles i/count with linear interpolation (type 7); equal cuts are one. Rows or cells of n rows
    that weigh alike are counted as rows; others are cut where the weight so far reaches its share, midway to the next
    score. The group of a row without weight means nothing.

    >>> quantile_groups(np.array([0.1, 0.2, 0.2, 0.9]), np.ones(4), np.ones(4), 2)
    (array([0, 0, 0, 1]), 2)
    """
    mask = w > 0
    scores, weights, rows = np.asarray(s, dtype=np.float64)[mask], w[mask], n[mask]
    unit = weights.sum() / rows.sum()
    even = bool((np.abs(weights - unit * rows) <= ALIKE * weights).all())
    sorted_scores = ByScore(scores, np.zeros(len(scores)), rows if even else weights)
    i = np.arange(1, count)
    if even:
        # In whole numbers: a quantile that is a score must be that score, which lies in the lower group.
        place = i * (round(rows.sum()) - 1)
        low, part = place // count, place % count / count
        last, following = sorted_scores.between(low + 1.0)
    else:
        part = np.full(len(i), 0.5)
        last, following = sorted_scores.between(i * weights.sum() / count)
    cuts = last + part * (following - last)
    edges = np.unique(np.concatenate(([scores.min()], cuts, [scores.max()])))
    if len(edges) == 1:
        return np.zeros(len(s), dtype=np.int64), 1
    group = np.asarray(Bins(edges).index(np.asarray(s, dtype=np.float64)), dtype=np.int64)
    occupied = np.unique(group[mask])  # with fewer rows than cuts, some cuts have no row between them
    return np.minimum(np.searchsorted(occupied, group), len(occupied) - 1), len(occupied)
