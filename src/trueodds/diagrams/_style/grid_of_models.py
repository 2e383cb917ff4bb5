"""Draw a grid, as `draw` makes it of several models: a column for each diagram, whose models share its axes.

A single diagram may have several columns of models. Lengths are in inches, and type sizes in points. The constants only
shape pictures: after a change, look at the gallery and store the images of `tests/diagrams` again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueodds.core.errors import InputError
from trueodds.diagrams._style import draw_diagram, styling
from trueodds.diagrams._style.publication import USUAL_ASPECT_RATIO, PublicationSize, choose_publication_size
from trueodds.diagrams._style.styling import POINTS_PER_INCH, TEXT_COLOR
from trueodds.diagrams._style.title_and_legend import MIN_FONT_SIZE, Header, attach_legend_entries, fit_legend
from trueodds.diagrams.presentation import Presentation

if TYPE_CHECKING:
    from trueodds.diagrams.diagram_content import DiagramContent

USUAL_PANEL_WIDTH = 2.3  # inches of a panel in a new figure
MIN_PANEL_SIDE = 0.5  # inches: smaller panels are illegible
# Inches for the names of the models, for the ticks and labels of the y axes, and for those of the x axes.
ROW_LABEL_WIDTH, Y_LABEL_WIDTH, X_LABEL_HEIGHT = 0.24, 0.66, 0.46
RIGHT_MARGIN, ROW_GAP, COLUMN_GAP = 0.12, 0.24, 0.12
WRAPPED_COLUMN_GAP = 0.2  # inches between panels without labels of the y axis
# Inches of a figure from which on a single diagram has 2, 3 and 4 columns of models.
MIN_WIDTHS_OF_COLUMNS = 2.6, 5.0, 8.5
MAX_USUAL_MODELS = 9  # more models have four columns in a new figure
LABEL_OVERHANG = 0.5  # inches by which legends and names begin left of their panels, above the labels of the y axis
LEGIBLE_PANEL_SIDE = 0.9  # inches of a panel below which the type of a publication is reduced, to make room
_TYPE_DIVISORS = tuple(1 + step / 8 for step in range(13))  # down to 40 % of the size of the style
LINE_HEIGHT = 1.5  # height of a line of text in type sizes
NAME_LINE_HEIGHT = 1.25  # height of each further line of a name in type sizes
_TEXT_STYLE: dict[str, Any] = {"color": TEXT_COLOR, "parse_math": False}


@dataclass(frozen=True)
class GridNames:
    """The names in a grid."""

    models: tuple[str, ...]  # of every panel of a diagram
    rows: tuple[str, ...]  # at the left
    versions: tuple[str, ...] = ()  # of the columns, if the rows are models and the columns their versions

    def stand_above_panels(self, n_model_columns: int) -> bool:
        """Whether every panel has the name of its model above it."""
        return n_model_columns > 1 and not self.versions

    def stand_at_left(self, n_model_columns: int) -> bool:
        """Whether every row has a name at the left."""
        return not self.stand_above_panels(n_model_columns) and any(self.rows)


@dataclass(frozen=True)
class GridOfModels:
    """Positions of the panels of a grid in a figure of this width."""

    columns: Sequence[DiagramContent]  # one for each diagram, whose views are the models
    names: GridNames
    presentation: Presentation
    width: float
    n_model_columns: int = 1  # more than one if the models of a single diagram stand beside each other

    @property
    def n_models(self) -> int:
        """Number of models, each version of a model included."""
        return len(self.names.models)

    @property
    def is_wrapped(self) -> bool:
        return self.n_model_columns > 1

    @property
    def has_panel_names(self) -> bool:
        return self.names.stand_above_panels(self.n_model_columns)

    @property
    def has_row_labels(self) -> bool:
        return self.names.stand_at_left(self.n_model_columns)

    @property
    def n_rows(self) -> int:
        return -(-self.n_models // self.n_model_columns)

    @cached_property
    def panel_names(self) -> FittedNames:
        """Names above the panels, of every model or of the versions in the first row, fitted to the panels."""
        names = self.names.versions or (self.names.models if self.has_panel_names else ())
        return fit_names(names, POINTS_PER_INCH * self.panel_width, self.font_size + 0.5)

    @cached_property
    def extra_name_height(self) -> float:
        """Height of the lines of the longest name above a panel beyond the first line."""
        lines_points = (self.panel_names.n_lines - 1) * NAME_LINE_HEIGHT * self.panel_names.size
        return lines_points / POINTS_PER_INCH

    @property
    def row_gap(self) -> float:
        """Height between two rows of panels, with the names of the models if every panel has one."""
        return ROW_GAP + self.extra_name_height * self.has_panel_names

    def fit_row_names(self, panel_height: float) -> FittedNames:
        """Names of the rows, fitted to panels of this height."""
        return fit_names(self.names.rows, POINTS_PER_INCH * (panel_height + ROW_GAP / 2), self.font_size + 1)

    @property
    def n_columns(self) -> int:
        return len(self.columns) * self.n_model_columns

    @cached_property
    def left_margin(self) -> float:
        """Width of the names at the left, in as many lines as panels of usual shape require."""
        if not self.has_row_labels:
            return 0.0
        panel_width = self._panel_width(ROW_LABEL_WIDTH)
        size = styling.font_size_for_width(panel_width)
        points = POINTS_PER_INCH * (panel_width * self.aspect_ratio + ROW_GAP / 2)
        extra_lines = fit_names(self.names.rows, points, size + 1).n_lines - 1
        return ROW_LABEL_WIDTH + extra_lines * NAME_LINE_HEIGHT * size / POINTS_PER_INCH

    @property
    def aspect_ratio(self) -> float:
        """Usual height of a panel relative to its width."""
        return max(column.aspect_ratio or USUAL_ASPECT_RATIO for column in self.columns)

    @property
    def column_gap(self) -> float:
        """Width between two columns, without labels of the y axis."""
        return _column_gap(self.n_model_columns)

    @cached_property
    def panel_width(self) -> float:
        return self._panel_width(self.left_margin)

    def _panel_width(self, left_margin: float) -> float:
        """Width of every panel beside a margin of this width."""
        n = self.n_columns
        labels = _y_labels_width(self.columns)
        return (self.width - left_margin - labels - RIGHT_MARGIN - self.column_gap * (n - 1)) / n

    @cached_property
    def font_size(self) -> float:
        return styling.font_size_for_width(self.panel_width)

    @cached_property
    def legends(self) -> list[Header]:
        panels_width = self.n_model_columns * (self.panel_width + self.column_gap) - self.column_gap
        width = POINTS_PER_INCH * (panels_width + LABEL_OVERHANG)
        return [
            fit_legend(column.present(legend=self.presentation.legend), width, self.font_size)
            for column in self.columns
        ]

    @property
    def title(self) -> str:
        """The title above the grid; empty by default."""
        return self.presentation.title if isinstance(self.presentation.title, str) else ""

    @cached_property
    def header_height(self) -> float:
        """Height of the title, the names of the columns, the legends, and the results above the first row."""
        legend_height = max(header.legend_height for header in self.legends)
        title_lines = 1.6 * bool(self.title)
        lines = 1.4 * self.has_diagram_headings + title_lines
        lines_height = lines * LINE_HEIGHT * self.font_size / POINTS_PER_INCH
        return legend_height / POINTS_PER_INCH + lines_height + self.result_height

    @property
    def result_height(self) -> float:
        """Height between the legends and the first row: the results of the models, and their names in larger type."""
        lines = 1.4 if self.has_panel_names else 2.3 if self.names.versions else 0.9
        return lines * LINE_HEIGHT * self.font_size / POINTS_PER_INCH + self.extra_name_height

    @property
    def has_diagram_headings(self) -> bool:
        """Whether the diagrams have headings; the title replaces that of a single diagram."""
        return len(self.columns) > 1 or self.presentation.title is None or self.presentation.title is True

    def x_label_width(self, column: int) -> float:
        """Width in inches for the label of the x axis of a column."""
        is_last = column == len(self.columns) - 1 and not self.is_wrapped
        return self.panel_width + (2 * RIGHT_MARGIN if is_last else 0.0 if self.is_wrapped else LABEL_OVERHANG)

    def x_label(self, column: int) -> str:
        """Label of the x axis of a column, wrapped."""
        text, points = self.columns[column].axis_labels()[0], POINTS_PER_INCH * self.x_label_width(column)
        return styling.wrap_text(text, points, self.font_size)

    @cached_property
    def x_label_height(self) -> float:
        """Height of the ticks and labels of the x axes."""
        n_lines = max(self.x_label(column).count("\n") for column in range(len(self.columns)))
        return X_LABEL_HEIGHT + n_lines * LINE_HEIGHT * self.font_size / POINTS_PER_INCH

    @property
    def usual_height(self) -> float:
        """Height of a figure whose panels have their usual shape."""
        panels = self.n_rows * self.panel_width * self.aspect_ratio + (self.n_rows - 1) * self.row_gap
        return self.header_height + panels + self.x_label_height

    def panel_height(self, height: float) -> float:
        return (height - self.header_height - self.x_label_height - (self.n_rows - 1) * self.row_gap) / self.n_rows

    def left_edge(self, column: int, model: int = 0) -> float:
        """Left edge of the panel of a diagram and a model."""
        labels = _y_labels_width(self.columns[: column + 1])
        panel_column = column + model % self.n_model_columns
        return self.left_margin + labels + panel_column * (self.panel_width + self.column_gap)


def usual_width(columns: Sequence[DiagramContent], names: GridNames, n_model_columns: int) -> float:
    gap = _column_gap(n_model_columns)
    panels = len(columns) * n_model_columns * (USUAL_PANEL_WIDTH + gap) - gap
    row_labels = ROW_LABEL_WIDTH * names.stand_at_left(n_model_columns)
    return row_labels + _y_labels_width(columns) + panels + RIGHT_MARGIN


def _column_gap(n_model_columns: int) -> float:
    """Width between two columns, without labels of the y axis."""
    return WRAPPED_COLUMN_GAP if n_model_columns > 1 else COLUMN_GAP


def _y_labels_width(columns: Sequence[DiagramContent]) -> float:
    return sum(Y_LABEL_WIDTH for column in columns if not column.hides_axes)


def choose_model_columns(n_models: int, width: float | None) -> int:
    """Number of columns of models of a single diagram in a figure of this width in inches, or in one of usual width.

    The rows have the same number of models where possible.
    """
    if width is None:
        max_columns = 3 if n_models <= MAX_USUAL_MODELS else 4
    else:
        max_columns = 1 + sum(width >= min_width for min_width in MIN_WIDTHS_OF_COLUMNS)
    n_rows = -(-n_models // max_columns)
    return -(-n_models // n_rows)


def size_of_grid(
    columns: Sequence[DiagramContent],
    names: GridNames,
    presentation: Presentation,
    style: str | None,
    width: Any,
    n_model_columns: int,
) -> PublicationSize:
    """Choose the size of a figure for a paper or a slide."""

    def arrangement(design_width: float) -> GridOfModels:
        return GridOfModels(columns, names, presentation, design_width, n_model_columns)

    def usual_height(design_width: float) -> float:
        grid = arrangement(design_width)
        return grid.usual_height if grid.panel_width > MIN_PANEL_SIDE else MIN_PANEL_SIDE

    for divisor in _TYPE_DIVISORS:
        size = choose_publication_size(
            style,
            width,
            usual_height,
            lambda design_width, _, divisor=divisor: divisor * arrangement(design_width).font_size,
        )
        grid = arrangement(size.figsize[0])
        if min(grid.panel_width, grid.panel_height(size.figsize[1])) >= LEGIBLE_PANEL_SIDE:
            break
    return size


def draw_grid(
    columns: Sequence[DiagramContent], names: GridNames, presentation: Presentation, n_model_columns: int
) -> Any:
    """Draw the models, as views of each diagram in `columns`, in a new figure."""
    width = usual_width(columns, names, n_model_columns) if presentation.figsize is None else presentation.figsize[0]
    grid = GridOfModels(columns, names, presentation, width, n_model_columns)
    if grid.panel_width < MIN_PANEL_SIDE:
        raise _too_small_error(presentation)
    height = grid.usual_height if presentation.figsize is None else presentation.figsize[1]
    panel_height = grid.panel_height(height)
    if panel_height < MIN_PANEL_SIDE:
        raise _too_small_error(presentation)
    figure = draw_diagram.new_figure(presentation.dpi, width, height)
    for number, diagram in enumerate(columns):
        left = grid.left_edge(number)
        _draw_column(figure, grid, number, height)
        legend, legend_left = grid.legends[number], left - LABEL_OVERHANG * (not diagram.hides_axes)
        top = height - grid.header_height
        above_aside = (top + grid.result_height) / height
        legend.draw_legend(
            figure, loc="lower left", bbox_to_anchor=(legend_left / width, above_aside),
            bbox_transform=figure.transFigure, borderaxespad=0,
        )  # fmt: skip
        if not grid.has_diagram_headings:
            continue
        name_bottom = above_aside + (legend.legend_height + 0.4 * grid.font_size) / POINTS_PER_INCH / height
        name = diagram.name.replace("_", " ").capitalize()
        size = grid.font_size + 1
        name = styling.shorten_text(name, legend.max_width, size, "bold")
        figure.text(
            legend_left / width, name_bottom, name, fontsize=size, fontweight="bold", va="bottom", **_TEXT_STYLE
        )
    if grid.title:
        size = grid.font_size + 2.5
        title = styling.shorten_text(grid.title, POINTS_PER_INCH * (width - grid.left_edge(0)), size, "bold")
        top = 1 - 0.4 * grid.font_size / POINTS_PER_INCH / height
        figure.text(grid.left_edge(0) / width, top, title, fontsize=size, fontweight="bold", va="top", **_TEXT_STYLE)
    return figure


def _draw_column(figure: Any, grid: GridOfModels, number: int, height: float) -> None:
    """Draw one diagram of every model, with shared axes; the first column has the names of the rows."""
    diagram = grid.columns[number]
    panel_width, panel_height = grid.panel_width, grid.panel_height(height)
    if diagram.has_equal_units:
        panel_width = min(panel_width, panel_height / diagram.aspect_ratio)
    size = grid.font_size
    y_label = diagram.axis_labels()[1]
    shared: dict[str, Any] = {}
    row_names = grid.fit_row_names(panel_height)
    for i in range(grid.n_models):
        row, left = i // grid.n_model_columns, grid.left_edge(number, i)
        bottom = height - grid.header_height - panel_height - row * (panel_height + grid.row_gap)
        rectangle = (left / grid.width, bottom / height, panel_width / grid.width, panel_height / height)
        panel = figure.add_axes(rectangle, **shared)
        shared = shared or {"sharex": panel, "sharey": panel}
        diagram.draw_panel(panel, i)
        if diagram.has_equal_units:
            panel.set_aspect("equal", adjustable="box", anchor="NW")
        _name_panel(panel, grid, i, str(diagram.panels["aside"][i]), POINTS_PER_INCH * panel_width)
        is_last, is_first = i + grid.n_model_columns >= grid.n_models, i % grid.n_model_columns == 0
        if not diagram.hides_axes:
            panel.tick_params(labelbottom=is_last, labelleft=is_first)
            if is_first:
                label, label_size = draw_diagram.fit_label(
                    y_label, POINTS_PER_INCH * (panel_height + ROW_GAP / 2), size
                )
                panel.set_ylabel(label, fontsize=label_size, **_TEXT_STYLE)
            if is_last:
                panel.set_xlabel(grid.x_label(number), fontsize=size, **_TEXT_STYLE)
        if i == 0:
            attach_legend_entries(panel, diagram.legend())
        if number == 0 and is_first and grid.has_row_labels:
            middle = (bottom + panel_height / 2) / height
            figure.text(
                grid.left_margin / 2 / grid.width, middle, row_names.names[row], fontsize=row_names.size,
                fontweight="bold", rotation="vertical", ha="center", va="center", multialignment="center",
                **_TEXT_STYLE,
            )  # fmt: skip


def _name_panel(panel: Any, grid: GridOfModels, i: int, result: str, max_width: float) -> None:
    """Write the name of a panel at the left, if it has one, and its result at the right if it fits."""
    names = grid.panel_names
    name = names.names[i] if i < len(names.names) else ""
    last_line = name.rpartition("\n")[2]
    if name and grid.names.versions:  # these names stand above the results, and others beside them
        name, last_line = f"{name}\n ", ""
    draw_diagram.write_panel_title(panel, "", result, max_width - styling.text_width(last_line, names.size, "bold"))
    panel.set_title(
        name, loc="left", pad=3, parse_math=False, fontsize=names.size, fontweight="bold", color=styling.TEXT_COLOR,
        linespacing=1.5 if grid.names.versions else NAME_LINE_HEIGHT,
    )  # fmt: skip


def _too_small_error(presentation: Presentation) -> InputError:
    """Return the error of a figure in which the panels would be illegible."""
    fix = "Use a larger figure, or fewer models or diagrams."
    return InputError("TO203", "The figure is too small for this grid.", f"⟨figsize={presentation.figsize}⟩", fix)


MAX_NAME_LINES = 3  # a name with more lines is cut at the end, unless it would then equal another one


@dataclass(frozen=True)
class FittedNames:
    """Names as they are drawn, and their type size in points."""

    names: tuple[str, ...]  # with line breaks
    size: float

    @property
    def n_lines(self) -> int:
        """Lines of the longest name."""
        return 1 + max((name.count("\n") for name in self.names), default=0)


def fit_names(names: Sequence[str], max_width: float, size: float) -> FittedNames:
    """Fit names, drawn in bold type, to a width in points.

    The type size is reduced first. If it would be illegible, names are broken into lines, and those with too many lines
    are cut, unless two different names would then look alike.
    """
    names = [styling.on_one_line(name) for name in names]
    widest = max((styling.text_width(name, size, "bold") for name in names), default=0.0)
    fitting_size = 0.98 * size * max_width / max(widest, 1.0)
    if fitting_size >= min(size, MIN_FONT_SIZE):
        return FittedNames(tuple(names), min(size, fitting_size))
    size = min(size, MIN_FONT_SIZE)
    wrapped = [_wrap_name(name, max_width, size) for name in names]
    shortened = [_cut_lines(name, max_width, size) for name in wrapped]
    if len(set(shortened)) < len(set(names)):
        shortened = wrapped
    return FittedNames(tuple(shortened), size)


def _wrap_name(name: str, max_width: float, size: float) -> str:
    """Break a name at spaces, and within words that are wider than a line."""
    lines = []
    for line in styling.wrap_text(name, max_width, size, "bold").split("\n"):
        remaining = line
        while styling.text_width(remaining, size, "bold") > max_width and len(remaining) > 1:
            n_fitting = len(remaining) - 1  # characters of the next line, at least one
            while n_fitting > 1 and styling.text_width(remaining[:n_fitting], size, "bold") > max_width:
                n_fitting -= 1
            lines.append(remaining[:n_fitting])
            remaining = remaining[n_fitting:]
        lines.append(remaining)
    return "\n".join(lines)


def _cut_lines(name: str, max_width: float, size: float) -> str:
    """Return the first lines of a name, with an ellipsis if there are more."""
    lines = name.split("\n")
    if len(lines) <= MAX_NAME_LINES:
        return name
    last = styling.shorten_text("".join(lines[MAX_NAME_LINES - 1 :]), max_width, size, "bold")
    return "\n".join([*lines[: MAX_NAME_LINES - 1], last])
