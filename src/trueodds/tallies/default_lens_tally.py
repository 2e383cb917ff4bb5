"""Tally of the default lens only, several times as fast as a tally of all lenses and proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks
from trueodds.kernels.confidence import sum_validated_confidence
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies.cells import UNWEIGHTED_SUMS, Cells, cells_of_view
from trueodds.tallies.tally import Tally, refuse_unknown_labels
from trueodds.tallies.tally_sums import SpecialRowCounts, default_views, view_names

VALUES_PER_BLOCK = 2**19  # number of probabilities that are checked and tallied at a time, while they are in the cache
VALUES_PER_TABLE = 2**20  # number of probabilities that a thread sums into one table of cells


def tally_default_lens(make_predictions: Callable[[int, int], Predictions], n: int, k: int, bins: int = 15) -> Tally:
    """Tally the views of the default lens, block by block, with neither proper scores nor other lenses.

    `make_predictions(start, stop)` returns validated rows; the error of invalid rows has the row number in all rows.
    `bins` decide with which other tallies the result can be merged.
    """

    def tally_block(start: int, stop: int) -> Tally | None:
        try:
            return _tally_predictions(make_predictions(start, stop), bins)
        except InputError:
            return None

    tallies = map_blocks(tally_block, n, max(1, VALUES_PER_BLOCK // k))
    valid_tallies = [tally for tally in tallies if tally is not None]
    if len(valid_tallies) < len(tallies):
        valid_tallies = [_tally_predictions(make_predictions(0, n), bins)]  # raises the error that counts all rows
    return reduce(Tally.__add__, valid_tallies)


def sum_confidence(
    read_rows: Callable[[int, int], Array], y: Array, k: int, tolerance: float
) -> tuple[Array, Array, int] | None:
    """Return counts and sums of confidence by cell, and the number of tied rows, while validating the rows.

    `read_rows(start, stop)` returns probabilities. None if the rows may be invalid (a row sum may deviate from 1 by the
    `tolerance`), or if this fast algorithm does not apply: it needs probabilities of three to 16 classes in float32 or
    float64, and labels in int64.
    """

    def sum_block(start: int, stop: int) -> tuple[Array, Array, int | None]:
        n, sums = np.zeros(N_CELLS, dtype=np.int64), np.zeros((N_CELLS, len(UNWEIGHTED_SUMS)))
        return n, sums, sum_validated_confidence(read_rows(start, stop), y[start:stop], tolerance, n, sums)

    block_results = map_blocks(sum_block, len(y), max(1, VALUES_PER_TABLE // k))
    ties = [n_tied for _, _, n_tied in block_results if n_tied is not None]
    if len(ties) < len(block_results):
        return None
    n, sums, _ = block_results[0]
    for n_of_block, sums_of_block, _ in block_results[1:]:
        n += n_of_block
        sums += sums_of_block
    return n, sums, sum(ties)


def _tally_predictions(preds: Predictions, bins: int) -> Tally:
    refuse_unknown_labels(preds)
    if preds.weight is not None and not preds.weight.all():
        preds = preds[preds.weight > 0]
    has_ranks = default_views(preds.kind, preds.k, is_group=True)[0] > 0
    lens = as_lens("confidence" if has_ranks else "positive" if preds.kind == "classes" else "classwise")
    cells = Cells.concatenate_views([(i, cells_of_view(view)) for i, view in enumerate(lens.views(preds))])
    counts = SpecialRowCounts(
        ties=preds.tied if has_ranks and preds.kind == "classes" else 0,
        voted=preds.n if preds.votes is not None else 0,
    )
    weight = None if preds.weight is None else float(preds.weight.sum())
    return _make_tally(preds.kind, preds.classes, preds.dtype, bins, preds.n, cells, counts, weight)


def _make_tally(
    kind: str,
    classes: tuple[Any, ...],
    dtype: str,
    bins: int,
    n: int,
    cells: Cells,
    counts: SpecialRowCounts,
    weight: float | None = None,
) -> Tally:
    return Tally(
        kind=kind,
        classes=classes,
        dtype=dtype,
        bins=bins,
        grid=None,
        view_names=view_names(*default_views(kind, len(classes), is_group=True)),
        n=n,
        weight=float(n) if weight is None else weight,
        cells=cells,
        joint={},
        null=None,
        scores={},
        counts=counts,
        groups={},
    )
