"""Tally of the default lens only, several times as fast as a tally of all lenses and proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.kernels.row_statistics import sum_validated_confidence
from trueodds.lenses.lens_by_name import default_lens
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
    views = default_lens(preds).views(preds)
    return Tally(
        kind=preds.kind,
        classes=preds.classes,
        dtype=preds.dtype,
        bins=bins,
        view_names=view_names(*default_views(preds.kind, preds.k, default_lens_only=True)),
        n=preds.n,
        weight=float(preds.n if preds.weight is None else preds.weight.sum()),
        cells=Cells.concatenate_views([(i, cells_of_view(view)) for i, view in enumerate(views)]),
        counts=SpecialRowCounts(
            ties=preds.tied if preds.kind == "classes" and preds.k > 2 else 0,
            voted=preds.n if preds.votes is not None else 0,
        ),
    )
