"""Base class of all diagrams: a frozen table of every plotted number, with methods to draw, save and serialize it."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, Note, describe, install_command
from trueodds.core.json_files import strict_json
from trueodds.core.printable import printable, printable_lines, printable_tree
from trueodds.core.results import with_notes
from trueodds.core.settings import check
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams._style.svg import embed_svg
from trueodds.diagrams.presentation import Presentation

_LONG_LABELS = "long legend labels"  # a layer that narrow pictures go without
_SAVED_DPI = 200.0  # of a saved picture, where none is given
_DIAGRAM_MARK = "_trueodds_drawn"  # on axes that are given: one of the marks, which is gone when they are cleared


@dataclass(frozen=True, eq=False, repr=False)
class Diagram:
    """A table of every number drawn, and how to draw it.

    `table` holds the marks, `panels` one row per view (by `ranked`, most first): both map column names to
    read-only arrays. Nothing is calculated while drawing, and pyplot is never touched.
    """

    name: str
    lens: str
    table: Mapping[str, Array]
    panels: Mapping[str, Array]
    settings: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    without: frozenset[str] = frozenset()  # layers that are not drawn
    presentation: Presentation = field(default_factory=Presentation)

    layers: ClassVar[tuple[str, ...]] = ()  # what can be left out of the picture, `less`
    size: ClassVar[tuple[float, float]] = (6.4, 4.6)  # inches, of a picture with one panel
    strip_height: ClassVar[float] = 0.0  # of the height of the axes: what the strip of predictions takes
    tall: ClassVar[float] = 0.0  # height of a panel in its widths, where units along x and y are equal
    divided: ClassVar[bool] = False  # whether a panel is made of several axes, which fill it
    bare: ClassVar[bool] = False  # whether panels have no ticks, and keep their own scale
    unit: ClassVar[str] = "bins"  # what a row of the table is
    ranked: ClassVar[str] = "largest error"  # which views come first

    def frame(self) -> Any:
        """The table as a pandas data frame, as Polars where pandas is absent, else as a dict of columns."""
        columns = {name: column.tolist() for name, column in self.table.items()}
        for library in ("pandas", "polars"):
            try:
                return importlib.import_module(library).DataFrame(columns)
            except ImportError:
                continue
        return {name: np.asarray(column) for name, column in self.table.items()}

    def to_dict(self) -> dict[str, Any]:
        """The diagram as strict JSON holds it."""
        return {
            "schema": "trueodds.diagram/1",
            "diagram": self.name,
            "lens": self.lens,
            "table": strict_json(self.table),
            "panels": strict_json(self.panels),
            "settings": strict_json(self.settings),
            "notes": [note.to_dict() for note in self.notes],
        }

    def describe(self) -> str:
        """The diagram in one line, without its notes."""
        n = int(np.max(self.panels["n"]))
        options = [str(self.settings[key]) for key in ("partition", "style") if self.settings.get(key)]
        rows = f"{len(self.table['view']):,} {self.unit}"
        return printable(f"{self.name} · {rows} · n={n:,} · {', '.join([self.lens, *options])}")

    def __str__(self) -> str:
        return with_notes(self.describe(), self.notes)

    __repr__ = describe  # arrays are no one-liner

    @property
    def equal(self) -> bool:
        """Whether units along x and y are equal in a figure of its own, because matplotlib keeps them so."""
        return self.tall > 0 and not self.bare

    @property
    def finding(self) -> str:
        """What the picture shows, in words; for a grid, of the first view."""
        return str(self.panels["finding"][0])

    @property
    def summary(self) -> str:
        """The finding, and of how many rows."""
        return f"{self.finding} n\u00a0=\u00a0{int(np.max(self.panels['n'])):,}."

    def rows(self, panel: int) -> dict[str, Array]:
        """The part of the table that one panel draws."""
        mask = self.table["view"] == self.panels["view"][panel]
        return {name: column[mask] for name, column in self.table.items()}

    def less(self, *layers: str) -> Self:
        """The same diagram, drawn without some of its `layers`, `legend` or `finding`; the table stays whole."""
        for layer in layers:
            if layer not in (known := (*self.layers, "legend", "finding")):
                fix = f"One of {', '.join(known)}."
                raise InputError("TO203", f"The diagram {self.name} has no such layer.", describe(layer), fix)
        return replace(self, without=self.without | set(layers))

    def printable(self) -> Self:
        """The same diagram for a picture or a page: no name in it holds a control character."""
        title = self.presentation.title
        return replace(
            self,
            lens=printable(self.lens),
            table=_printable(self.table),
            panels=_printable(self.panels),
            settings=printable_tree(self.settings),
            presentation=replace(self.presentation, title=printable_lines(title) if isinstance(title, str) else title),
        )

    def has(self, layer: str) -> bool:
        """Whether a layer is drawn."""
        return layer not in self.without

    @property
    def long_labels(self) -> bool:
        """Whether the legend has room for more than a few words in each entry."""
        return self.has(_LONG_LABELS)

    def with_short_labels(self) -> Self:
        """The same diagram for narrow axes, with the shortest labels in its legend."""
        return replace(self, without=self.without | {_LONG_LABELS})

    def present(
        self,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Self:
        """The same diagram with another title, size, resolution or legend wherever it is drawn; see `Presentation`.

        Raises TO203 for a value that they cannot have.
        """
        changed = self.presentation.updated(title=title, figsize=figsize, dpi=dpi, legend=legend)
        return replace(self, presentation=changed)

    def paint(self, ax: Any, panel: int) -> None:
        """Draw one panel."""
        raise NotImplementedError

    def headline(self) -> str:
        """The question that the picture answers."""
        raise NotImplementedError

    @property
    def name_of_picture(self) -> str:
        """The caller's title or the headline, also of a picture that shows neither."""
        return self.presentation.heading("") or self.headline()

    def caption(self) -> str:
        """The title over axes that are given: the view, and what was found in a few words."""
        return f"{self.panels['title'][0]}: {self.panels['aside'][0]}"

    def legend(self) -> list[tuple[Any, str]]:
        """The marks and what they mean."""
        raise NotImplementedError

    def axis_labels(self) -> tuple[str, str]:
        """What runs along x and along y."""
        raise NotImplementedError

    @property
    def calibration_question(self) -> str:
        """What a reliability diagram asks, in plain words."""
        if self.lens == "confidence":
            return "When it says 70\u00a0%, is it right 70\u00a0% of the time?"
        return "Does 70\u00a0% come true 70\u00a0% of the time?"

    @property
    def predicted_label(self) -> str:
        """What a probability axis shows."""
        return "confidence" if self.lens == "confidence" else "predicted probability"

    @property
    def observed_label(self) -> str:
        """What the axis of outcomes shows."""
        return "accuracy" if self.lens == "confidence" else "observed frequency"

    def draw(
        self,
        ax: Any = None,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Any:
        """Draw on the matplotlib axes given and return them; without any, on a new Figure, which is returned.

        Several views are a grid, in the order that `ranked` names, of at most 12 panels; in axes that are given the
        grid is drawn within them, and where they are too small for one the first view alone, as the title then says.

        Axes that are given keep their place and size. They get a compact title, and a legend where one covers no data;
        `ax.legend()` puts one anywhere. What else stands in the figure is left alone.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        title : str or bool, optional
            A string replaces the title, False or "" leaves title and finding out.
        figsize : pair of float, optional
            Width and height of the new figure in inches.
        dpi : float, optional
            Pixels per inch of the new figure.
        legend : bool, optional
            False leaves the legend out; True puts one into axes that are given wherever it covers least.

        Raises
        ------
        InputError
            TO701 where matplotlib is not installed; TO203 for anything but one Axes, for one with a diagram in it, for
            `figsize` or `dpi` beside `ax`, and for values that they cannot have.
        """
        _matplotlib()
        if ax is not None and (figsize is not None or dpi is not None):
            got = f"ax and {'dpi' if figsize is None else 'figsize'}"
            fix = "Leave out ax, or set them where the figure is made, as in plt.subplots(figsize=(5, 4))."
            raise InputError("TO203", "figsize and dpi are those of a figure of its own.", got, fix)
        if ax is not None and not hasattr(ax, "inset_axes"):
            raise InputError(
                "TO203",
                "ax is one matplotlib Axes.",
                describe(ax),
                "Pass one of them, such as ax=axes[0].",
            )
        if ax is not None and getattr(ax, _DIAGRAM_MARK, None) in [*ax.collections, *ax.lines, *ax.child_axes]:
            raise InputError(
                "TO203",
                "These axes hold a diagram already.",
                f"a second one, {self.name}",
                "Use axes of its own, or draw several models by the diagram comparison.",
            )
        presented = self.present(title=title, figsize=figsize, dpi=dpi, legend=legend)
        target = layout.draw_diagram(presented.printable(), ax)
        if ax is not None:
            setattr(ax, _DIAGRAM_MARK, next(iter([*ax.collections, *ax.lines, *ax.child_axes]), None))
        return target

    def svg(self, prefix: str | None = None) -> str:
        """The picture as an `<svg>` element to put into a page: self-contained, the same for the same numbers.

        Every id begins with `prefix`, by default a hash of the numbers, so that pictures do not mix on a page.
        """
        if prefix is None:
            prefix = "d" + sha256(dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:10]
        raw, shown = self._rendered("svg").decode(), self.printable()
        return embed_svg(raw, prefix, f"{shown.name_of_picture} {shown.finding}".replace("\n", " "))

    def live(self) -> tuple[str, str] | None:
        """The picture as HTML that answers a reader's hand, and the script it needs; None for one that stands still."""
        return None

    def save(
        self,
        path: str | Path,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> None:
        """Write the picture as .svg, .png or .pdf; the same numbers give the same file.

        `title`, `figsize`, `dpi` and `legend` are those of `draw`; a .png has 200 pixels per inch if not said.
        Raises TO203 for another ending and for values that they cannot have, TO703 where the file cannot be written.
        """
        self.present(title=title, figsize=figsize, dpi=dpi, legend=legend)._write(
            Path(check("path", path, str | os.PathLike))
        )

    def _write(self, path: Path) -> None:
        kind = path.suffix.lower().removeprefix(".")
        if kind not in ("svg", "png", "pdf"):
            raise InputError("TO203", "A picture is saved as .svg, .png or .pdf.", repr(path.name), "Add the ending.")
        if kind == "svg":
            made = ('<?xml version="1.0" encoding="utf-8"?>\n' + self.svg()).encode()
        else:
            made = self._rendered(kind)
        with open_atomic(path, "TO703") as file:
            file.write(made)

    def _rendered(self, kind: str) -> bytes:
        # A local context: a user's own style must not change what a report looks like.
        style = {
            "svg.hashsalt": "trueodds",
            "svg.fonttype": "path",
            "font.family": ["DejaVu Sans"],
            "font.size": 10.0,
            "axes.unicode_minus": True,
            "text.usetex": False,
            "text.color": "black",
        }
        stamps = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
        out = io.BytesIO()
        with _matplotlib().rc_context(style):
            dpi = self.presentation.dpi or _SAVED_DPI
            self.draw().savefig(out, format=kind, dpi=dpi, metadata=stamps[kind], facecolor="white")
        return out.getvalue()

    def _repr_svg_(self) -> str | None:
        return self._shown(self.svg)

    def _repr_png_(self) -> bytes | None:
        return self._shown(lambda: self._rendered("png"))

    @staticmethod
    def _shown(render: Any) -> Any:
        """The picture for a notebook; without matplotlib the notebook shows the line of text."""
        try:
            return render()
        except InputError:
            return None


def _printable(columns: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name: np.array(
            [printable(value) if isinstance(value, str) else value for value in column.tolist()], column.dtype.kind
        )
        if column.dtype.kind in "OU"
        else column
        for name, column in columns.items()
    }


def _matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ImportError:
        raise InputError("TO701", "Drawing needs matplotlib.", "no matplotlib", install_command("report")) from None
