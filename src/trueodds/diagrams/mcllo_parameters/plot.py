"""Draw intervals and confidence ellipses of shift and slope for each class."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.odds_axis import set_odds_axis
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram

_INSIDE_STYLE: dict[str, Any] = {
    "color": styling.INSIDE_COLOR,
    "marker": "o",
    "markersize": 6,
    "markerfacecolor": "white",
}
_OUTSIDE_STYLE: dict[str, Any] = {
    "color": styling.OUTSIDE_COLOR,
    "marker": "D",
    "markersize": 6,
    "markeredgecolor": "white",
}
_ELLIPSE_OPACITY = 0.13  # opacity of ellipses
_MAX_CLASSES_WITH_FILLS = 12  # of more classes only the ellipses that exclude (1, 1) are filled: fills hide each other


class MclloParametersPlot(Diagram):
    """Shift and slope of each class: intervals as crosses, and confidence ellipses."""

    layers = ("ellipses", "intervals", "names", "marks", "sides")
    row_noun = "table rows"
    view_order = "farthest from (1, 1)"
    figure_size = (6.4, 5.0)
    strip_height = 0.08

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        if len(self.panels["view"]) == 1 and self.panels["baseline"][0]:
            return "For which classes are predictions biased or overconfident?"
        return "Are the predictions biased or overconfident?"

    def axis_labels(self) -> tuple[str, str]:
        """Shift along x, slope along y."""
        baseline = self.panels["baseline"][0]
        return (
            f"Shift δ of the odds against {baseline}" if baseline else "Shift δ of the odds",
            "Slope γ of the log odds",
        )

    def legend(self) -> list[tuple[Any, str]]:
        """Estimates whose ellipse contains or excludes (1, 1), and the point (1, 1) itself, if drawn."""
        from matplotlib.lines import Line2D

        n_classes, n_outside = (self.panels[name][:MAX_PANELS] for name in ("classes", "classes_outside"))
        if not n_classes.any():
            return []
        entries: list[tuple[Any, str]] = []
        if self.has("marks"):
            identity_marker = Line2D(
                [], [], linestyle="none", color=styling.TEXT_COLOR, marker="+", markersize=9, markeredgewidth=1.6
            )
            entries.append((identity_marker, "(1, 1): calibrated"))
        has_lines = self.has("intervals") or self._shows_ellipses
        if not has_lines and not self.has("marks"):
            return entries
        line_style = {"linewidth": 1.2} if has_lines else {"linestyle": "none"}
        inside_style, outside_style = (
            style if self.has("marks") else {"color": style["color"]} for style in (_INSIDE_STYLE, _OUTSIDE_STYLE)
        )
        region = f"{100 * self.settings['level']:.4g}\u00a0% {'ellipse' if self._shows_ellipses else 'region'}"
        any_inside = bool((n_classes > n_outside).any())
        if any_inside:
            entries.append((Line2D([], [], **line_style, **inside_style), f"{region} contains it"))
        if n_outside.any():
            label = "excludes it" if any_inside else f"{region} excludes it"
            entries.append((Line2D([], [], **line_style, **outside_style), label))
        return entries

    @property
    def _shows_ellipses(self) -> bool:
        """Whether confidence ellipses are drawn for any class."""
        return bool(self.settings["ellipses"]) and self.has("ellipses")

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        from matplotlib.collections import PolyCollection

        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size, is_wide = styling.font_size(ax), styling.size_in_inches(ax)[0] > 2.4
        styling.style_axes(ax, size)
        set_odds_axis(ax, panel_row["delta_low"], panel_row["delta_high"])
        low, high = panel_row["gamma_low"], panel_row["gamma_high"]
        ax.set_ylim(low - (high - low) * self.strip_height / (1 - self.strip_height), high)
        if not panel_row["classes"]:
            style = {
                "ha": "center",
                "va": "center",
                "fontsize": size,
                "color": styling.MUTED_COLOR,
                "transform": ax.transAxes,
            }
            ax.text(0.5, 0.5, "no finite shifts\nand slopes", **style)
            return
        for line in (ax.axhline, ax.axvline):
            line(1, color=styling.MUTED_COLOR, linewidth=0.9, zorder=1.5)
        is_estimate = rows["kind"] == "estimate"
        outlines = np.stack([rows["delta"], rows["gamma"]], axis=1)[~is_estimate].reshape(int(is_estimate.sum()), -1, 2)
        has_many_classes = panel_row["classes"] > _MAX_CLASSES_WITH_FILLS
        fill_opacity = min(_ELLIPSE_OPACITY, 0.6 / panel_row["classes"]) if has_many_classes else _ELLIPSE_OPACITY
        faint_style = {"alpha": 0.45} if has_many_classes else {}
        if self.has("marks"):
            style = {"marker": "+", "markersize": 11, "markeredgewidth": 1.8, "color": styling.TEXT_COLOR, "zorder": 5}
            ax.plot([1], [1], label="identity", **style)
        for has_color, mark in ((~rows["outside"], _INSIDE_STYLE), (rows["outside"], _OUTSIDE_STYLE)):
            mask = has_color & is_estimate
            if self._shows_ellipses:
                shape = outlines[has_color[is_estimate]]
                style = {
                    "edgecolor": mark["color"],
                    "linewidth": 0.5 if has_many_classes else 0.9,
                    "zorder": 2,
                    **faint_style,
                }
                ax.add_collection(PolyCollection(shape, facecolor="none", label="ellipses", **style), autolim=False)
                if not has_many_classes or mark is _OUTSIDE_STYLE:
                    style = {"facecolor": mark["color"], "edgecolor": "none", "alpha": fill_opacity}
                    ax.add_collection(PolyCollection(shape, zorder=1.8, label="fills", **style), autolim=False)
            delta, gamma = rows["delta"][mask], rows["gamma"][mask]
            if self.has("intervals"):
                bars = {
                    "color": mark["color"],
                    "linewidth": 0.4 if has_many_classes else 1.1,
                    "zorder": 3,
                    **faint_style,
                }
                ax.hlines(gamma, rows["delta_low"][mask], rows["delta_high"][mask], label="intervals of delta", **bars)
                ax.vlines(delta, rows["gamma_low"][mask], rows["gamma_high"][mask], label="intervals of gamma", **bars)
            if self.has("marks"):
                style = {**mark, "markersize": 4 if has_many_classes or not is_wide else mark["markersize"]}
                ax.plot(delta, gamma, linestyle="none", zorder=4, label="estimates", **style)
        if panel_row["classes"] > 1 and self.has("names"):
            _draw_class_names(ax, {name: column[is_estimate] for name, column in rows.items()}, panel_row, size - 1)
        if is_wide and self.has("sides"):
            _draw_side_labels(ax, panel_row, size - 1.5)


def _draw_side_labels(ax: Any, panel_row: Mapping[str, Any], size: float) -> None:
    """Label the directions along the x-axis, and at the end of the line γ = 1 that is farther from (1, 1)."""
    style = {"fontsize": size, "color": styling.MUTED_COLOR, "zorder": 3.5}
    ax.text(0.01, 0.012, "← overpredicted", ha="left", va="bottom", transform=ax.transAxes, **style)
    ax.text(0.99, 0.012, "underpredicted →", ha="right", va="bottom", transform=ax.transAxes, **style)
    is_left = panel_row["delta_low"] * panel_row["delta_high"] < 1
    annotation_style = {
        "xycoords": ax.get_yaxis_transform(),
        "textcoords": "offset points",
        "ha": "left" if is_left else "right",
    }
    for text, offset in (("↑ underconfident", 3), ("↓ overconfident", -3)):
        placement = {"xytext": (0, offset), "va": "bottom" if offset > 0 else "top"}
        ax.annotate(text, (0.01 if is_left else 0.99, 1), **annotation_style, **placement, **style)


def _draw_class_names(ax: Any, rows: Mapping[str, Array], panel_row: Mapping[str, Any], size: float) -> None:
    """Write the name of each class near its estimate, where it is closest to it and overlaps no other name.

    A name that has no place beside its estimate is written farther away, with a line to it, unless there are many.
    """
    width, height = (styling.POINTS_PER_INCH * side for side in styling.size_in_inches(ax))
    left, right = np.log(panel_row["delta_low"]), np.log(panel_row["delta_high"])
    # Positions of the estimates in points. Title, legend and labels will reduce the height to about 70 %, and names
    # must not overlap then.
    x = (rows["tau"] - left) / (right - left) * width
    gamma_range = panel_row["gamma_high"] - panel_row["gamma_low"]
    y = (rows["gamma"] - panel_row["gamma_low"]) / gamma_range * 0.7 * height
    mark_x, mark_y = -left / (right - left) * width, (1 - panel_row["gamma_low"]) / gamma_range * 0.7 * height
    # The mark of (1, 1) reaches 6 points from its center.
    occupied = [_Box(mark_x - 6, mark_y - 6, mark_x + 6, mark_y + 6)]
    distances = _NAME_DISTANCES if panel_row["classes"] <= _MAX_CLASSES_WITH_FILLS else _NAME_DISTANCES[:1]
    for i in np.argsort(-rows["statistic"], kind="stable"):
        name = styling.shorten_text(str(rows["class"][i]), 90, size)
        is_other = np.arange(len(x)) != i
        for distance, (dx, dy) in itertools.product(distances, _NAME_DIRECTIONS):
            box = _label_box(
                float(x[i]), float(y[i]), styling.text_width(name, size), 1.2 * size, distance * dx, distance * dy
            )
            if (
                _is_free(box, occupied)
                and _distances_from_box(box, x, y)[is_other].min(initial=np.inf) > _MIN_NAME_DISTANCE
                and box.left > 2
                and box.right < width - 2
            ):
                ax.annotate(
                    name,
                    (rows["delta"][i], rows["gamma"][i]),
                    xytext=(distance * dx, distance * dy),
                    textcoords="offset points",
                    ha=("right", "center", "left")[dx + 1],
                    va=("top", "center", "bottom")[dy + 1],
                    fontsize=size,
                    color=styling.TEXT_COLOR,
                    zorder=6,
                    parse_math=False,
                    annotation_clip=True,
                    arrowprops=_LEADER_LINE_STYLE if distance > _NAME_DISTANCES[0] else None,
                )
                occupied.append(box)
                break


class _Box(NamedTuple):
    """A rectangle; lengths are in points from the lower left corner of the axes."""

    left: float
    low: float
    right: float
    high: float

    def overlaps(self, other: _Box) -> bool:
        """Whether both have a point in common."""
        return not (
            self.right < other.left or other.right < self.left or self.high < other.low or other.high < self.low
        )


def _is_free(box: _Box, occupied: Sequence[_Box]) -> bool:
    """Whether a box overlaps none of the others."""
    return not any(box.overlaps(other) for other in occupied)


def _distances_from_box(box: _Box, x: Array, y: Array) -> Array:
    """Distance of each point (n,) from a box; 0 inside."""
    left, low, right, high = box
    return np.hypot(np.maximum(np.maximum(left - x, x - right), 0), np.maximum(np.maximum(low - y, y - high), 0))


# Sides of an estimate (right and up are positive), and points from it, in the order in which they are tried for its
# name.
_NAME_DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_NAME_DISTANCES = (5.0, 20.0, 35.0, 50.0)
_MIN_NAME_DISTANCE = 11.0  # smallest distance in points from an estimate to other names
_LEADER_LINE_STYLE: dict[str, Any] = {
    "arrowstyle": "-",
    "color": styling.TEXT_COLOR,
    "linewidth": 0.7,
    "shrinkA": 0,
    "shrinkB": 4,
}


def _label_box(x: float, y: float, width: float, height: float, dx: float, dy: float) -> _Box:
    """Return the box of a name that lies (dx, dy) from an estimate at (x, y), centered along an axis without offset."""
    left = x + dx + (np.sign(dx) - 1) * width / 2
    low = y + dy + (np.sign(dy) - 1) * height / 2
    return _Box(left, low, left + width, low + height)
