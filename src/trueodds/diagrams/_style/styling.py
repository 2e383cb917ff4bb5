"""Colors, text sizes, probability and rate axes, and the strips of predictions shared by all diagrams."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Any

import numpy as np

from trueodds.core.typing import Array

# Okabe & Ito's blue and vermillion differ for every kind of color vision, and in gray.
INSIDE, OUTSIDE = "#0072B2", "#C8450A"
INSIDE_BAR, OUTSIDE_BAR = "#B4BEC8", "#F0B595"
ROWS, GAP, TEXT, FAINT, GRID = "#8FBBDD", "#F8E8D8", "#222222", "#666666", "#E8E8E8"
TYPE_SIZES = (1.6, 4.6), (7.0, 9.5)  # inches of axes and points of ordinary text, for `np.interp`
STRIP = 0.17  # of the height of the axes: where the predictions are


def type_size(ax: Any) -> float:
    """Points of ordinary text for axes of this width: legible in a small panel, not shouting in a large one."""
    return float(np.interp(inches(ax)[0], *TYPE_SIZES))


@lru_cache(4096)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide a line is, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def wrap_text(text: str, room: float, size: float, weight: str = "normal") -> str:
    """The text in lines of like length, of at most `room` points; a no-break space is no place to break."""
    text = on_one_line(text)
    lines = _fill_lines(text, room, size, weight)
    # No single word on the last line: the narrowest column that takes no more lines.
    while len(lines) > 1 and len(closer := _fill_lines(text, 0.95 * room, size, weight)) == len(lines):
        lines, room = closer, 0.95 * room
    return "\n".join(lines)


def _fill_lines(text: str, room: float, size: float, weight: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip(" ")
        if lines[-1] and text_width(longer, size, weight) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def on_one_line(text: str) -> str:
    r"""The text with its line breaks as spaces.

    >>> on_one_line("a\n b")
    'a b'
    """
    return re.sub(r"\s*[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]\s*", " ", text)


def shorten_text(text: str, room: float, size: float, weight: str = "normal") -> str:
    """The text on one line, cut with an ellipsis where it is wider than `room` points."""
    text = on_one_line(text)
    if text_width(text, size, weight) <= room:
        return text
    fits = bisect_right(range(len(text)), room, key=lambda n_chars: text_width(text[:n_chars] + "…", size, weight))
    return text[: max(fits - 1, 1)].rstrip() + "…"


def style_axes(ax: Any, size: float) -> None:
    """A light grid behind the marks, a frame of two lines, small ticks."""
    ax.set_axisbelow(True)
    ax.grid(True, color=GRID, linewidth=0.8, linestyle="-")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#9A9A9A")
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(labelsize=size - 0.5, colors=TEXT, length=3, width=0.8, color="#9A9A9A")
    ax.set_facecolor("white")


PROBABILITIES = -0.025, 1.025  # of a probability axis: room for a mark at either end
RATES = -0.06, 1.04  # of an axis of observed rates


def square_height(low: float, high: float, strip_height: float) -> float:
    """Height of axes in their widths, where low..high above a strip has the scale of a probability axis."""
    return (high - low) / (1 - strip_height) / (PROBABILITIES[1] - PROBABILITIES[0])


def probability_axis(ax: Any) -> None:
    """Zero to one in per cent along x."""
    room = inches(ax)[0]
    ticks = np.arange(6) / 5 if room > 3.2 else np.arange(3) / 2 if room > 1.2 else np.arange(2.0)
    labels = [f"{tick:.0%}".replace("%", "\u00a0%") for tick in ticks]
    ax.set_xlim(*PROBABILITIES)
    ax.set_xticks(ticks, labels)
    if len(ticks) <= 3:  # a panel of a grid
        align_outer_labels(ax)


def align_outer_labels(ax: Any) -> None:
    """The outer labels along x stay within the axes, so that the last does not meet the first of a neighbor."""
    first, *_, last = ax.get_xticklabels()
    first.set_ha("left")
    last.set_ha("right")


def draw_boxes(ax: Any, left: Array, right: Array, bottom: Array, top: Array, **style: Any) -> Any:
    """Rectangles between given edges."""
    from matplotlib.collections import PolyCollection

    corners = [
        [(a, c), (a, d), (b, d), (b, c)]
        for a, b, c, d in zip(left, right, np.broadcast_to(bottom, len(left)), top, strict=True)
    ]
    shape = PolyCollection(corners, **style)
    ax.add_collection(shape, autolim=False)
    return shape


def draw_strip(ax: Any, low: Array, high: Array, share: Array, tallest: float, size: float, *, label: bool) -> Any:
    """Where the predictions are: the share of rows in each bin, in axes of their own at the foot of `ax`."""
    strip_axes = ax.inset_axes((0, 0, 1, STRIP), zorder=3)
    strip_axes.set_label("strip")
    strip_axes.set_xlim(ax.get_xlim())
    strip_axes.set_ylim(0, tallest * 1.12)
    draw_boxes(
        strip_axes, low, high, np.zeros(1), share, facecolor=ROWS, edgecolor="white", linewidth=0.5, label="share"
    )
    # Bins that hold one row in a thousand are still seen to be occupied.
    strip_axes.hlines(np.zeros(len(low)), low, high, colors=ROWS, linewidth=1.6, zorder=3)
    strip_axes.set_xticks([])
    strip_axes.set_yticks([tallest], [share_text(tallest)] if label else [""])
    strip_axes.tick_params(
        axis="y", labelsize=size - 1.5, labelcolor=FAINT, length=2, width=0.8, color="#9A9A9A", pad=2
    )
    for side in ("right", "bottom"):
        strip_axes.spines[side].set_visible(False)
    for side in ("left", "top"):
        strip_axes.spines[side].set_color("#9A9A9A")
        strip_axes.spines[side].set_linewidth(0.8)
    strip_axes.set_facecolor("#F7F9FB")
    return strip_axes


def set_limits_above_strip(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Show low..high above a strip that takes the part `strip_height` of the height."""
    ax.set_ylim(low - (high - low) * strip_height / (1 - strip_height), high)


def rate_axis(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Rates in per cent along y, above a strip."""
    set_limits_above_strip(ax, low, high, strip_height)
    ticks = np.arange(6) / 5 if inches(ax)[1] > 2 else np.arange(3) / 2
    ax.set_yticks([tick for tick in ticks if low <= tick <= high])
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}\u00a0%")


def difference_axis(ax: Any, low: float, high: float, strip_height: float) -> None:
    """Signed differences of rates in per cent along y, above a strip."""
    from matplotlib.ticker import MaxNLocator

    set_limits_above_strip(ax, low, high, strip_height)
    room = inches(ax)[1]
    max_ticks = 8 if room > 2.5 else 5 if room > 1 else 3
    lowest = low + 0.05 * (high - low) * (strip_height > 0)  # a tick label there would meet the one of the strip
    ticks = MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    ax.set_yticks([float(tick) for tick in ticks if lowest <= tick <= high])
    ax.yaxis.set_major_formatter(_signed)


def _signed(value: float, _: Any = None) -> str:
    if abs(value) < 1e-9:
        return "0"
    return f"{100 * value:+.3g}\u00a0%".replace("-", "−")


def bar_width(ax: Any, bins: int) -> float:
    """Points: wide enough to see, narrow enough for neighbors not to touch."""
    return float(np.clip(72 * inches(ax)[0] / max(bins, 1) * 0.28, 1.6, 9.0))


def share_text(share: float) -> str:
    """A share in few characters."""
    return f"{100 * share:.0f}\u00a0%" if share >= 0.095 else f"{100 * share:.2g}\u00a0%"


def percent(x: float) -> str:
    """A probability as people read it: 93.6 %, and 99.97 % where one decimal would say 100."""
    near_the_end = 0 < min(abs(x), abs(1 - x)) < 0.005
    return f"{100 * x:.{2 if near_the_end else 1}f}\u00a0%"


def inches(ax: Any) -> tuple[float, float]:
    """Width and height of axes as they stand now."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


AXIS_LINE_COLOR = "#9A9A9A"


def add_axis_strip(ax: Any, height: float) -> tuple[Any, float]:
    """The strip, of so much of the height of the axes, and how many points wide a unit of x is."""
    strip = ax.inset_axes((0, 0, 1, height), zorder=3)
    strip.set_label("rail")
    strip.set_xlim(ax.get_xlim())
    strip.set_ylim(0, 1)
    strip.set_xticks([])
    strip.set_yticks([])
    for side in ("right", "bottom"):
        strip.spines[side].set_visible(False)
    for side in ("left", "top"):
        strip.spines[side].set_color(AXIS_LINE_COLOR)
        strip.spines[side].set_linewidth(0.8)
    strip.set_facecolor("#F7F9FB")
    first, last = strip.get_xlim()
    return strip, 72 * inches(ax)[0] / (last - first)
