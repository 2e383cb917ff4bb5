"""How are arrows drawn in a tetrahedron? As it is seen from one side: what is near is strong, what is behind is dashed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core import saved
from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.drawing import styling
from trueodds.diagrams.simplicial import geometry, marks, turning
from trueodds.diagrams.simplicial.wording import columns

CIRCUMRADIUS = float(np.sqrt(6) / 4)  # of a corner from the middle
WIDEST, TALLEST, PART = 1.88, 1.28, 0.6  # sides that the body takes with its names; what a name may take
DOT = (10.0, 90.0)  # square points of the least and the most frequent cell


class TetrahedronDiagram(Diagram):
    """The tetrahedron seen from `azimuth` and `elevation`; `to_html` writes one that can be turned."""

    layers = ("cells", "arrows", "faded", "key")
    size = (6.4, 5.8)
    unit = "cells"

    def headline(self) -> str:
        """The question, in plain words."""
        return "Do the four outcomes come as often as it says?"

    def caption(self) -> str:
        """How many cells stray; the corners say what the view is."""
        return str(self.panels["aside"][0])

    def axis_labels(self) -> tuple[str, str]:
        """How the tetrahedron is read."""
        return "tail: said, head: came", ""

    def legend(self) -> list[tuple[Any, str]]:
        """Arrows and shades."""
        from matplotlib.lines import Line2D

        return marks.entries(self, self.view()) or [(Line2D([], [], linestyle="none"), "")]

    def view(self) -> dict[str, Any]:
        """The one row of `panels`."""
        return {name: column[0] for name, column in self.panels.items()}

    def paint(self, ax: Any, panel: int) -> None:
        """The tetrahedron from its side."""
        rows, view = dict(self.rows(panel)), self.view()
        corners = geometry.turned(self.settings["azimuth"], self.settings["elevation"])
        size = styling.type_size(ax)
        keyed = self.has("key") and self.has("cells") and marks.keyed(ax)
        marks.bare(ax)
        for (a, b), behind in zip(geometry.EDGES, geometry.hidden(corners), strict=True):
            style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.8} if behind else {"linewidth": 1.1}
            label = "hidden edge" if behind else "edge"
            ax.plot(*corners[[a, b], :2].T, color="#7A7A7A", zorder=1 if behind else 1.5, label=label, **style)
        tail, head = (columns(rows, name) @ corners for name in ("mean_prediction", "outcome_frequency"))
        order = np.argsort(tail[:, 2], kind="stable")  # what is near is drawn over what is far
        near = 0.4 + 0.6 * (tail[:, 2] + CIRCUMRADIUS) / (2 * CIRCUMRADIUS)
        if self.has("cells"):
            colors = np.array(marks.shaded(rows, view))
            ax.scatter(
                *tail[order, :2].T,
                s=dots(rows, view)[order] * min(styling.inches(ax)[0] / 4.5, 1.0) ** 2,
                c=colors[order].tolist(),
                edgecolors="#53616E",
                linewidths=0.6,
                zorder=2,
                label="cells",
            )
        for layer, which, kind, z in (
            ("faded", ~rows["beyond"], "faded", 2.2),
            ("arrows", rows["beyond"], "beyond", 3),
        ):
            selected = order[which[order]]
            if self.has(layer) and len(selected):
                drawn = marks.arrows(ax, tail[selected, :2], head[selected, :2], kind, zorder=z)
                drawn.set_alpha(near[selected] * (marks.paleness(rows, view)[selected] if kind == "faded" else 1.0))
        names = marks.corner_names(view)
        low, high = _around(ax, names, corners, size)
        if keyed:
            marks.key(ax, view, (high[0] + 0.02, -0.02, 0.04, 0.4), size)
            high = (high[0] + 0.06 + 4 * size / marks.side(ax, wide=WIDEST, tall=TALLEST, alone=True), high[1])
        side = marks.side(ax, wide=high[0] - low[0], tall=high[1] - low[1], alone=True)
        _names(ax, names, corners, size, side)
        marks.Equal(ax, low, high)

    def turning(self, *, script: bool = True) -> str:
        """An HTML fragment with the tetrahedron to turn by mouse, touch and arrow keys, and the table of its cells.

        It asks nothing of the network and has no style of its own; with `script=False` the page carries
        `turning.script()` once for all fragments. A page with a content-security policy lets that in by its hash.
        """
        return turning.fragment(self, script=script)

    def live(self) -> tuple[str, str]:
        """The fragment without its table, and the script that turns it."""
        return turning.fragment(self, script=False, table=False), turning.script()

    def to_html(self, path: str | Path) -> None:
        """Write a page of its own with the tetrahedron to turn. Raises TO703 where it cannot be written."""
        saved.write(path, turning.page(self), "TO703")

    def _write(self, path: Path) -> None:
        """As any picture, and as .html, which can be turned."""
        if path.suffix.lower() in (".html", ".htm"):
            self.to_html(path)
        else:
            super()._write(path)


def dots(rows: dict[str, Array], view: dict[str, Any]) -> Array:
    """Square points of each cell's dot: the darker the larger."""
    pale = (marks.paleness(rows, view) - marks.PALE) / marks.SPAN
    return np.asarray(DOT[0] + (DOT[1] - DOT[0]) * pale)


def _around(ax: Any, names: tuple[str, ...], corners: Array, size: float) -> tuple[tuple[float, float], ...]:
    """The least and the most that the body takes with its names, which take the more of it the smaller it is."""
    side = marks.side(ax, wide=WIDEST, tall=TALLEST, alone=True)
    line = (1.35 * size + 5) / side
    low, high = corners[:, :2].min(axis=0) - line, corners[:, :2].max(axis=0) + line
    for name, (x, y, _) in zip(names, corners, strict=True):
        words = min(styling.width(name, size, "bold") / side, PART)
        across = _outward(x, y)[0]
        beside = words + 7 / side
        left, right = (0.0, beside) if across > 0.5 else (beside, 0.0) if across < -0.5 else (words / 2, words / 2)
        low[0], high[0] = min(low[0], x - left), max(high[0], x + right)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _outward(x: float, y: float) -> tuple[float, float]:
    """Where a name stands, seen from its corner: away from the middle; above where the corner is the middle."""
    out = np.hypot(x, y)
    return (x / out, y / out) if out > 0.05 else (0.0, 1.0)


def _names(ax: Any, names: tuple[str, ...], corners: Array, size: float, side: float) -> None:
    """Each outcome beyond its corner, seen from the middle of the picture; one that is behind is paler."""
    for name, (x, y, near) in zip(names, corners, strict=True):
        dx, dy = _outward(x, y)
        ax.annotate(
            styling.shortened(name, PART * side, size, "bold"),
            (x, y),
            xytext=(5 * dx, 5 * dy),
            textcoords="offset points",
            ha="left" if dx > 0.5 else "right" if dx < -0.5 else "center",
            va="bottom" if dy > 0.5 else "top" if dy < -0.5 else "center",
            fontsize=size,
            fontweight="bold",
            color=styling.TEXT if near > -0.5 * CIRCUMRADIUS else styling.FAINT,
            zorder=5,
            parse_math=False,
        )
