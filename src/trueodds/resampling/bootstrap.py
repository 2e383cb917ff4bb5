"""The bootstrap: rows or whole clusters are resampled with replacement and every statistic is recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Mean
from trueodds.kernels import map_blocks
from trueodds.kernels.bootstrap import BootstrapMultiplicities, Resampler, ResidualResampler, VectorResampler
from trueodds.resampling.cell_bootstrap import BootstrapResult, bootstrap_cells
from trueodds.resampling.estimand import AccumulatorLayout, Estimand

T = TypeVar("T")

MAX_SEQUENTIAL_DRAWS = 2**20  # up to this total number of draws, rows are drawn as `rng.integers(0, n, (resamples, n))`
AT_ONCE = 128  # resamples per block
_TIMES = 2**25  # multiplicities in memory per thread
_NUMBERS = 2**19  # accumulators of each kind in memory per thread


class SharedResamples:
    """BootstrapMultiplicities of rows or clusters in each resample; all estimands share one set of resamples.

    A small number of draws comes from the generator one by one, which reference values rely on. A large number uses
    multiplicities that depend only on the row, the resample and a key.
    """

    def __init__(self, n: int, cluster: Array | None, resamples: int, rng: np.random.Generator) -> None:
        self.n, self.cluster, self.count = n, cluster, resamples
        self.units = n if cluster is None else int(cluster.max()) + 1
        self._times: Array | None = None
        if self.units * resamples <= MAX_SEQUENTIAL_DRAWS:
            drawn = rng.integers(0, self.units, (resamples, self.units))
            place = drawn + np.arange(resamples)[:, None] * self.units
            times = np.bincount(place.ravel(), minlength=place.size).reshape(place.shape).T
            self._times = times.astype(np.uint8)
        else:
            self._drawn = BootstrapMultiplicities(self.units, stream_key(rng))

    def multiplicities(self, start: int, stop: int) -> Array:
        """BootstrapMultiplicities of each unit in the resamples start..stop−1, (units, stop − start) uint8."""
        if self._times is not None:
            return self._times[:, start:stop]
        return self._drawn.draw(start, stop)

    def rows(self, start: int, stop: int) -> list[Array]:
        """Row indices of these resamples, each sorted."""
        times = self.multiplicities(start, stop)
        of_rows = times if self.cluster is None else times[self.cluster]
        return [np.repeat(np.arange(self.n), column) for column in of_rows.T]

    def map_blocks(self, work: Callable[[Array], T], numbers: int) -> list[T]:
        """Apply `work` to the multiplicities (units, draws) of each block of resamples, in order.

        `numbers` is the number of accumulators per draw, which limits the size of the blocks.
        """
        side = max(16, min(AT_ONCE, _TIMES // self.units, _NUMBERS // numbers) // 2 * 2)
        return map_blocks(lambda start, stop: work(self.multiplicities(start, stop)), self.count, side)


ValuesAndNorms = tuple[Array, Array | None]  # values (views, draws) and norms of the centered residuals
Sums = tuple[Array, Array, Array]  # Σw, Σwp and Σwy of a view's cells, by draw

MAX_RESAMPLED_ROWS = 200_000  # with more rows, multinomial counts over bins and outcomes are drawn: O(bins), not O(n)
MAX_BLOCK_SUMS = 2**21  # sums of vectors in memory
ENTRIES = 2**20  # rows times views that are resampled together
MAX_VECTOR_CELLS = 10_000  # cells of vectors; with more of them, rows are drawn


def bootstrap(
    preds: Predictions, estimands: Sequence[Estimand], resamples: int, rng: np.random.Generator, resample: str = "auto"
) -> list[BootstrapResult]:
    """Bootstrap all estimands on one set of resamples; rows keep their weights, clusters are resampled whole.

    Partitions that do not depend on the labels are held fixed. Up to 2²⁰ row draws follow
    `rng.integers(0, n, (resamples, n))`.
    """
    resampled: dict[int, BootstrapResult] = {}
    if resample == "auto" and preds.cluster is None:
        for i, estimand in enumerate(estimands):
            if (own := estimand.estimator.resample_units(estimand.views, resamples, rng)) is not None:
                resampled[i] = BootstrapResult(own[0], None, own[1])
    left = [i for i in range(len(estimands)) if i not in resampled]
    means = [i for i in left if isinstance(estimands[i].estimator, Mean)]
    linear = [i for i in left if i not in means and estimands[i].cell_statistics is not None]
    others = [i for i in left if i not in means and i not in linear]
    if resample == "cells" and preds.cluster is not None:
        raise InputError(
            "TO205",
            "Resampling cells assumes independent rows, and these rows are clustered.",
            "resample='cells'",
            "Omit resample to resample whole clusters.",
        )
    if resample == "cells" and any(len(estimands[i].views) > 1 for i in linear):
        raise InputError(
            "TO205",
            "Cells do not retain the covariance between views.",
            "resample='cells' with several views",
            "Use resample='rows', or a lens with one view.",
        )
    if resample != "rows" and preds.cluster is None:
        for i in linear:
            if resample == "cells" or (preds.n > MAX_RESAMPLED_ROWS and not _in_small_cells(estimands[i])):
                resampled[i] = bootstrap_cells(estimands[i], resamples, rng)
        linear = [i for i in linear if i not in resampled]
    if means or linear or others:
        drawn = SharedResamples(preds.n, preds.cluster, resamples, rng)
        how = "rows" if preds.cluster is None else "clusters"
        for i in (*means, *linear):
            views = [
                _concatenate(drawn.map_blocks(some.of, some.numbers), axis=1) for some in _in_turn(estimands[i], preds)
            ]
            resampled[i] = BootstrapResult(*_concatenate(views, axis=0), how)
        for i in others:
            resampled[i] = BootstrapResult(_by_rows(drawn, estimands[i]), None, how)
    return [resampled[i] for i in range(len(estimands))]


def _in_turn(estimand: Estimand, preds: Predictions) -> Iterator[_Resampler]:
    """Resamplers of an estimand, for a few of its views at a time.

    Each one is created when it is needed, because those of a thousand classes would not fit into memory.
    """
    if isinstance(estimand.estimator, Mean):
        yield ResampledMeans(estimand, preds.cluster)
    elif all(getattr(one, "is_mean_total_variation", False) for one in estimand.cell_statistics or ()):
        yield ResampledResiduals(estimand, preds.cluster)
    elif estimand.views[0].joint:
        yield ResampledVectors(estimand, preds.cluster)
    else:
        block = max(1, ENTRIES // max(1, preds.n))
        for first in range(0, len(estimand.views), block):
            some = estimand.views[first : first + block]
            yield ResampledBins(
                estimand if len(some) == len(estimand.views) else replace(estimand, views=some), preds.cluster
            )


def _in_small_cells(estimand: Estimand) -> bool:
    """Whether vectors are in so many small cells that resampling cells costs as much as resampling rows."""
    return any(
        view.joint and one.size > MAX_VECTOR_CELLS
        for view, one in zip(estimand.views, estimand.cell_statistics or (), strict=True)
    )


def _concatenate(parts: Sequence[ValuesAndNorms], axis: int) -> ValuesAndNorms:
    """Concatenate values and norms along views (0) or draws (1)."""
    values = np.concatenate([values for values, _ in parts], axis=axis)
    norms = [norm for _, norm in parts if norm is not None]
    return values, np.concatenate(norms, axis=axis) if len(norms) == len(parts) else None


def _by_rows(drawn: SharedResamples, estimand: Estimand) -> Array:
    """Values (views, draws) of a statistic that requires the rows."""
    starts = range(0, drawn.count, 32)
    blocks = (drawn.rows(start, min(start + 32, drawn.count)) for start in starts)
    evaluate = estimand.estimator.evaluate_selections
    return np.concatenate([[evaluate(Selections(view, rows)) for view in estimand.views] for rows in blocks], axis=1)


class ResampledMeans:
    """Means of one score per row, resampled through their sums."""

    def __init__(self, estimand: Estimand, cluster: Array | None) -> None:
        assert isinstance(estimand.estimator, Mean)
        mass = np.stack([view.w for view in estimand.views], axis=1)
        score = np.stack([estimand.estimator.row_scores(view) for view in estimand.views], axis=1)
        finite = np.isfinite(score)  # an infinite score makes the mean of every resample with its row infinite
        finite_part = mass * np.where(finite, score, 0.0)
        infinite_part = mass * np.where(finite, 0.0, np.sign(score))
        self.numbers = len(estimand.views)
        slots = np.broadcast_to(np.arange(self.numbers), mass.shape)
        self.resampler = Resampler(slots, mass, finite_part, infinite_part, self.numbers, cluster)

    def of(self, times: Array) -> ValuesAndNorms:
        """Means of these resamples."""
        w, finite_sums, endless = self.resampler.sum_cells(times)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(endless == 0, finite_sums / w, endless * np.inf).T, None


class ResampledBins:
    """A statistic on fixed bins, resampled through one array of accumulators for all views."""

    def __init__(self, estimand: Estimand, cluster: Array | None) -> None:
        self.layout = AccumulatorLayout([estimand])
        self.numbers = self.layout.size
        predicted, observed = self.layout.predicted_and_observed()
        mass = np.stack([view.w for view in estimand.views], axis=1)
        self.resampler = Resampler(self.layout.accumulator_index(), mass, predicted, observed, self.numbers, cluster)
        self.observed = list(zip(*self.layout.observed(), strict=True))

    def of(self, times: Array) -> ValuesAndNorms:
        """Values and centered norms of these resamples."""
        draws = list(zip(*(self.layout.split_by_view(sums) for sums in self.resampler.sum_cells(times)), strict=True))
        return _values_and_norms(self.layout.cell_statistics, self.observed, draws)


class ResampledVectors:
    """A statistic on many fixed cells of vectors, computed for a few resamples at a time."""

    numbers = 1  # sums are computed for a few resamples at a time, so they do not limit the block

    def __init__(self, estimand: Estimand, cluster: Array | None) -> None:
        self.linear = estimand.cell_statistics or ()
        self.resamplers, self.observed = [], []
        for view, one in zip(estimand.views, self.linear, strict=True):
            w = view.w[:, None]
            resampler = VectorResampler(one.index, view.w, w * view.p, w * view.y, one.size, cluster)
            self.resamplers.append(resampler)
            self.observed.append(resampler.sum_vectors(np.ones((1, len(resampler.unit)), dtype=np.uint8)))

    def of(self, times: Array) -> ValuesAndNorms:
        """Values and centered norms of these resamples."""
        step = max(1, MAX_BLOCK_SUMS // sum(resampler.n_sums for resampler in self.resamplers))
        arranged = [resampler.sort_multiplicities(times) for resampler in self.resamplers]
        starts = range(0, times.shape[1], step)
        return _concatenate([self._of_block([counts[a : a + step] for counts in arranged]) for a in starts], axis=1)

    def _of_block(self, times: Sequence[Array]) -> ValuesAndNorms:
        draws = [resampler.sum_vectors(t) for resampler, t in zip(self.resamplers, times, strict=True)]
        return _values_and_norms(self.linear, self.observed, draws)


class ResampledResiduals:
    """Weighted means of the total variation distances of cells of vectors, without the sums of each resample."""

    numbers = 1  # no sums are kept, so they do not limit the block

    def __init__(self, estimand: Estimand, cluster: Array | None) -> None:
        self.resamplers = [
            ResidualResampler(one.index, view.w, view.w[:, None] * view.p, view.w[:, None] * view.y, one.size, cluster)
            for view, one in zip(estimand.views, estimand.cell_statistics or (), strict=True)
        ]

    def of(self, times: Array) -> ValuesAndNorms:
        """Values and centered norms of these resamples."""
        values, norms = zip(*(resampler.residual_norms(times) for resampler in self.resamplers), strict=True)
        return np.stack(values) / 2, np.stack(norms) / 2


_Resampler = ResampledMeans | ResampledBins | ResampledVectors | ResampledResiduals


def _values_and_norms(
    linear: Sequence[CellStatistic], observed: Sequence[Sums], draws: Sequence[Sums]
) -> ValuesAndNorms:
    """Values and centered norms of all views from observed and resampled sums; None if a view has no norm."""
    values = np.stack([one.statistic(*drawn) for one, drawn in zip(linear, draws, strict=True)])
    norms = [
        one.centered_norms(w[0], wp[0], wy[0], drawn)
        for one, (w, wp, wy), drawn in zip(linear, observed, draws, strict=True)
    ]
    known = [norm for norm in norms if norm is not None]
    return values, np.stack(known) if len(known) == len(norms) else None
