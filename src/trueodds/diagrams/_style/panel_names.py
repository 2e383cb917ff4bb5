"""Fit the names in a grid: smaller type first, then several lines, and names that differ never look alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.title_and_legend import MIN_FONT_SIZE

MAX_NAME_LINES = 3  # a longer name is cut at the end, unless it would then equal another one


@dataclass(frozen=True)
class FittedNames:
    """Names as they are drawn, and their type size in points."""

    names: tuple[str, ...]  # with line breaks
    size: float

    @property
    def n_lines(self) -> int:
        """Lines of the longest name."""
        return 1 + max((name.count("\n") for name in self.names), default=0)


def fit_names(names: Sequence[str], max_width: float, size: float) -> FittedNames:
    """Fit names, drawn in bold type, to a width in points; names that differ never look alike."""
    names = [styling.on_one_line(name) for name in names]
    widest = max((styling.text_width(name, size, "bold") for name in names), default=0.0)
    fitting_size = 0.98 * size * max_width / max(widest, 1.0)
    if fitting_size >= min(size, MIN_FONT_SIZE):
        return FittedNames(tuple(names), min(size, fitting_size))
    size = min(size, MIN_FONT_SIZE)
    wrapped = [_wrap_name(name, max_width, size) for name in names]
    shortened = [_cut_lines(name, max_width, size) for name in wrapped]
    if len(set(shortened)) < len(set(names)):
        shortened = wrapped
    return FittedNames(tuple(shortened), size)


def _wrap_name(name: str, max_width: float, size: float) -> str:
    """Break a name at spaces, and within words that are wider than a line."""
    lines = []
    for line in styling.wrap_text(name, max_width, size, "bold").split("\n"):
        rest = line
        while styling.text_width(rest, size, "bold") > max_width and len(rest) > 1:
            n_fitting = next(
                n
                for n in range(len(rest) - 1, 0, -1)
                if n == 1 or styling.text_width(rest[:n], size, "bold") <= max_width
            )
            lines.append(rest[:n_fitting])
            rest = rest[n_fitting:]
        lines.append(rest)
    return "\n".join(lines)


def _cut_lines(name: str, max_width: float, size: float) -> str:
    """Return the first lines of a name, with an ellipsis if there are more."""
    lines = name.split("\n")
    if len(lines) <= MAX_NAME_LINES:
        return name
    last = styling.shorten_text("".join(lines[MAX_NAME_LINES - 1 :]), max_width, size, "bold")
    return "\n".join([*lines[: MAX_NAME_LINES - 1], last])
