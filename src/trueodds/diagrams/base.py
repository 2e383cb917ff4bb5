"""Base class of all diagrams: draws a table of every plotted number on matplotlib axes, and saves the picture."""

from __future__ import annotations

import os
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError
from trueodds.core.settings import check
from trueodds.diagrams._style import layout
from trueodds.diagrams._style.rendering import SAVED_DPI, embed_svg, import_matplotlib, render
from trueodds.diagrams.diagram_content import DiagramContent


class Diagram(DiagramContent):
    """A diagram: a table of every plotted number, with methods to draw, save and serialize it.

    `draw` computes nothing, leaves pyplot's state alone and ignores global rcParams when saving.

    Attributes
    ----------
    name : str
        Name of the diagram in the registry.
    lens : str
        The lens that gave the views, such as `confidence`, `classwise` or `class:NAME`.
    table : mapping of str to ndarray
        Read-only columns. Each row holds one mark of the picture.
    panels : mapping of str to ndarray
        Read-only columns, one row per view, in the order that `view_order` names.
    settings : mapping
        The settings that were used.
    notes : tuple of Note
        Coded facts about the data and the method.
    without : frozenset of str
        Layers that are left out of the picture.
    presentation : Presentation
        Title, figure size, resolution and legend.
    """

    def draw(
        self,
        ax: Any = None,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Any:
        """Draw the diagram on given axes or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. By default a new Figure is made.
        title : str or bool, optional
            A string replaces the title. False or "" removes the title and the summary below it.
        figsize : pair of float, optional
            Width and height of the new figure in inches.
        dpi : float, optional
            Pixels per inch of the new figure.
        legend : bool, optional
            False draws no legend. True draws one in given axes even where it covers data.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure
            The given axes, or the new figure.

        Raises
        ------
        InputError
            TO701 if matplotlib is not installed. TO203 if `ax` is not one Axes or already holds a diagram, if `figsize`
            or `dpi` is passed with `ax`, and for invalid values.

        Notes
        -----
        Several views form a grid of at most 12 panels, in the order that `view_order` names. In given axes the grid is
        drawn inside them. If they are too small for a grid, only the first view is drawn, and the title says so.

        Given axes keep their position and size. They get a short title, and a legend if it covers no data.
        `ax.legend()` places one anywhere. Nothing else in the figure changes.
        """
        import_matplotlib()
        layout.check_axes(ax, self.name, figsize, dpi)
        presented = self.present(title=title, figsize=figsize, dpi=dpi, legend=legend)
        return layout.draw_diagram(presented.printable(), ax)

    def svg(self, prefix: str | None = None) -> str:
        """Return the picture as a self-contained `<svg>` element, identical for identical numbers.

        Parameters
        ----------
        prefix : str, optional
            Prefix of every id, so that pictures on one page do not clash. By default a hash of the numbers.

        Returns
        -------
        str
            The element, with an alternative text.
        """
        if prefix is None:
            prefix = "d" + sha256(dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:10]
        matplotlib_svg, printable = self._render("svg").decode(), self.printable()
        return embed_svg(matplotlib_svg, prefix, f"{printable.picture_title} {printable.finding}".replace("\n", " "))

    def interactive_parts(self) -> tuple[str, str] | None:
        """Return an interactive version of the picture.

        Returns
        -------
        tuple of str or None
            HTML and the script it needs. None if the diagram is static.
        """
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
        """Write the picture as .svg, .png or .pdf; identical numbers give an identical file.

        Parameters
        ----------
        path : str or Path
            The suffix selects the format.
        title : str or bool, optional
            As in `draw`.
        figsize : pair of float, optional
            As in `draw`.
        dpi : float, optional
            Pixels per inch, 200 by default for .png.
        legend : bool, optional
            As in `draw`.

        Raises
        ------
        InputError
            TO203 for another suffix and for invalid values. TO703 if the file cannot be written.
        """
        self.present(title=title, figsize=figsize, dpi=dpi, legend=legend)._write(
            Path(check("path", path, str | os.PathLike))
        )

    def _write(self, path: Path) -> None:
        """Write the picture in the format that the suffix of the file names."""
        file_format = path.suffix.lower().removeprefix(".")
        if file_format not in ("svg", "png", "pdf"):
            problem = "The file name must end with .svg, .png or .pdf."
            raise InputError("TO203", problem, repr(path.name), "Add the ending.")
        if file_format == "svg":
            content = ('<?xml version="1.0" encoding="utf-8"?>\n' + self.svg()).encode()
        else:
            content = self._render(file_format)
        with open_atomic(path, "TO703") as file:
            file.write(content)

    def _render(self, file_format: str) -> bytes:
        """Draw the picture by matplotlib in this file format."""
        return render(self.draw, file_format, self.presentation.dpi or SAVED_DPI)

    def _repr_html_(self) -> str | None:
        """The picture on a white card with the notes, which a notebook shows in place of the picture alone."""
        if not self.notes:
            return None
        from trueodds.core.notebook_html import frame_html, notes_html, picture_html

        svg = self._render_for_notebook(self.svg)
        return None if svg is None else frame_html(picture_html(svg, self.summary), notes_html(self.notes))

    def _repr_svg_(self) -> str | None:
        """The picture as Jupyter shows it."""
        return self._render_for_notebook(self.svg)

    def _repr_png_(self) -> bytes | None:
        """The picture for notebooks that cannot show SVG."""
        return self._render_for_notebook(lambda: self._render("png"))

    @staticmethod
    def _render_for_notebook(draw_picture: Any) -> Any:
        """Return the picture for a notebook, or None without matplotlib, so that the notebook shows the text."""
        try:
            return draw_picture()
        except InputError:
            return None
