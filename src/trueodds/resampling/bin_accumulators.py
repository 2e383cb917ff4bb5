"""One array of accumulators for the bin sums of several views, which resampling fills in one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.bins import sums_by_cell
from trueodds.resampling.estimand import Estimand

MAX_DRAWS_PER_THREAD = 128  # draws that a thread adds up at once


class AccumulatorLayout:
    """Which accumulator of one array each row adds to, for the bins of all views of some estimands.

    The accumulators of a view, from `offsets` of the view on, are contiguous; a bin of a joint view of m outcomes, the
    `widths` of the view, has m of them.
    """

    def __init__(self, estimands: Sequence[Estimand]) -> None:
        self.views = [view for estimand in estimands for view in estimand.views]
        self.cell_statistics = [
            cell_statistic for estimand in estimands for cell_statistic in estimand.cell_statistics or ()
        ]
        self.widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        sizes = [cell_statistic.size * m for cell_statistic, m in zip(self.cell_statistics, self.widths, strict=True)]
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.n_accumulators = int(self.offsets[-1])

    @property
    def draws_per_block(self) -> int:
        """Number of draws in memory at once, such that their accumulators take at most 32 MB."""
        return max(1, min(4096, 2**22 // max(1, self.n_accumulators)))

    @property
    def draws_per_thread(self) -> int:
        return max(1, min(MAX_DRAWS_PER_THREAD, self.draws_per_block // 2))

    def accumulator_index(self) -> Array:
        """Accumulator index of each row and column, (n, columns); a joint view has one column per outcome."""
        columns = []
        for cell_statistic, m, offset in zip(self.cell_statistics, self.widths, self.offsets, strict=False):
            columns += [offset + cell_statistic.index * m + j for j in range(m)]
        return np.stack(columns, axis=1).astype(np.int32)

    def predicted_and_observed(self) -> tuple[Array, Array]:
        """wp and wy of each row for the columns of `accumulator_index`, (n, columns)."""
        predicted = [view.w[:, None] * (view.p if view.joint else view.p[:, None]) for view in self.views]
        observed = [view.w[:, None] * (view.y if view.joint else view.y[:, None]) for view in self.views]
        return np.concatenate(predicted, axis=1), np.concatenate(observed, axis=1)

    def split_by_view(self, sums: Array) -> list[Array]:
        """Split sums (draws, n_accumulators) by view: (draws, bins), or (draws, bins, m) for a joint view."""
        by_view = []
        for cell_statistic, m, start, stop in zip(
            self.cell_statistics, self.widths, self.offsets[:-1], self.offsets[1:], strict=True
        ):
            view_sums = sums[:, start:stop]
            by_view.append(view_sums.reshape(len(sums), cell_statistic.size, m) if m > 1 else view_sums)
        return by_view

    def observed_sums(self) -> tuple[list[Array], list[Array], list[Array]]:
        """Observed Σw (1, bins), Σwp and Σwy (1, bins) or (1, bins, m) of each view, in the shape of a single draw."""
        sums: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for cell_statistic, view in zip(self.cell_statistics, self.views, strict=True):
            index, size = cell_statistic.index, cell_statistic.size
            sums[0].append(sums_by_cell(index, view.w, size)[None])
            for view_sums, x in zip(sums[1:], (view.p, view.outcomes), strict=True):
                view_sums.append(sums_by_cell(index, x, size, view.w)[None])
        return sums


def stack_by_estimand(estimands: Sequence[Estimand], per_view: Sequence[Array]) -> list[Array]:
    """Stack the results (draws,) of consecutive views, to one array (views, draws) for each estimand."""
    stacked, start = [], 0
    for estimand in estimands:
        stacked.append(np.stack(per_view[start : start + len(estimand.views)]))
        start += len(estimand.views)
    return stacked
