"""Format probabilities, p-values, scores, lists of words and notes for the texts of diagrams."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueodds.core.errors import Note

SCORE_NAMES = {"brier": "Brier score", "log_loss": "log loss"}  # the scores of CORP and Murphy diagrams in texts
TALLY_NOTE = Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows.")


def format_percent(x: float) -> str:
    """Format a probability with one decimal, or two near 0 and 1, such as 99.97 %."""
    is_near_end = 0 < min(abs(x), abs(1 - x)) < 0.005
    return f"{100 * x:.{2 if is_near_end else 1}f}\u00a0%"


def format_level(level: float) -> str:
    """Format a confidence level as a percentage with at most four digits, such as 95 % or 99.9 %."""
    return f"{100 * level:.4g}\u00a0%"


def format_share(share: float) -> str:
    """Format a share of rows in a few characters: a whole percentage, or two significant digits below 9.5 %."""
    return f"{100 * share:.0f}\u00a0%" if share >= 0.095 else f"{100 * share:.2g}\u00a0%"


def format_pvalue(p: float) -> str:
    """Format a p-value with two or three decimals, or as p < 0.001.

    >>> [format_pvalue(p).replace("\u00a0", " ") for p in (0.123, 0.0312, 1e-9, float("nan"))]
    ['p = 0.12', 'p = 0.031', 'p < 0.001', 'no p']
    """
    if math.isnan(p):
        return "no p"
    if p < 0.001:
        return "p\u00a0<\u00a00.001"
    return f"p\u00a0=\u00a0{p:.{2 if p >= 0.0995 else 3}f}"


def format_range(low: float, high: float, template: str = "from {}\u00a0% to {}") -> str:
    """Format a range of probabilities with as few digits as distinguish its ends, or one if both ends read the same.

    >>> [format_range(*ends).replace("\u00a0", " ") for ends in ((0.02, 0.144), (0.994, 0.9991), (0.5, 0.5))]
    ['from 2 % to 14 %', 'from 99.4 % to 99.91 %', 'at 50 %']
    """
    for formatter in (_rounded_percent, format_percent, format_level):
        first, last = formatter(low), formatter(high)
        if first != last:
            return template.format(first.removesuffix("\u00a0%"), last)
    return f"at {_rounded_percent(low)}"


def format_probabilities(*xs: float) -> list[str]:
    """Format probabilities with the same number of decimals, at most two, that distinguishes each from 0 and 1.

    >>> [text.replace("\u00a0", " ") for text in format_probabilities(0.029, 0.0288, 0.07)]
    ['2.9 %', '2.9 %', '7.0 %']
    >>> format_probabilities(0.0, 0.5)[1]
    '50\xa0%'
    """
    distances = [min(x, 1 - x) for x in xs]
    digits = max(0 if distance >= 0.03 or distance == 0 else 1 if distance >= 0.005 else 2 for distance in distances)
    texts = []
    for x, distance in zip(xs, distances, strict=True):
        if 0 < distance < 5e-5:
            texts.append("under\u00a00.01\u00a0%" if x < 0.5 else "over\u00a099.99\u00a0%")
        else:
            texts.append(f"{100 * x:.{digits if distance else 0}f}\u00a0%")
    return texts


def join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def capitalize_first(text: str) -> str:
    """Capitalize the first letter and leave the others as they are."""
    return text[:1].upper() + text[1:]


def bias_words(name: str) -> tuple[str, str]:
    """Words for the view of this name: if events are more frequent than predicted, and if they are less frequent."""
    return ("underconfident", "overconfident") if name == "confidence" else ("underpredicts", "overpredicts")


def merge_notes(notes_by_view: Sequence[tuple[str, Sequence[Note]]]) -> list[Note]:
    """Merge the notes of several views by code, naming the first view and the number of further ones.

    >>> merge_notes([("class:0", [Note("TN217", "Separated.")]), ("class:1", []), ("class:2", [Note("TN217", "Too.")])])
    [Note(code='TN217', text='class:0, and 1 more: Separated.')]
    """
    if len(notes_by_view) == 1:
        return list(dict.fromkeys(notes_by_view[0][1]))
    first_mentions: dict[str, tuple[str, str]] = {}
    n_views_by_code: dict[str, int] = {}
    for name, notes in notes_by_view:
        for code in {note.code for note in notes}:
            n_views_by_code[code] = n_views_by_code.get(code, 0) + 1
        for note in notes:
            first_mentions.setdefault(note.code, (name, note.text))
    suffixes = {code: f", and {n_views - 1} more" if n_views > 1 else "" for code, n_views in n_views_by_code.items()}
    return [Note(code, f"{name}{suffixes[code]}: {text}") for code, (name, text) in first_mentions.items()]


def _rounded_percent(x: float) -> str:
    """Format a probability as a whole percentage, with decimals near 0 and 1."""
    if x in (0, 1):
        return f"{100 * x:.0f}\u00a0%"
    if x < 5e-5:
        return f"{100 * x:.1g}\u00a0%"
    return f"{100 * x:.0f}\u00a0%" if 0.0095 <= x <= 0.9905 else format_percent(x)


def format_score(value: float) -> str:
    """Format a score with four decimals, with three significant digits if it is small, or as ∞.

    >>> [format_score(x) for x in (0.28, 0.0032, 0.0000123, 1.2e-10, 1e-17, float("inf"))]
    ['0.2800', '0.00320', '0.0000123', '1.20e-10', '0', '∞']
    """
    if not math.isfinite(value):
        return "∞"
    if abs(value) < 1e-12:  # rounding error of a score of order 1
        return "0"
    if abs(value) < 1e-6:
        return f"{value:.2e}"
    return f"{value:.{max(4, 2 - math.floor(math.log10(abs(value))))}f}"
