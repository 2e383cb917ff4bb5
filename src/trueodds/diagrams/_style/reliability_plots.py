"""Base classes of the diagrams that plot observed event rates against predicted probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, Strip
from trueodds.diagrams.base import Diagram


class UnitSquarePlot(Diagram):
    """A plot of event rates against predicted probabilities, each panel above a strip of the predictions."""

    row_noun = "parts"

    @property
    def aspect_ratio(self) -> float:  # type: ignore[override]
        """The height of a panel relative to its width, with equal units along x and y above the strip."""
        return styling.equal_scale_aspect_ratio(*styling.RATE_LIMITS, self.strip_height)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        return styling.STRIP_HEIGHT if self.has("strip") else 0.0

    def default_title(self) -> str:
        return self.calibration_question

    def axis_labels(self) -> tuple[str, str]:
        return self.predicted_label, self.observed_label

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        styling.set_rate_axis(ax, *styling.RATE_LIMITS, self.strip_height)

    def diagonal(self) -> Mark:
        label = "perfect calibration" if self.has_long_labels else "diagonal"
        return Line((0, 1), (0, 1), layer="diagonal", label=label, color=styling.MUTED_COLOR, linewidth=1, zorder=2)

    def strip(self, low: Array, high: Array, share: Array, max_share: float, size: PanelSize) -> Mark:
        return Strip(low, high, share, max_share=max_share, shows_max_share=size.is_wide, label="predictions")


BINNED_STYLES = ("diagonal", "deviation")  # values of the setting `style` of diagrams with bins


class BinnedPlot(UnitSquarePlot):
    """A plot of bins at their mean prediction, in one of two styles; tables hold event rates in both styles."""

    row_noun = "bins"

    @property
    def shows_deviation(self) -> bool:
        """Whether the difference between observed and predicted is drawn."""
        return bool(self.settings["style"] == "deviation")

    @property
    def aspect_ratio(self) -> float:  # type: ignore[override]
        """The height relative to the width that puts the diagonal at 45 degrees; 0 for deviations."""
        return 0.0 if self.shows_deviation else super().aspect_ratio

    def axis_labels(self) -> tuple[str, str]:
        if not self.shows_deviation:
            return super().axis_labels()
        return self.predicted_label, "Accuracy − confidence" if self.lens == "confidence" else "Observed − predicted"

    def y_limits(self, panel: int) -> tuple[float, float]:
        """The lower and upper limit of y above the strip."""
        return float(self.panels["y_low"][panel]), float(self.panels["y_high"][panel])

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        low, high = self.y_limits(panel)
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        if self.shows_deviation:
            styling.set_difference_axis(ax, low, high, self.strip_height)
        else:
            styling.set_rate_axis(ax, low, high, self.strip_height)

    def calibration_line(self) -> Mark:
        x, y = (styling.PROBABILITY_LIMITS, (0, 0)) if self.shows_deviation else ((0, 1), (0, 1))
        return Line(x, y, layer="diagonal", color=styling.MUTED_COLOR, linewidth=1, zorder=1.5)

    def marker_positions(self, rows: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        """Heights of marks and of both ends of bars in the style of the diagram; without bars, the marks' heights."""
        origin = rows["mean_prediction"] if self.shows_deviation else 0.0
        y = rows["deviation" if self.shows_deviation else "outcome_rate"]
        if "bar_low" not in rows:
            return y, y, y
        return y, rows["bar_low"] - origin, rows["bar_high"] - origin


def y_limits(style: str, tables: Sequence[Mapping[str, Array]]) -> tuple[float, float]:
    """The range of y that the panels of these tables share.

    For deviations it holds all marks, the bars of bins with at least 1 % of the rows, and at least ±2 %.
    """
    if style == "diagonal":
        return styling.RATE_LIMITS
    low, high = [-0.02], [0.02]
    for table in tables:
        low.append(float(table["deviation"].min()))
        high.append(float(table["deviation"].max()))
        if "outside" in table:
            has_many_rows = table["share"] >= 0.01
            low.append(float((table["bar_low"] - table["mean_prediction"])[has_many_rows].min(initial=0)))
            high.append(float((table["bar_high"] - table["mean_prediction"])[has_many_rows].max(initial=0)))
    margin = 0.08 * (max(high) - min(low))
    return min(low) - margin, max(high) + margin
