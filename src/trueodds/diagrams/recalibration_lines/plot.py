"""Draw recalibration lines, colored by outcome."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from trueodds.diagrams._style import styling
from trueodds.diagrams.base import Diagram

_PATH_POINT_LABELS = {"predicted": "predicted", "best_fit": "best fit", "fit": "fit"}
_SHORT_LABELS = {"predicted": "pred.", "best fit": "best", "fit": "fit", "boldest": "bold"}
_SIDE_MARGIN = 0.32  # margin beside the first and the last path point, in distances between path points
_EVENT_LINE_STYLE: dict[str, Any] = {"color": styling.INSIDE_COLOR, "linestyle": "-"}
_NONEVENT_LINE_STYLE: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "linestyle": (0, (3.5, 1.4))}


class RecalibrationLinesPlot(Diagram):
    """A line for each prediction, through its recalibrated values at the path points."""

    layers = ("lines", "path_points")
    row_noun = "points"
    view_order = "largest change"
    figure_size = (6.4, 5.0)

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "How would recalibration change each prediction?"

    def axis_labels(self) -> tuple[str, str]:
        """Path points along x, probabilities along y."""
        x = "Posterior probability of calibration"
        return x, "Confidence" if self.lens == "confidence" else "Probability"

    def legend(self) -> list[tuple[Any, str]]:
        """Events and non-events, each if it is drawn."""
        from matplotlib.lines import Line2D

        if not self.has("lines"):
            return []
        event_label, non_event_label = ("correct", "incorrect") if self.lens == "confidence" else ("event", "no event")
        entries: list[tuple[Any, str]] = []
        if self.table["outcome"].any():
            entries.append((Line2D([], [], linewidth=1.6, **_EVENT_LINE_STYLE), event_label))
        if not self.table["outcome"].all():
            entries.append((Line2D([], [], linewidth=1.6, **_NONEVENT_LINE_STYLE), non_event_label))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        from matplotlib.collections import LineCollection

        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size, width = styling.font_size(ax), styling.size_in_inches(ax)[0]
        styling.style_axes(ax, size)
        n_points = int(panel_row["path_points"])
        ax.set_ylim(-0.02, 1.02)
        ticks = np.arange(6) / 5 if styling.size_in_inches(ax)[1] > 1.6 else np.arange(3) / 2
        ax.set_yticks(ticks, [f"{100 * tick:.0f}\u00a0%" for tick in ticks])
        ax.grid(False, axis="x")
        if self.has("path_points"):
            for position in rows["place"][:n_points]:
                ax.axvline(position, color=styling.INSIDE_BAR_COLOR, linewidth=1.2, zorder=1, label="path points")
        # Panels share their axes, so all have the ticks of the panel with the most path points; labels prefer own rows.
        path_positions, first = np.unique(np.concatenate([rows["place"], self.table["place"]]), return_index=True)
        point_columns = {
            name: np.concatenate([rows[name], self.table[name]])[first] for name in ("path_point", "posterior")
        }
        names = np.array(point_columns["path_point"], dtype=object)
        if (self.table["path_point"] == "fit").any():
            names[1] = "fit"  # correct for all panels
        self._label_path_points(ax, path_positions, names, point_columns["posterior"])
        if not self.has("lines"):
            return
        points = np.stack([rows["place"], rows["probability"]], axis=1).reshape(-1, n_points, 2)
        outcomes, opacity = rows["outcome"][::n_points], rows["opacity"][::n_points]
        # In the order of the probabilities, so that neither outcome hides the other.
        order = np.argsort(points[:, 0, 1], kind="stable")
        marks = [_EVENT_LINE_STYLE if event else _NONEVENT_LINE_STYLE for event in outcomes[order]]
        lines = LineCollection(
            list(points[order]),
            linewidths=(rows["width"][::n_points][order] * (1.0 if width > 3.4 else 0.75)).tolist(),
            colors=[mark["color"] for mark in marks],
            linestyles=[mark["linestyle"] for mark in marks],
            alpha=opacity[order].tolist(),
            zorder=3,
            label="lines",
        )
        ax.add_collection(lines, autolim=False)

    def _label_path_points(self, ax: Any, path_positions: Any, names: Any, posteriors: Any) -> None:
        """Label each path point with its name and posterior probability, on one line if there is no room for two."""
        posterior_texts = [_format_posterior(float(p)) for p in posteriors]
        long_names = [_PATH_POINT_LABELS.get(name, "boldest") for name in names]
        short_names = [_SHORT_LABELS[name] for name in long_names]
        label_choices: list[list[str]] = []  # the most complete first
        if len(self.panels["view"]) == 1 and ax.figure.get_layout_engine() is not None:
            # The layout engine makes room for a second line.
            label_choices += [
                _join_labels(long_names, posterior_texts, "\n"),
                _join_labels(short_names, posterior_texts, "\n"),
            ]
        if self._has_shared_posteriors:
            # Otherwise, those of the lowest panel must not label all panels.
            label_choices += [
                _join_labels(long_names, posterior_texts, " "),
                _join_labels(short_names, posterior_texts, " "),
            ]
        label_choices.append(
            [p if name == "bold" else name for name, p in zip(short_names, posterior_texts, strict=True)]
        )
        size = styling.font_size(ax) - 0.5
        labels = next((candidate for candidate in label_choices if _labels_fit(ax, candidate, size)), label_choices[-1])
        while size > 5 and not _labels_fit(ax, labels, size):
            size -= 0.5
        if not _labels_fit(ax, labels, size):
            labels = [labels[0], *[""] * (len(labels) - 2), labels[-1]]
        # Two invisible ticks beyond the ends, so that the layout does not move the outer labels.
        ax.set_xticks([-2, *path_positions, len(path_positions) + 1], ["", *labels, ""], fontsize=size)
        ax.set_xlim(-_SIDE_MARGIN, len(path_positions) - 1 + _SIDE_MARGIN)

    @property
    def _has_shared_posteriors(self) -> bool:
        """Whether all panels have the same posteriors, so that the tick labels of the lowest panel can show them."""
        posteriors = np.stack([self.panels["posterior_predicted"], self.panels["posterior_best_fit"]])
        return len(self.panels["view"]) == 1 or bool(((posteriors == posteriors[:, :1]) | np.isnan(posteriors)).all())


def _join_labels(names: list[str], posteriors: list[str], separator: str) -> list[str]:
    """Labels with the name of each path point and its posterior probability."""
    return [f"{name}{separator}{p}" for name, p in zip(names, posteriors, strict=True)]


def _labels_fit(ax: Any, labels: list[str], size: float) -> bool:
    """Whether labels do not overlap and stay inside the axes."""
    spacing = styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0] / (len(labels) - 1 + 2 * _SIDE_MARGIN)
    widths = [max(styling.text_width(line, size) for line in label.split("\n")) for label in labels]
    inside = max(widths[0], widths[-1]) / 2 <= _SIDE_MARGIN * spacing + 4
    return inside and max(a + b for a, b in pairwise(widths)) / 2 + 4 <= spacing


def _format_posterior(p: float) -> str:
    """Format a posterior probability in a few characters."""
    if p < 1e-3:
        return "< 0.1\u00a0%"
    return "> 99.9\u00a0%" if p > 0.999 else f"{100 * p:.1f}".removesuffix(".0") + "\u00a0%"
