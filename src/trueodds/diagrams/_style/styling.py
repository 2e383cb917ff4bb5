"""Style shared by all diagrams: colors, type sizes, text cut to a width, axes, ticks and histogram strips."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

MAX_PANELS = 12  # panels of a picture; more are illegible on a page
POINTS_PER_INCH = 72  # typographic points, in which matplotlib measures type sizes and line widths

# Okabe & Ito's blue and vermillion are distinguishable with any color vision, and in gray.
INSIDE_COLOR, OUTSIDE_COLOR = "#0072B2", "#C8450A"
INSIDE_BAR_COLOR, OUTSIDE_BAR_COLOR = "#B4BEC8", "#F0B595"
STRIP_COLOR, GAP_COLOR, TEXT_COLOR, MUTED_COLOR, GRID_COLOR = "#8FBBDD", "#F8E8D8", "#222222", "#666666", "#E8E8E8"
AXIS_LINE_COLOR, STRIP_BACKGROUND_COLOR = "#9A9A9A", "#F7F9FB"
AXIS_STRIP_HEIGHT = 0.11  # share of the height of the axes that the strip of a second scale takes
DEFAULT_FONT_SIZE = 9.5  # points of ordinary text in a figure of usual size
FONT_SIZE_BY_WIDTH = (1.6, 4.6), (7.0, 9.5)  # inches of axes and points of ordinary text, for `np.interp`
SIDE_TEXT_GID = "side"  # group id of texts beside or below the axes, which are left out in given axes
REFERENCE_SIZE = 100.0  # points at which matplotlib measures text without hinting
STRIP_HEIGHT = 0.17  # share of the height of the axes that the strip of predictions takes


def font_size(ax: Any) -> float:
    """Type size of ordinary text in points, by the width of the axes."""
    return font_size_for_width(size_in_inches(ax)[0])


def font_size_for_width(width: float) -> float:
    """Type size of ordinary text in points, in axes of this width in inches."""
    return float(np.interp(width, *FONT_SIZE_BY_WIDTH))


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of a line of text in points."""
    from matplotlib import rcParams

    return _text_width_at_reference_size(text, weight, tuple(rcParams["font.family"])) * float(size / REFERENCE_SIZE)


@lru_cache(4096)
def _text_width_at_reference_size(text: str, weight: str, family: tuple[str, ...]) -> float:
    """Width in points at `REFERENCE_SIZE`, to which widths at other sizes are proportional."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=list(family), size=REFERENCE_SIZE, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def wrap_text(text: str, max_width: float, size: float, weight: str = "normal") -> str:
    """Wrap text into lines of similar length, at most `max_width` points wide, never at a no-break space."""
    text = on_one_line(text)
    lines = _fill_lines(text, max_width, size, weight)
    # Avoid a single word on the last line: use the narrowest column that needs no more lines.
    while 1 < len(lines) <= text.count(" ") and len(
        narrower_lines := _fill_lines(text, 0.95 * max_width, size, weight)
    ) == len(lines):
        lines, max_width = narrower_lines, 0.95 * max_width
    return "\n".join(lines)


def _fill_lines(text: str, max_width: float, size: float, weight: str) -> list[str]:
    """Break a text into lines of at most `max_width` points at spaces."""
    lines = [""]
    for word in text.split(" "):
        extended_line = f"{lines[-1]} {word}".strip(" ")
        if lines[-1] and text_width(extended_line, size, weight) > max_width:
            lines.append(word)
        else:
            lines[-1] = extended_line
    return lines


def on_one_line(text: str) -> str:
    r"""Replace line breaks by spaces.

    >>> on_one_line("a\n b")
    'a b'
    """
    return re.sub(r"\s*[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]\s*", " ", text)


def shorten_text(text: str, max_width: float, size: float, weight: str = "normal") -> str:
    """Put text on one line, cut with an ellipsis if it is wider than `max_width` points."""
    text = on_one_line(text)
    if text_width(text, size, weight) <= max_width:
        return text
    n_fitting = bisect_right(
        range(len(text)), max_width, key=lambda n_chars: text_width(text[:n_chars] + "…", size, weight)
    )
    return text[: max(n_fitting - 1, 1)].rstrip() + "…"


def style_axes(ax: Any, size: float) -> None:
    """Draw a light grid behind the marks, a frame of two lines, and small ticks."""
    ax.set_axisbelow(True)
    ax.grid(True, color=GRID_COLOR, linewidth=0.8, linestyle="-")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(AXIS_LINE_COLOR)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(labelsize=size - 0.5, colors=TEXT_COLOR, length=3, width=0.8, color=AXIS_LINE_COLOR)
    ax.set_facecolor("white")


PROBABILITY_LIMITS = -0.025, 1.025  # limits of a probability axis, with room for a mark at either end
RATE_LIMITS = -0.06, 1.04  # limits of an axis of observed event rates


def equal_scale_aspect_ratio(low: float, high: float, strip_height: float) -> float:
    """Height of axes relative to their width that gives y the scale of a probability axis along x.

    The y axis reaches from `low` to `high`, above a strip that takes the share `strip_height` of the height.
    """
    return (high - low) / (1 - strip_height) / (PROBABILITY_LIMITS[1] - PROBABILITY_LIMITS[0])


def set_probability_axis(ax: Any) -> None:
    """Set up a probability axis along x, from 0 % to 100 %."""
    width = size_in_inches(ax)[0]
    ticks = np.arange(6) / 5 if width > 3.2 else np.arange(3) / 2 if width > 1.2 else np.arange(2.0)
    labels = [f"{tick:.0%}".replace("%", "\u00a0%") for tick in ticks]
    ax.set_xlim(*PROBABILITY_LIMITS)
    ax.set_xticks(ticks, labels)
    if len(ticks) <= 3:  # a panel of a grid
        align_outer_labels(ax)


def align_outer_labels(ax: Any) -> None:
    """Keep the outer tick labels along x within the axes, away from the labels of neighboring axes.

    Axes that share x with axes below them show no labels.
    """
    labels = ax.get_xticklabels()
    if len(labels) > 1:
        labels[0].set_ha("left")
        labels[-1].set_ha("right")


def style_strip(strip_axes: Any) -> None:
    """Give the axes of a strip its background, and lines only at the left and the top."""
    for side in ("right", "bottom"):
        strip_axes.spines[side].set_visible(False)
    for side in ("left", "top"):
        strip_axes.spines[side].set_color(AXIS_LINE_COLOR)
        strip_axes.spines[side].set_linewidth(0.8)
    strip_axes.set_facecolor(STRIP_BACKGROUND_COLOR)


def set_limits_above_strip(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Show y from `low` to `high` above a strip that takes the share `strip_height` of the height."""
    ax.set_ylim(low - (high - low) * strip_height / (1 - strip_height), high)


def set_rate_axis(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Set up an axis of event rates in percent along y, above a strip."""
    set_limits_above_strip(ax, low, high, strip_height)
    ticks = np.arange(6) / 5 if size_in_inches(ax)[1] > 2 else np.arange(3) / 2
    ax.set_yticks([tick for tick in ticks if low <= tick <= high])
    ax.yaxis.set_major_formatter(format_percent_tick)


def format_percent_tick(value: float, _: Any = None) -> str:
    return f"{100 * value:.3g}\u00a0%"


def set_difference_axis(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Set up an axis of signed differences in percent along y, above a strip."""
    from matplotlib.ticker import MaxNLocator

    set_limits_above_strip(ax, low, high, strip_height)
    height = size_in_inches(ax)[1]
    max_ticks = 8 if height > 2.5 else 5 if height > 1 else 3
    lowest = low + 0.05 * (high - low) * (strip_height > 0)  # a tick label there would overlap the one of the strip
    ticks = MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    ax.set_yticks([float(tick) for tick in ticks if lowest <= tick <= high])
    ax.yaxis.set_major_formatter(_format_signed_points)


def _format_signed_points(value: float, _: Any = None) -> str:
    if abs(value) < 1e-9:
        return "0"
    return f"{100 * value:+.3g}\u00a0%".replace("-", "−")


def bar_line_width(width: float, n_bins: int) -> float:
    """Width of bars in points, in axes of this width in inches.

    It is a bit more than a quarter of a bin, but visible, and narrow enough that bars do not overlap.
    """
    return float(np.clip(POINTS_PER_INCH * width / max(n_bins, 1) * 0.28, 1.6, 9.0))


def size_in_inches(ax: Any) -> tuple[float, float]:
    """Current width and height of axes in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def round_ticks(
    ax: Any, low: float, high: float, max_ticks: tuple[int, int, int] = (6, 4, 2), steps: Sequence[float] | None = None
) -> list[float]:
    """Round ticks along y from `low` to `high`; `max_ticks` bounds their number in high, medium and low axes."""
    from matplotlib.ticker import MaxNLocator

    height = size_in_inches(ax)[1]
    n_ticks = max_ticks[0 if height > 2.5 else 1 if height > 1 else 2]
    return [float(tick) for tick in MaxNLocator(n_ticks, steps=steps).tick_values(low, high) if low <= tick <= high]
