"""Base class of the diagrams of shifts δ and slopes γ of the log odds, of which (1, 1) changes no prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import HLine, Mark, PanelSize, Text, VLine
from trueodds.diagrams.base import Diagram


class OddsPlane(Diagram):
    """A plane with the shift δ along x, on a logarithmic scale, and the slope γ along y."""

    labels = "Shift δ (factor of the odds)", "Slope γ of the log odds"
    figure_size = (6.4, 5.0)

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        limits = self.panel_values(panel)
        styling.style_axes(ax, size.font_size)
        set_odds_axis(ax, limits["delta_low"], limits["delta_high"])
        styling.set_limits_above_strip(ax, limits["gamma_low"], limits["gamma_high"], self.strip_height)

    def unchanged_lines(self) -> list[Mark]:
        style: dict[str, Any] = {"color": styling.MUTED_COLOR, "linewidth": 0.9, "zorder": 1.5}
        return [HLine(1, **style), VLine(1, **style)]


def empty_panel(text: str, size: PanelSize) -> list[Mark]:
    """A text in the middle of a panel that shows nothing else."""
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": styling.MUTED_COLOR, "fontsize": size.font_size}
    return [Text(0.5, 0.5, text, xycoords="axes fraction", **style)]


def set_odds_axis(ax: Any, low: float, high: float) -> None:
    """Set a logarithmic x-axis with a few ticks between two factors."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    ax.set_xscale("log")
    ax.set_xlim(low, high)
    margin = 0.04 * np.log(high / low)  # half a label, so that none extends beyond the axes
    ticks = [
        t for t in _round_ticks(low, high, 7 if styling.size_in_inches(ax)[0] > 3.2 else 3) if margin < np.log(t / low)
    ]
    ticks = [t for t in ticks if margin < np.log(high / t)]
    # Two invisible ticks beyond the ends, so that the layout does not move the outer labels.
    ax.xaxis.set_major_locator(FixedLocator([low / 2, *ticks, 2 * high]))
    ax.xaxis.set_major_formatter(FixedFormatter(["", *(f"{tick:g}" for tick in ticks), ""]))
    ax.xaxis.set_minor_locator(NullLocator())


def _round_ticks(low: float, high: float, max_ticks: int) -> list[float]:
    """Round numbers for a logarithmic axis: decades, 1-2-5, or equal steps if the range is short.

    >>> _round_ticks(0.01, 90, 7), _round_ticks(0.3, 3.5, 7), _round_ticks(0.61, 0.66, 3)
    ([0.01, 0.1, 1.0, 10.0], [0.5, 1.0, 2.0], [0.62, 0.64, 0.66])
    """
    from matplotlib.ticker import MaxNLocator

    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for mantissas in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [float(f"{m}e{d:.0f}") for d in decades for m in mantissas]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= max_ticks:
            break
    ticks = ticks[:: -(-len(ticks) // max_ticks)] if ticks else ticks
    if len(ticks) >= max(max_ticks // 2, 2):
        return ticks
    linear_ticks = MaxNLocator(max_ticks, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(f"{tick:.6g}") for tick in linear_ticks if max(low, 1e-300) <= tick <= high]
