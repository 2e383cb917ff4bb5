"""Draw the tetrahedron of four outcomes as a figure, and as HTML with an SVG that can be rotated.

Cells whose column `beyond` is true differ significantly between prediction and observed frequency,
and their arrows are thick.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core import json_files
from trueodds.core.text_direction import isolate
from trueodds.core.typing import Array
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.publication import PublicationSize
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import stack_outcomes

CIRCUMRADIUS = float(np.sqrt(6) / 4)  # distance of a corner from the center
# Largest size of the tetrahedron with its names, and largest width of a name, in lengths of an edge.
MAX_WIDTH_WITH_NAMES, MAX_HEIGHT_WITH_NAMES, MAX_NAME_WIDTH = 1.88, 1.28, 0.6
DOT_AREAS = (10.0, 90.0)  # in square points, of the least and the most frequent cell


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
        """The one row of `panels`."""
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
                s=dot_areas(rows, panel_row)[order] * min(styling.size_in_inches(ax)[0] / 4.5, 1.0) ** 2,
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


def dot_areas(rows: dict[str, Array], panel_row: dict[str, Any]) -> Array:
    """The area of the dot of each cell in square points; darker dots are larger."""
    position = (simplex_marks.arrow_opacity(rows, panel_row) - simplex_marks.MIN_OPACITY) / simplex_marks.OPACITY_RANGE
    return np.asarray(DOT_AREAS[0] + (DOT_AREAS[1] - DOT_AREAS[0]) * position)


def _view_limits(ax: Any, names: tuple[str, ...], corners: Array, size: float) -> tuple[tuple[float, float], ...]:
    """The lower and upper limits of the axes that contain the tetrahedron with its names."""
    points_per_edge = simplex_marks.points_per_unit(
        ax, width_in_units=MAX_WIDTH_WITH_NAMES, height_in_units=MAX_HEIGHT_WITH_NAMES, is_single_panel=True
    )
    line = (1.35 * size + 5) / points_per_edge
    low, high = corners[:, :2].min(axis=0) - line, corners[:, :2].max(axis=0) + line
    for name, (x, y, _) in zip(names, corners, strict=True):
        name_width = min(styling.text_width(name, size, "bold") / points_per_edge, MAX_NAME_WIDTH)
        x_direction = _outward_direction(x, y)[0]
        width_beside = name_width + 7 / points_per_edge
        left, right = (
            (0.0, width_beside)
            if x_direction > 0.5
            else (width_beside, 0.0)
            if x_direction < -0.5
            else (name_width / 2, name_width / 2)
        )
        low[0], high[0] = min(low[0], x - left), max(high[0], x + right)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _outward_direction(x: float, y: float) -> tuple[float, float]:
    """The direction from a corner to its name: away from the center, or up if the corner is the center."""
    distance = np.hypot(x, y)
    return (x / distance, y / distance) if distance > 0.05 else (0.0, 1.0)


def _draw_names(ax: Any, names: tuple[str, ...], corners: Array, size: float, points_per_edge: float) -> None:
    """Write each outcome outside its corner; names behind the tetrahedron are paler."""
    for name, (x, y, depth) in zip(names, corners, strict=True):
        dx, dy = _outward_direction(x, y)
        ax.annotate(
            styling.shorten_text(name, MAX_NAME_WIDTH * points_per_edge, size, "bold"),
            (x, y),
            xytext=(5 * dx, 5 * dy),
            textcoords="offset points",
            ha="left" if dx > 0.5 else "right" if dx < -0.5 else "center",
            va="bottom" if dy > 0.5 else "top" if dy < -0.5 else "center",
            fontsize=size,
            fontweight="bold",
            color=styling.TEXT_COLOR if depth > -0.5 * CIRCUMRADIUS else styling.MUTED_COLOR,
            zorder=5,
            parse_math=False,
        )


SVG_SCALE = 300  # length of a side of the tetrahedron in SVG units
SVG_VIEW_BOX = "-290 -208 580 416"  # contains all corners and names in every rotation


@cache
def rotation_script() -> str:
    """The script that rotates every tetrahedron of a page; a page contains it once."""
    return _read_asset("turning.js")


def html_fragment(diagram: TetrahedronDiagram, *, script: bool, table: bool = True) -> str:
    """The figure as HTML, optionally with the script and the table of cells."""
    diagram = diagram.printable()
    data = scene_data(diagram)
    summary = f"{diagram.picture_title} {diagram.summary}"
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
        parts.append(f"<script>{_read_asset('turning.js')}</script>")
    return "\n".join(parts)


def html_page(diagram: TetrahedronDiagram) -> str:
    """A complete HTML page, whose content security policy allows only its style and script, by their hashes."""
    diagram = diagram.printable()
    style, code = _read_asset("turning.css"), _read_asset("turning.js")
    policy = (
        f"default-src 'none'; style-src '{_content_hash(style)}'; script-src '{_content_hash(code)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    heading = [f"<h1>{escape(diagram.picture_title)}</h1>", f"<p>{escape(diagram.summary)}</p>"]
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


def scene_data(diagram: TetrahedronDiagram) -> dict[str, Any]:
    """The data for the script: coordinates of the corners, and position and style of the arrow of each cell."""

    rows, panel_row = dict(diagram.table), diagram.panel_row()
    predicted, observed = (stack_outcomes(rows, name) for name in ("mean_prediction", "outcome_frequency"))
    opacity, colors, areas = (
        simplex_marks.arrow_opacity(rows, panel_row),
        simplex_marks.cell_colors(rows, panel_row),
        dot_areas(rows, panel_row),
    )
    names = simplex_marks.corner_names(panel_row)
    shown_layers = diagram.has("arrows"), diagram.has("faded")
    cells = [
        {
            "predicted": predicted[i].tolist(),
            "observed": observed[i].tolist() if shown_layers[0 if rows["beyond"][i] else 1] else predicted[i].tolist(),
            "color": colors[i] if diagram.has("cells") else "none",
            "radius": round(float(np.sqrt(areas[i] / np.pi)) * 4 / 3, 2) if diagram.has("cells") else 0,
            "beyond": bool(rows["beyond"][i]),
            "opacity": 1.0 if rows["beyond"][i] else round(float(opacity[i]), 3),
            "title": _cell_text(names, predicted[i], observed[i], int(rows["n"][i]), float(rows["pvalue"][i])),
        }
        for i in range(len(predicted))
    ]
    return {
        "corners": simplex_geometry.TETRAHEDRON.tolist(),
        "edges": [list(edge) for edge in simplex_geometry.EDGES],
        "names": list(names),
        "azimuth": diagram.settings["azimuth"],
        "elevation": diagram.settings["elevation"],
        "scale": SVG_SCALE,
        "radius": CIRCUMRADIUS,
        "beyond": simplex_marks.SIGNIFICANT_COLOR,
        "faded": simplex_marks.FADED_COLOR,
        "cells": cells,
    }


def _static_svg(data: dict[str, Any]) -> str:
    """The static SVG, shown before the script runs or without it."""
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


def _html_legend(diagram: TetrahedronDiagram) -> str:
    """The legend of the interactive picture as HTML."""
    level = f"{100 * diagram.settings['level']:.4g}\u00a0%"
    correction = "Holm correction over all cells" if diagram.settings["simultaneous"] else "unadjusted"
    panel_row = diagram.panel_row()
    low, high = styling.format_share(panel_row["share_low"]), styling.format_share(panel_row["share_high"])
    text = (
        "Each arrow goes from the mean prediction to the observed frequency of a cell. "
        "Closer to a corner means a higher probability of its outcome. "
        f"Thick and orange: significant ({level}, {correction}). Thin and gray: not significant. "
        f"Larger and darker dots: larger share of the predictions ({low} to {high})."
    )
    return f"<p>{escape(text)}</p>"


def _html_table(diagram: TetrahedronDiagram) -> str:
    """The table of all cells, the smallest p-value first."""
    rows, names = diagram.table, simplex_marks.corner_names(diagram.panel_row())
    isolated = [isolate(name, names) for name in names]
    headings = ["n", "share", *(f"predicted {n}" for n in isolated), *(f"observed {n}" for n in isolated)]
    headings += ["p-value", "significant"]
    predicted, observed = (stack_outcomes(dict(rows), name) for name in ("mean_prediction", "outcome_frequency"))
    lines = []
    for i in np.argsort(rows["pvalue"], kind="stable"):
        cells = [
            f"{int(rows['n'][i]):,}",
            *(styling.format_percent(float(x)) for x in (rows["share"][i], *predicted[i], *observed[i])),
        ]
        cells += [f"{rows['pvalue'][i]:.2g}", "yes" if rows["beyond"][i] else "no"]
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    header_row = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    return (
        '<div class="box" tabindex="0" role="region" aria-label="The cells of the tetrahedron"><table>'
        f"<thead><tr>{header_row}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell_text(names: tuple[str, ...], predicted: Any, observed: Any, n: int, p: float) -> str:
    """What the pointer shows at a cell: both probabilities of each class, rows and p-value."""
    parts = (
        f"{isolate(a, names)}: {styling.format_percent(float(x))} → {styling.format_percent(float(y))}"
        for a, x, y in zip(names, predicted, observed, strict=True)
    )
    return f"{'; '.join(parts)}. n = {n:,}, p = {p:.2g}"


@cache
def _read_asset(name: str) -> str:
    """The text of a file beside this module."""
    return files("trueodds.diagrams.tetrahedron").joinpath(name).read_text(encoding="utf-8").strip()


def _content_hash(text: str) -> str:
    """The hash by which a content security policy allows a style or script."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
