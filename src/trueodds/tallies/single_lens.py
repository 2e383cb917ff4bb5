"""Tally only the default lens of predictions, which is several times as fast as all lenses and the proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks
from trueodds.kernels.confidence import confidence_and_correctness
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
            return _tally_block(make_predictions(start, stop), bins)
        except InputError:
            return None

    parts = map_blocks(tally_block, n, max(1, VALUES_PER_BLOCK // k))
    valid = [part for part in parts if part is not None]
    if len(valid) < len(parts):
        valid = [_tally_block(make_predictions(0, n), bins)]  # raises the error that counts rows from the first one
    return reduce(Tally.__add__, valid)


def _tally_block(preds: Predictions, bins: int) -> Tally:
    """Tally one block of rows."""
    if preds.weight is not None and not preds.weight.all():
        preds = preds[preds.weight > 0]
    ranks, classes = default_views(preds.kind, preds.k, is_group=True)
    finds_largest = ranks > 0 and preds.kind == "classes"
    if finds_largest and preds.y is not None and preds.weight is None:
        top, correct, ties = confidence_and_correctness(preds.P, preds.y)
        cells = cells_of_columns(top[:, None], correct[:, None], None)
    else:
        lens = as_lens("confidence" if ranks else "positive" if preds.kind == "classes" else "classwise")
        cells = Cells.concatenate_views([(i, cells_of_view(view)) for i, view in enumerate(lens.views(preds))])
        ties = preds.tied if finds_largest else 0
    return Tally(
        kind=preds.kind,
        classes=preds.classes,
        dtype=preds.dtype,
        bins=bins,
        grid=None,
        view_names=view_names(ranks, classes),
        n=preds.n,
        weight=float(preds.n if preds.weight is None else preds.weight.sum()),
        cells=cells,
        joint={},
        null=None,
        scores={},
        counts=SpecialRowCounts(ties=ties, voted=preds.n if preds.votes is not None else 0),
        groups={},
    )
