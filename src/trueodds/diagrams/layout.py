"""Where do title, legend and panels stand, in a figure of our own or in axes that are given?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueodds.diagrams import ink

if TYPE_CHECKING:
    from trueodds.diagrams.base import Diagram

PANELS = 12  # more do not fit on a page that can be read

# Inches around and between the panels of a grid.
LEFT, RIGHT, FOOT, GAP_X, GAP_Y, PANEL = 0.78, 0.22, 0.5, 0.22, 0.27, 1.32


def drawn(diagram: Diagram, ax: Any) -> Any:
    """One panel or a grid, in `ax` or in a new Figure."""
    count = min(len(diagram.panels["view"]), PANELS)
    return _single(diagram, ax) if count == 1 else _grid(diagram, ax, count)


def _single(diagram: Diagram, ax: Any) -> Any:
    target = ax
    if ax is None:
        target = _figure(*diagram.size, layout="constrained")
        ax = target.subplots()
        room = 72 * diagram.size[0] - 72  # what tick and axis labels leave
    else:
        room = 72 * ink.inches(ax)[0]
    diagram.paint(ax, 0)
    size = ink.type_size(ax)
    x, y = diagram.axis_labels()
    ax.set_xlabel(x, fontsize=size, color=ink.TEXT)
    ax.set_ylabel(y, fontsize=size, color=ink.TEXT)
    Head(diagram, diagram.finding, room, size).put(ax, ax.transAxes, (0.0, 1.0))
    return target


def _grid(diagram: Diagram, ax: Any, count: int) -> Any:
    columns = {2: 2, 4: 2}.get(count, 3)
    rows = -(-count // columns)
    width = diagram.size[0] if ax is None else ink.inches(ax)[0]
    size = 9.5 if width > 4.5 else 8.0
    note = diagram.finding
    if len(diagram.panels["view"]) > count:
        note += f" Drawn: the {count} largest of {len(diagram.panels['view'])}."
    head = Head(diagram, note, 72 * (width - LEFT - RIGHT), size)
    if ax is None:
        top = head.height / 72 + 0.08
        height = top + rows * (PANEL + GAP_Y) + FOOT
        target = figure = _figure(width, height)
        where, add = figure.transFigure, figure.add_axes
    else:
        top, height = 0.0, ink.inches(ax)[1]  # title and legend stand above axes that are given
        target, where, add = ax, ax.transAxes, ax.inset_axes
        ax.set_axis_off()
    cell = (width - LEFT - RIGHT - (columns - 1) * GAP_X) / columns, max((height - top - FOOT) / rows - GAP_Y, 0.2)
    names = [(str(diagram.panels["title"][i]), str(diagram.panels["aside"][i])) for i in range(count)]
    shared: dict[str, Any] = {}
    for i in range(count):
        row, column = divmod(i, columns)
        left, bottom = LEFT + column * (cell[0] + GAP_X), height - top - (row + 1) * (cell[1] + GAP_Y)
        panel = add((left / width, bottom / height, cell[0] / width, cell[1] / height), **shared)
        shared = shared or {"sharex": panel, "sharey": panel}
        diagram.paint(panel, i)
        _name(panel, *names[i], 72 * cell[0])
        panel.tick_params(labelleft=column == 0, labelbottom=i + columns >= count)
    style: dict[str, Any] = {"fontsize": size, "color": ink.TEXT, "ha": "center", "va": "center", "transform": where}
    x, y = diagram.axis_labels()
    target.text((LEFT + width - RIGHT) / 2 / width, 0.13 / height, x, **style)
    target.text(0.13 / width, (height - top + FOOT) / 2 / height, y, rotation="vertical", **style)
    head.put(target, where, (LEFT / width, 1 - top / height))
    return target


def _figure(width: float, height: float, **kwargs: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", **kwargs)
    FigureCanvasAgg(figure)
    return figure


def _name(panel: Any, title: str, aside: str, room: float) -> None:
    """The view at the left, and a few words at the right where they fit."""
    size = ink.type_size(panel)
    style: dict[str, Any] = {"fontsize": size + 0.5, "fontweight": "bold", "color": ink.TEXT}
    # A class may be called "$x$": names are no formulas.
    panel.set_title(ink.shortened(title, room, size + 0.5, "bold"), loc="left", pad=3, parse_math=False, **style)
    if ink.width(title, size + 0.5, "bold") + ink.width(aside, size - 0.8) + 8 <= room:
        panel.set_title(aside, loc="right", fontsize=size - 0.8, color=ink.FAINT, pad=3)


@dataclass(frozen=True)
class Head:
    """Question, finding and legend; each takes as many lines as it needs in `room` points."""

    diagram: Diagram
    note: str
    room: float
    size: float

    @cached_property
    def question(self) -> str:
        """The headline in lines."""
        return ink.wrapped(self.diagram.headline(), self.room, self.size + 2.5, "bold")

    @cached_property
    def finding(self) -> str:
        """The finding in lines."""
        return ink.wrapped(self.note, self.room, self.size)

    @cached_property
    def columns(self) -> int:
        """The most columns whose legend entries fit beside each other."""
        widths = [ink.width(label, self.size - 1) + 3.3 * (self.size - 1) for _, label in self.diagram.legend()]
        for columns in range(len(widths), 1, -1):
            rows = -(-len(widths) // columns)
            even = rows * columns - len(widths) <= 1  # not three beside each other and one below
            if even and sum(max(widths[i : i + rows]) for i in range(0, len(widths), rows)) <= self.room:
                return columns
        return 1

    @cached_property
    def rises(self) -> tuple[float, float, float, float]:
        """How far above the corner legend, finding and question begin and all of it ends, in points."""
        legend = 0.55 * self.size
        rows = -(-len(self.diagram.legend()) // self.columns)
        finding = legend + rows * 1.42 * (self.size - 1) + 0.45 * self.size
        question = finding + (self.finding.count("\n") + 1) * 1.3 * self.size + 0.35 * self.size
        return legend, finding, question, question + (self.question.count("\n") + 1) * 1.25 * (self.size + 2.5)

    @property
    def height(self) -> float:
        """Points from the corner to the top."""
        return self.rises[3]

    def put(self, target: Any, where: Any, corner: tuple[float, float]) -> None:
        """Write it above a corner of `where`, from the bottom up."""
        from matplotlib.transforms import ScaledTranslation

        inches = target.figure.dpi_scale_trans
        legend, finding, question = (where + ScaledTranslation(0, up / 72, inches) for up in self.rises[:3])
        handles, labels = zip(*self.diagram.legend(), strict=True)
        target.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=corner,
            bbox_transform=legend,
            ncols=self.columns,
            frameon=False,
            fontsize=self.size - 1,
            labelcolor=ink.TEXT,
            borderpad=0,
            borderaxespad=0,
            handlelength=1.6,
            handletextpad=0.5,
            columnspacing=1.2,
            labelspacing=0.35,
        )
        style: dict[str, Any] = {"ha": "left", "va": "bottom", "linespacing": 1.22, "parse_math": False}
        target.text(*corner, self.finding, transform=finding, fontsize=self.size, color=ink.FAINT, **style)
        target.text(
            *corner,
            self.question,
            transform=question,
            fontsize=self.size + 2.5,
            fontweight="bold",
            color=ink.TEXT,
            **style,
        )
