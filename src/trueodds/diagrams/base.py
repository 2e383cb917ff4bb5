"""Base classes of pictures, which save what they draw, and of diagrams, which draw a table of every plotted number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any, ClassVar, Self

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, describe
from trueodds.core.json_files import strict_json
from trueodds.diagrams._style import draw_diagram
from trueodds.diagrams._style.publication import PublicationSize, fills_page, has_title, size_of_diagram
from trueodds.diagrams._style.rendering import (
    embed_svg,
    import_matplotlib,
    is_data_file,
    output_file,
    render,
    write_data_file,
    write_picture,
)
from trueodds.diagrams.diagram_content import DiagramContent
from trueodds.diagrams.presentation import Presentation


class SavableFigure:
    """A picture that can be saved: what `Diagram` and `DiagramGrid`, both frozen dataclasses, have in common."""

    presentation: Presentation
    id_letter: ClassVar[str]  # with which the ids of an SVG begin, because a hash may begin with a digit
    draw: Callable[..., Any]  # returns a new figure if it is called without arguments
    to_dict: Callable[[], dict[str, Any]]

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
        return self._embedded_svg(prefix, None)

    @insert_shared_parameters
    def save(
        self,
        path: str | Path,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
        style: str | None = None,
        width: float | str | None = None,
    ) -> None:
        """Write the picture as .svg, .png or .pdf, or its data as .csv or .json; equal numbers give an equal file.

        Parameters
        ----------
        path : str or Path
            The suffix selects the format: .csv has the columns of `frame`, and .json the content of `to_dict`.
        title, figsize : as in `Presentation`
        dpi : float, optional
            Pixels per inch, 200 by default for .png.
        legend : as in `Presentation`
        style : {"paper", "slide"}, optional
            What the picture is made for. ``"paper"``: a column of 3.3 inches with type of 8 points and no title, which
            the caption replaces. ``"slide"``: a whole slide of 10 by 5.6 inches with type of 18 points, title and
            legend at the left of a single panel. A grid is as wide as a page by default, and its type is smaller where
            many panels need the room.
        width : float, "column" or "page", optional
            Width in inches as printed. A page is 6.8 inches wide, a column of a slide 4.8. The height follows from it.

        Raises
        ------
        InputError
            TO203 for another suffix, for invalid values, for `figsize` with `style` or `width`, and for any of the
            settings with .csv or .json. TO703 if the file cannot be written.

        Notes
        -----
        With `style` or `width` a PDF embeds its fonts as TrueType (Type 42), so that text can be searched and edited.
        Text in an SVG is drawn as outlines, which look the same without the font; names that the font lacks, such as
        Chinese or Japanese ones, stay text for the fonts of the reader. All marks are vectors, unless one
        layer has more than 20,000 of them. A PNG has 300 pixels per inch in a paper, and 200 in other cases.
        """
        presentation = self.presentation.with_changes(title=title, figsize=figsize, dpi=dpi, legend=legend)
        file = output_file(path)
        picture_settings = {"title": title, "figsize": figsize, "dpi": dpi, "legend": legend}
        if is_data_file(file, picture_settings | {"style": style, "width": width}):
            write_data_file(file, self.to_dict(), strict_json(self._csv_columns()))
            return
        if style is None and width is None:
            self._with_presentation(presentation)._write(file, None)
            return
        import_matplotlib()
        if figsize is not None:
            fix = "Leave figsize out: the height follows from the width."
            raise InputError("TO203", "figsize excludes style and width.", describe(figsize), fix)
        if presentation.title is None and not has_title(style):
            presentation = replace(presentation, title=False)
        presented, publication = self._with_presentation(presentation)._for_publication(style, width)
        presented._write(file, publication)

    def _with_presentation(self, presentation: Presentation) -> Self:
        changed: Self = replace(self, presentation=presentation)  # type: ignore[type-var]
        return changed

    def _csv_columns(self) -> Mapping[str, Any]:
        """Return the columns of a .csv file."""
        raise NotImplementedError

    def _alternative_text(self) -> str:
        """Return the text that describes the picture to those who cannot see it."""
        raise NotImplementedError

    def _for_publication(self, style: str | None, width: float | str | None) -> tuple[Self, PublicationSize]:
        """Return the picture with the figure size that fits a style and a width in print, and that size."""
        raise NotImplementedError

    def _write(self, path: Path, publication: PublicationSize | None) -> None:
        """Write the picture in the format that the suffix of the file names."""
        write_picture(
            path,
            lambda: self._embedded_svg(None, publication),
            lambda file_format: self._render(file_format, publication),
        )

    def _embedded_svg(self, prefix: str | None, publication: PublicationSize | None) -> str:
        """Return the picture as an `<svg>` element with prefixed ids, in its usual size or one for a publication."""
        if prefix is None:
            prefix = self.id_letter + sha256(dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:10]
        return embed_svg(self._render("svg", publication).decode(), prefix, self._alternative_text())

    def _render(self, file_format: str, publication: PublicationSize | None) -> bytes:
        return render(self.draw, file_format, self.presentation.dpi, publication)

    def _repr_png_(self) -> bytes | None:
        """The picture for notebooks that cannot show SVG."""
        return self._render_for_notebook(lambda: self._render("png", None))

    @staticmethod
    def _render_for_notebook(draw_picture: Any) -> Any:
        """Return the picture for a notebook, or None without matplotlib, so that the notebook shows the text."""
        try:
            return draw_picture()
        except InputError:
            return None


class Diagram(DiagramContent, SavableFigure):
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

    id_letter = "d"

    @insert_shared_parameters
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
        title, figsize, dpi : as in `Presentation`
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
        draw_diagram.check_axes(ax, self.name, figsize, dpi)
        presented = self.present(title=title, figsize=figsize, dpi=dpi, legend=legend)
        return draw_diagram.draw_diagram(presented.printable(), ax)

    def interactive_parts(self) -> tuple[str, str] | None:
        """Return an interactive version of the picture.

        Returns
        -------
        tuple of str or None
            HTML and the script it needs. None if the diagram is static.
        """
        return None

    def _csv_columns(self) -> Mapping[str, Any]:
        return self.table

    def _alternative_text(self) -> str:
        printable = self.printable()
        return f"{printable.picture_title} {printable.finding}".replace("\n", " ")

    def _for_publication(self, style: str | None, width: float | str | None) -> tuple[Self, PublicationSize]:
        publication = size_of_diagram(self.printable(), style, width)
        presentation = replace(self.presentation, figsize=publication.figsize, side_header=fills_page(style, width))
        return replace(self, presentation=presentation), publication

    def _repr_html_(self) -> str | None:
        """The picture on a white card with the notes, which a notebook shows instead of the picture alone."""
        if not self.notes:
            return None
        from trueodds.core.notebook_html import frame_html, notes_html, picture_html

        svg = self._render_for_notebook(self.svg)
        return None if svg is None else frame_html(picture_html(svg, self.summary()), notes_html(self.notes))

    def _repr_svg_(self) -> str | None:
        return self._render_for_notebook(self.svg)
