"""What do curves of how often it comes true have in common? A unit square, its words, and room for the predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.drawing import styling

NARROW = 2.9  # inches: thinner lines


class UnitSquare(Diagram):
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
        styling.dress(ax, size)
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


def part_of(rows: Mapping[str, Array], part: str) -> dict[str, Array]:
    """The rows of a table that belong to one part of the picture."""
    mask = rows["part"] == part
    return {name: column[mask] for name, column in rows.items()}
