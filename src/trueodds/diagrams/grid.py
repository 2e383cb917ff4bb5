"""A grid of models and diagrams in one picture, in which the models share the axes of a diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import VERSION_SEPARATOR
from trueodds.core.notebook_html import frame_html, notes_html, picture_html, result_html
from trueodds.core.printable import to_printable
from trueodds.core.results import with_notes
from trueodds.core.settings import Count, check
from trueodds.core.table import to_data_frame
from trueodds.core.typing import Array
from trueodds.diagrams._style import grid_of_models
from trueodds.diagrams._style.publication import PublicationSize, printed_width
from trueodds.diagrams._style.rendering import import_matplotlib
from trueodds.diagrams.base import Diagram, SavableFigure
from trueodds.diagrams.diagram_content import COMMON_LAYERS
from trueodds.diagrams.presentation import Presentation
from trueodds.diagrams.table_columns import stack_tables

MAX_CELLS = 24  # more are illegible on a page
# Columns of `panels` that hold limits of an axis or the largest value of a strip: all models share the widest ones. A
# diagram with other such columns adds them here.
_LOWEST_COLUMNS = ("y_low", "delta_low", "gamma_low")
_HIGHEST_COLUMNS = ("y_high", "delta_high", "gamma_high", "tallest", "tallest_rate", "top")


@dataclass(frozen=True, eq=False, repr=False)
class DiagramGrid(SavableFigure):
    """Several models by one or several diagrams in one picture, with methods to draw, save and serialize it.

    Several diagrams have a row per model and a column per diagram. The models of a single diagram fill the rows of the
    grid in turn; versions of several models have a row per model and a column per version.

    Attributes
    ----------
    models : tuple of str
        The models.
    diagrams : tuple of Diagram
        The diagrams. The views of each are the models.
    presentation : Presentation
        Title, figure size, resolution and legend.
    ncols : int or None
        Number of columns of models of a single diagram. None chooses it by the width of the figure.
    versions : tuple of str
        Names of the versions of each model, which are the columns of a single diagram; empty without versions.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p, q = [0, 1, 1], [0.2, 0.7, 0.9], [0.4, 0.6, 0.5]
    >>> to.draw(y, {"a": p, "b": q}, ["reliability", "cumulative"])
    grid · 2 models × 2 diagrams (reliability, cumulative) · n=3
    """

    id_letter: ClassVar[str] = "g"

    models: tuple[str, ...]
    diagrams: tuple[Diagram, ...]
    presentation: Presentation = field(default_factory=Presentation)
    ncols: int | None = None
    versions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ncols is None:
            return
        if len(self.diagrams) != 1:
            fix = "Leave ncols out, or pass a single diagram."
            raise InputError("TO203", "Several diagrams have a column each.", f"ncols={describe(self.ncols)}", fix)
        object.__setattr__(self, "ncols", check("ncols", self.ncols, Count))

    def _n_model_columns(self, width: float | None) -> int:
        """Return the number of columns of models in a figure of this width in inches, or in one of usual width."""
        if len(self.diagrams) > 1:
            return 1
        if self.ncols is None and self.versions:
            return len(self.versions)
        return min(self.ncols or grid_of_models.choose_model_columns(len(self.models), width), len(self.models))

    def _grid_names(self) -> grid_of_models.GridNames:
        """Return the names of rows and columns, or of every panel if the columns are not the versions of the models."""
        models = tuple(to_printable(name) for name in self.models)
        if not self.versions or self.ncols not in (None, len(self.versions)):
            return grid_of_models.GridNames(models, models)
        versions = tuple(to_printable(name) for name in self.versions)
        suffix_length = len(VERSION_SEPARATOR) + len(self.versions[0])
        # The names of the first version of each model, without that version.
        rows = tuple(to_printable(name[:-suffix_length]) for name in self.models[:: len(versions)])
        return grid_of_models.GridNames(models, rows, versions)

    @property
    def notes(self) -> tuple[Note, ...]:
        return tuple(dict.fromkeys(note for diagram in self.diagrams for note in diagram.notes))

    def describe(self) -> str:
        """Describe the grid in one line, without its notes."""
        names = ", ".join(diagram.name for diagram in self.diagrams)
        plural = "s" * (len(self.diagrams) > 1)
        n = max(int(np.max(diagram.panels["n"])) for diagram in self.diagrams)
        return to_printable(
            f"grid · {len(self.models)} models × {len(self.diagrams)} diagram{plural} ({names}) · n={n:,}"
        )

    __repr__ = describe

    def __str__(self) -> str:
        return with_notes(self.describe(), self.notes)

    def frame(self) -> Any:
        """Return the plotted numbers of all cells in one data frame.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A row per mark, with the columns `diagram` and `model`. Columns that a diagram does not have are empty in
            its rows. A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed.
        """
        return to_data_frame(self._csv_columns())

    def _csv_columns(self) -> dict[str, list[Any]]:
        """Return the plotted numbers of all cells as columns, with None where a diagram does not have a column."""
        tables: list[dict[str, list[Any]]] = []
        for diagram in self.diagrams:
            table: dict[str, list[Any]] = {"diagram": [diagram.name] * len(diagram.table["view"])}
            for name, column in diagram.table.items():
                table["model" if name == "view" else name] = column.tolist()  # the views are the models
            tables.append(table)
        columns: dict[str, list[Any]] = {name: [] for table in tables for name in table}
        for table in tables:
            missing = [None] * len(table["diagram"])
            for name, values in columns.items():
                values += table.get(name, missing)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the grid as strict JSON.

        Returns
        -------
        dict
            The models, and each diagram as the schema `trueodds.diagram/1` describes it.
        """
        return {
            "schema": "trueodds.diagram_grid/1",
            "models": list(self.models),
            "diagrams": [diagram.to_dict() for diagram in self.diagrams],
        }

    def less(self, *layers: str) -> DiagramGrid:
        """Return the same grid, drawn without some layers of the diagrams that have them.

        Parameters
        ----------
        *layers : str
            Names of layers, `legend`, or `finding`, the sentence below the title.

        Returns
        -------
        DiagramGrid
            A copy.

        Raises
        ------
        InputError
            TO203 for a layer that no diagram has.
        """
        known = {*(layer for diagram in self.diagrams for layer in diagram.layers), *COMMON_LAYERS}
        for layer in layers:
            if layer not in known:
                fix = f"Use one of {', '.join(sorted(known))}."
                raise InputError("TO203", "No diagram of the grid has this layer.", describe(layer), fix)
        reduced = [
            diagram.less(*(layer for layer in layers if layer in (*diagram.layers, *COMMON_LAYERS)))
            for diagram in self.diagrams
        ]
        return replace(self, diagrams=tuple(reduced))

    @insert_shared_parameters
    def draw(
        self,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Any:
        """Draw the grid on a new figure.

        Parameters
        ----------
        title : str or bool, optional
            A string is written above the grid, which has no title by default.
        figsize, dpi : as in `Presentation`
        legend : bool, optional
            False draws no legends.

        Returns
        -------
        matplotlib.figure.Figure
            The new figure.

        Raises
        ------
        InputError
            TO701 if matplotlib is not installed. TO203 for invalid values, such as a figure that is too small.
        """
        import_matplotlib()
        presentation = self.presentation.with_changes(title=title, figsize=figsize, dpi=dpi, legend=legend)
        width = None if presentation.figsize is None else presentation.figsize[0]
        return grid_of_models.draw_grid(
            self._drawn_diagrams(), self._grid_names(), presentation, self._n_model_columns(width)
        )

    def _for_publication(self, style: str | None, width: float | str | None) -> tuple[Self, PublicationSize]:
        """Return the grid, as wide as a page by default, with its figure size and columns, and the size."""
        width = "page" if width is None else width
        n_columns = self._n_model_columns(printed_width(style, width))
        publication = grid_of_models.size_of_grid(
            self._drawn_diagrams(), self._grid_names(), self.presentation, style, width, n_columns
        )
        presentation = replace(self.presentation, figsize=publication.figsize)
        ncols = n_columns if len(self.diagrams) == 1 else None
        return replace(self, presentation=presentation, ncols=ncols), publication

    def _drawn_diagrams(self) -> list[Diagram]:
        """Return the diagrams as they are drawn: with short labels, and without numbers that would cover the marks."""
        return [
            diagram.less(*(layer for layer in diagram.layers if layer == "numbers")).with_short_labels().printable()
            for diagram in self.diagrams
        ]

    def _alternative_text(self) -> str:
        findings = [
            f"{model}, {diagram.name.replace('_', ' ')}: {diagram.panels['finding'][row]}"
            for row, model in enumerate(self.models)
            for diagram in self.diagrams
        ]
        return to_printable(" ".join(findings))

    def _repr_html_(self) -> str:
        svg = self._render_for_notebook(self.svg)
        if svg is None:
            return result_html(self.describe(), self.notes)
        return frame_html(picture_html(svg, self._alternative_text()), notes_html(self.notes))


def stack_models(diagrams: Mapping[str, Diagram]) -> Diagram:
    """Combine the diagrams of several models, each with one view, into one diagram whose views are the models.

    `diagrams` holds them by the name of the model. The models share the limits of their axes. Raises TO205 for a
    diagram with several views.
    """
    panels: list[dict[str, Array]] = []
    tables: list[dict[str, Array]] = []
    for model, diagram in diagrams.items():
        if len(diagram.panels["view"]) != 1:
            raise InputError(
                "TO205",
                "A grid draws one view of each model.",
                f"{len(diagram.panels['view'])} views of {diagram.name} through the lens {diagram.lens}",
                "Use a lens with one view, such as ⟨lens='confidence'⟩ or 'class:NAME'.",
            )
        name_column = np.array([model], dtype=object)
        panels.append({**diagram.panels, "view": name_column, "title": name_column})
        tables.append({**diagram.table, "view": np.full(len(diagram.table["view"]), model, dtype=object)})
    joined_panels = stack_tables(panels)
    for names, shared_limit in ((_LOWEST_COLUMNS, np.min), (_HIGHEST_COLUMNS, np.max)):
        for name in names:
            if name in joined_panels:
                joined_panels[name] = np.full(len(diagrams), shared_limit(joined_panels[name]))
    models_of_note: dict[Note, list[str]] = {}
    for model, diagram in diagrams.items():
        for note in diagram.notes:
            models_of_note.setdefault(note, []).append(model)
    notes = tuple(
        note if len(models) == len(diagrams) else replace(note, text=f"{', '.join(models)}: " + note.text)
        for note, models in models_of_note.items()
    )
    first = next(iter(diagrams.values()))
    return replace(first, table=stack_tables(tables), panels=joined_panels, notes=notes)
