"""The Murphy diagram: cost of decisions by threshold, or the miscalibration-discrimination plane, of several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import InputError, Note
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import Level, OneOf, Range
from trueodds.core.typing import Array
from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import SCORE_NAMES, TALLY_NOTE, format_percent
from trueodds.diagrams._style.marks import Line, Mark, PanelSize
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.mcb_dsc_plane import PlaneDiagram, describe_plane, plane_limits
from trueodds.diagrams.model_results import (
    COLORS,
    MISSING,
    ModelResult,
    are_equal,
    describe_comparison,
    legend_name,
    marks_thresholds,
    match_views,
    measure_models,
)
from trueodds.diagrams.murphy_curves import MurphyModel, bootstrap_bands, exact_thresholds, threshold_grid
from trueodds.diagrams.murphy_finding import describe_curves, format_score_range
from trueodds.diagrams.recipe import (
    IMPORTANCE_WEIGHT_EXEMPTION,
    BandDraws,
    Models,
    Recipe,
    lens_name,
    panel_limit_notes,
)
from trueodds.diagrams.table_columns import Columns, select_part_of_model
from trueodds.estimators.base import ProperScore
from trueodds.estimators.corp import SCORES
from trueodds.estimators.corp import Corp as CorpError
from trueodds.estimators.proper_scores import Brier, LogLoss
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View, view_title
from trueodds.resampling.intervals.method import IntervalSpec

SCORE_ESTIMATORS: Mapping[str, type[ProperScore]] = {"brier": Brier, "log_loss": LogLoss}
BAND_THRESHOLDS = 100  # equally spaced thresholds of a band, in addition to quantiles of the predictions
PART_DASHES = {"mcb": (0, (4, 1.5)), "dsc": (0, (1.2, 1.2)), "unc": (0, (6, 1.5, 1.2, 1.5))}
PART_LABELS = {"mcb": "miscalibration", "dsc": "discrimination", "unc": "uncertainty"}


@dataclass(frozen=True)
class Murphy(Recipe):
    r"""Murphy diagram: mean elementary score by decision threshold, or the miscalibration-discrimination plane.

    The diagram shows which of several models has the lower cost, and at which thresholds, for a user who acts above
    θ because a false alarm costs θ and a miss costs 1 − θ. A model whose curve is nowhere above another is better under
    every proper score. ``style="plane"`` draws one mark for each model, with miscalibration (MCB) on the horizontal
    axis, its interval, and discrimination (DSC) on the vertical axis. The mean score MCB − DSC + UNC is constant along
    the slanted lines and improves toward the upper left.

    Parameters
    ----------
    style : {"murphy", "plane"}, default="murphy"
        Curves by threshold, or the plane of MCB and DSC.
    score : {"brier", "log_loss"}, default="brier"
        The score whose MCB, DSC and UNC are reported and drawn in the plane.
    thresholds : int or sequence of float, optional
        The number of equal steps from 0 to 1, or the thresholds themselves. The finding then refers to these
        thresholds only. By default, the thresholds at which the curves change.
    band : {"auto", "bootstrap"} or None, default="auto"
        ``"auto"`` draws bootstrap bands for one or two models, ``"bootstrap"`` for all. Both also compute intervals of
        the differences between models. None draws no resamples. In the plane the setting decides whether MCB has an
        interval, which a single view only can have.
    parts : bool, optional
        Whether MCB, DSC and UNC are drawn at each threshold. By default only for a single model.
    level : float, default=0.95
        Confidence level of bands and intervals.
    resamples : int, default=999
        The number of bootstrap resamples.
    paired : bool, optional
        Whether the models predict the same rows in the same order. By default this is decided by whether their
        outcomes are equal.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for a joint view and for a plane of models with different outcomes; TO705
        for more than eight models.

    Notes
    -----
    The mean elementary score at the threshold θ is

    .. math:: S_\theta = 2\theta\, P[p > \theta, y = 0] + 2(1 - \theta)\, P[p < \theta, y = 1]

    as in the estimator ``murphy_loss``, with half of either cost where p = θ. The area under the curve is the Brier
    score. Ehm et al. [1]_ define half of S, and half the area. With the isotonic recalibration :math:`\hat r` (see
    ``corp``), the score decomposes at every θ:

    .. math:: S_\theta(p) = \underbrace{S_\theta(p) - S_\theta(\hat r)}_{\text{MCB}} -
        \underbrace{(S_\theta(\bar y) - S_\theta(\hat r))}_{\text{DSC}} + \underbrace{S_\theta(\bar y)}_{\text{UNC}}

    Views: binary. Several views form a grid. Weights are importance weights. A share of votes of 0.7 counts as an event
    of weight 0.7 and a non-event of weight 0.3. Units: cost, in [0, 2], 0 is best; in the plane those of the score.

    With up to 1,000 points at which the curves change, curves are exact, with both limits at a jump. Otherwise they
    are evaluated exactly at 200 equally spaced thresholds and 100 quantiles of the predictions of each model (note
    TN264). Bands are pointwise percentile intervals of resampled rows, the same rows for all models that share them.
    In simulations at level 0.9 with uniform and arcsine scores, calibrated and overconfident, they covered the true
    cost in 87–89 % of the cases with 100 rows (79–90 % at θ = 0.1 and 0.9), and in 88–90 % with 1,000 rows.

    Columns of ``table``: ``view model part side threshold score mcb dsc unc low high difference difference_low
    difference_high beyond share``. ``part`` is ``curve`` (``side``: ``at`` the threshold, or the limit from ``below``
    or ``above``), ``band`` (limits of the score, its difference to the first model with limits, and ``beyond``: −1 if
    these are below 0, 1 if above), ``strip`` (share of rows with predictions from low to high) or ``model`` (`score`
    and its parts, limits of MCB, difference of scores). Entries that do not apply are NaN or empty.

    Cost: O(n log n), and O(resamples · n) for a band.

    References
    ----------
    .. [1] Ehm, Gneiting, Jordan & Krüger (2016).
    .. [2] Dimitriadis, Gneiting, Jordan & Vogel (2024).

    Examples
    --------
    At θ = 0.5 the cost is the share of wrong decisions, here one of three.

    >>> import trueodds as to
    >>> diagram = to.draw([0, 0, 1], [0.2, 0.7, 0.9], "murphy", thresholds=[0.5], band=None)
    >>> diagram.table["score"][diagram.table["part"] == "curve"].round(4).tolist()
    [0.3333]
    """

    name: ClassVar[str] = "murphy"
    accepts_several_models: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = ("low", "high", "difference_low", "difference_high", "beyond")
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION | {
        "tally": "thresholds at scores depend on exact scores, and a tally replaces them by the mean of a cell",
    }
    style: Literal["murphy", "plane"] = "murphy"
    score: Annotated[str, OneOf(tuple(SCORES))] = "brier"
    thresholds: Annotated[int, Range(2, 1_000_000)] | Sequence[Annotated[float, Range(0, 1)]] | None = None
    band: Literal["auto", "bootstrap"] | None = "auto"
    parts: bool | None = None
    level: Level = 0.95
    resamples: BandDraws = 999
    paired: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds == ():
            problem = "thresholds must be numbers from 0 to 1, or the number of steps from 0 to 1."
            raise InputError("TO203", problem, "an empty sequence", "For instance thresholds=100 or [0.1, 0.5].")

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        return MurphyBuilder(self, {"": views}, {"": None}, rng).build(score_results={}, mcb_results={}, notes=[])

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        views_by_model = match_views(models, lens, self.name)
        generator = as_generator(rng)
        seed = seed_of(rng, generator)
        builder = MurphyBuilder(self, views_by_model, models, generator)
        interval_spec = IntervalSpec(level=self.level, resamples=self.resamples)
        results, notes = measure_models(models, SCORE_ESTIMATORS[self.score](), lens, interval_spec, self.paired, seed)
        # With several views only marks are drawn: the interval of the mean MCB would belong to none of them.
        has_intervals = self.style == "plane" and self.band is not None and len(builder.panels) == 1
        mcb_results = {
            name: measure_models({name: data}, CorpError(self.score), lens, interval_spec, None, seed)[0][0]
            for name, data in models.items()
            if has_intervals
        }
        return builder.build(dict(zip(models, results, strict=True)), mcb_results, notes)

    @property
    def given_thresholds(self) -> Array | None:
        """The increasing thresholds that the setting names; None if the curves determine them."""
        if isinstance(self.thresholds, int):
            return np.arange(self.thresholds + 1) / self.thresholds
        return None if self.thresholds is None else np.unique(np.asarray(self.thresholds, dtype=np.float64))


class MurphyBuilder:
    """Computes curves and bands of all models in each view, and builds the diagram from them.

    Parameters
    ----------
    recipe : Murphy
        The settings.
    views_by_model : mapping of str to tuple of View
        The views of each model by its name.
    data_by_model : mapping of str to Predictions, Tally or None
        The data of each model by its name; None if only its views are known.
    rng : numpy.random.Generator
        Source of the bootstrap resamples.

    Attributes
    ----------
    names : list of str
        The names of the models, in order.
    panels : list of lists of MurphyModel
        The models of each view, the view with the largest miscalibration first.
    curves, bands : list of lists of tables
        The table rows of the curve, and of the band, of each model in each view. The lists are empty in the plane, and
        the list of bands of a view is empty if it has none.
    """

    def __init__(
        self,
        recipe: Murphy,
        views_by_model: Mapping[str, tuple[View, ...]],
        data_by_model: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> None:
        self.recipe, self.names = recipe, list(views_by_model)
        panels = [
            [MurphyModel(name, view, recipe.score) for name, view in zip(self.names, views, strict=True)]
            for views in zip(*views_by_model.values(), strict=True)
        ]
        order = decreasing_order([max(model.decomposition["mcb"] for model in models) for models in panels])
        self.panels = [panels[i] for i in order]
        self.curves: list[list[Columns]] = []
        self.bands: list[list[Columns]] = []
        if recipe.style == "plane":
            self._check_equal_outcomes()
            return
        for i, models in enumerate(self.panels):
            self.curves.append(self._curve_rows(models))
            self.bands.append(self._band_rows(models, data_by_model, rng) if i < MAX_PANELS else [])

    def _curve_rows(self, models: Sequence[MurphyModel]) -> list[Columns]:
        """The curve of each model of a view: at the given thresholds, where the curves change, or on a grid."""
        cost_curves = [model.cost_curve for model in models]
        thresholds, is_exact = self.recipe.given_thresholds, False
        if thresholds is None:
            thresholds = exact_thresholds(cost_curves)
            is_exact = thresholds is not None
        if thresholds is None:
            thresholds = threshold_grid(cost_curves)
        return [model.curve_rows(thresholds, is_exact=is_exact) for model in models]

    def _band_rows(
        self, models: Sequence[MurphyModel], data_by_model: Mapping[str, Any], rng: np.random.Generator
    ) -> list[Columns]:
        """The band of each model of a view; empty without bands, and if a model has a single row."""
        recipe = self.recipe
        if recipe.band is None or min(len(model.view) for model in models) <= 1:
            return []
        thresholds = recipe.given_thresholds
        if thresholds is None:
            thresholds = threshold_grid([model.cost_curve for model in models], BAND_THRESHOLDS)
        return bootstrap_bands(
            models, data_by_model, thresholds, level=recipe.level, resamples=recipe.resamples, rng=rng,
            paired=recipe.paired,
        )  # fmt: skip

    @property
    def n_grid_thresholds(self) -> int:
        """The largest number of thresholds of a curve that is evaluated on a grid; 0 if there is no such curve."""
        if self.recipe.thresholds is not None:
            return 0
        sides = [curve["side"] for curves in self.curves for curve in curves]
        return max((len(side) for side in sides if side[0] == "at"), default=0)  # exact curves have both limits

    def build(
        self, score_results: Mapping[str, ModelResult], mcb_results: Mapping[str, ModelResult], notes: Sequence[Note]
    ) -> Diagram:
        """Build the diagram.

        `score_results` and `mcb_results` hold the measured score and MCB of each model over all views, by its name, and
        are empty if they are not known. `notes` are those of the measurement.
        """
        recipe, has_single_view = self.recipe, len(self.panels) == 1
        # The noise floor of a score is not a bias to be reported.
        score_results = {name: replace(result, noise_floor=MISSING) for name, result in score_results.items()}
        lens = lens_name([models[0].view for models in self.panels])
        table: list[Columns] = []
        for i, models in enumerate(self.panels):
            if recipe.style == "murphy":
                table += [*self.curves[i], *self.bands[i], *(model.strip_rows() for model in models)]
            for model in models:
                # With several views, the results belong to the rows over all views below.
                score_result = score_results.get(model.name) if has_single_view else None
                mcb_result = mcb_results.get(model.name) if has_single_view else None
                table.append(model.score_row(score_result, mcb_result))
        if not has_single_view and score_results:
            table += [
                self._aggregate_row(lens, model, score_results[model.name], mcb_results.get(model.name))
                for model in self.panels[0]
            ]
        diagram_class = MurphyDiagram if recipe.style == "murphy" else PlaneDiagram
        thresholds = recipe.thresholds
        settings = recipe._settings | {
            "thresholds": thresholds if thresholds is None else np.asarray(thresholds).tolist(),
            "parts": self.shows_decomposition,
            "banded": self.shows_bands,
            "models": list(self.names),
        }
        rows = self._panel_rows(score_results, mcb_results)
        unique_notes = dict.fromkeys([*notes, *self._collect_notes()])
        return recipe.build_diagram(diagram_class, lens, table, rows, settings, unique_notes)

    @property
    def shows_decomposition(self) -> bool:
        return len(self.names) == 1 if self.recipe.parts is None else self.recipe.parts

    @property
    def shows_bands(self) -> bool:
        return self.recipe.band == "bootstrap" or (self.recipe.band == "auto" and len(self.names) <= 2)

    def _aggregate_row(
        self, lens: str, model: MurphyModel, score_result: ModelResult, mcb_result: ModelResult | None
    ) -> Columns:
        """The table row of one model over all views: means of its decomposition, and its results."""
        i = self.names.index(model.name)
        decompositions = [models[i].decomposition for models in self.panels]
        decomposition = {
            key: float(np.mean([view_decomposition[key] for view_decomposition in decompositions]))
            for key in model.decomposition
        }
        return model.score_row(score_result, mcb_result, decomposition, lens)

    def _panel_rows(
        self, score_results: Mapping[str, ModelResult], mcb_results: Mapping[str, ModelResult]
    ) -> list[dict[str, Any]]:
        """The rows of `panels`: one per view, with its finding and the limits of the axes that all share."""
        drawn_panels = self.panels[:MAX_PANELS]
        if self.recipe.style == "murphy":
            shown_parts = ["score", *(["unc", "dsc"] if self.shows_decomposition else [])]
            curves = [curve for curves in self.curves[:MAX_PANELS] for curve in curves]
            max_cost = max(float(curve[part].max()) for curve in curves for part in shown_parts)
            if self.shows_bands:
                limits = [float(band["high"].max()) for view in self.bands for band in view]
                max_cost = max([max_cost, *limits])
            max_share = max(float(model.strip_rows()["share"].max()) for models in drawn_panels for model in models)
            axis_limits = {"y_low": 0.0, "y_high": 1.04 * max(max_cost, 0.01), "tallest": max_share}
        else:
            axis_limits = plane_limits(drawn_panels, mcb_results if len(self.panels) == 1 else {})
        rows = [
            {
                "view": models[0].view.name,
                "title": view_title(models[0].view.name),
                "aside": format_score_range(models),
                "finding": self._describe_finding(i, score_results),
                "n": max(model.view.n_rows for model in models),
                **axis_limits,
            }
            for i, models in enumerate(self.panels)
        ]
        if len(rows) > 1:
            comparison_text = describe_comparison(
                self.names, self._ordered_results(score_results), SCORE_NAMES[self.recipe.score]
            )
            mean_text = f"Mean over {len(rows)} views: {comparison_text} "
            largest = f"Largest miscalibration: {rows[0]['title']}"
            rows[0]["finding"] = f"{mean_text}{largest}." if score_results else f"{largest}. {rows[0]['finding']}"
        return rows

    def _ordered_results(self, score_results: Mapping[str, ModelResult]) -> list[ModelResult]:
        """The results in the order of the models; the numbers of a model without a result are NaN."""
        return [score_results.get(name, ModelResult()) for name in self.names]

    def _describe_finding(self, i: int, score_results: Mapping[str, ModelResult]) -> str:
        models = self.panels[i]
        results = [ModelResult(model.decomposition["score"]) for model in models]
        if score_results and len(self.panels) == 1:
            results = self._ordered_results(score_results)
        if self.recipe.style == "plane":
            return describe_plane(models, results)
        fixed_thresholds = self.recipe.thresholds is not None
        return describe_curves(models, self.curves[i], self.bands[i], results, fixed_thresholds=fixed_thresholds)

    def _check_equal_outcomes(self) -> None:
        """Raise TO205 if models of a view differ in UNC, as only different outcomes can."""
        for models in self.panels:
            unc = [model.decomposition["unc"] for model in models]
            if not are_equal(unc):
                raise InputError(
                    "TO205",
                    "The plane requires models with the same outcomes.",
                    f"uncertainty {', '.join(f'{name} {u:.4f}' for name, u in zip(self.names, unc, strict=True))}",
                    "Use ⟨lens='class:NAME'⟩ or 'classwise', whose outcome is the same for all models, or"
                    " ⟨style='murphy'⟩.",
                )

    def _collect_notes(self) -> list[Note]:
        notes = [
            note
            for models in self.panels[:MAX_PANELS]
            for model in models
            for note in CorpError(model.score_name).notes(model.view)
        ][:1]
        if self.recipe.style == "murphy":
            sentences = []
            if any(self.bands):
                sentences.append(
                    "Bands and differences are pointwise: the true cost is expected to lie outside the band at "
                    f"{format_percent(1 - self.recipe.level)} of the thresholds."
                )
            if self.n_grid_thresholds:
                sentences.append(
                    f"Curves are evaluated exactly at {self.n_grid_thresholds:,} thresholds. Jumps between them appear"
                    " as slopes."
                )
            if sentences:
                notes.append(Note("TN264", " ".join(sentences)))
            if not all(are_equal([model.cost_curve.rate for model in models]) for models in self.panels):
                text = (
                    "The models have different outcomes. A curve may be lower only because its outcome is easier to "
                    "predict. With ⟨lens='class:NAME'⟩ all models have the same outcome."
                )
                notes.append(Note("TN263", text))
        table_content = "The table contains all of them, but bands only of those drawn."
        notes += panel_limit_notes(len(self.panels), MurphyDiagram.view_order, table_content)
        if not all(model.view.is_rows for models in self.panels for model in models):
            notes.append(TALLY_NOTE)
        return notes


class MurphyDiagram(model_strips_and_table.DiagramWithStrips):
    """Murphy curves of each model with bands, histogram strips and a table of numbers."""

    labels = "Decision threshold", "Mean cost of decisions"
    layers = ("curves", "band", "beyond", "parts", "strip", "numbers")
    row_noun = "table rows"
    view_order = "largest miscalibration"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height, with a line for each model in the table of numbers."""
        return 6.4, model_strips_and_table.figure_height(
            self,
            6.4,
            4.7,
            self.strip_height,
            model_strips_and_table.number_table_height(len(self.names)) if self._shows_numbers else 0.0,
        )

    @property
    def _shows_numbers(self) -> bool:
        """Whether a table of scores is drawn below the axes: for several models in one view."""
        return self.has("numbers") and len(self.names) > 1 and len(self.panels["view"]) == 1

    def default_title(self) -> str:
        if len(self.names) == 1:
            return "What do decisions based on these probabilities cost?"
        return "Which model has the lower cost, and at which thresholds?"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        high = float(self.panels["y_high"][panel])
        styling.set_limits_above_strip(ax, 0.0, high, self.strip_height)
        ax.set_yticks(styling.round_ticks(ax, 0.0, high))

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        curves, bands, strips = (
            [select_part_of_model(rows, name, part) for name in self.names] for part in ("curve", "band", "strip")
        )
        has_markers = marks_thresholds(self.settings["thresholds"])
        marks: list[Mark] = []
        for i, curve in enumerate(curves):
            label = "cost" if len(self.names) == 1 else legend_name(self.names[i])
            style = model_strips_and_table.model_line(i, size, has_markers=has_markers)
            marks.append(Line(curve["threshold"], curve["score"], layer="curves", label=label, **style))
        if self.settings["banded"]:
            for i, band in enumerate(bands):
                limits, label = (band["threshold"], band["low"], band["high"]), f"{self.level_text} interval"
                marks.append(self.model_band(i, *limits, label=label, has_markers=has_markers, zorder=2))
        if self.settings["parts"]:
            marks += self._part_marks(curves, size, has_markers=has_markers)
        # Behind all curves, pale and with square ends: several such strokes must not hide the curves.
        stroke: dict[str, Any] = {"linewidth": 4.5 if size.is_wide else 3.0, "alpha": 0.3, "solid_capstyle": "butt"}
        stroke |= {"marker": "o", "markersize": 10} if has_markers else {}
        label = f"differs from {legend_name(self.names[0])} ({self.level_text})"
        for i, band in enumerate(bands):
            score = np.where(np.abs(band["beyond"]) == 1, band["score"], np.nan)
            style = {"layer": "beyond", "color": COLORS[i], "zorder": 2.5, "key": {"color": styling.MUTED_COLOR}}
            marks.append(Line(band["threshold"], score, label=label, **style, **stroke))
        marks += self.strips(strips, float(self.panels["tallest"][panel]))
        if self._shows_numbers:
            tables, font_size = [select_part_of_model(rows, name, "model") for name in self.names], size.font_size - 0.5
            columns = model_strips_and_table.score_columns(tables, self.names[0], self.settings["score"], font_size)
            marks.append(model_strips_and_table.NumberTable(self.names, columns, font_size))
        return marks

    def _part_marks(self, curves: Sequence[Columns], size: PanelSize, *, has_markers: bool) -> list[Mark]:
        """Miscalibration and discrimination of each model, and the uncertainty, which all models share."""
        color = COLORS[0] if len(self.names) == 1 else styling.MUTED_COLOR
        width = 1.2 if size.is_wide else 0.9
        marks: list[Mark] = []
        for part in ("mcb", "dsc"):
            style: dict[str, Any] = {
                "layer": "parts",
                "name": part,
                "label": PART_LABELS[part],
                "key": {"color": color},
            }
            style |= {"linestyle": PART_DASHES[part], "linewidth": width} | ({"marker": "."} if has_markers else {})
            for i, curve in enumerate(curves):
                marks.append(Line(curve["threshold"], curve[part], color=COLORS[i], **style))
        unc: dict[str, Any] = {"linestyle": PART_DASHES["unc"], "color": styling.MUTED_COLOR, "linewidth": 1.1}
        unc |= {"layer": "parts", "name": "unc", "label": PART_LABELS["unc"], "zorder": 2.4}
        return [*marks, Line(curves[0]["threshold"], curves[0]["unc"], **unc)]
