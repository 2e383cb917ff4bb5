"""Forest plot of subgroups: the calibration error of each, with its interval, beside the error of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.formatting import format_column, format_intervals, format_number
from trueodds.core.progress import report_progress
from trueodds.core.results import Interval, noise_floor_label
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import Level, NonNegative, Range, Resamples
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.draw_diagram import header_width
from trueodds.diagrams._style.formatting import capitalize_first, format_level, join_words
from trueodds.diagrams._style.marks import Mark, PanelSize, Points, Segments, Text, VLine
from trueodds.diagrams._style.title_and_legend import fit_headers
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import Recipe
from trueodds.diagrams.table_columns import rows_to_columns, select_part
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests.group_results import ByGroup
from trueodds.hypotests.group_status import analyze_groups, check_between, check_has_groups
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.comparison.group_gaps import GroupErrors
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

MAX_NAMED_GROUPS, MAX_NAME_LENGTH = 3, 60  # miscalibrated groups that the finding names, and letters of a name


@dataclass(frozen=True)
class ForestPlot(Recipe):
    r"""Forest plot: the calibration error of each subgroup with its interval, and that of all rows.

    Each group is a row, in the order of `trueodds.by_group`. The mark is its error, the line its confidence interval,
    and the tick its noise floor, the mean error of a calibrated model with the predictions of the group. Groups that
    are significantly miscalibrated are orange. The vertical line is the error of all rows. Groups that were not
    examined are listed without a mark.

    Parameters
    ----------
    estimator : str or Estimator, default="ece"
        Name of an estimator, or an instance with its settings.
    crossings : bool or int, default=False
        How many group columns are combined: 2 (or True) adds the groups of every two columns.
    max_groups : int, optional
        Examine only so many groups of each column, those that deviate most. The others are listed.
    min_effect : float, default=0.05
        Equivalence margin: a group is ``"within"`` if its interval is closer to the best value.
    between, method
        As for `trueodds.by_group`: add the mean of the groups, and the interval for a new group.
    level : float, default=0.95
        Confidence level of the intervals. A group is significant if its joint p-value is at most 1 − `level`.
    resamples : int, optional
        Number of null draws and of bootstrap resamples, as for `trueodds.by_group`.

    Raises
    ------
    InputError
        TO203 for an invalid setting, TO403 for a tally, TO409 if there is no group column.

    See Also
    --------
    trueodds.by_group : The same numbers, with the gaps between the groups.

    Notes
    -----
    All groups are tested on the same null draws. The joint p-values are adjusted for all groups (step-down min-p), so
    a calibrated group is orange with probability at most 1 − `level`. Each interval holds for its group separately.
    The interval of a significant group may contain the noise floor, and one that excludes it need not be significant.
    Differences between the errors of groups are misleading, because the error of a small group is biased upward more;
    `trueodds.by_group` tests them.

    Views: any; the views of a lens are combined into one error, by their mean. Units: those of the estimator.

    Columns of ``table``: ``view part column value n mean_prediction outcome_rate error error_low error_high noise_floor
    pvalue joint min_detectable status direction``. ``part`` is ``group``, ``unexamined`` (a group that was not
    examined, with the reason as ``status``), ``mean`` and ``new`` (mean of the groups, and a new one) or ``all`` (all
    rows, in the last line).

    Cost: that of `trueodds.by_group` without gaps.

    References
    ----------
    .. [1] Westfall & Young (1993). Step-down min-p adjusted p-values.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> p, old = np.tile([0.2, 0.8], 200), np.repeat([True, False], 200)
    >>> y = np.where(old, np.tile([0, 1], 200), np.tile([0, 0, 0, 0, 1, 1, 1, 1, 0, 1], 40))
    >>> preds = to.Predictions(y, p, group={"age": np.where(old, "old", "young")})
    >>> diagram = to.draw(preds, "groups", resamples=199)
    >>> diagram.table["value"].tolist(), diagram.table["status"].tolist()
    (['old', 'young', 'all rows'], ['miscalibrated', 'miscalibrated', ''])
    """

    name: ClassVar[str] = "groups"
    accepts_joint_views: ClassVar[bool] = True
    supports_clusters: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = (
        "error_low", "error_high", "noise_floor", "pvalue", "joint", "min_detectable", "status",
    )  # fmt: skip
    count_columns: ClassVar[tuple[str, ...]] = ("n", "direction")
    exemptions: ClassVar[dict[str, str]] = {
        "tally": "the joint test of groups needs the rows",
        "class order": "the classes are combined into one error",
    }
    estimator: str | Estimator = "ece"
    crossings: bool | Annotated[int, Range(0)] = False
    max_groups: Annotated[int, Range(1)] | None = None
    min_effect: NonNegative = 0.05
    between: bool = False
    method: Literal["Nagashima", "HTS"] = "Nagashima"
    level: Level = 0.95
    resamples: Resamples | None = None

    @property
    def lens(self) -> str | None:  # type: ignore[override]
        """The default lens, that of the estimator."""
        return self._resolved_estimator.lens

    @property
    def _resolved_estimator(self) -> Estimator:
        if isinstance(self.estimator, Estimator):
            return self.estimator
        estimator: Estimator = ESTIMATORS.make(self.estimator, {})
        return estimator

    def __call__(self, views: Sequence[View], rng: int | np.random.Generator = 0) -> Diagram:
        """Raise TO409, because views have no groups."""
        fix = "Pass predictions: to.draw(Predictions(y, p, group={'sex': sex}), 'groups')."
        raise InputError("TO409", "Views have no group column.", f"{len(views)} views", fix)

    def draw_resolved(
        self,
        data: Mapping[str, tuple[Predictions | Tally, Predictions | Tally]],
        lens: Lens,
        rng: int | np.random.Generator = 0,
    ) -> Diagram:
        """The diagram of one model; groups whose rows all have weight 0 are listed as not examined."""
        if len(data) != 1:
            return super().draw_resolved(data, lens, rng)  # raises an error
        all_rows, rows = (check_has_groups(model) for model in next(iter(data.values())))
        generator = as_generator(rng)
        prediction_method = check_between(self.between, self.method, self._resolved_estimator, self.max_groups)
        estimator, rows = self._resolved_estimator.prepare(rows)
        seed = seed_of(rng, generator)
        interval_spec = IntervalSpec("auto", self.level, 2000 if self.resamples is None else self.resamples)
        with report_progress(None) as report:
            by_group = analyze_groups(
                GroupErrors(estimator, lens, lens.aggregate, interval_spec, seed), all_rows, rows,
                crossings=self.crossings, max_groups=self.max_groups, min_effect=self.min_effect,
                resamples=self.resamples, rng=generator, progress=report, between=prediction_method,
            )  # fmt: skip
        table, row = rows_to_columns(_table_rows(by_group)), _panel_row(by_group)
        settings = {"estimator": estimator.name, "crossings": self.crossings, "level": self.level}
        settings |= {name: value for name, value in by_group.settings.items() if name != "against"}
        return self.build_diagram(GroupsPlot, by_group.lens, [table], [row], settings, by_group.notes)


def _table_rows(by_group: ByGroup) -> list[dict[str, Any]]:
    """A row for each group, for each one that was not examined, for each mean of groups, and for all rows."""
    rows: list[dict[str, Any]] = [{"part": "group", **group.to_dict()} for group in by_group.groups]
    rows += [
        {"part": "unexamined", "column": group.column, "value": group.value, "status": group.reason}
        for group in by_group.unexamined
    ]
    for summary in by_group.between:
        if summary.mean is not None and summary.mean_interval and summary.prediction:
            mean = {"value": "mean of groups", "error": summary.mean, "interval": summary.mean_interval.to_dict()}
            new = {"value": "new group", "interval": summary.prediction.to_dict()}
            rows += [
                {"part": "mean", "column": summary.column, **mean},
                {"part": "new", "column": summary.column, **new},
            ]
    overall = by_group.overall
    interval = None if overall.interval is None else overall.interval.to_dict()
    numbers = {"n": overall.n, "error": overall.value, "interval": interval, "noise_floor": overall.noise_floor}
    rows.append({"part": "all", "column": "", "value": "all rows", **numbers})

    def number(row: Mapping[str, Any], name: str) -> float:
        """The number of this name; NaN if it is undefined."""
        value = row.get(name)
        return np.nan if value is None else float(value)

    return [
        {
            "view": by_group.lens,
            "part": row["part"],
            "column": row["column"],
            "value": row["value"],
            "n": row.get("n", 0),
            "mean_prediction": number(row, "mean_prob"),
            "outcome_rate": number(row, "event_rate"),
            "error": number(row, "error"),
            "error_low": number(row.get("interval") or {}, "low"),
            "error_high": number(row.get("interval") or {}, "high"),
            "noise_floor": number(row, "noise_floor"),
            "pvalue": number(row, "pvalue"),
            "joint": number(row, "joint"),
            "min_detectable": number(row, "min_detectable"),
            "status": row.get("status") or "",
            "direction": row.get("direction") or "",
        }
        for row in rows
    ]


def _panel_row(by_group: ByGroup) -> dict[str, Any]:
    """The row of `panels`; its x limits contain all errors and intervals and, for an error, its best value."""
    numbers = (
        [] if noise_floor_label(by_group.estimator) != "noise floor" else [by_group.settings.get("best_value", 0.0)]
    )
    for estimate in (by_group.overall, *(group.estimate for group in by_group.groups)):
        ends = [estimate.interval.low, estimate.interval.high] if estimate.interval else []
        numbers += [estimate.value, np.nan if estimate.noise_floor is None else estimate.noise_floor, *ends]
    for summary in by_group.between:
        numbers += [summary.prediction.low, summary.prediction.high] if summary.prediction else []
    finite = np.array(numbers)[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 0.01
    n_miscalibrated, n_groups = len(by_group.miscalibrated), len(by_group.groups)
    return {
        "view": by_group.lens,
        "title": by_group.lens,
        "aside": f"{n_miscalibrated} of {n_groups} miscalibrated",
        "finding": _describe_finding(by_group),
        "n": by_group.n,
        "groups": n_groups,
        "miscalibrated": n_miscalibrated,
        "unexamined": len(by_group.unexamined),
        "between": 2 * sum(summary.prediction is not None for summary in by_group.between),  # rows `mean` and `new`
        "x_low": low - margin,
        "x_high": high + margin,
    }


def _describe_finding(by_group: ByGroup) -> str:
    """State how many groups are miscalibrated, the strongest evidence first, and how many were not examined."""
    miscalibrated = sorted(by_group.miscalibrated, key=by_group.evidence_order)
    n_groups = len(by_group.groups)
    if miscalibrated:
        biases = {"under": "underpredicted", "over": "overpredicted"}
        names = [
            group.label[:MAX_NAME_LENGTH]
            + (f" ({biases.get(group.direction, group.direction)})" if group.direction else "")
            for group in miscalibrated[:MAX_NAMED_GROUPS]
        ]
        if len(miscalibrated) > MAX_NAMED_GROUPS:
            names.append(f"{len(miscalibrated) - MAX_NAMED_GROUPS} more")
        verb = "is" if len(miscalibrated) == 1 else "are"
        criterion = f"joint p\u00a0≤\u00a0{format_level(1 - by_group.level)}"
        text = f"{len(miscalibrated)} of {n_groups} groups {verb} miscalibrated ({criterion}): {join_words(names)}."
    elif n_groups == 1:
        text = "The only group is not significantly miscalibrated."
    else:
        text = f"None of {n_groups} groups is significantly miscalibrated."
    if by_group.unexamined:
        n_unexamined = len(by_group.unexamined)
        text += f" {n_unexamined} {'group was' if n_unexamined == 1 else 'groups were'} not examined."
    return text


_ROW_HEIGHT = 0.215  # inches of a group in a figure of its own
_USUAL_WIDTH = 3.4  # inches of the axes in a figure of its own
_AXIS_HEIGHT = 0.55  # inches of tick labels and axis label
_MIN_FONT_SIZE = 4.5  # points below which the names of some groups are left out
_MAX_NAME_WIDTH = 1.9  # inches of the longest name
_STATUS_STYLES: dict[str, dict[str, Any]] = {
    "miscalibrated": {"color": styling.OUTSIDE_COLOR, "marker": "D"},
    "within": {"color": styling.INSIDE_COLOR, "marker": "o"},
    "undecided": {"color": styling.INSIDE_COLOR, "marker": "o", "markerfacecolor": "white"},
}


class GroupsPlot(Diagram):
    """A row for each group: its error with interval and noise floor, beside the error of all rows."""

    question = "In which groups are the predictions miscalibrated?"
    layers = ("intervals", "marks", "noise_floor", "overall", "numbers")
    row_noun = "groups"
    view_order = "strongest evidence"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height, which grows with the number of groups."""
        width, font_size = 6.4, styling.DEFAULT_FONT_SIZE
        header = fit_headers(self, self.summary(), header_width(self, width, font_size), font_size)[0]
        return width, header.height / styling.POINTS_PER_INCH + _AXIS_HEIGHT + _ROW_HEIGHT * max(self._n_rows, 3)

    @property
    def _n_rows(self) -> int:
        """The number of rows of the panel with the most groups."""
        return max(len(self._group_rows(panel)["part"]) for panel in range(len(self.panels["view"])))

    @property
    def _columns(self) -> list[str]:
        return [str(column) for column in dict.fromkeys(self.table["column"]) if column]

    def axis_labels(self) -> tuple[str, str]:
        """The error along x; the group column, if there is one, along y."""
        estimator = str(self.settings["estimator"])
        error = (
            estimator.upper().replace("_", ":") if len(estimator) < 4 else capitalize_first(estimator.replace("_", " "))
        )
        return error, self._columns[0] if len(self._columns) == 1 else ""

    @property
    def label_width(self) -> float:  # type: ignore[override]
        """Inches of the names of the groups beside the axes."""
        widths = (styling.text_width(name, styling.FONT_SIZE_BY_WIDTH[1][1]) for name in self._names(self.table))
        return 0.6 + min(max(widths) / styling.POINTS_PER_INCH, _MAX_NAME_WIDTH)

    @property
    def aspect_ratio(self) -> float:  # type: ignore[override]
        """The height of a panel relative to its width, which grows with the number of groups."""
        return _ROW_HEIGHT * max(self._n_rows, 8) / _USUAL_WIDTH  # a lower figure has no room for the legend

    @property
    def has_equal_units(self) -> bool:
        """False: errors and groups have no common unit."""
        return False

    def _names(self, rows: Mapping[str, Array]) -> list[str]:
        """The names of the groups: their values, after the column if there are several."""
        if len(self._columns) == 1:
            return [str(value) for value in rows["value"]]
        return [f"{column}={value}" for column, value in zip(rows["column"], rows["value"], strict=True)]

    def _group_rows(self, panel: int) -> dict[str, Array]:
        """The rows of the table without that of all rows together, which is drawn as a line."""
        rows = self.rows(panel)
        return {name: column[rows["part"] != "all"] for name, column in rows.items()}

    def _row_height(self, size: PanelSize) -> float:
        """Points of a group."""
        return styling.POINTS_PER_INCH * size.height / self._n_rows

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """The names of the groups along y, the first at the top."""
        rows, row_height = self._group_rows(panel), self._row_height(size)
        styling.style_axes(ax, size.font_size)
        ax.grid(False, axis="y")
        ax.set_xlim(self.panels["x_low"][panel], self.panels["x_high"][panel])
        ax.set_ylim(self._n_rows - 0.4, -0.6)
        font_size = float(np.clip(0.82 * row_height, _MIN_FONT_SIZE, size.font_size))
        max_width = styling.POINTS_PER_INCH * min(_MAX_NAME_WIDTH, 0.45 * size.width)
        labels = [_shorten_middle(name, max_width, font_size) for name in self._names(rows)]
        step = int(np.ceil(_MIN_FONT_SIZE / row_height))  # only every so many names have room
        ax.set_yticks(range(0, len(labels), step), labels[::step], fontsize=font_size, parse_math=False)
        ax.tick_params(axis="y", length=0)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The groups by status, the noise floors, the error of all rows, and the numbers."""
        rows = self._group_rows(panel)
        y, alpha = np.arange(len(rows["value"])), format_level(1 - self.settings["level"])
        marks: list[Mark] = []
        marker_size = 5.0 * min(1.0, self._row_height(size) / 11)
        for status, style in _STATUS_STYLES.items():
            has_criterion = status == "miscalibrated" and self.has_long_labels
            label = f"{status} (joint p\u00a0≤\u00a0{alpha})" if has_criterion else status
            has_status = rows["status"] == status
            y_of_status = y[has_status]
            low, high, error = (rows[name][has_status] for name in ("error_low", "error_high", "error"))
            line = {"color": style["color"], "linewidth": 1.3, "zorder": 3}
            marks += [
                Segments(low, high, y_of_status, y_of_status, layer="intervals", label=label, **line),
                Points(
                    error,
                    y_of_status,
                    layer="marks",
                    name=status,
                    label=label,
                    markersize=marker_size,
                    zorder=4,
                    **style,
                ),
            ]
        is_summary = np.isin(rows["part"], ("mean", "new"))
        low, high, y_of_summary = rows["error_low"][is_summary], rows["error_high"][is_summary], y[is_summary]
        line = {"color": styling.TEXT_COLOR, "linewidth": 1.3, "zorder": 3}
        style = {"color": styling.TEXT_COLOR, "marker": "s", "markersize": marker_size, "zorder": 4}
        marks.append(Segments(low, high, y_of_summary, y_of_summary, layer="intervals", **line))
        is_mean = rows["part"] == "mean"
        marks.append(Points(rows["error"][is_mean], y[is_mean], layer="marks", name="mean of groups", **style))
        tick: dict[str, Any] = {"color": styling.MUTED_COLOR, "linewidth": 1.2, "zorder": 2.5, "layer": "noise_floor"}
        tick |= {"label": noise_floor_label(self.settings["estimator"]), "key": {"marker": "|", "linestyle": "none"}}
        dashed: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.0, "linestyle": (0, (4, 2)), "zorder": 2}
        overall = float(select_part(self.rows(panel), "all")["error"][0])
        overall_label = f"all rows: {format_number(overall)}" if len(self.panels["view"]) == 1 else "all rows"
        return [
            *marks,
            Segments(rows["noise_floor"], rows["noise_floor"], y - 0.3, y + 0.3, **tick),
            VLine(overall, layer="overall", label=overall_label, **dashed),
            *self._row_texts(rows, size),
        ]

    def _row_texts(self, rows: Mapping[str, Array], size: PanelSize) -> list[Mark]:
        """What was not examined; if there is room, the error of each group and its interval at the right."""
        font_size = min(size.font_size - 1, 0.8 * self._row_height(size))
        if font_size < _MIN_FONT_SIZE:
            return []
        style: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": font_size}
        style |= {"color": styling.MUTED_COLOR}
        background = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        texts: list[Mark] = [
            Text(0.02, float(i), "not examined", zorder=3, bbox=background, **style)
            for i in np.flatnonzero(rows["part"] == "unexamined")
        ]
        if size.is_wide and len(self.panels["view"]) == 1:
            is_group = rows["part"] != "unexamined"
            errors = format_column(rows["error"][is_group].tolist())
            ends = zip(rows["error_low"][is_group].tolist(), rows["error_high"][is_group].tolist(), strict=True)
            level = self.settings["level"]
            intervals = format_intervals(
                [None if np.isnan(low) or np.isnan(high) else Interval(low, high, level, "") for low, high in ends]
            )
            texts += [
                Text(
                    1.02,
                    i,
                    f"{error} {interval}".removeprefix("nan "),
                    layer="numbers",
                    gid=styling.SIDE_TEXT_GID,
                    **style,
                )
                for i, error, interval in zip(np.flatnonzero(is_group).tolist(), errors, intervals, strict=True)
            ]
        return texts


def _shorten_middle(text: str, max_width: float, size: float) -> str:
    """Cut the middle of a name, because long names of groups often differ at the end.

    >>> _shorten_middle("Department of Surgery, ward 3", 60.0, 9.0)
    'Depar…ard 3'
    >>> _shorten_middle("7", 60.0, 9.0)
    '7'
    """
    text = styling.on_one_line(text)
    for n_letters in range(len(text), 0, -1):
        head = (n_letters + 1) // 2
        shortened = (
            text
            if n_letters == len(text)
            else f"{text[:head].rstrip()}…{text[len(text) - n_letters + head :].lstrip()}"
        )
        if styling.text_width(shortened, size) <= max_width:
            return shortened
    return text[:1] + "…"
