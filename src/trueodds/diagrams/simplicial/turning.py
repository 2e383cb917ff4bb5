"""How does a tetrahedron turn on a page? An inline SVG, its numbers as data and as a table, and one small script."""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.diagrams.drawing import styling
from trueodds.diagrams.simplicial import geometry, marks
from trueodds.diagrams.simplicial.wording import columns

if TYPE_CHECKING:
    from trueodds.diagrams.simplicial.solid import TetrahedronDiagram

SCALE = 300  # units of the picture that a side of the tetrahedron takes
BOX = "-290 -208 580 416"  # as far as a corner and its name come when it is turned


@cache
def script() -> str:
    """The script that turns every tetrahedron of a page; it stands on the page once."""
    return _part("turning.js")


def fragment(diagram: TetrahedronDiagram, *, script: bool, table: bool = True) -> str:
    """The figure as HTML, with the script and the table of cells, or without."""
    diagram = diagram.printable()
    data = island(diagram)
    summary = f"{diagram.name_of_picture} {diagram.summary}"
    name = f"{summary} A tetrahedron with an arrow for each cell; arrow keys turn it, Home turns it back. "
    name += "The numbers are in the table below it."
    # In JSON inside of HTML nothing may look like a tag.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = [
        '<figure data-turning="tetrahedron">',
        f'<svg viewBox="{BOX}" role="img" tabindex="0" aria-label="{escape(name)}" font-family="sans-serif">',
        f"<g>{_still(data)}</g></svg>",
        '<div data-buttons="" role="group" aria-label="Turn the tetrahedron"></div>',
        '<p aria-live="polite"></p>',
        f"<figcaption>{_legend(diagram)}</figcaption>",
        _table(diagram) if table else "",
        f'<script type="application/json">{text}</script>',
        "</figure>",
    ]
    if script:
        parts.append(f"<script>{_part('turning.js')}</script>")
    return "\n".join(parts)


def page(diagram: TetrahedronDiagram) -> str:
    """A page of its own, which lets in its one style and its one script by their hashes, and nothing else."""
    diagram = diagram.printable()
    style, code = _part("turning.css"), _part("turning.js")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(code)}'; base-uri 'none'; form-action 'none'"
    heading = [f"<h1>{escape(diagram.name_of_picture)}</h1>", f"<p>{escape(diagram.summary)}</p>"]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(diagram.name_of_picture)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *(heading if diagram.presentation.titled else []),
            fragment(diagram, script=True),
            *(f"<p>{escape(str(note))}</p>" for note in diagram.notes),
            "</body>",
            "</html>",
            "",
        ]
    )


def island(diagram: TetrahedronDiagram) -> dict[str, Any]:
    """What the script draws: the corners in space, and of each cell where its arrow starts and ends, and its looks."""
    from trueodds.diagrams.simplicial.solid import CIRCUMRADIUS, dots

    rows, view = dict(diagram.table), diagram.view()
    predicted, observed = (columns(rows, name) for name in ("mean_prediction", "outcome_frequency"))
    pale, colors, areas = marks.paleness(rows, view), marks.shaded(rows, view), dots(rows, view)
    names = marks.corner_names(view)
    shown = diagram.has("arrows"), diagram.has("faded")
    cells = [
        {
            "said": predicted[i].tolist(),
            "seen": observed[i].tolist() if shown[0 if rows["beyond"][i] else 1] else predicted[i].tolist(),
            "color": colors[i] if diagram.has("cells") else "none",
            "radius": round(float(np.sqrt(areas[i] / np.pi)) * 4 / 3, 2) if diagram.has("cells") else 0,
            "beyond": bool(rows["beyond"][i]),
            "opacity": 1.0 if rows["beyond"][i] else round(float(pale[i]), 3),
            "title": _cell_text(names, predicted[i], observed[i], int(rows["n"][i]), float(rows["pvalue"][i])),
        }
        for i in range(len(predicted))
    ]
    return {
        "corners": geometry.TETRAHEDRON.tolist(),
        "edges": [list(edge) for edge in geometry.EDGES],
        "names": list(names),
        "azimuth": diagram.settings["azimuth"],
        "elevation": diagram.settings["elevation"],
        "scale": SCALE,
        "reach": CIRCUMRADIUS,
        "beyond": marks.BEYOND,
        "faded": marks.FADED,
        "cells": cells,
    }


def _still(data: dict[str, Any]) -> str:
    """The tetrahedron as it stands before the script draws, and where none runs."""
    corners = geometry.turned(data["azimuth"], data["elevation"]) * SCALE * [1, -1, 1]
    made = []
    for (a, b), behind in zip(geometry.EDGES, geometry.hidden(corners * [1, -1, 1]), strict=True):
        dash = ' stroke-dasharray="5 4"' if behind else ""
        (x1, y1), (x2, y2) = corners[a, :2], corners[b, :2]
        made.append(
            f'<line class="edge" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="#7a7a7a"{dash}/>'
        )
    for beyond in (False, True):
        for cell in data["cells"]:
            if cell["beyond"] is not beyond:
                continue
            (x1, y1, _), (x2, y2, _) = np.array(cell["said"]) @ corners, np.array(cell["seen"]) @ corners
            color, width = (data["beyond"], 2.6) if beyond else (data["faded"], 1.1)
            made.append(
                f'<circle class="cell" cx="{x1:.2f}" cy="{y1:.2f}" r="{cell["radius"]}" fill="{cell["color"]}"/>'
                f'<line class="{"beyond" if beyond else "faded"}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" '
                f'y2="{y2:.2f}" stroke="{color}" stroke-width="{width}" stroke-opacity="{cell["opacity"]}"/>'
            )
    for name, (x, y, _) in zip(data["names"], corners, strict=True):
        made.append(f'<text x="{x:.2f}" y="{y - 8:.2f}" text-anchor="middle" font-size="15">{escape(name)}</text>')
    return "".join(made)


def _legend(diagram: TetrahedronDiagram) -> str:
    level = f"{100 * diagram.settings['level']:.4g}\u00a0%"
    how = "Holm's correction over all cells" if diagram.settings["simultaneous"] else "each cell for itself"
    view = diagram.view()
    low, high = styling.share_text(view["share_low"]), styling.share_text(view["share_high"])
    text = (
        "Each arrow goes from what was said to what came in one cell; the nearer to a corner, the more often. "
        f"Thick and orange: beyond chance ({level}, {how}). Thin and gray: within chance. "
        f"Larger and darker dots: more of the predictions ({low} to {high})."
    )
    return f"<p>{escape(text)}</p>"


def _table(diagram: TetrahedronDiagram) -> str:
    """Every cell, the most surprising first."""
    rows, names = diagram.table, marks.corner_names(diagram.view())
    heads = ["n", "share", *(f"says {n}" for n in names), *(f"came {n}" for n in names), "p", "beyond chance"]
    predicted, observed = (columns(dict(rows), name) for name in ("mean_prediction", "outcome_frequency"))
    lines = []
    for i in np.argsort(rows["pvalue"], kind="stable"):
        cells = [
            f"{int(rows['n'][i]):,}",
            *(styling.percent(float(x)) for x in (rows["share"][i], *predicted[i], *observed[i])),
        ]
        cells += [f"{rows['pvalue'][i]:.2g}", "yes" if rows["beyond"][i] else "no"]
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in heads)
    return (
        '<div class="box" tabindex="0" role="region" aria-label="The cells of the tetrahedron"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell_text(names: tuple[str, ...], predicted: Any, observed: Any, n: int, p: float) -> str:
    parts = (
        f"{a}: {styling.percent(float(x))} → {styling.percent(float(y))}"
        for a, x, y in zip(names, predicted, observed, strict=True)
    )
    return f"{'; '.join(parts)}. n = {n:,}, p = {p:.2g}"


@cache
def _part(name: str) -> str:
    return files("trueodds.diagrams.simplicial").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
