"""Describe in words where a reliability curve is miscalibrated and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_probabilities

MAX_SEGMENTS = 2  # stretches that are told: those where most is lost,
MIN_WIDTH = 0.001  # apart: too close for two ends
MIN_RELATIVE_LOSS = 0.2  # and not less than this share of what the first loses


@dataclass(frozen=True)
class Segment:
    """Successive places at all of which too much, or at all of which too little was said."""

    low: float
    high: float
    too_much: bool
    share: float  # of the weight of all rows
    lost: float  # what it adds to the local error
    place: int  # where most is lost


def find_segments(columns: dict[str, Array], at: Array, w: Array) -> list[Segment]:
    """Where the curve is off, by rising score; `at` and `w` are the stated scores and their weights."""
    score, error, piece = columns["score"], columns["error"], columns["piece"]
    segments = []
    for too_much in (True, False):
        outside = columns["outside"] & ((error < 0) if too_much else (error > 0))
        run = np.flatnonzero(outside)
        if not len(run):
            continue
        for part in np.split(run, np.flatnonzero((np.diff(run) > 1) | (np.diff(piece[run]) > 0)) + 1):
            low, high = float(score[part[0]]), float(score[part[-1]])
            within = slice(np.searchsorted(at, low, "left"), np.searchsorted(at, high, "right"))
            share = w[within] / w.sum()
            gone = float(share @ np.abs(np.interp(at[within], score, error)))
            # Told at a place that people can say, 90 % rather than 89.6 %, if there is one.
            lost = columns["mass"][part] * np.abs(error[part])
            plain = np.abs(100 * score[part] - np.rint(100 * score[part])) < 1e-6
            peak = part[np.argmax(np.where(plain, lost, 0.0) if plain.any() else lost)]
            segments.append(Segment(low, high, too_much, float(share.sum()), gone, int(peak)))
    return sorted(segments, key=lambda segment: segment.low)


def describe_finding(columns: dict[str, Array], out: list[Segment], local: float, view: str, band: str | None) -> str:
    """Where it is off, by how much at one place, and how far a prediction is off on average."""
    right = "is right" if view == "confidence" else "comes true"
    mean = f"The curve is {100 * local:.1f} points from a calibrated one on average."
    if band is None:
        return mean
    if not out:
        return f"{'The curve' if band == 'consistency' else 'A calibrated curve'} is nowhere beyond the band. {mean}"
    much, little = ("overconfident", "underconfident") if view == "confidence" else ("says too much", "says too little")
    by_loss = sorted(out, key=lambda segment: -segment.lost)
    shown = sorted(
        (segment for segment in by_loss[:MAX_SEGMENTS] if segment.lost >= MIN_RELATIVE_LOSS * by_loss[0].lost),
        key=lambda segment: segment.low,
    )
    words = []
    for segment in shown:
        i = segment.place
        ends, (at,) = (
            [format_probabilities(end)[0] for end in (segment.low, segment.high)],
            format_probabilities(float(columns["score"][i])),
        )
        names = ("probability", "probability_low", "probability_high")
        rate, *limits = format_probabilities(
            *(float(columns[name][i]) for name in (names if band == "confidence" else names[:1]))
        )
        is_wide = segment.high - segment.low > MIN_WIDTH and ends[0] != ends[1]
        where = f"between {ends[0]} and {ends[1]}" if is_wide else f"near {at}"
        text = f"{much if segment.too_much else little} {where}: at {at} it {right} {rate}"
        if band == "confidence":
            text += f" [{', '.join(limits)}]"
        words.append(text)
    more = len(out) - len(shown)
    rest = f", and {more} shorter {'stretch' if more == 1 else 'stretches'}" if more else ""
    body = "; ".join(words)
    lead = body[0].upper() + body[1:] if view == "confidence" else f"It {body}"
    return f"{lead}{rest}. {mean}"
