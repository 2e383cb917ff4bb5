"""Format p-values, probabilities, scores and notes as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueodds.core.errors import Note
from trueodds.diagrams._style import styling


def format_pvalue(p: float) -> str:
    """A p-value as people read it.

    >>> [format_pvalue(p).replace("\u00a0", " ") for p in (0.123, 0.0312, 1e-9, float("nan"))]
    ['p = 0.12', 'p = 0.031', 'p < 0.001', 'no p']
    """
    if math.isnan(p):
        return "no p"
    if p < 0.001:
        return "p\u00a0<\u00a00.001"
    return f"p\u00a0=\u00a0{p:.{2 if p >= 0.0995 else 3}f}"


def format_range(low: float, high: float, join: str = "from {}\u00a0% to {}") -> str:
    """Two stated probabilities, or one where both are said alike.

    >>> [format_range(*ends).replace("\u00a0", " ") for ends in ((0.02, 0.144), (0.994, 0.9991), (0.5, 0.5))]
    ['from 2 % to 14 %', 'from 99.4 % to 99.91 %', 'at 50 %']
    """
    for formatter in (_rounded_percent, styling.percent, _four_digit_percent):
        first, last = formatter(low), formatter(high)
        if first != last:
            return join.format(first.removesuffix("\u00a0%"), last)
    return f"at {_rounded_percent(low)}"


def format_probabilities(*xs: float) -> list[str]:
    """Probabilities side by side: with as many decimals as tell each from 0 and 1, two at most; 0 and 1 with none.

    >>> [text.replace("\u00a0", " ") for text in format_probabilities(0.029, 0.0288, 0.07)], alike(0.0, 0.5)[1].replace("\u00a0", " ")
    (['2.9 %', '2.9 %', '7.0 %'], '50 %')
    """
    ends = [min(x, 1 - x) for x in xs]
    digits = max(0 if end >= 0.03 or end == 0 else 1 if end >= 0.005 else 2 for end in ends)
    texts = []
    for x, end in zip(xs, ends, strict=True):
        if 0 < end < 5e-5:
            texts.append("under\u00a00.01\u00a0%" if x < 0.5 else "over\u00a099.99\u00a0%")
        else:
            texts.append(f"{100 * x:.{digits if end else 0}f}\u00a0%")
    return texts


def join_words(words: Sequence[str]) -> str:
    """A list in words."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def bias_phrases(name: str) -> tuple[str, str]:
    """What a view of that name does where more came than it stated, and where less."""
    return ("is too modest", "is too sure") if name == "confidence" else ("says too little", "says too much")


def merge_notes(views: Sequence[tuple[str, Sequence[Note]]]) -> list[Note]:
    """The notes of several views, each code once: with the view of the first, and how many others have one.

    >>> merge_notes([("class:0", [Note("TN217", "Parted.")]), ("class:1", []), ("class:2", [Note("TN217", "Apart.")])])
    [Note(code='TN217', text='class:0, and 1 more: Parted.')]
    """
    if len(views) == 1:
        return list(dict.fromkeys(views[0][1]))
    first: dict[str, tuple[str, str]] = {}
    count: dict[str, int] = {}
    for name, notes in views:
        for code in {note.code for note in notes}:
            count[code] = count.get(code, 0) + 1
        for note in notes:
            first.setdefault(note.code, (name, note.text))
    more = {code: f", and {times - 1} more" if times > 1 else "" for code, times in count.items()}
    return [Note(code, f"{name}{more[code]}: {text}") for code, (name, text) in first.items()]


def _rounded_percent(x: float) -> str:
    if x in (0, 1):
        return f"{100 * x:.0f}\u00a0%"
    if x < 5e-5:
        return f"{100 * x:.1g}\u00a0%"
    return f"{100 * x:.0f}\u00a0%" if 0.0095 <= x <= 0.9905 else styling.percent(x)


def _four_digit_percent(x: float) -> str:
    return f"{100 * x:.4g}\u00a0%"


def format_score(value: float) -> str:
    """A score with four decimals, with three digits where these are few, or that it is infinite.

    >>> [format_score(x) for x in (0.28, 0.0032, 0.0000123, 1.2e-10, 1e-17, float("inf"))]
    ['0.2800', '0.00320', '0.0000123', '1.20e-10', '0', '∞']
    """
    if not math.isfinite(value):
        return "∞"
    if abs(value) < 1e-12:  # of a score of order 1: roundings
        return "0"
    if abs(value) < 1e-6:
        return f"{value:.2e}"
    return f"{value:.{max(4, 2 - math.floor(math.log10(abs(value))))}f}"
