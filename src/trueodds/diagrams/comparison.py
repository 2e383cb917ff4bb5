"""The reliability diagrams of several models in one picture, with their calibration errors and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import Note
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, Points, Segments
from trueodds.diagrams._style.reliability_plots import BINNED_STYLES, BinnedPlot
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_results import (
    COLORS,
    LINE_STYLES,
    MARKERS,
    MISSING,
    ModelResult,
    describe_comparison,
    format_error,
    legend_name,
    match_views,
    measure_models,
)
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BinnedRecipe, Models, lens_name, panel_limit_notes
from trueodds.diagrams.reliability import Reliability
from trueodds.diagrams.table_columns import Columns, rows_to_columns, select_part_of_model
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.intervals.method import IntervalSpec

ViewsByModel = Mapping[str, tuple[View, ...]]


@dataclass(frozen=True)
class Comparison(BinnedRecipe):
    r"""Reliability diagrams of several models in one figure, with calibration errors and their differences.

    The diagram shows which model is better calibrated, for instance before and after recalibration, at which
    probabilities, and whether the difference is significant. Each model has its own color, marker and line. As in
    the diagram ``reliability``, marks are at :math:`(\bar p, \bar y - \bar p)`, or at :math:`(\bar p, \bar y)` with
    ``style="diagonal"``. Models are offset horizontally by 2.2 points so that equal bins stay apart. Histogram strips
    below show the distribution of the predictions.

    Parameters
    ----------
    partition : Partition, optional
        The bins of the predicted probabilities. The default is 15 uniform bins. Bins that depend on the predictions
        are computed for each model separately.
    level : float, default=0.95
        Confidence level of bars and intervals.
    style : {"deviation", "diagonal"}, default="deviation"
        Whether the vertical axis shows the observed minus the predicted rate, which separates models close to the
        diagonal, or the observed rate. The table is the same.
    bars : {"confidence", "consistency"} or None, default="confidence"
        ``"confidence"`` draws the Wilson interval of the event rate around each mark. ``"consistency"`` draws the
        range of the observed rate under calibration. None draws no bars.
    paired : bool, optional
        Whether the models predict the same rows in the same order. By default this is decided by whether their
        outcomes are equal.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for a joint view, for models with different views and for ``paired=True``
        with different outcomes; TO705 for more than eight models.

    See Also
    --------
    trueodds.compare : Compare the calibration errors of several models.

    Notes
    -----
    The error of each model and its difference to the first model are

    .. math:: \text{ECE} = \sum_b \tfrac{w_b}{w} |\bar y_b - \bar p_b|, \qquad \Delta_m = \text{ECE}_m - \text{ECE}_1

    The table contains the noise floor of each error and an interval of each difference. Models of the same rows are
    resampled together. The intervals of all differences hold simultaneously with probability `level` (max-T, else
    Bonferroni; see ``trueodds.compare``). Tallies have no intervals of differences.

    Views: binary. Several views form a grid, and the difference is then the difference of the mean over the views.
    A single model can be drawn, too. Units: probability, 0 is best.

    Columns of ``table``: ``view model part bin low high n weight share mean_prediction outcome_rate deviation bar_low
    bar_high outside`` and ``error error_low error_high noise_floor difference difference_low difference_high``. The
    bars are rates in either style. ``part`` is ``bin``, or ``model`` for all rows of a model in a view; only rows of
    the latter have errors. With several views, the results of a model over all views are listed under the name of the
    lens. Entries that do not apply are NaN or False.

    Cost: that of ``reliability`` for each model, plus 2,000 bootstrap resamples and 999 simulations for its interval.

    References
    ----------
    .. [1] Bröcker & Smith (2007), for the bars.

    Examples
    --------
    >>> import trueodds as to
    >>> diagram = to.draw([0, 1, 1], {"first": [0.5, 0.5, 0.9], "second": [0.5, 0.8, 0.9]}, "comparison")
    >>> diagram.table["error"][diagram.table["part"] == "model"].round(4).tolist()  # (0 + .1)/3, (.5 + .2 + .1)/3
    [0.0333, 0.2667]
    """

    name: ClassVar[str] = "comparison"
    accepts_several_models: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = (
        "error_low",
        "error_high",
        "noise_floor",
        "difference_low",
        "difference_high",
    )
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    style: Annotated[str, OneOf(BINNED_STYLES)] = "deviation"
    bars: Literal["confidence", "consistency"] | None = "confidence"
    paired: bool | None = None

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of the views of one model, without noise floor and interval, which need its rows."""
        return self._make_diagram({"": views}, None, [])

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        views_by_model = match_views(models, lens, self.name)
        seed = seed_of(rng, as_generator(rng))
        results, notes = measure_models(
            models, BinnedError(self.partition), lens, IntervalSpec(level=self.level), self.paired, seed
        )
        return self._make_diagram(views_by_model, results, notes)

    def _make_diagram(
        self, views_by_model: ViewsByModel, results: list[ModelResult] | None, notes: list[Note]
    ) -> Diagram:
        """Order the views by their largest error, and stack the tables of all models.

        `results` holds the result of each model over all views; None if only the views are known.
        """
        diagrams_by_model = {
            name: [Reliability(self.partition, self.level, style=self.style, bars=self.bars)([view]) for view in views]
            for name, views in views_by_model.items()
        }
        n_views = len(next(iter(views_by_model.values())))
        largest_errors = [
            max(float(diagrams[i].panels["error"][0]) for diagrams in diagrams_by_model.values())
            for i in range(n_views)
        ]
        order = decreasing_order(largest_errors)
        diagrams_by_model = {name: [diagrams[i] for i in order] for name, diagrams in diagrams_by_model.items()}
        results_by_view = [
            [ModelResult(float(diagrams[i].panels["error"][0])) for diagrams in diagrams_by_model.values()]
            for i in range(len(order))
        ]
        if results is not None and len(order) == 1:
            results_by_view = [results]
        first_diagrams = next(iter(diagrams_by_model.values()))
        lens = lens_name(next(iter(views_by_model.values())))
        table: list[Columns] = []
        for i, results_of_view in enumerate(results_by_view):
            for (name, diagrams), result in zip(diagrams_by_model.items(), results_of_view, strict=True):
                table += [bin_rows(diagrams[i], name), model_row(diagrams[i], name, result)]
        if len(order) > 1 and results is not None:
            table += [
                _overall_row(lens, name, result, {}) for name, result in zip(diagrams_by_model, results, strict=True)
            ]
        rows = panel_rows(diagrams_by_model, results_by_view, results)
        settings = {
            "partition": first_diagrams[0].settings["partition"],
            "style": self.style,
            "bars": self.bars,
            "level": self.level,
            "paired": self.paired,
            "models": list(views_by_model),
        }
        unique_notes = dict.fromkeys([*notes, *self._collect_notes(diagrams_by_model)])
        return self.build_diagram(ComparisonDiagram, lens, table, rows, settings, unique_notes)

    def _collect_notes(self, diagrams_by_model: Mapping[str, Sequence[Diagram]]) -> list[Note]:
        n_views = len(next(iter(diagrams_by_model.values())))
        diagram_notes = [
            note for diagrams in diagrams_by_model.values() for diagram in diagrams for note in diagram.notes
        ]
        # Counts of bins differ between models; notes on the distribution of the bars are kept once.
        merged_notes = list({note.code: note for note in diagram_notes if note.code != "TN246"}.values())
        if self.bars == "consistency":
            text = (
                f"The bars are pointwise: up to {format_percent(1 - self.level)} of the marks of a calibrated "
                "model fall outside."
            )
            merged_notes.append(Note("TN246", text))
        return [*merged_notes, *panel_limit_notes(n_views, ComparisonDiagram.view_order)]


RESULT_COLUMNS = tuple(ModelResult.__dataclass_fields__)


def bin_rows(diagram: Diagram, model_name: str) -> Columns:
    """The table rows of the bins of one model in a view, from its reliability diagram."""
    n_bins = len(diagram.table["bin"])
    missing = np.full(n_bins, MISSING)
    columns = {
        "view": diagram.table["view"],
        "model": np.full(n_bins, model_name, dtype=object),
        "part": np.full(n_bins, "bin", dtype=object),
        # Of a diagram without bars; otherwise they are in the table.
        "bar_low": missing,
        "bar_high": missing,
        "outside": np.zeros(n_bins, dtype=bool),
    }
    return columns | dict(diagram.table) | dict.fromkeys(RESULT_COLUMNS, missing)


def model_row(diagram: Diagram, model_name: str, result: ModelResult) -> Columns:
    """The table row for all data of one model in a view, with its errors."""
    totals = {column: diagram.panels[column][0] for column in ("n", "weight", "mean_prediction", "outcome_rate")}
    totals["deviation"] = totals["outcome_rate"] - totals["mean_prediction"]
    return _overall_row(
        str(diagram.panels["view"][0]), model_name, result, {"low": 0.0, "high": 1.0, "share": 1.0} | totals
    )


def _overall_row(view: str, model_name: str, result: ModelResult, totals: Mapping[str, Any]) -> Columns:
    """A table row of one model that is not a bin; numbers that `totals` and `result` lack are missing."""
    numbers = ("low", "high", "weight", "share", "mean_prediction", "outcome_rate", "deviation", "bar_low", "bar_high")
    row = {"view": view, "model": model_name, "part": "model", "bin": -1, "n": 0, "outside": False}
    row |= (
        dict.fromkeys(numbers, MISSING) | dict(totals) | {column: getattr(result, column) for column in RESULT_COLUMNS}
    )
    return rows_to_columns([row])


def panel_rows(
    diagrams_by_model: Mapping[str, Sequence[Diagram]],
    results_by_view: Sequence[Sequence[ModelResult]],
    overall_results: Sequence[ModelResult] | None,
) -> list[dict[str, Any]]:
    """One row per view, with a range of y that all models and panels share."""
    drawn_diagrams = [diagram for diagrams in diagrams_by_model.values() for diagram in diagrams[:MAX_PANELS]]
    axis_limits = {
        "y_low": min(float(diagram.panels["y_low"][0]) for diagram in drawn_diagrams),
        "y_high": max(float(diagram.panels["y_high"][0]) for diagram in drawn_diagrams),
        "tallest": max(float(diagram.panels["tallest"][0]) for diagram in drawn_diagrams),
    }
    rows: list[dict[str, Any]] = []
    names = list(diagrams_by_model)
    for i, view_diagrams in enumerate(zip(*diagrams_by_model.values(), strict=True)):
        view, title = str(view_diagrams[0].panels["view"][0]), str(view_diagrams[0].panels["title"][0])
        errors = [result.error for result in results_by_view[i]]
        rows.append(
            {
                "view": view,
                "title": title,
                "aside": f"ECE {_format_error_range(errors)}",
                "finding": describe_comparison(names, results_by_view[i], "ECE"),
                "n": max(int(diagram.panels["n"][0]) for diagram in view_diagrams),
                **axis_limits,
            }
        )
    if len(rows) > 1:
        prefix = (
            f"Mean over {len(rows)} views: {describe_comparison(names, overall_results, 'ECE')} "
            if overall_results
            else ""
        )
        largest_error = max(result.error for result in results_by_view[0])
        rows[0]["finding"] = f"{prefix}Largest: {rows[0]['title']}, ECE\u00a0{largest_error:.4f}."
    return rows


def _format_error_range(errors: Sequence[float]) -> str:
    low, high = min(errors), max(errors)
    return f"{low:.3f}" if len(errors) == 1 else f"{low:.3f}–{high:.3f}"


NUMBER_TABLE_COLUMNS = ("error", "noise_floor", "difference", "difference_low", "difference_high")
MODEL_OFFSET = 2.2  # horizontal offset in points between models, so that equal bins do not hide each other


class ComparisonDiagram(model_strips_and_table.DiagramWithStrips, BinnedPlot):
    """Marks joined by lines, bars, strips and numbers of each model."""

    layers = ("bars", "lines", "marks", "strip", "numbers", "diagonal")
    row_noun = "bins"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height: the diagonal style is square, and the table of numbers has a line per model."""
        has_table = self.has("numbers") and len(self.names) > 1
        table_height = model_strips_and_table.number_table_height(len(self.names)) if has_table else 0.0
        if self.shows_deviation:
            return 6.4, model_strips_and_table.figure_height(self, 6.4, 4.7, self.strip_height, table_height)
        axes_width = 5.8 - model_strips_and_table.LABELS_WIDTH
        plot_height = axes_width * styling.equal_scale_aspect_ratio(*styling.RATE_LIMITS, 0.0)
        return 5.8, model_strips_and_table.figure_height(self, 5.8, 4.7, self.strip_height, table_height, plot_height)

    def default_title(self) -> str:
        if len(self.names) == 1:
            return super().default_title()
        return "Which model is better calibrated, and where?"

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """Line, marks and bars of each model, the line of perfect calibration, strips, and the table of numbers."""
        rows, n_models = self.rows(panel), len(self.names)
        tables_by_model = [select_part_of_model(rows, name, "bin") for name in self.names]
        marks_by_model = [self._model_marks(i, table, panel, size) for i, table in enumerate(tables_by_model)]
        # In the legend, the models come before what they have in common.
        marks = [mark for marks_of_a_kind in zip(*marks_by_model, strict=True) for mark in marks_of_a_kind]
        strips = self.strips(tables_by_model, float(self.panels["tallest"][panel]))
        if not any(map(self.has, ("bars", "lines", "marks"))):
            for strip, name in zip(strips, self.names, strict=False):
                strip.label, strip.key = legend_name(name), {}  # the strips alone have the colors of the models
        marks += [self.calibration_line(), *strips]
        if n_models > 1 and len(self.panels["view"]) == 1:
            font_size = size.font_size - 0.5
            columns = self._number_columns(rows, font_size)
            marks.append(model_strips_and_table.NumberTable(self.names, columns, font_size))
        return marks

    def _model_marks(self, i: int, rows: Mapping[str, Array], panel: int, size: PanelSize) -> list[Mark]:
        """The bins of model number i: line, marks and bars, shifted sideways so that models do not overlap."""
        color, (y, bottom, top), is_wide = COLORS[i], self.marker_positions(rows), size.width > 3.4
        step = (i - (len(self.names) - 1) / 2) * MODEL_OFFSET * (1.0 if is_wide else 0.5)
        points_per_unit = styling.POINTS_PER_INCH * size.width / np.ptp(styling.PROBABILITY_LIMITS)
        x, name = rows["mean_prediction"] + step / points_per_unit, legend_name(self.names[i])
        line: dict[str, Any] = {"color": color, "linestyle": LINE_STYLES[i], "linewidth": 1.0, "alpha": 0.8}
        line |= {"key": {"linewidth": 1.2, "alpha": 1}, "zorder": 3.2}
        point: dict[str, Any] = {"layer": "marks", "marker": MARKERS[i], "color": color, "zorder": 4}
        point |= {"markersize": 5.0 if is_wide else 3.4, "markeredgewidth": 1.2 if is_wide else 0.8}
        marks: list[Mark] = [
            Line(x, y, layer="lines", label=name, **line),
            Points(x, y, label=name, key={"markersize": 5}, **point),
        ]
        if self.settings["bars"] is None:
            return marks
        is_consistency = self.settings["bars"] == "consistency"
        bar: dict[str, Any] = {"linewidth": 2.4, "alpha": 0.35, "zorder": 2} if is_consistency else {"zorder": 3}
        bar |= {} if is_consistency else {"linewidth": 1.1 if is_wide else 0.7}
        bar |= {"label": f"{self.level_text} {'consistency bar' if is_consistency else 'interval'}"}
        bar |= {"key": {"color": styling.MUTED_COLOR, "linewidth": 5 if is_consistency else 1.3, "alpha": 1}}
        if not self.has("lines") and not self.has("marks"):
            bar |= {"label": name, "key": {}}  # the bars alone have the color of the model
        marks.append(Segments(x, x, bottom, top, layer="bars", color=color, **bar))
        low, high = self.y_limits(panel)
        for edge, marker, is_cut in ((high, "^", top > high), (low, "v", bottom < low)):
            cut = {"layer": "bars", "name": "cut", "marker": marker, "markersize": 3, "color": color, "zorder": 3.5}
            marks.append(Points(x[is_cut], edge, **cut))
        hollow = point | {"markeredgecolor": color, "markerfacecolor": "white", "label": "hollow: not significant"}
        hollow["key"] = {"marker": "o", "markersize": 5, "markeredgecolor": styling.MUTED_COLOR}
        marks.append(Points(x[~rows["outside"]], y[~rows["outside"]], **hollow))
        return marks

    def _number_columns(self, rows: Mapping[str, Array], font_size: float) -> list[tuple[str, list[str]]]:
        """The ECE, noise floor and difference of each model, for the table of numbers."""
        numbers_by_model = [
            {key: float(select_part_of_model(rows, name, "model")[key][0]) for key in NUMBER_TABLE_COLUMNS}
            for name in self.names
        ]
        return [
            ("ECE", [format_error(numbers["error"]) for numbers in numbers_by_model]),
            ("noise floor", [format_error(numbers["noise_floor"]) for numbers in numbers_by_model]),
            model_strips_and_table.difference_column(numbers_by_model, self.names[0], font_size),
        ]
