"""Marks of a diagram: points, lines, bands and others, each with its layer, style and legend label.

A diagram states its marks, made of the numbers of one panel of its table, and one renderer draws them::

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        return [
            Line(rows["score"], rows["rate"], layer="curve", label="observed", color=BLUE, linewidth=1.8, zorder=3),
            Band(rows["score"], rows["low"], rows["high"], layer="band", label="95 % band", color=GRAY, zorder=1),
        ]

- `less("band")` leaves out the marks of this layer, in the picture and in the legend: `marks` asks for no layer.
- The legend has an entry per label, in the order of the list; `zorder` says what covers what. Marks of different kinds
  with the same label form one entry, drawn over each other; of several of one kind it shows the first.
- A mark without finite numbers draws nothing and has no entry, but its label keeps its place: state the bins inside
  and the bins outside, even if there are none.
- `style` goes to matplotlib (`color linewidth linestyle alpha zorder marker …`); `key` changes the style in the legend.
- `name` labels matplotlib's artists, for tests; by default it is the layer.
- Limits, ticks and grid are set before by `set_axes`. What only one diagram has is a subclass in its module that
  overrides `draw`, which returns its artists, and, if it has a label, `legend_handle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_share

WIDE_PANEL = 3.3  # inches of width from which on marks have their full size


@dataclass(frozen=True)
class PanelSize:
    """Width and height of the axes of a panel in inches."""

    width: float
    height: float

    @classmethod
    def of(cls, ax: Any) -> PanelSize:
        width, height = styling.size_in_inches(ax)
        return cls(float(width), float(height))

    @property
    def is_wide(self) -> bool:
        """Whether marks have their full size."""
        return self.width > WIDE_PANEL

    @property
    def font_size(self) -> float:
        """Points of ordinary text."""
        return styling.font_size_for_width(self.width)


LEGEND_SIZE = PanelSize(4.6, 4.0)  # in the legend marks have their full size


class Mark:
    """A mark: its coordinates, its layer ("" is always drawn), its label in the legend, and its style."""

    def __init__(
        self,
        *coordinates: ArrayLike,
        layer: str = "",
        label: str = "",
        name: str = "",
        key: Mapping[str, Any] | None = None,
        **style: Any,
    ) -> None:
        arrays = (np.atleast_1d(np.asarray(numbers, dtype=np.float64)) for numbers in coordinates)
        self.coordinates: Sequence[Array] = np.broadcast_arrays(*arrays)  # one number stands for all
        self.layer, self.label, self.name, self.style = layer, label, name or layer, style
        self.key = dict(key or {})

    @property
    def is_empty(self) -> bool:
        return not np.logical_and.reduce([np.isfinite(numbers) for numbers in self.coordinates]).any()

    def draw(self, ax: Any) -> Iterable[Any]:
        """Draw on axes, and return matplotlib's artists."""
        raise NotImplementedError

    def legend_handle(self) -> Any:
        raise NotImplementedError


def draw_marks(ax: Any, marks: Iterable[Mark]) -> None:
    """Draw marks on axes; their artists are no entries of `ax.legend()`, because their labels begin with "_"."""
    for mark in marks:
        if not mark.is_empty:
            for artist in mark.draw(ax):
                artist.set_label(f"_{mark.name}")


def legend_entries(marks_by_panel: Sequence[Sequence[Mark]]) -> list[tuple[Any, str]]:
    """The handle and the label of each entry of the legend that all panels share."""
    kinds_by_label: dict[str, dict[type, tuple[int, Mark]]] = {}
    for marks in marks_by_panel:
        for position, mark in enumerate(marks):
            if not mark.label:
                continue
            kinds = kinds_by_label.setdefault(mark.label, {})
            if not mark.is_empty and position < kinds.get(type(mark), (len(marks), mark))[0]:
                kinds[type(mark)] = position, mark
    entries: list[tuple[Any, str]] = []
    for label, kinds in kinds_by_label.items():
        handles = tuple(mark.legend_handle() for _, mark in kinds.values())
        if handles:
            entries.append((handles if len(handles) > 1 else handles[0], label))
    return entries


# Styles of a mark that a legend does not take over.
_STYLES_OF_POSITION = ("zorder", "clip_on", "gid", "transform", "rasterized")


class _LineMark(Mark):
    """A mark that a line shows in the legend."""

    def legend_handle(self) -> Any:
        from matplotlib.lines import Line2D

        style = {name: value for name, value in self.style.items() if name not in _STYLES_OF_POSITION}
        return Line2D([], [], **(style | self.key))


class Line(_LineMark):
    """A line through points: `Line(x, y)`. NaN leaves a gap."""

    def draw(self, ax: Any) -> Iterable[Any]:
        return ax.plot(*self.coordinates, **self.style)


class Points(_LineMark):
    """A marker at each point: `Points(x, y, marker="o")`."""

    def __init__(self, *coordinates: ArrayLike, **style: Any) -> None:
        super().__init__(*coordinates, linestyle="none", **style)

    def draw(self, ax: Any) -> Iterable[Any]:
        return ax.plot(*self.coordinates, **self.style)


class VLine(_LineMark):
    """A vertical line across the axes: `VLine(x)`."""

    def draw(self, ax: Any) -> Iterable[Any]:
        return [ax.axvline(x, **self.style) for x in self.coordinates[0]]


class HLine(_LineMark):
    """A horizontal line across the axes: `HLine(y)`."""

    def draw(self, ax: Any) -> Iterable[Any]:
        return [ax.axhline(y, **self.style) for y in self.coordinates[0]]


class Segments(_LineMark):
    """Straight segments: `Segments(x, x, low, high)` are vertical, `Segments(low, high, y, y)` horizontal."""

    def draw(self, ax: Any) -> Iterable[Any]:
        from matplotlib.collections import LineCollection

        x_low, x_high, y_low, y_high = self.coordinates
        ends = np.stack([np.stack([x_low, y_low], axis=1), np.stack([x_high, y_high], axis=1)], axis=1)
        segments = LineCollection(list(ends), **self.style)
        ax.add_collection(segments, autolim=False)
        return [segments]

    def legend_handle(self) -> Any:
        handle = super().legend_handle()
        handle.set_solid_capstyle("butt")
        return handle


class _AreaMark(Mark):
    """A mark that a rectangle shows in the legend."""

    def legend_handle(self) -> Any:
        from matplotlib.patches import Patch

        style = {name: value for name, value in self.style.items() if name not in _STYLES_OF_POSITION}
        return Patch(**(style | self.key))


class Band(_AreaMark):
    """The area between two curves: `Band(x, low, high)`."""

    def draw(self, ax: Any) -> Iterable[Any]:
        return [ax.fill_between(*self.coordinates, **self.style)]


class VBand(_AreaMark):
    """The area between two vertical lines across the axes: `VBand(low, high)`."""

    def draw(self, ax: Any) -> Iterable[Any]:
        (low,), (high,) = self.coordinates
        return [ax.axvspan(low, high, **self.style)]


class Polygons(_AreaMark):
    """Polygons, each an array (vertices, 2): `Polygons(shapes)`. If each has a color, `key` has that of the legend."""

    def __init__(self, shapes: Sequence[Array], **style: Any) -> None:
        super().__init__(np.concatenate(shapes) if len(shapes) else np.empty(0), **style)
        self.shapes = shapes

    def draw(self, ax: Any) -> Iterable[Any]:
        from matplotlib.collections import PolyCollection

        polygons = PolyCollection(self.shapes, **self.style)
        ax.add_collection(polygons, autolim=False)
        return [polygons]


class Boxes(Polygons):
    """Rectangles between given edges: `Boxes(left, right, bottom, top)`, each (k,), or one number for all."""

    def __init__(self, left: ArrayLike, right: ArrayLike, bottom: ArrayLike, top: ArrayLike, **style: Any) -> None:
        x_low, x_high, y_low, y_high = np.broadcast_arrays(*map(np.atleast_1d, (left, right, bottom, top)))
        corners = [(x_low, y_low), (x_low, y_high), (x_high, y_high), (x_high, y_low)]
        super().__init__(list(np.array(corners, dtype=np.float64).transpose(2, 0, 1)), **style)


class Strip(_AreaMark):
    """A histogram in axes of their own along the lower edge: `Strip(low, high, share, max_share=…)`.

    `share` of the rows is between `low` and `high`, and `max_share` fills the `height` of the strip, a share of the
    height of the axes. Several strips stand above each other, each at its `bottom`.
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        share: ArrayLike,
        *,
        max_share: float,
        bottom: float = 0.0,
        height: float = styling.STRIP_HEIGHT,
        shows_max_share: bool = False,
        is_top: bool = True,
        **style: Any,
    ) -> None:
        super().__init__(low, high, share, **({"facecolor": styling.STRIP_COLOR, "layer": "strip"} | style))
        self.max_share, self.bottom, self.height = max_share, bottom, height
        self.shows_max_share, self.is_top = shows_max_share, is_top

    def draw(self, ax: Any) -> Iterable[Any]:
        strip = ax.inset_axes((0, self.bottom, 1, self.height), zorder=3)
        strip.set_label("strip")
        strip.set_xlim(ax.get_xlim())
        strip.set_ylim(0, self.max_share * 1.15)
        low, high, share = self.coordinates
        style = {"edgecolor": "white", "linewidth": 0.5} | self.style
        for boxes in Boxes(low, high, 0.0, share, **style).draw(strip):
            boxes.set_label("share")
        # A line marks bins as occupied even if they hold one row in a thousand.
        strip.hlines(np.zeros(len(low)), low, high, colors=self.style["facecolor"], linewidth=1.6, zorder=3)
        strip.set_xticks([])
        ticks = [self.max_share] if self.shows_max_share else []
        strip.set_yticks(ticks, map(format_share, ticks))
        strip.tick_params(
            labelsize=styling.font_size(ax) - 1.5,
            labelcolor=styling.MUTED_COLOR,
            length=2,
            width=0.8,
            color=styling.AXIS_LINE_COLOR,
            pad=2,
        )
        styling.style_strip(strip)
        if not self.is_top:
            strip.spines["top"].set_color("#D5DBE1")  # a fainter line between the strips of two models
        return []


class AxisStrip(Mark):
    """Ticks of a second scale in a strip along the lower edge: `AxisStrip(x, texts, title="score:")`.

    A text that would overlap the title or an earlier one is left out, with its tick if `omits_ticks`.
    """

    def __init__(
        self, x: ArrayLike, texts: Sequence[str], *, title: str, omits_ticks: bool = False, **style: Any
    ) -> None:
        super().__init__(x, **style)
        self.texts, self.title, self.omits_ticks = texts, title, omits_ticks

    @property
    def is_empty(self) -> bool:
        return False

    def draw(self, ax: Any) -> Iterable[Any]:
        strip = ax.inset_axes((0, 0, 1, styling.AXIS_STRIP_HEIGHT), zorder=3)
        strip.set_label("axis_strip")
        strip.set_xlim(ax.get_xlim())
        strip.set_ylim(0, 1)
        strip.set_xticks([])
        strip.set_yticks([])
        styling.style_strip(strip)
        first, last = strip.get_xlim()
        points_per_unit = styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0] / (last - first)
        font_size = styling.font_size(ax) - 1.5
        style = {"fontsize": font_size, "color": styling.MUTED_COLOR, "va": "center", "parse_math": False} | self.style
        strip.text(first + 4 / points_per_unit, 0.4, self.title, ha="left", **style)
        occupied = [(first, first + (styling.text_width(self.title, font_size) + 10) / points_per_unit)]
        for x, text in zip(self.coordinates[0], self.texts, strict=True):
            half_width = (styling.text_width(text, font_size) / 2 + 3) / points_per_unit
            middle = min(x, last - half_width)
            box = middle - half_width, middle + half_width
            has_text = all(box[1] <= left or box[0] >= right for left, right in occupied)
            if has_text:
                occupied.append(box)
                strip.text(middle, 0.4, text, ha="center", **style)
            if has_text or not self.omits_ticks:
                strip.plot([x, x], [0.72, 1], color=styling.AXIS_LINE_COLOR, linewidth=0.8, label="tick")
        return []


class Arrows(_LineMark):
    """Arrows in true length: `Arrows(tails, heads, width=…)`, (k, 2) each, with the width of the shaft in inches.

    An arrow shorter than `minlength` shafts is a dot.
    """

    def __init__(self, tails: Array, heads: Array, *, width: float, minlength: float = 1.0, **style: Any) -> None:
        super().__init__(*np.transpose(tails), *np.transpose(heads), **style)
        self.width, self.minlength = width, minlength

    def draw(self, ax: Any) -> Iterable[Any]:
        x, y, x_head, y_head = self.coordinates
        lengths = {"headwidth": 3.6, "headlength": 4.2, "headaxislength": 3.8, "minlength": self.minlength}
        units: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "inches"}
        return [ax.quiver(x, y, x_head - x, y_head - y, width=self.width, **units, **lengths, **self.style)]

    def legend_handle(self) -> Any:
        from matplotlib.lines import Line2D

        style = {"color": self.style["color"], "linewidth": 80 * self.width, "marker": ">", "markersize": 6.0}
        return Line2D([], [], **(style | self.key))


class Text(Mark):
    """A line of text: `Text(x, y, "words")`, with the arguments of `Axes.annotate`, such as `xycoords`."""

    def __init__(self, x: float, y: float, text: str, **style: Any) -> None:
        super().__init__(x, y, **({"color": styling.TEXT_COLOR} | style))
        self.text = text

    @property
    def is_empty(self) -> bool:
        return not self.text

    def draw(self, ax: Any) -> Iterable[Any]:
        (x,), (y,) = self.coordinates
        return [ax.annotate(self.text, (x, y), annotation_clip=False, parse_math=False, **self.style)]
