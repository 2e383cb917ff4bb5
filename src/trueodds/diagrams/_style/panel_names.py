"""Fit the names of models and versions to the panels of a grid, by smaller type, line breaks or an ellipsis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.title_and_legend import MIN_FONT_SIZE

MAX_NAME_LINES = 3  # a name with more lines is cut at the end, unless it would then equal another one


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
    """Fit names, drawn in bold type, to a width in points.

    The type size is reduced first. If it would be illegible, names are broken into lines, and those with too many lines
    are cut, unless two different names would then look alike.
    """
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
        remaining = line
        while styling.text_width(remaining, size, "bold") > max_width and len(remaining) > 1:
            n_fitting = len(remaining) - 1  # characters of the next line, at least one
            while n_fitting > 1 and styling.text_width(remaining[:n_fitting], size, "bold") > max_width:
                n_fitting -= 1
            lines.append(remaining[:n_fitting])
            remaining = remaining[n_fitting:]
        lines.append(remaining)
    return "\n".join(lines)


def _cut_lines(name: str, max_width: float, size: float) -> str:
    """Return the first lines of a name, with an ellipsis if there are more."""
    lines = name.split("\n")
    if len(lines) <= MAX_NAME_LINES:
        return name
    last = styling.shorten_text("".join(lines[MAX_NAME_LINES - 1 :]), max_width, size, "bold")
    return "\n".join([*lines[: MAX_NAME_LINES - 1], last])
