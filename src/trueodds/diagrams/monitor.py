"""Diagram of a monitor: observed against expected events, the evidence, and the rows, in three strips over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Never

import numpy as np
from scipy.special import ndtri

from trueodds.core.errors import InputError
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import (
    Boxes,
    HLine,
    Line,
    Mark,
    PanelSize,
    Points,
    Segments,
    VBand,
    VLine,
    draw_marks,
)
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import Models, Recipe
from trueodds.diagrams.table_columns import rows_to_columns, select_part
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.monitoring.cohorts import Unit, UnitName
from trueodds.monitoring.monitor_report import CohortRow, MonitorReport

OPEN_COLOR = "#C9CDD2"
_SECONDS_PER_DAY = 86_400
# Titles of the strips, for wide and for narrow axes.
_PART_TITLES = {
    "ratio": ("Observed / expected events", "Observed / expected"),
    "evidence": ("e-value (evidence against calibration)", "e-value"),
    "rows": ("Rows per cohort", "Rows"),
}
_HEIGHTS = {"ratio": 0.42, "evidence": 0.38, "rows": 0.2}
_GAP = 0.34  # inches between the strips, with room for a title
_MAX_COHORTS_PER_INCH = 15  # more cohorts per inch have small marks
_TICK_LABEL_WIDTH = 0.011 * 11  # inches, for each point of the type size, of a date of 11 characters with its gap


@dataclass(frozen=True)
class MonitorStrips(Recipe):
    r"""Observed against expected events, the evidence, and the rows of each cohort of a monitor, over time.

    It draws a `trueodds.Monitor` or its report, not predictions: ``draw(monitor, "monitor")``.

    Parameters
    ----------
    level : float, default=0.95
        Confidence level of the interval of each cohort.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for predictions; TO108 for a monitor without rows.

    Notes
    -----
    The upper strip shows O:E, :math:`\sum y_i / \sum p_i`, of the labeled rows of each judged cohort, with a normal
    interval, for which the sum of the outcomes has the variance :math:`\sum p_i (1 - p_i)`. Of several classes it
    shows the one with the largest evidence of an alarm, else the first one. Cohorts whose interval excludes 1 are
    orange: of calibrated cohorts these are 5 %, which is no alarm. The middle strip shows the e-value on a logarithmic
    scale, which begins at 1 in every epoch, and the dashed line :math:`1/\alpha` that raises an alarm. The lower strip
    shows the number of rows, in gray for cohorts whose horizon has not passed. Alarm, onset with its region, and resets
    are marked in all strips.

    Columns of ``table``: ``view part cohort last cohorts start end epoch rows unlabeled observed expected ratio low
    high log10_evidence``, with a row for each cohort; ``start`` and ``end`` are days since 1970, or integers.

    Cost: that of the report, which does not depend on the number of rows.

    References
    ----------
    .. [1] Ramdas, Grünwald, Vovk & Shafer (2023), on e-values.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([0, 1] * 50, [0.2, 0.7] * 50)
    >>> monitor = to.Monitor(horizon=0, unit="integer").update(preds, [1] * 50 + [2] * 50, as_of=3)
    >>> to.draw(monitor, "monitor").table["ratio"].round(3).tolist()
    [1.111, 1.111]
    """

    name: ClassVar[str] = "monitor"
    takes_monitor: ClassVar[bool] = True
    level: Level = 0.95

    def __call__(self, views: Sequence[View], rng: int | np.random.Generator = 0) -> Never:
        """Raise an error, because views have no cohorts."""
        raise _no_monitor_error("views")

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Never:
        """Raise an error, because predictions have no cohorts."""
        raise _no_monitor_error(type(next(iter(models.values()))).__name__)

    def draw_report(self, report: MonitorReport) -> MonitorPlot:
        """Return the diagram of the report of a monitor.

        Raises
        ------
        InputError
            TO108 if the monitor has no rows.
        """
        if not report.cohorts:
            raise InputError(
                "TO108", "A monitor without rows has no diagram.", "no cohorts", "Update it with predictions."
            )
        unit: UnitName = report.settings["unit"]
        table = rows_to_columns([_table_row(row, unit, self.level) for row in report.cohorts])
        settings = {**report.settings, "level": self.level}
        onset = report.onset
        alarm = report.status.alarm_cohort
        aside = "no alarm" if not report.alarm else "alarm" if onset is None else f"alarm, since {onset.since}"
        panel = {
            "view": "all",
            "title": "all rows",
            "aside": aside,
            "finding": report.describe().partition("\n")[0],
            "n": sum(row.rows for row in report.cohorts),
            "alarm": np.nan if alarm is None else _ends(alarm, alarm, unit)[1],
            "onset": np.nan if onset is None else _ends(onset.since, onset.since, unit)[0],
            "earliest": np.nan if onset is None else _ends(onset.earliest, onset.earliest, unit)[0],
            "latest": np.nan if onset is None else _ends(onset.latest, onset.latest, unit)[1],
        }
        lens = view_of_cohorts(report)
        return self.build_diagram(MonitorPlot, lens, [table], [panel], settings, report.notes)


def _no_monitor_error(got: str) -> InputError:
    return InputError(
        "TO205",
        "The diagram monitor draws a Monitor or its report.",
        got,
        "Give the predictions to a Monitor first: ⟨to.Monitor().update(preds, time)⟩.",
    )


def draw_report(report: MonitorReport) -> MonitorPlot:
    """Return the diagram of the report of a monitor; raise TO108 if the monitor has no rows."""
    return MonitorStrips().draw_report(report)


class MonitorPlot(Diagram):
    """Three strips with a common axis of time: O:E of each cohort, the e-value, and the number of rows."""

    question = "Are the probabilities still true?"
    labels = "", ""
    layers = ("points", "intervals", "onset", "alarm", "resets", "open")
    figure_size = (6.4, 5.2)
    label_width = 0.5
    row_noun = "cohorts"
    has_inset_axes = True

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw the strips as inset axes, positioned in data coordinates."""
        rows, size = self.rows(panel), PanelSize.of(ax)
        ax.set_axis_off()
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        height = size.height
        gap, top, bottom = min(_GAP / height, 0.12), min(0.22 / height, 0.1), min(0.17 / height, 0.08)
        free = 1 - 2 * gap - top - bottom
        upper = 1 - top
        for name in _PART_TITLES:
            part_height = free * _HEIGHTS[name]
            part_axes = ax.inset_axes((0, upper - part_height, 1, part_height), transform=ax.transData)
            part_axes.set_label(name)
            self._set_part_axes(part_axes, rows, name)
            draw_marks(part_axes, [mark for mark in self._part_marks(rows, name, size) if self.has(mark.layer)])
            if name == "rows":
                style: dict[str, Any] = {"fontsize": styling.font_size(ax), "color": styling.TEXT_COLOR, "labelpad": 2}
                part_axes.set_xlabel("Time of prediction", **style)
            else:
                part_axes.tick_params(labelbottom=False)
            upper -= part_height + gap

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        return [mark for name in _PART_TITLES for mark in self._part_marks(self.rows(panel), name, size)]

    def _part_marks(self, rows: Mapping[str, Array], name: str, size: PanelSize) -> list[Mark]:
        """Return the marks of a strip, and those of the alarm and the onset, which all strips have."""
        judged = select_part(rows, "judged")
        judged_x = (judged["start"] + judged["end"]) / 2
        marks: list[Mark] = []
        if name == "ratio":
            marks += self._ratio_marks(judged, judged_x, size)
        elif name == "evidence":
            marks += self._evidence_marks(judged)
        else:
            opened = select_part(rows, "open")
            for part, layer, color, label in (
                (judged, "", styling.STRIP_COLOR, ""),
                (opened, "open", OPEN_COLOR, "open cohorts"),
            ):
                height = part["rows"] / part["cohorts"]
                style: dict[str, Any] = {"facecolor": color, "edgecolor": "none", "label": label, "layer": layer}
                marks.append(Boxes(part["start"], part["end"], 0.0, height, name=layer or "judged", **style))
        return [*marks, *self._moment_marks(judged)]

    def _ratio_marks(self, judged: Mapping[str, Array], x: Array, size: PanelSize) -> list[Mark]:
        """Return O:E of each judged cohort with its interval, in orange if that excludes 1."""
        is_off = (judged["low"] > 1) | (judged["high"] < 1)
        is_dense = len(x) > _MAX_COHORTS_PER_INCH * size.width
        marks: list[Mark] = [HLine(1.0, color=styling.MUTED_COLOR, linewidth=0.9, zorder=1, name="one")]
        for mask, color, bar_color, label in (
            (~is_off, styling.INSIDE_COLOR, styling.INSIDE_BAR_COLOR, ""),
            (is_off, styling.OUTSIDE_COLOR, styling.OUTSIDE_BAR_COLOR, f"{self.level_text} interval excludes 1"),
        ):
            bars: dict[str, Any] = {"color": bar_color, "linewidth": 1.0 if is_dense else 1.8, "zorder": 2}
            marks += [
                Segments(x[mask], x[mask], judged["low"][mask], judged["high"][mask], layer="intervals", **bars),
                Points(
                    x[mask], judged["ratio"][mask], color=color, marker="o", markersize=2.0 if is_dense else 3.4,
                    zorder=3, label=label, layer="points", name="ratios", key={"markersize": 4.5},
                ),
            ]  # fmt: skip
        return marks

    def _evidence_marks(self, judged: Mapping[str, Array]) -> list[Mark]:
        """Return the evidence of each epoch in powers of ten, and the line that raises an alarm."""
        alarm = -np.log10(self.settings["alpha"])
        text = f"alarm at {1 / self.settings['alpha']:g}"
        dashed: dict[str, Any] = {
            "color": styling.OUTSIDE_COLOR,
            "linestyle": (0, (4, 2)),
            "linewidth": 1.1,
        }
        marks: list[Mark] = [HLine(alarm, label=text, layer="alarm", name="threshold", zorder=2, **dashed)]
        for epoch in np.unique(judged["epoch"]):
            is_in_epoch = judged["epoch"] == epoch
            values = judged["log10_evidence"][is_in_epoch]
            marks.append(
                Line(judged["end"][is_in_epoch], values, color=styling.INSIDE_COLOR, linewidth=1.6, zorder=3,
                     marker="o" if len(values) < 2 else "", markersize=3, name="evidence"),
            )  # fmt: skip
        return marks

    def _moment_marks(self, judged: Mapping[str, Array]) -> list[Mark]:
        """Return the onset with its region, the alarm, and the resets, across the strip."""
        moments = {name: float(self.panels[name][0]) for name in ("onset", "earliest", "latest", "alarm")}
        region: dict[str, Any] = {"facecolor": styling.GAP_COLOR, "linewidth": 0, "zorder": 0.5, "layer": "onset"}
        onset: dict[str, Any] = {
            "color": styling.OUTSIDE_COLOR,
            "linestyle": (0, (1, 1.5)),
            "linewidth": 1.4,
        }
        resets = [float(judged["start"][judged["epoch"] == epoch].min()) for epoch in np.unique(judged["epoch"])[1:]]
        style: dict[str, Any] = {
            "color": styling.MUTED_COLOR,
            "linestyle": (0, (1, 1.5)),
            "linewidth": 1.2,
        }
        return [
            VLine(moments["alarm"], color=styling.OUTSIDE_COLOR, linewidth=1.4, zorder=2.6, layer="alarm",
                  label="alarm"),
            VLine(moments["onset"], layer="onset", label="onset", name="onset", zorder=2.5, **onset),
            VBand(moments["earliest"], moments["latest"], label="onset region", name="onset_region", **region),
            VLine(resets or np.nan, label="reset", layer="resets", **style),
        ]  # fmt: skip

    def _set_part_axes(self, ax: Any, rows: Mapping[str, Array], name: str) -> None:
        """Set the ticks of time, which all strips share, and those of the values."""
        from matplotlib import dates
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        date_tools: Any = dates  # which have no types
        size = styling.font_size(ax)
        width, height = styling.size_in_inches(ax)
        styling.style_axes(ax, size)
        max_width = styling.POINTS_PER_INCH * width
        style: dict[str, Any] = {"fontsize": size + 0.5, "fontweight": "bold", "color": styling.TEXT_COLOR}
        title, short = _PART_TITLES[name]
        of_rows = f" of {self.lens.removeprefix('class:')}" if "class" in self.lens else ""
        of_rows += ", all rows" if self.settings["group"] else ""
        if name == "ratio" and of_rows:
            title, short = f"{title}{of_rows}", f"O:E{of_rows}"
        if styling.text_width(title, size + 0.5, "bold") > 0.95 * max_width:
            title = styling.shorten_text(short, max_width, size + 0.5, "bold")
        ax.set_title(title, loc="left", pad=3, **style)
        first, last = float(rows["start"].min()), float(rows["end"].max())
        ax.set_xlim(first - 0.01 * (last - first), last + 0.01 * (last - first))
        n_ticks = max(2, int(width / (_TICK_LABEL_WIDTH * size)))
        if self.settings["unit"] == "integer":
            ax.xaxis.set_major_locator(MaxNLocator(min(n_ticks, 8), integer=True))
        else:
            ax.xaxis.set_major_locator(date_tools.AutoDateLocator(minticks=2, maxticks=max(3, min(n_ticks, 7))))
            ax.xaxis.set_major_formatter(date_tools.DateFormatter("%Y-%m-%d %H:%M" if last - first < 3 else "%Y-%m-%d"))
            styling.align_outer_labels(ax)
        ax.yaxis.set_major_locator(MaxNLocator(4 if height > 0.8 else 2, integer=name != "ratio", steps=[1, 2, 5, 10]))
        judged = select_part(rows, "judged")
        if name == "ratio":
            ax.set_ylim(*_ratio_limits(judged))
        elif name == "evidence":
            highest = max([-np.log10(self.settings["alpha"]), *judged["log10_evidence"].tolist()])
            lowest = min([0.0, *judged["log10_evidence"].tolist()])
            ax.set_ylim(lowest - 0.06 * (highest - lowest), highest + 0.12 * (highest - lowest))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda power, _: _power_text(int(power))))
        else:
            ax.set_ylim(0, 1.08 * float((rows["rows"] / rows["cohorts"]).max()) or 1.0)
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def view_of_cohorts(report: MonitorReport) -> str:
    """Return the view of the table of cohorts: that with the largest evidence of an alarm, else the first one."""
    return "all" if report.error is None else report.error.view


def _table_row(row: CohortRow, unit: UnitName, level: float) -> dict[str, Any]:
    """Return a cohort with O:E, its interval under a fixed expectation, and its ends in days since 1970."""
    start, end = _ends(row.cohort, row.last, unit)
    ratio = width = np.nan
    if row.expected > 0:
        ratio = row.observed / row.expected
        width = float(ndtri((1 + level) / 2)) * np.sqrt(row.variance) / row.expected
    return {
        "view": "all",
        "part": row.status,
        "cohort": row.cohort,
        "last": row.last,
        "cohorts": row.cohorts,
        "start": start,
        "end": end,
        "epoch": -1 if row.epoch is None else row.epoch,
        "rows": row.rows,
        "unlabeled": row.unlabeled,
        "observed": row.observed,
        "expected": row.expected,
        "ratio": ratio,
        "low": max(ratio - width, 0.0) if np.isfinite(ratio) else np.nan,
        "high": ratio + width,
        "log10_evidence": np.nan if row.log_evidence is None else row.log_evidence / np.log(10),
    }


def _ends(first: str, last: str, unit: UnitName) -> tuple[float, float]:
    """Return the start of a cohort and the end of another one: days since 1970, or integers."""
    period = Unit(unit)
    if unit == "integer":
        return float(first), float(last) + 1.0
    numbers = period.numbers(np.array([first, last], dtype="datetime64[s]"))
    ends: list[Any] = [period.start(int(numbers[0])), period.start(int(numbers[1]) + 1)]
    low, high = (float(moment.astype("datetime64[s]").astype(np.int64)) / _SECONDS_PER_DAY for moment in ends)
    return low, high


def _ratio_limits(judged: Mapping[str, Array]) -> tuple[float, float]:
    """Return limits that show all values of O:E, and intervals up to twice the usual distance from 1."""
    values = judged["ratio"][np.isfinite(judged["ratio"])]
    if not len(values):
        return 0.5, 1.5
    spread = 1.6 * float(np.abs(values - 1).max()) or 0.1
    return max(0.0, 1 - spread), 1 + spread


def _power_text(power: int) -> str:
    """Return a power of ten as a number, or with its exponent if it is long."""
    return f"{10.0**power:,g}" if abs(power) <= 3 else f"1e{power}"
