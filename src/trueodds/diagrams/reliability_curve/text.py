"""Describe in words where a reliability curve is miscalibrated and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_probabilities

MAX_SEGMENTS = 2  # segments named at most: those with the largest local error
MIN_RELATIVE_ERROR = 0.2  # smallest local error of a named segment relative to the largest
MIN_NAMED_WIDTH = 0.001  # smallest width of a segment for which both ends are named


@dataclass(frozen=True)
class CurveSegment:
    """Consecutive points at all of which the model overpredicts, or at all of which it underpredicts."""

    low: float
    high: float
    overpredicts: bool  # whether the model overpredicts there
    share: float  # of the weight of all rows
    local_error: float  # contribution to the mean local error
    peak_index: int  # index of the point with the largest weighted error; of whole per cents, if there are any


def find_segments_outside(columns: dict[str, Array], distinct_scores: Array, w: Array) -> list[CurveSegment]:
    """Find the segments outside the band, by increasing score, from the columns of the curve.

    Of the columns (points,) it reads the `score`, the `error`, which is the event rate minus the reference and negative
    where the model overpredicts, the number of the `piece` of the curve, whether the point is `outside` the band, and
    the `mass`, the kernel-weighted weight of the rows around it. The distinct scores (m,) of the rows and their weights
    `w` (m,) determine how much a segment matters.
    """
    score, error, piece = columns["score"], columns["error"], columns["piece"]
    segments = []
    for overpredicts in (True, False):
        is_outside = columns["outside"] & ((error < 0) if overpredicts else (error > 0))
        outside_points = np.flatnonzero(is_outside)
        if not len(outside_points):
            continue
        for segment_points in np.split(
            outside_points, np.flatnonzero((np.diff(outside_points) > 1) | (np.diff(piece[outside_points]) > 0)) + 1
        ):
            low, high = float(score[segment_points[0]]), float(score[segment_points[-1]])
            in_segment = slice(
                np.searchsorted(distinct_scores, low, "left"), np.searchsorted(distinct_scores, high, "right")
            )
            share = w[in_segment] / w.sum()
            local_error = float(share @ np.abs(np.interp(distinct_scores[in_segment], score, error)))
            # Report a round score if possible, 90 % rather than 89.6 %.
            weighted_error = columns["mass"][segment_points] * np.abs(error[segment_points])
            is_round = np.abs(100 * score[segment_points] - np.rint(100 * score[segment_points])) < 1e-6
            peak = segment_points[
                np.argmax(np.where(is_round, weighted_error, 0.0) if is_round.any() else weighted_error)
            ]
            segments.append(CurveSegment(low, high, overpredicts, float(share.sum()), local_error, int(peak)))
    return sorted(segments, key=lambda segment: segment.low)


def describe_finding(
    columns: dict[str, Array], segments: list[CurveSegment], mean_local_error: float, view: str, band: str | None
) -> str:
    """Describe where the model is miscalibrated, the drawn curve at one score there, and the mean local error.

    Of the columns of the curve (points,) it reads `score`, `rate` and, with a confidence band, `low` and `high`. `view`
    is the name of the view, and `band` is "confidence", "consistency" or None.
    """
    observed = "accuracy" if view == "confidence" else "observed"
    mean_text = f"Mean local error {100 * mean_local_error:.1f} points."
    if band is None:
        return mean_text
    if not segments:
        return f"The {'curve' if band == 'consistency' else 'reference curve'} lies inside the {band} band. {mean_text}"
    overpredicted, underpredicted = (
        ("overconfident", "underconfident") if view == "confidence" else ("overpredicts", "underpredicts")
    )
    by_local_error = sorted(segments, key=lambda segment: -segment.local_error)
    shown_segments = sorted(
        (
            segment
            for segment in by_local_error[:MAX_SEGMENTS]
            if segment.local_error >= MIN_RELATIVE_ERROR * by_local_error[0].local_error
        ),
        key=lambda segment: segment.low,
    )
    segment_texts = []
    for segment in shown_segments:
        i = segment.peak_index
        end_texts, (peak_text,) = (
            [format_probabilities(values)[0] for values in (segment.low, segment.high)],
            format_probabilities(float(columns["score"][i])),
        )
        names = ("rate", "low", "high")  # the drawn curve and its band
        rate, *limits = format_probabilities(
            *(float(columns[name][i]) for name in (names if band == "confidence" else names[:1]))
        )
        is_wide = segment.high - segment.low > MIN_NAMED_WIDTH and end_texts[0] != end_texts[1]
        range_text = f"between {end_texts[0]} and {end_texts[1]}" if is_wide else f"near {peak_text}"
        text = f"{overpredicted if segment.overpredicts else underpredicted} {range_text}: {observed} {rate}"
        if band == "confidence":
            text += f" [{', '.join(limits)}]"
        segment_texts.append(f"{text} at {peak_text}")
    n_omitted = len(segments) - len(shown_segments)
    rest = f", and {n_omitted} smaller {'error' if n_omitted == 1 else 'errors'} elsewhere" if n_omitted else ""
    body = "; ".join(segment_texts)
    return f"{body[0].upper()}{body[1:]}{rest}. {mean_text}"
