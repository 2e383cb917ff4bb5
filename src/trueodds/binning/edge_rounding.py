"""Note on scores that rounding has moved from a bin edge into the other bin, such as the decimal 0.2 as float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins
from trueodds.lenses.row_sources import sample_rows
from trueodds.lenses.view import View

MIN_SHARE = 1e-3  # share of the scores from which on it is noted; fewer cannot change a result noticeably
MAX_CHANCE_FACTOR = 3  # how many times as many as by chance are noted


def sample_scores(view: View) -> Array:
    """Return the values of evenly spaced cells (m,) or (m, K), without computing a column of all rows for them."""
    if view.rows is not None and not view.has_columns:
        return view.rows.sample()
    return view.partition_values[sample_rows(len(view))]


def edge_rounding_notes(sample: Array, all_scores: Callable[[], Array], bins: object) -> list[Note]:
    """Return a note if many scores differ from a bin edge only by rounding, and lie in another bin than the edge.

    `all_scores` is called only if this is so for some of the `sample`, which gives their precision. `bins` is
    a fitted partition that ignores the scores: edges that depend on them are scores themselves.
    """
    if not isinstance(bins, Bins) or sample.size == 0:
        return []
    dtype = _precision(sample)
    tolerance = float(np.finfo(dtype).eps)
    if not _count_moved(sample, bins, tolerance):
        return []
    scores = all_scores().ravel()
    count = _count_moved(scores, bins, tolerance)
    if count < len(scores) * max(MIN_SHARE, MAX_CHANCE_FACTOR * (bins.size - 1) * tolerance):
        return []
    cause = "in a computation such as 1 − p" if dtype == np.float64 else f"to {np.dtype(dtype).name}"
    side = "above" if bins.closed == "right" else "below"
    text = (
        f"{count:,} of {len(scores):,} values lie within rounding of a bin edge: by rounding {cause} they fall into the"
        f" bin {side} it, and the same decimals as float64 into the other bin. To count them as these decimals, round"
        " them as float64, such as np.round(p.astype(float), 6); or pass ⟨partition='equal-mass'⟩."
    )
    return [Note("TN315", text)]


def _precision(scores: Array) -> type[np.floating]:
    """Return the type with the fewest digits that holds all scores exactly."""
    types: tuple[type[np.floating], ...] = (np.float16, np.float32)
    return next((dtype for dtype in types if (scores.astype(dtype) == scores).all()), np.float64)


def _count_moved(scores: Array, bins: Bins, tolerance: float) -> int:
    """Return the number of scores within the tolerance of an inner edge that lie in another bin than the edge."""
    inner = bins.edges[1:-1]
    shifted = inner + tolerance if bins.closed == "right" else inner - tolerance
    edges = np.sort(np.concatenate([bins.edges, shifted]))
    if len(edges) > 2 and (np.diff(edges) <= 0).any():  # bins as narrow as rounding
        return 0
    counts = np.bincount(Bins(edges, bins.closed).index(scores), minlength=len(edges) - 1)
    return int(counts[1::2].sum())
