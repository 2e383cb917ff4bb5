"""The simplex diagram of four outcomes: arrows in a tetrahedron, which can be rotated on an HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core import json_files
from trueodds.core.content_security_policy import csp_hash
from trueodds.core.errors import InputError
from trueodds.core.printable import isolate
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_level, format_percent, format_share
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, Text
from trueodds.diagrams._style.publication import PublicationSize
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import (
    CellArrows,
    SimplexRecipe,
    add_holm_pvalues,
    check_joint,
    default_grid,
    label_outcomes,
    method_notes,
    panel_rows,
    stack_outcomes,
)
from trueodds.diagrams.simplex_geometry import CIRCUMRADIUS
from trueodds.lenses.view import View

N_BINS_PER_AXIS = 5  # of the grid on each axis: 65 cells


@dataclass(frozen=True)
class Tetrahedron(SimplexRecipe):
    r"""Simplex diagram of four outcomes: arrows from mean prediction to observed frequency in a tetrahedron.

    The diagram corresponds to ``simplex`` with four corners. In each cell, an arrow starts at the mean prediction and
    ends at the observed frequency of the outcomes. The dot at its tail is larger and darker, the more predictions the
    cell contains. Arrows of cells that do not deviate significantly are thin and gray. The figure is a parallel
    projection; hidden edges are dashed. ``diagram.to_html("rotate.html")`` writes a page on which the tetrahedron can
    be rotated, and ``diagram.interactive_html()`` returns the corresponding HTML fragment.

    Parameters
    ----------
    partition : Partition, optional
        The cells. The default is a grid with 5 bins per axis (65 cells). For a tally, it is the finest grid with up to
        5 bins that nests in its own. The median-variance tree is ``partition="median-variance"``.
    level : float, default=0.95
        A cell is significant if its p-value is at most 1 − `level`.
    simultaneous : bool, default=True
        Whether to apply Holm's correction over all cells. Otherwise, each cell is tested separately.
    azimuth, elevation : float, default=40.0, 18.0
        Viewing angles in degrees. Azimuth 0 faces the side with the first, second and fourth outcome; the fourth is at
        the top. Elevation 90 looks down from it.

    Raises
    ------
    InputError
        TO704 for another number of outcomes; TO203 for an invalid setting; TO205 for a partition that needs one score
        per row or that splits the cells of a tally.

    See Also
    --------
    simplex : The diagram for three outcomes.

    Notes
    -----
    The arrow of the cell b goes from :math:`\bar p_b = \sum_b w p / \sum_b w` to
    :math:`\bar y_b = \sum_b w y / \sum_b w`. The tests of the cells are those of ``simplex``.

    Views: joint, with four outcomes: four classes, four groups ``groups:[[0,1],[2],[3],[4]]``, or ``top-3``. For a
    tally, the lens needs a grid, and the number of bins must divide it. Units: probability.

    Columns of ``table``: ``view cell n weight share``, ``mean_prediction_0`` to ``_3``, ``outcome_frequency_0`` to
    ``_3``, ``distance`` (total variation), ``statistic df distribution pvalue holm beyond``, ``low_0`` to ``high_3``
    (the box of the cell).

    Cost: O(n log n).

    References
    ----------
    .. [1] Vaicenavicius et al. (2019), section 4.4. The tests of the cells are specific to this package.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> P = np.repeat([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]], 50, axis=0)
    >>> diagram = to.draw(np.repeat([0, 1, 3], [30, 20, 50]), P, "tetrahedron")
    >>> diagram.table["outcome_frequency_3"].tolist(), diagram.table["beyond"].tolist()
    ([1.0, 0.0], [True, True])
    """

    name: ClassVar[str] = "tetrahedron"
    azimuth: Annotated[float, Range(-360, 360)] = 40.0
    elevation: Annotated[float, Range(-90, 90)] = 18.0

    def diagram_with_outcome_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        view = views[0]
        check_joint(view, self.name)
        if len(views) > 1 or view.p.shape[1] != 4:
            raise InputError(
                "TO704",
                "The diagram tetrahedron requires four outcomes.",
                f"{view.p.shape[1]} outcomes in the view {view.name!r}",
                "Use the diagram simplex or ⟨lens='groups:[[…],[…],[…],[…]]'⟩ with four groups.",
            )
        partition = self.partition or default_grid(view, N_BINS_PER_AXIS)
        arrows = [CellArrows(view, partition, label_outcomes(view, names), view.name, self.level)]
        tables = add_holm_pvalues(arrows, self.level, simultaneous=self.simultaneous)
        angles = {"azimuth": float(self.azimuth), "elevation": float(self.elevation)}
        settings = self._settings | {"partition": str(partition)} | angles
        notes = method_notes(arrows, self.level, simultaneous=self.simultaneous)
        rows = panel_rows(arrows, tables)
        return self.build_diagram(TetrahedronDiagram, view.name, tables, rows, settings, notes)


# Largest size of the tetrahedron with its names, and largest width of a name, in lengths of an edge.
MAX_WIDTH_WITH_NAMES, MAX_HEIGHT_WITH_NAMES, MAX_NAME_WIDTH = 1.88, 1.28, 0.6


class TetrahedronDiagram(simplex_marks.ArrowDiagram):
    """The tetrahedron viewed from `azimuth` and `elevation`; `to_html` writes a page that can rotate it."""

    question = "Do the observed frequencies of the four outcomes match the predictions?"
    layers = ("cells", "arrows", "faded", "key")
    figure_size = (6.4, 5.8)

    @property
    def _corners(self) -> Array:
        """The directions right, up and near of the corners, (4, 3)."""
        return simplex_geometry.projection_matrix(self.settings["azimuth"], self.settings["elevation"])

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """Axes without ticks that contain the tetrahedron, the names of its corners and the key."""
        simplex_marks.hide_axes(ax)
        low, high, key_width = self._limits(panel, size)
        simplex_marks.EqualAspect(ax, low, (high[0] + key_width, high[1]))

    def _limits(self, panel: int, size: PanelSize) -> tuple[tuple[float, float], tuple[float, float], float]:
        """The lower left and the upper right corner of a box with the names, and the width of the key beside it."""
        corners, font_size = self._corners, size.font_size
        points_per_edge = simplex_marks.points_per_unit(
            size, width_in_units=MAX_WIDTH_WITH_NAMES, height_in_units=MAX_HEIGHT_WITH_NAMES, is_single_panel=True
        )
        line = (1.35 * font_size + 5) / points_per_edge
        low, high = corners[:, :2].min(axis=0) - line, corners[:, :2].max(axis=0) + line
        for name, (x, y, _) in zip(simplex_marks.corner_names(self.panel_values(panel)), corners, strict=True):
            name_width = min(styling.text_width(name, font_size, "bold") / points_per_edge, MAX_NAME_WIDTH)
            width_beside = name_width + 7 / points_per_edge
            alignment = _name_alignment(x, y)[0]
            left, right = {
                "left": (0.0, width_beside), "right": (width_beside, 0.0), "center": (name_width / 2, name_width / 2)
            }[alignment]  # fmt: skip
            low[0], high[0] = min(low[0], x - left), max(high[0], x + right)
        key_width = 0.06 + 4 * font_size / points_per_edge if self.has_color_key(size) else 0.0
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1])), key_width

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The arrows and dots of the cells, near ones over far ones, the edges, the key of the shades, and names."""
        rows, panel_row, corners = self.rows(panel), self.panel_values(panel), self._corners
        tail, head = (stack_outcomes(rows, name) @ corners for name in ("mean_prediction", "outcome_frequency"))
        order = np.argsort(tail[:, 2], kind="stable")
        opacity = 0.4 + 0.6 * (tail[:, 2] + CIRCUMRADIUS) / (2 * CIRCUMRADIUS)
        label, key = self.shade_label()
        colors = np.array(simplex_marks.cell_colors(rows, panel_row))[order].tolist()
        areas = simplex_marks.dot_areas(rows, panel_row)[order] * min(size.width / 4.5, 1.0) ** 2
        dots: dict[str, Any] = {"colors": colors, "edgecolors": "#53616E", "key": key, "zorder": 2}
        marks = [
            *self.arrow_marks(panel, tail[:, :2], head[:, :2], size, order, opacity),
            simplex_marks.CellDots(tail[order, 0], tail[order, 1], areas, layer="cells", label=label, **dots),
        ]
        for (a, b), is_hidden in zip(simplex_geometry.EDGES, simplex_geometry.hidden_edges(corners), strict=True):
            style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.8} if is_hidden else {"linewidth": 1.1}
            style |= {"name": "hidden edge" if is_hidden else "edge", "zorder": 1 if is_hidden else 1.5}
            marks.append(Line(*corners[[a, b], :2].T, color="#7A7A7A", **style))
        if self.has_color_key(size):
            right = self._limits(panel, size)[1][0]
            ends = panel_row["share_low"], panel_row["share_high"]
            marks.append(simplex_marks.ColorKey(right + 0.02, -0.02, 0.04, 0.4, *ends, layer="key"))
        return marks + self._corner_names(panel, size)

    def _corner_names(self, panel: int, size: PanelSize) -> list[Mark]:
        """Each outcome outside its corner; names behind the tetrahedron are paler."""
        low, high, key_width = self._limits(panel, size)
        points_per_edge = simplex_marks.points_per_unit(
            size, width_in_units=high[0] + key_width - low[0], height_in_units=high[1] - low[1], is_single_panel=True
        )
        marks: list[Mark] = []
        names = simplex_marks.corner_names(self.panel_values(panel))
        for name, (x, y, depth) in zip(names, self._corners, strict=True):
            dx, dy = _outward_direction(x, y)
            horizontal, vertical = _name_alignment(x, y)
            color = styling.TEXT_COLOR if depth > -0.5 * CIRCUMRADIUS else styling.MUTED_COLOR
            style: dict[str, Any] = {"color": color, "fontsize": size.font_size, "fontweight": "bold", "zorder": 5}
            style |= {"xytext": (5 * dx, 5 * dy), "textcoords": "offset points", "ha": horizontal, "va": vertical}
            text = styling.shorten_text(name, MAX_NAME_WIDTH * points_per_edge, size.font_size, "bold")
            marks.append(Text(x, y, text, **style))
        return marks

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

    def _write(self, path: Path, publication: PublicationSize | None) -> None:
        """Write an image file, or .html, which can be rotated."""
        if path.suffix.lower() in (".html", ".htm"):
            self.to_html(path)
        else:
            super()._write(path, publication)


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


SVG_SCALE = 300  # length of a side of the tetrahedron in SVG units
SVG_VIEW_BOX = "-290 -208 580 416"  # contains all corners and names in every rotation


@cache
def rotation_script() -> str:
    """The script that rotates every tetrahedron of a page; a page contains it once."""
    return _read_asset("tetrahedron.js")


def html_fragment(diagram: Diagram, *, script: bool, table: bool = True) -> str:
    """The figure of a tetrahedron diagram as HTML, optionally with the script that rotates it and a table of cells."""
    diagram = diagram.printable()
    data = scene_data(diagram)
    summary = f"{diagram.picture_title} {diagram.summary()}"
    name = f"{summary} A tetrahedron with an arrow for each cell. Rotate it with the arrow keys; Home resets the view. "
    name += "The table below contains the numbers."
    # JSON inside HTML must not contain anything that looks like a tag.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = [
        '<figure data-turning="tetrahedron">',
        f'<svg viewBox="{SVG_VIEW_BOX}" role="img" tabindex="0" aria-label="{escape(name)}" font-family="sans-serif">',
        f"<g>{_static_svg(data)}</g></svg>",
        '<div data-buttons="" role="group" aria-label="Rotate the tetrahedron"></div>',
        '<p aria-live="polite"></p>',
        f"<figcaption>{_html_legend(diagram)}</figcaption>",
        _html_table(diagram) if table else "",
        f'<script type="application/json">{text}</script>',
        "</figure>",
    ]
    if script:
        parts.append(f"<script>{_read_asset('tetrahedron.js')}</script>")
    return "\n".join(parts)


def html_page(diagram: Diagram) -> str:
    """A complete HTML page, whose content security policy allows only its style and script, by their hashes."""
    diagram = diagram.printable()
    style, code = _read_asset("tetrahedron.css"), _read_asset("tetrahedron.js")
    policy = (
        f"default-src 'none'; style-src '{csp_hash(style)}'; script-src '{csp_hash(code)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    heading = [f"<h1>{escape(diagram.picture_title)}</h1>", f"<p>{escape(diagram.summary())}</p>"]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(diagram.picture_title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *(heading if diagram.presentation.has_title else []),
            html_fragment(diagram, script=True),
            *(f"<p>{escape(str(note))}</p>" for note in diagram.notes),
            "</body>",
            "</html>",
            "",
        ]
    )


def scene_data(diagram: Diagram) -> dict[str, Any]:
    """The data for tetrahedron.js, which reads these keys: the corners, and each cell's position and style."""
    rows, panel_row = dict(diagram.table), diagram.panel_values(0)
    predicted, observed = (stack_outcomes(rows, name) for name in ("mean_prediction", "outcome_frequency"))
    opacity, areas = simplex_marks.arrow_opacity(rows, panel_row), simplex_marks.dot_areas(rows, panel_row)
    colors = simplex_marks.cell_colors(rows, panel_row)
    names = simplex_marks.corner_names(panel_row)
    cells = []
    for i, is_significant in enumerate(rows["beyond"].tolist()):
        has_arrow = diagram.has("arrows" if is_significant else "faded")
        radius = float(np.sqrt(areas[i] / np.pi)) * 4 / 3
        cells.append(
            {
                "predicted": predicted[i].tolist(),
                "observed": observed[i].tolist() if has_arrow else predicted[i].tolist(),  # an arrow of length 0
                "color": colors[i] if diagram.has("cells") else "none",
                "radius": round(radius, 2) if diagram.has("cells") else 0,
                "beyond": is_significant,
                "opacity": 1.0 if is_significant else round(float(opacity[i]), 3),
                "title": _cell_text(names, predicted[i], observed[i], int(rows["n"][i]), float(rows["pvalue"][i])),
            }
        )
    return {
        "corners": simplex_geometry.TETRAHEDRON.tolist(),
        "edges": [list(edge) for edge in simplex_geometry.EDGES],
        "names": list(names),
        "azimuth": diagram.settings["azimuth"],
        "elevation": diagram.settings["elevation"],
        "scale": SVG_SCALE,
        "radius": simplex_geometry.CIRCUMRADIUS,
        "beyond": simplex_marks.SIGNIFICANT_COLOR,
        "faded": simplex_marks.FADED_COLOR,
        "cells": cells,
    }


def _static_svg(data: dict[str, Any]) -> str:
    """The content of the SVG before the script runs, or without it: edges, cells with arrows, and names."""
    corners = simplex_geometry.projection_matrix(data["azimuth"], data["elevation"]) * SVG_SCALE * [1, -1, 1]
    elements = []
    for (a, b), is_hidden in zip(
        simplex_geometry.EDGES, simplex_geometry.hidden_edges(corners * [1, -1, 1]), strict=True
    ):
        dash = ' stroke-dasharray="5 4"' if is_hidden else ""
        (x1, y1), (x2, y2) = corners[a, :2], corners[b, :2]
        elements.append(
            f'<line class="edge" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="#7a7a7a"{dash}/>'
        )
    for is_significant in (False, True):
        for cell in data["cells"]:
            if cell["beyond"] is not is_significant:
                continue
            (x1, y1, _), (x2, y2, _) = np.array(cell["predicted"]) @ corners, np.array(cell["observed"]) @ corners
            color, width = (data["beyond"], 2.6) if is_significant else (data["faded"], 1.1)
            elements.append(
                f'<circle class="cell" cx="{x1:.2f}" cy="{y1:.2f}" r="{cell["radius"]}" fill="{cell["color"]}"/>'
                f'<line class="{"beyond" if is_significant else "faded"}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" '
                f'y2="{y2:.2f}" stroke="{color}" stroke-width="{width}" stroke-opacity="{cell["opacity"]}"/>'
            )
    for name, (x, y, _) in zip(data["names"], corners, strict=True):
        elements.append(f'<text x="{x:.2f}" y="{y - 8:.2f}" text-anchor="middle" font-size="15">{escape(name)}</text>')
    return "".join(elements)


def _html_legend(diagram: Diagram) -> str:
    level = format_level(diagram.settings["level"])
    correction = "Holm correction over all cells" if diagram.settings["simultaneous"] else "unadjusted"
    panel_row = diagram.panel_values(0)
    low, high = format_share(panel_row["share_low"]), format_share(panel_row["share_high"])
    text = (
        "Each arrow goes from the mean prediction to the observed frequency of a cell. "
        "Closer to a corner means a higher probability of its outcome. "
        f"Thick and orange: significant ({level}, {correction}). Thin and gray: not significant. "
        f"Larger and darker dots: larger share of the predictions ({low} to {high})."
    )
    return f"<p>{escape(text)}</p>"


def _html_table(diagram: Diagram) -> str:
    rows, names = diagram.table, simplex_marks.corner_names(diagram.panel_values(0))
    isolated = [isolate(name, names) for name in names]
    headings = ["n", "share", *(f"predicted {n}" for n in isolated), *(f"observed {n}" for n in isolated)]
    headings += ["p-value", "significant"]
    predicted, observed = (stack_outcomes(dict(rows), name) for name in ("mean_prediction", "outcome_frequency"))
    lines = []
    for i in np.argsort(rows["pvalue"], kind="stable"):
        cells = [
            f"{int(rows['n'][i]):,}",
            *(format_percent(float(x)) for x in (rows["share"][i], *predicted[i], *observed[i])),
        ]
        cells += [f"{rows['pvalue'][i]:.2g}", "yes" if rows["beyond"][i] else "no"]
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    header_row = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    return (
        '<div class="box" tabindex="0" role="region" aria-label="The cells of the tetrahedron"><table>'
        f"<thead><tr>{header_row}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell_text(names: tuple[str, ...], predicted: Any, observed: Any, n: int, p: float) -> str:
    """The text shown when the pointer is on a cell: predicted and observed probability of each class, n and p-value."""
    parts = (
        f"{isolate(a, names)}: {format_percent(float(x))} → {format_percent(float(y))}"
        for a, x, y in zip(names, predicted, observed, strict=True)
    )
    return f"{'; '.join(parts)}. n = {n:,}, p = {p:.2g}"


@cache
def _read_asset(name: str) -> str:
    return files("trueodds.diagrams").joinpath(name).read_text(encoding="utf-8").strip()
