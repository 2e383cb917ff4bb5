"""Content of a diagram: the table of every plotted number, and the marks, layers, title and labels of its picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_lens_and_settings
from trueodds.core.json_files import strict_json
from trueodds.core.printable import printable_lines, printable_tree, to_printable
from trueodds.core.results import with_notes
from trueodds.core.table import to_data_frame
from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_level
from trueodds.diagrams._style.marks import LEGEND_SIZE, Mark, PanelSize, draw_marks, legend_entries
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.presentation import Presentation

COMMON_LAYERS = ("legend", "finding")  # that every diagram has beside its own
_LONG_LABELS = "long legend labels"  # internal layer that is left out in narrow axes


@dataclass(frozen=True, eq=False, repr=False)
class DiagramContent:
    """Every plotted number of a diagram in tidy columns, and the methods that each diagram overrides to draw them.

    See `Diagram`, the only direct subclass, for the fields. The two are separate because the layout code needs the
    content of a diagram, and `Diagram.draw` needs the layout code. A diagram overrides the class variables, `marks`
    and `set_axes`. The strip is the histogram of the predictions along the lower edge of a panel.
    """

    name: str
    lens: str
    table: Mapping[str, Array]
    panels: Mapping[str, Array]
    settings: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    without: frozenset[str] = frozenset()  # layers that are left out
    presentation: Presentation = field(default_factory=Presentation)

    question: ClassVar[str]  # that the diagram answers, unless it overrides `default_title`
    labels: ClassVar[tuple[str, str]]  # of the x axis and of the y axis, unless it overrides `axis_labels`
    layers: ClassVar[tuple[str, ...]] = ()  # names of the layers that `less` can leave out
    row_noun: ClassVar[str] = "bins"  # what the rows of the table stand for, as in "15 bins"
    view_order: ClassVar[str] = "largest error"  # which views come first, as in "largest error first"
    figure_size: ClassVar[tuple[float, float]] = (6.4, 4.6)  # width and height in inches of a figure with one panel
    label_width: ClassVar[float] = 1.0  # inches of tick and axis labels at the left of a figure with type of usual size
    strip_height: ClassVar[float] = 0.0  # height of the strip as a fraction of the height of the axes
    aspect_ratio: ClassVar[float] = 0.0  # height of a panel relative to its width; 0 if x and y have different units
    has_inset_axes: ClassVar[bool] = False  # whether a panel consists of several axes that fill it
    hides_axes: ClassVar[bool] = False  # whether panels have no ticks and set their own limits

    def frame(self) -> Any:
        """Return the table as a data frame.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed.
        """
        columns = {name: column.tolist() for name, column in self.table.items()}
        frame = to_data_frame(columns)
        if frame is columns:  # no data frame library is installed
            return {name: np.asarray(column) for name, column in self.table.items()}
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the diagram as strict JSON.

        Returns
        -------
        dict
            Table, panels, settings and notes, as the schema `trueodds.diagram/1` describes them.
        """
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
        """Describe the diagram in one line, without its notes.

        Returns
        -------
        str
            Name, number of table rows, sample size, lens and main settings.
        """
        n = int(np.max(self.panels["n"]))
        lens = format_lens_and_settings(self.lens, {"partition": self.settings.get("partition")})
        style = f", style {self.settings['style']}" if self.settings.get("style") else ""
        n_rows = len(self.table["view"])
        table_size = f"{n_rows:,} {self.row_noun if n_rows != 1 else self.row_noun.removesuffix('s')}"
        return to_printable(f"{self.name} · {table_size} · n={n:,} · {lens}{style}")

    def __str__(self) -> str:
        return with_notes(self.describe(), self.notes)

    __repr__ = describe  # the default repr would print whole arrays

    @property
    def finding(self) -> str:
        """The main result in one or two sentences; of several views, that of the first one."""
        return str(self.panels["finding"][0])

    def summary(self) -> str:
        """Return the finding, followed by the sample size, as under the title of the picture.

        Returns
        -------
        str
            One or a few sentences.
        """
        return f"{self.finding} n\u00a0=\u00a0{int(np.max(self.panels['n'])):,}."

    def rows(self, panel: int) -> dict[str, Array]:
        """Return the rows of the table that one panel draws.

        Parameters
        ----------
        panel : int
            Index into `panels`.

        Returns
        -------
        dict of str to ndarray
            The columns of these rows.
        """
        mask = self.table["view"] == self.panels["view"][panel]
        return {name: column[mask] for name, column in self.table.items()}

    def panel_values(self, panel: int) -> dict[str, Any]:
        """Return the row of `panels` that describes one panel.

        Parameters
        ----------
        panel : int
            Index into `panels`.

        Returns
        -------
        dict of str to object
            The value of each column, such as `title`, `finding` and the limits of the axes.
        """
        return {name: column[panel] for name, column in self.panels.items()}

    def less(self, *layers: str) -> Self:
        """Return the same diagram, drawn without some of its layers. The table is unchanged.

        Parameters
        ----------
        *layers : str
            Names from `layers`, or `legend` or `finding`.

        Returns
        -------
        Diagram
            A copy.

        Raises
        ------
        InputError
            TO203 for an unknown layer.
        """
        known_layers = (*self.layers, *COMMON_LAYERS)
        for layer in layers:
            if layer not in known_layers:
                fix = f"Use one of {', '.join(known_layers)}."
                raise InputError("TO203", f"The diagram {self.name} has no such layer.", describe(layer), fix)
        return replace(self, without=self.without | set(layers))

    def printable(self) -> Self:
        """Return the same diagram with control characters in names escaped."""
        title = self.presentation.title
        return replace(
            self,
            lens=to_printable(self.lens),
            table=_printable_columns(self.table),
            panels=_printable_columns(self.panels),
            settings=printable_tree(self.settings),
            presentation=replace(self.presentation, title=printable_lines(title) if isinstance(title, str) else title),
        )

    def has(self, layer: str) -> bool:
        """Tell whether a layer is drawn: False if `less` left it out."""
        return layer not in self.without

    @property
    def has_long_labels(self) -> bool:
        """Whether the axes are wide enough for long legend labels."""
        return self.has(_LONG_LABELS)

    def with_short_labels(self) -> Self:
        """Return the same diagram with short legend labels, for narrow axes."""
        return replace(self, without=self.without | {_LONG_LABELS})

    @insert_shared_parameters
    def present(
        self,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Self:
        """Return the same diagram with another title, size, resolution or legend.

        Parameters
        ----------
        title, figsize, dpi, legend : as in `Presentation`

        Returns
        -------
        Diagram
            A copy that keeps these options wherever it is drawn.

        Raises
        ------
        InputError
            TO203 for an invalid value.
        """
        changed = self.presentation.with_changes(title=title, figsize=figsize, dpi=dpi, legend=legend)
        return replace(self, presentation=changed)

    @property
    def has_equal_units(self) -> bool:
        """Whether matplotlib keeps equal units along x and y in a new figure."""
        return self.aspect_ratio > 0 and not self.hides_axes

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """Return the marks of all layers of one panel, in the order of the legend; line widths depend on the size."""
        raise NotImplementedError

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """Set the limits, ticks and grid of the axes of one panel, before its marks are drawn."""
        raise NotImplementedError

    def _drawn_marks(self, panel: int, size: PanelSize) -> list[Mark]:
        return [mark for mark in self.marks(panel, size) if self.has(mark.layer)]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one panel, given by its index into `panels`."""
        size = PanelSize.of(ax)
        self.set_axes(ax, panel, size)
        draw_marks(ax, self._drawn_marks(panel, size))

    def default_title(self) -> str:
        """Return the question that the diagram answers, which is the default title of a figure."""
        return self.question

    @property
    def picture_title(self) -> str:
        """The title that describes the picture in a page: the caller's or the default one, even if none is drawn."""
        return self.presentation.heading("") or self.default_title()

    def caption(self) -> str:
        """Return the default title of given axes: the name of the view, and its main result in a few words."""
        title = str(self.panels["title"][0])
        return f"{'P(event)' if title == 'positive' else title}: {self._caption_result()}"

    def _caption_result(self) -> str:
        """The main result of the first view in a few words, for the default title of given axes."""
        return str(self.panels["aside"][0])

    def legend(self) -> list[tuple[Any, str]]:
        """Return the handle and the label of each entry of the legend, those of the marks that the panels show."""
        return legend_entries(self._marks_in_legend)

    @cached_property
    def _marks_in_legend(self) -> list[list[Mark]]:
        return [self._drawn_marks(i, LEGEND_SIZE) for i in range(min(len(self.panels["view"]), MAX_PANELS))]

    def axis_labels(self) -> tuple[str, str]:
        """Return the labels of the x axis and of the y axis."""
        return self.labels

    @property
    def level_text(self) -> str:
        """The level of the bars, bands or tests, such as 95 %."""
        return format_level(self.settings["level"])

    @property
    def calibration_question(self) -> str:
        """The default title of a reliability diagram."""
        if self.lens == "confidence":
            return "Does confidence match accuracy?"
        return "Do predicted probabilities match observed frequencies?"

    @property
    def predicted_label(self) -> str:
        """The label of the axis of predicted probabilities."""
        return "Confidence" if self.lens == "confidence" else "Predicted probability"

    @property
    def observed_label(self) -> str:
        """The label of the axis of observed event rates."""
        return "Accuracy" if self.lens == "confidence" else "Observed frequency"


def _printable_columns(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns with control characters in their texts escaped."""
    printable = dict(columns)
    for name, column in columns.items():
        if column.dtype.kind in "OU":  # objects or strings
            values = [to_printable(value) if isinstance(value, str) else value for value in column.tolist()]
            printable[name] = np.array(values, column.dtype.kind)
    return printable
