"""How the statistic varies from sample to sample: rows, clusters or cells drawn with replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.core.kernels.resample import Resampler
from trueodds.core.kernels.resample_vectors import VectorResampler
from trueodds.estimators.base import Linear, Mean
from trueodds.inference.asked import Asked, Layout, by_asked
from trueodds.inference.cells import Resampled, from_cells
from trueodds.inference.resamples import Resamples
from trueodds.problem.predictions import Predictions
from trueodds.problem.selections import Selections

Array = NDArray[Any]
Found = tuple[Array, Array | None]  # values (views, draws) and spreads

ROWS_AT_MOST = 200_000  # beyond, multinomial counts over bins and outcomes: the cost of bins, not of rows
HELD = 2**21  # sums of vectors held at a time
ENTRIES = 2**20  # rows of all views that are resampled together
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
        how = "rows" if preds.cluster is None else "clusters"
        parts: dict[int, list[Found]] = {i: [] for i in (*means, *linear)}
        for numbers, summed in _in_turn(preds, asked, means, linear):
            blocks = drawn.mapped(summed.of, summed.numbers)
            for i, draws in zip(numbers, zip(*blocks, strict=True), strict=True):
                parts[i].append(_joined(draws, axis=1))
        for i, views in parts.items():
            found[i] = Resampled(*_joined(views, axis=0), how)
        for i in others:
            found[i] = Resampled(_by_rows(drawn, asked[i]), None, how)
    return [found[i] for i in range(len(asked))]


def _in_turn(
    preds: Predictions, asked: Sequence[Asked], means: list[int], linear: list[int]
) -> Iterator[tuple[list[int], Means | Bins | Vectors]]:
    """What needs only sums of the rows, with the numbers of the questions: some views after the others.

    Each is made when its turn comes: a thousand classes, whose sums would not fit the memory, go a few at a time.
    """
    if means:
        yield means, Means([asked[i] for i in means], preds.cluster)
    for i in linear:
        if asked[i].views[0].joint:
            yield [i], Vectors(asked[i], preds.cluster)
    most = max(1, ENTRIES // max(1, preds.n))
    some: list[Asked] = []
    numbers: list[int] = []
    for i in linear:
        views = asked[i].views
        for first in range(0, 0 if views[0].joint else len(views), most):
            here = asked[i] if len(views) <= most else replace(asked[i], views=views[first : first + most])
            if some and sum(len(each.views) for each in some) + len(here.views) > most:
                yield numbers, Bins(some, preds.cluster)
                some, numbers = [], []
            some, numbers = [*some, here], [*numbers, i]
    if some:
        yield numbers, Bins(some, preds.cluster)


def _in_small_cells(asked: Asked) -> bool:
    """Whether vectors lie in as many cells as a tree grows: a cell of ten rows costs no less than its rows."""
    return any(
        view.joint and one.size > CELLS_AT_MOST for view, one in zip(asked.views, asked.linear or (), strict=True)
    )


def _joined(parts: Sequence[Found], axis: int) -> Found:
    """Values and spreads side by side: of more views (0) or of more draws (1)."""
    values = np.concatenate([values for values, _ in parts], axis=axis)
    spreads = [spread for _, spread in parts if spread is not None]
    return values, np.concatenate(spreads, axis=axis) if len(spreads) == len(parts) else None


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
        self.numbers = len(w)
        self.resampler = Resampler(slots, mass, said, seen, self.numbers, cluster)

    def of(self, times: Array) -> list[Found]:
        """The means of each question for these resamples."""
        w, said, endless = self.resampler.sums(times)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(endless == 0, said / w, endless * np.inf).T
        return [(values, None) for values in by_asked(self.asked, list(means))]


class Bins:
    """Statistics on fixed bins, resampled through one array of accumulators."""

    def __init__(self, asked: Sequence[Asked], cluster: Array | None) -> None:
        self.asked = asked
        self.layout = Layout(asked)
        said, seen = self.layout.said_and_seen()
        self.numbers = self.layout.size
        self.resampler = Resampler(self.layout.slots(), self.layout.weights(), said, seen, self.numbers, cluster)
        self.observed = self.layout.observed()

    def of(self, times: Array) -> list[Found]:
        """Value and spread of each question for these resamples."""
        sums = self.resampler.sums(times)
        w = self.layout.masses(sums[0])
        wp, wy = self.layout.shaped(sums[1]), self.layout.shaped(sums[2])
        values, spreads = [], []
        for v, one in enumerate(self.layout.linear):
            values.append(one.statistic(w[v], wp[v], wy[v]))
            spreads.append(_spread(one, tuple(each[v] for each in self.observed), (w[v], wp[v], wy[v])))
        out: list[Found] = []
        start = 0
        for each, value in zip(self.asked, by_asked(self.asked, values), strict=True):
            out.append((value, _stacked(spreads[start : start + len(each.views)])))
            start += len(each.views)
        return out


class Vectors:
    """One statistic on fixed cells of vectors, of which there may be many: a few resamples at a time."""

    numbers = 1  # its own are never held for all resamples of a block

    def __init__(self, asked: Asked, cluster: Array | None) -> None:
        self.linear = asked.linear or ()
        self.resamplers, self.observed = [], []
        for view, one in zip(asked.views, self.linear, strict=True):
            w = view.w[:, None]
            resampler = VectorResampler(one.index, view.w, w * view.p, w * view.y, one.size, cluster)
            self.resamplers.append(resampler)
            self.observed.append(resampler.sums(np.ones((1, len(resampler.unit)), dtype=np.uint8)))

    def of(self, times: Array) -> list[Found]:
        """Value and spread of the question for these resamples."""
        step = max(1, HELD // sum(each.numbers for each in self.resamplers))
        arranged = [each.arranged(times) for each in self.resamplers]
        starts = range(0, times.shape[1], step)
        return [_joined([self._few([each[a : a + step] for each in arranged]) for a in starts], axis=1)]

    def _few(self, times: Sequence[Array]) -> Found:
        draws = [each.sums(t) for each, t in zip(self.resamplers, times, strict=True)]
        spreads = [_spread(*each) for each in zip(self.linear, self.observed, draws, strict=True)]
        return np.stack([one.statistic(*each) for one, each in zip(self.linear, draws, strict=True)]), _stacked(spreads)


def _stacked(spreads: Sequence[Array | None]) -> Array | None:
    """The spreads of all views, or None where one has none."""
    known = [each for each in spreads if each is not None]
    return np.stack(known) if len(known) == len(spreads) else None


def _spread(one: Linear, observed: tuple[Array, ...], draws: tuple[Array, Array, Array]) -> Array | None:
    w, wp, wy = observed
    return one.spread(w[0], wp[0], wy[0], draws)
