"""At which stated scores does the curve leave the range of chance, or the diagonal the band?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.monotone.bands import Band

TOLERANCE = 1e-12  # equal counts must compare as equal


class Segment(NamedTuple):
    """Successive stated scores at all of which too much, or at all of which too little was said."""

    low: float
    high: float
    too_much: bool
    share: float  # of all weight


def find_segments(band: Band, at: Array, w: Array, fit: Array | None = None) -> tuple[Segment, ...]:
    """Where, among the rising scores `at`, the fit lies outside a band around the diagonal, or without one the diagonal.

    Nothing is said of scores that nobody stated. A band around the curve that has no width at a score says nothing
    there: labels drawn from a rate of 0 or 1 cannot differ.
    """
    low, high = band.at(at)
    if fit is None:
        masks = (at - high > TOLERANCE, low - at > TOLERANCE)
        masks = (masks[0] & (low < high), masks[1] & (low < high))
    else:
        masks = (low - fit > TOLERANCE, fit - high > TOLERANCE)
    total = w.sum()
    segments = []
    for out, too_much in zip(masks, (True, False), strict=True):
        edges = np.flatnonzero(np.diff(out, prepend=False, append=False))
        for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            share = float(w[first:after].sum() / total)
            segments.append(Segment(float(at[first]), float(at[after - 1]), too_much, share))
    return tuple(sorted(segments))
