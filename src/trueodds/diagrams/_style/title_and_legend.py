"""Title, finding and legend: a header above the panels fitted to a width, or a legend in axes where it covers least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.styling import POINTS_PER_INCH

if TYPE_CHECKING:
    from trueodds.diagrams.diagram_content import DiagramContent

MIN_FONT_SIZE = 6.3  # smallest type size of ordinary text in points; the legend is a point smaller
MAX_TITLE_LINES = 4  # longer titles are cut
MAX_SIDE_TITLE_LINES = 6  # the same if they are beside the axes
HEADLINE_ENLARGEMENT, SIDE_HEADLINE_ENLARGEMENT = 2.5, 1.5  # points by which a headline exceeds ordinary type
MAX_HEADER_SHARE = 0.32  # largest share of the height of a figure of given size for headline, finding and legend
MAX_SIDE_HEADER_SHARE = 0.94  # the same if they are beside the axes
FONT_SIZE_STEP = 0.5  # points by which the type size is reduced until everything fits
_HANDLE_WIDTH = 3.3  # width of the mark of a legend entry, with the space around it, in type sizes


def fit_legend(diagram: DiagramContent, max_width: float, font_size: float) -> Header:
    """Fit the legend of given axes: the largest type in which every entry is complete, or the smallest legible one."""
    headers = Header(diagram, "", "", max_width, font_size).at_decreasing_font_sizes()
    header = next((header for header in headers if header.is_complete), headers[-1])
    return header if diagram.presentation.legend is not False else replace(header, has_legend=False)


def fit_headers(diagram: DiagramContent, finding_text: str, max_width: float, font_size: float) -> list[Header]:
    """Headers that fit above the panels, the most complete first.

    In a figure of given size, in which a complete header may be too high, they also include headers without the
    finding, and without the headline or the legend.
    """
    presentation = diagram.presentation
    has_own_title = presentation.title not in (None, True)
    headline = presentation.heading(diagram.default_title())
    full_header = Header(
        diagram,
        headline,
        finding_text if presentation.has_title and diagram.has("finding") else "",
        max_width,
        font_size,
        headline_enlargement=SIDE_HEADLINE_ENLARGEMENT if presentation.side_header else HEADLINE_ENLARGEMENT,
        has_legend=presentation.legend is not False,
    )
    if presentation.figsize is None:
        return [full_header]
    without_finding = replace(full_header, finding_text="")
    with_small_headline = replace(without_finding, headline_enlargement=0.5)
    reduced_headers = (
        [with_small_headline, replace(with_small_headline, has_legend=False)]
        if has_own_title
        else [with_small_headline, replace(with_small_headline, headline="")]
    )
    max_share = MAX_SIDE_HEADER_SHARE if presentation.side_header else MAX_HEADER_SHARE
    max_height = max_share * POINTS_PER_INCH * presentation.figsize[1]
    fitting_headers = [
        header
        for header in (full_header, without_finding, *reduced_headers)
        if header.height <= max_height and header.is_complete
    ]
    return fitting_headers or [
        replace(with_small_headline, headline=headline if has_own_title else "", has_legend=False)
    ]


def fit_side_header(diagram: DiagramContent, finding_text: str, max_width: float, font_size: float) -> Header:
    """Fit the header beside a single panel: the most complete one with a legend, in the largest type in which it fits.

    Labels of the legend are short if the type would otherwise have to be reduced. It is reduced by 15 % at most, and
    then the finding and the headline are left out.
    """
    variants = [(diagram, 1.0), (diagram, 0.95)]
    variants += [(diagram.with_short_labels(), share) for share in (1.0, 0.95, 0.9, 0.85)]
    fitted = [fit_headers(content, finding_text, max_width, share * font_size)[0] for content, share in variants]
    wants_legend = diagram.presentation.legend is not False
    return max(
        fitted,  # of equally complete ones the first
        key=lambda header: (header.has_legend or not wants_legend, bool(header.headline), bool(header.finding_text)),
    )


# Heights of a line of the legend, of the finding and of the headline, in sizes of their type, and heights of the gaps
# below the legend, below the finding and above it, in sizes of ordinary type.
_LEGEND_LINE_HEIGHT, _FINDING_LINE_HEIGHT, _HEADLINE_LINE_HEIGHT = 1.42, 1.3, 1.25
_GAP_BELOW_LEGEND, _GAP_BELOW_FINDING, _GAP_ABOVE_FINDING = 0.55, 0.45, 0.35


class HeaderOffsets(NamedTuple):
    """Points above the panels at which the parts of a header begin, from bottom to top, and at which it ends."""

    legend: float
    finding: float
    headline: float
    end: float


@dataclass(frozen=True)
class Header:
    """Headline, finding and legend, each wrapped to `max_width`; lengths are in points."""

    diagram: DiagramContent
    headline: str
    finding_text: str
    max_width: float
    font_size: float
    headline_enlargement: float = HEADLINE_ENLARGEMENT  # points by which the type of the headline exceeds `font_size`
    has_legend: bool = True

    @cached_property
    def wrapped_headline(self) -> str:
        size = self.font_size + self.headline_enlargement
        lines = [
            line
            for part in self.headline.split("\n")
            for line in styling.wrap_text(part, self.max_width, size, "bold").split("\n")
        ]
        max_lines = MAX_SIDE_TITLE_LINES if self.diagram.presentation.side_header else MAX_TITLE_LINES
        if len(lines) > max_lines:
            lines[max_lines - 1 :] = [f"{lines[max_lines - 1]} …"]
        return "\n".join(styling.shorten_text(line, self.max_width, size, "bold") for line in lines)

    @cached_property
    def wrapped_finding(self) -> str:
        return styling.wrap_text(self.finding_text, self.max_width, self.font_size)

    @cached_property
    def legend_entries(self) -> list[tuple[Any, str]]:
        """The legend entries, with labels cut to the available width; empty without a legend."""
        return [
            (mark, styling.shorten_text(label, self._max_label_width, self.font_size - 1))
            for mark, label in self.uncut_legend_entries
        ]

    @cached_property
    def uncut_legend_entries(self) -> list[tuple[Any, str]]:
        return self.diagram.legend() if self.has_legend and self.diagram.has("legend") else []

    @property
    def _max_label_width(self) -> float:
        """Width in points for the label of an entry, beside its mark."""
        return self.max_width - _HANDLE_WIDTH * (self.font_size - 1)

    @cached_property
    def n_legend_columns(self) -> int:
        """The largest number of columns of the legend that fits."""
        for n_columns in range(len(self.legend_entries), 1, -1):
            n_rows = -(-len(self.legend_entries) // n_columns)
            # Avoids three columns with one entry in the second row.
            fills_rows = n_rows * n_columns - len(self.legend_entries) <= 1
            if fills_rows and self.legend_size(n_columns)[0] <= self.max_width:
                return n_columns
        return 1

    def legend_size(self, n_columns: int) -> tuple[float, float]:
        """Width and height of the legend in points with so many columns."""
        widths = [
            styling.text_width(label, self.font_size - 1) + _HANDLE_WIDTH * (self.font_size - 1)
            for _, label in self.legend_entries
        ]
        n_rows = -(-len(widths) // n_columns)
        width = sum(max(widths[i : i + n_rows]) for i in range(0, len(widths), n_rows or 1))
        return width, n_rows * _LEGEND_LINE_HEIGHT * (self.font_size - 1)

    def at_decreasing_font_sizes(self) -> list[Header]:
        """Return this header in its type size and in smaller ones, down to the smallest legible size."""
        steps = int(max(self.font_size - MIN_FONT_SIZE, 0.0) / FONT_SIZE_STEP)
        return [replace(self, font_size=self.font_size - FONT_SIZE_STEP * i) for i in range(steps + 1)]

    @property
    def legend_height(self) -> float:
        """Height of the legend in points."""
        return self.legend_size(self.n_legend_columns)[1]

    @cached_property
    def offsets(self) -> HeaderOffsets:
        """Points above the panels at which legend, finding and headline begin and at which the header ends."""
        legend = _GAP_BELOW_LEGEND * self.font_size
        finding = legend + self.legend_height + _GAP_BELOW_FINDING * self.font_size
        headline = finding
        if self.wrapped_finding:
            n_lines = self.wrapped_finding.count("\n") + 1
            headline = finding + (n_lines * _FINDING_LINE_HEIGHT + _GAP_ABOVE_FINDING) * self.font_size
        headline_height = 0.0
        if self.wrapped_headline:
            n_lines = self.wrapped_headline.count("\n") + 1
            headline_height = n_lines * _HEADLINE_LINE_HEIGHT * (self.font_size + self.headline_enlargement)
        return HeaderOffsets(legend, finding, headline, headline + headline_height)

    @property
    def height(self) -> float:
        """Height of the header in points."""
        return self.offsets.end

    @property
    def is_complete(self) -> bool:
        """Whether no label of the legend is cut."""
        return all(
            label == styling.on_one_line(uncut_label)
            for (_, label), (_, uncut_label) in zip(self.legend_entries, self.uncut_legend_entries, strict=True)
        )

    @property
    def has_room_for_words(self) -> bool:
        """Whether there is room for a few words beside a mark."""
        return self._max_label_width >= 5 * self.font_size

    def draw(self, figure: Any, transform: Any, corner: tuple[float, float]) -> None:
        """Write the header above a corner of `transform`; the layout must leave `height` for it."""
        from matplotlib.transforms import ScaledTranslation

        inch_scale = figure.dpi_scale_trans
        legend, finding, headline = (
            transform + ScaledTranslation(0, offset / POINTS_PER_INCH, inch_scale)
            for offset in (self.offsets.legend, self.offsets.finding, self.offsets.headline)
        )
        self.draw_legend(figure, loc="lower left", bbox_to_anchor=corner, bbox_transform=legend, borderaxespad=0)
        style: dict[str, Any] = {"ha": "left", "va": "bottom", "linespacing": 1.22, "parse_math": False}
        if self.wrapped_finding:
            figure.text(
                *corner,
                self.wrapped_finding,
                transform=finding,
                fontsize=self.font_size,
                color=styling.MUTED_COLOR,
                **style,
            )
        if self.wrapped_headline:
            style |= {
                "fontsize": self.font_size + self.headline_enlargement,
                "fontweight": "bold",
                "color": styling.TEXT_COLOR,
            }
            figure.text(*corner, self.wrapped_headline, transform=headline, **style)

    def draw_legend(self, target: Any, n_columns: int | None = None, **placement: Any) -> Any:
        """Draw the legend in an axes or a figure, at the place that matplotlib's arguments `placement` describe."""
        from matplotlib.lines import Line2D

        if not self.legend_entries:
            return None
        handles, labels = zip(*self.legend_entries, strict=True)
        legend = target.legend(
            handles,
            [f"{i}" for i in range(len(labels))],  # matplotlib omits a label that begins with "_"
            ncols=n_columns or self.n_legend_columns,
            frameon=False,
            fontsize=self.font_size - 1,
            labelcolor=styling.TEXT_COLOR,
            borderpad=0,
            handlelength=1.6,
            handletextpad=0.5,
            columnspacing=1.2,
            labelspacing=0.35,
            **placement,
        )
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set_text(label)
            text.set_parse_math(False)
        for line in legend.findobj(Line2D):  # marks of neighboring lines must not touch
            line.set_markersize(min(line.get_markersize(), MAX_LEGEND_MARK * self.font_size))
        return legend


MAX_LEGEND_MARK = 0.85  # largest mark in the legend, in type sizes
LEGEND_PADDING = 0.4  # type sizes between the legend and the edge of the axes, as matplotlib's borderaxespad
MIN_LEGEND_GAP = 3.0  # smallest distance in points between the legend and any mark
LEGEND_SIZE_ALLOWANCE = 1.08  # free room required, in sizes of the legend: a layout may still shrink the axes
MIN_EMPTY_BRIGHTNESS = 250  # of 255: pixels as light as this count as empty
LEGEND_LOCATIONS = (
    "upper left",
    "upper right",
    "lower right",
    "lower left",
    "upper center",
    "center right",
    "center left",
    "lower center",
    "center center",
)
_HORIZONTAL_FRACTIONS = {"left": 0.0, "center": 0.5, "right": 1.0}
_VERTICAL_FRACTIONS = {"lower": 0.0, "center": 0.5, "upper": 1.0}


def attach_legend_entries(ax: Any, entries: Sequence[tuple[Any, str]]) -> None:
    """Add artists that draw nothing to the axes, from which `ax.legend()` makes the entries."""
    from matplotlib.patches import Rectangle

    for handle, label in entries:
        artist = handle[0] if isinstance(handle, tuple) else handle
        if not hasattr(artist, "get_xdata"):  # a patch would be drawn, so an empty one takes its place
            empty_patch = Rectangle((-9, -9), 0, 0)
            empty_patch.update_from(artist)
            artist = empty_patch
        artist.set_transform(ax.transAxes)  # so that it does not affect the data limits
        artist.set_label(label)
        artist.set_in_layout(False)
        ax.add_artist(artist)


def place_legend(ax: Any, headers: Sequence[Header], strip_height: float, *, is_required: bool) -> Any:
    """Place the legend where it covers nothing or, if `is_required`, where it covers least, and return it.

    Returns None if there is no such place. `headers` hold the same entries in decreasing type size; `strip_height` is
    the share of the height that the histogram strip at the bottom of the axes takes.
    """
    headers = [header for header in headers if header.legend_entries]
    if not headers:
        return None
    covered = CoveredPixels(ax)
    fallback: tuple[Header, int, str] | None = None
    fallback_share = np.inf
    for header in headers:
        for n_columns in range(1, header.n_legend_columns + 1):
            for location, share in _covered_shares(ax, covered, header, n_columns, strip_height):
                if fallback is None or share < fallback_share:
                    fallback, fallback_share = (header, n_columns, location), share
                if share == 0 and header.is_complete:
                    legend = _add_legend(ax, header, n_columns, location, strip_height)
                    if covered.covered_share(legend.get_window_extent()) == 0:  # as estimated
                        return legend
                    legend.remove()
    if not is_required or fallback is None:
        return None
    return _add_legend(ax, *fallback, strip_height)


class CoveredPixels:
    """The pixels of axes that marks cover, apart from grid, frame and background.

    `cumulative_counts[i, j]` (height + 1, width + 1) is the number of covered pixels in the first i rows, from the
    bottom, and the first j columns.
    """

    def __init__(self, ax: Any) -> None:
        from matplotlib.backends.backend_agg import RendererAgg

        figure = ax.figure.canvas.figure
        width, height = np.ceil(figure.bbox.size).astype(int)
        renderer: Any = RendererAgg(width, height, figure.dpi)  # type: ignore[no-untyped-call]
        background = {ax.patch, ax.xaxis, ax.yaxis, *ax.spines.values()}
        for artist in ax.get_children():
            if artist not in background and artist.get_visible():
                artist.draw(renderer)
        pixels = np.asarray(renderer.buffer_rgba())[::-1]  # bottom row first
        is_covered = (pixels[..., 3] > 0) & (pixels[..., :3] < MIN_EMPTY_BRIGHTNESS).any(axis=-1)
        self.cumulative_counts = np.pad(is_covered.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def covered_share(self, box: Any) -> float:
        """The share of the pixels of a box that are covered."""
        rows, columns = (size - 1 for size in self.cumulative_counts.shape)
        left, right = np.clip([int(np.floor(box.x0)), int(np.ceil(box.x1))], 0, columns)
        low, high = np.clip([int(np.floor(box.y0)), int(np.ceil(box.y1))], 0, rows)
        n_covered = (
            self.cumulative_counts[high, right]
            - self.cumulative_counts[low, right]
            - self.cumulative_counts[high, left]
            + self.cumulative_counts[low, left]
        )
        return float(n_covered) / max(int((right - left) * (high - low)), 1)


def _covered_shares(
    ax: Any, covered: CoveredPixels, header: Header, n_columns: int, strip_height: float
) -> Iterator[tuple[str, float]]:
    """Yield each location in which the legend fits, with the share of it that marks cover."""
    from matplotlib.transforms import Bbox

    unit = ax.figure.dpi / POINTS_PER_INCH
    axes_box = ax.get_window_extent()
    width, height = (unit * LEGEND_SIZE_ALLOWANCE * side for side in header.legend_size(n_columns))
    pad, gap = unit * LEGEND_PADDING * (header.font_size - 1), unit * MIN_LEGEND_GAP
    # Above the line at the top of the strip.
    axes_bottom = axes_box.y0 + strip_height * axes_box.height + (strip_height > 0) * unit
    free_lengths = axes_box.width - 2 * pad - width, axes_box.y1 - axes_bottom - 2 * pad - height
    if min(free_lengths) < 0:
        return
    for location in LEGEND_LOCATIONS:
        vertical, horizontal = location.split()
        left, bottom = (
            axes_box.x0 + pad + _HORIZONTAL_FRACTIONS[horizontal] * free_lengths[0],
            axes_bottom + pad + _VERTICAL_FRACTIONS[vertical] * free_lengths[1],
        )
        box = Bbox.from_extents(left - gap, bottom - gap, left + width + gap, bottom + height + gap)
        # Marks outside the axes belong to other axes.
        yield (
            location,
            covered.covered_share(
                Bbox.intersection(box, Bbox.from_extents(axes_box.x0, axes_bottom, axes_box.x1, axes_box.y1))
            ),
        )


def _add_legend(ax: Any, header: Header, n_columns: int, location: str, strip_height: float) -> Any:
    """Draw the legend at a location of the axes, with a white background."""
    placement = {
        "loc": "center" if location == "center center" else location,
        "bbox_to_anchor": (0.0, strip_height, 1.0, 1.0 - strip_height),
        "borderaxespad": LEGEND_PADDING,
    }
    legend = header.draw_legend(ax, n_columns=n_columns, **placement)
    legend.set_frame_on(True)  # hides the grid lines behind it
    legend.get_frame().set(facecolor="white", edgecolor="none", alpha=1.0)
    legend.set_zorder(6)
    return legend
