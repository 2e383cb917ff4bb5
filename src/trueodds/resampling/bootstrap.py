"""The bootstrap: rows, whole clusters or the cells of rows are resampled, and every estimand is evaluated again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, Mean
from trueodds.estimators.observed_expected import CalibrationInTheLarge
from trueodds.kernels.bootstrap import ResidualNorms
from trueodds.lenses.view import View
from trueodds.resampling.cell_draws import CellBootstrap, pooled_sums
from trueodds.resampling.draws import (
    Bootstrap,
    Draws,
    RandomGroupBootstrap,
    can_resample_groups,
    evaluate,
    views_and_statistics,
)
from trueodds.resampling.estimand import Estimand

MAX_RESAMPLED_ROWS = 200_000  # with more rows, multinomial counts over bins and outcomes are drawn: O(bins), not O(n)
MAX_VECTOR_CELLS = 10_000  # cells of vectors; with more of them, rows are drawn


@dataclass(frozen=True)
class BootstrapResult:
    """Bootstrap results of one estimand."""

    values: Array  # (views, draws), the statistic of each view
    # (views, draws), norm of the residuals of each draw minus the observed residuals; None if the error is not a norm
    centered_norms: Array | None
    resampled_units: str  # what was drawn: "rows", "clusters", "cells" or "random groups"
    # (views, draws), mean outcome minus mean prediction; None unless the view is a single one with one score
    mean_gaps: Array | None = None


def bootstrap(
    preds: Predictions, estimands: Sequence[Estimand], resamples: int, rng: np.random.Generator, resample: str = "auto"
) -> list[BootstrapResult]:
    """Bootstrap all estimands on one set of resamples; rows keep their weights, clusters are resampled whole.

    Partitions that do not depend on the labels are held fixed. Up to 2²⁰ row draws follow
    `rng.integers(0, n, (resamples, n))`. `resample` is "rows" to resample rows or clusters, "cells" to draw multinomial
    counts of independent rows over cells, or "auto" to use the estimator's own resampling if it has one, and otherwise,
    for more than 200,000 rows, cells (one view) or random groups of rows (several views, because cells lose the
    covariance of the views). A statistic without centered norms has None in their place.

    The draws of an estimand do not depend on the others, because each way of resampling begins with the same generator.
    """
    if resample == "cells" and preds.cluster is not None:
        raise InputError(
            "TO205",
            "Resampling cells assumes independent rows, and these rows are clustered.",
            "⟨resample='cells'⟩",
            "Omit resample to resample whole clusters.",
        )
    initial_state = rng.bit_generator.state

    def rng_at_start() -> np.random.Generator:
        rng.bit_generator.state = initial_state
        return rng

    resampled: dict[int, BootstrapResult] = {}
    if resample == "auto" and preds.cluster is None:
        for i, estimand in enumerate(estimands):
            own_resamples = estimand.estimator.resample_units(estimand.views, resamples, rng_at_start())
            if own_resamples is not None:
                values, resampled_units = own_resamples
                resampled[i] = BootstrapResult(values, None, resampled_units)
    indices_by_units: dict[str, list[int]] = {"cells": [], "random groups": [], "rows": []}
    for i, estimand in enumerate(estimands):
        if i not in resampled:
            indices_by_units[_choose_units(preds, estimand, resample)].append(i)
    for i in indices_by_units["cells"]:
        resampled[i] = bootstrap_cells(estimands[i], resamples, rng_at_start())
    for i in indices_by_units["random groups"]:
        groups = RandomGroupBootstrap(estimands[i], resamples, rng_at_start())
        (resampled[i],) = _evaluate_resamples([estimands[i]], groups, "random groups")
    if row_indices := indices_by_units["rows"]:
        draws = Bootstrap(preds.n, preds.cluster, resamples, rng_at_start())
        results = resample_rows([estimands[i] for i in row_indices], draws)
        resampled |= dict(zip(row_indices, results, strict=True))
    return [resampled[i] for i in range(len(estimands))]


def _choose_units(preds: Predictions, estimand: Estimand, resample: str) -> str:
    """Return how an estimand is resampled: by "cells", by "random groups" or by "rows", which may be whole clusters."""
    if isinstance(estimand.estimator, Mean) or estimand.cell_statistics is None:
        return "rows"
    if resample == "cells" and len(estimand.views) > 1:
        raise InputError(
            "TO205",
            "Cells do not retain the covariance between views.",
            "⟨resample='cells'⟩ with several views",
            "Use ⟨resample='rows'⟩, or a lens with one view.",
        )
    has_many_rows = preds.n > MAX_RESAMPLED_ROWS and preds.cluster is None
    if resample == "auto" and has_many_rows and len(estimand.views) > 1 and can_resample_groups(estimand):
        return "random groups"
    if resample == "cells" or (resample != "rows" and has_many_rows and not _has_many_vector_cells(estimand)):
        return "cells"
    return "rows"


def _has_many_vector_cells(estimand: Estimand) -> bool:
    """Whether vectors are in so many small cells that resampling cells costs as much as resampling rows."""
    return any(
        view.joint and cell_statistic.size > MAX_VECTOR_CELLS
        for view, cell_statistic in views_and_statistics([estimand])
    )


def bootstrap_cells(estimand: Estimand, resamples: int, rng: np.random.Generator) -> BootstrapResult:
    """Resample the sums of the cells of an estimand (see `CellBootstrap`), of rows or of a tally."""
    draws = CellBootstrap(resamples, rng)
    (result,) = _evaluate_resamples([estimand], draws, "cells")
    if result.mean_gaps is None:
        return result
    # The draws of calibration-in-the-large from the same key, whose only cell has other draws than the bins.
    (mean_gaps,) = evaluate([replace(estimand, estimator=CalibrationInTheLarge())], draws)
    return replace(result, mean_gaps=mean_gaps)


def resample_rows(estimands: Sequence[Estimand], draws: Bootstrap) -> list[BootstrapResult]:
    """Evaluate estimands on resamples of rows or clusters; means and statistics of cells through their sums."""
    units = "rows" if draws.cluster is None else "clusters"
    results: dict[int, BootstrapResult] = {}
    with_sums: dict[int, Estimand] = {}
    for i, estimand in enumerate(estimands):
        if isinstance(estimand.estimator, Mean):
            with_sums[i] = _mean_of_scores(estimand)
        elif estimand.cell_statistics is None:
            results[i] = BootstrapResult(evaluate([estimand], draws)[0], None, units)
        elif all(cell_statistic.is_mean_total_variation for cell_statistic in estimand.cell_statistics):
            results[i] = _resample_total_variation(estimand, draws, units)
        else:
            with_sums[i] = estimand
    if with_sums:
        results |= zip(with_sums, _evaluate_resamples([*with_sums.values()], draws, units), strict=True)
    return [results[i] for i in range(len(estimands))]


def _evaluate_resamples(estimands: Sequence[Estimand], draws: Draws, units: str) -> list[BootstrapResult]:
    """Values, centered norms and mean gaps from the resampled sums of cells."""
    pairs = views_and_statistics(estimands)
    observed = [pooled_sums(*pair) for pair in pairs]
    has_single_score = [
        len(estimand.views) == 1 and not view.joint for estimand in estimands for view in estimand.views
    ]

    def evaluate_view(v: int, w: Array, wp: Array, wy: Array) -> tuple[Array, Array | None, Array | None]:
        statistic = pairs[v][1]
        with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no row of a view
            norms = statistic.centered_norms(*observed[v], (w, wp, wy))
            mean_gaps = (wy - wp).sum(axis=-1) / w.sum(axis=-1) if has_single_score[v] else None
            return statistic.statistic(w, wp, wy), norms, mean_gaps

    results = []
    by_view = iter(draws.map_sums(estimands, evaluate_view))
    for estimand in estimands:
        blocks_of_views = [next(by_view) for _ in estimand.views]
        values, norms, mean_gaps = (
            _stack([[block[quantity] for block in blocks] for blocks in blocks_of_views]) for quantity in range(3)
        )
        assert values is not None
        results.append(BootstrapResult(values, norms, units, mean_gaps))
    return results


def _stack(blocks_of_views: Sequence[Sequence[Array | None]]) -> Array | None:
    """Draws (views, draws) from the blocks of each view; None if they do not exist for one of them."""
    existing = [[block for block in blocks if block is not None] for blocks in blocks_of_views]
    return np.stack([np.concatenate(blocks) for blocks in existing]) if all(existing) else None


def _resample_total_variation(estimand: Estimand, draws: Bootstrap, units: str) -> BootstrapResult:
    """Weighted means of the total variation distances of many cells, without the sums of each resample."""
    norms_by_view = [
        ResidualNorms(statistic.index, view.w, view.p, view.outcomes, statistic.size, draws.cluster)
        for view, statistic in views_and_statistics([estimand])
    ]
    blocks = draws.map_blocks(lambda multiplicities: [norms.residual_norms(multiplicities) for norms in norms_by_view])
    values, centered_norms = np.moveaxis(np.concatenate(blocks, axis=-1), 1, 0) / 2  # (views, 2, draws)
    return BootstrapResult(values, centered_norms, units)


def _mean_of_scores(estimand: Estimand) -> Estimand:
    """Return the mean of one score per row as an estimand on cells, of views whose predictions are the finite scores.

    Their outcomes are the signs of the infinite scores, which make the mean of every resample with such a row infinite.
    """
    views = []
    for view in estimand.views:
        assert isinstance(estimand.estimator, Mean)
        score = estimand.estimator.row_scores(view)
        finite = np.isfinite(score)
        views.append(View(np.where(finite, score, 0.0), np.where(finite, 0.0, np.sign(score)), view.w))
    return Estimand(_MeanPrediction(), estimand.lens, tuple(views))


class _MeanPrediction(Estimator):
    """The mean prediction of a view, infinite with the sign of an outcome that is not 0."""

    name: ClassVar[str] = "mean"

    def cell_statistic(self, view: View) -> CellStatistic:
        return _MeanOfOneCell(view)


class _MeanOfOneCell(CellStatistic):
    """The mean prediction, from the sums of all rows."""

    def __init__(self, view: View) -> None:
        self.index, self.size = np.zeros(len(view), dtype=np.int64), 1

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return np.asarray(np.where(wy == 0, wp / w, wy * np.inf)[..., 0])
