"""Base classes of plots of observed event rate against predicted probability: unit square, or diagonal and deviation styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams.base import Diagram

NARROW = 2.9  # inches: thinner lines


class UnitSquarePlot(Diagram):
    """A diagram of rates over stated probabilities, each panel above a strip of the predictions."""

    unit = "parts"

    @property
    def tall(self) -> float:  # type: ignore[override]
        """The range of rates above the strip, in those of predictions."""
        return styling.square_height(*styling.RATES, self.strip_height)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The strip's part of the height."""
        return styling.STRIP if self.has("strip") else 0.0

    def headline(self) -> str:
        """The question, in plain words."""
        return self.calibration_question

    def axis_labels(self) -> tuple[str, str]:
        """Predicted along x, observed along y."""
        return self.predicted_label, self.observed_label

    def square(self, ax: Any, size: float) -> bool:
        """Grid, limits, ticks and diagonal; says whether the axes are wide."""
        styling.style_axes(ax, size)
        styling.probability_axis(ax)
        styling.rate_axis(ax, *styling.RATES, self.strip_height)
        if self.has("diagonal"):
            ax.plot([0, 1], [0, 1], color=styling.FAINT, linewidth=1, zorder=2, label="diagonal")
        return styling.inches(ax)[0] > NARROW

    def common(self, diagonal: str) -> list[tuple[Any, str]]:
        """The legend of diagonal and strip."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("diagonal"):
            entries.append(
                (Line2D([], [], color=styling.FAINT, linewidth=1), diagonal if self.long_labels else "as stated")
            )
        if self.has("strip"):
            entries.append((Patch(facecolor=styling.ROWS), "predictions"))
        return entries


def select_part(rows: Mapping[str, Array], part: str) -> dict[str, Array]:
    """The rows of a table that belong to one part of the picture."""
    mask = rows["part"] == part
    return {name: column[mask] for name, column in rows.items()}


STYLES = ("diagonal", "deviation")


class BinnedPlot(Diagram):
    """Bins over their mean prediction in one of the two styles; tables hold rates whatever the style."""

    @property
    def deviation(self) -> bool:
        """Whether the difference is drawn."""
        return bool(self.settings["style"] == "deviation")

    @property
    def tall(self) -> float:  # type: ignore[override]
        """The diagonal rises at 45 degrees; deviations have a scale of their own."""
        return 0.0 if self.deviation else styling.square_height(*styling.RATES, self.strip_height)

    def headline(self) -> str:
        """The question, in plain words."""
        return self.calibration_question

    def axis_labels(self) -> tuple[str, str]:
        """Predicted along x, observed along y, or by how much it differs."""
        x, y = self.predicted_label, self.observed_label
        if self.deviation:
            y = "accuracy − confidence" if self.lens == "confidence" else "observed − predicted"
        return x, y

    def axes(self, ax: Any, low: float, high: float) -> None:
        """Grid, limits and ticks for low..high."""
        styling.style_axes(ax, styling.type_size(ax))
        styling.probability_axis(ax)
        (styling.difference_axis if self.deviation else styling.rate_axis)(ax, low, high, self.strip_height)

    def calibrated(self, ax: Any) -> None:
        """The line of perfect calibration."""
        style: dict[str, Any] = {"color": styling.FAINT, "linewidth": 1, "zorder": 1.5, "label": "diagonal"}
        x, y = (styling.PROBABILITIES, (0, 0)) if self.deviation else ((0, 1), (0, 1))
        ax.plot(x, y, **style)

    def placed(self, rows: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        """Heights of marks, and of the lower and upper ends of bars, in the style; without bars the heights again."""
        origin = rows["mean_prediction"] if self.deviation else 0.0
        y = rows["deviation" if self.deviation else "outcome_rate"]
        if "bar_low" not in rows:
            return y, y, y
        return y, rows["bar_low"] - origin, rows["bar_high"] - origin


def y_limits(style: str, tables: Sequence[Mapping[str, Array]]) -> tuple[float, float]:
    """The range of y: of deviations all marks, and the bars of bins that hold at least one row in a hundred."""
    if style == "diagonal":
        return styling.RATES
    low, high = [-0.02], [0.02]
    for table in tables:
        low.append(float(table["deviation"].min()))
        high.append(float(table["deviation"].max()))
        if "outside" in table:
            many = table["share"] >= 0.01
            low.append(float((table["bar_low"] - table["mean_prediction"])[many].min(initial=0)))
            high.append(float((table["bar_high"] - table["mean_prediction"])[many].max(initial=0)))
    margin = 0.08 * (max(high) - min(low))
    return min(low) - margin, max(high) + margin
