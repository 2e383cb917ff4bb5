"""Headline, finding and legend above the panels of a picture, and how much of them fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueodds.diagrams.drawing import styling

if TYPE_CHECKING:
    from trueodds.diagrams.base import Diagram

SMALLEST = 6.3  # points of ordinary text; the legend is a point smaller
LINES = 4  # of a headline: what a caller gives may be longer
MAX_HEAD_HEIGHT = 0.32  # of the height of a figure of a given size: what headline, finding and legend may take
_HANDLE = 3.3  # of the type size: what the mark of a legend's entry takes, with the space around it


def legend_of(diagram: Diagram, room: float, size: float) -> Head:
    """The legend in axes that are given: its type as small as its words ask, down to what can be read."""
    heads = Head(diagram, "", "", room, size).in_smaller_type()
    head = next((head for head in heads if head.is_complete), heads[-1])
    return head if diagram.presentation.legend is not False else replace(head, legend=False)


def heads_of(diagram: Diagram, note: str, room: float, size: float) -> list[Head]:
    """What may stand above the panels of a figure, the most first: of a given size, with less where there is no room."""
    presentation = diagram.presentation
    own = presentation.title not in (None, True)
    headline = presentation.heading(diagram.headline())
    full = Head(
        diagram,
        headline,
        note if presentation.titled and diagram.has("finding") else "",
        room,
        size,
        legend=presentation.legend is not False,
    )
    if presentation.figsize is None:
        return [full]
    alone = replace(full, note="")
    small = replace(alone, larger=0.5)
    fewer = [small, replace(small, legend=False)] if own else [small, replace(small, headline="")]
    max_height = MAX_HEAD_HEIGHT * 72 * presentation.figsize[1]
    fitting = [head for head in (full, alone, *fewer) if head.height <= max_height and head.is_complete]
    return fitting or [replace(small, headline=headline if own else "", legend=False)]


@dataclass(frozen=True)
class Head:
    """Headline, finding and legend; each takes as many lines as it needs in `room` points."""

    diagram: Diagram
    headline: str
    note: str
    room: float
    size: float
    larger: float = 2.5  # points by which the type of the headline is
    legend: bool = True

    @cached_property
    def question(self) -> str:
        """The headline in lines."""
        size = self.size + self.larger
        lines = [
            line
            for part in self.headline.split("\n")
            for line in styling.wrapped(part, self.room, size, "bold").split("\n")
        ]
        if len(lines) > LINES:
            lines[LINES - 1 :] = [f"{lines[LINES - 1]} …"]
        return "\n".join(styling.shortened(line, self.room, size, "bold") for line in lines)

    @cached_property
    def finding(self) -> str:
        """The finding in lines."""
        return styling.wrapped(self.note, self.room, self.size)

    @cached_property
    def marks(self) -> list[tuple[Any, str]]:
        """The entries of the legend, names in it cut to the room; none where it is left out."""
        return [(mark, styling.shortened(label, self._label, self.size - 1)) for mark, label in self.every]

    @cached_property
    def every(self) -> list[tuple[Any, str]]:
        """The entries in full."""
        return self.diagram.legend() if self.legend and self.diagram.has("legend") else []

    @property
    def _label(self) -> float:
        """Points for the words of an entry, beside its mark."""
        return self.room - _HANDLE * (self.size - 1)

    @cached_property
    def columns(self) -> int:
        """The most columns whose legend entries fit beside each other."""
        for columns in range(len(self.marks), 1, -1):
            rows = -(-len(self.marks) // columns)
            even = rows * columns - len(self.marks) <= 1  # not three beside each other and one below
            if even and self.legend_size(columns)[0] <= self.room:
                return columns
        return 1

    def legend_size(self, columns: int) -> tuple[float, float]:
        """Points that the legend takes in so many columns."""
        widths = [styling.width(label, self.size - 1) + _HANDLE * (self.size - 1) for _, label in self.marks]
        rows = -(-len(widths) // columns)
        return sum(max(widths[i : i + rows]) for i in range(0, len(widths), rows or 1)), rows * 1.42 * (self.size - 1)

    def in_smaller_type(self) -> list[Head]:
        """The same in this size and ever smaller ones, down to what can be read."""
        steps = int(max(self.size - SMALLEST, 0.0) / 0.5)
        return [replace(self, size=self.size - 0.5 * i) for i in range(steps + 1)]

    @property
    def legend_height(self) -> float:
        """Points that the lines of the legend take."""
        return self.legend_size(self.columns)[1]

    @cached_property
    def rises(self) -> tuple[float, float, float, float]:
        """How far above the corner legend, finding and headline begin and all of it ends, in points."""
        legend = 0.55 * self.size
        finding = legend + self.legend_height + 0.45 * self.size
        question = finding + ((self.finding.count("\n") + 1) * 1.3 + 0.35) * self.size if self.finding else finding
        high = (self.question.count("\n") + 1) * 1.25 * (self.size + self.larger) if self.question else 0.0
        return legend, finding, question, question + high

    @property
    def height(self) -> float:
        """Points from the corner to the top."""
        return self.rises[3]

    @property
    def is_complete(self) -> bool:
        """Whether no entry is cut."""
        return all(
            label == styling.on_one_line(full) for (_, label), (_, full) in zip(self.marks, self.every, strict=True)
        )

    @property
    def legible(self) -> bool:
        """Whether the room holds a few words beside a mark."""
        return self._label >= 5 * self.size

    def put(self, figure: Any, where: Any, corner: tuple[float, float]) -> None:
        """Write it above a corner of `where`, from the bottom up; the layout must leave `height` for it."""
        from matplotlib.transforms import ScaledTranslation

        inches = figure.dpi_scale_trans
        legend, finding, question = (where + ScaledTranslation(0, up / 72, inches) for up in self.rises[:3])
        self.put_legend(figure, loc="lower left", bbox_to_anchor=corner, bbox_transform=legend, borderaxespad=0)
        style: dict[str, Any] = {"ha": "left", "va": "bottom", "linespacing": 1.22, "parse_math": False}
        if self.finding:
            figure.text(*corner, self.finding, transform=finding, fontsize=self.size, color=styling.FAINT, **style)
        if self.question:
            style |= {"fontsize": self.size + self.larger, "fontweight": "bold", "color": styling.TEXT}
            figure.text(*corner, self.question, transform=question, **style)

    def put_legend(self, target: Any, columns: int | None = None, **where: Any) -> Any:
        """The marks and what they mean, at a place."""
        if not self.marks:
            return None
        handles, labels = zip(*self.marks, strict=True)
        legend = target.legend(
            handles,
            [f"{i}" for i in range(len(labels))],  # an entry that begins with "_" would be left out
            ncols=columns or self.columns,
            frameon=False,
            fontsize=self.size - 1,
            labelcolor=styling.TEXT,
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
