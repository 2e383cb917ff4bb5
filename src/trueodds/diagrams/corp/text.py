"""Describe in words where a CORP curve is miscalibrated, and how much recalibration could reduce the score."""

from __future__ import annotations

from collections.abc import Sequence

from trueodds.diagrams._style.formatting import format_range, format_score, join_words
from trueodds.diagrams.corp.bands import BandSegment
from trueodds.diagrams.corp.curve import CorpPanel

MAX_SEGMENTS = 3  # largest number of segments that are named: those with most rows
MIN_SEGMENT_SHARE = 0.01  # smallest share of rows of a named segment
_TEXTS_WITHOUT_SEGMENTS = {
    "honest": "The diagonal lies inside the simultaneous band.",
    "consistency": "The curve lies inside the consistency band.",
    "confidence": "The diagonal lies inside the confidence band.",
}


def describe_finding(
    panel: CorpPanel, band: str | None, level: float, score: str, n_views: int, *, is_largest: bool
) -> str:
    """Describe where the model over- or underpredicts, and the gain of recalibration.

    `band`, `level` and `score` are the settings of the diagram. Of `n_views` views, that with the largest
    miscalibration (`is_largest`) is introduced as such.
    """
    text = _describe_miscalibration(panel, score)
    if band is not None and panel.band is not None:
        text = f"{_describe_segments(panel, band, level)} {text}"
    if n_views > 1:
        text = f"{'Largest miscalibration: ' if is_largest else ''}{panel.curve.title}. {text}"
    return text


def _describe_segments(panel: CorpPanel, band: str, level: float) -> str:
    """Name the longest segments outside the band and the direction of their error."""
    segments = panel.segments_outside
    if not segments:
        return _TEXTS_WITHOUT_SEGMENTS[band]
    candidates = [segment for segment in segments if segment.share >= MIN_SEGMENT_SHARE] or list(segments)
    longest = sorted(candidates, key=lambda segment: -segment.share)[:MAX_SEGMENTS]
    shown_segments = sorted(longest)  # by score
    overpredicted = [segment for segment in shown_segments if segment.overpredicts]
    underpredicted = [segment for segment in shown_segments if not segment.overpredicts]
    is_confidence = panel.curve.view.name == "confidence"
    phrases = []
    if overpredicted:
        verb = "overconfident" if is_confidence else "overpredicts"
        phrases.append(f"{verb} {_format_segments(overpredicted, is_only_segment=len(shown_segments) == 1)}")
    if underpredicted:
        verb = "underconfident" if is_confidence else "underpredicts"
        phrases.append(f"{verb} {_format_segments(underpredicted, is_only_segment=len(shown_segments) == 1)}")
    n_omitted = len(segments) - len(shown_segments)
    if n_omitted:
        phrases.append(f"deviates in {n_omitted} shorter {'segment' if n_omitted == 1 else 'segments'}")
    body = _join_phrases(phrases)
    band_name = "simultaneous" if band == "honest" else band
    return f"{body[0].upper()}{body[1:]} (outside the {100 * level:.4g}\u00a0% {band_name} band)."


def _join_phrases(phrases: Sequence[str]) -> str:
    """Join one to three phrases; a comma separates phrases that contain an "and" of their own."""
    if len(phrases) == 1:
        return phrases[0]
    if len(phrases) == 2 and " and " not in phrases[0]:
        return join_words(phrases)
    return f"{', '.join(phrases[:-1])}, and {phrases[-1]}"


def _format_segments(segments: Sequence[BandSegment], *, is_only_segment: bool) -> str:
    """Format the scores that these segments span, as a phrase such as `at 10–20 % and 40–60 %`."""
    if is_only_segment:
        return format_range(segments[0].low, segments[0].high, "between {}\u00a0% and {}")
    return "at " + join_words(
        [format_range(segment.low, segment.high, "{}–{}").removeprefix("at ") for segment in segments]
    )


def _describe_miscalibration(panel: CorpPanel, score: str) -> str:
    """State how much recalibration could reduce the score."""
    decomposition = panel.curve.decomposition
    score_name = {"brier": "Brier score", "log_loss": "log loss"}[score]
    if decomposition["score"] == float("inf"):
        return f"The {score_name} is infinite: an observed outcome had predicted probability 0."
    mean_score, mcb = (format_score(decomposition[key]) for key in ("score", "mcb"))
    return f"Recalibration could reduce the {score_name} of {mean_score} by {mcb}."
