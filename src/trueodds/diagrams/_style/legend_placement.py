"""Place a legend inside given axes, where it covers no marks or as few as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trueodds.diagrams._style.styling import POINTS_PER_INCH
from trueodds.diagrams._style.title_and_legend import Header

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
