"""Where do title, legend and panels stand, in a figure of our own or in axes that are given?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueodds.core.errors import Note
from trueodds.diagrams.drawing import ink

if TYPE_CHECKING:
    from trueodds.diagrams.base import Diagram

PANELS = 12  # more do not fit on a page that can be read
MOST_ROOF = 0.45  # of the height of axes that are given: what a legend may take

# Inches around and between the panels of a grid.
LEFT, RIGHT, FOOT, GAP_X, GAP_Y, PANEL = 0.78, 0.22, 0.5, 0.22, 0.27, 1.32
LEAST = (0.6, 0.4)  # inches of a panel in axes that are given: smaller ones cannot be read
TALL = 1.7  # inches that a panel with equal units may take
SMALLEST = 6.3  # points of ordinary text; the legend is a point smaller
AMPLE = 1.5  # times as much: from here on a usual number of columns is better than larger panels


def drawn(diagram: Diagram, ax: Any) -> Any:
    """One panel or a grid, in `ax` or in a new Figure."""
    count = min(len(diagram.panels["view"]), PANELS)
    return _single(diagram, ax) if count == 1 else _grid(diagram, ax, count)


def _single(diagram: Diagram, ax: Any) -> Any:
    given = ax is not None
    target = ax
    if ax is None:
        target = _figure(*diagram.size, layout="constrained")
        ax = target.subplots()
    diagram.paint(ax, 0)
    size = ink.type_size(ax)
    x, y = diagram.axis_labels()
    # A name within them may be long; a few letters beyond the axes are where the ticks are.
    across, up = (72 * 1.3 * side for side in ink.inches(ax))
    ax.set_xlabel(ink.shortened(x, across, size), fontsize=size, color=ink.TEXT, parse_math=False)
    ax.set_ylabel(ink.shortened(y, up, size), fontsize=size, color=ink.TEXT, parse_math=False)
    if given:
        width, height = (72 * side for side in ink.inches(ax))
        for text in [text for text in ax.texts if text.get_gid() == "side"]:
            text.remove()  # beyond the right edge there may be a neighbor
        ink.inward(ax)
        _titled(ax, diagram.caption(), width, size)
        head = _legend_of(diagram, width - 8, size)
        if head.marks and head.legible and head.legend_height + 6 <= MOST_ROOF * height:
            _roof(ax, (head.legend_height + 6) / height, diagram.foot)
            legend = head.put_legend(ax, loc="upper left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.4)
            legend.set_frame_on(True)  # lines over the whole height pass behind it
            legend.get_frame().set(facecolor="white", edgecolor="none", alpha=1.0)
            legend.set_zorder(6)
    else:
        room = 72 * diagram.size[0] - 72  # what tick and axis labels leave
        Head(diagram, diagram.told, room, size).put(ax, ax.transAxes, (0.0, 1.0))
    return target


def _legend_of(diagram: Diagram, room: float, size: float) -> Head:
    """The legend in axes that are given: its type as small as its words ask, down to what can be read."""
    head = Head(diagram, "", room, size)
    while size > SMALLEST and not head.whole:
        size -= 0.25
        head = Head(diagram, "", room, size)
    return head


def _titled(ax: Any, title: str, room: float, size: float) -> None:
    # A class may be called "$x$": names are no formulas.
    ax.set_title(ink.shortened(title, room, size + 1), fontsize=size + 1, color=ink.TEXT, parse_math=False)


def _roof(ax: Any, share: float, foot: float) -> None:
    """Room for the legend at the top of the axes, above everything drawn; the strip at their foot stays free."""
    low, high = ax.get_ylim()
    bottom = low + foot * (high - low)
    whole = (high - bottom) / (1 - foot - share)
    ax.set_ylim(bottom - foot * whole, high + share * whole)


def _grid(diagram: Diagram, ax: Any, count: int) -> Any:
    views = len(diagram.panels["view"])
    width = diagram.size[0] if ax is None else ink.inches(ax)[0]
    size = 9.5 if width > 4.5 else 8.0 if width > 2.6 else 7.0
    order = f"{diagram.ranked} first."
    note = (
        f"{diagram.told} Drawn: {count} of {views}, {order}" if views > count else f"{diagram.told} {_capital(order)}"
    )
    if ax is None:
        grid = Grid.around(width, {2: 2, 4: 2}.get(count, 3), bare=diagram.tall > 0)
        head = Head(diagram, note, 72 * (width - grid.left - grid.right), size)
        top = head.height / 72 + 0.08
        rows = -(-count // grid.columns)
        panel_height = PANEL
        if diagram.tall:
            panel_height = min(diagram.tall * grid.cell(width, 0, count)[0], TALL if rows > 2 else 1.3 * TALL)
        height = top + rows * (panel_height + grid.gap_y) + grid.foot
        target = figure = _figure(width, height)
        where, add = figure.transFigure, figure.add_axes
    else:
        height = ink.inches(ax)[1]
        found = _fitting(diagram, count, width, height, size)
        if found is None:
            return _first(diagram, ax, size)
        grid, head = found
        top = head.legend_height / 72 + 0.04
        target, where, add = ax, ax.transAxes, ax.inset_axes
        ax.set_axis_off()
        _titled(ax, f"{diagram.lens}, {diagram.ranked}: {diagram.panels['title'][0]}", 72 * width, size)
    columns = grid.columns
    cell = grid.cell(width, height - top, count)
    names = [(str(diagram.panels["title"][i]), str(diagram.panels["aside"][i])) for i in range(count)]
    shared: dict[str, Any] = {}
    for i in range(count):
        row, column = divmod(i, columns)
        left = grid.left + column * (cell[0] + grid.gap_x)
        bottom = height - top - (row + 1) * (cell[1] + grid.gap_y)
        panel = add((left / width, bottom / height, cell[0] / width, cell[1] / height), **shared)
        shared = shared or {"sharex": panel, "sharey": panel}
        diagram.paint(panel, i)
        _name(panel, *names[i], 72 * cell[0])
        panel.tick_params(labelleft=column == 0, labelbottom=i + columns >= count)
    style: dict[str, Any] = {"fontsize": size, "color": ink.TEXT, "ha": "center", "va": "center", "transform": where}
    style["parse_math"] = False
    x, y = diagram.axis_labels()
    across, up = 72 * (width - grid.right), 72 * (height - top)
    target.text((grid.left + width - grid.right) / 2 / width, 0.13 / height, ink.shortened(x, across, size), **style)
    middle = (height - top + grid.foot) / 2 / height
    # A single row of panels is lower than the words are long: they are written smaller before they are cut.
    style["fontsize"] = max(SMALLEST, min(size, size * 0.98 * up / max(ink.width(y, size), 1.0)))
    target.text(0.13 / width, middle, ink.shortened(y, up, style["fontsize"]), rotation="vertical", **style)
    if ax is None:
        head.put(target, where, (grid.left / width, 1 - top / height))
    else:
        head.put_legend(ax, loc="upper left", bbox_to_anchor=(grid.left / width, 1.0), borderaxespad=0.0)
    return target


@dataclass(frozen=True)
class Grid:
    """Inches around and between panels, and how many stand beside each other."""

    columns: int
    left: float
    right: float
    foot: float
    gap_x: float
    gap_y: float

    @classmethod
    def around(cls, width: float, columns: int, *, bare: bool) -> Grid:
        """The margins in a picture of this width: whole from 3.6 inches, narrower below; `bare` of ticks and their room."""
        part = min(max(width / 3.6, 0.7), 1.0)
        left, foot = (RIGHT, 0.6 * FOOT) if bare else (LEFT * part, FOOT * part)
        return cls(columns, left, RIGHT * part, foot, GAP_X * part, GAP_Y * max(part, 0.8))

    def cell(self, width: float, height: float, count: int) -> tuple[float, float]:
        """Width and height of a panel in this room."""
        rows = -(-count // self.columns)
        wide = (width - self.left - self.right - (self.columns - 1) * self.gap_x) / self.columns
        return wide, (height - self.foot) / rows - self.gap_y


def _fitting(diagram: Diagram, count: int, width: float, height: float, size: float) -> tuple[Grid, Head] | None:
    """The columns that give panels most room in axes that are given; None where no panel can be read."""
    usual = {2: 2, 4: 2}.get(count, 3)
    best: tuple[float, Grid, Head] | None = None
    for columns in (usual, *(each for each in (2, 1, 3) if each != usual)):
        grid = Grid.around(width, columns, bare=diagram.tall > 0)
        if width - grid.left - grid.right <= 0:
            continue
        head = _legend_of(diagram, 72 * (width - grid.left - grid.right), size)
        wide, high = grid.cell(width, height - head.legend_height / 72 - 0.04, count)
        fits = min(wide / LEAST[0], high / LEAST[1])
        if fits >= 1 and (best is None or min(fits, AMPLE) > best[0]):
            best = min(fits, AMPLE), grid, head
    return None if best is None else best[1:]


def _first(diagram: Diagram, ax: Any, size: float) -> Any:
    """The first view alone, as the title says."""
    views, title = len(diagram.panels["view"]), str(diagram.panels["title"][0])
    panels = {name: column[:1] for name, column in diagram.panels.items()}
    _single(replace(diagram, panels=panels, table=diagram.rows(0)), ax)
    room = 72 * ink.inches(ax)[0]
    long = f"{title}: {diagram.ranked} of {views}"
    fits = ink.width(long, size + 1) <= room
    _titled(ax, long if fits else f"1 of {views}: {title}", room, size)
    return ax


def cut(views: int, ranked: str) -> list[Note]:
    """The note that not every view is drawn; none where all are."""
    if views <= PANELS:
        return []
    return [Note("TN245", f"Drawn are {PANELS} of {views} views, {ranked} first; the table holds them all.")]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
        panel.set_title(aside, loc="right", fontsize=size - 0.8, color=ink.FAINT, pad=3, parse_math=False)


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
    def marks(self) -> list[tuple[Any, str]]:
        """The entries of the legend, names in it cut to the room; none where it is left out."""
        return [(mark, ink.shortened(label, self._label, self.size - 1)) for mark, label in self.every]

    @cached_property
    def every(self) -> list[tuple[Any, str]]:
        """The entries in full."""
        return self.diagram.legend() if self.diagram.has("legend") else []

    @property
    def _label(self) -> float:
        """Points for the words of an entry, beside its mark."""
        return self.room - 3.3 * (self.size - 1)

    @cached_property
    def columns(self) -> int:
        """The most columns whose legend entries fit beside each other."""
        widths = [ink.width(label, self.size - 1) + 3.3 * (self.size - 1) for _, label in self.marks]
        for columns in range(len(widths), 1, -1):
            rows = -(-len(widths) // columns)
            even = rows * columns - len(widths) <= 1  # not three beside each other and one below
            if even and sum(max(widths[i : i + rows]) for i in range(0, len(widths), rows)) <= self.room:
                return columns
        return 1

    @property
    def legend_height(self) -> float:
        """Points that the lines of the legend take."""
        return -(-len(self.marks) // self.columns) * 1.42 * (self.size - 1)

    @cached_property
    def rises(self) -> tuple[float, float, float, float]:
        """How far above the corner legend, finding and question begin and all of it ends, in points."""
        legend = 0.55 * self.size
        finding = legend + self.legend_height + 0.45 * self.size
        question = finding + (self.finding.count("\n") + 1) * 1.3 * self.size + 0.35 * self.size
        return legend, finding, question, question + (self.question.count("\n") + 1) * 1.25 * (self.size + 2.5)

    @property
    def height(self) -> float:
        """Points from the corner to the top."""
        return self.rises[3]

    @property
    def whole(self) -> bool:
        """Whether no entry is cut."""
        return all(label == ink.on_one_line(full) for (_, label), (_, full) in zip(self.marks, self.every, strict=True))

    @property
    def legible(self) -> bool:
        """Whether the room holds a few words beside a mark."""
        return self._label >= 5 * self.size

    def put(self, target: Any, where: Any, corner: tuple[float, float]) -> None:
        """Write it above a corner of `where`, from the bottom up."""
        from matplotlib.transforms import ScaledTranslation

        inches = target.figure.dpi_scale_trans
        legend, finding, question = (where + ScaledTranslation(0, up / 72, inches) for up in self.rises[:3])
        self.put_legend(target, loc="lower left", bbox_to_anchor=corner, bbox_transform=legend, borderaxespad=0)
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

    def put_legend(self, target: Any, **where: Any) -> Any:
        """The marks and what they mean, at a place."""
        if not self.marks:
            return None
        handles, labels = zip(*self.marks, strict=True)
        legend = target.legend(
            handles,
            [f"{i}" for i in range(len(labels))],  # an entry that begins with "_" would be left out
            ncols=self.columns,
            frameon=False,
            fontsize=self.size - 1,
            labelcolor=ink.TEXT,
            borderpad=0,
            handlelength=1.6,
            handletextpad=0.5,
            columnspacing=1.2,
            labelspacing=0.35,
            **where,
        )
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set_text(label)
            text.set_parse_math(False)
        return legend
