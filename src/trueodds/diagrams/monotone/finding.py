"""What does a CORP diagram show, in words?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueodds.diagrams.belts.words import joined, places
from trueodds.diagrams.monotone.beyond import Segment
from trueodds.diagrams.monotone.parts import Parts, number

if TYPE_CHECKING:
    from trueodds.diagrams.corp import Corp

MAX_SEGMENTS = 3  # stretches that are told one by one: those that hold most rows,
SHORT = 0.01  # and not less than this share of them


def finding(parts: Parts, recipe: Corp, views: int, *, largest: bool) -> str:
    """Where too much or too little was said, and what recalibration would save."""
    text = f"{_where(parts, recipe)} {_saved(parts, recipe)}" if parts.band else _saved(parts, recipe)
    if views > 1:
        text = f"{'Largest miscalibration: ' if largest else ''}{parts.curve.title}. {text}"
    return text


def _where(parts: Parts, recipe: Corp) -> str:
    confidence_text = f"with {100 * recipe.level:.4g}\u00a0% confidence"
    if not parts.out:
        return {
            "honest": f"Nowhere is it off {confidence_text} at all scores together.",
            "consistency": "The curve is nowhere beyond the band.",
            "confidence": "The diagonal is nowhere beyond the band.",
        }[str(recipe.band)]
    many = [segment for segment in parts.out if segment.share >= SHORT] or list(parts.out)
    shown = sorted(sorted(many, key=lambda segment: -segment.share)[:MAX_SEGMENTS])
    confident = parts.curve.view.name == "confidence"
    much, little = ("is too sure", "is too modest") if confident else ("says too much", "says too little")
    phrases = [
        f"{verb} {_places([segment for segment in shown if segment.too_much is too_much], alone=len(shown) == 1)}"
        for verb, too_much in ((much, True), (little, False))
        if any(segment.too_much is too_much for segment in shown)
    ]
    more = len(parts.out) - len(shown)
    rest = f", and is off on {more} shorter {'stretch' if more == 1 else 'stretches'}" if more else ""
    where = f", {confidence_text}" if recipe.band == "honest" else ", beyond the band"
    return f"It {joined(phrases)}{rest}{where}."


def _saved(parts: Parts, recipe: Corp) -> str:
    numbers = parts.curve.numbers
    name = {"brier": "Brier score", "log_loss": "log loss"}[recipe.score]
    if numbers["score"] == float("inf"):
        return f"The {name} is infinite: an outcome came that had probability 0."
    return f"Recalibration could take {number(numbers['mcb'])} off the {name} of {number(numbers['score'])}."


def _places(segments: list[Segment], *, alone: bool) -> str:
    if alone:
        return places(segments[0].low, segments[0].high, "between {}\u00a0% and {}")
    return "at " + joined([places(segment.low, segment.high, "{}–{}").removeprefix("at ") for segment in segments])
