"""Legends in axes that are given: entries for `ax.legend()`, and a place where they cover no data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trueodds.diagrams.drawing.head import Head

PAD = 0.4  # of the type size, between the legend and the edge of the axes, as matplotlib's borderaxespad
MIN_GAP = 3.0  # points between the legend and what is drawn, at least
SPARE = 1.08  # times its size is what a legend must have: a layout may yet make the axes smaller
WHITE = 250  # of 255: lighter pixels show nothing
PLACES = (
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
_ACROSS = {"left": 0.0, "center": 0.5, "right": 1.0}
_UP = {"lower": 0.0, "center": 0.5, "upper": 1.0}


def attach(ax: Any, entries: Sequence[tuple[Any, str]]) -> None:
    """Let `ax.legend()` and `ax.get_legend_handles_labels()` know the entries, by artists that draw nothing."""
    from matplotlib.patches import Rectangle

    for handle, label in entries:
        for first in handle[:1] if isinstance(handle, tuple) else [handle]:
            if not hasattr(first, "get_xdata"):  # a patch, which only has looks
                patch, first = first, Rectangle((-9, -9), 0, 0)
                first.update_from(patch)
            first.set_transform(ax.transAxes)  # so that it has no part in the limits of the data
            first.set_label(label)
            first.set_in_layout(False)
            ax.add_artist(first)


def put_inside(ax: Any, heads: Sequence[Head], strip_height: float, *, always: bool) -> Any:
    """Put the legend where it covers nothing; `always`, else, where it covers least. Returns it, or None.

    `heads` hold the same entries in ever smaller type; `strip_height` is the part of the height that a strip takes.
    """
    heads = [head for head in heads if head.marks]
    if not heads:
        return None
    covered = Covered(ax)
    fallback: tuple[float, Head, int, str] | None = None
    for head in heads:
        for columns in range(1, head.columns + 1):
            for place, share in _shares(ax, covered, head, columns, strip_height):
                if fallback is None or share < fallback[0]:
                    fallback = share, head, columns, place
                if share == 0 and head.is_complete:
                    made = _put(ax, head, columns, place, strip_height)
                    if covered.share(made.get_window_extent()) == 0:  # as it was estimated
                        return made
                    made.remove()
    if not always or fallback is None:
        return None
    return _put(ax, *fallback[1:], strip_height)


class Covered:
    """Which pixels of axes are covered by what is drawn in them, apart from grid, frame and background."""

    def __init__(self, ax: Any) -> None:
        from matplotlib.backends.backend_agg import RendererAgg

        figure = ax.figure.canvas.figure
        width, height = np.ceil(figure.bbox.size).astype(int)
        renderer: Any = RendererAgg(width, height, figure.dpi)  # type: ignore[no-untyped-call]
        background = {ax.patch, ax.xaxis, ax.yaxis, *ax.spines.values()}
        for artist in ax.get_children():
            if artist not in background and artist.get_visible():
                artist.draw(renderer)
        pixels = np.asarray(renderer.buffer_rgba())[::-1]  # the lowest row first
        drawn = (pixels[..., 3] > 0) & (pixels[..., :3] < WHITE).any(axis=-1)
        self.sums = np.pad(drawn.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def share(self, box: Any) -> float:
        """The share of the pixels of a box that are covered."""
        rows, columns = (size - 1 for size in self.sums.shape)
        left, right = np.clip([int(np.floor(box.x0)), int(np.ceil(box.x1))], 0, columns)
        low, high = np.clip([int(np.floor(box.y0)), int(np.ceil(box.y1))], 0, rows)
        n_covered = self.sums[high, right] - self.sums[low, right] - self.sums[high, left] + self.sums[low, left]
        return float(n_covered) / max(int((right - left) * (high - low)), 1)


def _shares(ax: Any, covered: Covered, head: Head, columns: int, strip_height: float) -> Iterator[tuple[str, float]]:
    """Each place in which the legend fits, and the share of it that is covered there."""
    from matplotlib.transforms import Bbox

    unit = ax.figure.dpi / 72
    room = ax.get_window_extent()
    width, height = (unit * SPARE * side for side in head.legend_size(columns))
    pad, gap = unit * PAD * (head.size - 1), unit * MIN_GAP
    low = room.y0 + strip_height * room.height + (strip_height > 0) * unit  # above the line at the top of the strip
    free = room.width - 2 * pad - width, room.y1 - low - 2 * pad - height
    if min(free) < 0:
        return
    for place in PLACES:
        up, across = place.split()
        left, bottom = room.x0 + pad + _ACROSS[across] * free[0], low + pad + _UP[up] * free[1]
        box = Bbox.from_extents(left - gap, bottom - gap, left + width + gap, bottom + height + gap)
        # What lies beyond the axes is no data of theirs.
        yield place, covered.share(Bbox.intersection(box, Bbox.from_extents(room.x0, low, room.x1, room.y1)))


def _put(ax: Any, head: Head, columns: int, place: str, strip_height: float) -> Any:
    where = {
        "loc": "center" if place == "center center" else place,
        "bbox_to_anchor": (0.0, strip_height, 1.0, 1.0 - strip_height),
        "borderaxespad": PAD,
    }
    made = head.put_legend(ax, columns=columns, **where)
    made.set_frame_on(True)  # lines of the grid pass behind it
    made.get_frame().set(facecolor="white", edgecolor="none", alpha=1.0)
    made.set_zorder(6)
    return made
