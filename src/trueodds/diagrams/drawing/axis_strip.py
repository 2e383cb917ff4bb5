"""Where do the numbers along the foot of a picture stand? A strip below the curve, under the same x axis."""

from __future__ import annotations

from typing import Any

from trueodds.diagrams.drawing import styling

LINE = "#9A9A9A"


def axis_strip(ax: Any, height: float) -> tuple[Any, float]:
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
        strip.spines[side].set_color(LINE)
        strip.spines[side].set_linewidth(0.8)
    strip.set_facecolor("#F7F9FB")
    first, last = strip.get_xlim()
    return strip, 72 * styling.inches(ax)[0] / (last - first)
