"""Tally only the default lens of predictions, which is several times as fast as all lenses and the proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.kernels.valid_confidence import sum_valid_confidence
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies.block_sums import SpecialRowCounts
from trueodds.tallies.cells import UNWEIGHTED_SUMS, Cells, cells_of_view
from trueodds.tallies.stored_views import default_views, view_names
from trueodds.tallies.tally import Tally

VALUES_PER_BLOCK = 2**19  # probabilities that are checked and tallied at a time, while they are in the cache
VALUES_PER_TABLE = 2**20  # probabilities that a thread sums into one table of cells


def tally_default_lens(make_predictions: Callable[[int, int], Predictions], n: int, k: int, bins: int = 15) -> Tally:
    """Tally the views of the default lens, block by block, with neither proper scores nor other lenses.

    Parameters
    ----------
    make_predictions : callable
        Returns the validated rows ``start`` to ``stop − 1``.
    n, k : int
        Number of rows and of classes.
    bins : int, default=15
        Bins of the tally, which decide with which others it can be merged.

    Returns
    -------
    Tally
        A tally without proper scores and null covariance.

    Raises
    ------
    InputError
        The error of invalid rows, with the row number in all rows.
    """

    def tally_block(start: int, stop: int) -> Tally | None:
        """Tally one block; None if its rows are invalid."""
        try:
            return _tally_predictions(make_predictions(start, stop), bins)
        except InputError:
            return None

    parts = map_blocks(tally_block, n, max(1, VALUES_PER_BLOCK // k))
    valid = [part for part in parts if part is not None]
    if len(valid) < len(parts):
        valid = [_tally_predictions(make_predictions(0, n), bins)]  # raises the error that counts all rows
    return reduce(Tally.__add__, valid)


def sum_confidence(
    read_rows: Callable[[int, int], Array], y: Array, k: int, tolerance: float
) -> tuple[Array, Array, int] | None:
    """Sum the confidence of rows that need not have been validated, several times as fast as validating them first.

    Parameters
    ----------
    read_rows : callable
        Returns the probabilities of the rows ``start`` to ``stop − 1``.
    y : array (n,)
        Labels 0..K−1.
    k : int
        Number of classes.
    tolerance : float
        Deviation of a row sum from 1 that is allowed.

    Returns
    -------
    tuple or None
        Counts by cell (CELLS,), sums by cell (CELLS, 4), and the number of tied rows, or None if the rows may be
        invalid or have another form than probabilities in float32 or float64 of three to 16 classes, and labels in
        int64.
    """

    def sum_block(start: int, stop: int) -> tuple[Array, Array, int | None]:
        """Sum one block; the number of tied rows is None if its rows may be invalid."""
        n, sums = np.zeros(N_CELLS, dtype=np.int64), np.zeros((N_CELLS, len(UNWEIGHTED_SUMS)))
        return n, sums, sum_valid_confidence(read_rows(start, stop), y[start:stop], tolerance, n, sums)

    parts = map_blocks(sum_block, len(y), max(1, VALUES_PER_TABLE // k))
    ties = [tied for _, _, tied in parts if tied is not None]
    if len(ties) < len(parts):
        return None
    n, sums, _ = parts[0]
    for n_of_block, sums_of_block, _ in parts[1:]:
        n += n_of_block
        sums += sums_of_block
    return n, sums, sum(ties)


def _tally_predictions(preds: Predictions, bins: int) -> Tally:
    """Tally one block of rows."""
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
    """Return a tally of the default lens alone."""
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
