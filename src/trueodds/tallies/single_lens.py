"""Tally only the default lens of predictions, which is several times as fast as all lenses and the proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.arrays import as_float_array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, SUM_TOLERANCE_OF_DTYPE
from trueodds.kernels import map_blocks
from trueodds.kernels.valid_confidence import confidence_of_valid_rows
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies.block_sums import SpecialRowCounts
from trueodds.tallies.cells import Cells, cells_of_columns, cells_of_view
from trueodds.tallies.stored_views import default_views, view_names
from trueodds.tallies.tally import Tally

VALUES_PER_BLOCK = 2**19  # probabilities that are checked and tallied at a time, while they are in the cache


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


def tally_confidence(P: Array, y: Array, bins: int = 15) -> Tally | None:
    """Tally the confidence of rows that need not have been validated, several times as fast as validating them first.

    Parameters
    ----------
    P : array (n, K)
        Probabilities.
    y : array (n,)
        Labels 0..K−1.
    bins : int, default=15
        Bins of the tally, which decide with which others it can be merged.

    Returns
    -------
    Tally or None
        The tally that `tally_default_lens` returns, or None if the rows may be invalid or have another form than
        float probabilities of three to 16 classes, and labels of int64.
    """
    dtype = P.dtype.name
    if P.ndim != 2 or y.ndim != 1 or len(P) != len(y) or len(P) == 0:
        return None

    def tally_block(start: int, stop: int) -> Tally | None:
        """Tally one block; None if its rows may be invalid."""
        rows = as_float_array(P[start:stop], "y_prob")
        tolerance = SUM_TOLERANCE_OF_DTYPE.get(dtype, DEFAULT_SUM_TOLERANCE)
        confidence = confidence_of_valid_rows(rows, y[start:stop], tolerance)
        if confidence is None:
            return None
        top, correct, ties = confidence
        cells, k = cells_of_columns(top[:, None], correct[:, None], None), P.shape[1]
        return _make_tally("classes", tuple(range(k)), dtype, bins, stop - start, cells, SpecialRowCounts(ties=ties))

    parts = map_blocks(tally_block, len(P), max(1, VALUES_PER_BLOCK // P.shape[1]))
    valid = [part for part in parts if part is not None]
    return reduce(Tally.__add__, valid) if len(valid) == len(parts) else None


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
