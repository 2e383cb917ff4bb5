"""T-Cal: a debiased squared calibration error on nested grids of bins from coarse to fine, tested jointly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.arithmetic import divide_or_zero
from trueodds.core.errors import InputError
from trueodds.core.pvalues import holm, pvalue
from trueodds.core.settings import BinCount, Positive
from trueodds.core.typing import Array
from trueodds.estimators.base import require_single_rows
from trueodds.estimators.debiased import DebiasedL2, RowCells
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

MAX_SCALES = 32  # length of the array of scales; unused entries are NaN
MAX_TALLY_HALVINGS = 8  # the fine grid of a tally has 3840 = 2⁸ · 15 cells and can be halved 8 times


@dataclass(frozen=True, kw_only=True)
class TCal(ViewTest):
    r"""T-Cal: a debiased squared calibration error on 2, 4, 8, … bins, tested jointly.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw"}, default="redraw"
        Null distribution: labels drawn from the predicted probabilities.
    redraw : {"labels", "both"}, default="labels"
        "labels" keeps the predictions, "both" also resamples the rows (the scheme of the paper).
    resamples : int, default=999
        Number of null draws.
    bins : int, optional
        A single scale with this many bins (on every axis).
    smoothness : float, optional
        A single scale with :math:`\lfloor n^{2/(4s + K - 1)} \rfloor` bins, which is optimal for a calibration curve of
        Hölder smoothness s.

    Raises
    ------
    InputError
        TO203 for other settings. TO205 for both `bins` and `smoothness`, and for joint views from a tally.

    Notes
    -----
    .. math:: T_m = \tfrac1w \sum_b \tfrac1{w_b} \Big(\big\|\textstyle\sum w u\big\|^2 - \sum \|w u\|^2\Big), \quad
        u = y - p, \quad m = 2^b,\ b = 1, …, B, \quad
        B = \min\Big(\Big\lfloor 2 \log_2 \tfrac{n}{\sqrt{\ln n}} \Big\rfloor, \lfloor \log_2 n \rfloor\Big)

    on grids of m uniform bins. Coarse grids detect an overall shift, fine grids an error that varies quickly with the
    score. The relevant scale need not be known. One set of redrawn labels serves all scales: the smallest p-value is
    compared with the smallest p-value of each draw, so the level is exact at any n. (The paper uses a Bonferroni
    correction, which rejects 2 to 3 % at 5 %, and resamples the rows as well: ``redraw="both"``.) A score on an edge
    counts once with the bin below and once with the bin above, and T is the mean of both. It is therefore invariant
    under the complements 1 − p and 1 − y. For vectors of K outcomes the grid cuts every axis into m parts and :math:`B
    = \min(\lceil \tfrac2{K-1} \log_2 (n / \sqrt{\ln n}) \rceil, \lfloor \tfrac{\log_2 n}{K-1} \rfloor)`, at least 1.
    The joint p-value over scales is this project's own.

    Statistic: T at the scale with the smallest p-value. Effect: its signed root sign(T) √|T|, the debiased L2 error on
    these bins, in probability units. Parts: each scale with its own p-value and Holm's.

    Shapes: binary views (n,) and joint views (n, m). The cells of a tally can be halved eight times, so scales end at
    256 bins there. Cost: O(n) per draw, whatever the number of scales.

    References
    ----------
    .. [1] Lee, Huang, Hassani & Dobriban (2023).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 1, 0, 0], [0.2, 0.3, 0.8, 0.8], "tcal", bins=2)
    >>> part = verdict.parts["2 bins"]  # 2 · .8 · .7 / 2 + 2 · .8 · .8 / 2 = 1.2, over 4 rows
    >>> round(part["statistic"], 4), round(part["effect"], 4)
    (0.3, 0.5477)
    """

    name: ClassVar[str] = "tcal"
    accepts_joint_views: ClassVar[bool] = True
    null_distributions: ClassVar[tuple[str, ...]] = ("redraw",)
    joint_null: ClassVar[str] = "; the smallest p over all scales is compared with the smallest of each draw"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "in pairs of rows a weight of two is one row that counts double, not two independent rows",
        "row order": "the reported scale depends on the draws, which depend on the row order",
        "class order": "the reported scale depends on the draws, which depend on the class order",
        "cells": "bins beyond 256 are finer than the cells of a tally",
    }
    null: str = "redraw"
    bins: BinCount | None = None
    smoothness: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins is not None and self.smoothness is not None:
            raise InputError(
                "TO205",
                "smoothness determines the number of bins.",
                f"⟨bins={self.bins!r}⟩ with smoothness={self.smoothness!r}",
                "Omit one of them, or both to test all scales.",
            )

    def evaluate(self, view: View) -> ViewResult:
        """T and its signed root at each scale; the draws determine the reported scale."""
        bins_per_scale = self.bins_per_scale(view)
        values = self.cell_statistic(view).value()
        parts = {
            f"{m} bins": {"statistic": float(t), "effect": float(np.sign(t) * abs(t) ** 0.5)}
            for m, t in zip(bins_per_scale, np.atleast_1d(values), strict=False)
        }
        return ViewResult(float("nan"), float("nan"), float("nan"), parts, {"scales": bins_per_scale})

    def cell_statistic(self, view: View) -> CellFunction:
        """T at every scale, with rows sorted by the finest bins."""
        bins_per_scale = self.bins_per_scale(view)
        if view.joint:
            require_single_rows(view, self.name)
            nested_cells = _NestedVectorCells(view, bins_per_scale)
            return CellFunction(view, nested_cells.index, len(view), nested_cells.statistic)
        max_bins = bins_per_scale[-1]
        finest: Partition = Uniform(max_bins)
        index = finest.fit(view).index(view.partition_values)
        is_on_inner_edge = (view.partition_values == (index + 1) / max_bins) & (index < max_bins - 1)
        if view.is_rows and is_on_inner_edge.any():
            finest = _BinsAndEdges(max_bins)
            occupied = np.unique(finest.fit(view).index(view.partition_values))
            # Cell 2b is bin b without its edges, and cell 2b + 1 the edge between the bins b and b + 1. Edges are
            # assigned once to the bin below and once to the bin above.
            error_function = _mean_of_assignments([occupied // 2, (occupied + 1) // 2], bins_per_scale)
        else:
            occupied = np.unique(index)
            error_function = _scale_error_function([occupied // (max_bins // m) for m in bins_per_scale])
        cells = RowCells(view, finest, error_function)
        return CellFunction(view, cells.index, cells.size, cells.statistic)

    def add_draw_results(self, result: ViewResult, _view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Add the p-value of each scale; the smallest is reported, with ties ordered by the standardized deviation."""
        names = list(result.parts)
        pvalues = [max(pvalue(float(values[j]), null_draws[:, j]) for null_draws in draws) for j in range(len(names))]
        scale_draws = draws[0][:, : len(names)]
        zscores = divide_or_zero(values[: len(names)] - scale_draws.mean(axis=0), scale_draws.std(axis=0))
        strongest_index = min(range(len(names)), key=lambda j: (pvalues[j], -zscores[j]))
        parts = {
            name: {**result.parts[name], "pvalue": p, "holm": adjusted_pvalue}
            for name, p, adjusted_pvalue in zip(names, pvalues, holm(pvalues), strict=True)
        }
        strongest = parts[names[strongest_index]]
        return replace(result, statistic=strongest["statistic"], effect=strongest["effect"], parts=parts)

    def error_estimator(self) -> DebiasedL2:
        """The debiased L2 error on these bins; with its default bins if all scales are tested."""
        return DebiasedL2() if self.bins is None else DebiasedL2(Uniform(self.bins))

    def bins_per_scale(self, view: View) -> list[int]:
        """Number of bins of each scale, on every axis; from coarse to fine."""
        n, axes = max(view.n_rows, 1), view.p.shape[1] - 1 if view.joint else 1
        if self.bins is not None:
            return [self.bins]
        if self.smoothness is not None:
            return [max(1, math.floor(n ** (2 / (4 * self.smoothness + axes)) + 1e-9))]
        scales = min(n_scales(n, axes), math.floor(math.log2(n) / axes + 1e-9), MAX_SCALES)
        if not view.is_rows:
            scales = min(scales, MAX_TALLY_HALVINGS)
        return [2**b for b in range(1, max(1, scales) + 1)]


def n_scales(n: int, axes: int = 1) -> int:
    """Number of scales of the paper for n rows and `axes` independent probabilities per row.

    For one score it is rounded down, as in the code of the authors, and otherwise rounded up, as in the paper.

    >>> n_scales(500), n_scales(500, 2)
    (15, 8)
    """
    limit = 2 / axes * math.log2(n / math.sqrt(math.log(max(n, 3))))
    return max(1, math.floor(limit) if axes == 1 else math.ceil(limit))


@dataclass(frozen=True)
class _BinsAndEdges(Partition):
    """Uniform bins without their inner edges, and each inner edge as a cell between two bins."""

    bins: int  # number of uniform bins

    def fit(self, view: View) -> Bins:
        """The edges, with an additional edge directly below each inner edge."""
        edges = np.arange(self.bins + 1) / self.bins
        inner = np.stack([np.nextafter(edges[1:-1], -np.inf), edges[1:-1]], axis=1).ravel()
        return Bins(np.concatenate((edges[:1], inner, edges[-1:])))

    def __str__(self) -> str:
        return f"uniform {self.bins} and edges"


def _mean_of_assignments(
    finest_assignments: Sequence[Array], bins_per_scale: Sequence[int]
) -> Callable[[Array, Array, Array, Array], Array]:
    """Return a function that averages T at every scale over several assignments of cells to the finest bins.

    `finest_assignments` has one array (cells,) per assignment, with the bin of each cell; `bins_per_scale` are the
    numbers of bins. The function has the arguments of `_scale_error_function`, summed by cell.
    """
    assignments = []
    for finest_bins in finest_assignments:
        starts = np.flatnonzero(np.diff(finest_bins, prepend=-1))
        assignments.append(
            (starts, _scale_error_function([finest_bins[starts] // (bins_per_scale[-1] // m) for m in bins_per_scale]))
        )

    def mean_error(*sums: Array) -> Array:
        """Mean of T over the assignments, (…, MAX_SCALES), from the sums of the cells."""
        values = [
            error_function(*(np.add.reduceat(x, starts, axis=-1) for x in sums))
            for starts, error_function in assignments
        ]
        return np.asarray(sum(values) / len(values))

    return mean_error


class _NestedVectorCells:
    """T at every scale for vectors, whose rows are sorted such that the cells of every scale are contiguous."""

    def __init__(self, view: View, bins_per_scale: Sequence[int]) -> None:
        cells = [SimplexGrid(m).fit(view).index(view.partition_values) for m in bins_per_scale]
        order = np.lexsort(cells[::-1])
        self.index = np.empty(len(order), dtype=np.int64)
        self.index[order] = np.arange(len(order))
        self.starts = np.flatnonzero(np.diff(cells[-1][order], prepend=-1))
        self.error_function = _scale_error_function([cell[order][self.starts] for cell in cells])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        residual = np.moveaxis(wy - wp, -1, -2)
        squares = (residual * residual).sum(axis=-2)
        return self.error_function(*(np.add.reduceat(x, self.starts, axis=-1) for x in (w, residual, squares, w)))


def _scale_error_function(cells: Sequence[Array]) -> Callable[[Array, Array, Array, Array], Array]:
    """Return a function that computes T at every scale from sums of the finest cells.

    `cells` has one array per scale, with the bin of each of the finest cells; the bins of the scales are nested. The
    function takes Σw, Σwu, Σw²u² and Σw² of the finest cells, each (…, cells); Σwu is (…, m, cells) for vectors. It
    returns T (…, MAX_SCALES), NaN beyond the scales. The sums of a coarser scale are added up from the finer one.
    """
    starts = [np.flatnonzero(np.diff(cell, prepend=-1)) for cell in cells]
    coarser_starts = [np.searchsorted(finer_starts, coarse_starts) for coarse_starts, finer_starts in pairwise(starts)]

    def scale_errors(w: Array, residual: Array, squares: Array, _ww: Array) -> Array:
        """T at every scale, (…, MAX_SCALES), from Σw, Σwu and Σw²u² of the finest cells."""
        values, total_weight = [], w.sum(axis=-1)
        vectors = residual.ndim > squares.ndim
        for level in reversed(range(len(cells))):
            square = residual * residual
            values.append(
                divide_or_zero((square.sum(axis=-2) if vectors else square) - squares, w).sum(axis=-1) / total_weight
            )
            if level:
                w, residual, squares = (
                    np.add.reduceat(x, coarser_starts[level - 1], axis=-1) for x in (w, residual, squares)
                )
        result = np.full((*values[0].shape, MAX_SCALES), np.nan)
        result[..., : len(values)] = np.stack(values[::-1], axis=-1)
        return result

    return scale_errors
