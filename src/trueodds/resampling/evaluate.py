"""Evaluate estimands on draws of the data: from the drawn sums of their cells, or from drawn rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.binning.row_selections import RowSelections
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.resampling.draws import DrawnRows, Draws, views_and_statistics
from trueodds.resampling.estimand import Estimand


def evaluate(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    """Return the values (views, draws) of each estimand; all of them are evaluated on the same draws."""
    has_cells = [draws.keeps_cells and estimand.cell_statistics is not None for estimand in estimands]
    with_cells = [estimand for estimand, from_sums in zip(estimands, has_cells, strict=True) if from_sums]
    with_rows = [estimand for estimand, from_sums in zip(estimands, has_cells, strict=True) if not from_sums]
    values_from_sums = iter(_evaluate_sums(with_cells, draws) if with_cells else [])
    values_from_rows = iter(_evaluate_rows(with_rows, draws) if with_rows else [])
    return [next(values_from_sums if from_sums else values_from_rows) for from_sums in has_cells]


def _evaluate_sums(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    statistics = [statistic for _, statistic in views_and_statistics(estimands)]

    def evaluate_view(v: int, w: Array, wp: Array, wy: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # a draw may have no row of a view
            return statistics[v].statistic(w, wp, wy)

    by_view = draws.map_sums(estimands, evaluate_view)
    return stack_by_estimand(estimands, [np.concatenate(blocks) for blocks in by_view])


def _evaluate_rows(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    blocks: list[list[list[Array]]] = [[] for _ in estimands]
    for drawn_rows in draws.map_rows(estimands):
        for estimand, drawn_views, estimand_blocks in zip(estimands, drawn_rows, blocks, strict=True):
            estimand_blocks.append([_values_of_rows(estimand.estimator, drawn) for drawn in drawn_views])
    return [np.concatenate(estimand_blocks, axis=1) for estimand_blocks in blocks]


def _values_of_rows(estimator: Estimator, drawn: DrawnRows) -> Array:
    if isinstance(drawn, RowSelections):
        return estimator.evaluate_selections(drawn)
    return np.array([estimator.value(view) for view in drawn])


def stack_by_estimand(estimands: Sequence[Estimand], per_view: Sequence[Array]) -> list[Array]:
    """Stack the results (draws,) of consecutive views, to one array (views, draws) for each estimand."""
    stacked, start = [], 0
    for estimand in estimands:
        stacked.append(np.stack(per_view[start : start + len(estimand.views)]))
        start += len(estimand.views)
    return stacked
