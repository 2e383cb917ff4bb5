"""Draw the risk-coverage curve with its band, random order and confidence thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.styling import AXIS_LINE_COLOR, AXIS_STRIP_HEIGHT, add_axis_strip
from trueodds.diagrams.base import Diagram


class RiskCoveragePlot(Diagram):
    """The risk-coverage curve with its band, the line of random order, unanswered cases, and confidence thresholds."""

    layers = ("band", "curve", "random", "unanswered", "thresholds")
    row_noun = "coverages"
    figure_size = (6.4, 4.6)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The fraction of the height that the axis strip takes."""
        return AXIS_STRIP_HEIGHT if self.has("thresholds") else 0.0

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "If only the most confident predictions are kept, how many are wrong?"

    def axis_labels(self) -> tuple[str, str]:
        """Coverage along x, risk along y."""
        return "Coverage (most confident first)", "Selective risk (error rate)"

    def legend(self) -> list[tuple[Any, str]]:
        """The curve, its band and the risk of a random order."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("curve"):
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=1.8), "most confident first"))
        if self.has("band"):
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            scope = ", pointwise" if self.has_long_labels else ""
            entries.append((Patch(facecolor=styling.STRIP_COLOR, alpha=0.45), f"{level} band{scope}"))
        if self.has("random"):
            rates = {format_percent(float(rate)) for rate in self.panels["random"]}
            label = f"random order: {rates.pop()}" if len(rates) == 1 else "random order"  # panels share the legend
            entries.append((Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=1.6, linestyle=(0, (4, 1.5))), label))
        if self.has("unanswered") and bool((self.panels["coverage"] < 1).any()):
            entries.append((Patch(facecolor=styling.GRID_COLOR, hatch="///", edgecolor="#C0C0C0"), "no prediction"))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        styling.set_probability_axis(ax)
        high, max_coverage = float(panel_row["y_high"]), float(panel_row["coverage"])
        ax.set_ylim(-high * self.strip_height / (1 - self.strip_height), high)
        ax.set_yticks(_risk_ticks(ax, high))
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}\u00a0%")
        x = rows["coverage"]
        if self.has("unanswered") and float(panel_row["coverage"]) < 1:
            style = {
                "facecolor": styling.GRID_COLOR,
                "edgecolor": "#C0C0C0",
                "hatch": "///",
                "linewidth": 0,
                "zorder": 0.6,
            }
            ax.fill_between([max_coverage, 1.0], 0, high, label="unanswered", **style)
        if self.has("band"):
            style = {"color": styling.STRIP_COLOR, "alpha": 0.45, "linewidth": 0, "zorder": 1, "label": "band"}
            ax.fill_between(x, rows["low"], rows["high"], **style)
        if self.has("random"):
            style = {"colors": styling.OUTSIDE_COLOR, "linewidth": 1.6, "linestyles": (0, (4, 1.5)), "zorder": 2}
            ax.hlines([float(panel_row["random"])], 0, max_coverage, label="random", **style)
        if self.has("curve"):
            ax.plot(x, rows["risk"], color=styling.INSIDE_COLOR, linewidth=1.8, zorder=3, label="curve")
        if self.has("thresholds"):
            _draw_axis_strip(ax, x, rows["threshold"], size)


def _draw_axis_strip(ax: Any, coverage: Array, threshold: Array, size: float) -> None:
    """Label attained coverages along x with their confidence thresholds, if there is room."""
    strip, points_per_unit = add_axis_strip(ax)
    first, last = strip.get_xlim()
    style: dict[str, Any] = {"fontsize": size - 1.5, "color": styling.MUTED_COLOR, "va": "center", "gid": "threshold"}
    strip_label = "confidence:"
    label_end = first + (styling.text_width(strip_label, size - 1.5) + 12) / points_per_unit
    strip.text(first + 4 / points_per_unit, 0.42, strip_label, ha="left", **style)
    for step in _labeled_steps(coverage, threshold):
        tick, label = float(coverage[step]), _format_confidence(float(threshold[step]))
        half_width = (styling.text_width(label, size - 1.5) / 2 + 3) / points_per_unit
        tick_position = min(tick, last - half_width)
        if tick_position - half_width >= label_end:
            label_end = tick_position + half_width
            strip.plot([tick, tick], [0.76, 1], color=AXIS_LINE_COLOR, linewidth=0.8, label="tick")
            strip.text(tick_position, 0.42, label, ha="center", **style)


def _labeled_steps(coverage: Array, threshold: Array) -> list[int]:
    """Indices of the thresholds whose coverages are nearest to multiples of 10 %; inside ties there is no threshold."""
    steps = np.flatnonzero(~np.isnan(threshold))
    return sorted({int(steps[np.abs(coverage[steps] - tick).argmin()]) for tick in np.arange(1, 11) / 10})


def _format_confidence(confidence: float) -> str:
    """A confidence as a percentage in few characters; values below 1 are never rounded to 100 %."""
    if confidence >= 1:
        return "100\u00a0%"
    for n_digits in (3, 4, 5):
        text = f"{100 * confidence:.{n_digits}g}"
        if text != "100":
            return f"{text}\u00a0%"
    return ">99.999\u00a0%"


def _risk_ticks(ax: Any, high: float) -> list[float]:
    """Round ticks of the risk axis, few in low axes."""
    from matplotlib.ticker import MaxNLocator

    height = styling.size_in_inches(ax)[1]
    ticks = MaxNLocator(6 if height > 2.5 else 4 if height > 1 else 2, steps=[1, 2, 2.5, 5, 10]).tick_values(0, high)
    return [float(tick) for tick in ticks if 0 <= tick <= high]
