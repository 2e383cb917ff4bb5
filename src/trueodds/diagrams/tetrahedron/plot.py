"""Draw the tetrahedron of four outcomes, with an arrow from mean prediction to observed frequency in each cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core import json_files
from trueodds.core.typing import Array
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.publication import PublicationSize
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import stack_outcomes
from trueodds.diagrams.simplex_geometry import CIRCUMRADIUS
from trueodds.diagrams.tetrahedron.interactive_html import html_fragment, html_page, rotation_script

# Largest size of the tetrahedron with its names, and largest width of a name, in lengths of an edge.
MAX_WIDTH_WITH_NAMES, MAX_HEIGHT_WITH_NAMES, MAX_NAME_WIDTH = 1.88, 1.28, 0.6


class TetrahedronDiagram(Diagram):
    """The tetrahedron viewed from `azimuth` and `elevation`; `to_html` writes a page that can rotate it."""

    layers = ("cells", "arrows", "faded", "key")
    figure_size = (6.4, 5.8)
    row_noun = "cells"

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "Do the observed frequencies of the four outcomes match the predictions?"

    def caption(self) -> str:
        """The number of significant cells; the corners identify the view."""
        return str(self.panels["aside"][0])

    def axis_labels(self) -> tuple[str, str]:
        """How to read the arrows, below the tetrahedron."""
        return "Tail: predicted, head: observed", ""

    def legend(self) -> list[tuple[Any, str]]:
        """The arrows and shades."""
        from matplotlib.lines import Line2D

        return simplex_marks.legend_entries(self, self.panel_row()) or [(Line2D([], [], linestyle="none"), "")]

    def panel_row(self) -> dict[str, Any]:
        """The only row of `panels`."""
        return self.panel_values(0)

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw the tetrahedron from its viewing angles."""
        rows, panel_row = dict(self.rows(panel)), self.panel_row()
        corners = simplex_geometry.projection_matrix(self.settings["azimuth"], self.settings["elevation"])
        size = styling.font_size(ax)
        has_key = self.has("key") and self.has("cells") and simplex_marks.key_fits(ax)
        simplex_marks.hide_axes(ax)
        _draw_edges(ax, corners)
        self._draw_cells(ax, rows, panel_row, corners)
        names = simplex_marks.corner_names(panel_row)
        low, high = _view_limits(ax, names, corners, size)
        if has_key:
            simplex_marks.draw_key(ax, panel_row, (high[0] + 0.02, -0.02, 0.04, 0.4), size)
            points = simplex_marks.points_per_unit(
                ax, width_in_units=MAX_WIDTH_WITH_NAMES, height_in_units=MAX_HEIGHT_WITH_NAMES, is_single_panel=True
            )
            high = high[0] + 0.06 + 4 * size / points, high[1]
        points_per_edge = simplex_marks.points_per_unit(
            ax, width_in_units=high[0] - low[0], height_in_units=high[1] - low[1], is_single_panel=True
        )
        _draw_names(ax, names, corners, size, points_per_edge)
        simplex_marks.EqualAspect(ax, low, high)

    def _draw_cells(self, ax: Any, rows: dict[str, Array], panel_row: dict[str, Any], corners: Array) -> None:
        """Draw the dots of the cells, and their arrows in the shown layers, at the projected `corners` (4, 3)."""
        tail, head = (stack_outcomes(rows, name) @ corners for name in ("mean_prediction", "outcome_frequency"))
        order = np.argsort(tail[:, 2], kind="stable")  # near cells are drawn over far ones
        opacity = 0.4 + 0.6 * (tail[:, 2] + CIRCUMRADIUS) / (2 * CIRCUMRADIUS)
        if self.has("cells"):
            colors = np.array(simplex_marks.cell_colors(rows, panel_row))
            ax.scatter(
                *tail[order, :2].T,
                s=simplex_marks.dot_areas(rows, panel_row)[order] * min(styling.size_in_inches(ax)[0] / 4.5, 1.0) ** 2,
                c=colors[order].tolist(),
                edgecolors="#53616E",
                linewidths=0.6,
                zorder=2,
                label="cells",
            )
        for layer, mask, arrow_kind, z in (
            ("faded", ~rows["beyond"], "faded", 2.2),
            ("arrows", rows["beyond"], "beyond", 3),
        ):
            selected = order[mask[order]]
            if self.has(layer) and len(selected):
                artist = simplex_marks.draw_arrows(ax, tail[selected, :2], head[selected, :2], arrow_kind, zorder=z)
                artist.set_alpha(
                    opacity[selected]
                    * (simplex_marks.arrow_opacity(rows, panel_row)[selected] if arrow_kind == "faded" else 1.0)
                )

    def interactive_html(self, *, script: bool = True) -> str:
        """An HTML fragment with the tetrahedron, rotated by mouse, touch and arrow keys, and the table of its cells.

        It makes no network requests and contains no styles. With `script=False` the page must contain
        `rotation_script()` once for all fragments. A content security policy can allow the script by its hash.
        """
        return html_fragment(self, script=script)

    def interactive_parts(self) -> tuple[str, str]:
        """The fragment without its table, and the script that rotates it."""
        return html_fragment(self, script=False, table=False), rotation_script()

    def to_html(self, path: str | Path) -> None:
        """Write an HTML page with the tetrahedron that can be rotated. Raises TO703 if it cannot be written."""
        json_files.write_text(path, html_page(self), "TO703")

    def _write(self, path: Path, publication: PublicationSize | None = None) -> None:
        """Write an image file, or .html, which can be rotated."""
        if path.suffix.lower() in (".html", ".htm"):
            self.to_html(path)
        else:
            super()._write(path, publication)


def _draw_edges(ax: Any, corners: Array) -> None:
    """Draw the edges between the projected `corners` (4, 3); hidden ones are dashed."""
    for (a, b), is_hidden in zip(simplex_geometry.EDGES, simplex_geometry.hidden_edges(corners), strict=True):
        style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.8} if is_hidden else {"linewidth": 1.1}
        label = "hidden edge" if is_hidden else "edge"
        ax.plot(*corners[[a, b], :2].T, color="#7A7A7A", zorder=1 if is_hidden else 1.5, label=label, **style)


def _view_limits(ax: Any, names: tuple[str, ...], corners: Array, size: float) -> tuple[tuple[float, float], ...]:
    """The lower and upper limits of the axes that contain the tetrahedron with its names."""
    points_per_edge = simplex_marks.points_per_unit(
        ax, width_in_units=MAX_WIDTH_WITH_NAMES, height_in_units=MAX_HEIGHT_WITH_NAMES, is_single_panel=True
    )
    line = (1.35 * size + 5) / points_per_edge
    low, high = corners[:, :2].min(axis=0) - line, corners[:, :2].max(axis=0) + line
    for name, (x, y, _) in zip(names, corners, strict=True):
        name_width = min(styling.text_width(name, size, "bold") / points_per_edge, MAX_NAME_WIDTH)
        width_beside = name_width + 7 / points_per_edge
        alignment = _name_alignment(x, y)[0]
        left, right = {
            "left": (0.0, width_beside), "right": (width_beside, 0.0), "center": (name_width / 2, name_width / 2)
        }[alignment]  # fmt: skip
        low[0], high[0] = min(low[0], x - left), max(high[0], x + right)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _outward_direction(x: float, y: float) -> tuple[float, float]:
    """The direction from a corner to its name: away from the center, or up if the corner is the center."""
    distance = np.hypot(x, y)
    return (x / distance, y / distance) if distance > 0.05 else (0.0, 1.0)


def _name_alignment(x: float, y: float) -> tuple[str, str]:
    """Horizontal and vertical alignment of the name of a corner, which lies outside the tetrahedron."""
    dx, dy = _outward_direction(x, y)
    horizontal = "left" if dx > 0.5 else "right" if dx < -0.5 else "center"
    vertical = "bottom" if dy > 0.5 else "top" if dy < -0.5 else "center"
    return horizontal, vertical


def _draw_names(ax: Any, names: tuple[str, ...], corners: Array, size: float, points_per_edge: float) -> None:
    """Write each outcome outside its corner; names behind the tetrahedron are paler."""
    for name, (x, y, depth) in zip(names, corners, strict=True):
        dx, dy = _outward_direction(x, y)
        horizontal, vertical = _name_alignment(x, y)
        ax.annotate(
            styling.shorten_text(name, MAX_NAME_WIDTH * points_per_edge, size, "bold"),
            (x, y),
            xytext=(5 * dx, 5 * dy),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=size,
            fontweight="bold",
            color=styling.TEXT_COLOR if depth > -0.5 * CIRCUMRADIUS else styling.MUTED_COLOR,
            zorder=5,
            parse_math=False,
        )
