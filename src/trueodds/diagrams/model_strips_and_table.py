"""Histogram strips inside the axes and a table of numbers below them, with one row for each of several models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import SCORE_NAMES
from trueodds.diagrams._style.marks import Band, Mark, PanelSize, Segments, Strip, Text
from trueodds.diagrams._style.title_and_legend import fit_headers
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_results import COLORS, LINE_STYLES, MARKERS, format_error, format_interval, sentence_name

LINE_SPACING = 1.45  # distance between lines of the table, in multiples of the font size
MIN_PLOT_HEIGHT = 2.4  # smallest height in inches of the plot above the strips
HEIGHT_PER_MODEL = 0.1  # inches by which the plot above the strips grows for each model
TABLE_LINE_HEIGHT = 0.18  # inches of a line of the table of numbers: the headings, and one line per model
MIN_TABLE_WIDTH = 3.4  # smallest width in inches of axes that have room for the table
MIN_HEIGHT_ABOVE_TABLE = 1.0  # inches by which axes must be higher than the table, which would dominate them
STRIP_HEIGHT_PER_MODEL, STRIP_HEIGHT_LIMITS = 0.045, (0.1, 0.26)  # shares of the height of the axes
LABELS_HEIGHT = 0.62  # inches below the axes for tick labels and axis label
LABELS_WIDTH = 0.8  # inches beside the axes for tick labels and axis label


class DiagramOfModels(Diagram):
    """A diagram of named models."""

    @property
    def names(self) -> list[str]:
        return list(self.settings["models"])


class DiagramWithStrips(DiagramOfModels):
    """A diagram of named models with a strip of each of them inside the axes."""

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        if not self.has("strip"):
            return 0.0
        return float(np.clip(STRIP_HEIGHT_PER_MODEL * len(self.names), *STRIP_HEIGHT_LIMITS))

    @property
    def _shared_color(self) -> str:
        """The color of the legend entry that the bands or strips of all models share."""
        return COLORS[0] if len(self.names) == 1 else styling.MUTED_COLOR

    def model_band(
        self, i: int, x: Array, low: Array, high: Array, *, label: str, has_markers: bool, zorder: float = 1.8
    ) -> Mark:
        """The band around the curve of model number i, or a bar at each of its markers."""
        style: dict[str, Any] = {"layer": "band", "label": label, "color": COLORS[i], "zorder": zorder}
        if has_markers:
            return Segments(x, x, low, high, alpha=0.35, linewidth=3, key={"color": self._shared_color}, **style)
        return Band(x, low, high, alpha=0.2, linewidth=0, key={"color": self._shared_color}, **style)

    def strips(self, tables_by_model: Sequence[Mapping[str, Array]], max_share: float | None = None) -> list[Mark]:
        """A strip of the predictions of each model, the first at the top.

        Each table has the columns `low` and `high`, the edges of the bins, and `share`, their shares of the rows.
        `max_share` fills a strip; by default it is the largest share.
        """
        if self.strip_height == 0:
            return []
        if max_share is None:
            max_share = max((float(share) for table in tables_by_model for share in table["share"]), default=1.0)
        row_height = self.strip_height / len(tables_by_model)
        return [
            Strip(
                *(table[name] for name in ("low", "high", "share")),
                max_share=max_share,
                bottom=self.strip_height - (i + 1) * row_height,
                height=row_height,
                is_top=i == 0,
                label="predictions",
                facecolor=COLORS[i],
                edgecolor="none",
                alpha=0.55,
                key={"facecolor": self._shared_color},
            )
            for i, table in enumerate(tables_by_model)
        ]


def model_line(i: int, size: PanelSize, *, has_markers: bool) -> dict[str, Any]:
    marker = {"marker": MARKERS[i], "markersize": 4 if size.is_wide else 3} if has_markers else {}
    width = 1.7 if size.is_wide else 1.2
    return {"color": COLORS[i], "linestyle": LINE_STYLES[i], "linewidth": width, "zorder": 3.2} | marker


def number_table_height(n_models: int) -> float:
    """Height in inches of the table below the axes."""
    return TABLE_LINE_HEIGHT * (n_models + 1)


def number_table_fits(ax: Any, n_models: int) -> bool:
    """Whether there is room for the table below the axes."""
    width, height = styling.size_in_inches(ax)
    return width > MIN_TABLE_WIDTH and height > number_table_height(n_models) + MIN_HEIGHT_ABOVE_TABLE


def figure_height(
    diagram: Diagram,
    width: float,
    usual_height: float,
    strip_height: float,
    table_height: float,
    plot_height: float | None = None,
) -> float:
    """Height in inches of a figure in which header, strips and table leave `plot_height` inches for the plot itself.

    It is at least `usual_height`, which does not include the `table_height`. Without `plot_height`, the plot grows with
    the number of models. `strip_height` is the strips' share of the height of the axes.
    """
    if len(diagram.panels["view"]) > 1:
        return usual_height + table_height  # the layout determines the height of a grid
    if plot_height is None:
        plot_height = MIN_PLOT_HEIGHT + HEIGHT_PER_MODEL * len(diagram.settings["models"])
    header_width = styling.POINTS_PER_INCH * width - styling.POINTS_PER_INCH  # without an inch for the y axis labels
    header = fit_headers(diagram, diagram.summary(), header_width, styling.DEFAULT_FONT_SIZE)[0]
    header_height = header.height / styling.POINTS_PER_INCH
    return max(usual_height, header_height + plot_height / (1 - strip_height) + LABELS_HEIGHT) + table_height


class NumberTable(Mark):
    """A small table below the axes, if there is room; the layout removes it from axes passed by the user.

    `names` are those of the models, which label the lines. Each of `columns` has a heading and one cell per model.
    `size` is the type size in points.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]], size: float) -> None:
        super().__init__(0.0, layer="numbers")
        self.names, self.columns, self.size = names, columns, size

    def draw(self, ax: Any) -> Iterable[Any]:
        if not number_table_fits(ax, len(self.names)):
            return []
        size = self.size
        line_offsets = [2.9 * size + 12 + LINE_SPACING * size * i for i in range(len(self.names) + 1)]
        # Below tick labels and axis label; an inch of the width is for tick labels and the label of the y axis.
        max_width = styling.POINTS_PER_INCH * (ax.figure.get_size_inches()[0] - 1)
        widths = [max(styling.text_width(text, size) for text in (head, *cells)) + 14 for head, cells in self.columns]
        right = max_width - sum(widths)
        style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
        style |= {"fontsize": size, "gid": styling.SIDE_TEXT_GID}
        texts = []
        for name, offset, color in zip(self.names, line_offsets[1:], COLORS, strict=False):
            label = styling.shorten_text(name, right - 6, size, "bold")
            texts.append(Text(0, 0, label, xytext=(0, -offset), color=color, fontweight="bold", ha="left", **style))
        for (heading, cells), width in zip(self.columns, widths, strict=True):
            right += width
            colors = [styling.MUTED_COLOR, *[styling.TEXT_COLOR] * len(cells)]
            for cell, offset, color in zip((heading, *cells), line_offsets, colors, strict=True):
                texts.append(Text(0, 0, cell, xytext=(right, -offset), color=color, ha="right", **style))
        return [artist for text in texts for artist in text.draw(ax)]


def score_columns(
    tables: Sequence[Mapping[str, Array]], first_model: str, score: str, size: float
) -> list[tuple[str, list[str]]]:
    """The score (`brier` or `log_loss`), its parts and the difference to the first model, for the table of numbers."""
    rows = [{name: float(values[0]) for name, values in table.items() if values.dtype.kind == "f"} for table in tables]
    return [
        (SCORE_NAMES[score].removesuffix(" score"), [format_error(row["score"]) for row in rows]),
        ("MCB", [format_error(row["mcb"]) for row in rows]),
        ("DSC", [format_error(row["dsc"]) for row in rows]),
        difference_column(rows, first_model, size),
    ]


def difference_column(rows: Sequence[Mapping[str, float]], first_model: str, size: float) -> tuple[str, list[str]]:
    cells = [
        format_error(row["difference"]) + format_interval(row["difference_low"], row["difference_high"])
        for row in rows[1:]
    ]
    return f"minus {styling.shorten_text(sentence_name(first_model), 60, size)}", ["–", *cells]
