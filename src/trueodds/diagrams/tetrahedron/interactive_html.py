"""HTML of the tetrahedron of four outcomes: an SVG that a script rotates, a legend and a table of the cells."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from trueodds.core.content_security_policy import csp_hash
from trueodds.core.text_direction import isolate
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style.formatting import format_percent, format_share
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import stack_outcomes

SVG_SCALE = 300  # length of a side of the tetrahedron in SVG units
SVG_VIEW_BOX = "-290 -208 580 416"  # contains all corners and names in every rotation


@cache
def rotation_script() -> str:
    """The script that rotates every tetrahedron of a page; a page contains it once."""
    return _read_asset("rotation.js")


def html_fragment(diagram: Diagram, *, script: bool, table: bool = True) -> str:
    """The figure of a tetrahedron diagram as HTML, optionally with the script that rotates it and a table of cells."""
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
        parts.append(f"<script>{_read_asset('rotation.js')}</script>")
    return "\n".join(parts)


def html_page(diagram: Diagram) -> str:
    """A complete HTML page, whose content security policy allows only its style and script, by their hashes."""
    diagram = diagram.printable()
    style, code = _read_asset("page.css"), _read_asset("rotation.js")
    policy = (
        f"default-src 'none'; style-src '{csp_hash(style)}'; script-src '{csp_hash(code)}'; base-uri 'none'; "
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


def scene_data(diagram: Diagram) -> dict[str, Any]:
    """The data for the script: coordinates of the corners, and position and style of the arrow of each cell."""
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
    """The legend of the interactive picture as HTML."""
    level = f"{100 * diagram.settings['level']:.4g}\u00a0%"
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
    """The table of all cells, the smallest p-value first."""
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
    """The text of a file beside this module."""
    return files("trueodds.diagrams.tetrahedron").joinpath(name).read_text(encoding="utf-8").strip()
