"""How the statistic varies from sample to sample: rows, clusters or cells drawn with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.core.kernels.resample import Resampler
from trueodds.estimators.base import Linear, Mean
from trueodds.inference.asked import Asked, Layout, by_asked
from trueodds.inference.cells import Resampled, from_cells
from trueodds.inference.resamples import Resamples
from trueodds.problem.predictions import Predictions
from trueodds.problem.selections import Selections

Array = NDArray[Any]
Found = tuple[Array, Array | None]  # values (views, draws) and spreads

ROWS_AT_MOST = 200_000  # beyond, multinomial counts over bins and outcomes: the cost of bins, not of rows
CELLS_AT_MOST = 10_000  # of vectors; beyond, rows are drawn after all


def bootstrap(
    preds: Predictions, asked: Sequence[Asked], resamples: int, rng: np.random.Generator, resample: str = "auto"
) -> list[Resampled]:
    """Every question on one set of resamples; rows carry their weights, clusters stay whole.

    Partitions chosen without labels are held fixed. Up to 2²⁰ row draws follow `rng.integers(0, n, (resamples, n))`.
    """
    found: dict[int, Resampled] = {}
    if resample == "auto" and preds.cluster is None:
        for i, each in enumerate(asked):
            if (own := each.estimator.resampled(each.views, resamples, rng)) is not None:
                found[i] = Resampled(own[0], None, own[1])
    left = [i for i in range(len(asked)) if i not in found]
    means = [i for i in left if isinstance(asked[i].estimator, Mean)]
    linear = [i for i in left if i not in means and asked[i].linear is not None]
    others = [i for i in left if i not in means and i not in linear]
    if resample == "cells" and preds.cluster is not None:
        raise InputError(
            "TO205",
            "Cells take rows as independent, and these come in clusters.",
            "resample='cells'",
            "Leave resample out: clusters are resampled whole.",
        )
    if resample == "cells" and any(len(asked[i].views) > 1 for i in linear):
        raise InputError(
            "TO205",
            "Cells do not keep how classes vary together.",
            "resample='cells' with several views",
            "Use resample='rows', or a lens with one view.",
        )
    if resample != "rows" and preds.cluster is None:
        for i in linear:
            if resample == "cells" or (preds.n > ROWS_AT_MOST and not _in_small_cells(asked[i])):
                found[i] = from_cells(asked[i], resamples, rng)
        linear = [i for i in linear if i not in found]
    if means or linear or others:
        drawn = Resamples(preds.n, preds.cluster, resamples, rng)
        summed: list[Means | Bins] = [
            *([Means([asked[i] for i in means], preds.cluster)] if means else []),
            *([Bins([asked[i] for i in linear], preds.cluster)] if linear else []),
        ]
        how = "rows" if preds.cluster is None else "clusters"
        for i, (values, spread) in zip([*means, *linear], _by_sums(drawn, summed), strict=True):
            found[i] = Resampled(values, spread, how)
        for i in others:
            found[i] = Resampled(_by_rows(drawn, asked[i]), None, how)
    return [found[i] for i in range(len(asked))]


def _in_small_cells(asked: Asked) -> bool:
    """Whether vectors lie in as many cells as a tree grows: a cell of ten rows costs no less than its rows."""
    return any(
        view.joint and one.size > CELLS_AT_MOST for view, one in zip(asked.views, asked.linear or (), strict=True)
    )


def _by_sums(drawn: Resamples, summed: Sequence[Means | Bins]) -> list[Found]:
    """What needs only sums of the rows, a block of resamples at a time."""
    blocks = drawn.sums([each.resampler for each in summed])
    found = [[one for each, three in zip(summed, sums, strict=True) for one in each.of(three)] for sums in blocks]
    return [_joined(each) for each in zip(*found, strict=True)]


def _joined(blocks: Sequence[Found]) -> Found:
    values = np.concatenate([values for values, _ in blocks], axis=1)
    spreads = [spread for _, spread in blocks if spread is not None]
    return values, np.concatenate(spreads, axis=1) if spreads else None


def _by_rows(drawn: Resamples, asked: Asked) -> Array:
    """What needs the rows themselves, (views, draws)."""
    starts = range(0, drawn.count, 32)
    blocks = (drawn.rows(start, min(start + 32, drawn.count)) for start in starts)
    each = asked.estimator.each
    return np.concatenate([[each(Selections(view, rows)) for view in asked.views] for rows in blocks], axis=1)


class Means:
    """Means of one score per row, resampled through their sums."""

    def __init__(self, asked: Sequence[Asked], cluster: Array | None) -> None:
        self.asked = asked
        w, scores = [], []
        for each in asked:
            assert isinstance(each.estimator, Mean)
            w += [view.w for view in each.views]
            scores += [each.estimator.rows(view) for view in each.views]
        mass, score = np.stack(w, axis=1), np.stack(scores, axis=1)
        finite = np.isfinite(score)  # an infinite score counts where its row comes at all
        said = mass * np.where(finite, score, 0.0)
        seen = mass * np.where(finite, 0.0, np.sign(score))
        slots = np.broadcast_to(np.arange(len(w)), mass.shape)
        self.resampler = Resampler(slots, mass, said, seen, len(w), cluster)

    def of(self, sums: Array) -> list[Found]:
        """The means of each question for these resamples."""
        w, said, endless = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(endless == 0, said / w, endless * np.inf).T
        return [(values, None) for values in by_asked(self.asked, list(means))]


class Bins:
    """Statistics on fixed bins, resampled through one array of accumulators."""

    def __init__(self, asked: Sequence[Asked], cluster: Array | None) -> None:
        self.asked = asked
        self.layout = Layout(asked)
        said, seen = self.layout.said_and_seen()
        self.resampler = Resampler(self.layout.slots(), self.layout.weights(), said, seen, self.layout.size, cluster)
        self.observed = self.layout.observed()

    def of(self, sums: Array) -> list[Found]:
        """Value and spread of each question for these resamples."""
        w = self.layout.masses(sums[0])
        wp, wy = self.layout.shaped(sums[1]), self.layout.shaped(sums[2])
        values, spreads = [], []
        for v, one in enumerate(self.layout.linear):
            values.append(one.statistic(w[v], wp[v], wy[v]))
            spreads.append(_spread(one, tuple(each[v] for each in self.observed), (w[v], wp[v], wy[v])))
        out: list[Found] = []
        start = 0
        for each, value in zip(self.asked, by_asked(self.asked, values), strict=True):
            mine = spreads[start : start + len(each.views)]
            start += len(each.views)
            out.append(
                (value, None if any(one is None for one in mine) else np.stack([m for m in mine if m is not None]))
            )
        return out


def _spread(one: Linear, observed: tuple[Array, ...], draws: tuple[Array, Array, Array]) -> Array | None:
    w, wp, wy = observed
    return one.spread(w[0], wp[0], wy[0], draws)
