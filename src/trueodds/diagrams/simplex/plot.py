"""Draw arrows, shaded cells and ellipses in the triangle of three outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style import styling
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import stack_outcomes

MAX_CELLS_WITH_WIDE_EDGES = 60  # cells of a panel, beyond which wide edges would hide the shades


class SimplexDiagram(Diagram):
    """One triangle for three outcomes, or one for each class with its rival and the rest.

    The arrow of a cell points from its mean prediction to the frequency of the outcomes, and its shade is the share of
    the rows. The arrows of cells whose difference is significant (the column `beyond` of the table) are dark, with an
    ellipse around the tail that contains the head if the cell is calibrated; the others are faded.
    """

    layers = ("cells", "arrows", "faded", "ellipses", "key")
    figure_size = (6.4, 5.6)
    row_noun = "cells"
    view_order = "strongest evidence"
    aspect_ratio = 1.0
    hides_axes = True

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        if len(self.panels["view"]) > 1:
            return "For each class, its closest rival and the rest: do frequencies match predictions?"
        return "Do the observed frequencies of the three outcomes match the predictions?"

    def caption(self) -> str:
        """The number of significant cells; the corners identify the view."""
        return str(self.panels["aside"][0])

    def axis_labels(self) -> tuple[str, str]:
        """How to read the arrows, below the triangle."""
        return "Tail: predicted, head: observed", ""

    def legend(self) -> list[tuple[Any, str]]:
        """The arrows, shades and ellipses."""
        from matplotlib.lines import Line2D

        entries = simplex_marks.legend_entries(self, self.panel_values(0))
        if "ellipse_long" in self.table and self.has("ellipses") and simplex_marks.significance_shown(self)[0]:
            level = f"{100 * self.settings['level_of_each_ellipse']:.4g}\u00a0%"
            handle = Line2D(
                [], [], linestyle="none", marker="o", markerfacecolor="none", markeredgecolor=styling.TEXT_COLOR
            )
            entries.append((handle, f"head if calibrated ({level})"))
        return entries or [(Line2D([], [], linestyle="none"), "")]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one triangle."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size, is_single_view = styling.font_size(ax), len(self.panels["view"]) == 1
        has_key = is_single_view and self.has("key") and self.has("cells") and simplex_marks.key_fits(ax)
        simplex_marks.hide_axes(ax)
        outline = np.vstack([simplex_geometry.TRIANGLE, simplex_geometry.TRIANGLE[:1]])
        ax.fill(*outline.T, facecolor="#FBFBFB", edgecolor="none", zorder=0.8)
        ax.plot(*outline.T, color="#7A7A7A", linewidth=1.0, zorder=1.5, label="edge")
        if self.has("cells"):
            _draw_cells(ax, rows, panel_row)
        if has_key:
            simplex_marks.draw_key(ax, panel_row, (1.1, 0.36, 0.045, 0.4), size)
        tail, head = (
            simplex_geometry.to_triangle(stack_outcomes(dict(rows), name))
            for name in ("mean_prediction", "outcome_frequency")
        )
        is_significant = rows["beyond"]
        if "ellipse_long" in rows and self.has("ellipses") and is_significant.any():
            _draw_ellipses(ax, {name: column[is_significant] for name, column in rows.items()}, tail[is_significant])
        for layer, mask, arrow_kind, z in (
            ("faded", ~is_significant, "faded", 2.2),
            ("arrows", is_significant, "beyond", 3),
        ):
            if self.has(layer) and mask.any():
                artist = simplex_marks.draw_arrows(ax, tail[mask], head[mask], arrow_kind, zorder=z)
                artist.set_alpha(simplex_marks.arrow_opacity(rows, panel_row)[mask] if arrow_kind == "faded" else 1.0)
        left, right = (-0.2, 1.36 if has_key else 1.2) if is_single_view else (-0.06, 1.06)
        # The lines of the names are higher, in sides of the triangle, the smaller the axes are.
        points_per_side = simplex_marks.points_per_unit(
            ax, width_in_units=right - left, height_in_units=1.12, is_single_panel=is_single_view
        )
        line_height = 1.35 * size / points_per_side
        low, high = (left, -0.02 - line_height), (right, 0.885 + line_height)
        points_per_side = simplex_marks.points_per_unit(
            ax, width_in_units=right - left, height_in_units=high[1] - low[1], is_single_panel=is_single_view
        )
        names = simplex_marks.corner_names(panel_row)
        _draw_names(ax, names, size, points_per_side, is_single_panel=is_single_view)
        simplex_marks.EqualAspect(ax, low, high)


def _draw_cells(ax: Any, rows: Mapping[str, Array], panel_row: Mapping[str, Any]) -> None:
    """Draw the cells in the color of their share of rows; those without area as dots."""
    from matplotlib.collections import PolyCollection

    colors = np.array(simplex_marks.cell_colors(rows, panel_row))
    low, high = (stack_outcomes(dict(rows), name) for name in ("low", "high"))
    shapes = [simplex_geometry.cell_outline(a, b) for a, b in zip(low, high, strict=True)]
    is_empty = np.array([len(shape) == 0 for shape in shapes])
    width = 0.5 if len(shapes) <= MAX_CELLS_WITH_WIDE_EDGES else 0.25
    cells = PolyCollection(
        [simplex_geometry.to_triangle(shape) for shape in shapes if len(shape)],
        facecolors=colors[~is_empty].tolist(),
        edgecolors="#B9C4CE",
        linewidths=width,
        zorder=1,
        label="cells",
    )
    ax.add_collection(cells, autolim=False)
    # A cell without area, such as a vertex of the grid, is drawn as a dot at its mean prediction.
    dots = simplex_geometry.to_triangle(stack_outcomes(dict(rows), "mean_prediction")[is_empty])
    if is_empty.any():
        ax.scatter(
            *dots.T, s=26, c=colors[is_empty].tolist(), edgecolors="#7A8794", linewidths=0.6, zorder=1.6, label="dots"
        )


def _draw_ellipses(ax: Any, rows: Mapping[str, Array], tail: Array) -> None:
    """Draw the ellipse around the mean prediction of each of these cells, the tails (cells, 2) of the arrows.

    It contains the observed frequency, the head of the arrow, with probability `level` if the cell is calibrated.
    """
    from matplotlib.collections import EllipseCollection

    shapes = EllipseCollection(
        rows["ellipse_long"],
        rows["ellipse_short"],
        rows["ellipse_angle"],
        units="xy",
        offsets=tail,
        transOffset=ax.transData,
        facecolors="none",
        edgecolors=styling.TEXT_COLOR,
        linewidths=0.5,
        zorder=2.5,
        label="ellipses",
        alpha=0.8,
    )
    shapes.set_clip_path(_triangle_clip(ax))
    ax.add_collection(shapes, autolim=False)


def _triangle_clip(ax: Any) -> Any:
    """The triangle as a clip path, because no frequency lies outside."""
    from matplotlib.patches import Polygon

    return Polygon(simplex_geometry.TRIANGLE, transform=ax.transData)


def _draw_names(ax: Any, names: tuple[str, ...], size: float, points_per_side: float, *, is_single_panel: bool) -> None:
    """Write each outcome at its corner, shortened to avoid overlap; in a grid within the width of the triangle."""
    left_name, right_name, top_name = names
    text_style: dict[str, Any] = {
        "fontsize": size, "fontweight": "bold", "color": styling.TEXT_COLOR, "zorder": 5, "parse_math": False
    }  # fmt: skip

    def fit(name: str, n_sides: float) -> str:
        """Shorten a name to a width in sides of the triangle."""
        return styling.shorten_text(name, n_sides * points_per_side, size, "bold")

    if is_single_panel:
        left_alignment, right_alignment, n_sides = "center", "center", 0.92
    else:
        left_alignment, right_alignment, n_sides = "left", "right", 0.5
    ax.text(0.0, -0.02, fit(left_name, n_sides), ha=left_alignment, va="top", **text_style)
    ax.text(1.0, -0.02, fit(right_name, n_sides), ha=right_alignment, va="top", **text_style)
    ax.text(0.5, 0.885, fit(top_name, 1.1), ha="center", va="bottom", **text_style)
